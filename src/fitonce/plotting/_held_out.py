"""Held-out values of a fitted model in the form that displays need.

Looked up, or read off its kept decomposition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import to_numpy
from ..core.criteria import probabilities
from ..core.discriminant import scatter
from ..estimators import KernelFisherDiscriminant
from ..estimators.base import KernelModel
from ..estimators.classifier import KernelClassifier


def model_of(estimator: Any) -> KernelModel:
    """The fitted fitonce model: the estimator itself, or the last step of a pipeline."""
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(model, KernelModel):
        raise TypeError(
            "estimator must be one of fitonce's, or a Pipeline that ends in one, got "
            f"{type(model).__name__} instead: displays read its "
            "held-out values."
        )
    check_is_fitted(model)
    return model


def classifier_of(estimator: Any, what: str) -> KernelClassifier:
    """`model_of`, and a classifier."""
    model = model_of(estimator)
    if not isinstance(model, KernelClassifier):
        raise TypeError(f"{what} is for classifiers, got {type(model).__name__} instead.")
    return model


def training_targets(model: KernelModel, y: Any) -> np.ndarray:
    """The targets the model was fitted on: as given, or those it keeps with its decomposition."""
    if y is None:
        return model._require_kept("this display without y").training.y
    targets = np.asarray(to_numpy(y))
    n = len(to_numpy(model._held_out))
    if len(targets) != n:
        raise ValueError(
            f"y must be the {n} targets the model was fitted on, got {len(targets)} instead: "
            "held-out values belong to them."
        )
    return targets


def held_out_probabilities(model: KernelClassifier) -> np.ndarray:
    """Probabilities (n, c) of every training row by models that have not seen it, with the
    calibration of the whole fit.

    The temperature is fitted on these very decisions (one number); nested cross-validation is free
    of that.
    """
    if model.calibration in ("sigmoid", "isotonic"):
        raise ValueError(
            f"calibration={model.calibration!r} is fitted on the held-out decisions of these rows "
            "and would look better than it is: use "
            'cross_val_predict(estimator, X, y, method="predict_proba") and from_predictions.'
        )
    if not hasattr(model, "temperature_"):
        raise ValueError(
            "calibration=None gives this classifier no probabilities: fit it with "
            "calibration='temperature'."
        )
    return probabilities(to_numpy(model.held_out_decision_), 1.0 / model.temperature_)


def held_out_projection(model: KernelFisherDiscriminant) -> np.ndarray:
    """Leave-one-out projections (n, q) on the axes of the fit of all rows, so that they share one
    picture.

    In-sample projections of a flexible kernel collapse on their class centroids and show nothing;
    those of rows that the model has not seen show what it will do. Rows of zero weight are left
    out.
    """
    problem = model._require_kept("a held-out projection").problem
    fitted = problem.fit(model.alpha_)
    residual = problem.decomposition.leave_one_out(
        problem.scaled_targets, np.asarray([model.alpha_])
    ).residual[0, ...]
    readout = model._readout(scatter(fitted), model._sizes(problem))
    return to_numpy(readout.discriminant.project(problem.unscale(fitted.Y - residual)))[
        :, : model._n_axes
    ]
