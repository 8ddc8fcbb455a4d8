"""Columns that are standardized and clipped smoothly."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import cross_val_predict, permutation_test_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import ClippedScaler, KernelFisherDiscriminant, KernelRidge
from fitonce.preparation import KNOTS, NormalScores, RelevanceScaler
from sklearn_checks import with_checks


@with_checks([ClippedScaler(), NormalScores(), RelevanceScaler()])
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


def test_normal_scores_are_those_of_the_mean_ranks():
    X = np.round(rows(n=90, p=3), 0)  # with ties
    scores = NormalScores().fit_transform(X)
    expected = scipy.stats.norm.ppf((scipy.stats.rankdata(X, axis=0) - 0.5) / 90)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    assert np.abs(NormalScores(1.5).fit_transform(X)).max() == 1.5


def test_a_rising_map_of_a_column_changes_no_score():
    X = np.abs(rows())
    plain, logarithms = NormalScores().fit(X), NormalScores().fit(np.log(X))
    np.testing.assert_allclose(plain.transform(X), logarithms.transform(np.log(X)), rtol=1e-12)
    ends = plain.transform(np.array([np.zeros(4), np.full(4, 1e9)]))
    np.testing.assert_array_equal(ends[1], plain.transform(X).max(axis=0))
    np.testing.assert_array_equal(ends[0], plain.transform(X).min(axis=0))


def test_columns_of_two_values_stay_and_maps_are_short():
    X = np.column_stack([np.arange(1000.0) ** 2, np.arange(1000) % 2 * 5.0, np.ones(1000)])
    step = NormalScores().fit(X)
    assert step.maps_[0].shape == (2, KNOTS) and step.maps_[1] is step.maps_[2] is None
    np.testing.assert_array_equal(step.transform(X)[:, 1:], X[:, 1:])
    expected = np.clip(scipy.stats.norm.ppf((np.arange(1000) + 0.5) / 1000), -3.0, 3.0)
    assert np.abs(step.transform(X)[20:-20, 0] - expected[20:-20]).max() < 0.03  # 200 of 1000


@pytest.mark.parametrize("labels", [False, True])
def test_relevance_finds_the_columns_that_matter(labels):
    """Also where each of two columns alone says nothing."""
    X = np.random.default_rng(0).normal(size=(400, 6))
    y = X[:, 0] * X[:, 1] > 0 if labels else X[:, 0] * X[:, 1]
    y = np.array(["no", "yes"])[y.astype(int)] if labels else y
    step = RelevanceScaler(labels=labels).fit(X, y)
    assert step.scale_[:2].min() > 2.0 * step.scale_[2:].max()
    np.testing.assert_array_equal(step.transform(X), X * step.scale_)


@pytest.mark.parametrize("seed", [0, 3])
def test_relevance_is_the_importance_in_a_forest(seed):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = np.digitize(X[:, 0] - X[:, 1], [-0.5, 1.0])
    forest = ExtraTreesRegressor(50, min_samples_leaf=2, max_features="sqrt", random_state=seed)
    found = forest.fit(X, (y[:, None] == np.arange(3)).astype(float)).feature_importances_
    step = RelevanceScaler(labels=True, random_state=seed).fit(X, y)
    np.testing.assert_allclose(step.scale_, found / np.sqrt(np.mean(found**2)), rtol=1e-10)


def test_a_target_without_variance_leaves_columns_as_they_are():
    X = rows()
    np.testing.assert_array_equal(RelevanceScaler().fit_transform(X, np.ones(60)), X)


def test_relevance_is_found_on_each_training_set():
    X = rows()
    y = (X[:, 0] > 3.0).astype(int)
    model = make_pipeline(
        RelevanceScaler(labels=True), KernelFisherDiscriminant("rbf", gamma=0.1, alpha=0.1)
    )
    ours = fitonce.cross_val_predict(model, X, y, cv=4, method="decision_function")
    theirs = cross_val_predict(model, X, y, cv=4, method="decision_function")
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    given = {"n_permutations": 3, "random_state": 0, "cv": 4}
    with pytest.warns(fitonce.RefitWarning, match="steps that do not use y"):
        score, null, _ = fitonce.permutation_test_score(model, X, y, permute="resplit", **given)
    expected = permutation_test_score(model, X, y, **given)
    np.testing.assert_allclose(score, expected[0])
    np.testing.assert_allclose(null, expected[1])


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
