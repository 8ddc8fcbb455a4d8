"""The estimators against their definitions, literal refits, and what scikit-learn's users expect of
them.
"""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import reference
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.estimators import Verification
from problems import (
    CLASSIFIERS,
    ESTIMATORS,
    PENALTIES,
    every_classifier,
    every_estimator,
    every_penalty,
    gram,
    labelled_rows,
    numbered_rows,
    row_weights,
    rows_for,
    some_kernels,
    targets_of,
)
from reference import assert_close, held_out_of, output, refitted_held_out

WITH_INTERCEPT = (LeastSquaresSVC, KernelRidge)
KERNELS = some_kernels("linear", "rbf", "poly", "laplacian", "cosine", "sigmoid")
N = 26

two_and_three = pytest.mark.parametrize("n_classes", [2, 3])


def solver(penalty: str) -> reference.Fit:
    return reference.ridge_function_norm if penalty == "function" else reference.ridge_dual_norm


# ---- the models are what they are defined to be --------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("kernel", KERNELS)
@every_penalty
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False, "penalized"])
@pytest.mark.parametrize("estimator", WITH_INTERCEPT)
def test_least_squares_models_minimise_their_criterion(
    estimator, intercept, weighted, penalty, kernel
):
    X, y = rows_for(estimator, N)
    new, weights = (
        np.random.default_rng(5).normal(size=(7, 3)),
        row_weights(N) if weighted else None,
    )
    setting = {"penalty": penalty, "alpha": 0.7, "fit_intercept": intercept, **KERNELS[kernel]}
    model = estimator(kernel=kernel, **setting).fit(X, y, weights)
    K, K_new = (gram(kernel, rows, X) for rows in (X, new))
    expected = solver(penalty)(K, targets_of(estimator, y), 0.7, weights, intercept)
    got = output(model, new)
    assert_close(got.reshape(len(got), -1), expected.predict(K_new))
    assert_close(model.dual_coef_.reshape(N, -1), expected.alpha)
    assert_close(np.ravel(model.intercept_), expected.b)


@pytest.mark.pairwise
@pytest.mark.parametrize(
    ("kernel", "penalty"),
    [(k, p) for k in KERNELS for p in PENALTIES if (k, p) != ("sigmoid", "function")],
)
@two_and_three
@pytest.mark.parametrize("weighted", [False, True])
def test_fisher_discriminant_solves_its_eigenproblem(weighted, n_classes, kernel, penalty):
    """The sigmoid kernel is not positive definite and has no features to compare with; the dual
    norm needs none.
    """
    X, y = labelled_rows(32, n_classes)
    train, test = np.arange(25), np.arange(25, 32)
    weights = row_weights(25) if weighted else np.ones(25)
    setting = {"alpha": 0.7, "penalty": penalty, **KERNELS[kernel]}
    model = KernelFisherDiscriminant(kernel, **setting).fit(X[train], y[train], weights)
    K, every = gram(kernel, X, X), np.r_[weights, np.ones(7)]
    found = reference.kfda_brute(K, y, 0.7, train, test, every, penalty)
    scores, projection, eigenvalues = found
    scores = scores if n_classes > 2 else scores[:, 1] - scores[:, 0]
    assert_close(model.decision_function(X[test]), scores, 1e-7)
    signs = np.sign(np.sum(projection * model.transform(X[test]), axis=0))
    assert_close(model.transform(X[test]), signs * projection, 1e-7)
    assert_close(model.explained_variance_ratio_, eigenvalues / eigenvalues.sum(), 1e-7)


# ---- held-out outputs ----------------------------------------------------------------------------


@pytest.mark.pairwise
@every_penalty
@two_and_three
@pytest.mark.parametrize("kernel", ["linear", "rbf", "sigmoid"])
@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_leave_one_out_equals_refits(estimator, weighted, kernel, n_classes, penalty):
    X, y = rows_for(estimator, N, n_classes)
    weights = row_weights(N, zeros=5) if weighted else None
    setting = {"kernel": kernel, "alpha": 0.4, "penalty": penalty, **KERNELS[kernel]}
    model = estimator(**setting).fit(X, y, weights)
    expected = refitted_held_out(model, X, y, LeaveOneOut().split(X), weights)
    assert_close(held_out_of(model), expected, 1e-8)


