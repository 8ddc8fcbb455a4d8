"""Decoding at every position against the functions for one position, and against literal loops of
refits.
"""

from __future__ import annotations

import pickle
import sys
import tracemalloc
import warnings
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    RefitWarning,
    ValidityWarning,
)
from fitonce.positions import cross_val_score, generalize, permutation_test
from optional import require

N, FEATURES, POSITIONS = 36, 4, 5
LINEAR = KernelFisherDiscriminant("linear", alpha=1.0)


def epochs(
    n_classes: int = 2, n: int = N, p: int = FEATURES, q: int = POSITIONS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Unbalanced classes in no order, with an effect at the middle position.

    The first two rows are the same.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.minimum(np.arange(n) % (n_classes + 1), n_classes - 1))
    X = rng.normal(size=(n, p, q))
    X[:, :, q // 2] += 0.8 * y[:, None]
    X[1] = X[0]
    return X, y


def numbers(n_targets: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    X, _ = epochs()
    rng = np.random.default_rng(1)
    Y = X[:, :2, 2] + 0.5 * rng.normal(size=(N, 2))
    return X, Y[:, 0] if n_targets is None else Y[:, :n_targets]


def quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


GROUPS = np.arange(N) // 6
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "linear, free": (LINEAR, 2, {"cv": KFold(4, shuffle=True, random_state=0)}),
    "linear, within folds": (LINEAR, 2, {"cv": StratifiedKFold(4), "permute": "within-folds"}),
    "linear, labels and folds together": (LINEAR, 2, {"cv": 4, "n_permutations": 45}),
    "linear, resplit": (LINEAR, 2, {"cv": 4, "permute": "resplit"}),
    "three classes": (
        LINEAR,
        3,
        {"cv": StratifiedKFold(3), "permute": "within-folds", "scoring": "balanced_accuracy"},
    ),
    "three classes, resplit": (
        KernelFisherDiscriminant(gamma=0.2, alpha=0.3),
        3,
        {"cv": 3, "permute": "resplit"},
    ),
    "rbf, dual, AUC": (
        KernelFisherDiscriminant(gamma=0.2, alpha=0.3, penalty="dual"),
        2,
        {"cv": KFold(3), "scoring": "roc_auc"},
    ),
    "LS-SVM": (LeastSquaresSVC(gamma=0.2, alpha=0.3), 3, {"cv": ShuffleSplit(3, random_state=0)}),
    "LS-SVM, leave-one-out, pooled": (
        LeastSquaresSVC("linear", alpha=0.3),
        2,
        {"cv": LeaveOneOut(), "pooled": True, "scoring": "roc_auc"},
    ),
    "ridge": (KernelRidge(kernel="linear", alpha=1.0), None, {"cv": KFold(4)}),
    "ridge, two targets": (
        KernelRidge(gamma=0.1, alpha=0.5),
        20,
        {"cv": KFold(4), "scoring": "neg_mean_squared_error"},
    ),
    "groups": (LINEAR, 2, {"cv": GroupKFold(3), "groups": GROUPS}),
    "sign flips": (
        KernelRidge(kernel="linear", alpha=1.0),
        None,
        {"cv": KFold(4), "exchange": "sign"},
    ),
    "weights": (LINEAR, 2, {"cv": KFold(4), "params": {"sample_weight": np.linspace(0.5, 2.0, N)}}),
    "tuned": (
        KernelFisherDiscriminant("linear"),
        2,
        {"cv": StratifiedKFold(3), "permute": "within-folds"},
    ),
    "tuned, defaults": (LeastSquaresSVC(), 2, {"cv": KFold(2), "n_permutations": 3}),
    "tuned, resplit": (
        KernelFisherDiscriminant("linear"),
        2,
        {"cv": 3, "n_permutations": 3, "permute": "resplit"},
    ),
    "pipeline": (make_pipeline(StandardScaler(), LINEAR), 2, {"cv": KFold(3), "n_permutations": 6}),
    "pipeline, probabilities": (
        make_pipeline(StandardScaler(), LINEAR),
        2,
        {
            "cv": StratifiedKFold(3),
            "permute": "within-folds",
            "scoring": "neg_brier_score",
            "n_permutations": 3,
        },
    ),
    "another's": (LinearDiscriminantAnalysis(), 2, {"cv": KFold(3), "n_permutations": 3}),
    "a scorer's own way": (
        LINEAR,
        2,
        {"cv": KFold(3), "scoring": make_scorer(accuracy_score), "n_permutations": 4},
    ),
    "tiny alpha": (KernelFisherDiscriminant("linear", alpha=1e-9), 2, {"cv": KFold(3)}),
    "huge alpha": (
        KernelFisherDiscriminant("linear", alpha=1e9),
        2,
        {"cv": KFold(3), "scoring": "roc_auc"},
    ),
}


def epochs_or_numbers(kind: Any) -> tuple[np.ndarray, np.ndarray]:
    return numbers() if kind is None else numbers(2) if kind == 20 else epochs(kind)


def middle_positions(kind: Any) -> tuple[np.ndarray, np.ndarray]:
    """Three of the positions, for what is computed at each of them again."""
    X, y = epochs_or_numbers(kind)
    return X[:, :, 1:4], y


@pytest.mark.parametrize("case", CASES)
def test_every_position_is_its_own_permutation_test(case):
    model, kind, options = CASES[case]
    X, y = middle_positions(kind)
    options = {"n_permutations": 12, "random_state": 3, **options}
    test = quietly(permutation_test, model, X, y, **options)
    assert test.null.shape == (options["n_permutations"], 3)
    for position in range(3):
        alone = quietly(fitonce.permutation_test_score, model, X[:, :, position], y, **options)
        np.testing.assert_allclose(test.score[position], alone.score, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            test.null[:, position], alone.permutation_scores, rtol=1e-9, atol=1e-12
        )
        assert test.pvalue[position] == pytest.approx(alone.pvalue)
        assert (test.mode, test.exchange, test.exact) == (alone.mode, alone.exchange, alone.exact)
        assert test.route.name == alone.route.name
    assert len(np.unique(test.null)) > 1


def test_few_labellings_are_all_tried():
    X, y = epochs(n=8)
    y = np.array([0, 1] * 4)
    groups = np.repeat([0, 1, 2, 3], 2)
    options = {"groups": groups, "exchange": "sign", "cv": GroupKFold(4), "n_permutations": 100}
    test = quietly(permutation_test, LINEAR, X, y, **options)
    alone = quietly(fitonce.permutation_test_score, LINEAR, X[:, :, 1], y, **options)
    assert test.exact and test.n_permutations_done == 15
    np.testing.assert_array_equal(test.null[:, 1], alone.permutation_scores)


def test_missing_classes_are_fitted_one_by_one():
    X, y = epochs(n=24)
    y[[2, 3]] = 2  # some training sets lack the third class
    test = quietly(
        permutation_test, LINEAR, X, y, cv=KFold(4, shuffle=True, random_state=1), n_permutations=30
    )
    alone = quietly(
        fitonce.permutation_test_score,
        LINEAR,
        X[:, :, 0],
        y,
        cv=KFold(4, shuffle=True, random_state=1),
        n_permutations=30,
    )
    np.testing.assert_allclose(test.null[:, 0], alone.permutation_scores, atol=1e-12)
    assert test.route.fitted_folds == POSITIONS * (alone.route.fitted_folds)


# ---- cross_val_score -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        "linear, free",
        "three classes",
        "ridge",
        "ridge, two targets",
        "tuned",
        "pipeline",
        "weights",
    ],
)
def test_scores_of_every_position(case):
    model, kind, options = CASES[case]
    X, y = epochs_or_numbers(kind)
    options = {
        name: value
        for name, value in options.items()
        if name in ("cv", "scoring", "params", "groups")
    }
    scores = cross_val_score(model, X, y, **options)
    assert scores.shape == (
        POSITIONS,
        len(list(options["cv"].split(X[:, :, 0], y if y.ndim == 1 else y[:, 0]))),
    )
    for position in range(POSITIONS):
        np.testing.assert_allclose(
            scores[position],
            fitonce.cross_val_score(model, X[:, :, position], y, **options),
            rtol=1e-12,
        )


