r"""Kernels of distances (`radial.py` has their formulas), with the digits that float64 can keep.

**Rows far from the origin.** ‖x - y‖² = ‖x‖² + ‖y‖² - 2x·y loses what ‖x‖² is larger than the
distance. Distances stay when all rows are moved, so they are moved by the medians of some points,
which outliers do not pull away.

**Very smooth kernels.** Where all values are close to one, their differences are what counts.
exp(z) rounds them to eps, exp(z) - 1 to eps·|z|. With a free bias the model is the same.

**Rows close to each other.** The root of a distance that was lost in rounding is 1e-8 and not 0,
and a kernel of ‖x - y‖ sees it. Pairs that are close beside their own size are subtracted instead.
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
from .core.spectrum import row_blocks
from .radial import EUCLIDEAN, MANHATTAN, RADIAL

NEAR_ONE = float(np.log(2.0))  # values that all exceed one half are taken less one
MEDIAN_OF = 101  # rows, from the first to the last
CLOSE = 1e-6  # squared distances below this share of the squared norms are made of differences
ROWS, DEVICE_ROWS = 128, 4096  # of a matrix that are worked on at a time
PAIR_ELEMENTS = 1 << 21  # entries of differences made at a time
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
    radial = RADIAL[name]
    distances = DistancesTo(radial.distance, points, scale)
    shifted = constant and width * distances.widest < NEAR_ONE
    profile = radial.less_one if shifted else radial.value

    def kernel(X: Array) -> Array:
        K = distances(X)
        for rows in row_blocks(K.shape[0], _at_once(K)):
            K[rows, :] = profile(width * K[rows, :])
        return K

    return PointKernel(kernel, float(shifted))


def log_gamma_slope(name: str, gamma: float, X: Array) -> Array:
    """∂k/∂log γ = z φ'(z) of every two rows."""
    radial = RADIAL[name]
    slope = DistancesTo(radial.distance, X)(X)
    for rows in row_blocks(slope.shape[0], _at_once(slope)):
        z = gamma * slope[rows, :]
        slope[rows, :] = z * radial.slope(z)
    return slope


def _at_once(A: Array) -> int:
    """Rows at a time: few on the host, where what is made of them stays in the cache."""
    return ROWS if is_numpy(A) else DEVICE_ROWS


class DistancesTo:
    """Distances of rows from some points, "squared", "euclidean" or "manhattan": a new float64
    matrix each time.
    """

    def __init__(self, kind: str, points: Array, scale: np.ndarray | None = None) -> None:
        self.kind, self.points, self.scale = kind, points, scale
        self.centre = None if kind == MANHATTAN else _centre(points, scale)
        self.moved = _moved(points, scale, self.centre)

    def __call__(self, X: Array) -> Array:
        A = self.moved if X is self.points else _moved(X, self.scale, self.centre)
        host = is_numpy(A) or sp.issparse(A)
        if self.kind == MANHATTAN:
            D = manhattan_distances(A, self.moved) if host else _manhattan(A, self.moved)
        else:
            squared = _squared_on_host if host else _squared
            D = squared(A, self.moved)
            if self.kind == EUCLIDEAN:
                _subtract_close_pairs(D, A, self.moved)
                D = _roots(D)
        return np.ascontiguousarray(D, dtype=np.float64) if host else D

    @property
    def widest(self) -> float:
        """A bound of the distances between points."""
        widest = _widest(self.kind == MANHATTAN, self.moved)
        return float(np.sqrt(widest)) if self.kind == EUCLIDEAN else widest


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


def _widest(manhattan: bool, points: Array) -> float:
    """A bound of the L1 or squared distances between points: from twice the largest norm."""
    if points.shape[0] == 0:
        return np.inf
    if sp.issparse(points):
        sizes = abs(points) if manhattan else points.multiply(points)
        largest = float(sizes.sum(axis=1).max())
    else:
        xp = namespace(points)
        if manhattan:
            points = points - points[:1, :]
        sizes = xp.abs(points) if manhattan else points**2
        largest = float(xp.max(xp.sum(sizes, axis=1)))
    return 2.0 * largest if manhattan else 4.0 * largest


def _squared_on_host(A: Any, B: Any) -> np.ndarray:
    return np.asarray(euclidean_distances(A, B, squared=True))


def _squared(X: Array, Y: Array) -> Array:
    """‖x‖² + ‖y‖² - 2x·y, in place: on a device memory limits the number of rows."""
    xp = namespace(X)
    D = X @ Y.T
    D *= -2.0
    D += xp.sum(X**2, axis=1)[:, None]
    D += xp.sum(Y**2, axis=1)[None, :]
    for rows in row_blocks(D.shape[0], _at_once(D)):
        if X is Y:  # a row has no distance from itself
            own = D[rows, rows]
            D[rows, rows] = own - xp.linalg.diagonal(own) * eye_like(own.shape[0], own)
        squared = D[rows, :]
        D[rows, :] = xp.where(squared > 0, squared, xp.zeros_like(squared))
    return D


def _roots(D: Array) -> Array:
    xp = namespace(D)
    for rows in row_blocks(D.shape[0], _at_once(D)):
        D[rows, :] = xp.sqrt(D[rows, :])
    return D


def _subtract_close_pairs(D: Array, A: Any, B: Any) -> None:
    """Squared distances that rounding may have taken, from differences."""
    a, b = _sizes(A), _sizes(B)
    xp = namespace(D)
    step = max(1, PAIR_ELEMENTS // max(A.shape[1], 1))
    for rows in row_blocks(D.shape[0], _at_once(D)):
        squared = D[rows, :]
        close = squared <= CLOSE * (a[rows, None] + b[None, :])
        first, second = xp.nonzero(close)
        parts = row_blocks(first.shape[0], step)
        if parts:
            pairs = ((first[part] + rows.start, second[part]) for part in parts)
            found = xp.concat([_sizes(_rows(A, i) - _rows(B, j)) for i, j in pairs], axis=0)
            D[rows, :] = _filled(squared, close, found)


def _filled(values: Array, where: Array, found: Array) -> Array:
    """Some values replaced, in their order, by operations that every array library has."""
    xp = namespace(values)
    marked = xp.reshape(where, (-1,))
    order = xp.cumulative_sum(xp.astype(marked, xp.int64)) - 1
    found = xp.take(found, xp.where(order < 0, xp.zeros_like(order), order), axis=0)
    return xp.where(where, xp.reshape(found, values.shape), values)


def _rows(X: Any, numbers: Array) -> Any:
    return X[numbers] if sp.issparse(X) else namespace(X).take(X, numbers, axis=0)


def _sizes(X: Any) -> Array:
    """Squared norms (n,)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return namespace(X).sum(X**2, axis=1)


def _manhattan(X: Array, Y: Array) -> Array:
    xp = namespace(X)
    distance = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for feature in range(X.shape[1]):
        distance = distance + xp.abs(X[:, feature][:, None] - Y[:, feature][None, :])
    return distance
