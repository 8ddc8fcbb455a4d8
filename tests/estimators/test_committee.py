"""Committees: their held-out outputs against refits written here, and scikit-learn's functions."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import sklearn.model_selection as plain
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import (
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    RefitWarning,
)
from fitonce.core.calibration import probabilities
from fitonce.datasets import make_ringnorm
from fitonce.estimators.probability import fit_calibration, held_out_probabilities
from fitonce.preparation import NormalScores, RelevanceScaler
from sklearn_checks import with_checks

try:
    import sklearn.utils.estimator_checks  # noqa: F401
except RuntimeError as error:  # scikit-learn 1.6 with SciPy 1.14 and later
    pytest.skip(f"scikit-learn's checks cannot be imported: {error}", allow_module_level=True)


def classifiers(calibration: str = "temperature") -> list[Any]:
    return [
        KernelFisherDiscriminant(gamma=0.3, alpha=[0.1, 1.0], calibration=calibration),
        KernelFisherDiscriminant("linear", alpha=0.1, calibration=calibration),
        LeastSquaresSVC(
            "laplacian", gamma=0.2, alpha=[0.1, 1.0], penalty="tune", calibration=calibration
        ),
    ]


def classes(c: int) -> tuple[np.ndarray, np.ndarray]:
    """Unbalanced, with a row that occurs twice."""
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:7, 50:66, 100:111, 100] if c == 3 else np.r_[50:62, 100:124, 100]
    return X[rows], np.array(["a", "b", "c"])[y[rows]]


RIDGES = [
    KernelRidge(gamma=2.0, alpha=[0.1, 1.0]),
    KernelRidge(kernel="linear", alpha=0.1),
    KernelRidge(kernel="laplacian", gamma=0.5, alpha=1.0, penalty="dual"),
]


def numbers() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return 10.0 * X[:60], y[:60]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("c", "calibration"), [(2, "temperature"), (3, "temperature"), (3, "sigmoid"), (2, "isotonic")]
)
def test_held_out_probabilities_are_those_of_refits(c: int, calibration: str) -> None:
    """Each member without a row, calibrated without that row's part, mixed, at the temperature."""
    X, y = classes(c)
    model = KernelCommitteeClassifier(classifiers(calibration)).fit(X, y)
    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    assert np.all(np.diff(model.weights_) <= 0)
    labels, n = np.unique(y, return_inverse=True)[1], len(y)
    part = np.empty(n, dtype=int)
    for label in range(c):
        part[labels == label] = np.arange((labels == label).sum()) % 5
    mixture = np.zeros((n, c))
    for weight, member in zip(model.weights_, model.members_, strict=True):
        names = ("alpha", "penalty", "gamma")
        fixed = {name: getattr(member, f"{name}_") for name in names if hasattr(member, f"{name}_")}
        decision = []
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            refit = clone(member).set_params(calibration=None, **fixed).fit(X[rest], y[rest])
            decision.append(refit.decision_function(X[[i]])[0])
        for number in range(5):
            own, others = part == number, part != number
            fitted = fit_calibration(
                calibration, np.array(decision)[others], labels[others], np.ones(others.sum())
            )
            mixture[own] += weight * fitted.probabilities(np.array(decision)[own])
    expected = probabilities(np.log(mixture), 1.0 / model.temperature_, model.floor_)
    np.testing.assert_allclose(model.held_out_proba_, expected, rtol=1e-6, atol=1e-9)
    own = np.log(expected[np.arange(n), labels])
    np.testing.assert_allclose(model.best_score_, own.mean(), rtol=1e-7)


@pytest.mark.parametrize("c", [2, 3])
def test_outputs_agree_with_each_other(c: int) -> None:
    X, y = classes(c)
    model = KernelCommitteeClassifier(classifiers()).fit(X, y)
    mixture = sum(
        w * m.predict_proba(X) for w, m in zip(model.weights_, model.members_, strict=True)
    )
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.argmax(p, axis=1), np.argmax(mixture, axis=1))
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(p, axis=1)])
    decision = model.decision_function(X)
    assert decision.shape == ((len(X),) if c == 2 else (len(X), c))
    codes = (decision > 0).astype(int) if c == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[codes], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))


