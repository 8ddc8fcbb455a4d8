"""Scores of labelings by the cheapest way that gives what refitting gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from array_api_compat import device
from sklearn.utils.parallel import Parallel, delayed

from ..core.arrays import Array, asarray_like, is_numpy, namespace, take, to_numpy
from ..crossval.depends import RefitWarning, Route, depends, fit_weights
from ..crossval.lookup import FoldContext
from ..crossval.metrics import Outputs
from ..estimators.fitted import final_step
from .draws import drawn_orders
from .engine import SharedEngine
from .factors import training_sizes
from .folds import Layout
from .literal import Fitter
from .placements import Labelling, Placement
from .question import Question
from .scoring import Measure, NeedsFitError, Scoring
from .trained import TrainedEngine
from .validity import Split

LITERAL_BLOCK = 8  # labelings fitted between two looks at the clock


@dataclass(frozen=True)
class Batch:
    """Labelings scored together, with what engines need of them. Nothing of it depends on X.

    One batch serves many evaluations.
    """

    question: Question
    labellings: Sequence[Labelling]

    def values(self, like: Array) -> Array:
        """Labels (B, n), or numbers (B, t, n), on the device of `like`; computed once for all
        engines that live there.
        """
        place = "host" if is_numpy(like) else str(device(like))
        if place not in self._values:
            self._values[place] = self._made(like)
        return self._values[place]

    @cached_property
    def _values(self) -> dict[str, Array]:
        return {}

    def _made(self, like: Array) -> Array:
        orders = drawn_orders([labelling.rearrangement for labelling in self.labellings], like)
        xp, flat = namespace(like), (-1,)
        B, n = orders.indices.shape
        if self.question.classifier:
            small = xp.int8 if self.question.labels.max() < 127 else xp.int32
            codes = asarray_like(self.question.labels, like, dtype=small)
            return xp.reshape(xp.take(codes, xp.reshape(orders.indices, flat), axis=0), (B, n))
        numbers, base = self.question.y.astype(np.float64).reshape(n, -1), self.question.base
        numbers = asarray_like(numbers if base is None else numbers - base, like)
        moved = xp.take(numbers, xp.reshape(orders.indices, flat), axis=0)
        values = xp.permute_dims(xp.reshape(moved, (B, n, -1)), (0, 2, 1)) + 0.0
        if orders.signs is not None:
            values = values * asarray_like(orders.signs, like)[:, None, :]
        return values if base is None else values + asarray_like(base.T, like)

    @cached_property
    def by_shape(self) -> list[tuple[np.ndarray, list[Placement]]]:
        """Labelings whose folds can be processed side by side: their numbers in the batch, and
        their placements.

        First those with the observed folds, then others in groups whose folds have the same shapes.
        """
        groups: dict[Any, list[tuple[int, Placement]]] = {}
        for number, labelling in enumerate(self.labellings):
            placement = labelling.placement
            if placement.number == 0:
                groups.setdefault((), []).append((number, placement))
            elif placement.layout is not None:
                groups.setdefault(placement.layout.shapes, []).append((number, placement))
        return [
            (np.array([number for number, _ in group]), [placement for _, placement in group])
            for _, group in sorted(groups.items(), key=lambda item: item[0] != ())
        ]

    def sizes(
        self, number: int, layouts: Sequence[Layout], engine: SharedEngine | TrainedEngine
    ) -> np.ndarray | None:
        """Class sizes (B, k, c) of the training sets of one group of `by_shape`, counted once for
        all engines of a kind, which weight rows alike; None for numbers.
        """
        if self.question.classes is None:
            return None
        if (number, engine.route) not in self._sizes:
            members, n_classes = self.by_shape[number][0], len(self.question.classes)
            if self.question.keeps_sizes and engine.weights is None:
                observed, codes = [_layout(self.question.observed)], self.question.labels[None]
                counted = training_sizes(observed, codes, n_classes, None)
                counted = np.broadcast_to(counted, (len(members), *counted.shape[1:]))
            else:
                codes = take(self.values(engine.like), members)
                counted = training_sizes(layouts, codes, n_classes, engine.weights)
            self._sizes[number, engine.route] = counted
        return self._sizes[number, engine.route]

    @cached_property
    def _sizes(self) -> dict[tuple[int, str], np.ndarray]:
        return {}


class Evaluation:
    """Scores of labelings by the cheapest way that gives what refitting gives."""

    def __init__(
        self,
        question: Question,
        scoring: Scoring,
        params: Mapping[str, Any] | None,
        n_jobs: int | None,
        max_bytes: int,
    ) -> None:
        self.question, self.scoring, self.n_jobs = question, scoring, n_jobs
        self.layout = question.observed.layout
        self.engine: SharedEngine | TrainedEngine | None = None
        self.fitted_one_by_one = 0
        # the last placement of folds whose training sets were decomposed
        self._placed: tuple[int, Any] = (0, None)
        found = depends(question.estimator, question.X, params)
        self._route, self._free = found.route, not found.labels
        if question.confounds is not None and self._route.name == "one":
            self._route = Route("per-fold", "confounds belong to each training set")
        shared = self._shared_engine(params, max_bytes)
        each = self._route.name == "one" and shared is None
        self.fitter = Fitter(
            question.estimator,
            question.X,
            question.given_y,
            params,
            shared,
            each,
            question.confounds,
        )
        if self._route.name == "per-fold":
            self._trained_engine(params or {}, max_bytes)
        if self.engine is None:
            self._say_literal()

    # ---- ways ------------------------------------------------------------------------------------

    def _shared_engine(
        self, params: Mapping[str, Any] | None, max_bytes: int
    ) -> FoldContext | None:
        question = self.question
        if self._route.name != "one" or self.layout is None or not self._free:
            return None
        shared = FoldContext(question.estimator, question.X, question.y)
        try:
            shared.decompose(fit_weights(question.estimator, params))
        except (ValueError, TypeError) as error:
            self._route = Route("per-fold", f"all rows together are refused: {error}")
            return None
        assert shared.decomposed is not None
        self.engine = SharedEngine(shared.decomposed, max_bytes)
        return shared

    def _trained_engine(self, params: Mapping[str, Any], max_bytes: int) -> None:
        """One decomposition per training set, of the observed folds; each other placement of the
        folds has its own.
        """
        question, model = self.question, final_step(self.question.estimator)
        fixed_folds = self.layout is not None and question.mode != "resplit"
        known = {"sample_weight"} if model is question.estimator else set()
        if not fixed_folds or not self._free or set(params) - known:
            return
        weights = params.get("sample_weight")
        weights = None if weights is None else np.asarray(to_numpy(weights), dtype=np.float64)
        if weights is not None and not np.all(weights > 0):
            return
        # what the first training set refuses, a literal fit complains of
        n_classes = 0 if question.classes is None else len(question.classes)
        with suppress(ValueError, TypeError):
            self.engine = TrainedEngine(
                question.estimator,
                question.X,
                question.y,
                weights,
                question.splits,
                n_classes,
                max_bytes,
                question.confounds,
            )

    def _say_literal(self) -> None:
        question = self.question
        if self._route.name == "refit":
            reason = f"fitonce has no closed form for {type(question.estimator).__name__}"
            advice = (
                "To avoid this, pass one of fitonce's estimators, or a pipeline that ends in one."
            )
        elif question.mode == "resplit" and self._free:
            reason = f"{self._route.reason}, and every permutation has its own training sets"
            advice = (
                'permute="cosets", the default, needs decompositions only for a few placements of '
                "the folds."
            )
        else:
            reason = (
                f"the labels cannot be separated from the rest of the fit ({self._route.reason})"
            )
            advice = "To avoid this, use fixed parameters, and steps that do not use y."
        warnings.warn(
            f"{reason}: the estimator is fitted for every permutation and fold. {advice}",
            RefitWarning,
            stacklevel=4,
        )

    @property
    def route(self) -> Route:
        name = "refit" if self.engine is None else self.engine.route
        return Route(name, self._route.reason, self.fitted_one_by_one)

    @property
    def block_size(self) -> int:
        if self.engine is None or self.layout is None:
            return LITERAL_BLOCK
        return self.engine.block_size(self.layout)

    # ---- scores ----------------------------------------------------------------------------------

    def scores(self, labellings: Sequence[Labelling]) -> dict[str, np.ndarray]:
        """Scores (B, …) of every measure."""
        return self.scores_of(Batch(self.question, labellings))

    def scores_of(self, batch: Batch) -> dict[str, np.ndarray]:
        """Scores (B, …) of every measure for a batch, which may be that of another evaluation of
        the same labels and folds.
        """
        B = len(batch.labellings)
        parts = [(members, self._of_outputs(outputs)) for members, outputs in self._outputs(batch)]
        by_engine = np.zeros(B, dtype=bool)
        for members, _ in parts:
            by_engine[members] = True
        parts += self._literal_scores(batch.labellings, by_engine)
        result: dict[str, np.ndarray] = {}
        for members, scores in parts:
            for name, values in scores.items():
                result.setdefault(name, np.empty((B, *values.shape[1:])))[members] = values
        return {measure.name: result[measure.name] for measure in self.scoring.measures}

    def _of_outputs(self, outputs: list[Outputs]) -> dict[str, np.ndarray]:
        try:
            return self.scoring.of_outputs(outputs)
        except NeedsFitError:
            self.scoring.literal |= {
                measure.name for measure in self.scoring.measures if measure.metric is None
            }
            return self.scoring.of_outputs(outputs)

    def _outputs(self, batch: Batch) -> Iterator[tuple[np.ndarray, list[Outputs]]]:
        """Outputs of the labelings that the closed form covers, with their places in the batch."""
        engine = self.engine
        if engine is None or self.layout is None:
            return
        for number, (members, placements) in enumerate(batch.by_shape):
            observed = placements[0].number == 0
            layouts = (
                [self.layout] if observed else [_layout(placement) for placement in placements]
            )
            sizes = batch.sizes(number, layouts, engine)
            regular = np.broadcast_to(engine.regular(layouts, sizes), members.shape)
            chosen, sizes = members[regular], None if sizes is None else sizes[regular]
            if not len(chosen):
                continue
            values = batch.values(engine.like)
            if len(chosen) < len(batch.labellings):
                values = take(values, chosen)
            if observed:
                yield chosen, engine.fixed(self.layout, values, sizes)
            elif isinstance(engine, SharedEngine):
                kept_layouts = list(compress(layouts, regular))
                yield chosen, engine.each(kept_layouts, values, sizes)
            else:
                kept = list(compress(placements, regular))
                yield from self._of_training_sets(engine, batch, chosen, kept, sizes)

    def _of_training_sets(
        self,
        engine: TrainedEngine,
        batch: Batch,
        members: np.ndarray,
        placements: Sequence[Placement],
        sizes: np.ndarray | None,
    ) -> Iterator[tuple[np.ndarray, list[Outputs]]]:
        """Each placement by decompositions of its own training sets, which its labelings share.

        A labeling that has nobody to share them with is left to be fitted.
        """
        numbers = np.array([placement.number for placement in placements])
        for number in dict.fromkeys(numbers.tolist()):
            places = np.flatnonzero(numbers == number)
            placement = placements[places[0]]
            if len(places) > 1 or self.question.confounds is not None:
                if placement.number != self._placed[0]:
                    self._placed = placement.number, engine.moved(placement.splits)
                values = take(batch.values(engine.like), members[places])
                own = None if sizes is None else sizes[places]
                yield members[places], self._placed[1].fixed(_layout(placement), values, own)

    def _literal_scores(
        self, labellings: Sequence[Labelling], by_engine: np.ndarray
    ) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Scores of single labelings: all of those that no engine covered, and those of the rest
        that need fitted models.
        """
        jobs = {}
        for number, labelling in enumerate(labellings):
            which = self.scoring.fitted if by_engine[number] else self.scoring.measures
            if which:
                y = self.question.permuted(labelling.rearrangement)
                jobs[number] = self.fitter, self.scoring, y, labelling.splits, which
        self.fitted_one_by_one += len(jobs)
        if self.n_jobs in (None, 1) or len(jobs) < 2:
            results = [_fitted_scores(*job) for job in jobs.values()]
        else:
            parallel = Parallel(n_jobs=self.n_jobs)
            results = parallel(delayed(_fitted_scores)(*job) for job in jobs.values())
        return [(np.array([number]), scores) for number, scores in zip(jobs, results, strict=True)]


def _layout(placement: Placement) -> Layout:
    layout = placement.layout
    assert layout is not None
    return layout


def _fitted_scores(
    fitter: Fitter, scoring: Scoring, y: Any, splits: list[Split], which: list[Measure]
) -> dict[str, np.ndarray]:
    real = not all(measure.plain for measure in which)
    tests = [test for _, test in splits]
    return scoring.of_fits(fitter.folds(y, splits, real=real), tests, len(y), which)
