"""Columns that are standardized and clipped smoothly."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import ClippedScaler, KernelRidge
from sklearn_checks import with_checks


@with_checks([ClippedScaler()])
def test_estimator_check(estimator, check):
    check(estimator)


def rows(n=60, p=4, seed=0):
    return np.random.default_rng(seed).standard_t(2.0, size=(n, p)) * 5.0 + 3.0


@pytest.mark.parametrize("limit", [0.5, 3.0, 10.0])
def test_the_formula(limit):
    X = rows()
    z = StandardScaler().fit_transform(X)
    clipped = ClippedScaler(limit).fit_transform(X)
    np.testing.assert_allclose(clipped, z / np.sqrt(1.0 + (z / limit) ** 2), rtol=1e-14)
    assert np.abs(clipped).max() < limit


def test_without_a_limit_columns_are_standardized():
    X = rows()
    plain = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(ClippedScaler(np.inf).fit_transform(X), plain)


def test_the_order_of_values_is_kept_however_far_they_are():
    scaler = ClippedScaler().fit(rows(p=1))
    far = np.array([-1e300, -1e12, -1e3, 0.0, 1e3, 1e12, 1e300])[:, None]
    clipped = scaler.transform(far)
    assert np.all(np.diff(clipped[:, 0]) >= 0) and np.all(np.isfinite(clipped))
    np.testing.assert_allclose(clipped[[0, -1], 0], [-3.0, 3.0], rtol=1e-12)


def test_missing_values_stay_missing_and_weights_count():
    X = rows()
    X[3, 1] = np.nan
    weights = np.arange(1.0, 61.0)
    scaler = ClippedScaler().fit(X, sample_weight=weights)
    np.testing.assert_array_equal(np.isnan(scaler.transform(X)), np.isnan(X))
    np.testing.assert_allclose(scaler.mean_[0], np.average(X[:, 0], weights=weights))


def test_back_again():
    X = rows()
    scaler = ClippedScaler().fit(X)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, rtol=1e-9)
    beyond = scaler.inverse_transform(np.array([[3.0, 4.0, -3.0, -9.0]]))
    assert np.all(np.abs(beyond) > 1e100) and np.all(np.sign(beyond) == [1, 1, -1, -1])


def test_frames_keep_their_names():
    frame = pd.DataFrame(rows(), columns=list("abcd"), index=range(100, 160))
    clipped = ClippedScaler().set_output(transform="pandas").fit_transform(frame)
    assert list(clipped) == list("abcd") and list(clipped.index) == list(frame.index)
    np.testing.assert_array_equal(clipped, ClippedScaler().fit_transform(frame.to_numpy()))


@pytest.mark.parametrize("limit", [0, -1.0, "3", None, np.nan])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match="limit must be a positive number"):
        ClippedScaler(limit).fit(rows())


def test_in_a_pipeline_folds_are_those_of_refits():
    X = rows()
    y = X[:, 0] + np.sin(X[:, 1])
    model = make_pipeline(ClippedScaler(), KernelRidge(kernel="rbf", gamma=0.1, alpha=0.1))
    held_out = fitonce.cross_val_predict(model, X, y, cv=5)
    np.testing.assert_allclose(held_out, cross_val_predict(model, X, y, cv=5), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_a_row_far_away_gets_a_prediction_near_the_targets(kernel):
    """A row 100 standard deviations away: what a polynomial makes of it is absurd."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = 40.0 + X @ [2.0, 1.0, 0.0]
    far = np.array([[100.0, 0.0, 0.0]])
    ridge = KernelRidge(kernel=kernel, gamma=0.3, alpha=0.1)
    plain, clipped = (
        make_pipeline(scaler, ridge).fit(X, y).predict(far)[0]
        for scaler in (StandardScaler(), ClippedScaler())
    )
    assert abs(plain - 40.0) > 100.0 and abs(clipped - 40.0) < 30.0


def test_the_saved_model_predicts_the_same(tmp_path):
    pytest.importorskip("skops")
    X = rows()
    model = make_pipeline(ClippedScaler(2.0), KernelRidge(gamma=0.1, alpha=0.1)).fit(X, X[:, 0])
    fitonce.save(model, tmp_path / "m.skops")
    loaded = fitonce.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.torch
@pytest.mark.skipif("SCIPY_ARRAY_API" not in os.environ, reason="scikit-learn dispatches by it")
def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    from sklearn import config_context

    X = rows()
    with config_context(array_api_dispatch=True):
        scaler = ClippedScaler().fit(torch.asarray(X))
        clipped = scaler.transform(torch.asarray(X))
    assert isinstance(clipped, torch.Tensor)
    np.testing.assert_allclose(clipped.numpy(), ClippedScaler().fit_transform(X), rtol=1e-10)
