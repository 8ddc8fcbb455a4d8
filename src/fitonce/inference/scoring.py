"""Scores of labelings: batched where a metric has a batched form, otherwise by scikit-learn's
scorer on each labeling and fold.

A scorer is handed a stand-in that holds the outputs already computed. One that asks for more
(calibrated probabilities, the fitted model) has every labeling fitted instead, as in scikit-learn:
a model for every training set, of one decomposition of all rows where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.special
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import check_scoring, confusion_matrix, get_scorer, make_scorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if

from ..core.calibration import class_scores
from ..core.splits import Split
from ..crossval.lookup import FoldContext, lookup_estimator, n_rows, subset
from ..crossval.metrics import (
    Metric,
    Outputs,
    Scored,
    correlation,
    neg_log_loss,
    pooled,
    vectorised,
)
from ..estimators.fitted import final_step, is_model
from ..estimators.validation import is_foreign_array
from ..tuning.criterion import SCORER, HeldOutModel


class NeedsFitError(Exception):
    """A scorer wants something that only a fitted model has."""


@dataclass(frozen=True)
class Measure:
    """One score by name: its batched form, if any, and scikit-learn's scorer."""

    name: str
    metric: Metric | None
    scorer: Callable[..., Any]
    plain: bool  # whether the scorer only calls the estimator's methods
    params: Mapping[str, Any] = field(default_factory=dict)  # metadata that the scorer asks for

    @property
    def adds_up(self) -> bool:
        """Confusion matrices of folds are added, scores are averaged."""
        return self.name == "confusion_matrix"


def measures(
    estimator: Any, scoring: Any, *, classifier: bool, classes: np.ndarray | None
) -> list[Measure]:
    """What is to be scored, in order.

    The first is the one that the result's three values are about.
    """
    known, uncalibrated = is_model(estimator), getattr(estimator, "calibration", "") is None
    # whether probabilities are the softmax of decisions, with nothing calibrated in between
    posterior = uncalibrated and getattr(estimator, "default_temperature", None) == 1.0
    result = []
    for name, given in named_scores(estimator, scoring).items():
        metric = vectorised(given, classes, has_posterior=posterior) if known else None
        plain = given is None or isinstance(given, (str, SCORER))
        result.append(Measure(name, metric, scorer_of(estimator, given, classes), plain))
    if result[0].adds_up:
        raise ValueError(
            'the first score must be a number, got "confusion_matrix" instead: the p-value is '
            "that of the first. "
            'Put another score before it, for instance scoring=["accuracy", "confusion_matrix"].'
        )
    return result


def named_scores(estimator: Any, scoring: Any) -> dict[str, Any]:
    """What was given for each score, by its name."""
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    elif isinstance(scoring, (list, tuple, set)):
        named = {str(name): name for name in scoring}
    elif scoring is None and is_model(estimator):
        name = "accuracy" if is_classifier(estimator) else "r2"
        named = {name: name}
    else:
        named = {scoring if isinstance(scoring, str) else "score": scoring}
    if not named:
        raise ValueError("scoring must name at least one score, got an empty collection instead.")
    return named


@dataclass(frozen=True)
class Routed:
    """Metadata by what takes it: `fit`, the splitter, and each score by its name."""

    fit: dict[str, Any]
    split: dict[str, Any]
    score: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, estimator: Any, cv: Any, scoring: Any, params: Mapping[str, Any]) -> Routed:
        """What each asks for, as in scikit-learn's function."""
        router = MetadataRouter(owner="permutation_test_score")
        router.add(
            estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )
        router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        mapping = MethodMapping().add(caller="fit", callee="score")
        named = named_scores(final_step(estimator), scoring)
        for name, given in named.items():
            found = scorer_of(estimator, None if scoring is None else given, None)
            router.add(**{f"score {name}": found}, method_mapping=mapping)
        routed = process_routing(router, "fit", **params)
        scores = {name: routed[f"score {name}"]["score"] for name in named}
        return cls(routed["estimator"]["fit"], routed["splitter"]["split"], scores)


