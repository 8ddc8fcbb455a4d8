"""Which route is taken, what it costs, and that the answer does not depend on it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import sklearn
import sklearn.model_selection
from refit_cases import (
    Case,
    assert_close,
    assert_same_outcome,
    assert_same_value,
    bootstrap_splits,
    make_case,
)
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, RefitWarning
from fitonce.crossval import CrossValidation, Route


@pytest.fixture
def case() -> Case:
    return make_case("KFD, 3 classes", size="small", splitter="StratifiedKFold")


def compare(
    estimator: Any, X: Any, y: Any, methods: tuple[str, ...] = ("predict",), **options: Any
) -> Route:
    """Scores and outputs of both functions must agree; returns our route.

    Warnings other than of refitting are errors.
    """
    options = {"cv": StratifiedKFold(3), **options}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected, fitted = refitted(estimator, X, y, **options)
        warnings.simplefilter("ignore", RefitWarning)
        got = fitonce.cross_validate(estimator, X, y, return_train_score=True, **options)
        assert_same_value(got, expected, 1e-8)
        for method in methods:
            together = fitonce.cross_val_predict(estimator, X, y, method=method, **options)
            by_fold = fitonce.cross_val_predict(
                estimator, X, y, method=method, by_fold=True, **options
            )
            for (test, values), (model, rows) in zip(by_fold, fitted, strict=True):
                np.testing.assert_array_equal(test, rows)
                outputs = getattr(model, method)(X.iloc[test] if hasattr(X, "iloc") else X[test])
                assert_same_value(values, outputs, 1e-8)
                assert_same_value(together[test], outputs, 1e-8)
    return got.route


def refitted(estimator: Any, X: Any, y: Any, **options: Any) -> tuple[dict[str, Any], list[Any]]:
    """scikit-learn's scores, and the models that it has fitted with their test rows."""
    asked = {"return_train_score": True, "return_estimator": True, "return_indices": True}
    scores = sklearn.model_selection.cross_validate(estimator, X, y, **asked, **options)
    models, tests = scores.pop("estimator"), scores.pop("indices")["test"]
    return scores, list(zip(models, tests, strict=True))


