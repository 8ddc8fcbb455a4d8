"""The folds for evaluating a learned metric, and when a metric cannot be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from ..core.rows import is_rows
from .setup import Folds, Setup

FOLDS = 5


def check_learnable(setup: Setup) -> None:
    """Refuse settings with which a metric cannot be learned."""
    if setup.data.columns is not None or setup.specification.each_target:
        raise ValueError(
            "learning a metric needs one alpha for all targets, in memory: use "
            "alpha_per_target=False and fewer targets, and then pass metric=model.metric_."
        )
    if is_rows(setup.data.X) or setup.data.confounds is not None or setup.data.block is not None:
        raise ValueError(
            "learning a metric needs rows in memory, without confounds or averages: learn it from "
            "such rows first, and pass metric=model.metric_."
        )


def metric_folds(setup: Setup, folds: Folds | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits of the active rows: those of `cv` if they test every row once, else five folds,
    stratified or of whole groups; none if there are too few rows.
    """
    training, codes = setup.training, setup.data.codes
    n = len(training.active)
    if folds is not None and training.groups is None:
        position = training.positions()
        parts = [tuple(position[rows][position[rows] >= 0] for rows in fold) for fold in folds]
        tested = np.sort(np.concatenate([test for _, test in parts]))
        if np.array_equal(tested, np.arange(n)):
            return parts  # type: ignore[return-value]
    if training.groups is not None:
        groups = training.groups[training.active]
        found = min(FOLDS, len(np.unique(groups)))
        cv: Any = GroupKFold(found) if found > 1 else None
        return [] if cv is None else list(cv.split(np.empty((n, 1)), codes, groups))
    if codes is None:
        return list(KFold(min(FOLDS, n), shuffle=True, random_state=0).split(np.empty((n, 1))))
    least = int(np.bincount(codes).min())
    if least < 2:
        return []
    cv = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0)
    return list(cv.split(np.empty((n, 1)), codes))
