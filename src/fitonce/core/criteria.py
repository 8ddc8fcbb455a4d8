"""Criteria for tuning: losses of held-out outputs.

Everything here is small and on the host: n rows, c classes, and a leading axis for m candidates if
there are several. Criteria are losses (lower is better), weighted by the weights of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.special

from .arrays import asarray_like, namespace, to_numpy
from .calibration import inverse_temperatures, least_probability, mixed

AS_MANY_ROWS = 50.0  # that the squared error counts for beside the log-loss


@dataclass(frozen=True)
class HeldOutScores:
    """Held-out outputs of m candidates at k tested rows, and the truth.

    `predicted` (m, k, t) are targets (on the host or, for the criteria named in `ANYWHERE`, on the
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

    def __len__(self) -> int:
        """The number of candidates."""
        return int(self.predicted.shape[0])

    def output(self, j: int) -> np.ndarray:
        """The output of the model of candidate j, in the shape of scikit-learn's estimators."""
        output = self.predicted[j] if self.decision is None else self.decision[j]
        if self.decision is not None and output.shape[1] == 2:
            return np.asarray(output[:, 1] - output[:, 0])
        return np.asarray(output[:, 0] if output.shape[1] == 1 else output)

    @property
    def inverse_temperatures(self) -> np.ndarray:
        """The best β (m,) of every candidate."""
        decision, labels = self.classes
        return inverse_temperatures(decision, labels, self.weights)

    def probabilities(self) -> np.ndarray:
        """Class probabilities (m, k, c) of every candidate, at its own best temperature."""
        decision, _ = self.classes
        p = scipy.special.softmax(self.inverse_temperatures[:, None, None] * decision, axis=2)
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


def squared_error(scores: HeldOutScores) -> np.ndarray:
    """Mean squared error of the held-out targets (PRESS / n), on the device of the predictions."""
    predicted, xp = scores.predicted, namespace(scores.predicted)
    squares = xp.mean((asarray_like(scores.targets, predicted) - predicted) ** 2, axis=2)
    w = asarray_like(scores.weights / scores.weights.sum(), predicted)
    return to_numpy(squares @ w)


def r2(scores: HeldOutScores) -> np.ndarray:
    """1 - R² of the held-out targets, averaged over targets."""
    w = scores.weights
    centre = w @ scores.targets / w.sum()
    total = w @ (scores.targets - centre) ** 2
    residual = np.einsum("k,mkt->mt", w, (scores.targets - scores.predicted) ** 2)
    return np.asarray(np.mean(residual / np.where(total > 0, total, 1.0), axis=1))


def correlation(scores: HeldOutScores) -> np.ndarray:
    """1 - r of the held-out targets, averaged over targets; r is 0 of what does not vary."""
    weights = scores.weights[None, :, None]
    parts = (scores.predicted, scores.targets[None, ...])
    p, y = (part - np.sum(weights * part, axis=1, keepdims=True) / weights.sum() for part in parts)
    spread = np.sum(weights * p**2, axis=1) * np.sum(weights * y**2, axis=1)
    together = np.sum(weights * p * y, axis=1)
    root = np.sqrt(np.where(spread > 0, spread, 1.0))
    return np.asarray(1.0 - np.mean(np.where(spread > 0, together / root, 0.0), axis=1))


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
    own = scipy.special.expit(scores.inverse_temperatures[:, None] * margins(scores)[0])
    floor = least_probability(scores.weights, 2)
    return scores.mean(-np.log(floor + (1.0 - 2.0 * floor) * own))


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

    Where rows are few, probabilities can be next to perfect by chance at an extreme candidate; the
    squared error, which has no temperature to fit, objects. Where they are many, the squared error
    shies away from strong regularisation, since it shrinks predictions; the log-loss does not.
    """
    _, labels = scores.classes
    total = float(scores.weights.sum())
    w = scores.weights / total
    spread = float(np.mean(w @ (scores.targets - w @ scores.targets) ** 2))
    entropy = float(np.sum(scipy.special.entr(np.bincount(labels, weights=w))))
    if len(np.unique(labels)) < 2:  # a fold of one class, whose frequencies leave no error
        spread = entropy = 1.0
    summed = total * log_loss(scores) / entropy + AS_MANY_ROWS * squared_error(scores) / spread
    return np.asarray(summed / (total + AS_MANY_ROWS))


Loss = Callable[[HeldOutScores], np.ndarray]
LOSSES: dict[str, Loss] = {
    loss.__name__: loss
    for loss in (log_loss, brier, error, balanced_error, squared_error, auc, r2, correlation)
} | {"squared_error+log_loss": squared_error_and_log_loss}
NUMBERS_ONLY = ("r2", "correlation")
CLASSIFICATION = (*(name for name in LOSSES if name not in NUMBERS_ONLY), "smoothed_error")
ANYWHERE = ("squared_error",)  # that are computed on the device of the predictions
OF_THE_FIT = ("gcv", "loo_log_density", "marginal_likelihood")  # see `likelihood`
REGRESSION = ("squared_error", *NUMBERS_ONLY, *OF_THE_FIT)


def mean_over_folds(loss: Loss, scores: HeldOutScores) -> np.ndarray:
    """The loss of every split on its own, averaged."""
    folds = [scores.select(scores.fold == fold) for fold in np.unique(scores.fold)]
    return np.asarray(np.mean([loss(part) for part in folds], axis=0))
