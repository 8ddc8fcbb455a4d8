"""Intervals, calibration and comparison beside their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
from problems_assessment import two_classes
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GroupKFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    RefitWarning,
    assess,
)
from fitonce.assessment.intervals import HeldOutValues, holm, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (45, 50), (50, 50)])
def test_wilson_is_scipys(k, n):
    expected = binomtest(k, n).proportion_ci(0.9, method="wilson")
    assert wilson(k / n, n, 0.9) == pytest.approx((expected.low, expected.high))


def values(v, folds, inner=(), *, weights=None, units=None, share=0.25, partitions=1):
    n = len(v)
    return HeldOutValues(
        folds,
        [v[rows] for rows in folds] if not isinstance(v, list) else v,
        inner,
        np.arange(n) if units is None else units,
        np.ones(n) if weights is None else weights,
        share,
        partitions,
    )


def literal_error(models, X, y, partitions, loss):
    """Bates, Hastie and Tibshirani's standard error, by refitting without every two folds; a model
    for every partition. And the naive one.
    """
    n, K, terms, naive = len(y), len(partitions[0]), [], []
    for model, folds in zip(models, partitions, strict=True):
        out = np.empty(n)
        for test in folds:
            train = np.setdiff1d(np.arange(n), test)
            out[test] = loss(y[test], clone(model).fit(X[train], y[train]).predict(X[test]))
        naive.append(np.var(out, ddof=1) / n)
        for k, test in enumerate(folds):
            seen = []
            for j, other in enumerate(folds):
                if j != k:
                    train = np.setdiff1d(np.arange(n), np.r_[test, other])
                    fitted = clone(model).fit(X[train], y[train])
                    seen.append(loss(y[other], fitted.predict(X[other])))
            apart = np.mean(np.concatenate(seen)) - np.mean(out[test])
            terms.append(apart**2 - np.var(out[test], ddof=1) / len(test))
    s2 = np.mean(naive)
    return np.sqrt(np.clip((K - 1) / K * np.mean(terms), s2, K * s2)), np.sqrt(s2)


def hits(truth, said):
    return (truth == said).astype(float)


def test_fixed_models_have_the_interval_of_nested_cross_validation():
    X, y = two_classes(40, shift=0.7)
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=None)
    answer = assess(model, X, y, cv=4, permutations=0, level=0.9)
    cvs = [StratifiedKFold(4, shuffle=True, random_state=seed) for seed in range(10)]
    folds = [[test for _, test in cv.split(X, y)] for cv in cvs]
    error, _ = literal_error([model] * 10, X, y, folds, hits)
    p = answer.accuracy.value
    expected = wilson(p, p * (1 - p) / error**2, 0.9, 39)
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(expected)
    assert answer.accuracy.method == "nested cross-validation, 4 folds, 10 times"


def test_tuned_models_take_the_ratio_of_errors_from_settings_chosen_in_the_folds():
    X, y = two_classes(40, shift=0.7, seed=3)
    options = {"gamma": 0.2, "calibration": None}
    tuned = make_pipeline(StandardScaler(), LeastSquaresSVC(alpha=[0.3, 1.0, 3.0, 10.0], **options))
    answer = assess(tuned, X, y, cv=4, permutations=0)
    cvs = [StratifiedKFold(4, shuffle=True, random_state=seed) for seed in range(10)]
    folds = [[test for _, test in cv.split(X, y)] for cv in cvs]
    alphas = [answer.choices[number * 4 // 10]["alpha"] for number in range(10)]
    models = [LeastSquaresSVC(alpha=alpha, **options) for alpha in alphas]
    error, naive = literal_error(models, StandardScaler().fit_transform(X), y, folds, hits)
    assert len(set(alphas)) > 1 and error > naive
    p = answer.accuracy.value
    own = np.var(hits(y, answer.predictions), ddof=1) / 40 * (error / naive) ** 2
    own = max(own, (1 / 4 + 1 / 3) * np.var(answer.fold_scores["accuracy"], ddof=1))
    expected = wilson(p, p * (1 - p) / own, 0.95, 3)
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(expected)
    assert "chosen settings" in answer.accuracy.method


def test_where_two_folds_need_refits_the_interval_is_the_corrected_resampled_t():
    X, y = two_classes(60)
    with pytest.warns(RefitWarning):
        answer = assess(LogisticRegression(), X, y, cv=4, repeats=3, permutations=0)
    scores = answer.fold_scores["accuracy"].reshape(-1)
    variance = (1 / 12 + 1 / 3) * np.var(scores, ddof=1)
    p = answer.accuracy.value
    assert p == pytest.approx(scores.mean())
    expected = wilson(p, p * (1 - p) / variance, 0.95, 3)
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(expected)
    assert answer.accuracy.method == "corrected resampled t over 12 splits"


def test_the_error_is_never_below_that_of_independent_units():
    rng = np.random.default_rng(0)
    v, folds = np.tile(rng.normal(size=6), 4), list(np.arange(24).reshape(4, 6))
    error, dof, method = values(v, folds).error()
    assert error == pytest.approx(np.std(v, ddof=1) / np.sqrt(24)) and dof == 23
    assert "independent" in method
    units = np.repeat(np.arange(8), 3)
    of_groups = values(v, folds, units=units).error()
    sums = np.bincount(units, weights=v - v.mean()) / 24
    assert of_groups[0] == pytest.approx(np.sqrt(8 / 7 * np.sum(sums**2))) and of_groups[1] == 7
    weights = rng.integers(1, 4, size=24).astype(float)
    whole = values(v, folds, weights=weights)
    copies = np.repeat(np.arange(24), weights.astype(int))
    parts = [np.flatnonzero(np.isin(copies, rows)) for rows in folds]
    again = values(v[copies], parts, units=copies)
    assert whole.mean == pytest.approx(again.mean) and whole.naive == pytest.approx(again.naive)


def test_where_every_row_is_right_one_fold_is_taken():
    X, y = two_classes(40, shift=9.0)
    answer = assess(LeastSquaresSVC(gamma=0.2, alpha=1.0), X, y, cv=4, permutations=0)
    assert answer.accuracy.value == 1.0
    assert answer.accuracy.low == pytest.approx(wilson(1.0, 10, 0.95, 39)[0])


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("tuned", [False, True])
def test_intervals_cover_what_they_say(tuned):
    """200 draws of pure noise, where Wilson's interval of one partition covers 87 %."""
    alpha = [1.0, 10.0, 100.0] if tuned else 1.0
    model, hits = LeastSquaresSVC(gamma=0.1, alpha=alpha, calibration=None), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        answer = assess(model, rng.normal(size=(30, 5)), np.arange(30) % 2, permutations=0)
        hits += answer.accuracy.low <= 0.5 <= answer.accuracy.high
    assert hits / 200 >= 0.91


