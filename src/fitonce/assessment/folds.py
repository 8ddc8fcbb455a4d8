"""Held-out outputs of every split, and those of models that have seen neither of two folds.

Every split is fitted once, or looked up in one decomposition if nothing depends on the training
rows; one decomposition is in memory at a time. A model without a second fold, which the intervals
need, keeps the settings of the model without the first and the steps before it: it is a deletion
from one decomposition. Its temperature comes from the rows of the other folds, see `_calibrated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from ..core.calibration import class_scores, inverse_temperatures, least_probability, mixed
from ..core.progress import report_progress
from ..core.readout import labels_of
from ..core.rows import is_rows
from ..core.splits import Splits
from ..crossval import Route, cross_val_predict, cross_validate
from ..crossval.confounds import call
from ..crossval.depends import depends
from ..estimators.fitted import chooses_steps, chosen_steps, final_step, is_model
from ..estimators.probability import held_out_probabilities
from ..kernels import PARAMETERS, families
from ..rows.dask import is_dask
from .data import AssessedRows, on_host

CHOSEN = ("kernel", "gamma", "alpha", "penalty", "degree", "coef0")
SLOW = ("sigmoid", "isotonic")  # calibrations that are fitted one by one
MOST_FOLDS = 10  # of a partition whose pairs of folds are left out together
Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Answers:
    """Outputs by row, after any leading axes; None for those that a model does not have."""

    predictions: np.ndarray
    probabilities: np.ndarray | None
    decisions: np.ndarray | None


@dataclass(frozen=True)
class Fold:
    """Answers for the test rows of one split, the classes among its training rows, the settings
    chosen there, and the outputs by row of models that have seen neither it nor the row's fold.
    """

    answers: Answers
    classes: np.ndarray
    choice: dict[str, Any]
    inner: np.ndarray | None = None


@dataclass(frozen=True)
class Round(Answers):
    """One partition of the rows.

    Held-out outputs, the split number of each row, and the settings chosen in each split. `inner`
    (K, n) has for every split the answers of models without its fold and the fold of the row; None
    where these would be refits.
    """

    fold: np.ndarray
    splits: Splits
    choices: list[dict[str, Any]]
    route: Route
    inner: Answers | None = None

    @property
    def tested(self) -> np.ndarray:
        """Indices of the rows that have a held-out prediction."""
        return np.flatnonzero(self.fold >= 0)


def rounds_of(
    estimator: Any, data: AssessedRows, partitions: Sequence[Splits], n_literal: int
) -> list[Round]:
    """Cross-validation for every partition; progress is reported per split.

    Where the training rows decide nothing else, all decisions come from one decomposition;
    probabilities of the first `n_literal` partitions are then those of refits, and of the others
    those of `_calibrated`.
    """
    method = "predict" if data.classes is None else "decision_function"
    route = depends(estimator, data.X, data.params, method=method).route
    one, literal = route.name == "one", n_literal * hasattr(estimator, "predict_proba")
    pairs = [pairs_of(splits, data) for splits in partitions]
    read = [not one or number < literal for number in range(len(partitions))]
    none: list[tuple[list[Fold], np.ndarray | None]] = [([], None)] * len(partitions)
    found = _looked_up(estimator, data, partitions, pairs) if one else none
    total = sum(len(splits) for splits, each in zip(partitions, read, strict=True) if each)
    report_progress(0, total, "cross-validation")
    rounds: list[Round] = []
    done = 0
    for number, (splits, (folds, inner)) in enumerate(zip(partitions, found, strict=True)):
        if read[number]:
            folds, both = [], [] if one else pairs[number]
            reader = _reader(folds, data, splits, both, (done, total))
            given: dict[str, Any] = {"cv": splits, "params": data.params, "error_score": "raise"}
            cross_validate(estimator, data.X, data.y, scoring=reader, **given)
            done += len(splits)
        fitted = len(splits) if one and read[number] else 0
        rounds.append(
            _round(estimator, data, splits, folds, inner, replace(route, fitted_folds=fitted))
        )
    return rounds


def _round(
    estimator: Any,
    data: AssessedRows,
    splits: Splits,
    folds: list[Fold],
    inner: np.ndarray | None,
    route: Route,
) -> Round:
    """A partition from what was read of its splits, if anything was, and from the outputs of models
    without two folds, if these are known.
    """
    n, every = len(data.y), [found.inner for found in folds if found.inner is not None]
    if len(every) == len(splits):
        inner = np.stack(every)
    answers = None if inner is None else _calibrated(final_step(estimator), data, splits, inner)
    choices = [_given(estimator)] * len(splits) if route.name == "one" else None
    if folds or answers is None:
        read = _gathered(data, splits, folds, route)
        return replace(read, inner=answers, choices=choices or read.choices)
    fold = _fold_of(n, splits)
    own: dict[str, Any] = {
        name: None if values is None else values[fold, np.arange(n)]
        for name, values in vars(answers).items()
    }
    return Round(**own, fold=fold, splits=splits, choices=choices or [], route=route, inner=answers)


def _looked_up(
    estimator: Any, data: AssessedRows, partitions: Sequence[Splits], pairs: Sequence[Pairs]
) -> list[tuple[list[Fold], np.ndarray | None]]:
    """From one decomposition of all rows: outputs (K, n, …) of models without one and two folds of
    every partition, or the folds alone where they are not left out in pairs.
    """
    kept, alone = fixed(estimator, {}), replace(data, params=without_groups(data.params))
    wanted: list[tuple[np.ndarray, np.ndarray]] = []
    for splits, each in zip(partitions, pairs, strict=True):
        wanted += [_both(splits, *pair) for pair in each] or splits
    outputs = iter(_outputs(kept, alone, wanted))
    return [
        ([], _arranged(len(data.y), splits, each, outputs))
        if each
        else ([_decided(data, train, next(outputs)) for train, _ in splits], None)
        for splits, each in zip(partitions, pairs, strict=True)
    ]


def _decided(data: AssessedRows, train: np.ndarray, output: np.ndarray) -> Fold:
    """The answers of a model with this main output; no probabilities."""
    if data.classes is None:
        return Fold(Answers(output, None, None), np.empty(0), {})
    seen = np.unique(data.y[train])
    return Fold(Answers(labels_of(output, seen), None, output), seen, {})


def _arranged(n: int, splits: Splits, pairs: Pairs, outputs: Iterator[np.ndarray]) -> np.ndarray:
    """For every split, outputs by row (K, n, …) of models that have seen neither it nor the split
    of the row, from the outputs without each two; zero where there is none.
    """
    found = np.zeros(0)
    for a, b in pairs:
        (_, test), both = _both(splits, a, b), next(outputs)
        found = found if len(found) else np.zeros((len(splits), n, *both.shape[1:]))
        by_row = np.empty((n, *both.shape[1:]))
        by_row[test] = both
        for k, rows in ((a, splits[b][1]), (b, splits[a][1])):
            found[k, rows] = by_row[rows]
    return found


def _calibrated(model: Any, data: AssessedRows, splits: Splits, outputs: np.ndarray) -> Answers:
    """The answers for outputs (K, n, …) of models without two folds.

    Probabilities are softmax(β s), and none is below the floor. For the rows of fold j by the model
    without k, β minimizes the cross-entropy of the same model's rows in the other folds, whose
    labels are those of neither: otherwise the row's own label would make its loss too small. A
    score of zero leaves a row out, since it says nothing of β.
    """
    if data.classes is None:
        return Answers(outputs, None, None)
    K, n, fold = *outputs.shape[:2], _fold_of(len(data.y), splits)
    flat = outputs.reshape(K * n, *outputs.shape[2:])
    labels = labels_of(flat, data.classes).reshape(K, n)
    if not hasattr(model, "predict_proba"):
        return Answers(labels, None, outputs)
    codes, weights = np.searchsorted(data.classes, data.y), data.weights_of(np.arange(n))
    if model.calibration in SLOW:
        parts = [np.where(fold == k, -1, fold) for k in range(K)]  # -1: used by none
        given = [(model.calibration, [each], codes, weights) for each in outputs]
        both = zip(given, parts, strict=True)
        p = np.concatenate([held_out_probabilities(*each, part) for each, part in both])
        return Answers(data.classes[p.argmax(axis=2)], p, outputs)
    scores = class_scores(flat).reshape(K, n, len(data.classes))
    beta = np.ones((K, n))
    if model.calibration is not None:
        others = (fold != np.arange(K)[:, None])[..., None]
        used = (own * seen * others for own, seen in zip(scores, others, strict=True))
        beta = np.stack([inverse_temperatures(each, codes, weights)[fold] for each in used])
    floor = least_probability(weights, scores.shape[2])
    return Answers(labels, mixed(softmax(beta[..., None] * scores, axis=2), floor), outputs)


def _both(splits: Splits, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """The split that leaves out two folds of a partition, or one that is named twice."""
    kept = np.ones(len(splits[a][0]) + len(splits[a][1]), dtype=bool)
    kept[splits[a][1]] = kept[splits[b][1]] = False
    return np.flatnonzero(kept), np.flatnonzero(~kept)


def _fold_of(n: int, splits: Splits) -> np.ndarray:
    """The number of the split that tests each row; -1 for rows that none does."""
    fold = np.full(n, -1)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    return fold


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


def _outputs(model: Any, data: AssessedRows, cv: Splits) -> Iterable[np.ndarray]:
    """Predictions, or decisions, for the test rows of every split."""
    method = "predict" if data.classes is None else "decision_function"
    given: dict[str, Any] = {"cv": cv, "params": data.params, "by_fold": True, "method": method}
    found = cross_val_predict(model, data.X, data.y, **given)
    shape = (-1,) if data.classes is None else None
    return (on_host(each).reshape(shape or each.shape) for _, each in found)


def pairs_of(splits: Splits, data: AssessedRows) -> Pairs:
    """Every two splits, and each with itself, if they are a partition into few folds and rows of
    every class are left where two folds are left out; else none.
    """
    n, few = len(data.y), 2 < len(splits) <= MOST_FOLDS
    whole = sum(len(test) for _, test in splits) == n
    if not (few and whole and all(len(train) + len(test) == n for train, test in splits)):
        return []
    pairs = list(combinations_with_replacement(range(len(splits)), 2))
    if data.classes is None:
        return pairs
    truth = data.y[:, None] == data.classes
    weights = data.weights_of(np.arange(n))[:, None] * truth
    counts = np.array([weights[test].sum(axis=0) for _, test in splits])
    left = [counts.sum(axis=0) - counts[a] - counts[b] for a, b in pairs if a != b]
    return pairs if np.min(left) > 1e-9 * np.max(counts) else []


def _reader(
    folds: list[Fold], data: AssessedRows, splits: Splits, pairs: Pairs, told: tuple[int, int]
) -> Callable[..., float]:
    """A scorer that keeps the outputs of each model in turn in `folds`; those without a second fold
    too, if there are pairs.
    """

    def read(model: Any, X: Any, y: Any) -> float:
        fold, own = _read(model, X), [pair for pair in pairs if len(folds) in pair]
        rest = _settled(model, data) if own else None
        if rest is not None:
            outputs = iter(_outputs(*rest, [_both(splits, *pair) for pair in own]))
            inner = _arranged(len(data.y), splits, own, outputs)[len(folds)]
            fold = replace(fold, inner=inner)
        folds.append(fold)
        report_progress(told[0] + len(folds), told[1], "cross-validation")
        return 0.0  # scikit-learn wants a number

    return read


def answers_of(model: Any, data: AssessedRows, confounds: Any) -> Round:
    """What a fitted model says of rows that are new to it."""
    every = [(np.arange(0), np.arange(len(data.y)))]
    route = Route("prefit", "a fitted model, without its rows")
    return _gathered(data, every, [_read(model, data.X, confounds)], route)


def _read(model: Any, X: Any, confounds: Any = None) -> Fold:
    """The answers of a fitted model for test rows."""
    said = {
        method: on_host(call(model, method, X, confounds))
        for method in ("predict_proba", "decision_function")
        if is_classifier(model) and hasattr(model, method)
    }
    predictions = on_host(call(model, "predict", X, confounds)).reshape(-1)
    answers = Answers(predictions, said.get("predict_proba"), said.get("decision_function"))
    return Fold(answers, getattr(model, "classes_", np.empty(0)), choice_of(model))


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
    fold, predictions = _fold_of(n, splits), np.full(n, np.nan if data.classes is None else None)
    for (_, test), found in zip(splits, folds, strict=True):
        predictions[test] = found.answers.predictions
    if data.classes is not None and np.all(fold >= 0):
        predictions = predictions.astype(data.y.dtype)
    probabilities, decisions = (
        None if data.classes is None else _by_row(name, data.classes, n, splits, folds)
        for name in ("probabilities", "decisions")
    )
    choices = [found.choice for found in folds]
    return Round(predictions, probabilities, decisions, fold, splits, choices, route)


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
