"""What other packages may ask of a fitted model.

Its decomposition, its outputs, its kernel, its axes.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import to_numpy
from ..core.readout import Indicators
from ..tuning.criterion import resolved
from ..tuning.solution import Solution
from .base import KernelModel, fitted_kernel, held_out_output, uncalibrated
from .by_target import keeps
from .committee_base import KernelCommittee, final_step
from .parameters import used
from .record import alpha_of, record_of
from .ridge import KernelRidge
from .tuned_pipeline import TunedPipeline, warn_of_targets


def chooses_steps(estimator: Any) -> bool:
    """Whether the steps before the model are chosen by its held-out score."""
    return isinstance(estimator, TunedPipeline) and estimator.chooses


def chosen_steps(estimator: Any) -> dict[str, Any]:
    """The parameters that a fitted pipeline has chosen for its steps, by name; plain values."""
    chosen = estimator.chosen_ if isinstance(estimator, TunedPipeline) else {}
    plain = (str, int, float, type(None))
    return {n: v if isinstance(v, plain) else f"{v!r:.60}" for n, v in chosen.items()}


def with_first_steps(estimator: Any) -> Any:
    """An unfitted copy without a choice of steps: the first candidate's."""
    return estimator.plain() if isinstance(estimator, TunedPipeline) else clone(estimator)


def is_model(estimator: Any) -> bool:
    """Whether this is an estimator of fitonce."""
    return isinstance(estimator, KernelModel)


def is_committee(estimator: Any) -> bool:
    """Whether this is a committee of fitonce."""
    return isinstance(estimator, KernelCommittee)


def combined(estimator: Any) -> str | None:
    """Why each training set has its own models, if an estimator consists of several."""
    return cast("str | None", getattr(type(estimator), "__fitonce_route__", None))


def takes_groups(estimator: Any) -> bool:
    """Whether `fit` keeps groups together in its own held-out values."""
    return is_model(estimator) or combined(estimator) is not None


def model_of(estimator: Any, why: str = "displays read its held-out values") -> Any:
    """The fitted fitonce model: the estimator itself, or the last step of a pipeline."""
    model = final_step(estimator)
    if not is_model(model):
        raise TypeError(
            "estimator must be one of fitonce's, or a Pipeline that ends in one, got "
            f"{type(model).__name__} instead: {why}."
        )
    check_is_fitted(model)
    return model


def model_or_committee(estimator: Any, why: str) -> Any:
    """The fitted fitonce model or committee: the estimator, or the last step of a pipeline."""
    last = final_step(estimator)
    if not is_committee(last):
        return model_of(estimator, why)
    check_is_fitted(last)
    return last


def members_of(model: Any) -> list[Any]:
    """The single models in an estimator: the members of a committee, those that see the rows as
    they are first; or the model alone.
    """
    members = (
        sorted(model.members_, key=lambda one: not is_model(one))
        if is_committee(model)
        else [model]
    )
    return [final_step(member) for member in members]


def is_regressor(model: Any) -> bool:
    return bool(model.multi_output)


def is_binary(model: Any) -> bool:
    return len(model.classes_) == 2


def solution_of(model: Any) -> Solution:
    """f(x) = k(x, X_fit_) dual_coef + intercept (x·coef + intercept for the linear kernel), all
    two-dimensional.
    """
    return cast(Solution, model._solution())


def trained_columns(model: Any) -> np.ndarray | None:
    """The columns of a precomputed kernel that were used for training; None for all."""
    return cast("np.ndarray | None", model._columns)


def rows_for(model: Any, X: Any, method: str) -> Any:
    """New rows for a fitted model, validated."""
    return model._new_rows(X, method)[0]


def criterion_of(model: Any) -> Any:
    """The criterion for choosing a fitted model: what "auto" stood for, or as given."""
    return resolved(used(model, "criterion"), len(getattr(model, "classes_", ())))


def keeping_coefficients(estimator: Any, y: Any) -> Any:
    """An estimator that keeps the coefficients of its many targets, even if it would not by
    default: cross-validation needs them for predictions, which are as many.
    """
    last = final_step(estimator)
    automatic = isinstance(last, KernelRidge) and last.store_dual_coef == "auto"
    if not automatic or np.ndim(y) != 2 or keeps("auto", int(np.prod(np.shape(y)))):
        return estimator
    estimator = clone(estimator)
    final_step(estimator).set_params(store_dual_coef=True, store_held_out=False)
    return estimator


def n_axes(model: Any) -> int:
    """The number of discriminant axes that `transform` returns."""
    return int(model._n_features_out)


def held_out_projection(model: Any) -> np.ndarray:
    """Leave-one-out projections (n, q) on the axes of the fit of all rows, so that they can be
    plotted together.

    Rows with zero weight are left out.
    """
    record = record_of(model, "a held-out projection")
    problem = record.problem
    path = record.path
    axes = cast(Indicators, record.readout).axes(problem.evidence(record.fitted(path))).axes
    return to_numpy(problem.values_without_each(path)[0, ...] @ axes)[:, : n_axes(model)]


__all__ = [
    "alpha_of",
    "combined",
    "criterion_of",
    "final_step",
    "fitted_kernel",
    "held_out_output",
    "held_out_projection",
    "is_binary",
    "is_committee",
    "is_model",
    "is_regressor",
    "keeping_coefficients",
    "members_of",
    "model_of",
    "model_or_committee",
    "n_axes",
    "record_of",
    "rows_for",
    "solution_of",
    "takes_groups",
    "trained_columns",
    "uncalibrated",
    "warn_of_targets",
]
