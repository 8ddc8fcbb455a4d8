"""Landmarks against plain normal equations, literal refits and the exact model."""

from __future__ import annotations

import importlib
import warnings
from functools import reduce

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
import reference
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, NumericalWarning
from fitonce.core.moments import Moments
from fitonce.kernels import Kernel
from fitonce.landmarks.choice import METHODS, Pool, choose_landmarks, pivoted_cholesky, pool_size
from problems import (
    ESTIMATORS,
    PENALTIES,
    every_estimator,
    every_penalty,
    gram,
    row_weights,
    rows_for,
    some_kernels,
    targets_of,
)
from reference import assert_close, held_out_of, output, refitted_held_out
from sklearn_checks import with_checks

WITH_INTERCEPT = (LeastSquaresSVC, KernelRidge)
KERNELS = some_kernels("linear", "rbf", "poly", "laplacian")
N, M = 30, 8

every_method = pytest.mark.parametrize("method", METHODS)


def repeated_rows(
    estimator=LeastSquaresSVC, n: int = N, n_classes: int = 3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the estimator, the last three of which repeat the first."""
    return rows_for(estimator, n, n_classes, n_targets=2, seed=seed, repeated=3)


def points(seed: int = 7, m: int = M) -> np.ndarray:
    """Landmarks that are no rows."""
    return 1.2 * np.random.default_rng(seed).normal(size=(m, 3))


# ---- the definition: normal equations in α -------------------------------------------------------


def naive(kernel, X, L, Y, mu, weights, penalty, intercept, new) -> np.ndarray:
    """The model of rows X at new rows."""
    K = gram(kernel, np.vstack([X, new]), L)
    basis = reference.at_landmarks(K, gram(kernel, L, L), penalty, intercept)
    return basis.predictions(Y, mu, np.arange(len(X)), weights)[len(X) :]


def naive_fisher(K_nm, K_mm, y, mu, weights, penalty, K_new) -> np.ndarray:
    """Fisher's discriminant on explicit features of the landmarks."""
    eigenvalues, U = np.linalg.eigh(K_mm)
    kept = eigenvalues > 1e-12 * eigenvalues.max()
    whiten = U[:, kept] / np.sqrt(eigenvalues[kept]) if penalty == "function" else np.eye(len(K_mm))
    w = np.ones(len(y)) if weights is None else weights
    scores = reference.fisher(K_nm[w > 0] @ whiten, y[w > 0], mu, K_new @ whiten, w[w > 0]).scores
    return scores if scores.shape[1] > 2 else scores[:, 1] - scores[:, 0]


def naive_output(estimator, kernel, X, y, L, mu, weights, penalty, intercept, new) -> np.ndarray:
    if estimator is KernelFisherDiscriminant:
        blocks = gram(kernel, X, L), gram(kernel, L, L)
        return naive_fisher(*blocks, y, mu, weights, penalty, gram(kernel, new, L))
    Y = targets_of(estimator, y)
    values = naive(kernel, X, L, Y, mu, weights, penalty, intercept, new)
    return values[:, 0] if values.shape[1] == 1 and y.ndim == 1 else values


def cases():
    for estimator in ESTIMATORS:
        for kernel in KERNELS:
            for penalty in PENALTIES:
                for intercept in (
                    (True, False, "penalized") if estimator in WITH_INTERCEPT else (True,)
                ):
                    yield estimator, kernel, penalty, intercept


def make(
    estimator, penalty="function", kernel="rbf", intercept=True, mu=0.3, landmarks=None, **options
):
    if estimator in WITH_INTERCEPT:
        options["fit_intercept"] = intercept
    settings = {"alpha": mu, "penalty": penalty, "landmarks": landmarks, **KERNELS[kernel]}
    return estimator(kernel=kernel, **settings, **options)


@pytest.mark.pairwise
@pytest.mark.parametrize(("estimator", "kernel", "penalty", "intercept"), list(cases()))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_solves_its_normal_equations(estimator, kernel, penalty, intercept, weighted):
    for n_classes in (2, 4):
        X, y = repeated_rows(estimator, n_classes=n_classes)
        weights = row_weights(N, zeros=4) if weighted else None
        new = points(3)
        for mu in (1e-2, 1.0, 1e3):
            model = make(estimator, penalty, kernel, intercept, mu, points()).fit(
                X, y, sample_weight=weights
            )
            assert_close(
                output(model, new),
                naive_output(
                    estimator, kernel, X, y, points(), mu, weights, penalty, intercept, new
                ),
                1e-7,
            )


SPLITTERS = {
    "leave-one-out": LeaveOneOut(),
    "k-fold": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "shuffled": ShuffleSplit(4, test_size=0.4, random_state=0),
    "groups": GroupKFold(4),
    "left out groups": LeaveOneGroupOut(),
}
GROUPS = np.arange(N) % 7


@pytest.mark.pairwise
@pytest.mark.parametrize(("estimator", "kernel", "penalty", "intercept"), list(cases()))
@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_values_equal_refits(
    estimator, kernel, penalty, intercept, cv, weighted, n_classes
):
    """Leave-one-out also where no splitter is given."""
    X, y = repeated_rows(estimator, n_classes=n_classes)
    weights = row_weights(N, zeros=4) if weighted else None
    splitter, plain = SPLITTERS[cv], make(estimator, penalty, kernel, intercept, 0.3, points())
    expected = refitted_held_out(plain, X, y, splitter.split(X, y, GROUPS), weights)
    for given in (splitter, None) if cv == "leave-one-out" else (splitter,):
        model = clone(plain).set_params(cv=given)
        groups = None if given is None else GROUPS
        model.fit(X, y, sample_weight=weights, groups=groups)
        assert_close(held_out_of(model), expected)


@every_estimator
@every_penalty
def test_a_fold_of_weight_zero_deletes_nothing(estimator, penalty):
    X, y = repeated_rows(estimator, n_classes=2)
    fold = np.arange(N) % 4
    weights = np.where(fold == 1, 0.0, row_weights(N, zeros=4) + 0.1)
    candidates = [0.01, 1.0, 100.0]
    model = make(
        estimator, penalty, mu=candidates, landmarks=points(), cv=PredefinedSplit(fold)
    ).fit(X, y, sample_weight=weights)
    inside = fold != 1
    alone = make(
        estimator, penalty, mu=candidates, landmarks=points(), cv=PredefinedSplit(fold[inside])
    )
    alone.fit(X[inside], y[inside], sample_weight=weights[inside])
    assert model.alpha_ == alone.alpha_
    assert_close(held_out_of(model)[inside], held_out_of(alone))
    assert_close(held_out_of(model)[~inside], output(alone, X[~inside]))


@pytest.mark.pairwise
@every_estimator
@every_penalty
@pytest.mark.parametrize("cv", [None, KFold(4, shuffle=True, random_state=0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_tuning_minimises_the_literal_criterion(estimator, penalty, cv, weighted):
    """Squared error of held-out targets for every candidate, by refits."""
    X, y = repeated_rows(estimator, n_classes=2)
    alphas = np.array([1e-3, 1e-1, 10.0])
    options = {
        "criterion": "squared_error",
        "penalty": penalty,
        "gamma": 0.3,
        "landmarks": points(),
    }
    w = row_weights(N) if weighted else np.ones(N)
    model = estimator(alpha=alphas, cv=cv, **options).fit(X, y, w if weighted else None)
    Y = targets_of(estimator, y)
    losses = []
    for mu in alphas:
        errors = []
        for train, test in (cv or LeaveOneOut()).split(X):
            given = mu, w[train], penalty, True, X[test]
            predicted = naive("rbf", X[train], points(), Y[train], *given)
            errors.append(np.sum(w[test] @ (Y[test] - predicted) ** 2) / (w.sum() * Y.shape[1]))
        losses.append(np.sum(errors))
    assert_close(-model.cv_results_["mean_test_score"], losses)
    assert model.alpha_ == alphas[np.argmin(losses)]


@pytest.mark.pairwise
@every_estimator
@every_penalty
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_defaults_tune_gamma_and_alpha(estimator, penalty, kernel):
    """What is tuned is what a fit with the chosen values gives, and leave-one-out is that of
    refits.
    """
    X, y = repeated_rows(estimator)
    model = estimator(kernel=kernel, penalty=penalty, landmarks=M, random_state=0).fit(X, y)
    fixed = {
        name: getattr(model, f"{name}_")
        for name in ("alpha", "gamma", "degree", "coef0")
        if hasattr(model, f"{name}_")
    }
    again = clone(model).set_params(**fixed, landmarks=model.landmarks_).fit(X, y)
    assert_close(held_out_of(again), held_out_of(model), 1e-6)
    assert model.verify().passed
    assert model.landmarks_.shape == (M, 3) and np.array_equal(
        model.landmarks_, X[model.landmark_indices_]
    )
    assert model.dual_coef_.shape[0] == M and np.array_equal(model.X_fit_, model.landmarks_)


# ---- all rows as landmarks -----------------------------------------------------------------------


@pytest.mark.pairwise
@every_estimator
@pytest.mark.parametrize("intercept", [True, False, "penalized"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("setting", ["function", "function, weights", "dual"])
def test_all_rows_as_landmarks_give_the_exact_model(estimator, intercept, kernel, setting):
    """To 1e-6 for mu ≥ 1e-4 λ_max; held-out values of the function norm as well."""
    if estimator is KernelFisherDiscriminant and intercept is not True:
        pytest.skip("the discriminant's bias is always free")
    penalty, weighted = setting.split(",")[0], "weights" in setting
    X, y = repeated_rows(estimator)
    weights = row_weights(N, zeros=4) if weighted else None
    K = gram(kernel, X, X)
    largest = np.linalg.norm(K, 2) ** (1 if penalty == "function" else 2)
    new = points(3)
    for mu in largest * np.array([1e-4, 1e-2, 1.0]):
        exact = make(estimator, penalty, kernel, intercept, mu).fit(X, y, sample_weight=weights)
        model = make(estimator, penalty, kernel, intercept, mu, N).fit(X, y, sample_weight=weights)
        assert_close(output(model, new), output(exact, new), 1e-6)
        assert_close(model.leverage_, exact.leverage_, 1e-6)
        if penalty == "function":
            assert_close(held_out_of(model), held_out_of(exact), 1e-6)


# ---- landmarks that leave with their rows --------------------------------------------------------


def refit_without_own_landmarks(model, X, y, train, weights=None):
    kept = np.isin(model.landmark_indices_, train)
    other = clone(model).set_params(
        landmarks=model.landmarks_[kept], alpha=model.alpha_, cv=None, shared_landmarks=False
    )
    return other.fit(X[train], y[train], sample_weight=None if weights is None else weights[train])


@pytest.mark.pairwise
@every_estimator
@every_penalty
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [None, KFold(4, shuffle=True, random_state=1)])
def test_tuning_drops_landmarks_with_their_rows(estimator, penalty, kernel, weighted, cv):
    """Held-out values are those of refits, and so are the losses of numbers at every alpha."""
    X, y = repeated_rows(estimator)
    weights = row_weights(N) if weighted else None
    options = {"landmarks": 12, "shared_landmarks": "drop", "random_state": 3, "cv": cv}
    model = make(estimator, penalty, kernel, **options)
    model.set_params(alpha=[0.05, 0.3, 2.0], criterion="squared_error")
    model.fit(X, y, sample_weight=weights)
    assert model.verify().passed
    held_out, chosen, losses = held_out_of(model), model.alpha_, []
    for alpha in model.alpha if estimator is KernelRidge else [chosen]:
        expected, model.alpha_ = 0.0 * held_out, alpha
        for train, test in (cv or LeaveOneOut()).split(X):
            refitted = refit_without_own_landmarks(model, X, y, train, weights)
            expected[test] = output(refitted, X[test])
        if estimator is KernelRidge:
            squares = np.average((expected - y) ** 2, axis=0, weights=weights)
            losses.append(np.mean(squares))
        if alpha == chosen:
            assert_close(held_out, expected, 1e-7)
    if estimator is KernelRidge:
        assert_close(-model.cv_results_["mean_test_score"], losses)


# ---- cross-validation functions ------------------------------------------------------------------


@every_estimator
@every_method
def test_each_training_set_chooses_its_own_landmarks(estimator, method):
    """The numbers of scikit-learn's function, on route per-fold."""
    X, y = repeated_rows(estimator)
    model = make(estimator, landmarks=6, landmark_method=method, random_state=5)
    cv = KFold(3, shuffle=True, random_state=0)
    how = "predict" if estimator is KernelRidge else "decision_function"
    got = fitonce.cross_val_predict(model, X, y, cv=cv, method=how)
    assert_close(got, sklearn.model_selection.cross_val_predict(model, X, y, cv=cv, method=how))
    results = fitonce.cross_validate(model, X, y, cv=cv)
    assert results.route.name == "per-fold" and "landmarks" in results.route.reason
    assert_close(
        results["test_score"],
        sklearn.model_selection.cross_validate(model, X, y, cv=cv)["test_score"],
    )


@every_estimator
@every_penalty
def test_points_take_route_one(estimator, penalty):
    X, y = repeated_rows(estimator)
    model = make(estimator, penalty, landmarks=points())
    how = "predict" if estimator is KernelRidge else "decision_function"
    for cv in (KFold(3), LeaveOneOut(), KFold(2)):
        got = fitonce.cross_val_predict(model, X, y, cv=cv, method=how)
        assert_close(got, sklearn.model_selection.cross_val_predict(model, X, y, cv=cv, method=how))
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    results = fitonce.cross_validate(
        model, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True
    )
    expected = sklearn.model_selection.cross_validate(
        model, X, y, cv=3, params={"sample_weight": weights}
    )
    assert results.route.name == "one"
    assert_close(results["test_score"], expected["test_score"])
    assert all(np.array_equal(fold.landmarks_, points()) for fold in results["estimator"])
    assert all((fold.landmark_indices_ == -1).all() for fold in results["estimator"])


@pytest.mark.pairwise
@every_estimator
@every_penalty
@pytest.mark.parametrize("shared", [True, "drop"])
def test_shared_landmarks_in_cross_validation(estimator, penalty, shared):
    X, y = repeated_rows(estimator)
    model = make(estimator, penalty, landmarks=12, shared_landmarks=shared, random_state=3)
    chosen = clone(model).fit(X, y)
    cv = KFold(3, shuffle=True, random_state=0)
    expected = []
    for train, test in cv.split(X):
        kept = (
            np.isin(chosen.landmark_indices_, train)
            if shared == "drop"
            else np.ones(12, dtype=bool)
        )
        fold = make(estimator, penalty, landmarks=chosen.landmarks_[kept]).fit(X[train], y[train])
        expected.append((test, output(fold, X[test]), fold.score(X[test], y[test])))
    how = "predict" if estimator is KernelRidge else "decision_function"
    got = fitonce.cross_val_predict(model, X, y, cv=cv, method=how)
    for test, values, _ in expected:
        assert_close(got[test], values, 1e-7)
    results = fitonce.cross_validate(model, X, y, cv=cv)
    assert_close(results["test_score"], [score for *_, score in expected], 1e-7)
    assert results.route.name == ("one" if shared is True else "per-fold")


def test_shared_landmarks_refuse_steps_that_are_refitted():
    X, y = repeated_rows()
    model = make_pipeline(
        StandardScaler(), make(LeastSquaresSVC, landmarks=6, shared_landmarks=True)
    )
    with pytest.raises(
        ValueError, match="shared_landmarks needs the same points for all training sets"
    ):
        fitonce.cross_val_score(model, X, y)
    model.set_params(leastsquaressvc__shared_landmarks=False, leastsquaressvc__random_state=0)
    assert_close(
        fitonce.cross_val_score(model, X, y, cv=3),
        sklearn.model_selection.cross_val_score(model, X, y, cv=3),
    )


@every_estimator
def test_permutations_share_points(estimator):
    X, y = repeated_rows(estimator)
    y = y[:, 0] if estimator is KernelRidge else y
    options = {
        "cv": KFold(3, shuffle=True, random_state=0),
        "n_permutations": 12,
        "random_state": 2,
    }
    model = make(estimator, landmarks=8, shared_landmarks=True, random_state=3)
    got = fitonce.permutation_test_score(model, X, y, **options, permute="resplit")
    given = make(estimator, landmarks=clone(model).fit(X, y).landmarks_)
    expected = sklearn.model_selection.permutation_test_score(given, X, y, **options)
    assert_close(got[0], expected[0])
    assert_close(got[1], expected[1])
    assert got.route.name == "one"


@every_estimator
def test_permutations_with_landmarks_of_each_training_set(estimator):
    X, y = repeated_rows(estimator)
    y = y[:, 0] if estimator is KernelRidge else y
    options = {"cv": KFold(3, shuffle=True, random_state=0), "n_permutations": 5, "random_state": 2}
    for method in ("uniform", "greedy"):
        model = make(estimator, landmarks=8, landmark_method=method, random_state=3)
        got = fitonce.permutation_test_score(model, X, y, **options, permute="resplit")
        expected = sklearn.model_selection.permutation_test_score(model, X, y, **options)
        assert_close(got[0], expected[0])
        assert_close(got[1], expected[1])


@pytest.mark.parametrize(
    "options",
    [{"shared_landmarks": "drop"}, {"shared_landmarks": True, "landmark_method": "greedy"}],
)
def test_permutations_refuse_landmarks_that_see_labels_or_folds(options):
    X, y = repeated_rows()
    with pytest.raises(ValueError, match="same for all labelings and folds"):
        fitonce.permutation_test_score(
            make(LeastSquaresSVC, landmarks=6, **options), X, y, n_permutations=3
        )


# ---- choosing ------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("sparse", [False, True])
def test_methods_give_the_right_number_of_rows_reproducibly(method, sparse):
    X, y = repeated_rows(n=80)
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)) if sparse else X
    dense = X.toarray() if sparse else X
    models = [
        make(LeastSquaresSVC, landmarks=9, landmark_method=method, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    ]
    chosen = [
        model.landmarks_.toarray() if sp.issparse(model.landmarks_) else model.landmarks_
        for model in models
    ]
    assert all(rows.shape == (9, 3) for rows in chosen)
    assert np.array_equal(chosen[0], chosen[1])
    if method != "cholesky":  # looks at all 80 rows, and nothing in it is random
        assert not np.array_equal(chosen[0], chosen[2])
    if method == "kmeans":
        assert (models[0].landmark_indices_ == -1).all()
    else:
        assert len(np.unique(models[0].landmark_indices_)) == 9
        assert np.array_equal(dense[models[0].landmark_indices_], chosen[0])


@every_method
def test_rows_of_zero_weight_are_never_landmarks(method):
    X, y = repeated_rows(n=60)
    weights = np.where(np.arange(60) % 3 == 0, 1.5, 0.0)
    X[weights == 0] += 100.0
    model = make(LeastSquaresSVC, landmarks=7, landmark_method=method, random_state=0).fit(
        X, y, sample_weight=weights
    )
    assert np.abs(model.landmarks_).max() < 50
    if method != "kmeans":
        assert (weights[model.landmark_indices_] > 0).all()
    few = make(LeastSquaresSVC, landmarks=7, landmark_method=method, random_state=0).fit(
        X[weights > 0], y[weights > 0]
    )
    if method in ("cholesky", "kmeans"):
        assert_close(
            output(few, points()),
            output(model.set_params(alpha=0.3 * 1.5).fit(X, y, sample_weight=weights), points()),
            1e-7,
        )


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_pivoted_cholesky_is_lapacks(name):
    X = np.random.default_rng(0).normal(size=(60, 4))
    kernel = Kernel(name, KERNELS[name])
    pivots, L = pivoted_cholesky(X, kernel, 15 if name == "rbf" else 12)
    K = kernel(X, X)
    factor, order, _, _ = scipy.linalg.lapack.dpstrf(K, lower=1)
    # of rbf all diagonal entries are one: a tie, which both give to the first row
    assert np.array_equal(pivots, order[: len(pivots)] - 1)
    assert_close(L[order - 1], np.tril(factor)[:, : len(pivots)], 1e-10)


def test_pivoted_cholesky_stops_where_nothing_is_left():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 4, axis=0)
    pivots, L = pivoted_cholesky(X, Kernel("rbf", {"gamma": 1.0}), 12)
    assert len(np.unique(X[pivots[:5]], axis=0)) == 5 and len(np.unique(pivots)) == 12
    assert_close(L @ L.T, pairwise_kernels(X, metric="rbf", gamma=1.0), 1e-7)


def test_greedy_is_forward_selection_by_press():
    """With every row a candidate.

    The column whose addition leaves the smallest leave-one-out squared error of least squares.
    """
    X, y = repeated_rows(KernelRidge, n=25)
    kernel = Kernel("rbf", {"gamma": 0.3})
    K = kernel(X, X)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 25)
    pool = Pool(X, y, weights, np.arange(25))
    got = choose_landmarks(pool, kernel, 4, "greedy", np.random.RandomState(0)).rows

    def press(rows: list[int]) -> float:
        Z = np.sqrt(weights)[:, None] * np.hstack([np.ones((25, 1)), K[:, rows]])
        H = Z @ np.linalg.pinv(Z)
        return float(
            (
                ((np.eye(25) - H) @ (np.sqrt(weights)[:, None] * y) / (1 - np.diag(H))[:, None])
                ** 2
            ).sum()
        )

    expected: list[int] = []
    for _ in range(4):
        expected.append(
            min(set(range(25)) - set(expected), key=lambda row: press([*expected, row]))
        )
    assert press(sorted(got)) == pytest.approx(press(expected), rel=1e-8)


def test_leverage_prefers_rows_far_from_the_others():
    rng = np.random.default_rng(0)
    X = np.vstack([0.05 * rng.normal(size=(190, 2)), 5.0 * rng.normal(size=(10, 2))])
    pool = Pool(X, np.zeros((200, 1)), np.ones(200), np.arange(200))
    kernel = Kernel("rbf", {"gamma": 0.5})
    far = {
        method: np.mean(
            [
                (
                    choose_landmarks(pool, kernel, 20, method, np.random.RandomState(s)).rows >= 190
                ).sum()
                for s in range(20)
            ]
        )
        for method in ("leverage", "uniform")
    }
    assert far["leverage"] > 3 * far["uniform"]


def test_weights_are_probabilities_of_uniform_landmarks():
    X = np.arange(40.0)[:, None]
    pool = Pool(X, np.zeros((40, 1)), np.where(np.arange(40) < 10, 20.0, 1.0), np.arange(40))
    drawn = [
        choose_landmarks(pool, Kernel("linear"), 5, "uniform", np.random.RandomState(s)).rows
        for s in range(60)
    ]
    assert np.mean(np.concatenate(drawn) < 10) > 0.7


def test_large_sets_are_chosen_from_a_sample():
    """Above the size of the pool a method sees a random part of the rows, and the landmarks are
    still rows of X.
    """
    rng = np.random.default_rng(0)
    n = pool_size(4, "greedy") + 500
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] > 0).astype(int)
    model = LeastSquaresSVC(
        gamma=0.5, alpha=1.0, landmarks=4, landmark_method="greedy", random_state=0
    ).fit(X, y)
    assert np.array_equal(model.landmarks_, X[model.landmark_indices_])
    assert model.held_out_decision_.shape == (n,) and model.verify(3).passed


