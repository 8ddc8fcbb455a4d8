r"""From a joint null distribution to p-values that are corrected for all positions.

Every permutation is scored at every position, so the null scores (P, q) of q positions keep the
dependence between positions. The observed scores are one more row: under the null hypothesis, all
P + 1 rows are equally likely. Any statistic that treats all rows alike, including the observed one,
gives a valid p-value by its rank, (1 + #{null ≥ observed})/(1 + P):

- `pvalue`: each position on its own, not corrected;
- `pvalue_max`: the score compared with the largest score of every permutation over all positions
  (Nichols & Holmes 2002);
- clusters: neighboring positions whose own p-value is at most a threshold. The mass of a cluster,
  the sum of its standardized scores, is compared with the largest mass of every permutation (Maris
  & Oostenveld 2007; Bullmore et al. 1999);
- `pvalue_fdr`: false discovery rate, from the uncorrected p-values (Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..crossval.metrics import TIE

SIDES = {"greater": (1,), "less": (-1,), "two-sided": (1, -1)}  # of each alternative
BLOCK_ELEMENTS = 1 << 22  # permutations times positions or edges, processed together


@dataclass(frozen=True, eq=False)
class Cluster:
    """Neighboring positions that pass the threshold together.

    Attributes
    ----------
    positions : array of int, or tuple of them
        Indices of the positions, as from ``np.flatnonzero`` (``np.nonzero`` if positions form a
        grid): ``score[cluster.positions]``.
    mass : float
        The sum of the standardized scores; negative for a cluster below chance.
    pvalue : float
        p-value corrected for all positions: how often the largest cluster of a permutation has at
        least this mass.
    """

    positions: Any
    mass: float
    pvalue: float

    @property
    def size(self) -> int:
        return len(self.positions[0] if isinstance(self.positions, tuple) else self.positions)

    def __repr__(self) -> str:
        return f"Cluster({self.size} positions, mass={self.mass:.4g}, pvalue={self.pvalue:.4g})"


@dataclass(frozen=True)
class Rules:
    """What counts as an effect, and what forms a cluster.

    `edges` (e, 2) are the pairs of adjacent positions, None if they are not known. The positions of
    a cluster have scores of at least `cluster_value` or, where that is None, p-values of at most
    `cluster_pvalue`. `name` is the name of the parameter that gave `cluster_value`.
    """

    alternative: str
    cluster_pvalue: Any
    cluster_value: Any
    edges: np.ndarray | None
    name: InitVar[str]

    def __post_init__(self, name: str) -> None:
        if self.alternative not in list(SIDES):
            raise ValueError(
                f"alternative must be one of {', '.join(map(repr, SIDES))}, got "
                f"{self.alternative!r} instead."
            )
        value, pvalue = self.cluster_value, self.cluster_pvalue
        if value is not None and not (np.isscalar(value) and np.isfinite(value)):
            raise ValueError(f"{name} must be None or a finite number, got {value!r} instead.")
        is_number = isinstance(pvalue, (int, float, np.number))
        if value is None and not (is_number and 0.0 < pvalue < 1.0):
            raise ValueError(
                f"cluster_pvalue must be a number between 0 and 1, got {pvalue!r} instead: "
                "positions whose own p-value is at most this form clusters. Alternatively, pass "
                f"the threshold as {name}."
            )


class Joint:
    """Observed scores (q,) and null scores (P, q), oriented so that larger is more extreme.

    `rows` (P + 1, q) has the oriented scores and `z` the standardized ones; the observed come
    first.
    """

    def __init__(
        self, score: np.ndarray, null: np.ndarray, rules: Rules, standardized: bool
    ) -> None:
        """`standardized`: the scores are t values, with a chance level of zero."""
        self.rules, self.sides = rules, SIDES[rules.alternative]
        rows = np.vstack([score, null])
        self.center, scale = np.zeros(len(score)), np.ones(len(score))
        if not standardized:
            known = np.ma.masked_invalid(rows)
            self.center, scale = known.mean(axis=0).filled(0.0), known.std(axis=0).filled(0.0)
        undefined = np.isnan(rows)
        self.rows = self._oriented(rows)
        self.z = (rows - self.center) / np.where(scale > 0, scale, 1.0)
        # undefined scores are no evidence: a null score then counts as extreme, the observed score
        # does not
        self.rows[undefined], self.z[undefined] = np.inf, np.inf
        self.rows[0, undefined[0]], self.z[0, undefined[0]] = -np.inf, 0.0

    def _oriented(self, values: np.ndarray) -> np.ndarray:
        if self.rules.alternative == "two-sided":
            return np.abs(values - self.center)
        return self.sides[0] * values

    @cached_property
    def bound(self) -> np.ndarray:
        """The value that an oriented score must exceed to belong to a cluster (q,).

        For a p-value a, this is the (k+1)-th largest of all P + 1 scores with k = ⌊a (P + 1)⌋. A
        score exceeds it if and only if at most k scores, including itself, are at least as large,
        which is p ≤ a.
        """
        rules, n = self.rules, len(self.rows)
        if rules.cluster_value is None:
            k = min(int(rules.cluster_pvalue * n * (1 + 1e-12)), n - 1)
            return np.asarray(np.partition(self.rows, n - 1 - k, axis=0)[n - 1 - k])
        if rules.alternative == "two-sided" and np.any(self.center >= rules.cluster_value):
            raise ValueError(
                "the threshold of a two-sided test must lie above the chance level "
                f"({self.center.max():.4g}), got {rules.cluster_value:.4g} instead: for effects "
                "below chance, it is mirrored at that level."
            )
        value = self._oriented(np.full(len(self.center), float(rules.cluster_value)))
        return lowered(lowered(value))  # a score equal to the threshold passes

    @property
    def threshold(self) -> np.ndarray:
        """The bound as a score; for a two-sided test, the upper one."""
        if self.rules.cluster_value is not None:
            return np.full(len(self.center), float(self.rules.cluster_value))
        two_sided = self.rules.alternative == "two-sided"
        return self.center + self.bound if two_sided else self.sides[0] * self.bound

    def clusters(self, edges: np.ndarray) -> list[tuple[np.ndarray, float, float]]:
        """Members, mass and p-value of the observed clusters, largest mass first."""
        passing = (lowered(self.rows) > self.bound) | (self.rows == np.inf)
        largest = np.zeros(len(passing))  # mass of every row, 0 if it has no cluster
        found: list[tuple[np.ndarray, float]] = []
        step = max(1, BLOCK_ELEMENTS // max(passing.shape[1], len(edges), 1))
        for start in range(0, len(passing), step):
            part = slice(start, start + step)
            for side in self.sides:
                labels, mass = cluster_masses(passing[part], self.z[part], side, edges)
                np.maximum(largest[part], mass[labels].max(axis=1), out=largest[part])
                if start == 0:
                    own = [label for label in np.unique(labels[0]) if mass[label] > 0.0]
                    found += [
                        (np.flatnonzero(labels[0] == one), side * float(mass[one])) for one in own
                    ]
        pvalues = rank_pvalue(np.array([abs(mass) for _, mass in found]), largest[1:, None])
        clusters = [(*one, pvalue) for one, pvalue in zip(found, pvalues.tolist(), strict=True)]
        return sorted(clusters, key=lambda cluster: (-abs(cluster[1]), int(cluster[0][0])))


def lowered(values: np.ndarray) -> np.ndarray:
    """Values minus a tolerance for rounding; infinite values stay the same."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.asarray(values - TIE * np.maximum(1.0, np.abs(finite)))


def rank_pvalue(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    """(1 + #{null ≥ observed})/(1 + P) for null (P, q) or (P, 1), ties included."""
    return np.asarray((1.0 + np.sum(null >= lowered(observed), axis=0)) / (1.0 + len(null)))


def cluster_masses(
    passing: np.ndarray, z: np.ndarray, side: int, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers (B, q) of the clusters on one side, counted over all rows, and the absolute mass
    of each; a position outside them has a number of its own, of mass 0.
    """
    signed = z if side == 1 else np.where(np.isinf(z), np.inf, -z)
    active = passing & (signed > 0)
    row, edge = np.nonzero(active[:, edges[:, 0]] & active[:, edges[:, 1]])
    first, second = (row * active.shape[1] + edges[edge, end] for end in (0, 1))
    ones = np.ones(len(row), dtype=np.int8)
    graph = sp.coo_matrix((ones, (first, second)), shape=(active.size, active.size))
    labels = sp.csgraph.connected_components(graph, directed=False)[1]
    mass = np.bincount(labels, weights=np.where(active, signed, 0.0).ravel())
    return labels.reshape(active.shape), mass
