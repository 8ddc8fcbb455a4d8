"""From the best point of the lattice to the local minimum: Newton's method for log alpha, gradients
or a line search for gamma.

Newton's method on t = log mu with step halving is that of Saadi, Talbot & Cawley (2007, section
3.3). A criterion is a smooth function of t, and costs one path for any number of mu. So its
derivatives come from five values a step h apart, whatever it is and by whatever smoother:

    E'  = (E₋₂ - 8E₋₁ + 8E₁ - E₂) / 12h  + O(h⁴)
    E'' = (-E₋₂ + 16E₋₁ - 30E₀ + 16E₁ - E₂) / 12h²  + O(h⁴)

With h = 1/128 both errors are of the order of 1e-10 of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.optimize

from ..core.arrays import Array, namespace
from ..kernels import RADIAL, Kernel
from .gradient import LossAndSlope, Objective, Term, squared_loss
from .problem import Problem
from .trials import Parameters, Trial, Trials
from .tuner import Candidates, Tuner

HALVINGS = 20  # a step is halved at most this often before the search ends
STEPS = 50  # at most: each costs a path at five values of mu, and more where it is halved
CONVERGED = 1e-8  # of a step in log mu
LONGEST_STEP = np.log(4.0)
APART = 2.0**-7  # h: rounding eps/h² and truncation h⁴/90 are both below 1e-10
FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12.0 * APART)
SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / (12.0 * APART**2)

Losses = Callable[[np.ndarray], np.ndarray]  # at some mu (m,)


@dataclass(frozen=True)
class NewtonStep:
    """One step of the search.

    Alpha, the loss and its derivatives in log alpha, and how often the step from here was halved.
    """

    alpha: float
    loss: float
    first: float
    second: float
    halvings: int = 0

    @property
    def newton(self) -> float:
        """-E'/E'', or downhill by as much where the curvature is negative; a factor of four at
        most.
        """
        curvature = abs(self.second)
        step = -self.first / curvature if curvature else -np.sign(self.first) * LONGEST_STEP
        return float(np.clip(step, -LONGEST_STEP, LONGEST_STEP))


def newton(losses: Losses, alpha: float, lowest: float, highest: float) -> list[NewtonStep]:
    """The path from `alpha` to the nearest local minimum of the loss, inside [lowest, highest].

    Each step is Newton's, halved until the loss decreases. The search ends if a step is shorter
    than 1e-8 in log alpha, or halving does not help.
    """
    path = [step_at(losses, np.log(alpha))]
    for _ in range(STEPS):
        here, there = path[-1], path[-1]
        t, step, halvings = np.log(here.alpha), here.newton, 0
        while halvings <= HALVINGS and abs(step) > CONVERGED:
            target = np.clip(t + step, np.log(lowest), np.log(highest))
            there = step_at(losses, float(target))
            if there.loss < here.loss:
                break
            step, halvings = 0.5 * step, halvings + 1
        path[-1] = replace(here, halvings=halvings)
        if not there.loss < here.loss:
            break
        path.append(there)
    return path


def step_at(losses: Losses, t: float) -> NewtonStep:
    """The loss at log alpha = t with two derivatives."""
    around = losses(np.exp(t + APART * np.arange(-2, 3)))
    with np.errstate(invalid="ignore"):  # the loss may be infinite
        first, second = float(FIRST @ around), float(SECOND @ around)
    return NewtonStep(float(np.exp(t)), float(around[2]), first, second)


ALTERNATIONS = 4  # rounds of gamma, then alpha, where there is no joint gradient
WITHIN = np.log(4.0)  # how far gamma and alpha may move from the lattice point in a line search
CLOSE_ROUNDS = 1e-4  # of log gamma between rounds


@dataclass(frozen=True)
class Refinement:
    """What happened after the lattice: the steps of Newton's method (the last run), and the
    rounds.
    """

    steps: list[NewtonStep] = field(default_factory=list)
    rounds: list[dict[str, float]] = field(default_factory=list)


# ---- smooth losses -------------------------------------------------------------------------------


def smoothed_loss(problem: Problem, compression: float) -> LossAndSlope:
    """Mean of σ(-γ y (y - e)) for ±1 targets as a function of the (scaled) residuals e, and its
    slope.
    """
    weights = problem.row_weights / namespace(problem.targets).sum(problem.row_weights)

    def loss(e: Array) -> tuple[float, Array]:
        xp = namespace(e)
        margin = 1.0 - problem.targets * problem.unscale(e)
        s = 0.5 - 0.5 * xp.tanh(0.5 * compression * margin)  # σ(-γ margin), without overflow
        slope = weights * compression * s * (1.0 - s) * problem.targets
        return float(xp.sum(weights * s)), problem.unscale(slope)

    return loss


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


# ---- to the minimum ------------------------------------------------------------------------------


def refine(tuner: Tuner, trials: Trials, winner: Trial) -> tuple[Trials, Trial, Refinement]:
    """The winner of the lattice moved to the nearest minimum of the criterion; never to a worse
    one.

    Gamma first, where it is tuned: jointly with alpha by gradient where the criterion has one
    (function norm, leave-one-out), else in turns with alpha (Saadi et al.), each by a bounded line
    search. Then alpha, by Newton's method where the criterion has derivatives.
    """
    best, rounds = winner, list[Trial]()
    if "gamma" in winner.parameters:
        objective = _objective(tuner, winner)
        rounds = _in_turns(tuner, winner) if objective is None else [winner]
        if objective is not None:
            window = _window(tuner, winner)
            _, (gamma,), alpha = objective.minimise(window)
            rounds.append(_better(winner, _at_gamma(tuner, winner, float(gamma), alpha)))
        best = rounds[-1]
    best, steps = _refined_alpha(tuner, best)
    alphas, losses = ([getattr(step, name) for step in steps] for name in ("alpha", "loss"))
    walked = Trial(best.parameters, np.array(alphas), np.array(losses))
    found = Trials([*trials.trials, *([walked] if steps else []), best.light()])
    return found, best, Refinement(steps, [_record(each) for each in rounds])


def _record(trial: Trial) -> dict[str, float]:
    gamma = float(np.mean(trial.parameters["gamma"]))
    return {"gamma": gamma, "alpha": trial.alpha, "loss": trial.loss}


def _better(one: Trial, other: Trial) -> Trial:
    return other if other.loss < one.loss else one


def _window(tuner: Tuner, at: Trial) -> tuple[float, float]:
    """The first and the last candidate for alpha."""
    alphas = tuner.alphas(at.problem)
    return float(alphas[0]), float(alphas[-1])


def _at_gamma(tuner: Tuner, at: Trial, gamma: float, alpha: float) -> Trial:
    """The same with another gamma and alpha."""
    parameters: Parameters = {**at.parameters, "gamma": gamma}
    return _judged(tuner, tuner.problem(parameters), alpha, parameters)


def _judged(tuner: Tuner, problem: Problem, alpha: float, parameters: Parameters) -> Trial:
    """The trial of one alpha on a decomposition."""
    return tuner.judged([Candidates(problem, np.array([alpha]), parameters)])[0]


def _line(loss: Callable[[float], float], start: float, window: tuple[float, float]) -> float:
    """Where a bounded line search on the logarithm ends, near the start."""
    at = np.log(start)
    lower, upper = max(at - WITHIN, np.log(window[0])), min(at + WITHIN, np.log(window[1]))
    if not lower < upper:
        return start
    found = scipy.optimize.minimize_scalar(
        lambda t: loss(float(np.exp(t))),
        bounds=(lower, upper),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return float(np.exp(found.x))


def _smooth(tuner: Tuner) -> bool:
    """Whether models leave out single rows of a kernel matrix, in closed form."""
    return tuner.deletions is None and tuner.data.landmarks is None


def _refined_alpha(tuner: Tuner, at: Trial) -> tuple[Trial, list[NewtonStep]]:
    """The best alpha near one, by Newton's method or a line search, and the steps to it."""
    problem = at.problem
    if tuner.specification.alphas is not None:
        return at, []
    window, steps, alpha = _window(tuner, at), list[NewtonStep](), at.alpha

    def losses(mus: np.ndarray) -> np.ndarray:
        return np.asarray(tuner.losses(problem, mus).mean(axis=1))

    if _smooth(tuner) and tuner.specification.criterion.differentiable(tuner.readout.n_classes):
        steps = newton(losses, alpha, *window)
        alpha = steps[-1].alpha
    else:
        alpha = _line(lambda mu: float(losses(np.array([mu]))[0]), alpha, window)
    return _better(at, _judged(tuner, problem, alpha, at.parameters)), steps


