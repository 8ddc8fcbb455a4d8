"""The result of a comparison of models, `ModelComparison`: as text, as HTML, as plain objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from .result import Estimate, plain
from .words import joined, p_value, score_name


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
        return f"{self.first} - {self.second}: {self.estimate}, p = {p_value(self.pvalue)}"

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
        parts = [self._heading, "", *_aligned(self._score_table), ""]
        return "\n".join([*parts, *_aligned(self._difference_table), "", *self.notes])

    def __repr__(self) -> str:
        return f"<ModelComparison: {score_name(self.score_name)}; {joined(self._said)}>"

    def _repr_html_(self) -> str:
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        tables = _html_table(self._score_table) + _html_table(self._difference_table)
        return f"<div><div><strong>{escape(self._heading)}</strong></div>{tables}{notes}</div>"

    @property
    def _said(self) -> list[str]:
        return [str(one) for one in self.differences]

    @property
    def _heading(self) -> str:
        return (
            f"{len(self.scores)} models on the same held-out rows of {self.n_samples:,}: " + self.cv
        )

    @property
    def _score_table(self) -> list[tuple[str, ...]]:
        rows = [(name, str(score)) for name, score in self.scores.items()]
        return [("model", score_name(self.score_name)), *rows]

    @property
    def _difference_table(self) -> list[tuple[str, ...]]:
        tested = bool(self.units)
        head = ("difference", score_name(self.score_name), "p (corrected t)", "p (sign flips)")
        rows = [
            (
                f"{one.first} - {one.second}",
                one.estimate,
                p_value(one.pvalue),
                p_value(one.pvalue_permutation) if tested else "",
            )
            for one in self.differences
        ]
        return [row if tested else row[:3] for row in (head, *rows)]

    @property
    def notes(self) -> list[str]:
        """Explanations of the intervals and p-values, one sentence each."""
        notes = [f"[low, high]: {100 * self.level:g} % interval, {self._method}"]
        if self.units:
            notes.append(
                f"p (sign flips): up to {self.n_permutations:,} flips of {self.units}, for the "
                "models fitted here; variation of the training rows is not included"
            )
        if len(self.differences) > 1:
            notes.append(
                f"{len(self.differences)} differences: p-values and intervals are not corrected "
                "for multiple comparisons"
            )
        if self.refitted:
            notes.append(f"refitted on every training set: {joined(self.refitted)}")
        return notes

    @property
    def _method(self) -> str:
        return f"corrected resampled t over {self.n_splits} splits"


def _aligned(table: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def _html_table(table: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table[0])
    body = "".join(
        f'<tr><th style="text-align: left">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table[1:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
