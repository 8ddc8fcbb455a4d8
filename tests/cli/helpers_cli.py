"""A table, and the program run on it."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")
pytest.importorskip("skops")

from typer.testing import CliRunner  # noqa: E402

from fitonce.cli.app import app  # noqa: E402
from fitonce.io.saving import read_metadata  # noqa: E402

N = 60
FAST = ("--folds", "3", "--permutations", "0", "--alpha", "1", "--gamma", "scale")


def table(seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, N))
    colour = rng.choice(["red", "green", "blue"], N)
    label = np.where(a + b * (colour == "red") + 0.3 * rng.normal(size=N) > 0, "yes", "no")
    price = 2 * a + 0.3 * rng.normal(size=N)
    return pl.DataFrame(
        {
            "id": range(1, N + 1),
            "a": a,
            "b": b,
            "colour": colour,
            "label": label,
            "price": price,
            "site": np.arange(N) % 6,
            "w": np.ones(N),
        }
    )


def run(command, *args, input=None):
    """The program on a command such as "fit good.csv -t label" and further arguments."""
    result = CliRunner().invoke(app, [*command.split(" "), *map(str, args)], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def names_of(model):
    return [column["name"] for column in read_metadata(model)["columns"]]


def says(result, *words, code=1):
    """One sentence on standard error, and the exit code."""
    assert result.exit_code == code, result.output
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("fitonce: ")
    assert all(word in result.stderr for word in words), result.stderr


TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_sheets(path, **sheets):
    """A spreadsheet of text and numbers, as plain as the format allows."""

    def cell(value):
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value!r}</v></c>"

    def sheet(frame):
        lines = [frame.columns, *frame.iter_rows()]
        data = "".join(f"<row>{''.join(map(cell, line))}</row>" for line in lines)
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        return f'<worksheet xmlns="{main}"><sheetData>{data}</sheetData></worksheet>'

    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>'
        for i, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/s{i}.xml"/>'
        for i in numbers
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/s{i}.xml" ContentType="{TYPES}.worksheet+xml"/>'
        for i in numbers
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override '
            f'PartName="/xl/workbook.xml" ContentType="{TYPES}.sheet.main+xml"/>{kinds}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
            f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            f'xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
        )
        for i, frame in zip(numbers, sheets.values(), strict=True):
            archive.writestr(f"xl/worksheets/s{i}.xml", sheet(frame))


__all__ = ["FAST", "N", "names_of", "pl", "read_metadata", "run", "says", "table", "write_sheets"]