def scorer_of(estimator: Any, name: Any, classes: np.ndarray | None) -> Any:
    """scikit-learn's scorer, or one for the names that it does not have."""
    if name == "correlation":
        return make_scorer(pearson)
    if name == "confusion_matrix":
        return make_scorer(confusion_matrix, labels=classes)
    if isinstance(name, str):
        return get_scorer(name)
    return check_scoring(estimator, scoring=name)


def pearson(y_true: Any, y_pred: Any) -> float:
    """Pearson's correlation of targets and predictions, averaged over targets."""
    truth, predicted = (
        np.asarray(y, dtype=np.float64).reshape(1, 1, len(y), -1).swapaxes(2, 3)
        for y in (y_true, y_pred)
    )
    return float(correlation(Scored(Outputs(predicted, truth), None))[0, 0])


# ---- outputs in, scores out ----------------------------------------------------------------------


@dataclass
class Scoring:
    """All measures of one test. `literal` collects those that turned out to need fitted models."""

    estimator: Any
    measures: list[Measure]
    classes: np.ndarray | None
    single: bool
    pooled: bool
    literal: set[str] = field(default_factory=set)

    @property
    def fitted(self) -> list[Measure]:
        """Those that need fitted models."""
        return [measure for measure in self.measures if self._needs_fit(measure)]

    def _needs_fit(self, measure: Measure) -> bool:
        seen = measure.metric is None and not measure.plain  # by a function of the user's own
        return seen or bool(measure.params) or measure.name in self.literal

    def of_outputs(self, runs: list[Outputs]) -> dict[str, np.ndarray]:
        """Scores (B, …) of every measure that can be had from outputs alone."""
        n_classes = None if self.classes is None else len(self.classes)
        scored = [Scored(run, n_classes) for run in (pooled(runs) if self.pooled else runs)]
        return {
            measure.name: _combined(measure, [self._of_run(measure, run) for run in scored])
            for measure in self.measures
            if not self._needs_fit(measure)
        }

    def _of_run(self, measure: Measure, scored: Scored) -> np.ndarray:
        """Scores (B, k) of a run of folds.

        The log-loss of a fold that lacks a class is scikit-learn's to define.
        """
        disputed = measure.metric is neg_log_loss and np.any(scored.per_class[1] == 0)
        if measure.metric is not None and not disputed:
            return measure.metric(scored)
        B, k = scored.truth.shape[:2]
        return np.array(
            [[self._one(measure, scored, b, fold) for fold in range(k)] for b in range(B)]
        )

    def _one(self, measure: Measure, scored: Scored, b: int, fold: int) -> Any:
        outputs, truth = scored.values[b, fold].T, scored.truth[b, fold]
        classes = self.classes
        if classes is None:
            known = HeldOutModel(outputs, None)
            return known.judged(measure.scorer, truth[0] if self.single else truth.T)
        known = HeldOutModel(outputs, classes, self._probabilities(outputs))
        return known.judged(measure.scorer, classes[truth])

    def _probabilities(self, decision: np.ndarray) -> Callable[[], np.ndarray] | None:
        """How probabilities are made of decisions; calibrated ones need a fit."""
        if not hasattr(self.estimator, "predict_proba"):
            return None

        def probabilities() -> np.ndarray:
            if final_step(self.estimator).calibration is not None:
                raise NeedsFitError
            return np.asarray(scipy.special.softmax(class_scores(decision), axis=1))

        return probabilities

    def of_fits(
        self,
        folds: Sequence[tuple[Any, Any, Any]],
        tests: Sequence[np.ndarray],
        n_samples: int,
        which: list[Measure],
    ) -> dict[str, np.ndarray]:
        """Scores (1, …) of one labeling from fitted models with their test rows and labels, and the
        numbers of these rows among all.
        """
        if self.pooled:
            y, tests = np.concatenate([np.asarray(y) for _, _, y in folds]), [np.concatenate(tests)]
            folds = [(Pooled(folds), np.zeros((len(y), 1)), y)]
        scores = {}
        for measure in which:
            by_fold = [
                measure.scorer(model, X, y, **of_rows(measure.params, test, n_samples))
                for (model, X, y), test in zip(folds, tests, strict=True)
            ]
            scores[measure.name] = _combined(measure, [np.array([by_fold])])
        return scores


