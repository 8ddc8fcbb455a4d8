r"""Criteria of the fit of all rows: generalized cross-validation and Gaussian likelihoods.

Kernel ridge is the mean of a Gaussian process with covariance σ²K, noise μσ² and a flat prior on
what is not penalized (u columns). With r = (I - H)Y, o = 1 - h, E = Yᵀ(I - H)Y, for one target,

    GCV                        n ‖r‖² / (Σ o)²
    leave-one-out density      e = r/o  has the variance  σ²μ/o;   best σ² = Σ r²/o / (n μ), so
                               -mean log p = ½ log(2π Σ r²/(o n)) + ½ - ½ mean log o
    marginal likelihood        yᵀα = E/μ;   best σ² = E/(μ (n - u)), so (restricted likelihood)
                               -log p/(n - u) = ½ log(2π σ²) + ½ + ½ log|G + μI|/(n - u)

all of them sums of what a path has. d log|G + μI|/d log μ = Σ o. The same formulas take arrays
over candidates, or jets that carry derivatives in log μ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .jets import Jet


@dataclass(frozen=True)
class FitTerms:
    """What the criteria look at, for one target: arrays (m,) over candidates, or jets.

    `squares` ‖r‖², `weighted` Σ r²/o, `explained` E = yᵀr, `free` Σ o, `log_free` Σ log o,
    `log_determinant` log|G + μI|, and log μ; n rows of which `n_free` remain after the unpenalized
    columns, with `log_weights` the sum of the logarithms of the rows' weights.
    """

    squares: Any
    weighted: Any
    explained: Any
    free: Any
    log_free: Any
    log_determinant: Any
    log_mu: Any
    n: int
    n_free: int
    log_weights: float = 0.0


def gcv(terms: FitTerms) -> Any:
    """Generalized cross-validation: the squared error with every row's leverage at their mean."""
    return terms.squares * float(terms.n) / (terms.free * terms.free)


def loo_log_density(terms: FitTerms) -> Any:
    """Minus the mean log density of left-out rows, at the σ² that makes it best."""
    spread = _log(terms.weighted * (2.0 * np.pi / terms.n))
    loss = 0.5 * spread + (-0.5 / terms.n) * terms.log_free
    return loss + (0.5 - 0.5 * terms.log_weights / terms.n)


def marginal_likelihood(terms: FitTerms) -> Any:
    """Minus the log (restricted) marginal likelihood a row, at the σ² that makes it best."""
    variance = _log(terms.explained * (2.0 * np.pi / terms.n_free)) - terms.log_mu
    loss = 0.5 * variance + (0.5 / terms.n_free) * terms.log_determinant
    return loss + (0.5 - 0.5 * terms.log_weights / terms.n_free)


def _log(value: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return value.log() if isinstance(value, Jet) else np.log(value)


CRITERIA = {loss.__name__: loss for loss in (gcv, loo_log_density, marginal_likelihood)}
