"""The rows that train, validated: what a decomposition is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arrays import (
    Array,
    take,
)
from ..core.columns import Columns
from ..landmarks.choice import Landmarks


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
