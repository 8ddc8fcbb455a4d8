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
class Data:
    """The rows that train: features (or kernel), y as given, targets, weights and their roots.

    `confounds` C (n, q) are `removed` from the features, or else predictors without a penalty.
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
    confounds: Array | None = None
    removed: bool = True
    columns: Columns | None = None

    def rows(self, rows: np.ndarray) -> Data:
        """Some of the rows, without landmarks."""
        names = ("X", "y", "codes", "targets", "weights", "row_scale", "confounds")
        given = ((name, getattr(self, name)) for name in names)
        some = {name: take(A, rows) for name, A in given if A is not None}
        columns = None if self.columns is None else self.columns.take(rows)
        return replace(self, **some, columns=columns, landmarks=None)

    def relabelled(self, y: np.ndarray, codes: np.ndarray | None, targets: np.ndarray) -> Data:
        return replace(self, y=y, codes=codes, targets=targets)

    @property
    def total_weight(self) -> float:
        return float(self.X.shape[0]) if self.weights is None else float(self.weights.sum())
