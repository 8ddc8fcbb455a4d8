"""A fit keeps to its memory budget: at most four n×n matrices beside the data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC, cross_val_predict

N = 1200


def matrices_at_peak(task) -> float:
    """Peak of what NumPy allocates during the task, in n×n float64 matrices."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / (8 * N * N)
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    return rng.normal(size=(N, 5)) + 0.5 * y[:, None], y


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, LeastSquaresSVC])
def test_a_fit_needs_at_most_four_matrices(estimator, penalty, data):
    model = estimator(gamma=0.1, alpha=2.0 ** np.arange(-10, 11), penalty=penalty)
    assert 1.0 < matrices_at_peak(lambda: model.fit(*data)) <= 4.0


def test_cross_validation_at_fixed_parameters_needs_less(data):
    model = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    assert 1.0 < matrices_at_peak(lambda: cross_val_predict(model, *data, cv=10)) <= 3.0


def test_the_measure_sees_a_matrix_too_many():
    assert matrices_at_peak(lambda: [np.ones((N, N)) for _ in range(5)]) > 4.0
