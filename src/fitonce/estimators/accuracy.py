r"""The accuracy of held-out values: warnings if float64 leaves few digits, and comparison with
literal refits, to be quoted in a methods section.

There are four sources of error. Solving loses eps·‖G‖/μ. Landmarks with a very smooth kernel have
directions that are lost in rounding and are left out. A held-out value is y - ρ, with the rounding
error of y: if the kernel is so narrow that no row affects another, and there is no bias, the value
is small relative to y, and its relative error is eps·|y|/|y - ρ|. And a discriminant uses only the
share a² of the class indicators that the fit explains: the relative error of its decisions is
eps/a².
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import namespace, take, to_numpy
from ..core.holdout import Path
from ..core.numerical_warnings import depth_inside_package, warn_numerical
from ..core.readout import Readout
from ..core.rows import is_rows
from ..core.ties import EPSILON
from ..tuning.problem import Problem
from ..tuning.specification import Data
from .parameter_values import NUMBER, word
from .record import FitRecord

# a fit warns if the relative error of held-out values, 1e3·conditioning, is larger
INACCURATE = 1e-4
CHOSEN = ("kernel", "gamma", "degree", "coef0", "penalty")  # by a fit
# held-out decisions are those before calibration, and class weights are those of all rows
PLAIN = {"cv": None, "refine": False, "calibration": None, "class_weight": None}
PLAIN |= {"store_dual_coef": True, "store_held_out": False}


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


# ---- literal refits ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verification:
    """The deviation of the closed-form held-out outputs from literal refits.

    `max_deviation` is relative to the largest output. `tolerance` is max(1e-8, 1e3·conditioning),
    where `conditioning` is eps·‖G‖/alpha, the relative rounding error in float64, or
    eps·|y|/|output| if that is larger (`conditioning_of`).
    """

    n_refits: int
    max_deviation: float
    tolerance: float
    conditioning: float
    smallest_one_minus_leverage: float
    route: str = "one"

    @property
    def passed(self) -> bool:
        return self.n_refits > 0 and bool(self.max_deviation <= self.tolerance)

    def __str__(self) -> str:
        if self.n_refits == 0:
            return (
                "No literal refit was possible, so nothing was compared: the training rows of "
                "every split lack a class, or are too few for a model. Use a cv= whose training "
                "sets have all classes."
            )
        verdict = "agree" if self.passed else "DISAGREE"
        return (
            f"{self.n_refits} literal refits {verdict} with the closed form: largest relative "
            f"deviation {self.max_deviation:.1e} "
            f"(tolerance {self.tolerance:.1e}); conditioning eps*norm(G)/alpha = "
            f"{self.conditioning:.1e}, "
            f"smallest 1 - leverage = {self.smallest_one_minus_leverage:.1e}, route {self.route!r}."
        )

    def _repr_html_(self) -> str:
        """The result and the same text, for a notebook."""
        verdict = "✓ Passed" if self.passed else "✗ Failed" if self.n_refits else "Not compared"
        colour = "#00704f" if self.passed else "#a8400b"
        return f'<div><strong style="color: {colour}">{verdict}</strong>: {escape(str(self))}</div>'


def worst_of(checked: Sequence[Verification]) -> Verification:
    """Several verifications as one: the deviation that is largest relative to its tolerance, all
    refits, the worst conditioning.
    """
    worst = max(checked, key=lambda one: one.max_deviation / one.tolerance)
    return replace(
        worst,
        n_refits=sum(one.n_refits for one in checked),
        conditioning=max(one.conditioning for one in checked),
        smallest_one_minus_leverage=min(one.smallest_one_minus_leverage for one in checked),
    )


def verified(estimator: Any, kept: FitRecord, held_out: np.ndarray, **options: Any) -> Verification:
    """Refits of a fitted estimator compared with its held-out outputs; see `KernelModel.verify`.

    Targets with alphas of their own are compared in groups that share one.
    """
    if np.ndim(estimator.alpha_) == 0:
        return _compared(estimator, kept, estimator.alpha_, held_out, **options)
    each = []
    for mu in np.unique(estimator.alpha_).tolist():
        own = np.flatnonzero(estimator.alpha_ == mu)
        each.append(_compared(estimator, kept.some_targets(own), mu, held_out[:, own], **options))
    return worst_of(each)


def _compared(
    estimator: Any,
    kept: FitRecord,
    mu: float,
    held_out: np.ndarray,
    n_refits: int,
    X: Any,
    random_state: int | None,
) -> Verification:
    """The comparison of `n_refits` randomly chosen splits, at one alpha.

    Splits whose training rows lack a class are skipped, since a refit does not have their outputs.
    """
    if not isinstance(n_refits, numbers.Integral) or n_refits < 1:
        raise ValueError(f"n_refits must be an integer of at least 1, got {n_refits!r} instead.")
    training, problem = kept.training, kept.problem
    X, n = _training_X(training, X), training.n_samples
    splits = kept.folds or [(np.delete(np.arange(n), i), np.array([i])) for i in training.active]
    tested = np.concatenate([test for _, test in splits])
    once = len(np.unique(tested)) == len(tested)
    deviations: list[float] = []
    fitted = problem.fit(mu)
    for number in np.random.default_rng(random_state).permutation(len(splits)):
        refitted = _refit_outputs(estimator, kept, mu, X, *splits[number])
        if refitted is None:
            continue
        # of splits that overlap, the contribution of this one to the reported mean
        split = splits[number]
        own = held_out[split[1]] if once else to_numpy(kept.fold_outputs(fitted, mu, *split))
        difference = np.abs(refitted - own)
        deviations.append(np.max(np.where(np.isnan(difference), np.inf, difference), initial=0.0))
        if len(deviations) == n_refits:
            break
    scale = np.max(np.abs(held_out[np.isfinite(held_out)]), initial=np.finfo(float).tiny)
    conditioning = conditioning_of(problem, mu, readout=kept.readout)
    one_minus_h = problem.path(np.asarray([mu])).one_minus_h
    stored = 4.0 * float(np.finfo(held_out.dtype).eps)  # predictions stored in float32
    return Verification(
        n_refits=len(deviations),
        max_deviation=float(max(deviations, default=np.inf) / scale),
        tolerance=max(1e-8, stored, 1e3 * conditioning),
        conditioning=conditioning,
        smallest_one_minus_leverage=float(namespace(one_minus_h).min(one_minus_h)),
    )


def _training_X(training: Any, X: Any) -> Any:
    """The training rows, or the kernel matrix that has to be passed again."""
    if not training.precomputed:
        return training.X
    if X is None:
        raise ValueError(
            "pass the training kernel matrix as X: with kernel='precomputed', it is not kept after "
            "fitting."
        )
    if tuple(X.shape) != (training.n_samples, training.n_samples):
        raise ValueError(
            f"X must be the training kernel matrix of shape {(training.n_samples,) * 2}, got "
            f"{tuple(X.shape)} instead."
        )
    return X


def _refit_outputs(
    estimator: Any, kept: FitRecord, mu: float, X: Any, train: np.ndarray, test: np.ndarray
) -> np.ndarray | None:
    """The main output for the test rows from an ordinary fit on the training rows, with the chosen
    parameters and row weights.

    None if the training rows lack a class or a landmark, or are too few: such a fit has another
    shape, or does not exist.
    """
    training = kept.training
    given = estimator.get_params(deep=False)
    settings = {name: getattr(estimator, f"{name}_", given[name]) for name in CHOSEN}
    settings |= {"alpha": mu} | {name: v for name, v in PLAIN.items() if name in given}
    if estimator.landmarks is not None:
        settings["landmarks"] = _landmarks_of(estimator, train)
        if settings["landmarks"].shape[0] == 0:
            return None
    weights = kept.row_weights
    if hasattr(estimator, "classes_"):
        present = np.unique(training.y[train][weights[train] > 0])
        if len(present) < len(estimator.classes_) or weights[train].sum() <= len(present):
            return None
    rows_of = X.subset if is_rows(X) else partial(take, X)
    X_train, X_test = rows_of(train), rows_of(test)
    if training.precomputed:
        X_train, X_test = take(X_train.T, train).T, take(X_test.T, train).T
    C = training.confounds
    of_train, of_test = ({}, {}) if C is None else ({"confounds": C[train]}, {"confounds": C[test]})
    model = clone(estimator).set_params(**settings)
    model.fit(X_train, training.y[train], sample_weight=weights[train], **of_train)
    predict = model.decision_function if hasattr(model, "decision_function") else model.predict
    outputs = predict(X_test, **of_test)
    return to_numpy(outputs)


def _landmarks_of(estimator: Any, train: np.ndarray) -> Any:
    """The landmarks of the fit.

    If landmarks are dropped with their rows, without those whose rows are not used for training.
    """
    if estimator.shared_landmarks != "drop":
        return estimator.landmarks_
    kept = (estimator.landmark_indices_ < 0) | np.isin(estimator.landmark_indices_, train)
    return take(estimator.landmarks_, np.flatnonzero(kept))
