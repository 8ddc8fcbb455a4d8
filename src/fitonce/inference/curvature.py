"""Whether confounds say more about y, and about the features, than a linear model of them takes
away.

Tests with numeric confounds permute what a linear model leaves of y. Where that still follows the
confounds in a curve or an interaction, and the features do too, such a test rejects without any
effect. So kernel ridge regression predicts what is left from the confounds, and its leave-one-out
error, of the best of its candidates, is compared with those of permuted rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from ..estimators.ridge import KernelRidge
from ..estimators.setup import setup_of
from ..kernels import Kernel

DRAWS = 199  # permutations of the rows
LEVEL = 0.01  # of the test of what is left of y
WEAK = 0.03  # the same where the features follow the confounds nonlinearly
MOST_ROWS = 1000  # drawn at random where there are more
COMPONENTS = 5  # of the kernel of the features, the largest


def is_curved(C: np.ndarray, Q0: np.ndarray, left: np.ndarray, X: Any) -> bool:
    """Whether what is left of y (n, t) follows numeric confounds C (n, q) nonlinearly; Q0 is the
    orthonormal basis of a constant and the confounds.

    Less evidence is asked of y where what is left of the features X does so too.
    """
    n = len(C)
    rows = np.arange(n)
    if n > MOST_ROWS:
        rows = np.random.RandomState(0).permutation(n)[:MOST_ROWS]
    p = chance_of(C[rows], Q0[rows], left[rows])
    if LEVEL < p <= WEAK:
        features = _components(X, rows)
        if features is not None and chance_of(C[rows], Q0[rows], features) <= LEVEL:
            return True
    return p <= LEVEL


def chance_of(C: np.ndarray, Q0: np.ndarray, values: np.ndarray) -> float:
    """The p-value of the held-out prediction of values (n, t), less what is linear in the
    confounds, by kernel ridge regression on the confounds.
    """
    Q = np.linalg.qr(Q0)[0]
    values = values - Q @ (Q.T @ values)
    random, (n, t) = np.random.RandomState(0), values.shape
    if t > COMPONENTS:
        U, s, _ = np.linalg.svd(values, full_matrices=False)
        values, t = U[:, :COMPONENTS] * s[:COMPONENTS], COMPONENTS
    total = np.sum(values**2, axis=0)
    if not np.any(total > 0) or n < 2 * Q.shape[1] + 3:
        return 1.0
    orders = [np.arange(n), *(random.permutation(n) for _ in range(DRAWS))]
    columns = np.hstack([values[order] for order in orders])
    columns -= Q @ (Q.T @ columns)
    Z = StandardScaler().fit_transform(C)
    tuner = setup_of(KernelRidge(criterion="r2", search="coarse"), Z, columns).tuner()
    lattice = tuner.branches()[0].lattice
    assert lattice is not None
    losses = []
    for gamma in lattice.first():
        problem = tuner.problem({"gamma": gamma})
        own = tuner.losses(problem, tuner.alphas(problem)).reshape(-1, len(orders), t)
        losses.append(np.min(own @ (total / total.sum()), axis=0))
    best = np.min(losses, axis=0)
    return float(np.mean(best <= best[0] * (1.0 + 1e-9)))


def _components(X: Any, rows: np.ndarray) -> np.ndarray | None:
    """The largest components of the rbf kernel of standardized features; None of what is no table
    of numbers.
    """
    if sp.issparse(X) or getattr(np.asarray(X), "dtype", np.dtype(object)).kind not in "iuf":
        return None
    Z = StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)[rows])
    if Z.ndim != 2 or not np.isfinite(Z).all():
        return None
    K = np.asarray(Kernel("rbf", {"gamma": 0.5 / Z.shape[1]})(Z, Z))
    K = K - K.mean(axis=0)
    eigenvalues, V = np.linalg.eigh(K - K.mean(axis=1, keepdims=True))
    largest = slice(-COMPONENTS, None)
    return np.asarray(V[:, largest] * np.sqrt(np.maximum(eigenvalues[largest], 0.0)))