def test_a_splitter_without_a_seed_is_asked_once():
    X, y = epochs()
    X = np.repeat(X[:, :, :1], 6, axis=2)
    scores = cross_val_score(LINEAR, X, y, cv=ShuffleSplit(3))
    np.testing.assert_array_equal(scores, scores[:1].repeat(6, axis=0))
    assert np.ptp(generalize(LINEAR, X, y, cv=ShuffleSplit(3)), axis=(0, 1)).max() == 0


# ---- shapes and neighbourhoods -------------------------------------------------------------------


def test_a_grid_of_positions():
    X, y = epochs(q=6)
    grid = X.reshape(N, FEATURES, 2, 3)
    flat, test = (
        permutation_test(LINEAR, data, y, cv=KFold(3), n_permutations=20) for data in (X, grid)
    )
    assert test.score.shape == (2, 3) and test.null.shape == (20, 2, 3)
    np.testing.assert_array_equal(test.null.reshape(20, 6), flat.null)
    np.testing.assert_array_equal(test.pvalue_max.ravel(), flat.pvalue_max)
    assert cross_val_score(LINEAR, grid, y, cv=3).shape == (2, 3, 3)
    assert generalize(LINEAR, grid, y, cv=3).shape == (2, 3, 2, 3, 3)


@pytest.mark.parametrize("form", ["lists", "boolean", "sparse"])
def test_a_searchlight(form):
    import scipy.sparse

    X, y = epochs()
    X = X[:, :, 0]
    lists = [[0, 1], [1, 2, 3], [3]]
    matrix = np.zeros((3, FEATURES), dtype=bool)
    for number, features in enumerate(lists):
        matrix[number, features] = True
    neighbours = {"lists": lists, "boolean": matrix, "sparse": scipy.sparse.csr_array(matrix)}[form]
    test = permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=20, neighbors=neighbours)
    assert (
        test.clusters is None and test.pvalue_cluster is None
    )  # nothing says which positions are adjacent
    for position, features in enumerate(lists):
        alone = fitonce.permutation_test_score(
            LINEAR, X[:, features], y, cv=KFold(3), n_permutations=20
        )
        np.testing.assert_array_equal(test.null[:, position], alone.permutation_scores)
    known = test.corrected(adjacency=[[1], [0, 2], [1]])
    again = permutation_test(
        LINEAR,
        X,
        y,
        cv=KFold(3),
        n_permutations=20,
        neighbors=neighbours,
        adjacency=[[1], [0], [1]],
    )
    np.testing.assert_array_equal(known.pvalue_cluster, again.pvalue_cluster)


