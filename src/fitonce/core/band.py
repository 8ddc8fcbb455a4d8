r"""The function norm through a block band form instead of eigenvectors: the same numbers, several
times sooner on a GPU.

A GPU's eigendecomposition runs far below the rate of its matrix products, and held-out values need
no eigenvectors: any orthogonal reduction that is cheap to shift and to solve will do. With A = G +
cQ₀Q₀ᵀ (see `spectrum.project_off`),

    A = Q T Qᵀ,   T block tridiagonal with diagonal blocks D_k and blocks B_k below them

by a block reflection of one panel of b columns at a time and a two-sided update of
what remains, all in matrix products. `Q` takes the place of A, so that one n×n matrix and narrow
panels are all the memory it needs. Then, for a whole batch of μ at once, T + μI = LLᵀ block by
block, X = L⁻¹Qᵀ, and

    (A + μI)⁻¹ = XᵀX
    I - H = μ (A + μI)⁻¹ - μ/(c + μ) Q₀Q₀ᵀ
    1 - h_i = μ Σ_k X_ki² - μ/(c + μ) ‖Q₀[i]‖²,      Y - Ŷ = μ Q (T + μI)⁻¹ Qᵀ (Y - Q₀Q₀ᵀY)

Costs: 10/3 n³ operations for the reduction with Q, 4 n² b for each μ. On CPUs eigh is the faster
one.

Block reflections that bring a tall panel P (m, b) to its first b rows:

    P = F [R; 0],   F = I - V S Vᵀ orthogonal,   V (m, b), S (b, b), R (b, b)

F is orthogonal where VᵀV = S⁻¹ + S⁻ᵀ (Schreiber & Parlett 1988). Two ways lead to it.

By matrix products, at a GPU's full rate. Cholesky's factor of PᵀP gives P = QR with orthonormal Q;
a second round removes what rounding has left. With E = [I; 0] and Q₁ the first b rows of Q,

    V = Q + E,   S = (I + Q₁)⁻ᵀ:   F E = E - V S (I + Q₁)ᵀ = -Q,   hence P = F [-R; 0]

This needs columns that are well apart and an I + Q₁ that is far from singular. Both are checked.

By Householder's QR of the library otherwise: always sound, and three times slower on a GPU for
panels of 16,384 rows and more. Short panels are as fast that way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    cholesky_stack,
    eye_like,
    namespace,
    packed_qr,
    subtract_product,
    symmetric,
    take,
    to_numpy,
    transposed,
    triangular_inverse,
    zeros_like_shape,
)
from .spectrum import orthonormal

WIDTH = 128  # of a block, b
STRIPS, LEAST_STRIP = 8, 4096  # of columns, where symmetry saves work; and columns of one
PANELS_TOGETHER, MOST_PANELS = 4, 8  # where their reflections are multiplied to Q
DIRECT = 512  # rows up to which the largest eigenvalue comes from all of them
KRYLOV_COLUMNS, KRYLOV_STEPS = 16, 12
PRODUCTS_FROM = 4096  # rows of a panel; shorter ones are faster by Householder's QR
NEARLY_ORTHONORMAL = 1e-2  # what the first round may leave; the second squares it
INVERSE_STEPS, INVERSE_ERROR = 6, 1e-13
LARGEST_INVERSE = 8.0  # entries of S: orthogonality of F is lost by its square


@dataclass(frozen=True)
class Band:
    """A = Q T Qᵀ with Q (n, n) orthogonal and T block tridiagonal.

    `diagonal` blocks D_k, and B_k `below` them (one fewer).
    """

    Q: Array
    diagonal: list[Array]
    below: list[Array]

    @cached_property
    def rows(self) -> list[slice]:
        """Where each block lies; the last may be narrower."""
        stops = np.cumsum([block.shape[0] for block in self.diagonal]).tolist()
        return [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]

    def factor(self, mus: Array) -> BandFactor:
        """Cholesky's factors of T + μI for a batch of μ; NotPositiveDefiniteError where one has
        none.

        Downwards, with C_k = B_k L_{k-1}⁻ᵀ:  L_k L_kᵀ = D_k + μI - C_k C_kᵀ.
        """
        inverse: list[Array] = []
        link: list[Array] = []
        failures = []
        for k, D in enumerate(self.diagonal):
            S = D + mus[:, None, None] * eye_like(D.shape[0], D)
            if k:
                C = self.below[k - 1] @ transposed(inverse[-1])
                subtract_product(S, C, transposed(C))
            L, failed = cholesky_stack(S)
            inverse.append(triangular_inverse(L))
            failures.append(failed)
            if k:
                link.append(inverse[-1] @ C)
        if bool(namespace(mus).any(namespace(mus).stack(failures))):
            raise NotPositiveDefiniteError
        return BandFactor(self.rows, inverse, link)

    def dense(self) -> Array:
        """T as an n×n matrix."""
        T = zeros_like_shape(tuple(self.Q.shape), self.Q)
        for k, rows in enumerate(self.rows):
            T[rows, rows] = self.diagonal[k]
            if k:
                T[rows, self.rows[k - 1]] = self.below[k - 1]
                T[self.rows[k - 1], rows] = self.below[k - 1].T
        return T


@dataclass(frozen=True)
class BandFactor:
    """T + μI = LLᵀ for m values of μ, kept as L_k⁻¹ (`inverse`) and L_k⁻¹C_k (`link`), so that
    solving is multiplying.
    """

    rows: list[slice]
    inverse: list[Array]
    link: list[Array]

    def at(self, indices: list[int]) -> BandFactor:
        """The factors of some of the μ."""
        if indices == list(range(indices[0], indices[-1] + 1)):
            chosen = slice(indices[0], indices[-1] + 1)
            return BandFactor(
                self.rows,
                [block[chosen, ...] for block in self.inverse],
                [block[chosen, ...] for block in self.link],
            )
        return BandFactor(
            self.rows,
            [take(block, indices) for block in self.inverse],
            [take(block, indices) for block in self.link],
        )

    def forward_blocks(self, Z: Array) -> Iterator[Array]:
        """The blocks (m, b, t) of X = L⁻¹Z for Z (n, t) or (m, n, t), downwards.

        X_k = L_k⁻¹(Z_k - C_k X_{k-1}).
        """
        previous: Array = None
        for k, rows in enumerate(self.rows):
            X = self.inverse[k] @ Z[..., rows, :]
            if k:
                subtract_product(X, self.link[k - 1], previous)
            yield X
            previous = X

    def forward(self, Z: Array) -> Array:
        """L⁻¹Z, (m, n, t)."""
        return namespace(Z).concat(list(self.forward_blocks(Z)), axis=1)

    def backward(self, X: Array) -> Array:
        """L⁻ᵀX for X (m, n, t), upwards.

        W_k = L_k⁻ᵀ V_k with V_k = X_k - (L_{k+1}⁻¹C_{k+1})ᵀ V_{k+1}.
        """
        blocks: list[Array] = []
        previous: Array = None
        for k in reversed(range(len(self.rows))):
            V = X[:, self.rows[k], :]
            if blocks:
                V = V - transposed(self.link[k]) @ previous
            blocks.append(transposed(self.inverse[k]) @ V)
            previous = V
        return namespace(X).concat(blocks[::-1], axis=1)

    def solve(self, Z: Array) -> Array:
        """(T + μI)⁻¹ Z, (m, n, t)."""
        return self.backward(self.forward(Z))


def band_of(A: Array, width: int = WIDTH) -> Band:
    """The band form of a symmetric matrix (n, n), which is overwritten by Q.

    A panel's reflections I - V S Vᵀ change the trailing matrix by

        A ← A - X Vᵀ - V Xᵀ,   X = AVS - ½V(SᵀVᵀAVS)

    and V waits where the panel was. Columns come in strips, and of the trailing matrix only what
    lies on and below a strip's diagonal block is kept up to date. The last two blocks need no
    reflections. Cost: 4/3 n³ and n³/3 for each strip's share above the diagonal, and 4/3 n³ for Q.
    """
    n = A.shape[0]
    strips = _strips(n, width)
    diagonal, below, factors = [], [], []
    for start in range(0, n, width):
        stop = min(start + width, n)
        diagonal.append(symmetric(A[start:stop, start:stop]))
        if n - stop > width:
            V, S, R = block_reflection(A[stop:, start:stop])
            _reflect_both_sides(A, strips, stop, V, S)
            A[stop:, start:stop] = V
            below.append(R)
            factors.append(S)
        elif n > stop:
            below.append(A[stop:, start:stop] + 0.0)
    _accumulate(A, width, factors)
    return Band(A, diagonal, below)


def _strips(n: int, width: int) -> list[slice]:
    """Columns in a few strips of whole panels: narrow enough to leave out most of what symmetry
    gives, wide enough for products at full speed.
    """
    step = max(width, -(-n // (STRIPS * width)) * width, LEAST_STRIP // width * width)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _reflect_both_sides(A: Array, strips: list[slice], first: int, V: Array, S: Array) -> None:
    """A ← (I - VSVᵀ)ᵀ A (I - VSVᵀ) from row and column `first` on, in place.

    The blocks of the lower strips stand for those above them, too.
    """
    xp = namespace(A)
    kept = [slice(max(first, strip.start), strip.stop) for strip in strips if strip.stop > first]
    VS = V @ S
    X = zeros_like_shape(tuple(V.shape), V)
    for strip in kept:
        columns, rest = slice(strip.start - first, strip.stop - first), strip.stop - first
        X[columns, :] += A[strip, strip] @ VS[columns, :]
        if rest < V.shape[0]:
            X[rest:, :] += A[strip.stop :, strip] @ VS[columns, :]
            X[columns, :] += A[strip.stop :, strip].T @ VS[rest:, :]
    X = X - 0.5 * (V @ (S.T @ (V.T @ X)))
    left, right = xp.concat([X, V], axis=1), xp.concat([V, X], axis=1)
    for strip in kept:
        columns = slice(strip.start - first, strip.stop - first)
        subtract_product(A[strip.start :, strip], left[columns.start :, :], right[columns, :].T)


def _accumulate(A: Array, width: int, factors: list[Array]) -> None:
    """Overwrite A, which holds the V of each panel, by the product Q of all reflections: the last
    ones first, on their own rows only.

    Several panels go together, their V side by side.
    """
    inner = A.shape[0]
    together = min(MOST_PANELS, max(PANELS_TOGETHER, inner // (32 * width)))
    for last in range(len(factors), 0, -together):
        first = max(0, last - together)
        outer = (first + 1) * width
        V = A[outer:, first * width : last * width] + 0.0
        for start in range(width, V.shape[1], width):  # a panel has nothing above its own rows
            V[:start, start : start + width] = 0.0
        S = product_factor(V, factors[first:last])
        Q = A[outer:, outer:]
        _start_as_identity(Q, inner - outer)
        subtract_product(Q, V @ S, V.T @ Q)
        inner = outer
    _start_as_identity(A, inner)


def _start_as_identity(Q: Array, size: int) -> None:
    """The first rows and columns of Q as those of the identity."""
    Q[:size, :] = 0.0
    Q[:, :size] = 0.0
    Q[:size, :size] = eye_like(size, Q)


def largest_eigenvalue(A: Array, Q0: Array) -> float:
    """max |λ| of A off its invariant columns Q0: by block Lanczos with full re-orthogonalisation,
    from a fixed start.

    What the residual of the best Ritz pair leaves open is added, so that the value errs upwards. A
    large eigenvalue of a kernel matrix stands apart from the rest, and a few steps find it to
    rounding. Cost: one product of A with a few columns each.
    """
    xp = namespace(A)
    n, u = Q0.shape
    if n == u:
        return 0.0
    if n <= DIRECT:
        return float(xp.max(xp.abs(xp.linalg.eigvalsh(A)[: n - u])))
    X = asarray_like(np.random.default_rng(0).normal(size=(n, min(KRYLOV_COLUMNS, n - u))), A)
    X = orthonormal(X - Q0 @ (Q0.T @ X))
    basis, images = X, A @ X
    for _ in range(KRYLOV_STEPS):
        values, vectors = np.linalg.eigh(
            to_numpy(symmetric(basis.T @ images))
        )  # small: sooner on the host
        best = int(np.argmax(np.abs(values)))
        value, vector = float(values[best]), asarray_like(vectors[:, best], A)
        residual = float(xp.linalg.vector_norm(images @ vector - value * (basis @ vector)))
        if residual <= 1e-8 * abs(value):  # its square counts
            break
        X = images[:, -X.shape[1] :]
        for _ in range(2):  # once is not enough where the space is nearly exhausted
            X = orthonormal(X - Q0 @ (Q0.T @ X) - basis @ (basis.T @ X))
        basis, images = xp.concat([basis, X], axis=1), xp.concat([images, A @ X], axis=1)
    return abs(value) + residual


# ---- block reflections ---------------------------------------------------------------------------


def block_reflection(P: Array) -> tuple[Array, Array, Array]:
    """V, S and R of a tall matrix P, which is left as it is."""
    found = reflection_of_products(P) if P.shape[0] >= PRODUCTS_FROM else None
    return found or householder(P)


def reflection_of_products(P: Array) -> tuple[Array, Array, Array] | None:
    """V, S and R by Cholesky's QR, twice; None where that is not accurate."""
    xp, b = namespace(P), P.shape[1]
    unit = eye_like(b, P)
    try:
        Q, R, _, failed = _cholesky_qr(P)
        V, again, gram, failed_again = _cholesky_qr(Q)
    except NotPositiveDefiniteError:
        return None
    V[:b, :] += unit
    S_inverse = V[:b, :].T
    S = _inverse_near_identity(S_inverse)
    trusted = (
        ~(failed | failed_again)
        & (xp.max(xp.abs(gram - unit)) < NEARLY_ORTHONORMAL)
        & (xp.max(xp.abs(S_inverse @ S - unit)) < INVERSE_ERROR)
        & (xp.max(xp.abs(S)) < LARGEST_INVERSE)
    )
    return (V, S, -(again @ R)) if bool(trusted) else None


