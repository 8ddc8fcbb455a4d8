"""From the best point of the lattice to the local minimum: Newton's method for log alpha, a line
search for gamma.

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

import numpy as np
import scipy.optimize

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

    Each step is Newton's as far as the window allows, halved until the loss decreases. The search
    ends if a step is shorter than 1e-8 in log alpha, or halving does not help.
    """
    path = [step_at(losses, np.log(alpha))]
    for _ in range(STEPS):
        here, there = path[-1], path[-1]
        t, halvings = np.log(here.alpha), 0
        step = np.clip(t + here.newton, np.log(lowest), np.log(highest)) - t
        while halvings <= HALVINGS and abs(step) > CONVERGED:
            there = step_at(losses, float(t + step))
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


WITHIN = np.log(4.0)  # how far gamma and alpha may move from the lattice point in a line search


@dataclass(frozen=True)
class Refinement:
    """What happened after the lattice: the steps of Newton's method (the last run), and the
    `rounds`, which are the start and the end of the search for gamma.
    """

    steps: list[NewtonStep] = field(default_factory=list)
    rounds: list[dict[str, float]] = field(default_factory=list)


# ---- to the minimum ------------------------------------------------------------------------------


def refine(tuner: Tuner, trials: Trials, winner: Trial) -> tuple[Trials, Trial, Refinement]:
    """The winner of the lattice moved to the nearest minimum of the criterion; never to a worse
    one.

    Gamma by a line search on what is lost at the best alpha nearby, where it is tuned: one
    decomposition for each step. Alpha by Newton's method where the criterion has derivatives, else
    by a line search.
    """
    best, rounds = winner, list[Trial]()
    if "gamma" in winner.parameters:
        best = _better(winner, _best_gamma(tuner, winner))
        rounds = [winner, best]
    best, steps = _refined_alpha(tuner, best)
    alphas, losses = ([getattr(step, name) for step in steps] for name in ("alpha", "loss"))
    walked = Trial(best.parameters, np.array(alphas), np.array(losses))
    found = Trials([*trials.trials, *([walked] if steps else []), best.light()])
    return found, best, Refinement(steps, [_record(each) for each in rounds])


def _record(trial: Trial) -> dict[str, float]:
    return {"gamma": trial.parameters["gamma"], "alpha": trial.alpha, "loss": trial.loss}


def _better(one: Trial, other: Trial) -> Trial:
    return other if other.loss < one.loss else one


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


def _best_gamma(tuner: Tuner, start: Trial) -> Trial:
    """The best gamma near one, each at its best alpha."""

    def at(gamma: float) -> Trial:
        parameters: Parameters = {**start.parameters, "gamma": gamma}
        trial = _judged(tuner, tuner.problem(parameters), start.alpha, parameters)
        return _refined_alpha(tuner, trial)[0]

    gamma = start.parameters["gamma"]
    return at(_line(lambda gamma: at(gamma).loss, gamma, (gamma / 8.0, gamma * 8.0)))


def _refined_alpha(tuner: Tuner, at: Trial) -> tuple[Trial, list[NewtonStep]]:
    """The best alpha near one, by Newton's method or a line search, and the steps to it."""
    problem, spec, steps, alpha = at.problem, tuner.specification, list[NewtonStep](), at.alpha
    if spec.alphas is not None:
        return at, []
    alphas = tuner.alphas(problem)
    window = float(alphas[0]), float(alphas[-1])

    def losses(mus: np.ndarray) -> np.ndarray:
        return np.asarray(tuner.losses(problem, mus).mean(axis=1))

    of_kernel = tuner.deletions is None and tuner.data.landmarks is None
    if of_kernel and spec.criterion.differentiable(tuner.readout.n_classes):
        steps = newton(losses, alpha, *window)
        alpha = steps[-1].alpha
    else:
        alpha = _line(lambda mu: float(losses(np.array([mu]))[0]), alpha, window)
    return _better(at, _judged(tuner, problem, alpha, at.parameters)), steps
