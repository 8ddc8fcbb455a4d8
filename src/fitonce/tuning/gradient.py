r"""Kernel widths by gradient descent on a smooth held-out loss.

For a kernel of a distance (`radial.py`) the leave-one-out loss E of the function norm is
differentiable in log γ and in log μ. With M = I - H, e_i = (MY)_i / M_ii, dM = -M dK M/μ and
∂E/∂e = v,

    Γ = ∂E/∂K = -(1/μ) [ (Mu)(MY)ᵀ - M diag(z) M ],   u = v/o,  z = Σ_t v (MY)/o²,  o = diag M

(one product of n×n matrices), and

    ∂E/∂log γ = Σ Γ ∘ ∂K/∂log γ
    ∂E/∂log μ = Σ v ∘ e',  e' = (MY)'/o - (MY) o'/o²,  M' = M - M²

An evaluation costs one Cholesky factorization, one inversion and two products of n×n matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from ..core.arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    namespace,
    take,
)
from ..core.holdout import Deletion
from ..core.inverse import Inverse
from ..kernels import Kernel

FARTHEST = np.log(64.0)  # how far a width may move from where it started
MAX_ITERATIONS = 30
IMPASSABLE = 1e100  # the loss where alpha is too small for the kernel: a step there is taken back

LossAndSlope = Callable[[Array], tuple[float, Array]]  # held-out residuals e (n, t) to E and ∂E/∂e


@dataclass(frozen=True)
class KernelObjective:
    """E and its gradient as a function of log gamma and log mu, for rows X, scaled targets Y and
    the roots of their weights.

    `kernel(gamma)` gives the kernel; `Q0` is the unpenalized basis.
    """

    kernel: Callable[[Any], Kernel]
    X: Array
    Y: Array
    Q0: Array
    row_scale: Array | None
    loss: LossAndSlope
    start: np.ndarray

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        gamma, mu = np.exp(theta).tolist()
        kernel = self.kernel(gamma)
        K = kernel(self.X, self.X)
        try:
            value, slope_K, slope_mu = self._evaluate(K, mu)
        except NotPositiveDefiniteError:
            return IMPASSABLE, np.zeros_like(theta)
        slope_gamma = float(namespace(K).sum(slope_K * kernel.log_gamma_slope(self.X)))
        return value, np.array([slope_gamma, slope_mu])

    def _evaluate(self, K: Array, mu: float) -> tuple[float, Array, float]:
        """E, ∂E/∂K and ∂E/∂log μ."""
        xp = namespace(K)
        scaled = K + 0.0 if self.row_scale is None else K * self.row_scale * self.row_scale.T
        inverse = Inverse.of(scaled, self.Q0, mu)
        M = inverse.M
        o = xp.linalg.diagonal(M)[:, None]
        r = M @ self.Y
        e = r / o
        value, v = self.loss(e)
        slope_K = kernel_gradient(inverse, self.Y, v)
        if self.row_scale is not None:
            slope_K = slope_K * self.row_scale * self.row_scale.T
        o_slope = o - xp.sum(M**2, axis=1)[:, None]
        e_slope = (r - M @ r) / o - r * o_slope / o**2
        return value, slope_K, float(xp.sum(v * e_slope))

    def minimise(self, alpha_bounds: tuple[float, float]) -> np.ndarray:
        """L-BFGS-B from the start; returns the log gamma and log mu with the least value met."""
        bounds = [self.start[0] + np.array([-FARTHEST, FARTHEST]), np.log(alpha_bounds)]
        result = scipy.optimize.minimize(
            self,
            self.start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": MAX_ITERATIONS},
        )
        return np.asarray(result.x if result.fun < self(self.start)[0] else self.start)


def kernel_gradient(inverse: Inverse, Y: Array, dE_de: Array) -> Array:
    """Γ (n, n) of the module's docstring, for the scaled kernel matrix that the smoother was made
    of: O(n³), one product.
    """
    M = inverse.M
    xp = namespace(M)
    o = xp.linalg.diagonal(M)[:, None]
    residual = M @ Y
    z = xp.sum(dE_de * residual / o**2, axis=1)
    outer = (M @ (dE_de / o)) @ residual.T
    return (M @ (z[:, None] * M) - 0.5 * (outer + outer.T)) / inverse.mu


def fold_gradient(
    inverse: Inverse, Y: Array, deletions: Sequence[Deletion] | None, total: float
) -> tuple[float, Array]:
    r"""E = Σ‖e‖²/total over the tested rows of every deletion, and Γ = ∂E/∂K (n, n).

    With D deleted, e_D = M_DD⁻¹ r_D and v_D = ∂E/∂e, which is zero if D is not tested,

        Γ = (1/μ) Σ_D M_:D (Z_D M_D: - u_D rᵀ),   u_D = M_DD⁻¹ v_D,  Z_D = u_D e_Dᵀ

    and the symmetric part of it; leave-one-out where no deletions are given. Cost: one product of
    n×n matrices, and a system for every deletion.
    """
    M = inverse.M
    xp = namespace(M)
    r = M @ Y
    if deletions is None:
        o = xp.linalg.diagonal(M)[:, None]
        e = r / o
        v = 2.0 * e / total
        left, right = M, xp.sum(v * e / o, axis=1)[:, None] * M - (v / o) @ r.T
        return float(xp.sum(e**2)) / total, _symmetric(left @ right) / inverse.mu
    value, right = 0.0, []
    for deleted, tested in deletions:
        (solve,) = inverse.solvers(deleted, np.array([inverse.mu]))
        e = solve(take(r, deleted))
        counted = np.zeros((len(deleted), 1))
        counted[tested] = 1.0
        v = 2.0 * asarray_like(counted, e) * e / total
        u = solve(v)
        value += 0.5 * float(xp.sum(v * e))
        right.append((u @ e.T) @ take(M, deleted) - u @ r.T)
    rows = np.concatenate([deleted for deleted, _ in deletions])
    return value, _symmetric(take(M, rows).T @ xp.concat(right, axis=0)) / inverse.mu


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
