"""Cases for the cross-validation functions, and what it means that two of them agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    check_cv,
)

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from reference import assert_close

EPS = float(np.finfo(np.float64).eps)

# ---- cases ---------------------------------------------------------------------------------------


def mixture_kernel(X: np.ndarray, Y: np.ndarray, *, gamma: float) -> np.ndarray:
    """A user's own kernel on matrices."""
    return pairwise_kernels(X, Y, metric="rbf", gamma=gamma) + 0.1 * X @ Y.T


PARAMETERS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "wide linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "poly": {"kernel": "poly", "gamma": 0.4, "degree": 2, "coef0": 1.0},
    "laplacian": {"kernel": "laplacian", "gamma": 0.2},
    "cosine": {"kernel": "cosine"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.6, "coef0": -1.0},
    "precomputed": {"kernel": "precomputed"},
    "callable": {"kernel": mixture_kernel, "kernel_params": {"gamma": 0.2}},
}
MODELS: dict[str, tuple[type, int]] = {
    "KFD, 2 classes": (KernelFisherDiscriminant, 2),
    "KFD, 3 classes": (KernelFisherDiscriminant, 3),
    "KFD, 6 classes": (KernelFisherDiscriminant, 6),
    "LS-SVM, 2 classes": (LeastSquaresSVC, 2),
    "LS-SVM, 3 classes": (LeastSquaresSVC, 3),
    "LS-SVM, 6 classes": (LeastSquaresSVC, 6),
    "ridge, 1 target": (KernelRidge, 1),
    "ridge, 2 targets": (KernelRidge, 2),
}
NAMES = np.array(["iris", "Aster", "moss", "fern", "reed", "oak"])


