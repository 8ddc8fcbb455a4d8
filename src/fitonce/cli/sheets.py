"""The cells of a workbook, and how many there are before they are read."""

from __future__ import annotations

import io
import re
import zipfile
from functools import reduce
from typing import Any

import polars as pl

MOST_BYTES = 2**32  # of a file that is unpacked; a table of 100 million numbers takes about 1 GB
MOST_CELLS = 100_000_000  # of a sheet, each of which takes about 30 bytes while it is read
REFERENCE = re.compile(rb"""\br\s*=\s*["']([A-Z]*)(\d+)["']""")  # of a row or cell in a workbook
ROW, CELL = re.compile(rb"<(?:\w+:)?row[\s/>]"), re.compile(rb"<(?:\w+:)?c[\s/>]")


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
    lines = ROW.split(sheet)
    letters, rows = set(), len(lines) - 1
    for found in REFERENCE.finditer(sheet):
        letters.add(found[1])
        rows = max(rows, int(found[2]))
    widest = max(len(CELL.findall(row)) for row in lines)
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
