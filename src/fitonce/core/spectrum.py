r"""One decomposition, from which every function of the matrix costs only a product.

For n rows, let Q₀ (n, u) be an orthonormal basis of the columns that are not penalized: the bias,
and possibly others. The Gram matrix without them is

    G = (I - Q₀Q₀ᵀ) K (I - Q₀Q₀ᵀ) = V diag(λ) Vᵀ,        VᵀV = I,  V ⟂ Q₀.

Row weights w enter before: with s = √w the matrix is diag(s) K diag(s) and the bias column is s.
Then, for any function φ, the matrix φ(G) restricted to the complement of Q₀ is

    φ(G) = V diag(φ(λ)) Vᵀ + φ(0) (I - Q₀Q₀ᵀ - VVᵀ),

where the second term vanishes when V is complete (r + u = n). Nothing downstream of a `Spectrum`
knows which kernel, feature map or device it came from. As a resolvent, for any mu,

    M = V diag(g) Vᵀ + (I - Q₀Q₀ᵀ - VVᵀ),     g = μ/(λ + μ)

is a sum of non-negative terms throughout, in which nothing cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import (
    Array,
    asarray_like,
    eigh_overwriting,
    eye_like,
    is_numpy,
    namespace,
    spd_solver,
    take,
    to_numpy,
    zeros_like_shape,
)
from .holdout import ResidualMap, Solver
from .resolvent import Resolvent

UNEVEN = 1e4  # times the smallest eigenvalue of features, the largest: beyond, columns of V mix
DENSE_UP_TO = 500  # rows; below, I - H as a matrix is cheaper to use than its thin factors
BLOCK_ROWS = 256  # rows processed at a time where a whole n×n temporary would otherwise appear


def row_blocks(n: int, step: int = BLOCK_ROWS) -> list[slice]:
    """Slices of so many rows, the last one shorter."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def machine_epsilon(A: Array) -> float:
    return float(namespace(A).finfo(A.dtype).eps)


def frobenius(K: Array) -> Array:
    """‖K‖ (0-d), without a temporary of its size."""
    xp = namespace(K)
    return sum(xp.sum(K[rows, :] ** 2) for rows in row_blocks(K.shape[0])) ** 0.5


class Diagonalized(Resolvent):
    """A factorization that knows the eigenvalues of G, but for zeros."""

    if TYPE_CHECKING:  # a field of one, a property of the other

        @property
        def eigenvalues(self) -> Array: ...

    @cached_property
    def norm(self) -> float:
        return float(namespace(self.Q0).linalg.vector_norm(self.eigenvalues))

    @cached_property
    def largest(self) -> float:
        """max |λ|."""
        xp = namespace(self.Q0)
        return float(xp.max(xp.abs(self.eigenvalues))) if self.eigenvalues.shape[0] else 0.0

    @cached_property
    def trace(self) -> float:
        xp = namespace(self.Q0)
        return float(xp.sum(xp.abs(self.eigenvalues)))

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        """Σ log(λ + μ), zeros of G among them."""
        eigenvalues, n_free = to_numpy(self.eigenvalues), self.Q0.shape[0] - self.Q0.shape[1]
        missing = int(n_free) - len(eigenvalues)
        return np.asarray(
            np.sum(np.log(eigenvalues[:, None] + mus), axis=0) + missing * np.log(mus)
        )


