"""The promise: our functions return what scikit-learn's return by refitting the same estimator."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.model_selection
from hypothesis import given, settings
from hypothesis import strategies as st
from refit_cases import (
    MODELS,
    OTHER_SPLITS,
    PARAMETERS,
    PARTITIONS,
    SPLITTERS,
    Case,
    assert_close,
    assert_outputs,
    assert_same_outcome,
    assert_same_value,
    held_out_rows,
    make_case,
    refits,
    same,
)
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, UnsetMetadataPassedError
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.preprocessing import StandardScaler

import fitonce
from covering import covering, pairs_of
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, NumericalWarning

FACTORS: dict[str, list[Any]] = {
    "splitter": list(SPLITTERS),
    "kernel": list(PARAMETERS),
    "model": list(MODELS),
    "factor": [1e-6, 1e-3, 1.0, 1e4],
    "fit_intercept": [True, False, "penalized"],
    "size": ["small", "medium", "large"],
    "penalty": ["function", "dual"],
    "weights": ["none", "by row"],
    "rows": ["distinct", "duplicated"],
}


def applies(row: dict[str, Any]) -> bool:
    """The discriminant always has a free bias.

    Leave-one-out refits many rows in one of the large cases only.
    """
    if row.get("splitter") == "LeaveOneOut" and row.get("size", "small") != "small":
        return False
    return not (
        row.get("model", "").startswith("KFD") and row.get("fit_intercept", True) is not True
    )


def pairs_that_apply() -> list[dict[str, Any]]:
    return [
        pair
        for one, other in itertools.combinations(FACTORS, 2)
        for level, level_of_other in itertools.product(FACTORS[one], FACTORS[other])
        if applies(pair := {one: level, other: level_of_other})
    ]


def completed(pair: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The pair with levels of the other factors drawn at random."""
    while True:
        drawn = {name: levels[rng.integers(len(levels))] for name, levels in FACTORS.items()}
        if applies(row := drawn | pair):
            return row


RNG = np.random.default_rng(0)
DRAWN = [completed(pair, RNG) for pair in pairs_that_apply()]
CASES = [DRAWN[i] for i in covering(DRAWN)]
LARGE_CASES = [
    {
        "model": "KFD, 6 classes",
        "kernel": "rbf",
        "splitter": "StratifiedKFold",
        "size": "300",
        "factor": 1e-4,
    },
    {
        "model": "LS-SVM, 3 classes",
        "kernel": "linear",
        "penalty": "dual",
        "splitter": "GroupKFold",
        "size": "300",
        "weights": "by row",
    },
    {
        "model": "KFD, 2 classes",
        "kernel": "poly",
        "splitter": "LeaveOneOut",
        "size": "medium",
        "factor": 1e-6,
        "weights": "by row",
    },
]


def identifier(levels: dict[str, Any]) -> str:
    return "-".join(str(level).replace(" ", "_") for level in levels.values())


# ---- every pair of settings ----------------------------------------------------------------------


def test_every_pair_of_settings_is_covered():
    covered = set().union(*map(pairs_of, CASES))
    assert covered == {tuple(pair.items()) for pair in pairs_that_apply()}
    assert len(CASES) < 160


@pytest.mark.parametrize("levels", [*CASES, *LARGE_CASES], ids=identifier)
def test_outputs_and_scores_equal_refitting(levels):
    """scikit-learn refits once: its scores, and every output of the models that it has fitted."""
    case = make_case(**levels)
    several_rows = len(case.splits[0][1]) > 1  # one row has no R², and so many rounds are slow
    scoring = ["accuracy"] if len(case.methods) == 2 else ["neg_mean_squared_error", "r2"]
    options = {
        "scoring": scoring if several_rows else scoring[0],
        "return_train_score": several_rows,
        **case.arguments,
    }
    theirs = sklearn.model_selection.cross_validate(
        case.estimator, case.X, case.y, return_estimator=True, **options
    )
    tied = _check_outputs(case, theirs.pop("estimator"), levels["splitter"] in PARTITIONS)
    ours = fitonce.cross_validate(case.estimator, case.X, case.y, **options)
    assert ours.route.name == "one"
    if not tied.any():
        # an R² is a difference of numbers that may nearly cancel
        assert_same_value(ours, theirs, 100 * case.tolerance)


