"""The estimator that scikit-learn's functions are given instead of ours, so that their meaning is
theirs to the letter.

scikit-learn's own `cross_validate` and `cross_val_predict` run; they split, score, warn and collect
as always. The rows they pass around are row numbers, and the estimator they clone, fit and call is
a `StandIn` that looks up, in one shared decomposition, what a refit on those rows would give.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if

from ..core.arrays import namespace, take, to_numpy
from ..core.holdout import checked_splits, complement
from ..estimators.classifier import labels_of
from ..estimators.problem import Without
from ..estimators.validation import is_foreign_array
from ..rows.blocks import is_rows


class Shared:
    """What all folds have in common.

    The data, and on route one the decomposition and the fit of all rows.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.X, self.y = estimator, X.tocsr() if sp.issparse(X) else X, y
        self.pairwise = bool(estimator.__sklearn_tags__().input_tags.pairwise)
        self.transform_dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        self.model: Any = None
        self.landmark_rows: np.ndarray | None = (
            None  # of landmarks that are left out where they are test rows
        )
        self.fitted_folds = 0

    def decompose(self, sample_weight: Any) -> None:
        """The one decomposition of route one."""
        model = clone(self.estimator)
        training = model._training(self.X, self.y, sample_weight, None)
        mu = float(model.alpha)
        problem = model._problem_of(training, mu)
        model._warn_if_doubtful(problem, mu)
        self.model, self.problem, self.mu = model, problem, mu
        self.fitted = problem.fit(mu)
        self.codes = np.unique(training.y, return_inverse=True)[1] if is_classifier(model) else None
        self.row_weights = to_numpy(problem.row_weights)[:, 0]

    def estimator_of(self, train: np.ndarray) -> Any:
        """An unfitted estimator for these training rows.

        Without the landmarks that are not among them, where these are dropped.
        """
        if self.landmark_rows is None:
            return clone(self.estimator)
        kept = np.flatnonzero((self.landmark_rows < 0) | np.isin(self.landmark_rows, train))
        return clone(self.estimator).set_params(landmarks=take(self.estimator.landmarks, kept))

    def without(self, train: np.ndarray) -> Without | None:
        """The model of these training rows in closed form, or None where it has to be fitted."""
        if self.model is None:
            return None
        n = self.problem.n_samples
        deleted = complement(train, n)
        repeated = len(deleted) + len(train) != n
        if (
            repeated
            or not self.problem.smoother.can_leave_out(len(deleted))
            or not self._regular(train)
            or self._identical(train)
        ):
            return None
        without: Without = self.problem.without(self.fitted, deleted, self.mu)
        return without

    def read(self, without: Without, values: Any, method: str) -> np.ndarray:
        """What the model without some rows says for predicted targets, on the host."""
        return to_numpy(self.model._read_without(without, values, method))

    def _identical(self, train: np.ndarray) -> bool:
        """Whether all training rows are the same, which a fit warns of.

        Two of them tell at once in most cases.
        """
        X = self.problem.X
        if X is None or sp.issparse(X) or X.shape[0] != self.problem.n_samples:
            return False
        first = take(X, train[:1])
        return all(bool(namespace(X).all(take(X, rows) == first)) for rows in (train[1:2], train))

    def _regular(self, train: np.ndarray) -> bool:
        """Whether a refit on these rows has the shape of the whole.

        Every class, and rows enough.
        """
        if self.codes is None or self.model is None:
            return len(train) > 1
        sizes = np.bincount(
            self.codes[train], weights=self.row_weights[train], minlength=len(self.model.classes_)
        )
        return bool(self.model._regular(sizes))

    def classes(self, train: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The sorted labels in y, which may be an encoding of the original ones, by where each
        class first occurs.
        """
        assert self.codes is not None
        return np.ravel(y)[np.unique(self.codes[train], return_index=True)[1]]

    def rows(self, rows: np.ndarray, train: np.ndarray) -> Any:
        """Real data for a real estimator.

        Rows of X, and only the training columns of a precomputed kernel.
        """
        X = subset(self.X, rows)
        return subset(X.T, train).T if self.pairwise else X


def n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def subset(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, sparse matrix, data frame, list or source of blocks."""
    if is_rows(X):
        return X.subset(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[rows]
    if is_foreign_array(X):
        return take(X, rows)
    if hasattr(X, "shape"):
        return X[rows]
    return [X[row] for row in rows]


def _offers(method: str) -> Any:
    return available_if(lambda stand_in: hasattr(stand_in.shared.estimator, method))


def stand_in(shared: Shared) -> StandIn:
    """A `StandIn` under the name of the estimator it stands for, so that messages name that."""
    named: type[StandIn] = type(type(shared.estimator).__name__, (StandIn,), {})
    return named(shared)


class StandIn(BaseEstimator):
    """Fitted on row numbers, it predicts row numbers.

    `fitted()` is the real estimator, fitted when first needed.
    """

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def __sklearn_clone__(self) -> StandIn:
        return type(self)(self.shared)

    def __sklearn_tags__(self) -> Any:
        tags = self.shared.estimator.__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def get_metadata_routing(self) -> Any:
        return self.shared.estimator.get_metadata_routing()

    @property
    def _metadata_request(self) -> Any:
        """Where the default scorer of older scikit-learn versions looks for what
        `score` asks for.
        """
        return self.shared.estimator._metadata_request

    def fit(self, X: np.ndarray, y: Any = None, **params: Any) -> StandIn:
        self._train, self._y, self._params = X[:, 0], y, params
        self._real: Any = None
        self._failed = True  # until the end of this method
        self._without = self.shared.without(self._train)
        if self._without is None:
            self.fitted()
        if is_classifier(self):
            self.classes_ = (
                self.fitted().classes_
                if self._without is None
                else self.shared.classes(self._train, y)
            )
        self._failed = False
        return self

    def returned(self) -> Any:
        """What `cross_validate` hands out.

        The fitted estimator, or an unfitted one where its fit failed.
        """
        return clone(self.shared.estimator) if self._failed else self.fitted()

    def fitted(self) -> Any:
        """The estimator literally fitted on the training rows."""
        if self._real is None:
            shared = self.shared
            real = shared.estimator_of(self._train)
            X = shared.rows(self._train, self._train)
            real.fit(X, **self._params) if self._y is None else real.fit(X, self._y, **self._params)
            self._real = real
            shared.fitted_folds += 1
        return self._real

    def _call(self, method: str, X: np.ndarray) -> Any:
        return getattr(self.fitted(), method)(self.shared.rows(X[:, 0], self._train))

    def _output(self, method: str, X: np.ndarray) -> Any:
        """An output that the closed form gives, on the host."""
        if self._without is None or self.shared.model is None:
            return _on_host(self._call(method, X))
        values = self._without.values(X[:, 0])
        output = to_numpy(self.shared.model._read_without(self._without, values, method))
        return output.astype(self.shared.transform_dtype) if method == "transform" else output

    def predict(self, X: np.ndarray) -> Any:
        if self._without is None or not is_classifier(self):
            return self._output("predict", X)
        return labels_of(self._output("decision_function", X), self.classes_)

    @_offers("decision_function")
    def decision_function(self, X: np.ndarray) -> Any:
        return self._output("decision_function", X)

    @_offers("transform")
    def transform(self, X: np.ndarray) -> Any:
        return self._output("transform", X)

    @_offers("predict_proba")
    def predict_proba(self, X: np.ndarray) -> Any:
        return _on_host(self._call("predict_proba", X))

    @_offers("predict_log_proba")
    def predict_log_proba(self, X: np.ndarray) -> Any:
        return _on_host(self._call("predict_log_proba", X))

    def score(self, X: np.ndarray, y: Any, **params: Any) -> float:
        """The estimator's own default score, on these predictions."""
        score: float = type(self.shared.estimator).score(self, X, y, **params)
        return score


def _on_host(output: Any) -> Any:
    return to_numpy(output) if is_foreign_array(output) else output


class CheckedSplitter:
    """A splitter that sees the real X and refuses test rows inside their own training set."""

    def __init__(self, cv: Any, X: Any) -> None:
        self.cv, self.X = cv, X

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Any:
        X = np.empty((n_rows(self.X), 1)) if is_rows(self.X) else self.X
        return checked_splits(self.cv.split(X, y, groups), n_rows(self.X))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        X = np.empty((n_rows(self.X), 1)) if is_rows(self.X) else self.X
        n_splits: int = self.cv.get_n_splits(X, y, groups)
        return n_splits

    def get_metadata_routing(self) -> Any:
        return get_routing_for_object(self.cv)

    def __repr__(self) -> str:
        return repr(self.cv)
