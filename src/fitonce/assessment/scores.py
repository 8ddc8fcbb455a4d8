"""Scores of held-out outputs: of all rows together and of every split, and the main interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import confusion_matrix, log_loss, r2_score

from .data import AssessedRows
from .folds import Round
from .intervals import corrected_t, effective_size, pooled_r2, wilson
from .result import CalibrationCurve, Estimate

CALIBRATION_BINS = 10


def pooled_scores(data: AssessedRows, rounds: Sequence[Round]) -> dict[str, float]:
    """Scores of all held-out rows together, averaged over repeats."""
    found = [_pooled(data, round_) for round_ in rounds]
    return {name: float(np.mean([scores[name] for scores in found])) for name in found[0]}


def _pooled(data: AssessedRows, round_: Round) -> dict[str, float]:
    rows = round_.tested
    scores, w = _basic(data, round_, rows), _weights(data, rows)
    if data.classes is None:
        return scores
    codes, n_classes = np.searchsorted(data.classes, data.y[rows]), len(data.classes)
    scores["roc_auc"] = float("nan")  # of pairs, not of rows: see `ranking`
    if round_.probabilities is not None:
        p = round_.probabilities[rows]
        scores["log_loss"] = float(log_loss(codes, p, labels=np.arange(n_classes), sample_weight=w))
        squares = np.sum((p - np.eye(n_classes)[codes]) ** 2, axis=1)
        scores["brier"] = float(np.average(squares, weights=w)) / (2 if n_classes == 2 else 1)
    return scores


def _weights(data: AssessedRows, rows: np.ndarray) -> np.ndarray:
    return np.ones(len(rows)) if data.weights is None else data.weights[rows]


def _codes(data: AssessedRows, round_: Round, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the true and of the predicted classes."""
    assert data.classes is not None
    predicted = round_.predictions[rows].astype(data.classes.dtype)
    return np.searchsorted(data.classes, data.y[rows]), np.searchsorted(data.classes, predicted)


def _basic(data: AssessedRows, round_: Round, rows: np.ndarray) -> dict[str, float]:
    """Scores that are defined for any set of rows, for labels or numbers."""
    w = _weights(data, rows)
    if data.classes is None:
        y, predictions = data.y[rows], round_.predictions[rows]
        r2 = r2_score(y, predictions, sample_weight=w) if len(rows) > 1 else np.nan
        mae, mse = (np.average(np.abs(y - predictions) ** power, weights=w) for power in (1, 2))
        return {"r2": float(r2), "mae": float(mae), "rmse": float(np.sqrt(mse))}
    codes, predicted = _codes(data, round_, rows)
    total = np.bincount(codes, weights=w)
    hits = np.bincount(codes, weights=w * (codes == predicted))
    recall = hits[total > 0] / total[total > 0]
    return {"accuracy": float(hits.sum() / total.sum()), "balanced_accuracy": float(recall.mean())}


def split_scores(data: AssessedRows, rounds: Sequence[Round]) -> dict[str, np.ndarray]:
    """Scores (repeats, folds) of every split; NaN if a score is not defined."""
    names = ("r2", "mae", "rmse") if data.classes is None else ("accuracy", "balanced_accuracy")
    shape = len(rounds), max(len(round_.splits) for round_ in rounds)
    scores = {name: np.full(shape, np.nan) for name in names}
    for repeat, round_ in enumerate(rounds):
        for number, (_, test) in enumerate(round_.splits):
            if np.any(_weights(data, test) > 0):
                for name, value in _basic(data, round_, test).items():
                    scores[name][repeat, number] = value
    return scores