SPLITTERS = {
    "k-fold": KFold(4, shuffle=True, random_state=0),
    "number": 3,
    "shuffle split": ShuffleSplit(3, test_size=0.3, random_state=1),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "time series": TimeSeriesSplit(2),
    "predefined": PredefinedSplit(np.where(np.arange(N) % 5 == 0, -1, np.arange(N) % 5)),
    "list": [(np.arange(8, N), np.arange(5)), (np.arange(20), np.arange(22, 24))],
    "masks": [(np.arange(N) % 3 != k, np.arange(N) % 3 == k) for k in range(3)],
}


def splits_of(cv, estimator, X, y) -> list[tuple[np.ndarray, np.ndarray]]:
    if isinstance(cv, int):
        cv = KFold(cv) if estimator is KernelRidge else StratifiedKFold(cv)
    found = cv if isinstance(cv, list) else cv.split(X, y)
    rows = np.arange(N)
    return [(rows[train], rows[test]) for train, test in found]


@pytest.mark.pairwise
@every_penalty
@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_held_out_by_cv_equals_refits(estimator, weighted, cv, penalty):
    X, y = rows_for(estimator, N)
    weights = row_weights(N, zeros=4) if weighted else None
    setting = {"gamma": 0.3, "alpha": 0.4, "penalty": penalty, "cv": SPLITTERS[cv]}
    model = estimator(**setting).fit(X, y, weights)
    splits = splits_of(SPLITTERS[cv], estimator, X, y)
    assert_close(held_out_of(model), refitted_held_out(model, X, y, splits, weights), 1e-8)
    tested = np.isin(np.arange(N), np.concatenate([test for _, test in splits]))
    np.testing.assert_array_equal(np.isnan(held_out_of(model)).reshape(N, -1).any(axis=1), ~tested)


@every_estimator
def test_groups_leave_together(estimator):
    X, y = rows_for(estimator, N)
    groups = np.array(list("abcdefgh"))[np.arange(N) % 8]
    for cv, splitter in ((None, LeaveOneGroupOut()), (GroupKFold(3), GroupKFold(3))):
        model = estimator(gamma=0.3, alpha=0.4, cv=cv).fit(X, y, groups=groups)
        splits = splitter.split(X, y, groups)
        assert_close(held_out_of(model), refitted_held_out(model, X, y, splits))


@every_estimator
def test_training_rows_named_twice_are_refused(estimator):
    X, y = rows_for(estimator, N)
    splits = [(np.r_[np.arange(20), np.arange(5)], np.arange(20, N))]
    with pytest.raises(ValueError, match="a training row twice in one split; use sample_weight"):
        estimator(gamma=0.3, alpha=0.4, cv=splits).fit(X, y)


@every_penalty
@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [None, KFold(5)])
def test_classes_that_vanish_with_a_row(penalty, cv, weighted, classifier):
    """Without its only member a class has score -inf, and a two-class decision is undefined.

    The others are those of a refit.
    """
    X, y = labelled_rows(N, 3)
    weights = row_weights(N) + 0.1 if weighted else np.ones(N)
    lonely = np.where(np.isin(np.arange(N), (4, 5)[: 1 if cv is None else 2]), 9, y)
    model = classifier(gamma=0.3, alpha=0.4, penalty=penalty, cv=cv).fit(X, lonely, weights)
    fold = [4] if cv is None else next(test for _, test in cv.split(X) if 4 in test)
    assert np.all(model.held_out_decision_[fold, 3] == -np.inf)
    rest = np.setdiff1d(np.arange(N), fold)
    refit = clone(model).set_params(cv=None).fit(X[rest], lonely[rest], weights[rest])
    assert_close(model.held_out_decision_[fold, :3], refit.decision_function(X[fold]))
    assert np.isfinite(np.delete(model.held_out_decision_, fold, axis=0)).all()
    assert 0 < model.temperature_ < np.inf


