"""Gram matrices from X.

Scikit-learn's pairwise kernels for NumPy and sparse input, the same formulas elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from ..core.arrays import Array, asarray_like, is_numpy, namespace, to_numpy
from ..core.numerical_warnings import warn_constant
from ..core.refused import RefusedError
from ..core.rows import dense_like, is_rows
from ..core.spectrum import row_blocks
from .distances import MANHATTAN, RADIAL, SQUARED, PointKernel, distance_kernel, log_gamma_slope

PARAMETERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "polynomial": ("gamma", "degree", "coef0"),
    "laplacian": ("gamma",),
    "exponential": ("gamma",),
    "matern32": ("gamma",),
    "matern52": ("gamma",),
    "cosine": (),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}
# what kernel="tune" compares: together at most about four times the work of rbf alone. A polynomial
# among them gains nothing and sends rows far away anywhere: benchmarks/models.py kernels, tables
FAMILIES = ("rbf", "exponential", "laplacian", "linear")
EPSILON = float(np.finfo(np.float64).eps)
SYMMETRY = 1e-6  # relative; float32 kernels are symmetric to about 1e-7
OVERFLOW = (
    "the kernel matrix contains NaN or infinite values: the kernel overflows on these data, or "
    "is not defined for them. "
    "Scale the features (ClippedScaler), or lower degree or gamma."
)


def families(kernel: Any) -> Any:
    """What stands for the kernels to choose from: a tuple of names for "tune" and for a list; a
    single kernel as it is.
    """
    if isinstance(kernel, str) and kernel == "tune":
        return FAMILIES
    if not isinstance(kernel, (list, tuple)):
        return kernel
    names = tuple(dict.fromkeys(kernel))
    return names[0] if len(names) == 1 else names


@dataclass(frozen=True)
class Kernel:
    """A kernel with all its parameters fixed: a name, or a callable on matrices.

    `rbf` is exp(-gamma ‖x-x'‖²), `laplacian` exp(-gamma ‖x-x'‖₁), `exponential` exp(-gamma ‖x-x'‖),
    `matern32` and `matern52` are Matérn's with a length scale of 1/gamma, `poly` (gamma x·x' +
    coef0)^degree, `sigmoid` tanh(gamma x·x' + coef0), `cosine` x·x'/(‖x‖‖x'‖).
    """

    function: str | Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def precomputed(self) -> bool:
        return self.function == "precomputed"

    @property
    def definite(self) -> bool:
        """Whether its matrices are known to have no negative eigenvalues."""
        return self.function in ("linear", "cosine", *RADIAL)

    @property
    def linear(self) -> bool:
        return self.function == "linear"

    @property
    def foreign(self) -> bool:
        """Whether its values come from the user: from a function or a matrix."""
        return callable(self.function)

    def __call__(self, X: Array, Y: Array) -> Array:
        """k(X, Y) as a new dense float64 matrix (n_X, n_Y) that the caller may overwrite.

        X itself if precomputed.
        """
        return self.with_points(Y)(X)

    def with_points(self, Y: Array, constant: bool = False) -> PointKernel:
        """k(·, Y) as a function of rows, minus one if it is close to one for all pairs of points
        and the caller needs it only up to a `constant`.
        """
        if self.precomputed:
            raise TypeError("a precomputed kernel has no formula: pass the matrix itself.")
        if isinstance(self.function, str) and self.function in RADIAL:
            return distance_kernel(self.function, self.parameters["gamma"], Y, constant)
        return PointKernel(lambda X: self._of(X, Y))

    def _of(self, X: Array, Y: Array) -> Array:
        """k(X, Y) of a kernel that is no function of a distance."""
        if callable(self.function):
            return self._called(X, Y)
        if is_numpy(X) or sp.issparse(X):
            K = pairwise_kernels(X, Y, metric=self.function, filter_params=True, **self.parameters)
            K = K.toarray() if sp.issparse(K) else K
            return np.ascontiguousarray(K, dtype=np.float64)
        return _FORMULAS[self.function](X, Y, **self.parameters)

    def diagonal(self, X: Array) -> Array:
        """k(x, x) of every row (n,), a few rows at a time."""
        xp = namespace(dense_like(X))
        blocks = [self(part, part) for part in (X[rows, :] for rows in row_blocks(X.shape[0], 32))]
        return xp.concat([xp.linalg.diagonal(block) for block in blocks], axis=0)

    def log_gamma_slope(self, X: Array) -> Array:
        """∂k/∂log γ of every two rows, for kernels of a distance."""
        return log_gamma_slope(str(self.function), float(self.parameters["gamma"]), X)

    def _called(self, X: Array, Y: Array) -> Array:
        """What a user's function returns, as a new float64 matrix; RefusedError where it fails, or
        has another shape.
        """
        assert callable(self.function)
        try:
            K = self.function(X, Y, **self.parameters)
        except Exception as error:  # a user's function may raise anything
            raise RefusedError(f"the kernel function raised {error!r}.") from error
        expected = (X.shape[0], Y.shape[0])
        if tuple(getattr(K, "shape", ())) != expected:
            raise RefusedError(
                f"a callable kernel must return a matrix of shape {expected} for inputs of "
                f"{expected[0]} and {expected[1]} rows, "
                f"got {getattr(K, 'shape', type(K).__name__)} instead: fitonce calls it once on "
                "whole matrices, kernel(X, Y), "
                "not on pairs of rows."
            )
        K = K.toarray() if sp.issparse(K) else K
        if is_numpy(X) or sp.issparse(X):
            return np.array(to_numpy(K), dtype=np.float64, order="C")
        return asarray_like(K, X) + 0.0


def _linear(X: Array, Y: Array) -> Array:
    return X @ Y.T


def _poly(X: Array, Y: Array, *, gamma: float, degree: float, coef0: float) -> Array:
    return (gamma * (X @ Y.T) + coef0) ** degree


def _sigmoid(X: Array, Y: Array, *, gamma: float, coef0: float) -> Array:
    return namespace(X).tanh(gamma * (X @ Y.T) + coef0)


def _cosine(X: Array, Y: Array) -> Array:
    return _unit_rows(X) @ _unit_rows(Y).T


def _unit_rows(X: Array) -> Array:
    xp = namespace(X)
    norms = xp.sqrt(xp.sum(X**2, axis=1, keepdims=True))
    return X / xp.where(norms == 0, xp.ones_like(norms), norms)


_FORMULAS: dict[Any, Callable[..., Array]] = {
    "linear": _linear,
    "poly": _poly,
    "polynomial": _poly,
    "cosine": _cosine,
    "sigmoid": _sigmoid,
}


def gamma_of(given: Any, X: Array, weights: np.ndarray | None) -> Any:
    """gamma as a number: as given, or by a rule."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return 1.0 / int(X.shape[1])
    return scale_gamma(X, weights) if isinstance(given, str) else given


def scale_gamma(X: Array, weights: np.ndarray | None) -> float:
    """1/(n_features · var(X)), the variance over all entries with row weights.

    1 where it vanishes.
    """
    means, variances = _moments(X, weights)
    mean = float(np.mean(means))
    return _reciprocal(X.shape[1] * float(np.mean(variances + (means - mean) ** 2)))


def central_gamma(name: str, X: Array, weights: np.ndarray | None) -> float:
    """The gamma around which candidates are placed: one over the size of what it multiplies.

    That is the mean squared distance of two rows for `rbf`, its root for kernels of the distance
    itself, about their mean L1 distance for `laplacian`, and the mean squared norm of a row for
    `poly` and `sigmoid`; means over the weighted rows, so that weight 2 equals a repeated row.
    """
    means, variances = _moments(X, weights)
    kind = RADIAL[name].distance if name in RADIAL else None
    if kind == MANHATTAN:
        return _reciprocal(float(np.sum(np.sqrt(variances))))
    if kind is not None:
        squared = 2.0 * float(np.sum(variances))
        return _reciprocal(squared if kind == SQUARED else float(np.sqrt(squared)))
    return _reciprocal(float(np.sum(variances + means**2)))


def _reciprocal(size: float) -> float:
    return 1.0 / size if size > 0 and np.isfinite(1.0 / size) else 1.0


def _moments(X: Array, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of each feature, on the host.

    A variance of rounding size is zero.
    """
    w = np.ones(X.shape[0]) if weights is None else weights
    w = w / w.sum()
    if is_rows(X):
        means, variances = _block_moments(X, w)
        negligible = (16 * EPSILON * means) ** 2
    elif sp.issparse(X):
        means = np.asarray(X.T @ w)
        variances = np.asarray(X.multiply(X).T @ w) - means**2
        negligible = 16 * EPSILON * means**2
    else:
        w = asarray_like(w, X)
        centre = w @ X
        means, variances = to_numpy(centre), to_numpy(w @ (X - centre) ** 2)
        negligible = (16 * EPSILON * means) ** 2
    return means, np.where(variances > negligible, variances, 0.0)


def _block_moments(rows: Any, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means, then mean squares about them: two passes, as in memory."""
    means = rows.reduce(_weighted_sum, np.add, w[:, None])
    return means, rows.reduce(partial(_weighted_squares, means), np.add, w[:, None])


def _weighted_sum(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.asarray(w[:, 0] @ X)


def _weighted_squares(centre: np.ndarray, X: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.asarray(w[:, 0] @ (X - centre) ** 2)


# ---- kernel matrices as they come ----------------------------------------------------------------


def asymmetry(K: Array) -> float:
    """max |K - Kᵀ|, on the device of K."""
    xp = namespace(K)
    return max(float(xp.max(xp.abs(K[rows, :] - K[:, rows].T))) for rows in row_blocks(K.shape[0]))


def largest_entry(K: Array) -> float:
    """max |K|, without a copy."""
    if sp.issparse(K):
        return max(float(K.max()), -float(K.min()))
    xp = namespace(K)
    return max(float(xp.max(K)), -float(xp.min(K)))


def check_square(K: Array) -> None:
    """A precomputed training kernel must be square and symmetric (to the square root of the
    precision).
    """
    if K.shape[0] != K.shape[1]:
        raise RefusedError(
            "Precomputed matrix must be a square kernel matrix of the training rows, got shape "
            f"{tuple(K.shape)} instead; "
            "pass rectangular test×train kernels to predict."
        )
    scale, difference = largest_entry(K), asymmetry(K)
    if difference > SYMMETRY * scale:
        raise RefusedError(
            "the precomputed kernel matrix must be symmetric, but K and its transpose differ by "
            f"up to {difference:g} (largest entry "
            f"{scale:g}). A kernel is a similarity k(x, x') = k(x', x); average K and K.T if the "
            "difference is noise."
        )


def check_kernel_values(K: Array) -> None:
    """Overflow of a kernel is told where it happens, not as a failed decomposition.

    A constant kernel is warned of.
    """
    xp = namespace(K)
    highest, lowest = float(xp.max(K)), float(xp.min(K))
    if not (np.isfinite(highest) and np.isfinite(lowest)):
        raise RefusedError(OVERFLOW)
    if highest - lowest <= 8 * float(xp.finfo(K.dtype).eps) * max(abs(highest), abs(lowest)):
        warn_constant()
