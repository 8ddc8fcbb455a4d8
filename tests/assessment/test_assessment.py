"""`assess` beside scikit-learn's functions on literal refits, and what it refuses."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.model_selection
from problems_assessment import two_classes
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import (
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    RefitWarning,
    assess,
    cross_val_predict,
)
from fitonce.assessment import Assessment, ranking
from fitonce.assessment.assess import n_partitions
from fitonce.assessment.chance import QUICK, SAME, affordable, most_rows, quick
from fitonce.assessment.data import AssessedRows, splitters
from fitonce.assessment.intervals import wilson
from fitonce.assessment.render import significance
from fitonce.assessment.result import Estimate


def tuned():
    return make_pipeline(
        StandardScaler(), KernelFisherDiscriminant(alpha=[0.1, 1.0, 10.0], gamma=[0.2, 0.3, 0.4])
    )


def within_folds(positive, score, splits):
    """The mean AUC of the folds, by their number of rows."""
    tests = [test for _, test in splits]
    areas = [roc_auc_score(positive[test], score[test]) for test in tests]
    return np.average(areas, weights=[len(test) for test in tests])


def test_few_rows_are_ranked_only_by_models_that_have_seen_neither():
    """Noise: pooled over leave-one-out, the area of a model that learns nothing is 0."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(24, 2)), np.arange(24) % 2
    model = LeastSquaresSVC("linear", alpha=1e6, calibration=None)
    answer = assess(model, X, y, cv=LeaveOneOut(), permutations=0)
    pairs = fitonce.leave_pair_out(model, X, y)
    assert answer.metrics["roc_auc"] == pairs.auc and 0.2 < pairs.auc < 0.8
    assert roc_auc_score(y, answer.decisions) < 0.1
    assert "leave-pair-out" in answer.auc_method and answer.auc_method in str(answer)
    weights = rng.uniform(0.5, 2.0, 24)
    again = assess(model, X, y, sample_weight=weights, permutations=0)
    expected = fitonce.leave_pair_out(model, X, y, sample_weight=weights).auc
    assert again.metrics["roc_auc"] == expected
    chosen = assess(
        LeastSquaresSVC("linear", alpha=[1.0, 2.0]), X, y, cv=LeaveOneOut(), permutations=0
    )
    assert chosen.auc_method == ranking.POOLED  # no two rows are tested by one model


def test_many_rows_are_ranked_together(monkeypatch):
    monkeypatch.setattr(ranking, "FEW", 30)
    X, y = two_classes()
    answer = assess(tuned(), X, y, cv=5, permutations=0)
    expected = roc_auc_score(y == "sick", answer.probabilities[:, 1])
    assert answer.metrics["roc_auc"] == pytest.approx(expected)
    assert answer.auc_method == ranking.POOLED


def test_classification_equals_scikit_learn_on_refits():
    X, y = two_classes()
    model, cv = tuned(), StratifiedKFold(5, shuffle=True, random_state=3)
    answer = assess(model, X, y, cv=5, random_state=3, permutations=0)
    predicted = sklearn.model_selection.cross_val_predict(model, X, y, cv=cv)
    p = sklearn.model_selection.cross_val_predict(model, X, y, cv=cv, method="predict_proba")
    decided = sklearn.model_selection.cross_val_predict(
        model, X, y, cv=cv, method="decision_function"
    )
    assert answer.predictions.tolist() == predicted.tolist()
    np.testing.assert_allclose(answer.probabilities, p, atol=1e-8)
    np.testing.assert_allclose(answer.decisions, decided, atol=1e-8)
    expected = {
        "accuracy": accuracy_score(y, predicted),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "roc_auc": within_folds(y == "sick", p[:, 1], cv.split(X, y)),
        "log_loss": log_loss(y, p),
        "brier": brier_score_loss(y == "sick", p[:, 1]),
    }
    assert answer.metrics == pytest.approx(expected, abs=1e-8)
    np.testing.assert_array_equal(answer.confusion, confusion_matrix(y, predicted))
    scores = sklearn.model_selection.cross_val_score(model, X, y, cv=cv)
    np.testing.assert_allclose(answer.fold_scores["accuracy"], [scores])
    dummy = DummyClassifier().fit(X, y)
    assert answer.baseline.value == dummy.score(X, y) == pytest.approx(2 / 3)
    assert answer.baseline_metrics["log_loss"] == pytest.approx(log_loss(y, dummy.predict_proba(X)))
    for number, (_, test) in enumerate(cv.split(X, y)):
        assert set(answer.fold[test]) == {number}
    assert (
        answer.route.name == "per-fold"
        and answer.n_splits == 5
        and answer.cv == "5 stratified folds"
    )


