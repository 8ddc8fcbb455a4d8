"""Labellings one by one, as scikit-learn does it: a model fitted on every training set.

For what the closed forms do not cover. Where a decomposition of all rows exists it still serves
every labelling, and only the folds that need it are fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import to_numpy
from ..crossval.stand_in import Shared, n_rows, stand_in, subset
from ..estimators.validation import is_foreign_array
from .validity import Split


class Fitter:
    """Fits the estimator on the training sets of a labelling."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        params: Mapping[str, Any] | None,
        shared: Shared | None,
        each: bool,
    ) -> None:
        """`each`.

        Labels enter the decomposition (class weights), so that every labelling has its own, still
        one for all folds.
        """
        self.estimator, self.X, self.y, self.params, self.shared, self.each = (
            estimator,
            X,
            y,
            dict(params or {}),
            shared,
            each,
        )
        self.plain = Shared(estimator, X, y)
        self.n_samples = n_rows(X)

    def folds(
        self, y: Any, splits: Sequence[Split], *, real: bool = False
    ) -> list[tuple[Any, Any, Any]]:
        """(model, its test rows, their labels) for every split.

        `real` models can be looked into, others only be called.
        """
        if real:
            return [self.fitted(y, train, test) for train, test in splits]
        if self.shared is not None:
            model = stand_in(self.shared.relabelled(np.asarray(to_numpy(y))))
        elif self.each:
            shared = Shared(self.estimator, self.X, np.asarray(to_numpy(y)))
            shared.decompose(self.params.get("sample_weight"))
            model = stand_in(shared)
        elif is_foreign_array(self.X):
            model = stand_in(Shared(self.estimator, self.X, y))
        else:
            return [self.fitted(y, train, test) for train, test in splits]
        rows = np.arange(self.n_samples)[:, None]
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
        """Fit parameters with one entry per row are cut to the training rows."""
        return {
            name: subset(value, train) if _per_row(value, self.n_samples) else value
            for name, value in self.params.items()
        }


def _per_row(value: Any, n_samples: int) -> bool:
    if value is None or isinstance(value, (str, Mapping)):
        return False
    size = (
        value.shape[0]
        if getattr(value, "shape", ())
        else len(value)
        if hasattr(value, "__len__")
        else -1
    )
    return bool(size == n_samples)
