"""Held-out outputs of every split, computed in the cheapest way.

If nothing depends on the training rows, decisions and predictions follow from one decomposition
(`cross_val_predict`), and no split has to be fitted. Otherwise every split is fitted once, its
outputs are read, and the model is dropped before the next: one decomposition is in memory at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import check_cv

from ..core.progress import say
from ..core.readout import labels_of
from ..core.rows import is_rows
from ..crossval import Route, cross_val_predict, cross_validate
from ..crossval.depends import depends
from ..crossval.stand_in import StandIn
from ..estimators.fitted import chooses_steps, chosen_steps, final_step, is_model
from ..kernels import PARAMETERS, families
from ..rows.dask import is_dask
from .data import AssessedRows, on_host

CHOSEN = ("kernel", "gamma", "alpha", "penalty", "degree", "coef0")
Splits = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Fold:
    """Outputs for the test rows of one split by method, the classes among its training rows, and
    the settings chosen by its estimator.
    """

    outputs: dict[str, np.ndarray]
    classes: np.ndarray
    choice: dict[str, Any]


@dataclass(frozen=True)
class Round:
    """One partition of the rows.

    Held-out outputs, the split number of each row, and the settings chosen in each split.
    """

    predictions: np.ndarray
    probabilities: np.ndarray | None
    decisions: np.ndarray | None
    fold: np.ndarray
    splits: Splits
    choices: list[dict[str, Any]]
    route: Route

    @property
    def tested(self) -> np.ndarray:
        """Indices of the rows that have a held-out prediction."""
        return np.flatnonzero(self.fold >= 0)


def rounds_of(estimator: Any, data: AssessedRows, splitters: Sequence[Any]) -> list[Round]:
    """One pass of nested cross-validation for every splitter; progress is reported per split."""
    method = "predict" if data.classes is None else "decision_function"
    route = depends(estimator, data.X, data.params, method=method).route
    way = _in_closed_form if route.name == "one" else _fitted
    partitions = [_splits(splitter, data) for splitter in splitters]
    total = sum(map(len, partitions))
    literal = route.name == "one" and hasattr(estimator, "predict_proba")  # for temperatures
    found: list[Fold] = []

    def add(fold: Fold) -> None:
        found.append(fold)
        say(len(found), total, "cross-validation")

    say(0, total, "cross-validation")
    rounds = []
    for splits in partitions:
        way(estimator, data, splits, add)
        taken = replace(route, fitted_folds=len(splits) if literal else 0)
        rounds.append(_gathered(data, splits, found[-len(splits) :], taken))
    return rounds


def baselines_of(data: AssessedRows, rounds: Sequence[Round]) -> list[Round]:
    """A model that ignores the features, on the same splits."""
    blank, route = np.zeros((len(data.y), 1)), Route("refit", "a constant answer")
    dummy = DummyRegressor() if data.classes is None else DummyClassifier(strategy="prior")

    def fold(train: np.ndarray, test: np.ndarray) -> Fold:
        weights = None if data.weights is None else data.weights[train]
        return _read(dummy.fit(blank[train], data.y[train], weights), blank[test])

    return [_gathered(data, r.splits, list(starmap(fold, r.splits)), route) for r in rounds]


def choice_of(estimator: Any) -> dict[str, Any]:
    """The settings chosen by a fitted fitonce estimator, or by the last step of a pipeline, and
    those that the pipeline chose for its other steps.
    """
    model = final_step(estimator)
    found = {
        name: on_host(getattr(model, f"{name}_")).tolist()
        for name in CHOSEN
        if is_model(model) and hasattr(model, f"{name}_") and _is_open(model, name)
    }
    return found | chosen_steps(estimator)


def _is_open(model: Any, name: str) -> bool:
    """Whether a parameter was chosen; a kernel counts only if there were several."""
    return name != "kernel" or isinstance(families(model.kernel), tuple)


def chooses(estimator: Any, X: Any) -> bool:
    """Whether the training rows decide anything about the last step, if it is a fitonce
    estimator, or about the steps before it by its score.
    """
    return chooses_steps(estimator) or depends(final_step(estimator), X, None).route.name != "one"


def _splits(splitter: Any, data: AssessedRows) -> Splits:
    X = np.empty((len(data.y), 1)) if is_rows(data.X) or is_dask(data.X) else data.X
    cv = check_cv(splitter, data.y, classifier=data.classes is not None)
    splits = list(cv.split(X, data.y, groups=data.groups))
    tested = np.concatenate([np.arange(len(data.y))[test] for _, test in splits])
    again = len(tested) - len(np.unique(tested))
    if again:
        raise ValueError(
            f"cv must test each row at most once, but {again} rows are tested repeatedly: pooled "
            "scores would count them twice. Use a single partition, and repeats= for more."
        )
    return splits


def _in_closed_form(
    estimator: Any, data: AssessedRows, splits: Splits, add: Callable[[Fold], None]
) -> None:
    """From one decomposition of all rows; only probabilities need a fit, of their temperature."""
    held_out = partial(
        cross_val_predict, estimator, data.X, data.y, cv=splits, params=data.params, by_fold=True
    )
    offered = ("decision_function", "predict_proba") if data.classes is not None else ("predict",)
    found = {name: held_out(method=name) for name in offered if hasattr(estimator, name)}
    used = PARAMETERS.get(estimator.kernel, ()) if isinstance(estimator.kernel, str) else ()
    names = [name for name in CHOSEN if name in (*used, "alpha", "penalty")]
    choice = {name: on_host(getattr(estimator, name)).tolist() for name in names}
    for number, (train, _) in enumerate(splits):
        outputs = {method: on_host(pairs[number][1]) for method, pairs in found.items()}
        classes = np.unique(data.y[train])
        if data.classes is not None:
            outputs["predict"] = labels_of(outputs["decision_function"], classes)
        add(Fold(outputs, classes, choice))


def _fitted(
    estimator: Any, data: AssessedRows, splits: Splits, add: Callable[[Fold], None]
) -> None:
    """Fit every split; `read` is called with each model in turn and keeps its outputs."""

    def read(model: Any, X: Any, y: Any) -> float:
        add(_read(model, X))
        return float(len(y))  # scikit-learn wants a number

    cross_validate(
        estimator,
        data.X,
        data.y,
        scoring=read,
        cv=splits,
        params=data.params,
        error_score="raise",
    )


def _read(model: Any, X: Any) -> Fold:
    """The outputs of a fitted model for test rows."""
    methods = ("predict_proba", "decision_function") if is_classifier(model) else ()
    used = ["predict", *(method for method in methods if hasattr(model, method))]
    outputs = {method: on_host(getattr(model, method)(X)) for method in used}
    real = model.fitted() if isinstance(model, StandIn) else model
    return Fold(outputs, getattr(model, "classes_", np.empty(0)), choice_of(real))


def _gathered(data: AssessedRows, splits: Splits, folds: list[Fold], route: Route) -> Round:
    """The outputs of all splits by row."""
    n = len(data.y)
    fold, predictions = np.full(n, -1), np.full(n, np.nan if data.classes is None else None)
    for number, ((_, test), found) in enumerate(zip(splits, folds, strict=True)):
        fold[test] = number
        predictions[test] = found.outputs["predict"]
    if data.classes is not None and np.all(fold >= 0):
        predictions = predictions.astype(data.y.dtype)
    probabilities, decisions = (
        None if data.classes is None else _by_row(method, data.classes, n, splits, folds)
        for method in ("predict_proba", "decision_function")
    )
    choices = [found.choice for found in folds]
    return Round(predictions, probabilities, decisions, fold, splits, choices, route)


def _by_row(
    method: str, classes: np.ndarray, n: int, splits: Splits, folds: list[Fold]
) -> np.ndarray | None:
    """An output of all splits, with columns for all classes; None if a split does not have it.

    A class that is missing from the training rows has probability 0; decisions are then undefined.
    """
    lacking = any(len(found.classes) < len(classes) for found in folds)
    absent = any(method not in found.outputs for found in folds)
    if absent or (lacking and method == "decision_function"):
        return None
    columns = [len(classes)] * (folds[0].outputs[method].ndim - 1)  # none for binary decisions
    gathered = np.full((n, *columns), np.nan)
    for (_, test), found in zip(splits, folds, strict=True):
        gathered[test] = 0.0
        known = (np.searchsorted(classes, found.classes),) if gathered.ndim == 2 else ()
        gathered[np.ix_(test, *known)] = found.outputs[method]
    return gathered