# ---- one -----------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets an entry for every factorisation of a matrix as large as the training set,
    and for every fit.
    """
    entries: list[str] = []

    def count(owner: Any, name: str, size: Any) -> None:
        original = getattr(owner, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            if size(args) >= 20:
                entries.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counting)

    for owner, name in (
        (scipy.linalg, "eigh"),
        (scipy.linalg.lapack, "dpotrf"),
        (scipy.linalg, "cho_factor"),
        (np.linalg, "inv"),
    ):
        count(owner, name, lambda args: args[0].shape[0])
    for estimator_class in (KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge):
        count(estimator_class, "fit", lambda args: len(args[1]))
    return entries


@pytest.mark.pairwise
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("kernel", ["rbf", "wide linear", "precomputed"])
@pytest.mark.parametrize("model", ["KFD, 3 classes", "LS-SVM, 2 classes", "ridge, 2 targets"])
def test_ten_folds_cost_one_factorisation_and_no_fit(model, kernel, penalty, counted):
    case = make_case(model, kernel, penalty)
    methods = [*case.methods, *(["transform"] if hasattr(case.estimator, "transform") else [])]
    calls = [(fitonce.cross_val_predict, {"method": method}) for method in methods]
    calls += [(fitonce.cross_val_score, {}), (fitonce.cross_validate, {"return_train_score": True})]
    given = case.estimator, case.X, case.y
    for function, options in calls:
        counted.clear()
        function(*given, cv=KFold(10), **options)
        assert len(counted) == 1 and counted[0] != "fit"
    counted.clear()
    sklearn.model_selection.cross_val_score(*given, cv=KFold(10))
    assert counted.count("fit") == 10 and len(counted) >= 20  # the counting counts


def test_fixed_parameters_take_route_one(case):
    results = fitonce.cross_validate(case.estimator, case.X, case.y, cv=case.cv)
    assert isinstance(results, CrossValidation) and isinstance(results, dict)
    assert results.route == Route("one", "fixed parameters", 0)
    assert str(results.route) == "one (fixed parameters)"
    weights = {"sample_weight": np.linspace(0.5, 2.0, len(case.y))}
    given = case.X, case.y
    weighted = fitonce.cross_validate(case.estimator, *given, cv=case.cv, params=weights)
    assert weighted.route.name == "one"
    for fixed in (
        clone(case.estimator).set_params(gamma=None),
        clone(case.estimator).set_params(gamma=0.5),
        LeastSquaresSVC(gamma=0.3, alpha=1.0, class_weight={"moss": 2.0}),
        LeastSquaresSVC("linear", alpha=1.0, gamma="scale"),  # a kernel that has no gamma
    ):
        assert fitonce.cross_validate(fixed, *given).route.name == "one"


FITTED_FOLDS: dict[str, tuple[dict[str, Any], int]] = {
    "two metrics": ({"scoring": ["accuracy", "f1_macro"]}, 0),
    "made": ({"scoring": make_scorer(accuracy_score)}, 0),
    "probabilities": ({"scoring": ["accuracy", "neg_log_loss"]}, 4),
    "several classes' AUC": ({"scoring": "roc_auc_ovr"}, 4),
    "estimators": ({"return_estimator": True}, 4),
    "estimators and probabilities": ({"return_estimator": True, "scoring": "neg_log_loss"}, 4),
    "expanding windows": ({"cv": TimeSeriesSplit(3)}, 1),
    "sliding windows": ({"cv": TimeSeriesSplit(3, max_train_size=5)}, 3),
    "repeats": ({"cv": bootstrap_splits(np.zeros(20), np.zeros(20))}, 3),
}


@pytest.mark.parametrize(("options", "fitted_folds"), FITTED_FOLDS.values(), ids=FITTED_FOLDS)
def test_folds_that_had_to_be_fitted_are_counted(case, options, fitted_folds):
    options = {"cv": case.cv, **options}
    route = fitonce.cross_validate(case.estimator, case.X, case.y, **options).route
    assert route == Route("one", "fixed parameters", fitted_folds)
    assert (f"{fitted_folds} folds fitted literally" in str(route)) == (fitted_folds > 0)


# ---- per-fold ------------------------------------------------------------------------------------


def weights_of_zero(n: int) -> dict[str, Any]:
    return {"params": {"sample_weight": (np.arange(n) % 4 > 0).astype(float)}}


def own_scorer(estimator: Any, X: Any, y: Any) -> float:
    return float(np.mean(estimator.predict(X) == y))


PER_FOLD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "tuned by default": (KernelFisherDiscriminant(), {}, "alpha is chosen on each training set"),
    "tuned alpha": (LeastSquaresSVC(gamma=0.2), {}, "alpha is chosen"),
    "candidates": (LeastSquaresSVC(gamma=0.2, alpha=[0.01, 0.1, 1.0]), {}, "alpha is chosen"),
    "one candidate": (LeastSquaresSVC(gamma=0.2, alpha=[0.1]), {}, "alpha is chosen"),
    "candidates by inner folds": (
        KernelFisherDiscriminant(gamma=0.2, alpha=np.logspace(-3, 1, 5), cv=3),
        {},
        "alpha is chosen",
    ),
    "scaled gamma": (
        KernelFisherDiscriminant(gamma="scale", alpha=0.1),
        {},
        "gamma='scale' depends on the training rows",
    ),
    "tuned gamma": (LeastSquaresSVC("laplacian", alpha=0.1), {}, "gamma='tune' depends"),
    "balanced": (
        LeastSquaresSVC(gamma=0.2, alpha=0.1, class_weight="balanced"),
        {},
        'class_weight="balanced" depends',
    ),
    "zero weights": (LeastSquaresSVC(gamma=0.2, alpha=0.1), weights_of_zero(20), "zero weight"),
    "own scorer": (LeastSquaresSVC(gamma=0.2, alpha=0.1), {"scoring": own_scorer}, "user-defined"),
    "refused together": (
        LeastSquaresSVC("sigmoid", gamma=0.6, coef0=-1.0, alpha=1.75),
        {"error_score": 0.5},
        "are refused",
    ),
}


@pytest.mark.parametrize(("estimator", "options", "reason"), PER_FOLD.values(), ids=PER_FOLD)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_what_depends_on_the_training_rows_goes_fold_by_fold(case, estimator, options, reason):
    options = {"cv": StratifiedKFold(3), **options}
    theirs, fitted = refitted(estimator, case.X, case.y, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RefitWarning)
        ours = fitonce.cross_validate(estimator, case.X, case.y, return_train_score=True, **options)
    assert_same_value(ours, theirs, 1e-8)
    assert ours.route.name == "per-fold" and reason in ours.route.reason
    assert ours.route.fitted_folds == 0
    if not {"scoring", "error_score"} & set(options):
        for method in ("predict", "decision_function", "predict_proba"):
            got = fitonce.cross_val_predict(estimator, case.X, case.y, method=method, **options)
            for model, test in fitted:
                assert_same_value(got[test], getattr(model, method)(case.X[test]), 1e-8)


def test_tuned_regression():
    case = make_case("ridge, 2 targets", size="small", weights="by row")
    for model in (KernelRidge(), KernelRidge(kernel="linear", alpha=[0.1, 1.0], penalty="dual")):
        route = compare(model, case.X, case.y, cv=KFold(3), params=case.params)
        assert route.name == "per-fold"


def frame(case: Case) -> pd.DataFrame:
    """Numbers with gaps, and a column of words."""
    table = pd.DataFrame(case.X, columns=list("pqrs"))
    table.loc[::5, "q"] = np.nan
    table["place"] = np.array(["shore", "wood", "field"])[np.arange(len(table)) % 3]
    return table


def preprocessing() -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return ColumnTransformer(
        [
            ("numbers", numbers, list("pqrs")),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["place"]),
        ]
    )


FIXED = LeastSquaresSVC(gamma=0.2, alpha=0.1)
PIPELINES: dict[str, Any] = {
    "scaled": make_pipeline(StandardScaler(), FIXED),
    "scaled and tuned": make_pipeline(StandardScaler(), KernelFisherDiscriminant()),
    "linear": make_pipeline(StandardScaler(), KernelFisherDiscriminant("linear", alpha=1.0)),
    "sees the labels": make_pipeline(SelectKBest(k=2), FIXED),
    "several steps": Pipeline(
        [
            ("scale", StandardScaler()),
            ("reduce", PCA(2)),
            ("model", KernelFisherDiscriminant(gamma=0.2, alpha=0.1)),
        ]
    ),
    "nested": make_pipeline(make_pipeline(StandardScaler(), PCA(3)), FIXED),
    "nothing before": make_pipeline(FIXED),
}


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_pipelines_that_end_in_ours(case, pipeline):
    methods = ("predict", "decision_function", "predict_proba")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RefitWarning)
        route = compare(pipeline, case.X, case.y, methods=methods)
    assert route == Route("per-fold", "preprocessing is refitted on each training set")


@pytest.mark.parametrize("model", [FIXED, KernelFisherDiscriminant()], ids=["fixed", "tuned"])
def test_missing_values_and_words_through_a_pipeline(case, model):
    words, numbers = make_pipeline(preprocessing(), model), make_pipeline(SimpleImputer(), FIXED)
    route = compare(words, frame(case), case.y, methods=("predict", "predict_proba"))
    assert route.name == "per-fold"
    assert compare(numbers, frame(case)[list("pqrs")].to_numpy(), case.y).name == "per-fold"


def test_weights_reach_the_last_step_of_a_pipeline(case):
    pipeline = make_pipeline(StandardScaler(), FIXED)
    weights = np.linspace(0.5, 2.0, len(case.y))
    params = {"leastsquaressvc__sample_weight": weights}
    compare(pipeline, case.X, case.y, methods=("decision_function",), params=params)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LeastSquaresSVC(gamma=0.2, alpha=0.1)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=False),
        )
        options = {"cv": StratifiedKFold(3), "params": {"sample_weight": weights}}
        options["method"] = "decision_function"
        expected = sklearn.model_selection.cross_val_predict(routed, case.X, case.y, **options)
        got = fitonce.cross_val_predict(routed, case.X, case.y, **options)
        assert_close(got, expected, 1e-8)


def test_projections_of_a_pipeline(case):
    pipeline = make_pipeline(StandardScaler(), KernelFisherDiscriminant(gamma=0.2, alpha=0.1))
    got = fitonce.cross_val_predict(pipeline, case.X, case.y, cv=case.cv, method="transform")
    for train, test in case.splits:
        expected = pipeline.fit(case.X[train], case.y[train]).transform(case.X[test])
        assert_close(got[test], expected, 1e-8)


# ---- refit ---------------------------------------------------------------------------------------


class Majority(ClassifierMixin, BaseEstimator):
    """Somebody else's classifier."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.winner_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.winner_)


