"""A permutation test at every position, with the same permutations at all of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..crossval.confounds import taken
from ..crossval.depends import Route
from ..inference.checkpoint import check_place
from ..inference.evaluation import Batch, Evaluation
from ..inference.permutation import check_counts, checkpoint_of, planned
from ..inference.question import Question
from ..inference.run import labellings_of, unpermuted
from ..inference.scoring import Scoring
from .corrections import Rules
from .result import PositionTest, significance
from .scores import check_lengths, check_routing, one_score, warn_of_scale
from .slices import Slices
from .sweep import swept

logger = logging.getLogger("fitonce")

ROUTES = ("one", "per-fold", "refit")  # from fast to slow


def permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    n_permutations: int = 1000,
    scoring: Any = None,
    neighbors: Any = None,
    alternative: str = "greater",
    cluster_pvalue: float = 0.05,
    cluster_score: float | None = None,
    adjacency: Any = None,
    permute: str | None = None,
    exchange: str | None = None,
    pooled: bool = False,
    exact: bool | str = "auto",
    params: Mapping[str, Any] | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    max_bytes: int = 2**28,
    verbose: int = 0,
) -> PositionTest:
    """Test whether the cross-validated score of any position is better than chance, with
    corrections for multiple positions.

    Every position gets the scores of ``fitonce.permutation_test_score(estimator, X[:, :, position],
    y, ...)`` with the same `random_state`. All positions share the same permutations: the
    distribution of the maximum over positions, or of the mass of clusters, corrects for their
    number, whatever their dependence.

    Parameters
    ----------
    estimator : estimator
        An estimator of fitonce, or a pipeline that ends in one. Any other is refitted, with a
        warning.
    X : array of shape (n_samples, n_features, n_positions)
        Epochs by channels by time points, as MNE's ``epochs.get_data()``; further axes form a grid.
        Or (n_samples, n_features) with `neighbors`.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups, cv, n_permutations, scoring : object
        As in `fitonce.permutation_test_score`, with one score. All positions share the folds.
    neighbors : list of index arrays or bool matrix, default=None
        For X with two dimensions, the features of each position (a searchlight); with three, the
        positions whose features are joined (a window). See `spheres`.
    alternative : {"greater", "less", "two-sided"}, default="greater"
        Which effects to test for.
    cluster_pvalue : float, default=0.05
        Adjacent positions whose own (uncorrected) p-value is at most this form clusters.
    cluster_score : float, default=None
        Alternative to `cluster_pvalue`: adjacent positions whose score is at least this form
        clusters.
    adjacency : sparse matrix, array or list of index arrays, default=None
        Which positions are neighbors. None: those next to each other on the last axis (axes, for a
        grid); no clusters for a searchlight.
    permute, exchange, pooled, exact, params, random_state : object
        As in `fitonce.permutation_test_score`.
    n_jobs : int, default=None
        Number of positions processed in parallel with joblib.
    checkpoint, max_bytes, verbose : object
        As there; the file is updated as positions are completed.

    Returns
    -------
    PositionTest
        `score`, `null`, `pvalue`, `pvalue_max`, `pvalue_fdr`, `pvalue_cluster`, `clusters` and
        more; ``corrected`` evaluates the same permutations with other rules.

    Notes
    -----
    Exact: scores equal those of literal refits up to rounding. Cost per position with n rows, p
    features, P permutations of two classes and k folds: O(n p²) once, O(n³/k²) for every placement
    of the folds, one product of n×n with n×P, and P n²/k. Pipelines and tuned models are decomposed
    on every training set of every placement, but for a StandardScaler before a linear model with p
    < n.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.positions import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 8, 30))
    >>> X[:, :, 12:18] += 0.8 * y[:, None, None]  # the classes differ from time 12 to 17
    >>> model = KernelFisherDiscriminant("linear", alpha=1.0)
    >>> test = permutation_test(model, X, y, cv=StratifiedKFold(5))
    >>> np.flatnonzero(test.pvalue_max <= 0.05)
    array([12, 13, 14, 15, 16, 17])
    >>> test.clusters[0].positions, round(test.clusters[0].pvalue, 3)
    (array([12, 13, 14, 15, 16, 17]), 0.001)
    """
    check_routing(params)
    check_counts(n_permutations, None, max_bytes, exact)
    check_place(checkpoint)
    slices = Slices.of(X, neighbors)
    check_lengths(slices, y, groups)
    warn_of_scale(estimator, slices)
    rules = Rules(
        alternative, cluster_pvalue, cluster_score, slices.edges(adjacency), "cluster_score"
    )
    confounds, params = taken(estimator, params)
    question = Question.of(estimator, X, y, groups, cv, permute, exchange, confounds)
    measured = one_score(estimator, question.y, scoring, pooled)
    total, enumerated = planned(question, n_permutations, exact)
    options = ["positions", scoring, measured.measures[0].name, pooled, max_bytes, params]
    options = [options, list(slices.places)]
    file = checkpoint_of(checkpoint, question, X, total, enumerated, random_state, options)
    rng = check_random_state(random_state)
    question = question if question.mode == "resplit" else replace(question, X=None)
    work = EveryLabelling(question, total, enumerated, deepcopy(rng), measured, params, max_bytes)
    drawn = labellings_of(question, total, enumerated, rng)
    placed = {0, *(each.placement.number for each in drawn)}
    table = swept(
        work,
        slices,
        name="permutation_test",
        n_jobs=n_jobs,
        verbose=verbose,
        checkpoint=file,
        width=total + 3,
    )
    scores, routes, fitted = table[:, :-2], table[:, -2], table[:, -1]
    slowest = int(routes.max())
    otherwise = "positions differ" if work.reasons else "known from the checkpoint"
    route = Route(ROUTES[slowest], work.reasons.get(slowest, otherwise), int(fitted.sum()))
    logger.info("route %s", route)
    score, null = scores[:, 0].reshape(slices.shape), scores[:, 1:].T.reshape(-1, *slices.shape)
    return PositionTest(
        score=score,
        null=null,
        exact=enumerated,
        rules=rules,
        mode=question.mode,
        n_placements=len(placed),
        exchange=question.exchange_name,
        route=route,
        classes=question.classes,
        **significance(score, null, rules, standardized=False),
    )


@dataclass
class EveryLabelling:
    """The scores of all labelings at one position.

    Every position draws the same ones. Where they fit into the budget, labels, folds and their
    layouts are computed at the first position and kept.
    """

    question: Question
    total: int
    enumerated: bool
    rng: np.random.RandomState
    scoring: Scoring
    params: Mapping[str, Any] | None
    max_bytes: int
    reasons: dict[int, str] = field(default_factory=dict)
    kept: dict[int, list[Batch]] = field(default_factory=dict)

    def __call__(self, X: Any) -> np.ndarray:
        """The scores of all labelings, the index of the route, and how many were fitted one by
        one.
        """
        scoring = replace(self.scoring, literal=set())
        evaluation = Evaluation(
            replace(self.question, X=X), scoring, self.params, None, self.max_bytes
        )
        batches = self.batches(evaluation.block_size)
        name = scoring.measures[0].name
        scores = np.concatenate([evaluation.scores_of(batch)[name] for batch in batches])
        route = ROUTES.index(evaluation.route.name)
        self.reasons.setdefault(route, evaluation.route.reason)
        return np.append(scores, [route, evaluation.fitted_one_by_one])

    def batches(self, size: int) -> Iterable[Batch]:
        """The labelings in batches, the observed one first."""
        if size in self.kept:
            return self.kept[size]
        rng, cv = deepcopy((self.rng, self.question.cv))  # which may share a generator
        question = replace(self.question, cv=cv)
        drawn = labellings_of(question, self.total, self.enumerated, rng)
        labellings = chain([unpermuted(question)], drawn)
        made = (Batch(question, part) for part in iter(lambda: list(islice(labellings, size)), []))
        folds = len(question.splits) if question.mode == "resplit" else 0
        each = 8 * question.n_samples * (1 + question.targets.shape[1] + folds)
        if (self.total + 1) * each > self.max_bytes:
            return made
        self.kept = {size: list(made)}
        return self.kept[size]
