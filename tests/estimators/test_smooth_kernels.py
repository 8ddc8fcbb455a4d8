"""Very smooth kernels, whose entries are all close to one, against refits in 60 digits."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest

from fitonce import KernelRidge, NumericalWarning

ALPHAS = (1e-1, 1e-4, 1e-7)  # of the largest eigenvalue of the centred kernel


def data(n=16):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def largest(X, gamma):
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.expm1(-gamma * squared)
    K = K - K.mean(axis=0)
    return np.linalg.eigvalsh(K - K.mean(axis=1, keepdims=True))[-1]


def exact(X, y, weights, points, gamma, alpha, penalty, tested, kernel="rbf"):
    """Σ w (y - Σα k - b)² + alpha times αᵀα, over weights for the kernel of a row, or αᵀKα."""
    with mp.workdps(80):
        rows = [[mp.mpf(float(v)) for v in row] for row in X]
        points = [[mp.mpf(float(v)) for v in row] for row in points]

        def k(a, b):
            steps = [abs(u - v) for u, v in zip(a, b, strict=True)]
            squared = sum(step**2 for step in steps)
            if kernel == "matern52":
                u = mp.sqrt(5 * squared) * mp.mpf(gamma)
                return (1 + u + u**2 / 3) * mp.exp(-u)
            sizes = {"rbf": squared, "exponential": mp.sqrt(squared), "laplacian": sum(steps)}
            return mp.exp(-mp.mpf(gamma) * sizes[kernel])

        m = len(points)
        Z = mp.matrix([[k(row, point) for point in points] + [1] for row in rows])
        W = mp.diag([mp.mpf(float(w)) for w in weights])
        A = Z.T * W * Z
        for i in range(m):
            for j in range(m):
                part = k(points[i], points[j])
                if penalty == "dual":
                    part = 1 / mp.mpf(float(weights[i])) if i == j else 0
                A[i, j] += alpha * part
        model = mp.lu_solve(A, Z.T * W * mp.matrix([mp.mpf(float(v)) for v in y]))
        tested = [[mp.mpf(float(v)) for v in row] for row in tested]
        values = [sum(k(t, p) * model[j] for j, p in enumerate(points)) + model[m] for t in tested]
        return np.array([float(value) for value in values])


@pytest.mark.pairwise
@pytest.mark.parametrize("gamma", [1e-4, 1e-8])
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("weighted", [False, True])
def test_models_of_all_rows(gamma, penalty, weighted):
    X, y, weights = data()
    weights = weights if weighted else np.ones(len(y))
    for share in ALPHAS:
        alpha = share * largest(X, gamma) ** (2 if penalty == "dual" else 1)
        model = KernelRidge(alpha, gamma=gamma, penalty=penalty).fit(X, y, weights)
        settings = gamma, alpha, penalty
        size, tolerance = np.abs(y).max(), max(1e-8, model.verify(1).tolerance)
        found = model.predict(X[:2])
        expected = exact(X, y, weights, X, *settings, X[:2])
        np.testing.assert_allclose(found, expected, atol=tolerance * size)
        rest = np.arange(len(y)) != 3
        expected = exact(X[rest], y[rest], weights[rest], X[rest], *settings, X[3:4])
        np.testing.assert_allclose(model.held_out_prediction_[3], expected[0], atol=1e-8 * size)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential", "matern52"])
def test_kernels_of_distances(kernel):
    X, y, _ = data(20)
    model = KernelRidge(1e-9, kernel=kernel, gamma=1e-9).fit(X, y)
    new, settings = X[:4] + 0.1, (1e-9, 1e-9, "function")
    expected = exact(X, y, np.ones(20), X, *settings, new, kernel)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-7)
    assert model.verify(3).max_deviation < 1e-7


def test_directions_of_landmarks_that_rounding_hides_are_told():
    X, y, _ = data()
    gamma, ones = 1e-6, np.ones(len(y))
    for share in ALPHAS:
        alpha = share * largest(X, gamma)
        model = KernelRidge(alpha, gamma=gamma, landmarks=X[::2])
        expected = exact(X, y, ones, X[::2], gamma, alpha, "function", X[:3])
        if share > 1e-3:
            error = np.abs(model.fit(X, y).predict(X[:3]) - expected).max()
            assert error < 1e-4 * np.abs(y).max()
        else:
            with pytest.warns(NumericalWarning, match="kernel of the landmarks is so smooth"):
                model.fit(X, y)


def test_weighted_landmarks_of_the_dual_norm_are_told_to_be_another_model():
    X, y, weights = data()
    exact_model = KernelRidge(0.3, gamma=0.5, penalty="dual").fit(X, y, weights).predict(X)
    landmarks = KernelRidge(0.3, gamma=0.5, penalty="dual", landmarks=len(y))
    with pytest.warns(UserWarning, match="these are different models"):
        found = landmarks.fit(X, y, weights).predict(X)
    assert np.abs(found - exact_model).max() > 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = landmarks.fit(X, y, np.ones(len(y))).predict(X)
        function = KernelRidge(0.3, gamma=0.5, landmarks=len(y)).fit(X, y, weights).predict(X)
    alike = KernelRidge(0.3, gamma=0.5, penalty="dual").fit(X, y).predict(X)
    np.testing.assert_allclose(same, alike, atol=1e-8)
    expected = KernelRidge(0.3, gamma=0.5).fit(X, y, weights).predict(X)
    np.testing.assert_allclose(function, expected, atol=1e-6)
