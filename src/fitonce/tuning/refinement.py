"""From the best point of the lattice to the local minimum: Newton's method for log alpha, gradients
or a line search for gamma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import scipy.optimize

from ..core.arrays import Array, namespace
from ..core.jets import Jet
from ..kernels import RADIAL, Kernel
from .data import Data
from .fit_criteria import fit_jet
from .gradient import KernelObjective, LossAndSlope
from .newton import NewtonStep, newton
from .problem import Problem
from .search import Search, Trial
from .tuner import Parameters, Tuned, Tuner

ALTERNATIONS = 4  # rounds of gamma, then alpha, where there is no joint gradient
WITHIN = np.log(4.0)  # how far gamma and alpha may move from the lattice point in a line search
CONVERGED = 1e-4  # of log gamma between rounds


@dataclass(frozen=True)
class Refinement:
    """What happened after the lattice: the steps of Newton's method (the last run), and the
    rounds.
    """

    steps: list[NewtonStep] = field(default_factory=list)
    rounds: list[dict[str, float]] = field(default_factory=list)


# ---- smooth losses -------------------------------------------------------------------------------


def squared_loss(total: float) -> LossAndSlope:
    """Σ e²/total and its slope."""

    def loss(e: Array) -> tuple[float, Array]:
        return float(namespace(e).sum(e**2)) / total, 2.0 * e / total

    return loss


def smoothed_loss(problem: Problem, compression: float) -> LossAndSlope:
    """Mean of σ(-γ y (y - e)) for ±1 targets as a function of the (scaled) residuals e, and its
    slope.
    """
    weights = problem.row_weights / namespace(problem.targets).sum(problem.row_weights)

    def loss(e: Array) -> tuple[float, Array]:
        xp = namespace(e)
        margin = 1.0 - problem.targets * problem.unscale(e)
        s = _falling_sigmoid(compression * margin)
        slope = weights * compression * s * (1.0 - s) * problem.targets
        return float(xp.sum(weights * s)), problem.unscale(slope)

    return loss


def _falling_sigmoid(x: Array) -> Array:
    """σ(-x), without overflow."""
    return 0.5 - 0.5 * namespace(x).tanh(0.5 * x)


def smoothed_jet(margin: Jet, compression: float, weights: Array) -> Jet:
    """Weighted mean of σ(-γ · margin) with its derivatives."""
    s = _falling_sigmoid(compression * margin.value)
    first = -compression * s * (1.0 - s)
    second = compression**2 * s * (1.0 - s) * (1.0 - 2.0 * s)
    losses: Jet = margin.through(s, first, second) * (weights / namespace(weights).sum(weights))
    return losses.sum()


def loss_jet(tuner: Tuner, problem: Problem, mu: float) -> Jet | None:
    """The criterion with two derivatives in log mu, by leave-one-out, where it has them."""
    criterion = tuner.specification.criterion
    if criterion.of_the_fit:
        return fit_jet(criterion.given, problem, mu)
    if criterion.name not in ("squared_error", "smoothed_error"):
        return None
    jets = problem.of_kernel.jets(problem.projected, mu)
    if criterion.name == "squared_error":
        total = tuner.data.total_weight * problem.targets.shape[1]
        mean: Jet = (jets.held_out * jets.held_out).sum() * (1.0 / total)
        return mean
    scatter = jets.residual.map(lambda r: problem.projected.Y.T @ r)
    e = jets.held_out.map(problem.unscale)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # classes may not separate
        margins: Jet | None = tuner.readout.margins(e, scatter, problem.targets, problem.sizes)
        if margins is None:
            return None
        return smoothed_jet(margins, criterion.compression, problem.row_weights)


def loss_and_slope(tuner: Tuner, problem: Problem) -> LossAndSlope | None:
    """The criterion as a function of leave-one-out residuals, with its slope, where gradients in
    the kernel are available.
    """
    criterion = tuner.specification.criterion
    if criterion.name == "squared_error":
        return squared_loss(tuner.data.total_weight * problem.targets.shape[1])
    two_signs = tuner.readout.n_classes == 2 and not tuner.readout.needs_scatter
    if criterion.name == "smoothed_error" and two_signs:
        return smoothed_loss(problem, criterion.compression)
    return None


# ---- the walk ------------------------------------------------------------------------------------


def refine(tuner: Tuner, tuned: Tuned) -> Tuned:
    """The winner of the lattice moved to the nearest minimum of the criterion; never to a worse
    one.

    Gamma first, where it is tuned: jointly with alpha by gradient where the criterion has one
    (function norm, leave-one-out), else in turns with alpha (Saadi et al.), each by a bounded line
    search. Then alpha, by Newton's method where the criterion has derivatives.
    """
    work = _Refiner(tuner, tuned.winner)
    best = _Point(tuned.winner, tuned.problem)
    rounds: list[dict[str, float]] = []
    if "gamma" in tuned.winner.parameters:
        best, rounds = work.gamma(best)
    best, steps = work.alpha(best)
    steps = [step for step in steps if np.isfinite(step.loss)]
    alphas, losses = ([getattr(step, name) for step in steps] for name in ("alpha", "loss"))
    walked = Trial(best.trial.parameters, np.array(alphas), np.array(losses))
    trials = [*tuned.found.trials, *([walked] if steps else []), best.trial]
    refinement = Refinement(steps, rounds)
    return Tuned(Search(trials), best.trial, best.problem, None, refinement)


@dataclass(frozen=True)
class _Point:
    """Where the search stands: one alpha with its loss, and the decomposition."""

    trial: Trial
    problem: Problem

    @property
    def record(self) -> dict[str, float]:
        gamma = float(np.mean(self.trial.parameters["gamma"]))
        return {"gamma": gamma, "alpha": self.trial.alpha, "loss": self.trial.loss}

    def or_better(self, other: _Point) -> _Point:
        return other if other.trial.loss < self.trial.loss else self


def _line(function: Callable[[float], float], start: float, bounds: np.ndarray | None) -> float:
    lower, upper = start - WITHIN, start + WITHIN
    if bounds is not None:
        lower, upper = max(lower, float(bounds[0])), min(upper, float(bounds[1]))
    if not lower < upper:
        return start
    found = scipy.optimize.minimize_scalar(
        function, bounds=(lower, upper), method="bounded", options={"xatol": 1e-3}
    )
    return float(found.x)


class _Refiner:
    def __init__(self, tuner: Tuner, winner: Trial) -> None:
        self.tuner, self.data, self.spec = tuner, tuner.data, tuner.specification
        self.penalty = winner.parameters.get("penalty", self.spec.penalty)
        self.tune_alpha = self.spec.alphas is None
        # leave-one-out of a kernel matrix has derivatives
        self.smooth = tuner.deletions is None and self.data.landmarks is None

    def loss(self, problem: Problem, alpha: float) -> float:
        return float(self.tuner.losses(problem, np.array([alpha]))[0])

    def point(self, parameters: Parameters, alpha: float) -> _Point:
        return self._at(self.tuner.problem(parameters), parameters, alpha)

    def _at(self, problem: Problem, parameters: Parameters, alpha: float) -> _Point:
        loss = np.array([self.loss(problem, alpha)])
        return _Point(Trial(parameters, np.array([alpha]), loss), problem)

    def alpha(self, best: _Point) -> tuple[_Point, list[NewtonStep]]:
        if not self.tune_alpha:
            return best, []
        problem, alpha = best.problem, best.trial.alpha
        window = self.tuner.alphas(problem)[[0, -1]]
        steps: list[NewtonStep] = []
        if self.smooth and loss_jet(self.tuner, problem, alpha) is not None:
            steps = newton(lambda mu: cast(Jet, loss_jet(self.tuner, problem, mu)), alpha, *window)
            alpha = steps[-1].alpha
        else:
            by_line = _line(
                lambda t: self.loss(problem, float(np.exp(t))), np.log(alpha), np.log(window)
            )
            alpha = float(np.exp(by_line))
        return best.or_better(self._at(problem, best.trial.parameters, alpha)), steps

    # ---- gamma ---------------------------------------------------------------------------------

    def gamma(self, best: _Point) -> tuple[_Point, list[dict[str, float]]]:
        objective = self._objective(best)
        return self._alternate(best) if objective is None else self._descend(best, objective)

    def _objective(self, best: _Point) -> KernelObjective | None:
        """The smooth loss in log gamma and log alpha, where there is one: leave-one-out, function
        norm, a kernel of a distance.
        """
        problem, spec = best.problem, self.spec
        loss = loss_and_slope(self.tuner, problem)
        smooth = self.smooth and self.penalty == "function" and self.tune_alpha
        family = best.problem.kernel.function
        if loss is None or not smooth or family not in RADIAL:
            return None
        if spec.fit_intercept == "penalized":
            return None
        start = np.log([best.trial.parameters["gamma"], best.trial.alpha])
        Y, Q0 = problem.projected.Y, problem.smoother.Q0
        kernel = self._kernel_of(best, self.data)
        return KernelObjective(kernel, self.data.X, Y, Q0, problem.row_scale, loss, start)

    def _kernel_of(self, best: _Point, data: Data) -> Callable[[Any], Kernel]:
        """The kernel as a function of gamma."""
        parameters = best.trial.parameters

        def kernel(gamma: Any) -> Kernel:
            return self.spec.kernel_at(data, {**parameters, "gamma": gamma})

        return kernel

    def _descend(
        self, best: _Point, objective: KernelObjective
    ) -> tuple[_Point, list[dict[str, float]]]:
        window = self.tuner.alphas(best.problem)
        gamma, alpha = np.exp(objective.minimise((window[0], window[-1])))
        parameters = {**best.trial.parameters, "gamma": float(gamma)}
        after = best.or_better(self.point(parameters, float(alpha)))
        return after, [best.record, after.record]

    def _alternate(self, best: _Point) -> tuple[_Point, list[dict[str, float]]]:
        rounds = [best.record]
        for _ in range(ALTERNATIONS):
            before = np.log(best.trial.parameters["gamma"])
            parameters, alpha = best.trial.parameters, best.trial.alpha

            def at(t: float, parameters: Parameters = parameters, alpha: float = alpha) -> _Point:
                return self.point({**parameters, "gamma": float(np.exp(t))}, alpha)

            t = _line(lambda t, at=at: at(t).trial.loss, before, None)  # type: ignore[misc]
            best, _ = self.alpha(best.or_better(at(t)))
            rounds.append(best.record)
            if abs(np.log(best.trial.parameters["gamma"]) - before) < CONVERGED:
                break
        return best, rounds
