"""What a fit takes from its training rows besides their targets, and the route that follows.

- `one`: a single decomposition of all rows; the model of every training set has a closed form.
- `per-fold`: one decomposition per training set, if something depends on the training rows:
  pipelines, tuning, balanced class weights. Everything inside a training set still has a closed
  form.
- `refit`: the estimator is from another library, or trains on averages or a part of the rows; it is
  refitted, as in scikit-learn, with a warning.

`estimators.parameters.PARAMETERS` is the table of what each parameter depends on, `STEPS` that of
the steps before a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from ..core.arrays import namespace, to_numpy
from ..core.refused import RefusedError
from ..estimators.accuracy import warn_of_greedy_landmarks
from ..estimators.fitted import chooses_steps, combined, final_step, is_model
from ..estimators.parameters import labels_decide, rows_decide
from ..estimators.setup import accepted_setup
from ..estimators.validation import is_foreign_array
from ..kernels import asymmetry, largest_entry
from ..tuning.criterion import SCORER
from .confounds import taken

STEPS = (  # without labels
    "fitonce.preparation",
    "sklearn.decomposition.",
    "sklearn.impute.",
    "sklearn.preprocessing.",
)
NESTED = {
    Pipeline: "steps",
    FeatureUnion: "transformer_list",
    ColumnTransformer: "transformers",
}
ENCODED = (
    "decision_function",
    "predict_proba",
    "predict_log_proba",
)  # before these versions, scikit-learn renumbers the labels


class RefitWarning(UserWarning):
    """The estimator has no closed form here and is refitted on every training set."""


@dataclass(frozen=True)
class Route:
    """The route that was taken: "one", "per-fold" or "refit", the reason, and how many folds of
    route "one" had to be fitted.

    A fold is fitted literally if the closed form does not apply: classes missing from the training
    rows, repeated rows, fewer training than deleted rows, or an output that needs more than
    held-out values (probabilities).
    """

    name: str
    reason: str
    fitted_folds: int = 0

    def __str__(self) -> str:
        fitted = f"; {self.fitted_folds} folds fitted literally" if self.fitted_folds else ""
        return f"{self.name} ({self.reason}{fitted})"


@dataclass(frozen=True)
class Depends:
    """What every training set decides anew.

    `rows` and `refit` are reasons, None if there is none: why a decomposition of all rows does not
    serve, and why not even one of the training rows does. `labels`: whether the labels decide more
    than the targets, and a choice among numbers by their held-out values.
    """

    rows: str | None
    labels: bool
    refit: str | None = None

    @property
    def route(self) -> Route:
        """The cheapest route."""
        if self.refit is not None:
            return Route("refit", self.refit)
        if self.rows is not None:
            return Route("per-fold", self.rows)
        return Route("one", "fixed parameters")


def depends(
    estimator: Any,
    X: Any,
    params: Mapping[str, Any] | None = None,
    scoring: Any = None,
    method: str = "predict",
) -> Depends:
    """What fits of this estimator with these parameters take from their training rows."""
    last = final_step(estimator)
    if not is_model(last) and combined(last) is None:
        return Depends(None, True, f"{type(estimator).__name__} has no closed form")
    if last is not estimator:
        how = "chosen" if chooses_steps(estimator) else "refitted"
        labels = chooses_steps(estimator) or not _unsupervised(estimator[:-1])
        labels = labels or not is_model(last) or labels_decide(last)
        return Depends(f"preprocessing is {how} on each training set", labels)
    if not is_model(estimator):
        return Depends(combined(estimator), True)
    confounds, params = taken(estimator, params)
    reason = (
        rows_decide(estimator)
        or _of_labels(estimator, method)
        or _of_order(estimator, X)
        or _of_parameters(estimator, params)
        or _of_scoring(scoring)
    )
    removed = confounds is not None and estimator.confounding == "remove"
    if removed and estimator.penalty == "dual":
        reason = reason or "confounds are removed from the kernel functions of each training set"
    return Depends(reason, labels_decide(estimator))


def _unsupervised(step: Any) -> bool:
    """Whether a step is known not to use labels, and not to draw other numbers at each fit."""
    if step is None or isinstance(step, str):
        return True
    for kind, parts in NESTED.items():
        if isinstance(step, kind):
            inner = [part[1] for part in getattr(step, parts)]
            return all(map(_unsupervised, [*inner, getattr(step, "remainder", None)]))
    if isinstance(getattr(step, "random_state", None), np.random.RandomState):
        return False
    known = type(step).__module__.startswith(STEPS)
    return known and not step.__sklearn_tags__().target_tags.required


def _of_labels(estimator: Any, method: str) -> str | None:
    if not hasattr(estimator, method):
        return f"{type(estimator).__name__} has no {method}"
    if method in ENCODED and isinstance(getattr(estimator, "class_weight", None), Mapping):
        return "class_weight names labels, which scikit-learn renumbers before each fit"
    return None


def _of_order(estimator: Any, X: Any) -> str | None:
    """A precomputed kernel that is only approximately symmetric.

    The result then depends on the order of the rows, which decides the triangle that is used.
    """
    if not (isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"):
        return None
    K = X if is_foreign_array(X) else np.asarray(X)
    square = (
        K.ndim == 2
        and 0 < K.shape[0] == K.shape[1]
        and namespace(K).isdtype(K.dtype, ("real floating", "integral"))
    )
    if square and asymmetry(K) > 1e-13 * largest_entry(K):
        return "the precomputed kernel is not exactly symmetric"
    return None


def _of_parameters(estimator: Any, params: Mapping[str, Any] | None) -> str | None:
    """Parameters of `fit` that are more than positive weights of all rows."""
    if set(passed_to_fit(estimator, params)) - {"sample_weight", "groups"}:
        return "fit receives parameters that have no closed form"
    weights = fit_weights(estimator, params)
    if weights is None:
        return None
    host = np.asarray(to_numpy(weights))
    if host.ndim != 1 or host.dtype.kind not in "iufb" or not np.all(host > 0):
        return "rows with zero weight are not used for training"
    return None


def _of_scoring(scoring: Any) -> str | None:
    """Scorers made by scikit-learn only call methods of the estimator.

    A user-defined function may use anything.
    """
    several = isinstance(scoring, (Mapping, list, tuple, set))
    scorers = scoring.values() if isinstance(scoring, Mapping) else scoring
    for scorer in scorers if several else [scoring]:
        if not (scorer is None or isinstance(scorer, (str, SCORER))):
            return "a user-defined scoring function uses the fitted estimator"
    return None


def passed_to_fit(estimator: Any, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters that reach `fit`, by the names that they have there."""
    given = dict(params or {})
    if not sklearn.get_config()["enable_metadata_routing"]:
        return given
    asked = estimator.get_metadata_routing().fit.requests
    names = {name: name if request is True else request for name, request in asked.items()}
    return {name: given[other] for name, other in names.items() if other and other in given}


