"""The parameters of the estimators: what each accepts, what it needs of others, and what of it is
decided by the training rows. `PARAMETERS` and `NEEDS` are the tables.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.criteria import BY_TARGET, CLASSIFICATION, LOSSES, OF_THE_FIT, REGRESSION
from ..kernels import PARAMETERS as KERNEL_PARAMETERS
from ..kernels import RADIAL, KernelSum, families
from ..landmarks.choice import METHODS
from ..tuning.criterion import AUTO, is_scorer_name, wants_an_estimator
from .confounding import MEANINGS

NUMBER, SEVERAL, FUNCTION = "number", "several or given", "function"  # see `word`
TUNED_SUM, EQUAL_SUM = "sum with tuned numbers", "sum with equal shares"
SCALED_SUM = "sum with scaled widths"


@dataclass(frozen=True)
class Parameter:
    """`accepts`: the possible values, or a function of the estimator that raises an error.

    `rows`: values (see `word`) for which every training set decides anew, as `description` says.
    `labels`: those for which its labels decide more than targets, and a choice among numbers by
    their held-out values, which decompositions without labels serve.
    """

    accepts: tuple[Any, ...] | Callable[[Any], object] = ()
    rows: tuple[Any, ...] = ()
    labels: tuple[Any, ...] = ()
    description: str = "{name}={value!r} depends on the training rows"

    def check(self, estimator: Any, name: str) -> None:
        """Refuse an invalid value."""
        if callable(self.accepts):
            self.accepts(estimator)
            return
        given = getattr(estimator, name)
        if self.accepts and word(given) not in self.accepts:
            listed = ", ".join(map(repr, self.accepts))
            raise ValueError(f"{name} must be one of {listed}, got {given!r} instead.")


class Need(NamedTuple):
    """A parameter that, with one of these values, cannot be combined with some of another one's.

    All values are those of `word`. `needed` and `why` make the message.
    """

    name: str
    values: tuple[Any, ...]
    other: str
    refused: tuple[Any, ...]
    needed: str
    why: str


def check_parameters(estimator: Any) -> None:
    """Refuse invalid parameters and combinations of them."""
    for name, parameter in PARAMETERS.items():
        if hasattr(estimator, name):
            parameter.check(estimator, name)
    for need in NEEDS:
        value, other = (getattr(estimator, name, None) for name in (need.name, need.other))
        if word(value) in need.values and word(other) in need.refused:
            given = f'"{value}"' if isinstance(value, str) else f"{value!r:.60}"
            raise ValueError(
                f"{need.name}={given} needs {need.needed}, got {need.other}={other!r:.100} "
                f"instead: {need.why}"
            )


def rows_decide(estimator: Any) -> str | None:
    """Why a fit of fewer rows could use other parameters than one of all rows; None if not."""
    for name, value in _in_use(estimator):
        if word(value) in PARAMETERS[name].rows:
            of_sum = value.dependence if isinstance(value, KernelSum) else None
            return of_sum or PARAMETERS[name].description.format(name=name, value=value)
    return None


def labels_decide(estimator: Any) -> bool:
    """Whether the training labels decide more than targets and a choice among numbers."""
    ours = type(estimator).__module__.startswith(f"{__package__}.")
    return not ours or any(word(v) in PARAMETERS[name].labels for name, v in _in_use(estimator))


def _in_use(estimator: Any) -> Iterator[tuple[str, Any]]:
    """The parameters of the table with their values, without those that have no effect."""
    family = families(estimator.kernel)
    of_kernel = KERNEL_PARAMETERS.get(family, ()) if isinstance(family, str) else ()
    unused = {"gamma", "degree", "coef0"}.difference(of_kernel)
    if word(estimator.landmarks) != NUMBER:
        unused |= {"landmark_method", "random_state"}
    if "tune" not in (word(estimator.alpha), word(estimator.gamma)):
        unused.add("refine")
    for name in PARAMETERS:
        if hasattr(estimator, name) and name not in unused:
            yield name, family if name == "kernel" else getattr(estimator, name)


def store_parameters(estimator: Any, given: dict[str, Any]) -> None:
    """Set the parameters of a constructor, given its local names, as attributes."""
    vars(estimator).update((name, value) for name, value in given.items() if name != "self")


def word(value: Any) -> Any:
    """A value as the tables name it: words, booleans and None as they are."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, KernelSum):
        equal = EQUAL_SUM if word(value.weights) == "equal" else SCALED_SUM
        return TUNED_SUM if value.tunes else "sum" if value.dependence is None else equal
    number = isinstance(value, numbers.Real) or getattr(value, "ndim", None) == 0
    return NUMBER if number else FUNCTION if callable(value) else SEVERAL


