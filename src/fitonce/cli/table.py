"""Tables in files: CSV, TSV, Excel, Parquet, Arrow. Assumptions made while reading become notes.
Output paths are checked before the work begins, and files are written completely or not at all.

A text file is read as strings; `columns` decides which columns are numbers.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from .words import UserError, listed, refuse

MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
EXCEL = (".xlsx", ".xlsm")
FOREIGN = {
    ".json": "JSON",
    ".sav": "SPSS",
    ".dta": "Stata",
    ".sas7bdat": "SAS",
    ".rds": "R",
    ".ods": "OpenDocument",
    ".xls": "old Excel versions",
    ".xlsb": "binary Excel",
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
    "?",
    ".",
    "-",
    "#N/A",
)
PLAIN_NUMBER = re.compile(r"^\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*$")
SAMPLE_LINES = 50  # of a text file, from which its format is detected
PIECE = 2**20  # bytes that are unpacked at a time
LARGEST_WHOLE = 2.0**63  # floats from here on do not fit into integers
STDIN = "-"
MOST_BYTES = 2**32  # of a file that is unpacked; a table of 100 million numbers takes about 1 GB
MOST_CELLS = 100_000_000  # of a sheet, each of which takes about 30 bytes while it is read
REFERENCE = re.compile(rb"""\br\s*=\s*["']([A-Z]*)(\d+)["']""")  # of a row or cell in a workbook
ROWS, CELLS = re.compile(rb"<(?:\w+:)?row[\s/>]"), re.compile(rb"<(?:\w+:)?c[\s/>]")


@dataclass(frozen=True)
class Table:
    """A table with its name and the assumptions made while reading it."""

    frame: pl.DataFrame
    name: str
    notes: list[str] = field(default_factory=list)


def stem_of(path: str) -> str:
    """The name of a file without folder and ending."""
    name = Path(path).name
    return "table" if path == STDIN else name.removesuffix(".gz").rsplit(".", 1)[0] or name


def read_table(
    path: str,
    *,
    separator: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
    missing: Collection[str] | None = None,
    expected: Collection[str | None] = (),
) -> Table:
    """Read the table in a file, or from standard input for "-".

    `expected` are column names that the caller knows: a first row with one of them is a header even
    if it looks like data. `sheet` names a sheet of a spreadsheet; None means the first. `missing`
    are further codes of missing values.
    """
    mark = None if separator is None else MARKS.get(separator, separator)
    one = "--separator must be one character (or tab, comma, semicolon, bar, space)"
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    foreign = f"{path} is a file of {FOREIGN.get(ending)}, which fitonce cannot read: save the "
    refuse(
        (mark is not None and len(mark) != 1, f"{one}, got {separator!r} instead."),
        (ending in FOREIGN, f"{foreign}table as CSV, Excel (.xlsx) or Parquet."),
    )
    content = _bytes(path)
    if content[:2] == b"\x1f\x8b":
        content = unzipped(content, path)
    with damage_told(path):
        if ending in PARQUET or content[:4] == b"PAR1":
            table = Table(pl.read_parquet(io.BytesIO(content)), path)
        elif ending in ARROW or content[:6] == b"ARROW1":
            table = Table(_arrow(content), path)
        elif ending in EXCEL:
            table = _spreadsheet(content, path, sheet)
        else:
            table = _text(content, path, mark, header, expected)
    refuse((0 in table.frame.shape, f"{path} has a header but no rows."))
    codes = [*MISSING, *(missing or ())]
    numbers = pl.Series(codes).cast(pl.Float64, strict=False).drop_nulls().drop_nans().to_list()
    ordered = {v.name: v.dtype.categories for v in table.frame if isinstance(v.dtype, pl.Enum)}
    frame = table.frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    frame = frame.with_columns(pl.col(pl.String).str.strip_chars().replace(codes, None))
    if numbers:  # -999.0 is -999
        coded = pl.col(pl.String).cast(pl.Float64, strict=False).is_in(numbers)
        frame = frame.with_columns(pl.when(~coded.fill_null(False)).then(pl.col(pl.String)))
    frame = frame.with_columns(plainest(v, numbers) for v in frame if v.dtype != pl.String)
    for name, levels in ordered.items():
        stripped = pl.Enum(levels.str.strip_chars().unique(maintain_order=True))
        frame = frame.with_columns(pl.col(name).cast(stripped))
    return replace(table, frame=frame)


def plainest(column: pl.Series, missing: Collection[float] = ()) -> pl.Series:
    """Numbers and dates in the simplest type that holds them all, without the codes of `missing`
    values: whole floats as integers, midnights as dates.
    """
    if column.dtype.is_decimal():
        column = column.cast(pl.Float64)
    if column.dtype.is_numeric():
        values = column.cast(pl.Float64)
        coded = values.is_nan() | values.is_in(list(missing))
        column = column.set(coded, None) if coded.any() else column
    if column.dtype.is_float() and _fit_integers(column):
        return column.cast(pl.Int64)
    if column.dtype == pl.Datetime and (column.dt.truncate("1d") == column).all():
        return column.cast(pl.Date)
    return column


def _fit_integers(column: pl.Series) -> bool:
    return bool(((column.floor() == column) & (column.abs() < LARGEST_WHOLE)).all())


def _arrow(content: bytes) -> pl.DataFrame:
    """A table in Arrow's format, once another process has survived to read it: a file with a forged
    length asks for more memory than there is, and the parser then ends the process.
    """
    reader = "read_ipc" if content[:6] == b"ARROW1" else "read_ipc_stream"
    trial = f"import io, sys, polars; polars.{reader}(io.BytesIO(sys.stdin.buffer.read()))"
    done = subprocess.run([sys.executable, "-c", trial], input=content, capture_output=True)
    if done.returncode not in (0, 1):
        raise ValueError("it claims more memory than any machine has")
    frame: pl.DataFrame = getattr(pl, reader)(io.BytesIO(content))
    return frame


@contextmanager
def damage_told(path: str) -> Iterator[None]:
    """Whatever a parser raises for a damaged file becomes one sentence.

    A panic in Rust is no Exception, and writes to standard error by itself, which leads nowhere.
    """
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(f"{path} cannot be read as a table: {why}.") from error
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}."
        ) from error


