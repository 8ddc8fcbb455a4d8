r"""The resolvent from eigenvectors: any mu costs products only.

    M = V diag(g) Vᵀ + (I - Q₀Q₀ᵀ - VVᵀ),     g = μ/(λ + μ)

a sum of non-negative terms throughout, in which nothing cancels. The second one vanishes where V is
complete. Few features give a V of few columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Array, asarray_like, eye_like, namespace, spd_solver, take, to_numpy
from .holdout import ResidualMap, Solver
from .resolvent import Resolvent
from .spectrum import Spectrum

DENSE_UP_TO = 500  # rows; below, I - H as a matrix is cheaper to use than its thin factors


@dataclass(frozen=True)
class Spectral(Resolvent):
    """M(μ) of a `Spectrum`."""

    spectrum: Spectrum

    @cached_property
    def Q0(self) -> Array:
        return self.spectrum.Q0

    @property
    def rank(self) -> int:
        return self.spectrum.rank

    @cached_property
    def norm(self) -> float:
        return float(namespace(self.Q0).linalg.vector_norm(self.spectrum.eigenvalues))

    @property
    def largest(self) -> float:
        return self.spectrum.largest

    @cached_property
    def trace(self) -> float:
        xp = namespace(self.Q0)
        return float(xp.sum(xp.abs(self.spectrum.eigenvalues)))

    @property
    def lower_bound(self) -> float:
        return max(0.0, -self.spectrum.smallest)

    def _g(self, mus: Any) -> tuple[Array, Array]:
        """g (r, m) on the spectrum, and ones (m,) outside it."""
        mu = asarray_like(mus, self.Q0)
        return mu / (self.spectrum.eigenvalues[:, None] + mu), namespace(mu).ones_like(mu)

    def project(self, Y: Array) -> Array:
        return self.spectrum.V.T @ Y

    def residual(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        return self.spectrum.apply(*self._g(mus), Y, z)

    def scatter(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        return self.spectrum.quadratic(*self._g(mus), Y, z)

    def diagonal(self, mus: np.ndarray) -> Array:
        return self.spectrum.diagonal(*self._g(mus)).T

    def sizes(self, mus: np.ndarray) -> np.ndarray:
        g, _ = self._g(mus)
        outside = self.spectrum.n_samples - self.rank - int(self.Q0.shape[1])
        return np.asarray(np.sqrt(to_numpy(namespace(g).sum(g**2, axis=0)) + outside))

    def solvers(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Solver]:
        """By a system of the rows, or of the directions where these are fewer."""
        spectrum, (g, ones) = self.spectrum, self._g(mus)
        if len(rows) <= self.rank + int(self.Q0.shape[1]) or spectrum.smallest < 0:
            return map(spd_solver, spectrum.blocks(g, ones, rows))
        xp, V, Q0 = namespace(g), take(spectrum.V, rows), take(self.Q0, rows)
        f = spectrum.eigenvalues[:, None] / (spectrum.eigenvalues[:, None] + asarray_like(mus, g))
        thin = (xp.concat([Q0, V * xp.sqrt(f[:, j])], axis=1) for j in range(len(mus)))
        return map(complement_solver, thin)

    def residual_map(self, mu: float) -> ResidualMap:
        """The thin factors of a low rank, or the matrix where that is cheaper."""
        spectrum = self.spectrum
        if not is_thin(spectrum.n_samples, self.rank):
            return super().residual_map(mu)
        f = spectrum.eigenvalues / (spectrum.eigenvalues + mu)
        return ResidualMap(None, (spectrum.V, f, self.Q0))

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        """V (λ + μ)⁻¹ VᵀY: what lies outside V is left out."""
        inverse = 1.0 / (self.spectrum.eigenvalues[:, None] + mu)
        none = namespace(inverse).sum(
            0.0 * inverse, axis=0
        )  # of a spectrum without eigenvalues, too
        return self.spectrum.apply(inverse, none, Y)[0, ...]

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        n_free = self.spectrum.n_samples - int(self.Q0.shape[1])
        return log_determinant(to_numpy(self.spectrum.eigenvalues), n_free, mus)


def is_thin(n: int, rank: int) -> bool:
    """Whether n×n maps are cheaper to apply through their factors."""
    return n > DENSE_UP_TO and 4 * rank < n


def complement_solver(L: Array) -> Solver:
    """R → (I - LLᵀ)⁻¹R for L (k, p): as it is, or I + L(I - LᵀL)⁻¹Lᵀ where k > p."""
    k, p = L.shape
    if k <= p:
        return spd_solver(eye_like(k, L) - L @ L.T)
    solve = spd_solver(eye_like(p, L) - L.T @ L)
    return lambda R: R + L @ solve(L.T @ R)


def log_determinant(eigenvalues: np.ndarray, n_free: int, mus: np.ndarray) -> np.ndarray:
    """log |G + μI| outside what is not penalized, (m,): Σ log(λ + μ), zeros of G among them."""
    mus = np.asarray(mus, dtype=float)
    missing = n_free - len(eigenvalues)
    return np.asarray(np.sum(np.log(eigenvalues[:, None] + mus), axis=0) + missing * np.log(mus))
