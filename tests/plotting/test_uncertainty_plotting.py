"""Displays of intervals: what they draw and refuse."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import KernelRidge, LeastSquaresSVC
from fitonce.plotting import IntervalDisplay
from problems import labelled_rows, numbered_rows


def fitted(n_targets: int = 1) -> tuple[KernelRidge, np.ndarray, np.ndarray]:
    X, y = numbered_rows(60, n_targets)
    return KernelRidge(0.3, gamma=0.4).fit(X[:30], y[:30]), X[30:], y[30:]


def test_bars_show_the_intervals_and_mark_what_is_outside():
    model, X, y = fitted()
    display = IntervalDisplay.from_estimator(model, X, y, confidence=0.6, method="cv+")
    np.testing.assert_array_equal(display.intervals, model.predict_interval(X, 0.6, "cv+"))
    outside = (y < display.intervals[:, 0]) | (y > display.intervals[:, 1])
    crosses = display.ax_.collections[-1].get_offsets()
    np.testing.assert_array_equal(np.sort(crosses[:, 1]), np.sort(y[outside]))
    assert "60" in display.ax_.get_legend().get_texts()[0].get_text()


def test_one_feature_has_a_band_over_its_range():
    X, y = numbered_rows(40)
    model = KernelRidge(0.3, gamma=0.4).fit(X[:, :1], y)
    display = IntervalDisplay.from_estimator(model, X[:, :1], y)
    assert (display.place.min(), display.place.max()) == (X[:, 0].min(), X[:, 0].max())
    assert np.all(display.intervals[:, 0] < display.prediction)
    assert display.ax_.get_xlabel() == "x"


def test_a_pipeline_is_asked_through_its_steps():
    X, y = numbered_rows(40)
    pipeline = make_pipeline(StandardScaler(), KernelRidge(0.3, gamma=0.4)).fit(X, y)
    display = IntervalDisplay.from_estimator(pipeline, X)
    expected = pipeline[-1].predict_interval(pipeline[:-1].transform(X))
    np.testing.assert_array_equal(display.intervals, expected)


def test_what_they_are_not_for():
    X, y = labelled_rows(30, 2)
    classifier = LeastSquaresSVC(gamma=0.4, alpha=0.3).fit(X, y)
    with pytest.raises(TypeError, match="needs a KernelRidge"):
        IntervalDisplay.from_estimator(classifier, X)
    model, X, y = fitted(2)
    with pytest.raises(ValueError, match="shows one target, got a model of 2"):
        IntervalDisplay.from_estimator(model, X, y)
