r"""Which rows, or points, stand for all of them.

Every method looks at a pool of rows: all of them, or a random sample where they are many, so that
rows in files and on clusters are chosen from as rows in memory are. Given a pool X (k, ·):

- `uniform`: m rows at random, weights as probabilities;
- `kmeans`: the centers of m clusters (scikit-learn's MiniBatchKMeans);
- `leverage`: m rows at random, with probabilities proportional to approximate ridge leverage
  scores;
- `cholesky`: pivoted Cholesky of the kernel matrix, one column at a time without forming it: each
  pivot is the row that the landmarks so far describe worst. O(k m²) time, k×m memory;
- `greedy`: forward selection by leave-one-out squared error of the targets, among random candidates
  at each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..core.arrays import to_numpy
from ..core.rows import rows_at
from ..kernels import Kernel
from .features import as_points

METHODS = ("uniform", "kmeans", "leverage", "cholesky", "greedy")
CANDIDATES = 59  # the best of 59 random candidates is among the best 5 % with probability .95


@dataclass(frozen=True)
class Pool:
    """Rows that may become landmarks.

    On the host, with targets (k, t), weights (k,) and their numbers among all rows.
    """

    X: Any
    targets: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class Landmarks:
    """Points (m, ·) on the host and, where they are training rows, their numbers (m,); else -1."""

    points: Any
    rows: np.ndarray


def pool_size(n_landmarks: int, method: str) -> int:
    """How many random rows a method looks at: enough that more change little."""
    return {"uniform": n_landmarks, "greedy": max(4 * n_landmarks, 2000)}.get(
        method, max(20 * n_landmarks, 10_000)
    )


def choose_landmarks(
    pool: Pool, kernel: Kernel, n_landmarks: int, method: str, random: np.random.RandomState
) -> Landmarks:
    """m landmarks from a pool of at least m rows; fewer if k-means finds fewer distinct rows."""
    if method == "kmeans":
        return _kmeans(pool, n_landmarks, random)
    chosen = np.sort(_CHOICES[method](pool, kernel, n_landmarks, random))
    return Landmarks(pool.X[chosen], pool.numbers[chosen])


def _uniform(pool: Pool, kernel: Kernel, m: int, random: np.random.RandomState) -> np.ndarray:
    probability = pool.weights / pool.weights.sum()
    return np.asarray(random.choice(len(probability), m, replace=False, p=probability))


def _kmeans(pool: Pool, m: int, random: np.random.RandomState) -> Landmarks:
    """The centers of clusters: points that are no rows."""
    from sklearn.cluster import MiniBatchKMeans

    n_distinct = len(np.unique(pool.X, axis=0)) if not sp.issparse(pool.X) else pool.X.shape[0]
    seed = int(random.randint(np.iinfo(np.int32).max))
    clusters = MiniBatchKMeans(
        min(m, n_distinct), n_init=1, random_state=seed, batch_size=max(1024, 3 * m)
    ).fit(pool.X, sample_weight=pool.weights)
    centres = np.asarray(clusters.cluster_centers_, dtype=np.float64)
    return Landmarks(centres, np.full(len(centres), -1))


def _leverage(pool: Pool, kernel: Kernel, m: int, random: np.random.RandomState) -> np.ndarray:
    """Ridge leverage ℓ = diag(K(K + cI)⁻¹), c the m-th part of the trace, estimated from m uniform
    rows S (Musco & Musco 2017):

        ℓ ≈ (diag(K) - diag(K_:S (K_SS + c m/k I)⁻¹ K_S:)) / c

    so that a row far from the sample counts as one that nothing else describes.
    """
    k = len(pool.weights)
    sketch = _uniform(pool, kernel, m, random)
    diagonal = kernel.diagonal(pool.X)
    c = max(float(diagonal.sum()) / m, np.finfo(float).tiny)
    K = kernel(pool.X, pool.X[sketch])
    explained = np.einsum("ij,ji->i", K, np.linalg.solve(K[sketch] + c * m / k * np.eye(m), K.T))
    score = np.clip((diagonal - explained) / c, 1e-3 * m / k, 1.0) * pool.weights
    return np.asarray(random.choice(k, m, replace=False, p=score / score.sum()))


def _cholesky(pool: Pool, kernel: Kernel, m: int, random: np.random.RandomState) -> np.ndarray:
    return pivoted_cholesky(pool.X, kernel, m)[0]


def pivoted_cholesky(X: Any, kernel: Kernel, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The first m pivots of K = LLᵀ and the columns of L (k, m): L_j = (K_:p - L L_pᵀ)/√d_p with p
    the largest of d = diag(K - LLᵀ).

    When the diagonal is used up, the remaining rows are taken in order.
    """
    residual = kernel.diagonal(X)
    k, scale = X.shape[0], residual.max()
    L = np.zeros((k, m))
    pivots: list[int] = []
    for j in range(m):
        pivot = int(np.argmax(residual))
        if residual[pivot] <= 1e-12 * scale:
            rest = np.setdiff1d(np.arange(k), pivots)[: m - j]
            return np.concatenate([pivots, rest]).astype(int), L
        column = kernel(X, X[pivot : pivot + 1])[:, 0] - L[:, :j] @ L[pivot, :j]
        L[:, j] = column / np.sqrt(residual[pivot])
        residual = np.maximum(residual - L[:, j] ** 2, 0.0)
        residual[pivot] = 0.0
        pivots.append(pivot)
    return np.asarray(pivots, dtype=int), L


