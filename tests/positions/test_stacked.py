"""Models of many positions at once against literal refits at each of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, NumericalWarning
from fitonce.inference.linear_maps import LinearMaps, LinearModel
from fitonce.inference.placements import Placement
from fitonce.positions import cross_val_score, generalize, permutation_test, scores
from fitonce.positions.slices import Slices
from fitonce.positions.trained import TrainedHere
from optional import require
from reference import output

N, FEATURES, POSITIONS = 40, 5, 4
WEIGHTS = np.linspace(0.4, 2.5, N)
GROUPS = np.arange(N) // 5


def epochs(n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Unbalanced classes, far from the origin, with two equal rows."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.minimum(np.arange(N) % (n_classes + 1), n_classes - 1))
    X = rng.normal(size=(N, FEATURES, POSITIONS)) + 2.0 * np.arange(FEATURES)[:, None]
    X[:, 0, :] += 0.7 * y[:, None]
    X[7] = X[2]
    return X, y


def numbers(n_targets: int) -> tuple[np.ndarray, np.ndarray]:
    X, _ = epochs()
    Y = X[:, :n_targets, 1] + np.random.default_rng(4).normal(size=(N, n_targets))
    return X, Y[:, 0] if n_targets == 1 else Y


def in_volts(data: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Columns of sizes from 1e-6 to 1e3, the last one zero."""
    X, y = data
    units = np.array([1e-6, 1e-6, 1.0, 1e3, 0.0])
    return X * units[:, None], y


def scaled(model: Any, **options: Any) -> Any:
    return make_pipeline(StandardScaler(**options), model)


MODELS: dict[str, tuple[Any, Any]] = {
    "scaled, fisher": (
        scaled(KernelFisherDiscriminant("linear", alpha=1.0)),
        in_volts(epochs()),
    ),
    "scaled, three classes": (
        scaled(KernelFisherDiscriminant("linear", alpha=30.0), with_mean=False),
        in_volts(epochs(3)),
    ),
    "scaled, LS-SVM": (scaled(LeastSquaresSVC("linear", alpha=3.0)), in_volts(epochs(4))),
    "scaled, ridge": (scaled(KernelRidge(kernel="linear", alpha=20.0)), in_volts(numbers(2))),
    "centered only": (
        scaled(KernelRidge(kernel="linear", alpha=2.0), with_std=False),
        numbers(1),
    ),
    "fisher": (KernelFisherDiscriminant("linear", alpha=1.0), epochs()),
    "fisher, three classes": (KernelFisherDiscriminant("linear", alpha=0.1), epochs(3)),
    "fisher, priors": (
        KernelFisherDiscriminant("linear", alpha=1.0, priors=[0.2, 0.8]),
        epochs(),
    ),
    "fisher, huge alpha": (KernelFisherDiscriminant("linear", alpha=1e7), epochs()),
    "LS-SVM": (LeastSquaresSVC("linear", alpha=0.3), epochs()),
    "LS-SVM, four classes": (LeastSquaresSVC("linear", alpha=0.3), epochs(4)),
    "LS-SVM, no bias": (LeastSquaresSVC("linear", alpha=0.3, fit_intercept=False), epochs(3)),
    "LS-SVM, penalised bias": (
        LeastSquaresSVC("linear", alpha=0.3, fit_intercept="penalized"),
        epochs(),
    ),
    "LS-SVM, weights of classes": (
        LeastSquaresSVC("linear", alpha=0.3, class_weight={0: 1.0, 1: 3.0}),
        epochs(),
    ),
    "ridge": (KernelRidge(kernel="linear", alpha=1.0), numbers(1)),
    "ridge, two targets": (KernelRidge(kernel="linear", alpha=0.2), numbers(2)),
    "ridge, penalised bias": (
        KernelRidge(kernel="linear", alpha=0.2, fit_intercept="penalized"),
        numbers(1),
    ),
}
SPLITTERS: dict[str, Any] = {
    "k folds": KFold(4, shuffle=True, random_state=0),
    "overlapping": ShuffleSplit(3, test_size=0.25, random_state=1),
    "growing": TimeSeriesSplit(3),
    "mostly left out": ShuffleSplit(3, test_size=6, train_size=14, random_state=2),
    "groups": GroupKFold(3),
}


