"""Kernels close to one, features far from zero, rows of great weight: no digits are given away."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, NumericalWarning
from fitonce.kernels import Kernel

FOLDS = StratifiedKFold(4)


def deviation(model, X, y, **arguments) -> float:
    """Of decisions held out in closed form from those of refits."""
    ours, theirs = (
        function(model, X, y, cv=FOLDS, method="decision_function", **arguments)
        for function in (fitonce.cross_val_predict, sklearn.model_selection.cross_val_predict)
    )
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)


def test_wine_as_it_comes_agrees_with_refits():
    """gamma and alpha are about 1e-11 here: all kernel values are one to nine digits."""
    X, y = load_wine(return_X_y=True)
    model = KernelFisherDiscriminant(gamma=2.9e-11, alpha=2.9e-11).fit(X, y)
    assert model.verify(3).max_deviation < 1e-6
    assert deviation(KernelFisherDiscriminant(gamma=2.9e-11, alpha=2.9e-11), X, y) < 1e-6


@pytest.mark.parametrize("offset", [1e4, 1e7])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential", "matern32"])
def test_distances_do_not_mind_where_the_rows_lie(kernel, offset, data):
    X, y = data
    X = np.round(X * 2**20) / 2**20  # the same rows, moved without rounding
    model = LeastSquaresSVC(kernel, gamma=0.1, alpha=0.1)
    near = model.fit(X, y).decision_function(X)
    for moved in (X + offset, sp.csr_matrix(X + offset)):
        far = model.fit(moved, y).decision_function(moved)
        np.testing.assert_allclose(far, near, atol=1e-7)
        assert deviation(model, moved, y) < 1e-10


@pytest.mark.parametrize("offset", [1e4, 1e7])
def test_sparse_linear_features_far_from_zero(offset, data):
    rng = np.random.default_rng(1)
    y = data[1]
    X = rng.normal(size=(60, 90))  # more features than rows: through the kernel matrix
    model = LeastSquaresSVC("linear", alpha=1.0)
    near = model.fit(X, y).decision_function(X)
    moved = sp.csr_matrix(X + offset)
    np.testing.assert_allclose(model.fit(moved, y).decision_function(moved), near, atol=1e-6)
    assert deviation(model, moved, y) < 1e-7


def test_precomputed_kernel_with_an_offset(data):
    X, y = data
    K = (X + 1e4) @ (X + 1e4).T
    model = LeastSquaresSVC("precomputed", alpha=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        assert deviation(model, K, y) < 1e-6  # 3e-6 to 3e-5 where the bias was projected off alone


def test_precomputed_kernel_that_has_lost_its_digits_is_warned_of(data):
    X, y = data
    with pytest.warns(NumericalWarning, match="may have a relative error of"):
        LeastSquaresSVC("precomputed", alpha=1.0).fit((X + 1e7) @ (X + 1e7).T, y)


def test_conditioning_is_that_of_the_matrix_as_it_came(data):
    X, y = data
    K = Kernel("linear")(X, X)
    plain, moved = (
        LeastSquaresSVC("precomputed", alpha=1.0).fit(A, y).verify(2, X=A).conditioning
        for A in (K, K + 1e6)
    )
    assert plain < 1e-13
    assert moved > 1e6 * np.finfo(float).eps / 2


def test_a_row_of_great_weight(data):
    X, y = data
    weights = np.ones(len(y))
    weights[3] = 1e8
    model = LeastSquaresSVC("rbf", gamma=0.1, alpha=1.0)
    assert deviation(model, X, y, params={"sample_weight": weights}) < 1e-8


def test_a_split_without_landmarks_is_refused_in_words(data):
    X, y = data
    model = LeastSquaresSVC(
        "rbf", gamma=0.5, alpha=1.0, landmarks=1, shared_landmarks="drop", random_state=0
    )
    with pytest.raises(ValueError, match="leaves no landmarks for its model"):
        fitonce.cross_val_predict(model, X, y, cv=FOLDS)
    with pytest.raises(ValueError, match="leaves no landmarks for its model"):
        model.fit(X, y)


@pytest.mark.parametrize("share", [1e-7, 5e-9])
def test_small_dual_coefficients_are_kept(share):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(150, 1)), rng.normal(size=(40, 1))
    y = rng.normal(size=150)
    K = rbf_kernel(X, X, 2.0)
    largest = np.linalg.eigvalsh(K)[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidge(share * largest, gamma=2.0, fit_intercept=False).fit(X, y)
    expected = rbf_kernel(new, X, 2.0) @ np.linalg.solve(K + share * largest * np.eye(150), y)
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-6 * np.abs(expected).max())


FEATURES = {
    "heavy tails": lambda rng, n: rng.standard_t(1.2, size=(n, 3)),
    "duplicates": lambda rng, n: rng.normal(size=(n, 4))[rng.integers(n // 2, size=n)],
    "uint8": lambda rng, n: rng.integers(0, 256, size=(n, 3)).astype(np.uint8),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("model", [KernelFisherDiscriminant(), LeastSquaresSVC(), KernelRidge()])
def test_verify_agrees(model, kind, seed):
    rng = np.random.default_rng(seed)
    X = FEATURES[kind](rng, 50)
    first = X[:, 0].astype(float)
    target = first + rng.normal(size=50)
    if not isinstance(model, KernelRidge):
        target = target > np.median(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of these are told to be doubtful
        check = model.fit(X, target).verify(n_refits=3, random_state=0)
    assert check.passed, check
    assert check.max_deviation < 0.1 * check.tolerance