def test_the_choices_are_those_of_each_training_set():
    X, y = two_classes()
    model, cv = tuned(), StratifiedKFold(5, shuffle=True, random_state=0)
    answer = assess(model, X, y, cv=5, permutations=0)
    refitted = sklearn.model_selection.cross_validate(model, X, y, cv=cv, return_estimator=True)[
        "estimator"
    ]
    assert [choice["alpha"] for choice in answer.choices] == [fold[-1].alpha_ for fold in refitted]
    assert [choice["penalty"] for choice in answer.choices] == ["function"] * 5


def test_three_classes():
    X, y = load_iris(return_X_y=True)
    X[142] += 0.1  # a copy of another row
    answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=0.1), X, y, cv=5, permutations=0)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    p = sklearn.model_selection.cross_val_predict(
        KernelFisherDiscriminant(gamma=0.2, alpha=0.1), X, y, cv=cv, method="predict_proba"
    )
    areas = [within_folds(y == c, p[:, c], cv.split(X, y)) for c in range(3)]
    assert answer.metrics["roc_auc"] == pytest.approx(np.mean(areas))
    assert answer.metrics["brier"] == pytest.approx(
        np.mean(np.sum((p - np.eye(3)[y]) ** 2, axis=1))
    )
    assert answer.confusion.sum() == 150 and answer.decisions.shape == (150, 3)
    assert (
        answer.calibration.of == "probability of the predicted class"
        and answer.calibration.count.sum() == 150
    )


def test_regression_equals_scikit_learn_on_refits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    model = make_pipeline(StandardScaler(), KernelRidge(gamma=0.1, alpha=[0.1, 1.0]))
    cv = sklearn.model_selection.KFold(5, shuffle=True, random_state=0)
    answer = assess(model, X, y, cv=5, permutations=39)
    predicted = sklearn.model_selection.cross_val_predict(model, X, y, cv=cv)
    np.testing.assert_allclose(answer.predictions, predicted, atol=1e-8)
    assert answer.metrics["r2"] == pytest.approx(r2_score(y, predicted))
    assert answer.metrics["mae"] == pytest.approx(mean_absolute_error(y, predicted))
    assert answer.r2.value == pytest.approx(r2_score(y, predicted), abs=1e-12)
    scores = sklearn.model_selection.cross_val_score(model, X, y, cv=cv)
    np.testing.assert_allclose(answer.fold_scores["r2"][0], scores)
    assert answer.r2.method == "nested cross-validation, 5 folds, 5 times, on log(1 - R²)"
    assert (
        answer.baseline.value == 0.0 < answer.r2.low
        and answer.permutation.pvalue == pytest.approx(1 / 40)
    )
    assert answer.confusion is None and answer.classes is None and answer.probabilities is None
    with pytest.raises(AttributeError, match="regression has no accuracy"):
        _ = answer.accuracy


def test_another_librarys_estimator_is_refitted_and_says_so():
    X, y = two_classes()
    with pytest.warns(RefitWarning):
        answer = assess(LogisticRegression(), X, y, cv=3, permutations=0)
    expected = sklearn.model_selection.cross_val_score(
        LogisticRegression(), X, y, cv=StratifiedKFold(3, shuffle=True, random_state=0)
    )
    np.testing.assert_allclose(answer.fold_scores["accuracy"][0], expected)
    assert any("no closed form" in doubt for doubt in answer.warnings) and answer.choices == [
        {},
        {},
        {},
    ]


