"""Softmax regression on discriminant axes, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fitonce.core.softmax import LinearScores, softmax_regression


@pytest.mark.parametrize(("c", "q"), [(2, 1), (3, 2), (5, 4)])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_from_equal_scores_it_is_scikit_learns_regression(c: int, q: int, C: float) -> None:
    random = np.random.default_rng(c)
    Z, codes = random.normal(size=(70, q)), random.integers(0, c, 70)
    Z[codes == 0] += 1.0
    weights = random.uniform(0.5, 2.0, 70)
    theta = softmax_regression(Z, codes, weights, np.zeros((70, c)), C)
    # of two classes scikit-learn has one vector w, the difference of ours: ‖w‖²/2 = ‖W‖²
    theirs = LogisticRegression(C=C if c > 2 else 2.0 * C, tol=1e-12, max_iter=5000)
    theirs.fit(Z, codes, weights)
    logits = np.column_stack([Z, np.ones(70)]) @ theta
    expected = theirs.decision_function(Z)
    found = logits[:, 1] - logits[:, 0] if c == 2 else logits - logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_it_starts_from_the_scores_given() -> None:
    """Where these are right already, and C is small, nothing is added; a class without rows stays
    where it was.
    """
    random = np.random.default_rng(0)
    Z, start = random.normal(size=(50, 2)), random.normal(size=(50, 4))
    codes = random.integers(0, 3, 50)
    theta = softmax_regression(Z, codes, np.ones(50), start, 1e-9)
    np.testing.assert_allclose(theta[:-1], 0.0, atol=1e-6)
    assert abs(theta[-1, 3]) < 1e-3
    np.testing.assert_allclose(theta[-1].sum(), 0.0, atol=1e-9)


@pytest.mark.parametrize("c", [2, 4])
def test_scores_and_projections_are_affine_in_each_other(c: int) -> None:
    random = np.random.default_rng(1)
    M, priors, Z = (
        random.normal(size=(c, c - 1)),
        np.full(c, 1.0 / c),
        random.normal(size=(9, c - 1)),
    )
    scores = LinearScores.of(M, priors)
    d = Z @ M.T + np.log(priors) - 0.5 * np.sum(M**2, axis=1) + random.normal(size=(9, 1))
    np.testing.assert_allclose(scores.projections(d), Z)
    theta = random.normal(size=(c, c))
    W, b = scores.corrected(0.7, theta)
    np.testing.assert_allclose(d @ W + b, 0.7 * d + Z @ theta[:-1] + theta[-1])
