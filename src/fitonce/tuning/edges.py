"""Warnings about a choice at the end of the range that was tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.holdout import Smoother
from ..core.numerical_warnings import warn_numerical
from .gamma_search import Branch
from .lattice import FARTHEST
from .specification import Specification
from .trials import Trial

HALF = 0.5  # of the loss of a constant model: with less, something is predicted


def warn_at_edges(
    specification: Specification, branches: Sequence[Branch], winner: Trial, smoother: Smoother
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
    others = winner.parameters.items()
    lattices = [branch.lattice for branch in branches if branch.other.items() <= others]
    if lattices and lattices[0] is not None:
        gamma = winner.parameters["gamma"]
        step = np.log2(gamma) - lattices[0].centre
        if abs(step) > FARTHEST:
            smooth = "such a smooth kernel is nearly linear: try kernel='linear'"
            advice = smooth if step < 0 else "scale the features, or set gamma"
            warn_numerical(
                f"the best gamma, {gamma:.3g}, is at the end of the range tried; {advice}."
            )
