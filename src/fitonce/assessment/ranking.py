"""The area under the ROC curve of held-out rows, without mixing the scales of different models.

If folds are small, each model has a bias that depends on the classes of its left-out rows, and
pooling rows over folds ranks them against their own labels. So, with few rows, two rows are
compared only by a model that was trained on neither:

    any two rows, left out together (`leave_pair_out`), if parameters are fixed
    any two rows of the same fold, if each training set chooses its own parameters, or rows belong
    to groups

With many rows this bias is negligible, and all held-out rows are ranked together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..crossval import leave_pair_out
from .data import AssessedRows
from .folds import Answers, Round

RowValues = Callable[[Answers, np.ndarray], np.ndarray]  # of answers and the fold of each row
FEW = 500  # up to this number of rows, rows of different models are not ranked together
POOLED = "AUC: all held-out rows ranked together"
PAIRS = "AUC: leave-pair-out (every two rows are compared by a model that was trained on neither)"
WITHIN = "AUC: mean over folds, each ranked by the model that predicts it"


def auc_of(estimator: Any, data: AssessedRows, rounds: Sequence[Round]) -> tuple[float, str]:
    """The AUC, its mean over repeats, and how it was computed. For more than two classes, one class
    against the rest, with equal weights for the classes. NaN if a class is never tested.
    """
    few = len(data.y) <= FEW and len(rounds[0].splits) > 1
    if few and _in_closed_form(data, rounds[0]):
        with suppress(ValueError):  # a class with fewer than three rows
            found = leave_pair_out(estimator, data.X, data.y, sample_weight=data.weights)
            return found.auc, PAIRS
    within = float(np.mean([_area(data, round_, round_.fold) for round_ in rounds]))
    if few and np.isfinite(within):
        return within, WITHIN
    return float(np.mean([_area(data, r, np.minimum(r.fold, 0)) for r in rounds])), POOLED


def _area(data: AssessedRows, round_: Round, fold: np.ndarray) -> float:
    """The mean AUC of the folds, by their weight."""
    if columns_of(data, round_) is None or len(np.unique(data.y[round_.tested])) < len(
        np.unique(data.y)
    ):
        return float("nan")
    weights = data.weights_of(round_.tested)
    return float(np.average(row_areas(data, round_, fold)[round_.tested], weights=weights))


def _in_closed_form(data: AssessedRows, round_: Round) -> bool:
    weighted = data.weights is not None and not np.all(data.weights > 0)
    tested = len(round_.tested) == len(data.y)
    two = data.classes is not None and len(data.classes) == 2
    confounded = any(name.endswith("confounds") for name in data.params)
    single = data.groups is None and not weighted and not confounded
    return round_.route.name == "one" and two and tested and single


def pair_values(data: AssessedRows, rounds: Sequence[Round]) -> RowValues | None:
    """How a row moves the AUC of its fold, by answers and folds; None without outputs, or where no
    fold has two classes.
    """
    known = all(columns_of(data, round_) is not None for round_ in rounds)
    mixed = any(len(np.unique(data.y[test])) > 1 for _, test in rounds[0].splits)
    return partial(row_areas, data) if known and mixed else None


def row_areas(data: AssessedRows, answers: Answers, fold: np.ndarray) -> np.ndarray:
    """How a row (…, n) moves the AUC of its fold (LeDell et al. 2015): to the share U of rows of
    the other class in its fold that are ranked on the right side of it,

        A + (U - A) W/W_own,

    with the AUC A and the weights W of the fold's rows. Means over the classes; in folds of one
    class, those of the others.
    """
    columns = columns_of(data, answers)
    assert columns is not None
    w, fold, found = data.weights_of(np.arange(len(fold))) * (fold >= 0), np.maximum(fold, 0), []
    whole = np.bincount(fold, weights=w)[fold]
    for outputs, positive in zip(np.moveaxis(columns[0], -1, 0), columns[1].T, strict=True):
        own = np.where(
            positive, *(np.bincount(fold, weights=w * p)[fold] for p in (positive, ~positive))
        )
        share, area = _placed(outputs, positive, w, fold)
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = area + (share - area) * whole / own
        known = np.isfinite(moved)
        count = np.sum(known, axis=-1, keepdims=True)
        mean = np.sum(moved, axis=-1, keepdims=True, where=known) / np.where(count, count, np.nan)
        found.append(np.where(known, moved, mean))
    return np.asarray(np.mean(found, axis=0))


def columns_of(data: AssessedRows, answers: Answers) -> tuple[np.ndarray, np.ndarray] | None:
    """Outputs (…, n, c) and truth (n, c) of the rows, one column per class; one column for two
    classes.
    """
    p, decisions = answers.probabilities, answers.decisions
    outputs = p if p is not None else decisions
    if outputs is None or data.classes is None:
        return None
    truth = data.y[:, None] == data.classes
    if len(data.classes) == 2:
        return (outputs[..., None] if outputs is decisions else outputs)[..., -1:], truth[:, 1:]
    return outputs, truth


def _placed(
    values: np.ndarray, positive: np.ndarray, w: np.ndarray, fold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For every row (…, n) the share of the other class in its fold that is ranked on the right
    side of it, and the AUC of its fold; NaN where one class is missing.
    """
    if values.ndim > 1:  # every model has folds of its own
        m, n_folds = len(values), fold.max() + 1
        own = (np.arange(m)[:, None] * n_folds + fold).reshape(-1)
        given = values.reshape(-1), np.tile(positive, m), np.tile(w, m), own
        share, area = _placed(*given)
        return share.reshape(values.shape), area.reshape(values.shape)
    order = np.lexsort((values, fold))
    f, v = fold[order], values[order]
    starts = np.flatnonzero(np.r_[True, (f[1:] != f[:-1]) | (v[1:] != v[:-1])])
    tie = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(f)]))
    shares = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for other in (~positive, positive):
            total = np.bincount(fold, weights=w * other)
            before = np.r_[0.0, np.cumsum(total)[:-1]]
            tied = np.add.reduceat((w * other)[order], starts)
            below = np.empty(len(f))
            below[order] = (np.cumsum(tied) - tied / 2)[tie] - before[f]
            shares.append(below / total[fold])
        share = np.where(positive, shares[0], 1.0 - shares[1])
        sums = [np.bincount(fold, weights=w * positive * s) for s in (np.nan_to_num(share), 1.0)]
        area = sums[0] / sums[1]
    return share, np.where(np.isfinite(share), area[fold], np.nan)