def halves(labels: np.ndarray, groups: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two folds whose test sets are given out of order."""
    (one, other), _ = StratifiedKFold(2, shuffle=True, random_state=2).split(labels, labels)
    return [(one[::-1], other), (other, one[::-1])]


def sparse_splits(labels: np.ndarray, groups: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits that train and test on a part of the rows only."""
    return [
        (train[::-1], test[:-1])
        for train, test in ShuffleSplit(3, test_size=0.2, train_size=0.7, random_state=3).split(
            labels
        )
    ]


def bootstrap_splits(labels: np.ndarray, groups: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training rows drawn with replacement; the others are tested."""
    rng, n = np.random.default_rng(4), len(labels)
    draws = [
        np.concatenate([np.arange(n - n // 3), rng.integers(n - n // 3, size=n // 3)])
        for _ in range(3)
    ]
    return [(train, np.setdiff1d(np.arange(n), train)) for train in draws]


PARTITIONS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "KFold": lambda labels, groups: KFold(5, shuffle=True, random_state=0),
    "StratifiedKFold": lambda labels, groups: StratifiedKFold(4),
    "LeaveOneOut": lambda labels, groups: LeaveOneOut(),
    "LeaveOneGroupOut": lambda labels, groups: LeaveOneGroupOut(),
    "GroupKFold": lambda labels, groups: GroupKFold(3),
    "PredefinedSplit": lambda labels, groups: PredefinedSplit(np.arange(len(labels)) % 7 // 2),
    "halves": halves,
}
OTHER_SPLITS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "ShuffleSplit": lambda labels, groups: ShuffleSplit(4, test_size=0.25, random_state=1),
    "RepeatedStratifiedKFold": lambda labels, groups: RepeatedStratifiedKFold(
        n_splits=3, n_repeats=2, random_state=1
    ),
    "TimeSeriesSplit": lambda labels, groups: TimeSeriesSplit(3),
    "sparse splits": sparse_splits,
    "bootstrap": bootstrap_splits,
}
SPLITTERS = PARTITIONS | OTHER_SPLITS


@dataclass(frozen=True)
class Case:
    """An estimator, data and splits, with the deviation that is allowed between a closed form and a
    refit.
    """

    estimator: Any
    X: Any
    y: Any
    cv: Any
    tolerance: float
    groups: np.ndarray | None = None
    params: dict[str, Any] | None = None
    splits: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @property
    def arguments(self) -> dict[str, Any]:
        """The splitter, the groups where it takes any, and the weights where there are some."""
        return {
            "cv": self.cv,
            "groups": self.groups if "Group" in type(self.cv).__name__ else None,
            "params": self.params,
        }

    @property
    def methods(self) -> list[str]:
        return ["decision_function", "predict"] if is_classifier(self.estimator) else ["predict"]


def make_labels(n: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Unbalanced classes, each with four members at least, and all of them among any n_classes rows
    at the start.
    """
    share = 0.6 ** np.arange(n_classes)
    start = np.arange(4 * n_classes) % n_classes
    return np.concatenate(
        [start, rng.choice(n_classes, size=n - len(start), p=share / share.sum())]
    )


def largest_eigenvalue_and_alpha(
    K: np.ndarray,
    penalty: str,
    fit_intercept: bool | str,
    weights: np.ndarray | None,
    factor: float,
) -> tuple[float, float]:
    """λ_max of the matrix that alpha is added to, and `factor` times it (above -λ_min where the
    kernel is indefinite).
    """
    s = np.ones(len(K)) if weights is None else np.sqrt(weights)
    G = s[:, None] * (K + 1.0 if fit_intercept == "penalized" else K) * s
    if penalty == "dual":
        largest = float(np.linalg.norm(G, 2)) ** 2
        return largest, factor * largest
    if fit_intercept is True:
        project = np.eye(len(K)) - np.outer(s, s) / (s @ s)
        G = project @ G @ project
    eigenvalues = np.linalg.eigvalsh(G)
    largest = float(np.abs(eigenvalues).max())
    return largest, max(0.0, -1.2 * float(eigenvalues[0])) + factor * largest


def make_case(
    model: str = "KFD, 3 classes",
    kernel: str = "rbf",
    penalty: str = "function",
    fit_intercept: bool | str = True,
    weights: str = "none",
    splitter: str = "KFold",
    factor: float = 1e-2,
    rows: str = "distinct",
    size: str = "medium",
    seed: int = 0,
) -> Case:
    """The first seed is taken from which every training set has all classes.

    How others end is tested apart.
    """
    estimator_class, width = MODELS[model]
    classifies = estimator_class is not KernelRidge
    n_classes = width if classifies else 3
    n = {"small": 4 * n_classes + 8, "medium": 60, "large": 110, "300": 300}[size]
    rng = np.random.default_rng(seed)
    labels = make_labels(n, n_classes, rng)
    groups = rng.integers(5, size=n)
    cv = SPLITTERS[splitter](labels, groups)
    splits = list(check_cv(cv).split(labels, labels, groups if "Group" in splitter else None))
    if any(len(np.unique(labels[train])) < n_classes for train, _ in splits):
        return make_case(
            model, kernel, penalty, fit_intercept, weights, splitter, factor, rows, size, seed + 1
        )
    X = rng.normal(size=(n, n + 5 if kernel == "wide linear" else 4))
    X[:, :2] += 1.5 * np.column_stack([np.cos(labels), np.sin(labels)])
    if rows == "duplicated":
        X = X[np.arange(n) % (n - n // 4)]
    y: Any = (
        NAMES[labels]
        if classifies
        else np.sin(X[:, :width]) + 0.2 * rng.normal(size=(n, width)) + 3.0
    )
    y = y[:, 0] if width == 1 else y
    w = rng.uniform(0.3, 3.0, size=n) if weights == "by row" else None
    options = dict(PARAMETERS[kernel])
    K = _gram(options, X)
    fit_intercept = True if estimator_class is KernelFisherDiscriminant else fit_intercept
    largest, alpha = largest_eigenvalue_and_alpha(K, penalty, fit_intercept, w, factor)
    if estimator_class is not KernelFisherDiscriminant:
        options["fit_intercept"] = fit_intercept
    return Case(
        estimator=estimator_class(alpha=alpha, penalty=penalty, **options),
        X=K if kernel == "precomputed" else X,
        y=y,
        cv=cv if classifies else splits,
        tolerance=max(1e-8, 1e3 * EPS * largest / alpha),
        groups=groups,
        params=None if w is None else {"sample_weight": w},
        splits=splits,
    )


def _gram(options: Mapping[str, Any], X: np.ndarray) -> np.ndarray:
    if callable(options["kernel"]):
        return mixture_kernel(X, X, **options["kernel_params"])
    if options["kernel"] == "precomputed":
        return pairwise_kernels(X, metric="laplacian", gamma=0.3)
    return pairwise_kernels(
        X,
        metric=options["kernel"],
        **{name: value for name, value in options.items() if name != "kernel"},
    )


# ---- literal refits ------------------------------------------------------------------------------


def refits(case: Case) -> Iterator[tuple[Any, Any, np.ndarray]]:
    """For every split: the estimator fitted on the training rows, the test rows as it takes them,
    and their numbers.
    """
    for (train, test), X_test in zip(case.splits, held_out_rows(case), strict=True):
        params = {name: value[train] for name, value in (case.params or {}).items()}
        model = clone(case.estimator).fit(rows_beside(case, train, train), case.y[train], **params)
        yield model, X_test, test


def held_out_rows(case: Case) -> list[Any]:
    """The test rows of every split as the model of that split takes them."""
    return [rows_beside(case, test, train) for train, test in case.splits]


def rows_beside(case: Case, rows: np.ndarray, train: np.ndarray) -> Any:
    pairwise = case.estimator.__sklearn_tags__().input_tags.pairwise
    return case.X[rows][:, train] if pairwise else case.X[rows]


# ---- agreement -----------------------------------------------------------------------------------


def assert_same(got: Any, expected: Any, tolerance: float, what: str = "") -> None:
    """Of one type, and equal within the tolerance."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, f"{what}: {got.dtype} instead of {expected.dtype}"
    assert_close(got, expected, tolerance, what)


def ties(decision: np.ndarray, tolerance: float) -> np.ndarray:
    """Rows whose label hangs on less than the tolerance."""
    ordered = (
        np.sort(decision, axis=1)
        if decision.ndim == 2
        else np.column_stack([np.zeros(len(decision)), decision])
    )
    return np.abs(ordered[:, -1] - ordered[:, -2]) <= 2 * tolerance * np.abs(decision).max()


def assert_outputs(
    got: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float
) -> np.ndarray:
    """Numbers close, labels equal except for ties, which are returned."""
    assert got.keys() == expected.keys()
    tied = np.zeros(len(expected["predict"]), dtype=bool)
    if "decision_function" in expected:
        tied = ties(np.asarray(expected["decision_function"]), tolerance)
    for method, outputs in expected.items():
        if method == "predict" and "decision_function" in expected:
            np.testing.assert_array_equal(got[method][~tied], outputs[~tied])
            assert got[method].dtype == outputs.dtype
        else:
            assert_same(got[method], outputs, tolerance, method)
    return tied


@dataclass(frozen=True)
class Outcome:
    """What a call came to: its value or its exception, and the categories of its warnings."""

    value: Any
    error: tuple[type, str] | None
    categories: frozenset[type]


def outcome(call: Callable[[], Any]) -> Outcome:
    value, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call()
        except Exception as exception:
            # what follows these words are tracebacks
            error = (type(exception), str(exception).split("Below are more details")[0])
    return Outcome(value, error, frozenset(warning.category for warning in caught))


def assert_same_outcome(
    function: str, *args: Any, tolerance: float = 1e-8, **kwargs: Any
) -> Outcome:
    """Our function and scikit-learn's of the same name.

    Same values, exception and warning categories. Returns scikit-learn's.
    """
    expected = outcome(lambda: getattr(sklearn.model_selection, function)(*args, **kwargs))
    got = outcome(lambda: getattr(fitonce, function)(*args, **kwargs))
    assert got.error == expected.error
    assert got.categories == expected.categories
    if expected.error is None:
        assert_same_value(got.value, expected.value, tolerance)
    return expected


def assert_same_value(got: Any, expected: Any, tolerance: float) -> None:
    """Arrays, and dictionaries of scores.

    Their names and numbers, but neither their times nor their estimators.
    """
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        for name in expected:
            if name.endswith("_time"):
                assert got[name].shape == expected[name].shape and np.all(got[name] >= 0)
            elif name.startswith(("test_", "train_")):
                assert_same(got[name], expected[name], tolerance, name)
    elif expected.dtype.kind == "f":
        assert_same(got, expected, tolerance)
    else:
        np.testing.assert_array_equal(got, expected)


def same(case: Case, function: str, **kwargs: Any) -> Outcome:
    """The same for the estimator and the rows of a case."""
    return assert_same_outcome(function, case.estimator, case.X, case.y, **kwargs)