def _greedy(pool: Pool, kernel: Kernel, m: int, random: np.random.RandomState) -> np.ndarray:
    """Orthogonal forward selection: the candidate whose kernel function, added to the least-squares
    fit, leaves the smallest PRESS.

    With Q the orthonormal basis so far (bias included) and q a candidate's column off Q, of unit
    length, residuals and leverages become r - q qᵀr and h + q², and PRESS is the sum of (r/(1 -
    h))²: O(k) for each candidate after its projection.
    """
    k, scale = len(pool.weights), np.sqrt(pool.weights)[:, None]
    Q = np.zeros((k, m + 1))
    Q[:, :1] = scale / np.linalg.norm(scale)
    R = scale * pool.targets
    R = R - Q[:, :1] @ (Q[:, :1].T @ R)
    left = 1.0 - Q[:, 0] ** 2
    chosen: list[int] = []
    free = np.ones(k, dtype=bool)
    for j in range(1, m + 1):
        candidates = random.choice(
            np.flatnonzero(free), min(CANDIDATES, int(free.sum())), replace=False
        )
        columns = scale * kernel(pool.X, pool.X[candidates])
        size = np.linalg.norm(columns, axis=0)
        for _ in range(2):  # the second pass removes what rounding left
            columns = columns - Q[:, :j] @ (Q[:, :j].T @ columns)
        norms = np.linalg.norm(columns, axis=0)
        columns = columns / np.maximum(norms, 1e-10 * np.maximum(size, np.finfo(float).tiny))
        best = int(np.argmin(_press(columns, R, left)))
        q = columns[:, best]
        if norms[best] > 1e-10 * size[best]:
            Q[:, j] = q
            R = R - q[:, None] * (q @ R)
            left = np.maximum(left - q**2, 1e-10)
        chosen.append(int(candidates[best]))
        free[candidates[best]] = False
    return np.asarray(chosen)


def _press(columns: np.ndarray, R: np.ndarray, left: np.ndarray) -> np.ndarray:
    """PRESS with each candidate column added (c,)."""
    gain = columns.T @ R
    one_minus_h = np.maximum(left[:, None] - columns**2, 1e-10)
    total = np.zeros(columns.shape[1])
    for target in range(R.shape[1]):
        residual = R[:, target : target + 1] - columns * gain[:, target]
        total += ((residual / one_minus_h) ** 2).sum(axis=0)
    return total


_CHOICES: dict[str, Callable[[Pool, Kernel, int, np.random.RandomState], np.ndarray]] = {
    "uniform": _uniform,
    "leverage": _leverage,
    "cholesky": _cholesky,
    "greedy": _greedy,
}


def landmarks_for(
    X: Any,
    targets: np.ndarray,
    weights: np.ndarray | None,
    given: Any,
    method: str,
    kernel: Callable[[], Kernel],
    random_state: Any,
) -> Landmarks:
    """The points that stand for rows X: those given, or a number of them chosen by a method.

    `kernel()` is the one by which they are compared, made only where it is needed.
    """
    if not isinstance(given, (int, np.integer)):
        return Landmarks(as_points(given, X), np.full(given.shape[0], -1))
    n, m = X.shape[0], min(int(given), X.shape[0])
    if m == n:
        return Landmarks(rows_at(X, np.arange(n)), np.arange(n))
    random = check_random_state(random_state)
    w = np.ones(n) if weights is None else weights
    size, numbers = pool_size(m, method), np.arange(n)
    if size < n:
        probability = w / w.sum() if method == "uniform" else None
        numbers = np.sort(random.choice(n, size, replace=False, p=probability))
    rows = rows_at(X, numbers)
    rows = rows if sp.issparse(rows) else to_numpy(rows)
    pool = Pool(rows, targets[numbers], w[numbers], numbers)
    chosen = choose_landmarks(pool, kernel(), m, method, random)
    return Landmarks(as_points(chosen.points, X), chosen.rows)