def is_precomputed(kernel: Any) -> bool:
    """Whether X is a kernel matrix."""
    return bool(word(kernel) == "precomputed")


def used(model: Any, name: str) -> Any:
    """A parameter as it was in the fit, even if it has been changed since; before a fit, as it is.

    So a fitted model can predict until another fit has succeeded.
    """
    return model._used[name] if name in model._used else getattr(model, name)


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Values as float64, or an error that names the argument."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got {values!r} instead.") from error


# ---- what single parameters accept ---------------------------------------------------------------


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


def _check_alpha(estimator: Any) -> None:
    check_alpha(estimator.alpha)


def _check_criterion(estimator: Any) -> None:
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


def _check_compression(estimator: Any) -> None:
    given = estimator.compression
    if not _is_finite_number(given) or given <= 0:
        raise ValueError(f"compression must be a positive number, got {given!r} instead.")


def _check_class_weight(estimator: Any) -> None:
    given = estimator.class_weight
    if not (given is None or isinstance(given, Mapping) or word(given) == "balanced"):
        raise ValueError(f'class_weight must be a dict, "balanced" or None, got {given!r} instead.')


def _check_kernel(estimator: Any) -> None:
    """The kernel, and the parameters that it has."""
    if isinstance(estimator.kernel, KernelSum):
        return  # it is checked when the columns are known
    for kernel in _checked_families(estimator.kernel):
        names = KERNEL_PARAMETERS[kernel] if isinstance(kernel, str) else ()
        if "gamma" in names:
            _check_gamma(estimator.gamma, kernel)
        for name in ("degree", "coef0"):
            value = getattr(estimator, name)
            tuned = word(value) == "tune" and kernel in ("poly", "polynomial")
            if name in names and not tuned and not _is_finite_number(value):
                raise ValueError(
                    f'{name} must be a finite number, or "tune" for the polynomial kernel, got '
                    f"{value!r} instead."
                )


def _check_kernel_params(estimator: Any) -> None:
    given = estimator.kernel_params
    if given is not None and not isinstance(given, dict):
        raise TypeError(f"kernel_params must be a dict or None, got {given!r} instead.")


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


def _check_gamma(gamma: Any, kernel: str) -> None:
    positive = kernel in RADIAL
    if gamma is None or word(gamma) in ("tune", "scale", "auto"):
        return
    if kernel == "rbf" and np.ndim(gamma) == 1:
        widths = np.asarray(gamma, dtype=np.float64)
        if not np.all(np.isfinite(widths)) or np.any(widths < 0):
            raise ValueError("gamma must be finite and not negative for every feature.")
        return
    if not _is_finite_number(gamma) or (positive and gamma <= 0):
        kind = "a positive finite number" if positive else "a finite number"
        raise ValueError(
            f'gamma must be {kind}, "tune", "scale", "auto" or None (1/n_features) or, for rbf, '
            f"one value per feature, got {gamma!r} instead."
        )


def _check_landmarks(estimator: Any) -> None:
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


def _is_finite_number(value: Any) -> bool:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return number and bool(np.isfinite(value))


# ---- the tables ----------------------------------------------------------------------------------

