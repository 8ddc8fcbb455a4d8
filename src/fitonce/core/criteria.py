r"""Criteria for tuning: losses of held-out outputs, lower is better, weighted by the rows' weights.

Losses of classes are small and on the host: n rows, c classes, and a leading axis for m candidates.
Losses of numbers come for every target by itself (m, t), on the device of the predictions: one
alpha for all targets has the least mean, one for each target the least of its column. They need
sums over the tested rows, which add up over splits. With e = y - ŷ and means ȳ, ŷ̄,

    squared error   Σw e² / Σw
    1 - R²          Σw e² / Σw (y - ȳ)²
    1 - r           1 - Σw (y - ȳ)(ŷ - ŷ̄) / √(Σw (y - ȳ)² Σw (ŷ - ŷ̄)²)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.special

from .arrays import Array, asarray_like, namespace, to_numpy
from .calibration import (
    inverse_temperatures,
    inverse_temperatures_of_two,
    least_probability,
    mixed,
)
from .spectrum import row_blocks

TOGETHER = 1 << 16  # held-out numbers that are summed together
AS_MANY_ROWS = 50.0  # that the squared error counts for beside the log-loss


@dataclass(frozen=True)
class HeldOutScores:
    """Held-out outputs of m candidates at k tested rows, and the truth.

    `predicted` (m, k, t) are targets (on the host or, for the criteria named in `BY_TARGET`, on the
    device that computed them), `decision` (m, k, c) class scores (None for regression),
    `separation` (m, c, c) half the squared distance between class centroids on the discriminant
    axes, or 2 if classes are coded ±1: in these units, the margin of a row at its class centroid
    is one. `class_names` are all classes, tested here or not.
    """

    predicted: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    fold: np.ndarray
    decision: np.ndarray | None = None
    labels: np.ndarray | None = None
    separation: np.ndarray | None = None
    y: np.ndarray | None = None
    class_names: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> HeldOutScores:
        """The same candidates at some of the tested rows."""
        return HeldOutScores(
            self.predicted[:, rows],
            self.targets[rows],
            self.weights[rows],
            self.fold[rows],
            None if self.decision is None else self.decision[:, rows],
            None if self.labels is None else self.labels[rows],
            self.separation,
            None if self.y is None else self.y[rows],
            self.class_names,
        )

    def candidates(self, which: slice) -> HeldOutScores:
        """Some of the candidates at the same rows."""
        decision = None if self.decision is None else self.decision[which]
        separation = None if self.separation is None else self.separation[which]
        return replace(
            self, predicted=self.predicted[which, ...], decision=decision, separation=separation
        )

    def targets_alone(self) -> list[HeldOutScores]:
        """The same for each of the targets by itself, which are numbers."""
        columns = (slice(j, j + 1) for j in range(self.targets.shape[1]))
        return [
            replace(
                self,
                predicted=self.predicted[:, :, own],
                targets=self.targets[:, own],
                y=self.targets[:, own.start],
            )
            for own in columns
        ]

    def __len__(self) -> int:
        """The number of candidates."""
        return int(self.predicted.shape[0])

    def output(self, j: int) -> np.ndarray:
        """The output of the model of candidate j, in the shape of scikit-learn's estimators."""
        output = self.predicted[j] if self.decision is None else self.decision[j]
        if self.decision is not None and output.shape[1] == 2:
            return np.asarray(output[:, 1] - output[:, 0])
        return np.asarray(output[:, 0] if output.shape[1] == 1 else output)

    def probabilities(self) -> np.ndarray:
        """Class probabilities (m, k, c) of every candidate, at its own best temperature."""
        decision, labels = self.classes
        beta = inverse_temperatures(decision, labels, self.weights)
        p = scipy.special.softmax(beta[:, None, None] * decision, axis=2)
        return mixed(p, least_probability(self.weights, decision.shape[2]))

    @property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Class scores and labels, if there are any."""
        if self.decision is None or self.labels is None:
            raise ValueError(
                "this criterion needs classes: use 'squared_error' or 'r2' for regression."
            )
        return self.decision, self.labels

    def mean(self, losses: np.ndarray) -> np.ndarray:
        """Weighted mean of losses (m, k) over the rows."""
        return np.asarray(losses @ self.weights / self.weights.sum())


# ---- criteria ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetSums:
    """Sums over tested rows for T targets y and m candidates ŷ.

    `weight` Σw and `error` Σwe² (m, T); then, for y and where a correlation is asked for also for
    each ŷ (1 or 1 + m, T), its `mean`, its `square` Σw(z - z̄)² and its `product` with y,
    Σw(z - z̄)(y - ȳ).
    """

    weight: float
    error: Array
    mean: Array
    square: Array
    product: Array

    def __add__(self, other: TargetSums) -> TargetSums:
        """The sums over both sets of rows; a shift between their means adds to the squares."""
        weight = self.weight + other.weight
        shift, share = other.mean - self.mean, self.weight * other.weight / weight
        return TargetSums(
            weight,
            self.error + other.error,
            self.mean + shift * (other.weight / weight),
            self.square + other.square + share * shift**2,
            self.product + other.product + share * shift * shift[:1, :],
        )

    def loss(self, name: str) -> Array:
        """(m, T), lower is better; r is 0 of what does not vary."""
        if name == "squared_error":
            return self.error / self.weight
        xp, total = namespace(self.error), self.square[0, :]
        if name == "r2":
            return self.error / xp.where(total > 0, total, xp.ones_like(total))
        spread = total * self.square[1:, :]
        varies = spread > 0
        root = xp.sqrt(xp.where(varies, spread, xp.ones_like(spread)))
        return 1.0 - xp.where(varies, self.product[1:, :] / root, xp.zeros_like(root))


def target_sums(
    predicted: Array, y: Array, weights: Array | None, correlation: bool = False
) -> TargetSums:
    """The sums of predictions (m, k, T) for targets y (k, T), with weights (k,) or None.

    Values of any precision, sums in float64; a few candidates at a time, so that little is added to
    what is there.
    """
    xp = namespace(y)
    root = None if weights is None else namespace(weights).sqrt(weights)[:, None]
    weight = float(y.shape[0]) if weights is None else float(namespace(weights).sum(weights))

    def weighted(z: Array) -> Array:
        return z if root is None else root * z

    def about_mean(z: Array) -> tuple[Array, Array]:
        """The means (b, T) of values (b, k, T), and what they differ from them, weighted."""
        first = z[:, :1, :]  # what does not vary is exactly zero then
        moved = weighted(z - first)
        mean = _dot(moved, weighted(xp.ones_like(moved))) / weight
        return first[:, 0, :] + mean, moved - weighted(xp.astype(mean, z.dtype)[:, None, :])

    mean, own = about_mean(y[None, ...])
    errors, means, squares, products = [], [mean], [_dot(own, own)], [_dot(own, own)]
    step = max(1, TOGETHER // max(1, int(np.prod(y.shape))))
    for part in row_blocks(int(predicted.shape[0]), step):
        some = predicted[part, ...]
        error = weighted(y - some)
        errors.append(_dot(error, error))
        if correlation:
            mean, centred = about_mean(some)
            means.append(mean)
            squares.append(_dot(centred, centred))
            products.append(_dot(centred, own))
    total = (xp.concat(parts, axis=0) for parts in (errors, means, squares, products))
    return TargetSums(weight, *total)


def _dot(A: Array, B: Array) -> Array:
    """Σ_k A B (b, T) in float64 of values (b, k, T)."""
    if isinstance(A, np.ndarray) and A.dtype == np.float64:
        return np.einsum("...kt,...kt->...t", A, B)
    return namespace(A).sum(A * B, axis=1, dtype=namespace(A).float64)


def sums_of(name: str, scores: HeldOutScores) -> TargetSums:
    """What a loss of numbers is made of, in the precision of the predictions."""
    predicted = scores.predicted
    y = asarray_like(scores.targets, predicted, predicted.dtype)
    weights = None if np.all(scores.weights == 1.0) else asarray_like(scores.weights, predicted)
    return target_sums(predicted, y, weights, name == "correlation")


def _of_numbers(name: str, scores: HeldOutScores) -> np.ndarray:
    return to_numpy(sums_of(name, scores).loss(name))


def margins(scores: HeldOutScores) -> tuple[np.ndarray, np.ndarray]:
    """Own class score minus the best other one (m, k), and which class that was."""
    decision, labels = scores.classes
    k = np.arange(len(labels))
    others = decision.copy()
    others[:, k, labels] = -np.inf
    rival = np.argmax(others, axis=2)
    own = decision[:, k, labels]
    return own - np.take_along_axis(others, rival[:, :, None], axis=2)[:, :, 0], rival


def error(scores: HeldOutScores) -> np.ndarray:
    """Share of held-out rows that are misclassified; a tie counts half."""
    margin, _ = margins(scores)
    return scores.mean((margin < 0) + 0.5 * (margin == 0))


def balanced_error(scores: HeldOutScores) -> np.ndarray:
    """Mean over the classes of the share misclassified."""
    margin, _ = margins(scores)
    wrong = (margin < 0) + 0.5 * (margin == 0)
    _, labels = scores.classes
    rates = [
        wrong[:, labels == label]
        @ scores.weights[labels == label]
        / scores.weights[labels == label].sum()
        for label in np.unique(labels)
    ]
    return np.asarray(np.mean(rates, axis=0))


def smoothed_error(scores: HeldOutScores, compression: float) -> np.ndarray:
    """Mean of σ(-γ · margin), margins in units in which class centroids lie at ±1 (Saadi et al.,
    eq. 9, on the trained targets).
    """
    margin, rival = margins(scores)
    _, labels = scores.classes
    if scores.separation is not None:
        separation = scores.separation[np.arange(len(margin))[:, None], labels[None, :], rival]
        with np.errstate(over="ignore"):  # classes that do not separate at all
            margin = margin / np.maximum(separation, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return scores.mean(scipy.special.expit(-compression * margin))


def auc(scores: HeldOutScores) -> np.ndarray:
    """1 - area under the ROC curve, ties counting half.

    Of each class against the rest, averaged, where there are more than two.
    """
    decision, labels = scores.classes
    present = np.unique(labels)
    if len(present) < 2:
        raise ValueError(
            "criterion='auc' needs rows of both classes in every fold if it is averaged over "
            "folds: use pooled=True."
        )
    if decision.shape[2] == 2:
        return np.array(
            [
                1.0 - _weighted_auc(row[:, 1] - row[:, 0], labels == 1, scores.weights)
                for row in decision
            ]
        )
    return np.array(
        [
            1.0 - np.mean([_weighted_auc(row[:, j], labels == j, scores.weights) for j in present])
            for row in decision
        ]
    )


def _weighted_auc(score: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> float:
    """P(score of a positive > score of a negative) + ½ P(equal), pairs weighted by the product of
    the weights.
    """
    values, position = np.unique(score, return_inverse=True)
    up = np.bincount(position, weights=weights * positive, minlength=len(values))
    down = np.bincount(position, weights=weights * ~positive, minlength=len(values))
    below = np.cumsum(down) - down
    return float(np.sum(up * (below + 0.5 * down)) / (up.sum() * down.sum()))


def log_loss(scores: HeldOutScores) -> np.ndarray:
    """Log-loss of the held-out class probabilities at their own best temperature."""
    decision, labels = scores.classes
    if decision.shape[2] > 2:
        return scores.mean(-np.log(scores.probabilities()[:, np.arange(len(labels)), labels]))
    return log_loss_of_two(margins(scores)[0], scores.weights)


def log_loss_of_two(margins: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same (m,) for two classes, from the margins (m, k) of the own class over the other."""
    floor = least_probability(weights, 2)
    own = scipy.special.expit(inverse_temperatures_of_two(margins, weights)[:, None] * margins)
    own *= 1.0 - 2.0 * floor
    own += floor
    return np.asarray(-np.log(own, out=own) @ weights / weights.sum())


