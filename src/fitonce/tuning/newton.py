"""Newton's method on t = log mu with step halving (Saadi, Talbot & Cawley 2007, section 3.3).

A criterion is a smooth function of t, and costs one path for any number of mu. So its derivatives
come from five values a step h apart, whatever it is and by whatever smoother:

    E'  = (E₋₂ - 8E₋₁ + 8E₁ - E₂) / 12h  + O(h⁴)
    E'' = (-E₋₂ + 16E₋₁ - 30E₀ + 16E₁ - E₂) / 12h²  + O(h⁴)

With h = 1/128 both errors are of the order of 1e-10 of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

HALVINGS = 20  # a step is halved at most this often before the search ends
STEPS = 50
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
