r"""How many digits float64 leaves of held-out values, and warnings where they are few.

Four things take digits. Solving takes eps·λ_max/μ. Landmarks with a very smooth kernel have
directions that rounding hides, which are left out. And a held-out value is y - ρ, with the rounding
of y: where kernels are so narrow that no row sees another, and nothing but them makes the value
(no bias), it is small beside y, and eps·|y|/|y - ρ| of it is rounding. A discriminant uses only the
share a² of the classes' indicators that the fit explains: eps/a² of its decisions is rounding.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..core.arrays import namespace
from ..core.doubt import depth_inside_package, warn_numerical
from ..core.holdout import Path
from ..core.readout import Readout
from ..core.ties import EPSILON
from ..tuning.problem import Data, Problem

DOUBTFUL = 1e-4  # relative error of held-out values, 1e3·conditioning, above which a fit warns


def conditioning_of(
    problem: Problem, mu: float, path: Path | None = None, readout: Readout | None = None
) -> float:
    """The relative error of held-out values that a rounding in the last digit makes.

    Cost: without a bias one path, unless it is given; with a readout one fit.
    """
    return max(
        problem.smoother.conditioning / mu,
        EPSILON / _share(problem, mu, path),
        EPSILON / _explained(problem, mu, path, readout),
    )


def warn_if_doubtful(
    problem: Problem, mu: float, path: Path | None = None, readout: Readout | None = None
) -> None:
    """Warn if float64 leaves few digits of held-out values."""
    error = 1e3 * problem.smoother.conditioning / mu
    if error > DOUBTFUL:
        enough = 1e3 * problem.smoother.conditioning / DOUBTFUL
        warn_numerical(
            f"alpha={mu:.3g} is very small beside the largest eigenvalue or entry of the kernel "
            f"matrix: held-out values may be wrong by {min(error, 1.0):.1g} relative to their "
            f"size. Use an alpha of at least {enough:.3g}."
        )
    if problem.left_out / mu > DOUBTFUL:
        warn_numerical(
            "the kernel of the landmarks is so smooth that some of its directions are lost in "
            "rounding: the model may differ from that of exact arithmetic by "
            f"{min(problem.left_out / mu, 1.0):.1g} relative to its outputs. Use a larger gamma, "
            f"or an alpha of at least {problem.left_out / DOUBTFUL:.3g}."
        )
    share = _share(problem, mu, path)
    error = 1e3 * EPSILON / share
    if error > DOUBTFUL:
        warn_numerical(
            "the kernel sees no row from another: without a bias, held-out values are at most "
            f"{share:.1g} of the targets, and may be wrong by {min(error, 1.0):.1g} relative to "
            "their size. Use a smaller gamma, or fit_intercept=True."
        )
    explained = _explained(problem, mu, path, readout)
    error = 1e3 * EPSILON / explained
    if error > DOUBTFUL:
        warn_numerical(
            f"the discriminant explains only {explained:.1g} of the variance between the classes, "
            "so its decisions are nearly the same for all rows, and may be wrong by "
            f"{min(error, 1.0):.1g} relative to their size. Use a smaller alpha than {mu:.3g}, or "
            "a kernel that changes more between rows (a larger gamma)."
        )


def warn_of_weighted_landmarks(penalty: str | None, data: Data) -> None:
    """Tell where landmarks with weights are another model than the exact one.

    The exact dual norm divides the penalty of a row's coefficient by the row's weight. Landmarks
    are points: they stay when rows leave or change their weights, and all are penalised alike.
    """
    if penalty != "dual" or data.landmarks is None or data.weights is None:
        return
    if np.any(data.weights != 1.0) and np.any(data.landmarks.rows >= 0):
        warnings.warn(
            'landmarks with penalty="dual" are penalized alike, whatever the weights of their '
            "rows, which the model of all rows divides by: with weights the two are different "
            'models. Use penalty="function", where they agree.',
            UserWarning,
            stacklevel=depth_inside_package(),
        )


def _share(problem: Problem, mu: float, path: Path | None) -> float:
    """The largest held-out value over the largest target; one with a bias, which is no smaller."""
    if problem.fit_intercept is not False or not problem.reads_path:
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
    if readout is None or not problem.reads_path:
        return 1.0
    fitted = problem.fit(mu) if path is None else problem.smoother.fitted(problem.projected, path)
    return max(readout.explained(problem.scatter(fitted), problem.sizes), EPSILON)
