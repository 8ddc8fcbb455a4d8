"""Other kinds of models on the rows that an assessment held out: by default a linear model and a
random forest. They show whether a simpler or a different model does as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import Pipeline

from ..core.arrays import to_numpy
from ..core.doubt import caught_warnings
from ..core.progress import say
from ..crossval.stand_in import subset
from ..estimators.fitted import final_step, is_model, takes_groups
from .result import Assessment

TREES = 100
CLEARLY = 3.0  # standard errors by which a model must be better than another
SAME_FOLDS = "the same folds"
THIS, LINEAR, FOREST = "this model", "linear model", "random forest"


@dataclass(frozen=True)
class Contest:
    """Scores of several models on the same rows, with the predictions behind them.

    Attributes
    ----------
    score_name : {"accuracy", "r2"}
    y : array of shape (n_tested,)
    where : str
        Description of the rows.
    ours : str
        Name of the assessed model.
    predictions : dict of str to array of shape (n_tested,)
        Held-out predictions by model name.
    """

    score_name: str
    y: np.ndarray
    where: str
    ours: str  # the name of the assessed model
    predictions: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, float]:
        """Accuracy, or R², of all tested rows together."""
        spread = 1.0 if self.score_name == "accuracy" else float(np.var(self.y)) or 1.0
        return {
            name: 1.0 - float(np.mean(self._losses(name))) / spread for name in self.predictions
        }

    def _losses(self, name: str) -> np.ndarray:
        predicted = self.predictions[name]
        if self.score_name == "accuracy":
            return np.asarray(predicted != self.y, dtype=float)
        return np.asarray((predicted - self.y) ** 2)

    @property
    def best(self) -> str:
        return max(self.scores, key=self.scores.__getitem__)

    @property
    def better(self) -> str | None:
        """A model that is clearly better than ours, judged by the losses of the same rows."""
        better = self._losses(self.ours) - self._losses(self.best)
        error = float(np.std(better)) / np.sqrt(len(better))
        return self.best if float(np.mean(better)) > CLEARLY * error else None

    @property
    def summary(self) -> dict[str, Any]:
        return {"score": self.score_name, "rows": self.where, "scores": self.scores}


def beside(
    assessment: Assessment,
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    others: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Contest:
    """Fit other models in the folds of an assessment, for comparison with the assessed model.

    Parameters
    ----------
    assessment : Assessment
        The result of `assess` for this estimator and these rows.
    estimator : estimator
        The assessed estimator: one of fitonce, or a pipeline that ends in one.
    X, y, groups, sample_weight
        As passed to `assess`. Groups stay together in the tuning of models that tune.
    others : dict of str to estimator, default=None
        By default a linear model of the same kind, tuned on each training set, and a random forest
        of 100 trees, both with the same preprocessing.
    random_state : int, default=0
        Seed for the random forest.

    Returns
    -------
    Contest
        Every model is refitted on every training set; `scores` has one number for each.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant, assess
    >>> from fitonce.assessment import beside
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
    >>> answer = assess(model, X, y, cv=3, permutations=0)
    >>> contest = beside(answer, model, X, y)
    >>> list(contest.scores)
    ['this model', 'linear model', 'random forest']
    """
    models = _usual(estimator, assessment.task, random_state) if others is None else others
    rows = np.arange(len(assessment.y))
    tests = [np.flatnonzero(assessment.fold == number) for number in range(assessment.n_splits)]
    tested, y = np.flatnonzero(assessment.tested), np.asarray(to_numpy(y))
    contest = Contest(assessment.score_name, y[tested], SAME_FOLDS, THIS)
    contest.predictions[THIS] = assessment.predictions[tested]
    given = {"groups": groups, "sample_weight": sample_weight}
    given = {name: to_numpy(values) for name, values in given.items() if values is not None}
    total = len(models) * len(tests)
    for number, (name, model) in enumerate(models.items()):
        held_out = np.empty_like(assessment.predictions)
        for fold, test in enumerate(tests):
            say(number * len(tests) + fold, total, "comparison with other models")
            train = np.setdiff1d(rows, test)
            with caught_warnings():
                fitted = _fitted(model, X, y, given, train)
                held_out[test] = to_numpy(fitted.predict(subset(X, test)))
        contest.predictions[name] = held_out[tested]
    say(total, total, "comparison with other models")
    return contest


def _usual(estimator: Any, task: str, seed: int) -> dict[str, Any]:
    """A linear model of the same kind and a random forest, with the same preprocessing steps."""
    model = final_step(estimator)
    kind = RandomForestClassifier if task == "classification" else RandomForestRegressor
    found = {FOREST: kind(TREES, random_state=seed)}
    if is_model(model) and isinstance(model.kernel, str) and model.kernel != "precomputed":
        found = {LINEAR: type(model)(kernel="linear"), **found}
    return {name: _in_place(estimator, model, other) for name, other in found.items()}


def _in_place(estimator: Any, model: Any, other: Any) -> Any:
    """The estimator with its last step replaced."""
    if model is estimator:
        return other
    *steps, (name, _) = estimator.steps
    return Pipeline([*((label, clone(step)) for label, step in steps), (name, other)])


def _fitted(model: Any, X: Any, y: np.ndarray, given: dict[str, Any], train: np.ndarray) -> Any:
    model, last = clone(model), final_step(model)
    prefix = "" if last is model or not hasattr(model, "steps") else f"{model.steps[-1][0]}__"
    taken = given if takes_groups(last) else {k: v for k, v in given.items() if k != "groups"}
    named = {prefix + name: values[train] for name, values in taken.items()}
    return model.fit(subset(X, train), y[train], **named)