REFIT: dict[str, Any] = {
    "grid search": GridSearchCV(LeastSquaresSVC(alpha=1.0), {"gamma": [0.1, 1.0]}, cv=2),
    "calibration": CalibratedClassifierCV(FIXED, cv=2),
    "one against the rest": OneVsRestClassifier(FIXED),
    "bagging": BaggingClassifier(FIXED, n_estimators=3, random_state=0),
    "foreign": LogisticRegression(),
    "foreign at the end": make_pipeline(
        KernelFisherDiscriminant(gamma=0.2, alpha=0.1), LinearDiscriminantAnalysis()
    ),
    "a user's own": Majority(),
}


@pytest.mark.parametrize("estimator", REFIT.values(), ids=REFIT)
def test_everything_else_is_refitted_and_says_so(case, estimator):
    methods = tuple(method for method in ("predict", "predict_proba") if hasattr(estimator, method))
    route = compare(estimator, case.X, case.y, methods=methods)
    assert route == Route("refit", f"{type(estimator).__name__} has no closed form")
    for function in (fitonce.cross_validate, fitonce.cross_val_score, fitonce.cross_val_predict):
        with pytest.warns(
            RefitWarning,
            match=rf"no closed form for {type(estimator).__name__}: it is refitted on every "
            r"training set",
        ) as caught:
            function(estimator, case.X, case.y, cv=2)
        assert caught[0].filename == __file__  # it points at the caller


