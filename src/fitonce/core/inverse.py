r"""The resolvent at one mu as a matrix, by Cholesky instead of eigenvectors: a fifth of their time.

    M = μ (G + cQ₀Q₀ᵀ + μI)⁻¹ - μ/(c + μ) Q₀Q₀ᵀ        for any c

A large c keeps the second term small and the first well conditioned. Of any other mu, of
eigenvalues and determinants the factorization knows that `make` returns: it is called when somebody
asks, and what it returns is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import Array, add_to_diagonal, namespace, spd_solver, square_block
from .blocked import spd_inverse_overwriting
from .holdout import ResidualMap, Solver
from .resolvent import Resolvent
from .spectrum import frobenius, project_off, row_blocks


@dataclass(frozen=True)
class Inverse(Resolvent):
    """M (n, n) at one mu."""

    M: Array
    Q0: Array
    mu: float
    norm: float
    make: Callable[[], Resolvent] | None = None

    @classmethod
    def of(
        cls, K: Array, Q0: Array, mu: float, make: Callable[[], Resolvent] | None = None
    ) -> Inverse:
        """From a kernel matrix, which is overwritten; NotPositiveDefiniteError where
        mu ≤ -λ_min.
        """
        shift, norm = project_off(K, Q0)
        add_to_diagonal(K, mu)
        M = spd_inverse_overwriting(K)
        M *= mu
        for rows in row_blocks(K.shape[0]) if Q0.shape[1] else ():
            M[rows, :] -= (mu / (shift + mu) * Q0[rows, :]) @ Q0.T
        return cls(M, Q0, mu, norm, make)

    @cached_property
    def whole(self) -> Resolvent:
        if self.make is None:
            raise ValueError(f"this factorization answers at mu = {self.mu:g} only.")
        return self.make()

    def at(self, mus: np.ndarray) -> Resolvent:
        return self if len(mus) == 1 and mus[0] == self.mu else self.whole.at(mus)

    def admits(self, mus: np.ndarray) -> bool:
        return True

    def residual(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        return (self.M @ Y)[None, ...]

    def diagonal(self, mus: np.ndarray) -> Array:
        return namespace(self.M).linalg.diagonal(self.M)[None, :]

    @cached_property
    def _size(self) -> float:
        return float(frobenius(self.M))

    def sizes(self, mus: np.ndarray) -> np.ndarray:
        return np.array([self._size])

    def solvers(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Solver]:
        yield spd_solver(square_block(self.M, rows))

    def residual_map(self, mu: float) -> ResidualMap:
        return ResidualMap(self.M)
