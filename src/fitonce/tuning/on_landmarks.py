"""The model on landmarks: one pass over the rows, and a sum of kernels at a few points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.arrays import asarray_like
from ..core.dropping import DroppedLandmarks
from ..core.features import FeatureNorm
from ..core.holdout import Deletion
from ..core.numerical_warnings import warn_constant
from ..core.refused import RefusedError
from ..core.rows import block_rows, is_rows, on_host
from ..kernels import OVERFLOW, Kernel
from ..landmarks.features import landmark_map
from ..rows.blocks import ArrayRows
from .data import Data
from .decompose import FitIntercept
from .exact import exact_problem
from .problem import LINEAR, Problem


def landmark_problem(
    data: Data,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    dropping: bool,
    deletions: Sequence[Deletion],
) -> Problem:
    """The problem on features of landmarks, for any mu and, a pass sooner, for some folds. Cost:
    one pass over the rows, O(n m²), and an eigh of m×m.
    """
    assert data.landmarks is not None
    landmarks = data.landmarks
    features = landmark_map(kernel, landmarks.points, penalty, fit_intercept)
    step = block_rows(features.size, host=on_host(data.X))
    rows = data.X.with_step(step) if is_rows(data.X) else ArrayRows(data.X, step)
    Y = asarray_like(data.targets, rows.like)
    scaled = Y if data.row_scale is None else data.row_scale * Y
    dropped = None
    if dropping:
        dropped = DroppedLandmarks(landmarks.rows, features.coordinates, features.eigenvectors)
    smoother, projected = FeatureNorm.of(
        rows, features, data.row_scale, fit_intercept is True, scaled, dropped, deletions
    )
    if not np.isfinite(smoother.trace):
        raise RefusedError(OVERFLOW)
    if smoother.trace == 0.0:
        warn_constant()
    common = data.row_scale, fit_intercept, Y, projected, features
    return Problem(kernel, landmarks.points, smoother, *common)


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
    points = data.landmarks.points
    model = replace(linear, kernel=kernel, X=points, features=features, Z=Z)
    anew = partial(confounded_landmarks, kernel=kernel, penalty=penalty, mu=None)
    return replace(model, data=data, anew=anew)
