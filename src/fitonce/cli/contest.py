"""Other kinds of models on the same held-out rows: a linear model and a random forest.

They show whether a kernel model suits the table. For a large table, where the model uses landmarks,
they also decide between the linear kernel, which needs no landmarks, and the rbf kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from ..assessment import Assessment, ModelComparison, compare
from ..core.doubt import caught_warnings
from ..estimators.fitted import is_model, takes_groups
from .columns import TableDesign
from .models import N_LANDMARKS, pipeline
from .options import Settings
from .preprocessing import pipeline_of

MOST_ROWS = 10_000  # of a comparison: one half for training, the other for testing
TREES = 100
THIS, LINEAR, FOREST = "this model", "linear model", "random forest"
OTHER_ROWS = "this kind of model"
LANDMARKS = f"rbf, {N_LANDMARKS} landmarks"


def in_folds(
    answer: Assessment, parts: TableDesign, settings: Settings, seed: int
) -> ModelComparison:
    """A linear model and a random forest in the folds of an assessment, next to the model
    itself.
    """
    return _compared({THIS: answer, **_others(parts, settings, seed)}, parts)


def on_a_sample(
    parts: TableDesign, judged: TableDesign, settings: Settings, seed: int
) -> tuple[ModelComparison, Settings]:
    """Compare models, a linear model and a random forest on some rows of a large table. Returns
    also the settings with the better kernel, if the user left the kernel open.

    If the model is assessed on a sample only, the comparison uses other rows than that sample. The
    model that will be used comes first.
    """
    n = len(parts.y)
    free = np.flatnonzero(~np.isin(parts.numbers, judged.numbers))
    free = free if len(free) else np.arange(n)
    some = parts.rows(np.sort(np.random.default_rng(seed).permutation(free)[:MOST_ROWS]))
    kind = ShuffleSplit if some.groups is None else GroupShuffleSplit
    splits = list(kind(1, test_size=0.5, random_state=seed).split(some.X, some.y, some.groups))
    train, test = splits[0]
    is_open = (settings.kernel, settings.landmarks) == ("auto", "auto")
    names = {LINEAR: "linear", LANDMARKS: "rbf"} if is_open else {OTHER_ROWS: settings.kernel}
    kernels = {name: replace(settings, kernel=kernel) for name, kernel in names.items()}
    models = {name: pipeline(parts, changed, seed)[0] for name, changed in kernels.items()}
    found = _compared(models | _others(parts, settings, seed), some, splits)
    ours = max(kernels, key=lambda name: found.scores[name].value)
    first = {ours: found.scores[ours], **found.scores}
    where = f"{len(test):,} rows, trained on {len(train):,} others"
    return replace(found, scores=first, cv=where), kernels[ours]


def _compared(models: dict[str, Any], parts: TableDesign, splits: Any = None) -> ModelComparison:
    with caught_warnings():
        given = {"groups": parts.groups, "sample_weight": parts.weights, "cv": splits}
        return compare(models, None, parts.X, parts.y, **given)


def _others(parts: TableDesign, settings: Settings, seed: int) -> dict[str, Any]:
    return {LINEAR: linear(parts, settings, seed), FOREST: forest(parts, seed)}


def linear(parts: TableDesign, settings: Settings, seed: int) -> Any:
    usual = Settings(kernel="linear", model=settings.model, landmarks="none")
    return pipeline(parts, usual, seed)[0]


def forest(parts: TableDesign, seed: int) -> Any:
    kind = RandomForestClassifier if parts.task == "classification" else RandomForestRegressor
    return pipeline_of(parts, kind(TREES, random_state=seed, n_jobs=-1))


def fit(estimator: Any, parts: TableDesign) -> None:
    """Fit a pipeline, passing on groups and weights if its last step accepts them."""
    given: dict[str, Any] = {"sample_weight": parts.weights}
    if takes_groups(estimator[-1]):
        given["groups"] = parts.groups
    if is_model(estimator[-1]):
        given["confounds"] = parts.confounds
    named = {f"model__{name}": v for name, v in given.items() if v is not None}
    estimator.fit(parts.X, parts.y, **named)
