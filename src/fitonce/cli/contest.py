"""Other kinds of models on the same held-out rows: a linear model and a random forest.

They show whether a kernel model suits the table. For a large table, where the model uses landmarks,
they also decide between the linear kernel, which needs no landmarks, and the rbf kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from ..assessment import Assessment, beside
from ..assessment.contest import FOREST, LINEAR, THIS, TREES, Contest
from ..core.doubt import caught_warnings
from ..core.progress import say
from ..estimators.fitted import is_model, takes_groups
from .columns import TableDesign
from .models import N_LANDMARKS, pipeline
from .options import Settings
from .preprocessing import pipeline_of

MOST_ROWS = 10_000  # of a contest: one half for training, the other for testing
LANDMARKS = f"rbf, {N_LANDMARKS} landmarks"
Splits = Sequence[tuple[np.ndarray, np.ndarray]]


def in_folds(
    answer: Assessment, estimator: Any, parts: TableDesign, settings: Settings, seed: int
) -> Contest:
    """A linear model and a random forest in the folds of an assessment, next to the model
    itself.
    """
    others = {LINEAR: linear(parts, settings, seed), FOREST: forest(parts, seed)}
    given: dict[str, Any] = {"groups": parts.groups, "sample_weight": parts.weights}
    return beside(answer, estimator, parts.X, parts.y, **given, others=others)


def on_a_sample(
    parts: TableDesign, judged: TableDesign, settings: Settings, seed: int
) -> tuple[Contest, Settings]:
    """Compare models, a linear model and a random forest on some rows of a large table. Returns
    also the settings with the better kernel, if the user left the kernel open.

    If the model is assessed on a sample only, the contest uses other rows than that sample.
    """
    n = len(parts.y)
    free = np.flatnonzero(~np.isin(parts.numbers, judged.numbers))
    free = free if len(free) else np.arange(n)
    some = parts.rows(np.sort(np.random.default_rng(seed).permutation(free)[:MOST_ROWS]))
    kind = ShuffleSplit if some.groups is None else GroupShuffleSplit
    splits = list(kind(1, test_size=0.5, random_state=seed).split(some.X, some.y, some.groups))
    train, test = splits[0]
    where = f"{len(test):,} rows, trained on {len(train):,} others"
    score = "accuracy" if parts.task == "classification" else "r2"
    is_open = (settings.kernel, settings.landmarks) == ("auto", "auto")
    names = {LINEAR: "linear", LANDMARKS: "rbf"} if is_open else {THIS: settings.kernel}
    kernels = {name: replace(settings, kernel=kernel) for name, kernel in names.items()}
    models = {name: pipeline(parts, changed, seed)[0] for name, changed in kernels.items()}
    models |= {LINEAR: linear(parts, settings, seed), FOREST: forest(parts, seed)}
    contest = _held(Contest(score, some.y[test], where, THIS), models, some, splits)
    ours = max(kernels, key=contest.scores.__getitem__)
    return replace(contest, ours=ours), kernels[ours]


def linear(parts: TableDesign, settings: Settings, seed: int) -> Any:
    usual = Settings(kernel="linear", model=settings.model, landmarks="none")
    return pipeline(parts, usual, seed)[0]


def forest(parts: TableDesign, seed: int) -> Any:
    kind = RandomForestClassifier if parts.task == "classification" else RandomForestRegressor
    return pipeline_of(parts, kind(TREES, random_state=seed, n_jobs=-1))


def _held(contest: Contest, models: dict[str, Any], parts: TableDesign, splits: Splits) -> Contest:
    """The contest with the held-out predictions of some models added."""
    total, done = len(models) * len(splits), 0
    for name, model in models.items():
        predicted = []
        for train, test in splits:
            say(done, total, "comparison with other models")
            with caught_warnings():
                fit(model, parts.rows(train))
                predicted.append(np.asarray(model.predict(parts.X[test])))
            done += 1
        order = np.argsort(np.concatenate([test for _, test in splits]), kind="stable")
        held = np.concatenate(predicted)
        contest.predictions[name] = held[order] if len(splits) > 1 else held
    say(total, total, "comparison with other models")
    return contest


def fit(estimator: Any, parts: TableDesign) -> None:
    """Fit a pipeline, passing on groups and weights if its last step accepts them."""
    given: dict[str, Any] = {"sample_weight": parts.weights}
    if takes_groups(estimator[-1]):
        given["groups"] = parts.groups
    if is_model(estimator[-1]):
        given["confounds"] = parts.confounds
    named = {f"model__{name}": v for name, v in given.items() if v is not None}
    estimator.fit(parts.X, parts.y, **named)
