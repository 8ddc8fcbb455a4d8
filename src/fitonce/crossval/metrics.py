"""Scores of many labelings and folds at once, equal to scikit-learn's scorers fold by fold.

A metric takes the outputs (B, k, m) or (B, k, c, m) of B labelings and k folds, with the truth, and
returns (B, k); the confusion matrix returns (B, k, c, c).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from sklearn.exceptions import UndefinedMetricWarning

from ..core.arrays import Array, asarray_like, is_numpy, namespace, take, to_numpy
from ..core.readout import predicted_codes
from ..core.ties import levelled, settled

TIE = 1e-10  # scores closer than this (relative) are equal: rounding must not break a tie


@dataclass(frozen=True)
class Outputs:
    """The outputs of the models of one run of folds for their test rows, for B labelings.

    `values` is (B, k, m) or (B, k, c, m); `truth` has the labels or targets: (B, k, m) or (B, k,
    t, m).
    A run of pooled folds has k = 1. Values closer than `accuracy`, (B, k) or (B, k, c), differ
    only by rounding; None if they have already been made equal.
    """

    values: Array
    truth: Array
    accuracy: Array | None = None


def size_of_targets(P: Array, truth: Array | None) -> Array:
    """The magnitude (B, k, t) of predicted targets (B, k, t, m) and of their truth (B, k, m) or
    (B, k, t, m), which is one for classes (None).
    """
    xp = namespace(P)
    size = xp.maximum(xp.max(P, axis=-1), -xp.min(P, axis=-1))
    if truth is None:
        return xp.maximum(size, xp.ones_like(size))
    truth = asarray_like(truth, P) if is_numpy(truth) else truth
    largest = xp.reshape(xp.max(xp.abs(truth), axis=-1), (*size.shape[:2], -1))
    return xp.maximum(size, largest)


def pooled(runs: list[Outputs]) -> list[Outputs]:
    """The test rows of all folds as one fold."""

    def flat(A: Array) -> Array:
        xp, last = namespace(A), A.ndim - 1
        folds_beside_rows = xp.permute_dims(A, (0, *range(2, last), 1, last))
        return xp.reshape(folds_beside_rows, (A.shape[0], 1, *A.shape[2:last], -1))

    values, truth = [flat(run.values) for run in runs], [flat(run.truth) for run in runs]
    xp = namespace(values[0])
    accuracy = None
    if all(run.accuracy is not None for run in runs):
        by_run = [xp.max(run.accuracy, axis=1, keepdims=True) for run in runs]
        accuracy = xp.max(xp.stack(by_run), axis=0)
    seen = namespace(truth[0]).concat(truth, axis=-1)
    return [Outputs(xp.concat(values, axis=-1), seen, accuracy)]


@dataclass(frozen=True)
class Scored:
    """Outputs of a run of folds, with intermediate results that several metrics share.

    What is computed from outputs on a device stays there, so that only (B, k) numbers are
    transferred.
    """

    outputs: Outputs
    n_classes: int | None

    @cached_property
    def values(self) -> np.ndarray:
        """The values on the host, with ties as in exact arithmetic."""
        values = to_numpy(self.outputs.values)
        if self.outputs.accuracy is None:
            return values
        values = settled(values, self.accuracy)
        return levelled(values, self.accuracy[..., None], axis=2) if values.ndim == 4 else values

    @cached_property
    def accuracy(self) -> np.ndarray:
        """(B, k) or (B, k, c)"""
        accuracy = self.outputs.accuracy
        return np.zeros(self.outputs.values.shape[:-1]) if accuracy is None else to_numpy(accuracy)

    @property
    def truth(self) -> np.ndarray:
        return to_numpy(self.outputs.truth)

    @cached_property
    def seen(self) -> Array:
        values = self.outputs.values
        return self.truth if is_numpy(values) else asarray_like(self.outputs.truth, values)

    @cached_property
    def codes(self) -> Array:
        """Predicted class indices (B, k, m), on the device of the outputs."""
        values = self.outputs.values
        return predicted_codes(values, self.n_classes == 2, asarray_like(self.accuracy, values))

    @cached_property
    def predicted_targets(self) -> Array:
        """Predicted numbers (B, k, t, m), on the device of the outputs."""
        values = self.values if is_numpy(self.outputs.values) else self.outputs.values
        return values if values.ndim == 4 else values[:, :, None, :]

    @cached_property
    def errors(self) -> Array:
        """Targets minus predictions (B, k, t, m), on the device of the outputs."""
        return self.seen - self.predicted_targets

    @cached_property
    def confusion(self) -> np.ndarray:
        """Counts (B, k, c, c) of true by predicted class."""
        c, (B, k) = self.n_classes or 0, self.truth.shape[:2]
        run = np.arange(B * k, dtype=np.intp).reshape(B, k, 1)
        cell = (run * c + self.truth.astype(np.intp)) * c + to_numpy(self.codes)
        return np.bincount(cell.ravel(), minlength=B * k * c * c).reshape(B, k, c, c)

    @cached_property
    def per_class(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hits, true and predicted counts of every class, (B, k, c) each."""
        return (
            np.diagonal(self.confusion, axis1=2, axis2=3),
            self.confusion.sum(axis=3),
            self.confusion.sum(axis=2),
        )


