"""Intervals, calibration and comparison beside their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
from problems_assessment import two_classes
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import binomtest, t
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
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
from fitonce.assessment import folds as folds_module
from fitonce.assessment.data import AssessedRows
from fitonce.assessment.folds import Round
from fitonce.assessment.intervals import HeldOutValues, holm, wilson
from fitonce.assessment.scores import moves
from fitonce.crossval import Route


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


def nested_error(partitions, values, y):
    """Bates, Hastie and Tibshirani's standard error from values (K, n) of every row by the models
    without fold k and without that of the row, less the mean of each class; and the naive error.
    """
    n, K, terms, naive = len(y), len(partitions[0]), [], []
    for folds, found in zip(partitions, values, strict=True):
        out = np.empty(n)
        for test, own in zip(folds, found, strict=True):
            out[test] = own[test]
        means = np.array([out[y == label].mean() for label in y])
        naive.append((np.var(out, ddof=1) / n, np.var(means, ddof=1) / n))
        for test, own in zip(folds, found, strict=True):
            rest, less = np.setdiff1d(np.arange(n), test), own - means
            spread = np.var(less[test], ddof=1) / len(test)
            terms.append((less[rest].mean() - less[test].mean()) ** 2 - spread)
    s2, between = np.mean(naive, axis=0)
    return np.sqrt(np.clip((K - 1) / K * np.mean(terms) + between, s2, K * s2)), np.sqrt(s2)


def literal_outputs(fitted, n, folds):
    """Outputs (K, n) by refitting without every two folds. `fitted(train)` is the output of rows
    by a model, and a function that refits it, with its choices, to fewer rows.
    """
    found = []
    for test in folds:
        predict, refit = fitted(np.setdiff1d(np.arange(n), test))
        own = {int(row): value for row, value in zip(test, predict(test), strict=True)}
        for other in folds:
            if other is not test:
                again = refit(np.setdiff1d(np.arange(n), np.r_[test, other]))
                own |= dict(zip(other.tolist(), again(other), strict=True))
        found.append(np.array([own[row] for row in range(n)]))
    return np.array(found)


def literal_error(fitted, y, partitions, loss):
    outputs = [literal_outputs(fitted, len(y), folds) for folds in partitions]
    return nested_error(partitions, [loss(y, each) for each in outputs], y)


def fixed(model, X, y):
    def predicts(train):
        found = clone(model).fit(X[train], y[train])
        return lambda rows: found.predict(X[rows])

    return lambda train: (predicts(train), predicts)


def hits(truth, said):
    return (truth == said).astype(float)


def test_fixed_models_have_the_interval_of_nested_cross_validation():
    X, y = two_classes(40, shift=0.7)
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=None)
    answer = assess(model, X, y, cv=4, permutations=0, level=0.9)
    cvs = [StratifiedKFold(4, shuffle=True, random_state=seed) for seed in range(10)]
    folds = [[test for _, test in cv.split(X, y)] for cv in cvs]
    error, _ = literal_error(fixed(model, X, y), y, folds, hits)
    p = answer.accuracy.value
    expected = wilson(p, p * (1 - p) / error**2, 0.9, 39)
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(expected)
    assert answer.accuracy.method == "nested cross-validation, 4 folds, 10 times"


def test_tuned_models_keep_what_each_training_set_has_chosen():
    X, y = two_classes(40, shift=0.7, seed=6)
    options = {"gamma": 0.2, "calibration": None}
    tuned = make_pipeline(StandardScaler(), LeastSquaresSVC(alpha=[0.3, 1.0, 3.0, 10.0], **options))
    answer = assess(tuned, X, y, cv=4, permutations=0)
    chosen = []

    def fitted(train):
        whole = clone(tuned).fit(X[train], y[train])
        chosen.append(whole[-1].alpha_)
        Z, kept = whole[:-1].transform(X), LeastSquaresSVC(alpha=chosen[-1], **options)
        return lambda rows: whole.predict(X[rows]), fixed(kept, Z, y)(train)[1]

    cvs = [StratifiedKFold(4, shuffle=True, random_state=seed) for seed in range(5)]
    folds = [[test for _, test in cv.split(X, y)] for cv in cvs]
    error, naive = literal_error(fitted, y, folds, hits)
    assert len(set(chosen)) > 1 and error > naive
    p = answer.accuracy.value
    expected = wilson(p, p * (1 - p) / error**2, 0.95, 39)
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(expected)
    assert answer.accuracy.method == "nested cross-validation, 4 folds, 5 times"


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
    X[-1] = X[-2] + 0.1
    answer = assess(LeastSquaresSVC(gamma=0.2, alpha=1.0), X, y, cv=4, permutations=0)
    assert answer.accuracy.value == 1.0
    assert answer.accuracy.low == pytest.approx(wilson(1.0, 10, 0.95, 39)[0])


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_intervals_cover_what_they_say(kind, tuned):
    """200 draws of pure noise: the scores of the model of all rows on new ones. Wilson's interval
    of one partition covers 87 % there.
    """
    model = LeastSquaresSVC if kind == "labels" else KernelRidge
    model = model(gamma=0.1, alpha=[1.0, 10.0, 100.0] if tuned else 1.0)
    names = ("accuracy", "roc_auc", "log_loss", "brier") if kind == "labels" else ("r2", "mae")
    held = dict.fromkeys(names, 0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, X_new = rng.normal(size=(30, 5)), rng.normal(size=(2000, 5))
        y, y_new = (rng.permutation(np.arange(n) % 2) for n in (30, 2000))
        if kind == "numbers":
            y, y_new = rng.normal(size=30), rng.normal(size=2000)
        found = assess(model, X, y, permutations=0).intervals
        truth = assess(clone(model).fit(X, y), X_new, y_new, cv="prefit").metrics
        for name in names:
            held[name] += found[name].low <= truth[name] <= found[name].high
    assert min(held.values()) / 200 >= 0.91, held


@pytest.mark.parametrize(("few", "many"), [(15, 15), (17, 23)])
def test_a_model_that_learns_nothing_is_as_good_as_its_baseline(few, many):
    """With ten folds of 15:15 rows a constant is wrong in two rows of three."""
    y = np.repeat(["b", "a"], [few, many])
    with pytest.warns(RefitWarning):
        answer = assess(DummyClassifier(), np.zeros((len(y), 1)), y, permutations=0)
    assert answer.accuracy.value == answer.baseline_metrics["accuracy"] == many / (few + many)
    assert answer.score_name == "balanced_accuracy" and answer.score.value == 0.5


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


def test_temperatures_have_seen_neither_fold():
    """Log-loss and Brier score of a tuned model: decisions by refits with its alpha, temperatures
    from those of the rows in other folds.
    """
    X, y = two_classes(40, shift=0.7, seed=1)
    tuned, sign = LeastSquaresSVC(alpha=[0.3, 3.0], gamma=0.2), np.where(y == "sick", 1.0, -1.0)
    answer = assess(tuned, X, y, cv=4, repeats=5, permutations=0)

    def decides(kept):
        def of(rows):
            found = clone(kept).fit(X[rows], y[rows])
            return lambda others: found.decision_function(X[others])

        return of

    def fitted(train):
        alpha = clone(tuned).fit(X[train], y[train]).alpha_
        of = decides(LeastSquaresSVC(alpha=alpha, gamma=0.2))
        return of(train), of

    def cross_entropy(log_beta, margins):
        loss, doubt = lambda u: np.logaddexp(0.0, -u).mean(), 1 / 42
        beta = np.exp(log_beta)
        return (1 - doubt) * loss(beta * margins) + doubt * loss(-beta * margins)

    def own_class(folds):
        """Probabilities (K, n) of the right class."""
        decisions, p = literal_outputs(fitted, 40, folds), np.empty((4, 40))
        for k, j in np.ndindex(4, 4):
            rest = np.setdiff1d(np.arange(40), np.r_[folds[k], folds[j]])
            margins = decisions[k] * sign
            found = minimize_scalar(cross_entropy, args=(margins[rest],), bounds=(-8, 8)).x
            p[k, folds[j]] = expit(np.exp(found) * margins[folds[j]])
        floor = 0.5 / (2 * 41)
        return floor + (1 - 2 * floor) * p

    cvs = [StratifiedKFold(4, shuffle=True, random_state=seed) for seed in range(5)]
    folds = [[test for _, test in cv.split(X, y)] for cv in cvs]
    right = [own_class(part) for part in folds]
    for name, loss in {"log_loss": lambda p: -np.log(p), "brier": lambda p: (1 - p) ** 2}.items():
        error, naive = nested_error(folds, [loss(p) for p in right], y)
        found = answer.intervals[name]
        reach = t.ppf(0.975, 39) * error / found.value
        assert error > naive and found.value == answer.metrics[name]
        assert (found.low, found.high) == pytest.approx(
            found.value * np.exp([-reach, reach]), rel=1e-5
        )


@pytest.mark.parametrize(
    ("name", "score", "scale"),
    [
        ("accuracy", lambda y, said, p, w: accuracy_score(y, said, sample_weight=w), float),
        (
            "balanced_accuracy",
            lambda y, said, p, w: balanced_accuracy_score(y, said, sample_weight=w),
            float,
        ),
        ("roc_auc", lambda y, said, p, w: roc_auc_score(y, p, sample_weight=w), float),
        ("log_loss", lambda y, said, p, w: log_loss(y, p, sample_weight=w), np.log),
        ("brier", lambda y, said, p, w: np.average((y - p) ** 2, weights=w), np.log),
        ("mae", lambda y, said, p, w: mean_absolute_error(y, said, sample_weight=w), np.log),
        ("rmse", lambda y, said, p, w: mean_squared_error(y, said, sample_weight=w) ** 0.5, np.log),
        ("r2", lambda y, said, p, w: 1.0 - r2_score(y, said, sample_weight=w), np.log),
    ],
)
def test_a_row_moves_a_score_as_its_weight_does(name, score, scale):
    """n times the derivative of the score by the weight of the row, or of its logarithm; ties and
    weights included.
    """
    rng, n = np.random.default_rng(5), 30
    labels = name in ("accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier")
    y = rng.permutation(np.arange(n) % 3 == 0).astype(float) if labels else rng.normal(size=n)
    p = np.round(np.clip(0.3 * y + 0.6 * rng.random(n), 0.02, 0.98), 1)
    said = (p > 0.5).astype(float) if labels else y + rng.normal(size=n)
    weights = rng.integers(1, 4, size=n).astype(float)
    model = LeastSquaresSVC() if labels else KernelRidge()
    data = AssessedRows.of(model, np.zeros((n, 1)), y, weights=weights)
    splits = [(np.arange(0), np.arange(n))]
    both = np.column_stack([1 - p, p]) if labels else None
    round_ = Round(said, both, p, np.zeros(n, dtype=int), splits, [], Route("one", ""))
    values = moves(name, data, [round_], {})(round_, round_.fold)
    step, total = 1e-5, weights.sum()
    for row in range(n):
        ends = [weights + sign * step * (np.arange(n) == row) for sign in (1, -1)]
        high, low = (scale(score(y, said, p, w)) for w in ends)
        slope = total * (high - low) / (2 * step)
        assert values[row] - np.average(values, weights=weights) == pytest.approx(slope, abs=1e-5)


def test_losses_of_ones_own_have_an_interval():
    X, y = two_classes(40, shift=0.7)
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=None)
    answer = assess(model, X, y, cv=4, permutations=0, losses={"wrong": lambda y, said: y != said})
    cost, accuracy = answer.intervals["wrong"], answer.accuracy
    assert cost.value == pytest.approx(1 - accuracy.value) == answer.metrics["wrong"]
    assert cost.low < cost.value < cost.high and cost.method == accuracy.method
    assert "wrong" in str(answer)
    with pytest.raises(ValueError, match="one number per row"):
        assess(model, X, y, cv=4, permutations=0, losses={"mean": lambda y, said: 0.5})


def test_few_groups_have_an_interval_of_nested_cross_validation():
    """Folds of one group have no variance of their own."""
    rng, groups = np.random.default_rng(2), np.arange(48) // 6
    y = rng.permutation(np.arange(8) % 2)[groups]
    X = rng.normal(size=(48, 3)) + rng.normal(size=(8, 3))[groups] + y[:, None]
    model = LeastSquaresSVC("linear", alpha=1.0)
    answer = assess(model, X, y, groups=groups, cv=8, permutations=0)
    assert answer.accuracy.method.startswith("nested cross-validation, 8 folds")
    naive = wilson(answer.accuracy.value, 48)
    assert answer.accuracy.high - answer.accuracy.low > 1.5 * (naive[1] - naive[0])


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_other_calibrations_have_seen_neither_fold(kind, monkeypatch):
    """Their probabilities spread the losses; two partitions, since each is fitted by itself."""
    X, y = two_classes(40, shift=0.7)
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=kind)
    seen = []
    original = folds_module.held_out_probabilities

    def spied(given, decisions, labels, weights, part):
        seen.append(part)
        return original(given, decisions, labels, weights, part)

    monkeypatch.setattr(folds_module, "held_out_probabilities", spied)
    answer = assess(model, X, y, cv=4, permutations=0)
    found = answer.intervals["log_loss"]
    assert found.method == "nested cross-validation, 4 folds, 2 times"
    assert found.low < found.value < found.high and len(seen) == 8
    assert all(np.array_equal(p == -1, answer.fold == k) for k, p in enumerate(seen[:4]))
