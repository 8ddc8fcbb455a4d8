"""Delays that stay inside their runs, and noise ceilings against simulated ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from fitonce.encoding import delayed, noise_ceiling


@pytest.mark.parametrize("delays", [(0,), (1, 3), (2, -1, 0), (9,)])
def test_delays_row_by_row(delays: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).standard_normal((11, 2))
    runs = np.array([3] * 4 + [1] * 5 + [2] * 2)
    found = delayed(X, delays, runs)
    for i in range(11):
        for number, delay in enumerate(delays):
            j = i - delay
            inside = 0 <= j < 11 and runs[j] == runs[i]
            expected = X[j] if inside else np.zeros(2)
            np.testing.assert_array_equal(found[i, 2 * number : 2 * number + 2], expected)


def test_a_run_is_the_same_alone() -> None:
    X = np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32)
    runs = np.repeat([0, 1], 6)
    both = delayed(X, runs=runs)
    assert both.dtype == np.float32
    np.testing.assert_array_equal(both[6:], delayed(X[6:]))


def test_refused_delays() -> None:
    X = np.ones((4, 1))
    with pytest.raises(ValueError, match="must be contiguous"):
        delayed(X, runs=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="one entry per row"):
        delayed(X, runs=[0, 1])
    with pytest.raises(ValueError, match="must be integers"):
        delayed(X, delays=[0.5])
    with pytest.raises(ValueError, match="two dimensions"):
        delayed(np.ones(4))


def test_ceiling_is_what_the_true_signal_scores() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([0.0, 0.3, 1.0, 2.0])
    signal = sizes * rng.standard_normal((4000, 4))
    repeats = signal + rng.standard_normal((3, 4000, 4)) + 5.0
    ceiling = noise_ceiling(repeats)
    mean = r2_score(repeats.mean(axis=0), signal + 5.0, multioutput="raw_values")
    one = r2_score(repeats[0], signal + 5.0, multioutput="raw_values")
    np.testing.assert_allclose(ceiling.r2, np.maximum(mean, 0), atol=0.03)
    np.testing.assert_allclose(ceiling.r2_single, np.maximum(one, 0), atol=0.03)
    np.testing.assert_allclose(ceiling.correlation**2, ceiling.r2)


def test_signal_and_noise_have_no_bias_in_few_rows() -> None:
    rng = np.random.default_rng(1)
    signal = rng.standard_normal((10, 6000))
    found = noise_ceiling(signal + 2.0 * rng.standard_normal((2, 10, 6000)))
    assert abs(found.signal.mean() - 1.0) < 0.06 and abs(found.noise.mean() - 4.0) < 0.1
    flat = noise_ceiling(np.ones((2, 5)))
    assert flat.r2 == 0.0 and flat.correlation == 0.0
    for wrong in (np.ones(3), np.ones((1, 3)), np.full((2, 3), np.nan)):
        with pytest.raises(ValueError, match="repeats"):
            noise_ceiling(wrong)
