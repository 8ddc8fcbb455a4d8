r"""Factorizations made of matrix products, for devices whose own run far below the rate of those.

Blocks of b columns at a time: what is small is factored as a stack, everything else is a product.

    A = LLᵀ, block column j:   S = A_{j:,j} - L_{j:,<j} L_{j,<j}ᵀ,   L_jj L_jjᵀ = S_j,
                               L_ij = S_i L_jj⁻ᵀ
    symmetric products:        blocks on and below the diagonal only, the others mirrored
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    cholesky_overwriting,
    cholesky_stack,
    empty_like_shape,
    is_numpy,
    namespace,
    transposed,
    triangular_inverse,
    zeros_like_shape,
)
from .spectrum import row_blocks

WIDTH = 256  # columns of a block that is factored by itself
STRIP = 2048  # columns of a strip of a symmetric product
LEAF = 1024  # rows of a triangle that is inverted by itself


def spd_solve_stack(A: Array, B: Array) -> Array:
    """A⁻¹B for stacks of symmetric positive definite matrices A (k, m, m) and B (k, m, t).

    Batched solvers of GPU libraries are made for small matrices; here a stack of large ones goes
    through batched products. Where rounding has left one that is not definite, all are solved as
    general ones. Cost: k m³/3 + 2 k m² t operations; memory: one more stack.
    """
    xp = namespace(A)
    blocks = row_blocks(A.shape[1], WIDTH)
    L, inverse, failures = zeros_like_shape(tuple(A.shape), A), [], []
    try:
        for j in blocks:
            S = A[:, j.start :, j] - L[:, j.start :, : j.start] @ transposed(L[:, j, : j.start])
            factor, failed = cholesky_stack(S[:, : j.stop - j.start, :])
            inverse.append(triangular_inverse(factor))
            failures.append(failed)
            L[:, j, j] = factor
            L[:, j.stop :, j] = S[:, j.stop - j.start :, :] @ transposed(inverse[-1])
    except NotPositiveDefiniteError:
        return xp.linalg.solve(A, B)
    if bool(xp.any(xp.stack(failures))):
        return xp.linalg.solve(A, B)
    X = B + 0.0
    for j, small in zip(blocks, inverse, strict=True):
        X[:, j, :] = small @ (X[:, j, :] - L[:, j, : j.start] @ X[:, : j.start, :])
    for j, small in zip(blocks[::-1], inverse[::-1], strict=True):
        right = X[:, j, :] - transposed(L[:, j.stop :, j]) @ X[:, j.stop :, :]
        X[:, j, :] = transposed(small) @ right
    return X


def spd_inverse_overwriting(A: Array) -> Array:
    """A⁻¹ of a symmetric positive definite matrix, which may be destroyed; NotPositiveDefiniteError
    where it is not one.

    Cholesky and inversion of the factor: n³ operations, all in matrix products, against about 9 n³
    slower ones of eigh.
    """
    if not is_numpy(A):
        return _spd_inverse_of_products(A)
    factor, failed = scipy.linalg.lapack.dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise NotPositiveDefiniteError
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    for start in range(0, inverse.shape[0], 256):  # mirror the lower triangle
        stop = min(start + 256, inverse.shape[0])
        inverse[start:stop, stop:] = inverse[stop:, start:stop].T
        block = inverse[start:stop, start:stop]
        block[...] = np.tril(block) + np.tril(block, -1).T
    return inverse


def _spd_inverse_of_products(A: Array) -> Array:
    """A⁻¹ = L⁻ᵀL⁻¹: about 1.3 n³ multiplications and additions, nearly all in large products."""
    L = cholesky_overwriting(A)
    invert_lower(L)
    n = L.shape[0]
    result = empty_like_shape((n, n), L)
    for i in row_blocks(n, STRIP):
        result[i, : i.stop] = L[i.start :, i].T @ L[i.start :, : i.stop]
    mirror_lower(result, STRIP)
    return result


def invert_lower(L: Array) -> None:
    """Overwrite a lower triangular matrix by its inverse: halves first, then what joins them,

    [L₁ 0; L₂₁ L₂]⁻¹ = [L₁⁻¹ 0; -L₂⁻¹L₂₁L₁⁻¹ L₂⁻¹].
    """
    n = L.shape[0]
    if n <= LEAF:
        L[...] = triangular_inverse(L)
        return
    half = n // 2
    first, second = L[:half, :half], L[half:, half:]
    invert_lower(first)
    invert_lower(second)
    L[half:, :half] = -(second @ (L[half:, :half] @ first))


def symmetric_product(A: Array, strip: int = STRIP // 2) -> Array:
    """AᵀA (m, m): where it is large, blocks on and below the diagonal only, the others mirrored.
    NumPy does that by itself.
    """
    m = A.shape[-1]
    if A.ndim > 2 or m <= 2 * strip or is_numpy(A):
        return transposed(A) @ A
    result = empty_like_shape((m, m), A)
    for i in row_blocks(m, strip):
        result[i, : i.stop] = A[:, i].T @ A[:, : i.stop]
    mirror_lower(result, strip)
    return result


def mirror_lower(A: Array, strip: int) -> None:
    """Make a matrix symmetric whose strips are right up to the end of their diagonal blocks."""
    for i in row_blocks(A.shape[0], strip):
        A[: i.start, i] = A[i, : i.start].T
