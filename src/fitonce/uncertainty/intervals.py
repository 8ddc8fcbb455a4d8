r"""Prediction intervals for regression: jackknife+, CV+, jackknife-minmax and full conformal.

With R_i = |y_i - f₋ᵢ(x_i)|, where f₋ᵢ is the model without row i (or its fold or group), the
jackknife+ interval at a new row x is (Barber, Candès, Ramdas and Tibshirani 2021)

    [ ⌊α(n+1)⌋-th smallest of f₋ᵢ(x) - R_i ,  ⌈(1-α)(n+1)⌉-th smallest of f₋ᵢ(x) + R_i ],

and covers at least 1 - 2α of new rows that are exchangeable with these. The jackknife-minmax
interval,

    [ min f₋ᵢ(x) - q ,  max f₋ᵢ(x) + q ],        q the ⌈(1-α)(n+1)⌉-th smallest R_i,

covers at least 1 - α. All f₋ᵢ(x) need one product: f(x) - h_i(x) ρ_i.

Both compare |y - f₋ᵢ(x)| of the new row with R_i. *Scaled* intervals compare multiples of the
standard deviation of a new observation in the Gaussian process without row i, σ√μ s₋ᵢ(x),

    s₋ᵢ(x)² = 1 + τ(x) + h_i(x)²/(1 - h_ii),        s₋ᵢ(x_i)² = 1 + h_ii/(w_i (1 - h_ii)),

so that R_i s₋ᵢ(x)/s₋ᵢ(x_i) takes the place of R_i. The guarantees do not depend on what is compared
and stay the same, and the intervals grow away from the training rows.

In full conformal prediction, a new row x joins the fit with the target z = f(x) + δ. The deleted
residuals of all n + 1 rows are linear in δ (see `core.holdout`), that of x itself is δ, and z
belongs to the set if

    1 + #{i: |e_i(δ)| ≥ |δ|} > α (n + 1),          that is  #{…} ≥ k = ⌊α (n + 1)⌋.

|a + cδ| ≥ |δ| holds between the roots of (a + cδ)² = δ², which include 0, if |c| < 1, and outside
them if |c| > 1. So the set is where at least k of these ranges overlap: a sweep over their ends,
O(n log n) for each new row. It covers at least 1 - α of new rows that are exchangeable with these,
without further assumptions (Vovk, Gammerman and Shafer 2005; Burnaev and Vovk 2014 for ridge
regression).
"""

from __future__ import annotations

import numpy as np

from ..core.arrays import Array, namespace
from ..core.holdout import Smoothing
from .left_out import ROUNDING, LeftOut, lower, upper


def _scores(left: LeftOut, scaled: bool, smoothing: Smoothing) -> tuple[Array, Array]:
    """R_i (1, n, t) and what multiplies them at new rows (m, n, 1), which is one; if `scaled`,
    R_i/s₋ᵢ(x_i) and s₋ᵢ(x).
    """
    xp, radius = namespace(left.residual), namespace(left.residual).abs(left.residual)[None, :, :]
    if not scaled or smoothing.excess is None:
        return radius, xp.ones_like(radius[:, :1, :1])
    o = left.path.one_minus_h[0, :]
    own = xp.sqrt(1.0 + (1.0 - o) / (left.problem.row_weights[:, 0] * o))
    new = xp.sqrt(1.0 + smoothing.excess[:, None] + smoothing.to_targets**2 / o)
    return radius / own[None, :, None], new[:, :, None]


def jackknife(
    left: LeftOut, confidence: float, minmax: bool, scaled: bool, smoothing: Smoothing, f: Array
) -> Array:
    """Intervals (m, 2, t) at new rows with the values f (m, t): jackknife+, or the wider ones of
    jackknife-minmax. Memory: m·n·t numbers.
    """
    xp, centre = namespace(f), left.values(smoothing, f)
    score, unit = _scores(left, scaled, smoothing)
    if minmax:
        radius = upper(score, left.mass, confidence)[:, None, :] * unit
        return xp.stack([xp.min(centre - radius, axis=1), xp.max(centre + radius, axis=1)], axis=1)
    centre, radius = left.own(centre), score * unit
    below = lower(centre - radius, left.mass, confidence)
    return xp.stack([below, upper(centre + radius, left.mass, confidence)], axis=1)


def needed(confidence: float, n: int) -> int:
    """k = ⌊α(n + 1)⌋, α = 1 - confidence."""
    return int(np.floor((1.0 - confidence) * (n + 1) + ROUNDING))


def conformal_sets(at_zero: np.ndarray, slope: np.ndarray, confidence: float) -> list[np.ndarray]:
    """The set of δ of each new row as intervals (k, 2), from lines at_zero, slope (m, n)."""
    m, n = at_zero.shape
    k = needed(confidence, n)
    if k == 0:
        return [np.array([[-np.inf, np.inf]])] * m
    starts, ends = _ranges(at_zero, slope)
    places = np.concatenate([starts, ends], axis=1)
    change = np.where(np.isnan(places), 0, np.repeat([1, -1], 2 * n))
    # a stable sort lets ranges begin before others end at the same place, since they are closed
    order = np.argsort(places, axis=1, kind="stable")
    places = np.take_along_axis(places, order, axis=1)
    count = np.cumsum(np.take_along_axis(change, order, axis=1), axis=1)
    inside = count >= k
    before = np.concatenate([np.zeros((m, 1), dtype=bool), inside[:, :-1]], axis=1)
    begins, stops = inside & ~before, before & ~inside
    return [
        np.column_stack([places[row, begins[row]], places[row, stops[row]]]) for row in range(m)
    ]


def _ranges(a: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where |a + cδ| ≥ |δ|: begins and ends (m, 2n) of closed ranges, NaN if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = a / (1.0 - c), -a / (1.0 + c)
    # a line parallel to |δ| meets it once; its other root is at infinity on the higher side
    one = np.where(c == 1.0, np.copysign(np.inf, a), one)
    other = np.where(c == -1.0, np.copysign(np.inf, -a), other)
    low, high = np.minimum(one, other), np.maximum(one, other)
    steep = np.abs(c) > 1.0
    nothing = np.full_like(a, np.nan)
    starts = np.concatenate([np.where(steep, -np.inf, low), np.where(steep, high, nothing)], axis=1)
    ends = np.concatenate([np.where(steep, low, high), np.where(steep, np.inf, nothing)], axis=1)
    return starts, ends


def hull(sets: list[np.ndarray]) -> np.ndarray:
    """The smallest interval (m, 2) around each set."""
    return np.array([[part[0, 0], part[-1, 1]] for part in sets])