# ---- input of other kinds ------------------------------------------------------------------------


@pytest.mark.pairwise
@every_estimator
@every_penalty
@pytest.mark.parametrize("cv", [None, KFold(4, shuffle=True, random_state=0)])
def test_sparse_rows(estimator, penalty, cv):
    X, y = repeated_rows(estimator)
    X = np.where(np.abs(X) > 0.4, X, 0.0)
    for kernel in ("rbf", "linear"):
        dense = make(estimator, penalty, kernel, landmarks=8, random_state=0, cv=cv).fit(X, y)
        sparse = make(estimator, penalty, kernel, landmarks=8, random_state=0, cv=cv).fit(
            sp.csr_matrix(X), y
        )
        assert_close(output(sparse, sp.csr_matrix(X)), output(dense, X))
        assert_close(held_out_of(sparse), held_out_of(dense))
        given = make(
            estimator, penalty, kernel, landmarks=sp.csr_matrix(dense.landmarks_), cv=cv
        ).fit(sp.csr_matrix(X), y)
        assert_close(held_out_of(given), held_out_of(dense))


@pytest.mark.pairwise
@every_estimator
@every_penalty
@pytest.mark.parametrize(
    "namespace", ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
@pytest.mark.parametrize("landmarks", [8, "points"])
def test_other_namespaces(estimator, penalty, namespace, landmarks):
    xp = (
        pytest.importorskip(namespace) if namespace != "torch" else importlib.import_module("torch")
    )
    X, y = repeated_rows(estimator)
    other_X, other_y = xp.asarray(X), xp.asarray(y)
    given = points() if landmarks == "points" else landmarks
    other_given = xp.asarray(points()) if landmarks == "points" else landmarks
    weights = row_weights(N, zeros=4)
    for options in (
        {},
        {"cv": KFold(4)},
        {"shared_landmarks": "drop"},
        {"shared_landmarks": "drop", "cv": KFold(4)},
    ):
        options = {**options, "random_state": 0, "alpha": [0.1, 1.0]}
        expected = (
            make(estimator, penalty, landmarks=given)
            .set_params(**options)
            .fit(X, y, sample_weight=weights)
        )
        got = (
            make(estimator, penalty, landmarks=other_given)
            .set_params(**options)
            .fit(other_X, other_y, sample_weight=xp.asarray(weights))
        )
        assert type(got.landmarks_) is type(other_X) and type(output(got, other_X)) is type(other_X)
        assert_close(np.asarray(output(got, other_X)), output(expected, X))
        assert_close(np.asarray(held_out_of(got)), held_out_of(expected))


@every_estimator
@every_method
def test_methods_in_another_namespace(estimator, method):
    xp = pytest.importorskip("array_api_strict")
    X, y = repeated_rows(estimator)
    expected = make(estimator, landmarks=6, landmark_method=method, random_state=0).fit(X, y)
    got = make(estimator, landmarks=6, landmark_method=method, random_state=0).fit(
        xp.asarray(X), xp.asarray(y)
    )
    assert_close(np.asarray(got.landmarks_), expected.landmarks_)
    assert np.array_equal(got.landmark_indices_, expected.landmark_indices_)


# ---- company -------------------------------------------------------------------------------------


@every_estimator
@every_penalty
def test_at_another_alpha(estimator, penalty):
    X, y = repeated_rows(estimator)
    model = make(estimator, penalty, landmarks=8, random_state=0).fit(X, y)
    other, expected = (
        model.at(5.0),
        make(estimator, penalty, mu=5.0, landmarks=8, random_state=0).fit(X, y),
    )
    assert_close(output(other, points()), output(expected, points()))
    assert_close(held_out_of(other), held_out_of(expected))
    assert other.best_score_ == pytest.approx(expected.best_score_)


@every_estimator
def test_verify_drops_all_landmarks_that_do_not_train(estimator):
    X, y = repeated_rows(estimator)
    cv = ShuffleSplit(
        4, train_size=0.6, test_size=0.2, random_state=0
    )  # some rows neither train nor test
    model = make(estimator, landmarks=12, random_state=0, shared_landmarks="drop", cv=cv).fit(X, y)
    assert model.verify(4).passed


@pytest.mark.parametrize("cv", [None, KFold(4)], ids=["leave-one-out", "folds"])
def test_a_row_that_outweighs_all_others_is_warned_of(cv):
    """Its mean takes the others' digits, though what is left about the mean is small."""
    X, y = repeated_rows(KernelRidge)
    heavy = make(KernelRidge, landmarks=points(), cv=cv)
    with pytest.warns(NumericalWarning, match="held-out values may have a relative error"):
        model = heavy.fit(X, y, sample_weight=np.where(np.arange(N) == 7, 1e10, 1.0))
    assert model.verify(N).passed and model.verify(N).tolerance > 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heavy.fit(X, y, sample_weight=np.where(np.arange(N) == 7, 1e3, 1.0))


@every_estimator
@every_penalty
def test_refinement(estimator, penalty):
    X, y = repeated_rows(estimator)
    coarse = estimator(penalty=penalty, criterion="squared_error", landmarks=8, random_state=0).fit(
        X, y
    )
    fine = estimator(
        penalty=penalty, criterion="squared_error", landmarks=8, random_state=0, refine=True
    ).fit(X, y)
    assert fine.best_score_ >= coarse.best_score_ - 1e-12
    assert fine.refinement_.rounds and fine.verify().passed
    again = estimator(
        penalty=penalty,
        criterion="squared_error",
        landmarks=fine.landmarks_,
        gamma=fine.gamma_,
        alpha=fine.alpha_,
    ).fit(X, y)
    assert again.best_score_ == pytest.approx(fine.best_score_, rel=1e-6)


def test_more_landmarks_than_rows_are_all_rows():
    X, y = repeated_rows()
    model = make(LeastSquaresSVC, landmarks=10 * N).fit(X, y)
    assert np.array_equal(model.landmarks_, X) and np.array_equal(
        model.landmark_indices_, np.arange(N)
    )


def test_kmeans_with_fewer_distinct_rows_than_clusters():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 10, axis=0)
    y = np.arange(40) % 2
    model = LeastSquaresSVC(
        gamma=1.0, alpha=1.0, landmarks=9, landmark_method="kmeans", random_state=0
    ).fit(X, y)
    assert len(model.landmarks_) == 4


