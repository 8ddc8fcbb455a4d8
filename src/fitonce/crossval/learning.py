"""scikit-learn's learning curve: all training set sizes from one factorization of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.utils import check_random_state

from ..core.splits import row_numbers
from .plan import Plan
from .stand_in import Shared, Split, n_rows

TRAIN_SIZES = np.linspace(0.1, 1.0, 5)


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    train_sizes: Any = TRAIN_SIZES,
    cv: Any = None,
    scoring: Any = None,
    exploit_incremental_learning: bool = False,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    shuffle: bool = False,
    random_state: Any = None,
    error_score: Any = np.nan,
    return_times: bool = False,
    params: Mapping[str, Any] | None = None,
) -> tuple[np.ndarray, ...]:
    """`sklearn.model_selection.learning_curve`, by the fastest route to the same numbers.

    Parameters and result are those of scikit-learn. The smaller training sets of a fold are the
    first rows of the largest. With fixed parameters and the function norm, one Cholesky factor of
    the rows gives the models of all sizes. Otherwise, every size is fitted.

    Examples
    --------
    >>> from fitonce import LeastSquaresSVC, learning_curve
    >>> from fitonce.datasets import make_twonorm
    >>> X, y = make_twonorm(300, random_state=0)
    >>> model = LeastSquaresSVC(gamma=0.02, alpha=1.0)
    >>> sizes, train, test = learning_curve(model, X, y, cv=5, train_sizes=[20, 60, 240])
    >>> sizes.tolist(), test.mean(axis=1).round(2).tolist()
    ([20, 60, 240], [0.86, 0.97, 0.98])
    """
    plan = Plan(estimator, X, y, cv, params, scoring)
    if plan.shared is not None and plan.shared.decomposed is not None:
        random = check_random_state(random_state) if shuffle else None
        plan.cv.arranged, shuffle = partial(_followed, plan.shared, random), False
    curve: tuple[np.ndarray, ...] = sklearn.model_selection.learning_curve(
        **plan.arguments(groups, n_jobs, verbose, pre_dispatch),
        train_sizes=train_sizes,
        scoring=scoring,
        exploit_incremental_learning=exploit_incremental_learning,
        shuffle=shuffle,
        random_state=random_state,
        error_score=error_score,
        return_times=return_times,
    )
    plan.log()
    return curve


def _followed(
    shared: Shared, random: np.random.RandomState | None, splits: Iterable[Split]
) -> list[Split]:
    """All splits, announced, with their training rows in the order in which they join: shuffled
    one fold after the other, as in scikit-learn.
    """
    n = n_rows(shared.X)
    pairs = [(row_numbers(train, n), row_numbers(test, n)) for train, test in splits]
    if random is not None:
        pairs = [(random.permutation(train), test) for train, test in pairs]
    shared.follow([train for train, _ in pairs])
    return pairs
