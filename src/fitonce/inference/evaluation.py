"""Scores of labellings by the cheapest way that gives what refitting gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, cast

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..core.arrays import to_numpy
from ..crossval.metrics import Outputs
from ..crossval.routes import RefitWarning, Route, choose_route, fit_weights
from ..crossval.stand_in import Shared
from ..estimators.fitted import final_step
from .engine import SharedEngine
from .exchange import Rearrangement
from .folds import Layout, same_splits
from .literal import Fitter
from .question import Question
from .scoring import Measure, NeedsFitError, Scoring
from .trained import TrainedEngine, label_free, repeatable
from .validity import Split

LITERAL_BLOCK = 8  # labellings fitted between two looks at the clock


@dataclass(frozen=True)
class Labelling:
    """A rearrangement with the splits that go with it (the observed ones, unless every labelling is
    split again).
    """

    rearrangement: Rearrangement
    splits: list[Split]


@dataclass(frozen=True)
class Batch:
    """Labellings scored together, with what engines need of them. Nothing of it depends on X.

    One batch serves many evaluations.
    """

    question: Question
    labellings: Sequence[Labelling]

    @cached_property
    def values(self) -> np.ndarray:
        """Labels (B, n), or numbers (B, t, n)."""
        rearrangements = [labelling.rearrangement for labelling in self.labellings]
        indices = np.stack([rearrangement.indices for rearrangement in rearrangements])
        if self.question.classifier:
            labels = self.question.labels
            small = np.int8 if labels.max() < 127 else np.int32
            return np.asarray(labels.astype(small)[indices])
        numbers = self.question.y.astype(np.float64).reshape(self.question.n_samples, -1)
        values = np.ascontiguousarray(np.moveaxis(numbers[indices], 2, 1))
        for row, rearrangement in zip(values, rearrangements, strict=True):
            if rearrangement.signs is not None:
                row *= rearrangement.signs
        return values

    @cached_property
    def fixed(self) -> np.ndarray:
        """Which labellings (B,) keep the observed folds."""
        observed = self.question.splits
        return np.array(
            [
                labelling.splits is observed or same_splits(labelling.splits, observed)
                for labelling in self.labellings
            ]
        )

    @cached_property
    def others(self) -> list[tuple[np.ndarray, list[Layout]]]:
        """The others, in groups whose folds have the same shapes.

        Their places in the batch, and their layouts.
        """
        by_shape: dict[Any, list[tuple[int, Layout]]] = {}
        for number in np.flatnonzero(~self.fixed).tolist():
            layout = Layout.of(self.labellings[number].splits, self.question.n_samples)
            if layout is not None:
                by_shape.setdefault(layout.shapes, []).append((number, layout))
        return [
            (np.array([number for number, _ in group]), [layout for _, layout in group])
            for group in by_shape.values()
        ]


class Evaluation:
    """Scores of labellings by the cheapest way that gives what refitting gives."""

    def __init__(
        self,
        question: Question,
        scoring: Scoring,
        params: Mapping[str, Any] | None,
        n_jobs: int | None,
        max_bytes: int,
    ) -> None:
        self.question, self.scoring, self.n_jobs = question, scoring, n_jobs
        self.layout = Layout.of(question.splits, question.n_samples)
        self.engine: SharedEngine | TrainedEngine | None = None
        self.fitted_one_by_one = 0
        self._route = choose_route(question.estimator, question.X, params)
        self._free = label_free(question.estimator)
        shared = self._shared_engine(params, max_bytes)
        each = self._route.name == "one" and shared is None
        self.fitter = Fitter(question.estimator, question.X, question.given_y, params, shared, each)
        if self._route.name == "per-fold":
            self._trained_engine(params or {}, max_bytes)
        if self.engine is None:
            self._say_literal()

    # ---- ways ------------------------------------------------------------------------------------

    def _shared_engine(self, params: Mapping[str, Any] | None, max_bytes: int) -> Shared | None:
        question = self.question
        if self._route.name != "one" or self.layout is None or not self._free:
            return None
        if set(params or {}) - {"sample_weight"}:
            self._route = Route("per-fold", "fit receives parameters of its own")
            return None
        shared = Shared(question.estimator, question.X, question.y)
        try:
            shared.decompose(fit_weights(question.estimator, params))
        except (ValueError, TypeError) as error:
            self._route = Route("per-fold", f"all rows together are refused: {error}")
            return None
        assert shared.decomposed is not None
        self.engine = SharedEngine(shared.decomposed, max_bytes)
        return shared

    def _trained_engine(self, params: Mapping[str, Any], max_bytes: int) -> None:
        """One decomposition per training set."""
        question, model = self.question, final_step(self.question.estimator)
        fixed_folds = self.layout is not None and question.mode != "resplit"
        known = {"sample_weight"} if model is question.estimator else set()
        if not fixed_folds or not self._free or set(params) - known or not repeatable(model):
            return
        weights = params.get("sample_weight")
        weights = None if weights is None else np.asarray(to_numpy(weights), dtype=np.float64)
        if weights is not None and not np.all(weights > 0):
            return
        # what the first training set refuses, a literal fit complains of
        with suppress(ValueError, TypeError):
            self.engine = TrainedEngine(
                question.estimator,
                question.X,
                question.y,
                weights,
                question.splits,
                0 if question.classes is None else len(question.classes),
                max_bytes,
            )

    def _say_literal(self) -> None:
        question = self.question
        if self._route.name == "refit":
            reason = f"fitonce has no closed form for {type(question.estimator).__name__}"
            advice = (
                "Pass one of fitonce's estimators, or a pipeline that ends in one, to avoid that."
            )
        elif question.mode == "resplit" and self._free:
            reason = f"{self._route.reason}, and every permutation has training sets of its own"
            advice = (
                'permute="within-folds" keeps the folds and shares one decomposition per training '
                "set."
            )
        else:
            reason = f"labels cannot be told apart from the rest of the fit ({self._route.reason})"
            advice = "Fixed parameters, and steps that do not look at y, avoid that."
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
        """Outputs of the labellings that the closed form covers, with their places in the batch."""
        engine = self.engine
        if engine is None or self.layout is None:
            return
        for members, layouts in [(np.flatnonzero(batch.fixed), [self.layout]), *batch.others]:
            regular = engine.regular(layouts, batch.values[members])
            chosen = members[regular]
            if len(chosen) and layouts[0] is self.layout:
                yield chosen, engine.fixed(self.layout, batch.values[chosen])
            elif len(chosen):  # split again, so that the engine is a shared one
                kept = list(compress(layouts, regular))
                yield chosen, cast(SharedEngine, engine).each(kept, batch.values[chosen])

    def _literal_scores(
        self, labellings: Sequence[Labelling], by_engine: np.ndarray
    ) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Scores of single labellings: all of those that no engine covered, and those of the rest
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


def _fitted_scores(
    fitter: Fitter, scoring: Scoring, y: Any, splits: list[Split], which: list[Measure]
) -> dict[str, np.ndarray]:
    real = not all(measure.plain for measure in which)
    return scoring.of_fits(fitter.folds(y, splits, real=real), which)