@pytest.mark.parametrize(
    ("case", "method"),
    [
        ("scaled", "predict"),
        ("scaled", "predict_proba"),
        ("scaled", "decision_function"),
        ("cv", "predict_proba"),
        ("weights", "decision_function"),
        ("groups", "predict_proba"),
    ],
)
def test_cross_val_predict_is_scikit_learns(case: str, method: str) -> None:
    """Members and weights are found on each training set."""
    X, y = classes(3)
    inner = KFold(4, shuffle=True, random_state=1) if case == "cv" else None
    model: Any = KernelCommitteeClassifier(classifiers(), cv=inner)
    keywords: dict[str, Any] = {"cv": StratifiedKFold(3), "method": method}
    if case == "scaled":
        model = make_pipeline(StandardScaler(), model)
    if case == "weights":
        weights = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
        weights[::8] = 0.0
        keywords["params"] = {"sample_weight": weights}
    if case == "groups":
        groups = np.arange(len(y)) % 6
        keywords |= {"cv": GroupKFold(3), "groups": groups, "params": {"groups": groups}}
    ours = fitonce.cross_val_predict(model, X, y, **keywords)
    theirs = plain.cross_val_predict(model, X, y, **keywords)
    if method == "predict":
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_routes_and_permutations_say_what_they_do() -> None:
    X, y = classes(2)
    model = KernelCommitteeClassifier(classifiers()[:2])
    result = fitonce.cross_validate(model, X, y, cv=3)
    assert "members and their weights are chosen on each training set" in str(result.route)
    expected = plain.cross_validate(model, X, y, cv=3)["test_score"]
    np.testing.assert_allclose(result["test_score"], expected)
    options = {"cv": StratifiedKFold(3), "n_permutations": 3, "random_state": 0}
    with pytest.warns(RefitWarning, match="members and their weights"):
        ours = fitonce.permutation_test_score(model, X, y, permute="resplit", **options)
    theirs = plain.permutation_test_score(model, X, y, **options)
    np.testing.assert_allclose(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1])