def test_a_sliding_window():
    X, y = epochs()
    windows = [np.arange(max(0, t - 1), min(POSITIONS, t + 2)) for t in range(POSITIONS)]
    scores = cross_val_score(LINEAR, X, y, cv=3, neighbors=windows)
    expected = fitonce.cross_val_score(LINEAR, X[:, :, 1:4].reshape(N, -1), y, cv=3)
    np.testing.assert_allclose(scores[2], expected, rtol=1e-12)
    assert (
        permutation_test(
            LINEAR, X, y, cv=KFold(3), n_permutations=5, neighbors=windows
        ).pvalue_cluster
        is not None
    )


def test_precomputed_kernels():
    X, y = epochs()
    K = np.einsum("ipt,jpt->ijt", X, X)
    model = KernelFisherDiscriminant("precomputed", alpha=1.0)
    np.testing.assert_allclose(
        cross_val_score(model, K, y, cv=3, scoring="roc_auc"),
        cross_val_score(LINEAR, X, y, cv=3, scoring="roc_auc"),
    )
    given = permutation_test(model, K, y, cv=KFold(3), n_permutations=9, scoring="roc_auc")
    np.testing.assert_allclose(
        given.null,
        permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=9, scoring="roc_auc").null,
    )
    with pytest.raises(ValueError, match="precomputed"):
        generalize(model, K, y, cv=3)


# ---- generalisation ------------------------------------------------------------------------------


