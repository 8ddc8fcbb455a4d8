"""Results of tests over positions.

Scores, their joint null distribution, and p-values with several corrections.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.stats

from ..crossval.depends import Route
from .corrections import Cluster, Joint, Rules, rank_pvalue
from .slices import edges_of


@dataclass(frozen=True, eq=False, repr=False)
class JointTest:
    """Base of the tests over positions. Arrays have the shape of `score`: (positions,) or a grid.

    Attributes
    ----------
    score : array of shape (positions,)
        The observed score of every position.
    null : array of shape (permutations, positions)
        The scores of every permutation, at all positions together.
    pvalue : array of shape (positions,)
        Uncorrected p-value of each position.
    pvalue_max : array of shape (positions,)
        Corrected with the maximum statistic.
    pvalue_fdr : array of shape (positions,)
        Adjusted to the false discovery rate (Benjamini & Hochberg).
    pvalue_cluster : array of shape (positions,) or None
        The p-value of the cluster that a position belongs to, 1 outside clusters; None without
        adjacent positions.
    clusters : tuple of Cluster or None
        The observed clusters, largest mass first.
    threshold : array of shape (positions,)
        The score from which a position belongs to a cluster.
    alternative : {"greater", "less", "two-sided"}
        Which effects count.
    exact : bool
        Whether all distinct labelings (or sign flips) were used.
    """

    score: np.ndarray
    null: np.ndarray
    pvalue: np.ndarray
    pvalue_max: np.ndarray
    pvalue_fdr: np.ndarray
    pvalue_cluster: np.ndarray | None
    clusters: tuple[Cluster, ...] | None
    threshold: np.ndarray
    alternative: str
    exact: bool
    rules: Rules

    @property
    def n_permutations_done(self) -> int:
        return len(self.null)

    def corrected(
        self,
        *,
        alternative: str | None = None,
        cluster_pvalue: float | None = None,
        cluster_value: float | None = None,
        adjacency: Any = None,
    ) -> Self:
        """Evaluate the same permutations with other rules. Only the p-values are computed again.

        Parameters
        ----------
        alternative : {"greater", "less", "two-sided"}, default=None
            None keeps the choice of the test; this holds for all parameters.
        cluster_pvalue, cluster_value : float, default=None
            The threshold for clusters, as the p-value of a position or as a score (a t value for a
            group test).
        adjacency : sparse matrix, array or list of index arrays, default=None
            Which positions are neighbors.

        Notes
        -----
        Choose the rules before you look at the results: the best of several corrections is not a
        correction.
        """
        rules = self.rules
        edges = rules.edges if adjacency is None else edges_of(adjacency, self.score.shape)
        if cluster_pvalue is None and cluster_value is None:
            cluster_pvalue, cluster_value = rules.cluster_pvalue, rules.cluster_value
        chosen = Rules(
            alternative or rules.alternative, cluster_pvalue, cluster_value, edges, "cluster_value"
        )
        return replace(self, rules=chosen, **self._significance(chosen))

    def _significance(self, rules: Rules) -> dict[str, Any]:
        """The fields that follow from the scores with these rules."""
        return significance(self.score, self.null, rules, standardized=False)

    def __repr__(self) -> str:
        smallest = f"smallest corrected p {self.pvalue_max.min():.4g} (maximum)"
        if self.clusters:
            smallest += f", {min(cluster.pvalue for cluster in self.clusters):.4g} (cluster)"
        return (
            f"{type(self).__name__}({self.score.shape} positions, {self.n_permutations_done} "
            f"permutations ({'all' if self.exact else 'drawn'}), {smallest})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PositionTest(JointTest):
    """A permutation test at every position, with the same permutations at all of them.

    It has the attributes of `JointTest` and:

    Attributes
    ----------
    chance : array of shape (positions,)
        The mean of the null scores.
    mode : {"cosets", "resplit", "within-folds", "free"}
        How labels were permuted relative to the folds.
    n_placements : int
        Number of placements of the folds.
    exchange : str
        What was exchanged.
    route : Route
        How the scores were computed, over all positions.
    classes : array or None
        The classes of y.
    """

    mode: str = ""
    n_placements: int = 1
    exchange: str = ""
    route: Route = field(default_factory=lambda: Route("one", ""))
    classes: np.ndarray | None = None

    @property
    def chance(self) -> np.ndarray:
        return np.asarray(np.nanmean(self.null, axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class GroupTest(JointTest):
    """A test over subjects at every position, with the same sign flips at all of them.

    It has the attributes of `JointTest`, where `score` is the mean over subjects and `null`
    contains the t values of the sign flips, and:

    Attributes
    ----------
    t : array of shape (positions,)
        One-sample t values of the scores minus chance.
    scores : array of shape (subjects, positions)
        The scores of the subjects.
    chance : array of shape (positions,)
        The chance level of the scores.
    """

    t: np.ndarray = field(default_factory=lambda: np.empty(0))
    scores: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    chance: np.ndarray = field(default_factory=lambda: np.empty(0))

    def _significance(self, rules: Rules) -> dict[str, Any]:
        return significance(self.t, self.null, rules, standardized=True)


def significance(
    score: np.ndarray, null: np.ndarray, rules: Rules, standardized: bool
) -> dict[str, Any]:
    """The fields of a `JointTest` that follow from scores (…) and null scores (P, …)."""
    shape = score.shape
    joint = Joint(score.ravel(), null.reshape(len(null), -1), rules, standardized)
    observed, permuted = joint.rows[0], joint.rows[1:]
    pvalue = rank_pvalue(observed, permuted)
    clusters, pvalue_cluster = None, None
    if rules.edges is not None:
        clusters = tuple(
            Cluster(members if score.ndim == 1 else np.unravel_index(members, shape), mass, pvalue)
            for members, mass, pvalue in joint.clusters(rules.edges)
        )
        pvalue_cluster = np.ones(shape)
        for cluster in clusters:
            pvalue_cluster[cluster.positions] = cluster.pvalue
    return {
        "pvalue": pvalue.reshape(shape),
        "pvalue_max": rank_pvalue(observed, permuted.max(axis=1, keepdims=True)).reshape(shape),
        "pvalue_fdr": scipy.stats.false_discovery_control(pvalue).reshape(shape),
        "pvalue_cluster": pvalue_cluster,
        "clusters": clusters,
        "threshold": joint.threshold.reshape(shape),
        "alternative": rules.alternative,
    }
