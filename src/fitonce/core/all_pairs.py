r"""Every pair of rows deleted together, all pairs at once.

The system of the pair (i, j) in `holdout` is 2×2 where no α leave, with M = I - H,

    ρ_i = (M_jj r_i - M_ij r_j) / (M_ii M_jj - M_ij²),

and with α the 4×4 system of two (row, α) pairs, of which D⁻¹ is eliminated first, as there:

    A = M + B D⁻¹Bᵀ,   q = r + B D⁻¹α,   ρ_i = (A_jj q_i - A_ij q_j) / (A_ii A_jj - A_ij²).

Written out in n×n arrays: O(n²) after M, B and D are there, which takes O(n³) once.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array, eye_like, to_numpy, zeros_like_shape
from .holdout import Smoother, Targets


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
        gain = _through_forces(B, D, to_numpy(fitted.dual)[:, 0])
        A11, A12, A22 = A11 + gain[..., 0, 0], A12 + gain[..., 0, 1], A22 + gain[..., 1, 1]
        q1, q2 = q1 + gain[..., 0, 2], q2 + gain[..., 1, 2]
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


def _through_forces(B: np.ndarray, D: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """B D⁻¹[Bᵀ α] (n, n, 2, 3) of the two rows of every pair; zero on the diagonal."""
    n = len(alpha)
    gain = np.zeros((n, n, 2, 3))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        pair = np.stack([np.full(n - 1, i), others], axis=1)
        B2, D2 = (A[pair[:, :, None], pair[:, None, :]] for A in (B, D))
        right = np.concatenate([np.swapaxes(B2, 1, 2), alpha[pair][:, :, None]], axis=2)
        gain[i, others] = B2 @ np.linalg.solve(D2, right)
    return gain
