"""The few array operations that differ between NumPy, torch and CuPy.

Everything else in the core is written against the array-API standard, with the namespace taken from
the arguments; only what the standard lacks, or what a native call does much better, lives here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat.numpy
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_numpy_array,
    is_torch_array,
)

from .refused import RefusedError

Array = Any  # an array of any namespace that follows the array-API standard


def namespace(*arrays: Array) -> Any:
    """The array-API namespace that the arrays share; NumPy's at once, as small fits ask often."""
    plain = all(type(A) is np.ndarray for A in arrays)
    return array_api_compat.numpy if plain and arrays else array_namespace(*arrays)


def is_numpy(A: Array) -> bool:
    return bool(is_numpy_array(A))


def asarray_like(values: Any, like: Array, dtype: Any = None) -> Array:
    """``values`` as an array in the namespace and on the device of ``like``, float64 unless told
    otherwise.
    """
    xp = namespace(like)
    if hasattr(values, "shape") and type(values) is not type(like):
        values = to_numpy(values)
    return xp.asarray(values, dtype=xp.float64 if dtype is None else dtype, device=device(like))


def index_like(indices: Any, like: Array) -> Array:
    """Row indices as an integer array on the device of ``like``."""
    if is_numpy(like):
        return np.asarray(indices, dtype=np.intp)
    xp = namespace(like)
    return xp.asarray(np.asarray(indices, dtype=np.int64), device=device(like))


def take(A: Array, rows: Any) -> Array:
    """The rows of ``A``, an array or a sparse matrix, with the given indices."""
    if is_numpy(A) or sp.issparse(A):
        return A[np.asarray(rows, dtype=np.intp)]
    return namespace(A).take(A, index_like(rows, A), axis=0)


def square_block(A: Array, rows: Any) -> Array:
    """The block of a square matrix at the given rows and columns."""
    if is_numpy(A):
        rows = np.asarray(rows, dtype=np.intp)
        return A[rows[:, None], rows]
    return take(take(A, rows).T, rows).T


def replace_rows(A: Array, rows: Any, values: Array) -> Array:
    """A copy of ``A`` with some of its rows replaced."""
    copy = namespace(A).asarray(A, copy=True)
    if is_numpy(A) or is_torch_array(A) or is_cupy_array(A):
        copy[index_like(rows, A)] = values
        return copy
    for number, row in enumerate(rows):  # the standard knows no assignment to a list of rows
        copy[int(row), ...] = values[number, ...]
    return copy


def on_gpu(A: Array) -> bool:
    """Whether A lives on a GPU: a CuPy array, or a CUDA tensor of torch."""
    return bool(is_cupy_array(A)) or (bool(is_torch_array(A)) and A.device.type == "cuda")


def to_numpy(A: Any) -> np.ndarray:
    """A host copy (or view) of ``A`` as a NumPy array."""
    if isinstance(A, np.ndarray):
        return A
    if is_torch_array(A):
        return np.asarray(A.detach().cpu().numpy())
    if is_cupy_array(A):
        return np.asarray(A.get())
    if is_array_api_obj(A):  # array-api-strict, whose second device stands for a GPU in tests
        return np.asarray(A.to_device(namespace(A).Device("CPU_DEVICE")))
    return np.asarray(A)


def eye_like(n: int, like: Array) -> Array:
    xp = namespace(like)
    return xp.eye(n, dtype=like.dtype, device=device(like))


def transposed(A: Array) -> Array:
    """Of a matrix, or of each one of a stack."""
    return namespace(A).matrix_transpose(A)


def symmetric(A: Array) -> Array:
    """½(A + Aᵀ), of a matrix or of each one of a stack."""
    return 0.5 * (A + transposed(A))


def sorted_rows(A: Array) -> Array:
    """Every row in ascending order; A may be destroyed."""
    if is_numpy(A):
        A.sort(axis=-1)
        return A
    return A.sort(dim=-1).values if is_torch_array(A) else namespace(A).sort(A, axis=-1)


def add_to_diagonal(A: Array, value: float) -> None:
    """A += value·I, in place."""
    if is_numpy(A):
        A.flat[:: A.shape[1] + 1] += value
    elif is_torch_array(A):
        A.diagonal().add_(value)
    else:
        A += value * eye_like(A.shape[0], A)


def zeros_like_shape(shape: tuple[int, ...], like: Array) -> Array:
    xp = namespace(like)
    return xp.zeros(shape, dtype=like.dtype, device=device(like))


