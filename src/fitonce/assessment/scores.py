"""Scores of held-out answers: of all rows together, of every split, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from sklearn.metrics import confusion_matrix, r2_score

from ..core.splits import Splits
from .data import AssessedRows
from .folds import Answers, Round
from .intervals import HeldOutValues, interval_of
from .ranking import RowValues, pair_values
from .result import CalibrationCurve, Estimate

CALIBRATION_BINS = 10
LEAST = float(np.finfo(np.float64).eps)  # probability of which a logarithm is taken

Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of the targets and the predictions

# the form of a score's interval; see `intervals`
SHAPES = {
    "accuracy": "share",
    "balanced_accuracy": "share",
    "roc_auc": "share",
    "log_loss": "log",
    "brier": "log",
    "mae": "log",
    "rmse": "log",
    "r2": "r2",
}


# ---- values of rows ------------------------------------------------------------------------------


def row_values(data: AssessedRows, answers: Answers) -> dict[str, np.ndarray]:
    """What every row (…, n) adds to the scores that are means: hits, losses and squared errors."""
    y, predicted, p = data.y, answers.predictions, answers.probabilities
    if data.classes is None:
        return {"mae": np.abs(y - predicted), "rmse": (y - predicted) ** 2}
    found = {"accuracy": np.asarray(predicted == y, dtype=np.float64)}
    if p is not None:
        truth = y[:, None] == data.classes
        found["log_loss"] = -np.log(np.maximum(np.sum(p, axis=-1, where=truth), LEAST))
        found["brier"] = np.sum((p - truth) ** 2, axis=-1) / (2 if len(data.classes) == 2 else 1)
    return found


def values_of(data: AssessedRows, rounds: Sequence[Round], of: RowValues) -> HeldOutValues:
    """Values of rows, from the answers of every model."""
    tests = [test for round_ in rounds for _, test in round_.splits]
    inner: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for round_ in rounds:
        known = of(round_ if round_.inner is None else round_.inner, round_.fold)
        inner += [] if round_.inner is None else list(known)
        by_split = np.broadcast_to(known, (len(round_.splits), len(data.y)))
        values += [each[test] for each, (_, test) in zip(by_split, round_.splits, strict=True)]
    units = np.arange(len(data.y)) if data.groups is None else data.groups
    return HeldOutValues(
        tests,
        values,
        inner if len(inner) == len(tests) else [],
        np.unique(units, return_inverse=True)[1].reshape(-1),
        data.weights_of(np.arange(len(data.y))),
        share_of([round_.splits for round_ in rounds]),
        len(rounds),
        strata=None if data.classes is None else np.searchsorted(data.classes, data.y),
    )


def moves(
    name: str, data: AssessedRows, rounds: Sequence[Round], losses: Mapping[str, Loss]
) -> RowValues | None:
    """How a row moves a score, or its logarithm, to first order; None without an output in every
    round, or where nothing varies.
    """
    if name in losses:
        return lambda answers, _: _own(name, losses[name], data.y, answers.predictions)
    if name == "roc_auc":
        return pair_values(data, rounds)
    simple = {"r2": "rmse", "balanced_accuracy": "accuracy"}.get(name, name)
    tested = np.concatenate([round_.tested for round_ in rounds])
    w, every = data.weights_of(tested), [row_values(data, r).get(simple) for r in rounds]
    known = [v[r.tested] for v, r in zip(every, rounds, strict=True) if v is not None]
    if len(known) < len(rounds):
        return None
    values = np.concatenate(known)
    mean = float(np.average(values, weights=w))
    if name == "accuracy":
        return lambda answers, _: row_values(data, answers)[name]
    if name == "balanced_accuracy":
        codes = np.unique(data.y, return_inverse=True)[1]
        total = np.bincount(codes[tested], weights=w)
        recall = np.bincount(codes[tested], weights=w * values) / total
        share = total / np.sum(w) * len(total)
        return lambda answers, _: (
            np.mean(recall) + (row_values(data, answers)[simple] - recall[codes]) / share[codes]
        )
    if mean == 0.0:
        return None
    if name == "r2":
        around = (data.y - np.average(data.y[tested], weights=w)) ** 2
        spread = np.average(around[tested], weights=w)
        if spread == 0.0:
            return None
        return lambda answers, _: row_values(data, answers)[simple] / mean - around / spread
    unit = 2.0 * mean if name == "rmse" else mean
    return lambda answers, _: row_values(data, answers)[name] / unit


def _own(name: str, loss: Loss, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Losses (…, n) by a function of the user."""
    if predicted.ndim > 1:
        return np.stack([_own(name, loss, y, each) for each in predicted])
    values = np.asarray(loss(y, predicted), dtype=np.float64)
    if values.shape != y.shape:
        raise ValueError(
            f"losses[{name!r}] must return one number per row, shape {y.shape}, got shape "
            f"{values.shape} instead: the interval comes from the variance between rows."
        )
    return values