def splits_of(splitter: Any, X: np.ndarray, y: np.ndarray) -> list[Any]:
    groups = GROUPS if isinstance(splitter, GroupKFold) else None
    return list(splitter.split(X, y if y.ndim == 1 else None, groups))


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("case", MODELS)
def test_every_fold_is_a_refit(case, splitter, weighted):
    model, (X, y) = MODELS[case]
    splits = splits_of(SPLITTERS[splitter], X, y)
    weighted = weighted and not isinstance(model, Pipeline)
    params = {"sample_weight": WEIGHTS} if weighted else None
    linear = LinearModel.of(model, X[:, :, 0], y, Placement(0, splits, N), params)
    assert linear is not None
    maps = LinearMaps(linear, Slices.of(X, None).stacked())
    fits = maps.fits(linear.folds, linear.values)
    assert maps.covered(fits).all()
    outputs = maps.outputs_of(linear.folds, fits, linear.values, linear.sizes)
    by_fold = [values for run in outputs for values in np.moveaxis(run.values, 1, 0)]
    for (train, test), values in zip(splits, by_fold, strict=True):
        for position in range(POSITIONS):
            part = {"sample_weight": WEIGHTS[train]} if weighted else {}
            fitted = clone(model).fit(X[train, :, position], y[train], **part)
            expected = np.asarray(output(fitted, X[test, :, position])).T
            np.testing.assert_allclose(values[position], expected, rtol=1e-8, atol=1e-9)


def literal(model: Any, X: np.ndarray, y: np.ndarray, **options: Any) -> np.ndarray:
    """scikit-learn's own function, which refits, at every position."""
    refitted = sklearn.model_selection.cross_val_score
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.stack([refitted(model, X[:, :, s], y, **options) for s in range(X.shape[2])])


class AloneError(Exception):
    """A position was worked on by itself."""


@pytest.fixture
def never_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One position after the other, or a decomposition of one, is an error."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AloneError

    monkeypatch.setattr(scores.crossval, "cross_val_score", refuse)
    monkeypatch.setattr(TrainedHere, "__call__", refuse)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """X at the positions that are worked on by themselves."""
    seen, original = [], scores.crossval.cross_val_score

    def counted(model: Any, X: np.ndarray, **options: Any) -> Any:
        seen.append(X)
        return original(model, X, **options)

    monkeypatch.setattr(scores.crossval, "cross_val_score", counted)
    return seen


def scores_of(case: str) -> list[str | None]:
    """The default score, another, and with two classes the area under the curve."""
    model, (_, y) = MODELS[case]
    if not hasattr(model, "decision_function"):
        return [None, "neg_mean_absolute_error"]
    return [None, "balanced_accuracy", *(["roc_auc"] if y.max() == 1 else [])]


@pytest.mark.usefixtures("never_alone")
@pytest.mark.parametrize(
    ("case", "scoring"), [(case, scoring) for case in MODELS for scoring in scores_of(case)]
)
def test_scores_are_scikit_learns(case, scoring):
    model, (X, y) = MODELS[case]
    classifier = hasattr(model, "decision_function")
    cv = StratifiedKFold(4) if classifier else KFold(4)
    params = None if isinstance(model, Pipeline) else {"sample_weight": WEIGHTS}
    options = {"cv": cv, "scoring": scoring, "params": params}
    expected = literal(model, X, y, **options)
    np.testing.assert_allclose(cross_val_score(model, X, y, **options), expected, atol=1e-9)
    matrix = generalize(model, X, y, **options)
    np.testing.assert_allclose(np.diagonal(matrix).T, expected, atol=1e-9)


