r"""Kernels of distances, with the digits that float64 can keep.

    rbf  exp(-γ‖x - y‖²)          laplacian  exp(-γ‖x - y‖₁)

**Rows far from the origin.** ‖x - y‖² = ‖x‖² + ‖y‖² - 2x·y loses what ‖x‖² is larger than the
distance. Distances stay when all rows are moved, so they are moved by the medians of some points,
which outliers do not pull away.

**Very smooth kernels.** Where all values are close to one, their differences are what counts.
exp(z) rounds them to eps, exp(z) - 1 to eps·|z|. With a free bias the model is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import device
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from .core.arrays import Array, asarray_like, eye_like, is_numpy, namespace, take, to_numpy

DISTANCES = ("rbf", "laplacian")
NEAR_ONE = float(np.log(2.0))  # values that all exceed one half are taken less one
MEDIAN_OF = 101  # rows, from the first to the last
FULL = 0.9  # of the entries of a sparse column, from which it is moved like a dense one


@dataclass(frozen=True)
class PointKernel:
    """A kernel with some points as a function of rows, less `offset`."""

    function: Callable[[Array], Array]
    offset: float = 0.0

    def __call__(self, X: Array) -> Array:
        return self.function(X)


def distance_kernel(name: str, gamma: Any, points: Array, constant: bool) -> PointKernel:
    """The kernel with some points, less one where that keeps digits and `constant` allows it; gamma
    may be a vector for rbf, one for each feature.
    """
    scale, width = (np.sqrt(gamma), 1.0) if np.ndim(gamma) else (None, float(gamma))
    centre = _centre(points, scale) if name == "rbf" else None
    moved = _moved(points, scale, centre)
    shifted = constant and width * _widest(name, moved) < NEAR_ONE

    def kernel(X: Array) -> Array:
        A = moved if X is points else _moved(X, scale, centre)
        if is_numpy(A) or sp.issparse(A):
            return _on_host(name, A, moved, width, shifted)
        compute = _squared_exponential if name == "rbf" else _absolute_exponential
        return compute(A, moved, width, shifted)

    return PointKernel(kernel, float(shifted))


def off_origin(X: Any) -> Any:
    """Sparse rows with their nearly full columns, moved last, less their medians."""
    return _moved(X, None, _centre(X, None))


def _scaled(X: Array, scale: np.ndarray | None) -> Array:
    """Features times √γ, where each has its own: an rbf with γ = 1 of these."""
    if scale is None:
        return X
    return X.multiply(scale).tocsr() if sp.issparse(X) else X * asarray_like(scale, X)


def _centre(points: Array, scale: np.ndarray | None) -> np.ndarray:
    """Medians (p,) of some points; zero for sparse columns that are not nearly full."""
    n = int(points.shape[0])
    some = take(points, np.unique(np.linspace(0, max(n - 1, 0), min(n, MEDIAN_OF)).astype(int)))
    sample = to_numpy(_dense(some))
    centre = np.median(sample, axis=0) if n else np.zeros(sample.shape[1])
    if sp.issparse(points):
        centre = np.where(np.mean(sample != 0, axis=0) >= FULL, centre, 0.0)
    return np.asarray(centre if scale is None else centre * scale)


def _dense(X: Array) -> Array:
    return X.toarray() if sp.issparse(X) else X


def _moved(X: Array, scale: np.ndarray | None, centre: np.ndarray | None) -> Array:
    """Rows scaled and less the centre. Of sparse rows the moved columns come last, as distances
    do not mind.
    """
    X = _scaled(X, scale)
    if centre is None or not np.any(centre):
        return X
    if not sp.issparse(X):
        return X - asarray_like(centre, X)
    full = np.flatnonzero(centre)
    others = X[:, np.flatnonzero(centre == 0)]
    return sp.hstack([others, sp.csr_matrix(X[:, full].toarray() - centre[full])], format="csr")


def _widest(name: str, points: Array) -> float:
    """A bound of the distances between points, squared for rbf: from twice the largest norm."""
    if points.shape[0] == 0:
        return np.inf
    if sp.issparse(points):
        sizes = points.multiply(points) if name == "rbf" else abs(points)
        largest = float(sizes.sum(axis=1).max())
    else:
        xp = namespace(points)
        if name == "laplacian":
            points = points - points[:1, :]
        sizes = points**2 if name == "rbf" else xp.abs(points)
        largest = float(xp.max(xp.sum(sizes, axis=1)))
    return 4.0 * largest if name == "rbf" else 2.0 * largest


def _on_host(name: str, A: Any, B: Any, gamma: float, shifted: bool) -> np.ndarray:
    D = euclidean_distances(A, B, squared=True) if name == "rbf" else manhattan_distances(A, B)
    D = np.ascontiguousarray(D, dtype=np.float64)
    D *= -gamma
    return np.asarray(np.expm1(D, out=D) if shifted else np.exp(D, out=D))


def _squared_exponential(X: Array, Y: Array, gamma: float, shifted: bool) -> Array:
    """exp(-γ(‖x‖² + ‖y‖² - 2x·y)), less one where shifted, in place.

    One matrix of memory, which on a device is what limits the number of rows.
    """
    xp = namespace(X)
    exp = xp.expm1 if shifted else xp.exp
    K = X @ Y.T
    K *= -2.0
    K += xp.sum(X**2, axis=1)[:, None]
    K += xp.sum(Y**2, axis=1)[None, :]
    for start in range(0, K.shape[0], 1024):
        rows = slice(start, min(start + 1024, K.shape[0]))
        if X is Y:  # a row has no distance from itself
            D = K[rows, rows]
            K[rows, rows] = D - xp.linalg.diagonal(D) * eye_like(D.shape[0], D)
        squared = K[rows, :]
        K[rows, :] = exp(-gamma * xp.where(squared > 0, squared, xp.zeros_like(squared)))
    return K


def _absolute_exponential(X: Array, Y: Array, gamma: float, shifted: bool) -> Array:
    xp = namespace(X)
    distance = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for feature in range(X.shape[1]):
        distance = distance + xp.abs(X[:, feature][:, None] - Y[:, feature][None, :])
    return (xp.expm1 if shifted else xp.exp)(-gamma * distance)
