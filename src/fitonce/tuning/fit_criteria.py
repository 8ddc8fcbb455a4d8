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

from ..core.arrays import to_numpy
from ..core.holdout import Path
from .problem import Problem


def fit_losses(name: str, problem: Problem, path: Path) -> np.ndarray:
    """The criterion (m, t) of every mu of a path and target: generalized cross-validation, or at
    the σ² that makes them best minus the mean log density of left-out rows, and minus the log
    (restricted) marginal likelihood a row.
    """
    r, o, n = to_numpy(path.residual), to_numpy(path.one_minus_h)[:, :, None], problem.n_samples
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "gcv":
            return np.asarray(n * np.sum(r**2, axis=1) / np.sum(o, axis=1) ** 2)
        if name == "loo_log_density":
            variance = np.sum(r**2 / o, axis=1) / n
            determinant = -np.mean(np.log(o), axis=1)
        else:
            n -= int(problem.smoother.Q0.shape[1])
            explained = np.sum(r * to_numpy(problem.projected.Y), axis=1)
            variance = explained / (n * path.mus[:, None])
            determinant = problem.smoother.log_determinant(path.mus)[:, None] / n
        scale = np.sum(np.log(to_numpy(problem.row_weights))) / n
        return np.asarray(0.5 * (np.log(2.0 * np.pi * variance) + 1.0 + determinant - scale))