def empty_like_shape(shape: tuple[int, ...], like: Array) -> Array:
    return namespace(like).empty(shape, dtype=like.dtype, device=device(like))


def eigh_overwriting(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix, which may be destroyed.

    NumPy goes through LAPACK's divide and conquer in place: 3.1 n² of memory at the peak instead of
    5.1.
    """
    if A.shape[0] == 1:  # older SciPy refuses it
        return A[0, :], namespace(A).ones_like(A)
    if is_numpy(A):
        eigenvalues, V = scipy.linalg.eigh(A.T, driver="evd", overwrite_a=True, check_finite=False)
        return eigenvalues, V
    result = namespace(A).linalg.eigh(A)
    return result[0], result[1]


def spd_solver(A: Array) -> Callable[[Array], Array]:
    """Factor a symmetric positive definite matrix once; the returned function solves A X = B.

    A matrix that rounding has pushed out of the positive cone is solved as a general one.
    """
    if A.shape[0] <= 1:  # SciPy before 1.14 refuses empty ones
        return lambda B: B / A if A.shape[0] else B
    if is_numpy(A):
        try:
            factor = scipy.linalg.cho_factor(A, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            lu = scipy.linalg.lu_factor(A, check_finite=False)
            return lambda B: scipy.linalg.lu_solve(lu, B, check_finite=False)
        return lambda B: scipy.linalg.cho_solve(factor, B, check_finite=False)
    xp = namespace(A)
    if is_torch_array(A):
        L, info = xp.linalg.cholesky_ex(A)
        if int(info) == 0:
            return lambda B: xp.cholesky_solve(B, L)
    return lambda B: xp.linalg.solve(A, B)


class NotPositiveDefiniteError(RefusedError):
    """A kernel matrix plus mu that has no Cholesky factor: mu ≤ -λ_min, or below what rounding
    leaves of zero.
    """


def cholesky_overwriting(A: Array) -> Array:
    """L with A = LLᵀ, zero above the diagonal; A may be destroyed. NotPositiveDefiniteError where
    there is none.
    """
    if not is_numpy(A):
        L, failed = cholesky_stack(A)
        if bool(failed):
            raise NotPositiveDefiniteError
        return L
    L, failed = scipy.linalg.lapack.dpotrf(A.T, lower=1, overwrite_a=1, clean=1)
    if failed:
        raise NotPositiveDefiniteError
    return L


def subtract_product(A: Array, B: Array, C: Array) -> None:
    """A -= B @ C in place and without a temporary of A's size.

    A may be a view, and all three may be stacks.
    """
    if is_torch_array(A):
        A.baddbmm_(B, C, alpha=-1.0) if A.ndim == 3 else A.addmm_(B, C, alpha=-1.0)
        return
    for start in range(0, A.shape[-2], 256):
        rows = slice(start, min(start + 256, A.shape[-2]))
        A[..., rows, :] -= B[..., rows, :] @ C


def packed_qr(P: Array) -> tuple[Array, Array]:
    """LAPACK's geqrf: R with the reflections below it, and their scales."""
    if is_torch_array(P):
        factored, scales = P.geqrf()
        return factored, scales
    # narrow: a copy on the host costs little
    (factored, scales), _ = scipy.linalg.qr(to_numpy(P), mode="raw", check_finite=False)
    return asarray_like(factored, P), asarray_like(scales, P)


def triangular_inverse(A: Array, upper: bool = False) -> Array:
    """The inverse of a small triangular matrix, or of a stack of them."""
    xp = namespace(A)
    if is_torch_array(A):
        return xp.linalg.solve_triangular(A, eye_like(A.shape[-1], A), upper=upper)
    return xp.triu(xp.linalg.inv(A)) if upper else xp.tril(xp.linalg.inv(A))


def cholesky_stack(A: Array) -> tuple[Array, Array]:
    """L with A = LLᵀ for a matrix or a stack (m, b, b), and whether any failed (a 0-d array, so
    that a GPU need not be waited for).

    Where the namespace itself raises its LinAlgError, this is a NotPositiveDefiniteError.
    """
    xp = namespace(A)
    if is_torch_array(A):
        L, info = xp.linalg.cholesky_ex(A)
        return L, xp.any(info != 0)
    try:
        L = xp.linalg.cholesky(A)
    except Exception as error:  # each namespace has its own class for this, of one name
        if not any("LinAlgError" in kind.__name__ for kind in type(error).__mro__):
            raise
        raise NotPositiveDefiniteError from error
    return L, ~xp.all(xp.isfinite(L))
