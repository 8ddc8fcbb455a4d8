"""From validated rows to one decomposition, and from there to models.

Of all rows, or without some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, on_gpu, take, zeros_like_shape
from ..core.band import BandNorm
from ..core.features import Deletions, Dropping, FeatureFitted, FeatureNorm
from ..core.smoother import (
    DualNorm,
    Fitted,
    FunctionNorm,
    FunctionNormAt,
    HeldOut,
    Removal,
    Smoother,
    SmootherAt,
    unpenalised_coef,
)
from ..core.spectrum import orthonormal, spectrum_of_features, spectrum_of_kernel
from ..kernels import Kernel
from ..landmarks.choice import Landmarks
from ..landmarks.features import LandmarkMap, landmark_map
from ..rows.blocks import ArrayRows, block_rows, is_rows, on_host
from .validation import OVERFLOW, check_kernel_values, check_square, warn_constant

BAND_FROM = (
    6144  # rows from which the band form beats eigh on a GPU, folds included (benchmarks/gpu.py)
)
FitIntercept = bool | str  # True, False or "penalized"


@dataclass(frozen=True)
class Solution:
    """A model.

    F(x) = k(x, X) dual_coef + intercept, and x·coef + intercept as well where the kernel is linear.
    """

    dual_coef: Array
    intercept: Array
    coef: Array | None

    def readout(self, weights: Array, offsets: Array) -> Solution:
        """The model whose outputs are these outputs times `weights` plus `offsets`."""
        coef = None if self.coef is None else self.coef @ weights
        return Solution(self.dual_coef @ weights, self.intercept @ weights + offsets, coef)


@dataclass(frozen=True)
class Problem:
    """Training rows, their decomposition and their targets. Labels enter only through `targets` (n,
    t).

    `row_scale` (n, 1) holds the square roots of the row weights, or None. Smoothers work on scaled
    targets.
    """

    kernel: Kernel
    X: Array
    smoother: SmootherAt
    row_scale: Array | None
    fit_intercept: FitIntercept
    targets: Array

    @property
    def n_samples(self) -> int:
        return int(self.targets.shape[0])

    @property
    def decomposition(self) -> Smoother:
        """The smoother of a problem that was made for any mu."""
        return cast(Smoother, self.smoother)

    @cached_property
    def row_weights(self) -> Array:
        """(n, 1)"""
        return (
            namespace(self.targets).ones_like(self.targets[:, :1])
            if self.row_scale is None
            else self.row_scale**2
        )

    @cached_property
    def scaled_targets(self) -> Array:
        return self.targets if self.row_scale is None else self.row_scale * self.targets

    def unscale(self, values: Array, rows: Any = None) -> Array:
        """Values of a smoother as predictions: divided by the rows' scale."""
        if self.row_scale is None:
            return values
        return values / (self.row_scale if rows is None else take(self.row_scale, rows))

    def fit(self, mu: float) -> Fitted:
        return self.smoother.fit(self.scaled_targets, mu)

    def solution(self, fitted: Fitted, mu: float) -> Solution:
        """The model of a fit.

        Dual_coef = s∘α, and the bias from its normal equation, or the sum of α if penalised.
        """
        Y, dual = fitted.Y, self.smoother.dual_coef(fitted, mu)
        xp = namespace(Y)
        dual_coef = dual if self.row_scale is None else self.row_scale * dual
        coef = self._coef(Y, dual_coef, mu)
        if self.fit_intercept == "penalized":
            intercept = xp.sum(dual_coef, axis=0)
        elif not self.fit_intercept:
            intercept = xp.zeros_like(dual_coef[0, :])
        elif coef is not None:
            w = self.row_weights
            intercept = (xp.sum(w * self.unscale(Y), axis=0) / xp.sum(w)) - self._mean_row @ coef
        else:
            norm = xp.sqrt(xp.sum(self.row_weights))
            intercept = unpenalised_coef(self.smoother, Y, dual)[0, :] / norm
        return Solution(dual_coef, intercept, coef)

    @cached_property
    def _mean_row(self) -> Array:
        """The weighted mean of the training rows."""
        w = self.row_weights[:, 0]
        total = namespace(w).sum(w)
        return (self.X.T @ w) / total

    def _coef(self, Y: Array, dual_coef: Array, mu: float) -> Array | None:
        """Primal weights (p, t) of the linear kernel: Xᵀα.

        On the function norm α is taken inside the span of V only: what lies outside is orthogonal
        to X and would contribute rounding, magnified by 1/μ.
        """
        if not self.kernel.linear:
            return None
        if isinstance(self.smoother, FunctionNorm):
            spectrum = self.smoother.spectrum
            inside = spectrum.apply(1.0 / (spectrum.eigenvalues + mu), 0.0, Y)
            dual_coef = inside if self.row_scale is None else self.row_scale * inside
        if (
            self.fit_intercept is True
            and not sp.issparse(self.X)
            and isinstance(self.smoother, FunctionNorm)
        ):
            return (self.X - self._mean_row).T @ dual_coef
        return self.X.T @ dual_coef

    def held_out_targets(
        self, mus: np.ndarray, deletions: Deletions | None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Held-out targets (m, k, t) for every mu, the k rows tested and the number of the split
        each belongs to.

        Leave-one-out where no deletions are given, O(n²) per mu; otherwise pairs of rows deleted
        and positions among them tested.
        """
        xp = namespace(self.targets)
        Y = self.scaled_targets
        if deletions is None:
            rows = np.arange(self.n_samples)
            return self.unscale(Y - self.decomposition.leave_one_out(Y, mus).residual), rows, rows
        rows = np.concatenate([deleted[tested] for deleted, tested in deletions])
        fold = np.repeat(np.arange(len(deletions)), [len(tested) for _, tested in deletions])
        return (
            self.unscale(xp.stack([self._held_out_at(float(mu), deletions) for mu in mus]), rows),
            rows,
            fold,
        )

    def _held_out_at(self, mu: float, deletions: Deletions) -> Array:
        fitted = self.fit(mu)
        values = []
        for deleted, tested in deletions:
            removal = self.smoother.leave_out(deleted, mu)
            values.append(take(take(fitted.Y, deleted) - removal.held_out(fitted).residual, tested))
        return namespace(fitted.Y).concat(values, axis=0)

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without:
        """The model that a refit without the deleted rows would give."""
        return Without(self, fitted, self.smoother.leave_out(deleted, mu), mu)


@dataclass(frozen=True)
class LandmarkProblem(Problem):
    """The same on features of landmarks, which stand in `X`.

    The training rows are read block by block.
    """

    features: LandmarkMap

    @property
    def _feature_norm(self) -> FeatureNorm:
        return cast(FeatureNorm, self.smoother)

    def forget(self) -> None:
        """Let go of what a search has kept for the fit at its winner.

        Numbers for every row and alpha.
        """
        self._feature_norm._kept.clear()

    def solution(self, fitted: Fitted, mu: float) -> Solution:
        """α = N w and the bias ȳ - z̄·w, from coefficients w of features less their centre."""
        smoother, features = self._feature_norm, self.features
        fitted = cast(FeatureFitted, fitted)
        w = smoother.feature_coef(fitted)
        dual_coef = features.coordinates @ w
        intercept = fitted.mean_Y - (smoother.solved.mean_Z + features.centre) @ w
        if features.constant:
            intercept = intercept + w[-1, :]
        coef = self.X.T @ dual_coef if self.kernel.linear else None
        return Solution(dual_coef, intercept, coef)

    def held_out_targets(
        self, mus: np.ndarray, deletions: Deletions | None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Two passes over the rows for all folds and mus together."""
        if deletions is None:
            return super().held_out_targets(mus, deletions)
        rows = np.concatenate([deleted[tested] for deleted, tested in deletions])
        fold = np.repeat(np.arange(len(deletions)), [len(tested) for _, tested in deletions])
        return (
            self.unscale(
                self._feature_norm.held_out_path(self.scaled_targets, mus, deletions), rows
            ),
            rows,
            fold,
        )


def landmark_problem(
    X: Any,
    landmarks: Landmarks,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    row_scale: Array | None,
    targets: np.ndarray,
    dropping: bool,
) -> LandmarkProblem:
    """The problem on features of landmarks, for any mu. Cost.

    One pass over the rows, O(n m²), and an eigh of m×m.
    """
    features = landmark_map(kernel, landmarks.points, penalty, fit_intercept)
    step = block_rows(int(features.M.shape[1]), host=on_host(X))
    rows = X.with_step(step) if is_rows(X) else ArrayRows(X, step)
    Y = asarray_like(targets, rows.like)
    scaled = Y if row_scale is None else row_scale * Y
    smoother = FeatureNorm.of(rows, features, row_scale, fit_intercept is True, scaled)
    if not np.isfinite(smoother.trace):
        raise ValueError(OVERFLOW)
    if smoother.trace == 0.0:
        warn_constant()
    if dropping:
        smoother = replace(
            smoother, dropping=Dropping(landmarks.rows, features.coordinates, features.eigenvectors)
        )
    problem = LandmarkProblem(
        kernel, landmarks.points, smoother, row_scale, fit_intercept, Y, features
    )
    problem.__dict__["scaled_targets"] = scaled  # the very array that the moments know
    return problem


@dataclass(frozen=True)
class Without:
    """The model without some rows, in closed form.

    Its held-out values there and, on demand, everywhere.
    """

    problem: Problem
    fitted: Fitted
    removal: Removal
    mu: float

    @cached_property
    def removed(self) -> Fitted:
        return self.fitted.rows(self.removal.rows)

    @cached_property
    def held_out(self) -> HeldOut:
        return self.removal.held_out(self.fitted)

    @cached_property
    def refitted(self) -> Fitted:
        """A fit of all rows in which the deleted ones have no say.

        `Problem.solution` makes it a model.
        """
        return self.problem.smoother.refit_without(self.fitted, self.removal, self.mu)

    def values(self, rows: np.ndarray) -> Array:
        """Predicted targets of the given rows, deleted or not."""
        position = np.full(self.problem.n_samples, -1)
        position[self.removal.rows] = np.arange(len(self.removal.rows))
        if np.all(position[rows] >= 0):
            values = take(self.removed.Y - self.held_out.residual, position[rows])
        else:
            values = take(self.refitted.values, rows)
        return self.problem.unscale(values, rows)


def row_scale_of(weights: np.ndarray | None, X: Array) -> Array | None:
    """The square roots of the row weights (n, 1) where X lives."""
    return (
        None
        if weights is None
        else asarray_like(
            np.sqrt(weights)[:, None], np.empty(0) if sp.issparse(X) or is_rows(X) else X
        )
    )


def decompose(
    X: Array, kernel: Kernel, penalty: str, fit_intercept: FitIntercept, row_scale: Array | None
) -> Smoother:
    """The smoother of the rows X (the kernel matrix itself where precomputed, which is
    overwritten), for any mu.
    """
    if kernel.linear and penalty == "function" and X.shape[1] < X.shape[0]:
        return _decompose_features(X, fit_intercept, row_scale)
    if penalty == "function":
        K = _scaled_kernel(
            _off_origin(X, kernel, fit_intercept, row_scale), kernel, fit_intercept, row_scale
        )
        Q0 = bias_basis(K, row_scale, fit_intercept)
        if on_gpu(K) and K.shape[0] >= BAND_FROM and not kernel.linear:
            return BandNorm.of_kernel(K, Q0)
        KQ0 = K @ Q0
        return FunctionNorm(spectrum_of_kernel(K, Q0), KQ0)
    K = _scaled_kernel(X, kernel, fit_intercept, row_scale)
    Q0 = bias_basis(K, row_scale, fit_intercept)
    KQ0 = K @ Q0
    smoother = DualNorm(spectrum_of_kernel(K, zeros_like_shape((K.shape[0], 0), K)), Q0, KQ0)
    if smoother.spectrum.largest > np.sqrt(np.finfo(np.float64).max):  # it enters squared
        raise ValueError(OVERFLOW)
    return smoother


def _off_origin(
    X: Array, kernel: Kernel, fit_intercept: FitIntercept, row_scale: Array | None
) -> Array:
    """Rows less their mean where that changes nothing but the rounding.

    The linear kernel with a free bias.
    """
    if not kernel.linear or fit_intercept is not True or sp.issparse(X):
        return X
    xp = namespace(X)
    w = xp.ones_like(X[:, :1]) if row_scale is None else row_scale**2
    return X - xp.sum(w * X, axis=0) / xp.sum(w)


def decompose_at(
    X: Array,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    row_scale: Array | None,
    mu: float,
) -> SmootherAt:
    """`decompose` for a single mu, by the cheapest means."""
    if penalty == "dual" or (kernel.linear and X.shape[1] < X.shape[0]):
        smoother = decompose(X, kernel, penalty, fit_intercept, row_scale)
        smoother.check(np.asarray([mu]))
        return smoother
    K = _scaled_kernel(
        _off_origin(X, kernel, fit_intercept, row_scale), kernel, fit_intercept, row_scale
    )
    return FunctionNormAt.of_kernel(K, bias_basis(K, row_scale, fit_intercept), mu)


def _scaled_kernel(
    X: Array, kernel: Kernel, fit_intercept: FitIntercept, row_scale: Array | None
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
    X: Array, fit_intercept: FitIntercept, row_scale: Array | None
) -> FunctionNorm:
    """The linear kernel with fewer features than rows, through the p×p side; a penalised bias is
    one more feature.

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
    xp = namespace(like)
    return orthonormal(xp.ones_like(like[:, :1]) if row_scale is None else row_scale)
