"""The search: candidates → held-out scores → criterion → choice.

A `Tuner` takes only values: rows, what is tuned, how labels are read, the splits. `fit`, nested
cross-validation, permutations with tuning and the command line all use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ..core.arrays import NotPositiveDefiniteError, to_numpy
from ..core.criteria import ANYWHERE, HeldOutScores
from ..core.doubt import doubts_once
from ..core.holdout import Deletion, Path
from ..core.readout import Readout
from ..core.resolvent import Resolvent
from ..core.smoothers import FunctionNorm
from .best import Best, Evaluated, Watch
from .costs import alphas_at_once, check_fits
from .data import Data
from .exact import exact_problem
from .fit_criteria import fit_losses
from .lattice import alpha_lattice
from .on_landmarks import confounded_landmarks, landmark_problem
from .problem import Problem
from .sample import SAMPLED_FROM, Sample, sample_of
from .search import Branch, Evaluate, Search, TargetTrial, Trial
from .specification import Specification
from .targets import TargetLosses
from .walk import Stages, search
from .weights import search_sum

FACTORED_FROM = 1000  # rows: below, eigenvectors for all alphas cost less than a tenth of a second
KEPT_ELEMENTS = 1 << 26  # of a path over alpha that is kept for the fit at one of its values

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Tuned:
    """What a search found: all trials, the winner, its decomposition, and its path if that was
    kept.
    """

    found: Search
    winner: Trial
    problem: Problem
    path: Path | None = None
    refinement: Any = None


@dataclass(frozen=True)
class Tuner:
    """Everything that a choice depends on.

    `deletions` are the splits, None for leave-one-out. `make` may hand out problems that others
    have decomposed already (nested permutations share theirs). `drawn` is the sample that the rows
    are, where they are one.
    """

    data: Data
    specification: Specification
    readout: Readout
    deletions: Sequence[Deletion] | None = None
    make: Callable[[Tuner, Parameters], Problem] | None = field(default=None, compare=False)
    drawn: Sample | None = field(default=None, compare=False)
    verbose: int = field(default=0, compare=False)

    # ---- decompositions ------------------------------------------------------------------------

    def problem(
        self,
        parameters: Mapping[str, Any],
        mu: float | None = None,
        whole: Callable[[], Resolvent] | None = None,
    ) -> Problem:
        """The decomposition at some values of the tuned parameters; for one mu only, if given, or
        for that one first, if `whole` makes the factorization for others.
        """
        data, spec = self.data, self.specification
        kernel = spec.kernel_at(data, parameters)
        penalty = parameters.get("penalty", spec.penalty)
        if data.landmarks is not None and data.confounds is not None:
            return confounded_landmarks(data, kernel, penalty, mu)
        if data.landmarks is not None:
            return landmark_problem(data, kernel, penalty, spec.fit_intercept, spec.dropping)
        with check_fits(data.X, kernel, penalty, mu, copied=whole is not None):
            # a decomposition overwrites a precomputed kernel: all but the last one get a copy
            if kernel.precomputed and (whole is not None or len(self.branches()) > 1):
                data = replace(data, X=data.X + 0.0)
            return exact_problem(data, kernel, penalty, spec.fit_intercept, mu, whole)

    def _resolvent(self, parameters: Mapping[str, Any]) -> Resolvent:
        """The factorization of the exact model with the function norm, for any mu."""
        smoother = self.problem(parameters).of_kernel
        assert isinstance(smoother, FunctionNorm)
        return smoother.resolvent

    def alphas(self, problem: Problem) -> np.ndarray:
        """The candidates for alpha: those given, or powers of two placed by the decomposition."""
        given = self.specification.alphas
        if given is None:
            return alpha_lattice(problem.smoother, self.data.total_weight)
        return np.unique(given)

    # ---- scores --------------------------------------------------------------------------------

    def losses(self, problem: Problem, alphas: np.ndarray) -> np.ndarray:
        """The criterion for every alpha."""
        return self._losses(problem, alphas)[0]

    def _losses(self, problem: Problem, alphas: np.ndarray) -> tuple[np.ndarray, Path | None]:
        """A chunk of alphas at a time; and the path, where there is one chunk of leave-one-out."""
        n, t = self.data.targets.shape
        if self.deletions is None and self.specification.criterion.name == "squared_error":
            summed = problem.squared_errors(alphas)
            if summed is not None:
                return np.where(np.isfinite(summed), summed, np.inf), None
        chunk = alphas_at_once(n, t, len(alphas), self.data.landmarks is not None)
        parts = [alphas[start : start + chunk] for start in range(0, len(alphas), chunk)]
        losses, path = [], None
        for part in parts:
            path = problem.path(part) if self.deletions is None else None
            losses.append(self._judge(problem, part, path))
        result = np.concatenate(losses)
        if not np.isfinite(result).any():
            raise ValueError(
                "the criterion is not finite for any alpha, so none can be chosen: scale the "
                "targets, or use larger candidates; a user-defined criterion must return a number "
                "for every split."
            )
        small = len(alphas) * n * (t + 1) <= KEPT_ELEMENTS or len(alphas) == 1
        kept = path if len(parts) == 1 and small else None
        return np.where(np.isfinite(result), result, np.inf), kept

    def _judge(self, problem: Problem, alphas: np.ndarray, path: Path | None) -> np.ndarray:
        criterion = self.specification.criterion
        if not criterion.of_the_fit:
            return criterion.losses(self.scores(problem, alphas, path))
        if path is None:
            raise ValueError(
                f"criterion={criterion.given!r} uses the fit of all rows and cannot be combined "
                "with cv or groups: leave them out, or use a criterion of held-out rows such as "
                "squared_error."
            )
        return fit_losses(criterion.given, problem, path)

    def scores(self, problem: Problem, alphas: np.ndarray, path: Path | None) -> HeldOutScores:
        """Held-out outputs of every candidate, on the host if the criterion needs them there;
        discriminants on the axes of the fit of all rows.
        """
        data = self.data
        predicted, rows, fold = problem.held_out_targets(alphas, self.deletions, path)
        evidence = problem.evidences(alphas) if self.readout.needs_scatter else None
        ranks = self.specification.criterion.ranks
        accuracy = problem.smoother.accuracy(alphas) if ranks else None
        classes = self.readout.class_scores(predicted, evidence, accuracy)
        decision, separation = (None, None) if classes is None else map(to_numpy, classes)
        weights = np.ones(len(rows)) if data.weights is None else data.weights[rows]
        codes = None if data.codes is None else data.codes[rows]
        stays = self.specification.criterion.name in ANYWHERE
        return HeldOutScores(
            predicted if stays else to_numpy(predicted),
            data.targets[rows],
            weights,
            fold,
            decision,
            codes,
            separation,
            data.y[rows],
            data.classes,
        )

    # ---- search --------------------------------------------------------------------------------

    def evaluate(self, parameters: Parameters) -> Evaluated:
        """All candidates for alpha at some values of the other parameters."""
        problem = self.decomposed(parameters) if self.make is None else self.make(self, parameters)
        alphas = self.alphas(problem)
        problem.check(alphas)
        return self.judged(problem, alphas, parameters)

    def factors(self, parameters: Parameters) -> bool:
        """Whether a single alpha is cheaper than all: the dual norm needs the eigenvectors, and a
        likelihood the eigenvalues.
        """
        spec = self.specification
        function_norm = parameters.get("penalty", spec.penalty) == "function"
        return bool(function_norm and not spec.criterion.of_the_fit and not spec.each_target)

    def first_alpha(self, parameters: Parameters) -> float | None:
        """The only candidate for alpha, where a model of it alone is cheaper than all and others
        are seldom asked for: in regression with many rows.
        """
        given, data = self.specification.alphas, self.data
        exact = data.landmarks is None and data.confounds is None
        many = data.classes is None and data.X.shape[0] >= FACTORED_FROM
        if given is None or len(np.unique(given)) > 1:
            return None
        return float(given[0]) if exact and many and self.factors(parameters) else None

    def decomposed(self, parameters: Parameters) -> Problem:
        """The decomposition for all candidates for alpha. Where there is a single one, its model
        comes first, from a Cholesky factorization, and the rest when it is asked for.
        """
        alpha = self.first_alpha(parameters)
        if alpha is None:
            return self.problem(parameters)
        return self.problem(parameters, alpha, lambda: self._resolvent(parameters))

    def evaluate_at(self, parameters: Parameters, alpha: float) -> Evaluated:
        """A single alpha, from a Cholesky factorization; all of them where that is no cheaper, or
        where it fails.
        """
        if self.make is not None:
            return self.judged(self.make(self, parameters), np.array([alpha]), parameters)
        if not self.factors(parameters):
            return self.evaluate(parameters)
        try:
            problem = self.problem(parameters, alpha)
        except NotPositiveDefiniteError:
            return self.evaluate(parameters)
        trial = self.judged(problem, np.array([alpha]), parameters).trial
        return Evaluated(trial, None, None)

    def judged(
        self, problem: Problem, alphas: np.ndarray, parameters: Parameters | None = None
    ) -> Evaluated:
        """Some candidates for alpha on a decomposition that is there."""
        sampled = None if self.drawn is None else len(self.drawn.rows)
        if self.data.columns is not None:
            by_target = self.losses_by_target(problem, alphas)
            make = TargetTrial.of if self.specification.each_target else _of_all_targets
            return Evaluated(make(parameters or {}, alphas, by_target, sampled), problem, None)
        losses, path = self._losses(problem, alphas)
        return Evaluated(Trial(parameters or {}, alphas, losses, sampled), problem, path)

    def branches(self) -> list[Branch]:
        """What is tuned beside alpha."""
        return self.specification.branches(self.data)

    def losses_by_target(self, problem: Problem, alphas: np.ndarray) -> np.ndarray:
        """The criterion for every alpha and target (m, t)."""
        data, criterion = self.data, self.specification.criterion
        assert data.columns is not None
        given = problem, data.columns, self.deletions, data.weights, criterion, self.verbose
        return TargetLosses(*given)(alphas)

    def sample(self) -> Tuner | None:
        """The same on a sample of the rows, where a search over gamma begins with one."""
        data = self.data
        exact = data.landmarks is None
        many = data.X.shape[0] >= SAMPLED_FROM and self.specification.search != "full"
        tuned = self.specification.tunes_gamma or self.specification.tunes_sum
        if not (exact and many and tuned):
            return None
        drawn = sample_of(data, self.deletions)
        deletions = drawn.deletions(self.deletions, data.X.shape[0])
        return replace(self, data=data.rows(drawn.rows), deletions=deletions, drawn=drawn)

    def winner(self) -> Trial:
        """The choice alone."""
        sample, stages = self.sample(), None
        if sample is not None:
            stages = Stages(sample._one_by_one, self._probe)
        return self._found(self._one_by_one, stages).winner

    def _found(self, evaluate: Evaluate, stages: Stages | None) -> Search:
        if self.specification.tunes_sum:
            return search_sum(self, evaluate, stages)
        return search(evaluate, self.branches(), stages)

    def _one_by_one(self, several: Sequence[Parameters]) -> list[Trial]:
        return [self.evaluate(parameters).trial for parameters in several]

    def _probe(self, parameters: Parameters, alpha: float) -> Trial:
        return self.evaluate_at(parameters, alpha).trial

    def search(self, n_jobs: int | None = None, watch: Watch | None = None) -> Tuned:
        """Everything that is to be tuned; the winner's decomposition comes along."""
        branches, sample = self.branches(), self.sample()
        alone = len(branches) == 1 and branches[0].lattice is None
        several = not alone and effective_n_jobs(n_jobs) > 1
        best = Best(self, Watch() if watch is None else watch, n_jobs if several else None)
        evaluate = best.side_by_side if several else best.one_by_one
        stages = None
        if sample is not None:
            stages = Stages(best.of_sample(sample), best.probe)
        with doubts_once():
            found = self._found(evaluate, stages)
            problem, path = best.of(found.winner)
        return Tuned(found, found.winner, problem, path)


def _of_all_targets(
    parameters: Parameters, alphas: np.ndarray, losses: np.ndarray, sampled: int | None
) -> Trial:
    """One alpha for all targets: the mean of their losses (m, t)."""
    return Trial(parameters, alphas, losses.mean(axis=1), sampled)