@every_penalty
@pytest.mark.parametrize("landmarks", [None, 5])
@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic", None])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_no_value_where_a_refit_is_refused(penalty, landmarks, calibration, classifier):
    """The only row of a class of two, and the rows of a fold that leaves one class of three."""
    X, y = labelled_rows(N, 3)
    options = {"gamma": 0.3, "alpha": 0.4, "penalty": penalty, "landmarks": landmarks}
    model = classifier(calibration=calibration, random_state=0, **options)
    model.fit(X, np.arange(N) == 4)
    np.testing.assert_array_equal(np.isnan(model.held_out_decision_), np.arange(N) == 4)
    few = np.where(np.arange(N) < 8, y, 2)
    model.set_params(cv=KFold(3)).fit(X, few)
    first = np.isin(np.arange(N), next(test for _, test in KFold(3).split(X)))
    assert np.isnan(model.held_out_decision_[first]).all()
    assert np.isfinite(model.held_out_decision_[~first]).all()


def test_too_few_rows_for_a_refit():
    X = labelled_rows(N, 2)[0]
    ridge = KernelRidge(gamma=0.3, alpha=0.4).fit(X[:2], X[:2, 0])
    assert np.isnan(ridge.held_out_prediction_).all()
    fisher = KernelFisherDiscriminant(gamma=0.3, alpha=0.4).fit(X[:3], [0, 1, 1])
    assert np.isnan(fisher.held_out_decision_).all()
    with pytest.raises(ValueError, match="greater than the number of classes"):
        clone(fisher).fit(X[:2], [0, 1])


# ---- choosing alpha ------------------------------------------------------------------------------


CANDIDATES = np.array([30.0, 0.003, 0.3, 3.0, 0.03, 0.3])


def test_gamma_by_the_scale_of_the_rows():
    X, y = labelled_rows(N)
    weights, times = row_weights(N, zeros=5), np.arange(N) % 4
    scale = LeastSquaresSVC(gamma="scale", alpha=1.0)
    assert scale.fit(X, y).gamma_ == pytest.approx(1 / (3 * X.var()))
    assert LeastSquaresSVC(gamma=None, alpha=1.0).fit(X, y).gamma_ == pytest.approx(1 / 3)
    assert scale.fit(X, y, np.full(N, 2.0)).gamma_ == pytest.approx(1 / (3 * X.var()))
    repeated = np.repeat(X, times, axis=0)
    assert scale.fit(X, y, times).gamma_ == pytest.approx(1 / (3 * repeated.var()))
    active = weights > 0
    alone = clone(scale).fit(X[active], y[active], weights[active]).gamma_
    assert scale.fit(X, y, weights).gamma_ == pytest.approx(alone)
    assert not hasattr(LeastSquaresSVC("linear").fit(X, y), "gamma_")


# ---- at, verify, diagnostics ---------------------------------------------------------------------


def public_attributes(model) -> dict[str, object]:
    return {n: v for n, v in vars(model).items() if n.endswith("_") and not n.startswith("_")}


