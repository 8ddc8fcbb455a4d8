"""Damaged, forged and odd files of tables: refused in one sentence, or read as they are meant."""

from __future__ import annotations

import contextlib
import gzip
import io
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers_cli import pl, run, says, table, write_sheets

from fitonce.cli.columns import design
from fitonce.cli.model import pipeline
from fitonce.cli.table import check_size, read_table, unzipped
from fitonce.cli.values import target_of
from fitonce.cli.words import Remarks, UserError

MUTATIONS = 60  # of every format; more by hand


def written(frame):
    """The same table in every format, as bytes."""
    arrow, parquet = io.BytesIO(), io.BytesIO()
    frame.write_ipc(arrow)
    frame.write_parquet(parquet)
    text = frame.write_csv()
    write_sheets("whole.xlsx", data=frame)
    return {
        "t.csv": text.encode(),
        "t.tsv": text.replace(",", "\t").encode("utf-16"),
        "t.csv.gz": gzip.compress(text.encode()),
        "t.arrow": arrow.getvalue(),
        "t.parquet": parquet.getvalue(),
        "t.xlsx": Path("whole.xlsx").read_bytes(),
    }


def damaged(content, random):
    """The file cut short, or with some bytes changed, left out or repeated."""
    kind, place = random.integers(4), int(random.integers(len(content)))
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + content[place + 1 + int(random.integers(40)) :]
    if kind == 2:
        return content[:place] + content[place : place + 40] * 3 + content[place:]
    changed = bytearray(content)
    for one in random.integers(len(content), size=1 + int(random.integers(8))):
        changed[one] = int(random.integers(256))
    return bytes(changed)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.arrow", "t.parquet", "t.xlsx"])
def test_damaged_files_are_read_or_refused(name, folder):
    content, random = written(table())[name], np.random.default_rng(0)
    for _ in range(MUTATIONS):
        Path(name).write_bytes(damaged(content, random))
        try:
            read_table(name)
        except UserError as error:
            assert "\n" not in str(error)


ODD_VALUES = """
NA 1 2.5 -3 1,5 1.234,5 $5 5% inf -inf nan 1e400 1e300 2024-01-05 05/06/2024 31.12.23 10:30 abc
true False ü \x1b[31m 0x10 1_000 ٣ ½ 1'000 -- + 1e 999999999999999999999999 2024-13-45 0000-00-00
yes ' " -999
"""


def odd_table(random):
    """A table of odd values, each column of a few, and options for it."""
    n, width = random.choice([3, 8, 15, 30]), random.integers(2, 7)
    pools = [
        random.choice([*ODD_VALUES.split(), "", "1 234", "x,y"], random.integers(1, 5))
        for _ in range(width)
    ]
    frame = pl.DataFrame({f"c{i}": random.choice(pool, n) for i, pool in enumerate(pools)})
    role = random.choice(["group", "weight", "confound", "categorical", "keep", "task"])
    many = role in ("confound", "categorical", "keep")
    value = "regression" if role == "task" else ["c1"] if many else "c1"
    return frame.with_columns(n=random.normal(size=n)), {str(role): value}


def test_odd_tables_are_designed_or_refused(folder):
    random = np.random.default_rng(0)
    for _ in range(5 * MUTATIONS):
        frame, options = odd_table(random)
        frame.write_csv("odd.csv")
        with contextlib.suppress(UserError):
            table = read_table("odd.csv")
            pipeline(design(table, "c0", **options))


def test_classes_that_no_integer_holds_stay_apart():
    y, task = target_of(pl.Series("y", ["1e30", "2e30"] * 6), "auto", Remarks())
    assert task == "classification" and len(np.unique(y)) == 2


