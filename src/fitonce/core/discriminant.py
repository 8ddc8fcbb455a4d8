r"""The discriminant step: from indicators and their fitted values to axes, centroids and decisions
(c×c work only).

Optimal scoring. With class indicators Y (n, c), class sizes N = diag(YᵀY) and fitted indicators Ŷ =
HY,

    A = YᵀŶ,    A θ = a² N θ,    θᵀNθ = I,    D = 1/sqrt(a² (1 - a²))

the projections Ŷ θ D are those of the kernel Fisher discriminant S_b W = (S_w + μI) W Λ with Wᵀ(S_w
+ μI)W = I and Λ = a²/(1 - a²). Multiplied by √(n - c) they have unit within-class covariance, as in
scikit-learn's LDA, so that the decision of class j is the LDA rule

    z·m_j - ½‖m_j‖² + log prior_j,      z = P θ D √(n - c),  m_j = the class centroid of the z

linear in the indicators P of a row, and free of the sign and rotation of the axes. The constant
solution (θ ∝ 1, a² = 1) is deflated by its known vector.

After removing rows Te, with held-out indicators P = Y_Te - ρ, in-sample residuals r and (dual norm)
forces ν and coefficients α, the scatter of the remaining rows is

    A_Tr = YᵀŶ - Y_TeᵀŶ_Te - Pᵀr_Te - νᵀα_Te

which follows from A_Tr = Y_TrᵀŶ_Tr - qᵀρ - (α - BᵀY)_Teᵀν, q = Ŷ_Te - H_TeTe Y_Te (Treder 2019) by
inserting the equations that ρ and ν solve: neither a train×test block nor q is needed. All
functions are batched over leading axes: folds, left-out rows, permutations.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import device

from .arrays import Array, namespace
from .smoother import Fitted, HeldOut

NEGLIGIBLE = 1e-12  # axes with a² below this carry rounding noise only and are dropped


@dataclass(frozen=True)
class Discriminant:
    """Axes θD√(n-c) (…, c, c-1), centroids m (…, c, c-1), a² (…, c-1) and which classes were
    present (…, c).
    """

    axes: Array
    centroids: Array
    a2: Array
    present: Array

    def project(self, indicators: Array) -> Array:
        """Projections z (…, k, c-1) of fitted or held-out indicators (…, k, c)."""
        return indicators @ self.axes

    @property
    def weights(self) -> Array:
        """(…, c, c): indicators times this are the z·m_j of the decision."""
        return self.axes @ namespace(self.axes).matrix_transpose(self.centroids)

    def offsets(self, priors: Array) -> Array:
        """(…, c): log prior_j - ½‖m_j‖², and -inf for a class that was absent."""
        xp = namespace(self.axes)
        ones = xp.ones_like(priors)
        log_priors = xp.log(xp.where(self.present, priors, ones))
        return xp.where(
            self.present, log_priors - 0.5 * xp.sum(self.centroids**2, axis=-1), -xp.inf * ones
        )


def scatter(fitted: Fitted) -> Array:
    """A = YᵀŶ (c, c)."""
    return fitted.Y.T @ fitted.values


def scatter_without(A: Array, removed: Fitted, held_out: HeldOut) -> Array:
    """A of the rows that remain after removing one set, given the removed rows' fit and held-out
    values.
    """
    A = A - removed.Y.T @ removed.values - (removed.Y - held_out.residual).T @ removed.residual
    if held_out.force is not None:
        A = A - held_out.force.T @ removed.dual
    return A


def scatter_without_each(A: Array, fitted: Fitted, held_out: HeldOut) -> Array:
    """`scatter_without` for every row on its own: (n, c, c)."""
    A = A - _outer(fitted.Y, fitted.values) - _outer(fitted.Y - held_out.residual, fitted.residual)
    if held_out.force is not None:
        A = A - _outer(held_out.force, fitted.dual)
    return A


def _outer(A: Array, B: Array) -> Array:
    return A[:, :, None] * B[:, None, :]


def discriminant(A: Array, sizes: Array, dof: Array) -> Discriminant:
    """Solve the c×c problem for scatter A (…, c, c), class sizes (…, c) and n - c degrees of
    freedom (…).

    Classes of size zero take no part. Axes are ordered by a²; see `_signs` for their direction.
    """
    xp = namespace(A, sizes)
    present = sizes > 0
    root = xp.where(
        present, 1.0 / xp.sqrt(xp.where(present, sizes, xp.ones_like(sizes))), xp.zeros_like(sizes)
    )
    S = root[..., :, None] * A * root[..., None, :]
    constant = xp.sqrt(
        xp.where(present, sizes, xp.zeros_like(sizes)) / xp.sum(sizes, axis=-1, keepdims=True)
    )
    # the constant solution has a² = 1; taken to -1 it lies below all others, and does not mix with
    # small a²
    S = 0.5 * (S + xp.matrix_transpose(S)) - 2.0 * constant[..., :, None] * constant[..., None, :]
    a2, T = xp.linalg.eigh(S)
    a2, T = xp.flip(a2[..., 1:], axis=-1), xp.flip(T[..., 1:], axis=-1)
    kept = a2 > NEGLIGIBLE
    a2 = xp.where(kept, xp.clip(a2, None, 1.0 - xp.finfo(A.dtype).eps), xp.zeros_like(a2))
    D = xp.where(
        kept, 1.0 / xp.sqrt(xp.where(kept, a2 * (1.0 - a2), xp.ones_like(a2))), xp.zeros_like(a2)
    )
    axes = root[..., :, None] * T * (D * xp.sqrt(dof)[..., None])[..., None, :]
    centroids = (root**2)[..., :, None] * (A @ axes)
    signs = _signs(centroids)
    return Discriminant(axes * signs, centroids * signs, a2, present)


def _signs(centroids: Array) -> Array:
    """±1 per axis (…, 1, q): two classes, the second one's centroid positive; more, the farthest
    centroid positive.

    Of centroids equally far to within 1e-6 the last one counts, so that rounding does not choose
    the direction.
    """
    xp = namespace(centroids)
    c = centroids.shape[-2]
    if c > 2:
        tie_break = 1.0 + 1e-6 * xp.arange(c, dtype=centroids.dtype, device=device(centroids))
        centroids = centroids * tie_break[:, None]
        highest = xp.max(centroids, axis=-2, keepdims=True)
        lowest = xp.min(centroids, axis=-2, keepdims=True)
        positive = highest >= -lowest
    else:
        positive = centroids[..., 1:, :] >= 0
    ones = xp.ones_like(centroids[..., :1, :])
    return xp.where(positive, ones, -ones)
