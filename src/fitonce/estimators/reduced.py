"""Training on a reduced set of rows: what these wrappers share, and random subsampling."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array
from ..core.rows import is_rows
from .fitted import is_model
from .setup import Training, training_of


def _inner_offers(method: str) -> Any:
    """Whether the estimator, fitted or not, has a method."""
    return available_if(
        lambda wrapper: hasattr(getattr(wrapper, "estimator_", wrapper.estimator), method)
    )


class ReducedTraining(MetaEstimatorMixin, BaseEstimator):
    """Base class of the wrappers that train on a reduced set of rows.

    Not for direct use.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    estimator: Any
    estimator_: Any

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    @property
    def classes_(self) -> np.ndarray:
        """The labels (classifiers only)."""
        classes: np.ndarray = self.estimator_.classes_
        return classes

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        count: int = self.estimator_.n_features_in_
        return count

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if `fit` was given a data frame."""
        names: np.ndarray = self.estimator_.feature_names_in_
        return names

    def predict(self, X: Any) -> Any:
        """Labels or values of single rows; see the estimator's `predict`."""
        return self._fitted().predict(X)

    @_inner_offers("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Decision values of single rows; see the estimator's `decision_function`."""
        return self._fitted().decision_function(X)

    @_inner_offers("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of single rows; see the estimator's `predict_proba`."""
        return self._fitted().predict_proba(X)

    @_inner_offers("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return self._fitted().predict_log_proba(X)

    @_inner_offers("transform")
    def transform(self, X: Any) -> Array:
        """Projections of single rows on the discriminant axes; see the estimator's `transform`."""
        return self._fitted().transform(X)

    @_inner_offers("transform")
    def fit_transform(self, X: Any, y: Any, **fit_params: Any) -> Array:
        """Fit, then project the training rows."""
        return self.fit(X, y, **fit_params).transform(X)

    @_inner_offers("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the discriminant axes."""
        names: np.ndarray = self._fitted().get_feature_names_out(input_features)
        return names

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The estimator's score: accuracy, or R²."""
        score: float = self._fitted().score(X, y, sample_weight=sample_weight)
        return score

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


class Subsampling(ReducedTraining):
    """Train on a random subset of the rows: the simplest way to a smaller problem, as a reference
    for other methods.

    Parameters
    ----------
    estimator : estimator
        An estimator of fitonce: `KernelFisherDiscriminant`, `LeastSquaresSVC` or `KernelRidge`.
    max_samples : int or float, default=1000
        Largest number of rows to draw; as a float, the share of the rows. Classes keep their shares
        and have at least one row each.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator; rows that were not drawn have zero weight in its fit. Its held-out
        outputs are for all rows: leave-one-out (or `cv`) for the drawn rows; for the others, those
        of the fitted model, which was not trained on them.
    sample_indices_ : array
        Indices of the drawn rows.

    Notes
    -----
    In cross-validation, every training set draws its own rows.

    Examples
    --------
    >>> from fitonce import LeastSquaresSVC, Subsampling
    >>> from fitonce.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, random_state=0)
    >>> model = Subsampling(LeastSquaresSVC(), max_samples=200, random_state=0)
    >>> model = model.fit(X[:1000], y[:1000])
    >>> print(f"{model.score(X[1000:], y[1000:]):.2f}")
    0.98
    """

    def __init__(
        self, estimator: Any, *, max_samples: Any = 1000, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.max_samples = max_samples
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Draw rows and fit the estimator to them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; rows with zero weight are not drawn.
        groups : array-like of shape (n_samples,), default=None
            For the estimator's `cv`.

        Returns
        -------
        self
        """
        if not is_model(self.estimator):
            raise TypeError(
                "estimator must be one of fitonce's estimators, got "
                f"{type(self.estimator).__name__} instead."
            )
        model = _copy(self.estimator)
        # the estimator raises its errors about the data here
        training = training_of(model, X, y, sample_weight, groups)
        if is_rows(training.X):
            raise ValueError(
                "Subsampling needs the rows in memory, got rows in files, blocks or Dask: use an "
                "estimator with landmarks=."
            )
        drawn = self._draw(training)
        weights = np.zeros(training.n_samples)
        weights[drawn] = 1.0 if training.weights is None else training.weights[drawn]
        model.fit(X, y, sample_weight=weights, groups=groups)
        self.__dict__.update(estimator_=model, sample_indices_=drawn)
        return self

    def _draw(self, training: Training) -> np.ndarray:
        rows, random = training.active, check_random_state(self.random_state)
        count = self._count(len(rows))
        if count >= len(rows):
            return rows
        if not is_classifier(self.estimator):
            return np.sort(random.choice(rows, count, replace=False))
        codes = np.unique(training.y[rows], return_inverse=True)[1]
        parts = [
            random.choice(rows[codes == code], size, replace=False)
            for code, size in enumerate(shares(np.bincount(codes), count))
        ]
        return np.sort(np.concatenate(parts))

    def _count(self, n: int) -> int:
        given = self.max_samples
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 2:
            return min(int(given), n)
        if isinstance(given, (float, np.floating)) and 0 < given <= 1:
            return max(2, round(float(given) * n))
        raise ValueError(
            f"max_samples must be an integer of at least 2, or a share in (0, 1], got {given!r} "
            "instead."
        )


def _copy(estimator: Any) -> Any:
    return type(estimator)(**estimator.get_params(deep=False))


def shares(sizes: np.ndarray, count: int) -> np.ndarray:
    """`count` divided among classes in proportion to their sizes, at least one for each.

    The largest remainders get the rest.
    """
    exact = count * sizes / sizes.sum()
    result = np.minimum(np.maximum(np.floor(exact).astype(int), 1), sizes)
    order = np.argsort(-(exact - np.floor(exact)), kind="stable")
    for code in np.resize(order, 2 * len(sizes)):
        if result.sum() < count and result[code] < sizes[code]:
            result[code] += 1
    while result.sum() > count and result.max() > 1:
        result[np.argmax(result)] -= 1
    return np.asarray(result)
