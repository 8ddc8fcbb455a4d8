"""What people see.

Rich tables and bars on a terminal, plain text elsewhere, nothing but paths when quiet.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from ..core.progress import listening

PIPED_WIDTH = 110
MOST_CLASSES = 12  # of a confusion matrix that is drawn in full
MOST_CONFUSIONS = 8
NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "r2": "R²",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
}


def program_version() -> str:
    try:
        return version("fitonce")
    except PackageNotFoundError:
        return "unknown"


class Screen:
    """Standard output for answers, standard error for progress and doubts about the run."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(
                    errors="replace"
                )  # a terminal that cannot show Ã is no reason to stop
        self.quiet, self.as_json = quiet, as_json
        self.out = Console(
            file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH
        )
        self.err = Console(file=sys.stderr, highlight=False)
        self.box = box.SIMPLE_HEAD if self.out.is_terminal else box.MARKDOWN

    @property
    def silent(self) -> bool:
        return self.quiet or self.as_json

    def show(self, *parts: RenderableType) -> None:
        """Parts of an answer, one below the other."""
        if not self.silent:
            for part in parts:
                self.out.print(part)

    def paths(self, paths: Sequence[str]) -> None:
        """Files that were written: the last lines, one each, also when quiet."""
        if not self.as_json:
            for path in paths:
                self.out.print(Text(path), soft_wrap=True)

    def json(self, answer: dict[str, Any]) -> None:
        if self.as_json:
            sys.stdout.write(
                json.dumps(answer, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
            )

    def aside(self, text: str) -> None:
        """A remark on standard error, out of the way of data on standard output."""
        if not self.silent:
            self.err.print(Text(text, style="dim"), soft_wrap=True)

    @contextlib.contextmanager
    def bars(self) -> Iterator[Bars]:
        """Progress bars while the work is done.

        Warnings and messages of the library are collected instead of printed.
        """
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        visible = self.err.is_terminal and not self.quiet
        progress = Progress(
            *columns,
            console=self.err,
            transient=True,
            disable=not visible,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with progress:
            bars = Bars(progress)
            with listening(bars):
                yield bars

    def table(self, *columns: str) -> RichTable:
        return RichTable(
            *columns, box=self.box, pad_edge=not self.out.is_terminal, header_style="dim"
        )


def titled(title: str, *parts: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), *parts)


class Bars:
    """Named bars of one piece of work."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, Any] = {}

    def __call__(self, done: int, total: int, stage: str) -> None:
        if stage not in self.tasks:
            self.tasks[stage] = self.progress.add_task(stage, total=total or None)
        self.progress.update(self.tasks[stage], completed=done, total=total or None)

    def stage(self, name: str) -> None:
        """A piece of work whose end is not known."""
        self.tasks.setdefault(name, self.progress.add_task(name, total=None))


# ---- parts of an answer --------------------------------------------------------------------------


def heading(command: str, what: str) -> Text:
    return Text.assemble((f"fitonce {command}", "bold"), f"  {what}")


def notes(lines: Sequence[str]) -> RenderableType:
    return Group(*(Padding(Text(f"· {line}", style="dim"), (0, 0, 0, 2)) for line in lines))


def doubts(lines: Sequence[str]) -> RenderableType:
    return Group(*(Text.assemble(("doubt: ", "yellow"), line) for line in lines))


def scores(screen: Screen, answer: Any) -> RenderableType:
    """The scores of an assessment beside the baseline."""
    baseline = "majority class" if answer.task == "classification" else "the mean"
    table = screen.table("score", "model", f"baseline: {baseline}")
    table.add_row(
        Text(NAMES[answer.score_name], style="bold"),
        Text(str(answer.score), style="bold"),
        str(answer.baseline),
    )
    for name, value in answer.metrics.items():
        if name != answer.score_name:
            table.add_row(
                NAMES[name], number(value), number(answer.baseline_metrics.get(name, float("nan")))
            )
        elif answer.task == "regression":
            table.add_row(
                "R², all rows together", number(value), number(answer.baseline_metrics[name])
            )
    said = Text(f"[…]: {answer.level:.0%} interval, {answer.score.method}", style="dim")
    return titled(f"Held-out scores: nested cross-validation, {answer.cv}", table, said)


def number(value: float) -> str:
    if value is None or np.isnan(value):
        return "–"
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.4g}"


def p_value(value: float) -> str:
    return f"{value:.4f}".rstrip("0") if value >= 1e-4 else f"{value:.1g}"


def significance(test: Any, statistic: str) -> RenderableType:
    """The permutation test in two lines."""
    names = {name: p for name, p in test.pvalues.items() if np.ndim(p) == 0}
    said = ", ".join(
        f"{p_value(p)} ({NAMES.get(name, name)})" if len(names) > 1 else p_value(p)
        for name, p in names.items()
    )
    count = (
        f"all {test.n_permutations_done + 1:,} labellings"
        if test.exact
        else f"{test.n_permutations_done:,} permutations"
    )
    return Group(
        Text.assemble((f"Better than chance? p = {said}", "bold"), f"; {count}{_floor(test)}"),
        Text(f"tested: {statistic}; labels exchanged {_moved(test)}", style="dim"),
    )


def _floor(test: Any) -> str:
    return (
        ", the smallest p that these can give"
        if test.pvalue <= 1.0 / (test.n_permutations_done + 1)
        else ""
    )


def _moved(test: Any) -> str:
    what = {
        "rows": "between rows",
        "within": "within groups",
        "whole": "between whole groups",
        "sign": "within pairs",
        "shift": "by shifts",
    }
    where = {
        "within-folds": "inside each fold",
        "resplit": "folds made anew",
        "free": "across folds",
    }
    return f"{what.get(test.exchange, test.exchange)}, {where[test.mode]}"


def confusion(screen: Screen, answer: Any) -> RenderableType:
    """The confusion matrix, or for many classes the commonest confusions."""
    classes, matrix = [str(label) for label in answer.classes], answer.confusion
    if len(classes) > MOST_CLASSES:
        return _common_confusions(screen, classes, matrix, _of_repeats(answer))
    table = screen.table("", *map(_escaped, classes), "recall")
    for column in table.columns[1:]:
        column.justify = "right"
    for row, label in enumerate(classes):
        cells = [
            Text(_count(value), style="bold" if row == column else "")
            for column, value in enumerate(matrix[row])
        ]
        total = matrix[row].sum()
        table.add_row(Text(label), *cells, number(matrix[row, row] / total) if total else "–")
    return titled(
        f"Confusion: true class by row, held-out prediction by column{_of_repeats(answer)}", table
    )


def _of_repeats(answer: Any) -> str:
    """What is counted by row comes from one repeat; scores are means of all."""
    return f" (first of {answer.repeats} repeats)" if answer.repeats > 1 else ""


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


def _common_confusions(
    screen: Screen, classes: list[str], matrix: np.ndarray, said: str
) -> RenderableType:
    wrong = matrix - np.diag(np.diag(matrix))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]
    table = screen.table("true class", "taken for", "rows")
    table.columns[2].justify = "right"
    for place in order:
        row, column = divmod(int(place), len(classes))
        if wrong[row, column] > 0:
            table.add_row(Text(classes[row]), Text(classes[column]), _count(wrong[row, column]))
    if not table.row_count:
        return Text(f"No held-out row was taken for another class{said}.")
    return titled(f"Commonest confusions among {len(classes)} classes{said}", table)


def _count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def calibration(answer: Any) -> RenderableType:
    """One line about probabilities, and what a few of them came to."""
    curve = answer.calibration
    picked = sorted({0, len(curve.count) // 2, len(curve.count) - 1})
    examples = "; ".join(
        f"said {curve.predicted[i]:.2f}, came true {curve.observed[i]:.2f}" for i in picked
    )
    return Text.assemble(
        ("Calibration: ", "bold"),
        f"expected error {curve.error:.3f}{_of_repeats(answer)}   ",
        (f"{curve.of}: {examples}", "dim"),
    )


def chosen(choice: dict[str, Any], answer: Any, tuned: Sequence[str]) -> RenderableType:
    """What was chosen on all rows, and what the training sets of the folds chose."""
    told = {name: value for name, value in choice.items() if name != "penalty" or name in tuned}
    lines = [
        Text.assemble(
            ("Chosen on all rows: ", "bold"),
            ", ".join(f"{name} {value_of(value)}" for name, value in told.items()),
        )
    ]
    for name in tuned:
        values = [fold[name] for fold in answer.choices if name in fold]
        if values and not isinstance(values[0], list):
            lines.append(Text(f"  {name} in the folds: {spread(values)}", style="dim"))
    return Group(*lines)


def spread(values: Sequence[Any]) -> str:
    """Values with how often each occurred, or their range where they are many."""
    counts = Counter(value_of(value) for value in values)
    if len(counts) == 1:
        return f"{next(iter(counts))} in all {len(values)}"
    if len(counts) > 4:
        return (
            f"{value_of(min(values))} to {value_of(max(values))}, median "
            f"{value_of(float(np.median(values)))}"
        )
    return ", ".join(f"{value} ({count} of {len(values)})" for value, count in counts.most_common())


def value_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if np.ndim(value) > 0:
        return f"{np.min(value):.3g} to {np.max(value):.3g} by feature"
    return f"{float(value):.3g}"


def side_by_side(
    screen: Screen, first: str, one: Any, second: str, other: Any, comparison: Any
) -> RenderableType:
    """Two settings on the same folds, and the test of their difference."""
    table = screen.table("settings", NAMES[comparison.score_name])
    table.add_row(first, str(one.score))
    table.add_row(second, str(other.score))
    said = (
        f"difference {comparison.difference:+.4f} [{comparison.low:+.4f}, "
        f"{comparison.high:+.4f}], p = {p_value(comparison.pvalue)}"
    )
    title = f"Side by side on the same {comparison.n_splits} splits"
    return titled(
        title, table, Text.assemble((said, "bold"), f"   first less second, {comparison.method}")
    )


def null(test: Any, width: int = 40) -> RenderableType:
    """The scores of permuted labels as a histogram, and where the observed one is."""
    scores, score = np.asarray(test.permutation_scores), test.score
    name = NAMES.get(next(iter(test.scores)), "score")
    lines = [
        Text(
            f"observed {name} {score:.3f}; with permuted labels {scores.mean():.3f} on average, "
            f"{scores.max():.3f} at most"
        )
    ]
    low, high = float(min(scores.min(), score)), float(max(scores.max(), score))
    if high > low:
        edges = np.linspace(low, high, 11)
        counts, _ = np.histogram(scores, edges)
        place = min(int(np.searchsorted(edges, score, side="right")) - 1, 9)
        for number_, (count, edge) in enumerate(zip(counts, edges[:-1], strict=True)):
            bar = "#" * int(np.ceil(width * count / counts.max()))
            mark = "  <- observed" if number_ == place else ""
            lines.append(Text(f"  {edge:8.3f}  {bar}{mark}", style="bold" if mark else ""))
    return Group(*lines, Text(""))
