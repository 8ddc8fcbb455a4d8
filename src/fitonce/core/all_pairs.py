r"""Every pair of rows deleted together, all pairs at once.

The system of the pair (i, j) in `holdout` is 2×2 where no α leave, with M = I - H,

    ρ_i = (M_jj r_i - M_ij r_j) / (M_ii M_jj - M_ij²),

and with α the 4×4 system of two (row, α) pairs, of which D⁻¹ is eliminated first, as there:

    A = M + B D⁻¹Bᵀ,   q = r + B D⁻¹α,   ρ_i = (A_jj q_i - A_ij q_j) / (A_ii A_jj - A_ij²).

Written out in n×n arrays: O(n²) after M, B and D are there, which takes O(n³) once.
"""

from __future__ import annotations

import numpy as np

from .arrays import eye_like, to_numpy
from .holdout import Smoother, Targets


def leave_pairs_out(smoother: Smoother, targets: Targets, mu: float) -> np.ndarray:
    """Held-out residuals (n, n) on the host: [i, j] of row i, where rows i and j are deleted.

    For a single column of targets; on the diagonal row i alone is deleted.
    """
    fitted, unit = smoother.fit(targets, mu), eye_like(smoother.n_samples, smoother.Q0)
    fits = fitted.residual, smoother.fit(smoother.project(unit), mu).residual
    r, M = (to_numpy(A) for A in fits)
    own = np.diagonal(M)
    A11, A12, A22 = own[:, None], M, own[None, :]
    q1, q2 = r, r.T
    if smoother.has_duals:
        forced = smoother.fit(smoother.project(0.0 * unit), mu, unit)
        B, D, alpha = (to_numpy(A) for A in (forced.residual, forced.dual, fitted.dual))
        gain = _through_forces(B, -D, alpha[:, 0])
        A11, A12, A22 = A11 + gain[..., 0, 0], A12 + gain[..., 0, 1], A22 + gain[..., 1, 1]
        q1, q2 = q1 + gain[..., 0, 2], q2 + gain[..., 1, 2]
    with np.errstate(divide="ignore", invalid="ignore"):  # on the diagonal
        rho = (A22 * q1 - A12 * q2) / (A11 * A22 - A12 * A12)
    alone = smoother.leave_one_out(targets, np.asarray([mu])).residual
    np.fill_diagonal(rho, to_numpy(alone)[0, :, 0])
    return np.asarray(rho)


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