@pytest.mark.pairwise
@every_penalty
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("cv", [None, 3])
@every_estimator
def test_at_equals_a_fresh_fit(estimator, cv, kernel, penalty):
    X, y = rows_for(estimator, N)
    weights, rows = row_weights(N, zeros=3), X @ X.T if kernel == "precomputed" else X
    setting = {"kernel": kernel, "gamma": 0.3, "penalty": penalty, "cv": cv}
    model = estimator(alpha=[0.1, 1.0], **setting).fit(rows, y, weights)
    before = pickle.dumps(model)
    other, fresh = model.at(2.5), estimator(alpha=2.5, **setting).fit(rows, y, weights)
    assert other.get_params()["alpha"] == 2.5
    assert public_attributes(other).keys() == public_attributes(fresh).keys()
    for name, value in public_attributes(fresh).items():
        if name not in ("cv_results_", "best_params_", "penalty_"):
            assert_close(getattr(other, name), value)
    for column in ("param_alpha", "mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(other.cv_results_[column], fresh.cv_results_[column])
    assert pickle.dumps(model) == before


@pytest.mark.pairwise
@every_penalty
@pytest.mark.parametrize(
    "cv",
    [
        None,
        3,
        *(SPLITTERS[name] for name in ("k-fold", "shuffle split", "repeated", "time series")),
    ],
    ids=str,
)
@every_estimator
def test_verify_agrees(estimator, cv, penalty):
    model = estimator(gamma=0.3, alpha=[0.1, 1.0], penalty=penalty, cv=cv)
    model.fit(*rows_for(estimator, N), row_weights(N, zeros=3))
    report = model.verify(n_refits=3)
    assert report.passed and report.n_refits >= 2 and report.route == "one"
    assert report.max_deviation < 1e-8 <= report.tolerance
    assert 0 < report.smallest_one_minus_leverage < 1 and 0 < report.conditioning < 1e-8
    assert f"{report.n_refits} literal refits agree" in str(report)


@pytest.mark.parametrize(
    "setting",
    [{"class_weight": "balanced"}, {"class_weight": {0: 3.0}}, {"fit_intercept": False}],
    ids=str,
)
def test_verify_agrees_with_class_weights_and_intercepts(setting):
    model = LeastSquaresSVC(gamma=0.3, alpha=0.5, **setting).fit(*labelled_rows(N))
    assert model.verify(n_refits=N).passed


@every_classifier
def test_verify_copes_with_classes_that_vanish(estimator):
    """Refits that lack a class cannot be compared column by column; the others still are."""
    X, y = labelled_rows(N)
    model = estimator(gamma=0.3, alpha=0.5).fit(X, np.where(np.arange(N) == 4, 9, y))
    report = model.verify(n_refits=N)
    assert report.passed and report.n_refits >= N - 1
    in_order = np.argsort(y, kind="stable")
    model.set_params(cv=KFold(3)).fit(X[in_order], y[in_order])
    assert model.verify(n_refits=3).passed


@pytest.mark.parametrize(("factor", "added"), [(1 + 1e-6, 0.0), (1.0, 1e-6), (np.nan, 0.0)])
@every_estimator
def test_verify_detects_a_deviation(estimator, factor, added):
    model = estimator(gamma=0.3, alpha=0.5).fit(*rows_for(estimator, N))
    name = "held_out_prediction_" if estimator is KernelRidge else "held_out_decision_"
    setattr(model, name, getattr(model, name) * factor + added)
    report = model.verify()
    assert not report.passed and "DISAGREE" in str(report)


def test_a_notebook_says_whether_the_refits_agree():
    passed = Verification(3, 1e-12, 1e-8, 1e-14, 0.5)
    failed = Verification(3, 1e-3, 1e-8, 1e-14, 0.5, route="<one>")
    assert "✓ Passed" in passed._repr_html_() and "1.0e-12" in passed._repr_html_()
    assert "✗ Failed" in failed._repr_html_() and "&lt;one&gt;" in failed._repr_html_()


def test_verify_of_a_precomputed_kernel_needs_it_again():
    X, y = labelled_rows(N)
    K = X @ X.T
    model = LeastSquaresSVC("precomputed", alpha=0.5).fit(K, y)
    assert model.verify(X=K, n_refits=N).passed
    with pytest.raises(ValueError, match="pass the training kernel matrix as X"):
        model.verify()
    with pytest.raises(ValueError, match=r"shape \(26, 26\), got \(26, 3\)"):
        model.verify(X=X)


@every_penalty
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False, "penalized"])
def test_leverage_is_the_diagonal_of_the_hat_matrix(intercept, weighted, penalty):
    X, y = labelled_rows(N)
    weights = row_weights(N) if weighted else None
    setting = {"gamma": 0.3, "alpha": 0.4, "penalty": penalty, "fit_intercept": intercept}
    H = KernelRidge(**setting).fit(X, np.eye(N), weights).predict(X)
    for estimator in ESTIMATORS if intercept is True else WITH_INTERCEPT:
        model = estimator(**setting).fit(X, y, weights)
        assert_close(model.leverage_, np.diag(H))
        assert model.effective_dof_ == pytest.approx(np.trace(H))


