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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .arrays import Array, asarray_like, eigh_overwriting, namespace, spd_solver
from .blocked import symmetric_product
from .spectrum import machine_epsilon


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
    def of(cls, Z: Array, Y: Array, weights: Array | None = None) -> Moments:
        """The moments of a block of features Z (…, k, p) with targets Y (k, t) and weights (k, 1)
        or None. Cost: O(k p²).
        """
        xp = namespace(Z)
        weighted_Z, weighted_Y = (Z, Y) if weights is None else (weights * Z, weights * Y)
        total = float(Y.shape[0]) if weights is None else float(xp.sum(weights))
        return cls(
            weight=total,
            sum_Z=xp.sum(weighted_Z, axis=-2),
            sum_Y=xp.sum(weighted_Y, axis=0),
            ZZ=symmetric_product(weighted_Z, Z),
            ZY=xp.matrix_transpose(weighted_Z) @ Y,
            YY=weighted_Y.T @ Y,
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

    def centred(self) -> tuple[Array, Array, Array]:
        """ZᵀWZ, ZᵀWY and YᵀWY about the weighted means."""
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

    One decomposition, any μ.
    """

    moments: Moments
    free_bias: bool
    lower_bound = 0.0  # every mu > 0 will do

    @cached_property
    def _normal(self) -> tuple[Array, Array, Array]:
        m = self.moments
        return m.centred() if self.free_bias else (m.ZZ, m.ZY, m.YY)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        xp = namespace(self.moments.ZZ)
        eigenvalues, W = eigh_overwriting(self._normal[0] + 0.0)
        return xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues)), W

    @property
    def eigenvalues(self) -> Array:
        return self._eigen[0]

    @property
    def W(self) -> Array:
        return self._eigen[1]

    @cached_property
    def z(self) -> Array:
        """WᵀC (r, t): the targets seen along the eigenvectors."""
        return self.W.T @ self._normal[1]

    def with_targets(self, z: Array, sum_Y: Array, YY: Array) -> MomentFit:
        """The same features with other targets, known by their z, Σwy and YᵀWY."""
        m = self.moments
        ZY = self.W @ z
        if self.free_bias:
            ZY = ZY + m.sum_Z[:, None] * (sum_Y[None, :] / m.weight)
        return MomentFit(replace(m, sum_Y=sum_Y, ZY=ZY, YY=YY), self.free_bias)

    @property
    def target_scatter(self) -> Array:
        """YᵀWY (t, t), about the means where the bias is free."""
        return self._normal[2]

    @cached_property
    def trace(self) -> float:
        return float(namespace(self.eigenvalues).sum(self.eigenvalues))

    @cached_property
    def largest(self) -> float:
        xp = namespace(self.eigenvalues)
        return float(xp.max(self.eigenvalues)) if self.eigenvalues.shape[0] else 0.0

    @property
    def conditioning(self) -> float:
        """eps times ‖λ‖ or the largest of the diagonal of ZᵀWZ, which the means are taken off.

        A single heavy row is in its own mean.
        """
        xp = namespace(self.moments.ZZ)
        before = (
            float(xp.max(xp.linalg.diagonal(self.moments.ZZ))) if self.eigenvalues.shape[0] else 0.0
        )
        return machine_epsilon(self.moments.ZZ) * max(
            float(xp.linalg.vector_norm(self.eigenvalues)), before
        )

    @cached_property
    def mean_Z(self) -> Array:
        """What is taken off the features.

        Their weighted mean where the bias is free, else nothing.
        """
        mean = self.moments.sum_Z / self.moments.weight
        return mean if self.free_bias else namespace(mean).zeros_like(mean)

    @cached_property
    def mean_Y(self) -> Array:
        mean = self.moments.sum_Y / self.moments.weight
        return mean if self.free_bias else namespace(mean).zeros_like(mean)

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
        """The free bias (m, t) that goes with coefficients (m, p, t): ȳ - z̄·w."""
        return self.mean_Y - self.mean_Z @ coef
