"""Labelings one by one, as in scikit-learn: a model fitted on every training set.

This is for cases without a closed form. If a decomposition of all rows exists, it is still used for
every labeling, and only the folds that need it are fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.splits import Split
from ..crossval.lookup import FoldContext, lookup_estimator, n_rows, subset
from ..estimators.validation import is_foreign_array


@dataclass
class Fitter:
    """Fits the estimator on the training sets of a labeling.

    `each`: labels enter the decomposition (class weights), so that every labeling has its own,
    still one for all folds.
    """

    estimator: Any
    X: Any
    y: Any
    params: Mapping[str, Any] | None
    shared: FoldContext | None
    each: bool
    confounds: Any = None

    def __post_init__(self) -> None:
        self.plain = FoldContext(self.estimator, self.X, self.y)
        self.plain.confounds = self.confounds

    def folds(
        self, y: Any, splits: Sequence[Split], *, real: bool = False
    ) -> list[tuple[Any, Any, Any]]:
        """(model, its test rows, their labels) for every split.

        `real` models can be looked into, others only be called.
        """
        stands_in = self.shared is not None or self.each or is_foreign_array(self.X)
        confounded = self.confounds is not None  # only stand-ins bring the confounds of rows along
        if not confounded and (real or not stands_in):
            return [self.fitted(y, train, test) for train, test in splits]
        shared = (self.shared or self.plain).relabelled(np.asarray(y))
        if self.each:
            shared.decompose((self.params or {}).get("sample_weight"))
        model, rows = lookup_estimator(shared), np.arange(n_rows(self.X))[:, None]
        return [
            (
                clone(model).fit(rows[train], subset(y, train), **self._params_of(train)),
                rows[test],
                subset(y, test),
            )
            for train, test in splits
        ]

    def fitted(self, y: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any, Any]:
        """The model of one training set, its test rows and their labels."""
        model = clone(self.estimator)
        model.fit(self.plain.rows(train, train), subset(y, train), **self._params_of(train))
        return model, self.plain.rows(test, train), subset(y, test)

    def _params_of(self, train: np.ndarray) -> dict[str, Any]:
        return of_rows(self.params or {}, train, n_rows(self.X))


def of_rows(params: Mapping[str, Any], rows: np.ndarray, n_samples: int) -> dict[str, Any]:
    """Parameters, those with one entry per row cut to some of the rows."""
    return {
        name: subset(value, rows) if _per_row(value, n_samples) else value
        for name, value in params.items()
    }


def _per_row(value: Any, n_samples: int) -> bool:
    listed = hasattr(value, "__len__") and not isinstance(value, (str, Mapping))
    return listed and n_rows(value) == n_samples
