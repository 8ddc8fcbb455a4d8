"""The smoother of rows and a kernel, by the cheapest means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import (
    Array,
    NotPositiveDefiniteError,
    namespace,
    on_gpu,
    zeros_like_shape,
)
from ..core.banded import Banded
from ..core.dual import DualNorm, DualNormWithBias
from ..core.inverse import Inverse
from ..core.memory import (
    NotEnoughMemoryError,
    explanation,
    memory_of,
    out_of_memory_explained,
)
from ..core.numerical_warnings import warn_constant
from ..core.refused import RefusedError
from ..core.resolvent import Resolvent
from ..core.rows import dense_like, on_host
from ..core.smoothers import FunctionNorm, KernelSmoother
from ..core.spectrum import (
    frobenius,
    orthonormal,
    row_blocks,
    spectrum_of_features,
    spectrum_of_kernel,
)
from ..kernels import OVERFLOW, Kernel, check_kernel_values, check_square, largest_entry, off_origin

BAND_FROM = 6144  # rows from which the band form beats eigh on a GPU, folds included
TOO_SMALL = (
    "alpha is too small for this kernel: the kernel matrix plus alpha is not positive definite. "
    'Use a larger alpha, or penalty="dual", which does not need this.'
)
SAFE = 1e-6  # of the norm or the largest entry of a kernel: with a larger mu, a factorization has
# ten digits, and none of the warnings about fewer is due
# float64 n×n matrices at the peak of a fit: for any alpha, for a single one, and through the band
# form of a GPU
MATRICES = {"all": 3.2, "one": 2.2, "band": 1.4}
LONG = 256 * 2**20  # bytes: below, a kernel matrix fits everywhere
FitIntercept = bool | str  # True, False, "penalized" or "coefficient"


def decompose(
    X: Any,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    row_scale: Array | None,
    free: Array | None = None,
    removed: bool = False,
    mu: float | None = None,
    whole: Callable[[], Resolvent] | None = None,
) -> KernelSmoother:
    """The smoother of the rows X, for any mu or by cheaper means for the given one only; X is the
    kernel matrix itself where precomputed, which is overwritten.

    With `whole`, which makes the factorization for any mu, others may follow: it is called when
    they do.

    `free` (n, u) is the orthonormal basis of what is not penalized where that is more than a free
    bias, whose column is its first. Where it is `removed` from the features, the dual norm is that
    of the residual kernel; the function norm is the same.
    """
    if few_features(X, kernel, penalty):
        return _decompose_features(X, fit_intercept, row_scale, free)
    if penalty == "dual":
        return _dual_norm(X, kernel, fit_intercept, row_scale, free, removed)
    centred = fit_intercept is True
    X = _off_origin(X, row_scale) if centred and kernel.linear else X
    K, _ = _kernel_and_offset(X, kernel, centred)
    Q0 = bias_basis(K, row_scale, fit_intercept) if free is None else free
    if centred:
        xp = namespace(K)
        s = xp.ones_like(Q0[:, :1]) if row_scale is None else row_scale
        # rounding is eps times the largest entry as it was computed, whatever centering leaves
        entry = largest_entry(K) * float(xp.max(s)) ** 2
        mean = s * _centre(K, s)
        K = _scaled(K, fit_intercept, row_scale)
        # α ⟂ s: of the means, those of the columns alone are seen
        KQ0 = mean * xp.sqrt(xp.sum(s**2)) if free is None else K @ Q0 + mean @ (s.T @ Q0)
    else:
        K = _scaled(K, fit_intercept, row_scale)
        KQ0, entry = K @ Q0, largest_entry(K)
    return FunctionNorm(_factorized(K, Q0, entry, kernel.linear, mu, whole), KQ0, entry)


def _dual_norm(
    X: Any,
    kernel: Kernel,
    fit_intercept: FitIntercept,
    row_scale: Array | None,
    free: Array | None,
    removed: bool,
) -> DualNorm:
    """The dual norm, by eigenvectors."""
    shifted, offset = _kernel_and_offset(X, kernel, fit_intercept is True)
    K = _scaled(shifted, fit_intercept, row_scale)
    Q0 = bias_basis(K, row_scale, fit_intercept) if free is None else free
    KQ0 = K @ Q0
    bias = _bias_column(K, row_scale) if fit_intercept == "coefficient" else ()
    spectrum = spectrum_of_kernel(K, Q0 if removed else zeros_like_shape((K.shape[0], 0), K))
    if spectrum.largest > np.sqrt(np.finfo(np.float64).max):  # it enters squared
        raise RefusedError(OVERFLOW)
    if fit_intercept == "coefficient":
        return DualNormWithBias(spectrum, Q0, KQ0, offset, *bias)
    return DualNorm(spectrum, Q0, KQ0, offset)


def _factorized(
    K: Array,
    Q0: Array,
    entry: float,
    linear: bool,
    mu: float | None,
    whole: Callable[[], Resolvent] | None,
) -> Resolvent:
    """By the cheapest factorization, which overwrites the kernel matrix; by eigenvectors where
    others may follow and Cholesky's factor would lose digits.
    """
    if mu is not None and (whole is None or mu >= SAFE * max(float(frobenius(K)), entry)):
        try:
            return Inverse.of(K, Q0, mu, whole)
        except NotPositiveDefiniteError as error:
            if whole is None:
                raise NotPositiveDefiniteError(TOO_SMALL) from error
            return whole()
    if on_gpu(K) and K.shape[0] >= BAND_FROM and not linear:
        return Banded.of(K, Q0, entry=entry)
    return spectrum_of_kernel(K, Q0, entry)


@contextmanager
def check_fits(
    X: Any, kernel: Kernel, penalty: str, mu: float | None, copied: bool = False
) -> Iterator[None]:
    """Refuse a kernel matrix that memory cannot hold, before it is filled.

    Explain one that runs out of it after all. A precomputed one is there already, unless it is
    `copied`.
    """
    n = int(X.shape[0])
    if few_features(X, kernel, penalty) or 8 * n**2 < LONG:
        yield
        return
    like = dense_like(X)
    band = mu is None and penalty == "function" and not on_host(X) and on_gpu(X)
    matrices = MATRICES["band" if band else "all" if mu is None else "one"] - (
        1.0 if kernel.precomputed and not copied else 0.0
    )
    memory = memory_of(like)
    if memory is not None and matrices * 8 * n**2 > memory.free:
        raise NotEnoughMemoryError(explanation(n, matrices, memory))
    with out_of_memory_explained(n, like, matrices):
        yield


def few_features(X: Any, kernel: Kernel, penalty: str) -> bool:
    """Whether the decomposition goes through the p×p side, without a kernel matrix."""
    return kernel.linear and penalty == "function" and bool(X.shape[1] < X.shape[0])


def _off_origin(X: Any, row_scale: Array | None) -> Any:
    """Rows minus their mean: for the linear kernel with a free bias, this changes nothing but the
    rounding.
    """
    if sp.issparse(X):
        return off_origin(X)
    xp = namespace(X)
    w = xp.ones_like(X[:, :1]) if row_scale is None else row_scale**2
    return X - xp.sum(w * X, axis=0) / xp.sum(w)


def _centre(K: Array, s: Array) -> Array:
    """Overwrite K by C_w K C_wᵀ; returns the weighted means of its columns (n, 1).

    Before rows are scaled, so that a row of great weight cancels to its own digits. What rounding
    leaves of the means themselves is a1ᵀ + 1aᵀ, and goes with the projection off Q₀.
    """
    xp, blocks = namespace(K), list(row_blocks(K.shape[0]))
    w = s**2 / xp.sum(s**2)
    anchor = K[:1, :].T + 0.0  # differences of large entries that are close are exact
    mean = anchor + sum((K[rows, :] - anchor.T).T @ w[rows, :] for rows in blocks)
    middle = mean[:1, :] + xp.sum(w * (mean - mean[:1, :]))
    deviation = mean - middle
    for rows in blocks:
        K[rows, :] -= mean.T
        K[rows, :] -= deviation[rows, :]
    return mean


def _kernel_and_offset(X: Any, kernel: Kernel, constant: bool) -> tuple[Array, float]:
    """K less a constant where that is allowed, and the constant; X itself where precomputed."""
    of_points = None if kernel.precomputed else kernel.with_points(X, constant)
    K = X if of_points is None else of_points(X)
    if kernel.precomputed or kernel.foreign:
        check_square(K)
    check_kernel_values(K)
    return K, 0.0 if of_points is None else of_points.offset


def _scaled(K: Array, fit_intercept: FitIntercept, row_scale: Array | None) -> Array:
    """diag(s) K diag(s), with one added to K for a penalized bias."""
    if fit_intercept == "penalized":
        K += 1.0
    if row_scale is not None:
        K *= row_scale
        K *= row_scale.T
    return K


def _decompose_features(
    X: Any, fit_intercept: FitIntercept, row_scale: Array | None, free: Array | None
) -> FunctionNorm:
    """The linear kernel with fewer features than rows; a penalized bias is one more feature.

    Sparse X is made dense: with p < n that is less than the kernel matrix, and V has that size
    anyway.
    """
    Z = X.toarray() if sp.issparse(X) else X
    xp = namespace(Z)
    if fit_intercept == "penalized":
        Z = xp.concat([Z, xp.ones_like(Z[:, :1])], axis=1)
    Z = Z if row_scale is None else row_scale * Z
    Q0 = bias_basis(Z, row_scale, fit_intercept) if free is None else free
    if not np.isfinite(float(xp.sum(Z**2))):
        raise RefusedError(OVERFLOW)
    spectrum = spectrum_of_features(Z, Q0)
    if spectrum.rank == 0:
        warn_constant()
    return FunctionNorm(spectrum, Z @ (Z.T @ Q0))


def _bias_column(K: Array, row_scale: Array | None) -> tuple[Array, Array, float]:
    """s/‖s‖ and K times it (n, 1), and ‖s‖²."""
    xp = namespace(K)
    s = xp.ones_like(K[:, :1]) if row_scale is None else row_scale
    size = float(xp.sum(s**2))
    column = s / size**0.5
    return column, K @ column, size


def bias_basis(like: Array, row_scale: Array | None, fit_intercept: FitIntercept) -> Array:
    """Q₀ (n, 1) of a free bias, (n, 0) otherwise."""
    if fit_intercept is not True:
        return zeros_like_shape((like.shape[0], 0), like)
    ones = namespace(like).ones_like(like[:, :1])
    return orthonormal(ones if row_scale is None else row_scale)
