"""Scores of the linear models of many positions at once: at their own, or at all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.arrays import Array, is_numpy, namespace
from ..core.readout import Evidence
from ..crossval.metrics import Metric, Outputs, Scored
from ..inference.linear_maps import LinearFits, LinearMaps, LinearModel
from .slices import Slices

# entries of X and of the systems of folds that are processed as one array: 2 MiB, for the cache
STACK_ELEMENTS = 1 << 18


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
        """(S, folds)"""
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
