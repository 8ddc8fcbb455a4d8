"""Newton's method on log mu with exact derivatives and step halving (Saadi, Talbot & Cawley 2007,
section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.jets import Jet

HALVINGS = 20  # a step is halved at most this often before the search ends
STEPS = 50
CONVERGED = 1e-8  # of a step in log mu
LONGEST_STEP = np.log(4.0)


@dataclass(frozen=True)
class NewtonStep:
    """One step of the search.

    Alpha, the loss and its derivatives in log alpha, and how often the step from here was halved.
    """

    alpha: float
    loss: float
    first: float
    second: float
    halvings: int


def newton(
    loss: Callable[[float], Jet], alpha: float, lowest: float, highest: float
) -> list[NewtonStep]:
    """The path from `alpha` to the nearest local minimum of loss(alpha), inside [lowest, highest].

    Each step is Newton's, -E'/E'', or downhill by the same amount if the curvature is negative, at
    most a factor of four in alpha. It is halved until the loss decreases. The search ends if a
    step is shorter than 1e-8 in log alpha, or halving does not help.
    """
    t, path = np.log(alpha), []
    here = loss(float(alpha))
    for _ in range(STEPS):
        step = (
            -here.first / abs(here.second)
            if here.second != 0
            else -np.sign(here.first) * LONGEST_STEP
        )
        step = float(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
        halvings, there, target = 0, None, t
        while halvings <= HALVINGS and abs(step) > CONVERGED:
            target = float(np.clip(t + step, np.log(lowest), np.log(highest)))
            there = loss(float(np.exp(target)))
            if there.value < here.value:
                break
            step, halvings, there = 0.5 * step, halvings + 1, None
        path.append(
            NewtonStep(
                float(np.exp(t)), float(here.value), float(here.first), float(here.second), halvings
            )
        )
        if there is None:
            break
        t, here = target, there
    return path