def brier(scores: HeldOutScores) -> np.ndarray:
    """Squared error of the held-out class probabilities at their own best temperature, summed over
    the classes.
    """
    _, labels = scores.classes
    p = scores.probabilities()
    own = p[:, np.arange(len(labels)), labels]
    return scores.mean(np.sum(p**2, axis=2) - 2.0 * own + 1.0)


def squared_error_and_log_loss(scores: HeldOutScores) -> np.ndarray:
    """The log-loss of n rows and the squared error of the targets of `AS_MANY_ROWS` more, each over
    what the class frequencies alone have: (n L + 50 S)/(n + 50), n the sum of the weights.

    Where rows are few, probabilities can be next to perfect by chance at an extreme candidate,
    which the squared error does not miss. Where they are many, it shies away from strong
    regularization.
    """
    _, labels = scores.classes
    total = float(scores.weights.sum())
    w = scores.weights / total
    spread = float(np.mean(w @ (scores.targets - w @ scores.targets) ** 2))
    entropy = float(np.sum(scipy.special.entr(np.bincount(labels, weights=w))))
    if len(np.unique(labels)) < 2:  # a fold of one class, whose frequencies leave no error
        spread = entropy = 1.0
    squares = _of_numbers("squared_error", scores).mean(axis=1)
    return blended(total, squares / spread, log_loss(scores) / entropy)