def _objective(tuner: Tuner, at: Trial) -> Objective | None:
    """The smooth loss in log gamma and log alpha, where there is one: leave-one-out, function
    norm, a kernel of a distance.
    """
    problem, spec, parameters = at.problem, tuner.specification, at.parameters
    loss = loss_and_slope(tuner, problem)
    function_norm = parameters.get("penalty", spec.penalty) == "function"
    plain = function_norm and spec.alphas is None and spec.fit_intercept != "penalized"
    if loss is None or not (_smooth(tuner) and plain and problem.kernel.function in RADIAL):
        return None

    def kernel(gamma: Any) -> Kernel:
        return spec.kernel_at(tuner.data, {**parameters, "gamma": gamma})

    term = Term(kernel, tuner.data.X, parameters["gamma"], tunes_gamma=True)
    scaled = problem.projected.Y, problem.smoother.Q0, problem.row_scale
    return Objective([term], np.ones(1), at.alpha, *scaled, loss)


def _in_turns(tuner: Tuner, start: Trial) -> list[Trial]:
    """The best of every round of gamma, then alpha, the start first."""
    rounds = [start]
    for _ in range(ALTERNATIONS):
        best = rounds[-1]
        gamma, alpha = best.parameters["gamma"], best.alpha

        def loss(at: float, best: Trial = best, alpha: float = alpha) -> float:
            return _at_gamma(tuner, best, at, alpha).loss

        found = _line(loss, gamma, (gamma / 8.0, gamma * 8.0))
        best, _ = _refined_alpha(tuner, _better(best, _at_gamma(tuner, best, found, alpha)))
        rounds.append(best)
        if abs(np.log(best.parameters["gamma"] / gamma)) < CLOSE_ROUNDS:
            break
    return rounds