def test_the_default_p_value_is_the_same_on_every_machine(monkeypatch):
    """999 permutations whatever the clock says: here it says that every look at it took an hour."""
    X, y = two_classes(60, shift=2.0)
    model = make_pipeline(StandardScaler(), KernelFisherDiscriminant(criterion="brier"))
    hours = itertools.count(0, 3600)
    monkeypatch.setattr("time.perf_counter", lambda: float(next(hours)))
    answer = assess(model, X, y, cv=3)
    assert answer.permutation.n_permutations_done == 999
    assert answer.permutation.pvalue == pytest.approx(1 / 1000)
    assert "choosing among fewer settings" in answer.permutation_statistic
    assert next(iter(answer.permutation.scores)) == answer.score_name


def test_the_size_of_the_data_alone_decides_what_is_tested():
    """The model itself where its search is cheap under permutations."""
    model = make_pipeline(StandardScaler(), KernelFisherDiscriminant(calibration=None))
    few, many = ((X, y) for X, y in (two_classes(30), two_classes(300)))
    rows = [AssessedRows.of(model, *data) for data in (few, many)]
    assert [affordable(model, data, 999) for data in rows] == [SAME, QUICK]
    assert affordable(model, rows[1], 19) == SAME
    assert affordable(KernelFisherDiscriminant("tune"), rows[0], 1999) == QUICK
    alone = KernelFisherDiscriminant(criterion="error")  # judges one labeling at a time
    assert affordable(alone, rows[0], 999) == QUICK
    assert affordable(model, AssessedRows.of(model, *few, np.arange(30) // 2), 999) == QUICK
    fixed = KernelFisherDiscriminant("linear", alpha=1.0)  # a width that is not used is not tuned
    assert affordable(fixed, rows[1], 9999) == SAME


def test_the_tested_model_compares_the_kernels_of_the_reported_one():
    X, y = two_classes(60)
    model = KernelFisherDiscriminant("tune")
    answer = assess(model, X, y, cv=3, permutations=9, statistic="quick")
    coarse = clone(model).set_params(search="coarse")
    by_hand = cross_val_predict(
        coarse, X, y, cv=splitters(3, AssessedRows.of(model, X, y), 1, 0)[0]
    )
    assert answer.permutation.score == pytest.approx(np.mean(by_hand == y))
    assert f"fewer settings: {answer.permutation.score:.3f}" in str(answer)


@pytest.mark.parametrize(("tested", "said"), [(0.59, True), (0.61, False)])
def test_a_tested_score_clearly_below_the_reported_one_is_said(tested, said):
    test = SimpleNamespace(
        scores={"accuracy": tested},
        pvalue=0.2,
        pvalues={"accuracy": 0.2},
        exact=True,
        n_permutations_done=9,
        exchange="rows",
        mode="free",
        null={"accuracy": np.zeros(9)},
    )
    for interval in ((0.6, 0.7), (np.nan, np.nan)):
        reported = Estimate(0.65 if interval[0] == 0.6 else 0.651, *interval, 0.95, "")
        notes = significance(test, "accuracy of this model", reported).notes
        assert any("clearly below the reported" in note for note in notes) == said


def test_the_observed_score_under_test_is_the_headline_where_nothing_is_tuned():
    X, y = two_classes()
    answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=5, permutations=19)
    assert (
        answer.permutation.score == pytest.approx(answer.accuracy.value)
        and "this model" in answer.permutation_statistic
    )


@pytest.mark.slow
def test_noise_is_not_significant_more_often_than_it_says():
    rng = np.random.default_rng(0)
    small = 0
    for seed in range(40):
        X, y = rng.normal(size=(24, 2)), rng.permutation(np.arange(24) % 2)
        answer = assess(
            KernelFisherDiscriminant(gamma=0.5, alpha=10.0),
            X,
            y,
            cv=4,
            permutations=19,
            random_state=seed,
        )
        small += answer.permutation.pvalue <= 0.1
    assert small <= 9  # binomial(40, 0.1): 10 or more has probability 0.5 %


def test_many_rows_are_sampled_for_the_automatic_test(monkeypatch):
    monkeypatch.setattr("fitonce.assessment.chance.MOST_ROWS", 50)
    X, y = two_classes(shift=2.0)
    answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=3)
    assert (
        answer.permutation_rows == 50
        and "random sample of 50 of 90 rows" in answer.permutation_statistic
    )