BAD = {
    "zero": (0, ValueError, "at least 1"),
    "negative": (-3, ValueError, "at least 1"),
    "fraction": (2.5, TypeError, "must be an integer"),
    "truth": (True, TypeError, "must be an integer"),
    "features": (np.zeros((4, 2)), ValueError, r"\(n_landmarks, 3\)"),
    "one point": (np.zeros(3), ValueError, r"\(n_landmarks, 3\)"),
    "none": (np.zeros((0, 3)), ValueError, r"\(n_landmarks, 3\)"),
    "nan": (np.full((4, 3), np.nan), ValueError, "NaN"),
    "infinite": (np.full((4, 3), np.inf), ValueError, "NaN or infinity"),
    "text": ("many", (ValueError, TypeError), "landmarks"),
}


@every_estimator
@pytest.mark.parametrize("bad", BAD)
def test_bad_landmarks(estimator, bad):
    X, y = repeated_rows(estimator)
    value, error, message = BAD[bad]
    with pytest.raises(error, match=message):
        make(estimator, landmarks=value).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"landmark_method": "best"}, "landmark_method"),
        ({"shared_landmarks": "yes"}, "shared_landmarks"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, "penalty='dual'"),
        ({"kernel": "poly", "gamma": 1e200, "degree": 3}, "overflows"),
    ],
)
def test_bad_companions(options, message):
    X, y = repeated_rows()
    X = X @ X.T if options.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=message):
        LeastSquaresSVC(**{"landmarks": 6, "random_state": 0, **options}).fit(X, y)


