"""Validation of the parameters of an estimator."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.criteria import LOSSES
from ..kernels import PARAMETERS, RADIAL, KernelSum, families
from ..tuning.criterion import is_scorer_name, wants_an_estimator


def check_alpha(alpha: Any) -> np.ndarray | None:
    """`alpha` as an array of candidates, or None for "tune"."""
    if isinstance(alpha, str):
        if alpha != "tune":
            raise ValueError(
                'alpha must be "tune", a positive number or an array of candidates, got '
                f"{alpha!r} instead."
            )
        return None
    try:
        candidates = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        if alpha is None:
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(
            f'alpha must be "tune", a positive number or an array of candidates, got {alpha!r} '
            "instead."
        ) from None
    if candidates.ndim != 1 or candidates.size == 0:
        raise ValueError(
            "alpha must be a number or a one-dimensional array of candidates, got an array of "
            f"shape {candidates.shape} instead. "
            "Candidates are tried one by one; they are not one per target."
        )
    if not np.all(np.isfinite(candidates)) or np.any(candidates <= 0):
        bad = candidates[~(np.isfinite(candidates) & (candidates > 0))]
        raise ValueError(
            f"alpha must be positive and finite, got {bad[0]:g} instead: it is added to the "
            "eigenvalues of the kernel matrix, "
            "and without it held-out values do not exist if a row determines its own fit. Use a "
            "small positive number."
        )
    return candidates


def check_options(estimator: BaseEstimator, **options: tuple[Any, ...]) -> None:
    """Check that each named parameter is one of its options."""
    for name, allowed in options.items():
        value = getattr(estimator, name)
        if not any(
            value is option or (isinstance(option, str) and value == option) for option in allowed
        ):
            listed = ", ".join(repr(option) for option in allowed)
            raise ValueError(f"{name} must be one of {listed}, got {value!r} instead.")


def check_criterion(estimator: Any, names: tuple[str, ...]) -> None:
    criterion = estimator.criterion
    ours = isinstance(criterion, str) and criterion in names
    scorer = is_scorer_name(criterion) and criterion not in LOSSES
    if not (ours or callable(criterion) or scorer):
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"criterion must be one of {listed}, a scikit-learn scorer by name or as an object, or "
            f"a callable(y, held_out) -> score (higher is better), got {criterion!r} instead."
        )
    if callable(criterion) and wants_an_estimator(criterion):
        raise TypeError(
            "criterion must be a callable(y, held_out) -> score, got one that takes an estimator "
            "and rows as well: there is no refitted estimator to pass to it. Make a scorer of its "
            "metric with sklearn.metrics.make_scorer, or use it as scoring= of cross_val_score."
        )
    compression = getattr(estimator, "compression", 1.0)
    if not _is_number(compression) or not np.isfinite(compression) or compression <= 0:
        raise ValueError(f"compression must be a positive number, got {compression!r} instead.")


def check_kernel_parameters(estimator: Any) -> None:
    if isinstance(estimator.kernel, KernelSum):
        _check_sum(estimator, estimator.kernel)
        return
    for kernel in _checked_families(estimator.kernel):
        used = PARAMETERS[kernel] if isinstance(kernel, str) else ()
        if "gamma" in used:
            _check_gamma(estimator.gamma, kernel)
        for name in ("degree", "coef0"):
            value = getattr(estimator, name)
            tuned = isinstance(value, str) and value == "tune" and kernel in ("poly", "polynomial")
            if name in used and not tuned and not (_is_number(value) and np.isfinite(value)):
                raise ValueError(
                    f'{name} must be a finite number, or "tune" for the polynomial kernel, got '
                    f"{value!r} instead."
                )
    if estimator.kernel_params is not None and not isinstance(estimator.kernel_params, dict):
        raise TypeError(
            f"kernel_params must be a dict or None, got {estimator.kernel_params!r} instead."
        )


def _check_sum(estimator: Any, kernel: KernelSum) -> None:
    """What a sum of kernels needs from the other parameters of the estimator; its own parameters
    are checked when the columns are known.
    """
    if estimator.landmarks is not None and (kernel.tunes or _is_word(kernel.weights, "equal")):
        raise ValueError(
            'tuned or "equal" weights and tuned gammas of a KernelSum need the whole kernel matrix '
            "and cannot be combined with landmarks: tune them on fewer rows and pass them as "
            "numbers, or use landmarks=None."
        )
    if not kernel.tunes:
        return
    if estimator.penalty != "function":
        raise ValueError(
            f'tuned weights or gammas of a KernelSum need penalty="function", got '
            f"penalty={estimator.penalty!r} instead: their gradient exists only for the function "
            "norm. Pass weights and gamma as numbers."
        )


def _is_word(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


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
    for name in found if isinstance(found, tuple) else (found,):
        if not callable(name) and not (isinstance(name, str) and name in PARAMETERS):
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, PARAMETERS))}, a callable "
                'kernel(X, Y) -> matrix, a KernelSum or, to choose among several kernels, "tune" '
                f"or a list of names, got {name!r} instead."
            )
    if not isinstance(found, tuple):
        return (found,)
    if "precomputed" in found:
        raise ValueError(
            "a list of kernels cannot contain 'precomputed', for which X is a kernel matrix: fit "
            "it separately and compare best_score_."
        )
    return found


def _check_gamma(gamma: Any, kernel: str) -> None:
    positive = kernel in RADIAL
    if gamma is None or (isinstance(gamma, str) and gamma in ("tune", "scale", "auto")):
        return
    if kernel == "rbf" and np.ndim(gamma) == 1:
        widths = np.asarray(gamma, dtype=np.float64)
        if not np.all(np.isfinite(widths)) or np.any(widths < 0):
            raise ValueError("gamma must be finite and not negative for every feature.")
        return
    if not _is_number(gamma) or not np.isfinite(gamma) or (positive and gamma <= 0):
        kind = "a positive finite number" if positive else "a finite number"
        raise ValueError(
            f'gamma must be {kind}, "tune", "scale", "auto" or None (1/n_features) or, for rbf, '
            f"one value per feature, got {gamma!r} instead."
        )


def check_bias(estimator: Any) -> None:
    """Refuse a bias among the coefficients if these are not penalized."""
    if estimator.fit_intercept != "coefficient":
        return
    if estimator.penalty != "dual":
        raise ValueError(
            'fit_intercept="coefficient" needs penalty="dual", got '
            f"penalty={estimator.penalty!r} instead: only the dual norm penalizes each "
            'coefficient. For penalty="function" use fit_intercept="penalized", whose penalty is '
            "alpha (‖f‖² + b²)."
        )
    if estimator.landmarks is not None:
        raise ValueError(
            'fit_intercept="coefficient" needs landmarks=None: the bias of a model with landmarks '
            'is free, absent, or the sum of the coefficients. Use True, False or "penalized".'
        )


def check_landmark_parameters(estimator: Any, methods: tuple[str, ...]) -> None:
    """Validate `landmarks` and related parameters, and their combinations."""
    check_options(estimator, landmark_method=methods, shared_landmarks=(True, False, "drop"))
    landmarks = estimator.landmarks
    if isinstance(landmarks, bool) or (
        isinstance(landmarks, numbers.Number) and not isinstance(landmarks, numbers.Integral)
    ):
        raise TypeError(
            f"landmarks must be an integer, an array of points or None, got {landmarks!r} instead."
        )
    if isinstance(landmarks, numbers.Integral) and landmarks < 1:
        raise ValueError(
            f"landmarks must be at least 1, got {landmarks!r} instead: it is the number of kernels "
            "in the model."
        )
    if is_precomputed(estimator.kernel):
        raise ValueError(
            "landmarks cannot be combined with kernel='precomputed', because kernels between rows "
            "and landmarks have to be computed. Pass the rows and the name of a kernel, or use "
            "landmarks=None, since the kernel matrix already exists."
        )


def is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


def used(model: Any, name: str) -> Any:
    """A parameter as it was in the fit, even if it has been changed since; before a fit, as it is.

    So a fitted model can predict until another fit has succeeded.
    """
    return model._used[name] if name in model._used else getattr(model, name)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Values as float64, or an error that names the argument."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got {values!r} instead.") from error
