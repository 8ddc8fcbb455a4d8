"""What is made of held-out values: criteria to choose by, and the calibration that turns decisions
into probabilities.

Everything here is on the host and small: n rows, c classes, and a leading axis of m candidates
where there are many. Criteria are losses, lower is better, weighted by the rows' weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats

LOG_BETA_BOUNDS = (-10.0, 10.0)  # of the inverse temperature
NEWTON_STEPS = 60


@dataclass(frozen=True)
class HeldOutScores:
    """Held-out outputs of m candidates at k tested rows, and the truth.

    `predicted` (m, k, t) are targets, `decision` (m, k, c) class scores (None for regression),
    `separation` (m, c, c) half the squared distance between class centroids on the discriminant
    axes, or 2 where classes are coded ±1: in units of it, the margin of a row at its class centroid
    is one.
    """

    predicted: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    fold: np.ndarray
    decision: np.ndarray | None = None
    labels: np.ndarray | None = None
    separation: np.ndarray | None = None
    y: np.ndarray | None = None

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
        )

    def candidates(self, which: slice) -> HeldOutScores:
        """Some of the candidates at the same rows."""
        decision = None if self.decision is None else self.decision[which]
        separation = None if self.separation is None else self.separation[which]
        return replace(
            self, predicted=self.predicted[which], decision=decision, separation=separation
        )

    @property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Class scores and labels, where there are any."""
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
    """Mean squared error of the held-out targets (PRESS / n)."""
    return scores.mean(np.mean((scores.targets - scores.predicted) ** 2, axis=2))


def r2(scores: HeldOutScores) -> np.ndarray:
    """1 - R² of the held-out targets, averaged over targets."""
    w = scores.weights
    centre = w @ scores.targets / w.sum()
    total = w @ (scores.targets - centre) ** 2
    residual = np.einsum("k,mkt->mt", w, (scores.targets - scores.predicted) ** 2)
    return np.asarray(np.mean(residual / np.where(total > 0, total, 1.0), axis=1))


def margins(scores: HeldOutScores) -> tuple[np.ndarray, np.ndarray]:
    """Own class score less the best other one (m, k), and which class that was."""
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
            "criterion='auc' needs rows of both classes in every fold it is averaged over; pool "
            "the folds (pooled=True)."
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
    """Log-loss of the held-out class scores at their own best temperature."""
    decision, labels = scores.classes
    beta = inverse_temperatures(decision, labels, scores.weights)
    scaled = beta[:, None, None] * decision
    own = scaled[:, np.arange(len(labels)), labels]
    return scores.mean(scipy.special.logsumexp(scaled, axis=2) - own)


def brier(scores: HeldOutScores) -> np.ndarray:
    """Squared error of the held-out class probabilities at their own best temperature, summed over
    the classes.
    """
    decision, labels = scores.classes
    beta = inverse_temperatures(decision, labels, scores.weights)
    p = scipy.special.softmax(beta[:, None, None] * decision, axis=2)
    own = p[:, np.arange(len(labels)), labels]
    return scores.mean(np.sum(p**2, axis=2) - 2.0 * own + 1.0)


Criterion = Callable[[HeldOutScores], np.ndarray]
CLASSIFICATION = (
    "log_loss",
    "brier",
    "smoothed_error",
    "error",
    "balanced_error",
    "squared_error",
    "auc",
)
REGRESSION = ("squared_error", "r2")


def criterion_of(criterion: Any, compression: float, pooled: bool) -> Criterion:
    """The loss function behind a name or a user's callable(y, held-out output) -> score, higher
    better.
    """
    if callable(criterion):
        one = _user_criterion(criterion)
    elif criterion == "smoothed_error":
        one = lambda scores: smoothed_error(scores, compression)  # noqa: E731
    else:
        one = {
            f.__name__: f for f in (log_loss, brier, error, balanced_error, squared_error, auc, r2)
        }[criterion]
    return one if pooled else lambda scores: _mean_over_folds(one, scores)


