"""The permutation test of an assessment: how many permutations a time budget allows, of which
statistic, and a null that holds.

Folds are made from y (stratified), so labels move within test folds; rows of a group that share one
label move together, else within their group (see docs/permutation.md). Whatever looks at labels is
done anew under every permutation.

A statistic that repeats the whole search for kernel width and alpha costs as much per permutation
as cross-validating once. Where the budget does not allow enough of those, the *quick* statistic is
scored instead, for observed and permuted labels alike: the same pipeline and estimator with the
kernel width from the spread of the features, which does not see labels, and alpha chosen by squared
error, whose products all permutations share. It is a valid test of the same hypothesis, of a
slightly different model, and is reported as such.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from ..crossval.stand_in import subset
from ..estimators.base import KernelModel
from ..inference import PermutationTest, permutation_test_score
from ..inference.validity import ignores_y

COUNTS = (19, 39, 99, 199, 499, 999)  # one less than a round number: p is a multiple of 1/(1 + P)
ENOUGH = 199  # permutations at which the assessed model itself is the statistic
MOST_ROWS = 1000  # rows of the test where the budget, not the user, sets its size
DESIRABLE = 99  # permutations that are worth some patience: a p-value of 0.01 is possible
PILOT = (3, COUNTS[0])  # permutations of the two runs that tell set-up and cost of each
PATIENCE = 3.0  # times the budget that the smallest test may take
SAME, QUICK = "same", "quick"


@dataclass(frozen=True)
class Plan:
    """A permutation test to be made: estimator, rows, folds, and how labels may move."""

    estimator: Any
    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    cv: Any
    params: Mapping[str, Any] | None
    permute: str | None
    exchange: str | None
    random_state: int
    scoring: list[str]
    checkpoint: Any = None

    def run(self, n_permutations: int, verbose: int = 0) -> PermutationTest:
        return permutation_test_score(
            self.estimator, self.X, self.y, groups=self.groups, cv=self.cv, params=self.params, permute=self.permute,
            exchange=self.exchange, n_permutations=n_permutations, random_state=self.random_state, scoring=self.scoring, pooled=True,
            verbose=verbose, checkpoint=self.checkpoint,
        )  # fmt: skip

    def within(self, seconds: float, verbose: int) -> PermutationTest | None:
        """As many permutations, of `COUNTS`, as fit into the seconds by two short runs; None if the
        fewest take far longer.

        The number follows from the clock alone, so that it says nothing about the outcome.
        """
        taken = []
        for count in PILOT:
            before = time.perf_counter()
            test = self.run(count)
            taken.append(time.perf_counter() - before)
            if taken[0] > PATIENCE * seconds:
                return None
        each = max((taken[1] - taken[0]) / (PILOT[1] - PILOT[0]), 1e-6)
        set_up = max(taken[0] - PILOT[0] * each, 0.0)
        needed = {count: sum(taken) + set_up + count * each for count in COUNTS[1:]}
        fitting = [
            count
            for count, time_ in needed.items()
            if time_ <= (seconds if count > DESIRABLE else PATIENCE * seconds)
        ]
        return self.run(max(fitting), verbose) if fitting and not test.exact else test


def quick(estimator: Any) -> Any:
    """The estimator with a kernel width that does not see labels and alpha by squared error.

    Itself where nothing is tuned that way.
    """
    other = clone(estimator)
    model = other.steps[-1][1] if isinstance(other, Pipeline) else other
    if not isinstance(model, KernelModel):
        return other
    tuned: dict[str, Any] = {"gamma": "scale", "degree": 3, "coef0": 1, "penalty": "function"}
    given = model.get_params(deep=False)
    changes = {
        name: value
        for name, value in tuned.items()
        if isinstance(given.get(name), str) and given[name] in ("tune", "ard")
    }
    if isinstance(given["alpha"], str) or np.ndim(given["alpha"]) > 0:
        changes |= {"criterion": "squared_error"}
    if "landmarks" in given:
        changes |= {"landmarks": None}  # few rows: see MOST_ROWS
    model.set_params(**changes, refine=False, cv=None)
    return other


def is_same(estimator: Any, other: Any) -> bool:
    """Whether the two would fit alike."""
    return repr(estimator) == repr(other)


def _needed(estimator: Any, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters of fit.

    Groups serve the estimator's own choices only and are left out where it makes none.
    """
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    chooses = not isinstance(model, KernelModel) or model._row_dependence() is not None
    return {
        name: value
        for name, value in (params or {}).items()
        if chooses or not name.endswith("groups")
    }