def estimates(
    data: AssessedRows,
    metrics: Mapping[str, float],
    rounds: Sequence[Round],
    losses: Mapping[str, Loss],
    level: float,
) -> dict[str, Estimate]:
    """Every score with its interval, which is NaN where there is none."""
    found = {}
    for name, score in metrics.items():
        of = moves(name, data, rounds, losses) if np.isfinite(score) else None
        if of is None:
            found[name] = Estimate(score, np.nan, np.nan, level, "no interval: no variance")
            continue
        low, high, method = interval_of(
            values_of(data, rounds, of), level, SHAPES.get(name, ""), score
        )
        found[name] = Estimate(score, low, high, level, method)
    return found


# ---- scores --------------------------------------------------------------------------------------


def pooled_scores(
    data: AssessedRows, rounds: Sequence[Round], losses: Mapping[str, Loss]
) -> dict[str, float]:
    """Scores of all held-out rows together, averaged over repeats; NaN for the AUC, which is of
    pairs: see `ranking`.
    """
    found = []
    for round_ in rounds:
        values, w = row_values(data, round_), data.weights_of(round_.tested)
        own = {n: _own(n, loss, data.y, round_.predictions) for n, loss in losses.items()}
        extra = {n: np.average(v[round_.tested], weights=w) for n, v in (values | own).items()}
        found.append(extra | _of_rows(data, round_, values, round_.tested))
    names = ("accuracy", "balanced_accuracy", "roc_auc", *found[0])
    names = names if data.classes is not None else ("r2", *found[0])
    return {n: float(np.mean([scores.get(n, np.nan) for scores in found])) for n in names}


def _of_rows(
    data: AssessedRows, round_: Round, values: Mapping[str, np.ndarray], rows: np.ndarray
) -> dict[str, float]:
    """Scores that are defined for any set of rows with weight, for labels or numbers."""
    w, y = data.weights_of(rows), data.y[rows]
    if data.classes is None:
        mae, mse = (np.average(values[name][rows], weights=w) for name in ("mae", "rmse"))
        r2 = np.nan if len(rows) < 2 else r2_score(y, round_.predictions[rows], sample_weight=w)
        return {"r2": float(r2), "mae": float(mae), "rmse": float(np.sqrt(mse))}
    hits, codes = values["accuracy"][rows], np.searchsorted(data.classes, y)
    total = np.bincount(codes, weights=w)
    recall = np.bincount(codes, weights=w * hits)[total > 0] / total[total > 0]
    return {
        "accuracy": float(np.average(hits, weights=w)),
        "balanced_accuracy": float(np.mean(recall)),
    }


def split_scores(data: AssessedRows, rounds: Sequence[Round]) -> dict[str, np.ndarray]:
    """Scores (repeats, folds) of every split; NaN if a score is not defined."""
    names = ("r2", "mae", "rmse") if data.classes is None else ("accuracy", "balanced_accuracy")
    shape = len(rounds), max(len(round_.splits) for round_ in rounds)
    scores = {name: np.full(shape, np.nan) for name in names}
    for repeat, round_ in enumerate(rounds):
        values = row_values(data, round_)
        for number, (_, test) in enumerate(round_.splits):
            if np.any(data.weights_of(test) > 0):
                for name, value in _of_rows(data, round_, values, test).items():
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


def share_of(partitions: Sequence[Splits]) -> float:
    """Mean ratio of test rows to training rows of a split; NaN without training rows."""
    sizes = [(len(train), len(test)) for splits in partitions for train, test in splits]
    n_train, n_test = np.sum(sizes, axis=0)
    return float(n_test / n_train) if n_train else float("nan")


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
