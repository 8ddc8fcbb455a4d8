"""Held-out outputs of every split, and those of models that have seen neither of two folds.

Every split is fitted once, or looked up in one decomposition if nothing depends on the training
rows; its outputs are read, and the model is dropped before the next: one decomposition is in memory
at a time. A model without a second fold, which the intervals need, keeps the settings, the steps
before it and the temperature of the model without the first: it is a deletion from one
decomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from ..core.arrays import to_numpy
from ..core.progress import report_progress
from ..core.readout import labels_of
from ..core.rows import is_rows
from ..core.splits import Splits
from ..crossval import Route, cross_val_predict, cross_validate
from ..crossval.confounds import call
from ..crossval.depends import depends
from ..crossval.lookup import RowLookupEstimator
from ..estimators.fitted import chooses_steps, chosen_steps, final_step, is_model
from ..estimators.probability import Calibration
from ..kernels import PARAMETERS, families
from ..rows.dask import is_dask
from .data import AssessedRows, on_host

CHOSEN = ("kernel", "gamma", "alpha", "penalty", "degree", "coef0")
MOST_FOLDS = 10  # of a partition whose pairs of folds are left out together
Scale = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # to decisions and probabilities


@dataclass(frozen=True)
class Answers:
    """Held-out outputs by row; None for those that a model does not have."""

    predictions: np.ndarray
    probabilities: np.ndarray | None
    decisions: np.ndarray | None


@dataclass(frozen=True)
class Fold:
    """Answers for the test rows of one split, the classes among its training rows, the settings
    chosen there, and what turns decisions into probabilities.

    `inner` has the answers for all rows of the other splits by models that have seen neither.
    """

    answers: Answers
    classes: np.ndarray
    choice: dict[str, Any]
    scale: Scale | None = None
    inner: Answers | None = None


@dataclass(frozen=True)
class Round(Answers):
    """One partition of the rows.

    Held-out outputs, the split number of each row, and the settings chosen in each split. `inner`
    has for every split the answers of models without its fold and the fold of the row; empty where
    these would be refits.
    """

    fold: np.ndarray
    splits: Splits
    choices: list[dict[str, Any]]
    route: Route
    inner: list[Answers]

    @property
    def tested(self) -> np.ndarray:
        """Indices of the rows that have a held-out prediction."""
        return np.flatnonzero(self.fold >= 0)


def rounds_of(
    estimator: Any, data: AssessedRows, partitions: Sequence[Splits], n_literal: int
) -> list[Round]:
    """Cross-validation for every partition; progress is reported per split.

    Where the training rows decide nothing else, probabilities of the first `n_literal` partitions
    are those of refits, and the others take the temperatures found in the first.
    """
    method = "predict" if data.classes is None else "decision_function"
    route = depends(estimator, data.X, data.params, method=method).route
    one, literal = route.name == "one", n_literal * hasattr(estimator, "predict_proba")
    found: list[list[Fold]] = []
    read = partitions[:literal] if one else partitions
    total, done = sum(map(len, read)), 0
    report_progress(0, total, "cross-validation")
    for splits in read:
        folds: list[Fold] = []
        reader = _reader(folds, data, splits, (done, total), nested=not one)
        given: dict[str, Any] = {"cv": splits, "params": data.params, "error_score": "raise"}
        cross_validate(estimator, data.X, data.y, scoring=reader, **given)
        found.append(folds)
        done += len(splits)
    if one:
        found = _looked_up(estimator, data, partitions, found)
    rounds: list[Round] = []
    for splits, folds in zip(partitions, found, strict=True):
        fitted = len(splits) if one and len(rounds) < literal else 0
        rounds.append(_gathered(data, splits, folds, replace(route, fitted_folds=fitted)))
    return rounds


def _looked_up(
    estimator: Any, data: AssessedRows, partitions: Sequence[Splits], read: list[list[Fold]]
) -> list[list[Fold]]:
    """From one decomposition of all rows: the folds of partitions that are not `read` already, and
    every two folds of a partition left out together.
    """
    choice, pairs = _given(estimator), [_pairs(splits, data) for splits in partitions]
    kept, alone = fixed(estimator, {}), replace(data, params=without_groups(data.params))
    wanted = []
    for number, (splits, each) in enumerate(zip(partitions, pairs, strict=True)):
        wanted += splits if number >= len(read) else []
        wanted += [_both(splits, *pair) for pair in each]
    outputs = iter(_outputs(kept, alone, wanted) if wanted else [])
    found = []
    for number, (splits, each) in enumerate(zip(partitions, pairs, strict=True)):
        folds = read[number] if number < len(read) else []
        for k, (train, _) in enumerate(splits if not folds else []):
            seen = np.empty(0) if data.classes is None else np.unique(data.y[train])
            like = read[0][k] if read and len(read[0]) > k else None
            scale = like.scale if like and np.array_equal(like.classes, seen) else None
            answers = _answers(next(outputs), seen, scale)
            folds = [*folds, Fold(answers, seen, choice, scale)]
        inner = _inner(len(data.y), splits, each, outputs)
        found.append(
            [
                replace(fold, inner=_answers(inner[k], fold.classes, fold.scale) if inner else None)
                for k, fold in enumerate(folds)
            ]
        )
    return found


def _answers(output: np.ndarray, classes: np.ndarray, scale: Scale | None) -> Answers:
    """What a model says whose main output this is: decisions before calibration, or numbers if
    there are no classes.
    """
    if len(classes) == 0:
        return Answers(output.reshape(-1), None, None)
    moved, p = (output, None) if scale is None else scale(output)
    return Answers(labels_of(moved, classes), p, moved)


def _inner(
    n: int, splits: Splits, pairs: Sequence[tuple[int, int]], outputs: Iterator[np.ndarray]
) -> dict[int, np.ndarray]:
    """For every split, outputs by row of models that have seen neither it nor that of the row, from
    the outputs without each two.
    """
    found: dict[int, np.ndarray] = {}
    for a, b in pairs:
        both = next(outputs)
        parts = np.split(both, [len(splits[a][1])])
        for this, other, values in ((a, b, parts[0]), (b, a, parts[1])):
            rows = found.setdefault(other, np.zeros((n, *both.shape[1:])))
            rows[splits[this][1]] = values
    return found


def _both(splits: Splits, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """The split that leaves out two folds of a partition."""
    kept = np.ones(len(splits[a][0]) + len(splits[a][1]), dtype=bool)
    test = np.concatenate([splits[a][1], splits[b][1]])
    kept[test] = False
    return np.flatnonzero(kept), test


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


def _outputs(model: Any, data: AssessedRows, cv: Splits) -> list[np.ndarray]:
    """Predictions, or decisions, for the test rows of every split."""
    method = "predict" if data.classes is None else "decision_function"
    given: dict[str, Any] = {"cv": cv, "params": data.params, "by_fold": True, "method": method}
    return [on_host(found) for _, found in cross_val_predict(model, data.X, data.y, **given)]


def _pairs(splits: Splits, data: AssessedRows) -> list[tuple[int, int]]:
    """Every two splits, if they are a partition into few folds and rows of every class are left
    where two folds are left out; else none.
    """
    n, few = len(data.y), 2 < len(splits) <= MOST_FOLDS
    whole = sum(len(test) for _, test in splits) == n
    if not (few and whole and all(len(train) + len(test) == n for train, test in splits)):
        return []
    pairs = list(combinations(range(len(splits)), 2))
    if data.classes is None:
        return pairs
    truth = data.y[:, None] == data.classes
    weights = data.weights_of(np.arange(n))[:, None] * truth
    counts = np.array([weights[test].sum(axis=0) for _, test in splits])
    left = [counts.sum(axis=0) - counts[a] - counts[b] for a, b in pairs]
    return pairs if np.min(left) > 1e-9 * np.max(counts) else []


def _reader(
    folds: list[Fold], data: AssessedRows, splits: Splits, told: tuple[int, int], nested: bool
) -> Callable[..., float]:
    """A scorer that keeps the outputs of each model in turn in `folds`; those without a second fold
    too, if `nested`.
    """
    pairs = _pairs(splits, data) if nested else []

    def read(model: Any, X: Any, y: Any) -> float:
        real = model.fitted() if isinstance(model, RowLookupEstimator) else model
        fold, own = _read(model, real, X), [pair for pair in pairs if len(folds) in pair]
        rest = _settled(real, data) if own else None
        if rest is not None:
            outputs = iter(_outputs(*rest, [_both(splits, *pair) for pair in own]))
            inner = _inner(len(data.y), splits, own, outputs)[len(folds)]
            fold = replace(fold, inner=_answers(inner, fold.classes, fold.scale))
        folds.append(fold)
        report_progress(told[0] + len(folds), told[1], "cross-validation")
        return 0.0  # scikit-learn wants a number

    return read


def answers_of(model: Any, data: AssessedRows, confounds: Any) -> Round:
    """What a fitted model says of rows that are new to it."""
    every = [(np.arange(0), np.arange(len(data.y)))]
    fold = _read(model, model, data.X, confounds)
    return _gathered(data, every, [fold], Route("prefit", "a fitted model, without its rows"))


def _read(model: Any, real: Any, X: Any, confounds: Any = None) -> Fold:
    """The answers of a model for test rows; `real` is fitted."""
    methods = ("predict_proba", "decision_function")
    p, decisions = (
        on_host(call(model, method, X, confounds))
        if is_classifier(model) and hasattr(model, method)
        else None
        for method in methods
    )
    answers = Answers(on_host(call(model, "predict", X, confounds)).reshape(-1), p, decisions)
    return Fold(answers, getattr(model, "classes_", np.empty(0)), choice_of(real), _scale(real))


def _settled(real: Any, data: AssessedRows) -> tuple[Any, AssessedRows] | None:
    """A fitted model with everything it has chosen, and the rows as its last step sees them; None
    if models of fewer rows would need refits.
    """
    last = final_step(real)
    if not is_model(last):
        return None
    X = data.X if last is real else real[:-1].transform(data.X)
    model, params = fixed(last, choice_of(last)), without_groups(data.params)
    method = "predict" if data.classes is None else "decision_function"
    one = depends(model, X, params, method=method).route.name == "one"
    return (model, replace(data, X=X, params=params)) if one else None


def _scale(real: Any) -> Scale | None:
    """Probabilities from decisions before calibration, as a fitted model computes them."""
    last = final_step(real)
    if not (is_model(last) and hasattr(last, "predict_proba")):
        return None
    steps, shift = getattr(last, "isotonic_", None), last._shift
    none = np.zeros(len(last.classes_))  # of the shift, which comes before
    steps = None if steps is None else to_numpy(steps)
    found = Calibration(1.0 / last.temperature_, none, last.floor_, steps)
    return lambda decision: (decision + shift, found.probabilities(decision + shift))


def _given(estimator: Any) -> dict[str, Any]:
    """The settings of an estimator that chooses none."""
    used = PARAMETERS.get(estimator.kernel, ()) if isinstance(estimator.kernel, str) else ()
    names = [name for name in CHOSEN if name in (*used, "alpha", "penalty")]
    return {name: on_host(getattr(estimator, name)).tolist() for name in names}


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
    """The answers of all splits by row."""
    n = len(data.y)
    fold, predictions = np.full(n, -1), np.full(n, np.nan if data.classes is None else None)
    for number, ((_, test), found) in enumerate(zip(splits, folds, strict=True)):
        fold[test] = number
        predictions[test] = found.answers.predictions
    if data.classes is not None and np.all(fold >= 0):
        predictions = predictions.astype(data.y.dtype)
    probabilities, decisions = (
        None if data.classes is None else _by_row(name, data.classes, n, splits, folds)
        for name in ("probabilities", "decisions")
    )
    choices = [found.choice for found in folds]
    inner = [found.inner for found in folds if found.inner is not None]
    inner = inner if len(inner) == len(folds) else []
    return Round(predictions, probabilities, decisions, fold, splits, choices, route, inner)


def _by_row(
    name: str, classes: np.ndarray, n: int, splits: Splits, folds: list[Fold]
) -> np.ndarray | None:
    """An output of all splits, with columns for all classes; None if a split does not have it.

    A class that is missing from the training rows has probability 0; decisions are then undefined.
    """
    lacking = any(len(found.classes) < len(classes) for found in folds)
    values = [getattr(found.answers, name) for found in folds]
    if any(each is None for each in values) or (lacking and name == "decisions"):
        return None
    columns = [len(classes)] * (values[0].ndim - 1)  # none for binary decisions
    gathered = np.full((n, *columns), np.nan)
    for (_, test), found, each in zip(splits, folds, values, strict=True):
        gathered[test] = 0.0
        known = (np.searchsorted(classes, found.classes),) if gathered.ndim == 2 else ()
        gathered[np.ix_(test, *known)] = each
    return gathered
