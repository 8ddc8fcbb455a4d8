r"""Prediction intervals for regression: jackknife+, CV+ and jackknife-minmax.

With R_i = |y_i - f₋ᵢ(x_i)|, where f₋ᵢ is the model without row i (or its fold or group), the
jackknife+ interval at a new row x is (Barber, Candès, Ramdas and Tibshirani 2021)

    [ ⌊α(n+1)⌋-th smallest of f₋ᵢ(x) - R_i ,  ⌈(1-α)(n+1)⌉-th smallest of f₋ᵢ(x) + R_i ],

and covers at least 1 - 2α of new rows that are exchangeable with these. The jackknife-minmax
interval,

    [ min f₋ᵢ(x) - q ,  max f₋ᵢ(x) + q ],        q the ⌈(1-α)(n+1)⌉-th smallest R_i,

covers at least 1 - α. All f₋ᵢ(x) need one product: f(x) - h_i(x) ρ_i.
"""

from __future__ import annotations

from ..core.arrays import Array, namespace
from ..core.smoothing import Smoothing
from .left_out import LeftOut
from .order import lower, upper


def jackknife_plus(left: LeftOut, smoothing: Smoothing, f: Array, confidence: float) -> Array:
    """Intervals (m, 2, t) at new rows with the values f (m, t). Memory: m·n·t numbers."""
    xp = namespace(f)
    centre = left.own(left.values(smoothing, f))
    radius = xp.abs(left.residual)[None, :, :]
    below = lower(centre - radius, left.mass, confidence)
    above = upper(centre + radius, left.mass, confidence)
    return xp.stack([below, above], axis=1)


def jackknife_minmax(left: LeftOut, smoothing: Smoothing, f: Array, confidence: float) -> Array:
    """Intervals (m, 2, t), wider than those of `jackknife_plus`."""
    xp = namespace(f)
    centre = left.values(smoothing, f)
    radius = upper(xp.abs(left.residual)[None, :, :], left.mass, confidence)
    below, above = xp.min(centre, axis=1) - radius, xp.max(centre, axis=1) + radius
    return xp.stack([below, above], axis=1)
