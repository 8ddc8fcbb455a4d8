"""The block band form of symmetric matrices, in every namespace."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from matrices import every_namespace, same, symmetric

from fitonce.core import reflections
from fitonce.core.arrays import NotPositiveDefiniteError
from fitonce.core.band import band_of, largest_eigenvalue
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
    monkeypatch.setattr(reflections, "PRODUCTS_FROM", 1)


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
