r"""A signed sum of smoothers of the same rows: H = Σ ±H_k.

Everything that is linear in the targets is the sum of the terms: residuals, the residual scatter,
leverages, and held-out values, each of a term from which the rows are deleted by itself,

    ρ = Σ ±ρ_k,        ρ_k = (I - H_k)⁻¹ r_k at the deleted rows.

The signs add up to one, so that the residuals of the sum are the sum of the residuals.

**Confounds removed.** Confounds C and a constant have the orthonormal basis Q₀, the constant alone
q₁ (times the roots of row weights). The joint model of confounds and features has H_J = Q₀Q₀ᵀ +
V diag(f) Vᵀ, V ⟂ Q₀ (see `spectrum`). The features minus what C explains of them, in feature space,
have the kernel (I - Q₀Q₀ᵀ)K(I - Q₀Q₀ᵀ), so that their own model with a free bias has

    H = q₁q₁ᵀ + V diag(f) Vᵀ = H_J - Q₀Q₀ᵀ + q₁q₁ᵀ,

and without some rows each term is what it is on the others. Exact for the function norm; the dual
norm's kernel functions change with the rows that train, so that its H holds for all rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .arrays import Array, eye_like, namespace
from .holdout import (
    Deletion,
    Fitted,
    HeldOut,
    Path,
    Removal,
    ResidualMap,
    Smoother,
    Targets,
)
from .smoothers import FunctionNorm
from .smoothing import Smoothing
from .spectrum import Spectrum

Signs = tuple[float, ...]


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
class SumFitted(Fitted):
    """The fit of a sum, with those of its terms."""

    parts: Sequence[Fitted] = ()


@dataclass(frozen=True)
class SumHeldOut(HeldOut):
    """Held-out residuals of a sum, with those of its terms."""

    signs: Signs = ()
    parts: Sequence[HeldOut] = ()

    @classmethod
    def of(cls, signs: Signs, parts: Sequence[HeldOut]) -> SumHeldOut:
        return cls(signed(signs, [part.residual for part in parts]), signs=signs, parts=parts)

    def map(self, change: Callable[..., Array], *others: HeldOut) -> HeldOut:
        each = zip(self.parts, *(cast(SumHeldOut, other).parts for other in others), strict=True)
        return SumHeldOut.of(self.signs, [part.map(change, *rest) for part, *rest in each])

    def lost(self) -> Array:
        return signed(self.signs, [part.lost() for part in self.parts])


@dataclass(frozen=True)
class SumPath(Path):
    """The path of a sum, with those of its terms."""

    signs: Signs = ()
    parts: Sequence[Path] = ()

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
class SumRemoval(Removal):
    """Rows that leave a sum: each of its terms."""

    signs: Signs = ()
    parts: Sequence[Removal] = ()

    def held_out(self, fitted: Fitted) -> HeldOut:
        assert isinstance(fitted, SumFitted)
        each = zip(self.parts, fitted.parts, strict=True)
        return SumHeldOut.of(self.signs, [part.held_out(own) for part, own in each])


@dataclass(frozen=True)
class SumSmoothing(Smoothing):
    """New rows as functions of the targets in a sum, and in each of its terms."""

    signs: Signs = ()
    parts: Sequence[Smoothing] = ()

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


def with_columns_removed(joint: Smoother, Q0: Array) -> Sum:
    """The model of what Q₀ (n, u) leaves of the features, from the joint model in which it is free:
    H_J - Q₀Q₀ᵀ + q₁q₁ᵀ, q₁ the first column.
    """
    return Sum((joint, projection(Q0), projection(Q0[:, :1])), (1.0, -1.0, 1.0))
