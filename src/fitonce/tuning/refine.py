"""From the best point of the lattice to the local minimum: Newton's method for log alpha, gradients
or a line search for gamma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize

from ..core.arrays import Array, namespace
from ..kernels import RADIAL, Kernel
from .gradient import LossAndSlope, Objective, Term, squared_loss
from .newton import NewtonStep, newton
from .problem import Problem
from .trials import Parameters, Trial, Trials
from .tuner import Candidates, Tried, Tuner

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


def refine(tuner: Tuner, trials: Trials, winner: Tried) -> tuple[Trials, Tried, Refinement]:
    """The winner of the lattice moved to the nearest minimum of the criterion; never to a worse
    one.

    Gamma first, where it is tuned: jointly with alpha by gradient where the criterion has one
    (function norm, leave-one-out), else in turns with alpha (Saadi et al.), each by a bounded line
    search. Then alpha, by Newton's method where the criterion has derivatives.
    """
    best, rounds = winner, list[Tried]()
    if "gamma" in winner.trial.parameters:
        objective = _objective(tuner, winner)
        rounds = _in_turns(tuner, winner) if objective is None else [winner]
        if objective is not None:
            window = _window(tuner, winner)
            _, (gamma,), alpha = objective.minimise(window)
            rounds.append(_better(winner, _at_gamma(tuner, winner, float(gamma), alpha)))
        best = rounds[-1]
    best, steps = _refined_alpha(tuner, best)
    alphas, losses = ([getattr(step, name) for step in steps] for name in ("alpha", "loss"))
    walked = Trial(best.trial.parameters, np.array(alphas), np.array(losses))
    found = Trials([*trials.trials, *([walked] if steps else []), best.trial])
    return found, best, Refinement(steps, [_record(each.trial) for each in rounds])


def _record(trial: Trial) -> dict[str, float]:
    gamma = float(np.mean(trial.parameters["gamma"]))
    return {"gamma": gamma, "alpha": trial.alpha, "loss": trial.loss}


def _better(one: Tried, other: Tried) -> Tried:
    return other if other.trial.loss < one.trial.loss else one


def _window(tuner: Tuner, at: Tried) -> tuple[float, float]:
    """The first and the last candidate for alpha."""
    alphas = tuner.alphas(at.problem)
    return float(alphas[0]), float(alphas[-1])


def _at_gamma(tuner: Tuner, at: Tried, gamma: float, alpha: float) -> Tried:
    """The same with another gamma and alpha."""
    parameters: Parameters = {**at.trial.parameters, "gamma": gamma}
    return _judged(tuner, tuner.problem(parameters), alpha, parameters)


def _judged(tuner: Tuner, problem: Problem, alpha: float, parameters: Parameters) -> Tried:
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


def _differentiable(tuner: Tuner) -> bool:
    """Whether the criterion is a smooth function of held-out values or of the fit."""
    criterion = tuner.specification.criterion
    two_classes = criterion.name == "smoothed_error" and tuner.readout.n_classes == 2
    return criterion.of_the_fit or criterion.name == "squared_error" or two_classes


def _refined_alpha(tuner: Tuner, at: Tried) -> tuple[Tried, list[NewtonStep]]:
    """The best alpha near one, by Newton's method or a line search, and the steps to it."""
    problem, trial = at.problem, at.trial
    if tuner.specification.alphas is not None:
        return at, []
    window, steps, alpha = _window(tuner, at), list[NewtonStep](), trial.alpha

    def losses(mus: np.ndarray) -> np.ndarray:
        return np.asarray(tuner.losses(problem, mus).mean(axis=1))

    if _smooth(tuner) and _differentiable(tuner):
        steps = newton(losses, alpha, *window)
        alpha = steps[-1].alpha
    else:
        alpha = _line(lambda mu: float(losses(np.array([mu]))[0]), alpha, window)
    return _better(at, _judged(tuner, problem, alpha, trial.parameters)), steps


def _objective(tuner: Tuner, at: Tried) -> Objective | None:
    """The smooth loss in log gamma and log alpha, where there is one: leave-one-out, function
    norm, a kernel of a distance.
    """
    problem, spec, parameters = at.problem, tuner.specification, at.trial.parameters
    loss = loss_and_slope(tuner, problem)
    function_norm = parameters.get("penalty", spec.penalty) == "function"
    plain = function_norm and spec.alphas is None and spec.fit_intercept != "penalized"
    if loss is None or not (_smooth(tuner) and plain and problem.kernel.function in RADIAL):
        return None

    def kernel(gamma: Any) -> Kernel:
        return spec.kernel_at(tuner.data, {**parameters, "gamma": gamma})

    term = Term(kernel, tuner.data.X, parameters["gamma"], tunes_gamma=True)
    scaled = problem.projected.Y, problem.smoother.Q0, problem.row_scale
    return Objective([term], np.ones(1), at.trial.alpha, *scaled, loss)


def _in_turns(tuner: Tuner, start: Tried) -> list[Tried]:
    """The best of every round of gamma, then alpha, the start first."""
    rounds = [start]
    for _ in range(ALTERNATIONS):
        best = rounds[-1]
        gamma, alpha = best.trial.parameters["gamma"], best.trial.alpha

        def loss(at: float, best: Tried = best, alpha: float = alpha) -> float:
            return _at_gamma(tuner, best, at, alpha).trial.loss

        found = _line(loss, gamma, (gamma / 8.0, gamma * 8.0))
        best, _ = _refined_alpha(tuner, _better(best, _at_gamma(tuner, best, found, alpha)))
        rounds.append(best)
        if abs(np.log(best.trial.parameters["gamma"] / gamma)) < CONVERGED:
            break
    return rounds
