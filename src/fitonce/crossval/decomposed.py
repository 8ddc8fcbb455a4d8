"""One decomposition of all rows, and the models of all training sets in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from ..core.arrays import namespace, take, to_numpy
from ..core.holdout import Fitted
from ..core.splits import complement
from ..estimators.accuracy import warn_if_inaccurate
from ..estimators.setup import Setup, accepted_setup
from ..tuning.outputs import (
    outputs_without_each,
    predict_without,
    projections_without,
    read_without,
)
from ..tuning.problem import Problem, Refit, Without

Model = Callable[[np.ndarray, str], np.ndarray]  # row indices and a method → outputs


class Decomposed:
    """One decomposition of all rows at one mu, and the model of every training set from it."""

    def __init__(self, setup: Setup, problem: Problem, mu: float, n_axes: int) -> None:
        self.setup, self.problem, self.mu, self.n_axes = setup, problem, mu, n_axes
        self.readout, self.codes = setup.readout, setup.data.codes
        self.row_weights = to_numpy(problem.row_weights)[:, 0]

    @classmethod
    def of(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, confounds: Any = None
    ) -> Decomposed:
        """The decomposition for an estimator whose parameters are all fixed; RefusedError where fit
        refuses the rows.
        """
        estimator = clone(estimator)
        setup = accepted_setup(estimator, X, y, sample_weight, confounds)
        mu = float(estimator.alpha)
        problem = setup.tuner().problem({}, mu)
        problem.check(np.asarray([mu]))
        warn_if_inaccurate(problem, mu, readout=setup.readout)
        n_classes = setup.readout.n_classes
        n_axes = getattr(estimator, "n_components", None) or max(n_classes - 1, 0)
        return cls(setup, problem, mu, int(n_axes))

    def relabelled(self, y: np.ndarray) -> Decomposed:
        """The same with other labels, for an estimator whose decomposition does not use them."""
        codes = None if self.codes is None else np.unique(y, return_inverse=True)[1]
        targets = self.readout.targets(y if codes is None else codes)
        setup = replace(self.setup, data=self.setup.data.relabelled(y, codes, targets))
        return Decomposed(setup, self.problem.with_targets(targets), self.mu, self.n_axes)

    @cached_property
    def fitted(self) -> Fitted:
        return self.problem.fit(self.mu)

    @cached_property
    def outputs_without_each(self) -> np.ndarray:
        """The main output of every row from the model without it, in one batch."""
        path = self.problem.path(np.asarray([self.mu]))
        return to_numpy(self.readout.shaped(outputs_without_each(self.problem, self.readout, path)))

    def covers(self, train: np.ndarray, deleted: np.ndarray) -> bool:
        """Whether the model of these training rows has a closed form."""
        repeated = len(deleted) + len(train) != self.problem.n_samples
        closed = self.problem.smoother.can_leave_out(len(deleted))
        closed = closed and not self.problem.fits_anew(deleted) and not repeated
        return closed and self._regular(train) and not self._identical(train)

    def model_of(self, train: np.ndarray) -> Model | None:
        """The model of some training rows in closed form: a function of rows and method."""
        deleted = complement(train, self.problem.n_samples)
        return partial(self.output, deleted) if self.covers(train, deleted) else None

    def _identical(self, train: np.ndarray) -> bool:
        """Whether all training rows are equal, which a fit warns about.

        In most cases, two rows are enough to decide.
        """
        X = self.problem.X
        if X is None or sp.issparse(X) or X.shape[0] != self.problem.n_samples:
            return False
        first = take(X, train[:1])
        same = (take(X, rows) == first for rows in (train[1:2], train))
        return all(bool(namespace(X).all(part)) for part in same)

    def _regular(self, train: np.ndarray) -> bool:
        """Whether a refit on these rows has the same shape as the model of all rows.

        It needs every class, and enough rows.
        """
        if self.codes is None:
            return len(train) > 1
        weights = self.row_weights[train]
        sizes = np.bincount(self.codes[train], weights=weights, minlength=self.readout.n_classes)
        return bool(self.readout.is_regular(sizes))

    def output(self, deleted: np.ndarray, rows: np.ndarray, method: str) -> np.ndarray:
        """The main output (the projection for "transform") at some rows, without the deleted
        rows.
        """
        if len(deleted) == 1 and method != "transform" and np.array_equal(deleted, rows):
            return np.asarray(self.outputs_without_each[rows])
        without = self.without(deleted)
        values = without.values(rows)
        if method == "transform":
            return to_numpy(projections_without(without, self.readout, values, self.n_axes))
        return to_numpy(self.readout.shaped(read_without(without, self.readout, values, rows)))

    def without(self, deleted: np.ndarray) -> Without | Refit:
        return self.problem.without(self.fitted, deleted, self.mu)

    def predict(self, without: Without | Refit, X: Any) -> np.ndarray:
        """The output of a model without some rows, for new rows."""
        return to_numpy(self.readout.shaped(predict_without(without, self.readout, X)))
