r"""Weights, and widths, of a sum of kernels by the exact gradient of the held-out squared error.

For K = Σ_b θ_b K_b and Γ = ∂E/∂K of `gradient.fold_gradient`,

    ∂E/∂log θ_b = θ_b ⟨Γ, K_b⟩        ∂E/∂log γ_b = θ_b ⟨Γ, ∂K_b/∂log γ_b⟩
    ∂E/∂log μ = -⟨Γ, K⟩               since (aK, aμ) is the same model as (K, μ)

so that with tuned weights μ may stay where it is. E depends on the targets through YYᵀ alone: more
targets than rows are replaced by as many as there are rows.

The search: equal parts, then each kernel in front, at widths that suit equal parts; from the best
of these down the gradient; kernels that are worth nothing are left out. All of it is judged by the
criterion, like any other candidate. Above a thousand rows a sample of them goes first, and the
gradient on all rows starts where the sample ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize

from ..core.arrays import Array, NotPositiveDefiniteError, asarray_like, namespace
from ..core.confounds import ConfoundBasis
from ..core.holdout import Deletion
from ..core.inverse import Inverse
from ..core.rows import dense_like
from ..kernels import EUCLIDEAN, GAMMA, RADIAL, WEIGHTS, Member, SumPlan, variance_of
from .data import Data
from .decompose import FitIntercept, bias_basis
from .gradient import IMPASSABLE, fold_gradient
from .search import Evaluate, Parameters, Search, Trial
from .walk import Stages

if TYPE_CHECKING:
    from .tuner import Tuner

SHIFTS = (-4, -2, 0, 2, 4)  # powers of two by which all widths leave their centers at first
IN_FRONT = 0.8  # of the whole, for a kernel in front of the others
MOST_IN_FRONT = 8  # kernels up to which each is put in front once
DESCENTS = 2  # from the best starts
FARTHEST_WEIGHT, FARTHEST_WIDTH = np.log(2.0**16), np.log(2.0**6)
ITERATIONS = 40
NEGLIGIBLE = 1e-2  # of the whole: kernels with less are tried without, all together
SIMPLER = 1e-4  # of the loss: what a kernel must be worth


def search_sum(tuner: Tuner, evaluate: Evaluate, stages: Stages | None = None) -> Search:
    """Everything that was tried, and the winner.

    Cost: a decomposition for each start and end, and for each step of a descent a Cholesky
    factorization, an inversion and a product of n×n matrices.
    """
    sample, work = tuner.sample(), _Search(tuner)
    if sample is None or stages is None:
        trials = work.starts(evaluate)
    else:
        found = search_sum(sample, stages.sample)
        trials = [*found.trials, *evaluate([found.winner.parameters])]
    best = sorted((t for t in trials if t.sampled == work.sampled), key=lambda trial: trial.loss)
    ends = [work.descend(start) for start in best[:DESCENTS]]
    trials = [*trials, *evaluate(_different(ends, trials))]
    winner = Search(trials).winner
    trials = [*trials, *evaluate(_different(work.pruned(winner), trials))]
    return work.simplest(trials, evaluate)


def _different(proposed: Sequence[Parameters], trials: Sequence[Trial]) -> list[Parameters]:
    """What has not been tried, once each."""
    new: list[Parameters] = []
    for parameters in proposed:
        if parameters not in new and all(parameters != trial.parameters for trial in trials):
            new.append(parameters)
    return new


class _Search:
    """Where to start, and where each start leads to."""

    def __init__(self, tuner: Tuner) -> None:
        self.tuner, self.data, self.spec = tuner, tuner.data, tuner.specification
        self.plan: SumPlan = self.spec.kernel
        self.sampled = None if tuner.drawn is None else len(tuner.drawn.rows)
        self.names = [member.name for member in self.plan.members]
        self.centres = {
            member.name: member.central_gamma(self.data.X, self.data.weights)
            for member in self.plan.members
            if member.tunes_gamma
        }

    @property
    def _unit(self) -> dict[str, float]:
        """Two, or its root where gamma multiplies the distance itself and not its square."""
        kinds = {m.name: RADIAL[m.kernel].distance for m in self.plan.members if m.tunes_gamma}
        return {name: 2.0**0.5 if kind == EUCLIDEAN else 2.0 for name, kind in kinds.items()}

    # ---- starts --------------------------------------------------------------------------------

    def starts(self, evaluate: Evaluate) -> list[Trial]:
        """Equal parts at several widths, then each kernel in front at the best of these."""
        shifts = SHIFTS if self.centres else (0,)
        equal = np.full(len(self.names), 1.0 / len(self.names))
        widths = [{n: c * self._unit[n] ** s for n, c in self.centres.items()} for s in shifts]
        trials = evaluate([self.parameters(equal, gammas) for gammas in widths])
        if self.plan.weights is not None or not 1 < len(self.names) <= MOST_IN_FRONT:
            return trials
        gammas = Search(trials).winner.parameters.get(GAMMA, {})
        rest = (1.0 - IN_FRONT) / (len(self.names) - 1)
        fronts = [np.where(np.arange(len(equal)) == b, IN_FRONT, rest) for b in range(len(equal))]
        return [*trials, *evaluate([self.parameters(parts, gammas) for parts in fronts])]

    def parameters(self, parts: np.ndarray, gammas: Mapping[str, float]) -> Parameters:
        """Parts of the whole θ_b v_b as weights, beside the widths."""
        chosen: Parameters = {GAMMA: dict(gammas)} if self.centres else {}
        if self.plan.weights is None:
            theta = parts / self.variances(gammas)
            chosen[WEIGHTS] = dict(zip(self.names, theta.tolist(), strict=True))
        return chosen

    def variances(self, gammas: Mapping[str, float]) -> np.ndarray:
        """v_b of every kernel."""
        known = self.plan.gammas(self.data.X, self.data.weights, gammas)
        matrices = (matrix_of(member, self.data.X, known) for member in self.plan.members)
        return np.array([variance_of(K, self.data.weights) for K in matrices])

    # ---- descents ------------------------------------------------------------------------------

    def descend(self, start: Trial) -> Parameters:
        """Where the gradient leads from a start; at the start's alpha, which weights measure."""
        objective = SumObjective.of(self, start)
        found = objective.minimise((float(start.alphas[0]), float(start.alphas[-1])))
        return self.read(found)

    def read(self, found: Found) -> Parameters:
        """What a descent found as parameters; weights in the unit of the whole where alpha is
        tuned.
        """
        gammas = found.gammas if self.centres else {}
        chosen: Parameters = {GAMMA: gammas} if self.centres else {}
        if self.plan.weights is None:
            theta = found.theta
            if self.spec.alphas is None:
                theta = theta / float(theta @ self.variances(gammas))
            chosen[WEIGHTS] = dict(zip(self.names, theta.tolist(), strict=True))
        return chosen

    def pruned(self, trial: Trial) -> list[Parameters]:
        """The same without the kernels that hardly count: the last of them, the last two, and so
        on.
        """
        if self.plan.weights is not None:
            return []
        gammas = trial.parameters.get(GAMMA, {})
        theta = np.array([trial.parameters[WEIGHTS][name] for name in self.names])
        parts = theta * self.variances(gammas)
        parts = parts / parts.sum()
        order = [b for b in np.argsort(parts, kind="stable") if 0 < parts[b] < NEGLIGIBLE]
        return [self._without(trial, order[:count]) for count in range(1, len(order) + 1)]

    def _without(self, trial: Trial, numbers: Sequence[int]) -> Parameters:
        """The same without some of the kernels."""
        gammas = trial.parameters.get(GAMMA, {})
        theta = np.array([trial.parameters[WEIGHTS][name] for name in self.names])
        theta[list(numbers)] = 0.0
        if self.spec.alphas is None:
            theta = theta / float(theta @ self.variances(gammas))
        weights = dict(zip(self.names, theta.tolist(), strict=True))
        return {**trial.parameters, WEIGHTS: weights}

    def simplest(self, trials: list[Trial], evaluate: Evaluate) -> Search:
        """Of what is as good as the best, but for a share of `SIMPLER`, the one with the fewest
        kernels; kernels are left out one by one as long as that is so.

        A very narrow kernel is nothing but a ridge, which alpha is already: it would have a weight
        and explain nothing.
        """
        best = Search(trials).winner
        if self.plan.weights is not None:
            return Search(trials)
        limit = best.loss + SIMPLER * abs(best.loss)
        alike = [t for t in trials if t.sampled == self.sampled and t.loss <= limit]
        chosen = min(alike, key=lambda trial: (len(_counting(trial)), trial.loss))
        while len(_counting(chosen)) > 1 and len(self.names) <= MOST_IN_FRONT:
            proposed = [self._without(chosen, [b]) for b in _counting(chosen)]
            further = evaluate(_different(proposed, trials))
            trials = [*trials, *further]
            alike = [trial for trial in further if trial.loss <= limit]
            if not alike:
                break
            chosen = min(alike, key=lambda trial: trial.loss)
        return Search(trials, chosen)


