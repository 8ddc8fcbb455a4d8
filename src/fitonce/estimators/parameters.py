"""The parameters of the estimators: what each accepts, what it needs of others, and what of it is
decided by the training rows. `PARAMETERS` and `NEEDS` are the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.criteria import BY_TARGET, OF_THE_FIT
from ..kernels import PARAMETERS as KERNEL_PARAMETERS
from ..kernels import KernelSum, families
from ..landmarks.choice import METHODS
from .confounding import MEANINGS
from .parameter_values import (
    EQUAL_SUM,
    KINDS,
    MAPPING,
    NUMBER,
    SCALED_SUM,
    SEVERAL,
    TUNED_SUM,
    check_compression,
    check_criterion,
    check_kernel,
    check_number_of_landmarks,
    word,
)


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
            listed = ", ".join(one if one in KINDS else repr(one) for one in self.accepts)
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

    def refuse(self, what: str, other: Any) -> None:
        """Raise the error: what needs this, and got another value."""
        raise ValueError(
            f"{what} needs {self.needed}, got {self.other}={other!r:.100} instead: {self.why}"
        )


def check_parameters(estimator: Any) -> None:
    """Refuse invalid parameters and combinations of them."""
    for name, parameter in PARAMETERS.items():
        if hasattr(estimator, name):
            parameter.check(estimator, name)
    for need in NEEDS:
        value, other = (getattr(estimator, name, None) for name in (need.name, need.other))
        if word(value) in need.values and word(other) in need.refused:
            given = f'"{value}"' if isinstance(value, str) else f"{value!r:.60}"
            need.refuse(f"{need.name}={given}", other)


def check_confounded(estimator: Any) -> None:
    """Refuse parameters that are not defined, or have no closed form, with confounds."""
    for need in NEEDS_OF_CONFOUNDS:
        other = getattr(estimator, need.other, True)
        if word(other) in need.refused:
            need.refuse(f"{type(estimator).__name__} with confounds", other)


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


def used(model: Any, name: str) -> Any:
    """A parameter as it was in the fit, even if it has been changed since; before a fit, as it is.

    So a fitted model can predict until another fit has succeeded.
    """
    return model._used[name] if name in model._used else getattr(model, name)


# ---- the tables ----------------------------------------------------------------------------------

BOOLEANS, GIVEN = (True, False), (NUMBER, SEVERAL)
PARAMETERS = {
    "kernel": Parameter(
        check_kernel,
        (SEVERAL, TUNED_SUM, EQUAL_SUM, SCALED_SUM),
        (TUNED_SUM,),
        "the kernel is chosen on each training set",
    ),
    "class_weight": Parameter(
        ("balanced", None, MAPPING),
        ("balanced",),
        ("balanced", MAPPING),
        'class_weight="balanced" depends on the training rows',
    ),
    "calibration": Parameter(
        ("temperature", "sigmoid", "isotonic", None),
        ("sigmoid", "isotonic"),
        ("sigmoid", "isotonic"),
        "calibration={value!r} places the threshold on each training set",
    ),
    "readout": Parameter(("lda", "centroid")),
    "alpha": Parameter(  # accepted by `check_alpha`
        rows=("tune", SEVERAL), description="alpha is chosen on each training set"
    ),
    "cv": Parameter((), GIVEN, GIVEN, "cv splits each training set"),
    "landmarks": Parameter(
        check_number_of_landmarks,
        (NUMBER,),
        description="landmarks are chosen on each training set",
    ),
    "random_state": Parameter(labels=(None, SEVERAL)),
    "gamma": Parameter(rows=("tune", "scale")),
    "degree": Parameter(rows=("tune",)),
    "coef0": Parameter(rows=("tune",)),
    "kernel_params": Parameter((None, MAPPING)),
    "penalty": Parameter(("function", "dual", "tune"), ("tune",)),
    "criterion": Parameter(check_criterion),
    "compression": Parameter(check_compression),
    "pooled": Parameter(BOOLEANS),
    "refine": Parameter(BOOLEANS, labels=(True,)),
    "search": Parameter(("auto", "full", "coarse")),
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
NEEDS_OF_CONFOUNDS = (
    Need(
        "confounds",
        GIVEN,
        "fit_intercept",
        (False, "penalized", "coefficient"),
        "fit_intercept=True",
        "confounds are regressed out together with the mean.",
    ),
    Need("confounds", GIVEN, "refine", (True,), "refine=False", "there are no derivatives."),
    Need(
        "confounds",
        GIVEN,
        "criterion",
        OF_THE_FIT,
        "a criterion of held-out rows",
        'this one uses the fit of all rows. Use, for example, "squared_error".',
    ),
    Need(
        "confounds",
        GIVEN,
        "shared_landmarks",
        ("drop",),
        "shared_landmarks=True or False",
        "False chooses landmarks on every training set.",
    ),
)