def unzipped(content: bytes, path: str, most: int = MOST_BYTES) -> bytes:
    """The content of a gzip file, which must not have more than `most` bytes."""
    packed, result = gzip.GzipFile(fileobj=io.BytesIO(content)), io.BytesIO()
    try:  # in pieces, because room is made for all that is asked for
        while (piece := packed.read(min(PIECE, most + 1))) and result.tell() <= most:
            result.write(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be unpacked: {error}.") from error
    if result.tell() > most:
        raise UserError(
            f"{path} has more than {most:,} bytes when it is unpacked: give fewer rows or columns."
        )
    return result.getvalue()


# ---- text ----------------------------------------------------------------------------------------


def _text(
    content: bytes,
    path: str,
    separator: str | None,
    header: bool | None,
    expected: Collection[str | None],
) -> Table:
    content, notes = _utf8(content, path)
    refuse((not content.strip(), f"{path} is empty."))
    text = b"\n".join(content.split(b"\n", SAMPLE_LINES)[:SAMPLE_LINES]).decode()
    csv.field_size_limit(2**31 - 1)  # a line of another separator is one long field
    mark = separator or _separator(text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    lines = [line for line in islice(rows, SAMPLE_LINES) if line]
    usual = separator is not None or mark == "," or Path(path).suffix.lower() in (".tsv", ".tab")
    if not usual and len(lines[0]) > 1:
        notes.append(f"columns are separated by a {SEPARATORS[mark]}")
    has_header = _has_header(lines, expected) if header is None else header
    if not has_header:
        found = "the first row looks like data, so the table has no header"
        reason = found if header is None else "no header"
        notes.append(f"{reason}: columns are called {listed(_numbered(len(lines[0])), 3)}")
    _check_ragged(lines, path, mark)
    frame = pl.read_csv(
        content.rstrip(b"\r\n"),
        separator=mark,
        has_header=has_header,
        infer_schema_length=0,
    )
    names = [name.strip() for name in frame.columns] if has_header else _numbered(frame.width)
    frame.columns = _named(names, notes)
    return Table(frame, path, notes)


def _utf8(content: bytes, path: str) -> tuple[bytes, list[str]]:
    """The text in UTF-8 without byte-order mark, lines ended by a line feed; and notes on its
    encoding.
    """
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    binary = f"{path} is not a text table: it contains binary data. fitonce reads CSV, TSV, Excel, "
    refuse((not wide and b"\x00" in content[:10_000], f"{binary}Parquet and Arrow files."))
    notes = ["the file is UTF-16"] if wide else []
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        refuse((wide, f"{path} is damaged UTF-16 text: {error.reason}."))
        text, notes = content.decode("latin-1"), ["the file is not UTF-8: it was read as Latin-1"]
    return (text if "\n" in text else text.replace("\r", "\n")).encode(), notes


def _spreadsheet(content: bytes, path: str, sheet: str | None) -> Table:
    """Read one sheet of a spreadsheet."""
    try:
        import fastexcel
    except ImportError:
        raise UserError(
            f"{path} is a spreadsheet, and reading it needs fastexcel: pip install 'fitonce[cli]', "
            "or save the table as CSV."
        ) from None
    check_size(content)
    book = fastexcel.read_excel(content)
    names = list(book.sheet_names)
    chosen, missing = sheet or names[0], f"{path} has no sheet {sheet!r} (--sheet). It has "
    refuse((chosen not in names, f"{missing}{listed(names, 12)}."))
    first = f"read the first sheet, {chosen!r}, of {listed(names, 5)} (change with --sheet)"
    notes = [first] if sheet is None and len(names) > 1 else []
    frame = cells(book, chosen)
    refuse((frame.width == 0, f"the sheet {chosen!r} of {path} is empty."))
    frame.columns = _named([name.strip() for name in frame.columns], notes)
    return Table(frame.filter(~pl.all_horizontal(pl.all().is_null())), path, notes)


def _separator(text: str) -> str:
    """The separator that cuts the first lines into the same number of fields, as many as possible;
    if none does, the most common one of the first line.
    """
    sample = text.splitlines()[:SAMPLE_LINES]

    def fields(mark: str) -> tuple[int, int]:
        widths = {len(line) for line in csv.reader(sample, delimiter=mark) if line}
        regular = max(widths) if len(widths) == 1 else 0
        return regular if regular > 1 else 0, "".join(sample[:1]).count(mark)

    return max(SEPARATORS, key=fields)


def _has_header(lines: list[list[str]], expected: Collection[str | None]) -> bool:
    """A first row with only numbers or empty cells is data, unless it contains a name that the user
    gave.
    """
    first = [value.strip() for value in lines[0]]
    data = all(PLAIN_NUMBER.match(value) or value in MISSING for value in first)
    return not data or any(name in first for name in expected)


def _check_ragged(lines: list[list[str]], path: str, mark: str) -> None:
    for number, line in enumerate(lines, start=1):
        if len(line) > len(lines[0]):
            raise UserError(
                f"{path} is not a regular table: row {number} has {len(line)} fields, but the "
                f"first row has {len(lines[0])} (separated by a "
                f"{SEPARATORS.get(mark, repr(mark))}). Quote values that contain the separator, or "
                "set it with --separator."
            )


def _numbered(width: int) -> list[str]:
    return [f"column_{number + 1}" for number in range(width)]


def _named(names: list[str], notes: list[str]) -> list[str]:
    """Column names without gaps and duplicates."""
    result: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        unique = f"column_{number}" if re.fullmatch(r"(_duplicated_\d+)?", name) else name
        while unique in result:
            unique = f"{unique}_{number}"
        result[unique] = name
    doubled = re.compile(r"_duplicated_\d+$")
    changed = [new for new, old in result.items() if new != old or doubled.search(new)]
    if changed:
        notes.append(f"empty or repeated column names were changed: {listed(changed, 5)}")
    return list(result)


# ---- workbooks -----------------------------------------------------------------------------------


def check_size(content: bytes, most_bytes: int = MOST_BYTES, most: int = MOST_CELLS) -> None:
    """Refuse a workbook of more bytes or cells than can be read, from the references of its cells.

    The parser makes room for every cell between the first and the last, and a process that asks for
    more memory than there is ends at once.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        if sum(part.file_size for part in book.infolist()) > most_bytes:
            raise ValueError(f"it has more than {most_bytes:,} bytes when it is unpacked")
        for part in book.namelist():  # any of them may be a sheet
            rows, columns = _extent(book.read(part))
            if rows * columns > most:
                raise ValueError(
                    f"its cells lie in {rows:,} rows and {columns:,} columns, too many to read: "
                    "delete the cells far away from the table"
                )


def _extent(sheet: bytes) -> tuple[int, int]:
    """The last row and the last column of a sheet in XML; without references, cells are counted."""
    lines = ROWS.split(sheet)
    letters, rows = set(), len(lines) - 1
    for found in REFERENCE.finditer(sheet):
        letters.add(found[1])
        rows = max(rows, int(found[2]))
    widest = max(len(CELLS.findall(row)) for row in lines)
    return rows, max([widest, *map(_column_number, letters)])


def _column_number(letters: bytes) -> int:
    """A column of a spreadsheet as a number: 1 for A, 16384 for XFD, 0 without letters."""
    return reduce(lambda number, letter: 26 * number + letter - 64, letters, 0)


def cells(book: Any, sheet: str) -> pl.DataFrame:
    """The cells of a sheet below its header, without empty columns that have no name.

    `polars.read_excel` would need pyarrow, which may not fit the installed NumPy.
    """
    frame = pl.DataFrame(book.load_sheet(sheet, schema_sample_rows=None))
    unnamed = [name for name in frame.columns if re.fullmatch(r"__UNNAMED__\d+", name)]
    return frame.drop([name for name in unnamed if frame[name].null_count() == frame.height])


def column_names(path: str) -> list[str]:
    """The header of a file, for shell completion; empty if it cannot be read quickly."""
    try:
        if path.lower().endswith(PARQUET):
            return list(pl.read_parquet_schema(path))
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            line = file.readline()
        return [name.strip() for name in next(csv.reader([line], delimiter=_separator(line)))]
    except Exception:  # shell completion must never show an error
        return []