# ---- probabilities -------------------------------------------------------------------------------


# ---- classes and priors --------------------------------------------------------------------------


@every_penalty
@two_and_three
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weight_multiplies_sample_weight(weighted, n_classes, penalty):
    X, y = labelled_rows(N, n_classes)
    weights = row_weights(N, zeros=5) if weighted else np.ones(N)
    balanced = weights.sum() / (n_classes * np.bincount(y, weights=weights))
    model = LeastSquaresSVC(gamma=0.3, penalty=penalty, alpha=CANDIDATES)
    for given, factors in (({0: 3.0}, np.where(y == 0, 3.0, 1.0)), ("balanced", balanced[y])):
        by_class = clone(model).set_params(class_weight=given).fit(X, y, weights)
        by_row = clone(model).fit(X, y, weights * factors)
        assert by_class.alpha_ == by_row.alpha_
        assert_close(by_class.decision_function(X), by_row.decision_function(X))


def test_priors():
    X, y = labelled_rows(N)
    weights, priors = row_weights(N), np.array([0.2, 0.5, 0.3])
    model = KernelFisherDiscriminant(gamma=0.3, alpha=0.5).fit(X, y)
    assert_close(model.priors_, np.bincount(y) / N)
    weighted = clone(model).fit(X, y, weights)
    assert_close(weighted.priors_, np.bincount(y, weights=weights) / weights.sum())
    given = clone(model).set_params(priors=priors.tolist()).fit(X, y)
    assert_close(given.priors_, priors)
    moved = model.decision_function(X) + np.log(priors / model.priors_)
    assert_close(given.decision_function(X), moved)
    assert given.verify(n_refits=N).passed


def test_n_components_and_explained_variance():
    X, y = labelled_rows(60, 4)
    whole = KernelFisherDiscriminant(gamma=0.3, alpha=0.5).fit(X, y)
    two = KernelFisherDiscriminant(gamma=0.3, alpha=0.5, n_components=2).fit(X, y)
    Z = whole.transform(X)
    assert Z.shape == (60, 3) and whole.means_.shape == (4, 3)
    assert_close(two.transform(X), Z[:, :2])
    assert_close(two.decision_function(X), whole.decision_function(X))
    ratio = whole.explained_variance_ratio_
    assert ratio.shape == (3,) and ratio.sum() == pytest.approx(1.0) and np.all(np.diff(ratio) <= 0)
    centroids = np.array([Z[y == label].mean(axis=0) for label in range(4)])
    assert_close(whole.means_, centroids)
    between = np.bincount(y) @ centroids**2  # W diagonalises S_b
    assert_close(ratio, between / between.sum())
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)


# ---- weights and laws ----------------------------------------------------------------------------


@two_and_three
@every_classifier
def test_label_names_do_not_matter(estimator, n_classes):
    X, y = labelled_rows(N, n_classes)
    model = estimator(gamma=0.3, alpha=0.5).fit(X, y)
    names = np.array(["aardvark", "bee", "cat"])
    named = estimator(gamma=0.3, alpha=0.5).fit(X, names[y])
    np.testing.assert_array_equal(named.classes_, names[:n_classes])
    np.testing.assert_array_equal(named.predict(X), names[model.predict(X)])
    assert_close(named.decision_function(X), model.decision_function(X))
    reversed_order = estimator(gamma=0.3, alpha=0.5).fit(X, -y)  # classes sort the other way round
    if n_classes == 2:
        assert_close(reversed_order.decision_function(X), -model.decision_function(X))
    else:
        assert_close(reversed_order.decision_function(X), model.decision_function(X)[:, ::-1])
    assert_close(reversed_order.predict_proba(X), model.predict_proba(X)[:, ::-1])


