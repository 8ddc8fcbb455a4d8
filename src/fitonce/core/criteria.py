"""What is made of held-out values: squared error, and the temperature that turns decisions into probabilities."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.special

LOG_TEMPERATURE_BOUNDS = (-10.0, 10.0)


def class_scores(decision: np.ndarray) -> np.ndarray:
    """Decisions as one column per class: two-class decisions d become (0, d), whose softmax is the sigmoid of d."""
    if decision.ndim == 1:
        return np.column_stack([np.zeros_like(decision), decision])
    return decision


def inverse_temperature(decision: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> float:
    """The β that minimises the log-loss of softmax(β · held-out class scores), labels being column numbers.

    The loss is convex in β, so its derivative, the mean of E_β[score] - own score, has one root; it is found to
    full precision on log β. Data that the scores separate perfectly have no root: β then stops at the bound e^10,
    and scores worse than useless at e^-10. Rows with no finite score for their own class are left out.
    """
    scores = class_scores(decision)
    own = scores[np.arange(len(labels)), labels]
    usable = np.isfinite(own) & ~np.isnan(scores).any(axis=1)
    if not usable.any():
        return 1.0
    scores, own = scores[usable], own[usable]
    weight = np.ones(len(own)) if weights is None else weights[usable]
    floored = np.where(np.isfinite(scores), scores, 0.0)  # softmax gives such columns probability 0

    def slope(log_beta: float) -> float:
        expected = np.sum(probabilities(scores, np.exp(log_beta)) * floored, axis=1)
        return float(np.sum(weight * (expected - own)) / np.sum(weight))

    lower, upper = LOG_TEMPERATURE_BOUNDS
    if slope(lower) >= 0:
        return float(np.exp(lower))
    if slope(upper) <= 0:
        return float(np.exp(upper))
    return float(np.exp(scipy.optimize.brentq(slope, lower, upper, xtol=1e-14, rtol=1e-14)))


def probabilities(decision: np.ndarray, beta: float) -> np.ndarray:
    """softmax(β · class scores), one column per class, rows summing to one."""
    scaled = beta * class_scores(decision)
    return np.asarray(scipy.special.softmax(scaled, axis=1))
