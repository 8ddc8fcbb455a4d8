"""Bars: members of a committee, shares of kernels, differences between models.

Weights and activation patterns are in test_plotting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from fitonce import (
    KernelCommitteeClassifier,
    KernelFisherDiscriminant,
    KernelRidge,
    KernelSum,
    LeastSquaresSVC,
    column_importance,
    compare,
    kernel_shares,
)
from problems import labelled_rows

matplotlib = pytest.importorskip("matplotlib")

from fitonce.plotting import BarDisplay  # noqa: E402
from fitonce.plotting.style import COLORS, QUIET  # noqa: E402


def lengths(display: Any) -> np.ndarray:
    return np.array([bar.get_width() for bar in display.ax_.patches])


def tick_labels(display: Any) -> list[str]:
    return [label.get_text() for label in display.ax_.get_yticklabels()]


@pytest.mark.parametrize("n_targets", [1, 6])
def test_shares_are_means_over_targets(n_targets: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    Y = X[:, :2] @ rng.standard_normal((2, n_targets)) + rng.standard_normal((30, n_targets))
    kernel = KernelSum([("a$", "linear", [0, 1]), ("b", "rbf", [2, 3])], [1, 1], gamma=0.2)
    given = KernelRidge(1.0, kernel=kernel), X, Y[:, 0] if n_targets == 1 else Y
    shares = kernel_shares(*given)
    display = BarDisplay.from_shares(shares)
    expected = [table.reshape(2, -1).mean(axis=1) for table in (shares.product, shares.unique)]
    np.testing.assert_allclose(lengths(display), np.concatenate(expected))
    assert tick_labels(display) == [r"a\$", "b"]
    dots = [line for line in display.ax_.lines if line.get_marker() == "."]
    assert len(dots) == (6 if n_targets == 6 else 0)
    for number, line in enumerate(dots):
        np.testing.assert_array_equal(line.get_xdata(), shares.product[:, number])
    assert len(lengths(BarDisplay.from_shares(kernel_shares(*given, unique=False)))) == 2


def test_members_of_a_committee() -> None:
    members = [KernelFisherDiscriminant(gamma=0.2), KernelFisherDiscriminant("linear")]
    committee = KernelCommitteeClassifier(members).fit(*load_iris(return_X_y=True))
    display = BarDisplay.from_estimator(committee)
    np.testing.assert_array_equal(lengths(display), committee.weights_)
    assert [text.get_text() for text in display.ax_.texts] == [
        f"{weight:.0%}" for weight in committee.weights_
    ]
    one = BarDisplay.from_estimator(committee, n_shown=1)
    assert len(lengths(one)) == 1 and one.ax_.get_ylabel() == "1 of 2"


def test_differences_have_their_intervals_and_colors() -> None:
    X, y = labelled_rows(40)
    models = {"good": LeastSquaresSVC(alpha=0.1, gamma=0.3), "bad": LeastSquaresSVC(alpha=1e9)}
    other = {"$worse": LeastSquaresSVC(alpha=0.1, gamma=1e3)}
    result = compare(models, other, X, y, cv=5, repeats=2)
    display = BarDisplay.from_comparison(result)
    ends = [segment[:, 0] for segment in display.ax_.collections[0].get_segments()]
    np.testing.assert_array_equal(ends, [(one.low, one.high) for one in result.differences])
    np.testing.assert_array_equal(lengths(display), [one.value for one in result.differences])
    clear = [one.low > 0 or one.high < 0 for one in result.differences]
    colors = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in display.ax_.patches]
    assert colors == [COLORS[0].lower() if found else QUIET for found in clear]
    assert tick_labels(display) == ["good - bad", r"good - \$worse", r"bad - \$worse"]
    assert "accuracy" in display.ax_.get_xlabel()


def test_the_importance_of_columns_is_ordered_and_colored_by_corrected_p_values() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    y = X[:, 2] + 0.4 * X[:, 0] + rng.standard_normal(60)
    found = column_importance(KernelRidge(kernel="linear", alpha=1.0).fit(X, y), X, y)
    display = BarDisplay.from_importance(found, n_shown=3)
    order = np.argsort(-found.loss)[:3]
    np.testing.assert_array_equal(lengths(display), found.loss[order])
    assert tick_labels(display) == [found.names[column] for column in order]
    ends = [segment[:, 0] for segment in display.ax_.collections[0].get_segments()]
    np.testing.assert_array_equal(ends, np.column_stack([found.low, found.high])[order])
    colors = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in display.ax_.patches]
    assert colors == [COLORS[0].lower() if p <= 0.05 else QUIET for p in found.pvalues[order]]
    assert colors[0] != colors[1] and found.low[order[1]] > 0  # its own interval holds no zero
    assert "R²" in display.ax_.get_xlabel()


def test_an_interval_that_holds_zero_is_grey() -> None:
    display = BarDisplay(
        names=["clear", "unclear", "below"],
        values=[1.0, 0.1, -1.0],
        intervals=[(0.5, 1.5), (-0.1, 0.3), (-2.0, -0.5)],
    ).plot()
    colors = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in display.ax_.patches]
    assert colors == [COLORS[0].lower(), QUIET, COLORS[0].lower()]


def test_names_and_values_belong_together() -> None:
    with pytest.raises(ValueError, match="same length, at least one, got 0 and 0"):
        BarDisplay(names=[], values=[])
    with pytest.raises(ValueError, match="same length, at least one, got 1 and 2"):
        BarDisplay(names=["a"], values=[1.0, 2.0])