@pytest.mark.parametrize(("classes", "rows"), [(2, 1000), (10, 333), (50, 250), (400, 1000)])
def test_more_classes_are_tested_on_fewer_rows(classes, rows):
    y = np.arange(1200) % classes
    data = AssessedRows.of(KernelFisherDiscriminant(), np.zeros((1200, 1)), y)
    assert most_rows(data) == rows


def test_quick_keeps_what_is_fixed_and_the_kernels_that_are_compared():
    model = KernelFisherDiscriminant(gamma=0.2, alpha=1.0)
    assert repr(quick(model)) == repr(model)
    tuned = KernelRidge(kernel="tune", gamma="tune", penalty="tune", refine=True)
    expected = clone(tuned).set_params(search="coarse", refine=False)
    assert repr(quick(make_pipeline(StandardScaler(), tuned))[-1]) == repr(expected)
    assert quick(KernelFisherDiscriminant(criterion="error")).criterion == "squared_error"


def test_a_test_that_cannot_be_made_says_why():
    """Landmarks that look at the labels and are shared by all folds."""
    X, y = two_classes(60)
    greedy = KernelFisherDiscriminant(
        gamma=0.2, alpha=1.0, landmarks=5, landmark_method="greedy", shared_landmarks=True
    )
    with pytest.warns(UserWarning, match="no permutation test: .*same for all labelings"):
        answer = assess(greedy, X, y, cv=3, statistic="same")
    assert answer.permutation is None


def test_groups_of_one_class_and_one_fold_each():
    """Labels move with their folds, so that six groups in six folds can be tested."""
    X, y = two_classes(60)
    model = KernelFisherDiscriminant(gamma=0.2, alpha=1.0)
    answer = assess(model, X, y, groups=np.arange(60) // 10, cv=6, permutations=199)
    assert answer.permutation.exchange == "whole" and answer.permutation.mode == "cosets"
    assert answer.permutation.pvalue >= 1 / 15  # two sick groups of six


def test_one_mixed_group_takes_no_power():
    """One label of one row of twenty groups is another: groups still move as a whole."""
    random, groups = np.random.default_rng(0), np.arange(100) // 5
    y = np.repeat(np.arange(20) % 2, 5)
    X = random.normal(size=(100, 3)) + 2.0 * y[:, None]
    y[0] = 1 - y[0]
    model = KernelFisherDiscriminant(gamma=0.2, alpha=1.0)
    answer = assess(model, X, y, groups=groups, cv=4, permutations=99)
    assert answer.permutation.exchange == "whole" and answer.permutation.pvalue <= 0.05


def test_a_class_of_one_row():
    X, y = two_classes(40)
    y[5] = "unknown"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=3, permutations=0)
    assert answer.confusion.sum() == 40 and answer.confusion[2, 2] == 0
    np.testing.assert_allclose(answer.probabilities.sum(axis=1), 1.0)
    assert answer.probabilities[5, 2] == 0.0 and answer.decisions is None
    assert any("least populated class" in doubt for doubt in answer.warnings)


def test_rows_that_are_never_tested():
    X, y = two_classes()
    cv = ShuffleSplit(1, test_size=0.3, random_state=0)
    with pytest.warns(UserWarning, match="63 of 90 rows are never tested"):
        answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=cv, permutations=0)
    assert answer.tested.sum() == 27 == answer.confusion.sum()
    assert answer.predictions[~answer.tested].tolist() == [None] * 63
    assert answer.accuracy.value == np.mean(answer.predictions[answer.tested] == y[answer.tested])


def test_leave_one_out():
    X, y = two_classes(40)
    with pytest.warns(UserWarning, match="accuracy of a weak model comes out too low"):
        answer = assess(
            KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=LeaveOneOut(), permutations=19
        )
    assert answer.n_splits == 40 and answer.permutation.n_placements == 1


def test_folds_follow_the_smallest_class():
    X, y = two_classes(60)
    y[:60] = "healthy"
    y[:4] = "sick"
    assert (
        assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, permutations=0).n_splits == 4
    )