def _check_outputs(case: Case, models: Sequence[Any], partition: bool) -> np.ndarray:
    """Every output for the test rows, fold after fold; where asked for, of a partition at once."""
    tests = [test for _, test in case.splits]
    fitted = list(zip(models, held_out_rows(case), strict=True))
    methods = case.methods
    if hasattr(case.estimator, "transform"):
        widths = {model.transform(X).shape[1] for model, X in fitted}
        # an indefinite kernel may leave fewer directions in some folds: these cannot be joined
        methods = [*methods, *(["transform"] if len(widths) == 1 else [])]
    theirs = {
        method: np.concatenate([getattr(model, method)(X) for model, X in fitted])
        for method in methods
    }
    ours = {}
    for method in methods:
        options = {"method": method, "by_fold": not partition, **case.arguments}
        outputs = fitonce.cross_val_predict(case.estimator, case.X, case.y, **options)
        if partition:
            ours[method] = outputs[np.concatenate(tests)]
            continue
        for (got, _), test in zip(outputs, tests, strict=True):
            np.testing.assert_array_equal(got, test)
        ours[method] = np.concatenate([output for _, output in outputs])
    return assert_outputs(ours, theirs, case.tolerance)


@pytest.mark.parametrize("splitter", OTHER_SPLITS)
def test_cross_val_predict_refuses_what_is_no_partition_as_scikit_learn_does(splitter):
    case = make_case(splitter=splitter)
    same(case, "cross_val_predict", **case.arguments)
    with pytest.raises(ValueError, match=r"only works for partitions; use by_fold=True"):
        fitonce.cross_val_predict(
            case.estimator, case.X, case.y, method="transform", **case.arguments
        )


@pytest.mark.parametrize(("model", "n"), [(name, (5, 8)[i % 2]) for i, name in enumerate(MODELS)])
def test_few_rows(model, n):
    estimator_class, width = MODELS[model]
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    y = (
        np.arange(n) % min(width, 3)
        if estimator_class is not KernelRidge
        else rng.normal(size=(n, width))
    )
    estimator = estimator_class(gamma=0.5, alpha=0.1)
    for cv in (LeaveOneOut(), KFold(3), KFold(2)):
        assert_same_outcome("cross_val_predict", estimator, X, y, cv=cv)
        assert_same_outcome("cross_val_score", estimator, X, y, cv=cv)
        if estimator_class is not KernelRidge:
            assert_same_outcome(
                "cross_val_predict", estimator, X, y, cv=cv, method="decision_function"
            )


@pytest.mark.pairwise
@pytest.mark.parametrize("estimator_class", [KernelFisherDiscriminant, LeastSquaresSVC])
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(estimator_class, method, n_classes):
    case = make_case(
        "KFD, 2 classes" if n_classes == 2 else "KFD, 3 classes", weights="by row", size="small"
    )
    estimator = estimator_class(gamma=0.3, alpha=0.5)
    assert_same_outcome(
        "cross_val_predict", estimator, case.X, case.y, method=method, **case.arguments
    )


@pytest.mark.parametrize(
    "estimator",
    [
        KernelFisherDiscriminant(
            gamma=0.3, alpha=0.5, priors=[0.2, 0.3, 0.5], calibration=None, n_components=1
        )
    ],
)
def test_given_priors_and_components(estimator):
    case = replace(make_case(), estimator=estimator)
    _check_outputs(case, [model for model, *_ in refits(case)], partition=True)
    assert_same_outcome(
        "cross_val_predict", estimator, case.X, case.y, method="predict_proba", cv=case.cv
    )


@pytest.mark.parametrize("labels", [[0, 1, 2], [1, 2, 3], ["b", "c", "a"]], ids=str)
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_class_weights(labels, method):
    """scikit-learn numbers the labels before it fits for decision values, so that it may give the
    weights to other classes.
    """
    case = make_case("LS-SVM, 3 classes")
    y = np.array(labels)[np.unique(case.y, return_inverse=True)[1]]
    estimator = LeastSquaresSVC(gamma=0.3, alpha=0.5, class_weight={labels[0]: 3.0, labels[1]: 0.5})
    assert_same_outcome("cross_val_predict", estimator, case.X, y, cv=case.cv, method=method)
    assert_same_outcome("cross_val_score", estimator, case.X, y, cv=case.cv)


# ---- properties ----------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn, least_per_class: int = 1) -> tuple[Any, np.ndarray, np.ndarray, int]:
    """A classifier with fixed parameters, its data, and a seed."""
    n_classes = draw(st.integers(2, 4))
    n = draw(st.integers(max(5, least_per_class * n_classes + 1), 22))
    seed = draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    y = np.concatenate(
        [np.repeat(np.arange(n_classes), least_per_class), rng.integers(n_classes, size=n)]
    )[:n]
    estimator_class = draw(st.sampled_from([KernelFisherDiscriminant, LeastSquaresSVC]))
    penalty = draw(st.sampled_from(["function", "dual"]))
    X = np.round(rng.normal(size=(n, 3)), draw(st.sampled_from([0, 8])))  # coarse rows repeat
    estimator = estimator_class(
        gamma=draw(st.sampled_from([0.05, 1.0])),
        alpha=10.0 ** draw(st.integers(-4, 4)),
        penalty=penalty,
    )
    return estimator, X, rng.permutation(y), seed


