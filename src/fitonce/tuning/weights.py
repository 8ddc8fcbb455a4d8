r"""The search for weights, and widths, of a sum of kernels, by the gradient of `gradient.py`.

Equal parts first, then each kernel in front, at widths that suit equal parts; from the best
of these down the gradient of the held-out squared error; kernels that are worth nothing are left
out. All of it is judged by the criterion, like any other candidate. Above a thousand rows a sample
of them goes first, and the gradient on all rows starts where the sample ended.

The squared error depends on the targets through YYᵀ alone: more targets than rows are replaced by
as many as there are rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..core.arrays import Array, asarray_like, namespace
from ..core.confounds import ConfoundBasis
from ..core.rows import dense_like
from ..kernels import EUCLIDEAN, GAMMA, RADIAL, WEIGHTS, SumPlan, central_gamma
from .decompose import FitIntercept, bias_basis
from .gamma_search import Attempt
from .gradient import Objective, Term
from .specification import Data
from .trials import Parameters, Trial, Trials
from .tuner import Tuner

SHIFTS = (-4, -2, 0, 2, 4)  # powers of two by which all widths leave their centers at first
IN_FRONT = 0.8  # of the whole, for a kernel in front of the others
MOST_IN_FRONT = 8  # kernels up to which each is put in front once
DESCENTS = 2  # from the best starts
NEGLIGIBLE = 1e-2  # of the whole: kernels with less are tried without, all together
SIMPLER = 1e-4  # of the loss: what a kernel must be worth


def search_sum(attempt: Attempt, tuner: Tuner, sampled: Trials | None = None) -> Trials:
    """Everything that was tried, and the winner; from where a search on a sample ended, if any.

    Cost: a decomposition for each start and end, and for each step of a descent a Cholesky
    factorization, an inversion and a product of n×n matrices.
    """
    work = SumSearch(attempt, tuner)
    starts = work.starts() if sampled is None else attempt([sampled.winner.parameters])
    trials = list(starts)
    best = sorted(starts, key=lambda trial: trial.loss)[:DESCENTS]
    trials += work.tried([work.descend(start) for start in best], trials)
    if not work.tunes_weights:
        return Trials([*(sampled.trials if sampled else []), *trials])
    trials += work.tried(work.pruned(Trials(trials).winner), trials)
    chosen = work.simplest(trials)
    return Trials([*(sampled.trials if sampled else []), *trials], chosen)


class SumSearch:
    """Where to start, where each start leads to, and which kernels can be left out."""

    def __init__(self, attempt: Attempt, tuner: Tuner) -> None:
        self.attempt, self.data, self.spec = attempt, tuner.data, tuner.specification
        self.deletions, self.plan = tuner.deletions, cast(SumPlan, self.spec.kernel)
        self.names = [member.name for member in self.plan.members]
        self.tunes_weights = self.plan.weights is None
        self.tuned = [member for member in self.plan.members if member.tunes_gamma]
        self._variances: dict[Any, float] = {}

    def tried(self, proposed: Iterable[Parameters], trials: Sequence[Trial]) -> list[Trial]:
        """Trials of what has not been tried, once each."""
        new: list[Parameters] = []
        for parameters in proposed:
            if parameters not in new and all(parameters != t.parameters for t in trials):
                new.append(parameters)
        return self.attempt(new)

    def chosen(self, theta: np.ndarray, gammas: Mapping[str, float]) -> Parameters:
        """Weights and widths as parameters; weights in the unit of the whole where alpha is
        tuned.
        """
        found: Parameters = {GAMMA: dict(gammas)} if self.tuned else {}
        if self.tunes_weights:
            if self.spec.alphas is None:
                theta = theta / float(theta @ self.variances(gammas))
            found[WEIGHTS] = dict(zip(self.names, theta.tolist(), strict=True))
        return found

    def variances(self, gammas: Mapping[str, float]) -> np.ndarray:
        """v_b of every kernel."""
        known = self.plan.gammas(self.data.X, self.data.weights, gammas)
        for member in self.plan.members:
            gamma = known.get(member.name)
            if (member.name, gamma) not in self._variances:
                v = replace(member, gamma=gamma).variance(self.data.X, self.data.weights)
                self._variances[member.name, gamma] = v
        return np.array([self._variances[name, known.get(name)] for name in self.names])

    # ---- starts --------------------------------------------------------------------------------

    def starts(self) -> list[Trial]:
        """Equal parts at several widths, then each kernel in front at the best of these."""
        count = len(self.names)
        trials = self.attempt([self._start(np.full(count, 1.0 / count), g) for g in self._widths()])
        if not self.tunes_weights or not 1 < count <= MOST_IN_FRONT:
            return trials
        gammas = Trials(trials).winner.parameters.get(GAMMA, {})
        rest = (1.0 - IN_FRONT) / (count - 1)
        fronts = [np.where(np.arange(count) == b, IN_FRONT, rest) for b in range(count)]
        return [*trials, *self.attempt([self._start(parts, gammas) for parts in fronts])]

    def _widths(self) -> list[dict[str, float]]:
        """All widths at their centers, and together at some distance from these: in powers of two,
        or of its root where gamma multiplies the distance itself and not its square.
        """
        if not self.tuned:
            return [{}]
        X, weights = self.data.X, self.data.weights
        centres = {
            member.name: central_gamma(member.kernel, member.rows(X), weights)
            for member in self.tuned
        }
        roots = {m.name: RADIAL[m.kernel].distance == EUCLIDEAN for m in self.tuned}
        units = {name: 2.0**0.5 if root else 2.0 for name, root in roots.items()}
        return [{n: c * units[n] ** s for n, c in centres.items()} for s in SHIFTS]

    def _start(self, parts: np.ndarray, gammas: Mapping[str, float]) -> Parameters:
        """Parts of the whole θ_b v_b as weights, beside the widths."""
        return self.chosen(parts / self.variances(gammas) if self.tunes_weights else parts, gammas)

    # ---- descents ------------------------------------------------------------------------------

    def descend(self, start: Trial) -> Parameters:
        """Where the gradient leads from a start; at the start's alpha, which weights measure."""
        window = float(start.alphas[0]), float(start.alphas[-1])
        found, gammas, _ = self.objective(start).minimise(window)
        theta, widths = np.zeros(len(self.names)), dict(start.parameters.get(GAMMA, {}))
        for b, weight, gamma in zip(self._with_say(start), found, gammas, strict=True):
            theta[b], member = weight, self.plan.members[b]
            widths |= {member.name: gamma} if member.tunes_gamma else {}
        return self.chosen(theta, widths)

    def _with_say(self, start: Trial) -> list[int]:
        """Numbers of the kernels that a descent moves: without a weight, there is nothing to."""
        return _counting(start) if self.tunes_weights else list(range(len(self.names)))

    def objective(self, start: Trial) -> Objective:
        """The held-out squared error as a function of weights, widths and mu."""
        data, spec, plan, numbers = self.data, self.spec, self.plan, self._with_say(start)
        like = dense_like(data.X)
        Y = asarray_like(_targets(data, spec.criterion.given), like)
        Y = Y if data.row_scale is None else data.row_scale * Y
        gammas = plan.gammas(data.X, data.weights, start.parameters.get(GAMMA))
        terms = [
            Term(m.with_gamma, m.rows(data.X), gammas.get(m.name), m.tunes_gamma)
            for m in (plan.members[b] for b in numbers)
        ]
        theta = np.array(plan.at(data.X, data.weights, start.parameters).weights)
        return Objective(
            terms,
            theta[numbers],
            start.alpha,
            _as_few(Y),
            _free(data, like, spec.fit_intercept),
            data.row_scale,
            data.total_weight * float(data.targets.shape[1]),
            self.deletions,
            tunes_theta=self.tunes_weights,
            tunes_mu=not self.tunes_weights and spec.alphas is None,
            penalized=spec.fit_intercept == "penalized",
        )

    # ---- fewer kernels -------------------------------------------------------------------------

    def pruned(self, trial: Trial) -> list[Parameters]:
        """The same without the kernels that hardly count: the last of them, the last two, and so
        on.
        """
        parts = _theta(trial) * self.variances(trial.parameters.get(GAMMA, {}))
        parts = parts / parts.sum()
        order = [b for b in np.argsort(parts, kind="stable") if 0 < parts[b] < NEGLIGIBLE]
        return [self._without(trial, order[:count]) for count in range(1, len(order) + 1)]

    def _without(self, trial: Trial, numbers: Sequence[int]) -> Parameters:
        theta = _theta(trial)
        theta[list(numbers)] = 0.0
        return self.chosen(theta, trial.parameters.get(GAMMA, {}))

    def simplest(self, trials: list[Trial]) -> Trial:
        """Of what is as good as the best, but for a share of `SIMPLER`, the one with the fewest
        kernels; kernels are left out one by one, which adds to the trials, as long as that is so.
        """
        loss = Trials(trials).winner.loss
        limit = loss + SIMPLER * abs(loss)
        alike = [trial for trial in trials if trial.loss <= limit]
        while alike:
            chosen = min(alike, key=lambda trial: (len(_counting(trial)), trial.loss))
            if len(_counting(chosen)) == 1 or len(self.names) > MOST_IN_FRONT:
                break
            fewer = self.tried([self._without(chosen, [b]) for b in _counting(chosen)], trials)
            trials += fewer
            alike = [trial for trial in fewer if trial.loss <= limit]
        return chosen


def _theta(trial: Trial) -> np.ndarray:
    return np.array(list(trial.parameters[WEIGHTS].values()))


def _counting(trial: Trial) -> list[int]:
    """Numbers of the kernels with a weight."""
    return np.flatnonzero(_theta(trial)).tolist()


def _free(data: Data, like: Array, fit_intercept: FitIntercept) -> Array:
    """What is not penalized: a free bias, and confounds beside it."""
    if data.confounds is None:
        return bias_basis(like, data.row_scale, fit_intercept)
    return ConfoundBasis.of(data.confounds, data.row_scale).Q0


def _targets(data: Data, criterion: Any) -> np.ndarray:
    """The targets, each in its own unit where the criterion is R² of each."""
    if not (isinstance(criterion, str) and criterion == "r2"):
        return data.targets
    spread = np.sqrt(np.average((data.targets - data.targets.mean(axis=0)) ** 2, axis=0))
    return np.asarray(data.targets / np.where(spread > 0, spread, 1.0))


def _as_few(Y: Array) -> Array:
    """Targets with the same YYᵀ, at most as many as rows."""
    return Y if Y.shape[1] <= Y.shape[0] else namespace(Y).linalg.qr(Y.T)[1].T
