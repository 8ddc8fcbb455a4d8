"""Answers as tables and lines; the wording comes from `assessment.words`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from ..assessment import Assessment, Comparison, Contest
from ..assessment.shown import baseline_name, score_rows
from ..assessment.words import (
    SCORES,
    chosen_value,
    exchanged,
    first_of,
    number,
    p_value,
    relabellings,
    spread,
)
from ..inference import PermutationTest
from .preprocessing import MERGED, described_choice
from .screen import Screen

MOST_CLASSES = 12  # of a confusion matrix that is printed in full
MOST_CONFUSIONS = 8
WIDTH, BINS = 40, 10  # of a histogram


def titled(title: str, *parts: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), *parts)


def announcement(command: str, what: str, notes: Sequence[str]) -> RenderableType:
    """Describe what a command is about to work on."""
    head = Text.assemble((f"fitonce {command}", "bold"), f"  {what}")
    return Group(head, remarks(notes))


def remarks(notes: Sequence[str]) -> RenderableType:
    return Group(*(Padding(Text(f"· {note}", style="dim"), (0, 0, 0, 2)) for note in notes))


def warned(lines: Sequence[str]) -> RenderableType:
    return Group(*(Text.assemble(("warning: ", "yellow"), line) for line in lines))


def answer_parts(
    screen: Screen,
    answer: Assessment,
    contest: Contest | None = None,
    choice: dict[str, Any] | None = None,
    tuned: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """An assessment, from the headline to the warnings, with empty lines between its parts."""
    test = answer.permutation
    for part in (
        scores(screen, answer),
        compared(contest) if contest is not None else None,
        significance(test, answer.permutation_statistic) if test is not None else None,
        confusion(screen, answer),
        calibration(answer),
        chosen(choice, answer, tuned) if choice else None,
        warned(warnings) if warnings else None,
    ):
        if part is not None:
            yield from ("", part)
    yield ""


def scores(screen: Screen, answer: Assessment) -> RenderableType:
    """The scores of an assessment beside the baseline."""
    table = screen.table("score", "model", baseline_name(answer))
    (name, value, baseline), *others = score_rows(answer)
    table.add_row(*(Text(word, style="bold") for word in (name, value)), baseline)
    for row in others:
        table.add_row(*row)
    said = [f"[…]: {answer.level:.0%} interval, {answer.score.method}", answer.auc_method]
    notes = [Text(line, style="dim") for line in said if line]
    return titled(f"Held-out scores: nested cross-validation, {answer.cv}", table, *notes)


def compared(contest: Contest) -> RenderableType:
    """Scores of other kinds of models on the same rows, in one line."""
    said = ", ".join(f"{name} {number(score)}" for name, score in contest.scores.items())
    return Text.assemble(
        ("Other models: ", "bold"), f"{SCORES[contest.score_name]} of {said} ({contest.where})"
    )


def significance(test: PermutationTest, statistic: str) -> RenderableType:
    """The permutation test in a few lines: the p-value of the reported score, and what was
    tested.
    """
    name, observed = next(iter(test.scores.items()))
    others = {n: p for n, p in test.pvalues.items() if n != name and np.ndim(p) == 0}
    also = "".join(f"; {SCORES.get(n, n)}: p = {p_value(p)}" for n, p in others.items())
    said = f"{SCORES.get(name, name)}: p = {p_value(test.pvalue)}"
    return Group(
        Text.assemble((f"Better than chance? {said}", "bold"), f"{also} ({relabellings(test)})"),
        Text(f"test statistic: {statistic}: {number(float(observed))}", style="dim"),
        Text(f"labels permuted {exchanged(test)}", style="dim"),
    )


def confusion(screen: Screen, answer: Assessment) -> RenderableType | None:
    """The confusion matrix, or the most common confusions if there are many classes; None for
    regression.
    """
    if answer.classes is None or answer.confusion is None:
        return None
    classes, matrix = [str(label) for label in answer.classes], answer.confusion
    if len(classes) > MOST_CLASSES:
        return _common_confusions(screen, classes, matrix, first_of(answer.repeats))
    counted = (Column(escape(name), justify="right") for name in [*classes, "recall"])
    table = screen.table("", *counted)
    for place, (label, row) in enumerate(zip(classes, matrix, strict=True)):
        cells = [Text(_count(value), style="bold" * (i == place)) for i, value in enumerate(row)]
        recall = row[place] / row.sum() if row.sum() else np.nan
        table.add_row(Text(label), *cells, number(recall))
    title = "Confusion matrix: true class by row, held-out prediction by column"
    return titled(title + first_of(answer.repeats), table)


def _common_confusions(
    screen: Screen, classes: list[str], matrix: np.ndarray, said: str
) -> RenderableType:
    wrong = matrix - np.diag(np.diag(matrix))
    table = screen.table("true class", "predicted as", Column("rows", justify="right"))
    for place in np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]:
        row, column = divmod(int(place), len(classes))
        if wrong[row, column] > 0:
            table.add_row(Text(classes[row]), Text(classes[column]), _count(wrong[row, column]))
    if not table.row_count:
        return Text(f"No held-out row was misclassified{said}.")
    return titled(f"Most common confusions among {len(classes)} classes{said}", table)


def _count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def calibration(answer: Assessment) -> RenderableType | None:
    """One line about calibration with a few examples; None without probabilities."""
    curve = answer.calibration
    if curve is None:
        return None
    picked = sorted({0, len(curve.count) // 2, len(curve.count) - 1})
    examples = "; ".join(
        f"predicted {curve.predicted[i]:.2f}, observed {curve.observed[i]:.2f}" for i in picked
    )
    return Text.assemble(
        ("Calibration: ", "bold"),
        f"expected error {curve.error:.3f}{first_of(answer.repeats)}   ",
        (f"{curve.of}: {examples}", "dim"),
    )


def chosen(choice: dict[str, Any], answer: Assessment, tuned: Sequence[str]) -> RenderableType:
    """The settings chosen on all rows, and those chosen in the training sets of the folds."""
    said = ", ".join(
        f"{name} {chosen_value(value)}"
        for name, value in choice.items()
        if (name != "penalty" or name in tuned) and "__" not in name
    )
    lines = [Text.assemble(("Chosen on all rows: ", "bold"), said)]
    for name in tuned:
        values = [fold[name] for fold in answer.choices if name in fold]
        if values and not isinstance(values[0], list):
            lines.append(Text(f"  {name} in the folds: {spread(values)}", style="dim"))
    if MERGED in choice:
        lines.append(Text.assemble(("Categories: ", "bold"), described_choice(choice[MERGED])))
        folds = [described_choice(fold[MERGED]) for fold in answer.choices if MERGED in fold]
        lines += [Text(f"  in the folds: {spread(folds)}", style="dim")] if folds else []
    return Group(*lines)


def members(text: str) -> RenderableType:
    """The members of a committee with their weights."""
    head, *lines = text.splitlines()
    return Group(Text.assemble(("Committee: ", "bold"), head), *(Text(f"  {one}") for one in lines))


def side_by_side(
    screen: Screen, scored: Sequence[tuple[str, str]], comparison: Comparison
) -> RenderableType:
    """Two settings on the same folds, and the test of their difference."""
    table = screen.table("settings", SCORES[comparison.score_name], rows=scored)
    said = (
        f"difference {comparison.difference:+.4f} [{comparison.low:+.4f}, "
        f"{comparison.high:+.4f}], p = {p_value(comparison.pvalue)}"
    )
    difference = Text.assemble((said, "bold"), f"   first minus second, {comparison.method}")
    return titled(f"Side by side on the same {comparison.n_splits} splits", table, difference)


def null(test: PermutationTest) -> RenderableType:
    """A histogram of the scores with permuted labels, with the observed score marked."""
    found, score = np.asarray(test.permutation_scores), test.score
    name = SCORES.get(next(iter(test.scores)), "score")
    said = f"{found.mean():.3f} on average, {found.max():.3f} at most"
    lines = [Text(f"observed {name} {score:.3f}; with permuted labels {said}")]
    low, high = min(found.min(), score), max(found.max(), score)
    if high > low:
        counts, edges = np.histogram(found, BINS, (low, high))
        place = min(int(np.searchsorted(edges, score, side="right")) - 1, BINS - 1)
        for i, count in enumerate(counts):
            bar = "#" * int(np.ceil(WIDTH * count / counts.max()))
            mark = "  <- observed" if i == place else ""
            lines.append(Text(f"  {edges[i]:8.3f}  {bar}{mark}", style="bold" if mark else ""))
    return Group(*lines, Text(""))
