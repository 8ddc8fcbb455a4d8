r"""Equal values that rounding has told apart are made equal again.

A held-out value y - ρ is right to its accuracy τ, and what is left below τ is rounding that knows
y: of two equal rows the one of the higher class may come out higher by an ulp, and every score that
ranks or thresholds would follow it. So, in sorted order, neighbors closer than τ take one value,

    v_(1) ≤ v_(2) ≤ …        a run goes on while v_(j+1) - v_(j) ≤ τ,  and is at most 4τ wide,

the first of their run, and values within τ of zero, where two classes meet, are zero. No value
moves by more than 4τ, and the order of values that are apart stays.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array, asarray_like, to_numpy

EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 64.0 * EPSILON  # of sums that are told to be equal or zero
WIDEST = 4.0  # of a run, in units of the accuracy: beyond, values are many and not equal


def settled(
    values: np.ndarray, accuracy: np.ndarray, order: np.ndarray | None = None
) -> np.ndarray:
    """Values (…, m) with those closer than their accuracy (…) made equal; `order` sorts them.

    Cost: a sort of every m values, where it is not given.
    """
    if values.shape[-1] == 0:
        return values
    tau = np.asarray(accuracy)[..., None]
    values = np.where(np.abs(values) <= tau, 0.0, values)
    if values.shape[-1] == 1:
        return values
    order = np.argsort(values, axis=-1) if order is None else order
    ranked = np.take_along_axis(values, order, axis=-1)
    with np.errstate(invalid="ignore"):
        step = np.diff(ranked, axis=-1)
        rounding = np.any((step > 0) & (step <= tau), axis=-1)
    if not rounding.any():
        return values
    result = np.array(values)
    tau = np.broadcast_to(tau, (*values.shape[:-1], 1))[rounding]
    result_part = np.empty_like(ranked[rounding])
    np.put_along_axis(result_part, order[rounding], _joined(ranked[rounding], tau), axis=-1)
    result[rounding] = result_part
    return result


def _joined(ranked: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Sorted values (r, m), each the first of its run."""
    with np.errstate(invalid="ignore"):
        apart = ~(np.diff(ranked, axis=-1) <= tau)
        first = np.take_along_axis(ranked, run_starts(apart), axis=-1)
        cell = np.floor(np.where(ranked > first, ranked - first, 0.0) / (WIDEST * tau))
    apart |= np.diff(cell, axis=-1) > 0
    return np.take_along_axis(ranked, run_starts(apart), axis=-1)


def run_starts(apart: np.ndarray) -> np.ndarray:
    """Where the run of each of m sorted values begins (…, m), given which neighbors are apart."""
    numbers = np.arange(1, apart.shape[-1] + 1)
    starts = np.where(apart, numbers, 0)
    starts = np.concatenate([np.zeros_like(starts[..., :1]), starts], axis=-1)
    return np.asarray(np.maximum.accumulate(starts, axis=-1))


def settled_outputs(outputs: Array, accuracy: np.ndarray) -> Array:
    """Outputs (…, k, o) of k rows with ties as exact arithmetic has them, for accuracies (…, o).

    Rows are settled in each column, and of a row the largest columns, which `argmax` compares.
    """
    values = np.swapaxes(to_numpy(outputs), -1, -2)
    values = np.swapaxes(settled(values, accuracy), -1, -2)
    values = levelled(values, accuracy[..., None, :])
    return values if isinstance(outputs, np.ndarray) else asarray_like(values, outputs)


def settled_decisions(decision: Array, size: Array) -> Array:
    """Decisions (k, o) of new rows by one model, with the ties of exact arithmetic, for sums of
    terms that add up to `size` (o,) in absolute value, or less.

    Where rows are held out in closed form the same is done to their decisions, so that both rank
    and threshold alike.
    """
    largest = np.max(np.abs(to_numpy(decision)), axis=0, initial=1.0)
    return settled_outputs(decision, ROUNDING * largest + 2.0 * EPSILON * to_numpy(size))


def settled_sum(total: Array, size: Array) -> Array:
    """Sums (…, o) of terms that add up to `size` in absolute value: those of the same model that
    differ by rounding only are equal, or zero.
    """
    size = ROUNDING * to_numpy(size)
    values = np.where(np.abs(to_numpy(total)) <= size, 0.0, to_numpy(total))
    values = settled(values, np.min(size, axis=-1, initial=np.inf))
    return values if isinstance(total, np.ndarray) else asarray_like(values, total)


def levelled(values: np.ndarray, accuracy: np.ndarray, axis: int = -1) -> np.ndarray:
    """Values with those within their accuracy of the largest along an axis equal to it."""
    if values.shape[axis] == 1:
        return values
    best = np.max(values, axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(best - values <= accuracy, best, values)
