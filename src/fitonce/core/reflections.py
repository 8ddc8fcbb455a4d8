r"""Block reflections that bring a tall panel P (m, b) to its first b rows:

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

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    cholesky_stack,
    eye_like,
    namespace,
    packed_qr,
    triangular_inverse,
)

PRODUCTS_FROM = 4096  # rows of a panel; shorter ones are faster by Householder's QR
NEARLY_ORTHONORMAL = 1e-2  # what the first round may leave; the second squares it
INVERSE_STEPS, INVERSE_ERROR = 6, 1e-13
LARGEST_INVERSE = 8.0  # entries of S: orthogonality of F is lost by its square


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
