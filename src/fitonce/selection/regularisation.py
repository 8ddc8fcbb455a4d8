"""The regularisation value with the least held-out squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core._arrays import Array, namespace, take, to_numpy
from ..core.smoother import Smoother

STEPS = np.arange(-24, 17, 2)  # exponents of two around the scale of the Gram matrix: 21 candidates
TIE = 1e-9  # criteria closer than this (relative) are equal, and the larger alpha wins
MAX_ELEMENTS = 1 << 24  # held-out values computed at a time


Fold = tuple[np.ndarray, np.ndarray]  # the rows deleted, and the positions among them of the rows tested


@dataclass(frozen=True)
class Choice:
    """The candidates tried, ascending, the held-out mean squared error of each, and the number of the winner."""

    candidates: np.ndarray
    errors: np.ndarray
    best: int

    @property
    def alpha(self) -> float:
        return float(self.candidates[self.best])

    @property
    def error(self) -> float:
        return float(self.errors[self.best])


def default_candidates(smoother: Smoother, total_weight: float) -> np.ndarray:
    """Powers of four from 2^-24 to 2^16 times the size of the Gram matrix, trace(G)/Σw, rounded to a power of two.

    A lattice rather than multiples of the trace itself: training sets that differ by a few rows then try the
    same values.
    """
    scale = smoother.trace / total_weight
    centre = int(np.round(np.log2(scale))) if scale > 0 and np.isfinite(scale) else 0
    candidates = 2.0 ** (centre + STEPS)
    allowed = candidates > 2.0 * smoother.lower_bound
    return candidates[allowed] if allowed.any() else smoother.lower_bound * 2.0 ** np.arange(1, 18, 2)


def choose_alpha(
    smoother: Smoother,
    Y: Array,
    candidates: np.ndarray,
    row_weights: Array,
    folds: list[Fold] | None,
) -> Choice:
    """Try each candidate; the least held-out squared error wins, and of equals the largest alpha.

    `folds` says what is deleted together and what of it is tested; None is leave-one-out, at O(n²) per candidate. Y comes scaled
    by the roots of the row weights, so that sums of squares are weighted.
    """
    candidates = np.unique(candidates)
    if folds is None:
        errors = _leave_one_out_errors(smoother, Y, candidates)
        total = float(namespace(Y).sum(row_weights))
    else:
        errors = _fold_errors(smoother, Y, candidates, folds)
        total = sum(float(namespace(Y).sum(take(row_weights, deleted[tested]))) for deleted, tested in folds)
    errors = errors / (total * Y.shape[1])
    finite = np.where(np.isfinite(errors), errors, np.inf)
    if not np.isfinite(finite).any():
        raise ValueError("the held-out squared error is not finite for any alpha; scale the targets or use larger candidates.")
    best = int(np.flatnonzero(finite <= finite.min() * (1 + TIE))[-1])
    return Choice(candidates, errors, best)


def _leave_one_out_errors(smoother: Smoother, Y: Array, candidates: np.ndarray) -> np.ndarray:
    xp = namespace(Y)
    chunk = max(1, MAX_ELEMENTS // (Y.shape[0] * Y.shape[1]))
    errors = []
    for start in range(0, len(candidates), chunk):
        residual = smoother.leave_one_out(Y, candidates[start : start + chunk]).residual
        errors.append(to_numpy(xp.sum(residual**2, axis=(1, 2))))
    return np.concatenate(errors)


def _fold_errors(smoother: Smoother, Y: Array, candidates: np.ndarray, folds: list[Fold]) -> np.ndarray:
    xp = namespace(Y)
    errors = np.zeros(len(candidates))
    for number, mu in enumerate(candidates):
        fitted = smoother.fit(Y, float(mu))
        for rows, tested in folds:
            residual = smoother.leave_out(rows, float(mu)).held_out(fitted).residual
            errors[number] += float(xp.sum(take(residual, tested) ** 2))
    return errors
