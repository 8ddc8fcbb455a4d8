"""Decompositions against plain ones of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from fitonce.core.spectrum import (
    BLOCK_ROWS,
    Spectrum,
    orthonormal,
    spectrum_of_features,
    spectrum_of_kernel,
)
from problems import KERNELS, features, kernel, no_columns, rbf


def basis(columns: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Q0 of a bias and random columns beside it."""
    if columns == 0:
        return no_columns(n)
    return orthonormal(np.hstack([np.ones((n, 1)), rng.normal(size=(n, columns - 1))]))


def dense_function(phi, G: np.ndarray, Q0: np.ndarray) -> np.ndarray:
    """φ of the projected matrix, on the complement of Q0 only, by a plain eigendecomposition."""
    project = np.eye(len(G)) - Q0 @ Q0.T
    eigenvalues, U = np.linalg.eigh(project @ G @ project)
    return project @ (U * phi(eigenvalues)) @ U.T @ project


@pytest.mark.parametrize("columns", [0, 1, 4])
@pytest.mark.parametrize("kind", KERNELS)
def test_spectrum_of_kernel_is_an_orthonormal_decomposition_off_the_unpenalised_columns(
    kind, columns
):
    n, rng = 20, np.random.default_rng(1)
    K = kernel(kind, features(kind, n, rng))
    Q0 = basis(columns, n, rng)
    spectrum = spectrum_of_kernel(K.copy(), Q0)
    V = spectrum.V
    assert spectrum.complete and spectrum.rank == n - columns
    np.testing.assert_allclose(V.T @ V, np.eye(n - columns), atol=1e-13)
    np.testing.assert_allclose(Q0.T @ V, 0.0, atol=1e-13)
    project = np.eye(n) - Q0 @ Q0.T
    np.testing.assert_allclose(
        (V * spectrum.eigenvalues) @ V.T, project @ K @ project, atol=1e-13 * n
    )
    eigenvalues = np.linalg.eigvalsh(project @ K @ project)
    assert spectrum.largest == pytest.approx(np.abs(eigenvalues).max(), abs=1e-13 * n)
    if kind == "indefinite":
        assert (
            spectrum.smallest == pytest.approx(eigenvalues[0], rel=1e-10)
            and spectrum.smallest < -0.1
        )
    else:
        assert spectrum.smallest >= 0.0  # rounding of zero is not indefiniteness


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("gamma", [0.0, 1e-15, 1e-10])
def test_kernel_that_is_nearly_constant_stays_off_the_unpenalised_columns(gamma, columns):
    """What is left of it is rounding, and must not leak into the columns that were
    projected out.
    """
    n, rng = 20, np.random.default_rng(1)
    Q0 = basis(columns, n, rng)
    spectrum = spectrum_of_kernel(rbf(rng.normal(size=(n, 3)), gamma), Q0)
    np.testing.assert_allclose(Q0.T @ spectrum.V, 0.0, atol=1e-9)


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_large_offset_is_not_indefiniteness(offset):
    X = np.random.default_rng(1).normal(size=(20, 3))
    assert spectrum_of_kernel(X @ X.T + offset, orthonormal(np.ones((20, 1)))).smallest >= 0.0


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("thin", [False, True])
def test_functions_of_the_matrix_equal_the_dense_ones(thin, columns):
    n, rng = 18, np.random.default_rng(2)
    Z = rng.normal(size=(n, 4)) + 1.0
    Q0 = basis(columns, n, rng)
    spectrum = spectrum_of_features(Z, Q0) if thin else spectrum_of_kernel(Z @ Z.T, Q0)
    assert spectrum.complete is not thin
    functions = [
        lambda x: 1.0 / (np.abs(x) + 0.5),
        lambda x: x / (x**2 + 2.0),
        lambda x: np.exp(-np.abs(x)),
    ]
    phi = np.column_stack([function(spectrum.eigenvalues) for function in functions])
    at_zero = np.array([function(0.0) for function in functions])
    Y = rng.normal(size=(n, 2))
    rows = np.array([7, 0, 3])
    applied, diagonal = spectrum.apply(phi, at_zero, Y), spectrum.diagonal_of(phi, at_zero)
    blocks = spectrum.blocks(phi, at_zero, rows)
    for number, (function, block) in enumerate(zip(functions, blocks, strict=True)):
        dense = dense_function(function, Z @ Z.T, Q0)
        np.testing.assert_allclose(applied[number], dense @ Y, atol=1e-12)
        np.testing.assert_allclose(diagonal[:, number], np.diag(dense), atol=1e-12)
        np.testing.assert_allclose(block, dense[np.ix_(rows, rows)], atol=1e-12)


def test_diagonal_goes_on_behind_a_block_of_rows():
    n, rng = 2 * BLOCK_ROWS + 3, np.random.default_rng(3)
    spectrum = spectrum_of_features(rng.normal(size=(n, 4)), basis(1, n, rng))
    phi, at_zero = 1.0 / (1.0 + spectrum.eigenvalues[:, None]), np.ones(1)
    dense = spectrum.apply(phi, at_zero, np.eye(n))[0]
    np.testing.assert_allclose(spectrum.diagonal_of(phi, at_zero)[:, 0], np.diag(dense), rtol=1e-12)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_features_route_equals_kernel_route(columns):
    n, rng = 20, np.random.default_rng(4)
    Z = rng.normal(size=(n, 5))
    Z = (
        np.hstack([Z, Z[:, :2] @ rng.normal(size=(2, 2))]) + 50.0
    )  # two dependent features and a large offset
    Q0 = basis(columns, n, rng)
    thin, full = spectrum_of_features(Z, Q0), spectrum_of_kernel(Z @ Z.T, Q0)
    assert thin.rank == (5 if columns else 6)
    np.testing.assert_allclose(Q0.T @ thin.V, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        thin.eigenvalues, full.eigenvalues[-thin.rank :], rtol=1e-8, atol=1e-9 * full.largest
    )
    Y = rng.normal(size=(n, 2))
    got, expected = (
        each.apply(10.0 / (each.eigenvalues[:, None] + 10.0), np.ones(1), Y)
        for each in (thin, full)
    )
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_spectrum_without_directions():
    spectrum = spectrum_of_features(np.ones((6, 2)), basis(1, 6, np.random.default_rng(0)))
    assert spectrum.largest < 1e-30 and spectrum.smallest >= 0.0
    empty = Spectrum(no_columns(6), np.zeros(0), no_columns(6))
    applied = empty.apply(np.zeros((0, 1)), np.array([2.0]), np.eye(6))[0]
    np.testing.assert_array_equal(applied, 2.0 * np.eye(6))


def test_features_of_very_different_sizes_keep_small_directions_off_large_ones():
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(40, 3)) + 1e4  # sizes 1e5 and 6
    spectrum = spectrum_of_features(Z, no_columns(40))
    _, sizes, W = np.linalg.svd(Z, full_matrices=False)
    np.testing.assert_allclose(spectrum.V.T @ spectrum.V, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(np.sqrt(spectrum.eigenvalues), sizes[::-1], rtol=1e-10)
    model = Z.T @ (spectrum.V / np.sqrt(spectrum.eigenvalues))  # the directions of the features
    np.testing.assert_allclose(np.abs(model.T @ W.T[:, ::-1]), np.eye(3), atol=2e-10)