def literal_generalization(
    model: Any, X: np.ndarray, y: np.ndarray, splits: Any, scorer: Any, params: Any = None
) -> np.ndarray:
    """The loop that users write."""
    q = X.shape[2]
    scores = np.empty((q, q, len(splits)))
    for fold, (train, test) in enumerate(splits):
        part = {name: np.asarray(value)[train] for name, value in (params or {}).items()}
        for s in range(q):
            fitted = clone(model).fit(X[train, :, s], y[train], **part)
            for t in range(q):
                scores[s, t, fold] = scorer(fitted, X[test, :, t], y[test])
    return scores


GENERALIZED: dict[str, tuple[Any, Any, str]] = {
    "fisher, linear": (
        KernelFisherDiscriminant("linear", alpha=1.0, calibration=None),
        2,
        "neg_log_loss",
    ),
    "fisher, linear, many features": (
        KernelFisherDiscriminant("linear", alpha=300.0, calibration=None),
        200,
        "neg_log_loss",
    ),
    "fisher, three classes": (
        KernelFisherDiscriminant("linear", alpha=0.5, calibration=None),
        3,
        "neg_log_loss",
    ),
    "fisher, rbf": (
        KernelFisherDiscriminant(gamma=0.2, alpha=0.3, calibration=None),
        3,
        "neg_log_loss",
    ),
    "fisher, dual": (
        KernelFisherDiscriminant(gamma=0.2, alpha=0.3, penalty="dual", calibration=None),
        3,
        "neg_log_loss",
    ),
    "fisher, linear, dual": (
        KernelFisherDiscriminant("linear", alpha=0.3, penalty="dual", calibration=None),
        2,
        "neg_log_loss",
    ),
    "fisher, priors": (
        KernelFisherDiscriminant("linear", alpha=1.0, priors=[0.7, 0.3], calibration=None),
        2,
        "neg_log_loss",
    ),
    "fisher, calibrated": (KernelFisherDiscriminant("linear", alpha=1.0), 2, "neg_log_loss"),
    "fisher, accuracy": (LINEAR, 3, "accuracy"),
    "LS-SVM": (LeastSquaresSVC("linear", alpha=0.3), 2, "roc_auc"),
    "LS-SVM, no bias": (LeastSquaresSVC(gamma=0.2, alpha=0.3, fit_intercept=False), 3, "accuracy"),
    "LS-SVM, penalised bias": (
        LeastSquaresSVC(gamma=0.2, alpha=0.3, fit_intercept="penalized"),
        2,
        "roc_auc",
    ),
    "LS-SVM, dual, balanced": (
        LeastSquaresSVC(gamma=0.2, alpha=0.3, penalty="dual", class_weight="balanced"),
        2,
        "roc_auc",
    ),
    "ridge": (KernelRidge(kernel="linear", alpha=1.0), None, "r2"),
    "ridge, rbf, dual": (
        KernelRidge(gamma=0.1, alpha=0.3, penalty="dual"),
        None,
        "neg_mean_squared_error",
    ),
    "ridge, two targets": (KernelRidge(gamma=0.1, alpha=0.5), 20, "neg_mean_squared_error"),
    "ridge, tiny alpha": (KernelRidge(kernel="linear", alpha=1e-8), None, "r2"),
    "tuned": (KernelFisherDiscriminant("linear"), 2, "roc_auc"),
    "pipeline": (
        make_pipeline(StandardScaler(), KernelRidge(kernel="linear", alpha=1.0)),
        None,
        "r2",
    ),
    "another's": (Ridge(), None, "r2"),
}


@pytest.mark.parametrize("case", GENERALIZED)
def test_generalisation_is_a_loop_of_refits(case):
    model, kind, scoring = GENERALIZED[case]
    X, y = epochs(p=40, q=3) if kind == 200 else middle_positions(kind)
    splits = list(
        StratifiedKFold(3).split(X[:, :, 0], y)
        if isinstance(kind, int) and kind != 20
        else KFold(3).split(X)
    )
    scores = quietly(generalize, model, X, y, cv=splits, scoring=scoring)
    expected = quietly(literal_generalization, model, X, y, splits, get_scorer(scoring))
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)
    diagonal = np.diagonal(scores).T
    np.testing.assert_allclose(
        diagonal,
        quietly(cross_val_score, model, X, y, cv=splits, scoring=scoring),
        rtol=1e-8,
        atol=1e-8,
    )
    assert np.ptp(scores[1]) > 0


