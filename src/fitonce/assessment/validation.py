"""A fitted model on rows that it has not seen: external validation.

The model is given, so rows (or groups) are independent, and the intervals of `intervals` need no
correction: the standard error of a score is that of the mean of what rows add to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..crossval.confounds import call
from ..crossval.depends import Route
from . import render, scores
from .data import AssessedRows, on_host
from .folds import Round
from .ranking import auc_of
from .result import Estimate, plain


@dataclass(frozen=True, repr=False)
class Validation:
    """Scores of a fitted model on new rows.

    Attributes
    ----------
    task : {"classification", "regression"}
    n_samples : int
    score_name : {"accuracy", "r2"}
    intervals : dict of str to Estimate
        Every score with its interval.
    classes : array or None
    confusion : array of shape (n_classes, n_classes) or None
        Number (or weight) of rows of class i predicted as j.
    level : float
    """

    task: str
    n_samples: int
    score_name: str
    intervals: Mapping[str, Estimate]
    classes: np.ndarray | None
    confusion: np.ndarray | None
    level: float

    @property
    def score(self) -> Estimate:
        return self.intervals[self.score_name]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python objects, for JSON; NaN becomes None."""
        return dict(plain(vars(self)))

    def __str__(self) -> str:
        return render.as_text([render.validation(self)])

    __repr__ = __str__


def validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    confounds: Any = None,
    level: float = 0.95,
) -> Validation:
    """Score a fitted model on labeled rows that it has not seen.

    Parameters
    ----------
    model : fitted classifier or regressor
    X : array-like or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,), default=None
        Rows of one group count as one unit in the intervals.
    sample_weight : array-like of shape (n_samples,), default=None
    confounds : table or array, default=None
        The confounds of these rows, for a model that was fitted with confounds.
    level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    Validation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.assessment import validate
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant(gamma=0.2, alpha=0.1).fit(X[::2], y[::2])
    >>> print(validate(model, X[1::2], y[1::2]).score)
    0.973 [0.906, 0.993]
    """
    data = AssessedRows.of(model, X, y, groups, sample_weight, confounds)
    if data.classes is not None:
        data = replace(data, classes=_known_classes(model, data.y))
    n, used = len(data.y), np.arange(len(data.y))
    said = [
        on_host(call(model, method, X, confounds)) if hasattr(model, method) else None
        for method in ("predict_proba", "decision_function")
    ]
    round_ = Round(
        predictions=on_host(call(model, "predict", X, confounds)),
        probabilities=said[0],
        decisions=said[1],
        fold=np.zeros(n, dtype=int),
        splits=[(used[:1], used)],  # the training rows are elsewhere
        choices=[],
        route=Route("refit", "the model is given"),
        inner=[],
    )
    metrics = scores.pooled_scores(data, [round_], {})
    if data.classes is not None:
        metrics["roc_auc"], _ = auc_of(model, data, [round_])
    return Validation(
        "regression" if data.classes is None else "classification",
        n,
        data.score_name,
        scores.estimates(data, metrics, [round_], {}, level),
        data.classes,
        scores.confusion(data, round_),
        level,
    )


def _known_classes(model: Any, y: np.ndarray) -> np.ndarray:
    """The classes of a model, after checking that it knows those of the rows."""
    classes = np.asarray(model.classes_)
    unknown = sorted(set(y.tolist()) - set(classes.tolist()))
    if unknown:
        raise ValueError(
            f"the model does not know the classes {render.joined(unknown)}, only "
            f"{render.joined(classes.tolist())}: it cannot predict these rows. Leave them out, or "
            "check how the labels are written."
        )
    return classes