def _combined(measure: Measure, by_run: list[np.ndarray]) -> np.ndarray:
    """One score per labeling: the mean over folds, or the sum of confusion matrices."""
    by_fold = np.concatenate(by_run, axis=1)
    return np.asarray(
        by_fold.sum(axis=1) if measure.adds_up else np.mean(np.ascontiguousarray(by_fold), axis=1)
    )


# ---- stand-ins for fitted models -----------------------------------------------------------------


def _all_have(method: str) -> Any:
    return available_if(lambda pooled: all(hasattr(model, method) for model, _, _ in pooled.folds))


class Pooled(BaseEstimator):
    """Several fitted models, each asked about its own test rows; scorers see them as one."""

    def __init__(self, folds: Sequence[tuple[Any, Any, Any]]) -> None:
        self.folds = folds

    def __sklearn_tags__(self) -> Any:
        tags = self.folds[0][0].__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    @property
    def classes_(self) -> Any:
        return self.folds[0][0].classes_

    def _joined(self, method: str) -> np.ndarray:
        return np.concatenate([np.asarray(getattr(model, method)(X)) for model, X, _ in self.folds])

    def predict(self, X: Any) -> np.ndarray:
        return self._joined("predict")

    @_all_have("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        return self._joined("decision_function")

    @_all_have("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        return self._joined("predict_proba")

    def score(self, X: Any, y: Any, **params: Any) -> float:
        """The first model's own score function, on all predictions."""
        score: float = type(self.folds[0][0]).score(self, X, y, **params)
        return score


# ---- fitted models -------------------------------------------------------------------------------


@dataclass
class Fitter:
    """Fits the estimator on the training sets of a labeling.

    `each`: labels enter the decomposition (class weights), so that every labeling has its own,
    still one for all folds.
    """

    estimator: Any
    X: Any
    y: Any
    params: Mapping[str, Any] | None
    shared: FoldContext | None = None
    each: bool = False
    confounds: Any = None

    def __post_init__(self) -> None:
        self.plain = FoldContext(self.estimator, self.X, self.y, self.confounds)

    def folds(
        self, y: Any, splits: Sequence[Split], *, real: bool = False
    ) -> list[tuple[Any, Any, Any]]:
        """(model, its test rows, their labels) for every split.

        `real` models can be looked into, others only be called; with confounds there are only
        these, which bring the confounds of rows along.
        """
        stands_in = self.shared is not None or self.each or is_foreign_array(self.X)
        real = (real or not stands_in) and self.confounds is None
        shared = self.plain if real else self.shared or self.plain
        shared = shared.relabelled(np.asarray(y))
        if self.each and not real:
            shared.decompose((self.params or {}).get("sample_weight"))
        lookup, n = lookup_estimator(shared), n_rows(self.X)
        numbers, folds = np.arange(n)[:, None], []
        for train, test in splits:
            params = of_rows(self.params or {}, train, n)
            model = clone(lookup).fit(numbers[train], subset(y, train), **params)
            fitted = model.fitted() if real else model
            X_test = shared.rows(test, train) if real else numbers[test]
            folds.append((fitted, X_test, subset(y, test)))
        return folds


def of_rows(params: Mapping[str, Any], rows: np.ndarray, n_samples: int) -> dict[str, Any]:
    """Parameters, those with one entry per row cut to some of the rows."""
    return {
        name: subset(value, rows) if _per_row(value, n_samples) else value
        for name, value in params.items()
    }


def _per_row(value: Any, n_samples: int) -> bool:
    listed = hasattr(value, "__len__") and not isinstance(value, (str, Mapping))
    return listed and n_rows(value) == n_samples
