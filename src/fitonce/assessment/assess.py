"""`assess`.

Nested cross-validation, repeated and grouped where asked for, with everything that is told about
it.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from ..core.arrays import to_numpy
from ..crossval import RefitWarning, Route, cross_validate
from ..crossval.stand_in import n_rows, subset
from ..estimators.base import KernelModel
from ..estimators.validation import is_foreign_array
from ..inference import PermutationTest
from .chance import chance, chosen_test
from .intervals import corrected_t, effective_size, wilson
from .result import Assessment, Calibration, Estimate

FEW_ROWS = 500  # up to which ten folds are the default, five above
CHOSEN = ("alpha", "gamma", "degree", "coef0", "penalty")
CALIBRATION_BINS = 10
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Round:
    """One partition of the rows.

    Held-out outputs, the number of each row's split, what each split's estimator chose.
    """

    predictions: np.ndarray
    probabilities: np.ndarray | None
    decisions: np.ndarray | None
    fold: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]
    choices: list[dict[str, Any]]
    route: Route

    @property
    def tested(self) -> np.ndarray:
        return self.fold >= 0

    @property
    def test_share(self) -> float:
        """Test rows over training rows of a split, on average."""
        return float(
            np.mean([len(test) for _, test in self.splits])
            / np.mean([len(train) for train, _ in self.splits])
        )


def assess(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    cv: Any = None,
    repeats: int = 1,
    level: float = 0.95,
    permutations: int | str = "auto",
    statistic: str = "auto",
    seconds: float = 10.0,
    random_state: int = 0,
    progress: Progress | None = None,
    verbose: int = 0,
) -> Assessment:
    """What an analyst wants to know about an estimator on these rows: honest scores, intervals,
    baseline, p-value, choices.

    Scores come from `fitonce.cross_validate`, so that tuning and preprocessing are done anew on
    each training set (nested cross-validation); the p-value comes from
    `fitonce.permutation_test_score`, with a null that fits the folds and the groups.

    Parameters
    ----------
    estimator : classifier or regressor
        One of fitonce's, or a pipeline that ends in one. Others are refitted, with a warning.
    X : array-like or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,), default=None
        Rows of one group are tested together, also inside the estimator's own tuning, and count
        together in intervals and permutations.
    sample_weight : array-like of shape (n_samples,), default=None
        For fits, scores and intervals; not for the permutation test's scores.
    cv : int, splitter or None, default=None
        Number of folds, shuffled by `random_state` and stratified for a classifier (10 up to 500
        rows, 5 above; fewer for small classes or few groups), or a splitter that tests each row at
        most once.
    repeats : int, default=1
        How often the rows are divided anew.
    level : float, default=0.95
        Of the intervals. One repeat: Wilson on pooled held-out labels (for regression the corrected
        resampled t over the folds). More: Nadeau and Bengio's corrected resampled t over all
        splits.
    permutations : int or "auto", default="auto"
        Number of permutations; 0 for no test. "auto" takes as many as fit into `seconds`, up to
        999, on at most 1000 rows.
    statistic : {"auto", "same", "quick"}, default="auto"
        What is scored under permutations: "same" is the estimator itself, tuned again each time;
        "quick" has its kernel width from the spread of the features. "auto" takes "same" if the
        time allows for it.
    seconds : float, default=10
        Time budget of the automatic permutation test.
    random_state : int, default=0
        Seed of folds and permutations.
    progress : callable, default=None
        Called as ``progress(stage, done, total)`` after every split.
    verbose : int, default=0
        Passed to `permutation_test_score`.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant, assess
    >>> X, y = load_iris(return_X_y=True)
    >>> answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=0.1), X, y, permutations=199)
    >>> print(answer.accuracy, "baseline", answer.baseline, "p =", answer.permutation.pvalue)
    0.960 [0.915, 0.982] baseline 0.333 [0.263, 0.412] p = 0.005
    >>> answer.accuracy.method
    'Wilson on pooled held-out labels'
    """
    start = time.perf_counter()
    data = _Data.of(estimator, X, y, groups, sample_weight)
    _check(repeats, level, permutations, statistic, seconds)
    splitters = _splitters(cv, data, repeats, random_state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ticker = _Ticker(progress, splitters, data)
        before = time.perf_counter()
        rounds = [_round(estimator, data, splitter, data.params, ticker) for splitter in splitters]
        cv_seconds = (time.perf_counter() - before) / repeats
        baselines = _baselines(data, rounds)
        metrics = [_metrics(data, round_) for round_ in rounds]
        test, said, test_rows = None, "", 0
        if permutations != 0:
            test, said, test_rows = _chance(
                estimator,
                data,
                splitters[0],
                rounds[0],
                permutations,
                statistic,
                seconds,
                cv_seconds,
                random_state,
                verbose,
            )
    fold_scores = _fold_scores(data, rounds)
    name = "accuracy" if data.classifier else "r2"
    baseline_scores = _fold_scores(data, baselines)[name]
    first = rounds[0]
    doubts = [*_distinct(caught), *_own_doubts(data, first, permutations, test, said, seconds)]
    for message, category in doubts:
        warnings.warn(message, category, stacklevel=2)
    return Assessment(
        task="classification" if data.classifier else "regression",
        n_samples=len(data.y),
        n_features=_n_features(X),
        classes=data.classes,
        class_counts=None if data.classes is None else np.unique(data.y, return_counts=True)[1],
        y=data.y,
        predictions=first.predictions,
        probabilities=first.probabilities,
        decisions=first.decisions,
        fold=first.fold,
        score_name=name,
        score=_headline(data, rounds, fold_scores[name], level),
        baseline=_headline(data, baselines, baseline_scores, level),
        metrics=_mean(metrics),
        baseline_metrics=_baseline_metrics(data, baselines),
        fold_scores=fold_scores,
        confusion=_confusion(data, first),
        calibration=_calibration(data, first),
        permutation=test,
        permutation_statistic=said,
        permutation_rows=test_rows,
        choices=[choice for round_ in rounds for choice in round_.choices],
        repeats=repeats,
        n_splits=len(first.splits),
        cv=_in_words(splitters[0], first, repeats),
        grouped=data.groups is not None,
        weighted=data.weights is not None,
        test_share=float(np.mean([round_.test_share for round_ in rounds])),
        route=first.route,
        warnings=tuple(message for message, _ in doubts),
        level=level,
        random_state=random_state,
        seconds=time.perf_counter() - start,
    )


def significance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    permutations: int = 999,
    statistic: str = "quick",
    permute: str | None = None,
    exchange: str | None = None,
    most_rows: int | None = None,
    checkpoint: Any = None,
    random_state: int = 0,
    verbose: int = 0,
) -> tuple[PermutationTest, str]:
    """The permutation test of an assessment by itself, and its statistic in words.

    Parameters
    ----------
    estimator, X, y, groups, cv, random_state, verbose
        As in `assess`.
    permutations : int, default=999
        Number of permutations.
    statistic : {"quick", "same"}, default="quick"
        What is scored, see `assess`.
    permute, exchange : str or None, default=None
        As in `permutation_test_score`; None takes what is valid with the folds and groups: labels
        move within test folds, and those of groups that have one label each move together.
    most_rows : int or None, default=None
        Test a random sample of so many rows, if there are more.
    checkpoint : path, default=None
        As in `permutation_test_score`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.assessment import significance
    >>> X, y = load_iris(return_X_y=True)
    >>> test, statistic = significance(KernelFisherDiscriminant(), X, y, permutations=99)
    >>> test.pvalue, test.mode
    (0.01, 'within-folds')
    """
    data = _Data.of(estimator, X, y, groups, None)
    _check(1, 0.95, permutations, statistic, 1.0)
    return chosen_test(
        estimator, data.X, data.y, data.groups, _splitters(cv, data, 1, random_state)[0], permutations=permutations, statistic=statistic,
        permute=permute, exchange=exchange, most_rows=most_rows, checkpoint=checkpoint, random_state=random_state, verbose=verbose,
    )  # fmt: skip


# ---- what is given -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Data:
    """Rows, target, groups and weights, checked.

    `params` is what the fit of the last step is given of them.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    classifier: bool
    classes: np.ndarray | None
    params: Mapping[str, Any] | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, groups: Any, weights: Any) -> _Data:
        classifier = bool(is_classifier(estimator))
        if not classifier and not is_regressor(estimator):
            raise TypeError(
                f"estimator must be a classifier or a regressor, got {estimator!r} instead."
            )
        y = np.asarray(to_numpy(y) if is_foreign_array(y) else y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"y must have one value per row, got shape {y.shape} instead: assess one target "
                "at a time."
            )
        given: dict[str, Any] = {}
        for name, values in (("y", y), ("groups", groups), ("sample_weight", weights)):
            if values is not None:
                given[name] = np.asarray(
                    to_numpy(values) if is_foreign_array(values) else values
                ).reshape(-1)
                if len(given[name]) != n_rows(X):
                    raise ValueError(
                        f"{name} must have one entry per row of X ({n_rows(X)}), got "
                        f"{len(given[name])} instead."
                    )
        if not classifier:
            y = y.astype(np.float64)
        elif len(np.unique(y)) < 2:
            raise ValueError(
                f"the target must have at least two classes, got {np.unique(y).tolist()} only: "
                "there is nothing to tell apart."
            )
        elif (w := given.get("sample_weight")) is not None and len(np.unique(y[w > 0])) < 2:
            raise ValueError(
                "the rows of positive weight must belong to at least two classes, got one: there "
                "is nothing to tell apart."
            )
        return cls(
            X, y, given.get("groups"), given.get("sample_weight"), classifier, np.unique(y) if classifier else None,
            _fit_params(estimator, given),
        )  # fmt: skip


