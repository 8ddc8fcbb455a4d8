#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks: `nox` runs lint and the fast tests, `nox -s docs` builds the site, `nox -s ci` all."""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def lint(session: nox.Session) -> None:
    """ruff and mypy."""
    session.install("-e", ".", "ruff", "mypy")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The fast tests, or what is given after --."""
    session.install("-e", ".[test]")
    arguments = session.posargs or ["-n", "2", "-m", "not slow"]
    session.run("pytest", *arguments, env={"OMP_NUM_THREADS": "1"})


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The documentation site, with warnings as errors."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html")
    session.run("python", "docs/_links.py", "docs/_build/html")


@nox.session(default=False)
def ci(session: nox.Session) -> None:
    """Everything that must hold before a change lands."""
    session.run("bash", ".ci/run", external=True)


if __name__ == "__main__":
    nox.main()
