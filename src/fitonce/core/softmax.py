"""Softmax regression on discriminant axes, in place of the LDA rule.

The LDA rule takes the centroids of the training rows and one covariance for all classes. Rows that
are held out lie elsewhere, and a class between others, of which least squares makes little, is
spread otherwise than they are. A softmax regression on held-out projections z,

    p_j(z) ∝ exp(β d_j(z) + z·w_j + b_j),        min Σ_i v_i (-log p_{y_i}(z_i)) + ‖W‖²/(2C),

looks at where they are. It starts from the LDA scores d at their temperature 1/β, and the
penalty holds it there unless the rows say otherwise: many classes and few rows would else be more
freedom than they can fill. The LDA scores are affine in z, d = z Mᵀ + const with the class
centroids M, so that the new scores are affine in the old ones, and the model keeps its form.

Everything here is on the host and small: n rows, c classes, q axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

STRENGTH = 0.1  # C; axes are in units of the within-class standard deviation
STEPS = 100  # of Newton's method, which needs about ten


def softmax_regression(
    Z: np.ndarray, codes: np.ndarray, weights: np.ndarray, start: np.ndarray, C: float = STRENGTH
) -> np.ndarray:
    """Coefficients (q + 1, c) of z and, last, of the constant, that are added to the scores `start`
    (n, c); the constants add up to zero.

    By Newton's method with halved steps: the loss is convex, and strictly so but for a common
    constant, which is held at zero. Classes without rows stay where they start. Cost: O(n (qc)²) a
    step.
    """
    (n, q), n_classes = Z.shape, start.shape[1]
    design, root = np.column_stack([Z, np.ones(n)]), np.sqrt(weights)
    truth = np.zeros((n, n_classes))
    truth[np.arange(n), codes] = 1.0
    ridge = np.repeat(np.append(np.full(q, 1.0 / C), 0.0), n_classes)
    common = np.kron(np.eye(q + 1)[-1:], np.ones((1, n_classes)))  # the sum of the constants
    theta = np.zeros((q + 1, n_classes))
    fixed = start + np.where(truth.any(axis=0), 0.0, -np.inf)

    def loss(theta: np.ndarray) -> float:
        log_p = scipy.special.log_softmax(design @ theta + fixed, axis=1)
        own = log_p[np.arange(n), codes]
        return float(-weights @ own + 0.5 * ridge @ theta.ravel() ** 2)

    for _ in range(STEPS):
        p = scipy.special.softmax(design @ theta + fixed, axis=1)
        gradient = (design.T @ (weights[:, None] * (p - truth))).ravel() + ridge * theta.ravel()
        both = (design[:, :, None] * (root[:, None] * p)[:, None, :]).reshape(n, -1)
        hessian = -(both.T @ both).reshape(q + 1, n_classes, q + 1, n_classes)
        for j in range(n_classes):
            hessian[:, j, :, j] += design.T @ ((weights * p[:, j])[:, None] * design)
        system = hessian.reshape(len(ridge), -1) + np.diag(ridge + 1e-10) + common.T @ common
        step = np.linalg.solve(system, gradient).reshape(theta.shape)
        size, before = 1.0, loss(theta)
        while loss(theta - size * step) > before and size > 1e-10:
            size *= 0.5
        theta = theta - size * step
        if np.max(np.abs(step)) < 1e-10 * (1.0 + np.max(np.abs(theta))):
            break
    return theta


@dataclass(frozen=True)
class LinearScores:
    """LDA scores d = z Mᵀ + constant of projections z, for class centroids M (c, q).

    Both minus their mean over the classes: scores count up to a number common to all classes, and
    what is left of them tells z.
    """

    centroids: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, centroids: np.ndarray, priors: np.ndarray) -> LinearScores:
        """z·m_j - ½‖m_j‖² + log π_j."""
        constant = np.log(priors) - 0.5 * np.sum(centroids**2, axis=1)
        return cls(centroids - np.mean(centroids, axis=0), constant - np.mean(constant))

    def projections(self, scores: np.ndarray) -> np.ndarray:
        """z (n, q) of scores (n, c)."""
        return np.asarray((scores - self.constant) @ np.linalg.pinv(self.centroids.T))

    def corrected(self, beta: float, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (c, c) and offsets (c,) that turn the scores d into β d + z·W + b."""
        change = np.linalg.pinv(self.centroids.T) @ theta[:-1]
        weights = beta * np.eye(len(self.constant)) + change
        return weights, theta[-1] - self.constant @ change
