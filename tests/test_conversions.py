"""Other projects' settings.

Each conversion against a literal computation in the other project's formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import sklearn.kernel_ridge
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_kernels

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, conversions


def overlapping_classes(
    n: int = 40, classes: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % (classes + 1) % classes)
    return rng.normal(size=(n, 4)) + np.eye(4)[y], y


def gaussian(X: np.ndarray, Z: np.ndarray, divisor: float) -> np.ndarray:
    """exp(-‖x-z‖²/divisor), entry by entry."""
    return np.array([[np.exp(-np.sum((x - z) ** 2) / divisor) for z in Z] for x in X])


def parallel(a: np.ndarray, b: np.ndarray) -> float:
    """1 where the directions agree, sign included."""
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


FRESH = overlapping_classes(12, seed=1)[0]


def test_widths() -> None:
    X, _ = overlapping_classes()
    gamma = conversions.gamma_from_width(1.7)
    np.testing.assert_allclose(
        pairwise_kernels(X, FRESH, metric="rbf", gamma=gamma),
        gaussian(X, FRESH, 2 * 1.7**2),
        rtol=1e-12,
    )
    assert conversions.width_from_gamma(gamma) == pytest.approx(1.7, rel=1e-14)


@pytest.mark.parametrize("mu", [0.05, 3.0])
def test_papers_bordered_system(mu: float) -> None:
    """Cawley & Talbot, Saadi et al.: targets ℓ/ℓ₁ and -ℓ/ℓ₂ in
    [K'K + μI, K'1; 1'K, ℓ] [α; b] = [K'y; 1'y].
    """
    X, y = overlapping_classes()
    n, K, K_fresh = len(y), gaussian(X, X, 2 * 1.3**2), gaussian(FRESH, X, 2 * 1.3**2)
    target = np.where(y == 1, n / np.sum(y == 1), -n / np.sum(y == 0))
    one = np.ones((n, 1))
    system = np.block([[K.T @ K + mu * np.eye(n), K.T @ one], [one.T @ K, np.array([[float(n)]])]])
    solution = np.linalg.solve(system, np.append(K.T @ target, target.sum()))
    ridge = KernelRidge(**conversions.from_papers(mu, sigma=1.3)).fit(X, target)
    np.testing.assert_allclose(
        ridge.predict(FRESH), K_fresh @ solution[:n] + solution[n], rtol=1e-7
    )
    np.testing.assert_allclose(ridge.dual_coef_, solution[:n], rtol=1e-6, atol=1e-9)
    discriminant = KernelFisherDiscriminant(**conversions.from_papers(mu, sigma=1.3)).fit(X, y)
    assert parallel(discriminant.dual_coef_, solution[:n]) == pytest.approx(1.0, abs=1e-10)
    assert conversions.from_papers(mu) == {"alpha": mu, "penalty": "dual"}


@pytest.mark.parametrize("gam", [0.3, 20.0])
def test_ls_svm_bordered_system(gam: float) -> None:
    """LS-SVMlab: [0, y'; y, Ω + I/gam] [b; a] = [0; 1], Ω_ij = y_i y_j exp(-‖x_i-x_j‖²/sig2).

    f(x) = Σ a_j y_j k(x, x_j) + b.
    """
    X, labels = overlapping_classes()
    y, sig2 = 2.0 * labels - 1.0, 2.5
    omega = np.outer(y, y) * gaussian(X, X, sig2)
    system = np.block([[np.zeros((1, 1)), y[None]], [y[:, None], omega + np.eye(len(y)) / gam]])
    b, *a = np.linalg.solve(system, np.append(0.0, np.ones(len(y))))
    model = LeastSquaresSVC(**conversions.from_lssvmlab(gam, sig2)).fit(X, labels)
    np.testing.assert_allclose(
        model.decision_function(FRESH),
        gaussian(FRESH, X, sig2) @ (np.array(a) * y) + b,
        rtol=1e-8,
        atol=1e-10,
    )
    assert conversions.to_lssvmlab(model.alpha_, model.gamma_) == pytest.approx(
        {"gam": gam, "sig2": sig2}
    )
    assert set(conversions.to_lssvmlab(2.0)) == {"gam"}
    assert set(conversions.from_lssvmlab(gam)) == {"alpha", "penalty"}


def test_scikit_learns_kernel_ridge_and_ridge() -> None:
    X, y = overlapping_classes()
    t = np.sin(X[:, 0]) + y
    theirs = sklearn.kernel_ridge.KernelRidge(alpha=0.7, kernel="laplacian", gamma=0.2).fit(X, t)
    ours = KernelRidge(
        kernel="laplacian", gamma=0.2, **conversions.from_sklearn_kernel_ridge(0.7)
    ).fit(X, t)
    np.testing.assert_allclose(ours.predict(FRESH), theirs.predict(FRESH), rtol=1e-9)
    linear = KernelRidge(kernel="linear", alpha=0.7).fit(X, t)  # the table's line on Ridge
    np.testing.assert_allclose(
        linear.predict(FRESH), Ridge(alpha=0.7).fit(X, t).predict(FRESH), rtol=1e-9
    )


@pytest.mark.parametrize("shrinkage", [0.05, 0.6])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["eigen", "lsqr"])
def test_scikit_learns_shrinkage(shrinkage: float, classes: int, solver: str) -> None:
    """Weights of the LDA rule.

    Scikit-learn divides S_w by n, we by n - c, and its shrunk S_w is (1-s)(S_w + alpha I)/n.
    """
    X, y = overlapping_classes(60, classes)
    X = X * [1.0, 2.0, 0.3, 5.0]
    theirs = LinearDiscriminantAnalysis(solver=solver, shrinkage=shrinkage).fit(X, y)
    settings = conversions.from_sklearn_lda(shrinkage, X, y)
    within = sum(
        (X[y == j] - X[y == j].mean(0)).T @ (X[y == j] - X[y == j].mean(0)) for j in np.unique(y)
    )
    assert settings["alpha"] == pytest.approx(
        shrinkage / (1 - shrinkage) * np.trace(within) / 4, rel=1e-10
    )
    ours = KernelFisherDiscriminant(calibration=None, **settings).fit(X, y)
    got, expected = (c if classes == 2 else c[1:] - c[:1] for c in (ours.coef_, theirs.coef_))
    np.testing.assert_allclose(got, expected * (1 - shrinkage) * (60 - classes) / 60, rtol=1e-8)


def mvpa_light(K: np.ndarray, y: np.ndarray, reg: str, lambda_: float) -> np.ndarray:
    """train_kernel_fda.

    Eigenvectors of (regularised N)⁻¹ M in the dual, M and N between- and within-class dual scatter.
    """
    n, classes = len(y), np.unique(y)
    N, M, mean = np.zeros((n, n)), np.zeros((n, n)), K.mean(axis=1)
    for label in classes:
        K_j = K[:, y == label]
        l_j = K_j.shape[1]
        N += K_j @ (np.eye(l_j) - np.ones((l_j, l_j)) / l_j) @ K_j.T
        M += l_j * np.outer(K_j.mean(axis=1) - mean, K_j.mean(axis=1) - mean)
    N = (
        N + lambda_ * np.eye(n)
        if reg == "ridge"
        else (1 - lambda_) * N + lambda_ * np.trace(N) / n * np.eye(n)
    )
    values, vectors = scipy.linalg.eigh(M, N)
    return vectors[:, np.argsort(-values)[: len(classes) - 1]]


@pytest.mark.parametrize(
    ("reg", "lambda_"), [("ridge", 0.4), ("ridge", 5.0), ("shrink", 0.01), ("shrink", 0.7)]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_mvpa_light(reg: str, lambda_: float, classes: int) -> None:
    X, y = overlapping_classes(45, classes)
    K, K_fresh = (pairwise_kernels(Z, X, metric="rbf", gamma=0.3) for Z in (X, FRESH))
    theirs = mvpa_light(K, y, reg, lambda_)
    settings = conversions.from_mvpa_light(lambda_, K, y, reg=reg)
    ours = KernelFisherDiscriminant(kernel="precomputed", **settings).fit(K, y)
    for mine, their in zip(ours.transform(K_fresh).T, (K_fresh @ theirs).T, strict=True):
        assert abs(np.corrcoef(mine, their)[0, 1]) == pytest.approx(1.0, abs=1e-8)
    if classes == 2:
        assert abs(parallel(ours.scalings_[:, 0], theirs[:, 0])) == pytest.approx(1.0, abs=1e-8)


def test_within_class_scatter_trace() -> None:
    X, y = overlapping_classes(classes=3)
    expected = sum(np.sum((X[y == j] - X[y == j].mean(axis=0)) ** 2) for j in range(3))
    assert conversions.within_class_scatter_trace(X @ X.T, y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (conversions.gamma_from_width, (0.0,)),
        (conversions.width_from_gamma, (-1.0,)),
        (conversions.from_papers, (np.nan,)),
        (conversions.from_papers, (1.0, -2.0)),
        (conversions.from_lssvmlab, (np.inf,)),
        (conversions.to_lssvmlab, (0.0,)),
        (conversions.from_sklearn_kernel_ridge, (0.0,)),
        (conversions.from_sklearn_lda, (1.0, *overlapping_classes())),
        (conversions.from_mvpa_light, (0.0, np.eye(4), [0, 0, 1, 1])),
        (conversions.from_mvpa_light, (-1.0, np.eye(4), [0, 0, 1, 1], "ridge")),
        (conversions.from_mvpa_light, (0.5, np.eye(4), [0, 0, 1, 1], "lasso")),
    ],
)
def test_settings_that_mean_nothing_are_refused(function: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="must"):
        function(*arguments)
