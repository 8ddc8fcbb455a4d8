"""The block band form of symmetric matrices, and the block reflections that lead to it, in every
namespace.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from matrices import every_namespace, same, symmetric

from fitonce.core import band as module
from fitonce.core.arrays import NotPositiveDefiniteError
from fitonce.core.band import (
    band_of,
    block_reflection,
    householder,
    largest_eigenvalue,
    product_factor,
    reflection_of_products,
)
from fitonce.core.spectrum import orthonormal
from problems import KERNELS, features, kernel, no_columns, rbf

SIZES = [
    (1, 4),
    (3, 4),
    (4, 4),
    (8, 4),
    (9, 4),
    (12, 4),
    (13, 4),
    (25, 4),
    (25, 7),
    (24, 1),
    (41, 2),
]  # rows, width of a block


@pytest.fixture(autouse=True)
def products_for_short_panels(monkeypatch):
    """As on a GPU with many rows: panels are reduced by products where these are accurate."""
    monkeypatch.setattr(module, "PRODUCTS_FROM", 1)


@pytest.mark.pairwise
@every_namespace
@pytest.mark.parametrize(
    "kind", ["full", "zero", "diagonal", "constant", "apart", "rank one", "graded"]
)
@pytest.mark.parametrize(("n", "width"), SIZES)
def test_band_form_is_an_orthogonal_decomposition(n, width, kind, xp):
    A = symmetric(kind, n)
    overwritten = xp.asarray(A.copy())
    band = band_of(overwritten, width)
    assert band.Q is overwritten
    Q, T = np.asarray(band.Q), np.asarray(band.dense())
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(Q @ T @ Q.T, A, atol=1e-13 * max(np.abs(A).max(), 1.0) * n)
    blocks = np.arange(n) // width
    assert not T[np.abs(blocks[:, None] - blocks) > 1].any()
    assert [block.shape[0] for block in band.diagonal] == np.bincount(blocks).tolist()


@every_namespace
@pytest.mark.parametrize(("n", "width"), SIZES)
def test_factors_solve_every_shift_at_once(n, width, xp):
    A = symmetric("full", n) + 8 * np.sqrt(n) * np.eye(n)
    band = band_of(xp.asarray(A.copy()), width)
    mus = np.array([0.0, 0.3, 40.0])
    Z = np.random.default_rng(0).normal(size=(n, 3))
    factor = band.factor(xp.asarray(mus))
    T = np.asarray(band.dense())
    expected = np.stack([np.linalg.solve(T + mu * np.eye(n), Z) for mu in mus])
    same(factor.solve(xp.asarray(Z)), expected, 1e-12)
    same(factor.at([2]).solve(xp.asarray(Z)), expected[[2]], 1e-12)
    same(factor.at([2, 0]).solve(xp.asarray(Z)), expected[[2, 0]], 1e-12)
    same(
        factor.solve(xp.asarray(expected)),
        np.stack(
            [np.linalg.solve(T + mu * np.eye(n), W) for mu, W in zip(mus, expected, strict=True)]
        ),
        1e-12,
    )
    X = np.asarray(factor.forward(xp.asarray(Z)))
    same(np.swapaxes(X, 1, 2) @ X, Z.T @ expected, 1e-12)


@every_namespace
def test_matrix_that_is_not_definite_has_no_factors(xp):
    A = np.diag(np.concatenate([np.ones(11), [-0.5]]))
    band = band_of(xp.asarray(A), 4)
    band.factor(xp.asarray(np.array([0.6])))
    for mus in ([0.4], [0.6, 0.4]):
        with pytest.raises(NotPositiveDefiniteError):
            band.factor(xp.asarray(np.array(mus)))


def test_reduction_needs_no_second_matrix():
    n = 1500
    A = np.random.default_rng(0).normal(size=(n, n))
    A += A.T
    tracemalloc.start()
    try:
        band_of(A, 32)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * A.nbytes


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("kind", [*KERNELS, "apart", "identity"])
def test_largest_eigenvalue(kind, columns):
    n, rng = 700, np.random.default_rng(2)
    X = features(kind, n, rng)
    if kind == "apart":  # the larger part is not the first
        K = np.zeros((n, n))
        K[:100, :100], K[100:, 100:] = rbf(X[:100]), 5.0 * rbf(X[100:])
    else:
        K = np.eye(n) if kind == "identity" else kernel(kind, X)
    Q0 = (
        orthonormal(np.hstack([np.ones((n, 1)), rng.normal(size=(n, columns - 1))]))
        if columns
        else no_columns(n)
    )
    project = np.eye(n) - Q0 @ Q0.T
    expected = np.abs(np.linalg.eigvalsh(project @ K @ project)).max()
    assert largest_eigenvalue(
        project @ K @ project + 3.0 * expected * Q0 @ Q0.T, Q0
    ) == pytest.approx(expected, rel=1e-7)


# ---- block reflections ---------------------------------------------------------------------------


def reduces(P: np.ndarray, V, S, R) -> None:
    m, b = P.shape
    F = np.eye(m) - np.asarray(V) @ np.asarray(S) @ np.asarray(V).T
    np.testing.assert_allclose(F.T @ F, np.eye(m), atol=1e-13)
    np.testing.assert_allclose(F[:, :b] @ np.asarray(R), P, rtol=0, atol=1e-13 * np.abs(P).max())


@every_namespace
@pytest.mark.parametrize("reduction", [householder, block_reflection])
@pytest.mark.parametrize("kind", ["full", "zero", "apart", "rank one", "graded"])
def test_panel_is_reduced_by_an_orthogonal_matrix(kind, reduction, xp):
    P = symmetric(kind, 17)[:, :5]
    P[:, 3] = P[:, 1]
    reduces(P, *reduction(xp.asarray(P.copy())))


@every_namespace
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_panel_of_columns_apart_is_reduced_by_products(scale, xp):
    P = scale * np.random.default_rng(0).normal(size=(400, 6))
    reduces(P, *reflection_of_products(xp.asarray(P.copy())))


def nearly_dependent(gap: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    P = rng.normal(size=(300, 6))
    P[:, 5] = P[:, :5] @ rng.normal(size=5) + gap * rng.normal(size=300)
    return P


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_columns_nearly_dependent_are_reduced_all_the_same(gap):
    reduces(nearly_dependent(gap), *reflection_of_products(nearly_dependent(gap)))


def test_no_products_where_they_are_inaccurate():
    for P in (
        np.zeros((30, 4)),
        nearly_dependent(1e-9),
        -np.eye(30, 4),  # I + Q₁ is singular where the panel is already reduced, up to its sign
        np.eye(30, 4) @ np.diag([1.0, 1.0, -1.0, 1.0]),
    ):
        assert reflection_of_products(P) is None
        reduces(P, *block_reflection(P))


@every_namespace
def test_reflections_multiply(xp):
    rng = np.random.default_rng(2)
    panels = [rng.normal(size=(40 - 6 * k, 6)) for k in range(3)]
    made = [
        (householder if k == 1 else block_reflection)(xp.asarray(P)) for k, P in enumerate(panels)
    ]
    V = np.zeros((40, 18))
    expected = np.eye(40)
    for k, (v, s, _) in enumerate(made):
        V[6 * k :, 6 * k : 6 * k + 6] = np.asarray(v)
        own = V[:, 6 * k : 6 * k + 6]
        expected = expected @ (np.eye(40) - own @ np.asarray(s) @ own.T)
    S = np.asarray(product_factor(xp.asarray(V), [s for _, s, _ in made]))
    np.testing.assert_allclose(np.eye(40) - V @ S @ V.T, expected, atol=1e-13)