def _fit_params(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Weights, and for our own estimators groups, under the names that fit knows them by."""
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    names = ("sample_weight", "groups") if isinstance(model, KernelModel) else ("sample_weight",)
    return {prefix + name: given[name] for name in names if name in given} or None


def _check(repeats: Any, level: Any, permutations: Any, statistic: Any, seconds: Any) -> None:
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise ValueError(f"repeats must be a positive integer, got {repeats!r} instead.")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r} instead.")
    if permutations != "auto" and (
        not isinstance(permutations, (int, np.integer))
        or isinstance(permutations, bool)
        or permutations < 0
    ):
        raise ValueError(
            f'permutations must be "auto" or a number from 0 on, got {permutations!r} instead.'
        )
    if statistic not in ("auto", "same", "quick"):
        raise ValueError(f'statistic must be "auto", "same" or "quick", got {statistic!r} instead.')
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, got {seconds!r} instead.")


def _splitters(cv: Any, data: _Data, repeats: int, random_state: int) -> list[Any]:
    """A splitter for every repeat."""
    if cv is not None and not isinstance(cv, (int, np.integer)):
        if repeats > 1:
            raise ValueError(
                f"repeats={repeats} needs cv to be a number of folds, got {cv!r} instead: give "
                "the number, or one repeat."
            )
        return [cv]
    n_folds = _n_folds(data) if cv is None else int(cv)
    kinds = {
        (True, True): StratifiedGroupKFold,
        (True, False): StratifiedKFold,
        (False, True): GroupKFold,
        (False, False): KFold,
    }
    kind = kinds[data.classifier, data.groups is not None]
    return [
        kind(n_folds, shuffle=True, random_state=random_state + number) for number in range(repeats)
    ]


def _n_folds(data: _Data) -> int:
    """Ten for few rows, five for many.

    No more than the smallest class has rows (groups), if it has three.
    """
    most = 10 if len(data.y) <= FEW_ROWS else 5
    if data.groups is not None:
        units = len(np.unique(data.groups))
        if units < 2:
            raise ValueError(
                f"groups must name at least two groups, got {units}: one of them has to be left "
                "out at a time."
            )
    else:
        units = len(data.y)
    if units < 2:
        raise ValueError(f"cross-validation needs at least two rows, got {units}.")
    folds = min(most, units)
    if not data.classifier:
        return folds
    units_of = np.arange(len(data.y)) if data.groups is None else data.groups
    members = [len(np.unique(units_of[data.y == label])) for label in np.unique(data.y)]
    smallest = min(members)
    return min(folds, smallest if smallest >= 3 else max(2, max(members)))


# ---- held-out outputs ----------------------------------------------------------------------------


class _Ticker:
    """Counts splits for a progress bar, as a scorer that scikit-learn calls after each."""

    def __init__(self, progress: Progress | None, splitters: list[Any], data: _Data) -> None:
        self.progress, self.done, self.total = progress, 0, 0
        if progress is not None:
            self.total = sum(_count(splitter, data) for splitter in splitters)
            progress("cross-validation", 0, self.total)

    def tick(self, y: Any, predictions: Any) -> float:
        self.done += 1
        if self.progress is not None:
            self.progress("cross-validation", self.done, self.total)
        return 0.0


def _count(splitter: Any, data: _Data) -> int:
    return (
        int(splitter.get_n_splits(data.X, data.y, data.groups))
        if hasattr(splitter, "get_n_splits")
        else 0
    )


def _round(
    estimator: Any, data: _Data, cv: Any, params: Mapping[str, Any] | None, ticker: _Ticker
) -> Round:
    """One pass of nested cross-validation.

    The fitted estimators of its splits tell predictions and choices.
    """
    results = cross_validate(
        estimator, data.X, data.y, groups=data.groups, cv=cv, params=params, scoring={"tick": make_scorer(ticker.tick)},
        return_estimator=True, return_indices=True, error_score="raise",
    )  # fmt: skip
    trains, tests = results["indices"]["train"], results["indices"]["test"]
    tested = np.concatenate(tests)
    if len(np.unique(tested)) != len(tested):
        raise ValueError(
            f"cv must test each row at most once, but {len(tested) - len(np.unique(tested))} rows "
            "are tested again: pooled scores would "
            "count them twice. Use a single partition, with repeats= for more."
        )
    n = len(data.y)
    fold = np.full(n, -1)
    predictions = np.full(n, None, dtype=object) if data.classifier else np.full(n, np.nan)
    outputs: dict[str, list[np.ndarray | None]] = {"predict_proba": [], "decision_function": []}
    for number, (model, train, test) in enumerate(
        zip(results["estimator"], trains, tests, strict=True)
    ):
        X = _rows(data.X, model, test, train)
        fold[test] = number
        predictions[test] = np.asarray(to_numpy(model.predict(X)))
        if data.classes is not None:
            for method in outputs:
                outputs[method].append(_output(model, X, method, data.classes))
    complete = (
        np.array(predictions.tolist(), dtype=data.y.dtype)
        if data.classifier and len(tested) == n
        else predictions
    )
    return Round(
        complete,
        _gathered(outputs["predict_proba"], tests, n),
        _gathered(outputs["decision_function"], tests, n),
        fold,
        list(zip(trains, tests, strict=True)),
        [_choice(model) for model in results["estimator"]],
        results.route,
    )


def _rows(X: Any, model: Any, test: np.ndarray, train: np.ndarray) -> Any:
    rows = subset(X, test)
    return subset(rows.T, train).T if model.__sklearn_tags__().input_tags.pairwise else rows


def _output(model: Any, X: Any, method: str, classes: np.ndarray) -> np.ndarray | None:
    """Probabilities or decisions in the order of all classes.

    A class that the training rows lack has probability 0.
    """
    if not hasattr(model, method):
        return None
    values = np.asarray(to_numpy(getattr(model, method)(X)))
    if len(model.classes_) == len(classes):
        return values
    if method == "decision_function":
        return None
    complete = np.zeros((len(values), len(classes)))
    complete[:, np.searchsorted(classes, model.classes_)] = values
    return complete


def _gathered(parts: list[np.ndarray | None], tests: list[np.ndarray], n: int) -> np.ndarray | None:
    if not parts or any(part is None for part in parts):
        return None
    first = parts[0]
    assert first is not None
    gathered = np.full((n, *first.shape[1:]), np.nan)
    for part, test in zip(parts, tests, strict=True):
        gathered[test] = part
    return gathered


def _choice(estimator: Any) -> dict[str, Any]:
    """The values that a fitted estimator of ours has taken."""
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(model, KernelModel):
        return {}
    found = {name: getattr(model, f"{name}_") for name in CHOSEN if hasattr(model, f"{name}_")}
    return {
        name: value if isinstance(value, str) else np.asarray(to_numpy(value)).tolist()
        for name, value in found.items()
    }


def _baselines(data: _Data, rounds: list[Round]) -> list[Round]:
    """A model that ignores the features, in the same folds."""
    dummy = DummyClassifier(strategy="prior") if data.classifier else DummyRegressor()
    blank = _Data(
        np.zeros((len(data.y), 1)),
        data.y,
        data.groups,
        data.weights,
        data.classifier,
        data.classes,
        None,
    )
    params = None if data.weights is None else {"sample_weight": data.weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)
        return [
            _round(dummy, blank, round_.splits, params, _Ticker(None, [], data))
            for round_ in rounds
        ]


# ---- scores --------------------------------------------------------------------------------------


def _weights(data: _Data, rows: np.ndarray) -> np.ndarray | None:
    return None if data.weights is None else data.weights[rows]


def _metrics(data: _Data, round_: Round) -> dict[str, float]:
    """Scores of all held-out rows together."""
    rows = np.flatnonzero(round_.tested)
    y, predictions, w = data.y[rows], round_.predictions[rows], _weights(data, rows)
    if data.classes is None:
        mse = mean_squared_error(y, predictions, sample_weight=w)
        mae = mean_absolute_error(y, predictions, sample_weight=w)
        return {
            "r2": float(r2_score(y, predictions, sample_weight=w)),
            "mae": float(mae),
            "rmse": float(np.sqrt(mse)),
        }
    codes, predicted = np.searchsorted(data.classes, y), _codes(predictions, data.classes)
    scores = {
        "accuracy": float(accuracy_score(codes, predicted, sample_weight=w)),
        "balanced_accuracy": float(balanced_accuracy_score(codes, predicted, sample_weight=w)),
    }
    scores["roc_auc"] = _auc(codes, round_, rows, len(data.classes), w)
    if round_.probabilities is not None:
        p = round_.probabilities[rows]
        hit = np.eye(len(data.classes))[codes]
        scores["log_loss"] = float(
            log_loss(codes, p, labels=np.arange(len(data.classes)), sample_weight=w)
        )
        squares = np.sum((p - hit) ** 2, axis=1) / (2 if len(data.classes) == 2 else 1)
        scores["brier"] = float(np.average(squares, weights=w))
    return scores


def _codes(predictions: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.searchsorted(classes, np.array(predictions.tolist(), dtype=classes.dtype))


def _auc(
    codes: np.ndarray, round_: Round, rows: np.ndarray, n_classes: int, w: np.ndarray | None
) -> float:
    """Area under the ROC curve.

    One against the rest, every class counting alike, for more than two. NaN where a class is never
    tested.
    """
    outputs = round_.probabilities if round_.probabilities is not None else round_.decisions
    if outputs is None or len(np.unique(codes)) < n_classes:
        return float("nan")
    if n_classes == 2:
        score = outputs[rows] if outputs.ndim == 1 else outputs[rows, 1]
        return float(roc_auc_score(codes, score, sample_weight=w))
    each = [
        roc_auc_score(codes == code, outputs[rows, code], sample_weight=w)
        for code in range(n_classes)
    ]
    return float(np.mean(each))


def _fold_scores(data: _Data, rounds: list[Round]) -> dict[str, np.ndarray]:
    """Scores (repeats, folds) of every split by itself; NaN where one is not defined."""
    names = ("accuracy", "balanced_accuracy") if data.classifier else ("r2", "mae", "rmse")
    shape = len(rounds), max(len(round_.splits) for round_ in rounds)
    scores = {name: np.full(shape, np.nan) for name in names}
    for repeat, round_ in enumerate(rounds):
        for number, (_, rows) in enumerate(round_.splits):
            for name, value in _split_scores(data, round_, rows).items():
                scores[name][repeat, number] = value
    return scores


def _split_scores(data: _Data, round_: Round, rows: np.ndarray) -> dict[str, float]:
    y, predictions, w = data.y[rows], round_.predictions[rows], _weights(data, rows)
    if w is not None and not np.any(w > 0):
        return {}
    if data.classes is None:
        r2 = float(r2_score(y, predictions, sample_weight=w)) if len(rows) > 1 else float("nan")
        mae = float(mean_absolute_error(y, predictions, sample_weight=w))
        return {
            "r2": r2,
            "mae": mae,
            "rmse": float(np.sqrt(mean_squared_error(y, predictions, sample_weight=w))),
        }
    codes, predicted = np.searchsorted(data.classes, y), _codes(predictions, data.classes)
    recall = [
        np.average(
            predicted[codes == code] == code, weights=None if w is None else w[codes == code]
        )
        for code in np.unique(codes)
    ]
    return {
        "accuracy": float(accuracy_score(codes, predicted, sample_weight=w)),
        "balanced_accuracy": float(np.mean(recall)),
    }


def _headline(data: _Data, rounds: list[Round], scores: np.ndarray, level: float) -> Estimate:
    """Accuracy or R² with its interval.

    Wilson for the labels of one repeat, the corrected resampled t otherwise.
    """
    if data.classifier and len(rounds) == 1:
        rows = np.flatnonzero(rounds[0].tested)
        correct = (rounds[0].predictions[rows] == data.y[rows]).astype(float)
        w, groups = _weights(data, rows), None if data.groups is None else data.groups[rows]
        share = float(np.average(correct, weights=w))
        size = effective_size(correct, w, groups)
        plain = w is None and groups is None
        method = "Wilson on pooled held-out labels"
        return Estimate(
            share,
            *wilson(share, size, level),
            level,
            method if plain else f"{method}, effective size {size:.0f}",
        )
    splits = scores[np.isfinite(scores)]
    if len(splits) < 2:
        pooled = float(
            np.mean(
                [
                    _metrics(data, round_)["accuracy" if data.classifier else "r2"]
                    for round_ in rounds
                ]
            )
        )
        return Estimate(
            pooled,
            float("nan"),
            float("nan"),
            level,
            "no interval: fewer than two splits have a score",
        )
    share = float(np.mean([round_.test_share for round_ in rounds]))
    low, high = corrected_t(splits, share, level)
    least = 0.0 if data.classifier else -np.inf  # neither accuracy nor R² exceeds one
    method = f"corrected resampled t over {len(splits)} splits"
    return Estimate(float(np.mean(splits)), max(low, least), min(high, 1.0), level, method)


def _mean(metrics: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([scores[name] for scores in metrics])) for name in metrics[0]}


def _baseline_metrics(data: _Data, rounds: list[Round]) -> dict[str, float]:
    """Of a model that ranks all rows of a fold alike.

    Pooled, the folds' different priors would put its AUC below one half.
    """
    metrics = _mean([_metrics(data, round_) for round_ in rounds])
    return {**metrics, "roc_auc": 0.5} if data.classifier else metrics


def _confusion(data: _Data, round_: Round) -> np.ndarray | None:
    if data.classes is None:
        return None
    rows = np.flatnonzero(round_.tested)
    codes, predicted = (
        np.searchsorted(data.classes, data.y[rows]),
        _codes(round_.predictions[rows], data.classes),
    )
    matrix: np.ndarray = confusion_matrix(
        codes, predicted, labels=np.arange(len(data.classes)), sample_weight=_weights(data, rows)
    )
    return matrix


def _calibration(data: _Data, round_: Round) -> Calibration | None:
    """Probabilities in bins of equally many rows beside what came true."""
    if data.classes is None or round_.probabilities is None:
        return None
    rows = np.flatnonzero(round_.tested)
    p, y = round_.probabilities[rows], data.y[rows]
    if len(data.classes) == 2:
        stated, true, of = p[:, 1], y == data.classes[1], f"probability of {data.classes[1]}"
    else:
        stated, true, of = (
            p.max(axis=1),
            data.classes[p.argmax(axis=1)] == y,
            "probability of the predicted class",
        )
    edges = np.quantile(
        stated, np.linspace(0, 1, min(CALIBRATION_BINS, max(1, len(rows) // 5)) + 1)
    )
    bins = np.searchsorted(edges[1:-1], stated)
    count = np.bincount(bins)
    used = count > 0
    sums = [
        np.bincount(bins, weights=values)[used] / count[used]
        for values in (stated, true.astype(float))
    ]
    return Calibration(of, sums[0], sums[1], count[used])


# ---- the permutation test, and words -------------------------------------------------------------


def _chance(
    estimator: Any, data: _Data, cv: Any, round_: Round, permutations: int | str, statistic: str, seconds: float, cv_seconds: float,
    random_state: int, verbose: int,
) -> tuple[PermutationTest | None, str, int]:  # fmt: skip
    """The test, or why there is none."""
    splitter = cv if hasattr(cv, "split") else round_.splits
    single = all(len(test) == 1 for _, test in round_.splits)
    try:
        return chance(
            estimator, data.X, data.y, data.groups, splitter, data.params, single=single, permutations=permutations,
            statistic=statistic, seconds=seconds, cv_seconds=cv_seconds, random_state=random_state, verbose=verbose,
        )  # fmt: skip
    except ValueError as error:
        if permutations != "auto":
            raise
        return None, f"no permutation test: {error}", 0


def _n_features(X: Any) -> int:
    return int(X.shape[1]) if getattr(X, "ndim", 2) > 1 and hasattr(X, "shape") else len(X[0])


def _in_words(splitter: Any, round_: Round, repeats: int) -> str:
    folds = len(round_.splits)
    names = {
        StratifiedKFold: f"{folds} stratified folds",
        KFold: f"{folds} folds",
        StratifiedGroupKFold: f"{folds} stratified folds that keep groups together",
        GroupKFold: f"{folds} folds that keep groups together",
    }
    said = names.get(type(splitter), f"{folds} splits by {type(splitter).__name__}")
    return said if repeats == 1 else f"{said}, {repeats} times"


def _distinct(caught: list[warnings.WarningMessage]) -> list[tuple[str, type[Warning]]]:
    """Messages that differ in more than numbers, with how often each came."""
    found: dict[tuple[type[Warning], str], list[str]] = {}
    for warning in caught:
        if issubclass(
            warning.category, (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
        ):
            continue
        message = str(warning.message)
        found.setdefault((warning.category, re.sub(r"[-+0-9.e]+", "#", message)), []).append(
            message
        )
    return [
        (m[0] if len(m) == 1 else f"{m[0]} ({len(m)} times)", category)
        for (category, _), m in found.items()
    ]


def _own_doubts(
    data: _Data,
    round_: Round,
    permutations: int | str,
    test: PermutationTest | None,
    said: str,
    seconds: float,
) -> list[tuple[str, type[Warning]]]:
    doubts = []
    if permutations != 0 and test is None:
        why = (
            said
            if said.startswith("no permutation test")
            else f"no permutation test: too slow for a budget of {seconds:g} s"
        )
        doubts.append(f"{why.rstrip('.')}.")
    untested = int(np.sum(~round_.tested))
    if untested:
        doubts.append(
            f"{untested} of {len(data.y)} rows are never tested by this cv and have no held-out "
            "prediction."
        )
    doubts += _unlearned(data, round_)
    return [(doubt, UserWarning) for doubt in doubts]


def _unlearned(data: _Data, round_: Round) -> list[str]:
    """A word about rows whose class is in no row of their training set.

    No model can be right about them.
    """
    if data.classes is None:
        return []
    rows = [test[~np.isin(data.y[test], data.y[train])] for train, test in round_.splits]
    lost = np.concatenate(rows)
    if not len(lost):
        return []
    labels = np.unique(data.y[lost])
    listed = ", ".join(map(str, labels[:3])) + (", …" if len(labels) > 3 else "")
    return [
        f"rows of a class ({listed}) that their training rows lack: {len(lost)} of {len(data.y)}. "
        "They count as wrong, with probability 0, "
        "which weighs heavily in the log-loss. Leave such classes out, put them together, or use "
        "other folds."
    ]
