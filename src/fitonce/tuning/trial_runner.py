"""Trials of a search, one after the other or side by side, and the decomposition of the best."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from ..core.holdout import Smoother
from ..core.memory import size_text
from ..core.numerical_warnings import warn_numerical, warnings_held_back, warnings_once
from ..core.progress import has_callback, report_progress
from ..core.rows import on_host
from .decompose import MATRICES
from .gamma_search import FARTHEST, search
from .trials import Parameters, Trial, Trials, described
from .tuner import Tuner
from .weights import search_sum

HALF = 0.5  # of the loss of a constant model: with less, something is predicted
KEEP_BEST_UP_TO = 1000  # rows; above, the best decomposition is given up before another is made
SECONDS = {"all": 2e-10, "one": 4e-11}  # over n³, of one core: 1,600 s at n = 20,000
TOGETHER_UP_TO = 300  # rows; with more, decompositions take most of the time: eigh grows as n³


def _trial_alone(tuner: Tuner, parameters: Parameters) -> tuple[Trial, list[str]]:
    """A trial for another process or thread, and its warnings: its decomposition stays there."""
    with warnings_held_back() as messages:
        (trial,) = tuner.judged([tuner.candidates(parameters)])
        return trial.light(), messages


class TrialRunner:
    """Tries what is to be tuned, on all rows or on a sample of them, and keeps the decomposition
    of the best trial on all rows.

    `task` is a context for each trial; `seen` is told of it, with its decomposition where that is
    in this process.
    """

    def __init__(
        self,
        tuner: Tuner,
        n_jobs: int | None = None,
        task: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
        seen: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        self.tuner, self.sample, self.task, self.seen = tuner, tuner.sample(), task, seen
        self.branches = tuner.specification.branches(tuner.data)
        alone = len(self.branches) == 1 and self.branches[0].lattice is None
        self.n_jobs = n_jobs if not alone and effective_n_jobs(n_jobs) > 1 else None
        exact = tuner.data.landmarks is None and tuner.data.columns is None
        self.together = exact and tuner.data.X.shape[0] <= TOGETHER_UP_TO
        self.best: Trial | None = None

    def search(self) -> tuple[Trials, Trial]:
        """Everything that was tried, and the winner with its decomposition."""
        with warnings_once():
            trials = self.trials()
            winner, best = trials.winner, self.best
            if best is None or best.problem is None or best.parameters != winner.parameters:
                return trials, replace(winner, problem=self.tuner.problem(winner.parameters))
        return trials, replace(winner, problem=best.problem, path=best.path)

    def warn_at_edges(self, winner: Trial, smoother: Smoother) -> None:
        """Warn if the criterion still decreases at the end of the range that was tried."""
        edge = winner.falling_edge
        if self.tuner.specification.alphas is None and edge is not None:
            if edge == "upper":
                reason = (
                    "larger values give a constant model; this kernel finds no effect in these data"
                )
            elif smoother.lower_bound > 0:
                reason = 'this indefinite kernel does not allow smaller values; penalty="dual" does'
            elif winner.loss < HALF * winner.losses[-1]:  # the largest alpha: a constant model
                reason = (
                    "smaller values are below double precision; the targets seem to have little "
                    "noise, or the kernel is very smooth"
                )
            else:
                reason = (
                    "smaller values are below double precision; the features may not predict the "
                    "targets"
                )
            warn_numerical(
                f"the best alpha, {winner.alpha:.3g}, is at the {edge} end of the range tried: "
                f"{reason}."
            )
        others = winner.parameters.items()
        lattices = [branch.lattice for branch in self.branches if branch.other.items() <= others]
        if lattices and lattices[0] is not None:
            gamma = winner.parameters["gamma"]
            step = np.log2(gamma) - lattices[0].centre
            if abs(step) > FARTHEST:
                smooth = "such a smooth kernel is nearly linear: try kernel='linear'"
                advice = smooth if step < 0 else "scale the features, or set gamma"
                warn_numerical(
                    f"the best gamma, {gamma:.3g}, is at the end of the range tried; {advice}."
                )

    def trials(self) -> Trials:
        """Everything that was tried."""
        sample, before = self.sample, None
        if not self.tuner.specification.tunes_sum:
            return search(self, self.branches, sampled=sample is not None)
        if sample is not None:
            before = search_sum(partial(self, sample=True), sample)
        return search_sum(self, self.tuner, before)

    def __call__(
        self, several: Sequence[Parameters], *, sample: bool = False, alpha: float | None = None
    ) -> list[Trial]:
        """Trials with every alpha, or with one, on all rows or on the sample: in one batch where
        that saves overhead, which counts where rows are few.
        """
        tuner = self.sample if sample and self.sample is not None else self.tuner
        if self.n_jobs is not None and alpha is None:
            return self._side_by_side(tuner, several)
        batches = [several] if self.together and several else [[each] for each in several]
        return [trial for batch in batches for trial in self._here(tuner, batch, alpha)]

    def _here(
        self, tuner: Tuner, batch: Sequence[Parameters], alpha: float | None
    ) -> Iterator[Trial]:
        """Trials in this process; the decomposition of the best one on all rows is kept."""
        given = []
        for parameters in batch:
            probes = alpha is not None and tuner.probes(parameters)
            many = tuner.data.X.shape[0] > KEEP_BEST_UP_TO and tuner.data.landmarks is None
            if tuner is self.tuner and self.best is not None and many and not probes:
                self.best = self.best.light()
            named = {n: v for n, v in parameters.items() if n != "penalty"}
            with self.task(described(named) or "decompose"):
                given.append(tuner.candidates(parameters, alpha))
        for tried in tuner.judged(given):
            self.seen(tried)
            trial = tried.light()
            best = self.best
            # all alphas of a kernel replace those probed there: the same losses, but for rounding
            better = best is None or best.probes(trial) or Trials([best, trial]).winner is trial
            if tuner is self.tuner and better:
                self.best = tried
            yield trial

    def _side_by_side(self, tuner: Tuner, several: Sequence[Parameters]) -> list[Trial]:
        """Trials in other processes, with their warnings; no decomposition comes back."""
        jobs = (delayed(_trial_alone)(tuner, parameters) for parameters in several)
        found: list[tuple[Trial, list[str]]] = Parallel(n_jobs=self.n_jobs)(jobs)
        for trial, messages in found:
            for message in messages:
                warn_numerical(message)
            self.seen(trial)
        return [trial for trial, _ in found]


class SearchProgress:
    """What a search will take, then each trial: to whoever listens, or as lines on the standard
    error stream where `verbose` asks for them.
    """

    def __init__(self, runner: TrialRunner, verbose: int) -> None:
        branches, data = runner.branches, runner.tuner.data
        n_sampled = 0 if runner.sample is None else int(runner.sample.data.X.shape[0])
        first = sum(1 if b.lattice is None else len(b.lattice.first()) for b in branches)
        kernels = len({branch.kernel for branch in branches})  # most go no further than these
        trials = first + 2 * sum(b.lattice is not None for b in branches) // kernels
        walks = len(branches) // kernels if n_sampled else 0
        self.verbose, self.done, self.start = verbose, 0, time.perf_counter()
        self.expected = trials + 3 * walks  # after a sample, decompositions and factorizations
        n, p = data.X.shape
        line = f"{n:,} rows, {p:,} features, "
        line += f"{self.expected} kernels" if self.expected > 1 else "one kernel"
        line += f", most of them on {n_sampled:,} rows" if n_sampled else ""
        if data.landmarks is not None:
            line += f", {data.landmarks.points.shape[0]:,} landmarks"
        elif on_host(data.X):
            whole = trials * (n_sampled / n) ** 3 + 2.0 * walks if n_sampled else trials
            line += _exact_cost(n, whole, runner.tuner.first_alpha({}) is not None)
        self._print(line)

    def _print(self, line: str) -> None:
        if self.verbose and not has_callback():
            print(f"fitonce: {line}", file=sys.stderr, flush=True)

    def tried(self, trial: Trial) -> None:
        """A trial is done: report it."""
        self.done += 1
        values = described(trial.parameters)
        total = max(self.expected, self.done)
        what = f"{values or 'kernel'}, best alpha {trial.alpha:.4g}, loss {trial.loss:.5g}"
        if self.expected > 1:
            report_progress(self.done, total, "kernels tried")
        elapsed = _duration(time.perf_counter() - self.start)
        self._print(f"{self.done} of about {total}: {what} ({elapsed})")


def _exact_cost(n: int, kernels: float, one_alpha: bool) -> str:
    """Time and memory of the decompositions of n rows, or of factorizations for one alpha."""
    step = "one" if one_alpha else "all"
    seconds = SECONDS[step] * n**3 * kernels
    line = f", exact: about {_duration(seconds)} on one core and "
    line += size_text(8 * MATRICES[step] * n**2)
    return line if seconds < 60 else f"{line}; landmarks=500 would take seconds"


def _duration(seconds: float) -> str:
    """Seconds in words, in the unit that suits them."""
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
