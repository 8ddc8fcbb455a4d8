"""Order statistics with a guarantee; infinite if they do not exist."""

from __future__ import annotations

import numpy as np

from ..core.arrays import Array, asarray_like, is_numpy, namespace, to_numpy

ROUNDING = 1e-9  # tolerance for a share of rows to be an integer: 0.9 · 10 is not above 9


def upper(values: Array, mass: np.ndarray, confidence: float) -> Array:
    """The smallest value (m, …) of (m, n, …) such that the rows at or below it have the mass
    `confidence`; infinite if all rows together have less. The values may be put into another order.
    """
    if np.all(mass == mass[0]):
        return _ranked(values, int(np.ceil(confidence / mass[0] - ROUNDING)))
    host = to_numpy(values)
    order = np.argsort(host, axis=1, kind="stable")
    reached = np.cumsum(mass[order], axis=1) >= confidence - ROUNDING
    first = np.argmax(reached, axis=1)[:, None]
    ranked = np.take_along_axis(np.take_along_axis(host, order, axis=1), first, axis=1)[:, 0]
    result = np.where(reached.any(axis=1), ranked, np.inf)
    return result if is_numpy(values) else asarray_like(result, values)


def lower(values: Array, mass: np.ndarray, confidence: float) -> Array:
    """The largest value such that the rows at or above it have the mass `confidence`, or
    -infinity. The values may be put into another order.
    """
    return -upper(-values, mass, confidence)


def _ranked(values: Array, rank: int) -> Array:
    """The rank-th smallest along the second axis, in place."""
    xp = namespace(values)
    if rank > values.shape[1]:
        return xp.full_like(values[:, 0, ...], xp.inf)
    if is_numpy(values):
        values.partition(rank - 1, axis=1)
        return values[:, rank - 1, ...]
    return xp.sort(values, axis=1)[:, rank - 1, ...]