def accuracy(scored: Scored) -> np.ndarray:
    """The share of correct predictions."""
    xp = namespace(scored.codes)
    hits = xp.count_nonzero(scored.codes == xp.astype(scored.seen, scored.codes.dtype), axis=2)
    return np.asarray(to_numpy(hits) / scored.outputs.truth.shape[2])


def balanced_accuracy(scored: Scored) -> np.ndarray:
    """Mean recall of the classes that are present."""
    hits, true, _ = scored.per_class
    return _mean_where(_ratio(hits, true), true > 0)


def _f_beta(kind: str, average: str) -> Callable[[Scored], np.ndarray]:
    def metric(scored: Scored) -> np.ndarray:
        hits, true, predicted = scored.per_class
        if average == "micro":
            hits, true, predicted = (
                count.sum(axis=2, keepdims=True) for count in (hits, true, predicted)
            )
        over = {"f1": 0.5 * (true + predicted), "precision": predicted, "recall": true}[kind]
        values = _ratio(hits, over)
        if average == "binary":
            return values[:, :, 1]
        if average == "weighted":
            return np.asarray(np.sum(values * true, axis=2) / np.sum(true, axis=2))
        return _mean_where(values, (true + predicted) > 0)

    return metric


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """0 if the denominator is 0, as in scikit-learn."""
    return np.asarray(
        np.divide(
            numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator > 0
        )
    )


def _mean_where(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(np.where(there, values, 0.0), axis=2) / np.sum(there, axis=2))


