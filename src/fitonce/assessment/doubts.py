"""What a reader must know before believing the scores, each doubt in a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from ..core.doubt import kinds_of
from .data import AssessedRows
from .folds import Round
from .words import listed

IGNORED = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
Doubt = tuple[str, type[Warning]]


def warned(caught: Iterable[warnings.WarningMessage]) -> list[Doubt]:
    """Warnings that differ in more than numbers, with how often each came."""
    said = ((w.category, str(w.message)) for w in caught if not issubclass(w.category, IGNORED))
    return [
        (texts[0] if len(texts) == 1 else f"{texts[0]} ({len(texts)} times)", category)
        for category, texts in kinds_of(said)
    ]


def about_rows(data: AssessedRows, round_: Round) -> list[Doubt]:
    """Rows that are never tested, and rows whose class is in no row of their training set, about
    which no model can be right.
    """
    doubts = []
    untested = len(data.y) - len(round_.tested)
    if untested:
        doubts.append(
            f"{untested} of {len(data.y)} rows are never tested by this cv and have no held-out "
            "prediction."
        )
    splits = round_.splits if data.classes is not None else []
    lost = [row for train, test in splits for row in test[~np.isin(data.y[test], data.y[train])]]
    if lost:
        labels = listed(np.unique(data.y[lost]).tolist(), 3)
        doubts.append(
            f"rows of a class ({labels}) that their training rows lack: {len(lost)} of "
            f"{len(data.y)}. They count as wrong, with probability 0, which weighs heavily in the "
            "log-loss. Leave such classes out, put them together, or use other folds."
        )
    return [(doubt, UserWarning) for doubt in doubts]
