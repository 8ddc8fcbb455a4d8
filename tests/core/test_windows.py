"""Expanding windows: the models of the first rows against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from fitonce.core.arrays import NotPositiveDefiniteError
from fitonce.core.spectrum import orthonormal
from fitonce.core.windows import WindowFactor


def problem(n=24, seed=0, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[5] = X[2]  # a repeated row
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    s = np.sqrt(rng.uniform(0.2, 3.0, size=(n, 1))) if weights else np.ones((n, 1))
    return s * K * s.T, s, rng.normal(size=(n, 2))


def refit(K, S, Y, mu, a):
    """Fitted values of all rows by the model of the first a: the bordered system."""
    u = S.shape[1]
    system = np.block([[K[:a, :a] + mu * np.eye(a), S[:a]], [S[:a].T, np.zeros((u, u))]])
    solution = np.linalg.solve(system, np.vstack([Y[:a], np.zeros((u, Y.shape[1]))]))
    return K[:, :a] @ solution[:a] + S @ solution[a:]


@pytest.mark.parametrize("mu", [1e-4, 0.5, 100.0])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_every_window_is_a_refit(mu, bias, weights):
    K, s, Y = problem(weights=weights)
    S = s if bias else s[:, :0]
    factor = WindowFactor.of_kernel(K.copy(), orthonormal(S) if bias else S, mu)
    w = factor.project(Y)
    for a in range(1, len(K)):
        window, expected = factor.window(w, a), refit(K, S, Y, mu, a)
        later = np.arange(a, len(K))
        np.testing.assert_allclose(window.values(later), expected[a:], atol=1e-10)
        residual = Y[:a] - expected[:a]
        np.testing.assert_allclose(window.residuals(), residual, atol=1e-10)
        scatter = Y[:a].T @ residual
        np.testing.assert_allclose(window.residual_scatter(), scatter, atol=1e-10)


def test_one_step_ahead_without_a_bias_is_the_innovation():
    K, _, Y = problem()
    factor = WindowFactor.of_kernel(K.copy(), K[:, :0], 0.3)
    w = factor.project(Y)
    for i in range(1, len(K)):
        error = Y[i] - factor.window(w, i).values(np.array([i]))[0]
        np.testing.assert_allclose(error, w[i] * factor.L[i, i], atol=1e-12)


def test_an_indefinite_kernel_is_refused():
    K, s, _ = problem()
    with pytest.raises(NotPositiveDefiniteError):
        WindowFactor.of_kernel(-K, s[:, :0], 0.1)
