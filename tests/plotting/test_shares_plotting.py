"""Displays of shares of kernels: what they draw and refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fitonce import KernelRidge, KernelSum, kernel_shares

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from fitonce.plotting import KernelSharesDisplay, ShareMapDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def closed_figures() -> Any:
    yield
    plt.close("all")


def model(n_targets: int) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    Y = X[:, :2] @ rng.standard_normal((2, n_targets)) + rng.standard_normal((30, n_targets))
    kernel = KernelSum([("a$", "linear", [0, 1]), ("b", "rbf", [2, 3])], [1, 1], gamma=0.2)
    return KernelRidge(1.0, kernel=kernel).fit(X, Y[:, 0] if n_targets == 1 else Y)


@pytest.mark.parametrize("n_targets", [1, 6])
def test_bars_are_mean_shares(n_targets: int) -> None:
    fitted = model(n_targets)
    display = KernelSharesDisplay.from_estimator(fitted)
    shares = kernel_shares(fitted)
    lengths = [bar.get_width() for bar in display.ax_.patches]
    expected = [table.reshape(2, -1).mean(axis=1) for table in (shares.product, shares.unique)]
    np.testing.assert_allclose(lengths, np.concatenate(expected))
    alone = KernelSharesDisplay.from_shares(kernel_shares(fitted, unique=False))
    assert len(alone.ax_.patches) == 2


def test_maps_put_every_target_in_its_place() -> None:
    shares = kernel_shares(model(6))
    grid = ShareMapDisplay.from_shares(shares, (2, 3), limit=0.5)
    np.testing.assert_array_equal(
        grid.axes_[1].images[0].get_array(), shares.product[1].reshape(2, 3)
    )
    places = np.random.default_rng(0).random((6, 2))
    dots = ShareMapDisplay.from_shares(shares, places, measure="unique").axes_[0].collections[0]
    np.testing.assert_array_equal(dots.get_offsets(), places)
    np.testing.assert_array_equal(dots.get_array(), shares.unique[0])
    with pytest.raises(ValueError, match="places must be"):
        ShareMapDisplay.from_shares(shares, (2, 2))
    with pytest.raises(ValueError, match="measure must be"):
        ShareMapDisplay.from_shares(shares, (2, 3), measure="sum")
    with pytest.raises(ValueError, match="several targets"):
        ShareMapDisplay.from_shares(kernel_shares(model(1)), (1, 1))