@every_estimator
def test_limits_of_alpha(estimator):
    X, y = rows_for(estimator, N)
    interpolating = estimator(gamma=2.0, alpha=1e-7).fit(X, y)
    constant = estimator(gamma=2.0, alpha=1e10).fit(X, y)
    if estimator is KernelRidge:
        assert_close(interpolating.predict(X), y, 1e-4)
        assert_close(constant.predict(X), np.full(N, y.mean()), 1e-6)
        assert_close(constant.held_out_prediction_, (y.sum() - y) / (N - 1), 1e-6)
    else:
        assert interpolating.score(X, y) == 1.0
        assert np.ptp(constant.decision_function(X), axis=0).max() < 1e-4
        assert np.all(constant.predict(X) == np.argmax(np.bincount(y)))


@every_estimator
def test_an_offset_of_x_does_not_matter_to_the_linear_kernel(estimator):
    X, y = rows_for(estimator, N)
    wide = np.random.default_rng(0).normal(size=(N, 40))
    for rows, offset in ((X, 1e6), (wide, 1e3)):
        model, moved = (estimator(kernel="linear", alpha=0.5) for _ in range(2))
        model.fit(rows, y), moved.fit(rows + offset, y)
        assert_close(output(moved, rows + offset), output(model, rows), 1e-7)
        assert_close(held_out_of(moved), held_out_of(model), 1e-7)


def test_targets_of_any_size():
    X, y = numbered_rows(N)
    model, fixed = KernelRidge(gamma=0.3).fit(X, y), KernelRidge(gamma=0.3, alpha=0.5)
    for scale in (1e8, 1e-8):
        scaled = KernelRidge(gamma=0.3).fit(X, y * scale)
        assert scaled.alpha_ == model.alpha_
        assert_close(scaled.predict(X) / scale, model.predict(X))
    moved = clone(fixed).fit(X, y + 1e6).held_out_prediction_ - 1e6
    assert_close(moved, fixed.fit(X, y).held_out_prediction_, 1e-8)


# ---- forms of data -------------------------------------------------------------------------------


@pytest.mark.pairwise
@every_penalty
@pytest.mark.parametrize("kernel", KERNELS)
@every_estimator
def test_sparse_rows_equal_dense_rows(estimator, kernel, penalty):
    X, y = rows_for(estimator, N)
    X = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.4, 0.0, X)
    model = estimator(kernel=kernel, alpha=[0.3, 3.0], penalty=penalty, **KERNELS[kernel])
    weights = row_weights(N, zeros=5)
    dense = clone(model).fit(X, y, weights)
    for convert in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        sparse = clone(model).fit(convert(X), y, weights)
        assert sparse.alpha_ == dense.alpha_
        assert_close(held_out_of(sparse), held_out_of(dense))
        for one, rows in ((sparse, convert(X)), (dense, convert(X)), (sparse, X)):
            assert_close(output(one, rows), output(dense, X))
        if estimator is KernelFisherDiscriminant:
            assert_close(sparse.transform(convert(X)), dense.transform(X))
        if kernel == "linear":
            assert_close(np.asarray(sparse.coef_), dense.coef_)
            np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-8)
    assert sparse.at(1.0).verify().passed


