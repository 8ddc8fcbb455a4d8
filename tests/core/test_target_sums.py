"""Losses of numbers from sums that add up over splits, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from fitonce.core.criteria import target_sums

OFFSETS = np.array([0.0, 1e6, -3.0])


def literal(name: str, y: np.ndarray, predicted: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The loss of every target, written out."""
    error = w @ (y - predicted) ** 2
    apart, other = (z - np.average(z, axis=0, weights=w) for z in (y, predicted))
    if name == "squared_error":
        return np.asarray(error / w.sum())
    if name == "r2":
        return np.asarray(error / (w @ apart**2))
    return np.asarray(1.0 - (w @ (apart * other)) / np.sqrt((w @ apart**2) * (w @ other**2)))


@pytest.mark.parametrize("name", ["squared_error", "r2", "correlation"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_splits_add_up_to_those_of_all_rows(name: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(17, 3)) + OFFSETS
    predicted = y + rng.normal(size=(4, 17, 3))
    w = rng.uniform(0.3, 3.0, 17) if weighted else np.ones(17)
    parts = [
        target_sums(predicted[:, rows], y[rows], w[rows] if weighted else None, correlation=True)
        for rows in (np.arange(3), np.arange(3, 4), np.arange(4, 17))
    ]
    expected = [literal(name, y, candidate, w) for candidate in predicted]
    np.testing.assert_allclose((parts[0] + parts[1] + parts[2]).loss(name), expected, rtol=1e-7)


@pytest.mark.parametrize("rows", [1, 7])
def test_targets_that_do_not_vary_have_no_spread_whatever_the_weights(rows: int) -> None:
    rng = np.random.default_rng(1)
    w, y = rng.uniform(0.3, 3.0, rows), np.broadcast_to(rng.normal(size=(1, 50)), (rows, 50)) * 1.0
    predicted = y + rng.normal(size=(2, rows, 50))
    found = target_sums(predicted, y, w, correlation=True)
    np.testing.assert_allclose(found.loss("r2"), found.error, rtol=1e-12)
    np.testing.assert_array_equal(found.loss("correlation"), 1.0)