def fit_weights(estimator: Any, params: Mapping[str, Any] | None) -> Any:
    """The sample weights of all rows, of which `fit` gets a part."""
    return passed_to_fit(estimator, params).get("sample_weight")


def share_landmarks(
    estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None
) -> tuple[Any, np.ndarray | None]:
    """With `shared_landmarks`, the estimator with the points chosen from all rows, and the rows
    that a fold drops with its test rows.

    The rows are None if nothing is dropped. Errors about all rows together are left to the folds.
    """
    last = final_step(estimator)
    chooses = (
        is_model(last)
        and isinstance(last.landmarks, (int, np.integer))
        and last.shared_landmarks is not False
    )
    if not chooses:
        return estimator, None
    if last is not estimator:
        raise ValueError(
            "shared_landmarks needs the same points for all training sets, but the steps before "
            "the estimator are refitted on each of them. Preprocess the data once beforehand, or "
            "use shared_landmarks=False."
        )
    try:
        setup = accepted_setup(clone(estimator), X, y, fit_weights(estimator, params))
    except RefusedError:
        return estimator, None
    landmarks = setup.data.landmarks
    assert landmarks is not None
    warn_of_greedy_landmarks(estimator)
    shared = clone(estimator).set_params(landmarks=landmarks.points)
    if estimator.shared_landmarks != "drop":
        return shared, None
    return shared, np.where(landmarks.rows >= 0, setup.training.active[landmarks.rows], -1)


__all__ = [
    "Depends",
    "RefitWarning",
    "Route",
    "depends",
    "fit_weights",
    "passed_to_fit",
    "share_landmarks",
]
