"""The smoother of rows and a kernel, by the cheapest means."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, on_gpu, zeros_like_shape
from ..core.band_norm import BandNorm
from ..core.doubt import warn_constant
from ..core.dual import DualNorm
from ..core.rows import dense_like
from ..core.smoothers import FunctionNorm, FunctionNormAt, KernelSmoother
from ..core.spectrum import orthonormal, spectrum_of_features, spectrum_of_kernel
from ..kernels import OVERFLOW, Kernel, check_kernel_values, check_square

BAND_FROM = 6144  # rows from which the band form beats eigh on a GPU, folds included
FitIntercept = bool | str  # True, False or "penalized"


def row_scale_of(weights: np.ndarray | None, X: Any) -> Array | None:
    """The square roots of the row weights (n, 1) where X lives."""
    return None if weights is None else asarray_like(np.sqrt(weights)[:, None], dense_like(X))


def decompose(
    X: Any, kernel: Kernel, penalty: str, fit_intercept: FitIntercept, row_scale: Array | None
) -> KernelSmoother:
    """The smoother of the rows X for any mu; X is the kernel matrix itself where precomputed, which
    is overwritten.
    """
    if few_features(X, kernel, penalty):
        return _decompose_features(X, fit_intercept, row_scale)
    if penalty == "function":
        X = off_origin(X, kernel, fit_intercept, row_scale)
    K = scaled_kernel(X, kernel, fit_intercept, row_scale)
    Q0 = bias_basis(K, row_scale, fit_intercept)
    if penalty == "function" and on_gpu(K) and K.shape[0] >= BAND_FROM and not kernel.linear:
        return BandNorm.of_kernel(K, Q0)
    KQ0 = K @ Q0
    if penalty == "function":
        return FunctionNorm(spectrum_of_kernel(K, Q0), KQ0)
    spectrum = spectrum_of_kernel(K, zeros_like_shape((K.shape[0], 0), K))
    if spectrum.largest > np.sqrt(np.finfo(np.float64).max):  # it enters squared
        raise ValueError(OVERFLOW)
    return DualNorm(spectrum, Q0, KQ0)


def few_features(X: Any, kernel: Kernel, penalty: str) -> bool:
    """Whether the decomposition goes through the p×p side, without a kernel matrix."""
    return kernel.linear and penalty == "function" and bool(X.shape[1] < X.shape[0])


def decompose_at(
    X: Any,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    row_scale: Array | None,
    mu: float,
) -> KernelSmoother:
    """`decompose` for a single mu, by the cheapest means."""
    if penalty == "dual" or few_features(X, kernel, penalty):
        return decompose(X, kernel, penalty, fit_intercept, row_scale)
    X = off_origin(X, kernel, fit_intercept, row_scale)
    K = scaled_kernel(X, kernel, fit_intercept, row_scale)
    return FunctionNormAt.of_kernel(K, bias_basis(K, row_scale, fit_intercept), mu)


def off_origin(X: Any, kernel: Kernel, fit_intercept: FitIntercept, row_scale: Array | None) -> Any:
    """Rows less their mean where that changes nothing but the rounding: the linear kernel with a
    free bias.
    """
    if not kernel.linear or fit_intercept is not True or sp.issparse(X):
        return X
    xp = namespace(X)
    w = xp.ones_like(X[:, :1]) if row_scale is None else row_scale**2
    return X - xp.sum(w * X, axis=0) / xp.sum(w)


def scaled_kernel(
    X: Any, kernel: Kernel, fit_intercept: FitIntercept, row_scale: Array | None
) -> Array:
    """diag(s) K diag(s), with one added to K for a penalised bias."""
    K = X if kernel.precomputed else kernel(X, X)
    if kernel.precomputed or callable(kernel.function):
        check_square(K)
    check_kernel_values(K)
    if fit_intercept == "penalized":
        K += 1.0
    if row_scale is not None:
        K *= row_scale
        K *= row_scale.T
    return K


def _decompose_features(
    X: Any, fit_intercept: FitIntercept, row_scale: Array | None
) -> FunctionNorm:
    """The linear kernel with fewer features than rows; a penalised bias is one more feature.

    Sparse X is made dense: with p < n that is less than the kernel matrix, and V has that size
    anyway.
    """
    Z = X.toarray() if sp.issparse(X) else X
    xp = namespace(Z)
    if fit_intercept == "penalized":
        Z = xp.concat([Z, xp.ones_like(Z[:, :1])], axis=1)
    Z = Z if row_scale is None else row_scale * Z
    Q0 = bias_basis(Z, row_scale, fit_intercept)
    if not np.isfinite(float(xp.sum(Z**2))):
        raise ValueError(OVERFLOW)
    spectrum = spectrum_of_features(Z, Q0)
    if spectrum.rank == 0:
        warn_constant()
    return FunctionNorm(spectrum, Z @ (Z.T @ Q0))


def bias_basis(like: Array, row_scale: Array | None, fit_intercept: FitIntercept) -> Array:
    """Q₀ (n, 1) of a free bias, (n, 0) otherwise."""
    if fit_intercept is not True:
        return zeros_like_shape((like.shape[0], 0), like)
    ones = namespace(like).ones_like(like[:, :1])
    return orthonormal(ones if row_scale is None else row_scale)