@settings(max_examples=16, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([2, 3, 5, 8, 22]), st.booleans())
def test_any_partition_of_any_problem(problem, n_folds, weighted):
    """Failures included: training sets that lack classes, or rows."""
    estimator, X, y, seed = problem
    rng = np.random.default_rng(seed)
    cv = PredefinedSplit(rng.permutation(np.arange(len(y)) % min(n_folds, len(y))))
    params = {"sample_weight": rng.uniform(0.2, 2.0, size=len(y))} if weighted else None
    for method in ("decision_function", "predict"):
        assert_same_outcome(
            "cross_val_predict",
            estimator,
            X,
            y,
            cv=cv,
            method=method,
            params=params,
            tolerance=1e-7,
        )
    assert_same_outcome(
        "cross_val_score", estimator, X, y, cv=cv, params=params, scoring="balanced_accuracy"
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(problems(least_per_class=2))
def test_as_many_folds_as_rows_are_leave_one_out_and_the_fitted_attribute(problem):
    estimator, X, y, _ = problem
    folds, one_out = (
        fitonce.cross_val_predict(estimator, X, y, cv=cv, method="decision_function")
        for cv in (KFold(len(y)), LeaveOneOut())
    )
    np.testing.assert_array_equal(folds, one_out)
    assert_close(estimator.fit(X, y).held_out_decision_, one_out, 1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_the_fitted_attribute_follows_cv(model):
    case = make_case(model, weights="by row", size="small")
    for cv, splitter in ((None, LeaveOneOut()), (case.splits, case.splits)):
        fitted = clone(case.estimator).set_params(cv=cv).fit(case.X, case.y, **case.params)
        held_out = (
            fitted.held_out_decision_
            if hasattr(fitted, "classes_")
            else fitted.held_out_prediction_
        )
        options = {"cv": splitter, "method": case.methods[0], "params": case.params}
        assert_close(
            held_out,
            sklearn.model_selection.cross_val_predict(case.estimator, case.X, case.y, **options),
            case.tolerance,
        )


# ---- cross_validate ------------------------------------------------------------------------------


def agreement(estimator: Any, X: Any, y: Any) -> float:
    """A user's own scorer, which looks at the fitted estimator and at the rows."""
    assert X.shape[1] == estimator.n_features_in_ == estimator.X_fit_.shape[1]
    return float(np.mean(estimator.predict(X) == y))


def several(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    return {"agreement": agreement(estimator, X, y), "rows": len(X)}


BINARY_SCORERS = {
    "default": None,
    "string": "balanced_accuracy",
    "threshold string": "roc_auc",
    "strings": ["accuracy", "roc_auc", "f1_macro", "neg_log_loss"],
    "made, predictions": make_scorer(balanced_accuracy_score),
    "made, threshold": make_scorer(roc_auc_score, response_method="decision_function"),
    "made, either": make_scorer(
        roc_auc_score, response_method=("decision_function", "predict_proba")
    ),
    "made, probabilities": make_scorer(
        log_loss, response_method="predict_proba", greater_is_better=False
    ),
    "dictionary": {
        "auc": "roc_auc",
        "brier": make_scorer(brier_score_loss, response_method="predict_proba", pos_label="Aster"),
    },
    "user's own": agreement,
    "user's own, several": several,
    "user's own among others": {"own": agreement, "accuracy": "accuracy"},
}


@pytest.mark.parametrize("scoring", BINARY_SCORERS.values(), ids=BINARY_SCORERS)
@pytest.mark.parametrize("model", ["KFD, 2 classes", "LS-SVM, 2 classes"])
def test_scorers(model, scoring):
    case = make_case(model, size="small", splitter="StratifiedKFold")
    options = {"scoring": scoring, "cv": case.cv, "error_score": "raise"}
    expected = same(case, "cross_validate", return_train_score=True, **options)
    assert expected.error is None and not expected.categories
    if not isinstance(scoring, (list, dict)) and scoring is not several:
        same(case, "cross_val_score", **options)


def test_scorers_of_several_classes_and_of_targets():
    case = make_case("KFD, 3 classes")
    scoring = ["f1_weighted", "roc_auc_ovr", "neg_log_loss", "matthews_corrcoef"]
    same(case, "cross_validate", scoring=scoring, cv=case.cv, return_train_score=True)
    case = make_case("ridge, 2 targets")
    scoring = {"r2": "r2", "error": "neg_mean_absolute_error"}
    expected = same(case, "cross_validate", scoring=scoring, cv=5, return_train_score=True)
    assert expected.error is None and set(expected.value) >= {"train_r2", "test_error"}


@pytest.mark.parametrize("error_score", [np.nan, -1.0, "raise"], ids=str)
@pytest.mark.parametrize("scoring", ["neg_log_loss", ["accuracy", "neg_log_loss"]], ids=str)
def test_a_metric_that_asks_for_what_the_estimator_lacks(scoring, error_score):
    case = make_case("LS-SVM, 3 classes")
    estimator = case.estimator.set_params(calibration=None)
    assert_same_outcome(
        "cross_validate", estimator, case.X, case.y, scoring=scoring, cv=3, error_score=error_score
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("model", ["KFD, 3 classes", "ridge, 1 target"])
def test_returned_estimators_are_fitted_on_their_training_rows(model, kernel):
    case = make_case(model, kernel, weights="by row", splitter="GroupKFold")
    options = {"return_estimator": True, "return_indices": True, **case.arguments}
    ours = fitonce.cross_validate(case.estimator, case.X, case.y, **options)
    theirs = sklearn.model_selection.cross_validate(case.estimator, case.X, case.y, **options)
    assert_same_value(ours, theirs, case.tolerance)
    for side in ("train", "test"):
        for got, expected in zip(ours["indices"][side], theirs["indices"][side], strict=True):
            np.testing.assert_array_equal(got, expected)
    rows = case.X if kernel != "precomputed" else case.X[:5]
    for got, expected, train in zip(
        ours["estimator"], theirs["estimator"], ours["indices"]["train"], strict=True
    ):
        assert type(got) is type(case.estimator) and got is not case.estimator
        X = rows if kernel != "precomputed" else rows[:, train]
        assert_same_value(got.predict(X), expected.predict(X), case.tolerance)
        assert_close(got.dual_coef_, expected.dual_coef_, case.tolerance)
        assert got.get_params() == case.estimator.get_params()


def missing_class_problem() -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Two classes, and three splits of which the first trains on one class only."""
    rng = np.random.default_rng(5)
    y = np.repeat(["no", "yes"], 9)
    splits = [(np.arange(9), np.arange(9, 18)), *StratifiedKFold(2).split(y, y)]
    return rng.normal(size=(18, 2)) + (y == "yes")[:, None], y, splits


@pytest.mark.pairwise
@pytest.mark.parametrize("estimator_class", [KernelFisherDiscriminant, LeastSquaresSVC])
@pytest.mark.parametrize("error_score", [np.nan, -7.0, "raise"], ids=str)
@pytest.mark.parametrize(
    "scoring",
    [None, ["accuracy", "neg_log_loss"], agreement],
    ids=["default", "several", "user's own"],
)
def test_a_training_set_of_one_class_fails_as_in_scikit_learn(
    estimator_class, error_score, scoring
):
    X, y, splits = missing_class_problem()
    options = {
        "cv": splits,
        "error_score": error_score,
        "scoring": scoring,
        "return_train_score": True,
    }
    expected = assert_same_outcome(
        "cross_validate", estimator_class(gamma=0.5, alpha=1.0), X, y, **options
    )
    if error_score == "raise":
        assert expected.error[0] is ValueError and "only one class" in expected.error[1]
    else:
        assert FitFailedWarning in expected.categories
        np.testing.assert_array_equal(
            next(v for name, v in expected.value.items() if name.startswith("test_"))[0],
            error_score,
        )


def test_estimators_are_returned_even_where_a_fit_failed():
    X, y, splits = missing_class_problem()
    estimator = LeastSquaresSVC(gamma=0.5, alpha=1.0)
    expected = assert_same_outcome(
        "cross_validate", estimator, X, y, cv=splits, return_estimator=True
    )
    with pytest.warns(FitFailedWarning):
        ours = fitonce.cross_validate(estimator, X, y, cv=splits, return_estimator=True)
    assert [hasattr(model, "classes_") for model in ours["estimator"]] == [False, True, True]
    assert all(
        type(model) is LeastSquaresSVC for model in ours["estimator"] + expected.value["estimator"]
    )


def test_when_every_fit_fails_the_exception_is_scikit_learns():
    X, y, splits = missing_class_problem()
    expected = assert_same_outcome(
        "cross_validate", LeastSquaresSVC(gamma=0.5, alpha=1.0), X, y, cv=splits[:1]
    )
    assert "All the 1 fits failed" in expected.error[1]


# ---- classes missing from training sets ----------------------------------------------------------

RARE = {
    "one member": [1, 14, 15],
    "in one fold": [3, 14, 13],
    "two rare classes": [1, 1, 28],
    "one rare class of four": [1, 12, 9, 8],
}


@pytest.mark.pairwise
@pytest.mark.parametrize("sizes", RARE.values(), ids=RARE)
@pytest.mark.parametrize(
    "method", ["decision_function", "predict", "predict_proba", "predict_log_proba"]
)
@pytest.mark.parametrize("estimator_class", [KernelFisherDiscriminant, LeastSquaresSVC])
def test_classes_missing_from_training_folds(estimator_class, method, sizes):
    """Zero-filled probabilities, float-min decisions, warnings and refusals."""
    rng = np.random.default_rng(6)
    y = np.repeat(["a", "b", "c", "d"][: len(sizes)], sizes)
    X = rng.normal(size=(len(y), 3)) + np.unique(y, return_inverse=True)[1][:, None]
    y[3:], X[3:] = y[3:][order := rng.permutation(len(y) - 3)], X[3:][order]
    estimator = estimator_class(gamma=0.3, alpha=0.5)
    for cv in (KFold(5), StratifiedKFold(5)):
        assert_same_outcome("cross_val_predict", estimator, X, y, cv=cv, method=method)
        if method == "predict":
            assert_same_outcome("cross_val_score", estimator, X, y, cv=cv)
    if len(sizes) == 4 and method != "predict":
        with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
            outputs = fitonce.cross_val_predict(estimator, X, y, cv=KFold(5), method=method)
        assert outputs[0, 0] == (0.0 if method == "predict_proba" else np.finfo(float).min)
        assert np.all(outputs[6:, 0] > -1e6)


@pytest.mark.parametrize("options", [{"priors": [0.2, 0.3, 0.5]}, {"n_components": 2}], ids=str)
def test_parameters_that_a_training_fold_with_fewer_classes_cannot_have(options):
    rng = np.random.default_rng(7)
    y = np.concatenate([[0], 1 + np.arange(20) % 2])
    X = rng.normal(size=(21, 3))
    expected = assert_same_outcome(
        "cross_val_score",
        KernelFisherDiscriminant(gamma=0.3, alpha=1.0, **options),
        X,
        y,
        cv=KFold(5),
    )
    assert np.isnan(expected.value[0]) and FitFailedWarning in expected.categories


@pytest.mark.parametrize("error_score", [np.nan, "raise"], ids=str)
def test_too_few_training_rows_for_the_discriminant(error_score):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 3
    estimator = KernelFisherDiscriminant(gamma=0.3, alpha=1.0)
    expected = assert_same_outcome(
        "cross_val_score", estimator, X, y, cv=TimeSeriesSplit(3), error_score=error_score
    )
    if error_score == "raise":
        assert "must be greater than the number of classes, got 3 and 3" in expected.error[1]
    assert_same_outcome(
        "cross_val_predict",
        estimator,
        X,
        y,
        cv=[(np.arange(3), np.arange(3, 12)), (np.arange(3, 12), np.arange(3))],
    )
    light = {
        "sample_weight": np.full(12, 0.3)
    }  # a sum of 3.6 for all rows, less for every training set
    expected = assert_same_outcome(
        "cross_val_score", estimator, X, y, cv=4, params=light, error_score=error_score
    )
    assert expected.error is not None


# ---- what is refused -----------------------------------------------------------------------------


def test_invalid_rows_meet_the_same_exception():
    case = make_case("LS-SVM, 2 classes")
    for bad in (np.nan, np.inf):
        X = case.X.copy()
        X[3, 0] = bad
        assert_same_outcome("cross_val_predict", case.estimator, X, case.y, cv=5)
        assert_same_outcome("cross_val_score", case.estimator, X, case.y, cv=5)
        assert_same_outcome("cross_val_score", case.estimator, X, case.y, cv=5, error_score="raise")
        tested_only = [(np.arange(10, 60), np.arange(10)), (np.arange(4, 50), np.arange(50, 60))]
        assert_same_outcome("cross_val_score", case.estimator, X, case.y, cv=tested_only)


KEYWORDS = {
    "no targets": {"y": None},
    "fewer targets": {"y": np.arange(59) % 2},
    "one class": {"y": np.zeros(60)},
    "targets in a column": {"y": (np.arange(60) % 2)[:, None]},
    "continuous targets": {"y": np.linspace(0, 1, 60)},
    "too many folds": {"cv": 40},
    "wrong length of weights": {"params": {"sample_weight": np.ones(7)}},
    "negative weights": {"params": {"sample_weight": -np.ones(60)}},
    "zero weights": {"params": {"sample_weight": np.arange(60) % 3}},
    "scalar weight": {"params": {"sample_weight": 2.0}},
    "weights in a list": {"params": {"sample_weight": list(range(1, 61))}},
    "weights in a series": {"params": {"sample_weight": pd.Series(np.linspace(1, 2, 60))}},
    "no weights": {"params": {"sample_weight": None}},
    "a parameter that fit does not have": {"params": {"sample_weights": np.ones(60)}},
    "one dimension": {"X": np.arange(60.0)},
    "rows counted from the end": {"cv": [(np.arange(50), np.arange(-10, 0))]},
    "a word for folds": {"cv": "x"},
    "one fold": {"cv": 1},
    "no test rows": {"cv": [(np.arange(50), np.arange(50, 60)), (np.arange(20, 60), np.arange(0))]},
    "an empty training set": {"cv": [(np.arange(0), np.arange(60))]},
    "an unknown metric": {"scoring": "beauty"},
    "an invalid error_score": {"error_score": "rise"},
    "a negative alpha": {"estimator": LeastSquaresSVC(gamma=0.1, alpha=-1.0)},
    "an unknown kernel": {"estimator": LeastSquaresSVC("cubic", alpha=1.0)},
    "a kernel that is no name": {"estimator": LeastSquaresSVC(["rbf"], alpha=1.0)},
    "an indefinite kernel": {
        "estimator": LeastSquaresSVC("sigmoid", gamma=0.6, coef0=-1.0, alpha=1e-3)
    },
    "an inner splitter without groups": {
        "estimator": LeastSquaresSVC(gamma=0.1, alpha=1.0, cv=GroupKFold(3))
    },
    "an inner splitter of too many folds": {
        "estimator": LeastSquaresSVC(gamma=0.1, alpha=1.0, cv=KFold(58))
    },
    "missing probabilities": {
        "estimator": LeastSquaresSVC(gamma=0.1, alpha=1.0, calibration=None),
        "scoring": "neg_log_loss",
    },
}


@pytest.mark.parametrize("changes", KEYWORDS.values(), ids=KEYWORDS)
def test_odd_arguments_have_the_same_outcome(changes):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 3))
    arguments = {
        "estimator": LeastSquaresSVC(gamma=0.1, alpha=1.0),
        "X": X,
        "y": np.arange(60) % 2,
        "cv": 5,
        **changes,
    }
    assert_same_outcome("cross_val_score", **arguments)
    assert_same_outcome("cross_validate", **arguments, return_train_score=True)
    if not {"scoring", "error_score"} & set(changes):
        assert_same_outcome("cross_val_predict", **arguments)
        if arguments["y"] is None or len(arguments["y"]) == 60:
            assert_same_outcome("cross_val_predict", **arguments, method="decision_function")


def test_a_tiny_alpha_warns():
    case = make_case("LS-SVM, 2 classes", kernel="linear", size="small")
    expected = assert_same_outcome(
        "cross_val_predict",
        case.estimator.set_params(alpha=1e-9),
        case.X,
        case.y,
        method="decision_function",
    )
    assert expected.categories == {NumericalWarning}


def test_identical_training_rows_warn():
    X = np.concatenate([np.ones((8, 2)), np.random.default_rng(11).normal(size=(4, 2))])
    cv = [(np.arange(8), np.arange(8, 12)), (np.arange(4, 12), np.arange(4))]
    expected = assert_same_outcome(
        "cross_val_score", LeastSquaresSVC(gamma=0.5, alpha=1.0), X, np.arange(12) % 2, cv=cv
    )
    assert expected.categories == {NumericalWarning}


def test_a_method_that_the_estimator_lacks_is_asked_of_the_estimator():
    case = make_case("ridge, 1 target")
    same(case, "cross_val_predict", method="decision_function")
    case = make_case("LS-SVM, 2 classes")
    assert_same_outcome(
        "cross_val_predict",
        case.estimator.set_params(calibration=None),
        case.X,
        case.y,
        method="predict_proba",
    )


OVERLAPPING = {
    "indices": (np.arange(40), np.arange(38, 60)),
    "masks": (np.arange(60) < 40, np.arange(60) >= 38),
    "lists": (list(range(40)), list(range(38, 60))),
    "counted from the end": (np.arange(60) - 60, np.arange(38, 40)),
}


@pytest.mark.parametrize("split", OVERLAPPING.values(), ids=OVERLAPPING)
@pytest.mark.parametrize("alpha", [1.0, "tune"])
def test_test_rows_inside_their_own_training_set_are_refused(split, alpha):
    case = make_case("LS-SVM, 2 classes")
    cv = [(np.arange(30), np.arange(30, 60)), split]
    message = (
        r"split 1 has 2 test row\(s\) inside its own training set \(row 38 is the first\): .* not "
        r"held out"
    )
    for function in (fitonce.cross_validate, fitonce.cross_val_score, fitonce.cross_val_predict):
        with pytest.raises(ValueError, match=message):
            function(case.estimator.set_params(alpha=alpha), case.X, case.y, cv=cv)
    with pytest.raises(ValueError, match=message):
        fitonce.cross_val_predict(case.estimator, case.X, case.y, cv=cv, by_fold=True)


# ---- data as people have it ----------------------------------------------------------------------


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


FORMATS = {
    "pandas": lambda X: pd.DataFrame(X, columns=list("pqrs"), index=np.arange(len(X))[::-1]),
    "polars": lambda X: pl.DataFrame(X, schema=list("pqrs")),
    "list": lambda X: X.tolist(),
    "read-only": read_only,
    "integer": lambda X: np.round(2 * X).astype(int),
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[::-1, ::2],
    **{
        f"{name} matrix": lambda X, name=name: sp.csr_matrix(np.where(X > 0, X, 0)).asformat(name)
        for name in ("csr", "csc", "coo", "dia", "bsr")
    },
    **{
        f"{name} array": lambda X, name=name: sp.csr_array(np.where(X > 0, X, 0)).asformat(name)
        for name in ("csr", "coo", "lil")
    },
}


@pytest.mark.parametrize(
    ("form", "kernel"),
    [
        *((form, "rbf") for form in FORMATS),
        ("pandas", "linear"),
        ("float32", "linear"),
        ("csr matrix", "linear"),
    ],
)
def test_formats_of_X(form, kernel):
    case = make_case("KFD, 3 classes", kernel, size="small", splitter="GroupKFold")
    case, X = replace(case, cv=case.splits), FORMATS[form](case.X)
    before = X.copy() if hasattr(X, "copy") else None
    for method in ("decision_function", "predict_proba"):
        expected = assert_same_outcome(
            "cross_val_predict", case.estimator, X, case.y, cv=case.cv, method=method
        )
        assert expected.error is None
    options = {"cv": case.cv, "return_estimator": True, "return_train_score": True}
    assert_same_outcome("cross_validate", case.estimator, X, case.y, **options)
    model = fitonce.cross_validate(case.estimator, X, case.y, **options)["estimator"][0]
    if hasattr(X, "columns"):
        # scikit-learn 1.6 cannot read the names of newer polars frames; then neither do we
        known = hasattr(StandardScaler().fit(X), "feature_names_in_")
        assert getattr(model, "feature_names_in_", np.array([])).tolist() == (
            list("pqrs") if known else []
        )
    if isinstance(X, np.ndarray):
        np.testing.assert_array_equal(X, before)


def test_projections_have_the_dtype_of_a_refit():
    case = make_case("KFD, 3 classes")
    case = replace(case, X=case.X.astype(np.float32))
    pairs = fitonce.cross_val_predict(
        case.estimator, case.X, case.y, cv=case.cv, method="transform", by_fold=True
    )
    for (_, got), (model, X, _) in zip(pairs, refits(case), strict=True):
        assert_close(got, model.transform(X), 1e-6)


LABELS = {
    "strings": lambda codes: np.array(["b", "c", "a"])[codes],
    "objects": lambda codes: np.array(["b", "c", "a"], dtype=object)[codes],
    "floats": lambda codes: codes - 1.0,
    "booleans": lambda codes: codes > 0,
    "list": lambda codes: codes.tolist(),
    "pandas": lambda codes: pd.Series(
        np.array(["b", "c", "a"])[codes], index=np.arange(len(codes))[::-1]
    ),
    "categories": lambda codes: pd.Series(np.array(["b", "c", "a"])[codes], dtype="category"),
    "polars": lambda codes: pl.Series(codes),
    "gaps": lambda codes: 10 * codes - 5,
}


@pytest.mark.parametrize("convert", LABELS.values(), ids=LABELS)
def test_formats_of_labels(convert):
    case = make_case("LS-SVM, 3 classes", size="small")
    y = convert(np.unique(case.y, return_inverse=True)[1])
    for method in ("decision_function", "predict"):
        expected = assert_same_outcome(
            "cross_val_predict", case.estimator, case.X, y, cv=4, method=method
        )
        assert expected.error is None
        pairs = fitonce.cross_val_predict(
            case.estimator, case.X, y, cv=4, method=method, by_fold=True
        )
        order = np.argsort(np.concatenate([test for test, _ in pairs]))
        assert_same_value(
            np.concatenate([values for _, values in pairs])[order], expected.value, 1e-8
        )
    assert_same_outcome("cross_validate", case.estimator, case.X, y, cv=4, return_train_score=True)


def test_a_kernel_that_is_symmetric_only_to_single_precision():
    """Accepted by fit; refits read the test rows' side of it."""
    case = make_case("LS-SVM, 3 classes", "precomputed")
    noise = np.random.default_rng(10).normal(size=case.X.shape)
    expected = assert_same_outcome(
        "cross_val_predict",
        case.estimator,
        case.X + 1e-7 * noise,
        case.y,
        cv=5,
        method="decision_function",
    )
    assert expected.error is None


def test_masks_as_splits():
    case = make_case()
    folds = np.arange(60) % 3
    masks = [(folds != fold, folds == fold) for fold in range(3)]
    same(case, "cross_validate", cv=masks, scoring=["accuracy", "neg_log_loss"])
    by_mask, by_index = (
        fitonce.cross_val_predict(
            case.estimator, case.X, case.y, cv=cv, method="decision_function", by_fold=True
        )
        for cv in (masks, PredefinedSplit(folds))
    )
    for (rows, got), (test, expected) in zip(by_mask, by_index, strict=True):
        np.testing.assert_array_equal(rows, test)
        np.testing.assert_array_equal(got, expected)


# ---- metadata ------------------------------------------------------------------------------------


class PlainSplitter:
    """A user's splitter with nothing but what the documentation asks for."""

    def split(self, X, y=None, groups=None):
        yield from KFold(3).split(X)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


@pytest.mark.parametrize("routing", [False, True])
def test_a_users_own_splitter(routing):
    case = make_case()
    with sklearn.config_context(enable_metadata_routing=routing):
        same(case, "cross_validate", cv=PlainSplitter())
        same(case, "cross_val_predict", cv=PlainSplitter(), method="decision_function")


@pytest.mark.parametrize("request_weights", [True, False, None, "how_often"], ids=str)
@pytest.mark.parametrize(
    "cv", [GroupKFold(3), LeaveOneGroupOut(), StratifiedKFold(3)], ids=lambda cv: type(cv).__name__
)
def test_metadata_routing(request_weights, cv):
    case = make_case("LS-SVM, 3 classes", weights="by row")
    name = "how_often" if request_weights == "how_often" else "sample_weight"
    params = {name: case.params["sample_weight"], "groups": case.groups}
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = (
            case.estimator
            if request_weights is None
            else case.estimator.set_fit_request(sample_weight=request_weights)
        )
        estimator.set_score_request(sample_weight=False)
        expected = assert_same_outcome(
            "cross_validate",
            estimator,
            case.X,
            case.y,
            cv=cv,
            params=params,
            return_train_score=True,
        )
        assert (expected.error is None) == (request_weights in (True, "how_often"))
        if expected.error is not None:
            assert expected.error[0] in (UnsetMetadataPassedError, TypeError)
        for method in ("predict", "decision_function", "predict_proba"):
            assert_same_outcome(
                "cross_val_predict", estimator, case.X, case.y, cv=cv, params=params, method=method
            )
        if not isinstance(cv, StratifiedKFold):
            assert_same_outcome(
                "cross_val_score", estimator, case.X, case.y, cv=cv, groups=case.groups
            )


def test_metadata_routing_by_fold():
    case = make_case("LS-SVM, 3 classes", weights="by row")
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = case.estimator.set_fit_request(sample_weight=True)
        params = {**case.params, "groups": case.groups}
        for method in ("decision_function", "predict_proba"):
            options = {"cv": GroupKFold(3), "params": params, "method": method}
            expected = sklearn.model_selection.cross_val_predict(
                estimator, case.X, case.y, **options
            )
            for test, got in fitonce.cross_val_predict(
                estimator, case.X, case.y, by_fold=True, **options
            ):
                assert_close(got, expected[test], 1e-8)
        unasked = case.estimator.set_fit_request(sample_weight=False)
        with pytest.raises(TypeError):
            sklearn.model_selection.cross_val_predict(unasked, case.X, case.y, params=case.params)
        with pytest.raises(TypeError):
            fitonce.cross_val_predict(unasked, case.X, case.y, params=case.params, by_fold=True)


def test_weights_reach_a_scorer_that_asks_for_them():
    case = make_case("LS-SVM, 3 classes", weights="by row")
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = case.estimator.set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        expected = assert_same_outcome(
            "cross_validate",
            estimator,
            case.X,
            case.y,
            scoring=scorer,
            cv=4,
            params=case.params,
            return_train_score=True,
        )
        assert expected.error is None
        default = estimator.set_score_request(sample_weight=True)
        assert_same_outcome(
            "cross_validate",
            default,
            case.X,
            case.y,
            cv=4,
            params=case.params,
            return_train_score=True,
        )


def test_groups_and_n_jobs():
    case = make_case("KFD, 2 classes", splitter="LeaveOneGroupOut")
    expected = sklearn.model_selection.cross_val_score(
        case.estimator, case.X, case.y, cv=case.cv, groups=case.groups
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n_jobs in (None, 2, -1):
            got = fitonce.cross_val_score(
                case.estimator, case.X, case.y, cv=case.cv, groups=case.groups, n_jobs=n_jobs
            )
            np.testing.assert_array_equal(got, expected)
    same(case, "cross_val_score", cv=case.cv)  # the groups are missing
