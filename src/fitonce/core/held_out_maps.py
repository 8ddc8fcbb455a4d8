r"""Held-out values of a split as a matrix times targets, for many targets.

Predictions of test rows are linear in the training rows' targets, Ŷ_Te = M(μ) Y_Tr. M is what the
smoother holds out for unit targets, so every deletion formula gives it, whatever the penalty, the
weights or the rows that leave. It costs O(n²r) for each mu, once; after that each target takes n²
multiplications for each mu and nothing else. That pays from about 2 n targets.

M(μ) = W diag(1/(λ + μ)) Uᵀ changes smoothly with μ, so that the matrices of neighboring mu are
nearly dependent. A pivoted QR decomposition finds a basis among them and the coefficients of the
others, to `DEPENDENT` of their norm; only the basis is multiplied by targets. Of 43 powers of two
it takes 13 to 40, of 20 candidates over six decades 12 to 20, fewer the flatter the spectrum.

A thin spectrum has H = LLᵀ with few columns L = [Q₀, V√f], f = λ/(λ + μ), and a fold T

    Ŷ_T = L_T (I - L_TᵀL_T)⁻¹ L_TrᵀY_Tr,

so that its matrices act on [Q₀, V]_TrᵀY_Tr, which is the same for every mu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .arrays import Array, asarray_like, namespace, take, to_numpy
from .holdout import Deletion
from .spectrum import Spectrum, complement_solver
from .splits import complement

DEPENDENT = 1e-12  # what the others may differ from what the basis makes of them, relative
SKETCH = 20  # numbers for each matrix, from random vectors, by which this is found


@dataclass(frozen=True)
class HeldOutMap:
    """What one split predicts for the rows it tests, for m values of mu.

    `basis` (b, k, n_Tr) are matrices of b of them, `mixing` (m, b) makes all of these, or is None
    where the basis is all. They act on `coordinates` (q, n_Tr) of targets, where these are given.
    """

    train: np.ndarray
    tested: np.ndarray
    basis: Array
    mixing: Array | None = None
    coordinates: Array | None = None

    def __call__(self, Y: Array) -> Array:
        """Held-out values (m, k, T) of targets (n, T), in their precision."""
        xp = namespace(Y)
        b, k, q = self.basis.shape
        # all rows in their order are a view, which spares a copy
        trained = Y if len(self.train) == Y.shape[0] else take(Y, self.train)
        trained = trained if self.coordinates is None else self.coordinates @ trained
        values = xp.reshape(self.basis, (b * k, q)) @ trained
        if self.mixing is None:
            return xp.reshape(values, (b, k, Y.shape[1]))
        mixed = self.mixing @ xp.reshape(values, (b, k * Y.shape[1]))
        return xp.reshape(mixed, (self.mixing.shape[0], k, Y.shape[1]))

    def astype(self, dtype: object) -> HeldOutMap:
        """The same map with its arrays in another precision."""
        arrays = (
            None if part is None else namespace(part).astype(part, dtype)
            for part in (self.basis, self.mixing, self.coordinates)
        )
        return HeldOutMap(self.train, self.tested, *arrays)


def thin_map(spectrum: Spectrum, deletion: Deletion, mus: np.ndarray) -> HeldOutMap:
    """Of a fold of a thin spectrum without negative eigenvalues. O(k q²) for each mu, with q
    columns and k rows deleted, or O(k² q) where that is less.
    """
    deleted, tested = deletion
    xp = namespace(spectrum.Q0)
    columns = xp.concat([spectrum.Q0, spectrum.V], axis=1)
    ones = xp.ones_like(spectrum.Q0[0, :])
    matrices = []
    for mu in np.asarray(mus).tolist():
        f = spectrum.eigenvalues / (spectrum.eigenvalues + mu)
        root = xp.concat([ones, xp.sqrt(f)])
        L = take(columns, deleted) * root
        matrices.append(take(complement_solver(L)(L), tested) * root)
    train = complement(deleted, spectrum.n_samples)
    coordinates = take(columns, train).T
    return HeldOutMap(train, deleted[tested], xp.stack(matrices), None, coordinates)


def held_out_map(train: np.ndarray, tested: np.ndarray, matrices: Array) -> HeldOutMap:
    """From the matrices (m, k, n_Tr) of all mu: their basis."""
    xp, (m, k, n) = namespace(matrices), matrices.shape
    # what depends on others among the matrices does so among their products with a few vectors
    several = min(n, 1 + SKETCH * m // k)
    some = np.random.default_rng(0).normal(size=(n, several))
    flat = xp.reshape(matrices @ asarray_like(some, matrices), (m, -1))
    norms = xp.sqrt(xp.sum(flat**2, axis=1))
    if m == 1 or flat.shape[1] <= m or not bool(xp.all(norms > 0)):
        return HeldOutMap(train, tested, matrices)
    R = xp.linalg.qr((flat / norms[:, None]).T, mode="reduced")[1]
    chosen, mixing = _basis(to_numpy(R))
    if len(chosen) == m:
        return HeldOutMap(train, tested, matrices)
    scale = to_numpy(norms)
    mixing = scale[:, None] * mixing / scale[chosen]
    basis = take(matrices, chosen)
    return HeldOutMap(train, tested, basis, asarray_like(mixing, matrices))


def _basis(R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which columns of R (m, m) the others follow from, and the coefficients (m, b) of all."""
    m = R.shape[1]
    upper, order = scipy.linalg.qr(R, mode="r", pivoting=True)
    size = np.sqrt(np.cumsum((upper**2)[::-1], axis=0)[::-1])  # of what is left, by columns
    left = np.array([np.max(size[j, j:]) for j in range(m)])
    b = max(1, int(np.sum(left > DEPENDENT)))
    coefficients = scipy.linalg.solve_triangular(upper[:b, :b], upper[:b, b:])
    mixing = np.zeros((m, b))
    mixing[order[:b], np.arange(b)] = 1.0
    mixing[order[b:]] = coefficients.T
    return order[:b], mixing
