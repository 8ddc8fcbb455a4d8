r"""Features of landmarks: k(x, landmarks) times a matrix, centered where that saves digits.

    function norm, penalty μ‖f‖²     Z = K_nm U diag(λ)^(-½),  K_mm = U diag(λ) Uᵀ
                                     Nyström: ZZᵀ = K_nm K_mm⁺ K_mn
    dual norm, penalty μ‖α‖²         Z = K_nm, a sparse expansion

A model w on these features is α = M w on the landmarks, with M the matrix above (the identity for
the dual norm). A penalized bias is one more feature, of ones, for the function norm. For the dual
norm it is that of the kernel k + 1, as in the exact model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..core.arrays import (
    Array,
    asarray_like,
    eigh_overwriting,
    eye_like,
    namespace,
    take,
    to_numpy,
)
from ..core.refused import RefusedError
from ..core.rows import on_host
from ..kernels import Kernel

NEGLIGIBLE = 1e-12  # of the largest eigenvalue of K_mm: directions below carry only rounding
INDEFINITE = 1e-7  # of the largest: a negative eigenvalue beyond is no rounding


@dataclass(frozen=True)
class LandmarkMap:
    """Features of rows.

    k(X, landmarks) M, beside a constant feature where `constant`, less the row `centre`.
    M is the identity where it is None.
    """

    kernel: Kernel
    landmarks: Array
    M: Array | None
    centre: Array
    constant: bool = False
    offset: float = 0.0  # taken off the kernel, which a free bias makes good
    left_out: float = 0.0  # eigenvalues below were taken for rounding; 0 where none was

    @property
    def size(self) -> int:
        """The number of features, the constant one included."""
        return int(self.centre.shape[0])

    def __call__(self, X: Array) -> Array:
        Z = self.kernel.with_points(self.landmarks, self.offset > 0)(X)
        Z = Z if self.M is None else Z @ self.M
        if self.constant:
            Z = _with_ones(Z)
        Z -= self.centre
        return Z

    def rotated(self, W: Array, mean: Array) -> LandmarkMap:
        """The map of rows to (features - mean) W, in one product."""
        A, centre = self.coordinates @ W, self._image(mean, W)
        return replace(self, M=A, centre=centre, constant=False)

    def model(self, w: Array, mean_Y: Array, mean_Z: Array) -> tuple[Array, Array, Array | None]:
        """α = N w on the landmarks, the bias ȳ - z̄·w, and weights of x for the linear kernel, from
        coefficients w (p, t) of these features and the means that a free bias takes off.
        """
        dual_coef = self.coordinates @ w
        coef = self.landmarks.T @ dual_coef if self.kernel.linear else None
        intercept = mean_Y - self._image(mean_Z, w)
        if self.offset:
            intercept = intercept - self.offset * namespace(w).sum(dual_coef, axis=0)
        return dual_coef, intercept, coef

    def _image(self, mean: Array, w: Array) -> Array:
        """What w makes of a mean of the features and of the center, less the constant feature."""
        image = (mean + self.centre) @ w
        return image - w[-1, :] if self.constant else image

    @property
    def coordinates(self) -> Array:
        """N (m, p) with α = N w; a penalized bias has no share in α."""
        if self.M is None:
            return eye_like(self.size, self.centre)
        xp = namespace(self.M)
        no_share = xp.zeros_like(self.M[:, :1])
        return xp.concat([self.M, no_share], axis=1) if self.constant else self.M


def landmark_map(
    kernel: Kernel, landmarks: Array, penalty: str, fit_intercept: bool | str
) -> LandmarkMap:
    """The feature map of landmarks (m, ·) for a penalty. Cost.

    One eigh of m×m for the function norm.
    """
    of_points = kernel.with_points(landmarks, fit_intercept is True)
    shifted, offset = of_points(landmarks), of_points.offset
    xp, K = namespace(shifted), shifted + offset
    if not bool(xp.all(xp.isfinite(K))):
        raise RefusedError(
            "the kernel of the landmarks contains NaN or infinite values: the kernel overflows on "
            "these data. Scale the features "
            "(StandardScaler), or lower degree or gamma."
        )
    M, left_out = _whitener(K + 0.0) if penalty == "function" else (None, 0.0)
    if fit_intercept == "penalized" and M is None:  # the kernel k + 1, whose bias is the sum of α
        return LandmarkMap(kernel, landmarks, M, -xp.ones_like(K[0, :]))
    constant = fit_intercept == "penalized"
    Z = shifted if M is None else shifted @ M
    Z = _with_ones(Z) if constant else Z
    # a free bias makes any constant row harmless; near the mean, sums of squares lose no digits to
    # an offset
    centre = xp.mean(Z, axis=0) if fit_intercept is True else xp.zeros_like(Z[0, :])
    return LandmarkMap(kernel, landmarks, M, centre, constant, offset, left_out)


def _with_ones(Z: Array) -> Array:
    return namespace(Z).concat([Z, namespace(Z).ones_like(Z[:, :1])], axis=1)


def _whitener(K: Array) -> tuple[Array, float]:
    """U diag(λ)^(-½) of the eigenvalues that count, and what the others are below."""
    xp = namespace(K)
    eigenvalues, U = eigh_overwriting(0.5 * (K + K.T))
    largest, smallest = float(xp.max(xp.abs(eigenvalues))), float(xp.min(eigenvalues))
    if smallest < -INDEFINITE * largest:
        raise RefusedError(
            "landmarks with penalty='function' need a positive semi-definite kernel, but the "
            "kernel of the landmarks has an eigenvalue "
            f"of {smallest:.3g} and a largest of {largest:.3g}. Use penalty='dual', which "
            "does not need this."
        )
    kept = np.flatnonzero(to_numpy(eigenvalues).astype(float) > NEGLIGIBLE * largest)
    if len(kept) == 0:
        return eye_like(K.shape[0], K), 0.0
    left_out = NEGLIGIBLE * largest if len(kept) < K.shape[0] else 0.0
    return take(U.T, kept).T / xp.sqrt(take(eigenvalues, kept)), left_out


def as_points(points: Array, like: Array) -> Array:
    """Landmarks in the namespace of the rows; sparse ones stay sparse."""
    if sp.issparse(points):
        return points.tocsr()
    return (
        np.array(to_numpy(points), dtype=np.float64)
        if on_host(like)
        else asarray_like(points, like)
    )
