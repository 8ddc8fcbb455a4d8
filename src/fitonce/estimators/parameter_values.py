"""Values of parameters: their kinds, and what single ones accept."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.criteria import CLASSIFICATION, LOSSES, REGRESSION
from ..kernels import PARAMETERS as KERNEL_PARAMETERS
from ..kernels import RADIAL, KernelSum, families
from ..kernels.sums import is_finite_number
from ..tuning.criterion import AUTO, is_scorer_name, wants_an_estimator

NUMBER, SEVERAL, FUNCTION, MAPPING = "a number", "several or given", "a function", "a dict"
TUNED_SUM, EQUAL_SUM = "sum with tuned numbers", "sum with equal shares"
SCALED_SUM = "sum with scaled widths"
KINDS = (NUMBER, SEVERAL, FUNCTION, MAPPING)


def word(value: Any) -> Any:
    """A value as the tables name it: words, booleans and None as they are, and other kinds."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, KernelSum):
        equal = EQUAL_SUM if word(value.weights) == "equal" else SCALED_SUM
        return TUNED_SUM if value.tunes else "sum" if value.dependence is None else equal
    if isinstance(value, Mapping):
        return MAPPING
    number = isinstance(value, numbers.Real) or getattr(value, "ndim", None) == 0
    return NUMBER if number else FUNCTION if callable(value) else SEVERAL


def is_precomputed(kernel: Any) -> bool:
    """Whether X is a kernel matrix."""
    return bool(word(kernel) == "precomputed")


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Values as float64, or an error that names the argument."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got {values!r} instead.") from error


def check_alpha(alpha: Any) -> np.ndarray | None:
    """`alpha` as an array of candidates, or None for "tune"."""
    accepted = '"tune", a positive number or an array of candidates'
    if isinstance(alpha, str):
        if alpha != "tune":
            raise ValueError(f"alpha must be {accepted}, got {alpha!r} instead.")
        return None
    try:
        candidates = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        if alpha is None:
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"alpha must be {accepted}, got {alpha!r} instead.") from None
    if candidates.ndim != 1 or candidates.size == 0:
        raise ValueError(
            "alpha must be a number or a one-dimensional array of candidates, got an array of "
            f"shape {candidates.shape} instead. "
            "Candidates are tried one by one; they are not one per target."
        )
    positive = np.isfinite(candidates) & (candidates > 0)
    if not positive.all():
        raise ValueError(
            f"alpha must be positive and finite, got {candidates[~positive][0]:g} instead: it is "
            "added to the eigenvalues of the kernel matrix, and without it held-out values do not "
            "exist if a row determines its own fit. Use a small positive number."
        )
    return candidates


def check_compression(estimator: Any) -> None:
    given = estimator.compression
    if not is_finite_number(given) or given <= 0:
        raise ValueError(f"compression must be a positive number, got {given!r} instead.")


def check_criterion(estimator: Any) -> None:
    """Refuse a criterion that is neither ours nor a scorer of held-out values."""
    criterion = estimator.criterion
    names = REGRESSION if estimator.multi_output else (AUTO, *CLASSIFICATION)
    ours = isinstance(criterion, str) and criterion in names
    scorer = is_scorer_name(criterion) and criterion not in LOSSES
    if not (ours or callable(criterion) or scorer):
        raise ValueError(
            f"criterion must be one of {', '.join(map(repr, names))}, a scikit-learn scorer by "
            "name or as an object, or a callable(y, held_out) -> score (higher is better), got "
            f"{criterion!r} instead."
        )
    if callable(criterion) and wants_an_estimator(criterion):
        raise TypeError(
            "criterion must be a callable(y, held_out) -> score, got one that takes an estimator "
            "and rows as well: there is no refitted estimator to pass to it. Make a scorer of its "
            "metric with sklearn.metrics.make_scorer, or use it as scoring= of cross_val_score."
        )


def check_kernel(estimator: Any) -> None:
    """The kernel, and the parameters that it has."""
    if isinstance(estimator.kernel, KernelSum):
        return  # it is checked when the columns are known
    for kernel in _checked_families(estimator.kernel):
        names = KERNEL_PARAMETERS[kernel] if isinstance(kernel, str) else ()
        if "gamma" in names:
            check_gamma(estimator.gamma, kernel)
        for name in ("degree", "coef0"):
            value = getattr(estimator, name)
            tuned = word(value) == "tune" and kernel in ("poly", "polynomial")
            if name in names and not tuned and not is_finite_number(value):
                raise ValueError(
                    f'{name} must be a finite number, or "tune" for the polynomial kernel, got '
                    f"{value!r} instead."
                )


def _checked_families(kernel: Any) -> tuple[Any, ...]:
    """The kernels that a parameter names: one, or several to choose from."""
    several = isinstance(kernel, (list, tuple))
    if several and not kernel:
        raise ValueError("kernel must have at least one kernel, got an empty list instead.")
    if several and not all(isinstance(name, str) for name in kernel):
        raise TypeError(
            f"a list of kernels must contain names, got {kernel!r} instead: to compare functions, "
            "use GridSearchCV or their best_score_."
        )
    found = families(kernel)
    listed = found if isinstance(found, tuple) else (found,)
    for name in listed:
        if not callable(name) and not (isinstance(name, str) and name in KERNEL_PARAMETERS):
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, KERNEL_PARAMETERS))}, a callable "
                'kernel(X, Y) -> matrix, a KernelSum or, to choose among several kernels, "tune" '
                f"or a list of names, got {name!r} instead."
            )
    if len(listed) > 1 and "precomputed" in listed:
        raise ValueError(
            "a list of kernels cannot contain 'precomputed', for which X is a kernel matrix: fit "
            "it separately and compare best_score_."
        )
    return listed


def check_gamma(gamma: Any, kernel: str) -> None:
    """Refuse a gamma that a kernel cannot use."""
    positive = kernel in RADIAL
    if gamma is None or word(gamma) in ("tune", "scale", "auto"):
        return
    if kernel == "rbf" and np.ndim(gamma) == 1:
        widths = np.asarray(gamma, dtype=np.float64)
        if not np.all(np.isfinite(widths)) or np.any(widths < 0):
            raise ValueError("gamma must be finite and not negative for every feature.")
        return
    if not is_finite_number(gamma) or (positive and gamma <= 0):
        kind = "a positive finite number" if positive else "a finite number"
        raise ValueError(
            f'gamma must be {kind}, "tune", "scale", "auto" or None (1/n_features) or, for rbf, '
            f"one value per feature, got {gamma!r} instead."
        )


def check_number_of_landmarks(estimator: Any) -> None:
    """Refuse a number that is no whole number of landmarks."""
    landmarks = estimator.landmarks
    if landmarks is None:
        return
    whole = isinstance(landmarks, numbers.Integral)
    if isinstance(landmarks, bool) or (isinstance(landmarks, numbers.Number) and not whole):
        raise TypeError(
            f"landmarks must be an integer, an array of points or None, got {landmarks!r} instead."
        )
    if whole and landmarks < 1:
        raise ValueError(
            f"landmarks must be at least 1, got {landmarks!r} instead: it is the number of kernels "
            "in the model."
        )
