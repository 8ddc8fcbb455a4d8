"""Small solvers and products in place, in every namespace."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matrices import every_namespace, same, symmetric

from fitonce.core import arrays
from fitonce.core.arrays import (
    NotPositiveDefiniteError,
    cholesky_overwriting,
    cholesky_stack,
    spd_solver,
    subtract_product,
)


def test_solver_takes_definite_matrices_and_those_that_rounding_has_spoilt():
    rng = np.random.default_rng(10)
    B = rng.normal(size=(4, 2))
    spd = B @ B.T + np.eye(4)
    for A in (spd, spd - 2.0 * np.eye(4), np.array([[3.0]])):
        np.testing.assert_allclose(A @ spd_solver(A.copy())(B[: len(A)]), B[: len(A)], atol=1e-12)


@every_namespace
def test_product_is_subtracted_in_place_from_a_view(xp):
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(300, 9)), rng.normal(size=(299, 2)), rng.normal(size=(2, 8))
    whole = xp.asarray(A.copy())
    subtract_product(whole[1:, 1:], xp.asarray(B), xp.asarray(C))
    expected = A.copy()
    expected[1:, 1:] -= B @ C
    same(whole, expected, 1e-14)
    stack = xp.asarray(np.stack([A[1:, 1:], A[1:, 1:]]))
    subtract_product(stack, xp.asarray(np.stack([B, 2 * B])), xp.asarray(np.stack([C, C])))
    same(stack, np.stack([A[1:, 1:] - B @ C, A[1:, 1:] - 2 * B @ C]), 1e-14)


@pytest.mark.torch
def test_spd_solver_of_torch_factors_once_and_takes_matrices_that_are_not_definite():
    import torch

    for A in (symmetric("full", 9) @ symmetric("full", 9) + np.eye(9), symmetric("full", 9)):
        solve = spd_solver(torch.asarray(A))
        for B in (np.eye(9), np.arange(18.0).reshape(9, 2)):
            same(solve(torch.asarray(B)), np.linalg.solve(A, B), 1e-10)


@every_namespace
def test_only_a_failed_factorization_is_called_not_positive_definite(xp, monkeypatch):
    """Running out of memory is what it is, on whatever device."""
    indefinite = xp.asarray(np.diag([1.0, -1.0]))
    with pytest.raises(NotPositiveDefiniteError):
        cholesky_overwriting(indefinite)

    class OutOfMemoryError(RuntimeError):
        pass

    def full(A):
        raise OutOfMemoryError("CUDA out of memory")

    linalg = SimpleNamespace(cholesky=full, cholesky_ex=full)
    monkeypatch.setattr(arrays, "namespace", lambda *_: SimpleNamespace(linalg=linalg))
    with pytest.raises(OutOfMemoryError):
        cholesky_stack(xp.asarray(np.eye(2)[None]))