def test_indefinite_kernels_with_the_dual_norm():
    X, y = repeated_rows()
    L = points()
    model = LeastSquaresSVC(
        "sigmoid", gamma=1.0, coef0=-1.0, alpha=0.5, penalty="dual", landmarks=L
    ).fit(X, y)
    K = pairwise_kernels(np.vstack([X, L]), L, metric="sigmoid", gamma=1.0, coef0=-1.0)
    basis = reference.at_landmarks(K[:N], K[N:], "dual", True)
    expected = basis.predictions(targets_of(LeastSquaresSVC, y), 0.5, np.arange(N))
    assert_close(model.decision_function(X), expected)


def test_moments_merge_and_part():
    rng = np.random.default_rng(0)
    Z, Y, w = (
        rng.normal(size=(20, 4)),
        rng.normal(size=(20, 2)),
        rng.uniform(0.5, 2.0, size=(20, 1)),
    )
    whole = Moments.of(Z, Y, w)
    parts = [
        Moments.of(Z[rows], Y[rows], w[rows]) for rows in (slice(0, 3), slice(3, 3), slice(3, 20))
    ]
    for name in ("weight", "sum_Z", "sum_Y", "ZZ", "ZY", "YY"):
        np.testing.assert_allclose(
            getattr(reduce(Moments.merge, parts), name), getattr(whole, name), atol=1e-12
        )
        np.testing.assert_allclose(
            getattr(whole.without(parts[2]), name), getattr(parts[0], name), atol=1e-12
        )


try:
    INSTANCES = [
        KernelFisherDiscriminant(landmarks=20, gamma="scale", random_state=0),
        LeastSquaresSVC(
            landmarks=15, gamma="scale", penalty="dual", landmark_method="cholesky", random_state=0
        ),
        KernelRidge(
            landmarks=15,
            gamma="scale",
            landmark_method="kmeans",
            shared_landmarks="drop",
            random_state=0,
        ),
        LeastSquaresSVC(landmarks=10, gamma="scale", landmark_method="greedy", random_state=0),
    ]

    def expected_failures(estimator) -> dict[str, str]:
        """Rows drawn at random: repeated rows are drawn otherwise than weighted ones."""
        drawn = estimator.landmark_method == "uniform"
        return {
            f"check_sample_weight_equivalence_on_{kind}_data": "random landmarks"
            for kind in ("dense", "sparse")
            if drawn
        }

    @pytest.mark.slow
    @with_checks(INSTANCES, expected_failures)
    def test_estimator_check(estimator, check):
        check(estimator)

except RuntimeError:  # scikit-learn 1.6 with SciPy 1.14 and later
    pass