@pytest.mark.parametrize(("few", "many"), [(15, 15), (17, 23)])
def test_a_model_that_learns_nothing_is_as_good_as_its_baseline(few, many):
    """With ten folds of 15:15 rows a constant is wrong in two rows of three."""
    y = np.repeat(["b", "a"], [few, many])
    with pytest.warns(RefitWarning):
        answer = assess(DummyClassifier(), np.zeros((len(y), 1)), y, permutations=0)
    assert answer.accuracy.value == answer.baseline.value == many / (few + many)


@pytest.mark.parametrize(
    ("counts", "folds"), [([15, 15], 5), ([25, 25], 5), ([20, 40], 10), ([50, 57], 10), ([4, 9], 4)]
)
def test_folds_have_the_ratio_of_the_classes(counts, folds):
    y = np.repeat(np.arange(2), counts)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    answer = assess(LeastSquaresSVC(gamma=1.0, alpha=1.0), X, y, permutations=0)
    assert answer.n_splits == folds


def test_r2_is_of_all_rows_even_where_folds_are_tiny():
    """The R² of three rows is worth nothing, and their mean no more."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(32, 3))
    y = X @ [1.0, 0.5, 0.0] + 0.5 * rng.normal(size=32)
    model = KernelRidge(kernel="linear", alpha=1.0)
    answer = assess(model, X, y, permutations=0)
    expected = r2_score(y, answer.predictions)
    assert answer.r2.value == pytest.approx(expected) == answer.metrics["r2"]
    assert np.mean(answer.fold_scores["r2"]) < expected - 0.1
    assert expected - 0.6 < answer.r2.low < expected < answer.r2.high < 1.0
    twice = assess(model, X, y, permutations=0, repeats=2)
    assert twice.r2.value == pytest.approx(twice.metrics["r2"])
    each = assess(model, X, y, cv=sklearn.model_selection.LeaveOneOut(), permutations=0)
    assert each.r2.low < each.r2.value == pytest.approx(r2_score(y, each.predictions))


def test_groups_widen_the_interval_and_stay_together():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(20), 6)
    y = np.repeat(rng.permutation(np.arange(20) % 2), 6)
    X = (
        np.repeat(rng.normal(size=(20, 2)), 6, axis=0)
        + y[:, None]
        + 0.1 * rng.normal(size=(120, 2))
    )
    answer = assess(
        KernelFisherDiscriminant(gamma=0.3, alpha=1.0), X, y, groups=groups, cv=5, permutations=199
    )
    assert all(len(set(answer.fold[groups == group])) == 1 for group in range(20))
    cv = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    expected = sklearn.model_selection.cross_val_score(
        KernelFisherDiscriminant(gamma=0.3, alpha=1.0), X, y, groups=groups, cv=cv
    )
    np.testing.assert_allclose(answer.fold_scores["accuracy"][0], expected)
    low, high = wilson(answer.accuracy.value, 120)
    assert answer.accuracy.high - answer.accuracy.low > 1.3 * (high - low) and answer.grouped
    assert answer.permutation.exchange == "whole" and answer.permutation.mode == "cosets"


def test_groups_reach_the_tuning_inside():
    X, _ = two_classes(60)
    groups = np.arange(60) // 3
    model = make_pipeline(StandardScaler(), KernelRidge(gamma=0.1))
    target = X[:, 0] + np.random.default_rng(0).normal(size=20)[groups]
    answer = assess(model, X[:, 1:], target, groups=groups, cv=4, permutations=0)
    cv = GroupKFold(4, shuffle=True, random_state=0)
    chosen = []
    for train, _ in cv.split(X, target, groups):
        fold = make_pipeline(StandardScaler(), KernelRidge(gamma=0.1)).fit(
            X[train][:, 1:], target[train], kernelridge__groups=groups[train]
        )
        chosen.append(fold[-1].alpha_)
    assert [choice["alpha"] for choice in answer.choices] == chosen


def test_weights_are_repeated_rows():
    """Scores with weight two equal those of rows that occur twice.

    Groups keep copies together, where every two rows are left out.
    """
    X, y = two_classes(40, shift=0.7)
    X[1] += 0.01
    weights = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(40), weights.astype(int))
    folds = np.arange(40) % 4
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=None)
    split = sklearn.model_selection.PredefinedSplit
    alike = {"cv": split(folds), "permutations": 0, "groups": np.arange(40)}
    weighted = assess(model, X, y, sample_weight=weights, **alike)
    alike |= {"cv": split(folds[twice]), "groups": twice}
    repeated = assess(model, X[twice], y[twice], **alike)
    assert weighted.metrics == pytest.approx(repeated.metrics, abs=1e-8)
    np.testing.assert_allclose(weighted.confusion, repeated.confusion)
    np.testing.assert_allclose(weighted.fold_scores["accuracy"], repeated.fold_scores["accuracy"])
    assert weighted.baseline.value == pytest.approx(repeated.baseline.value) and weighted.weighted


def test_calibration_is_scikit_learns_curve():
    X, y = two_classes(150)
    answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=5, permutations=0)
    observed, predicted = calibration_curve(
        y == "sick", answer.probabilities[:, 1], n_bins=10, strategy="quantile"
    )
    np.testing.assert_allclose(answer.calibration.observed, observed)
    np.testing.assert_allclose(answer.calibration.predicted, predicted)
    assert answer.calibration.of == "probability of sick"
    assert answer.calibration.error == pytest.approx(
        np.average(np.abs(observed - predicted), weights=answer.calibration.count)
    )


def test_without_a_model_of_two_folds_there_is_no_nested_interval():
    """The training set without two folds has one class with weight: no model can be fitted to it,
    and the interval is another one.
    """
    X, y = two_classes(30, 0.5)
    fold = np.arange(30) % 3
    weights = np.where((y == y[0]) & (fold == 2), 0.0, 1.0)
    model = LeastSquaresSVC(gamma=0.1, alpha=1.0)
    answer = assess(model, X, y, sample_weight=weights, cv=PredefinedSplit(fold), permutations=0)
    assert "nested" not in answer.score.method and not answer.inner
    assert answer.score.low < answer.score.value < answer.score.high
