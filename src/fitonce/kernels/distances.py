r"""Kernels of distances: functions φ(z) of one number, z = γ times the distance of two rows, with
derivatives, computed without losing digits in float64.

    name          distance        φ(z)
    rbf           ‖x - y‖₂²       exp(-z)
    laplacian     ‖x - y‖₁        exp(-z)
    exponential   ‖x - y‖₂        exp(-z)                          Matérn 1/2
    matern32      ‖x - y‖₂        (1 + u) exp(-u),                 u = √3 z
    matern52      ‖x - y‖₂        (1 + u + u²/3) exp(-u),          u = √5 z

z φ'(z) is the derivative in log γ.

**Rows far from the origin.** ‖x - y‖² = ‖x‖² + ‖y‖² - 2x·y loses digits if ‖x‖² is larger than the
distance. Distances do not change if all rows are shifted, so rows are shifted by the medians of
some points, which are robust to outliers.

**Very smooth kernels.** If all values are close to one, only their differences matter. exp(z)
rounds them to eps, exp(z) - 1 to eps·|z|. With a free bias, the model is the same.

**Rows close to each other.** If a distance is lost in rounding, its root is 1e-8 instead of 0,
which changes a kernel of ‖x - y‖. For pairs that are close relative to their norms, differences are
computed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import device
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from ..core.arrays import Array, asarray_like, eye_like, is_numpy, namespace, take, to_numpy
from ..core.spectrum import row_blocks

NEAR_ONE = float(np.log(2.0))  # if all values exceed one half, one is subtracted
MEDIAN_OF = 101  # rows, from the first to the last
CLOSE = 1e-6  # squared distances below this share of the squared norms come from differences
ELEMENTS, DEVICE_ROWS = 1 << 16, 4096  # of a matrix processed at a time: on the host half a MiB
PAIR_ELEMENTS = 1 << 21  # entries of differences computed at a time
FULL = 0.9  # a sparse column with at least this share of entries is shifted like a dense one
SQUARED, EUCLIDEAN, MANHATTAN = "squared", "euclidean", "manhattan"
TERMS = 26  # of the series of φ - 1, which reaches eps up to SERIES_UP_TO
SERIES_UP_TO = 1.6


@dataclass(frozen=True)
class PointKernel:
    """A kernel with some points as a function of rows, minus `offset`."""

    function: Callable[[Array], Array]
    offset: float = 0.0

    def __call__(self, X: Array) -> Array:
        return self.function(X)


@dataclass(frozen=True)
class Radial:
    """φ = P(u) exp(-u), u = scale·z, with the coefficients of P, lowest first."""

    distance: str
    scale: float = 1.0
    P: tuple[float, ...] = (1.0,)

    def value(self, u: Array) -> Array:
        decay = namespace(u).exp(-u)
        return decay if len(self.P) == 1 else _polynomial(self.P, u) * decay

    def less_one(self, u: Array) -> Array:
        """φ - 1 without loss of digits where φ is close to one: the first powers of u cancel in the
        product of P with the series of exp(-u), so that their sum would lose digits.
        """
        xp = namespace(u)
        if len(self.P) == 1:
            return xp.expm1(-u)
        exponential = [(-1.0) ** k / factorial(k) for k in range(TERMS)]
        product = np.convolve(self.P, exponential)[2:TERMS].tolist()
        return xp.where(u < SERIES_UP_TO, _polynomial(product, u) * u**2, self.value(u) - 1.0)

    def log_slope(self, u: Array) -> Array:
        """∂φ/∂log z = u (P' - P) exp(-u)."""
        derivative = [*(k * c for k, c in enumerate(self.P) if k), 0.0]
        difference = [a - b for a, b in zip(derivative, self.P, strict=True)]
        return u * _polynomial(difference, u) * namespace(u).exp(-u)


def _polynomial(coefficients: Sequence[float], u: Array) -> Any:
    """Σ c_k uᵏ, by Horner's rule; a number where it is constant."""
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * u + c
    return total


RADIAL = {
    "rbf": Radial(SQUARED),
    "laplacian": Radial(MANHATTAN),
    "exponential": Radial(EUCLIDEAN),
    "matern32": Radial(EUCLIDEAN, sqrt(3.0), (1.0, 1.0)),
    "matern52": Radial(EUCLIDEAN, sqrt(5.0), (1.0, 1.0, 1.0 / 3.0)),
}


def distance_kernel(name: str, gamma: Any, points: Array, constant: bool) -> PointKernel:
    """The kernel with some points, minus one if that keeps digits and `constant` allows it; for
    rbf, gamma may be a vector, one value for each feature.
    """
    scale, width = (np.sqrt(gamma), 1.0) if np.ndim(gamma) else (None, float(gamma))
    radial = RADIAL[name]
    distances = DistancesTo(radial.distance, points, scale)
    shifted = constant and width * distances.widest < NEAR_ONE
    profile = radial.less_one if shifted else radial.value

    def kernel(X: Array) -> Array:
        K = distances(X)
        for rows in row_blocks(K.shape[0], _at_once(K)):
            K[rows, :] = profile(width * radial.scale * K[rows, :])
        return K

    return PointKernel(kernel, float(shifted))


def log_gamma_slope(name: str, gamma: float, X: Array) -> Array:
    """∂k/∂log γ = z φ'(z) of every two rows."""
    radial = RADIAL[name]
    slope = DistancesTo(radial.distance, X)(X)
    for rows in row_blocks(slope.shape[0], _at_once(slope)):
        slope[rows, :] = radial.log_slope(gamma * radial.scale * slope[rows, :])
    return slope


def _at_once(A: Array) -> int:
    """Rows to process at a time: few on the host, so that intermediate results stay in the
    cache.
    """
    return max(1, ELEMENTS // max(1, A.shape[1])) if is_numpy(A) else DEVICE_ROWS


class DistancesTo:
    """Distances of rows from some points, "squared", "euclidean" or "manhattan", as a new float64
    matrix.
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
            sparse = sp.issparse(A)
            D = (
                euclidean_distances(A, self.moved, squared=True)
                if sparse
                else _squared(A, self.moved)
            )
            if self.kind == EUCLIDEAN:
                _subtract_close_pairs(D, A, self.moved)
                D **= 0.5
        return np.ascontiguousarray(D, dtype=np.float64) if host else D

    @property
    def widest(self) -> float:
        """An upper bound of the distances between points."""
        widest = _widest(self.kind == MANHATTAN, self.moved)
        return float(np.sqrt(widest)) if self.kind == EUCLIDEAN else widest


def off_origin(X: Any) -> Any:
    """Sparse rows whose nearly full columns, moved to the end, are centered on their medians."""
    return _moved(X, None, _centre(X, None))


def _scaled(X: Array, scale: np.ndarray | None) -> Array:
    """Features times √γ, if each has its own γ: the kernel is then an rbf with γ = 1."""
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
    """Rows scaled and shifted by the center. In sparse rows, the shifted columns come last, which
    does not change distances.
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
    """An upper bound of the L1 or squared distances between points: from twice the largest norm."""
    if points.shape[0] == 0:
        return np.inf
    if not manhattan:
        sizes = 2.0 * _sizes(points)
    elif sp.issparse(points):
        sizes = np.asarray(abs(points).sum(axis=1))
    else:
        sizes = namespace(points).sum(abs(points - points[:1, :]), axis=1)
    return 2.0 * float(namespace(sizes).max(sizes))


def _squared(X: Array, Y: Array) -> Array:
    """‖x‖² + ‖y‖² - 2x·y, in place, since memory limits the number of rows on a device."""
    xp = namespace(X)
    D, of_X, of_Y = X @ (-2.0 * Y).T, _sizes(X), _sizes(Y)
    for rows in row_blocks(D.shape[0], _at_once(D)):
        squared = D[rows, :] + of_X[rows, None]
        squared += of_Y[None, :]
        D[rows, :] = xp.clip(squared, 0.0, None)
        if X is Y:  # the distance of a row from itself is zero
            own = D[rows, rows]
            D[rows, rows] = own - xp.linalg.diagonal(own) * eye_like(own.shape[0], own)
    return D


def _subtract_close_pairs(D: Array, A: Any, B: Any) -> None:
    """Compute squared distances that may be lost in rounding from differences."""
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
            squared[close] = xp.concat(
                [_sizes(_rows(A, i) - _rows(B, j)) for i, j in pairs], axis=0
            )
            D[rows, :] = squared


def _rows(X: Any, numbers: Array) -> Any:
    return X[numbers] if sp.issparse(X) else namespace(X).take(X, numbers, axis=0)


def _sizes(X: Any) -> Array:
    """Squared norms (n,)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    if is_numpy(X):
        return np.asarray(np.einsum("ij,ij->i", X, X))
    return namespace(X).sum(X**2, axis=1)


def _manhattan(X: Array, Y: Array) -> Array:
    """L1 distances (n_X, n_Y), a feature at a time."""
    xp = namespace(X)
    distance = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for feature in range(X.shape[1]):
        distance = distance + xp.abs(X[:, feature][:, None] - Y[:, feature][None, :])
    return distance