ALONE: dict[str, tuple[Any, dict[str, Any]]] = {
    "scaled, no bias": (
        scaled(LeastSquaresSVC("linear", alpha=3.0, fit_intercept=False)),
        {"scoring": "roc_auc"},
    ),
    "scaled, with weights": (
        scaled(KernelFisherDiscriminant("linear", alpha=1.0)),
        {"params": {"kernelfisherdiscriminant__sample_weight": WEIGHTS}},
    ),
    "rbf": (KernelFisherDiscriminant(gamma=0.1, alpha=0.3), {}),
    "dual": (KernelFisherDiscriminant("linear", alpha=0.3, penalty="dual"), {}),
    "LS-SVM, dual, rbf": (LeastSquaresSVC(gamma=0.1, alpha=0.3, penalty="dual"), {}),
    "tuned": (LeastSquaresSVC("linear"), {}),
    "balanced": (LeastSquaresSVC("linear", alpha=0.3, class_weight="balanced"), {}),
    "leave-one-out": (KernelFisherDiscriminant("linear", alpha=1.0), {"cv": LeaveOneOut()}),
    "a row of weight zero": (
        KernelFisherDiscriminant("linear", alpha=1.0),
        {"params": {"sample_weight": np.where(np.arange(N) == 3, 0.0, 1.0)}},
    ),
    "a great weight": (
        KernelFisherDiscriminant("linear", alpha=1.0),
        {"params": {"sample_weight": np.where(np.arange(N) == 3, 1e12, 1.0)}, "scoring": "roc_auc"},
    ),
    "another score": (KernelFisherDiscriminant("linear", alpha=1.0), {"scoring": "f1_macro"}),
}


@pytest.mark.parametrize("case", ALONE)
def test_what_is_worked_on_alone(case):
    model, options = ALONE[case]
    X, y = epochs()
    options = {"cv": StratifiedKFold(3), **options}
    np.testing.assert_allclose(
        cross_val_score(model, X, y, **options), literal(model, X, y, **options), atol=1e-9
    )


