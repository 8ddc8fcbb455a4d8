"""The warnings of a run in words for the screen, each shown once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..assessment import Assessment, ModelComparison
from ..core.doubt import kinds_of

TIMES = re.compile(r" \(\d+ times\)$")
# warnings of the library that do not help the user of a table: its columns are scaled, unknown
# categories are handled, and nested scores show whether a model predicts
BESIDE_THE_POINT = re.compile(
    r"Found unknown categories|try kernel='linear'|scale the features|to have little noise"
)
PERFECT_ROWS = 30  # warn about a score without any error from this number of rows on


def warnings_of(
    texts: Iterable[str], answer: Assessment, others: ModelComparison | None = None
) -> list[str]:
    """What the user should know about the result: each kind of warning once, and warnings that
    follow from the scores.
    """
    plain = [TIMES.sub("", text) for text in texts if not BESIDE_THE_POINT.search(text)]
    kinds = kinds_of((UserWarning, text) for text in plain)
    return [said[0] for _, said in kinds] + [*_too_good(answer), *_beaten(others)]


def _too_good(answer: Assessment) -> list[str]:
    value = answer.score.value
    if value < 1.0 - 1e-9 or answer.n_samples < PERFECT_ROWS:
        return []
    return [
        "every held-out row is predicted correctly. Check that no column was derived from the "
        "target or is known only after it."
    ]


def _beaten(others: ModelComparison | None) -> list[str]:
    """A warning if another kind of model is clearly better."""
    ours = None if others is None else next(iter(others.scores))
    better = None if others is None or ours is None else others.clearly_better(ours)
    if others is None or ours is None or better is None:
        return []
    mine, theirs = (others.scores[name].value for name in (ours, better))
    return [
        f"a {better} is clearly better on the same rows ({theirs:.3f} versus {mine:.3f}): "
        "a kernel model does not suit this table as it is."
    ]
