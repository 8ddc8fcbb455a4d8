"""Factorisations in products, beside NumPy's own; each of their two ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fitonce.core import blocked
from fitonce.core.arrays import NotPositiveDefiniteError, to_numpy
from optional import require

pytestmark = pytest.mark.torch


@pytest.fixture(name="torch")
def _torch() -> Any:
    return require("torch")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "BATCHED_UP_TO", 16)


def definite(k: int, m: int, smallest: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(m)
    Z = rng.normal(size=(k, m, m + 3))
    return Z @ Z.transpose(0, 2, 1) + smallest * np.eye(m)


@pytest.mark.parametrize("m", [1, 16, 53])
def test_stacks_are_solved(torch: Any, m: int) -> None:
    A, B = definite(3, m), np.random.default_rng(0).normal(size=(3, m, 5))
    found = blocked.spd_solve_stack(torch.asarray(A), torch.asarray(B))
    np.testing.assert_allclose(to_numpy(found), np.linalg.solve(A, B), rtol=1e-9, atol=1e-12)


def test_a_stack_with_one_that_is_not_definite_is_solved_as_a_general_one(torch: Any) -> None:
    A, B = definite(3, 30), np.random.default_rng(0).normal(size=(3, 30, 2))
    A[1] -= 40.0 * np.eye(30)
    found = blocked.spd_solve_stack(torch.asarray(A), torch.asarray(B))
    np.testing.assert_allclose(to_numpy(found), np.linalg.solve(A, B), rtol=1e-8)


@pytest.mark.parametrize("m", [1, 24, 101])
def test_inverse(torch: Any, m: int) -> None:
    A = definite(1, m)[0]
    found = to_numpy(blocked.spd_inverse_overwriting(torch.asarray(A.copy())))
    np.testing.assert_allclose(found, np.linalg.inv(A), rtol=1e-8, atol=1e-11)
    assert np.abs(found - found.T).max() <= 1e-15 * np.abs(found).max()


def test_no_inverse_without_a_factor(torch: Any) -> None:
    with pytest.raises(NotPositiveDefiniteError):
        blocked.spd_inverse_overwriting(-torch.eye(30, dtype=torch.float64))


@pytest.mark.parametrize("m", [7, 101])
def test_symmetric_products(torch: Any, m: int) -> None:
    Z = np.random.default_rng(0).normal(size=(60, m))
    found = blocked.symmetric_product(torch.asarray(Z), 20)
    np.testing.assert_allclose(to_numpy(found), Z.T @ Z, rtol=1e-12, atol=1e-12)
