"""The run of a permutation test.

Blocks, early stopping, progress, and a file to resume from.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from ..core.progress import ProgressCounter, has_callback
from ..core.splits import split_rows
from ..crossval.depends import Route
from .checkpoint import Checkpoint
from .exchange import Rearrangement
from .placements import (
    Cosets,
    Labelling,
    Placement,
    enumerated_cosets,
    same_splits,
)
from .question import Question
from .result import Sequential, reaches

LONG = 5.0  # seconds; the expected duration of a longer run is printed before it starts
UNITS = ("hours", 3600.0), ("minutes", 60.0)


def labellings_of(
    question: Question,
    total: int,
    enumerated: bool,
    rng: np.random.RandomState,
    shuffled: bool = False,
) -> Iterator[Labelling]:
    """The permuted labelings in order: all but the observed one where they are enumerated, `total`
    draws otherwise.

    `shuffled`: any number of the first draws is as good a sample as all of them.
    """
    if question.n_labellings == 1:
        return iter(())
    if question.atoms is not None and enumerated:
        return enumerated_cosets(question.exchange, question.atoms, question.observed)
    if question.atoms is not None:
        return cosets_of(question, question.atoms, total).draw(rng, shuffled)
    drawn = (question.exchange.draw(rng) for _ in range(total))
    rearrangements = question.exchange.others() if enumerated else drawn
    if question.mode == "resplit":
        return _split_again(question, rearrangements)
    return (Labelling(rearrangement, question.observed) for rearrangement in rearrangements)


def cosets_of(question: Question, atoms: np.ndarray, total: int) -> Cosets:
    return Cosets(question.exchange, atoms, question.targets, question.observed, total)


def _split_again(
    question: Question, rearrangements: Iterable[Rearrangement]
) -> Iterator[Labelling]:
    """Drawn, then split, as scikit-learn does: the two may share a generator."""
    for number, rearrangement in enumerate(rearrangements, start=1):
        y = question.permuted(rearrangement)
        again = question.cv.split(question.X, y, **question.split_metadata)
        splits = split_rows(again, question.n_samples, none_tested=True)
        same = same_splits(splits, question.splits)
        placement = question.observed if same else Placement(number, splits, question.n_samples)
        yield Labelling(rearrangement, placement)


def unpermuted(question: Question) -> Labelling:
    """The observed labeling."""
    return Labelling(Rearrangement(np.arange(question.n_samples)), question.observed)


class Test(Protocol):
    """What scores labelings."""

    question: Question
    fitted_one_by_one: int

    @property
    def route(self) -> Route: ...
    @property
    def block_size(self) -> int: ...
    def scores(self, labellings: Sequence[Labelling]) -> dict[str, np.ndarray]: ...


@dataclass
class Run:
    """The observed score, then block after block of labelings, until there are enough."""

    test: Test
    total: int
    enumerated: bool
    rng: np.random.RandomState
    stop_after: int | None = None
    checkpoint: Checkpoint | None = None
    verbose: int = 0
    name: str = "permutation_test_score"

    def finish(self) -> tuple[dict[str, Any], dict[str, np.ndarray], Sequential, int]:
        """Scores and null scores by name, how p-values follow, at how many places the folds lay."""
        question, start = self.test.question, time.perf_counter()
        given = unpermuted(question)
        observed = self.test.scores([given])
        scores = {name: A[0] if A.ndim > 1 else float(A[0]) for name, A in observed.items()}
        null = {name: np.empty((self.total, *A.shape[1:]), A.dtype) for name, A in observed.items()}
        done, hits = self._resume(null), np.zeros(len(null), dtype=int)
        hits += self._reached({name: A[:done] for name, A in null.items()}, scores).sum(axis=0)
        labellings = labellings_of(
            question, self.total, self.enumerated, self.rng, self.stop_after is not None
        )
        placed = {0, *(other.placement.number for other in islice(labellings, done))}
        self._announce(time.perf_counter() - start, self.total - done, given)
        self.test.fitted_one_by_one = 0
        told = ProgressCounter(self.total, self.verbose, "permutations")
        told(done)
        while done < self.total and not self._enough(hits):
            block = list(islice(labellings, min(self.test.block_size, self.total - done)))
            found = self.test.scores(block)
            reached = self._reached(found, scores)
            enough = self._enough(hits + np.cumsum(reached, axis=0))
            kept = int(np.argmax(enough)) + 1 if enough.any() else len(block)
            hits += reached[:kept].sum(axis=0)
            placed |= {labelling.placement.number for labelling in block[:kept]}
            for name, values in found.items():
                null[name][done : done + kept] = values[:kept]
            done += kept
            if self.checkpoint is not None:
                self.checkpoint.save({name: A[:done] for name, A in null.items()})
            told(kept)
        stopped = bool(self._enough(hits)) and not (self.enumerated and done == self.total)
        sequential = Sequential(done, self.enumerated and not stopped, stopped, self.stop_after)
        return scores, {name: A[:done] for name, A in null.items()}, sequential, len(placed)

    def _resume(self, null: dict[str, np.ndarray]) -> int:
        """How many null scores a file had; they are filled in."""
        if self.checkpoint is None:
            return 0
        known = self.checkpoint.load(self.total, {name: A.shape[1:] for name, A in null.items()})
        for name, values in known.items():
            null[name][: len(values)] = values
        return min(map(len, known.values()), default=0)

    def _reached(self, null: dict[str, np.ndarray], scores: dict[str, Any]) -> np.ndarray:
        """Which null scores reach the observed one (B, scores), where that may end the run; tables
        of counts always do.
        """
        shape = len(next(iter(null.values()))), len(null)
        reached = np.full(shape, self.stop_after or 0)
        for number, (name, values) in enumerate(null.items()):
            if self.stop_after is not None and values.ndim == 1:
                reached[:, number] = reaches(values, scores[name])
        return reached

    def _enough(self, hits: np.ndarray) -> Any:
        """Whether every score (the last axis) has been reached as often as is wanted."""
        return np.all(hits >= (self.stop_after or math.inf), axis=-1)

    def _announce(self, seconds: float, remaining: int, given: Labelling) -> None:
        """About how long it will take, where that is long and blocks are not nearly free; `seconds`
        is what one labeling took.

        With decompositions shared by a block, two more labelings tell what each costs by itself.
        """
        test, estimate = self.test, seconds * remaining
        if has_callback() or test.route.name == "one" or estimate < LONG:
            return
        if test.route.name == "per-fold":
            start = time.perf_counter()
            test.scores([given] * 3)
            each = max(0.0, time.perf_counter() - start - seconds) / 2
            set_ups = max(math.ceil(remaining / test.block_size), self._placements())
            estimate = seconds * set_ups + each * remaining
        announce(self.name, estimate, f"{remaining} permutations ({test.route})")

    def _placements(self) -> int:
        """How many placements of the folds there will be."""
        question = self.test.question
        if question.atoms is None or self.enumerated:
            return 1
        return len(cosets_of(question, question.atoms, self.total).sizes)


def announce(name: str, seconds: float, what: str) -> None:
    """Print the expected duration of a function, if it is long."""
    if seconds > LONG:
        duration = next(
            (f"{seconds / size:.0f} {unit}" for unit, size in UNITS if seconds >= 2 * size),
            f"{seconds:.0f} seconds",
        )
        print(f"{name}: about {duration} for {what}", file=sys.stderr, flush=True)
