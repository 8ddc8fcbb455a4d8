r"""Criteria of the fit of all rows: generalized cross-validation and Gaussian likelihoods.

Kernel ridge is the mean of a Gaussian process with covariance σ²K, noise μσ² and a flat prior on
what is not penalized (u columns). With r = (I - H)Y, o = 1 - h, E = Yᵀ(I - H)Y, for one target,

    GCV                        n ‖r‖² / (Σ o)²
    leave-one-out density      e = r/o  has the variance  σ²μ/o;   best σ² = Σ r²/o / (n μ), so
                               -mean log p = ½ log(2π Σ r²/(o n)) + ½ - ½ mean log o
    marginal likelihood        yᵀα = E/μ;   best σ² = E/(μ (n - u)), so (restricted likelihood)
                               -log p/(n - u) = ½ log(2π σ²) + ½ + ½ log|G + μI|/(n - u)

all of them sums of what a path has. Of weighted rows, densities are those of the targets as they
were before they were scaled: the mean log w counts.
"""

from __future__ import annotations

import numpy as np

from ..core.arrays import Array, to_numpy
from ..core.holdout import Path
from .problem import Problem


def fit_losses(name: str, problem: Problem, path: Path) -> np.ndarray:
    """The criterion (m, t) of every mu of a path and target."""
    r, o = to_numpy(path.residual), to_numpy(path.one_minus_h)[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "gcv":
            return np.asarray(problem.n_samples * np.sum(r**2, axis=1) / np.sum(o, axis=1) ** 2)
        density = loo_log_density if name == "loo_log_density" else marginal_likelihood
        return np.asarray(density(problem, path, r, o))


def loo_log_density(problem: Problem, path: Path, r: np.ndarray, o: np.ndarray) -> Array:
    """Minus the mean log density (m, t) of left-out rows, at the σ² that makes it best."""
    variance = np.sum(r**2 / o, axis=1) / problem.n_samples
    determinant = -np.mean(np.log(o), axis=1)
    return 0.5 * (np.log(2.0 * np.pi * variance) + 1.0 + determinant) - _log_scale(
        problem, r.shape[1]
    )


def marginal_likelihood(problem: Problem, path: Path, r: np.ndarray, o: np.ndarray) -> Array:
    """Minus the log (restricted) marginal likelihood (m, t) a row, at the σ² that makes it best."""
    n_free = problem.n_samples - int(problem.smoother.Q0.shape[1])
    explained = np.sum(r * to_numpy(problem.projected.Y), axis=1)
    variance = explained / (n_free * path.mus[:, None])
    determinant = problem.smoother.log_determinant(path.mus)[:, None] / n_free
    return 0.5 * (np.log(2.0 * np.pi * variance) + 1.0 + determinant) - _log_scale(problem, n_free)


def _log_scale(problem: Problem, n: int) -> float:
    """Half the sum of the logarithms of the rows' weights, a row."""
    return 0.5 * float(np.sum(np.log(to_numpy(problem.row_weights)))) / n
