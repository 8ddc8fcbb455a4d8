"""`compare` against loops that refit, SciPy's t, and its level under the null."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    RefitWarning,
    assess,
    compare,
)
from fitonce.assessment import ModelComparison
from problems import labelled_rows, numbered_rows

RBF = KernelFisherDiscriminant(gamma=0.3, alpha=0.1)
LINEAR = LeastSquaresSVC("linear", alpha=1.0)


def literal(model, X, y, splits, score):
    """Scores of every split by refitting."""
    return np.array(
        [score(clone(model).fit(X[a], y[a]), X[b], y[b]) for a, b in splits], dtype=np.float64
    )


def literal_interval(d, n_train, n_test, level=0.95):
    """Nadeau and Bengio's interval and p-value, written out."""
    J = len(d)
    s2 = sum((x - sum(d) / J) ** 2 for x in d) / (J - 1)
    error = np.sqrt((1 / J + n_test / n_train) * s2)
    law = stats.t(J - 1, loc=np.mean(d), scale=error)
    low, high = law.interval(level)
    return low, high, 2 * stats.t(J - 1).cdf(-abs(np.mean(d)) / error)


@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc", "balanced_accuracy"])
def test_differences_are_those_of_a_loop_that_refits(scoring):
    X, y = labelled_rows(60, 2)
    cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=1)
    splits = list(cv.split(X, y))
    score = get_scorer(scoring or "accuracy")
    one, other = (literal(model, X, y, splits, score) for model in (RBF, LINEAR))
    result = compare({"rbf": RBF}, {"linear": LINEAR}, X, y, cv=cv, scoring=scoring)
    np.testing.assert_allclose(result.split_scores["rbf"], one, atol=1e-12)
    np.testing.assert_allclose(result.split_scores["linear"], other, atol=1e-12)
    low, high, p = literal_interval(one - other, 48, 12)
    (found,) = result.differences
    np.testing.assert_allclose(
        [found.value, found.low, found.high, found.pvalue],
        [np.mean(one - other), low, high, p],
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error", "neg_mean_squared_error"])
def test_regressions_are_those_of_a_loop_that_refits(scoring):
    X, y = numbered_rows(50)
    models = KernelRidge(0.3, gamma=0.4), KernelRidge(1.0, kernel="linear")
    splits = list(ShuffleSplit(12, test_size=7, random_state=0).split(X))

    def whole_r2(model, X_test, y_test):
        return 1.0 - np.mean((y_test - model.predict(X_test)) ** 2) / np.var(y)

    score = whole_r2 if scoring is None else get_scorer(scoring)
    one, other = (literal(model, X, y, splits, score) for model in models)
    result = compare(*models, X, y, cv=splits, scoring=scoring, level=0.8)
    found = result.difference("KernelRidge 1", "KernelRidge 2")
    low, high, p = literal_interval(one - other, 43, 7, 0.8)
    np.testing.assert_allclose(
        [found.value, found.low, found.high, found.pvalue],
        [np.mean(one - other), low, high, p],
        rtol=1e-7,
        atol=1e-10,
    )


def test_groups_are_tested_together():
    X, y = labelled_rows(60, seed=5)
    groups = np.repeat(np.arange(10), 6)
    models = KernelFisherDiscriminant(gamma=5.0, alpha=0.1), LINEAR
    seen = compare(*models, X, y, groups=groups, cv=5, repeats=2)
    assert seen.n_splits == 10 and seen.test_share == pytest.approx(0.25)


def test_equal_differences_of_all_splits_are_not_certain():
    """Two folds whose differences happen to be equal: their variance is zero, p is not."""
    y = np.tile([0, 1], 12)
    X = np.where(np.arange(24)[:, None] % 12 < 3, 1.0 - y[:, None], y[:, None]) * 1.0
    splits = [(np.arange(12, 24), np.arange(12)), (np.arange(12), np.arange(12, 24))]
    column = LeastSquaresSVC("linear", alpha=1.0)
    flat = DummyClassifier()
    with pytest.warns(RefitWarning):
        result = compare({"column": column}, {"flat": flat}, X, y, cv=splits)
    (found,) = result.differences
    d = result.split_scores["column"] - result.split_scores["flat"]
    assert d[0] == d[1] != 0
    rows = np.where(np.arange(24) % 12 < 3, 0.0, 1.0) - (y == 0)
    error = np.std(rows, ddof=1) / np.sqrt(24)
    assert found.pvalue == pytest.approx(2 * stats.t.sf(abs(d[0]) / error, 23))
    assert found.pvalue > 0.0 and found.low < d[0] < found.high


def test_rows_that_all_differ_alike_have_the_p_of_their_signs():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    wrong = Known(X, 1 - y)
    with pytest.warns(RefitWarning):
        found = compare(Known(X, y), wrong, X, y, cv=3, repeats=1).differences[0]
    assert (found.value, found.pvalue) == (1.0, 2.0**-11)


class Known(ClassifierMixin, BaseEstimator):
    """Knows an answer for every row."""

    def __init__(self, X, answers):
        self.X, self.answers = X, answers

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.array([self.answers[np.flatnonzero((row == self.X).all(1))[0]] for row in X])


@pytest.mark.parametrize("regression", [False, True])
def test_assessments_stand_for_their_models(regression):
    """Their folds are used, their predictions are compared, and only the others are fitted."""
    X, y = numbered_rows(40) if regression else labelled_rows(40)
    models = (
        (KernelRidge(0.3, gamma=0.4), KernelRidge(1.0, kernel="linear"))
        if regression
        else (
            RBF,
            LINEAR,
        )
    )
    answers = [assess(model, X, y, cv=4, permutations=0) for model in models]
    splits = [
        (np.flatnonzero(answers[0].fold != k), np.flatnonzero(answers[0].fold == k))
        for k in range(4)
    ]
    (expected,) = compare(*models, X, y, cv=splits).differences
    for found in (
        compare(answers[0], models[1], X, y),
        compare(*models[:1], answers[1], X, y),
        compare(*answers),
    ):
        (one,) = found.differences
        np.testing.assert_allclose(
            [one.value, one.low, one.high, one.pvalue],
            [expected.value, expected.low, expected.high, expected.pvalue],
            rtol=1e-7,
        )
    assert one.value == pytest.approx(answers[0].score.value - answers[1].score.value)
    with pytest.warns(UserWarning):
        forward = assess(models[0], X, y, cv=TimeSeriesSplit(4), permutations=0)
    with pytest.raises(ValueError, match="its training rows are not known"):
        compare(forward, models[1], X, y)
    with pytest.raises(ValueError, match="only on the same folds"):
        compare(answers[0], assess(models[1], X, y, cv=5, permutations=0))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_main_score_of_an_assessment_is_compared(weighted):
    X, y = labelled_rows(60)
    y = (y > 1).astype(int)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 60) if weighted else None
    given = {"sample_weight": w}
    answers = [
        assess(m, X, y, cv=4, permutations=9, score="balanced_accuracy", **given)
        for m in (RBF, LINEAR)
    ]
    found = compare({"rbf": answers[0]}, {"linear": LINEAR}, X, y, **given)
    for name, answer in zip(("rbf", "linear"), answers, strict=True):
        assert found.scores[name].value == pytest.approx(answer.metrics["balanced_accuracy"])
        assert answer.score == answer.intervals["balanced_accuracy"] != answer.accuracy
        assert next(iter(answer.permutation.scores)) == "balanced_accuracy"
    with pytest.raises(ValueError, match="score must be"):
        assess(RBF, X, y, score="log_loss")


