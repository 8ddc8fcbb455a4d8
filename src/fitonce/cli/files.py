"""Where results go: checked before the work begins, written whole or not at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import UserError


@dataclass(frozen=True)
class Places:
    """The files that a fit writes."""

    model: Path
    page: Path


def places(out: str | None, stem: str) -> Places:
    """The model and the page.

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
    return Places(folder / f"{base}.skops", folder / f"{base}.html")


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


def shown(path: Path) -> str:
    """A path as it is printed."""
    return str(path)


__all__ = ["Places", "check_folder", "places", "shown"]
