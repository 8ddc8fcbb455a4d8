"""A permutation test of every target, with the same permutations for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from ..core.columns import Columns
from ..estimators.validation import is_foreign_array
from ..inference.checkpoint import check_place
from ..inference.many_targets import SCORES, ManyTargets, check_estimator
from ..inference.permutation import check_counts, checkpoint_of, planned
from ..inference.question import Question
from ..inference.run import Run
from ..inference.validity import check_free
from .corrections import Rules
from .result import PositionTest, significance
from .slices import edges_of

BLOCK_ELEMENTS = 1 << 22  # null scores between two checks of the clock, and between checkpoints


@dataclass(frozen=True, eq=False, repr=False)
class TargetTest(PositionTest):
    """A permutation test of every target, with the same permutations for all of them.

    It is a `fitonce.positions.PositionTest`, with targets instead of positions, and has:

    Attributes
    ----------
    scoring : {"r2", "correlation", "neg_mean_squared_error"}
        Name of the score.
    """

    scoring: str = ""


def permutation_test_targets(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    n_permutations: int = 1000,
    scoring: str = "r2",
    permute: str | None = None,
    exchange: str | None = None,
    pooled: bool = False,
    alternative: str = "greater",
    adjacency: Any = None,
    cluster_pvalue: float = 0.05,
    cluster_score: float | None = None,
    exact: bool | str = "auto",
    random_state: Any = 0,
    checkpoint: str | Path | None = None,
    verbose: int = 0,
) -> TargetTest:
    """Test which targets are predicted better than chance, with corrections for multiple targets.

    The rows of all targets are permuted in the same way, and every target is scored again by
    cross-validation, including tuning. The distribution of the maximum over targets, or of the mass
    of clusters, corrects for their number, whatever their dependence.

    Parameters
    ----------
    estimator : KernelRidge, or a Pipeline that ends in one
        With a fixed kernel. A tuned alpha is chosen again on every training set of every
        permutation. The steps of a pipeline are fitted on each training set, without y.
    X : array-like of shape (n_samples, n_features)
        Rows, or the square kernel matrix for ``kernel="precomputed"``.
    y : array of shape (n_samples, n_targets)
        Targets; an ``np.memmap`` is read block by block.
    groups, cv, n_permutations : object
        As in `fitonce.permutation_test_score`. The folds must not depend on y.
    scoring : {"r2", "correlation", "neg_mean_squared_error"}, default="r2"
        The score of every target.
    permute : {"cosets", "resplit", "within-folds", "free"} or None, default=None
        How targets are permuted relative to the folds; see `fitonce.permutation_test_score`. "free"
        takes a tenth of the time, and is valid if the targets have no designed order.
    exchange : {"rows", "within", "whole", "sign", "shift"} or None, default=None
        How rows can be exchanged; see there. "whole" keeps the rows of a group in order, "shift" is
        for time series.
    pooled : bool, default=False
        Whether to compute one score over all held-out predictions instead of the mean over folds.
    alternative : {"greater", "less", "two-sided"}, default="greater"
        Which effects to test for.
    adjacency : sparse matrix, array or list of index arrays, default=None
        Which targets are neighbors, (n_targets, n_targets); without it, no clusters are formed.
    cluster_pvalue, cluster_score : float
        Neighboring targets whose own p-value is at most this (default 0.05), or whose score is at
        least this, form clusters.
    exact, random_state, checkpoint, verbose : object
        As in `fitonce.permutation_test_score`.

    Returns
    -------
    TargetTest
        `score`, `null`, `pvalue`, `pvalue_max`, `pvalue_fdr`, `pvalue_cluster` and more.

    Notes
    -----
    Exact: scores equal those of literal refits up to rounding. Cost per permutation: n²
    multiplications for every target and candidate alpha. Memory: about 40 bytes per permutation
    and target.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from fitonce import KernelRidge, permutation_test_targets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = rng.normal(size=(60, 30))
    >>> Y[:, :3] += 2.0 * X[:, :3]  # three of thirty targets depend on X
    >>> model = KernelRidge([1.0, 10.0, 100.0], alpha_per_target=True, kernel="linear")
    >>> test = permutation_test_targets(model, X, Y, cv=KFold(5), n_permutations=199)
    >>> np.flatnonzero(test.pvalue_max <= 0.05)
    array([0, 1, 2])
    """
    check_estimator(estimator)
    check_counts(n_permutations, None, 1, exact)
    check_place(checkpoint)
    if scoring not in list(SCORES):
        raise ValueError(
            f"scoring must be one of {', '.join(map(repr, SCORES))}, got {scoring!r} instead."
        )
    values = y if is_foreign_array(y) else np.asanyarray(y)
    if values.ndim != 2 or values.shape[1] < 1:
        raise ValueError(
            f"y must have the shape (n_samples, n_targets), got {tuple(values.shape)} instead. For "
            "a single target, use fitonce.permutation_test_score."
        )
    columns, t = Columns(values).checked(), values.shape[1]
    edges = None if adjacency is None else edges_of(adjacency, (t,))
    rules = Rules(alternative, cluster_pvalue, cluster_score, edges, "cluster_score")
    check_free(check_cv(cv), [], None, None)
    question = Question.of(estimator, X, columns.values, groups, cv, permute, exchange)
    smallest = min(len(test) for _, test in question.splits)
    least = {"r2": 2, "correlation": 3}.get(scoring, 0)
    if smallest < least and not pooled:
        raise ValueError(
            f"scoring={scoring!r} needs at least {least} test rows in every fold, got {smallest}: "
            "use pooled=True, which computes one score over all held-out rows."
        )
    total, enumerated = planned(question, n_permutations, exact)
    options = ["targets", scoring, pooled]
    file = checkpoint_of(checkpoint, question, X, total, enumerated, random_state, options)
    block_size = max(1, min(BLOCK_ELEMENTS // t, -(-total // 20)))
    test = ManyTargets(question, columns, scoring, pooled, block_size)
    rng = check_random_state(random_state)
    run = Run(test, total, enumerated, rng, None, file, verbose, "permutation_test_targets")
    scores, null, _, n_placements = run.finish()
    return TargetTest(
        score=scores["score"],
        null=null["score"],
        exact=enumerated,
        rules=rules,
        scoring=scoring,
        mode=question.mode,
        n_placements=n_placements,
        exchange=question.exchange_name,
        route=test.route,
        **significance(scores["score"], null["score"], rules, standardized=False),
    )
