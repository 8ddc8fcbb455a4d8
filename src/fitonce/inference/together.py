"""Trials of many labelings at once, where squared error chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Array, index_like, namespace
from ..tuning.trials import Parameters, Trial
from ..tuning.tuner import Tuner

if TYPE_CHECKING:
    from .per_fold_maps import TrainedFold


def key_of(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Parameters as what they can be looked up by."""
    return tuple(sorted(parameters.items()))


class Together:
    """Trials of many labelings, judged by squared error in batches: all those that share a
    decomposition.
    """

    def __init__(self, fold: TrainedFold, values: np.ndarray, Y: Array) -> None:
        self.fold, self.Y = fold, Y
        self.samples = [fold.relabelled(labels).sample() for labels in values]
        self.judged: dict[Any, tuple[np.ndarray, dict[int, np.ndarray]]] = {}

    def sampled(self, labelling: int) -> bool:
        """Whether the search of a labeling begins with a sample."""
        return self.samples[labelling] is not None

    def attempt(
        self,
        labelling: int,
        several: Sequence[Parameters],
        *,
        sample: bool = False,
        alpha: float | None = None,
    ) -> list[Trial]:
        """Trials of a labeling with every alpha, or with one, on all rows or on its sample."""
        if alpha is not None:
            return [self._probe(labelling, parameters, alpha) for parameters in several]
        drawn = self.samples[labelling] if sample else None
        return [self._trial(labelling, parameters, drawn) for parameters in several]

    def _probe(self, labelling: int, parameters: Parameters, alpha: float) -> Trial:
        alphas = np.array([alpha])
        problem = self.fold.problem(parameters)
        Y = self.Y[labelling : labelling + 1, ...]
        return Trial(parameters, alphas, self.fold.squared_errors(problem, alphas, Y)[0])

    def _trial(self, labelling: int, parameters: Parameters, sample: Tuner | None) -> Trial:
        drawn = None if sample is None else sample.drawn
        key = key_of(parameters), None if drawn is None else drawn.key
        if key not in self.judged:
            self.judged[key] = self._judge(parameters, sample)
        alphas, losses = self.judged[key]
        sampled = None if drawn is None else len(drawn.rows)
        return Trial(parameters, alphas, losses[labelling], sampled)

    def _judge(
        self, parameters: Parameters, sample: Tuner | None
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Alphas and losses of every labeling whose rows are the same."""
        problem = self.fold.problem(parameters, sample)
        alphas = (self.fold.tuner if sample is None else sample).alphas(problem)
        problem.check(alphas)
        members, Y = self._targets(sample)
        return alphas, dict(zip(members, self.fold.squared_errors(problem, alphas, Y), strict=True))

    def _targets(self, sample: Tuner | None) -> tuple[Sequence[int], Array]:
        """The labelings that share a sample, and their targets there."""
        if sample is None or sample.drawn is None:
            return range(len(self.Y)), self.Y
        xp, members, parts = namespace(self.Y), [], []
        for number, other in enumerate(self.samples):
            if other is not None and other.drawn.key == sample.drawn.key:  # type: ignore[union-attr]
                members.append(number)
                rows = index_like(other.drawn.rows, self.Y)  # type: ignore[union-attr]
                parts.append(xp.take(self.Y[number, ...], rows, axis=1))
        return members, xp.stack(parts)
