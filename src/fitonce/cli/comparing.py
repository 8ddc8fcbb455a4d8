"""Several models on the same held-out rows of a table: scores, all differences, a plot."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.dummy import DummyClassifier, DummyRegressor

from ..assessment import ModelComparison, compare
from ..assessment.assess import warned
from ..assessment.render import Block, comparison
from ..assessment.result import plain
from ..core.atomic import write_atomically
from ..core.doubt import caught_warnings
from ..crossval import RefitWarning
from . import answers, contest
from .columns import TableDesign, design
from .errors import UserError
from .models import KERNELS, pipeline
from .options import Check, Request, Settings
from .preprocessing import pipeline_of
from .screen import Screen
from .steps import assessed_rows, threads_for
from .tables import Table, check_output, make_folder
from .work import announce

NAMES = (*KERNELS[1:], "forest", "baseline")
PICTURES = (".png", ".svg", ".pdf")
WIDTH = 25  # of an interval drawn with characters


def compare_table(
    screen: Screen,
    source: Callable[[], Table],
    request: Request,
    names: list[str],
    check: Check,
    out: str | None,
) -> None:
    """Read the table, compare the models, show the result and draw it."""
    picture = None if out is None else picture_path(out, request.table)
    with screen.bars() as bars:
        bars(0, 0, f"reading {request.table}")
        table = source()
        parts = design(table, **request.roles)
    judged, sampling = assessed_rows(parts, check.random_state)
    if parts.confounds is not None:
        raise UserError(
            "compare does not support --confound, because the other kinds of models cannot adjust "
            "for confounds."
        )
    announce("compare", screen, table, parts, [*parts.notes, *sampling])
    models = {name: model_of(name, parts, check.random_state) for name in names}
    with screen.bars(), threads_for(parts), caught_warnings() as caught:
        result = compare(
            models,
            None,
            judged.X,
            judged.y,
            groups=judged.groups,
            cv=check.cv,
            repeats=check.repeats,
            random_state=check.random_state,
        )
    others = (w for w in caught if not issubclass(w.category, RefitWarning))
    warnings = [message for message, _ in warned(others)] + parts.hints
    for block in with_drawings(result):
        screen.show("", screen.block(block))
    screen.show("")
    if warnings:
        screen.show(answers.warned(warnings))
    files = {} if picture is None else {"picture": draw(result, picture)}
    found = {"comparison": result.to_dict(), "warnings": warnings, "files": files}
    screen.json(plain({"command": "compare", **parts.identity, **found}))
    screen.files(files)


def names_of(text: str) -> list[str]:
    """The requested models, such as "rbf,linear,forest"."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in NAMES]
    if unknown or len(set(names)) < max(2, len(names)):
        raise UserError(
            f"--models must name two or more different models out of {', '.join(NAMES)}, separated "
            f"by commas, got {text!r} instead."
        )
    return names


def model_of(name: str, parts: TableDesign, seed: int) -> Any:
    if name == "forest":
        return contest.forest(parts, seed)
    if name == "baseline":
        classes = parts.task == "classification"
        return pipeline_of(parts, DummyClassifier() if classes else DummyRegressor())
    return pipeline(parts, Settings(kernel=name), seed)[0]


def with_drawings(result: ModelComparison) -> list[Block]:
    """The comparison, every difference drawn on the same scale around zero."""
    reach = max(max(abs(one.low), abs(one.high)) for one in result.differences) or 1.0
    scores, block = comparison(result)
    pictures = [drawn(one.low, one.value, one.high, reach) for one in result.differences]
    rows = [
        (*row[:2], picture, *row[2:]) for row, picture in zip(block.rows, pictures, strict=True)
    ]
    head = (*block.head[:2], "worse : better", *block.head[2:])
    return [scores, replace(block, head=head, rows=rows)]


def drawn(low: float, value: float, high: float, reach: float) -> str:
    """An interval drawn with characters from -reach to reach: - for the interval, o for the value,
    : for zero.
    """

    def place(number: float) -> int:
        return round((number / reach + 1) / 2 * (WIDTH - 1))

    letters = [" "] * WIDTH
    letters[place(low) : place(high) + 1] = "-" * (place(high) - place(low) + 1)
    letters[WIDTH // 2] = ":"
    letters[place(value)] = "o"
    return "".join(letters)


def picture_path(out: str, table: str) -> Path:
    """The path of the plot; an invalid one is refused before the work begins."""
    from ..plotting.style import pyplot

    path = Path(out)
    if path.suffix.lower() not in PICTURES:
        raise UserError(
            f"--out must be a plot with the ending {', '.join(PICTURES)}, got {out!r} instead."
        )
    check_output(path, table)
    pyplot()
    return path


def draw(result: ModelComparison, path: Path) -> str:
    from ..plotting import BarDisplay

    content = io.BytesIO()
    figure = BarDisplay.from_comparison(result).figure_
    figure.savefig(content, format=path.suffix.lower()[1:], dpi=150)
    make_folder(path)
    write_atomically(path, content.getvalue())
    return str(path)
