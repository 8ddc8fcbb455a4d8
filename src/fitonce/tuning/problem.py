"""From validated rows to one decomposition, and from there to models: of all rows, or without some.

A `Problem` is the smoother of the rows with targets. Labels enter only through the targets, so
other labels are another `Problem` with the same smoother.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    namespace,
    take,
)
from ..core.columns import Columns
from ..core.doubt import warn_constant
from ..core.dual import DualNormWithBias
from ..core.features import FeatureNorm
from ..core.holdout import (
    Deletion,
    Fitted,
    HeldOut,
    Path,
    Removal,
    Smoother,
    Targets,
    scatter_without,
)
from ..core.rows import block_rows, is_rows, on_host
from ..core.smoothers import KernelSmoother
from ..core.smoothing import Smoothing
from ..core.ties import settled_sum
from ..kernels import OVERFLOW, Kernel
from ..landmarks.choice import Landmarks
from ..landmarks.dropping import DroppedLandmarks
from ..landmarks.features import LandmarkMap, landmark_map
from ..rows.blocks import ArrayRows
from .decompose import FitIntercept, decompose, decompose_at
from .new_rows import kernel_smoothing
from .solution import Solution


@dataclass(frozen=True)
class Confounds:
    """Columns C (n, q) to adjust for: removed from the features ("remove"), or used as unpenalized
    predictors ("include").
    """

    C: Array
    meaning: str

    def rows(self, rows: np.ndarray) -> Confounds:
        return Confounds(take(self.C, rows), self.meaning)


@dataclass(frozen=True)
class Data:
    """The rows that train: features (or kernel), y as given, targets, weights and their roots.

    `codes` are class indices and `classes` the labels they stand for, None for regression. Targets
    that are processed in blocks are `columns`; `y` and `targets` have none then.
    """

    X: Any
    y: np.ndarray
    codes: np.ndarray | None
    targets: np.ndarray
    weights: np.ndarray | None
    row_scale: Array | None
    landmarks: Landmarks | None = None
    block: np.ndarray | None = None  # of rows that are averaged, where they are
    classes: np.ndarray | None = None
    confounds: Confounds | None = None
    columns: Columns | None = None

    def rows(self, rows: np.ndarray) -> Data:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        row_scale = None if self.row_scale is None else take(self.row_scale, rows)
        codes = None if self.codes is None else self.codes[rows]
        X, y, targets = take(self.X, rows), self.y[rows], self.targets[rows]
        columns = None if self.columns is None else self.columns.take(rows)
        confounds = None if self.confounds is None else self.confounds.rows(rows)
        given = X, y, codes, targets, weights, row_scale
        return Data(*given, classes=self.classes, confounds=confounds, columns=columns)

    def relabelled(self, y: np.ndarray, codes: np.ndarray | None, targets: np.ndarray) -> Data:
        return replace(self, y=y, codes=codes, targets=targets)

    @property
    def total_weight(self) -> float:
        return float(self.X.shape[0]) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True)
class Problem:
    """Training rows, their decomposition and their targets.

    `row_scale` (n, 1) holds the square roots of the row weights, or None. Smoothers work on scaled
    targets, which `projected` holds.
    """

    kernel: Kernel
    X: Any
    smoother: Smoother
    row_scale: Array | None
    fit_intercept: FitIntercept
    targets: Array
    projected: Targets

    @property
    def left_out(self) -> float:
        """What μ must be well above, because smaller eigenvalues were taken for rounding."""
        return 0.0

    def squared_errors(self, alphas: np.ndarray) -> np.ndarray | None:
        """The mean squared leave-one-out error at every alpha, where it can be had without the
        residuals themselves: from rows that are elsewhere.
        """
        return None

    @property
    def reads_path(self) -> bool:
        """Whether leave-one-out values of the rows follow from a path alone."""
        return True

    @property
    def n_samples(self) -> int:
        return int(self.targets.shape[0])

    @cached_property
    def row_weights(self) -> Array:
        """(n, 1)"""
        ones = namespace(self.targets).ones_like(self.targets[:, :1])
        return ones if self.row_scale is None else self.row_scale**2

    @cached_property
    def sizes(self) -> Array:
        """Σw y (t,): the class sizes, where targets are indicators."""
        return namespace(self.targets).sum(self.row_weights * self.targets, axis=0)

    def with_targets(self, targets: np.ndarray) -> Problem:
        """The same decomposition with other targets (n, t)."""
        Y = asarray_like(targets, self.smoother.Q0)
        scaled = Y if self.row_scale is None else self.row_scale * Y
        return replace(self, targets=Y, projected=self.smoother.project(scaled))

    def unscale(self, values: Array, rows: Any = None) -> Array:
        """Values of a smoother as predictions: divided by the rows' scale."""
        if self.row_scale is None:
            return values
        return values / (self.row_scale if rows is None else take(self.row_scale, rows))

    def check(self, alphas: np.ndarray) -> None:
        """Refuse an alpha at which the model does not exist."""
        if not self.smoother.admits(alphas):
            bound = self.smoother.lower_bound
            raise ValueError(
                f"alpha must be greater than {bound:.6g} for this kernel, got "
                f"{float(np.min(alphas)):.6g} instead: the centered kernel matrix is indefinite "
                f"(its smallest eigenvalue is {-bound:.6g}), and below that value the penalized "
                'problem has no minimum. Use a larger alpha, or penalty="dual", which does not '
                "need a definite kernel."
            )

    def degrees_of_freedom(
        self, sizes: Array, deleted: np.ndarray | None = None, each: bool = False
    ) -> Array | None:
        """Of the within-class scatter, where these are not n - c: of all rows, without those
        deleted, or without each one.
        """
        return None

    def path(self, alphas: np.ndarray) -> Path:
        return self.smoother.path(self.projected, alphas)

    def fit(self, mu: float) -> Fitted:
        return self.smoother.fit(self.projected, mu)

    def scatter(self, fitted: Fitted) -> Array:
        """E = Yᵀ(I - H)Y (t, t) of a fit."""
        return fitted.Y.T @ fitted.residual

    def residual(self, fitted: Fitted) -> Array:
        """(I - H)Y (n, t) of a fit."""
        return fitted.residual

    def scatters(self, mus: np.ndarray) -> Array:
        """E for every mu (m, t, t)."""
        return self.smoother.residual_scatter(self.projected, mus)

    def scatter_without_each(self, path: Path) -> Array:
        """E of the other rows (n, t, t) where each one is left out, at the mu of a path."""
        held_out = path.leave_one_out()
        r, rho = path.residual[0, :, None, :], held_out.residual[0, :, None, :]
        force = dual = None
        if held_out.force is not None and path.dual is not None:
            force, dual = held_out.force[0, :, None, :], path.dual[0, :, None, :]
        E = Problem.scatter(self, self.smoother.fitted(self.projected, path))
        return scatter_without(E, r, HeldOut(rho, force), dual)

    def leverage(self, path: Path) -> Array:
        """The diagonal of H (n,) at the mu of a path."""
        return 1.0 - path.one_minus_h[0, :]

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        """The model of a fit: dual_coef = s∘α, and the bias from its normal equation, or the sum of
        α where it is penalized by K + 1; the weights of the features of a linear kernel, unless
        they are not wanted.
        """
        raise NotImplementedError

    def smoothing(self, X: Array, mu: float, excess: bool = False) -> Smoothing:
        """New rows as functions of the scaled targets, with τ where `excess` asks for it."""
        raise NotImplementedError

    def held_out_targets(
        self, mus: np.ndarray, deletions: Sequence[Deletion] | None, path: Path | None = None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Held-out targets (m, k, t) for every mu, the k rows tested and the number of the split
        each belongs to.

        Leave-one-out where no deletions are given, O(n²) per mu and from `path` if that is known;
        otherwise pairs of rows deleted and positions among them tested.
        """
        if deletions is None:
            rows = np.arange(self.n_samples)
            path = self.path(mus) if path is None else path
            return self.unscale(self.projected.Y - path.leave_one_out().residual), rows, rows
        rows, fold = tested_rows(deletions)
        values = self.smoother.held_out_folds(self.projected, mus, deletions)
        return self.unscale(values, rows), rows, fold

    def left_out_residuals(self, columns: Array, mus: np.ndarray) -> Array:
        """Leave-one-out residuals (m, n, t) of other targets (n, t), scaled as the rows are."""
        scaled = columns if self.row_scale is None else self.row_scale * columns
        return self.smoother.leave_one_out(self.smoother.project(scaled), mus).residual

    def values_without_each(self, path: Path) -> Array:
        """Predicted targets (n, t) of every row by the model without it, at the mu of a path."""
        return self.unscale(self.projected.Y - path.leave_one_out().residual[0, ...])

    def of_rows(self, per_sample: Array) -> Array:
        """Arrays with one entry for each thing that trains, one for each row."""
        return per_sample

    def features_of(self, rows: np.ndarray) -> Any:
        """Some of the rows as they would come to `predict`; None if they are not kept."""
        return None if self.X is None else take(self.X, rows)

    def confounds_of(self, rows: np.ndarray) -> Array | None:
        """The confounds of some rows, where there are any."""
        return None

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without:
        """The model that a refit without the deleted rows would give."""
        return Without(self, fitted, self.smoother.leave_out(deleted, mu), mu)


def tested_rows(deletions: Sequence[Deletion]) -> tuple[np.ndarray, np.ndarray]:
    """The rows tested by all deletions one after the other, and which deletion tests each."""
    rows = np.concatenate([deleted[tested] for deleted, tested in deletions])
    return rows, np.repeat(np.arange(len(deletions)), [len(tested) for _, tested in deletions])


@dataclass(frozen=True)
class KernelProblem(Problem):
    """The exact model: a sum of kernels at all rows."""

    smoother: KernelSmoother

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        Y, dual = fitted.Y, self.smoother.dual_coef(fitted, mu)
        xp = namespace(Y)
        dual_coef = self._scaled(dual)
        coef = None
        if (
            self.kernel.linear and with_coef
        ):  # what lies outside the range of X adds rounding only, over μ
            coef = self._coef(self._scaled(self.smoother.inside(Y, dual, mu)))
        if self.fit_intercept == "penalized":
            intercept = xp.sum(dual_coef, axis=0)
        elif isinstance(self.smoother, DualNormWithBias):
            intercept = self.smoother.bias(Y, dual, mu)
        elif not self.fit_intercept:
            intercept = xp.zeros_like(dual_coef[0, :])
        elif coef is not None:
            w = self.row_weights
            mean = xp.sum(w * self.unscale(Y), axis=0) / xp.sum(w)
            intercept = mean - self._mean_row @ coef
        else:
            norm = xp.sqrt(xp.sum(self.row_weights))
            beta = self.smoother.bias_coef(Y, dual)[0, :]
            size = self.smoother.bias_size(Y, dual)[0, :]
            intercept = settled_sum(beta, size) / norm
            if self.smoother.offset:
                intercept = intercept - self.smoother.offset * xp.sum(dual_coef, axis=0)
        return Solution(dual_coef, intercept, coef, self.centred)

    @property
    def centred(self) -> bool:
        """Whether dual coefficients add up to zero, so that the kernel is known up to a constant
        of each row.
        """
        return self.fit_intercept is True and self.smoother.centres

    def smoothing(self, X: Array, mu: float, excess: bool = False) -> Smoothing:
        return kernel_smoothing(self, X, mu, excess)

    def covariance(self, X: Array, mu: float) -> Smoothing:
        """The same with τ (m, m) of every two new rows."""
        return kernel_smoothing(self, X, mu, excess=True, matrix=True)

    def _scaled(self, dual: Array) -> Array:
        return dual if self.row_scale is None else self.row_scale * dual

    @cached_property
    def _mean_row(self) -> Array:
        """The weighted mean of the training rows."""
        w = self.row_weights[:, 0]
        return (self.X.T @ w) / namespace(w).sum(w)

    def _coef(self, dual_coef: Array) -> Array:
        """Xᵀ dual_coef, X minus its mean where the kernel was made so: a free bias makes that the
        same model.
        """
        if not self.centred:
            return self.X.T @ dual_coef
        if sp.issparse(self.X):
            return self.X.T @ dual_coef - np.outer(self._mean_row, np.sum(dual_coef, axis=0))
        return (self.X - self._mean_row).T @ dual_coef


def smoother_of(
    data: Data,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    mu: float | None,
    free: Array | None = None,
    whole: Callable[[], KernelSmoother] | None = None,
) -> KernelSmoother:
    """The decomposition of the rows, with more columns free of a penalty than the bias if given."""
    recipe = data.X, kernel, penalty, fit_intercept, data.row_scale
    try:
        if mu is None:
            return decompose(*recipe, free)
        return decompose_at(*recipe, mu, free, whole)
    except NotPositiveDefiniteError as error:
        raise NotPositiveDefiniteError(
            "alpha is too small for this kernel: the kernel matrix plus alpha is not positive "
            'definite. Use a larger alpha, or penalty="dual", which does not need this.'
        ) from error


def exact_problem(
    data: Data,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    mu: float | None,
    whole: Callable[[], KernelSmoother] | None = None,
) -> KernelProblem:
    """The problem of all rows, for any mu or for the given one only; with `whole`, for that one
    first. A precomputed kernel in X is overwritten.
    """
    smoother = smoother_of(data, kernel, penalty, fit_intercept, mu, whole=whole)
    Y = asarray_like(data.targets, smoother.Q0)
    X = None if kernel.precomputed else data.X
    projected = smoother.project(Y if data.row_scale is None else data.row_scale * Y)
    return KernelProblem(kernel, X, smoother, data.row_scale, fit_intercept, Y, projected)


@dataclass(frozen=True)
class LandmarkProblem(Problem):
    """The same on features of landmarks, which stand in `X`; rows are read block by block."""

    smoother: FeatureNorm
    features: LandmarkMap

    @property
    def left_out(self) -> float:
        """Eigenvalues of K_mm, n/m times as large in the sums over rows."""
        return self.features.left_out * self.n_samples / int(self.X.shape[0])

    def squared_errors(self, alphas: np.ndarray) -> np.ndarray | None:
        if not self.smoother.data.remote or self.smoother.dropping is not None:
            return None
        t = int(self.projected.Y.shape[1])
        total = t * self.smoother.solved.moments.weight
        return self.smoother.squared_errors(self.projected, alphas) / total

    def smoothing(self, X: Array, mu: float, excess: bool = False) -> Smoothing:
        return self.smoother.smoothing(X, mu)

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        """α = N w and the bias ȳ - z̄·w, from coefficients w of features minus their center."""
        solved = self.smoother.solved
        coef = self.smoother.coef(self.projected, mu) if fitted.coef is None else fitted.coef
        mean_Y = self.smoother.mean_Y(fitted.Y)
        return Solution(*self.features.model(solved.W @ coef, mean_Y, solved.mean_Z))

    def features_of(self, rows: np.ndarray) -> Any:
        return self.smoother.data.take(rows)


def landmark_problem(
    data: Data, kernel: Kernel, penalty: str, fit_intercept: FitIntercept, dropping: bool
) -> LandmarkProblem:
    """The problem on features of landmarks, for any mu. Cost: one pass over the rows, O(n m²), and
    an eigh of m×m.
    """
    assert data.landmarks is not None
    landmarks = data.landmarks
    features = landmark_map(kernel, landmarks.points, penalty, fit_intercept)
    step = block_rows(int(features.M.shape[1]), host=on_host(data.X))
    rows = data.X.with_step(step) if is_rows(data.X) else ArrayRows(data.X, step)
    Y = asarray_like(data.targets, rows.like)
    scaled = Y if data.row_scale is None else data.row_scale * Y
    dropped = None
    if dropping:
        dropped = DroppedLandmarks(landmarks.rows, features.coordinates, features.eigenvectors)
    smoother, projected = FeatureNorm.of(
        rows, features, data.row_scale, fit_intercept is True, scaled, dropped
    )
    if not np.isfinite(smoother.trace):
        raise ValueError(OVERFLOW)
    if smoother.trace == 0.0:
        warn_constant()
    common = data.row_scale, fit_intercept, Y, projected, features
    return LandmarkProblem(kernel, landmarks.points, smoother, *common)


@dataclass(frozen=True)
class Without:
    """The model without some rows, in closed form: its held-out values there and, on demand,
    everywhere.
    """

    problem: Problem
    fitted: Fitted
    removal: Removal
    mu: float

    @cached_property
    def held_out(self) -> HeldOut:
        return self.removal.held_out(self.fitted)

    @cached_property
    def refitted(self) -> Fitted:
        """A fit of all rows in which the deleted ones have no say; `Problem.solution` makes it a
        model.
        """
        problem = self.problem
        return problem.smoother.refit_without(
            problem.projected, self.removal, self.held_out, self.mu
        )

    @property
    def solution(self) -> Solution:
        """The model as coefficients."""
        return self.problem.solution(self.refitted, self.mu)

    @property
    def scatter(self) -> Array:
        """E of the rows that are left."""
        fitted, rows = self.fitted, self.removal.rows
        dual = None if fitted.dual is None else take(fitted.dual, rows)
        E = Problem.scatter(self.problem, fitted)
        return scatter_without(E, take(fitted.residual, rows), self.held_out, dual)

    def values(self, rows: np.ndarray) -> Array:
        """Predicted targets of the given rows, deleted or not."""
        position = np.full(self.problem.n_samples, -1)
        position[self.removal.rows] = np.arange(len(self.removal.rows))
        if np.all(position[rows] >= 0):
            deleted = take(self.fitted.Y, self.removal.rows) - self.held_out.residual
            values = take(deleted, position[rows])
        else:
            values = take(self.refitted.values, rows)
        return self.problem.unscale(values, rows)
