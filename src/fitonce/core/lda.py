r"""The LDA rule on discriminant axes, in closed form.

Optimal scoring: with class indicators Y (n, c), class sizes N = diag(YᵀY), the
residual scatter E = Yᵀ(I - H)Y and A = N - E,

    A θ = a² N θ,    θᵀNθ = I,    D = 1/sqrt(a² (1 - a²))

the projections Ŷ θ D are those of the kernel Fisher discriminant S_b W = (S_w + μI) W Λ with
Wᵀ(S_w + μI)W = I and Λ = a²/(1 - a²). Multiplied by √ν, ν = n - c, they have unit within-class
covariance, as in scikit-learn's LDA, so that the decision for predicted indicators P is the LDA
rule, and only two c×c matrices of the axes enter it:

    z·m_j - ½‖m_j‖² + log π_j,          z = P θ D √ν,  m_j the class centroids N⁻¹A θ D √ν
    = ν (P Γ)_j - ½ν (Γ - Θ)_jj + log π_j,          Γ = θ (1 - a²)⁻¹ θᵀ,   Θ = θθᵀ.

Class centroids j, k lie ν[(Γ - Θ)_jj + (Γ - Θ)_kk - 2(Γ - Θ)_jk] apart (squared). Γ and Θ come from
the axes (`axes_of`), which drops those with a² ≈ 0; or, with all axes kept, without any
eigenproblem from an inverse: E1 = 0, so with E_r = E without the first class and Π = I - 1Nᵀ/n

    Γ = Π [0 0; 0 E_r⁻¹] Πᵀ,        Θ = N⁻¹ - 11ᵀ/n.

The constant solution (θ ∝ 1, a² = 1) is deflated by its known vector.

Without a free bias H1 ≠ 1, and the constant is no solution. The between-class scatter is then taken
about the origin of the feature space, Σ n_j m_j m_jᵀ, while S_w, D and the centroids a²θD are as
above. All c axes together give the rule of a free bias once more, because the LDA rule knows no
origin; Treder (2019) takes c - 1 of them, without the one that stands for the constant
(`axes_of`).

Everything is batched over leading axes: folds, left-out rows, mus, permutations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import device

from .arrays import Array, eye_like, namespace, take, to_numpy

NEGLIGIBLE = 1e-12  # axes with a² below this carry rounding noise only and are dropped


@dataclass(frozen=True)
class Rule:
    """Outputs P @ weights + offsets for predicted targets P (…, k, t): weights (…, t, c).

    `spread` is ν(Γ - Θ) (…, c, c), the scalar products of the class centroids.
    """

    weights: Array
    offsets: Array
    spread: Array

    @property
    def separation(self) -> Array:
        """Half the squared distances of the class centroids (…, c, c)."""
        own = namespace(self.spread).linalg.diagonal(self.spread)
        return 0.5 * (own[..., :, None] + own[..., None, :]) - self.spread

    def decide(self, P: Array) -> Array:
        """Class scores (…, k, c)."""
        return P @ self.weights + self.offsets[..., None, :]

    def size(self, unit: Array) -> Array:
        """The magnitude (…, c) of the terms that scores are summed from, for targets of the size
        unit (…, t): |weights|ᵀunit + |offsets|.
        """
        xp = namespace(self.weights)
        offsets = xp.where(xp.isfinite(self.offsets), self.offsets, xp.zeros_like(self.offsets))
        return (unit[..., None, :] @ xp.abs(self.weights))[..., 0, :] + xp.abs(offsets)

    def difference(self) -> Rule:
        """Two classes: the decision (…, k, 1), positive for the second; NaN if one is absent."""
        xp = namespace(self.weights)
        offset = self.offsets[..., 1:] - self.offsets[..., :1]
        offset = xp.where(xp.isfinite(offset), offset, xp.nan * xp.ones_like(offset))
        return Rule(self.weights[..., 1:] - self.weights[..., :1], offset, self.spread)

    def take(self, rows: np.ndarray) -> Rule:
        """The rules of some members of a batch."""
        parts = (take(part, rows) for part in (self.weights, self.offsets, self.spread))
        return Rule(*parts)

    def reduced(self) -> Rule:
        """For indicators without the first class, which follows from their sum of one."""
        first = self.weights[..., :1, :]
        offsets = self.offsets + first[..., 0, :]
        return Rule(self.weights[..., 1:, :] - first, offsets, self.spread)


def lda_rule(gain: Array, unit: Array, sizes: Array, dof: Array, log_priors: Array) -> Rule:
    """The rule from Γ, Θ (…, c, c), class sizes (…, c), ν (…) and log priors, absent
    classes -inf.
    """
    spread = dof[..., None, None] * (gain - unit)
    own = namespace(gain).linalg.diagonal(spread)
    return Rule(dof[..., None, None] * gain, log_priors - 0.5 * own, spread)


@dataclass(frozen=True)
class Axes:
    """θ D √ν (…, c, q), centroids m (…, c, q), a² (…, q); Γ and Θ of those that are kept."""

    axes: Array
    centroids: Array
    a2: Array
    gain: Array
    unit: Array

    @property
    def rank(self) -> int:
        """How many axes tell the classes apart; at least one."""
        return max(1, int(np.sum(to_numpy(self.a2) > 0.0)))


def axes_of(E: Array, sizes: Array, dof: Array, free_bias: bool = True) -> Axes:
    """The c×c eigenproblem for residual scatter E (…, c, c), class sizes (…, c) and ν (…).

    N^(-½) E N^(-½) has the eigenvalues 1 - a². Classes of size zero go to 2, which is a² = -1, and
    take no part. Axes are ordered by a²; see `_signs` for their direction. The last one is left
    out. With a free bias that is the constant solution, which goes to 3. Without, it is the
    solution whose scores θ lie nearest to a constant (cosine in the metric N), the "trivial
    eigenvalue" of Treder (2019): a² is exactly 0 for centered rows, where H1 = 0, and 1 for a free
    bias, where H1 = 1; between them it is neither.
    """
    xp = namespace(E, sizes)
    S, root, constant, present = _whitened(E, sizes)
    S = S + 2.0 * eye_like(E.shape[-1], E) * (1.0 - present)[..., None]
    if free_bias:
        S = S + 3.0 * constant[..., :, None] * constant[..., None, :]
    rest, T = xp.linalg.eigh(S)
    if not free_bias:
        nearest = xp.argmax(xp.abs((constant[..., None, :] @ T)[..., 0, :]), axis=-1, keepdims=True)
        numbers = xp.arange(E.shape[-1], device=device(E))
        order = xp.argsort(xp.where(numbers == nearest, xp.full_like(rest, 3.0), rest), axis=-1)
        rest = xp.take_along_axis(rest, order, axis=-1)
        T = xp.take_along_axis(T, xp.broadcast_to(order[..., None, :], T.shape), axis=-1)
    rest, T = rest[..., :-1], T[..., :-1]
    kept = 1.0 - rest > NEGLIGIBLE
    rest = xp.where(kept, xp.clip(rest, xp.finfo(E.dtype).eps, None), xp.ones_like(rest))
    theta = root[..., :, None] * T * xp.astype(kept, E.dtype)[..., None, :]
    return _scaled_axes(theta, 1.0 - rest, rest, kept, dof)


def _whitened(E: Array, sizes: Array) -> tuple[Array, Array, Array, Array]:
    """N^(-½) E N^(-½), N^(-½) (…, c), the unit vector of the constant √(N/n), and which classes are
    there, as ones and zeros.
    """
    xp = namespace(E, sizes)
    present = sizes > 0
    zeros = xp.zeros_like(sizes)
    root = xp.where(present, 1.0 / xp.sqrt(xp.where(present, sizes, zeros + 1.0)), zeros)
    known = xp.where(present, sizes, zeros)
    constant = xp.sqrt(known / xp.sum(sizes, axis=-1, keepdims=True))
    whitened = root[..., :, None] * E * root[..., None, :]
    symmetric = 0.5 * (whitened + xp.matrix_transpose(whitened))
    return symmetric, root, constant, xp.astype(present, E.dtype)


def _scaled_axes(theta: Array, a2: Array, rest: Array, kept: Array, dof: Array) -> Axes:
    """Axes θ D √ν of eigenvectors θ with a² and 1 - a² (`rest`); those that are not kept are 0."""
    xp = namespace(theta)
    safe = xp.where(kept, a2 * rest, xp.ones_like(a2))
    axes = theta * (xp.sqrt(dof)[..., None] / xp.sqrt(safe))[..., None, :]
    # A θ = a² N θ, so the centroids N⁻¹A θ D √ν are a² times the axes
    centroids = a2[..., None, :] * axes
    signs = _signs(centroids)
    gain = (theta / rest[..., None, :]) @ xp.matrix_transpose(theta)
    return Axes(axes * signs, centroids * signs, a2, gain, theta @ xp.matrix_transpose(theta))


def gain_of(E: Array, sizes: Array) -> tuple[Array, Array]:
    """Γ and Θ with all axes kept, by an inverse; E may lack its first row and column."""
    xp = namespace(E, sizes)
    c = sizes.shape[-1]
    E = E[..., 1:, 1:] if E.shape[-1] == c else E
    inverse = 1.0 / E if c == 2 else xp.linalg.inv(E)
    total = xp.sum(sizes, axis=-1, keepdims=True)
    pi = sizes / total
    # Π [0 0; 0 G] Πᵀ, with G π and πᵀGπ taken off
    G = xp.zeros((*inverse.shape[:-2], c, c), dtype=E.dtype, device=device(E))
    G[..., 1:, 1:] = inverse
    g = (G @ pi[..., None])[..., 0]
    gain = G - g[..., None, :] - g[..., :, None] + xp.sum(g * pi, axis=-1)[..., None, None]
    unit = eye_like(c, E) * (1.0 / sizes)[..., None, :] - (1.0 / total)[..., None]
    return gain, unit


def _signs(centroids: Array) -> Array:
    """±1 per axis (…, 1, q): two classes, the second one's centroid positive; more, the farthest
    centroid positive.

    Of centroids equally far to within 1e-6 the last one counts, so that rounding does not choose
    the direction.
    """
    xp = namespace(centroids)
    c = centroids.shape[-2]
    if c > 2:
        numbers = xp.arange(c, dtype=centroids.dtype, device=device(centroids))
        centroids = centroids * (1.0 + 1e-6 * numbers)[:, None]
        highest = xp.max(centroids, axis=-2, keepdims=True)
        positive = highest >= -xp.min(centroids, axis=-2, keepdims=True)
    else:
        positive = centroids[..., 1:, :] >= 0
    ones = xp.ones_like(centroids[..., :1, :])
    return xp.where(positive, ones, -ones)


def completed_scatter(E: Array, n_classes: int) -> Array:
    """E (…, c, c) from itself without the first class: rows and columns sum to zero."""
    if E.shape[-1] == n_classes:
        return E
    xp = namespace(E)
    E = xp.concat([-xp.sum(E, axis=-1, keepdims=True), E], axis=-1)
    return xp.concat([-xp.sum(E, axis=-2, keepdims=True), E], axis=-2)
