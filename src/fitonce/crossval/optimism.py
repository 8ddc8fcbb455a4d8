"""How much of a tuned score is due to tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from ..core.arrays import to_numpy
from ..core.readout import labels_of
from ..estimators.fitted import held_out_output, is_model, is_regressor
from .validation import cross_val_predict


@dataclass(frozen=True)
class Optimism:
    """Accuracy (R² for regression) of the held-out predictions of the chosen model, and of nested
    cross-validation, which tunes on each training set.
    """

    tuned: float
    nested: float

    @property
    def difference(self) -> float:
        return self.tuned - self.nested

    def __str__(self) -> str:
        return f"tuned {self.tuned:.4f}, nested {self.nested:.4f}: optimism {self.difference:+.4f}"


def optimism(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    params: Mapping[str, Any] | None = None,
) -> Optimism:
    """Compare the tuned score with the nested score.

    `tuned` is the score of the held-out predictions that were used to choose the parameters
    (leave-one-out, or the cv of the estimator). It is optimistic, since the choice used all rows.
    `nested` tunes inside every training set of the outer `cv` and is not optimistic. Its folds also
    train on fewer rows, so a small difference does not prove optimism. Groups stay together in
    both.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from fitonce import KernelFisherDiscriminant, optimism
    >>> X, y = load_wine(return_X_y=True)
    >>> print(optimism(KernelFisherDiscriminant(), (X - X.mean(0)) / X.std(0), y, cv=5))
    tuned 0.9944, nested 0.9888: optimism +0.0056
    """
    if not is_model(estimator):
        raise TypeError(
            f"estimator must be one of fitonce's estimators, got {type(estimator).__name__} "
            "instead: its held-out predictions are compared."
        )
    fit_params = dict(params or {}) if groups is None else {**(params or {}), "groups": groups}
    model = clone(estimator).fit(X, y, **fit_params)
    nested = cross_val_predict(estimator, X, y, groups=groups, cv=cv, params=fit_params)
    held_out, truth = held_out_output(model), np.asarray(to_numpy(y))
    tested = np.isfinite(held_out).reshape(len(held_out), -1).any(axis=1)
    if is_regressor(model):
        return Optimism(
            float(r2_score(truth[tested], held_out[tested])),
            float(r2_score(truth, to_numpy(nested))),
        )
    tuned = accuracy_score(truth[tested], labels_of(held_out[tested], model.classes_))
    return Optimism(float(tuned), float(accuracy_score(truth, to_numpy(nested))))
