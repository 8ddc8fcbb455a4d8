"""Held-out outputs of every split, and predictions of models that have seen neither of two folds.

Every split is fitted once, or looked up in one decomposition if nothing depends on the training
rows; its outputs are read, and the model is dropped before the next: one decomposition is in memory
at a time. Models without a second fold, which the intervals need, are those of fixed settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from ..core.progress import report_progress
from ..core.readout import labels_of
from ..core.rows import is_rows
from ..core.splits import Splits
from ..crossval import Route, cross_val_predict, cross_validate
from ..crossval.depends import depends
from ..crossval.lookup import RowLookupEstimator
from ..estimators.fitted import chooses_steps, chosen_steps, final_step, is_model, with_first_steps
from ..kernels import PARAMETERS, families
from ..rows.dask import is_dask
from .data import AssessedRows, on_host

CHOSEN = ("kernel", "gamma", "alpha", "penalty", "degree", "coef0")
MOST_FOLDS = 10  # of a partition whose pairs of folds are left out together


@dataclass(frozen=True)
class Fold:
    """Outputs for the test rows of one split by method, the classes among its training rows, the
    settings chosen by its estimator.
    """

    outputs: dict[str, np.ndarray]
    classes: np.ndarray
    choice: dict[str, Any]


@dataclass(frozen=True)
class Round:
    """One partition of the rows.

    Held-out outputs, the split number of each row, and the settings chosen in each split. `inner`
    has for every split the predictions (n,) of models without its fold and the fold of the row;
    empty where refits would be needed.
    """

    predictions: np.ndarray
    probabilities: np.ndarray | None
    decisions: np.ndarray | None
    fold: np.ndarray
    splits: Splits
    choices: list[dict[str, Any]]
    route: Route
    inner: list[np.ndarray]

    @property
    def tested(self) -> np.ndarray:
        """Indices of the rows that have a held-out prediction."""
        return np.flatnonzero(self.fold >= 0)


def rounds_of(
    estimator: Any, data: AssessedRows, partitions: Sequence[Splits], n_probabilities: int
) -> list[Round]:
    """Cross-validation for every partition; progress is reported per split. Where no split needs a
    fit, only the first partitions have probabilities, whose temperatures do.
    """
    method = "predict" if data.classes is None else "decision_function"
    route = depends(estimator, data.X, data.params, method=method).route
    one = route.name == "one"
    total, done = sum(map(len, partitions[: max(n_probabilities, 1) if one else None])), 0
    report_progress(0, total, "cross-validation")
    if one:
        rounds = _looked_up(estimator, data, partitions, n_probabilities, route)
        report_progress(total, total, "cross-validation")
        return rounds
    rounds = []
    for splits in partitions:
        folds: list[Fold] = []
        reader = _reader(folds, (done, total))
        given: dict[str, Any] = {"cv": splits, "params": data.params, "error_score": "raise"}
        cross_validate(estimator, data.X, data.y, scoring=reader, **given)
        rounds.append(_gathered(data, splits, folds, route))
        done += len(splits)
    return rounds


def _looked_up(
    estimator: Any,
    data: AssessedRows,
    partitions: Sequence[Splits],
    n_probabilities: int,
    route: Route,
) -> list[Round]:
    """From one decomposition of all rows: every fold, and every two folds left out together."""
    choice, pairs = _given(estimator), [_pairs(splits, data) for splits in partitions]
    kept, alone = fixed(estimator, {}), replace(data, params=without_groups(data.params))
    outer = [split for splits in partitions for split in splits]
    both = [
        _both(splits, *pair)
        for splits, each in zip(partitions, pairs, strict=True)
        for pair in each
    ]
    try:
        outputs = _held_out(kept, alone, [*outer, *both])
    except ValueError:  # no model can be fitted without some two folds: no nested interval
        outputs, pairs = _held_out(kept, alone, outer), [[] for _ in partitions]
    found, rest = iter(outputs[: len(outer)]), iter(outputs[len(outer) :])
    literal = [split for splits in partitions[:n_probabilities] for split in splits]
    offered = hasattr(estimator, "predict_proba") and len(literal) > 0
    probabilities = iter(_by_fold(estimator, data, literal, "predict_proba") if offered else [])
    rounds = []
    for number, splits in enumerate(partitions):
        with_p = offered and number < n_probabilities
        folds = [
            Fold(
                next(found) | ({"predict_proba": next(probabilities)} if with_p else {}),
                np.unique(data.y[train]) if data.classes is not None else np.empty(0),
                choice,
            )
            for train, _ in splits
        ]
        inner = [np.empty_like(data.y) for _ in splits if pairs[number]]
        for a, b in pairs[number]:
            first, second = splits[a][1], splits[b][1]
            inner[b][first], inner[a][second] = np.split(next(rest)["predict"], [len(first)])
        taken = replace(route, fitted_folds=len(splits) if with_p else 0)
        rounds.append(replace(_gathered(data, splits, folds, taken), inner=inner))
    return rounds


def _both(splits: Splits, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """The split that leaves out two folds."""
    test = np.concatenate([splits[a][1], splits[b][1]])
    return np.setdiff1d(np.concatenate([splits[a][0], splits[a][1]]), test), test


def fixed(model: Any, choice: Mapping[str, Any]) -> Any:
    """An unfitted model with chosen settings, which needs no splits of its own: its decisions do
    not depend on the temperature of probabilities.
    """
    settings = {name: value for name, value in choice.items() if name in CHOSEN}
    found = clone(model).set_params(**settings, cv=None, refine=False)
    return found.set_params(calibration=None) if hasattr(found, "calibration") else found


def without_groups(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of fit of the model itself, without the groups, which only its own splits need."""
    named = {name.rpartition("__")[2]: values for name, values in params.items()}
    return {name: values for name, values in named.items() if name != "groups"}


