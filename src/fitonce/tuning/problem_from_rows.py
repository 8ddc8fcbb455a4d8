"""Problems from rows: exact, by one decomposition of all of them, or on landmarks, by one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.arrays import asarray_like
from ..core.confounds import ConfoundBasis, Sum, projection
from ..core.holdout import Deletion, Smoother, Targets
from ..core.numerical_warnings import warn_constant
from ..core.refused import RefusedError
from ..core.resolvent import Resolvent
from ..core.rows import block_rows, is_rows, on_host
from ..core.smoothers import FunctionNorm
from ..core.thin import Thin
from ..kernels import OVERFLOW, Kernel
from ..landmarks.features import landmark_map
from ..rows.blocks import ArrayRows
from .decompose import FitIntercept, check_fits, decompose
from .problem import LINEAR, Problem, Refits
from .specification import Data


def exact_problem(
    data: Data,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    mu: float | None = None,
    whole: Callable[[], Resolvent] | None = None,
    copied: bool = False,
) -> Problem:
    """The problem of all rows, for any mu or for the given one only; with `whole`, for that one
    first. A precomputed kernel in X is overwritten, unless it is to be `copied`.
    """
    X, scale = data.X, data.row_scale
    basis = None if data.confounds is None else ConfoundBasis.of(data.confounds, scale)
    removed, free = basis is not None and data.removed, None if basis is None else basis.Q0
    smoother: Smoother
    with check_fits(X, kernel, penalty, mu, copied):
        given = X + 0.0 if kernel.precomputed and (copied or basis is not None) else X
        recipe = given, kernel, penalty, fit_intercept, scale, free, removed, mu, whole
        smoother = decompose(*recipe)
    if basis is not None and removed:  # H_J - Q₀Q₀ᵀ + q₁q₁ᵀ
        terms = smoother, projection(basis.Q0), projection(basis.bias)
        smoother = Sum(terms, (1.0, -1.0, 1.0))
    X = None if kernel.precomputed else X
    Y = asarray_like(data.targets, smoother.Q0)
    projected = smoother.project(Y if scale is None else scale * Y)
    problem = Problem(kernel, X, smoother, scale, fit_intercept, Y, projected)
    if basis is None:
        return problem
    # basis functions of the dual norm, less what confounds explain, depend on all rows that train
    every = removed and smoother.has_duals

    def needed(deleted: np.ndarray) -> bool:
        """Whether confounds lose rank."""
        return every or not basis.keeps_rank(deleted)

    anew = partial(exact_problem, kernel=kernel, penalty=penalty, fit_intercept=True)
    alone = np.arange(problem.n_samples) if every else basis.full_leverage_rows
    return replace(problem, confounds=basis, refits=Refits(data, anew, alone, needed))


def landmark_problem(
    data: Data,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    dropping: bool = False,
    deletions: Sequence[Deletion] = (),
) -> Problem:
    """The problem on features of landmarks, for any mu and, a pass sooner, for some folds. Cost:
    one pass over the rows, O(n m²), and an eigh of m×m. Where landmarks are dropped with their
    rows, the models without these are fitted.
    """
    assert data.landmarks is not None
    landmarks = data.landmarks
    features = landmark_map(kernel, landmarks.points, penalty, fit_intercept)
    step = block_rows(features.size, host=on_host(data.X))
    rows = data.X.with_step(step) if is_rows(data.X) else ArrayRows(data.X, step)
    Y = asarray_like(data.targets, rows.like)
    scaled = Y if data.row_scale is None else data.row_scale * Y
    thin = Thin.of(rows, features, data.row_scale, fit_intercept is True, scaled, deletions)
    if not np.isfinite(thin.trace):
        raise RefusedError(OVERFLOW)
    if thin.trace == 0.0:
        warn_constant()
    smoother = FunctionNorm(thin, None, thin.solved.entry)
    common = data.row_scale, fit_intercept, Y, Targets(scaled, thin.solved.z), features
    problem = Problem(kernel, landmarks.points, smoother, *common)
    if not dropping:
        return problem

    def needed(deleted: np.ndarray) -> bool:
        """Whether landmarks leave."""
        return bool(np.isin(landmarks.rows, deleted).any())

    anew = partial(landmark_problem, kernel=kernel, penalty=penalty, fit_intercept=fit_intercept)
    alone = np.unique(landmarks.rows[landmarks.rows >= 0])
    return replace(problem, refits=Refits(data, anew, alone, needed))


def confounded_landmarks(data: Data, kernel: Kernel, penalty: str, mu: float | None) -> Problem:
    """The problem with confounds, which are taken out of the features of landmarks, or put beside
    them, as out of the columns of a linear model: O(n m²), and n×m numbers are kept.

    Both penalties are norms of the coefficients of these features: deletions are those of the
    function norm.
    """
    assert data.landmarks is not None
    features = landmark_map(kernel, data.landmarks.points, penalty, True)
    Z = features(data.X)
    linear = exact_problem(replace(data, X=Z, landmarks=None), LINEAR, "function", True, mu)
    assert linear.refits is not None
    anew = partial(confounded_landmarks, kernel=kernel, penalty=penalty, mu=None)
    refits = replace(linear.refits, data=data, make=anew)
    points = data.landmarks.points
    return replace(linear, kernel=kernel, X=points, features=features, Z=Z, refits=refits)
