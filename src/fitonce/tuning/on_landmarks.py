"""The model on landmarks: one pass over the rows, and a sum of kernels at a few points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import (
    Array,
    asarray_like,
)
from ..core.doubt import warn_constant
from ..core.features import FeatureNorm
from ..core.holdout import (
    Fitted,
)
from ..core.refused import RefusedError
from ..core.rows import block_rows, is_rows, on_host
from ..core.smoothing import Smoothing
from ..kernels import OVERFLOW, Kernel
from ..landmarks.dropping import DroppedLandmarks
from ..landmarks.features import LandmarkMap, landmark_map
from ..rows.blocks import ArrayRows
from .data import Data
from .decompose import FitIntercept
from .problem import Problem
from .solution import Solution


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
        total = t * self.smoother.solved.weight
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
        raise RefusedError(OVERFLOW)
    if smoother.trace == 0.0:
        warn_constant()
    common = data.row_scale, fit_intercept, Y, projected, features
    return LandmarkProblem(kernel, landmarks.points, smoother, *common)
