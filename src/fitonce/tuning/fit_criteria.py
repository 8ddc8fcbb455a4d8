"""Criteria of the fit of all rows, for candidates and with derivatives.

What `core.likelihood` looks at, from a path or from jets.
"""

from __future__ import annotations

import numpy as np

from ..core.arrays import Array, to_numpy
from ..core.holdout import Path
from ..core.jets import Jet
from ..core.likelihood import CRITERIA, FitTerms
from .problem import Problem


def fit_losses(name: str, problem: Problem, path: Path) -> np.ndarray:
    """The criterion (m, t) of every mu of a path and target."""
    losses = [CRITERIA[name](terms) for terms in _of_path(name, problem, path)]
    return np.stack(losses, axis=1)


def fit_jet(name: str, problem: Problem, mu: float) -> Jet:
    """The same at one mu with two derivatives in log mu."""
    jets = problem.of_kernel.jets(problem.projected, mu)
    n_targets = problem.targets.shape[1]
    total = Jet(0.0, 0.0, 0.0)
    for t in range(n_targets):
        own = slice(t, t + 1)
        r = jets.residual.map(lambda part, own=own: part[:, own])  # type: ignore[misc]
        parts = r, jets.one_minus_h
        total = total + CRITERIA[name](
            _terms(name, problem, parts, problem.projected.Y[:, own], mu)
        )
    mean: Jet = total * (1.0 / n_targets)
    return mean


def _of_path(name: str, problem: Problem, path: Path) -> list[FitTerms]:
    o, log_mu = to_numpy(path.one_minus_h), np.log(path.mus)
    log_determinant = _log_determinant(name, problem, path.mus)
    found = []
    for t in range(problem.targets.shape[1]):
        r = to_numpy(path.residual[:, :, t])
        y = to_numpy(problem.projected.Y)[:, t]
        with np.errstate(divide="ignore", invalid="ignore"):
            weighted, log_free = np.sum(r**2 / o, axis=1), np.sum(np.log(o), axis=1)
        sums = np.sum(r**2, axis=1), weighted, r @ y, np.sum(o, axis=1), log_free
        found.append(FitTerms(*sums, log_determinant, log_mu, *_sizes(problem)))
    return found


def _terms(name: str, problem: Problem, parts: tuple[Jet, Jet], y: Array, mu: float) -> FitTerms:
    r, o = parts
    squares = r * r
    free: Jet = o.sum()
    value = _log_determinant(name, problem, np.asarray([mu]))
    log_determinant = Jet(float(np.ravel(value)[0]), free.value, free.first)
    log_mu = Jet(float(np.log(mu)), 1.0, 0.0)
    sums = squares.sum(), (squares / o).sum(), (r * y).sum(), free, o.log().sum()
    return FitTerms(*sums, log_determinant, log_mu, *_sizes(problem))


def _log_determinant(name: str, problem: Problem, mus: np.ndarray) -> np.ndarray:
    """Where it is looked at; it exists for the function norm only."""
    if name != "marginal_likelihood":
        return np.zeros(len(mus))
    return problem.smoother.log_determinant(mus)


def _sizes(problem: Problem) -> tuple[int, int, float]:
    n, u = problem.n_samples, int(problem.smoother.Q0.shape[1])
    weights = np.log(to_numpy(problem.row_weights))
    return n, n - u, float(np.sum(weights))