def test_to_dict_is_json():
    X, y = two_classes()
    answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, cv=3, permutations=19)
    assert isinstance(answer, Assessment)
    summary = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert summary["score"]["value"] == answer.accuracy.value and summary["classes"] == [
        "healthy",
        "sick",
    ]
    assert (
        "predictions" not in summary
        and summary["permutation"]["pvalue"] == answer.permutation.pvalue
    )
    rows = json.loads(json.dumps(answer.to_dict(rows=True), allow_nan=False))
    assert (
        rows["predictions"] == answer.predictions.tolist()
        and len(rows["permutation"]["null"]["accuracy"]) == 19
    )


@pytest.mark.parametrize(
    ("alpha", "rows", "partitions"),
    [(1.0, 200, 10), (1.0, 100_000, 4), (1.0, 10**6, 1), ("tune", 200, 5), ("tune", 1000, 1)],
)
def test_partitions_follow_from_the_size(alpha, rows, partitions):
    model = KernelRidge(alpha, gamma=0.1)
    data = AssessedRows.of(model, np.zeros((rows, 1)), np.zeros(rows))
    assert n_partitions(model, data) == partitions


def test_the_same_seed_gives_the_same_answer():
    X, y = two_classes()
    runs = [
        assess(tuned(), X, y, cv=3, permutations=19, random_state=seed).to_dict(rows=True)
        for seed in (1, 1, 2)
    ]
    for run in runs:
        del run["seconds"]
    assert runs[0] == runs[1] and runs[0]["fold"] != runs[2]["fold"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(y=np.repeat("a", 90)), r"at least two classes, got only \['a'\]"),
        (dict(y=np.arange(5)), "one entry per row of X"),
        (dict(groups=np.zeros(90)), "at least two groups"),
        (dict(repeats=0), "repeats must be a positive integer"),
        (dict(level=95), "level must be between 0 and 1"),
        (dict(permutations=-1), "permutations must be"),
        (dict(statistic="best"), "statistic must be"),
        (dict(cv=LeaveOneOut(), repeats=2), "needs cv to be a number of folds"),
        (dict(cv=ShuffleSplit(3, test_size=0.5, random_state=0)), "at most once"),
    ],
)
def test_refusals(change, message):
    X, y = two_classes()
    arguments = {"y": y, "permutations": 0, **change}
    with pytest.raises(ValueError, match=message):
        assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, arguments.pop("y"), **arguments)
    with pytest.raises(TypeError, match="classifier or a regressor"):
        assess(StandardScaler(), X, y)


def test_rows_of_a_class_that_is_never_learned_are_mentioned():
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 12 + ["b"] * 12 + ["c"])
    X = rng.normal(size=(25, 2)) + (y == "b")[:, None]
    model = KernelFisherDiscriminant(gamma=0.5, alpha=1.0)
    with pytest.warns(
        UserWarning,
        match=r"rows of a class \(c\) that is missing from their training rows: 1 of 25",
    ):
        answer = assess(model, X, y, permutations=0)
    assert answer.predictions[-1] != "c" and answer.probabilities[-1, 2] == 0
    assert not any(
        "training rows lack" in doubt
        for doubt in assess(model, X[:24], y[:24], permutations=0).warnings
    )


def test_an_assessment_can_be_read():
    X, y = two_classes(60)
    model = KernelFisherDiscriminant(gamma=0.2, alpha=1.0)
    answer = assess(model, X, y, cv=5, permutations=19)
    lines = str(answer).splitlines()
    assert len(lines) < 14 and max(map(len, lines)) <= 100
    row = next(line for line in lines if line.startswith("accuracy"))
    assert re.split(r"  +", row) == ["accuracy", str(answer.score), str(answer.baseline)]
    assert "baseline (majority class)" in lines[1] and "5 stratified folds" in lines[0]
    assert f"Better than chance? accuracy: p = {answer.permutation.pvalue:g}" in str(answer)
    assert "19 permutations" in str(answer)
    assert answer.score.method in str(answer)
    assert len(repr(answer)) < 120 and str(answer.score) in repr(answer)
    page = answer._repr_html_()
    text = re.sub(r"<[^>]+>", " ", page)
    assert all(cell in text for cell in (str(answer.score), str(answer.baseline), lines[0]))


