r"""Sums over rows from which a least-squares model follows: blocks of rows in, p×p matrices out.

For features Z (k, p), targets Y (k, t) and row weights w the sums

    Σw,   Σ w z,   Σ w y,   ZᵀWZ,   ZᵀWY,   YᵀWY

of two sets of rows add up to those of their union (`merge`), and subtract where one contains the
other (`without`). They are all that a model needs: with the weighted means taken off where the bias
is free,

    A = ZᵀWZ - (Σwz)(Σwz)ᵀ/Σw,   C = ZᵀWY - (Σwz)(Σwy)ᵀ/Σw,   A = W diag(λ) Wᵀ,
    coefficients (A + μI)⁻¹C = W diag(1/(λ+μ)) WᵀC          for every μ from one p×p decomposition.

So the training moments of a fold are the total minus the fold's own, whatever the fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .arrays import Array, asarray_like, eigh_overwriting, namespace, spd_solver
from .blocked import symmetric_product


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of features and targets.

    Features may be a stack (…, k, p): sums of Z are then stacks too, the rest is shared.
    """

    weight: float
    sum_Z: Array
    sum_Y: Array
    ZZ: Array
    ZY: Array
    YY: Array

    @classmethod
    def of(cls, Z: Array, Y: Array, scale: Array | None = None) -> Moments:
        """The moments of a block of features Z (…, k, p) with targets Y (k, t). Cost: O(k p²).

        With weights, `scale` (k, 1) are their roots s, and Y comes scaled: the targets are Y/s.
        """
        xp = namespace(Z)
        s, sZ = (xp.ones_like(Y[:, :1]), Z) if scale is None else (scale, scale * Z)
        Zt = xp.matrix_transpose(sZ)
        return cls(
            weight=float(xp.sum(s**2)),
            sum_Z=(Zt @ s)[..., 0],
            sum_Y=(Y.T @ s)[:, 0],
            ZZ=symmetric_product(sZ),
            ZY=Zt @ Y,
            YY=Y.T @ Y,
        )

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets of rows together."""
        return self._combine(other, 1)

    def without(self, other: Moments) -> Moments:
        """The moments of these rows minus some of them."""
        return self._combine(other, -1)

    def _combine(self, other: Moments, sign: int) -> Moments:
        return Moments(
            self.weight + sign * other.weight,
            self.sum_Z + sign * other.sum_Z,
            self.sum_Y + sign * other.sum_Y,
            self.ZZ + sign * other.ZZ,
            self.ZY + sign * other.ZY,
            self.YY + sign * other.YY,
        )

    def normal(self, free_bias: bool) -> tuple[Array, Array, Array]:
        """ZᵀWZ, ZᵀWY and YᵀWY, about the weighted means where the bias is free."""
        if not free_bias:
            return self.ZZ, self.ZY, self.YY
        return (
            self.ZZ - self.sum_Z[..., :, None] * (self.sum_Z[..., None, :] / self.weight),
            self.ZY - self.sum_Z[..., :, None] * (self.sum_Y[None, :] / self.weight),
            self.YY - self.sum_Y[:, None] * (self.sum_Y[None, :] / self.weight),
        )


def merge_folds(some: Mapping[int, Moments], others: Mapping[int, Moments]) -> dict[int, Moments]:
    """The moments of both sets of rows, fold by fold."""
    both = dict(some)
    for number, moments in others.items():
        both[number] = both[number].merge(moments) if number in both else moments
    return both


@dataclass(frozen=True)
class MomentFit:
    """A = W diag(λ) Wᵀ of some rows' moments, and every model that follows from it.

    One decomposition, any μ: `z` = WᵀC (r, t) are the targets seen along the eigenvectors. The
    weighted means of features and targets are zero where the bias is not free. `entry` is the
    largest of the diagonal of ZᵀWZ, which the means are taken off: a single heavy row is in its own
    mean, and rounding is eps times that.
    """

    eigenvalues: Array
    W: Array
    z: Array
    mean_Z: Array
    mean_Y: Array
    weight: float
    entry: float

    @classmethod
    def of(cls, moments: Moments, free_bias: bool) -> MomentFit:
        xp, (A, C, _) = namespace(moments.ZZ), moments.normal(free_bias)
        eigenvalues, W = eigh_overwriting(A + 0.0)
        eigenvalues = xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues))
        share = float(free_bias) / moments.weight
        means = share * moments.sum_Z, share * moments.sum_Y
        entry = float(xp.max(xp.linalg.diagonal(moments.ZZ)))
        return cls(eigenvalues, W, W.T @ C, *means, moments.weight, entry)

    def inverse(self, mus: np.ndarray) -> Array:
        """1/(λ+μ) (r, m)."""
        return 1.0 / (self.eigenvalues[:, None] + asarray_like(mus, self.eigenvalues))

    def coef(self, mus: np.ndarray, constraint: Array | None = None) -> Array:
        """Coefficients of the features (m, p, t); those that a constraint N w = 0 allows, where N
        (q, p) is given.

        w = Ω(z - Nᵀν) with Ω = (A + μ)⁻¹ and ν = (NΩNᵀ)⁻¹NΩz, in the coordinates of the
        eigenvectors.
        """
        xp = namespace(self.z)
        inverse = self.inverse(mus)
        if constraint is None or constraint.shape[0] == 0:
            return self.W @ (inverse.T[:, :, None] * self.z)
        N = constraint @ self.W
        solutions = []
        for j in range(len(mus)):
            free = inverse[:, j : j + 1] * self.z
            force = spd_solver((N * inverse[:, j]) @ N.T)(N @ free)
            solutions.append(self.W @ (free - inverse[:, j : j + 1] * (N.T @ force)))
        return xp.stack(solutions)

    def intercept(self, coef: Array) -> Array:
        """The bias (m, t) that goes with coefficients (m, p, t): ȳ - z̄·w."""
        return self.mean_Y - self.mean_Z @ coef