def _user_criterion(function: Callable[[np.ndarray, np.ndarray], float]) -> Criterion:
    def losses(scores: HeldOutScores) -> np.ndarray:
        outputs = scores.predicted if scores.decision is None else scores.decision
        if scores.decision is not None and scores.decision.shape[2] == 2:
            outputs = outputs[:, :, 1] - outputs[:, :, 0]
        elif scores.decision is None and outputs.shape[2] == 1:
            outputs = outputs[:, :, 0]
        y = np.asarray(scores.y)
        return np.array([-float(function(y, output)) for output in outputs])

    return losses


def _mean_over_folds(criterion: Criterion, scores: HeldOutScores) -> np.ndarray:
    return np.asarray(
        np.mean(
            [criterion(scores.select(scores.fold == fold)) for fold in np.unique(scores.fold)],
            axis=0,
        )
    )


# ---- calibration ---------------------------------------------------------------------------------


def class_scores(decision: np.ndarray) -> np.ndarray:
    """Decisions as one column per class.

    Two-class decisions d become (0, d), whose softmax is the sigmoid of d.
    """
    if decision.ndim == 1:
        return np.column_stack([np.zeros_like(decision), decision])
    return decision


def soft_targets(labels: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Platt's targets (k, c): (N_j + 1)/(N_j + c) for the own class of size N_j, 1/(N_j + c) for
    the others.

    They keep the temperature finite where the held-out scores separate the classes perfectly.
    """
    sizes = np.bincount(labels, weights=weights, minlength=n_classes)
    other = 1.0 / (sizes[labels] + n_classes)
    targets = np.repeat(other[:, None], n_classes, axis=1)
    targets[np.arange(len(labels)), labels] = (sizes[labels] + 1.0) * other
    return targets


def inverse_temperatures(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For each of m candidates (m, k, c), the β that minimises the cross-entropy of softmax(β ·
    scores).

    The loss is convex in β; the root of its derivative, the mean over rows of Σ_j (p_j(β) -
    target_j) score_j, is found on log β for all candidates together by Newton's method inside a
    shrinking bracket. Scores that are worse than useless end at the lower bound.
    """
    targets = soft_targets(labels, weights, scores.shape[2]).T[:, None, :]
    weight = weights / weights.sum()
    centred = np.ascontiguousarray(
        np.moveaxis(scores, 2, 0)
    )  # classes lead: sums over few of them are then fast
    centred -= np.max(centred, axis=0)
    finite = np.where(
        np.isfinite(centred), centred, 0.0
    )  # a class that was absent: softmax gives it probability 0
    constant = np.sum(targets * finite, axis=0) @ weight
    lower, upper = (np.full(len(scores), bound) for bound in LOG_BETA_BOUNDS)
    log_beta = np.clip(-np.log(np.maximum(np.std(finite, axis=(0, 2)), 1e-300)), lower, upper)
    for _ in range(NEWTON_STEPS):
        p = np.exp(np.exp(log_beta)[:, None] * centred)
        p /= np.sum(p, axis=0)
        mean = np.sum(p * finite, axis=0)
        slope = mean @ weight - constant
        curvature = np.exp(log_beta) * ((np.sum(p * finite**2, axis=0) - mean**2) @ weight)
        upper, lower = np.where(slope > 0, log_beta, upper), np.where(slope > 0, lower, log_beta)
        with np.errstate(
            over="ignore"
        ):  # a step that long is outside the bracket, and halves it instead
            step = log_beta - slope / np.where(curvature > 0, curvature, 1.0)
        inside = (curvature > 0) & (step > lower) & (step < upper)
        before, log_beta = log_beta, np.where(inside, step, 0.5 * (lower + upper))
        if (
            np.max(np.abs(log_beta - before)) < 1e-12
        ):  # candidates that tie must not be told apart by what is left
            break
    return np.asarray(np.exp(log_beta))


@dataclass(frozen=True)
class Calibration:
    """Probabilities softmax(β s + b).

    Inverse temperature β and class offsets b (c,), zero for plain temperature scaling.
    """

    beta: float
    offsets: np.ndarray


def calibrate(
    decision: np.ndarray, labels: np.ndarray, weights: np.ndarray, *, offsets: bool
) -> Calibration:
    """Fit β, and with `offsets` one constant per class, to held-out decisions.

    Rows without finite own scores are left out.
    """
    scores = class_scores(decision)
    c = scores.shape[1]
    usable = (
        np.isfinite(scores[np.arange(len(labels)), labels])
        & ~np.isnan(scores).any(axis=1)
        & (weights > 0)
    )
    if not usable.any():
        return Calibration(1.0, np.zeros(c))
    scores, labels, weights = scores[usable], labels[usable], weights[usable]
    beta = float(_precise_inverse_temperature(scores, labels, weights))
    return (
        _with_offsets(beta, scores, labels, weights) if offsets else Calibration(beta, np.zeros(c))
    )


def _precise_inverse_temperature(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> float:
    """`inverse_temperatures` for one candidate, to full precision."""
    targets = soft_targets(labels, weights, scores.shape[1])
    finite = np.where(np.isfinite(scores), scores, 0.0)

    def slope(log_beta: float) -> float:
        p = scipy.special.softmax(np.exp(log_beta) * scores, axis=1)
        return float(np.sum((p - targets) * finite, axis=1) @ weights / weights.sum())

    lower, upper = LOG_BETA_BOUNDS
    if slope(lower) >= 0:
        return float(np.exp(lower))
    if slope(upper) <= 0:
        return float(np.exp(upper))
    return float(np.exp(scipy.optimize.brentq(slope, lower, upper, xtol=1e-14, rtol=1e-14)))


def _with_offsets(
    beta: float, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> Calibration:
    """Newton's method on the convex cross-entropy in (β, b_2 … b_c), b_1 = 0.

    Platt's sigmoid where there are two classes.
    """
    c = scores.shape[1]
    scale = max(float(np.std(scores[np.isfinite(scores)])), np.finfo(float).tiny)
    finite = np.where(np.isfinite(scores), scores, 0.0) / scale
    masked = np.where(np.isfinite(scores), 0.0, -np.inf)
    targets = soft_targets(labels, weights, c)
    design = np.zeros((len(labels), c, c))  # logits = design @ (β, b_2, …, b_c)
    design[:, :, 0] = finite
    design[:, np.arange(1, c), np.arange(1, c)] = 1.0
    w = weights / weights.sum()

    def loss(theta: np.ndarray) -> float:
        log_p = scipy.special.log_softmax(design @ theta + masked, axis=1)
        return float(-np.sum(np.where(np.isfinite(log_p), targets * log_p, 0.0), axis=1) @ w)

    theta = np.zeros(c)
    theta[0] = beta * scale
    for _ in range(100):
        p = scipy.special.softmax(design @ theta + masked, axis=1)
        gradient = np.einsum("k,kj,kjd->d", w, p - targets, design)
        mean = np.einsum("kj,kjd->kd", p, design)
        hessian = np.einsum("k,kj,kjd,kje->de", w, p, design, design) - np.einsum(
            "k,kd,ke->de", w, mean, mean
        )
        step = np.linalg.solve(hessian + 1e-12 * np.eye(c), gradient)
        size, before = 1.0, loss(theta)
        while loss(theta - size * step) > before and size > 1e-10:
            size *= 0.5
        theta = theta - size * step
        if np.max(np.abs(step)) < 1e-13 * (1.0 + np.max(np.abs(theta))):
            break
    beta = float(theta[0]) / scale
    if beta <= 0:  # scores worse than useless: the class shares remain
        shares = np.log(w @ targets)
        return Calibration(float(np.exp(LOG_BETA_BOUNDS[0])), shares - shares[0])
    return Calibration(beta, np.concatenate([[0.0], theta[1:]]))


def probabilities(decision: np.ndarray, beta: float) -> np.ndarray:
    """softmax(β · class scores), one column per class, rows summing to one."""
    scaled = beta * class_scores(decision)
    return np.asarray(scipy.special.softmax(scaled, axis=1))
