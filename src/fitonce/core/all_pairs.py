r"""Every pair of rows deleted together, all pairs at once.

The system of the pair (i, j) in `holdout` is 2×2 where no α leave, with M = I - H,

    ρ_i = (M_jj r_i - M_ij r_j) / (M_ii M_jj - M_ij²),

and with α the 4×4 system of two (row, α) pairs, of which D⁻¹ is eliminated first, as there:

    A = M + B D⁻¹Bᵀ,   q = r + B D⁻¹α,   ρ_i = (A_jj q_i - A_ij q_j) / (A_ii A_jj - A_ij²).

Written out in n×n arrays: O(n²) after M, B and D are there, which takes O(n³) once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, eye_like, to_numpy, zeros_like_shape
from .holdout import Smoother, Targets

Block = tuple[Any, Any, Any, Any]  # (i,i), (i,j), (j,i), (j,j) of every pair, broadcast to n×n


def leave_pairs_out(smoother: Smoother, targets: Targets, mu: float) -> np.ndarray:
    """Held-out residuals (n, n) on the host: [i, j] of row i, where rows i and j are deleted.

    For a single column of targets; on the diagonal row i alone is deleted.
    """
    fitted = smoother.fit(targets, mu)
    r = to_numpy(fitted.residual)[:, 0]
    M, (B, D) = to_numpy(_dense(smoother, mu)), _forces(smoother, mu)
    own = np.diagonal(M)
    A11, A12, A22 = own[:, None], M, own[None, :]
    q1, q2 = r[:, None], r[None, :]
    if B is not None and D is not None:
        alpha = to_numpy(fitted.dual)[:, 0]
        W, block = _inverse(D), _pairs(B)
        C11, C12, C21, C22 = _product(block, W)
        A11 = A11 + C11 * block[0] + C12 * block[1]
        A12 = A12 + C11 * block[2] + C12 * block[3]
        A22 = A22 + C21 * block[2] + C22 * block[3]
        q1, q2 = (
            q1 + C11 * alpha[:, None] + C12 * alpha[None, :],
            q2 + C21 * alpha[:, None] + C22 * alpha[None, :],
        )
    with np.errstate(divide="ignore", invalid="ignore"):  # on the diagonal
        rho = (A22 * q1 - A12 * q2) / (A11 * A22 - A12 * A12)
    alone = smoother.leave_one_out(targets, np.asarray([mu])).residual
    np.fill_diagonal(rho, to_numpy(alone)[0, :, 0])
    return np.asarray(rho)


def _dense(smoother: Smoother, mu: float) -> Array:
    """I - H as a matrix."""
    residual_map = smoother.residual_map(mu)
    if residual_map.dense is not None:
        return residual_map.dense
    return residual_map(eye_like(smoother.n_samples, smoother.Q0))


def _forces(smoother: Smoother, mu: float) -> tuple[np.ndarray | None, np.ndarray | None]:
    """B and D (n, n): what unit forces do to the residuals and, with a minus, to α."""
    if not smoother.has_duals:
        return None, None
    n = smoother.n_samples
    none = smoother.project(zeros_like_shape((n, n), smoother.Q0))
    forced = smoother.fit(none, mu, eye_like(n, smoother.Q0))
    return to_numpy(forced.residual), -to_numpy(forced.dual)


def _pairs(A: np.ndarray) -> Block:
    own = np.diagonal(A)
    return own[:, None], A, A.T, own[None, :]


def _inverse(D: np.ndarray) -> Block:
    """Of the symmetric 2×2 block of every pair."""
    d11, d12, _, d22 = _pairs(D)
    with np.errstate(divide="ignore", invalid="ignore"):  # on the diagonal
        scale = 1.0 / (d11 * d22 - d12 * d12)
        return d22 * scale, -d12 * scale, -d12 * scale, d11 * scale


def _product(A: Block, B: Block) -> Block:
    with np.errstate(invalid="ignore"):
        return (
            A[0] * B[0] + A[1] * B[2],
            A[0] * B[1] + A[1] * B[3],
            A[2] * B[0] + A[3] * B[2],
            A[2] * B[1] + A[3] * B[3],
        )
