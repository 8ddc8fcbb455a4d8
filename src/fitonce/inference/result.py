"""What a permutation test returns.

Scikit-learn's three values, and everything else that was worked out on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from ..crossval.metrics import TIE
from ..crossval.routes import Route


def reaches(null: np.ndarray, observed: Any) -> np.ndarray:
    """Which null scores are at least the observed one, ties included.

    An undefined score (NaN) on either side counts: what cannot be compared is no evidence. (Left
    out, as in scikit-learn, an observed NaN would get the smallest p-value there is.)
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(~(null < observed - TIE * np.maximum(1.0, np.abs(observed))))


@dataclass(frozen=True)
class Sequential:
    """How a p-value follows from b of P null scores that reach the observed one.

    (1 + b)/(1 + P) for a fixed number P of draws, and for a complete list of labellings, where it
    is exact; h/P for draws that stopped at the h-th that reached it (Besag & Clifford 1991).
    """

    n_done: int
    exact: bool
    stopped: bool

    def pvalue(self, null: np.ndarray, observed: Any) -> Any:
        b = np.sum(reaches(null, observed), axis=0)
        p = b / self.n_done if self.stopped else (1.0 + b) / (1.0 + self.n_done)
        return float(p) if np.ndim(p) == 0 else p

    def interval(self, null: np.ndarray, observed: Any, level: float = 0.95) -> Any:
        """Monte-Carlo confidence interval of the p-value that all labellings would give.

        Clopper and Pearson's for b of P; its counterpart for inverse sampling after early stopping;
        a point where the list was complete.
        """
        if self.exact:
            p = self.pvalue(null, observed)
            return p, p
        b, P, tail = np.sum(reaches(null, observed), axis=0), self.n_done, (1.0 - level) / 2
        with np.errstate(invalid="ignore"):
            lower = np.where(b > 0, scipy.special.betaincinv(b, P - b + 1.0, tail), 0.0)
            successes = b if self.stopped else b + 1.0
            upper = np.where(b < P, scipy.special.betaincinv(successes, P - b, 1 - tail), 1.0)
        return (float(lower), float(upper)) if np.ndim(b) == 0 else (lower, upper)


class Significance(NamedTuple):
    """What scikit-learn's `permutation_test_score` returns."""

    score: float
    permutation_scores: np.ndarray
    pvalue: float


class PermutationTest(Significance):
    """(score, permutation_scores, pvalue) as scikit-learn returns them, with attributes.

    Attributes
    ----------
    score, permutation_scores, pvalue
        The three values by name, of the first metric.
    pvalue_interval : tuple of float
        95 % Monte-Carlo interval of the p-value; a point where every labelling was tried.
    scores, null, pvalues, pvalue_intervals : dict
        The same for every metric, by name.
    mode : {"resplit", "within-folds", "free"}
        How labels and folds went together.
    exchange : str
        What moved: "rows", "within", "whole", "sign" or "shift".
    route : Route
        The way the numbers were computed, and how many labellings had to be fitted one by one.
    n_permutations_done : int
        Less than asked for after early stopping, or where fewer labellings exist.
    exact : bool
        Whether every distinct labelling was tried, so that the p-value has no Monte-Carlo error.
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
        how = "every labelling tried" if self.exact else f"95 % interval {self.pvalue_interval}"
        return (
            f"PermutationTest(score={self.score}, pvalue={self.pvalue}, {how}, "
            f"{self.n_permutations_done} permutations, "
            f"mode={self.mode!r}, exchange={self.exchange!r}, route={self.route})"
        )
