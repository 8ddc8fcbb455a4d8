"""Scores of held-out outputs: of all rows together and of every split, and the main interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    recall_score,
)

from .data import AssessedRows
from .folds import Round
from .intervals import HeldOutValues, of_r2, of_share
from .result import CalibrationCurve, Estimate

CALIBRATION_BINS = 10


def pooled_scores(data: AssessedRows, rounds: Sequence[Round]) -> dict[str, float]:
    """Scores of all held-out rows together, averaged over repeats."""
    found = [_pooled(data, round_) for round_ in rounds]
    return {name: float(np.mean([scores[name] for scores in found])) for name in found[0]}


def _pooled(data: AssessedRows, round_: Round) -> dict[str, float]:
    rows = round_.tested
    scores, w = _basic(data, round_, rows), data.weights_of(rows)
    if data.classes is None:
        return scores
    scores["roc_auc"] = float("nan")  # of pairs, not of rows: see `ranking`
    if round_.probabilities is not None:
        p, codes = round_.probabilities[rows], np.searchsorted(data.classes, data.y[rows])
        classes = np.arange(len(data.classes))
        scores["log_loss"] = float(log_loss(codes, p, labels=classes, sample_weight=w))
        squares = np.sum((p - np.eye(len(classes))[codes]) ** 2, axis=1)
        scores["brier"] = float(np.average(squares, weights=w)) / (2 if len(classes) == 2 else 1)
    return scores


def _basic(data: AssessedRows, round_: Round, rows: np.ndarray) -> dict[str, float]:
    """Scores that are defined for any set of rows with weight, for labels or numbers."""
    w, y = data.weights_of(rows), data.y[rows]
    given = y, round_.predictions[rows].astype(data.y.dtype)
    if data.classes is None:
        r2 = r2_score(*given, sample_weight=w) if len(rows) > 1 else np.nan
        rmse = np.sqrt(mean_squared_error(*given, sample_weight=w))
        mae = mean_absolute_error(*given, sample_weight=w)
        return {"r2": float(r2), "mae": float(mae), "rmse": float(rmse)}
    recall = {"labels": np.unique(y[w > 0]), "average": "macro", "zero_division": 0.0}
    return {
        "accuracy": float(accuracy_score(*given, sample_weight=w)),
        "balanced_accuracy": float(recall_score(*given, sample_weight=w, **recall)),
    }


def split_scores(data: AssessedRows, rounds: Sequence[Round]) -> dict[str, np.ndarray]:
    """Scores (repeats, folds) of every split; NaN if a score is not defined."""
    names = ("r2", "mae", "rmse") if data.classes is None else ("accuracy", "balanced_accuracy")
    shape = len(rounds), max(len(round_.splits) for round_ in rounds)
    scores = {name: np.full(shape, np.nan) for name in names}
    for repeat, round_ in enumerate(rounds):
        for number, (_, test) in enumerate(round_.splits):
            if np.any(data.weights_of(test) > 0):
                for name, value in _basic(data, round_, test).items():
                    scores[name][repeat, number] = value
    return scores


def baseline(data: AssessedRows, round_: Round) -> Round:
    """The most frequent class of all rows, the first of several, or their mean as prediction."""
    n, w = len(data.y), data.weights_of(np.arange(len(data.y)))
    if data.classes is None:
        return replace(round_, predictions=np.full(n, np.average(data.y, weights=w)))
    shares = np.array([np.sum(w[data.y == label]) for label in data.classes]) / np.sum(w)
    said = np.full(n, data.classes[np.argmax(shares)])
    return replace(round_, predictions=said, probabilities=np.tile(shares, (n, 1)))


def headline(
    data: AssessedRows,
    rounds: Sequence[Round],
    partitions: Sequence[Round],
    frozen: Sequence[Round],
    level: float,
) -> Estimate:
    """Accuracy or R² of all held-out rows together, with its interval.

    The standard error is that of nested cross-validation from `partitions` or, for tuned models,
    from `frozen`, if they have it. For
    accuracy the interval has Wilson's shape, with the number of rows that would have the standard
    error; for R² it is symmetric for log(1 - R²).
    """
    value = pooled_scores(data, rounds)[data.score_name]
    if data.classes is not None:
        low, high, method = of_share(values_of(data, partitions, _right, frozen), level, value)
        return Estimate(value, low, high, level, method)
    tests = np.concatenate([test for round_ in partitions for _, test in round_.splits])
    w = data.weights_of(tests)
    around = (data.y - np.average(data.y[tests], weights=w)) ** 2
    spread = np.average(around[tests], weights=w)
    every = np.concatenate([_squares(data.y, r.predictions)[r.tested] for r in partitions])
    error = np.average(
        every, weights=np.concatenate([data.weights_of(r.tested) for r in partitions])
    )
    if spread == 0.0 or error == 0.0:
        nan = float("nan")
        return Estimate(value, nan, nan, level, "no interval: no variance")

    def moved(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        return np.asarray(_squares(y, predicted) / error - around / spread)

    low, high, method = of_r2(values_of(data, partitions, moved, frozen), value, level)
    return Estimate(value, low, high, level, method)


def values_of(
    data: AssessedRows,
    rounds: Sequence[Round],
    value: Callable[[np.ndarray, np.ndarray], np.ndarray],
    frozen: Sequence[Round] = (),
) -> HeldOutValues:
    """Values of rows, from their targets and their predictions (n,) by every model."""
    tests = [test for round_ in rounds for _, test in round_.splits]
    outer = [value(data.y, r.predictions)[test] for r in rounds for _, test in r.splits]
    inner = [value(data.y, predicted) for r in rounds for predicted in r.inner]
    known = inner if len(inner) == len(tests) else []
    units = np.arange(len(data.y)) if data.groups is None else data.groups
    return HeldOutValues(
        tests,
        outer,
        known,
        np.unique(units, return_inverse=True)[1].reshape(-1),
        data.weights_of(np.arange(len(data.y))),
        mean_test_share(rounds),
        len(rounds),
        values_of(data, frozen, value) if frozen else None,
    )


def _right(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.asarray(predicted == y, dtype=np.float64)


def _squares(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.asarray((y - predicted) ** 2, dtype=np.float64)


def mean_test_share(rounds: Sequence[Round]) -> float:
    """Mean ratio of test rows to training rows of a split."""
    sizes = [(len(train), len(test)) for round_ in rounds for train, test in round_.splits]
    n_train, n_test = np.sum(sizes, axis=0)
    return float(n_test / n_train)


def confusion(data: AssessedRows, round_: Round) -> np.ndarray | None:
    """Number (or weight) of rows of class i predicted as j."""
    if data.classes is None:
        return None
    rows = round_.tested
    given = data.y[rows], round_.predictions[rows].astype(data.y.dtype)
    weights = None if data.weights is None else data.weights[rows]
    return np.asarray(confusion_matrix(*given, labels=data.classes, sample_weight=weights))


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
