"""Scores of labellings by the cheapest way that gives what refitting gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from .scoring import NeedsFitError, Scoring
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
            return np.asarray(self.question.codes[indices])
        values = np.ascontiguousarray(np.moveaxis(self.question.numbers[:, indices], 0, 1))
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
        self.question, self.scoring, self.n_jobs, self.max_bytes = (
            question,
            scoring,
            n_jobs,
            max_bytes,
        )
        self.layout = Layout.of(question.splits, question.n_samples)
        self.engine: SharedEngine | TrainedEngine | None = None
        self.fitted_one_by_one = 0
        weights = fit_weights(question.estimator, params)
        self._route = choose_route(question.estimator, question.X, params)
        shared = self._shared_engine(weights, params)
        each = self._route.name == "one" and shared is None
        self.fitter = Fitter(question.estimator, question.X, question.given_y, params, shared, each)
        if self.engine is None and not each:
            self._trained_engine(params)
        if self.engine is None:
            self._say_literal()

    # ---- ways ------------------------------------------------------------------------------------

    def _shared_engine(self, weights: Any, params: Mapping[str, Any] | None) -> Shared | None:
        question = self.question
        one = self._route.name == "one" and self.layout is not None
        if not one or not label_free(question.estimator):
            return None
        if set(params or {}) - {"sample_weight"}:
            self._route = Route("per-fold", "fit receives parameters of its own")
            return None
        shared = Shared(question.estimator, question.X, question.y)
        try:
            shared.decompose(weights)
        except (ValueError, TypeError) as error:
            self._route = Route("per-fold", f"all rows together are refused: {error}")
            return None
        assert shared.decomposed is not None
        self.engine = SharedEngine(shared.decomposed, self.max_bytes)
        return shared

    def _trained_engine(self, params: Mapping[str, Any] | None) -> None:
        """One decomposition per training set."""
        question = self.question
        fixed_folds = self.layout is not None and question.mode != "resplit"
        free = label_free(question.estimator)
        if self._route.name != "per-fold" or not fixed_folds or not free:
            return
        model = final_step(question.estimator)
        weights = (params or {}).get("sample_weight")
        piped = model is not question.estimator
        if (params and (set(params) != {"sample_weight"} or piped)) or _has_zeros(weights):
            return
        if not repeatable(model):
            return
        weights = None if weights is None else np.asarray(to_numpy(weights), dtype=np.float64)
        try:
            self.engine = TrainedEngine(
                question.estimator,
                question.X,
                question.y,
                weights,
                question.splits,
                0 if question.classes is None else len(question.classes),
                self.max_bytes,
            )
        except (ValueError, TypeError):
            return  # what the first training set refuses, a literal fit complains of

    def _say_literal(self) -> None:
        question = self.question
        if self._route.name == "refit":
            reason = f"fitonce has no closed form for {type(question.estimator).__name__}"
            advice = (
                "Pass one of fitonce's estimators, or a pipeline that ends in one, to avoid that."
            )
        elif question.mode == "resplit" and label_free(question.estimator):
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
        if self.engine is not None:
            return Route(self.engine.route, self._route.reason, self.fitted_one_by_one)
        return Route("refit", self._route.reason, self.fitted_one_by_one)

    @property
    def block_size(self) -> int:
        if self.engine is None:
            return LITERAL_BLOCK
        return self.engine.block_size(self.layout)  # type: ignore[arg-type]

    # ---- scores ----------------------------------------------------------------------------------

    def scores(self, labellings: Sequence[Labelling]) -> dict[str, np.ndarray]:
        """Scores (B, …) of every measure."""
        return self.scores_of(Batch(self.question, labellings))

    def scores_of(self, batch: Batch) -> dict[str, np.ndarray]:
        """Scores (B, …) of every measure for a batch, which may be that of another evaluation of
        the same labels and folds.
        """
        labellings = batch.labellings
        B = len(labellings)
        parts: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        by_engine = np.zeros(B, dtype=bool)
        if self.engine is not None:
            for members, outputs in self._outputs(batch):
                parts.append((members, self._of_outputs(outputs)))
                by_engine[members] = True
        literal = np.arange(B) if self.scoring.fitted else np.flatnonzero(~by_engine)
        if len(literal):
            parts += self._literal_scores(labellings, literal, by_engine)
        result: dict[str, np.ndarray] = {}
        for members, scores in parts:
            for name, values in scores.items():
                if name not in result:
                    result[name] = np.empty((B, *values.shape[1:]))
                result[name][members] = values
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
        engine, values = self.engine, batch.values
        assert engine is not None and self.layout is not None
        if not self.scoring.batched or not all(
            m.plain for m in self.scoring.measures if m.metric is None
        ):
            self.scoring.literal |= {
                m.name for m in self.scoring.measures if m.metric is None and not m.plain
            }
        members = np.flatnonzero(batch.fixed)
        if len(members):
            chosen = members[engine.regular([self.layout], values[members])]
            if len(chosen):
                yield (
                    chosen,
                    engine.fixed(
                        self.layout, values if len(chosen) == len(values) else values[chosen]
                    ),
                )
        for numbers, layouts in batch.others:
            regular = engine.regular(layouts, values[numbers])
            if regular.any() and engine.route == "one":
                kept = [layout for layout, good in zip(layouts, regular, strict=True) if good]
                yield (
                    numbers[regular],
                    cast(SharedEngine, engine).each(kept, values[numbers[regular]]),
                )

    def _literal_scores(
        self, labellings: Sequence[Labelling], which: np.ndarray, by_engine: np.ndarray
    ) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        jobs = []
        for number in which.tolist():
            labelling = labellings[number]
            wanted = self.scoring.fitted if by_engine[number] else self.scoring.measures
            jobs.append(
                (
                    self.fitter,
                    self.scoring,
                    self.question.permuted(labelling.rearrangement),
                    labelling.splits,
                    wanted,
                )
            )
        self.fitted_one_by_one += len(jobs)
        if self.n_jobs in (None, 1) or len(jobs) == 1:
            results = [_fitted_scores(*job) for job in jobs]
        else:
            results = Parallel(n_jobs=self.n_jobs)(delayed(_fitted_scores)(*job) for job in jobs)
        return [(np.array([number]), scores) for number, scores in zip(which, results, strict=True)]


def _fitted_scores(
    fitter: Fitter, scoring: Scoring, y: Any, splits: list[Split], which: list[Any]
) -> dict[str, np.ndarray]:
    return scoring.of_fits(
        fitter.folds(y, splits, real=not all(measure.plain for measure in which)), which
    )


def _has_zeros(weights: Any) -> bool:
    return weights is not None and not bool(np.all(np.asarray(to_numpy(weights)) > 0))
