"""Tables from files: CSV, TSV, Parquet, Arrow. What was assumed while reading is written down as
notes.

A text file is read as strings; which columns are numbers is decided in `columns`, where it can be
told. The separator, the character encoding and whether there is a header are found out, and said
where they are not the usual ones.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import polars as pl

from .errors import UserError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat")
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
FOREIGN = {
    ".xlsx": "a spreadsheet",
    ".xls": "a spreadsheet",
    ".ods": "a spreadsheet",
    ".json": "JSON",
    ".sav": "SPSS",
    ".dta": "Stata",
}
MISSING = (
    "",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "none",
    "?",
    ".",
    "-",
    "#N/A",
)
NUMBER = re.compile(r"^\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*$")
SAMPLE_LINES = 50
STDIN = "-"


@dataclass(frozen=True)
class Table:
    """A table with its name and what was assumed while reading it."""

    frame: pl.DataFrame
    name: str
    notes: list[str] = field(default_factory=list)

    @property
    def stem(self) -> str:
        """The name of the file without its folder and ending."""
        name = Path(self.name).name
        return "table" if self.name == STDIN else name.removesuffix(".gz").rsplit(".", 1)[0] or name


def read_table(
    path: str,
    *,
    separator: str | None = None,
    header: bool | None = None,
    expected: tuple[str, ...] = (),
) -> Table:
    """The table in a file, or on standard input for "-".

    `expected` are names of columns that the caller knows of: a first row that holds one of them is
    a header even if it looks like data.
    """
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending in FOREIGN:
        raise UserError(
            f"{path} is {FOREIGN[ending]} file, which fitonce does not read: save the table as "
            "CSV or Parquet."
        )
    content = _bytes(path)
    if content[:2] == b"\x1f\x8b":
        content = _unzipped(content, path)
    if not content.strip():
        raise UserError(f"{path} is empty: there is no table in it.")
    try:
        if ending in PARQUET or content[:4] == b"PAR1":
            table = Table(pl.read_parquet(io.BytesIO(content)), path)
        elif ending in ARROW or content[:6] == b"ARROW1":
            read = pl.read_ipc if content[:6] == b"ARROW1" else pl.read_ipc_stream
            table = Table(read(io.BytesIO(content)), path)
        else:
            table = _text(content, path, separator, header, expected)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path} cannot be read as a table: {_first_line(error)}.") from error
    if table.frame.width == 0 or table.frame.height == 0:
        raise UserError(f"{path} has a header but no rows.")
    return table


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    file = Path(path)
    if file.is_dir():
        raise UserError(
            f"{path} is a folder, not a table: name a CSV, TSV, Parquet or Arrow file in it."
        )
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}.") from None
    except PermissionError:
        raise UserError(f"{path} cannot be read: permission denied.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def _unzipped(content: bytes, path: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise UserError(f"{path} cannot be unpacked: {error}.") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


# ---- text ----------------------------------------------------------------------------------------


def _text(
    content: bytes, path: str, separator: str | None, header: bool | None, expected: tuple[str, ...]
) -> Table:
    text, notes = _decoded(content, path)
    mark = separator or _separator(text)
    rows = islice(csv.reader(io.StringIO(text[:200_000]), delimiter=mark), SAMPLE_LINES)
    lines = [line for line in rows if line]
    usual = separator is not None or mark == "," or Path(path).suffix.lower() in (".tsv", ".tab")
    if not usual and len(lines[0]) > 1:
        notes.append(f"columns are separated by a {SEPARATORS[mark]}")
    has_header = _has_header(lines, expected) if header is None else header
    if not has_header:
        first = ", ".join(_numbered(min(len(lines[0]), 3)))
        reason = "the first row looks like data, so that there is no header"
        reason = reason if header is None else "no header"
        notes.append(f"{reason}: columns are called {first}{', …' if len(lines[0]) > 3 else ''}")
    _check_ragged(lines, path, mark)
    source = io.BytesIO(text.rstrip("\r\n").encode("utf-8"))
    frame = pl.read_csv(
        source,
        separator=mark,
        has_header=has_header,
        infer_schema_length=0,
        null_values=list(MISSING),
    )
    names = [name.strip() for name in frame.columns] if has_header else _numbered(frame.width)
    frame.columns = _named(names, notes)
    return Table(frame, path, notes)


def _decoded(content: bytes, path: str) -> tuple[str, list[str]]:
    """The text and what had to be assumed about its encoding."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16"), ["the file is UTF-16"]
    if b"\x00" in content[:10_000]:
        raise UserError(
            f"{path} is not a text table: it holds binary data. fitonce reads CSV, TSV, Parquet "
            "and Arrow files."
        )
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return content.decode("latin-1"), ["the file is not UTF-8: read as latin-1"]


def _separator(text: str) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better.

    A comma where none does.
    """
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    best, most = ",", 1
    for mark in SEPARATORS:
        widths = [len(line) for line in csv.reader(io.StringIO(sample), delimiter=mark) if line]
        if widths and min(widths) == max(widths) and widths[0] > most:
            best, most = mark, widths[0]
    if most == 1:  # ragged lines: the mark that occurs most often in the first
        first = sample.splitlines()[0] if sample else ""
        counts = {mark: first.count(mark) for mark in SEPARATORS}
        best = max(counts, key=lambda mark: counts[mark]) if max(counts.values()) else ","
    return best


def _has_header(lines: list[list[str]], expected: tuple[str, ...]) -> bool:
    """A first row in which nothing but numbers (or nothing) stands is data, unless it holds a name
    that the user gave.
    """
    first = [value.strip() for value in lines[0]]
    if any(name in first for name in expected):
        return True
    return not all(NUMBER.match(value) or value in MISSING for value in first)


def _check_ragged(lines: list[list[str]], path: str, mark: str) -> None:
    for number, line in enumerate(lines, start=1):
        if len(line) > len(lines[0]):
            raise UserError(
                f"{path} is not a regular table: row {number} has {len(line)} fields where the "
                f"first has {len(lines[0])} (separated by a "
                f"{SEPARATORS.get(mark, repr(mark))}). Quote values that contain the separator, "
                "or name it with --separator."
            )


def _numbered(width: int) -> list[str]:
    return [f"column_{number + 1}" for number in range(width)]


def _named(names: list[str], notes: list[str]) -> list[str]:
    """Names that are all there and all different."""
    result: list[str] = []
    for number, name in enumerate(names):
        unique = (
            name if name and not re.fullmatch(r"_duplicated_\d+", name) else f"column_{number + 1}"
        )
        while unique in result:
            unique = f"{unique}_{number + 1}"
        result.append(unique)
    changed = [
        repr(new)
        for old, new in zip(names, result, strict=True)
        if old != new or re.search(r"_duplicated_\d+$", new)
    ]
    if changed:
        notes.append(
            "names that were empty or repeated were changed: "
            f"{', '.join(changed[:5])}{', …' if len(changed) > 5 else ''}"
        )
    return result


def column_names(path: str) -> list[str]:
    """The header of a file, for shell completion; empty where it cannot be read quickly."""
    try:
        if path.lower().endswith(PARQUET):
            return list(pl.read_parquet_schema(path))
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            line = file.readline()
        return [name.strip() for name in next(csv.reader([line], delimiter=_separator(line)))]
    except Exception:  # a shell that completes must never see an error
        return []
