"""Answers as tables and lines; the wording comes from `assessment.render`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ..assessment import Assessment, ModelComparison, render
from ..assessment.render import SCORES, number, spread
from ..inference import PermutationTest
from .preprocessing import MERGED, described_choice
from .screen import Screen

WIDTH, BINS = 40, 10  # of a histogram


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
    others: ModelComparison | None = None,
    choice: dict[str, Any] | None = None,
    tuned: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """An assessment, from the headline to the warnings, with empty lines between its parts."""
    test = answer.permutation
    blocks = (
        render.scores(answer),
        compared(others) if others is not None else None,
        render.significance(test, answer.permutation_statistic) if test is not None else None,
        render.confusion(answer.confusion, answer.classes, answer.repeats),
        render.calibration(answer),
        chosen(choice, answer, tuned) if choice else None,
    )
    for block in filter(None, blocks):
        yield from ("", screen.block(block))
    yield from ("", warned(warnings), "") if warnings else ("",)


def compared(others: ModelComparison) -> render.Block:
    """Scores of other kinds of models on the same rows, in one line."""
    said = ", ".join(f"{name} {number(score.value)}" for name, score in others.scores.items())
    return render.Block(f"Other models: {SCORES[others.score_name]} of {said} ({others.cv})")


def chosen(choice: dict[str, Any], answer: Assessment, tuned: Sequence[str]) -> render.Block:
    """The chosen settings, and how categories were merged."""
    block = render.chosen(choice, answer, tuned)
    if MERGED not in choice:
        return block
    folds = [described_choice(fold[MERGED]) for fold in answer.choices if MERGED in fold]
    notes = [*block.notes, f"Categories: {described_choice(choice[MERGED])}"]
    notes += [f"  in the folds: {spread(folds)}"] if folds else []
    return replace(block, notes=notes)


def members(text: str) -> RenderableType:
    """The members of a committee with their weights."""
    head, *lines = text.splitlines()
    return Group(Text.assemble(("Committee: ", "bold"), head), *(Text(f"  {one}") for one in lines))


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