def test_a_target_transformer_around_ours_is_refitted():
    case = make_case("ridge, 1 target", size="small")
    estimator = TransformedTargetRegressor(
        KernelRidge(gamma=0.2, alpha=0.1), func=np.log1p, inverse_func=np.expm1
    )
    assert compare(estimator, case.X, case.y, cv=KFold(3)).name == "refit"


@pytest.mark.parametrize(
    "thing",
    [3, "ridge", None, object(), [FIXED], KernelRidge],
    ids=["3", "name", "None", "object", "list", "class"],
)
@pytest.mark.parametrize(
    "function", [fitonce.cross_validate, fitonce.cross_val_score, fitonce.cross_val_predict]
)
def test_what_is_not_an_estimator_is_a_type_error(case, function, thing):
    with pytest.raises(TypeError, match=r"estimator"):
        function(thing, case.X, case.y)


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_a_mistake_in_the_closed_form_is_raised(case, kind, monkeypatch):
    """Only what is refused where it is checked sends a model to another route."""

    def mistaken(*_: Any, **__: Any) -> None:
        raise kind("a mistake")

    monkeypatch.setattr("fitonce.crossval.decomposed.warn_if_inaccurate", mistaken)
    stacked = np.stack([case.X, case.X], axis=2)
    for function in (
        fitonce.cross_validate,
        fitonce.cross_val_score,
        fitonce.cross_val_predict,
        fitonce.learning_curve,
    ):
        with pytest.raises(kind, match="a mistake"):
            function(FIXED, case.X, case.y, cv=2)
    with pytest.raises(kind, match="a mistake"):
        fitonce.positions.generalize(FIXED, stacked, case.y, cv=2)


def failing_kernel(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """A user's kernel of few rows only."""
    if len(X) > 60:
        raise KeyError(len(X))
    return X @ Y.T


def test_a_kernel_function_that_fails_does_so_in_every_fold_or_in_none(case):
    estimator = LeastSquaresSVC(failing_kernel, alpha=1.0)
    for n_folds in (2, 10):
        X, y = np.tile(case.X, (4, 1))[:80], np.tile(case.y, 4)[:80]
        expected = assert_same_outcome("cross_val_score", estimator, X, y, cv=n_folds)
        assert (expected.error is None) == (n_folds == 2)


# ---- said aloud ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "line"),
    [
        (FIXED, "route one (fixed parameters)"),
        (LeastSquaresSVC(gamma=0.2), "route per-fold (alpha is chosen on each training set)"),
        (
            make_pipeline(StandardScaler(), FIXED),
            "route per-fold (preprocessing is refitted on each training set)",
        ),
        (LogisticRegression(), "route refit (LogisticRegression has no closed form)"),
    ],
    ids=["one", "per-fold", "pipeline", "refit"],
)
@pytest.mark.filterwarnings("ignore::fitonce.RefitWarning")
def test_the_route_is_logged(case, estimator, line, caplog):
    for function in (fitonce.cross_validate, fitonce.cross_val_score, fitonce.cross_val_predict):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="fitonce"):
            function(estimator, case.X, case.y, cv=2)
        assert [
            (record.name, record.levelname, record.getMessage()) for record in caplog.records
        ] == [("fitonce", "INFO", line)]


def test_folds_fitted_for_probabilities_are_logged(case, caplog):
    with caplog.at_level(logging.INFO, logger="fitonce"):
        fitonce.cross_val_predict(FIXED, case.X, case.y, cv=4, method="predict_proba")
    assert caplog.messages == ["route one (fixed parameters; 4 folds fitted literally)"]


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("model", ["KFD, 3 classes", "LS-SVM, 2 classes", "ridge, 1 target"])
def test_the_answer_does_not_depend_on_the_route(model, penalty):
    """The same model as a single candidate (per-fold), in a pipeline (per-fold) and in a search
    (refit).
    """
    case = make_case(model, penalty=penalty, weights="by row")
    alpha, options = case.estimator.alpha, {"cv": case.splits, "method": case.methods[0]}
    expected = fitonce.cross_val_predict(case.estimator, case.X, case.y, **options)
    candidate = sklearn.base.clone(case.estimator).set_params(alpha=[alpha])
    search = GridSearchCV(case.estimator, {"alpha": [alpha]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)
        for other in (candidate, make_pipeline("passthrough", case.estimator), search):
            assert_close(
                fitonce.cross_val_predict(other, case.X, case.y, **options),
                expected,
                case.tolerance,
            )
