"""Held-out values of a fitted classifier, and the training targets that they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from ..core.calibration import probabilities
from ..estimators.fitted import held_out_output, is_regressor, model_of, record_of


def classifier_of(estimator: Any, what: str) -> Any:
    """`model_of`, and a classifier."""
    model = model_of(estimator)
    if is_regressor(model):
        raise TypeError(f"{what} is for classifiers, got {type(model).__name__} instead.")
    return model


def training_targets(model: Any, y: Any) -> np.ndarray:
    """The targets the model was fitted on: as given, or those it keeps with its decomposition."""
    if y is None:
        return record_of(model, "this display without y").training.y
    targets, n = np.asarray(to_numpy(y)), len(held_out_output(model))
    if len(targets) != n:
        raise ValueError(
            f"y must be the {n} targets the model was fitted on, got {len(targets)} instead: "
            "held-out values belong to them."
        )
    return targets


def held_out_probabilities(model: Any) -> np.ndarray:
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
    return probabilities(held_out_output(model), 1.0 / model.temperature_)
