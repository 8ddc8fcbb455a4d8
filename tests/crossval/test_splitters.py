"""Splitters of users' own: groups come by keyword, and so does all other metadata."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from refit_cases import Case, assert_same_outcome, assert_same_value, make_case
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import KernelRidge, KernelSum, LeastSquaresSVC, ValidityWarning, positions


class KeywordGroups:
    """Takes its groups by keyword only."""

    def split(self, X, y=None, *, groups=None):
        yield from GroupKFold(3).split(X, y, groups)

    def get_n_splits(self, X=None, y=None, *, groups=None):
        return 3


class BySeason(BaseCrossValidator):
    """Asks for more than the groups of the rows."""

    def split(self, X, y=None, *, groups=None, weeks=None):
        for season in range(3):
            inside = np.asarray(weeks) % 3 == season
            yield np.flatnonzero(~inside), np.flatnonzero(inside)

    def get_n_splits(self, X=None, y=None, *, groups=None, weeks=None):
        return 3


FIXED = LeastSquaresSVC(gamma=0.3, alpha=0.5)
EVERY_ROUTE = {
    "one": FIXED,
    "per-fold": make_pipeline(StandardScaler(), FIXED),
    "tuned": LeastSquaresSVC(gamma=0.3, alpha=[0.1, 1.0]),
}


def check_functions(case: Case, estimator: Any, **options: Any) -> None:
    """What scikit-learn's functions and ours return for a splitter."""
    given = estimator, case.X, case.y
    for method in ("predict", "decision_function", "predict_proba"):
        expected = assert_same_outcome("cross_val_predict", *given, method=method, **options)
        by_fold = fitonce.cross_val_predict(*given, method=method, by_fold=True, **options)
        for test, got in by_fold:
            assert_same_value(got, expected.value[test], 1e-8)
    for function in ("cross_validate", "cross_val_score"):
        assert assert_same_outcome(function, *given, **options).error is None
    sizes = {"train_sizes": [0.5, 1.0], "shuffle": True, "random_state": 0}
    curves = (
        package.learning_curve(*given, **sizes, **options)
        for package in (fitonce, sklearn.model_selection)
    )
    for got, wanted in zip(*curves, strict=True):
        assert_same_value(got, wanted, 1e-8)


@pytest.mark.parametrize("route", EVERY_ROUTE)
def test_a_splitter_gets_groups_by_keyword(route):
    case = make_case("LS-SVM, 3 classes")
    check_functions(case, EVERY_ROUTE[route], cv=KeywordGroups(), groups=case.groups)


@pytest.mark.parametrize("route", EVERY_ROUTE)
def test_a_splitter_gets_the_metadata_that_it_asks_for(route):
    """The route is that without metadata, which `fit` never sees."""
    case, estimator = make_case("LS-SVM, 3 classes"), EVERY_ROUTE[route]
    with sklearn.config_context(enable_metadata_routing=True):
        cv, params = BySeason().set_split_request(weeks=True), {"weeks": np.arange(60) // 4}
        check_functions(case, estimator, cv=cv, params=params)
        taken = fitonce.cross_validate(estimator, case.X, case.y, cv=cv, params=params).route
        check_functions(case, estimator, cv=GroupKFold(3), params={"groups": case.groups})
    assert taken == fitonce.cross_validate(estimator, case.X, case.y, cv=3).route


def numbers(result: Any) -> np.ndarray:
    """All numbers of an array, of a dictionary or of the fields of a result."""
    if isinstance(result, dict):
        return np.concatenate([numbers(value) for value in result.values()])
    return np.ravel(result)


def test_every_other_function_passes_groups_by_keyword():
    """The same from a splitter that takes groups by keyword as from scikit-learn's."""
    case = make_case("LS-SVM, 2 classes")
    X, groups = case.X, case.groups
    y = (case.y == case.y[0]).astype(int)
    at_positions = np.stack([X[:, :2], X[:, 2:]], axis=2)
    tuned = LeastSquaresSVC(gamma=0.3, alpha=[0.1, 1.0])
    ridge = KernelRidge(0.5, gamma=0.3)
    sums = KernelRidge(0.5, kernel=KernelSum([("a", "rbf", [0, 1]), ("b", "rbf", [2, 3])], [1, 1]))
    sums.kernel.set_params(gamma=0.3)
    permuted = {"n_permutations": 9, "groups": groups, "random_state": 0}
    members = [FIXED, LeastSquaresSVC("linear", alpha=1.0)]
    functions: dict[str, Callable[[Any], Any]] = {
        "fit": lambda cv: (
            clone(tuned).set_params(cv=cv).fit(X, y, groups=groups).held_out_decision_
        ),
        "committee": lambda cv: (
            fitonce.KernelCommitteeClassifier(members, cv=cv)
            .fit(X, y, groups=groups)
            .decision_function(X)
        ),
        "assess": lambda cv: (
            fitonce.assess(FIXED, X, y, groups=groups, cv=cv, permutations=0).predictions
        ),
        "compare": lambda cv: (
            fitonce.compare({"a": FIXED}, {"b": tuned}, X, y, groups=groups, cv=cv).split_scores
        ),
        "kernel_shares": lambda cv: (
            fitonce.kernel_shares(sums, X, X[:, 0], groups=groups, cv=cv).product
        ),
        "permutation_test_targets": lambda cv: (
            fitonce.permutation_test_targets(ridge, X, X[:, :2], cv=cv, **permuted).null
        ),
        "positions.cross_val_score": lambda cv: positions.cross_val_score(
            FIXED, at_positions, y, groups=groups, cv=cv
        ),
        "positions.generalize": lambda cv: positions.generalize(
            FIXED, at_positions, y, groups=groups, cv=cv
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ValidityWarning)
        for function in functions.values():
            got, expected = function(KeywordGroups()), function(GroupKFold(3))
            np.testing.assert_array_equal(numbers(got), numbers(expected))


class OnlyAnArray:
    """Rows that NumPy can read, without a shape or a length."""

    def __init__(self, X):
        self.X = X

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.X, dtype=dtype)


@pytest.mark.parametrize("gamma", [0.1, "scale"])
@pytest.mark.parametrize("function", ["cross_val_score", "cross_val_predict", "cross_validate"])
def test_rows_that_only_become_an_array(gamma, function):
    rng = np.random.default_rng(9)
    X = OnlyAnArray(rng.normal(size=(60, 3)))
    model = LeastSquaresSVC(gamma=gamma, alpha=1.0)
    assert_same_outcome(function, model, X, np.arange(60) % 2, cv=5)


@pytest.mark.parametrize("alpha", [1.0, "tune"])
@pytest.mark.parametrize("function", ["cross_val_score", "cross_val_predict"])
def test_a_kernel_matrix_in_lists_is_refused_as_by_scikit_learn(alpha, function):
    X = np.random.default_rng(9).normal(size=(30, 3))
    model = LeastSquaresSVC("precomputed", alpha=alpha)
    expected = assert_same_outcome(function, model, (X @ X.T).tolist(), np.arange(30) % 2, cv=5)
    assert expected.error is not None
