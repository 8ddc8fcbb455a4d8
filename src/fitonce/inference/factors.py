"""What a permutation test needs from a decomposition, for any labels: maps and class sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    cholesky_overwriting,
    eye_like,
    index_like,
    is_numpy,
    namespace,
    to_numpy,
)
from ..core.holdout import ResidualMap, Smoother
from ..core.readout import Readout
from ..kernels import Kernel
from .placements import Placement


def is_definite(kernel: Kernel, dual: bool, residual: ResidualMap) -> bool:
    """Whether no eigenvalue of the kernel is negative, or the dual norm makes that irrelevant.

    Known from its name, or H + 1e-10·I has a Cholesky factor.
    """
    if dual or residual.dense is None or kernel.definite:
        return True
    H = eye_like(int(residual.dense.shape[0]), residual.dense) * (1.0 + 1e-10) - residual.dense
    try:
        cholesky_overwriting(H)
    except NotPositiveDefiniteError:
        return False
    return True


def fold_factor(smoother: Smoother, mu: float, rows: np.ndarray, like: Array) -> Array:
    """The map from r (and α) at m deleted rows to ρ (and ν) there, (m, m) or (2m, 2m), by sending
    unit vectors through their pair system. Cost: O(m³).
    """
    pairs, m = smoother.pairs(rows, mu), len(rows)
    if pairs.B is None:
        return pairs.solve(eye_like(m, like))
    unit = eye_like(2 * m, like)
    found = pairs.held_out(unit[:m, :], unit[m:, :])
    return namespace(like).concat([found.residual, found.force], axis=0).T


def label_maps(smoother: Smoother, mu: float) -> list[ResidualMap]:
    """Targets to residuals and, where α leave with their rows, to α."""
    if not smoother.has_duals:
        return [smoother.residual_map(mu)]
    unit = eye_like(smoother.n_samples, smoother.Q0)
    fitted = smoother.fit(smoother.project(unit), mu)
    return [ResidualMap(fitted.residual), ResidualMap(fitted.dual.T)]  # type: ignore[union-attr]


def kept_targets(readout: Readout, values: Array, like: Array) -> Array:
    """Targets (B, t, n) of labels (B, n) or numbers (B, t, n), on the device of the data."""
    if is_numpy(values) and not is_numpy(like):
        xp = namespace(like)
        values = asarray_like(values, like, xp.float64 if values.dtype.kind == "f" else xp.int64)
    return readout.kept_targets(values)


def training_sizes(
    placements: Sequence[Placement], codes: Array, n_classes: int, weights: np.ndarray | None
) -> np.ndarray:
    """(Weighted) class sizes of the training sets (B, k, c), for labels (B, n), which are counted
    where they live.

    There is one placement of the folds for all labelings, or one each, of the same shapes.
    """
    xp = namespace(codes)
    orders = np.stack([placement.order for placement in placements])
    if len(placements) == 1:
        gone = xp.take(codes, index_like(orders[0], codes), axis=1)
    else:
        gone = xp.take_along_axis(codes, index_like(orders, codes), axis=1)
    gone_weights = None if weights is None else weights[orders]
    everywhere = _compared(codes, None, n_classes, weights)
    sizes: np.ndarray = everywhere - _compared(gone, placements[0], n_classes, gone_weights)
    if weights is not None:  # what rounding leaves of a class that is gone
        sizes[sizes < 1e-12 * weights.sum()] = 0.0
    return sizes


def _compared(
    codes: Array, placement: Placement | None, n_classes: int, weights: np.ndarray | None
) -> np.ndarray:
    """Counts, or sums of weights (n,) or (B, n), of classes in every fold (B, k, c): a comparison
    with each class.
    """
    xp = namespace(codes)
    runs = [(1, slice(None))]
    if placement is not None:
        runs = [(run.count, run.places) for run in placement.runs]
    w = None if weights is None else asarray_like(np.atleast_2d(weights), codes)
    classes = []
    for number in range(n_classes):
        is_there = xp.astype(codes == number, xp.float64)
        is_there = is_there if w is None else is_there * w
        parts = [
            xp.sum(xp.reshape(is_there[:, places], (codes.shape[0], count, -1)), axis=2)
            for count, places in runs
        ]
        classes.append(xp.concat(parts, axis=1))
    return np.array(to_numpy(xp.stack(classes, axis=2)))
