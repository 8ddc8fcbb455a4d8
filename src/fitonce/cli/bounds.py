"""Prediction intervals and sets for a model file.

A file does not contain the n×n decomposition that they need. So the model is fitted again on its
own table, and its predictions must agree with those of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from ..core.doubt import caught_warnings
from ..estimators.fitted import is_committee
from .columns import TableDesign
from .errors import UserError

AGREES = 1e-6  # relative difference between predictions of the file and of the refitted model


def check_interval(interval: float | None, trained_on: str | None) -> None:
    """Check that both options are given, or neither."""
    if interval is None and trained_on is None:
        return
    if interval is None:
        raise UserError(
            "--trained-on is used only for intervals: also give a coverage, such as --interval 0.9."
        )
    if not 0.0 < interval < 1.0:
        raise UserError(f"--interval must be between 0 and 1, such as 0.9, got {interval:g}.")
    if trained_on is None:
        raise UserError(
            "--interval needs --trained-on TABLE, the table that the model was fitted on. The "
            "model file alone does not contain what intervals are computed from."
        )


def bounds(
    estimator: Any,
    refit: Callable[[Any], TableDesign],
    X: pl.DataFrame,
    confidence: float,
) -> list[pl.Series]:
    """Columns lower and upper, or for classes one column each: whether it is in the set.

    `refit` fits the estimator in place on its own table and returns the rows of that table.
    """
    if is_committee(estimator[-1]):
        raise UserError(
            "--interval works with single models, and this is a committee: fit it with --effort "
            "default."
        )
    before = _outputs(estimator, X)
    with caught_warnings():
        refit(estimator)
    after = _outputs(estimator, X)
    scale = float(np.max(np.abs(before), initial=np.finfo(float).tiny))
    if before.shape != after.shape or float(np.abs(after - before).max()) > AGREES * scale:
        raise UserError(
            "fitting the table given with --trained-on gives a different model. It is not the "
            "table that the model was fitted on, or it has changed since."
        )
    rows = estimator[:-1].transform(X)
    model = estimator[-1]
    if not hasattr(model, "predict_set"):
        low, high = np.asarray(model.predict_interval(rows, confidence)).T
        return [pl.Series("lower", low), pl.Series("upper", high)]
    sets = model.predict_set(rows, confidence)
    return [
        pl.Series(f"in_set_{label}", members)
        for label, members in zip(model.classes_.tolist(), sets.T, strict=True)
    ]


def _outputs(estimator: Any, X: pl.DataFrame) -> np.ndarray:
    name = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    return np.asarray(getattr(estimator, name)(X))
