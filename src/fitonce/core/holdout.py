r"""Every deletion formula, once: one row, a set of rows, folds, and the fit that is left.

A model is a linear smoother Ŷ = H Y. Where deleting a row also deletes a basis function (the dual
norm), its coefficient α is forced to zero as a refit would have it. Both are one system on the
(row, α) pairs of the deleted rows,

    [ I - H   -B ] [ρ]   [r]
    [  Bᵀ      D ] [ν] = [α]          r = Y - Ŷ,  α = BᵀY, all at the deleted rows,

with ρ the held-out residuals, so that Y - ρ are the held-out values, and ν the forces that hold α
at zero. For the function norm the α part is empty and ρ = (I - H)⁻¹r. Without α for one row,

    ρ = r / (1 - h)        with it        ρ = (d r + b α) / ((1 - h) d + b²),  ν = (α - b ρ) / d,

and for a set

    (I - H + B D⁻¹Bᵀ) ρ = r + B D⁻¹α,        ν = D⁻¹(α - Bᵀρ).

Deleting rows equals replacing their targets by their held-out values and applying the forces, so
the fit without them is a fit of all rows: residuals (I - H)Y* + Bν, coefficients BᵀY* - Dν. The
residual scatter E = Yᵀ(I - H)Y of the rows that remain is a Schur complement,

    E_Tr = E - r_Teᵀρ + α_Teᵀν

(Treder 2019 gives A_Tr = Y_TrᵀY_Tr - E_Tr in another form, which needs one more block).

**Every pair of rows at once.** The system of the pair (i, j) is 2×2 where no α leave, with
M = I - H,

    ρ_i = (M_jj r_i - M_ij r_j) / (M_ii M_jj - M_ij²),

and with α the 4×4 system of two (row, α) pairs, of which D⁻¹ is eliminated first:

    A = M + B D⁻¹Bᵀ,   q = r + B D⁻¹α,   ρ_i = (A_jj q_i - A_ij q_j) / (A_ii A_jj - A_ij²).

Written out in n×n arrays: O(n²) after M, B and D are there, which takes O(n³) once.

**New rows.** The value of a model at a new row x is linear in the targets, and in the forces,

    f(x) = h(x)ᵀY - b(x)ᵀν,

so that the model without a set of rows has, from their held-out residuals ρ and forces ν alone,

    f₋(x) = f(x) - h(x)ᵀρ - b(x)ᵀν            at the left-out rows;  exact, one product for all x.

With the row x itself added to the fit, its leverage is τ/(1 + τ): τ(x) = h(x)ᵀh(x) + (penalty
part) is the variance of f(x) in units of the noise. Adding x with the target z, δ = z - f(x),
gives the deleted residuals of the other rows (function norm)

    e_i(z) = ((1 + τ) r_i - h_i(x) δ) / ((1 + τ)(1 - h_ii) + h_i(x)²),        e_new(z) = δ,

the residuals and leverages of n + 1 rows put into ρ = r/(1 - h).

A `Smoother` supplies a few primitives and inherits everything above. All formulas are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import (
    Array,
    eye_like,
    namespace,
    replace_rows,
    take,
    to_numpy,
    zeros_like_shape,
)
from .ties import ROUNDING

Deletion = tuple[np.ndarray, np.ndarray]  # rows deleted together, and which of them are tested
Solver = Callable[[Array], Array]
TIES = 4.0  # of eps·‖G‖/μ: equal rows have held-out values that differ by less


@dataclass(frozen=True)
class Targets:
    """Targets Y (n, t), scaled as the rows are, and their coordinates z = VᵀY in the basis of a
    smoother, where it has one: made once by `Smoother.project` and used for every mu.
    """

    Y: Array
    z: Array = None


@dataclass(frozen=True)
class Fitted:
    """A smoother applied to targets Y (n, t): residuals Y - HY, the α that leave with their rows
    (n, t) or None, and what was known of the targets for every mu.
    """

    Y: Array
    residual: Array
    dual: Array | None = None
    z: Array = None

    @property
    def values(self) -> Array:
        return self.Y - self.residual


@dataclass(frozen=True)
class Path:
    """What deleting any single row needs, for m values of mu.

    Residuals (m, n, t), the diagonal 1 - h (m, n) and, where α leave with their rows, α (m, n, t)
    and the diagonals b and d (m, n).
    """

    mus: np.ndarray
    residual: Array
    one_minus_h: Array
    dual: Array | None = None
    b: Array | None = None
    d: Array | None = None

    def at(self, mu: float) -> Path:
        """The part of one mu."""
        j = int(np.flatnonzero(self.mus == mu)[0])
        parts = (self.residual, self.one_minus_h, self.dual, self.b, self.d)
        return Path(
            self.mus[j : j + 1],
            *(None if part is None else part[j : j + 1, ...] for part in parts),
        )

    def leave_one_out(self) -> HeldOut:
        """Every row by the model without it: ρ (m, n, t)."""
        one_minus_h, b, d = (
            None if part is None else part[:, :, None]
            for part in (self.one_minus_h, self.b, self.d)
        )
        return delete_each(self.residual, one_minus_h, self.dual, b, d)


@dataclass(frozen=True)
class HeldOut:
    """Held-out residuals ρ = Y - (held-out values), and the forces ν that keep α at zero, beside
    the residuals r and α of the fit that they are made of: (…, k, t) each.
    """

    residual: Any
    force: Any = None
    r: Any = None
    dual: Any = None

    def map(self, change: Callable[..., Array], *others: HeldOut) -> HeldOut:
        """Every array changed, together with the same arrays of others."""
        fields = ("residual", "force", "r", "dual")
        arrays = [[getattr(held, name) for held in (self, *others)] for name in fields]
        return HeldOut(*(None if each[0] is None else change(*each) for each in arrays))

    def each(self) -> HeldOut:
        """Every row as a set of its own, at the single mu: (n, 1, t) of (1, n, t) or (n, t)."""
        return self.map(lambda A: A[..., None, :] if A.ndim == 2 else A[0, :, None, :])

    def lost(self) -> Array:
        """What the residual scatter loses with these rows: rᵀρ - αᵀν (…, t, t)."""
        xp = namespace(self.residual)
        lost = xp.matrix_transpose(self.r) @ self.residual
        if self.force is not None:
            lost = lost - xp.matrix_transpose(self.dual) @ self.force
        return lost


def delete_each(
    r: Any, one_minus_h: Any, dual: Any = None, b: Any = None, d: Any = None
) -> HeldOut:
    """Every row deleted on its own."""
    if dual is None:
        return HeldOut(r / one_minus_h, r=r)
    rho = (d * r + b * dual) / (one_minus_h * d + b * b)
    return HeldOut(rho, (dual - b * rho) / d, r, dual)


@dataclass(frozen=True)
class Removal:
    """A set of k rows to delete at one mu: their system, factored; no label is in it.

    `solve` applies (I - H + B D⁻¹Bᵀ)⁻¹ (k, k), `solve_D` D⁻¹ (k, k), B is (k, k).
    """

    rows: np.ndarray
    solve: Solver
    B: Array | None = None
    solve_D: Solver | None = None

    def held_out(self, fitted: Fitted) -> HeldOut:
        dual = None if fitted.dual is None else take(fitted.dual, self.rows)
        return self.held_out_of(take(fitted.residual, self.rows), dual)

    def held_out_of(self, r: Array, dual: Array | None) -> HeldOut:
        """ρ and ν (k, t) from residuals and α at the deleted rows: O(k²) for each target."""
        if self.B is None or self.solve_D is None:
            return HeldOut(self.solve(r), r=r)
        rho = self.solve(r + self.B @ self.solve_D(dual))
        return HeldOut(rho, self.solve_D(dual - self.B.T @ rho), r, dual)


class Smoother(ABC):
    """A decomposition of the rows, for any mu: first the primitives, then what follows from them.

    `Q0` (n, u) is the orthonormal basis of what is not penalized. `conditioning` over mu is the
    relative error of a held-out value in float64. `largest` and `trace` belong to the eigenvalues
    that mu is added to; mu must exceed `lower_bound`. `has_duals` says that α leave with their
    rows.
    """

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def Q0(self) -> Array: ...
        @property
        def conditioning(self) -> float: ...
        @property
        def largest(self) -> float: ...
        @property
        def trace(self) -> float: ...
        @property
        def lower_bound(self) -> float: ...
        @property
        def has_duals(self) -> bool: ...
    else:
        lower_bound, has_duals = 0.0, False

    @property
    def n_samples(self) -> int:
        return int(self.Q0.shape[0])

    @abstractmethod
    def project(self, Y: Array) -> Targets:
        """Targets (n, t) with everything that does not depend on mu."""

    @abstractmethod
    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        """Residuals and diagonals of all rows for all mu."""

    @abstractmethod
    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        """The fit at one mu, with forces ν (n, t) on the α of some rows if they are given."""

    @abstractmethod
    def leave_out(self, rows: np.ndarray, mu: float) -> Removal:
        """The system of a set of rows, factored."""

    def removals(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Removal]:
        """The same at several mu, one by one."""
        return (self.leave_out(rows, float(mu)) for mu in mus)

    @abstractmethod
    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        """E = Yᵀ(I - H)Y for every mu: (m, t, t)."""

    @abstractmethod
    def residual_map(self, mu: float) -> ResidualMap:
        """I - H as a map of rows of targets."""

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        """log |G + μI| (m,) outside the unpenalized columns, where G is a covariance."""
        raise NotImplementedError

    def admits(self, mus: np.ndarray) -> bool:
        """Whether H exists at every mu."""
        return not np.any(mus <= self.lower_bound)

    def accuracy(self, mu: Any) -> Any:
        """The relative size below which differences of held-out values are rounding, for one mu or
        several.

        ρ = (I - H)⁻¹r at the deleted rows: eps times ‖I - H‖ over the smallest eigenvalue of I - H,
        which is about μ/‖G‖. Frobenius's norms, which every factorization has.
        """
        return ROUNDING + TIES * self.conditioning / mu * self.complement_norm(mu)

    def complement_norm(self, mu: Any) -> Any:
        """‖I - H‖, or one where no eigenvalue is larger."""
        return 1.0

    def can_leave_out(self, n_rows: int) -> bool:
        """Whether deleting this many rows is cheaper than decomposing the rest."""
        return n_rows <= self.n_samples // 2

    def maps_pay(self, n_targets: int, deleting: bool) -> bool:
        """Whether held-out values of this many targets are cheaper with precomputed matrices (see
        `core.held_out_maps`) than with the formulas, of folds or of leave-one-out.
        """
        return n_targets >= 2 * self.n_samples

    def replaced(self, targets: Targets, rows: np.ndarray, rho: Array) -> Targets:
        """The targets with those of the deleted rows replaced by their held-out values."""
        return self.project(replace_rows(targets.Y, rows, take(targets.Y, rows) - rho))

    def fitted(self, targets: Targets, path: Path) -> Fitted:
        """The fit at the single mu of a path of these targets."""
        dual = None if path.dual is None else path.dual[0, ...]
        return Fitted(targets.Y, path.residual[0, ...], dual, targets.z)

    # ---- what follows --------------------------------------------------------------------------

    def leave_one_out(self, targets: Targets, mus: np.ndarray) -> HeldOut:
        """Held-out residuals (m, n, t) of every row, equal to n refits. Cost: that of a path."""
        return self.path(targets, mus).leave_one_out()

    def refit_without(
        self, targets: Targets, removal: Removal, held_out: HeldOut, mu: float
    ) -> Fitted:
        """The fit without the removed rows, as a fit of all rows in which they have no
        influence.
        """
        changed = self.replaced(targets, removal.rows, held_out.residual)
        if held_out.force is None:
            return self.fit(changed, mu)
        zero = zeros_like_shape(tuple(changed.Y.shape), changed.Y)
        return self.fit(changed, mu, replace_rows(zero, removal.rows, held_out.force))

    def held_out_folds(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        """Held-out values (m, k, t) of the tested rows of every deletion, in their order.

        Cost: a system for every fold and mu, O(k² n) where the blocks of H are products.
        """
        xp = namespace(targets.Y)
        fits = [self.fit(targets, float(mu)) for mu in mus]
        folds = [self._held_out_fold(fits, mus, *deletion) for deletion in deletions]
        return xp.concat(folds, axis=1)

    def _held_out_fold(
        self, fits: Sequence[Fitted], mus: np.ndarray, deleted: np.ndarray, tested: np.ndarray
    ) -> Array:
        """Held-out values (m, k, t) of one deletion, from the fits at every mu."""
        values = []
        for fitted, removal in zip(fits, self.removals(deleted, mus), strict=True):
            rho = removal.held_out(fitted).residual
            values.append(take(take(fitted.Y, deleted) - rho, tested))
        return namespace(values[0]).stack(values)


@dataclass(frozen=True)
class ResidualMap:
    """Y → (I - H) Y on rows of targets (B, n): a dense matrix, or V, f, Q₀ of a low rank."""

    dense: Array | None
    thin: tuple[Array, Array, Array] | None = None

    def __call__(self, Y: Array) -> Array:
        if self.thin is None:
            return Y @ self.dense
        V, f, Q0 = self.thin
        # y - Q₀Q₀ᵀy - V f Vᵀy: outside V nothing is small, so nothing cancels
        R = Y - (Y @ Q0) @ Q0.T
        R -= ((Y @ V) * f) @ V.T
        return R


# ---- every pair of rows --------------------------------------------------------------------------


def leave_pairs_out(smoother: Smoother, targets: Targets, mu: float) -> np.ndarray:
    """Held-out residuals (n, n) on the host: [i, j] of row i, where rows i and j are deleted.

    For a single column of targets; on the diagonal row i alone is deleted.
    """
    fitted, unit = smoother.fit(targets, mu), eye_like(smoother.n_samples, smoother.Q0)
    fits = fitted.residual, smoother.fit(smoother.project(unit), mu).residual
    q, cross = (to_numpy(A) for A in fits)
    own = np.diagonal(cross)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # on the diagonal
        if smoother.has_duals:
            forced = smoother.fit(smoother.project(0.0 * unit), mu, unit)
            B, alpha = to_numpy(forced.residual), to_numpy(fitted.dual)
            D = -to_numpy(forced.dual)
            b, d = np.diagonal(B)[:, None], np.diagonal(D)[:, None]
            det = d * d.T - D * D
            on_own, on_other = (b * d.T - B * D) / det, (B * d - b * D) / det  # B D⁻¹ of the pair
            own = own + on_own * b + on_other * B
            cross = cross + on_own * B.T + on_other * b.T
            q = q + on_own * alpha + on_other * alpha.T
        rho = (own.T * q - cross * q.T) / (own * own.T - cross * cross)
    alone = smoother.leave_one_out(targets, np.asarray([mu])).residual
    np.fill_diagonal(rho, to_numpy(alone)[0, :, 0])
    return np.asarray(rho)


# ---- new rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Smoothing:
    """h (m, n) of m new rows, b (m, n) if α leave with their rows, and τ (m,) if requested.

    Targets are scaled as the rows are.
    """

    to_targets: Array
    to_forces: Array | None = None
    excess: Array | None = None

    def map(self, change: Callable[[Array], Array]) -> Smoothing:
        """h and b changed."""
        b = None if self.to_forces is None else change(self.to_forces)
        return Smoothing(change(self.to_targets), b)

    def values(self, Y: Array) -> Array:
        """f(x) (m, t) of the model of all rows: h(x)ᵀY."""
        return self.to_targets @ Y

    def shares(self, held_out: HeldOut) -> Array:
        """The contribution that each training row removes if it leaves (m, n, t): h_i ρ_i + b_i
        ν_i.
        """
        shares = self.to_targets[:, :, None] * held_out.residual[None, :, :]
        if self.to_forces is not None:
            shares = shares + self.to_forces[:, :, None] * held_out.force[None, :, :]
        return shares


@dataclass(frozen=True)
class Lines:
    """Deleted residuals of the n rows as lines in δ, one set for each of m new rows.

    e = at_zero (m, n, t) + slope (m, n) δ, in the units of the targets.
    """

    at_zero: Array
    slope: Array


def deleted_lines(
    smoothing: Smoothing, residual: Array, one_minus_h: Array, row_scale: Array | None
) -> Lines:
    """The deleted residuals of all rows when a new row joins them, from r (n, t) and 1 - h (n,).

    Function norm only: a joining row brings no α of its own.
    """
    h = smoothing.to_targets
    own = 1.0 + smoothing.excess[:, None]  # type: ignore[index]
    denominator = own * one_minus_h[None, :] + h * h
    if row_scale is not None:
        denominator = denominator * row_scale.T
    at_zero = (own / denominator)[:, :, None] * residual[None, :, :]
    return Lines(at_zero, -h / denominator)


def scatter_with(E: Array, delta: Array, excess: Array) -> Array:
    """Yᵀ(I - H)Y (m, t, t) with a new row added: E + δδᵀ/(1 + τ), for δ (m, t) and τ (m,)."""
    xp = namespace(E)
    return E + delta[:, :, None] * delta[:, None, :] / xp.reshape(1.0 + excess, (-1, 1, 1))
