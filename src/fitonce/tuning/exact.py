"""The exact model: one decomposition of all rows, and a sum of kernels at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..core.arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    namespace,
)
from ..core.dual import DualNormWithBias
from ..core.holdout import (
    Fitted,
)
from ..core.resolvent import Resolvent
from ..core.smoothers import KernelSmoother
from ..core.smoothing import Smoothing
from ..core.ties import settled_sum
from ..kernels import Kernel
from .data import Data
from .decompose import FitIntercept, decompose, decompose_at
from .new_rows import kernel_smoothing
from .problem import Problem
from .solution import Solution


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
    whole: Callable[[], Resolvent] | None = None,
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
    whole: Callable[[], Resolvent] | None = None,
) -> KernelProblem:
    """The problem of all rows, for any mu or for the given one only; with `whole`, for that one
    first. A precomputed kernel in X is overwritten.
    """
    smoother = smoother_of(data, kernel, penalty, fit_intercept, mu, whole=whole)
    Y = asarray_like(data.targets, smoother.Q0)
    X = None if kernel.precomputed else data.X
    projected = smoother.project(Y if data.row_scale is None else data.row_scale * Y)
    return KernelProblem(kernel, X, smoother, data.row_scale, fit_intercept, Y, projected)
