"""Predictions at an alpha far below the largest eigenvalue, against the normal equations."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from fitonce import KernelRidge


@pytest.mark.parametrize("share", [1e-7, 5e-9])
def test_small_dual_coefficients_are_kept(share):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(150, 1)), rng.normal(size=(40, 1))
    y = rng.normal(size=150)
    K = rbf_kernel(X, X, 2.0)
    largest = np.linalg.eigvalsh(K)[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidge(share * largest, gamma=2.0, fit_intercept=False).fit(X, y)
    expected = rbf_kernel(new, X, 2.0) @ np.linalg.solve(K + share * largest * np.eye(150), y)
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-6 * np.abs(expected).max())
