"""The result of a permutation test.

scikit-learn's three values, and further results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from ..crossval.depends import Route
from ..crossval.metrics import TIE


def reaches(null: np.ndarray, observed: Any) -> np.ndarray:
    """Which null scores are at least the observed one, including ties.

    An undefined score (NaN) on either side counts, since it is no evidence.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(~(null < observed - TIE * np.maximum(1.0, np.abs(observed))))


@dataclass(frozen=True)
class Sequential:
    """How a p-value follows from null scores, b of which reach the observed one.

    For n draws, or for a complete enumeration (exact): (1 + b)/(1 + n). With `stop_after` = h, for
    the n draws up to the h-th that reaches it: h/n (Besag & Clifford 1991). A score that was not
    reached so often when the run `stopped` because of the others would get h/m or less for some m
    > n; it gets h/(n + 1), which is never too small.
    """

    n_done: int
    exact: bool = False
    stopped: bool = False
    stop_after: int | None = None

    def pvalue(self, null: np.ndarray, observed: Any) -> Any:
        b, n, reached = self._counts(null, observed)
        p = np.where(reached, b / np.maximum(n, 1), (1.0 + b) / (1.0 + n))
        if self.stopped and self.stop_after is not None:
            p = np.where(reached, p, self.stop_after / (1.0 + n))
        return float(p) if np.ndim(p) == 0 else p

    def _counts(self, null: np.ndarray, observed: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(b, n, whether they end with the draw at which to stop) for every score."""
        so_far = np.cumsum(reaches(null, observed), axis=0)
        b = so_far[-1] if len(so_far) else np.zeros(null.shape[1:], dtype=int)
        n = np.full(b.shape, self.n_done)
        if self.stop_after is None:
            return b, n, np.zeros(b.shape, dtype=bool)
        reached = b >= self.stop_after
        first = np.argmax(so_far >= self.stop_after, axis=0) + 1 if len(so_far) else n
        return np.where(reached, self.stop_after, b), np.where(reached, first, n), reached

    def interval(self, null: np.ndarray, observed: Any, level: float = 0.95) -> Any:
        """Monte Carlo confidence interval of the p-value that all labelings would give.

        Clopper and Pearson's for b of n; its counterpart for inverse sampling after early
        stopping; a point if all labelings were used.
        """
        if self.exact:
            p = self.pvalue(null, observed)
            return p, p
        b, n, reached = self._counts(null, observed)
        tail = (1.0 - level) / 2
        with np.errstate(invalid="ignore"):
            lower = np.where(b > 0, scipy.special.betaincinv(b, n - b + 1.0, tail), 0.0)
            successes = np.where(reached, b, b + 1.0)
            upper = np.where(b < n, scipy.special.betaincinv(successes, n - b, 1 - tail), 1.0)
        return (float(lower), float(upper)) if np.ndim(b) == 0 else (lower, upper)


class Significance(NamedTuple):
    """The return value of scikit-learn's `permutation_test_score`."""

    score: float
    permutation_scores: np.ndarray
    pvalue: float


class PermutationTest(Significance):
    """The tuple (score, permutation_scores, pvalue) of scikit-learn, with attributes.

    Attributes
    ----------
    score, permutation_scores, pvalue
        The three values by name, for the first metric.
    pvalue_interval : tuple of float
        95 % Monte Carlo interval of the p-value; a point if every labeling was used.
    scores, null, pvalues, pvalue_intervals : dict
        The same for every metric, by name.
    mode : {"cosets", "resplit", "within-folds", "free"}
        How labels were permuted relative to the folds.
    n_placements : int
        Number of placements of the folds; 1 if they stayed the same.
    exchange : str
        What was exchanged.
    route : Route
        How the scores were computed, and how many labelings had to be fitted one by one.
    n_permutations_done : int
        Fewer than requested after early stopping, or if fewer labelings exist.
    exact : bool
        Whether every distinct labeling was used.
    stopped : bool
        Whether early stopping ended the run.
    classes : array or None
        The classes, in the order of a confusion matrix.
    """

    scores: dict[str, Any]
    null: dict[str, np.ndarray]
    pvalues: dict[str, Any]
    pvalue_intervals: dict[str, Any]
    mode: str
    n_placements: int
    exchange: str
    route: Route
    n_permutations_done: int
    exact: bool
    stopped: bool
    classes: np.ndarray | None

    @classmethod
    def of(
        cls,
        scores: Mapping[str, Any],
        null: Mapping[str, np.ndarray],
        sequential: Sequential,
        **notes: Any,
    ) -> PermutationTest:
        first = next(iter(scores))
        pvalues = {name: sequential.pvalue(null[name], scores[name]) for name in scores}
        result = cls(scores[first], null[first], pvalues[first])
        vars(result).update(
            scores=dict(scores),
            null=dict(null),
            pvalues=pvalues,
            pvalue_intervals={
                name: sequential.interval(null[name], scores[name]) for name in scores
            },
            n_permutations_done=sequential.n_done,
            exact=sequential.exact,
            stopped=sequential.stopped,
            **notes,
        )
        return result

    @property
    def pvalue_interval(self) -> Any:
        return next(iter(self.pvalue_intervals.values()))

    def __repr__(self) -> str:
        how = "all labelings used" if self.exact else f"95 % interval {self.pvalue_interval}"
        places = f"{self.n_placements} placement{'s' if self.n_placements > 1 else ''} of the folds"
        return (
            f"PermutationTest(score={self.score}, pvalue={self.pvalue}, {how}, "
            f"{self.n_permutations_done} permutations, {places}, "
            f"mode={self.mode!r}, exchange={self.exchange!r}, route={self.route})"
        )