def _counting(trial: Trial) -> list[int]:
    """Numbers of the kernels with a weight."""
    return np.flatnonzero(list(trial.parameters[WEIGHTS].values())).tolist()


def matrix_of(member: Member, X: Any, gammas: Mapping[str, float]) -> Array:
    """K_b of the training rows."""
    rows = member.rows(X)
    return member.with_gamma(gammas.get(member.name))(rows, rows)


# ---- the objective -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    theta: np.ndarray
    gammas: dict[str, float]


@dataclass(frozen=True)
class SumObjective:
    """E and its gradient in the logarithms of what is tuned: θ of all kernels, then the widths, and
    mu where weights are given and alpha is not.
    """

    members: tuple[Member, ...]
    data: Data
    Y: Array
    Q0: Array
    deletions: Sequence[Deletion] | None
    penalized: bool
    theta: np.ndarray  # at the start, as all below
    gammas: dict[str, float]
    mu: float
    tunes_theta: bool
    tunes_mu: bool
    known: dict[str, Array] = field(default_factory=dict, compare=False)  # matrices that stay

    @classmethod
    def of(cls, work: _Search, start: Trial) -> SumObjective:
        data, spec, plan = work.data, work.spec, work.plan
        like = dense_like(data.X)
        Y = asarray_like(_targets(data, spec.criterion.given), like)
        Y = Y if data.row_scale is None else data.row_scale * Y
        weights = start.parameters.get(WEIGHTS)
        if weights is None:
            theta = plan.at(data.X, data.weights, start.parameters).weights
        else:
            theta = tuple(weights.values())
        gammas = plan.gammas(data.X, data.weights, start.parameters.get(GAMMA))
        fixed = [member for member in plan.members if not member.tunes_gamma]
        tunes_theta = plan.weights is None
        return cls(
            plan.members,
            data,
            _as_few(Y),
            _free(data, like, spec.fit_intercept),
            work.tuner.deletions,
            spec.fit_intercept == "penalized",
            np.array(theta),
            gammas,
            start.alpha,
            tunes_theta,
            not tunes_theta and spec.alphas is None,
            {member.name: matrix_of(member, data.X, gammas) for member in fixed},
        )

    @property
    def widths(self) -> list[str]:
        """Names of the kernels whose gamma is tuned."""
        return [member.name for member in self.members if member.tunes_gamma]

    @property
    def start(self) -> np.ndarray:
        theta = self.theta.tolist() if self.tunes_theta else []
        widths = [self.gammas[name] for name in self.widths]
        return np.log([*theta, *widths, *([self.mu] if self.tunes_mu else [])])

    def values(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, float], float]:
        """θ, widths and mu of a point."""
        given = np.exp(x).tolist()
        theta = np.array(given[: len(self.theta)]) if self.tunes_theta else self.theta
        rest = given[len(self.theta) :] if self.tunes_theta else given
        gammas = self.gammas | dict(zip(self.widths, rest, strict=False))
        return theta, gammas, rest[-1] if self.tunes_mu else self.mu

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        theta, gammas, mu = self.values(x)
        matrices = [self._matrix(member, gammas) for member in self.members]
        K = sum((t * matrix for t, matrix in zip(theta, matrices, strict=True)), 0.0)
        K = K + 1.0 if self.penalized else K
        scale = self.data.row_scale
        scaled = K + 0.0 if scale is None else K * scale * scale.T
        try:
            inverse = Inverse.of(scaled, self.Q0, mu)
            value, slope = fold_gradient(inverse, self.Y, self.deletions, self._total)
        except NotPositiveDefiniteError:
            return IMPASSABLE, np.zeros_like(x)
        if not np.isfinite(value):  # confounds that lose their rank without some rows
            return IMPASSABLE, np.zeros_like(x)
        slope = slope if scale is None else slope * scale * scale.T
        xp = namespace(slope)
        slopes = []
        if self.tunes_theta:
            slopes += [
                t * float(xp.sum(slope * matrix)) for t, matrix in zip(theta, matrices, strict=True)
            ]
        for t, member in zip(theta, self.members, strict=True):
            if member.tunes_gamma:
                kernel = member.with_gamma(gammas[member.name])
                moved = kernel.log_gamma_slope(member.rows(self.data.X))
                slopes.append(t * float(xp.sum(slope * moved)))
        if self.tunes_mu:
            slopes.append(-float(xp.sum(slope * K)))
        return value, np.array(slopes)

    @property
    def _total(self) -> float:
        return self.data.total_weight * float(self.data.targets.shape[1])

    def _matrix(self, member: Member, gammas: Mapping[str, float]) -> Array:
        if member.name in self.known:
            return self.known[member.name]
        return matrix_of(member, self.data.X, gammas)

    def minimise(self, window: tuple[float, float]) -> Found:
        """L-BFGS-B; what it ends with, or the start where nothing is better."""
        start = self.start
        reach = [FARTHEST_WEIGHT] * (len(self.theta) if self.tunes_theta else 0)
        reach += [FARTHEST_WIDTH] * len(self.widths)
        bounds = [(s - r, s + r) for s, r in zip(start, reach, strict=False)]
        bounds += [(float(np.log(window[0])), float(np.log(window[1])))] * self.tunes_mu
        result = scipy.optimize.minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ITERATIONS},
        )
        theta, gammas, _ = self.values(result.x if result.fun < self(start)[0] else start)
        return Found(theta, {name: gammas[name] for name in self.widths})


def _free(data: Data, like: Array, fit_intercept: FitIntercept) -> Array:
    """What is not penalized: a free bias, and confounds beside it."""
    if data.confounds is None:
        return bias_basis(like, data.row_scale, fit_intercept)
    return ConfoundBasis.of(data.confounds.C, data.row_scale).Q0


def _targets(data: Data, criterion: Any) -> np.ndarray:
    """The targets, each in its own unit where the criterion is R² of each."""
    if not (isinstance(criterion, str) and criterion == "r2"):
        return data.targets
    spread = np.sqrt(np.average((data.targets - data.targets.mean(axis=0)) ** 2, axis=0))
    return np.asarray(data.targets / np.where(spread > 0, spread, 1.0))


def _as_few(Y: Array) -> Array:
    """Targets with the same YYᵀ, at most as many as rows."""
    n, t = Y.shape
    return Y if t <= n else namespace(Y).linalg.qr(Y.T)[1].T


__all__ = ["SumObjective", "search_sum"]
