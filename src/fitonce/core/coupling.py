"""Probabilities of several classes from those of every two of them.

Wu, Lin and Weng (2004). Probability estimates for multi-class classification by pairwise coupling.
Journal of Machine Learning Research 5, 975-1005; their second method.
"""

from __future__ import annotations

import numpy as np


def coupled(r: np.ndarray) -> np.ndarray:
    """Class probabilities (n, c) from r (n, c, c), r_jk the probability of class j among j and k.

    p minimizes Σ_j Σ_{k≠j} (r_kj p_j - r_jk p_k)² with Σ p = 1: a linear system,

        [Q 1; 1ᵀ 0] (p, b) = (0, 1),    Q_jj = Σ_{k≠j} r_kj²,    Q_jk = -r_kj r_jk,

    whose solution is not negative. Exact where the r come from one p. The diagonal of r is not
    looked at.
    """
    n, c, _ = r.shape
    apart = ~np.eye(c, dtype=bool)
    r = np.where(apart, r, 0.0)
    Q = -r * np.swapaxes(r, 1, 2)
    Q[:, np.arange(c), np.arange(c)] = np.sum(r**2, axis=1)
    system = np.zeros((n, c + 1, c + 1))
    system[:, :c, :c] = Q
    system[:, :c, c] = system[:, c, :c] = 1.0
    right = np.zeros((n, c + 1, 1))
    right[:, c] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :c, 0], 0.0, None)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
