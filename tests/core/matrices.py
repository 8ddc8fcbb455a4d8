"""Matrices that a reduction may stumble over, in every namespace."""

from __future__ import annotations

import numpy as np
import pytest

NAMESPACES = ["numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
PROMISE = 1e-9  # for mu ≥ 1e-4 λ_max

every_namespace = pytest.mark.parametrize("xp", NAMESPACES, indirect=True)


def symmetric(kind: str, n: int) -> np.ndarray:
    """Matrices that a reduction may stumble over."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A + A.T
    if kind == "zero":
        return np.zeros((n, n))
    if kind == "diagonal":
        return np.diag(rng.normal(size=n))
    if kind == "constant":
        return np.ones((n, n))
    if kind == "apart":  # two parts that do not touch: every panel of the first ends in zeros
        A[: n // 2, n // 2 :] = A[n // 2 :, : n // 2] = 0.0
    if kind == "rank one":
        return np.outer(A[0], A[0])
    if kind == "graded":
        scale = 10.0 ** -np.linspace(0, 12, n)
        return scale[:, None] * A * scale
    return A


def same(got, expected: np.ndarray, tolerance: float = PROMISE) -> None:
    got = np.asarray(got)
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()