def test_doubts_are_read_as_text():
    X, y = two_classes(40)
    y = np.where(np.arange(40) == 0, "<b>rare</b>", y)
    with pytest.warns(UserWarning, match="rare"):
        answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, permutations=0)
    assert "warning: rows of a class (<b>rare</b>)" in str(answer)
    assert "&lt;b&gt;rare&lt;/b&gt;" in answer._repr_html_() and "<b>" not in answer._repr_html_()


def test_confounds_are_removed_in_every_split_and_named():
    rng = np.random.default_rng(0)
    site = rng.permutation(60) % 3
    X = rng.normal(size=(60, 3)) + 2.0 * (site == 1)[:, None]
    y = np.where((site == 1) ^ (rng.uniform(size=60) < 0.1), "a", "b")
    names = np.array(["x", "y", "z"])[site]
    model = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    options = {"cv": 5, "permutations": 39}
    fooled = assess(model, X, y, **options)
    honest = assess(model, X, y, confounds=names, **options)
    assert fooled.accuracy.value > 0.8 and fooled.permutation.pvalue < 0.05
    assert honest.accuracy.value < 0.75 and honest.permutation.pvalue > 0.05
    assert honest.permutation.exchange == "within levels of the confounds"
    assert "regressed out of the features" in str(honest) and honest.route.name == "one"
    assert fooled.metrics["roc_auc"] > 0.8 and abs(honest.metrics["roc_auc"] - 0.5) < 0.2
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    given = {"cv": folds, "params": {"confounds": names}}
    np.testing.assert_array_equal(honest.predictions, cross_val_predict(model, X, y, **given))


def test_a_fitted_model_is_scored_on_rows_of_another_place():
    """As scikit-learn scores it, with Wilson's interval: no fold and no fit."""
    X, y = two_classes(120)
    model = make_pipeline(StandardScaler(), KernelFisherDiscriminant(gamma=0.2)).fit(X[:80], y[:80])
    new, truth = X[80:] + 0.1, np.where(np.arange(40) < 15, "sick", "healthy")
    answer = assess(model, new, truth, cv="prefit")
    said, p = model.predict(new), model.predict_proba(new)
    np.testing.assert_array_equal(answer.predictions, said)
    assert answer.accuracy.value == accuracy_score(truth, said)
    assert answer.metrics["log_loss"] == pytest.approx(log_loss(truth, p))
    assert answer.metrics["roc_auc"] == pytest.approx(roc_auc_score(truth == "sick", p[:, 1]))
    size = accuracy_score(truth, said) * (1 - accuracy_score(truth, said))
    size /= np.var(truth == said, ddof=1) / 40
    expected = wilson(answer.accuracy.value, size, 0.95, 39)
    assert (answer.accuracy.low, answer.accuracy.high) == pytest.approx(expected)
    assert answer.permutation is None and answer.route.name == "prefit" and not answer.warnings
    assert "a fitted model, rows that are new to it" in str(answer)
    with pytest.raises(NotFittedError):
        assess(KernelFisherDiscriminant(), new, truth, cv="prefit")
    with pytest.raises(ValueError, match="labels that the model knows"):
        assess(model, new, np.where(truth == "sick", 1, 0).astype(str), cv="prefit")
    other = np.where(np.arange(40) < 3, "unclear", truth)
    with pytest.warns(
        UserWarning, match=r"does not know the classes \['unclear'\]: it .* their 3 rows"
    ):
        answer = assess(model, new, other, cv="prefit")
    assert answer.accuracy.value == np.mean(said == other) and answer.confusion.sum() == 40
    assert len(answer.warnings) == 1


def test_a_result_says_how_to_make_it_again():
    X, y = two_classes(40)
    model = LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=None)
    records = [
        assess(model, rows, labels, permutations=0, random_state=3).record
        for rows, labels in ((X, y), (X.copy(), y.copy()), (X + 1e-9, y), (X, y[::-1]))
    ]
    assert records[0] == records[1] and len({record["data"] for record in records}) == 3
    assert records[0]["random_state"] == 3 and records[0]["route"].startswith("one")
    assert records[0]["versions"]["fitonce"] == fitonce.__version__


