"""Where results go: checked before the work begins, written whole or not at all."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import polars as pl

from ..io.atomic import write_atomically
from .errors import UserError
from .tables import ARROW, PARQUET


def places(out: str | None, stem: str) -> tuple[Path, Path]:
    """The model file and the page of a fit.

    In the folder `out` (the current one if None), or named after it if it ends in .skops or .html.
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
    check_folder(folder)
    return folder / f"{base}.skops", folder / f"{base}.html"


def beside(model: str, out: str | None, ending: str) -> Path:
    """The file that `out` names, by default the model's name with another ending, here."""
    path = Path(Path(model).name).with_suffix(ending) if out is None else Path(out)
    check_folder(path.parent)
    return path


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before anything is computed."""
    if not folder.exists():
        raise UserError(f"there is no folder {folder}: make it first, or give another --out.")
    if not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder to write to.")
    if not os.access(folder, os.W_OK):
        raise UserError(
            f"{folder} cannot be written to: permission denied. Give another folder with --out."
        )


def write_table(frame: pl.DataFrame, path: str | None) -> list[str]:
    """A table in the format that the name ends in, whole or not at all; on standard output without
    a name. Returns the files written.
    """
    if path is None:
        sys.stdout.write(frame.write_csv())
        return []
    ending, content = Path(path).suffix.lower(), io.BytesIO()
    if ending in PARQUET:
        frame.write_parquet(content)
    elif ending in ARROW:
        frame.write_ipc(content)
    elif ending in (".csv", ".tsv", ".txt", ""):
        frame.write_csv(content, separator="\t" if ending == ".tsv" else ",")
    else:
        raise UserError(f"--out must end in .csv, .tsv, .parquet or .arrow, got {path} instead.")
    write_atomically(path, content.getvalue())
    return [path]