def test_a_weight_of_two_is_a_repeated_row() -> None:
    """With groups, so that the copy leaves with its row."""
    X, y = classes(3)
    groups, twice = np.arange(len(y)) % 6, np.arange(5, 15)
    weights = np.ones(len(y))
    weights[twice] = 2.0
    ours = KernelCommitteeClassifier(classifiers()).fit(X, y, weights, groups)
    rows = np.r_[: len(y), twice]
    repeated = KernelCommitteeClassifier(classifiers()).fit(X[rows], y[rows], None, groups[rows])
    np.testing.assert_allclose(ours.weights_, repeated.weights_, rtol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("step", [None, NormalScores(), RelevanceScaler(labels=True)], ids=str)
def test_rows_of_weight_zero_do_not_train(step: Any) -> None:
    """Nor do they prepare anything."""
    X, y = classes(3)
    weights = np.ones(len(y))
    weights[::9] = 0.0
    kept = weights > 0
    X[~kept] *= 100.0
    fixed = KernelFisherDiscriminant(gamma=0.3, alpha=0.1)
    members = classifiers() if step is None else [make_pipeline(step, fixed)]
    ours = KernelCommitteeClassifier(members).fit(X, y, weights)
    without = KernelCommitteeClassifier(members).fit(X[kept], y[kept])
    if step is None:
        np.testing.assert_allclose(ours.held_out_proba_[kept], without.held_out_proba_, rtol=1e-8)
        np.testing.assert_allclose(ours.predict_proba(X), without.predict_proba(X), rtol=1e-8)
    one, other = (model.members_[0].decision_function(X[kept]) for model in (ours, without))
    np.testing.assert_allclose(one, other, rtol=1e-8)
    assert np.isfinite(ours.held_out_proba_).all()


def test_a_class_of_one_row_is_passed_over() -> None:
    X, y = classes(3)
    rows = np.r_[0, 7 : len(y)]
    model = KernelCommitteeClassifier(classifiers()).fit(X[rows], y[rows])
    assert np.isfinite(model.best_score_)
    assert np.isfinite(model.predict_proba(X)).all()


def test_calibration_does_not_see_its_own_rows() -> None:
    """Labels without any meaning: isotonic steps fitted to the rows they describe find some."""
    random = np.random.default_rng(0)
    decision, labels = random.normal(size=(1, 60)), random.integers(0, 2, 60)
    rows, weights = np.arange(60), np.ones(60)
    own = held_out_probabilities("isotonic", decision, labels, weights, np.zeros(60, dtype=int))
    parts = held_out_probabilities("isotonic", decision, labels, weights, rows % 5)
    assert -np.log(own[0, rows, labels]).mean() < np.log(2.0)
    assert -np.log(parts[0, rows, labels]).mean() > np.log(2.0)


@pytest.mark.parametrize("targets", [1, 2])
def test_regression_has_the_best_mixture_of_refits(targets: int) -> None:
    X, y = numbers()
    y = y if targets == 1 else np.column_stack([y, 1e3 * X[:, 0] + np.sin(y)])
    model = KernelCommitteeRegressor(RIDGES).fit(X, y)
    held_out = np.zeros(y.shape)
    for weight, member in zip(model.weights_, model.members_, strict=True):
        fixed = clone(member).set_params(alpha=member.alpha_)
        held_out += weight * plain.cross_val_predict(fixed, X, y, cv=plain.LeaveOneOut())
    np.testing.assert_allclose(model.held_out_prediction_, held_out, rtol=1e-7)
    error = np.mean((y - held_out) ** 2 / y.var(axis=0))
    np.testing.assert_allclose(-model.best_score_, error, rtol=1e-7)
    assert model.best_score_ >= model.candidates_["score"].mean()
    predicted = sum(w * m.predict(X) for w, m in zip(model.weights_, model.members_, strict=True))
    np.testing.assert_allclose(model.predict(X), predicted)
    ours = fitonce.cross_val_predict(KernelCommitteeRegressor(RIDGES), X, y, cv=4)
    theirs = plain.cross_val_predict(KernelCommitteeRegressor(RIDGES), X, y, cv=4)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_a_member_after_a_preparation_is_the_model_on_prepared_rows() -> None:
    X, y = classes(3)
    alone = KernelFisherDiscriminant(gamma=0.3, alpha=[0.1, 1.0])
    model = KernelCommitteeClassifier([make_pipeline(NormalScores(), alone)]).fit(X, y)
    scores = NormalScores().fit(X)
    prepared = KernelCommitteeClassifier([alone]).fit(scores.transform(X), y)
    np.testing.assert_allclose(model.held_out_proba_, prepared.held_out_proba_, rtol=1e-12)
    new = X[::3] + 0.05
    expected = prepared.predict_proba(scores.transform(new))
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-12)
    assert model.names_ == ["NormalScores, " + name for name in prepared.names_]
    assert model.verify(2).passed


