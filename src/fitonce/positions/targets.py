"""A permutation test of every target, the permutations shared by all of them."""

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

BLOCK_ELEMENTS = 1 << 22  # null scores between two looks at the clock, and two checkpoints


@dataclass(frozen=True, eq=False, repr=False)
class TargetTest(JointTest):
    """A permutation test of every target, with the same permutations for all of them.

    The attributes of `fitonce.positions.PositionTest` with targets in the place of positions:
    ``score``, ``null``, ``pvalue``, ``pvalue_max``, ``pvalue_fdr``, ``pvalue_cluster``,
    ``clusters``, ``threshold``, ``exact``, and the method ``corrected``; and:

    Attributes
    ----------
    scoring : {"r2", "correlation", "neg_mean_squared_error"}
        What the scores are.
    exchange : {"rows", "within", "whole", "sign", "shift"}
        How rows changed places.
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
    """Which targets are predicted better than chance? Permutation tests with corrections for
    looking at all of them.

    The rows of all targets are put into the same random order and every target is scored again by
    cross-validation, tuning included. So the null scores are a joint distribution: that of the
    maximum over targets, or of the mass of clusters, corrects for the number of targets whatever
    their dependence.

    Parameters
    ----------
    estimator : KernelRidge, or a Pipeline that ends in one
        Its kernel must be given; alpha may be tuned, for each target (``alpha_per_target=True``) or
        for all. It is chosen again on every training set of every permutation. Steps of a pipeline
        are fitted on each training set, without y.
    X : array-like of shape (n_samples, n_features)
        Rows, or the square kernel matrix for ``kernel="precomputed"``.
    y : array of shape (n_samples, n_targets)
        Targets; an ``np.memmap`` is read block by block.
    groups : array-like of shape (n_samples,), default=None
        For the splitters, and for `exchange`: runs, sessions, subjects.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn. The folds stay where they are, so they must not be made from y.
    n_permutations : int, default=1000
        How many orders of the rows to draw.
    scoring : {"r2", "correlation", "neg_mean_squared_error"}, default="r2"
        The score of every target: R², the correlation r with the held-out predictions, or minus the
        mean squared error.
    exchange : {"rows", "within", "whole", "sign", "shift"} or None, default=None
        How rows may change places under the null hypothesis. None: freely within each of the
        `groups`, or all of them without groups. "rows": freely, whatever the groups. "whole":
        groups of equal size change places as blocks, in the order of their rows. "shift": the rows
        of each group turn round in a circle, for time series, whose neighbouring rows resemble each
        other. "sign": signs of rows (or of groups) flip.
    pooled : bool, default=False
        One score over all held-out predictions instead of the mean over folds.
    alternative : {"greater", "less", "two-sided"}, default="greater"
        Which effects count.
    adjacency : sparse matrix, array or list of index arrays, default=None
        Which targets are neighbours, (n_targets, n_targets); without it no clusters are formed.
    cluster_pvalue, cluster_score : float
        Neighbouring targets whose own p-value is at most this (0.05 by default), or whose score is
        at least this, form clusters.
    exact : bool or "auto", default="auto"
        Try every order once: "auto" does so if there are no more than `n_permutations`.
    random_state : int, RandomState or None, default=0
        Seed of the permutations.
    checkpoint : path, default=None
        A file that is brought up to date every few permutations; a run with the same arguments goes
        on from it, with the identical result. Needs an integer `random_state`.
    verbose : int, default=0
        Above 0, progress on the terminal.

    Returns
    -------
    TargetTest
        `score`, `null`, `pvalue`, `pvalue_max`, `pvalue_fdr`, `pvalue_cluster` and more.

    Notes
    -----
    Exact: scores equal those of literal refits to rounding. Cost for each permutation: n²
    multiplications for every target and candidate alpha. Memory: about 40 bytes for each
    permutation and target.

    Circular shifts of one long series have few distinct orders, and the series must look alike at
    its two ends: give runs as groups.

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
    splits = split_rows(splitter.split(np.empty((n, 1)), None, groups), n)
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
    """Targets (n, t), where they are."""
    values = y if is_foreign_array(y) else np.asanyarray(y)
    if values.ndim != 2 or values.shape[1] < 1:
        raise ValueError(
            f"y must have the shape (n_samples, n_targets), got {tuple(values.shape)} instead: one "
            "target has fitonce.permutation_test_score."
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
            "use pooled=True, one score over all held-out rows."
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
    """The observed scores (t,) and those of all orders (P, t), going on from a file."""
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