def forged(path, rows):
    """A workbook with rows of our own after those of a plain one."""
    write_sheets("plain.xlsx", data=pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    with zipfile.ZipFile("plain.xlsx") as plain, zipfile.ZipFile(path, "w") as book:
        for name in plain.namelist():
            sheet = plain.read(name).decode().replace("</sheetData>", f"{rows}</sheetData>")
            book.writestr(name, sheet)


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        "<x:row><x:c s='1'  r = 'XFD1048576'><v>1</v></x:c></x:row>",
        f'<row r="1048576">{"<c><v>1</v></c>" * 200}</row>',
    ],
)
def test_a_workbook_with_a_cell_far_away_is_refused(rows, folder):
    """Its parser would ask for a place for every cell before, 549 GB, and end the process."""
    forged("far.xlsx", rows)
    says(run("fit far.xlsx -t a"), "1,048,576 rows", "delete the cells")


def test_what_unpacks_to_too_much_is_refused(folder):
    with pytest.raises(UserError, match=r"more than 1,000 bytes"):
        unzipped(gzip.compress(bytes(1001)), "t.csv.gz", 1000)
    twice = gzip.compress(bytes(500)) * 2
    assert unzipped(twice, "t.csv.gz", 1000) == bytes(1000)
    write_sheets("plain.xlsx", data=table())
    with pytest.raises(ValueError, match=r"more than 1,000 bytes"):
        check_size(Path("plain.xlsx").read_bytes(), most_bytes=1000)


def test_unpacking_makes_no_room_for_the_most_that_is_allowed(folder):
    """It asked for 4 GiB for every table."""
    packed = gzip.compress(bytes(1000))
    tracemalloc.start()
    unzipped(packed, "t.csv.gz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24


@pytest.mark.parametrize("streamed", [False, True])
def test_an_arrow_file_that_claims_too_much_memory_is_refused(streamed, folder):
    """The parser would end the process; a length of 600 bytes becomes one of 32 petabytes."""
    target, frame = io.BytesIO(), pl.DataFrame({"a": [f"{k:020d}" for k in range(30)]})
    (frame.write_ipc_stream if streamed else frame.write_ipc)(target)
    length, far = (size.to_bytes(8, "little") for size in (600, 1 << 55))
    assert length in target.getvalue()
    Path("far.arrow").write_bytes(target.getvalue().replace(length, far))
    says(run("evaluate far.arrow -t a"), "far.arrow cannot be read as a table")


@pytest.mark.parametrize("name", ["t.xls", "t.xlsb", "t.ods"])
def test_other_spreadsheets_are_named(name, folder):
    Path(name).write_bytes(b"PK\x03\x04")
    says(run("fit", name, "-t", "a"), "save the table as CSV, Excel (.xlsx)")


def test_a_header_of_many_long_names_is_read_at_once(folder):
    names = [f"ENSG{number:011d}" for number in range(12_000)]
    rows = [",".join([str(row % 7)] * 12_000) for row in range(3)]
    Path("genes.csv").write_text("\n".join([",".join(names), *rows]))
    assert read_table("genes.csv").frame.columns == names


def test_many_names_are_compared_at_once(folder):
    names = ",".join(f"c{number}" for number in range(30_000))
    Path("wide.csv").write_text(f"{names}\n{','.join('1' * 30_000)}\n")
    begun = time.process_time()
    assert read_table("wide.csv").frame.width == 30_000
    assert time.process_time() - begun < 2.5  # comparing each with all before took 4 s


def test_lines_that_end_with_a_carriage_return_alone(folder):
    Path("mac.csv").write_bytes(table().write_csv().replace("\n", "\r").encode())
    assert read_table("mac.csv").frame.equals(read_table("good.csv").frame)


def test_a_file_of_only_a_byte_order_mark_is_empty(folder):
    for name, content in (("8.csv", b"\xef\xbb\xbf\r\n"), ("16.csv", b"\xff\xfe")):
        Path(name).write_bytes(content)
        says(run("fit", name, "-t", "a"), f"{name} is empty")


def test_text_that_ends_in_the_middle_of_a_character(folder):
    Path("cut.csv").write_bytes(table().write_csv().encode("utf-16")[:-1])
    says(run("fit cut.csv -t a"), "cut.csv is damaged UTF-16")


def test_whole_numbers_that_no_integer_holds(folder):
    write_sheets("large.xlsx", data=pl.DataFrame({"a": [1e19, 2e19], "b": [3.0, 4.0]}))
    assert read_table("large.xlsx").frame["a"].to_list() == [1e19, 2e19]