@pytest.mark.pairwise
@every_penalty
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [None, 3])
@every_estimator
def test_precomputed_kernels_are_rectangular_in_every_method(estimator, cv, weighted, penalty):
    """Rows of weight zero are columns too, and ignored."""
    X, y = rows_for(estimator, N)
    new = np.random.default_rng(5).normal(size=(7, 3))
    weights = row_weights(N, zeros=5) if weighted else None
    used = N if weights is None else np.sum(weights > 0)
    setting = {"alpha": [0.3, 3.0], "penalty": penalty, "cv": cv}
    by_rows = estimator(kernel="rbf", gamma=0.3, **setting).fit(X, y, weights)
    K, K_new = (pairwise_kernels(rows, X, metric="rbf", gamma=0.3) for rows in (X, new))
    by_kernel = estimator(kernel="precomputed", **setting).fit(K, y, weights)
    assert by_kernel.n_features_in_ == N and len(by_kernel.dual_coef_) in (N, used)
    assert_close(held_out_of(by_kernel), held_out_of(by_rows))
    probable = "decision_function", "predict_proba", "predict_log_proba"
    for method in ("predict", *probable, "transform"):
        if hasattr(by_rows, method):
            assert_close(getattr(by_kernel, method)(K_new), getattr(by_rows, method)(new))


@every_estimator
def test_callable_kernels(estimator):
    def shifted_rbf(A, B, *, width, offset=0.0):
        assert A.ndim == B.ndim == 2
        return np.exp(-np.sum((A[:, None] - B) ** 2, axis=2) / width) + offset

    X, y = rows_for(estimator, N)
    model = estimator(kernel=shifted_rbf, kernel_params={"width": 4.0}, alpha=[0.3, 3.0]).fit(X, y)
    named = estimator(kernel="rbf", gamma=0.25, alpha=[0.3, 3.0])
    ignored = clone(named).set_params(degree="unused", kernel_params={"unused": 1}).fit(X, y)
    named.fit(X, y)
    assert_close(output(model, X[:5]), output(named, X[:5]))
    assert_close(held_out_of(model), held_out_of(named))
    assert model.verify().passed and not hasattr(model, "gamma_")
    assert_close(output(ignored, X), output(named, X))


@every_estimator
def test_polynomial_is_poly(estimator):
    X, y = rows_for(estimator, N)
    names = ("polynomial", "poly")
    one, other = (estimator(kernel=k, gamma=0.3, alpha=1.0).fit(X, y) for k in names)
    assert_close(output(one, X), output(other, X))


@pytest.mark.parametrize("kernel", KERNELS)
@every_estimator
def test_float32_is_as_good_as_float64(estimator, kernel):
    X, y = rows_for(estimator, N)
    single = X.astype(np.float32)
    y = y.astype(np.float32) if estimator is KernelRidge else y
    wide = y.astype(np.float64) if estimator is KernelRidge else y
    setting = {"kernel": kernel, "alpha": [1e-4, 1e-2], "penalty": "dual", **KERNELS[kernel]}
    model = estimator(**setting).fit(single, y)
    double = estimator(**setting).fit(single.astype(np.float64), wide)
    assert_close(held_out_of(model), held_out_of(double), 1e-13)
    assert_close(output(model, single), output(double, single.astype(np.float64)), 1e-13)
    if estimator is KernelFisherDiscriminant:
        assert model.transform(single).dtype == np.float32
        assert model.transform(X).dtype == np.float64


@every_estimator
def test_editing_x_after_fit_changes_nothing(estimator):
    for kernel in ("rbf", "linear", "precomputed"):
        X, y = rows_for(estimator, N)
        rows = np.ascontiguousarray(X @ X.T if kernel == "precomputed" else X)
        labels, untouched = y.copy(), rows.copy()
        model = estimator(kernel=kernel, gamma=0.3, alpha=0.5).fit(rows, labels)
        np.testing.assert_array_equal(rows, untouched)  # nor does fitting change X
        before = output(model, untouched)
        rows[:], labels[:] = 77.0, labels[0]
        assert_close(output(model, untouched), before, 1e-15)
        if kernel != "precomputed":
            assert model.verify().passed
            fresh = estimator(kernel=kernel, gamma=0.3, alpha=2.0).fit(untouched, y)
            assert_close(output(model.at(2.0), untouched), output(fresh, untouched))


