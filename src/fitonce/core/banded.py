r"""The resolvent through the block band form: the same numbers, sooner on a GPU.

With A = G + cQ₀Q₀ᵀ = Q T Qᵀ (see `band`), T + μI = LLᵀ for a batch of μ, and X = L⁻¹Qᵀ,

    M = μ XᵀX - μ/(c + μ) Q₀Q₀ᵀ,          MY = μ Q (T + μI)⁻¹ Qᵀ (Y - Q₀Q₀ᵀY)

and the diagonal of M sums the squares of X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    eigh_overwriting,
    namespace,
    spd_solver,
    take,
    transposed,
    zeros_like_shape,
)
from .band import WIDTH, Band, BandFactor, band_of, largest_eigenvalue
from .holdout import Solver
from .resolvent import Resolvent
from .spectrum import (
    Spectrum,
    frobenius,
    machine_epsilon,
    project_off,
    row_blocks,
    spectrum_of_kernel,
    without_noise,
)

WORKSPACE = 2**31  # bytes that a batch of mu may use, or one n×n matrix where that is more
COLUMNS = 4096  # of targets at a time: with many more, every step would hold several n×t arrays


class LastFactor:
    """The factors at the mus that were asked for last: folds, labels and single mu ask again.

    They are large and cheap to use, so one batch of them is kept, and all of X = L⁻¹Qᵀ at one mu.
    """

    def __init__(self, band: Band) -> None:
        self.band = band
        self._last: tuple[np.ndarray, BandFactor] | None = None
        self._roots: tuple[float, Array] | None = None

    def __call__(self, mus: np.ndarray) -> BandFactor:
        last, self._last = self._last, None
        if last is None or not np.all(np.isin(mus, last[0])):
            del last  # before the next one is made
            last = np.array(mus), self.band.factor(asarray_like(mus, self.band.Q))
        self._last = last
        return last[1].at([int(np.flatnonzero(last[0] == mu)[0]) for mu in mus])

    def batch_size(self, columns: int) -> int:
        """How many mu at a time the workspace holds: factors, and two blocks of so many columns."""
        n, b = int(self.band.Q.shape[0]), int(self.band.diagonal[0].shape[0])
        return max(1, max(WORKSPACE, 8 * n * n) // (16 * b * (n + columns)))

    def batches(self, mus: np.ndarray) -> Iterator[tuple[Array, BandFactor]]:
        """Some mu (m',) at a time with their factors, whose X fits beside them."""
        for rows in row_blocks(len(mus), self.batch_size(int(self.band.Q.shape[0]))):
            yield asarray_like(mus[rows], self.band.Q), self(mus[rows])

    def exist(self, mus: np.ndarray) -> bool:
        """Whether T + μI is positive definite at every mu."""
        try:
            self(mus)
        except NotPositiveDefiniteError:
            return False
        return True

    def roots(self, rows: np.ndarray, mu: float) -> Array:
        """The columns of X at the given rows."""
        factor = self(np.asarray([mu]))
        if 8 * int(self.band.Q.shape[0]) ** 2 > WORKSPACE:
            return factor.forward(take(self.band.Q, rows).T)[0, ...]
        if self._roots is None or self._roots[0] != mu:
            self._roots = (mu, transposed(factor.forward(self.band.Q.T)[0, ...]))
        return transposed(take(self._roots[1], rows))


@dataclass(frozen=True)
class Banded(Resolvent):
    """M(μ) of a `Band`: the answers of `Spectrum`, to rounding.

    `shift` is the c of A = G + cQ₀Q₀ᵀ, `noise` what rounding leaves of a zero eigenvalue. A mu
    below that, where rounding decides whether T + μI is definite, goes through the eigenvalues.
    """

    band: Band
    Q0: Array
    shift: float
    noise: float
    norm: float
    lambda_max: float
    diagonal_sum: float

    @classmethod
    def of(cls, K: Array, Q0: Array, width: int = WIDTH, entry: float = 0.0) -> Banded:
        """From a symmetric kernel matrix (n, n), which is overwritten.

        `entry` is the largest before it was centered. Memory: that matrix and panels of `width`
        columns.
        """
        xp = namespace(K)
        n, u = Q0.shape
        entries = max(float(xp.max(K)), -float(xp.min(K)))
        size = min(float(frobenius(K)), n * entries)
        noise = n * machine_epsilon(K) * max(size, float(n) ** 0.5 * entry)
        shift, norm = project_off(K, Q0)
        diagonal_sum = float(xp.sum(xp.linalg.diagonal(K))) - u * shift
        largest = largest_eigenvalue(K, Q0)
        if entries == 0 or largest <= noise:  # a constant kernel is not a very small one
            noise = diagonal_sum = norm = largest = shift = 0.0
            K *= 0.0
        return cls(band_of(K, width), Q0, shift, noise, norm, largest, diagonal_sum)

    @cached_property
    def factor(self) -> LastFactor:
        return LastFactor(self.band)

    @cached_property
    def definite(self) -> bool:
        """Whether no eigenvalue of G is below what rounding leaves of zero."""
        return self.factor.exist(np.array([self.noise or self.lambda_max or 1.0]))

    @cached_property
    def spectral(self) -> Spectrum:
        """The eigendecomposition after all, from T: for what only it can tell from rounding."""
        n, u = self.Q0.shape
        if self.lambda_max == 0:  # nothing in T tells Q₀ from the rest
            empty = spectrum_of_kernel(zeros_like_shape((n, n), self.Q0), self.Q0)
            return Spectrum(empty.V, 0.0 * empty.eigenvalues, self.Q0)
        eigenvalues, U = eigh_overwriting(self.band.dense())
        kept = without_noise(eigenvalues[: n - u], self.noise)
        return Spectrum(self.band.Q @ U[:, : n - u], kept, self.Q0)

    @property
    def largest(self) -> float:
        return self.lambda_max

    @property
    def trace(self) -> float:
        return self.diagonal_sum if self.definite else self.spectral.trace

    @property
    def lower_bound(self) -> float:
        return 0.0 if self.definite else self.spectral.lower_bound

    def at(self, mus: np.ndarray) -> Resolvent:
        return self.spectral if np.min(mus) <= self.noise else self

    def admits(self, mus: np.ndarray) -> bool:
        """The factors at the given mus come with the answer where they fit into one batch."""
        together = len(mus) <= self.factor.batch_size(int(self.Q0.shape[0]))
        if together and self.factor.exist(np.append(mus, self.noise or self.lambda_max or 1.0)):
            return True
        return not np.any(mus <= self.lower_bound)

    def project(self, Y: Array) -> Array:
        """Qᵀ(Y - Q₀Q₀ᵀY)."""
        return self.band.Q.T @ (Y - self.Q0 @ (self.Q0.T @ Y))

    def residual(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        """μ Q (T + μI)⁻¹ z, a block of columns at a time."""
        xp, parts = namespace(Y), []
        for mu, factor in self.factor.batches(mus):
            blocks = [_apply(self.band.Q, factor.solve(part)) for part in _column_blocks(z)]
            parts.append(mu[:, None, None] * xp.concat(blocks, axis=2))
        return xp.concat(parts, axis=0)

    def scatter(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        """The Gram matrices μ XᵀX of X = L⁻¹z."""
        parts = []
        for mu, factor in self.factor.batches(mus):
            X = factor.forward(z)
            parts.append(mu[:, None, None] * (transposed(X) @ X))
        return namespace(Y).concat(parts, axis=0)

    def diagonal(self, mus: np.ndarray) -> Array:
        xp, parts = namespace(self.Q0), []
        bias = xp.sum(self.Q0**2, axis=1)
        for mu, factor in self.factor.batches(mus):
            blocks = factor.forward_blocks(self.band.Q.T)
            squares = sum(xp.linalg.vector_norm(X, axis=1) ** 2 for X in blocks)
            parts.append(mu[:, None] * squares - (mu / (self.shift + mu))[:, None] * bias)
        return xp.concat(parts, axis=0)

    def sizes(self, mus: np.ndarray) -> np.ndarray:
        """√rank bounds ‖M‖, without a pass, where no eigenvalue of M is above one."""
        return np.full(len(mus), self.rank**0.5) if self.definite else self.spectral.sizes(mus)

    def solvers(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Solver]:
        Q0 = take(self.Q0, rows)
        for mu in map(float, mus):
            X = self.factor.roots(rows, mu)
            yield spd_solver(mu * (X.T @ X) - (mu / (self.shift + mu)) * (Q0 @ Q0.T))

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        return self.spectral.log_determinant(mus)


def _apply(Q: Array, W: Array) -> Array:
    """QW for W (m, n, t), as one product."""
    xp = namespace(W)
    m, n, t = W.shape
    flat = xp.reshape(xp.permute_dims(W, (1, 0, 2)), (n, m * t))
    return xp.permute_dims(xp.reshape(Q @ flat, (n, m, t)), (1, 0, 2))


def _column_blocks(Y: Array) -> Iterator[Array]:
    return (Y[:, columns] for columns in row_blocks(max(int(Y.shape[1]), 1), COLUMNS))
