r"""Kernel ridge regression as a Gaussian process: variances, densities, likelihood.

Covariance σ²K, noise variance μσ² (μσ²/w for a row with weight w), a flat prior on a free bias.
With τ(x) of `tuning.solution`, o = 1 - h, e = r/o and E = Yᵀ(I - H)Y:

    variance of f(x)           σ²μ τ(x),           of a new observation  σ²μ (τ(x) + 1)
    of a left-out row          σ²μ / (w o),        log density  -½ log(2πv) - e²/(2v)
    log marginal likelihood    -½ [(n - u) log(2πσ²) + log|G + μI| + E/(μσ²) - Σ log w]
    profiled σ²                E / (μ (n - u)),    which is yᵀα/(n - u)

u is the number of unpenalized columns; with u = 1, this is the restricted likelihood (REML).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import Array, to_numpy
from ..core.holdout import Path
from ..tuning.problem import Problem


@dataclass(frozen=True)
class GaussianProcess:
    """A fitted kernel ridge model as a Gaussian process; see `KernelRidge.gaussian_process`.

    Attributes
    ----------
    signal_variance, noise_variance : float or array of shape (n_targets,)
        σ² and μσ².
    log_marginal_likelihood : float
        Log marginal likelihood of all targets together; the restricted one if the bias is free.
    held_out_mean, held_out_std : arrays of shape (n,) or (n, n_targets)
        Mean and standard deviation of every training row from the process without it, including
        noise.
    held_out_log_density : array of shape (n,) or (n, n_targets)
        Log density of the target of each row under that prediction.
    standardized : array of shape (n,) or (n, n_targets)
        Error of each row in units of that standard deviation. If the uncertainty of the model is
        right, these are approximately standard normal.
    """

    signal_variance: Any
    noise_variance: Any
    log_marginal_likelihood: float
    held_out_mean: np.ndarray
    held_out_std: np.ndarray
    held_out_log_density: np.ndarray
    standardized: np.ndarray

    def __str__(self) -> str:
        density = float(np.mean(self.held_out_log_density))
        return (
            f"log marginal likelihood {self.log_marginal_likelihood:.6g}, mean leave-one-out log "
            f"density {density:.4g}"
        )


def profiled_variance(problem: Problem, path: Path) -> np.ndarray:
    """σ² (t,) = E/(μ (n - u)) of every target."""
    E = np.sum(to_numpy(problem.projected.Y) * to_numpy(path.residual[0, ...]), axis=0)
    n_free = problem.n_samples - int(problem.smoother.Q0.shape[1])
    return np.asarray(E / (float(path.mus[0]) * n_free))


def read_process(
    problem: Problem, path: Path, variance: np.ndarray, shaped: Callable[[Any], Any]
) -> GaussianProcess:
    """The Gaussian process at the mu of a path, for signal variances (t,); `shaped` drops the axis
    of a single target from results (…, t).
    """
    mu, weights = float(path.mus[0]), to_numpy(problem.row_weights)
    one_minus_h = to_numpy(path.one_minus_h)[0, :, None]
    values = to_numpy(problem.values_without_each(path)[0, ...])
    error = to_numpy(problem.targets) - values
    v = variance * mu / (weights * one_minus_h)
    density = -0.5 * np.log(2.0 * np.pi * v) - 0.5 * error**2 / v
    std = np.sqrt(v)
    signal = shaped(variance[None, :])[0]
    likelihood = _log_likelihood(problem, path, variance)
    of_rows = map(shaped, (values, std, density, error / std))
    return GaussianProcess(signal, signal * mu, likelihood, *of_rows)


def _log_likelihood(problem: Problem, path: Path, variance: np.ndarray) -> float:
    """The log marginal likelihood of all targets together."""
    n_free = problem.n_samples - int(problem.smoother.Q0.shape[1])
    log_determinant = float(problem.smoother.log_determinant(path.mus)[0])
    log_weights = float(np.sum(np.log(to_numpy(problem.row_weights))))
    quadratic = n_free * profiled_variance(problem, path) / variance
    terms = n_free * np.log(2.0 * np.pi * variance) + log_determinant + quadratic - log_weights
    return float(-0.5 * np.sum(terms))


def spread(tau: Array, variance: np.ndarray, mu: float, noise: bool) -> np.ndarray:
    """Variances (m, t), or covariances (m, m, t), of f or of new observations."""
    host = to_numpy(tau)
    if noise:
        host = host + (np.eye(len(host)) if host.ndim == 2 else 1.0)
    return np.asarray(host[..., None] * (variance * mu))
