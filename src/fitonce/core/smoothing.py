r"""New rows as linear functions of the training targets, and what they say when rows leave.

The value of a model at a new row x is linear in the targets, and in the forces ν that hold some α
at zero (see `holdout`),

    f(x) = h(x)ᵀY - b(x)ᵀν,

so that the model without a set of rows has, from their held-out residuals ρ and forces ν alone,

    f₋(x) = f(x) - h(x)ᵀρ - b(x)ᵀν            at the left-out rows;  exact, one product for all x.

With the row x itself added to the fit, its leverage is τ/(1 + τ): τ(x) = h(x)ᵀh(x) + (penalty
part) is the variance of f(x) in units of the noise. Adding x with the target z, δ = z - f(x),
gives the deleted residuals of the other rows (function norm)

    e_i(z) = ((1 + τ) r_i - h_i(x) δ) / ((1 + τ)(1 - h_ii) + h_i(x)²),        e_new(z) = δ,

the residuals and leverages of n + 1 rows put into ρ = r/(1 - h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .arrays import Array, namespace
from .holdout import HeldOut


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
