"""The area under the ROC curve of held-out rows, without mixing the scales of different models.

Outputs of different models are not on the same scale. If folds are small, each model has a bias
that depends on the classes of its left-out rows, and pooling rows over folds ranks them against
their own labels. So, with few rows, two rows are compared only by a model that was trained on
neither:

    any two rows, left out together (`leave_pair_out`), if parameters are fixed
    any two rows of the same fold, if each training set chooses its own parameters, or rows belong
    to groups

With many rows this bias is negligible, and all held-out rows are ranked together.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from ..crossval import leave_pair_out
from .data import AssessedRows
from .folds import Round

FEW = 500  # up to this number of rows, rows of different models are not ranked together
POOLED = "AUC: all held-out rows ranked together"
PAIRS = "AUC: leave-pair-out (every two rows are compared by a model that was trained on neither)"
WITHIN = "AUC: mean over pairs of rows in the same fold, which the same model predicts"


def auc_of(estimator: Any, data: AssessedRows, rounds: Sequence[Round]) -> tuple[float, str]:
    """The AUC, its mean over repeats, and how it was computed. For more than two classes, one class
    against the rest, with equal weights for the classes. NaN if a class is never tested.
    """
    assert data.classes is not None
    if len(data.y) <= FEW:
        if _in_closed_form(data, rounds[0]):
            with suppress(ValueError):  # a class with fewer than three rows
                found = leave_pair_out(estimator, data.X, data.y, sample_weight=data.weights)
                return found.auc, PAIRS
        areas = [_within_folds(data, round_) for round_ in rounds]
        if np.all(np.isfinite(areas)):
            return float(np.mean(areas)), WITHIN
    return float(np.mean([_pooled(data, round_) for round_ in rounds])), POOLED


def _in_closed_form(data: AssessedRows, round_: Round) -> bool:
    weighted = data.weights is not None and not np.all(data.weights > 0)
    tested = len(round_.tested) == len(data.y)
    two = data.classes is not None and len(data.classes) == 2
    confounded = any(name.endswith("confounds") for name in data.params)
    single = data.groups is None and not weighted and not confounded
    return round_.route.name == "one" and two and tested and single


def _columns(data: AssessedRows, round_: Round) -> tuple[np.ndarray, np.ndarray] | None:
    """Outputs (k, c) and truth of the tested rows, one column per class; one column for two
    classes.
    """
    outputs = round_.probabilities if round_.probabilities is not None else round_.decisions
    assert data.classes is not None
    codes, n_classes = np.searchsorted(data.classes, data.y[round_.tested]), len(data.classes)
    if outputs is None or len(np.unique(codes)) < n_classes:
        return None
    outputs = outputs[round_.tested]
    if n_classes == 2:
        return outputs.reshape(len(outputs), -1)[:, -1:], (codes == 1)[:, None]
    return outputs, np.eye(n_classes, dtype=bool)[codes]


def _pooled(data: AssessedRows, round_: Round) -> float:
    columns = _columns(data, round_)
    if columns is None:
        return float("nan")
    weights = None if data.weights is None else data.weights[round_.tested]
    each = zip(*_each(columns), strict=True)
    return float(np.mean([roc_auc_score(t, v, sample_weight=weights) for v, t in each]))


def _each(columns: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return columns[0].T, columns[1].T


def _within_folds(data: AssessedRows, round_: Round) -> float:
    """Share of pairs ranked correctly, over all folds."""
    columns = _columns(data, round_)
    if columns is None:
        return float("nan")
    fold = round_.fold[round_.tested]
    weights = np.ones(len(fold)) if data.weights is None else data.weights[round_.tested]
    areas = []
    for values, positive in zip(*_each(columns), strict=True):
        parts = [fold == number for number in np.unique(fold)]
        met = np.sum([pairs(values[p], positive[p], weights[p]) for p in parts], axis=0)
        areas.append(met[0] / met[1] if met[1] > 0 else np.nan)
    return float(np.mean(areas))


def pairs(values: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Weight of the pairs of a positive and a negative row in which the positive row is higher,
    ties counting half, and weight of all pairs. O(n log n).
    """
    rank = rankdata(values, method="dense").astype(int)
    up, down = (
        np.bincount(rank, weights=weights * chosen, minlength=rank.max(initial=0) + 1)
        for chosen in (positive, ~positive)
    )
    below = np.cumsum(down) - down
    return float(np.sum(up * (below + 0.5 * down))), float(up.sum() * down.sum())