BOOLEANS, GIVEN = (True, False), (NUMBER, SEVERAL)
PARAMETERS = {
    "kernel": Parameter(
        _check_kernel,
        (SEVERAL, TUNED_SUM, EQUAL_SUM, SCALED_SUM),
        (TUNED_SUM,),
        "the kernel is chosen on each training set",
    ),
    "class_weight": Parameter(
        _check_class_weight,
        ("balanced",),
        ("balanced", SEVERAL),
        'class_weight="balanced" depends on the training rows',
    ),
    "calibration": Parameter(
        ("temperature", "sigmoid", "isotonic", None),
        ("sigmoid", "isotonic"),
        ("sigmoid", "isotonic"),
        "calibration={value!r} places the threshold on each training set",
    ),
    "readout": Parameter(("lda", "centroid")),
    "alpha": Parameter(
        _check_alpha, ("tune", SEVERAL), description="alpha is chosen on each training set"
    ),
    "cv": Parameter((), GIVEN, GIVEN, "cv splits each training set"),
    "landmarks": Parameter(
        _check_landmarks, (NUMBER,), description="landmarks are chosen on each training set"
    ),
    "random_state": Parameter(labels=(None, SEVERAL)),
    "gamma": Parameter(rows=("tune", "scale")),
    "degree": Parameter(rows=("tune",)),
    "coef0": Parameter(rows=("tune",)),
    "kernel_params": Parameter(_check_kernel_params),
    "penalty": Parameter(("function", "dual", "tune"), ("tune",)),
    "criterion": Parameter(_check_criterion),
    "compression": Parameter(_check_compression),
    "pooled": Parameter(BOOLEANS),
    "refine": Parameter(BOOLEANS, labels=(True,)),
    "search": Parameter(("auto", "full")),
    "confounding": Parameter(MEANINGS),
    "fit_intercept": Parameter((*BOOLEANS, "penalized", "coefficient")),
    "landmark_method": Parameter(METHODS, labels=("greedy",)),
    "shared_landmarks": Parameter((*BOOLEANS, "drop")),
    "alpha_per_target": Parameter(BOOLEANS),
    "store_dual_coef": Parameter((*BOOLEANS, "auto")),
    "store_held_out": Parameter((*BOOLEANS, "auto")),
}
OTHER_WORDS = {  # of scikit-learn's SVC and searches
    "C": "alpha, as 1/C",
    "probability": "nothing for it: classifiers have predict_proba (see calibration)",
    "scoring": "criterion",
}
NEEDS = (
    Need(
        "fit_intercept",
        ("coefficient",),
        "penalty",
        ("function", "tune"),
        'penalty="dual"',
        'only the dual norm penalizes each coefficient. For penalty="function" use '
        'fit_intercept="penalized", whose penalty is alpha (‖f‖² + b²).',
    ),
    Need(
        "fit_intercept",
        ("coefficient",),
        "landmarks",
        GIVEN,
        "landmarks=None",
        "the bias of a model with landmarks is free, absent, or the sum of the coefficients. Use "
        'True, False or "penalized".',
    ),
    Need(
        "readout",
        ("centroid",),
        "priors",
        GIVEN,
        "priors=None",
        'the nearest centroid treats all classes as equally frequent. Use readout="lda".',
    ),
    Need(
        "landmarks",
        GIVEN,
        "kernel",
        ("precomputed",),
        "a kernel of rows",
        "kernels between rows and landmarks have to be computed. Pass the rows and the name of a "
        "kernel, or use landmarks=None, since the kernel matrix already exists.",
    ),
    Need(
        "landmarks",
        GIVEN,
        "kernel",
        (TUNED_SUM, EQUAL_SUM),
        "a KernelSum of numbers",
        'tuned or "equal" weights and tuned gammas need the whole kernel matrix. Tune them on '
        "fewer rows and pass them as numbers, or use landmarks=None.",
    ),
    Need(
        "kernel",
        (TUNED_SUM,),
        "penalty",
        ("dual", "tune"),
        'penalty="function"',
        "the gradient of tuned weights or gammas exists only for the function norm. Pass weights "
        "and gamma as numbers.",
    ),
    Need(
        "criterion",
        ("loo_log_density", "marginal_likelihood"),
        "penalty",
        ("dual", "tune"),
        'penalty="function"',
        "only the function norm corresponds to a Gaussian process prior.",
    ),
    Need(
        "alpha_per_target",
        (True,),
        "refine",
        (True,),
        "refine=False",
        "the first chooses among candidates, the second moves one alpha for all targets between "
        "them. More candidates are cheap: alpha=np.logspace(...).",
    ),
    Need(
        "alpha_per_target",
        (True,),
        "kernel",
        (TUNED_SUM,),
        "a KernelSum whose weights and widths are numbers",
        "tuning them uses one alpha for all targets. Fit with alpha_per_target=False first, and "
        "pass kernel=model.kernel_.",
    ),
    Need(
        "alpha_per_target",
        (True,),
        "criterion",
        OF_THE_FIT,
        "a criterion of held-out values",
        "this one uses the fit of all rows. Use one of "
        f"{', '.join(map(repr, BY_TARGET))}, a scorer or a function.",
    ),
    Need(
        "alpha_per_target",
        (True,),
        "landmarks",
        GIVEN,
        "landmarks=None",
        "the sums over rows that landmarks are fitted from contain all targets at once. Use "
        "alpha_per_target=False, or fit the targets one by one.",
    ),
)
