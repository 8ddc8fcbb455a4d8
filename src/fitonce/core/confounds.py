r"""Least squares on confounds alone: what is taken away where they are removed.

Confounds C (n, q) and a constant have the orthonormal basis Q₀ = [s/‖s‖, U], where s are the square
roots of the row weights and U comes from the rows of C minus their weighted mean, scaled by s:

    s∘(C - c̄)D = U diag(σ) Wᵀ,       coefficients D W diag(1/σ) UᵀY, as LinearRegression's,

where D brings columns to a common size, so that rank does not depend on units; it is one for the
levels of a category, whose coefficients are of least norm.

The joint model of confounds and features has H_J = Q₀Q₀ᵀ + V diag(f) Vᵀ, V ⟂ Q₀ (see `spectrum`).
The features minus what C explains of them, in feature space, have the kernel
(I - Q₀Q₀ᵀ)K(I - Q₀Q₀ᵀ), so that their own model with a free bias has

    H = 11ᵀ/n + V diag(f) Vᵀ = H_J - Q₀Q₀ᵀ + 11ᵀ/n.

Each term is the hat matrix of a least-squares model. Without some rows the first is a deletion of
`holdout`; the other two are their *part*, what C alone predicts beyond the mean,

    part = Q₀β - (s/‖s‖)β₁,      β = (I - Q₀ᵀQ₀)⁻¹(Q₀ᵀY - Q₀ᵀY_Te),  Q₀ at the deleted rows,

with β₁ the same for the first column alone. Held-out and new training values are those of the joint
model minus the part, and the residual scatter is that of the joint model plus what the part
explains. All of it is exact for the function norm; the dual norm's kernel functions change with
the rows that train.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import Array, asarray_like, eye_like, namespace, spd_solver, take, to_numpy
from .spectrum import machine_epsilon

REGULAR = 1e-6  # the least eigenvalue of Q₀ᵀQ₀ at the rows that remain: below, C loses rank there


@dataclass(frozen=True)
class ConfoundFit:
    """Targets (n, t) regressed on the confounds of some rows: coordinates β (u, t) of Q₀, those of
    their mean (1, t), and what the confounds explain beyond it, a scatter (t, t).
    """

    beta: Array
    mean: Array
    explained: Array


@dataclass(frozen=True)
class ConfoundRegression:
    """The basis of confounds and a constant on n rows; no label is in it.

    `bias` (n, 1) is s/‖s‖, `U` (n, r) the rest of Q₀, `to_coef` (q, r) makes coefficients of C of
    coordinates in U, `centre` (q,) is the weighted mean of C.
    """

    bias: Array
    U: Array
    to_coef: Array
    centre: Array
    norm: float  # ‖s‖

    @classmethod
    def of(cls, C: Array, row_scale: Array | None) -> ConfoundRegression:
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
        return cls(bias, U, to_coef, centre, float(xp.sqrt(total)))

    @cached_property
    def Q0(self) -> Array:
        """(n, 1 + r), the bias first."""
        return namespace(self.U).concat([self.bias, self.U], axis=1)

    def coef(self, beta: Array) -> Array:
        """Coefficients of C (q, t) from coordinates of Q₀ (u, t)."""
        return self.to_coef @ beta[1:, :]

    # ---- which deletions have a closed form ----------------------------------------------------

    def keeps_rank(self, deleted: np.ndarray) -> bool:
        """Whether C has the rank of all rows on those that remain."""
        Q = take(self.Q0, deleted)
        left = np.eye(int(Q.shape[1])) - to_numpy(Q.T @ Q)
        return bool(np.linalg.eigvalsh(left)[0] > REGULAR)

    @cached_property
    def lonely(self) -> np.ndarray:
        """The rows without any one of which C loses rank: the only ones of their level."""
        return np.flatnonzero(1.0 - to_numpy(self._leverages)[:, 1] <= REGULAR)

    @cached_property
    def _leverages(self) -> Array:
        """Diagonals (n, 2) of the projections on the bias and on Q₀."""
        xp = namespace(self.U)
        own = self.bias**2
        return xp.concat([own, own + xp.sum(self.U**2, axis=1, keepdims=True)], axis=1)

    # ---- the part of the confounds -------------------------------------------------------------

    def fit(self, Y: Array, deleted: np.ndarray | None = None) -> ConfoundFit:
        """Targets (n, t) regressed on C, of all rows or without those deleted: O(n u t)."""
        along = self.Q0.T @ Y
        if deleted is None:
            return ConfoundFit(along, along[:1, :], along[1:, :].T @ along[1:, :])
        Q, Y_deleted = take(self.Q0, deleted), take(Y, deleted)
        along = along - Q.T @ Y_deleted
        left = eye_like(int(Q.shape[1]), Q) - Q.T @ Q
        beta = spd_solver(left)(along)
        mean = along[:1, :] / left[0, 0]
        return ConfoundFit(beta, mean, along.T @ beta - along[:1, :].T @ mean)

    def part(self, fit: ConfoundFit, rows: np.ndarray | None = None) -> Array:
        """Q₀β - (s/‖s‖)β₁ at some rows (k, t)."""
        Q, bias = self.Q0, self.bias
        if rows is not None:
            Q, bias = take(Q, rows), take(bias, rows)
        return Q @ fit.beta - bias @ fit.mean

    def part_each(self, Y: Array) -> Array:
        """The part at every row (n, t) by the regression without it: ρ of the mean minus that of
        Q₀, both r/(1 - h).
        """
        of_mean, of_all = self._residuals(Y)
        left = self._left_each
        return of_mean / left[:, :1] - of_all / left[:, 1:]

    def explained_each(self, Y: Array) -> Array:
        """What the part explains without each row (n, t, t): E of the mean less E of Q₀, of the
        rows that remain, each E - r_i r_iᵀ/(1 - h_i).
        """
        of_mean, of_all = self._residuals(Y)
        left = self._left_each
        E = Y.T @ (of_mean - of_all)
        outer = of_mean[:, :, None] * (of_mean / left[:, :1])[:, None, :]
        return E - outer + of_all[:, :, None] * (of_all / left[:, 1:])[:, None, :]

    def _residuals(self, Y: Array) -> tuple[Array, Array]:
        of_mean = Y - self.bias @ (self.bias.T @ Y)
        return of_mean, of_mean - self.U @ (self.U.T @ Y)

    @property
    def _left_each(self) -> Array:
        """1 - h (n, 2), or one where C loses rank and nothing is to be divided by."""
        left = 1.0 - to_numpy(self._leverages)
        return asarray_like(np.where(left > REGULAR, left, 1.0), self.U)


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


__all__ = ["ConfoundFit", "ConfoundRegression"]