def test_any_estimator_takes_part_and_refitting_is_said_once():
    X, y = labelled_rows(50)
    others = [LogisticRegression(), make_pipeline(StandardScaler(), LinearDiscriminantAnalysis())]
    with pytest.warns(RefitWarning) as caught:
        result = compare(RBF, others, X, y, cv=5, repeats=2)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert result.refitted == ("LogisticRegression", "Pipeline")
    splits = [
        split
        for seed in (0, 1)
        for split in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
    ]
    for name, model in zip(result.scores, (RBF, *others), strict=True):
        score = literal(model, X, y, splits, lambda m, A, b: accuracy_score(b, m.predict(A)))
        np.testing.assert_allclose(result.split_scores[name], score, atol=1e-12)
        assert result.scores[name].value == pytest.approx(score.mean())
    pairs = [(one.first, one.second) for one in result.differences]
    assert pairs == list(itertools.combinations(result.scores, 2))
    assert result.best == max(result.scores, key=lambda name: result.split_scores[name].mean())


def test_equal_models_do_not_differ():
    X, y = labelled_rows(40)
    found = compare({"a": RBF}, {"b": clone(RBF)}, X, y, cv=4, repeats=2).differences[0]
    assert (found.value, found.pvalue) == (0.0, 1.0)


@pytest.mark.parametrize(("p", "clear"), [(0.0025, True), (0.004, False), (0.05, False)])
def test_a_model_is_clearly_better_below_a_p_value_of_three_in_a_thousand(p, clear):
    X, y = labelled_rows(40)
    result = compare({"rbf": RBF}, {"linear": LINEAR}, X, y, cv=4, repeats=2)
    worse = min(result.scores, key=lambda name: result.scores[name].value)
    result = replace(result, differences=(replace(result.differences[0], pvalue=p),))
    assert result.clearly_better(worse) == (result.best if clear else None)
    assert result.clearly_better(result.best) is None


