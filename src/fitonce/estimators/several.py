"""What estimators made of several fitted models share: committees and pairs of classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.rows import is_rows
from .setup import Training, training_of
from .verification import Verification, worst_of

TINY = float(np.finfo(float).tiny)


class ForOneModel:
    """A method that only single models have; using it raises an error that says so."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: {self.why}. Use a single model, such as one of "
            "those that this estimator is made of."
        )


class SeveralModels(BaseEstimator):
    """Base class of estimators with several models; not for direct use."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "confounds": True}
    predict_interval = ForOneModel(
        "the combination depends on every row, if only through the weights, so intervals from its "
        "held-out residuals would have no guarantee"
    )
    predict_set = ForOneModel(
        "the combination depends on every row, if only through the weights, so sets from its "
        "held-out probabilities would have no guarantee"
    )
    influence = ForOneModel("influence needs the decomposition of a single model")
    at = ForOneModel("each of its models has its own alpha")

    @abstractmethod
    def _models(self) -> list[Any]:
        """The fitted models."""

    def _training(
        self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any, confounds: Any
    ) -> Training:
        """Validated rows, in memory and without confounds."""
        name = type(self).__name__
        if confounds is not None:
            raise ValueError(
                f"{name} does not support confounds: use a single estimator, such as "
                "KernelFisherDiscriminant or KernelRidge, with confounds=, or leave them out."
            )
        training = training_of(clone(model), X, y, sample_weight, groups)
        if is_rows(training.X):
            raise ValueError(
                f"{name} needs the rows in memory, got rows in files, blocks or Dask: load them "
                "into memory, or use a single estimator with landmarks=."
            )
        return training

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Refit a few splits of every model literally, and compare with its closed-form held-out
        outputs.

        Parameters
        ----------
        n_refits : int, default=5
            Number of splits (rows, for leave-one-out) to refit for each model.
        X : array, optional
            The training kernel matrix, for ``kernel="precomputed"``.
        random_state : int, default=0
            Seed for choosing the splits.

        Returns
        -------
        Verification
            The worst result of all models. What they learn on every training set, such as a metric,
            was refitted anyway.
        """
        check_is_fitted(self)
        each = [model.verify(n_refits, X=X, random_state=random_state) for model in self._models()]
        return worst_of(each)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        count: int = self._models()[0].n_features_in_
        return count

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if `fit` was given a data frame."""
        names: np.ndarray = self._models()[0].feature_names_in_
        return names


class ByProbabilities(ClassifierMixin):
    """Labels and decisions from `predict_proba`; not for direct use."""

    classes_: np.ndarray

    @abstractmethod
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, n_classes)."""

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return _logarithms(self.predict_proba(X))

    def decision_function(self, X: Any) -> Array:
        """log(p_1/p_0) for two classes (n,); log p (n, n_classes) for more."""
        return self._decisions(self.predict_proba(X))

    def _decisions(self, p: Array) -> Array:
        log_p = _logarithms(p)
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of each row.

        Labels are returned in the namespace of X if it can represent them.
        """
        p = self.predict_proba(X)
        labels = np.asarray(self.classes_[np.argmax(to_numpy(p), axis=1)])
        if isinstance(p, np.ndarray) or labels.dtype.kind not in "iufb":
            return labels
        return asarray_like(labels, p, dtype=getattr(namespace(p), str(labels.dtype)))


def _logarithms(p: Array) -> Array:
    return namespace(p).log(namespace(p).clip(p, TINY, None))
