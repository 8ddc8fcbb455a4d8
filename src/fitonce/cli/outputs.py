"""Where results go: checked before the work begins, and written completely or not at all."""

from __future__ import annotations

import io
import os
import sys
from functools import partial
from pathlib import Path

import polars as pl

from ..core.atomic import check_place, is_stream, write_atomically
from .errors import UserError, printable
from .table import ARROW, PARQUET


def places(out: str | None, stem: str) -> tuple[Path, Path]:
    """The paths of the model file and the report of a fit.

    They are in the folder `out` (None: the current one), or named after it if it ends in .skops or
    .html.
    """
    given = Path(out or ".")
    if given.suffix in (".skops", ".html"):
        folder, base = given.parent, given.stem
    elif given.suffix and not given.is_dir():
        raise UserError(
            f"--out must be a folder, or a file that ends in .skops or .html, got {out} instead."
        )
    else:
        folder, base = given, f"{stem}-fitonce"
    return folder / f"{base}.skops", folder / f"{base}.html"


def beside(model: str, out: str | None, ending: str) -> Path:
    """The file that `out` names; by default the model's name with another ending, in this
    folder.
    """
    return Path(Path(model).name).with_suffix(ending) if out is None else Path(out)


def check_output(out: Path | str, *inputs: str | None) -> None:
    """Refuse a file that cannot be written, or that is an input, before anything is computed.

    A folder that does not exist yet is created when there is a file to write (`make_folder`).
    """
    if any(_same_file(out, given) for given in inputs if given is not None):
        raise UserError(
            f"{out} is an input of this command, which would be overwritten: give another file "
            "with --out."
        )
    first = Path(out)  # of the folders and the file, the first that does not exist
    while not first.parent.exists():
        first = first.parent
    check_place(first)


def _same_file(out: Path | str, given: str) -> bool:
    """Whether both names lead to the same file; pipes and devices are not harmed."""
    both = os.path.exists(out) and os.path.exists(given)
    return both and os.path.samefile(out, given) and not is_stream(out)


def make_folder(file: Path | str) -> None:
    """Create the folder of a file that is about to be written."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)


def check_table_name(path: str) -> None:
    """Refuse a table in a format that cannot be written, before anything is computed."""
    endings = (*PARQUET, *ARROW, ".csv", ".tsv", ".txt", "")
    if not is_stream(path) and Path(path).suffix.lower() not in endings:
        raise UserError(f"--out must end in .csv, .tsv, .parquet or .arrow, got {path} instead.")


def write_table(frame: pl.DataFrame, path: str | None) -> dict[str, str]:
    """Write a table in the format given by the ending of the name, completely or not at all; to
    standard output without a name. Returns the files written.
    """
    if path is None:
        text = frame.write_csv()
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
        return {}
    content = io.BytesIO()
    writers = dict.fromkeys(PARQUET, frame.write_parquet) | dict.fromkeys(ARROW, frame.write_ipc)
    as_text = partial(frame.write_csv, separator="\t" if path.endswith(".tsv") else ",")
    writers.get(Path(path).suffix.lower(), as_text)(content)
    make_folder(path)
    write_atomically(path, content.getvalue())
    return {"table": path}