def test_several_targets_are_fitted_together():
    X, y = numbered_rows(N)
    Y, fixed = np.column_stack([y, X[:, 0] ** 2, np.ones(N)]), KernelRidge(gamma=0.3, alpha=0.5)
    model = clone(fixed).fit(X, Y)
    for column in range(3):
        alone = clone(fixed).fit(X, Y[:, column])
        assert_close(model.predict(X)[:, column], alone.predict(X))
        assert_close(model.held_out_prediction_[:, column], alone.held_out_prediction_)
    assert model.dual_coef_.shape == (N, 3) and model.intercept_.shape == (3,)
    assert fixed.fit(X, Y[:, :1]).predict(X).shape == (N, 1)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))
    assert KernelRidge(kernel="linear", alpha=0.5).fit(X, Y).coef_.shape == (3, 3)


# ---- shapes and company --------------------------------------------------------------------------


@every_penalty
@two_and_three
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_attributes_have_their_documented_shapes(kernel, n_classes, penalty):
    X, y = labelled_rows(N, n_classes)
    per_class = () if n_classes == 2 else (n_classes,)
    for estimator in CLASSIFIERS:
        model = estimator(kernel=kernel, gamma="scale", penalty=penalty).fit(X, y)
        of_rows = model.dual_coef_, model.held_out_decision_, model.decision_function(X)
        assert all(values.shape == (N, *per_class) for values in of_rows)
        assert np.shape(model.intercept_) == per_class and model.leverage_.shape == (N,)
        names = "alpha_", "effective_dof_", "temperature_", "best_score_"
        assert all(isinstance(getattr(model, name), float) for name in names)
        assert model.best_score_ < 0 and model.penalty_ == penalty
        assert model.n_features_in_ == 3 and model.classes_.shape == (n_classes,)
        if kernel == "linear":
            assert model.coef_.shape == ((1, 3) if n_classes == 2 else (n_classes, 3))
        else:
            assert not hasattr(model, "coef_")
            K = pairwise_kernels(X, model.X_fit_, metric="rbf", gamma=model.gamma_)
            assert_close(K @ model.dual_coef_ + model.intercept_, output(model, X))
    fisher = KernelFisherDiscriminant(kernel, gamma="scale", penalty=penalty).fit(X, y)
    assert fisher.scalings_.shape == (3 if kernel == "linear" else N, n_classes - 1)
    assert fisher.means_.shape == (n_classes, n_classes - 1)
    assert fisher.priors_.shape == (n_classes,)
    rows = X if kernel == "linear" else pairwise_kernels(X, metric="rbf", gamma=fisher.gamma_)
    offset, projected = rows @ fisher.scalings_ - fisher.transform(X), fisher.transform(X)
    assert np.ptp(offset, axis=0).max() < 1e-8 * np.abs(projected).max()


@every_estimator
def test_saved_models_predict_and_say_what_they_lack(estimator):
    X, y = rows_for(estimator, N)
    model, file = estimator(gamma=0.3, alpha=[0.3, 3.0]).fit(X, y), io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    lacks = r"(at|verify)\(\) needs the decomposition.*fit the model again"
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        np.testing.assert_array_equal(output(copy, X), output(model, X))
        np.testing.assert_array_equal(held_out_of(copy), held_out_of(model))
        with pytest.raises(ValueError, match=lacks):
            copy.at(1.0)
        with pytest.raises(ValueError, match=lacks):
            copy.verify()
    large = estimator(gamma=0.3, alpha=0.5).fit(*rows_for(estimator, 200))
    assert len(pickle.dumps(large)) < 8 * 200 * 200 / 4


def test_transform_goes_to_pandas():
    X, y = labelled_rows(N)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N) + 100)
    plain = KernelFisherDiscriminant(gamma=0.3, alpha=0.5)
    model = clone(plain).set_output(transform="pandas").fit(frame, y)
    projected = model.transform(frame)
    expected = ["kernelfisherdiscriminant0", "kernelfisherdiscriminant1"]
    assert list(projected.columns) == list(model.get_feature_names_out()) == expected
    assert list(projected.index) == list(frame.index)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert_close(projected.to_numpy(), plain.fit(X, y).transform(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
