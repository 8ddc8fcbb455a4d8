"""Models for scorers, whose outputs for one test set are already known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.utils.metaestimators import available_if

from ..core.readout import labels_of

SCORER = type(make_scorer(accuracy_score))  # scorers that only call the estimator's methods


class HeldOutClassifier(ClassifierMixin, BaseEstimator):
    """A fitted classifier for one test set whose decisions are known.

    `probabilities` makes its probabilities when they are asked for; without it there are none.
    """

    def __init__(
        self,
        classes: np.ndarray,
        decision: np.ndarray,
        probabilities: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.classes_, self.decision, self.probabilities = classes, decision, probabilities

    def decision_function(self, X: Any) -> np.ndarray:
        return self.decision

    def predict(self, X: Any) -> np.ndarray:
        return labels_of(self.decision, self.classes_)

    @available_if(lambda stub: stub.probabilities is not None)
    def predict_proba(self, X: Any) -> np.ndarray:
        assert self.probabilities is not None
        return self.probabilities()


class HeldOutRegressor(RegressorMixin, BaseEstimator):
    """A fitted regressor for one test set whose predictions are known."""

    def __init__(self, prediction: np.ndarray) -> None:
        self.prediction = prediction

    def predict(self, X: Any) -> np.ndarray:
        return self.prediction