def test_a_class_that_is_missing_from_a_training_or_a_test_set():
    X, y = epochs(3)
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    splits = [
        (np.flatnonzero(y < 2), np.flatnonzero(y == 2)),
        (np.arange(12, N), np.arange(12)),
        (np.arange(30), np.flatnonzero(y[30:] != 1) + 30),
        (np.arange(24), np.flatnonzero(y[24:] != 2) + 24),
    ]
    for scoring in (None, "balanced_accuracy"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cross_val_score(model, X, y, cv=splits, scoring=scoring)
        np.testing.assert_allclose(
            found, literal(model, X, y, cv=splits, scoring=scoring), atol=1e-12
        )


@pytest.mark.usefixtures("never_alone")
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
@pytest.mark.parametrize("model", [MODELS["fisher"][0], MODELS["LS-SVM"][0]])
def test_ties_are_those_of_a_refit(model, scoring):
    """Mirror images with opposite labels: decisions are zero, or equal, in exact arithmetic, and
    rounding has them apart.
    """
    rng = np.random.default_rng(0)
    half = rng.normal(size=(N // 2, 3, 6))
    half[:8] = 0.0
    half[8:10] = half[12:14]
    X = np.concatenate([half, -half]) + 0.3
    y = np.repeat([0, 1], N // 2)
    pairs = np.tile(np.arange(N // 2) % 4, 2)  # a row and its mirror image are left out together
    tested = (np.arange(N) < N // 2) | (np.arange(N) >= N // 2 + 8)  # zeros of one class only
    splits = [(np.flatnonzero(pairs != k), np.flatnonzero((pairs == k) & tested)) for k in range(4)]
    options = {"cv": splits, "scoring": scoring}
    expected = literal(model, X, y, **options)
    np.testing.assert_allclose(cross_val_score(model, X, y, **options), expected, rtol=1e-12)
    np.testing.assert_allclose(
        np.diagonal(generalize(model, X, y, **options)).T, expected, rtol=1e-12
    )
    assert len(np.unique(expected)) > 2


@pytest.mark.usefixtures("never_alone")
def test_biases_that_rounding_tells_apart_are_those_of_a_refit():
    """Three classes of mirror images: the biases of two of them are equal in exact arithmetic. The
    case was found by a search over 400 such problems for one that needs `settled_sum`.
    """
    rng = np.random.default_rng(302)
    n = int(rng.choice([12, 16, 24, 30]))
    rng.choice([2, 2, 3])
    half = (rng.integers(-1, 2, size=(n, 2, 4)) * rng.choice([1.0, 0.1, 3.0]))[: n // 2]
    X, y = np.concatenate([half, -half]), np.arange(n) % 3
    model = KernelFisherDiscriminant("linear", alpha=float(10 ** rng.uniform(-2, 3)))
    cv = StratifiedKFold(3, shuffle=True, random_state=302)
    found = cross_val_score(model, X, y, cv=cv, scoring="accuracy")
    np.testing.assert_allclose(found, literal(model, X, y, cv=cv, scoring="accuracy"), rtol=1e-12)


def test_positions_in_doubt_are_worked_on_alone(alone):
    """Constant rows, tiny ones beside a large offset, and huge ones, among others."""
    X, y = epochs()
    X = np.concatenate([X, X], axis=2)
    X[:, :, 1] = 3.0
    X[:, :, 3] = 1e6 + 1e-6 * X[:, :, 3]
    X[:, :, 4] *= 1e6
    X[10:, :, 6] = 1.0  # the training rows of the first fold
    splits = [(np.arange(10, N), np.arange(10)), (np.arange(30), np.arange(30, N))]
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    with pytest.warns(NumericalWarning):
        found = cross_val_score(model, X, y, cv=splits)
    np.testing.assert_array_equal(alone, np.moveaxis(X, 2, 0)[[1, 3, 4, 6]])
    np.testing.assert_allclose(found, literal(model, X, y, cv=splits), atol=1e-12)
    X = X[:, :, [0, 1, 6]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = generalize(model, X, y, cv=splits)
    np.testing.assert_allclose(np.diagonal(matrix).T, found[[0, 1, 6]], atol=1e-12)


def test_scaled_columns_in_doubt_are_worked_on_alone(alone):
    """One column tiny beside its offset, or constant in a training set; a constant one is not."""
    X, y = epochs()
    X[:, 1, 0] = 0.0
    X[:, 1, 1] = 1e6 + 1e-6 * X[:, 1, 1]
    X[10:, 1, 2] = 1.0
    splits = [(np.arange(10, N), np.arange(10)), (np.arange(30), np.arange(30, N))]
    model = scaled(KernelFisherDiscriminant("linear", alpha=1.0))
    found = cross_val_score(model, X, y, cv=splits, scoring="roc_auc")
    np.testing.assert_array_equal(alone, np.moveaxis(X, 2, 0)[[1, 2]])
    expected = literal(model, X, y, cv=splits, scoring="roc_auc")
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_columns_in_single_precision_are_scaled_in_it_as_by_scikit_learn():
    X, y = numbers(1)
    X, model = X.astype(np.float32), scaled(KernelRidge(kernel="linear", alpha=2.0))
    options = {"cv": KFold(4), "scoring": "neg_mean_squared_error"}
    expected = literal(model, X, y, **options)
    np.testing.assert_allclose(cross_val_score(model, X, y, **options), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [cross_val_score, generalize, permutation_test])
def test_data_in_volts_are_warned_of(function):
    """alpha=1.0 is then larger than all eigenvalues; with columns scaled it is not."""
    X, y = epochs()
    options = {"n_permutations": 3} if function is permutation_test else {}
    model, volts = KernelFisherDiscriminant("linear", alpha=1.0), 1e-5 * X
    with pytest.warns(NumericalWarning, match=r"alpha=1 is larger than .*StandardScaler"):
        function(model, volts, y, cv=StratifiedKFold(4), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(model, X, y, cv=StratifiedKFold(4), **options)
        function(scaled(model), volts, y, cv=StratifiedKFold(4), **options)


@pytest.mark.parametrize("function", [cross_val_score, generalize, permutation_test])
def test_discriminants_that_explain_nearly_nothing_warn_as_a_fit_does(function):
    X, y = epochs()
    options = {"n_permutations": 3} if function is permutation_test else {}
    model = KernelFisherDiscriminant("linear", alpha=1e13)
    for decoder in (model, scaled(model))[: 1 if function is permutation_test else 2]:
        with pytest.warns(NumericalWarning) as caught:
            function(decoder, X, y, cv=4, **options)
        assert any("explains only" in str(warning.message) for warning in caught)


def test_missing_values_are_refused_where_they_are():
    X, y = epochs()
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    options = {"cv": StratifiedKFold(3)}
    expected = literal(model, X, y, **options)
    X[3, 1, 2] = np.nan
    with pytest.raises(ValueError, match="NaN") as raised:
        cross_val_score(model, X, y, error_score="raise", **options)
    assert raised.value.__notes__ == ["This happened at position 2."]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = cross_val_score(model, X, y, **options)
    assert any("fits failed" in str(warning.message) for warning in caught)
    np.testing.assert_allclose(found[[0, 1, 3]], expected[[0, 1, 3]], atol=1e-12)
    assert np.isnan(found[2]).any()
    with pytest.raises(ValueError, match=r"NaN|overflow"):
        generalize(model, X, y, **options)


@pytest.mark.usefixtures("never_alone")
def test_neighbourhoods_of_different_sizes():
    X, y = epochs()
    X = X[:, :, 0]
    neighbours = [[0, 1], [2], [3, 4], [1, 2, 3], [4]]
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    found = cross_val_score(model, X, y, cv=4, neighbors=neighbours)
    expected = [
        sklearn.model_selection.cross_val_score(model, X[:, features], y, cv=4)
        for features in neighbours
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.usefixtures("never_alone")
def test_blocks_and_repeated_folds(monkeypatch):
    X, y = epochs(3)
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    whole = cross_val_score(model, X, y, cv=cv)
    for size in ("STACK_ELEMENTS", "BLOCK_ELEMENTS"):
        monkeypatch.setattr(f"fitonce.positions.trained.{size}", 2 * N * FEATURES)
    monkeypatch.setattr("fitonce.positions.sweep.TOGETHER", 2)
    np.testing.assert_array_equal(cross_val_score(model, X, y, cv=cv), whole)
    np.testing.assert_array_equal(np.diagonal(generalize(model, X, y, cv=cv)).T, whole)


def test_arrays_of_another_namespace():
    xp = require("array_api_strict")
    for model, (X, y) in (MODELS["fisher, three classes"], MODELS["ridge, two targets"]):
        for function in (cross_val_score, generalize):
            found = function(model, xp.asarray(X), y, cv=KFold(3))
            np.testing.assert_allclose(found, function(model, X, y, cv=KFold(3)), atol=1e-12)


@pytest.mark.parametrize("outlier", [1.0, 1e5])
@pytest.mark.parametrize("case", ["scaled, fisher", "scaled, three classes", "scaled, ridge"])
def test_permutations_of_scaled_columns_are_scikit_learns(case, outlier):
    """Labels drawn and split again as scikit-learn does, over columns scaled in every fold. Of two
    large outliers in different folds both may be left out together, and then little is left of
    the moments that the others are taken from.
    """
    model, (X, y) = MODELS[case]
    cv = StratifiedKFold(4, shuffle=True, random_state=0) if y.ndim == 1 else KFold(4)
    (first, *_), (second, *_), *_ = (test for _, test in cv.split(X[:, :, 0], y))
    X = X[:, :, :2] * np.where(np.isin(np.arange(N), [first, second]), outlier, 1.0)[:, None, None]
    options = {"cv": cv, "n_permutations": 6, "random_state": 1}
    test = permutation_test(model, X, y, permute="resplit", **options)
    assert test.route.name == ("per-fold" if outlier == 1.0 else "refit")
    for position in range(2):
        score, null, _ = sklearn.model_selection.permutation_test_score(
            model, X[:, :, position], y, **options
        )
        np.testing.assert_allclose(test.score[position], score, rtol=1e-9)
        np.testing.assert_allclose(test.null[:, position], null, rtol=1e-8)
