"""A permutation test of every target, with the same permutations for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from ..core.arrays import to_numpy
from ..core.columns import Columns
from ..crossval.stand_in import n_rows
from ..estimators.validation import is_foreign_array
from ..inference import checkpoint as checkpoints
from ..inference.exchange import Exchange, Rearrangement
from ..inference.fingerprint import fingerprint
from ..inference.folds import split_rows
from ..inference.permutation import check_counts, check_resumable, is_enumerated
from ..inference.target_engine import SCORES, TargetEngine, check_estimator
from ..inference.units import make_exchange
from ..inference.validity import check_free
from ..tuning.targets import Told
from .corrections import Rules
from .result import JointTest, significance
from .slices import edges_of

BLOCK_ELEMENTS = 1 << 22  # null scores between two checks of the clock, and between checkpoints


@dataclass(frozen=True, eq=False, repr=False)
class TargetTest(JointTest):
    """A permutation test of every target, with the same permutations for all of them.

    It has the attributes of `fitonce.positions.PositionTest`, with targets instead of positions:
    ``score``, ``null``, ``pvalue``, ``pvalue_max``, ``pvalue_fdr``, ``pvalue_cluster``,
    ``clusters``, ``threshold``, ``exact``, and the method ``corrected``; and:

    Attributes
    ----------
    scoring : {"r2", "correlation", "neg_mean_squared_error"}
        Name of the score.
    exchange : {"rows", "within", "whole", "sign", "shift"}
        How rows were exchanged.
    """

    scoring: str = ""
    exchange: str = ""


def permutation_test_targets(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    n_permutations: int = 1000,
    scoring: str = "r2",
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
    cross-validation, including tuning. So the null scores form a joint distribution. The
    distribution of their maximum over targets, or of the mass of clusters, corrects for the number
    of targets, whatever their dependence.

    Parameters
    ----------
    estimator : KernelRidge, or a Pipeline that ends in one
        Its kernel must be fixed. alpha may be tuned, for each target (``alpha_per_target=True``) or
        for all; it is then chosen again on every training set of every permutation. The steps of a
        pipeline are fitted on each training set, without y.
    X : array-like of shape (n_samples, n_features)
        Rows, or the square kernel matrix for ``kernel="precomputed"``.
    y : array of shape (n_samples, n_targets)
        Targets; an ``np.memmap`` is read block by block.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitters and for `exchange`: runs, sessions, subjects.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn. The folds stay the same, so they must not depend on y.
    n_permutations : int, default=1000
        Number of permutations of the rows to draw.
    scoring : {"r2", "correlation", "neg_mean_squared_error"}, default="r2"
        The score of every target: R², the correlation r with the held-out predictions, or minus the
        mean squared error.
    exchange : {"rows", "within", "whole", "sign", "shift"} or None, default=None
        How rows can be exchanged under the null hypothesis. None: freely within each of the
        `groups`, or all of them without groups. "rows": freely, whatever the groups. "whole":
        groups of equal size are exchanged as blocks, with their rows in order. "shift": the rows
        of each group are shifted circularly, for time series, whose neighboring rows resemble each
        other. "sign": the signs of rows (or of groups) are flipped.
    pooled : bool, default=False
        Whether to compute one score over all held-out predictions instead of the mean over folds.
    alternative : {"greater", "less", "two-sided"}, default="greater"
        Which effects to test for.
    adjacency : sparse matrix, array or list of index arrays, default=None
        Which targets are neighbors, (n_targets, n_targets); without it, no clusters are formed.
    cluster_pvalue, cluster_score : float
        Neighboring targets whose own p-value is at most this (default 0.05), or whose score is at
        least this, form clusters.
    exact : bool or "auto", default="auto"
        Whether to use every permutation once; "auto" does so if there are at most `n_permutations`.
    random_state : int, RandomState or None, default=0
        Seed for the permutations.
    checkpoint : path, default=None
        A file that is updated every few permutations. A run with the same arguments resumes from
        it, with the identical result. Needs an integer `random_state`.
    verbose : int, default=0
        If above 0, print progress.

    Returns
    -------
    TargetTest
        `score`, `null`, `pvalue`, `pvalue_max`, `pvalue_fdr`, `pvalue_cluster` and more.

    Notes
    -----
    Exact: scores equal those of literal refits up to rounding. Cost per permutation: n²
    multiplications for every target and candidate alpha. Memory: about 40 bytes per permutation
    and target.

    One long series has few distinct circular shifts, and its two ends must be alike. Pass runs as
    groups.

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
    checkpoints.check_place(checkpoint)
    if not (isinstance(scoring, str) and scoring in SCORES):
        raise ValueError(
            f"scoring must be one of {', '.join(map(repr, SCORES))}, got {scoring!r} instead."
        )
    columns = _columns(y, n_rows(X))
    n, t = columns.shape
    edges = None if adjacency is None else edges_of(adjacency, (t,))
    rules = Rules.of(alternative, cluster_pvalue, cluster_score, edges, "cluster_score")
    groups = None if groups is None else np.asarray(to_numpy(groups))
    if groups is not None and len(groups) != n:
        raise ValueError(f"groups must have one entry per row ({n}), got {len(groups)} instead.")
    splitter = check_cv(cv)
    check_free(splitter, [], None, groups)
    splits = split_rows(splitter.split(np.empty((n, 1)), None, groups=groups), n)
    _check_sizes(splits, scoring, pooled)
    exchanged = make_exchange(exchange, np.arange(n), groups, None, False, 0)
    enumerated = is_enumerated(exchanged.count, n_permutations, exact)
    total = exchanged.count - 1 if enumerated else n_permutations
    engine = TargetEngine(estimator, X, columns, groups, splits, scoring, pooled)
    mark = ""
    if checkpoint is not None:
        check_resumable(random_state, splitter, enumerated)
        options = ["targets", scoring, pooled, exchange, total, enumerated, random_state]
        given = {"estimator": estimator, "X": X, "y": columns.values, "groups": groups}
        mark = fingerprint(**given, splits=splits, options=options)
    orders = _orders(exchanged, enumerated, total, random_state)
    path = None if checkpoint is None else Path(checkpoint)
    score, null = _run(engine, orders, total, path, mark, verbose)
    return TargetTest(
        score=score,
        null=null,
        exact=enumerated,
        rules=rules,
        scoring=scoring,
        exchange=exchange or ("rows" if groups is None else "within"),
        **significance(score, null, rules, standardized=False),
    )


def _columns(y: Any, n: int) -> Columns:
    """Targets (n, t), without copying."""
    values = y if is_foreign_array(y) else np.asanyarray(y)
    if values.ndim != 2 or values.shape[1] < 1:
        raise ValueError(
            f"y must have the shape (n_samples, n_targets), got {tuple(values.shape)} instead. For "
            "a single target, use fitonce.permutation_test_score."
        )
    if values.shape[0] != n:
        raise ValueError(f"y must have one row per row of X ({n}), got {values.shape[0]} instead.")
    return Columns(values).checked()


def _check_sizes(splits: list[tuple[np.ndarray, np.ndarray]], scoring: str, pooled: bool) -> None:
    smallest = min(len(test) for _, test in splits)
    least = 3 if scoring == "correlation" else 2
    if not pooled and scoring != "neg_mean_squared_error" and smallest < least:
        raise ValueError(
            f"scoring={scoring!r} needs at least {least} test rows in every fold, got {smallest}: "
            "use pooled=True, which computes one score over all held-out rows."
        )


def _orders(
    exchange: Exchange, enumerated: bool, total: int, random_state: Any
) -> Iterator[Rearrangement]:
    if enumerated:
        return exchange.others()
    rng = check_random_state(random_state)
    return (exchange.draw(rng) for _ in range(total))


def _run(
    engine: TargetEngine,
    orders: Iterator[Rearrangement],
    total: int,
    path: Path | None,
    mark: str,
    verbose: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The observed scores (t,) and those of all permutations (P, t), resumed from a file."""
    n, t = engine.columns.shape
    known = None if path is None else checkpoints.load(path, mark)
    score = engine.scores([Rearrangement(np.arange(n))])[0]
    null = np.empty((total, t))
    done = 0
    if known is not None:
        done = known[0]
        null[:done] = known[1]["score"]
        next(islice(orders, done, done), None)
    told = Told(total, verbose, "permutations")
    told(done)
    step = max(1, min(BLOCK_ELEMENTS // t, -(-total // 20)))
    while done < total:
        block = list(islice(orders, min(step, total - done)))
        null[done : done + len(block)] = engine.scores(block)
        done += len(block)
        if path is not None:
            checkpoints.save(path, mark, done, {"score": score}, {"score": null[:done]})
        told(len(block))
    return score, null
