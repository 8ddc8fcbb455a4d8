"""The command line: a table in, an answer out. Each command parses, calls the library once, and
writes.

`app` has the commands and `options` their options. `tables` reads and writes files, `values` and
`columns` say what each column holds and is for, `models` builds the estimator. `work` has the steps
of the commands, and `answers` lays out what `screen` shows.
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
