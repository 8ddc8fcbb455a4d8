"""Criteria of the fit of all rows, for candidates and with derivatives.

What `core.likelihood` looks at, from a path or from jets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import Array, to_numpy
from ..core.holdout import Path
from ..core.jets import Jet
from ..core.likelihood import CRITERIA, FitTerms
from .problem import Problem


def fit_losses(name: str, problem: Problem, path: Path) -> np.ndarray:
    """The criterion (m, t) of every mu of a path and target."""
    o, Y = to_numpy(path.one_minus_h), to_numpy(problem.projected.Y)
    log_determinant = _log_determinant(name, problem, path.mus)
    losses = []
    for t in range(Y.shape[1]):
        r = to_numpy(path.residual[:, :, t])
        given = log_determinant, np.log(path.mus), problem
        losses.append(CRITERIA[name](_terms(r, o, Y[:, t], *given)))
    return np.stack(losses, axis=1)


def fit_jet(name: str, problem: Problem, mu: float) -> Jet:
    """The mean over targets at one mu, with two derivatives in log mu."""
    jets = problem.of_kernel.jets(problem.projected, mu)
    n_targets, o = problem.targets.shape[1], jets.one_minus_h
    free: Jet = o.sum()
    value = float(np.ravel(_log_determinant(name, problem, np.asarray([mu])))[0])
    given = Jet(value, free.value, free.first), Jet(float(np.log(mu)), 1.0, 0.0), problem
    total = Jet(0.0, 0.0, 0.0)
    for t in range(n_targets):
        own = slice(t, t + 1)
        r = jets.residual.map(lambda part, own=own: part[:, own])  # type: ignore[misc]
        total = total + CRITERIA[name](_terms(r, o, problem.projected.Y[:, own], *given))
    mean: Jet = total * (1.0 / n_targets)
    return mean


def _terms(
    r: Any, o: Any, y: Array, log_determinant: Any, log_mu: Any, problem: Problem
) -> FitTerms:
    """What the criteria look at, from residuals r and o = 1 - h of one target: arrays (m, n) of
    all mu, or jets (n, 1) of one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = r * r, r * r / o, r * y, o, o.log() if isinstance(o, Jet) else np.log(o)
    totals = [part.sum() if isinstance(part, Jet) else np.sum(part, axis=1) for part in sums]
    squares, weighted, explained, free, log_free = totals
    n, u = problem.n_samples, int(problem.smoother.Q0.shape[1])
    weights = float(np.sum(np.log(to_numpy(problem.row_weights))))
    return FitTerms(
        squares, weighted, explained, free, log_free, log_determinant, log_mu, n, n - u, weights
    )


def _log_determinant(name: str, problem: Problem, mus: np.ndarray) -> np.ndarray:
    """Where it is looked at; it exists for the function norm only."""
    if name != "marginal_likelihood":
        return np.zeros(len(mus))
    return problem.smoother.log_determinant(mus)
