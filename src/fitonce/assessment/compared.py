"""The result of a comparison of models, `ModelComparison`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import render
from .result import Estimate, plain


@dataclass(frozen=True)
class Difference:
    """Difference between the mean held-out scores of two models on the same splits.

    Attributes
    ----------
    first, second : str
        Names of the two models.
    value : float
        Score of the first minus score of the second: positive if the first is better.
    low, high : float
        The corrected resampled t interval.
    pvalue : float
        Two-sided p-value of the corrected resampled t test.
    pvalue_permutation : float
        Two-sided p-value from sign flips of rows (or groups); NaN if the score is not a mean over
        rows.
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    pvalue: float
    pvalue_permutation: float

    def __neg__(self) -> Difference:
        ends = -self.value, -self.high, -self.low
        return Difference(self.second, self.first, *ends, self.pvalue, self.pvalue_permutation)

    def __str__(self) -> str:
        return f"{self.first} - {self.second}: {self.estimate}, p = {render.p_value(self.pvalue)}"

    @property
    def estimate(self) -> str:
        """The difference with its interval, signs shown."""
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison:
    """Held-out scores of several models on the same splits, and all differences between them.

    Returned by `compare`. `print` shows two short tables; a notebook shows HTML.

    Attributes
    ----------
    score_name : str
        Name of the score; higher is better.
    scores : dict of str to Estimate
        The mean score of each model, with a corrected resampled t interval.
    differences : tuple of Difference
        Every pair, in the order in which the models were given.
    split_scores : dict of str to array of shape (n_splits,)
        The score of each model on every split.
    n_samples, n_splits : int
    test_share : float
        Mean ratio of test rows to training rows, which the corrected resampled t test uses.
    units : {"rows", "groups", ""}
        What flips sign in the permutation test; empty if there is none.
    n_permutations : int
        Number of sign flips for each pair, unless fewer are possible.
    refitted : tuple of str
        Models without a closed form, which were refitted on every training set.
    level : float
        Level of all intervals.
    cv : str
        Description of the splits.
    """

    score_name: str
    scores: Mapping[str, Estimate]
    differences: tuple[Difference, ...]
    split_scores: Mapping[str, np.ndarray]
    n_samples: int
    n_splits: int
    test_share: float
    units: str
    n_permutations: int
    refitted: tuple[str, ...]
    level: float
    cv: str

    def difference(self, first: str, second: str) -> Difference:
        """The difference between two models, by name and in either order."""
        for one in self.differences:
            for found in (one, -one):
                if (found.first, found.second) == (first, second):
                    return found
        raise ValueError(
            f"first and second must be two different names out of {list(self.scores)}, got "
            f"{first!r} and {second!r} instead."
        )

    @property
    def best(self) -> str:
        """The name of the model with the highest mean score."""
        return max(self.scores, key=lambda name: self.scores[name].value)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python objects, for JSON; NaN becomes None."""
        return dict(plain(vars(self)))

    def __str__(self) -> str:
        return render.as_text(render.comparison(self))

    def __repr__(self) -> str:
        said = render.joined([str(one) for one in self.differences])
        return f"<ModelComparison: {render.score_name(self.score_name)}; {said}>"

    def _repr_html_(self) -> str:
        return render.as_html(render.comparison(self))
