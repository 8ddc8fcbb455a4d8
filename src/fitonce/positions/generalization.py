r"""Models trained at one position and tested at every other.

With the decomposition of position s, the model of a training set is, as after a refit without the
deleted rows (MATHS: α of the remaining residuals),

    decision(x) = k(x, X_s) α + b          or, for the linear kernel, x·w + b.

The test rows of a fold at all positions t are stacked and need one product. For the linear kernel,
the models of many training positions are stacked as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..core.arrays import Array, namespace, to_numpy
from ..core.splits import Split
from ..crossval.lookup import FoldContext, subset
from ..crossval.metrics import Outputs
from ..crossval.plan import Plan
from ..estimators.fitted import final_step, is_model
from ..inference.scoring import Fitter, NeedsFitError, Scoring
from .slices import Slices

BLOCK_ELEMENTS = 1 << 25  # entries of X stacked at a time: 256 MiB

Output = Callable[[Array], Any]  # the output of a model for rows


@dataclass
class TrainedHere:
    """Scores (positions, folds) of the models trained at one position."""

    estimator: Any
    slices: Slices
    y: Any
    splits: list[Split]
    scoring: Scoring
    params: Mapping[str, Any] | None
    _tests: dict[int, Array] = field(default_factory=dict)

    def __call__(self, X: Any) -> np.ndarray:
        plan = Plan(self.estimator, X, self.y, self.splits, self.params)
        fitter = Fitter(self.estimator, X, self.y, self.params)
        scores = [self._of_fold(fold, plan.shared, fitter) for fold in range(len(self.splits))]
        return np.stack(scores, axis=1)

    def _of_fold(self, fold: int, shared: FoldContext | None, fitter: Fitter) -> np.ndarray:
        """Scores (positions,) of the model of one training set: of the decomposition of all rows
        without those that do not train, if possible.
        """
        decomposed = None if shared is None else shared.decomposed
        deleted = None if shared is None else shared.deleted(self.splits[fold][0])
        if decomposed is not None and deleted is not None and self.scoring.measures[0].plain:
            with suppress(NeedsFitError):
                return self._read(partial(decomposed.predict, decomposed.without(deleted)), fold)
        return self._by_fit(fitter, fold)

    def _by_fit(self, fitter: Fitter, fold: int) -> np.ndarray:
        """Scores (positions,) of the model of one training set, fitted literally."""
        test = self.splits[fold][1]
        ((model, _, y),) = fitter.folds(self.y, [self.splits[fold]], real=True)
        measure, classes = self.scoring.measures[0], self.scoring.classes
        same_classes = classes is None or np.array_equal(model.classes_, classes)
        if measure.metric is None or not is_model(final_step(model)) or not same_classes:
            places = (subset(self.slices.at(number), test) for number in range(len(self.slices)))
            return np.array([measure.scorer(model, X, y) for X in places])
        return self._read(model.predict if classes is None else model.decision_function, fold)

    def _read(self, output: Output, fold: int) -> np.ndarray:
        """Scores (positions,) of a model by its output."""
        return np.concatenate([self._scored(output, X, fold) for X in self.tested(fold)])

    def tested(self, fold: int) -> Iterator[Array]:
        """The test rows (q, m, p) of a fold at blocks of positions, which are kept if those of all
        folds fit into one block.
        """
        if fold in self._tests:
            yield self._tests[fold]
            return
        total, p = len(self.slices), self.slices.at(0).shape[1]
        sizes = [len(test) for _, test in self.splits]
        step = max(1, BLOCK_ELEMENTS // (sizes[fold] * p))
        for start in range(0, total, step):
            rows = self.slices.part(start, start + step).stacked(rows=self.splits[fold][1])
            if sum(sizes) * p * total <= BLOCK_ELEMENTS:
                self._tests[fold] = rows
            yield rows

    def _scored(self, output: Output, X: Array, fold: int) -> np.ndarray:
        """Scores (B,) of a fold's model at its test rows X (B, m, p)."""
        test, classes = self.splits[fold][1], self.scoring.classes
        xp, y = namespace(X), np.asarray(self.y)[test]
        values = to_numpy(output(xp.reshape(X, (-1, X.shape[2]))))
        if classes is None and self.scoring.single:
            values = values.ravel()
        truth: np.ndarray = (
            y.astype(np.float64).reshape(len(y), -1).T
            if classes is None
            else np.searchsorted(classes, y)
        )
        values = np.moveaxis(values.reshape(-1, 1, len(test), *values.shape[1:]), 2, -1)
        outputs = Outputs(values, np.broadcast_to(truth, (len(values), 1, *truth.shape)))
        return self.scoring.of_outputs([outputs])[self.scoring.measures[0].name]
