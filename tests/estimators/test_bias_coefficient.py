"""A bias that is penalised like every dual coefficient (Saadi et al. 2007, section 3.4), against
normal equations solved anew.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    cross_val_predict,
    cross_val_score,
    permutation_test_score,
)
from fitonce.datasets import make_torus
from reference import refit_held_out, ridge_dual_norm

BIAS = {"penalty": "dual", "fit_intercept": "coefficient"}
GAMMA = 0.4


def rows(n: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unbalanced classes with two equal rows, and their kernel matrix."""
    X, y = make_torus(n, random_state=seed)
    X[3] = X[7]
    return X, y, rbf_kernel(X, gamma=GAMMA)


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(0.2, 3.0, size=n)


def literal(
    K: np.ndarray, y: np.ndarray, mu: float, test: np.ndarray, w: np.ndarray | None = None
) -> np.ndarray:
    train = np.setdiff1d(np.arange(len(y)), test)
    Y = y[:, None].astype(float)
    return refit_held_out(ridge_dual_norm, K, Y, mu, train, test, w, "coefficient")[:, 0]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("mu", [1e-6, 0.3, 1e5])
def test_the_model_and_leave_one_out(mu, weighted):
    X, y, K = rows()
    w = weights(len(y)) if weighted else None
    model = LeastSquaresSVC(gamma=GAMMA, alpha=mu, calibration=None, **BIAS)
    model.fit(X, y, w)
    expected = ridge_dual_norm(K, y[:, None], mu, w, "coefficient")
    scale = np.abs(expected.alpha).max()
    np.testing.assert_allclose(model.dual_coef_.ravel(), expected.alpha[:, 0], atol=1e-6 * scale)
    np.testing.assert_allclose(model.intercept_, expected.b[0], atol=1e-8)
    left_out = [literal(K, y, mu, np.array([i]), w)[0] for i in range(len(y))]
    size = np.abs(left_out).max()
    np.testing.assert_allclose(model.held_out_decision_, left_out, atol=1e-7 * size)
    assert model.verify(n_refits=3).passed


def test_it_is_another_model_than_the_sum_of_coefficients():
    X, y, _ = rows()
    settings = {"gamma": GAMMA, "alpha": 1.0, "penalty": "dual", "calibration": None}
    values = [
        LeastSquaresSVC(fit_intercept=bias, **settings).fit(X, y).decision_function(X)
        for bias in ("coefficient", "penalized", True, False)
    ]
    assert all(np.abs(values[0] - other).max() > 1e-3 for other in values[1:])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_folds_are_refits(kernel):
    X, y, K = rows()
    K = X @ X.T if kernel == "linear" else K
    given = K if kernel == "precomputed" else X
    model = KernelRidge(kernel=kernel, gamma=GAMMA, alpha=0.2, **BIAS)
    cv = model_selection.KFold(4, shuffle=True, random_state=1)
    got = cross_val_predict(model, given, y.astype(float), cv=cv)
    for _, test in cv.split(X):
        np.testing.assert_allclose(got[test], literal(K, y, 0.2, test), atol=1e-9)
    whole = ridge_dual_norm(K, y[:, None], 0.2, None, "coefficient").predict(K)[:, 0]
    np.testing.assert_allclose(model.fit(given, y).predict(given), whole)


def test_tuning_scores_are_those_of_refits():
    X, y, K = rows()
    alphas, cv = np.array([1e-3, 0.1, 10.0]), model_selection.KFold(3)
    model = KernelRidge(gamma=GAMMA, alpha=alphas, criterion="squared_error", cv=cv, **BIAS)
    model.fit(X, y.astype(float))
    folds = [test for _, test in cv.split(X)]  # of equal size
    errors = [[(y[test] - literal(K, y, mu, test)) ** 2 for test in folds] for mu in alphas]
    losses = np.mean(errors, axis=(1, 2))
    assert model.alpha_ == alphas[np.argmin(losses)]
    order = np.argsort(model.cv_results_["param_alpha"].astype(float))
    np.testing.assert_allclose(-model.cv_results_["mean_test_score"][order], losses, rtol=1e-8)


@pytest.mark.parametrize("estimator", [LeastSquaresSVC, KernelFisherDiscriminant])
def test_several_classes_and_permutations_are_refits(estimator):
    X, y = (part[::4] for part in load_iris(return_X_y=True))
    model = estimator(gamma=0.3, alpha=0.5, calibration=None, **BIAS)
    cv = model_selection.StratifiedKFold(3)
    expected = model_selection.cross_val_score(model, X, y, cv=cv)
    np.testing.assert_allclose(cross_val_score(model, X, y, cv=cv), expected)
    given = {"cv": cv, "n_permutations": 8, "random_state": 0}
    expected = model_selection.permutation_test_score(model, X, y, **given)
    got = permutation_test_score(model, X, y, permute="resplit", **given)
    np.testing.assert_allclose(got[1], expected[1], atol=1e-12)
    assert got[2] == expected[2]


@pytest.mark.parametrize("readout", ["lda", "centroid"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_discriminant_is_that_of_the_columns_and_a_constant(classes, readout):
    """Its features are the columns of [K 1]: the function norm without a bias on their products."""
    X, y = load_iris(return_X_y=True)
    chosen = np.r_[0:9, 50:68, 100:115]  # unbalanced
    X, y = X[chosen] - X.mean(axis=0), y[chosen]
    X, y = (X[y > 0], y[y > 0]) if classes == 2 else (X, y)
    K = rbf_kernel(X, gamma=0.3)
    given = {"alpha": 0.2, "readout": readout, "calibration": None}
    model = KernelFisherDiscriminant("precomputed", **given, **BIAS)
    same = KernelFisherDiscriminant("precomputed", fit_intercept=False, **given)
    cv = model_selection.StratifiedKFold(3)
    got = cross_val_predict(model, K, y, cv=cv, method="decision_function")
    left_out = model.fit(K, y).held_out_decision_
    splits = [*cv.split(X, y), *model_selection.LeaveOneOut().split(X)]
    for number, (train, test) in enumerate(splits):
        Z, Z_test = K[np.ix_(train, train)], K[np.ix_(test, train)]
        expected = same.fit(Z @ Z.T + 1.0, y[train]).decision_function(Z_test @ Z.T + 1.0)
        found = got if number < 3 else left_out
        np.testing.assert_allclose(found[test], expected, atol=1e-7 * np.abs(expected).max())


def test_torch_gives_the_same():
    torch = pytest.importorskip("torch")
    X, y, _ = rows()
    model = KernelRidge(gamma=GAMMA, alpha=0.3, **BIAS)
    expected = model.fit(X, y.astype(float)).held_out_prediction_
    got = model.fit(torch.asarray(X), torch.asarray(y.astype(float))).held_out_prediction_
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("estimator", [LeastSquaresSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"penalty": "function"}, 'needs penalty="dual".*use fit_intercept="penalized"'),
        ({"penalty": "tune"}, 'needs penalty="dual"'),
        ({"landmarks": 5}, "needs landmarks=None"),
    ],
)
def test_what_is_not_offered(settings, match, estimator):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=match):
        estimator(**{**BIAS, **settings}).fit(X, y)


def test_no_confounds():
    X, y, _ = rows()
    with pytest.raises(ValueError, match="needs fit_intercept=True"):
        KernelRidge(alpha=1.0, gamma=1.0, **BIAS).fit(X, y.astype(float), confounds=X[:, :1])