def test_generalisation_with_weights_overlapping_splits_and_missing_classes():
    X, y = epochs(3)
    weights = np.linspace(0.3, 2.0, N)
    splits = list(ShuffleSplit(4, test_size=0.3, random_state=0).split(X))
    splits.append(
        (np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:4])
    )  # a training set without the third class
    model = KernelFisherDiscriminant("linear", alpha=0.7)
    scores = generalize(model, X, y, cv=splits, params={"sample_weight": weights})
    np.testing.assert_allclose(
        scores,
        literal_generalization(
            model, X, y, splits, get_scorer("accuracy"), {"sample_weight": weights}
        ),
        atol=1e-12,
    )
    ridge = KernelRidge(gamma=0.2, alpha=0.7)
    target = X[:, 0, 2] + 0.1 * X[:, 1, 1]
    scores = generalize(ridge, X, target, cv=splits, params={"sample_weight": weights})
    expected = literal_generalization(
        ridge, X, target, splits, get_scorer("r2"), {"sample_weight": weights}
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-8)


def test_generalisation_with_names_of_classes():
    X, y = epochs(3)
    names = np.array(["low", "middle", "high"])[y]
    splits = list(KFold(3).split(X))
    for model in (LINEAR, make_pipeline(StandardScaler(), LINEAR), LinearDiscriminantAnalysis()):
        expected = literal_generalization(model, X, names, splits, get_scorer("accuracy"))
        np.testing.assert_array_equal(
            quietly(generalize, model, X, names, cv=splits, scoring="accuracy"), expected
        )


def test_generalisation_with_a_function_of_the_users_own():
    X, y = epochs(q=3)
    splits = list(KFold(3).split(X))

    def looks_inside(model: Any, X: Any, y: Any) -> float:
        return float(np.sum(model.coef_)) + float(np.mean(model.decision_function(X)))

    expected = literal_generalization(LINEAR, X, y, splits, looks_inside)
    np.testing.assert_allclose(
        generalize(LINEAR, X, y, cv=splits, scoring=looks_inside), expected, rtol=1e-10
    )


# ---- parallel, progress, checkpoint --------------------------------------------------------------


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_backend_does_not_matter(backend):
    X, y = epochs(q=11)
    options = {"cv": StratifiedKFold(3), "n_permutations": 15}
    alone = permutation_test(LINEAR, X, y, **options)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        np.testing.assert_array_equal(permutation_test(LINEAR, X, y, **options).null, alone.null)
        np.testing.assert_array_equal(
            cross_val_score(LINEAR, X, y, cv=3), cross_val_score(LINEAR, X, y, cv=3, n_jobs=1)
        )
        np.testing.assert_array_equal(
            generalize(LINEAR, X, y, cv=3), generalize(LINEAR, X, y, cv=3, n_jobs=1)
        )


def test_results_travel():
    X, y = epochs()
    test = permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=5)
    again = pickle.loads(pickle.dumps(test))
    np.testing.assert_array_equal(again.null, test.null)
    assert repr(again) == repr(test) and "5 permutations" in repr(test)


class StopError(Exception):
    """Stands for Ctrl-C."""


