r"""Confounds: the basis of what is free of a penalty beside a bias, and models without them as
signed sums.

Confounds C (n, q) and a constant have the orthonormal basis Q₀ = [s/‖s‖, U], where s are the square
roots of the row weights and U comes from the rows of C minus their weighted mean, scaled by s:

    s∘(C - c̄)D = U diag(σ) Wᵀ,       coefficients D W diag(1/σ) UᵀY, as LinearRegression's,

where D brings columns to a common size, so that rank does not depend on units; it is one for the
levels of a category, whose coefficients are of least norm.

**Signed sums** of smoothers of the same rows, H = Σ ±H_k. Everything that is linear in the targets
is the sum of the terms: residuals, the residual scatter, leverages, and held-out values, each of a
term from which the rows are deleted by itself,

    ρ = Σ ±ρ_k,        ρ_k = (I - H_k)⁻¹ r_k at the deleted rows.

The signs add up to one, so that the residuals of the sum are the sum of the residuals.

**Confounds removed.** The constant alone has the basis q₁ (times the roots of row weights). The
joint model of confounds and features has H_J = Q₀Q₀ᵀ + V diag(f) Vᵀ, V ⟂ Q₀ (see `spectrum`). The
features minus what C explains of them, in feature space, have the kernel
(I - Q₀Q₀ᵀ)K(I - Q₀Q₀ᵀ), so that their own model with a free bias has

    H = q₁q₁ᵀ + V diag(f) Vᵀ = H_J - Q₀Q₀ᵀ + q₁q₁ᵀ,

and without some rows each term is what it is on the others. Exact for the function norm; the dual
norm's kernel functions change with the rows that train, so that its H holds for all rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from .arrays import Array, asarray_like, eye_like, namespace, take, to_numpy
from .holdout import (
    Deletion,
    Fitted,
    HeldOut,
    Path,
    Removal,
    ResidualMap,
    Smoother,
    Smoothing,
    Targets,
)
from .smoothers import FunctionNorm
from .spectrum import Spectrum, machine_epsilon

REGULAR = 1e-6  # the least eigenvalue of Q₀ᵀQ₀ at the rows that remain: below, C loses rank there
Signs = tuple[float, ...]


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


# ---- signed sums ---------------------------------------------------------------------------------


def signed(signs: Signs, parts: Sequence[Any]) -> Any:
    """Σ ± of arrays."""
    return sum(sign * part for sign, part in zip(signs[1:], parts[1:], strict=True)) + parts[0]


@dataclass(frozen=True)
class Sum(Smoother):
    """H = Σ ±H_k; the first term has the sign +, and decides what mu means.

    What its terms say is kept beside the sums, as `parts`.
    """

    terms: tuple[Smoother, ...]
    signs: Signs

    @property
    def Q0(self) -> Array:
        """What is free in the sum: in its last term."""
        return self.terms[-1].Q0

    @property
    def conditioning(self) -> float:
        return self.terms[0].conditioning

    @property
    def largest(self) -> float:
        return self.terms[0].largest

    @property
    def trace(self) -> float:
        return self.terms[0].trace

    @property
    def lower_bound(self) -> float:
        return self.terms[0].lower_bound

    @property
    def has_duals(self) -> bool:
        return self.terms[0].has_duals

    def admits(self, mus: np.ndarray) -> bool:
        return self.terms[0].admits(mus)

    def can_leave_out(self, n_rows: int) -> bool:
        return self.terms[0].can_leave_out(n_rows)

    def project(self, Y: Array) -> Targets:
        return Targets(Y, [term.project(Y) for term in self.terms])

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        parts = [term.path(own, mus) for term, own in self._with(targets)]
        return SumPath.of(self.signs, parts)

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        return self._fitted(targets, [term.fit(own, mu) for term, own in self._with(targets)])

    def fitted(self, targets: Targets, path: Path) -> Fitted:
        assert isinstance(path, SumPath)
        each = zip(self._with(targets), path.parts, strict=True)
        return self._fitted(targets, [term.fitted(own, part) for (term, own), part in each])

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        scatters = [term.residual_scatter(own, mus) for term, own in self._with(targets)]
        return signed(self.signs, scatters)

    def residual_map(self, mu: float) -> ResidualMap:
        H = smoothing_of_rows(self, mu).to_targets
        return ResidualMap(eye_like(self.n_samples, H) - H)

    def leave_out(self, rows: np.ndarray, mu: float) -> Removal:
        parts = [term.leave_out(rows, mu) for term in self.terms]
        return SumRemoval(rows, parts[0].solve, signs=self.signs, parts=parts)

    def refit_without(
        self, targets: Targets, removal: Removal, held_out: HeldOut, mu: float
    ) -> Fitted:
        """Each term without the rows; `Y` is as it was, since each term changes it in its way."""
        assert isinstance(removal, SumRemoval) and isinstance(held_out, SumHeldOut)
        each = zip(self._with(targets), removal.parts, held_out.parts, strict=True)
        parts = [term.refit_without(own, gone, held, mu) for (term, own), gone, held in each]
        values = signed(self.signs, [part.values for part in parts])
        return SumFitted(targets.Y, targets.Y - values, parts=parts)

    def held_out_folds(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        values = [term.held_out_folds(own, mus, deletions) for term, own in self._with(targets)]
        return signed(self.signs, values)

    def _with(self, targets: Targets) -> Iterable[tuple[Smoother, Targets]]:
        """Each term with its own view of the targets."""
        return zip(self.terms, targets.z, strict=True)

    def _fitted(self, targets: Targets, parts: Sequence[Fitted]) -> Fitted:
        residual = signed(self.signs, [part.residual for part in parts])
        return SumFitted(targets.Y, residual, parts=parts)


@dataclass(frozen=True)
class OfTerms:
    """What the terms of a sum say, kept beside it."""

    signs: Signs = ()
    parts: Sequence[Any] = ()


@dataclass(frozen=True)
class SumFitted(OfTerms, Fitted):
    """The fit of a sum."""


@dataclass(frozen=True)
class SumHeldOut(OfTerms, HeldOut):
    """Held-out residuals of a sum."""

    @classmethod
    def of(cls, signs: Signs, parts: Sequence[HeldOut]) -> SumHeldOut:
        return cls(signed(signs, [part.residual for part in parts]), signs=signs, parts=parts)

    def map(self, change: Callable[..., Array], *others: HeldOut) -> HeldOut:
        each = zip(self.parts, *(cast(SumHeldOut, other).parts for other in others), strict=True)
        return SumHeldOut.of(self.signs, [part.map(change, *rest) for part, *rest in each])

    def lost(self) -> Array:
        return signed(self.signs, [part.lost() for part in self.parts])


@dataclass(frozen=True)
class SumPath(OfTerms, Path):
    """The path of a sum."""

    @classmethod
    def of(cls, signs: Signs, parts: Sequence[Path]) -> SumPath:
        residual = signed(signs, [part.residual for part in parts])
        one_minus_h = signed(signs, [part.one_minus_h for part in parts])
        return cls(parts[0].mus, residual, one_minus_h, signs=signs, parts=parts)

    def at(self, mu: float) -> Path:
        return SumPath.of(self.signs, [part.at(mu) for part in self.parts])

    def leave_one_out(self) -> HeldOut:
        return SumHeldOut.of(self.signs, [part.leave_one_out() for part in self.parts])


@dataclass(frozen=True)
class SumRemoval(OfTerms, Removal):
    """Rows that leave a sum: each of its terms."""

    def held_out(self, fitted: Fitted) -> HeldOut:
        assert isinstance(fitted, SumFitted)
        each = zip(self.parts, fitted.parts, strict=True)
        return SumHeldOut.of(self.signs, [part.held_out(own) for part, own in each])


@dataclass(frozen=True)
class SumSmoothing(OfTerms, Smoothing):
    """New rows as functions of the targets in a sum."""

    @classmethod
    def of(cls, signs: Signs, parts: Sequence[Smoothing]) -> SumSmoothing:
        h = signed(signs, [part.to_targets for part in parts])
        return cls(h, signs=signs, parts=parts)

    def map(self, change: Callable[[Array], Array]) -> Smoothing:
        return SumSmoothing.of(self.signs, [part.map(change) for part in self.parts])

    def shares(self, held_out: HeldOut) -> Array:
        assert isinstance(held_out, SumHeldOut)
        each = zip(self.parts, held_out.parts, strict=True)
        return signed(self.signs, [part.shares(held) for part, held in each])


def smoothing_of_rows(smoother: Smoother, mu: float) -> Smoothing:
    """h and b of the training rows themselves (n, n), scaled as they are: Ŷ = HY - Bν."""
    if isinstance(smoother, Sum):
        parts = [smoothing_of_rows(term, mu) for term in smoother.terms]
        return SumSmoothing.of(smoother.signs, parts)
    unit = eye_like(smoother.n_samples, smoother.Q0)
    H = smoother.fit(smoother.project(unit), mu).values
    if not smoother.has_duals:
        return Smoothing(H)
    return Smoothing(H, smoother.fit(smoother.project(0.0 * unit), mu, unit).residual)


def projection(Q0: Array) -> Smoother:
    """Least squares on orthonormal columns (n, u): H = Q₀Q₀ᵀ at every mu."""
    none = Spectrum(Q0[:, :0], Q0[0, :0], Q0)
    return FunctionNorm(none, namespace(Q0).zeros_like(Q0))