def _held_out(estimator: Any, data: AssessedRows, cv: Splits) -> list[dict[str, np.ndarray]]:
    """Predictions and decisions of the test rows of every split."""
    if data.classes is None:
        return [{"predict": said.reshape(-1)} for said in _by_fold(estimator, data, cv, "predict")]
    decisions = _by_fold(estimator, data, cv, "decision_function")
    return [
        {
            "decision_function": decision,
            "predict": labels_of(decision, np.unique(data.y[train])),
        }
        for (train, _), decision in zip(cv, decisions, strict=True)
    ]


def _by_fold(estimator: Any, data: AssessedRows, cv: Splits, method: str) -> list[np.ndarray]:
    given: dict[str, Any] = {"cv": cv, "params": data.params, "by_fold": True, "method": method}
    return [on_host(found) for _, found in cross_val_predict(estimator, data.X, data.y, **given)]


def _pairs(splits: Splits, data: AssessedRows) -> list[tuple[int, int]]:
    """Every two splits, if they are a partition into few folds and rows of every class are left
    where two folds are left out; else none.
    """
    n, few = len(data.y), 2 < len(splits) <= MOST_FOLDS
    whole = sum(len(test) for _, test in splits) == n
    rest = all(len(train) + len(test) == n for train, test in splits)
    if not (few and whole and rest):
        return []
    pairs = list(combinations(range(len(splits)), 2))
    if data.classes is not None:
        codes = np.searchsorted(data.classes, data.y)
        counts = [np.bincount(codes[test], minlength=len(data.classes)) for _, test in splits]
        left = [np.sum(counts, axis=0) - counts[a] - counts[b] for a, b in pairs]
        return pairs if np.min(left) > 0 else []
    return pairs


def _reader(folds: list[Fold], told: tuple[int, int]) -> Callable[..., float]:
    """A scorer that keeps the outputs of each model in turn in `folds`."""

    def read(model: Any, X: Any, y: Any) -> float:
        real = model.fitted() if isinstance(model, RowLookupEstimator) else model
        folds.append(replace(_read(model, X), choice=choice_of(real)))
        report_progress(told[0] + len(folds), told[1], "cross-validation")
        return 0.0  # scikit-learn wants a number

    return read


def _read(model: Any, X: Any) -> Fold:
    """The outputs of a fitted model for test rows."""
    methods = ("predict_proba", "decision_function") if is_classifier(model) else ()
    used = ["predict", *(method for method in methods if hasattr(model, method))]
    outputs = {method: on_host(getattr(model, method)(X)) for method in used}
    return Fold(outputs, getattr(model, "classes_", np.empty(0)), {})


def _given(estimator: Any) -> dict[str, Any]:
    """The settings of an estimator that chooses none."""
    used = PARAMETERS.get(estimator.kernel, ()) if isinstance(estimator.kernel, str) else ()
    names = [name for name in CHOSEN if name in (*used, "alpha", "penalty")]
    return {name: on_host(getattr(estimator, name)).tolist() for name in names}


def frozen_rounds(
    estimator: Any, data: AssessedRows, rounds: Sequence[Round], partitions: Sequence[Splits]
) -> list[Round]:
    """Partitions of the model with settings that were chosen in the splits of some rounds, others
    in each partition, and with the steps before it fitted on all rows: predictions of every fold
    and of every two folds left out together. Empty where these would need refits.
    """
    model, settings = final_step(estimator), [c for round_ in rounds for c in round_.choices]
    if not is_model(model):
        return []
    X = data.X
    if model is not estimator:
        X = with_first_steps(estimator)[:-1].fit_transform(data.X, data.y)
    params = without_groups(data.params)
    method, found = "predict" if data.classes is None else "decision_function", []
    for number, splits in enumerate(partitions):
        choice = settings[number * len(settings) // len(partitions)]
        other = fixed(model, choice)
        route = depends(other, X, params, method=method).route
        if route.name != "one":
            return []
        found += _looked_up(other, replace(data, X=X, params=params), [splits], 0, route)
    return found


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
    return chooses_steps(estimator) or depends(final_step(estimator), X).route.name != "one"


def splits_of(splitter: Any, data: AssessedRows) -> Splits:
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


def _gathered(data: AssessedRows, splits: Splits, folds: list[Fold], route: Route) -> Round:
    """The outputs of all splits by row."""
    n = len(data.y)
    fold, predictions = np.full(n, -1), np.full(n, np.nan if data.classes is None else None)
    for number, ((_, test), found) in enumerate(zip(splits, folds, strict=True)):
        fold[test] = number
        predictions[test] = found.outputs["predict"].reshape(-1)
    if data.classes is not None and np.all(fold >= 0):
        predictions = predictions.astype(data.y.dtype)
    probabilities, decisions = (
        None if data.classes is None else _by_row(method, data.classes, n, splits, folds)
        for method in ("predict_proba", "decision_function")
    )
    choices = [found.choice for found in folds]
    return Round(predictions, probabilities, decisions, fold, splits, choices, route, [])


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
