"""Scores of labelings by the cheapest way that gives what refitting gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Protocol

import numpy as np
from array_api_compat import device
from sklearn.utils.parallel import Parallel, delayed

from ..core.arrays import Array, is_numpy, take, to_numpy
from ..core.readout import Readout
from ..core.refused import RefusedError
from ..core.splits import Split
from ..crossval.depends import RefitWarning, Route, depends, fit_weights
from ..crossval.lookup import FoldContext
from ..crossval.metrics import Outputs
from ..estimators.fitted import final_step
from .deletion_maps import DeletionMaps, regular_labelings, training_sizes
from .exchange import drawn_orders
from .linear_maps import linear_maps
from .per_fold_maps import PerFoldMaps
from .placements import Labelling, Placement
from .question import Question
from .scoring import Fitter, Measure, NeedsFitError, Scoring

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
            drawn = [labelling.rearrangement for labelling in self.labellings]
            self._values[place] = self.question.values(drawn_orders(drawn, like), like)
        return self._values[place]

    @cached_property
    def _values(self) -> dict[str, Array]:
        return {}

    @cached_property
    def by_shape(self) -> list[np.ndarray]:
        """The numbers of the labelings whose folds have the same shapes, so that they can be
        processed side by side.
        """
        groups: dict[Any, list[int]] = {}
        for number, labelling in enumerate(self.labellings):
            if labelling.placement.deletes:
                groups.setdefault(labelling.placement.shapes, []).append(number)
        return [np.array(group) for group in groups.values()]

    def sizes(self, members: np.ndarray, maps: FoldMaps) -> np.ndarray | None:
        """Class sizes (B, k, c) of the training sets of some labelings, counted once for all maps
        of a kind, which weight rows alike; None for numbers.
        """
        if self.question.classes is None:
            return None
        key = int(members[0]), maps.route
        if key not in self._sizes:
            if self.question.keeps_sizes and maps.weights is None:
                placements, codes = [self.question.observed], self.question.labels[None]
            else:
                placements = [self.labellings[number].placement for number in members]
                placements = placements[:1] if len(set(placements)) == 1 else placements
                codes = take(self.values(maps.like), members)
            given = placements, codes, len(self.question.classes), maps.weights
            sizes = training_sizes(*given)
            self._sizes[key] = np.broadcast_to(sizes, (len(members), *sizes.shape[1:]))
        return self._sizes[key]

    @cached_property
    def _sizes(self) -> dict[tuple[int, str], np.ndarray]:
        return {}


class FoldMaps(Protocol):
    """What the folds of a placement make of any labels: the models' outputs for their test rows."""

    route: str
    readout: Readout
    like: Array  # where labels are wanted
    weights: np.ndarray | None

    def block_size(self, placement: Placement) -> int: ...
    def outputs(
        self, placements: Sequence[Placement], values: Any, sizes: np.ndarray | None
    ) -> list[Outputs]: ...


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
        self.maps: FoldMaps | None = None
        self.fitted_one_by_one = 0
        found = depends(question.estimator, question.X, params)
        self._route, self._free = found.route, not found.labels
        if question.confounds is not None and self._route.name == "one":
            self._route = Route("per-fold", "confounds belong to each training set")
        shared = self._decomposed(params, max_bytes)
        each = self._route.name == "one" and shared is None
        given = question.estimator, question.X, question.given_y, params
        self.fitter = Fitter(*given, shared, each, question.confounds)
        if self._route.name == "per-fold":
            self.maps = self._per_fold(params or {}, max_bytes)
        if self.maps is None:
            self._say_literal()

    # ---- ways ------------------------------------------------------------------------------------

    def _decomposed(self, params: Mapping[str, Any] | None, max_bytes: int) -> FoldContext | None:
        """One decomposition of all rows, where every fold follows from it."""
        question = self.question
        if self._route.name != "one" or not question.observed.deletes or not self._free:
            return None
        shared = FoldContext(question.estimator, question.X, question.y)
        try:
            shared.decompose(fit_weights(question.estimator, params))
        except RefusedError as error:
            self._route = Route("per-fold", f"all rows together are refused: {error}")
            return None
        assert shared.decomposed is not None
        self.maps = DeletionMaps(shared.decomposed, max_bytes)
        return shared

    def _per_fold(self, params: Mapping[str, Any], max_bytes: int) -> FoldMaps | None:
        """One decomposition per training set, where these do not depend on the labels."""
        question, model = self.question, final_step(self.question.estimator)
        linear = linear_maps(question, params, max_bytes) if self._free else None
        if linear is not None:
            return linear
        fixed_folds = question.observed.deletes and question.mode != "resplit"
        known = {"sample_weight"} if model is question.estimator else set()
        if not fixed_folds or not self._free or set(params) - known:
            return None
        weights = params.get("sample_weight")
        weights = None if weights is None else np.asarray(to_numpy(weights), dtype=np.float64)
        if weights is not None and not np.all(weights > 0):
            return None
        return PerFoldMaps(question, weights, max_bytes)

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
        name = "refit" if self.maps is None else self.maps.route
        return Route(name, self._route.reason, self.fitted_one_by_one)

    @property
    def block_size(self) -> int:
        return LITERAL_BLOCK if self.maps is None else self.maps.block_size(self.question.observed)

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
        in_closed_form = np.zeros(B, dtype=bool)
        for members, _ in parts:
            in_closed_form[members] = True
        parts += self._literal_scores(batch.labellings, in_closed_form)
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
        maps = self.maps
        for members in [] if maps is None else batch.by_shape:
            assert maps is not None
            sizes = batch.sizes(members, maps)
            placements = [batch.labellings[number].placement for number in members]
            regular = regular_labelings(maps.readout, placements, sizes)
            regular = np.broadcast_to(regular, members.shape)
            chosen = members[regular]
            if not len(chosen):
                continue
            values = batch.values(maps.like)
            if len(chosen) < len(batch.labellings):
                values = take(values, chosen)
            own = None if sizes is None else sizes[regular]
            yield chosen, maps.outputs(list(compress(placements, regular)), values, own)

    def _literal_scores(
        self, labellings: Sequence[Labelling], in_closed_form: np.ndarray
    ) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Scores of single labelings: all of those that no engine covered, and those of the rest
        that need fitted models.
        """
        jobs = {}
        left = labellings if self.scoring.fitted or not in_closed_form.all() else []
        for number, labelling in enumerate(left):
            which = self.scoring.fitted if in_closed_form[number] else self.scoring.measures
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


def _fitted_scores(
    fitter: Fitter, scoring: Scoring, y: Any, splits: list[Split], which: list[Measure]
) -> dict[str, np.ndarray]:
    real = not all(measure.plain for measure in which)
    tests = [test for _, test in splits]
    return scoring.of_fits(fitter.folds(y, splits, real=real), tests, len(y), which)
