"""Warnings about a choice at the end of the range that was tried."""

from __future__ import annotations

import numpy as np

from ..core.holdout import Smoother
from ..core.numerical_warnings import warn_numerical
from .lattice import GammaLattice
from .specification import Specification
from .trials import Trial, Trials

HALF = 0.5  # of the loss of a constant model: with less, something is predicted


def warn_at_edges(
    specification: Specification, trials: Trials, winner: Trial, smoother: Smoother
) -> None:
    """Warn if the criterion still decreases at the end of the range that was tried."""
    edge = winner.falling_edge
    if specification.alphas is None and edge is not None:
        if edge == "upper":
            reason = (
                "larger values give a constant model; this kernel finds no effect in these data"
            )
        elif smoother.lower_bound > 0:
            reason = 'this indefinite kernel does not allow smaller values; penalty="dual" does'
        elif winner.loss < HALF * winner.losses[-1]:  # the largest alpha: a constant model
            reason = (
                "smaller values are below double precision; the targets seem to have little noise, "
                "or the kernel is very smooth"
            )
        else:
            reason = (
                "smaller values are below double precision; the features may not predict the "
                "targets"
            )
        warn_numerical(
            f"the best alpha, {winner.alpha:.3g}, is at the {edge} end of the range tried: "
            f"{reason}."
        )
    tried = [
        trial.parameters["gamma"]
        for trial in trials.trials
        if "gamma" in trial.parameters
        and trial.parameters.get("kernel") == winner.parameters.get("kernel")
    ]
    gamma = winner.parameters.get("gamma")
    at_the_end = bool(tried) and gamma in (min(tried), max(tried))
    reach = GammaLattice.limit + GammaLattice.reach
    if at_the_end and np.log2(max(tried) / min(tried)) >= reach:  # extended as far as it goes
        smooth = "such a smooth kernel is nearly linear: try kernel='linear'"
        advice = smooth if gamma == min(tried) else "scale the features, or set gamma"
        warn_numerical(f"the best gamma, {gamma:.3g}, is at the end of the range tried; {advice}.")
