"""The exact model: one decomposition of all rows, and a sum of kernels at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..core.arrays import NotPositiveDefiniteError, asarray_like
from ..core.confounds import ConfoundBasis
from ..core.holdout import Smoother
from ..core.resolvent import Resolvent
from ..core.sum_of_smoothers import with_columns_removed
from ..kernels import Kernel
from .data import Data
from .decompose import FitIntercept, decompose
from .problem import Problem


def exact_problem(
    data: Data,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    mu: float | None,
    whole: Callable[[], Resolvent] | None = None,
) -> Problem:
    """The problem of all rows, for any mu or for the given one only; with `whole`, for that one
    first. A precomputed kernel in X is overwritten, or a copy of it where there are confounds.
    """
    X, scale = data.X, data.row_scale
    basis = None if data.confounds is None else ConfoundBasis.of(data.confounds, scale)
    removed, free = basis is not None and data.removed, None if basis is None else basis.Q0
    if basis is not None and kernel.precomputed:
        X = X + 0.0
    recipe = X, kernel, penalty, fit_intercept, scale, free, removed, mu, whole
    smoother: Smoother
    try:
        smoother = decompose(*recipe)
    except NotPositiveDefiniteError as error:
        raise NotPositiveDefiniteError(
            "alpha is too small for this kernel: the kernel matrix plus alpha is not positive "
            'definite. Use a larger alpha, or penalty="dual", which does not need this.'
        ) from error
    if removed:
        smoother = with_columns_removed(smoother, free)
    Y = asarray_like(data.targets, smoother.Q0)
    X = None if kernel.precomputed else data.X
    projected = smoother.project(Y if scale is None else scale * Y)
    problem = Problem(kernel, X, smoother, scale, fit_intercept, Y, projected)
    if basis is None:
        return problem
    anew = partial(exact_problem, kernel=kernel, penalty=penalty, fit_intercept=True, mu=None)
    return replace(problem, confounds=basis, data=data, anew=anew)
