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
        folds = [[r.fold[r.tested] == number for number in range(len(r.splits))] for r in rounds]
        areas = [_area(data, *each) for each in zip(rounds, folds, strict=True)]
        if np.all(np.isfinite(areas)):
            return float(np.mean(areas)), WITHIN
    every = [_area(data, r, [np.ones(len(r.tested), dtype=bool)]) for r in rounds]
    return float(np.mean(every)), POOLED


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


def _area(data: AssessedRows, round_: Round, folds: Sequence[np.ndarray]) -> float:
    """Share of pairs of two rows of one part that are ranked correctly, by weight; the mean over
    the classes.
    """
    columns = _columns(data, round_)
    if columns is None:
        return float("nan")
    w, areas = data.weights_of(round_.tested), []
    for values, positive in zip(columns[0].T, columns[1].T, strict=True):
        met, won = 0.0, 0.0
        for part in folds:
            pairs = np.sum(w[part & positive]) * np.sum(w[part & ~positive])
            if pairs > 0:
                met += pairs
                won += pairs * roc_auc_score(positive[part], values[part], sample_weight=w[part])
        areas.append(won / met if met > 0 else np.nan)
    return float(np.mean(areas))
