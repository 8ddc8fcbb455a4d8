"""Held-out scores of many targets for many orders of the rows, tuning included.

Every target in every order is a labeling of the maps of the training sets (`per_fold_maps`), which
see no target; with one alpha for all targets, all of them in one order are one labeling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import namespace
from ..core.columns import Columns, columns_at_once
from ..core.spectrum import row_blocks
from ..crossval.depends import Route
from ..crossval.metrics import Outputs
from ..estimators.fitted import chooses_steps, final_step
from ..estimators.ridge import KernelRidge
from .deletion_maps import MAX_BYTES
from .exchange import Rearrangement, drawn_orders
from .per_fold_maps import PerFoldMaps
from .placements import Labelling, Placement
from .question import Question
from .scoring import Scoring, measures

SCORES = ("r2", "correlation", "neg_mean_squared_error")


@dataclass
class ManyTargets:
    """Scores of all targets for labelings, by refits on every training set in closed form."""

    question: Question
    columns: Columns
    scoring: str
    pooled: bool
    block_size: int
    fitted_one_by_one: int = 0
    route = Route("per-fold", "alpha is chosen in every training set")

    def __post_init__(self) -> None:
        estimator = clone(self.question.estimator)
        model = final_step(estimator)
        self.by_target = model.alpha_per_target
        model.set_params(alpha_per_target=False, verbose=0)
        none = np.zeros((len(self.columns.values), 1))
        given = replace(self.question, estimator=estimator, y=none), None, MAX_BYTES
        self.maps = PerFoldMaps(*given, groups=self.question.groups)
        if not self.maps.one_kernel or model.landmarks is not None:
            raise ValueError(
                "permutation_test_targets needs a kernel that no target has a say in, got "
                f"{model!r:.300}: a kernel, landmarks or weights of a sum chosen by all targets "
                "would have to be chosen again for every permutation. Give gamma a number or "
                '"scale", and let alpha be tuned.'
            )
        chosen = measures(model, self.scoring, classifier=False, classes=None)
        self.scores_of = Scoring(estimator, chosen, None, True, self.pooled).of_outputs

    def scores(self, labellings: Sequence[Labelling]) -> dict[str, np.ndarray]:
        """(B, t) for B labelings. Cost for each: n² multiplications for every target and alpha."""
        n, t = self.columns.shape
        step = columns_at_once(8 * n, self.maps.like)
        parts = []
        for placement, same in groupby(labellings, lambda each: each.placement):
            chosen, count = list(same), max(1, step // t)
            for start in range(0, len(chosen), count):
                rearranged = [each.rearrangement for each in chosen[start : start + count]]
                orders = drawn_orders(rearranged, self.maps.like)
                blocks = row_blocks(t, min(t, step) if self.by_target else t)
                of_blocks = [self._of_block(placement, orders, block) for block in blocks]
                parts.append(np.concatenate(of_blocks, axis=1))
        return {"score": np.concatenate(parts)}

    def _of_block(self, placement: Placement, orders: Rearrangement, block: slice) -> np.ndarray:
        """(B, T) of some of the columns in B orders."""
        Y = self.columns.block(block, self.maps.like)
        B, n = orders.indices.shape
        moved = Y[orders.indices.ravel()].reshape(B, n, -1).swapaxes(1, 2)
        if orders.signs is not None:
            moved = moved * orders.signs[:, None, :]
        values = moved.reshape(-1, 1, n) if self.by_target else moved
        outputs = self.maps.outputs([placement] * len(values), values, None)
        (scores,) = self.scores_of([_each_alone(run) for run in outputs]).values()
        return scores.reshape(B, -1)


def _each_alone(outputs: Outputs) -> Outputs:
    """Outputs (B, 1, t, m) of B labelings of t targets as those of B t labelings of one."""
    m = outputs.truth.shape[-1]
    values = namespace(outputs.values).reshape(outputs.values, (-1, 1, 1, m))
    return Outputs(values, outputs.truth.reshape(-1, 1, 1, m))


def check_estimator(estimator: Any) -> None:
    """Refuse what chooses by more than one target at a time."""
    model = final_step(estimator)
    if not isinstance(model, KernelRidge):
        raise TypeError(
            "estimator must be a KernelRidge, or a Pipeline that ends in one, got "
            f"{type(model).__name__} instead: targets are numbers here. Labels have "
            "fitonce.permutation_test_score."
        )
    if chooses_steps(estimator):
        raise ValueError(
            "permutation_test_targets needs steps that no target has a say in, got a TunedPipeline "
            "with several candidates: give it one of them."
        )


__all__ = ["SCORES", "ManyTargets", "check_estimator"]
