"""The gradient of the held-out error in weights, widths and mu, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone

from fitonce import KernelRidge, KernelSum
from fitonce.core.inverse import Inverse
from fitonce.estimators.setup import folds_of, setup_of
from fitonce.tuning.gradient import fold_gradient
from fitonce.tuning.weights import SumSearch


def objective(weights: Any, cv: Any, fit_intercept: Any, weighted: bool) -> tuple[Any, Any]:
    n, rng = 30, np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    Y = np.sin(X[:, :2]) + X[:, 3:5] + 0.3 * rng.standard_normal((n, 2))
    parts = [("a", "rbf", slice(0, 3)), ("b", "linear", [3, 4]), ("c", "matern32", [5])]
    kernel = KernelSum(parts, weights)
    model = KernelRidge(kernel=kernel, cv=cv, fit_intercept=fit_intercept)
    setup = setup_of(clone(model), X, Y, rng.uniform(0.5, 2.0, n) if weighted else None)
    tuner = setup.tuner(folds_of(cv, setup.training, classifier=False))

    def attempt(several: Any, **how: Any) -> Any:
        return [tuner.judged([tuner.candidates(one)])[0] for one in several]

    work = SumSearch(attempt, tuner)
    start = work.starts()[0]
    return work.objective(start), start


@pytest.mark.parametrize("weights", ["tune", [1.0, 0.5, 0.2]])
@pytest.mark.parametrize(
    ("cv", "fit_intercept", "weighted"),
    [(None, True, False), (None, False, True), (4, True, True), (3, "penalized", False)],
)
def test_gradient(weights: Any, cv: Any, fit_intercept: Any, weighted: bool) -> None:
    work, start = objective(weights, cv, fit_intercept, weighted)
    x = work.start + np.random.default_rng(1).uniform(-0.5, 0.5, len(work.start))
    expected = approx_fprime(x, lambda at: work(at)[0], 1e-6)
    np.testing.assert_allclose(work(x)[1], expected, rtol=2e-4, atol=1e-6)
    # and its value is what the criterion says
    np.testing.assert_allclose(work(work.start)[0], start.loss, rtol=1e-8)


def test_overlapping_test_sets_and_rows_that_are_not_tested() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    deletions = [(np.array([0, 3, 5]), np.array([1])), (np.array([3, 4]), np.array([0, 1]))]
    L = rng.standard_normal((12, 12))
    direction = L + L.T
    Q0 = np.full((12, 1), 12**-0.5)

    def at(step: float) -> tuple[float, np.ndarray]:
        K = X @ X.T + np.eye(12) + step * direction
        return fold_gradient(Inverse.of(K, Q0, 0.7), Y, deletions)

    slope = (at(1e-6)[0] - at(-1e-6)[0]) / 2e-6
    np.testing.assert_allclose(np.sum(at(0.0)[1] * direction), slope, rtol=1e-6)
    literal = 0.0  # the value, by solving without the deleted rows
    for deleted, tested in deletions:
        train = np.setdiff1d(np.arange(12), deleted)
        K = X @ X.T + np.eye(12)
        ones, m = np.ones((len(train), 1)), len(train)
        A = K[np.ix_(train, train)] + 0.7 * np.eye(m)
        A = np.block([[A, ones], [ones.T, np.zeros((1, 1))]])
        coef = np.linalg.solve(A, np.vstack([Y[train], np.zeros((1, 2))]))
        rows = deleted[tested]
        literal += np.sum((Y[rows] - K[np.ix_(rows, train)] @ coef[:-1] - coef[-1]) ** 2)
    np.testing.assert_allclose(at(0.0)[0], literal, rtol=1e-9)


def test_leave_one_out_is_deletion_of_every_row() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((15, 3)), rng.standard_normal((15, 2))
    smoother = Inverse.of(X @ X.T + np.eye(15), np.full((15, 1), 15**-0.5), 0.7)
    value, slope = fold_gradient(smoother, Y, None)
    each = [(np.array([i]), np.array([0])) for i in range(15)]
    expected, slopes = fold_gradient(smoother, Y, each)
    np.testing.assert_allclose(slope, slopes, rtol=1e-9, atol=1e-12)
    M = smoother.M
    np.testing.assert_allclose(value, np.sum((M @ Y / np.diag(M)[:, None]) ** 2))
    np.testing.assert_allclose(value, expected)
