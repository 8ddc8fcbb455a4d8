"""The permutation test of an assessment: how many permutations a time budget allows, of which
statistic, and a null that holds.

Folds are made from y (stratified), so labels move within test folds; rows of a group that share one
label move together with those of other groups, and with their folds where sizes allow it, else
within their group (see docs/permutation.md). Whatever looks at labels is
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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.progress import say
from ..estimators.fitted import final_step, is_model
from ..inference import PermutationTest, permutation_test_score
from ..inference.validity import ignores_y
from .data import AssessedRows
from .folds import chooses
from .words import SCORES

COUNTS = (19, 39, 99, 199, 499, 999)  # one less than a round number: p is a multiple of 1/(1 + P)
ENOUGH = 199  # permutations at which the assessed model itself is the statistic
MOST_ROWS = 1000  # rows of the test where the budget, not the user, sets its size
DESIRABLE = 99  # permutations that are worth some patience: a p-value of 0.01 is possible
PILOT = (3, COUNTS[0])  # permutations of the two runs that tell set-up and cost of each
PATIENCE = 3.0  # times the budget that the smallest test may take
SAME, QUICK = "same", "quick"


@dataclass(frozen=True)
class ReadyTest:
    """A permutation test to be run: `run(n_permutations=…)`, its statistic in words, its rows."""

    run: Callable[..., PermutationTest]
    statistic: str
    n_rows: int

    def within(self, seconds: float) -> PermutationTest | None:
        """As many permutations, of `COUNTS`, as fit into the seconds by two short runs; None if the
        fewest take far longer.

        The number follows from the clock alone, so that it says nothing about the outcome.
        """
        say(0, 0, "permutations")
        taken = []
        for count in PILOT:
            before = time.perf_counter()
            test = self.run(n_permutations=count)
            taken.append(time.perf_counter() - before)
            if taken[0] > PATIENCE * seconds:
                return None
        each = max((taken[1] - taken[0]) / (PILOT[1] - PILOT[0]), 1e-6)
        set_up = max(taken[0] - PILOT[0] * each, 0.0)
        fitting = [
            count
            for count in COUNTS[1:]
            if sum(taken) + set_up + count * each
            <= (seconds if count > DESIRABLE else PATIENCE * seconds)
        ]
        return self.run(n_permutations=max(fitting)) if fitting and not test.exact else test


def quick(estimator: Any) -> Any:
    """The estimator with a kernel width that does not see labels and alpha by squared error.

    Itself where nothing is tuned that way.
    """
    other = clone(estimator)
    model = final_step(other)
    if not is_model(model):
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


def ready(
    estimator: Any,
    data: AssessedRows,
    cv: Any,
    statistic: str,
    *,
    most_rows: int | None,
    random_state: int,
    single: bool = False,
    permute: str | None = None,
    exchange: str | None = None,
    checkpoint: Any = None,
) -> ReadyTest:
    """The test of a statistic; labels move as is valid, unless `permute` or `exchange` say how.

    `single`: every test set is one row.
    """
    part = data.sample(most_rows, random_state)
    other = quick(estimator)
    same = statistic == SAME or repr(estimator) == repr(other)
    params = {
        name: values
        for name, values in (part.params if same else {}).items()
        if chooses(estimator, data.X) or not name.endswith("groups")  # groups serve choices only
    }
    free = (data.classes is None or single) and ignores_y(cv) is not False
    exchange = exchange or _valid_exchange(part)
    inside = not free and exchange not in ("whole", "whole-unequal")
    run = partial(
        permutation_test_score,
        estimator if same else other,
        part.X,
        part.y,
        groups=part.groups,
        cv=cv,
        params=params or None,
        permute=permute or ("within-folds" if inside else None),
        exchange=exchange,
        random_state=random_state,
        scoring=["r2"] if data.classes is None else ["accuracy", "balanced_accuracy"],
        pooled=True,
        checkpoint=checkpoint,
    )
    return ReadyTest(run, _described(same, part, data), len(part.y))


def _valid_exchange(data: AssessedRows) -> str | None:
    """Groups of one label each trade places whole, with those of equal size where most have such;
    others within themselves.
    """
    if data.groups is None:
        return None
    names, of_row, sizes = np.unique(data.groups, return_inverse=True, return_counts=True)
    if any(len(np.unique(data.y[of_row == number])) > 1 for number in range(len(names))):
        return "within"
    alone = sum(np.sum(sizes == size) == 1 for size in sizes)
    return "whole" if alone <= len(sizes) / 4 else "whole-unequal"


def _described(same: bool, part: AssessedRows, data: AssessedRows) -> str:
    """The statistic in words."""
    of = (
        "assessed model, everything tuned again under every permutation"
        if same
        else "same kind of model, kernel width from the spread of the features, "
        "alpha tuned under every permutation"
    )
    sample = f"; on a random sample of {len(part.y):,} of {len(data.y):,} rows"
    return f"held-out {SCORES[data.score_name]} of the {of}{'' if part is data else sample}"