def test_text_html_and_plain_objects():
    X, y = labelled_rows(40)
    models = {"<b>rbf</b>": RBF, "linear": LINEAR, "wide": clone(RBF).set_params(gamma=0.01)}
    result = compare(models, None, X, y, cv=4, repeats=2)
    assert isinstance(result, ModelComparison)
    text, page = str(result), result._repr_html_()
    assert "linear - wide" in text and "3 differences" in text and "4 folds, 2 times" in text
    assert "<b>rbf" not in page and "&lt;b&gt;rbf" in page
    assert json.loads(json.dumps(result.to_dict()))["n_splits"] == 8
    one = result.difference("wide", "linear")
    two = result.difference("linear", "wide")
    assert (one.value, one.low, one.high) == (-two.value, -two.high, -two.low)
    with pytest.raises(ValueError, match="two different names"):
        result.difference("wide", "wide")


@pytest.mark.parametrize(
    ("a", "b", "options", "said"),
    [
        (RBF, None, {}, "at least two models"),
        ({"x": RBF}, {"x": LINEAR}, {}, "different names"),
        (RBF, LinearRegression(), {}, "all classifiers or all regressors"),
        (RBF, LINEAR, {"level": 1.5}, "level"),
        (RBF, LINEAR, {"repeats": 0}, "repeats"),
        (RBF, LINEAR, {"cv": ShuffleSplit(5), "repeats": 3}, "repeats"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, options, said):
    X, y = labelled_rows(40)
    with pytest.raises(ValueError, match=said):
        compare(a, b, X, y, **options)


def test_splits_without_a_score_are_refused():
    X, y = labelled_rows(40)

    def sometimes(model, X_test, y_test):
        return np.nan if X[0] in X_test else 1.0

    with pytest.raises(ValueError, match="'LeastSquaresSVC' has no score on 2 of 8 splits"):
        compare(LINEAR, RBF, X, y, cv=4, repeats=2, scoring=sometimes)


def test_level_where_both_models_are_equally_good():
    """Two halves of the features, of one law: the test may not reject more often than it says."""

    def half(columns):
        return LeastSquaresSVC(lambda A, B: A[:, columns] @ B[:, columns].T, alpha=1.0)

    rng, draws, nominal, rejected = np.random.default_rng(0), 150, 0.1, 0
    first, second = half(slice(0, 2)), half(slice(2, 4))
    for _ in range(draws):
        y = np.arange(40) % 2
        X = rng.normal(size=(40, 4)) + 0.5 * (2 * y[:, None] - 1)
        (found,) = compare(first, second, X, y, cv=5, repeats=2).differences
        rejected += found.pvalue <= nominal
    assert 0 < rejected / draws <= nominal + 3 * np.sqrt(nominal * (1 - nominal) / draws)


@pytest.mark.slow
def test_models_of_noise_seldom_differ():
    """At 5 %: at most 13 of 120 draws have probability 99 %. With two partitions it was 12 %."""
    first, second = (
        LeastSquaresSVC(lambda A, B, c=c: A[:, c] @ B[:, c].T, alpha=1.0, calibration=None)
        for c in (slice(0, 2), slice(2, 4))
    )
    rejected = 0
    for seed in range(120):
        X = np.random.default_rng(seed).normal(size=(40, 4))
        found = compare(first, second, X, np.arange(40) % 2, random_state=seed)
        rejected += found.differences[0].pvalue <= 0.05
    assert rejected <= 12
