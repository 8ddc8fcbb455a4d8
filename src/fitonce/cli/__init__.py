"""The command line: from a table to an answer. Each command parses its options, calls the library
once, and writes the result.

`app` has the commands and `options` their options. `tables` reads and writes files. `columns`
decides what each column is used for, with `targets`, `features`, `dates`, `values` and `hints`.
`models` builds the estimator. `work` has the commands that take a table and `modelfiles` those that
take a model file; `steps` has what they share. `contest` adds other kinds of models for reference,
`comparing` compares several models, `doubts` collects the warnings, and `answers` lays out what
`screen` prints.
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
