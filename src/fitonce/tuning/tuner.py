"""Candidates → held-out values → criterion.

A `Tuner` takes only values: rows, what is tuned, how labels are read, the splits. `fit`, nested
cross-validation, permutations with tuning and the command line all use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from ..core.arrays import NotPositiveDefiniteError, namespace, to_numpy
from ..core.criteria import BY_TARGET, HeldOutScores
from ..core.holdout import Deletion, Path
from ..core.readout import Evidence, Readout
from ..core.resolvent import Resolvent
from ..core.smoothers import FunctionNorm
from ..core.spectrum import row_blocks
from .fit_criteria import fit_losses
from .gamma_search import alpha_lattice
from .many_targets import block_losses
from .problem import Problem
from .problem_from_rows import confounded_landmarks, exact_problem, landmark_problem
from .specification import PROBED_FROM, SAMPLED_FROM, Data, Sample, Specification, sample_of
from .trials import Parameters, Trial

# held-out values computed together: exactly, and where each time is a pass over the rows
PATH_ELEMENTS = 1 << 24, 1 << 27
KEPT_ELEMENTS = 1 << 26  # of a path over alpha that is kept for the fit at one of its values


@dataclass(frozen=True)
class Candidates:
    """Candidates for alpha on a decomposition, which may be `kept` after they are judged."""

    problem: Problem
    alphas: np.ndarray
    parameters: Parameters = field(default_factory=dict)
    kept: bool = True


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

    def problem(self, parameters: Mapping[str, Any], mu: float | None = None) -> Problem:
        """The decomposition at some values of the tuned parameters; for one mu only, if given.

        Where there is a single candidate for alpha, its model comes first, from a Cholesky
        factorization, and the rest when it is asked for.
        """
        data, spec = self.data, self.specification
        kernel = spec.kernel_at(data, parameters)
        penalty = parameters.get("penalty", spec.penalty)
        if data.landmarks is not None and data.confounds is not None:
            return confounded_landmarks(data, kernel, penalty, mu)
        if data.landmarks is not None:
            given = data, kernel, penalty, spec.fit_intercept, spec.dropping
            return landmark_problem(*given, self.deletions or ())

        first = self.first_alpha(parameters) if mu is None else None
        # a decomposition overwrites a precomputed kernel: all but the last one get a copy
        copied = kernel.precomputed and len(spec.branches(data)) > 1
        made = partial(exact_problem, data, kernel, penalty, spec.fit_intercept)
        if first is None:
            return made(mu, copied=copied)

        def whole() -> Resolvent:
            """The factorization for any other alpha."""
            return cast(FunctionNorm, made(copied=copied).of_kernel).resolvent

        return made(first, whole, copied=True)

    def alphas(self, problem: Problem) -> np.ndarray:
        """The candidates for alpha: those given, or powers of two placed by the decomposition."""
        given = self.specification.alphas
        if given is None:
            coarse = self.specification.search == "coarse"
            return alpha_lattice(problem.smoother, self.data.total_weight, coarse)
        return np.unique(given)

    # ---- losses --------------------------------------------------------------------------------

    def losses(self, problem: Problem, alphas: np.ndarray) -> np.ndarray:
        """The criterion for every alpha and target (m, t), one column if all are judged together;
        infinite where it is undefined.
        """
        losses, _ = self._losses(Candidates(problem, alphas))
        return np.where(np.isfinite(losses), losses, np.inf)

    def _losses(self, given: Candidates) -> tuple[np.ndarray, Path | None]:
        """The losses, and the path where it is one of leave-one-out that is not too large; a few
        alphas at a time, as memory allows.
        """
        criterion, data, problem = self.specification.criterion, self.data, given.problem
        if data.columns is not None:
            of_rows = self.deletions, data.weights, criterion, given.alphas, self.verbose
            return block_losses(problem, data.columns, *of_rows), None
        squares = self.deletions is None and criterion.name == "squared_error"
        errors = problem.squared_errors(given.alphas) if squares else None
        if errors is not None:  # they can be had without residuals
            return errors[:, None], None
        (n, t), m = data.targets.shape, len(given.alphas)
        step = max(1, PATH_ELEMENTS[data.landmarks is not None] // (n * max(t, 2)))
        parts = [replace(given, alphas=given.alphas[part]) for part in row_blocks(m, step)]
        found = [self._judge([part]) for part in parts]
        small = len(parts) == 1 and (m * n * (t + 1) <= KEPT_ELEMENTS or m == 1)
        return np.concatenate([own for own, _ in found]), found[0][1][0] if small else None

    def _judge(self, several: Sequence[Candidates]) -> tuple[np.ndarray, list[Path | None]]:
        """The losses (m, t) of all candidates in one batch, from held-out values or from the fit of
        all rows, and the paths of leave-one-out.
        """
        criterion = self.specification.criterion
        if self.deletions is not None and criterion.of_the_fit:
            raise ValueError(
                f"criterion={criterion.given!r} uses the fit of all rows and cannot be "
                "combined with cv or groups: leave them out, or use a criterion of held-out "
                "rows such as squared_error."
            )
        leaves_one_out = self.deletions is None
        paths = [given.problem.path(given.alphas) if leaves_one_out else None for given in several]
        if not criterion.of_the_fit:
            return criterion.losses(self._scores(several, paths)), paths
        each = zip(several, paths, strict=True)
        losses = [
            fit_losses(criterion.given, given.problem, cast(Path, path)) for given, path in each
        ]
        return np.concatenate(losses), paths

    def _scores(self, several: Sequence[Candidates], paths: Sequence[Path | None]) -> HeldOutScores:
        """Held-out outputs of all candidates in one batch, on the host if the criterion needs them
        there; discriminants on the axes of the fit of all rows.
        """
        data, criterion, evidence, accuracy = self.data, self.specification.criterion, None, None
        held_out = [
            given.problem.held_out_targets(given.alphas, self.deletions, path)
            for given, path in zip(several, paths, strict=True)
        ]
        (first, rows, fold), xp = held_out[0], namespace(held_out[0][0])
        predicted = xp.concat([values for values, _, _ in held_out]) if held_out[1:] else first
        if self.readout.needs_scatter:
            found = [given.problem.evidences(given.alphas) for given in several]
            scatter = xp.concat([each.scatter for each in found])
            evidence = Evidence(scatter, xp.concat([each.sizes for each in found]))
        if criterion.ranks:
            accuracy = np.concatenate(
                [given.problem.smoother.accuracy(given.alphas) for given in several]
            )
        classes = self.readout.class_scores(predicted, evidence, accuracy)
        decision, separation = (None, None) if classes is None else map(to_numpy, classes)
        return HeldOutScores(
            predicted if criterion.name in BY_TARGET else to_numpy(predicted),
            data.targets[rows],
            np.ones(len(rows)) if data.weights is None else data.weights[rows],
            fold,
            decision,
            None if data.codes is None else data.codes[rows],
            separation,
            data.y[rows],
            data.classes,
        )

    # ---- trials --------------------------------------------------------------------------------

    def candidates(self, parameters: Parameters, alpha: float | None = None) -> Candidates:
        """All candidates for alpha at some values of the other parameters; or one alone, from a
        Cholesky factorization, unless that is no cheaper or fails.
        """
        if alpha is not None and self.probes(parameters):
            with suppress(NotPositiveDefiniteError):
                problem = self._made(parameters, alpha)
                return Candidates(problem, np.array([alpha]), parameters, kept=False)
        problem = self._made(parameters)
        alphas = self.alphas(problem)
        problem.check(alphas)
        return Candidates(problem, alphas, parameters)

    def _made(self, parameters: Parameters, mu: float | None = None) -> Problem:
        return self.problem(parameters, mu) if self.make is None else self.make(self, parameters)

    def judged(self, several: Sequence[Candidates]) -> list[Trial]:
        """The trials of candidates on decompositions that are there, in one batch."""
        if len(several) == 1:
            return [self._trial(several[0], *self._losses(several[0]))]
        losses, paths = self._judge(several)
        parts = np.split(losses, np.cumsum([len(given.alphas) for given in several])[:-1])
        return [self._trial(*each) for each in zip(several, parts, paths, strict=True)]

    def _trial(self, given: Candidates, losses: np.ndarray, path: Path | None) -> Trial:
        """Candidates with their losses (m, t)."""
        losses = np.where(np.isfinite(losses), losses, np.inf)
        finite = np.isfinite(losses).any(axis=0)
        if not finite.all():
            which = f" at target number {np.argmin(finite)}" if losses.shape[1] > 1 else ""
            raise ValueError(
                f"the criterion is not finite for any alpha{which}, so that none can be chosen: "
                "scale the targets, or use larger candidates; a user-defined criterion must return "
                "a number for every split."
            )
        sampled = None if self.drawn is None else len(self.drawn.rows)
        trial = Trial(given.parameters, given.alphas, losses.mean(axis=1), sampled)
        if given.kept:
            trial = replace(trial, problem=given.problem, path=path)
        own = self.specification.each_target and self.data.columns is not None
        return trial.each_target(losses) if own else trial

    def factors(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a single alpha is cheaper than all: the dual norm needs the eigenvectors, and a
        likelihood the eigenvalues.
        """
        spec = self.specification
        function_norm = parameters.get("penalty", spec.penalty) == "function"
        return bool(function_norm and not spec.criterion.of_the_fit and not spec.each_target)

    def probes(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a search looks at a neighbor of the best at single alphas: of many rows."""
        return self.factors(parameters) and self.data.X.shape[0] >= PROBED_FROM

    def first_alpha(self, parameters: Mapping[str, Any]) -> float | None:
        """The only candidate for alpha, where a model of it alone is cheaper than all."""
        given, exact = self.specification.alphas, self.data.landmarks is None
        if given is None or len(np.unique(given)) > 1:
            return None
        return float(given[0]) if exact and self.factors(parameters) else None

    def sample(self) -> Tuner | None:
        """The same on a sample of the rows, where a search over gamma begins with one."""
        data, spec = self.data, self.specification
        many = data.landmarks is None and data.X.shape[0] >= SAMPLED_FROM
        if not (many and spec.search == "auto" and (spec.tunes_gamma or spec.tunes_sum)):
            return None
        drawn = sample_of(data, self.deletions)
        deletions = drawn.deletions(self.deletions, data.X.shape[0])
        return replace(self, data=data.rows(drawn.rows), deletions=deletions, drawn=drawn)
