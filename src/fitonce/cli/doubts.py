"""Warnings of a run in the words of the screen, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..assessment import Assessment, Contest
from ..core.doubt import kinds_of

TIMES = re.compile(r" \(\d+ times\)$")
# warnings of the library that say nothing to the user of a table: its columns are scaled, unknown
# categories are provided for, and nested scores show whether a model predicts
BESIDE_THE_POINT = re.compile(
    r"Found unknown categories|try kernel='linear'|scale the features|to have little noise"
)
PERFECT_ROWS = 30  # rows from which a score without any error is worth a word


def warnings_of(
    texts: Iterable[str], answer: Assessment, contest: Contest | None = None
) -> list[str]:
    """What the user should know about the result: each kind of warning once, and what the scores
    themselves give away.
    """
    plain = [TIMES.sub("", text) for text in texts if not BESIDE_THE_POINT.search(text)]
    kinds = kinds_of((UserWarning, text) for text in plain)
    return [said[0] for _, said in kinds] + [*_too_good(answer), *_beaten(contest)]


def _too_good(answer: Assessment) -> list[str]:
    value = answer.score.value
    if value < 1.0 - 1e-9 or answer.n_samples < PERFECT_ROWS:
        return []
    return [
        "not one held-out row is wrong. Check that no column was made from the target, or is known "
        "only after it."
    ]


def _beaten(contest: Contest | None) -> list[str]:
    """A word where another kind of model suits the table clearly better."""
    if contest is None or contest.better is None:
        return []
    ours, theirs = contest.scores[contest.ours], contest.scores[contest.better]
    return [
        f"a {contest.better} does clearly better on the same rows ({theirs:.3f} against "
        f"{ours:.3f}): this kind of model does not suit the table as it is."
    ]
