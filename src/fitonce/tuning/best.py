"""Trials of a search, one after the other or side by side, and the decomposition of the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed

from ..core.doubt import doubts_held_back, warn_numerical
from ..core.holdout import Path
from .problem import Problem
from .search import Evaluate, Search, Trial, described

if TYPE_CHECKING:
    from .tuner import Parameters, Tuner

KEEP_BEST_UP_TO = 1000  # rows; above, the best decomposition is given up before another is made


@dataclass(frozen=True)
class Watch:
    """Who is told of the search: a context for each step of it, a function for each trial, and one
    that may look at its decomposition, where that is in this process.
    """

    task: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()
    tried: Callable[[Trial], None] = lambda trial: None
    evaluated: Callable[[Evaluated], None] = lambda evaluated: None


@dataclass(frozen=True)
class Evaluated:
    """A trial with what was made for it."""

    trial: Trial
    problem: Problem | None
    path: Path | None


def _trial_alone(tuner: Tuner, parameters: Parameters) -> tuple[Trial, list[str]]:
    """A trial for another process or thread, and its doubts: its decomposition stays there."""
    with doubts_held_back() as doubts:
        return tuner.evaluate(parameters).trial, doubts


class Best:
    """Trials one after the other, with the decomposition of the best so far kept beside them; or
    side by side in `n_jobs` processes.
    """

    def __init__(self, tuner: Tuner, watch: Watch, n_jobs: int | None) -> None:
        self.tuner, self.watch, self.n_jobs = tuner, watch, n_jobs
        self.kept: Evaluated | None = None

    def one_by_one(self, several: Sequence[Parameters]) -> list[Trial]:
        return [self._evaluate(parameters) for parameters in several]

    def side_by_side(self, several: Sequence[Parameters]) -> list[Trial]:
        return self._in_processes(self.tuner, several)

    def of_sample(self, sample: Tuner) -> Evaluate:
        """Trials on a sample; their decompositions are not kept."""

        def evaluate(several: Sequence[Parameters]) -> list[Trial]:
            if self.n_jobs is not None:
                return self._in_processes(sample, several)
            return [self._watched(sample.evaluate, parameters).trial for parameters in several]

        return evaluate

    def probe(self, parameters: Parameters, alpha: float) -> Trial:
        if not self.tuner.factors(parameters):
            return self._evaluate(parameters)
        return self._better(self._watched(lambda at: self.tuner.evaluate_at(at, alpha), parameters))

    def _in_processes(self, tuner: Tuner, several: Sequence[Parameters]) -> list[Trial]:
        jobs = (delayed(_trial_alone)(tuner, parameters) for parameters in several)
        found: list[tuple[Trial, list[str]]] = Parallel(n_jobs=self.n_jobs)(jobs)
        for trial, doubts in found:
            for doubt in doubts:
                warn_numerical(doubt)
            self.watch.tried(trial)
        return [trial for trial, _ in found]

    def _evaluate(self, parameters: Parameters) -> Trial:
        data, kept = self.tuner.data, self.kept
        if kept is not None and data.X.shape[0] > KEEP_BEST_UP_TO and data.landmarks is None:
            self.kept = Evaluated(kept.trial, None, None)
        return self._better(self._watched(self.tuner.evaluate, parameters))

    def _watched(
        self, evaluate: Callable[[Parameters], Evaluated], parameters: Parameters
    ) -> Evaluated:
        with self.watch.task(_name(parameters)):
            evaluated = evaluate(parameters)
        self.watch.tried(evaluated.trial)
        self.watch.evaluated(evaluated)
        return evaluated

    def _better(self, evaluated: Evaluated) -> Trial:
        """The trial; its decomposition is kept if it is the best one so far.

        All alphas of a kernel take the place of those that were probed there: both have the same
        losses, but for rounding.
        """
        trial, best = evaluated.trial, None if self.kept is None else self.kept.trial
        if best is None or _covers(trial, best) or Search([best, trial]).winner is trial:
            self.kept = evaluated
        return trial

    def of(self, winner: Trial) -> tuple[Problem, Path | None]:
        kept = self.kept
        if kept is None or kept.problem is None or kept.trial is not winner:
            return self.tuner.decomposed(winner.parameters), None
        return kept.problem, kept.path


def _covers(trial: Trial, probed: Trial) -> bool:
    return trial.parameters == probed.parameters and len(trial.alphas) > len(probed.alphas)


def _name(parameters: Mapping[str, Any]) -> str:
    return described({n: v for n, v in parameters.items() if n != "penalty"}) or "decompose"
