r"""Held-out scores of many targets for many orders of the rows, tuning included.

Of every split, two kinds of matrices see no target: those that hold out rows inside the training
set, by which alphas are chosen, and those that predict the test rows from the training rows'
targets (`core.held_out_maps`). Targets in another order are other columns for the same matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.columns import Columns, columns_at_once
from ..core.criteria import target_sums
from ..core.held_out_maps import HeldOutMap, held_out_map
from ..core.spectrum import row_blocks
from ..core.splits import Split
from ..crossval.depends import Route
from ..crossval.lookup import subset
from ..estimators.fitted import chooses_steps, final_step
from ..estimators.ridge import KernelRidge
from ..estimators.setup import folds_of, setup_of
from ..tuning.many_targets import held_out_by_maps, losses_of_targets
from ..tuning.trials import least
from .draws import Draw
from .exchange import Rearrangement
from .placements import Labelling, Placement
from .question import Question

SCORES = {"r2": (1.0, "r2"), "correlation": (1.0, "correlation")}
SCORES["neg_mean_squared_error"] = (0.0, "squared_error")
KEPT_ELEMENTS = 1 << 25  # of matrices kept from one block of permutations to the next: 256 MiB


@dataclass(frozen=True)
class TrainedMaps:
    """One split: its test rows' predictions for every alpha, and the losses that choose among
    them; `inner` is None if there is one alpha.
    """

    outer: HeldOutMap
    inner: Callable[[Array], np.ndarray] | None
    alphas: np.ndarray

    @property
    def size(self) -> int:
        return int(np.prod(self.outer.basis.shape))


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
    _placed: dict[int, FoldsOfTargets] = field(default_factory=dict)

    def scores(self, labellings: Sequence[Labelling]) -> dict[str, np.ndarray]:
        """(B, t) for B labelings."""
        parts = []
        for placement, same in groupby(labellings, lambda each: each.placement):
            orders = [labelling.rearrangement for labelling in same]
            parts.append(self._at(placement).scores(orders))
        return {"score": np.concatenate(parts)}

    def _at(self, placement: Placement) -> FoldsOfTargets:
        """The folds of a placement; the observed ones and the latest are kept."""
        number = placement.number
        if number not in self._placed:
            self._placed = {0: self._placed[0]} if 0 in self._placed else {}
            self._placed[number] = FoldsOfTargets(
                self.question, self.columns, placement.splits, self.scoring, self.pooled
            )
        return self._placed[number]


@dataclass(frozen=True)
class FoldsOfTargets:
    """The folds of one placement: what they make of any order of the targets."""

    question: Question
    columns: Columns
    splits: Sequence[Split]
    scoring: str
    pooled: bool

    def scores(self, orders: Sequence[Rearrangement | Draw]) -> np.ndarray:
        """(B, t) for B orders of the rows. Cost for each: n² multiplications for every target and
        alpha.
        """
        t, parts = self.columns.n_targets, self._batches(len(orders))
        found: list[list[Any]] = [[] for _ in parts]
        for fold in self._folds():
            for (chosen, columns), part in zip(parts, found, strict=True):
                part.append(self._of_fold(fold, [orders[number] for number in chosen], columns))
        scores = np.empty((len(orders), t))
        for (chosen, columns), part in zip(parts, found, strict=True):
            width = columns.stop - columns.start
            scores[chosen, columns] = to_numpy(self._score(part)).reshape(len(chosen), width)
        return scores

    def _batches(self, n_orders: int) -> list[tuple[np.ndarray, slice]]:
        """Which orders and columns are processed together."""
        t = self.columns.n_targets
        per_column = (2 + len(self._alphas)) * len(self.columns.values)
        step = columns_at_once(per_column, self._like)
        width = t if self._together else min(t, step)
        count = max(1, step // width)
        numbers = np.arange(n_orders)
        groups = [numbers[start : start + count] for start in range(0, n_orders, count)]
        return [(chosen, block) for chosen in groups for block in row_blocks(t, width)]

    @property
    def _together(self) -> bool:
        """Whether one alpha is chosen for all targets."""
        return len(self._alphas) > 1 and not self._model.alpha_per_target

    @property
    def _model(self) -> Any:
        return final_step(self.question.estimator)

    @property
    def _alphas(self) -> np.ndarray:
        return self._first.alphas

    @property
    def _like(self) -> Array:
        return self._first.outer.basis

    # ---- what sees no target ---------------------------------------------------------------------

    @cached_property
    def _first(self) -> TrainedMaps:
        return self._fold(*self.splits[0])

    @cached_property
    def _kept(self) -> list[TrainedMaps]:
        return [self._first, *(self._fold(*split) for split in self.splits[1:])]

    def _folds(self) -> Iterator[TrainedMaps]:
        """All splits; kept where they are small, made again each time where they are not."""
        n, m = len(self.columns.values), len(self._alphas)
        if m * n**2 * (1 + len(self.splits)) <= KEPT_ELEMENTS:
            yield from self._kept
            return
        yield self._first
        for split in self.splits[1:]:
            yield self._fold(*split)

    def _fold(self, train: np.ndarray, test: np.ndarray) -> TrainedMaps:
        model, X_train, X_test = self._preprocessed(train, test)
        groups = None if self.question.groups is None else self.question.groups[train]
        none = np.zeros((len(train), 1))
        setup = setup_of(model, X_train, none, None, groups, by_target=True)
        inner = folds_of(model.cv, setup.training, classifier=False)
        tuner = setup.tuner(inner)
        problem = tuner.problem({})
        alphas = tuner.alphas(problem)
        problem.check(alphas)
        unit = problem.with_targets(np.eye(len(train)))
        like = problem.smoother.Q0
        X_test = X_test if hasattr(X_test, "tocsr") else asarray_like(X_test, like)
        matrices = [
            unit.solution(unit.fit(mu), mu).values(problem.kernel, X_test, problem.X)
            for mu in alphas.tolist()
        ]
        outer = held_out_map(train, test, namespace(like).stack(matrices))
        losses = None
        if len(alphas) > 1:
            hold_out = held_out_by_maps(problem, tuner.deletions, alphas, namespace(like).float64)
            criterion = tuner.specification.criterion
            losses = partial(losses_of_targets, problem, criterion, None, hold_out)
        return TrainedMaps(outer, losses, alphas)

    def _preprocessed(self, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any, Any]:
        """The model with the rows it trains on and those it predicts, as steps before it make them
        of the training rows.
        """
        X_train, X_test = subset(self.question.X, train), subset(self.question.X, test)
        model = clone(self._model).set_params(alpha_per_target=True, verbose=0)
        if isinstance(self.question.estimator, Pipeline):
            steps = clone(self.question.estimator[:-1])
            return model, steps.fit_transform(X_train), steps.transform(X_test)
        if model.kernel == "precomputed":
            X_train, X_test = subset(X_train.T, train).T, subset(X_test.T, train).T
        return model, X_train, X_test

    # ---- what does -------------------------------------------------------------------------------

    def _of_fold(
        self, fold: TrainedMaps, orders: Sequence[Rearrangement | Draw], columns: slice
    ) -> Any:
        """Sums over the test rows, or their loss, for all orders and some of the columns."""
        Y = self.columns.block(columns, self._like)
        xp = namespace(Y)
        moved = [take(Y, order.indices) for order in orders]
        for number, order in enumerate(orders):
            if order.signs is not None:
                moved[number] = asarray_like(order.signs, Y)[:, None] * moved[number]
        stacked = moved[0] if len(moved) == 1 else xp.concat(moved, axis=1)
        truth = take(stacked, fold.outer.tested)
        predicted = self._predicted(fold, stacked, len(orders))
        sums = target_sums(predicted, truth, None, self.scoring == "correlation")
        return sums if self.pooled else sums.loss(SCORES[self.scoring][1])

    def _predicted(self, fold: TrainedMaps, Y: Array, n_orders: int) -> Array:
        """Predictions (1, k, T) of the test rows, at the alphas that the training rows choose."""
        xp, values = namespace(Y), fold.outer(Y)
        if fold.inner is None:
            return values
        losses = fold.inner(take(Y, fold.outer.train))
        if self._together:
            shape = (len(losses), n_orders, -1)
            mean = losses.reshape(shape).mean(axis=2, keepdims=True)
            losses = np.broadcast_to(mean, losses.reshape(shape).shape).reshape(len(losses), -1)
        chosen = least(losses)
        picked = xp.zeros_like(values[0, ...])
        for number in np.unique(chosen).tolist():
            own = asarray_like((chosen == number).astype(float), Y)
            picked = picked + values[number, ...] * own
        return picked[None, ...]

    def _score(self, parts: list[Any]) -> Array:
        """Scores of what the splits brought: higher is better."""
        best, name = SCORES[self.scoring]
        if self.pooled:
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            return best - total.loss(name)[0, :]
        return best - sum(part[0, :] for part in parts) / len(parts)


def check_estimator(estimator: Any) -> None:
    """Refuse what has no matrices that are made once."""
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
    words = [
        f"{name}={value!r}"
        for name, value in model.get_params(deep=False).items()
        if name in ("gamma", "degree", "coef0", "penalty", "kernel")
        and isinstance(value, str)
        and value == "tune"
        and not (name == "gamma" and model.kernel in ("linear", "precomputed", "cosine"))
    ]
    if words or model.landmarks is not None or getattr(model.kernel, "tunes", False):
        raise ValueError(
            "permutation_test_targets needs a kernel that no target has a say in, got "
            f"{', '.join(words) or 'landmarks or a sum of kernels with weights to be found'}: a "
            "kernel chosen by all targets would have to be chosen again for every permutation. "
            'Give gamma a number or "scale", and let alpha be tuned.'
        )


__all__ = ["SCORES", "ManyTargets", "check_estimator"]
