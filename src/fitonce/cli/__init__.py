"""The command line: a table in, an answer out. Each command parses, calls the library once, and
writes.

`app` has the commands and `options` their options. `tables` reads and writes files; `columns` says
what each column is for, with `targets`, `features`, `dates`, `values` and `hints`; `models` builds
the estimator. `work` has the commands on a table and `modelfiles` those on a model file, of `steps`
that they share. `contest` puts other models beside, `comparing` compares several, `doubts` has the
warnings, and `answers` lays out what `screen` shows.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line program `fitonce`."""
    try:
        from .app import app
    except ImportError as error:
        if error.name not in ("typer", "rich", "polars"):
            raise
        print(
            f"fitonce: the command line needs {error.name}: pip install 'fitonce[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    app(prog_name="fitonce")


__all__ = ["main"]
