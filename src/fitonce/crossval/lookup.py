"""The estimator that scikit-learn's functions get instead of ours, so that they behave exactly as
documented.

The rows they pass around are row indices, and the estimator they clone, fit and call is a
`RowLookupEstimator`, which looks up in one shared decomposition what a refit on those rows would
give.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.metaestimators import available_if

from ..core.arrays import take, to_numpy
from ..core.readout import labels_of
from ..core.rows import is_rows
from ..core.splits import complement
from ..estimators.fitted import final_step
from ..estimators.validation import is_foreign_array
from .confounds import call, fit_parameters
from .decomposed import Decomposed, Model


class FoldContext:
    """What all folds share: the estimator, the data and, on route "one", the decomposition.

    `landmark_rows` are the rows of landmarks that are left out if they are test rows.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        confounds: Any = None,
        landmark_rows: np.ndarray | None = None,
    ) -> None:
        self.estimator, self.X, self.y = estimator, X.tocsr() if sp.issparse(X) else X, y
        self.confounds, self.landmark_rows = confounds, landmark_rows
        self.decomposed: Decomposed | None = None
        self.fitted_folds = 0

    def decompose(self, sample_weight: Any) -> None:
        """Compute the single decomposition of route "one"."""
        given = self.X, self.y, sample_weight, self.confounds
        self.decomposed = Decomposed.of(self.estimator, *given)

    def relabelled(self, y: np.ndarray) -> FoldContext:
        """The same decomposition with other labels."""
        other = FoldContext(self.estimator, self.X, y, self.confounds, self.landmark_rows)
        if self.decomposed is not None:
            other.decomposed = self.decomposed.relabelled(y)
        return other

    def estimator_of(self, train: np.ndarray) -> Any:
        """An unfitted estimator for these training rows.

        Without the landmarks that are not among them, if these are dropped.
        """
        if self.landmark_rows is None:
            return clone(self.estimator)
        kept = (self.landmark_rows < 0) | np.isin(self.landmark_rows, train)
        if not kept.any():
            raise ValueError(
                f"in one of the splits, none of the {len(kept)} landmarks is a training row, so "
                "shared_landmarks='drop' leaves no landmarks for its model: use more landmarks, or "
                "shared_landmarks=True, which keeps them."
            )
        landmarks = take(self.estimator.landmarks, np.flatnonzero(kept))
        return clone(self.estimator).set_params(landmarks=landmarks)

    def deleted(self, train: np.ndarray) -> np.ndarray | None:
        """The rows that are not used for training, if the model has a closed form; else None."""
        if self.decomposed is None:
            return None
        deleted = complement(train, n_rows(self.X))
        return deleted if self.decomposed.covers(train, deleted) else None

    def model_of(self, train: np.ndarray) -> Model | None:
        """Outputs for rows from the model of some training rows, as returned by the estimator's
        methods; None if there is no closed form.
        """
        return None if self.decomposed is None else self.decomposed.model_of(train)

    def classes(self, train: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The sorted labels in y, which may be an encoding of the original ones, by the first
        occurrence of each class.
        """
        assert self.decomposed is not None and self.decomposed.codes is not None
        return np.ravel(y)[np.unique(self.decomposed.codes[train], return_index=True)[1]]

    def rows(self, rows: np.ndarray, train: np.ndarray) -> Any:
        """Real data for a real estimator.

        Rows of X; for a precomputed kernel, only the training columns.
        """
        X = subset(self.X, rows)
        pairwise = self.estimator.__sklearn_tags__().input_tags.pairwise
        return subset(X.T, train).T if pairwise else X

    def confounds_of(self, rows: np.ndarray) -> Any:
        return None if self.confounds is None else subset(self.confounds, rows)


def n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def subset(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, sparse matrix, data frame, list or source of blocks."""
    if is_rows(X):
        return X.subset(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if is_foreign_array(X):
        return take(X, rows)
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]


def _offers(method: str) -> Any:
    return available_if(lambda lookup: hasattr(lookup.shared.estimator, method))


def lookup_estimator(shared: FoldContext) -> RowLookupEstimator:
    """One with the name of the estimator it replaces, so that messages show that name."""
    named: type[RowLookupEstimator] = type(
        type(shared.estimator).__name__, (RowLookupEstimator,), {}
    )
    return named(shared)


class RowLookupEstimator(BaseEstimator):
    """Fitted on row indices, it predicts for row indices.

    `fitted()` is the real estimator, fitted when first needed.
    """

    def __init__(self, shared: FoldContext) -> None:
        self.shared = shared

    def __sklearn_clone__(self) -> RowLookupEstimator:
        return type(self)(self.shared)

    def __sklearn_tags__(self) -> Any:
        tags = self.shared.estimator.__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def get_metadata_routing(self) -> Any:
        return self.shared.estimator.get_metadata_routing()

    @property
    def _metadata_request(self) -> Any:
        """Where the default scorer of older scikit-learn versions looks up the requests of
        `score`.
        """
        return self.shared.estimator._metadata_request

    def fit(self, X: np.ndarray, y: Any = None, **params: Any) -> RowLookupEstimator:
        self._train, self._y, self._params = X[:, 0], y, params
        self._real: Any = None
        self._failed = True  # until the end of this method
        self._model = self.shared.model_of(self._train)
        if self._model is None:
            self.fitted()
        if is_classifier(self):
            of = self.shared.classes
            self.classes_ = self.fitted().classes_ if self._model is None else of(self._train, y)
        self._failed = False
        return self

    def returned(self) -> Any:
        """The estimator that `cross_validate` returns.

        It is fitted, or unfitted if its fit failed.
        """
        return clone(self.shared.estimator) if self._failed else self.fitted()

    def fitted(self) -> Any:
        """The estimator fitted literally on the training rows."""
        if self._real is None:
            shared = self.shared
            real = shared.estimator_of(self._train)
            X = shared.rows(self._train, self._train)
            confounds = fit_parameters(real, shared.confounds_of(self._train))
            given = () if self._y is None else (self._y,)
            real.fit(X, *given, **self._params, **confounds)
            self._real = real
            shared.fitted_folds += 1
        return self._real

    def _called(self, method: str, X: np.ndarray) -> Any:
        """An output of the fitted estimator, as a NumPy array."""
        rows, shared = X[:, 0], self.shared
        fitted, confounds = self.fitted(), shared.confounds_of(rows)
        output = call(fitted, method, shared.rows(rows, self._train), confounds)
        return to_numpy(output) if is_foreign_array(output) else output

    def _output(self, method: str, X: np.ndarray) -> Any:
        """An output from the closed form, if there is one; no rows are refused by the estimator."""
        if self._model is None or not len(X):
            return self._called(method, X)
        return self._model(X[:, 0], method)

    def predict(self, X: np.ndarray) -> Any:
        if self._model is None or not is_classifier(self):
            return self._output("predict", X)
        return labels_of(self._output("decision_function", X), self.classes_)

    @_offers("decision_function")
    def decision_function(self, X: np.ndarray) -> Any:
        return self._output("decision_function", X)

    @_offers("transform")
    def transform(self, X: np.ndarray) -> Any:
        output = self._output("transform", X)
        single = getattr(self.shared.X, "dtype", None) == np.float32
        return output.astype(np.float32) if single else output

    @_offers("predict_proba")
    def predict_proba(self, X: np.ndarray) -> Any:
        return self._called("predict_proba", X)

    @_offers("predict_log_proba")
    def predict_log_proba(self, X: np.ndarray) -> Any:
        return self._called("predict_log_proba", X)

    def score(self, X: np.ndarray, y: Any, **params: Any) -> float:
        """The default score of the estimator for these predictions."""
        return cast(float, type(final_step(self.shared.estimator)).score(self, X, y, **params))