def blended(total: float, squares: np.ndarray, log_losses: np.ndarray) -> np.ndarray:
    """(n L + 50 S)/(n + 50) of losses that are shares of what the class frequencies have."""
    return np.asarray((total * log_losses + AS_MANY_ROWS * squares) / (total + AS_MANY_ROWS))


Loss = Callable[[HeldOutScores], np.ndarray]  # (m,), or (m, t) of numbers
BY_TARGET = ("squared_error", "r2", "correlation")
LOSSES: dict[str, Loss] = {
    "log_loss": log_loss,
    "brier": brier,
    "error": error,
    "balanced_error": balanced_error,
    "auc": auc,
    "squared_error+log_loss": squared_error_and_log_loss,
    **{name: partial(_of_numbers, name) for name in BY_TARGET},
}
NUMBERS_ONLY = ("r2", "correlation")
CLASSIFICATION = (*(name for name in LOSSES if name not in NUMBERS_ONLY), "smoothed_error")
OF_THE_FIT = ("gcv", "loo_log_density", "marginal_likelihood")  # see `likelihood`
REGRESSION = (*BY_TARGET, *OF_THE_FIT)


def mean_over_folds(loss: Loss, scores: HeldOutScores) -> np.ndarray:
    """The loss of every split on its own, averaged."""
    folds = [scores.select(scores.fold == fold) for fold in np.unique(scores.fold)]
    return np.asarray(np.mean([loss(part) for part in folds], axis=0))