def roc_auc(scored: Scored) -> np.ndarray:
    """Area under the ROC curve of two classes, from the rank sum; ties count half.

    NaN if a fold contains one class.
    """
    n1, m = to_numpy(namespace(scored.seen).sum(scored.seen, axis=2)), scored.truth.shape[2]
    pairs = n1 * (m - n1)
    if np.any(pairs == 0):
        message = "Only one class is present in y_true. ROC AUC score is not defined in that case."
        warnings.warn(message, UndefinedMetricWarning, stacklevel=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        area = (_rank_sums(scored) - n1 * (n1 + 1) / 2) / pairs
    return np.asarray(np.where(pairs > 0, area, np.nan))


def _rank_sums(scored: Scored) -> np.ndarray:
    """Rank sums (B, k) of the positives; tied values get the mean of their ranks.

    Only folds with values close to each other are looked at again, on the host.
    """
    values, xp = scored.outputs.values, namespace(scored.outputs.values)
    order = xp.argsort(values, axis=2, stable=False)  # twice as fast
    ranked = xp.take_along_axis(values, order, axis=2)
    positive = xp.take_along_axis(scored.seen, order, axis=2)
    ranks = asarray_like(np.arange(1.0, values.shape[2] + 1.0), values)
    rank_sum = np.array(to_numpy(xp.astype(positive, values.dtype) @ ranks))
    width = asarray_like(2.0 * scored.accuracy, values)  # two values may be settled at zero
    close = xp.any(ranked[:, :, 1:] - ranked[:, :, :-1] <= width[:, :, None], axis=2)
    tied = to_numpy(close)
    if tied.any():
        close_ones = take(xp.reshape(values, (-1, values.shape[2])), np.flatnonzero(tied))
        equal = settled(to_numpy(close_ones), scored.accuracy[tied])
        own = scipy.stats.rankdata(equal, axis=-1) * scored.truth[tied]
        rank_sum[tied] = np.sum(own, axis=-1)
    return rank_sum


def neg_log_loss(scored: Scored) -> np.ndarray:
    """Mean log-probability of the true class, from the softmax of the scores.

    Two classes use p and 1 - p, as scikit-learn's scorer does: at extreme scores, the difference
    has fewer digits than the softmax.
    """
    eps = np.finfo(np.float64).eps
    if scored.n_classes == 2:
        p = scipy.special.expit(scored.values)
        own = np.where(scored.truth == 1, p, 1.0 - p)
        return np.asarray(np.mean(np.log(np.clip(own, eps, 1.0 - eps)), axis=2))
    log_probability = scored.values - scipy.special.logsumexp(scored.values, axis=2, keepdims=True)
    own = np.take_along_axis(log_probability, scored.truth[:, :, None, :].astype(np.intp), axis=2)[
        :, :, 0, :
    ]
    return np.asarray(np.mean(np.clip(own, np.log(eps), np.log1p(-eps)), axis=2))


def confusion_matrix(scored: Scored) -> np.ndarray:
    return scored.confusion


def r2(scored: Scored) -> np.ndarray:
    """1 - residual over total sum of squares, averaged over targets.

    For a constant target, 1 if it is predicted exactly, else 0.
    """
    if scored.truth.shape[3] < 2:
        warnings.warn(
            "R^2 score is not well-defined with less than two samples.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return np.full(scored.truth.shape[:2], np.nan)
    xp = namespace(scored.errors)
    residual = to_numpy(xp.sum(scored.errors**2, axis=3))
    spread = to_numpy(xp.sum(_centred(scored.seen) ** 2, axis=3))
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(spread > 0, 1.0 - residual / spread, residual == 0)
    return np.asarray(score.mean(axis=2))


def neg_mean_squared_error(scored: Scored) -> np.ndarray:
    return -to_numpy(namespace(scored.errors).mean(scored.errors**2, axis=(2, 3)))


def neg_root_mean_squared_error(scored: Scored) -> np.ndarray:
    squares = to_numpy(namespace(scored.errors).mean(scored.errors**2, axis=3))
    return np.asarray(-np.sqrt(squares).mean(axis=2))


def neg_mean_absolute_error(scored: Scored) -> np.ndarray:
    xp = namespace(scored.errors)
    return -to_numpy(xp.mean(xp.abs(scored.errors), axis=(2, 3)))


def _centred(A: Array) -> Array:
    return A - namespace(A).mean(A, axis=3, keepdims=True)


def correlation(scored: Scored) -> np.ndarray:
    """Pearson's correlation of targets and predictions, averaged over targets.

    NaN if either is constant.
    """
    xp = namespace(scored.errors)
    # equal numbers minus their mean are not always zero
    predicted, truth = (
        xp.where(
            xp.max(A, axis=3, keepdims=True) == xp.min(A, axis=3, keepdims=True),
            xp.zeros_like(A),
            _centred(A),
        )
        for A in (scored.predicted_targets, scored.seen)
    )
    product = to_numpy(xp.sum(predicted * truth, axis=3))
    norms = np.sqrt(to_numpy(xp.sum(predicted**2, axis=3) * xp.sum(truth**2, axis=3)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(norms > 0, product / norms, np.nan).mean(axis=2))


Metric = Callable[[Scored], np.ndarray]

LABEL_METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    **{
        f"{kind}_{average}": _f_beta(kind, average)
        for kind in ("f1", "precision", "recall")
        for average in ("macro", "micro", "weighted")
    },
    "confusion_matrix": confusion_matrix,
}
BINARY_METRICS: dict[str, Metric] = {
    **{kind: _f_beta(kind, "binary") for kind in ("f1", "precision", "recall")},
    "roc_auc": roc_auc,
}
NUMBER_METRICS: dict[str, Metric] = {
    "r2": r2,
    "neg_mean_squared_error": neg_mean_squared_error,
    "neg_root_mean_squared_error": neg_root_mean_squared_error,
    "neg_mean_absolute_error": neg_mean_absolute_error,
    "correlation": correlation,
}


def vectorised(name: Any, classes: np.ndarray | None, *, has_posterior: bool) -> Metric | None:
    """The batched form of a scikit-learn scoring name for this problem, or None if there is none.

    `has_posterior`: the probabilities of the estimator are the softmax of its scores, without
    calibration.
    """
    if not isinstance(name, str):
        return None
    if classes is None:
        return NUMBER_METRICS.get(name)
    if name == "neg_log_loss":
        return neg_log_loss if has_posterior else None
    if name not in BINARY_METRICS or len(classes) != 2:
        return LABEL_METRICS.get(name)
    positive = name == "roc_auc" or (
        classes.dtype.kind in "iufb" and classes[1] == 1
    )  # scikit-learn's pos_label is 1
    return BINARY_METRICS[name] if positive else None
