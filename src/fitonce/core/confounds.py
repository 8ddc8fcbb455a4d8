r"""The basis of confounds: what is free of a penalty beside a bias, and when rows can leave it.

Confounds C (n, q) and a constant have the orthonormal basis Q₀ = [s/‖s‖, U], where s are the square
roots of the row weights and U comes from the rows of C minus their weighted mean, scaled by s:

    s∘(C - c̄)D = U diag(σ) Wᵀ,       coefficients D W diag(1/σ) UᵀY, as LinearRegression's,

where D brings columns to a common size, so that rank does not depend on units; it is one for the
levels of a category, whose coefficients are of least norm.

The model without them is a signed sum: see `sum_of_smoothers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import Array, asarray_like, namespace, take, to_numpy
from .spectrum import machine_epsilon

REGULAR = 1e-6  # the least eigenvalue of Q₀ᵀQ₀ at the rows that remain: below, C loses rank there


@dataclass(frozen=True)
class ConfoundBasis:
    """The basis of confounds and a constant on n rows; no label is in it.

    `bias` (n, 1) is s/‖s‖, `U` (n, r) the rest of Q₀, `to_coef` (q, r) makes coefficients of C of
    coordinates in U, `centre` (q,) is the weighted mean of C.
    """

    bias: Array
    U: Array
    to_coef: Array
    centre: Array
    norm: float  # ‖s‖
    C: Array

    @classmethod
    def of(cls, C: Array, row_scale: Array | None) -> ConfoundBasis:
        """Of confounds (n, q) and the square roots of row weights (n, 1). Cost: O(n q²)."""
        xp = namespace(C)
        s = xp.ones_like(C[:, :1]) if row_scale is None else row_scale
        total = xp.sum(s**2)
        centre = xp.sum(s**2 * C, axis=0) / total
        bias = s / xp.sqrt(total)
        eps = max(C.shape) * machine_epsilon(C)
        unit, digits = _units(C, C - centre, eps)
        U, sigma, Wt = xp.linalg.svd(s * (C - centre) * unit, full_matrices=False)
        host = to_numpy(sigma)
        size = max(float(host[0]), digits * float(xp.max(s))) if len(host) else 0.0
        kept = np.flatnonzero(host > eps * size)
        U = take(U.T, kept).T
        to_coef = unit[:, None] * take(Wt, kept).T / take(sigma, kept)
        return cls(bias, U, to_coef, centre, float(xp.sqrt(total)), C)

    @cached_property
    def Q0(self) -> Array:
        """(n, 1 + r), the bias first."""
        return namespace(self.U).concat([self.bias, self.U], axis=1)

    def coef(self, beta: Array) -> Array:
        """Coefficients of C (q, t) from coordinates of Q₀ (u, t)."""
        return self.to_coef @ beta[1:, :]

    def of_rows(self, C: Array) -> Array:
        """The basis at other rows (m, u), of which Q₀ has the roots of weights as well."""
        xp = namespace(C)
        constant = xp.ones_like(C[:, :1]) / self.norm
        return xp.concat([constant, (C - self.centre) @ self.to_coef], axis=1)

    # ---- which deletions have a closed form ----------------------------------------------------

    def keeps_rank(self, deleted: np.ndarray) -> bool:
        """Whether C has the rank of all rows on those that remain."""
        Q = take(self.Q0, deleted)
        left = np.eye(int(Q.shape[1])) - to_numpy(Q.T @ Q)
        return bool(np.linalg.eigvalsh(left)[0] > REGULAR)

    @cached_property
    def full_leverage_rows(self) -> np.ndarray:
        """The rows without any one of which C loses rank: the only ones of their level."""
        leverage = namespace(self.U).sum(self.Q0**2, axis=1)
        return np.flatnonzero(1.0 - to_numpy(leverage) <= REGULAR)


def _units(C: Array, deviation: Array, eps: float) -> tuple[Array, float]:
    """What brings the deviations of each column to at most one: powers of two (q,), one for the
    levels of categories, zero for columns that are constant but for rounding. And the largest size
    of a column in these units, whose rounding limits the rank; no more than half of the digits.
    """
    found, size = (to_numpy(namespace(C).max(abs(A), axis=0)) for A in (deviation, C))
    varies = found > np.maximum(eps * size, np.finfo(np.float64).tiny)
    spread = np.where(varies, found, 1.0)
    unit = np.where(varies, 2.0 ** -(np.floor(np.log2(spread)) + 1.0), 0.0)
    digits = float(np.max(size * unit, initial=0.0))
    return asarray_like(unit, C), min(digits, eps**-0.5)