@dataclass(frozen=True)
class Spectrum(Diagonalized):
    """Eigenvectors V (n, r), eigenvalues (r,) and the excluded orthonormal columns Q0 (n, u), with
    V ⟂ Q0.

    Negative eigenvalues of indefinite kernels are kept.
    """

    V: Array
    eigenvalues: Array
    Q0: Array

    @property
    def n_samples(self) -> int:
        return int(self.V.shape[0])

    @property
    def rank(self) -> int:
        return int(self.V.shape[1])

    @property
    def complete(self) -> bool:
        """Whether V and Q0 together span all n dimensions, so that nothing is left for φ(0)."""
        return self.rank + int(self.Q0.shape[1]) == self.n_samples

    @cached_property
    def smallest(self) -> float:
        """min λ, or 0 if there are directions outside V."""
        lowest = float(namespace(self.eigenvalues).min(self.eigenvalues)) if self.rank else 0.0
        return lowest if self.complete else min(lowest, 0.0)

    def apply(self, phi: Array, at_zero: Array, Y: Array, z: Array = None) -> Array:
        """φ(G) Y (m, n, t) for Y (n, t) and m functions in the columns of phi (r, m), exactly.

        V (φ - φ(0)) VᵀY + φ(0) (Y - Q₀Q₀ᵀY), and VφVᵀY where V is complete. Cost: one product with
        Vᵀ and one with V, O(n r t m).
        """
        xp = namespace(self.V, Y)
        z = self.V.T @ Y if z is None else z
        m, t = phi.shape[1], Y.shape[1]
        phi = phi if self.complete else phi - at_zero
        coefficients = xp.reshape(phi[:, :, None] * z[:, None, :], (self.rank, m * t))
        result = xp.permute_dims(
            xp.reshape(self.V @ coefficients, (self.n_samples, m, t)), (1, 0, 2)
        )
        off = None if self.complete else self._off(Y)
        for number in range(0 if off is None else m):  # in place: there may be many targets
            result[number, ...] += at_zero[number] * off
        return result

    def _off(self, Y: Array) -> Array:
        """(I - Q₀Q₀ᵀ) Y."""
        return Y - self.Q0 @ (self.Q0.T @ Y)

    def diagonal_of(self, phi: Array, at_zero: Array) -> Array:
        """diag φ(G) for m functions in the columns of phi (r, m), as (n, m).

        The product of V² with phi.
        """
        xp = namespace(self.V)
        blocks = []
        for rows in row_blocks(self.n_samples):
            squares = self.V[rows, :] ** 2
            block = squares @ phi
            if not self.complete:
                excluded = xp.sum(self.Q0[rows, :] ** 2, axis=1)
                outside = 1.0 - excluded - xp.sum(squares, axis=1)
                block = block + outside[:, None] * at_zero[None, :]
            blocks.append(block)
        return xp.concat(blocks, axis=0)

    def blocks(self, phi: Array, at_zero: Iterable[float], rows: Array) -> Iterator[Array]:
        """The square blocks of several functions, columns of phi (r, m), at the given rows."""
        V = take(self.V, rows)
        outside = None
        if not self.complete:
            Q0 = take(self.Q0, rows)
            outside = eye_like(V.shape[0], V) - Q0 @ Q0.T - V @ V.T
        for number, zero in enumerate(at_zero):
            result = _symmetric_product(V, phi[:, number])
            yield result if outside is None else result + zero * outside

    # ---- the resolvent ---------------------------------------------------------------------------

    @property
    def lower_bound(self) -> float:
        return max(0.0, -self.smallest)

    def _g(self, mus: Any) -> tuple[Array, Array]:
        """g (r, m) on the spectrum, and ones (m,) outside it."""
        mu = asarray_like(mus, self.Q0)
        return mu / (self.eigenvalues[:, None] + mu), namespace(mu).ones_like(mu)

    def project(self, Y: Array) -> Array:
        return self.V.T @ Y

    def residual(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        return self.apply(*self._g(mus), Y, z)

    def scatter(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        """zᵀ g z, and what lies outside V: O(n t²) once and O(r t²) for each mu."""
        g, _ = self._g(mus)
        inside = namespace(Y).matrix_transpose(z[None, :, :] * g.T[:, :, None]) @ z[None, :, :]
        return inside if self.complete else inside + Y.T @ (self._off(Y) - self.V @ z)

    def diagonal(self, mus: np.ndarray) -> Array:
        return self.diagonal_of(*self._g(mus)).T

    def sizes(self, mus: np.ndarray) -> np.ndarray:
        g, _ = self._g(mus)
        outside = self.n_samples - self.rank - int(self.Q0.shape[1])
        return np.asarray(np.sqrt(to_numpy(namespace(g).sum(g**2, axis=0)) + outside))

    def solvers(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Solver]:
        """By a system of the rows, or of the directions where these are fewer."""
        g, ones = self._g(mus)
        if len(rows) <= self.rank + int(self.Q0.shape[1]) or self.smallest < 0:
            return map(spd_solver, self.blocks(g, ones, rows))
        f = self.eigenvalues[:, None] / (self.eigenvalues[:, None] + asarray_like(mus, g))
        return thin_solvers(take(self.Q0, rows), take(self.V, rows), f)

    def residual_map(self, mu: float) -> ResidualMap:
        """The thin factors of a low rank, or the matrix where that is cheaper."""
        if not is_thin(self.n_samples, self.rank):
            return super().residual_map(mu)
        return ResidualMap(None, (self.V, self.eigenvalues / (self.eigenvalues + mu), self.Q0))

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        """V (λ + μ)⁻¹ VᵀY: what lies outside V is left out."""
        if self.complete:
            return dual
        inverse = 1.0 / (self.eigenvalues[:, None] + mu)
        return self.apply(inverse, zeros_like_shape((1,), inverse), Y)[0, ...]


def _symmetric_product(V: Array, phi: Array) -> Array:
    """V diag(φ) Vᵀ. NumPy computes one triangle only of a product A Aᵀ: half the time."""
    if is_numpy(V) and np.all(phi >= 0):
        A = V * np.sqrt(phi)
        return A @ A.T
    return (V * phi) @ V.T


def orthonormal(columns: Array) -> Array:
    """An orthonormal basis of the span of the given columns (n, u), which must be independent."""
    xp = namespace(columns)
    if columns.shape[1] == 1:
        return columns / xp.sqrt(xp.sum(columns**2))
    return xp.linalg.qr(columns)[0]


def spectrum_of_kernel(K: Array, Q0: Array, entry: float = 0.0) -> Spectrum:
    """The complete Spectrum of a symmetric matrix K (n, n), which is overwritten.

    Its rounding error is that of entries of the size `entry`, or of its own entries if they are
    larger.
    Q₀ gets a separate eigenvalue above all others, so the last u eigenvectors are Q₀ and the first
    n - u are exactly orthogonal to it, whatever the rank. Cost: one eigh, O(n³).
    """
    n, u = Q0.shape
    xp = namespace(K)
    size = min(float(frobenius(K)), n * float(xp.max(xp.abs(K))))  # the first may overflow
    size = max(size, float(n) ** 0.5 * entry)
    project_off(K, Q0)
    eigenvalues, V = eigh_overwriting(K)
    return Spectrum(
        V[:, : n - u], without_noise(eigenvalues[: n - u], n * machine_epsilon(K) * size), Q0
    )


def project_off(K: Array, Q0: Array) -> tuple[float, float]:
    """Overwrite K by G + c Q₀Q₀ᵀ with G = (I - Q₀Q₀ᵀ) K (I - Q₀Q₀ᵀ), in one pass; returns (c, ‖G‖).

    The norm is Frobenius's, from above, and c is twice that: Q₀ becomes the leading eigenvectors,
    well apart from the others and from zero. With half = KQ₀ - ½Q₀(Q₀ᵀKQ₀ + cI),

        G + c Q₀Q₀ᵀ = K - Q₀ halfᵀ - half Q₀ᵀ.
    """
    xp = namespace(K, Q0)
    n, u = Q0.shape
    squared = frobenius(K) ** 2
    if u == 0:
        return 0.0, float(xp.sqrt(squared))
    KQ0 = K @ Q0
    core = Q0.T @ KQ0
    # ‖G‖², with more than rounding can take from it where K is nearly all offset
    squared_G = (
        squared - 2.0 * xp.sum(KQ0**2) + xp.sum(core**2) + 100 * n * machine_epsilon(K) * squared
    )
    norm = float(xp.sqrt(squared_G))
    shift = 2.0 * norm or 1.0
    half = KQ0 - 0.5 * (Q0 @ (core + shift * eye_like(u, K)))
    left, right = xp.concat([Q0, half], axis=1), xp.concat([half, Q0], axis=1)
    for rows in row_blocks(n):
        K[rows, :] -= left[rows, :] @ right.T
    return shift, norm


def without_noise(eigenvalues: Array, noise: float) -> Array:
    """Eigenvalues that are only rounding of zero, as zero: negative ones, and all of them where
    none is more than that.

    A singular kernel is not an indefinite one, and a constant one is not a very small one. Rounding
    is measured against the kernel as it came: a large offset leaves its own behind when it is
    projected off.
    """
    xp = namespace(eigenvalues)
    zeros = xp.zeros_like(eigenvalues)
    if eigenvalues.shape[0] == 0 or float(xp.max(xp.abs(eigenvalues))) <= noise:
        return zeros
    return xp.where((eigenvalues < 0) & (eigenvalues >= -noise), zeros, eigenvalues)


def spectrum_of_features(Z: Array, Q0: Array) -> Spectrum:
    """The thin Spectrum of ZZᵀ for features Z (n, p), p < n, through the p×p side.

    With Z off Q₀, ZᵀZ = W diag(λ) Wᵀ and V = Z W diag(λ)^-½; directions with λ at rounding level
    are dropped. Cost: O(n p² + p³); memory: one copy of Z.
    """
    xp = namespace(Z, Q0)
    noise = (Z.shape[0] * machine_epsilon(Z) * float(xp.linalg.vector_norm(Z))) ** 2
    for _ in range(2):  # the second pass removes what rounding left of a large offset
        Z = Z - Q0 @ (Q0.T @ Z)
    eigenvalues, W = eigh_overwriting(Z.T @ Z)
    if eigenvalues.shape[0] == 0:
        return Spectrum(zeros_like_shape((Z.shape[0], 0), Z), eigenvalues, Q0)
    largest = xp.max(eigenvalues)
    # ascending: those that count come last
    kept = (eigenvalues > Z.shape[1] * machine_epsilon(Z) * largest) & (eigenvalues > noise)
    rank = int(xp.sum(xp.astype(kept, xp.int64)))
    last = slice(eigenvalues.shape[0] - rank, eigenvalues.shape[0])
    eigenvalues, principal = eigenvalues[last], Z @ W[:, last]
    if rank and float(largest) > UNEVEN * float(eigenvalues[0]):
        return Spectrum(*_of_uneven(principal), Q0)
    return Spectrum(principal / xp.sqrt(eigenvalues), eigenvalues, Q0)


def _of_uneven(A: Array) -> tuple[Array, Array]:
    """V and λ of AAᵀ (n, r) for nearly orthogonal columns of very different sizes, rising.

    Each column has the rounding of the largest. Divided by its own size, a small one would keep a
    part along the large ones, which Zᵀα makes large again. A = QR with the large ones first takes
    it off; the singular vectors of the small R make the rest orthogonal.
    """
    xp = namespace(A)
    Q, R = xp.linalg.qr(xp.flip(A, axis=1))
    U, sizes, _ = xp.linalg.svd(R)
    return xp.flip(Q @ U, axis=1), xp.flip(sizes, axis=0) ** 2


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


def thin_solvers(Q0: Array, V: Array, f: Array) -> Iterator[Solver]:
    """R → (I - Q₀Q₀ᵀ - V diag(f) Vᵀ)⁻¹R at some rows, for m functions in the columns of f (r, m),
    none negative.
    """
    xp = namespace(V)
    roots = xp.sqrt(f)
    thin = (xp.concat([Q0, V * roots[:, j]], axis=1) for j in range(int(f.shape[1])))
    return map(complement_solver, thin)
