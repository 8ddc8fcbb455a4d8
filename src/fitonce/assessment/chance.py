"""The permutation test of an assessment: of the reported score, with a valid null distribution.

Folds depend on y (they are stratified), so labels are permuted within test folds. If all rows of a
group share one label, groups are exchanged as a whole, together with their folds if the sizes allow
it. Otherwise labels are permuted within groups (see docs/permutation.md). Every step that uses the
labels is repeated under every permutation.

The number of permutations is fixed, and the choice of the statistic depends only on the size of the
data: the same call gives the same p-value on every machine. A statistic that repeats the whole
search for kernel width and alpha is used if that search is cheap: few rows, and a criterion whose
products all permutations share. Otherwise the *quick* statistic is used for the observed and for
the permuted labels: the same pipeline and estimator, but with the kernel width taken from the
spread of the features, without labels, and alpha chosen by squared error. This is a valid test of
the same hypothesis with a slightly different model, and is reported as such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..crossval.depends import depends
from ..estimators.fitted import (
    chooses_steps,
    final_step,
    is_committee,
    is_model,
    with_first_steps,
)
from ..inference import PermutationTest, permutation_test_score
from ..inference.validity import ignores_y
from ..kernels import PARAMETERS, KernelSum, families
from .data import AssessedRows
from .folds import chooses
from .render import SCORES

PERMUTATIONS = 999  # default: p is a multiple of 1/1000
MOST_ROWS = 1000  # for two classes, see `most_rows`
FEW_OF_A_CLASS = 5  # smallest mean number of rows per class in the test
# permutations × rows² × targets up to which the assessed model itself is tested: less than a minute
# on one core
CHEAP = PERMUTATIONS * 150**2
SAME, QUICK = "same", "quick"


@dataclass(frozen=True)
class ReadyTest:
    """A permutation test to be run: `run(n_permutations=…)`, its statistic in words, its rows."""

    run: Callable[..., PermutationTest]
    statistic: str
    n_rows: int


def affordable(estimator: Any, data: AssessedRows, permutations: int) -> str:
    """The statistic that the size of the data allows."""
    model = final_step(estimator)
    targets = 1 if data.classes is None else len(data.classes) - 1
    few = permutations * len(data.y) ** 2 * targets <= CHEAP
    shared = is_model(model) and not depends(estimator, data.X).labels
    by_squares = getattr(model, "criterion", None) == "squared_error"
    return SAME if few and shared and by_squares and data.groups is None else QUICK


def most_rows(data: AssessedRows) -> int:
    """Default number of rows of the test: fewer for more than two classes, whose labelings cost
    more, but some of every class.
    """
    if data.classes is None:
        return MOST_ROWS
    classes = len(data.classes)
    return min(MOST_ROWS, max(int(MOST_ROWS / np.sqrt(classes - 1)), FEW_OF_A_CLASS * classes))


def quick(estimator: Any) -> Any:
    """The estimator with a kernel width that does not depend on labels and alpha tuned by squared
    error; for a committee, its first member; of several candidates for preprocessing, the first.

    The estimator itself if nothing is tuned that way.
    """
    other = with_first_steps(estimator)
    model = final_step(other)
    if is_committee(model):
        model = clone(model.estimators()[0])
        if isinstance(other, Pipeline):
            other.steps[-1] = (other.steps[-1][0], model)
        else:
            other = model
    if not is_model(model):
        return other
    tuned: dict[str, Any] = {"gamma": "scale", "degree": 3, "coef0": 1, "penalty": "function"}
    given = model.get_params(deep=False)
    kernel = families(given.get("kernel"))
    used = {*PARAMETERS.get(kernel, ()), "penalty"} if isinstance(kernel, str) else set(tuned)
    changes = {
        name: value
        for name, value in tuned.items()
        if name in used and isinstance(given.get(name), str) and given[name] == "tune"
    }
    if isinstance(families(given.get("kernel")), tuple):
        changes |= {"kernel": families(given["kernel"])[0]}
    if isinstance(given.get("kernel"), KernelSum) and given["kernel"].tunes:
        changes |= {"kernel": given["kernel"].untuned()}
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
    """The test of a statistic; labels are permuted in a valid way, unless `permute` or `exchange`
    are given.

    `single`: every test set is one row.
    """
    part = data.sample(most_rows, random_state)
    other = quick(estimator)
    same = statistic == SAME or repr(estimator) == repr(other)
    params = {
        name: values
        for name, values in part.params.items()
        if name.endswith("confounds")
        or (same and (chooses(estimator, data.X) or not name.endswith("groups")))
    }  # groups are used only for tuning
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
    return ReadyTest(run, _described(same, chooses_steps(estimator), part, data), len(part.y))


def _valid_exchange(data: AssessedRows) -> str | None:
    """Where most groups have one label each, groups are exchanged as a whole, with those of equal
    size if most have such partners; otherwise labels are permuted within groups.
    """
    if data.groups is None:
        return None
    names, of_row, sizes = np.unique(data.groups, return_inverse=True, return_counts=True)
    mixed = [len(np.unique(data.y[of_row == number])) > 1 for number in range(len(names))]
    alone = sum(np.sum(sizes == size) == 1 for size in sizes)
    if alone <= len(sizes) / 4 and np.mean(mixed) < 0.5:
        return "whole"
    return "within" if any(mixed) else "whole-unequal"


def _described(same: bool, chooses: bool, part: AssessedRows, data: AssessedRows) -> str:
    """The statistic in words."""
    steps = ", the first candidate for preprocessing" if chooses else ""
    of = (
        "this model, tuned again for every permutation"
        if same
        else "a simpler model of this kind (kernel width from the spread of the features, alpha "
        f"tuned for every permutation{steps})"
    )
    sample = f", on a random sample of {len(part.y):,} of {len(data.y):,} rows"
    return f"held-out {SCORES[data.score_name]} of {of}{'' if part is data else sample}"