def sample(n: int, most: int, random_state: int) -> np.ndarray | None:
    """Which rows take part, drawn without a look at anything; None for all."""
    if n <= most:
        return None
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


def movement(
    y: np.ndarray, groups: np.ndarray | None, cv: Any, classifier: bool, single: bool
) -> tuple[str | None, str | None]:
    """(permute, exchange) that keep the null valid: see the module's docstring. `single`.

    Every test set is one row.
    """
    exchange = None
    if groups is not None:
        number = np.unique(groups, return_inverse=True)[1].reshape(-1)
        uniform = all(
            len(np.unique(y[number == group])) == 1 for group in range(int(number.max()) + 1)
        )
        exchange = "whole" if uniform else "within"
    free = (not classifier or single) and ignores_y(cv) is not False
    return (None if free else "within-folds"), exchange


def describe(statistic: str, estimator: Any, n_rows: int, n_samples: int, score_name: str) -> str:
    """The statistic in words."""
    score = {"accuracy": "held-out accuracy", "r2": "held-out R²"}[score_name]
    what = f"{score} of the assessed model, everything tuned again under every permutation"
    if statistic == QUICK:
        what = (
            f"{score} of the same kind of model, kernel width from the spread of the features, "
            "alpha tuned under every permutation"
        )
    return (
        what
        if n_rows == n_samples
        else f"{what}; on a random sample of {n_rows:,} of {n_samples:,} rows"
    )


def chance(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    groups: np.ndarray | None,
    cv: Any,
    params: Mapping[str, Any] | None,
    *,
    single: bool,
    permutations: int | str,
    statistic: str,
    seconds: float,
    cv_seconds: float,
    random_state: int,
    verbose: int,
) -> tuple[PermutationTest | None, str, int]:
    """The test (None if the budget does not allow one), its statistic in words, and the number of
    its rows.
    """
    classifier = bool(is_classifier(estimator))
    score_name = "accuracy" if classifier else "r2"
    automatic = permutations == "auto"
    other = quick(estimator)
    if statistic == "auto":
        wanted = ENOUGH if automatic else int(permutations)
        statistic = SAME if is_same(estimator, other) or wanted * cv_seconds <= seconds else QUICK
    rows = sample(len(y), MOST_ROWS, random_state) if automatic else None
    X_, y_, groups_ = (
        (X, y, groups)
        if rows is None
        else (subset(X, rows), y[rows], None if groups is None else groups[rows])
    )
    given = {} if statistic == QUICK else _needed(estimator, params)
    if rows is not None:
        given = {name: np.asarray(value)[rows] for name, value in given.items()}
    permute, exchange = movement(y_, groups_, cv, classifier, single)
    plan = Plan(
        estimator if statistic == SAME else other, X_, y_, groups_, cv, given or None, permute, exchange, random_state,
        ["accuracy", "balanced_accuracy"] if classifier else ["r2"],
    )  # fmt: skip
    said = describe(statistic, estimator, len(y_), len(y), score_name)
    test = plan.within(seconds, verbose) if automatic else plan.run(int(permutations), verbose)
    return test, said, len(y_)


def chosen_test(
    estimator: Any, X: Any, y: np.ndarray, groups: np.ndarray | None, cv: Any, *, permutations: int, statistic: str, permute: str | None,
    exchange: str | None, most_rows: int | None, checkpoint: Any, random_state: int, verbose: int,
) -> tuple[PermutationTest, str]:  # fmt: skip
    """A test whose size and statistic the user has chosen."""
    classifier = bool(is_classifier(estimator))
    rows = None if most_rows is None else sample(len(y), most_rows, random_state)
    X_, y_, groups_ = (
        (X, y, groups)
        if rows is None
        else (subset(X, rows), y[rows], None if groups is None else groups[rows])
    )
    valid = movement(y_, groups_, cv, classifier, single=False)
    other = quick(estimator)
    statistic = SAME if is_same(estimator, other) else statistic
    given = None
    if statistic == SAME and groups_ is not None:
        prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
        given = _needed(estimator, {f"{prefix}groups": groups_}) or None
    scoring = ["accuracy", "balanced_accuracy"] if classifier else ["r2"]
    plan = Plan(
        other if statistic == QUICK else estimator, X_, y_, groups_, cv, given, permute or valid[0], exchange or valid[1], random_state,
        scoring, checkpoint,
    )  # fmt: skip
    return plan.run(permutations, verbose), describe(
        statistic, estimator, len(y_), len(y), scoring[0]
    )
