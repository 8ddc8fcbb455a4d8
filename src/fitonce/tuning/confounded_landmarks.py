"""Confounds with landmarks: the features of a model on landmarks are few, and confounds are taken
out of them, or put beside them, as out of the columns of a linear model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like
from ..core.doubt import warn_constant
from ..core.holdout import Deletion, Fitted, Path
from ..core.refused import RefusedError
from ..kernels import OVERFLOW, Kernel
from ..landmarks.features import LandmarkMap, landmark_map
from .confounded import ConfoundedProblem, confounded_problem
from .data import Data
from .problem import Problem, Without
from .solution import Solution

LINEAR = Kernel("linear")


@dataclass(frozen=True)
class ConfoundedLandmarks(Problem):
    """A linear problem with confounds on the features of landmarks, which stand in `X`.

    Both penalties are norms of the coefficients of these features, so that all deletions have the
    closed form of the function norm. The features of all rows are kept, n×m numbers.
    """

    inner: ConfoundedProblem
    features: LandmarkMap

    def with_targets(self, targets: np.ndarray) -> Problem:
        inner = self.inner.with_targets(targets)
        assert isinstance(inner, ConfoundedProblem)
        return replace(self, inner=inner, targets=inner.targets, projected=inner.projected)

    def scatter(self, fitted: Fitted) -> Array:
        return self.inner.scatter(fitted)

    def residual(self, fitted: Fitted) -> Array:
        return self.inner.residual(fitted)

    def scatters(self, mus: np.ndarray) -> Array:
        return self.inner.scatters(mus)

    def scatter_without_each(self, path: Path) -> Array:
        return self.inner.scatter_without_each(path)

    def leverage(self, path: Path) -> Array:
        return self.inner.leverage(path)

    def held_out_targets(
        self, mus: np.ndarray, deletions: Sequence[Deletion] | None, path: Path | None = None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        return self.inner.held_out_targets(mus, deletions, path)

    def left_out_residuals(self, columns: Array, mus: np.ndarray) -> Array:
        return self.inner.left_out_residuals(columns, mus)

    def values_without_each(self, path: Path) -> Array:
        return self.inner.values_without_each(path)

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without:
        return self.inner.without(fitted, deleted, mu)

    def features_of(self, rows: np.ndarray) -> Any:
        return None

    def confounds_of(self, rows: np.ndarray) -> Array:
        return self.inner.confounds_of(rows)

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        """α = N w on the landmarks, and the bias minus what w makes of the features' center."""
        own = self.inner.solution(fitted, mu)
        assert own.coef is not None
        none = 0.0 * own.coef[:, 0]
        model = self.features.model(own.coef, own.intercept, none)
        return Solution(*model, confound_coef=own.confound_coef)


def confounded_landmarks(
    data: Data, kernel: Kernel, penalty: str, mu: float | None
) -> ConfoundedLandmarks:
    """The problem on features of landmarks with a free bias and confounds: O(n m²)."""
    assert data.landmarks is not None
    features = landmark_map(kernel, data.landmarks.points, penalty, True)
    Z = features(data.X)
    if not np.isfinite(float((Z**2).sum())):
        raise RefusedError(OVERFLOW)
    inner = confounded_problem(replace(data, X=Z, landmarks=None), LINEAR, "function", mu)
    if inner.smoother.trace == 0.0:
        warn_constant()
    common = data.row_scale, True, asarray_like(data.targets, Z), inner.projected
    return ConfoundedLandmarks(
        kernel, data.landmarks.points, inner.smoother, *common, inner, features
    )


__all__ = ["confounded_landmarks"]
