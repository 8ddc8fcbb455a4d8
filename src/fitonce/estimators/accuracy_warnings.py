r"""The accuracy of held-out values in float64, and warnings if it is low.

There are four sources of error. Solving loses eps·‖G‖/μ. Landmarks with a very smooth kernel have
directions that are lost in rounding and are left out. A held-out value is y - ρ, with the rounding
error of y: if the kernel is so narrow that no row affects another, and there is no bias, the value
is small relative to y, and its relative error is eps·|y|/|y - ρ|. And a discriminant uses only the
share a² of the class indicators that the fit explains: the relative error of its decisions is
eps/a².
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..core.arrays import namespace
from ..core.holdout import Path
from ..core.numerical_warnings import depth_inside_package, warn_numerical
from ..core.readout import Readout
from ..core.ties import EPSILON
from ..tuning.problem import Problem
from ..tuning.specification import Data
from .parameter_values import NUMBER, word

INACCURATE = (
    1e-4  # a fit warns if the relative error of held-out values, 1e3·conditioning, is larger
)


def conditioning_of(
    problem: Problem, mu: float, path: Path | None = None, readout: Readout | None = None
) -> float:
    """The relative error of held-out values caused by rounding in the last digit.

    Cost: without a bias, one path, unless it is given; with a readout, one fit.
    """
    return max(
        problem.smoother.conditioning / mu,
        EPSILON / _share(problem, mu, path),
        EPSILON / _explained(problem, mu, path, readout),
    )


def warn_if_inaccurate(
    problem: Problem, mu: float, path: Path | None = None, readout: Readout | None = None
) -> None:
    """Warn if float64 leaves few digits of held-out values."""
    of_alpha = 1e3 * problem.smoother.conditioning
    lost = problem.left_out
    share, explained = _share(problem, mu, path), _explained(problem, mu, path, readout)
    found = (
        (
            of_alpha / mu,
            f"alpha={mu:.3g} is very small relative to the norm or the largest entry of the "
            "kernel matrix: held-out values may have a relative error of {error:.1g}. "
            f"Use an alpha of at least {of_alpha / INACCURATE:.3g}.",
        ),
        (
            lost / mu,
            "the kernel of the landmarks is so smooth that some of its directions are lost in "
            "rounding: the model may differ from the exact one by {error:.1g} relative to its "
            f"outputs. Use a larger gamma, or an alpha of at least {lost / INACCURATE:.3g}.",
        ),
        (
            1e3 * EPSILON / share,
            "the kernel is so narrow that no row affects another: without a bias, held-out values "
            f"are at most {share:.1g} of the targets, and may have a relative error of "
            "{error:.1g}. Use a smaller gamma, or fit_intercept=True.",
        ),
        (
            1e3 * EPSILON / explained,
            f"the discriminant explains only {explained:.1g} of the variance between the classes, "
            "so its decisions are nearly the same for all rows, and may have a relative error of "
            f"{{error:.1g}}. Use a smaller alpha than {mu:.3g}, or a kernel that changes more "
            "between rows (a larger gamma).",
        ),
    )
    for error, message in found:
        if error > INACCURATE:
            warn_numerical(message.format(error=min(error, 1.0)))


def landmarks_by_labels(estimator: Any) -> bool:
    """Whether landmarks are chosen by labels, those of rows that are then held out included."""
    return estimator.landmark_method == "greedy" and bool(word(estimator.landmarks) == NUMBER)


def warn_of_greedy_landmarks(estimator: Any) -> None:
    """Warn if held-out values know their own labels through the landmarks."""
    if landmarks_by_labels(estimator):
        warnings.warn(
            'landmark_method="greedy" has chosen the landmarks by the targets of all rows, those '
            "held out included: held-out values look a little too good, and intervals and sets "
            "from them are too small. Use cross_val_predict with shared_landmarks=False, which "
            "chooses them in every training set, or another method.",
            UserWarning,
            stacklevel=depth_inside_package(),
        )


def warn_of_weighted_landmarks(penalty: str | None, data: Data) -> None:
    """Warn if landmarks with weights give a different model than the exact one.

    The exact dual norm divides the penalty of the coefficient of a row by the weight of the row.
    Landmarks are points: they stay if rows leave or change weights, and all have the same penalty.
    """
    if penalty != "dual" or data.landmarks is None or data.weights is None:
        return
    if np.any(data.weights != 1.0) and np.any(data.landmarks.rows >= 0):
        warnings.warn(
            'with penalty="dual", all landmarks have the same penalty, while the exact model '
            "divides the penalty of a row by its weight: with weights, these are different models. "
            'Use penalty="function", for which they agree.',
            UserWarning,
            stacklevel=depth_inside_package(),
        )


def _share(problem: Problem, mu: float, path: Path | None) -> float:
    """The largest held-out value relative to the largest target; one if there is a bias."""
    if problem.fit_intercept is not False:
        return 1.0
    xp = namespace(problem.targets)
    path = problem.path(np.asarray([mu])) if path is None else path
    largest = float(xp.max(xp.abs(problem.targets)))
    held_out = float(xp.max(xp.abs(problem.values_without_each(path))))
    if largest == 0.0 or not np.isfinite(held_out):
        return 1.0
    return min(max(held_out / largest, EPSILON), 1.0)


def _explained(problem: Problem, mu: float, path: Path | None, readout: Readout | None) -> float:
    """The share of the targets that a readout works with; at least the rounding of one."""
    if readout is None or not readout.needs_scatter:
        return 1.0
    fitted = problem.fit(mu) if path is None else problem.smoother.fitted(problem.projected, path)
    return max(float(readout.explained(problem.evidence(fitted))), EPSILON)