def headline(data: AssessedRows, rounds: Sequence[Round], level: float) -> Estimate:
    """Accuracy or R² of all held-out rows together, with its interval.

    Wilson's interval for the labels of one repeat. Otherwise the corrected resampled t interval,
    of the accuracies of the splits or of log(1 - R²).
    """
    if data.classes is None:
        return _pooled_numbers(data, rounds, level)
    if len(rounds) == 1:
        return _pooled_labels(data, rounds[0], level)
    scores = split_scores(data, rounds)[data.score_name]
    scores = scores[np.isfinite(scores)]
    if len(scores) < 2:
        pooled = pooled_scores(data, rounds)[data.score_name]
        why = "no interval: fewer than two splits have a score"
        return Estimate(pooled, float("nan"), float("nan"), level, why)
    low, high = corrected_t(scores, mean_test_share(rounds), level)
    method = f"corrected resampled t over {len(scores)} splits"
    return Estimate(float(np.mean(scores)), max(low, 0.0), min(high, 1.0), level, method)


def _pooled_numbers(data: AssessedRows, rounds: Sequence[Round], level: float) -> Estimate:
    splits = [
        (round_, test)
        for round_ in rounds
        for _, test in round_.splits
        if np.any(_weights(data, test) > 0)
    ]
    every = np.concatenate([test for _, test in splits])
    centre = np.average(data.y[every], weights=_weights(data, every))
    squares = [(data.y[test] - round_.predictions[test]) ** 2 for round_, test in splits]
    around = [(data.y[test] - centre) ** 2 for _, test in splits]
    weights = [_weights(data, test) for _, test in splits]
    found = pooled_r2(squares, around, weights, mean_test_share(rounds), level)
    method = f"corrected resampled t over {len(splits)} splits, on log(1 - R²)"
    if np.isnan(found[1]):
        method = "no interval: fewer than two splits, or no variance"
    return Estimate(*found, level, method)


def _pooled_labels(data: AssessedRows, round_: Round, level: float) -> Estimate:
    rows, method = round_.tested, "Wilson on pooled held-out labels"
    correct = (round_.predictions[rows] == data.y[rows]).astype(float)
    w, groups = _weights(data, rows), None if data.groups is None else data.groups[rows]
    share, size = float(np.average(correct, weights=w)), effective_size(correct, w, groups)
    if data.weights is not None or groups is not None:
        method = f"{method}, effective size {size:.0f}"
    return Estimate(share, *wilson(share, size, level), level, method)


def mean_test_share(rounds: Sequence[Round]) -> float:
    """Mean ratio of test rows to training rows of a split."""
    sizes = [(len(train), len(test)) for round_ in rounds for train, test in round_.splits]
    n_train, n_test = np.sum(sizes, axis=0)
    return float(n_test / n_train)


def confusion(data: AssessedRows, round_: Round) -> np.ndarray | None:
    """Number (or weight) of rows of class i predicted as j."""
    if data.classes is None:
        return None
    weights = None if data.weights is None else data.weights[round_.tested]
    codes, predicted = _codes(data, round_, round_.tested)
    every = np.arange(len(data.classes))
    return np.asarray(confusion_matrix(codes, predicted, labels=every, sample_weight=weights))


def calibration(data: AssessedRows, round_: Round) -> CalibrationCurve | None:
    """Predicted probabilities and observed frequencies, in bins with equal numbers of rows."""
    if data.classes is None or round_.probabilities is None:
        return None
    p, y = round_.probabilities[round_.tested], data.y[round_.tested]
    if len(data.classes) == 2:
        stated, true, of = p[:, 1], y == data.classes[1], f"probability of {data.classes[1]}"
    else:
        stated, true = p.max(axis=1), data.classes[p.argmax(axis=1)] == y
        of = "probability of the predicted class"
    n_bins = min(CALIBRATION_BINS, max(1, len(y) // 5))
    edges = np.quantile(stated, np.linspace(0, 1, n_bins + 1))
    bins = np.unique(np.searchsorted(edges[1:-1], stated), return_inverse=True)[1]
    count = np.bincount(bins)
    predicted, observed = (np.bincount(bins, weights=v) / count for v in (stated, true))
    return CalibrationCurve(of, predicted, observed, count)
