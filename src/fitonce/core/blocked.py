r"""Inverses, stacks of solves and symmetric products of large matrices, by the faster way there is.

A GPU's library is at its best with one large factorization or product at a time, LAPACK's with
triangles of which the other half is mirrored.
"""

from __future__ import annotations

import scipy.linalg
from array_api_compat import is_torch_array

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    cholesky_overwriting,
    empty_like_shape,
    is_numpy,
    namespace,
    spd_solver,
    transposed,
    triangular_inverse,
)
from .spectrum import row_blocks

BATCHED_UP_TO = 256  # rows of matrices that batched solvers are made for
STRIP = 1024  # columns of a strip of a symmetric product


def spd_solve_stack(A: Array, B: Array) -> Array:
    """A⁻¹B for stacks of symmetric positive definite matrices A (k, m, m) and B (k, m, t); large
    ones go one after the other.
    """
    xp = namespace(A)
    if A.shape[1] <= BATCHED_UP_TO:
        return xp.linalg.solve(A, B)
    return xp.stack([spd_solver(A[j, ...])(B[j, ...]) for j in range(A.shape[0])])


def spd_inverse_overwriting(A: Array) -> Array:
    """A⁻¹ of a symmetric positive definite matrix, which may be destroyed; NotPositiveDefiniteError
    where it is not one.

    Cholesky and inversion of the factor: n³ operations, against about 9 n³ slower ones of eigh.
    """
    if is_numpy(A):
        factor, failed = scipy.linalg.lapack.dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise NotPositiveDefiniteError
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        mirror_lower(inverse)
        return inverse
    L = cholesky_overwriting(A)
    if is_torch_array(L):
        return L.cholesky_inverse()
    inverse = triangular_inverse(L)
    return inverse.T @ inverse


def symmetric_product(A: Array, strip: int = STRIP) -> Array:
    """AᵀA (m, m): where it is large, blocks on and below the diagonal only, the others mirrored.
    NumPy does that by itself.
    """
    m = A.shape[-1]
    if A.ndim > 2 or m <= 2 * strip or is_numpy(A):
        return transposed(A) @ A
    result = empty_like_shape((m, m), A)
    for i in row_blocks(m, strip):
        result[i, : i.stop] = A[:, i].T @ A[:, : i.stop]
    mirror_lower(result)
    return result


def mirror_lower(A: Array) -> None:
    """Make a matrix symmetric whose lower triangle is right, diagonal included."""
    xp = namespace(A)
    for i in row_blocks(A.shape[0]):
        A[: i.start, i] = A[i, : i.start].T
        lower = xp.tril(A[i, i], k=-1)
        A[i, i] = xp.tril(A[i, i]) + lower.T
