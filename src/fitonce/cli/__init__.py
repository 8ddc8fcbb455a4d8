"""The command line: from a table to an answer. Each command parses its options, calls the library
once, and writes the result.

`app` has the commands, `options` their options. `run` goes through the steps of a table, `saved`
through those of a model file: `table` reads files, `values` the values of a column, `columns`
decides what each column is used for and warns of what makes scores worthless, `model` builds the
estimator and fits it, `show` prints. `words` has failures and remarks as sentences.
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
