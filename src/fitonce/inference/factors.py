"""What a permutation test needs of a decomposition, whatever the labels: maps, and class sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..core.arrays import Array, eye_like, is_numpy, namespace, zeros_like_shape
from ..core.holdout import ResidualMap, Smoother
from ..kernels import Kernel
from .folds import Layout


def is_definite(kernel: Kernel, dual: bool, residual: ResidualMap) -> bool:
    """Whether no eigenvalue of the kernel is negative, or the dual norm makes that irrelevant.

    Known from its name, or H + 1e-10·I has a Cholesky factor.
    """
    if dual or residual.dense is None or kernel.definite:
        return True
    H = eye_like(int(residual.dense.shape[0]), residual.dense) * (1.0 + 1e-10) - residual.dense
    if is_numpy(H):
        return int(scipy.linalg.lapack.dpotrf(H.T, lower=1, overwrite_a=1, clean=0)[1]) == 0
    try:
        factor = namespace(H).linalg.cholesky(H)
    except Exception:  # each namespace has its own class for this
        return False
    return bool(namespace(H).all(namespace(H).isfinite(factor)))


@dataclass(frozen=True)
class Factors:
    """What one run of folds needs of the smoother.

    Maps from r (and α) at the deleted rows to ρ (and ν), each (k, m, m).
    """

    r_to_rho: Array
    dual_to_rho: Array | None = None
    r_to_force: Array | None = None
    dual_to_force: Array | None = None


def fold_factors(smoother: Smoother, mu: float, rows: np.ndarray, like: Array) -> Factors:
    """The maps of one deleted set, by sending unit vectors through its pair system.

    Cost: O(m³).
    """
    pairs = smoother.pairs(rows, mu)
    unit = eye_like(len(rows), like)
    if pairs.B is None:
        return Factors(pairs.solve(unit))
    zero = zeros_like_shape(tuple(unit.shape), like)
    of_r, of_dual = pairs.held_out(unit, zero), pairs.held_out(zero, unit)
    return Factors(of_r.residual.T, of_dual.residual.T, of_r.force.T, of_dual.force.T)


def label_maps(smoother: Smoother, mu: float) -> tuple[ResidualMap, Array | None]:
    """Targets to residuals and, where α leave with their rows, to α (n, n)."""
    if not smoother.has_duals:
        return smoother.residual_map(mu), None
    unit = eye_like(smoother.n_samples, smoother.Q0)
    fitted = smoother.fit(smoother.project(unit), mu)
    return ResidualMap(fitted.residual), fitted.dual.T  # type: ignore[union-attr]


def training_sizes(
    layout: Layout,
    codes: np.ndarray,
    laid_out: np.ndarray,
    n_classes: int,
    weights: np.ndarray | None,
    laid_out_weights: np.ndarray | None,
) -> np.ndarray:
    """(Weighted) class sizes of the training sets (B, k, c), for labels (B, n) and the same in the
    order of the layout.
    """
    sizes = np.empty((len(codes), len(layout.deleted), n_classes))
    for code in range(n_classes):
        everywhere = _count(codes == code, weights)
        here, fold = laid_out == code, 0
        for run in layout.runs:
            deleted = here[:, run.places].reshape(-1, run.count, run.n_deleted)
            scale = (
                None
                if laid_out_weights is None
                else laid_out_weights[..., run.places].reshape(-1, run.count, run.n_deleted)
            )
            sizes[:, fold : fold + run.count, code] = everywhere[:, None] - _count(deleted, scale)
            fold += run.count
    if weights is not None:  # what rounding leaves of a class that is gone
        sizes[sizes < 1e-12 * weights.sum()] = 0.0
    return sizes


def _count(members: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(Weighted) number of true entries along the last axis."""
    if weights is None:
        return np.asarray(np.count_nonzero(members, axis=-1))
    return np.asarray(np.sum(members * weights, axis=-1))