@pytest.mark.parametrize("given", [None, StratifiedKFold(4)])
def test_a_preparation_by_labels_is_refitted(given: Any) -> None:
    """Its model has the parameters that a search on all rows finds."""
    X, y = classes(3)
    alone = KernelFisherDiscriminant(alpha=[0.1, 1.0])
    member = make_pipeline(RelevanceScaler(labels=True), alone)
    model = KernelCommitteeClassifier([member], cv=given).fit(X, y)
    assert len(model.members_) == len(model.candidates_["name"]) == 1
    chosen = {name: getattr(model.members_[0][-1], f"{name}_") for name in ("gamma", "alpha")}
    fixed = clone(member)
    fixed[-1].set_params(**chosen)
    folds = given or StratifiedKFold(5, shuffle=True, random_state=0)
    expected = plain.cross_val_predict(fixed, X, y, cv=folds, method="predict_proba")
    own = expected[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    np.testing.assert_allclose(model.candidates_["score"][0], np.log(own).mean())
    whole = fixed.fit(X, y).predict_proba(X)  # calibrated by its own held-out rows
    np.testing.assert_allclose(model.members_[0].predict_proba(X), whole)


@pytest.mark.parametrize("estimator", [KernelCommitteeClassifier, KernelCommitteeRegressor])
def test_cross_validation_of_the_default_is_that_of_refits(estimator: Any) -> None:
    """Preparations, members and weights are found on each training set."""
    rows = np.random.default_rng(0).permutation(60)
    X, y = load_iris(return_X_y=True) if estimator is KernelCommitteeClassifier else numbers()
    X, y = (X[50:110:2], y[50:110:2]) if estimator is KernelCommitteeClassifier else (X, y)
    X, y = X[rows[rows < len(y)]], y[rows[rows < len(y)]]
    method = "predict_proba" if estimator is KernelCommitteeClassifier else "predict"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = fitonce.cross_val_predict(estimator(), X, y, cv=2, method=method)
        theirs = plain.cross_val_predict(estimator(), X, y, cv=2, method=method)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_the_default_suits_its_rows() -> None:
    """Sparse rows are not prepared, and labels of a few rows do not weigh columns."""
    X, y = classes(3)
    for model in (
        KernelCommitteeClassifier().fit(X, y),
        KernelCommitteeRegressor().fit(*numbers()),
    ):
        names = " ".join(model.candidates_["name"])
        for part in ("rbf", "laplacian", "linear", "poly", "NormalScores", "RelevanceScaler"):
            assert part in names
    sparse = " ".join(KernelCommitteeClassifier().fit(csr_array(X), y).candidates_["name"])
    assert "Scores" not in sparse and "Scaler" not in sparse and "poly" in sparse
    windows = KernelCommitteeRegressor(cv=TimeSeriesSplit(3)).fit(*numbers())
    assert not any("RelevanceScaler" in name for name in windows.candidates_["name"])
    few = np.r_[0:4, 7 : len(y)]
    small = " ".join(KernelCommitteeClassifier().fit(X[few], y[few]).candidates_["name"])
    assert "NormalScores" in small and "RelevanceScaler" not in small


def test_members_that_learn_are_refitted() -> None:
    """Not judged by leave-one-out after they have seen all labels."""
    X, y = classes(3)
    learning = KernelFisherDiscriminant(gamma=0.3, refine=True)
    model = KernelCommitteeClassifier([learning, KernelFisherDiscriminant("linear")]).fit(X, y)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    expected = plain.cross_val_predict(learning, X, y, cv=folds, method="predict_proba")
    own = expected[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    np.testing.assert_allclose(model.candidates_["score"][0], np.log(own).mean())
    K = X @ X.T  # of a kernel matrix, rows and columns leave together
    given = KernelFisherDiscriminant("precomputed", refine=True)
    member = KernelFisherDiscriminant("linear", refine=True)
    of_rows = KernelCommitteeClassifier([member]).fit(X, y).candidates_["score"]
    np.testing.assert_allclose(
        KernelCommitteeClassifier([given]).fit(K, y).candidates_["score"], of_rows, rtol=1e-6
    )


@pytest.mark.parametrize("name", ["predict_interval", "predict_set", "influence", "at"])
def test_what_single_models_have_is_refused_in_words(name: str) -> None:
    for model in (KernelCommitteeClassifier(), KernelCommitteeRegressor()):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"{type(model).__name__} has no {name}: "):
            getattr(model, name)


@pytest.mark.parametrize("committee", [KernelCommitteeClassifier, KernelCommitteeRegressor])
def test_confounds_are_those_of_the_members(committee: type) -> None:
    X, labels = classes(2)
    C = np.random.default_rng(0).normal(size=(len(X), 2))
    regresses = committee is KernelCommitteeRegressor
    model = committee().fit(X, X[:, 0] + C[:, 0] if regresses else labels, confounds=C)
    method = "predict" if regresses else "predict_proba"
    parts = [getattr(one, method)(X[:5], confounds=C[:5]) for one in model.members_]
    mixture = np.tensordot(model.weights_, parts, axes=1)
    if not regresses:
        mixture = probabilities(np.log(mixture), 1.0 / model.temperature_, model.floor_)
    np.testing.assert_allclose(getattr(model, method)(X[:5], confounds=C[:5]), mixture, rtol=1e-9)
    assert not any("RelevanceScaler" in name for name in model.candidates_["name"])
    with pytest.raises(ValueError, match="needs the confounds of these rows"):
        model.predict(X[:5])


def test_cross_validation_of_committees_with_confounds_equals_refits() -> None:
    X, y = classes(2)
    C, folds = np.random.default_rng(0).normal(size=(len(y), 2)), StratifiedKFold(3)
    model = KernelCommitteeClassifier(classifiers())
    got = fitonce.cross_val_predict(
        model, X, y, cv=folds, method="predict_proba", params={"confounds": C}
    )
    for train, test in folds.split(X, y):
        refitted = clone(model).fit(X[train], y[train], confounds=C[train])
        expected = refitted.predict_proba(X[test], confounds=C[test])
        np.testing.assert_allclose(got[test], expected, rtol=1e-9)
        assert refitted.score(X[test], y[test], confounds=C[test]) > 0.5


def test_members_that_learn_take_no_confounds() -> None:
    X, y = classes(2)
    model = KernelCommitteeClassifier([KernelFisherDiscriminant(gamma=0.5, refine=True)])
    with pytest.raises(ValueError, match="held-out outputs have a closed form, got one that is"):
        model.fit(X, y, confounds=X[:, :1])


def test_a_larger_table_is_searched_on_a_sample() -> None:
    X, y = make_ringnorm(1020, random_state=0)
    model = KernelCommitteeClassifier([KernelFisherDiscriminant()]).fit(X, y)
    assert len(model.candidates_["name"]) < 5
    assert model.verify(1).passed


def test_verify_save_pickle_and_words(tmp_path: Path) -> None:
    X, y = classes(3)
    model = KernelCommitteeClassifier(classifiers(), cv=StratifiedKFold(4)).fit(X, y)
    checked = model.verify(2)
    assert checked.passed
    assert checked.n_refits == 2 * len(model.members_)
    assert all(member.cv == model.cv for member in model.members_)
    path = fitonce.save(model, tmp_path / "committee.skops")
    for again in (fitonce.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.describe() == model.describe()
    head, *lines = model.describe().splitlines()
    assert head == f"{len(model.members_)} members, of 4 candidates:"
    assert lines[0].startswith(f"{model.weights_[0]:6.1%}  ")
    assert model.describe(1).splitlines()[-1].endswith("others")


def test_parallel_fits_are_equal() -> None:
    X, y = classes(2)
    with joblib.parallel_config("threading"):
        one, two = (KernelCommitteeClassifier(classifiers(), n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (KernelCommitteeClassifier([]), ValueError, "at least one"),
        (KernelCommitteeClassifier(KernelFisherDiscriminant()), TypeError, "list of estimators"),
        (KernelCommitteeClassifier([KernelRidge()]), TypeError, "got KernelRidge"),
        (KernelCommitteeClassifier([KernelFisherDiscriminant(cv=3)]), ValueError, "committee"),
        (KernelCommitteeClassifier([LeastSquaresSVC(calibration=None)]), ValueError, "probab"),
        (KernelCommitteeClassifier([LeastSquaresSVC(landmarks=9)]), ValueError, "random_state"),
        (
            KernelCommitteeClassifier([LeastSquaresSVC(), LeastSquaresSVC("precomputed")]),
            ValueError,
            "precomputed",
        ),
        (KernelCommitteeRegressor([LeastSquaresSVC()]), TypeError, "KernelRidge"),
    ],
)
def test_refusals(model: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        model.fit(*classes(2))


@pytest.mark.slow
@with_checks(
    [
        KernelCommitteeClassifier(
            [KernelFisherDiscriminant(gamma=0.1), KernelFisherDiscriminant("linear", alpha=1.0)]
        ),
        KernelCommitteeRegressor([KernelRidge(gamma=0.1), KernelRidge(1.0, kernel="linear")]),
    ]
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_parameters_set_after_a_fit_do_not_change_it() -> None:
    X, y = classes(2)
    model = KernelCommitteeClassifier(classifiers()).fit(X, y)
    before, text = model.predict_proba(X), model.describe()
    for members in (None, [LeastSquaresSVC("precomputed")], KernelFisherDiscriminant(), 5):
        model.set_params(members=members, cv=3)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        assert model.score(X, y) > 0.8 and model.describe() == text
