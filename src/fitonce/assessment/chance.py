"""The permutation test of an assessment: of the reported score, with a valid null distribution.

Folds depend on y (they are stratified), so labels are permuted within test folds. If all rows of a
group share one label, groups are exchanged as a whole, together with their folds if the sizes
allow it. Otherwise labels are permuted within groups (see docs/permutation.md). With
`TimeSeriesSplit`, labels are shifted in a circle, because those of neighboring rows are alike.
Every step that uses the labels is repeated under every permutation.

What is tested depends only on the size of the data: the same call gives the same p-value on every
machine. It is the assessed model itself, tuned again, where that takes seconds. Otherwise it
chooses among the same kernels on a coarser lattice, a valid test of the same hypothesis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline

from ..core.progress import report_progress
from ..crossval.depends import depends
from ..estimators.fitted import (
    chooses_steps,
    final_step,
    is_committee,
    is_model,
    with_first_steps,
)
from ..estimators.parameters import rows_decide
from ..inference import PermutationTest, permutation_test_score
from ..inference.choices import judges_together
from ..inference.validity import ignores_y
from ..kernels import PARAMETERS, KernelSum, families
from .data import AssessedRows
from .folds import chooses
from .render import SCORES

PERMUTATIONS = 999  # default: p is a multiple of 1/1000
MOST_ROWS = 1000  # for two classes, see `most_rows`
FEW_OF_A_CLASS = 5  # smallest mean number of rows per class in the test
# nanoseconds for a held-out value of a candidate: in a criterion, and in the products that make it
# for every row (benchmarks/timings.py)
PER_VALUE, PER_PRODUCT = 40.0, 0.05
SECONDS = 10.0  # of such work up to which the model is tested on its own lattice
FOLDS, GAMMAS, ALPHAS = 10, 12, 42  # as many as there are, at most, by default
TUNED = ("kernel", "gamma", "alpha", "penalty", "degree", "coef0")
LABELS = ("accuracy", "balanced_accuracy")  # scores of classes that are tested
SAME, QUICK = "same", "quick"


def affordable(estimator: Any, data: AssessedRows, permutations: int) -> str:
    """The statistic that the size of the data allows."""
    model = final_step(estimator)
    if not is_model(model) or depends(estimator, data.X).labels or data.groups is not None:
        return QUICK
    if depends(model, data.X).rows is None:
        return SAME
    n, targets = len(data.y), 1 if data.classes is None else len(data.classes) - 1
    values = permutations * targets * n * FOLDS * _candidates(model)
    seconds = 1e-9 * values * (PER_VALUE + PER_PRODUCT * n)
    return SAME if seconds <= SECONDS and judges_together(model) else QUICK


def _candidates(model: Any) -> int:
    """About how many values of kernel, gamma and alpha a search tries."""
    kernels = families(model.kernel)
    kernels = kernels if isinstance(kernels, tuple) else (kernels,)
    widths = isinstance(model.gamma, str) and model.gamma == "tune"
    tuned = [widths and isinstance(k, str) and "gamma" in PARAMETERS[k] for k in kernels]
    alphas = ALPHAS if isinstance(model.alpha, str) else np.size(model.alpha)
    return int(sum(GAMMAS if gamma else 1 for gamma in tuned) * alphas)


def most_rows(data: AssessedRows) -> int:
    """Default number of rows of the test: fewer for more than two classes, whose labelings cost
    more, but some of every class.
    """
    if data.classes is None:
        return MOST_ROWS
    classes = len(data.classes)
    return min(MOST_ROWS, max(int(MOST_ROWS / np.sqrt(classes - 1)), FEW_OF_A_CLASS * classes))


def quick(estimator: Any) -> Any:
    """The estimator with a coarse lattice for what it tunes; for a committee, its first member; of
    several candidates for preprocessing, the first. Where labelings cannot be judged together by
    its criterion, the squared error judges.

    The estimator itself if nothing is tuned.
    """
    other = with_first_steps(estimator)
    model = final_step(other)
    if is_committee(model):
        model = clone(final_step(model.estimators()[0]))
        if isinstance(other, Pipeline):
            other.steps[-1] = (other.steps[-1][0], model)
        else:
            other = model
    if not is_model(model):
        return other
    given = model.get_params(deep=False)
    tuned = any(isinstance(given[name], str) and given[name] == "tune" for name in TUNED)
    changes: dict[str, Any] = {"search": "coarse"} if tuned else {}
    if isinstance(given["kernel"], KernelSum) and given["kernel"].tunes:
        changes |= {"kernel": given["kernel"].untuned()}
    if "landmarks" in given:
        changes |= {"landmarks": None}  # few rows: see MOST_ROWS
    model.set_params(**changes, refine=False, cv=None)
    if rows_decide(model) and not judges_together(model):
        model.set_params(criterion="squared_error")
    return other


def tested(
    estimator: Any,
    data: AssessedRows,
    cv: Any,
    statistic: str,
    n_permutations: int,
    *,
    most_rows: int | None,
    random_state: int,
    single: bool = False,
    permute: str | None = None,
    exchange: str | None = None,
    checkpoint: Any = None,
) -> tuple[PermutationTest, str, int]:
    """The test of a statistic, the statistic in words, and the number of rows; labels are permuted
    in a valid way, unless `permute` or `exchange` are given.

    `single`: every test set is one row.
    """
    report_progress(0, n_permutations, "permutations")
    part = data.sample(most_rows, random_state)
    other = quick(estimator)
    same = statistic == SAME or repr(estimator) == repr(other)
    params = {
        name: values
        for name, values in part.params.items()
        if name.endswith("confounds")
        or (same and (chooses(estimator, data.X) or not name.endswith("groups")))
    }  # groups are used only for tuning
    labels = data.score_name in LABELS
    free = (data.classes is None or single) and ignores_y(cv) is not False
    forward = isinstance(cv, TimeSeriesSplit)
    exchange = exchange or ("shift" if forward else _valid_exchange(part))
    inside = not free and exchange not in ("whole", "whole-unequal", "shift")
    test = permutation_test_score(
        estimator if same else other,
        part.X,
        part.y,
        groups=part.groups,
        cv=cv,
        params=params or None,
        permute=permute or ("within-folds" if inside else None),
        exchange=exchange,
        random_state=random_state,
        scoring=sorted(LABELS, key=data.score_name.__ne__) if labels else [data.score_name],
        pooled=data.score_name != "roc_auc",  # which ranks what one model says
        n_permutations=n_permutations,
        checkpoint=checkpoint,
    )
    kind = chooses_steps(estimator), is_committee(final_step(estimator))
    return test, _described(same, *kind, part, data), len(part.y)


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


def _described(
    same: bool, chooses: bool, committee: bool, part: AssessedRows, data: AssessedRows
) -> str:
    """The statistic in words."""
    steps = ", the first candidate for preprocessing" if chooses else ""
    of = "this model, tuned again for every permutation"
    if not same:
        kind = "the first member of this committee" if committee else "this model"
        of = f"{kind}, tuned again for every permutation, choosing among fewer settings{steps}"
    sample = f", on a random sample of {len(part.y):,} of {len(data.y):,} rows"
    return f"held-out {SCORES[data.score_name]} of {of}{'' if part is data else sample}"
