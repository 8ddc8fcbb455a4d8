"""Intervals, calibration and comparison beside their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
from problems_assessment import two_classes
from scipy.stats import binomtest, t, ttest_rel
from sklearn.calibration import calibration_curve
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    assess,
)
from fitonce.assessment.intervals import corrected_t, effective_size, pooled_r2, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (45, 50), (50, 50)])
def test_wilson_is_scipys(k, n):
    expected = binomtest(k, n).proportion_ci(0.9, method="wilson")
    assert wilson(k / n, n, 0.9) == pytest.approx((expected.low, expected.high))


def test_one_repeat_has_wilsons_interval():
    X, y = two_classes()
    answer = assess(LeastSquaresSVC(gamma=0.2, alpha=1.0), X, y, permutations=0, level=0.9)
    right = int(np.sum(answer.predictions == y))
    expected = binomtest(right, 90).proportion_ci(0.9, method="wilson")
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(
        (expected.low, expected.high)
    )
    assert (
        answer.accuracy.method == "Wilson on pooled held-out labels"
        and answer.accuracy.level == 0.9
    )


def test_repeats_have_the_corrected_resampled_t():
    X, y = two_classes(60)
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0)
    answer = assess(model, X, y, cv=4, repeats=3, permutations=0, random_state=5)
    cvs = [StratifiedKFold(4, shuffle=True, random_state=seed) for seed in (5, 6, 7)]
    scores = np.stack([sklearn.model_selection.cross_val_score(model, X, y, cv=cv) for cv in cvs])
    np.testing.assert_allclose(answer.fold_scores["accuracy"], scores)
    reach = t.ppf(0.975, 11) * np.sqrt((1 / 12 + 1 / 3) * np.var(scores, ddof=1))
    assert answer.accuracy.value == pytest.approx(scores.mean())
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(
        (scores.mean() - reach, scores.mean() + reach)
    )
    assert (
        answer.accuracy.method == "corrected resampled t over 12 splits"
        and answer.cv == "4 stratified folds, 3 times"
    )


def test_without_the_correction_the_interval_would_be_the_paired_t_of_textbooks():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=12)
    expected = ttest_rel(scores, np.zeros(12)).confidence_interval()
    assert corrected_t(scores, 0.0) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_r2_is_the_corrected_t_of_its_logarithm():
    """What a row adds to log(1 - R²) is the derivative by its weight."""
    rng = np.random.default_rng(0)
    y, predicted, w = rng.normal(size=24), rng.normal(size=24), rng.uniform(0.5, 2.0, size=24)
    splits = np.array_split(rng.permutation(24), 5)

    def unexplained(weights):
        return np.log(1.0 - r2_score(y, predicted, sample_weight=weights))

    change = 1e-6 * np.eye(24)
    influence = [(unexplained(w + step) - unexplained(w - step)) / 2e-6 for step in change]
    centre = np.average(y, weights=w)
    pieces = [
        [values[rows] for rows in splits] for values in ((y - predicted) ** 2, (y - centre) ** 2, w)
    ]
    value, low, high = pooled_r2(*pieces, 0.25, 0.9)
    scores = np.array(
        [w.sum() * np.average(np.array(influence)[rows], weights=w[rows]) for rows in splits]
    )
    reach = t.ppf(0.95, 4) * np.sqrt((1 / 5 + 0.25) * np.var(scores, ddof=1))
    middle = unexplained(w) + scores.mean()
    assert value == pytest.approx(r2_score(y, predicted, sample_weight=w))
    assert (low, high) == pytest.approx(
        (1 - np.exp(middle + reach), 1 - np.exp(middle - reach)), rel=1e-5
    )


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


def test_the_interval_of_r2_covers_what_it_says():
    """95 % of 300 draws or more: the correction is made for repeats, and is too careful here."""
    rng, slope, hits = np.random.default_rng(0), np.array([0.5, 0.5, 0.5]), 0
    folds = np.array_split(np.arange(40), 8)
    for _ in range(300):
        X = rng.normal(size=(40, 3))
        y = X @ slope + rng.normal(size=40)
        squares, risk = [], []
        for rows in folds:
            train = np.delete(np.arange(40), rows)
            found = np.linalg.lstsq(X[train], y[train], rcond=None)[0]
            squares.append((y[rows] - X[rows] @ found) ** 2)
            risk.append(1.0 + np.sum((found - slope) ** 2))
        around = [(y[rows] - y.mean()) ** 2 for rows in folds]
        _, low, high = pooled_r2(squares, around, [np.ones(5)] * 8, 5 / 35)
        hits += low <= 1.0 - np.mean(risk) / 1.75 <= high
    assert 0.93 <= hits / 300 <= 0.995


def test_r2_without_an_interval():
    one, two = np.array([1.0, 2.0]), np.array([0.5, 0.1])
    assert pooled_r2([one], [one], [np.ones(2)], 1.0)[0] == 0.0
    for arguments in (([one], [two]), ([0 * one] * 2, [two] * 2), ([one] * 2, [0 * two] * 2)):
        found = pooled_r2(*arguments, [np.ones(2)] * len(arguments[0]), 1.0)
        assert np.isnan(found[1:]).all()


def test_effective_sizes():
    correct = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    assert effective_size(correct, None, None) == 6
    assert effective_size(correct, np.array([1, 1, 1, 1, 0, 0.0]), None) == 4
    # rows of a group are copies of each other: the size is about the number of groups (p(1-p)/(G-1)
    # is its variance)
    groups = np.repeat(np.arange(40), 5)
    copies = np.repeat(np.random.default_rng(0).integers(0, 2, 40), 5).astype(float)
    assert effective_size(copies, None, groups) == pytest.approx(39)
    assert effective_size(np.ones(200), None, groups) == 40


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
    assert answer.accuracy.high - answer.accuracy.low > 1.3 * (high - low)
    assert "effective size" in answer.accuracy.method and answer.grouped
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
    ungrouped = assess(model, X, y, sample_weight=weights, cv=split(folds), permutations=0)
    assert "effective size 36" in ungrouped.accuracy.method  # (Σw)²/Σw² = 54²/82


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