def test_a_small_p_beside_an_interval_that_holds_zero_is_explained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = 0.7 * X[:, 0] + rng.normal(size=30)
    answer = assess(KernelRidge(1.0, gamma=0.1), X, y, permutations=999)
    assert answer.permutation.pvalue <= 0.05 and answer.r2.low <= 0.0 < answer.r2.value
    assert f"the interval {answer.r2} can both be true" in str(answer)
    clear = assess(KernelRidge(1.0, gamma=0.1), X, 3.0 * X[:, 0], permutations=99)
    assert clear.permutation.pvalue <= 0.05 and "can both be true" not in str(clear)


def test_auc_leads_with_its_interval_and_p():
    X, y = two_classes(60)
    for model in (LeastSquaresSVC(gamma=0.2, alpha=1.0), tuned()):
        answer = assess(model, X, y, cv=5, permutations=39, score="roc_auc")
        assert answer.score == answer.intervals["roc_auc"] and answer.baseline.value == 0.5
        assert answer.score.low < answer.score.value < answer.score.high
        assert list(answer.permutation.scores) == ["roc_auc"] and answer.permutation.pvalue <= 0.05
        cv = StratifiedKFold(5, shuffle=True, random_state=0)
        expected = fitonce.cross_val_score(model, X, y, cv=cv, scoring="roc_auc").mean()
        if model.__class__ is LeastSquaresSVC:  # whose own score is tested
            assert answer.permutation.score == pytest.approx(expected)
    assert "AUC" in str(answer).splitlines()[2]
    with pytest.raises(ValueError, match='also "roc_auc" for two'):
        assess(model, X, np.arange(60) % 3, score="roc_auc")


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_copies_of_rows_stay_in_one_fold_and_are_counted(kind):
    """Noise three times over: a model that has seen the copies knows the answer."""
    rng = np.random.default_rng(0)
    X, y = np.tile(rng.normal(size=(30, 3)), (3, 1)), np.tile(np.arange(30) % 2, 3)
    table = X
    if kind != "array":
        library = pytest.importorskip(kind)
        table = library.DataFrame({f"c{j}": X[:, j] for j in range(3)})
    model = KernelFisherDiscriminant(gamma=1.0, alpha=0.1)
    with pytest.warns(UserWarning, match="60 of 90 rows repeat another row exactly"):
        answer = assess(model, table, y, permutations=0)
    assert answer.grouped and answer.accuracy.low < 0.5
    assert np.array_equal(answer.fold[:30], answer.fold[30:60])
    fooled = assess(model, table, y, cv=StratifiedKFold(5, shuffle=True), permutations=0)
    assert fooled.accuracy.low > 0.5 and not fooled.warnings


def test_equal_rows_of_few_levels_are_no_copies():
    X = np.random.default_rng(0).integers(0, 3, size=(80, 2)).astype(float)
    answer = assess(LeastSquaresSVC(gamma=1.0, alpha=1.0), X, X[:, 0] > 1, permutations=0)
    assert not answer.grouped and not answer.warnings


def test_rows_that_a_fitted_model_has_seen_are_counted():
    X, y = two_classes(60)
    X, y = X[::-1], np.roll(y, 7)
    model = make_pipeline(StandardScaler(), LeastSquaresSVC(gamma=0.2)).fit(X[:40], y[:40])
    with pytest.warns(UserWarning, match="32 of 51 rows equal a row that the model was fitted on"):
        assess(model, X[9:], y[9:], cv="prefit")


def test_where_a_class_is_never_predicted_balanced_accuracy_leads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.where(np.arange(60) < 12, "rare", "often")
    model = LeastSquaresSVC(gamma=0.1, alpha=100.0)
    answer = assess(model, X, y, permutations=39)
    assert "rare" not in answer.predictions and answer.accuracy.value == 0.8
    assert answer.score_name == "balanced_accuracy" and answer.score.value == 0.5
    assert next(iter(answer.permutation.scores)) == "balanced_accuracy"
    assert assess(model, X, y, permutations=0, score="accuracy").score.value == 0.8


def test_one_row_of_each_class_is_refused_in_words() -> None:
    X, y = np.eye(3), np.array(["a", "b", "c"])
    with pytest.raises(ValueError, match="at least two rows of a class, got one row of each"):
        assess(KernelFisherDiscriminant(gamma=1.0, alpha=0.5), X, y, permutations=0)