def test_a_checkpoint_is_gone_on_from(tmp_path, monkeypatch):
    X, y = epochs(q=9)
    path = tmp_path / "run.npz"
    options = {"cv": 3, "n_permutations": 8, "random_state": 5}
    whole = permutation_test(LINEAR, X, y, **options)
    module = sys.modules["fitonce.positions.permutation"]
    evaluation, calls = module.Evaluation, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 5:
            raise StopError
        return evaluation(*arguments)

    monkeypatch.setattr(module, "Evaluation", interrupted)
    with pytest.raises(StopError):
        permutation_test(LINEAR, X, y, checkpoint=path, **options)
    assert path.exists() and not list(tmp_path.glob("*.tmp"))
    test = permutation_test(LINEAR, X, y, checkpoint=path, **options)
    np.testing.assert_array_equal(test.null, whole.null)
    assert len(calls) == 5 + 9 - 4
    known = permutation_test(LINEAR, X, y, checkpoint=path, **options)
    np.testing.assert_array_equal(known.score, whole.score)
    assert (known.route.name, known.route.reason) == (whole.route.name, "known from the checkpoint")
    assert len(calls) == 5 + 9 - 4
    with pytest.raises(ValueError, match="another test"):
        permutation_test(LINEAR, X + 1e-9, y, checkpoint=path, **options)
    with pytest.raises(ValueError, match="integer random_state"):
        permutation_test(LINEAR, X, y, checkpoint=path, **{**options, "random_state": None})


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("permute", ["cosets", "free", "resplit"])
def test_memory_does_not_grow_with_permutations(permute, scaled):
    """Labels that do not fit into the budget are drawn again at every position."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3, 2)), rng.normal(size=200)
    model = KernelRidge(alpha=1.0, kernel="linear")
    model = make_pipeline(StandardScaler(), model) if scaled else model
    options = {"cv": KFold(4), "permute": permute, "random_state": 3}
    if permute != "resplit":
        peaks = []
        for count in (200, 2000):
            tracemalloc.start()
            permutation_test(model, X, y, n_permutations=count, max_bytes=1 << 18, **options)
            peaks.append(tracemalloc.get_traced_memory()[1] - 8 * 6 * 2 * count)  # null scores
            tracemalloc.stop()
        assert peaks[1] < peaks[0] + (1 << 18)
    kept, drawn = (
        permutation_test(model, X, y, n_permutations=30, max_bytes=size, **options)
        for size in (1 << 28, 1 << 14)
    )
    np.testing.assert_allclose(kept.null, drawn.null, atol=1e-12)
    assert kept.n_placements == drawn.n_placements


def test_progress_and_a_word_before_long_runs(capsys, monkeypatch):
    X, y = epochs()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=5, verbose=1)
    shown = capsys.readouterr().err
    assert "1/5" in shown and shown.endswith("5/5\n") and shown.count("\r") == 5
    permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("fitonce.inference.run.LONG", 0.0)
    permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=5)
    assert "permutation_test: about" in capsys.readouterr().err


# ---- warnings and errors -------------------------------------------------------------------------


def warned(function: Any, *arguments: Any, **options: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **options)
    return caught


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warnings_are_given_once(n_jobs):
    X, y = epochs()
    options = {"n_permutations": 3, "n_jobs": n_jobs}
    (warning,) = warned(permutation_test, LINEAR, X, y, cv=TimeSeriesSplit(3), **options)
    assert warning.category is ValidityWarning
    (warning,) = warned(
        permutation_test, LinearDiscriminantAnalysis(), X, y, cv=KFold(3), **options
    )
    assert (
        warning.category is RefitWarning
        and warning.filename == __file__
        and "more like this" not in str(warning.message)
    )
    (warning,) = warned(
        cross_val_score, LinearDiscriminantAnalysis(), X, y, cv=KFold(3), n_jobs=n_jobs
    )
    assert warning.category is RefitWarning
    (warning,) = warned(generalize, LinearDiscriminantAnalysis(), X, y, cv=KFold(3), n_jobs=n_jobs)
    assert warning.category is RefitWarning
    tiny = KernelFisherDiscriminant("linear", alpha=1e-12)
    (warning,) = warned(permutation_test, tiny, X * np.arange(1, 6), y, cv=KFold(3), **options)
    assert warning.category is NumericalWarning and "4 more like this one" in str(warning.message)


def test_errors_name_the_position():
    X, y = epochs()
    X[3, 1, 2] = np.nan
    with pytest.raises(ValueError, match="NaN") as raised:
        permutation_test(LINEAR, X, y, cv=KFold(3), n_permutations=3)
    assert raised.value.__notes__ == ["This happened at position 2."]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "larger"}, "alternative must be one of"),
        ({"cluster_pvalue": 1.5}, "cluster_pvalue must be a number between 0 and 1"),
        ({"cluster_score": np.nan}, "cluster_score must be None or a finite number"),
        ({"cluster_score": 0.1, "alternative": "two-sided"}, "must lie above the chance level"),
        ({"adjacency": np.eye(3)}, r"one column for each of the 5 positions"),
        ({"adjacency": [[0], [1]]}, r"one list of indices for each of the 5 positions"),
        ({"scoring": ["accuracy", "roc_auc"]}, "scoring must be one score"),
        ({"n_permutations": 0}, "n_permutations must be a positive integer"),
        ({"neighbors": [[0], [7]]}, r"neighbors\[1\] must contain indices from 0 to 4"),
        ({"neighbors": [[0], []]}, "neighborhood 1 is empty"),
        ({"neighbors": [[0, 0]]}, "twice"),
        ({"neighbors": [[0.5]]}, "one-dimensional array of indices"),
        ({"neighbors": np.ones((2, 9), dtype=bool)}, "one column for each of the 5 positions"),
        ({"permute": "free", "cv": StratifiedKFold(3)}, "not valid here"),
    ],
)
def test_refused(options, message):
    X, y = epochs()
    with pytest.raises(ValueError, match=message):
        permutation_test(LINEAR, X, y, **{"cv": KFold(3), "n_permutations": 3, **options})


def test_refused_data():
    X, y = epochs()
    for function in (permutation_test, cross_val_score, generalize):
        with pytest.raises(ValueError, match="For a searchlight over the columns"):
            function(LINEAR, X[:, :, 0], y, cv=3)
        with pytest.raises(ValueError, match="one entry per sample"):
            function(LINEAR, X, y[1:], cv=KFold(3))
        with pytest.raises(TypeError, match="neighbors must be a list"):
            function(LINEAR, X, y, cv=3, neighbors=3)
        with pytest.raises(ValueError, match="must have samples"):
            function(LINEAR, X[:, :, :0], y, cv=3)
        with pytest.raises(ValueError, match="must be numeric"):
            function(LINEAR, X.astype(str), y, cv=3)
        with pytest.raises(TypeError, match=r"pass X.get_data\(\), whose axes"):
            function(LINEAR, SimpleNamespace(get_data=lambda: X), y, cv=3)
        with pytest.raises(ValueError, match=r"axes of X are \(n_samples, n_features"):
            function(LINEAR, np.moveaxis(X, 0, 1), y, cv=3)
    with pytest.raises(ValueError, match="equal sizes"):
        generalize(LINEAR, X, y, cv=3, neighbors=[[0], [1, 2]])
    with pytest.raises(ValueError, match="one score"):
        generalize(LINEAR, X, y, cv=3, scoring=["accuracy"])


# ---- company -------------------------------------------------------------------------------------


@pytest.mark.torch
def test_torch_tensors():
    import torch

    X, y = epochs(3)
    tensor = torch.asarray(X)
    for model in (LINEAR, KernelFisherDiscriminant(gamma=0.2, alpha=0.3)):
        options = {"cv": KFold(3), "n_permutations": 6}
        np.testing.assert_allclose(
            permutation_test(model, tensor, y, **options).null,
            permutation_test(model, X, y, **options).null,
        )
        np.testing.assert_allclose(
            cross_val_score(model, tensor, y, cv=3), cross_val_score(model, X, y, cv=3)
        )
        np.testing.assert_allclose(
            generalize(model, tensor, y, cv=3), generalize(model, X, y, cv=3)
        )


@pytest.mark.parametrize("model", [LINEAR, LeastSquaresSVC(gamma=0.2, alpha=0.3)])
def test_inside_mne(model):
    """MNE's own loop over our estimators gives our numbers."""
    decoding = require("mne.decoding")
    X, y = epochs(3)
    cv = StratifiedKFold(3)
    sliding = decoding.SlidingEstimator(model, scoring="accuracy", verbose="ERROR")
    theirs = decoding.cross_val_multiscore(sliding, X, y, cv=cv, verbose="ERROR")
    np.testing.assert_allclose(cross_val_score(model, X, y, cv=cv).T, theirs, atol=1e-12)
    generalizing = decoding.GeneralizingEstimator(model, scoring="accuracy", verbose="ERROR")
    theirs = decoding.cross_val_multiscore(generalizing, X, y, cv=cv, verbose="ERROR")
    np.testing.assert_allclose(
        np.moveaxis(generalize(model, X, y, cv=cv), -1, 0), theirs, atol=1e-12
    )
