r"""Scores of models trained at one position, at their own or at all of them: linear models of many
positions in one array, any models one position after the other.

With the decomposition of position s, the model of a training set is, as after a refit without the
deleted rows,

    decision(x) = k(x, X_s) α + b          or, for the linear kernel, x·w + b.

The test rows of a fold at all positions t are stacked and need one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..core.arrays import Array, is_numpy, namespace, to_numpy
from ..core.readout import Evidence
from ..core.splits import Split
from ..crossval.lookup import FoldContext, subset
from ..crossval.metrics import Metric, Outputs, Scored
from ..crossval.plan import Plan
from ..estimators.fitted import final_step, is_model
from ..inference.linear_maps import LinearFits, LinearMaps, LinearModel
from ..inference.scoring import Fitter, NeedsFitError, Scoring
from .slices import Slices

# entries of X and of the systems of folds that are processed as one array: 2 MiB, for the cache
STACK_ELEMENTS = 1 << 18
BLOCK_ELEMENTS = 1 << 25  # entries of test rows stacked at a time: 256 MiB

Output = Callable[[Array], Any]  # the output of a model for rows


@dataclass(frozen=True)
class StackedScores:
    """Scores of the models of many positions: at their own position (folds,) or, with `tested`, at
    all positions (positions, folds).

    `tested` gives the test rows (q, m, p) of a fold at blocks of positions.
    """

    model: LinearModel
    metric: Metric
    tested: Callable[[int], Iterable[Array]] | None = None

    def __call__(self, slices: Slices) -> Sequence[np.ndarray | None]:
        """None where a position is not covered."""
        found: list[np.ndarray | None] = [None] * len(slices)
        elements = STACK_ELEMENTS if is_numpy(slices.X) else 16 * STACK_ELEMENTS
        for numbers, X in slices.stacks(elements, len(self.model.folds.splits)):
            if X.shape[2] < X.shape[1]:
                maps = LinearMaps(self.model, X)
                fits = maps.fits(self.model.folds, self.model.values)
                scores = (self._at_own if self.tested is None else self._at_all)(maps, fits)
                for number in np.flatnonzero(maps.covered(fits)):
                    found[numbers[number]] = scores[number]
        return found

    def _at_own(self, maps: LinearMaps, fits: Sequence[LinearFits]) -> np.ndarray:
        model = self.model
        outputs = maps.outputs_of(model.folds, fits, model.values, model.sizes)
        return np.concatenate([self._scores(run) for run in outputs], axis=1)

    def _at_all(self, maps: LinearMaps, fits: Sequence[LinearFits]) -> np.ndarray:
        """(S, positions, folds)"""
        by_fold = [
            self._of_fold(maps, part, number) for part in fits for number in range(part.run.count)
        ]
        return np.stack(by_fold, axis=-1)

    def _of_fold(self, maps: LinearMaps, part: LinearFits, number: int) -> np.ndarray:
        """Scores (S, positions) of the models of one fold of a run."""
        assert self.tested is not None
        coef, intercept = (A[:, number, ...] for A in maps.given(part))
        evidence, fold = maps.evidence(part, self.model.sizes), part.run.first + number
        if evidence is not None:
            parts = evidence.scatter, evidence.sizes
            evidence = Evidence(*(A[:, number : number + 1, ...] for A in parts))
        truth = self.model.values[0][..., self.model.folds.splits[fold][1]]
        xp, (S, p, t) = namespace(coef), coef.shape
        flat = xp.reshape(xp.matrix_transpose(coef), (S * t, p))
        terms = xp.sum(xp.abs(coef), axis=1)[:, None, :]
        blocks = []
        for X in self.tested(fold):
            q, m, _ = X.shape
            largest = xp.maximum(xp.max(X, axis=(1, 2)), -xp.min(X, axis=(1, 2)))
            P = flat @ xp.reshape(X, (q * m, p)).T
            P += xp.reshape(intercept, (S * t, 1))
            P = xp.permute_dims(xp.reshape(P, (S, t, q, m)), (0, 2, 1, 3))
            size = largest[:, None] * terms + xp.abs(intercept)[:, None, :]
            seen = np.broadcast_to(truth, (S, q, *truth.shape))
            blocks.append(self._scores(maps.read(P, size, seen, evidence)))
        return np.concatenate(blocks, axis=1)

    def _scores(self, outputs: Outputs) -> np.ndarray:
        return self.metric(Scored(outputs, self.model.readout.n_classes or None))


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