def _cholesky_qr(P: Array) -> tuple[Array, Array, Array, Array]:
    """Q and R with P = QR, PᵀP = RᵀR and whether it has no such factor (a 0-d array)."""
    gram = P.T @ P
    L, failed = cholesky_stack(gram[None, ...])
    L = L[0, ...]
    return P @ triangular_inverse(L).T, L.T, gram, failed


def _inverse_near_identity(A: Array) -> Array:
    """A⁻¹ by Newton and Schulz, X ← X(2I - AX), from X = 2I - A: the error (I - A)² is squared by
    every step.
    """
    twice = 2.0 * eye_like(A.shape[0], A)
    X = twice - A
    for _ in range(INVERSE_STEPS):
        X = X @ (twice - A @ X)
    return X


def householder(P: Array) -> tuple[Array, Array, Array]:
    """V, S and R by LAPACK's reflections I - scale·vvᵀ, one for each column.

    Their product is orthogonal, so S⁻¹ is the upper triangle of VᵀV with 1/scale on its diagonal
    (Puglisi 1992). A reflection that LAPACK leaves out (scale 0) becomes a zero column of V.
    """
    xp, b = namespace(P), P.shape[1]
    factored, scales = packed_qr(P)
    R = xp.triu(factored[:b, :])
    V = xp.tril(factored, k=-1)
    V[:b, :] += eye_like(b, V)
    used = scales != 0
    V *= xp.astype(used, V.dtype)
    scales = xp.where(used, scales, xp.ones_like(scales))
    S_inverse = xp.triu(V.T @ V, k=1) + eye_like(b, V) / scales
    return V, triangular_inverse(S_inverse, upper=True), R


def product_factor(V: Array, factors: list[Array]) -> Array:
    """S of the product of several block reflections, whose V stand side by side in V, first to
    last:

        (I - V₁S₁V₁ᵀ)(I - V₂S₂V₂ᵀ) = I - V S Vᵀ,   S = [S₁  -S₁(V₁ᵀV₂)S₂; 0  S₂]
    """
    xp = namespace(V)
    gram = V.T @ V
    S = factors[0]
    for factor in factors[1:]:
        k, b = S.shape[0], factor.shape[0]
        joint = -(S @ (gram[:k, k : k + b] @ factor))
        zero = xp.zeros_like(joint).T
        S = xp.concat([xp.concat([S, joint], axis=1), xp.concat([zero, factor], axis=1)])
    return S
