"""The run of a permutation test.

Blocks, early stopping, progress, and a file to resume from.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..core.progress import heard, say
from . import checkpoint as checkpoints
from .evaluation import Evaluation
from .exchange import Rearrangement
from .folds import Resplitter, same_splits
from .placements import Cosets, Labelling, Placement, enumerated_cosets
from .question import Question
from .result import Sequential, reaches

LONG = 5.0  # seconds; the expected duration of a longer run is printed before it starts


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
    resplit = Resplitter(
        question.cv, question.X, question.split_metadata, question.y, question.splits
    )
    for number, rearrangement in enumerate(rearrangements, start=1):
        splits = resplit(question.permuted(rearrangement))
        same = same_splits(splits, question.splits)
        placement = question.observed if same else Placement(number, splits, question.n_samples)
        yield Labelling(rearrangement, placement)


def unpermuted(question: Question) -> Labelling:
    """The observed labeling."""
    return Labelling(Rearrangement(np.arange(question.n_samples)), question.observed)


@dataclass(frozen=True)
class Finished:
    """Scores and null scores by name, how p-values follow, at how many places the folds lay."""

    scores: dict[str, Any]
    null: dict[str, np.ndarray]
    sequential: Sequential
    n_placements: int


class Draws:
    """The observed score, then block after block of labelings, until there are enough."""

    def __init__(
        self,
        test: Evaluation,
        total: int,
        enumerated: bool,
        random_state: Any,
        stop_after: int | None,
        path: Path | None,
        mark: str,
        verbose: int,
    ) -> None:
        self.test, self.total, self.enumerated = test, total, enumerated
        self.stop_after = stop_after
        self.rng = check_random_state(random_state)
        self.path, self.mark, self.verbose = path, mark, verbose

    def finish(self) -> Finished:
        known = checkpoints.load(self.path, self.mark) if self.path is not None else None
        question = self.test.question
        start = time.perf_counter()
        given = unpermuted(question)
        observed = self.test.scores([given])
        scores = {
            name: float(values[0]) if values.ndim == 1 else values[0]
            for name, values in observed.items()
        }
        self.test.fitted_one_by_one = 0
        null = {name: np.empty((0, *values.shape[1:])) for name, values in observed.items()}
        shuffled = self.stop_after is not None
        labellings = labellings_of(question, self.total, self.enumerated, self.rng, shuffled)
        placed = {0}
        if known is not None:
            null = known[1]
            placed |= {other.placement.number for other in islice(labellings, known[0])}
        done = len(next(iter(null.values())))
        self._announce(time.perf_counter() - start, self.total - done, given)
        parts = [null]
        hits = self._hits(null, scores)
        while done < self.total and not self._enough(hits):
            block = list(islice(labellings, min(self.test.block_size, self.total - done)))
            found = self.test.scores(block)
            so_far = hits + self._reached(found, scores)
            kept = self._kept(so_far)
            hits = so_far[kept - 1]
            parts.append({name: values[:kept] for name, values in found.items()})
            placed |= {labelling.placement.number for labelling in block[:kept]}
            done += kept
            if self.path is not None:
                parts = [_joined(parts)]
                checkpoints.save(self.path, self.mark, done, scores, parts[0])
            self._show(done)
        stopped = self._enough(hits) and not (self.enumerated and done == self.total)
        exact = self.enumerated and not stopped
        sequential = Sequential(done, exact, stopped, self.stop_after)
        return Finished(scores, _joined(parts), sequential, len(placed))

    # ---- when to stop ----------------------------------------------------------------------------

    def _reached(self, null: dict[str, np.ndarray], scores: dict[str, Any]) -> np.ndarray:
        """How many of the first null scores reach the observed one, (B, scores); of scores that are
        numbers.
        """
        numbers = [measure.name for measure in self.test.scoring.measures if not measure.adds_up]
        each = [reaches(null[name], scores[name]) for name in numbers]
        return np.cumsum(np.stack(each, axis=1), axis=0)

    def _hits(self, null: dict[str, np.ndarray], scores: dict[str, Any]) -> np.ndarray:
        reached = self._reached(null, scores)
        return reached[-1] if len(reached) else np.zeros(reached.shape[1], dtype=int)

    def _enough(self, hits: np.ndarray) -> bool:
        """Whether every score has been reached as often as is wanted."""
        return self.stop_after is not None and bool(np.all(hits >= self.stop_after))

    def _kept(self, so_far: np.ndarray) -> int:
        """The block up to the draw that completes the number for the last of the scores."""
        if self.stop_after is None:
            return len(so_far)
        complete = np.all(so_far >= self.stop_after, axis=1)
        return int(np.argmax(complete)) + 1 if complete.any() else len(so_far)

    def _announce(self, seconds: float, remaining: int, given: Labelling) -> None:
        """About how long it will take, where that is long and blocks are not nearly free; `seconds`
        is what one labeling took.

        With decompositions shared by a block, two more labelings tell what each costs by itself.
        """
        estimate = seconds * remaining
        if heard():
            say(self.total - remaining, self.total, "permutations")
            return
        if self.test.route.name == "one" or estimate < LONG:
            return
        if self.test.route.name == "per-fold":
            start = time.perf_counter()
            self.test.scores([given] * 3)
            each = max(0.0, time.perf_counter() - start - seconds) / 2
            set_ups = max(math.ceil(remaining / self.test.block_size), self._placements())
            estimate = seconds * set_ups + each * remaining
            self.test.fitted_one_by_one = 0
            if estimate < LONG:
                return
        print(
            f"permutation_test_score: about {duration(estimate)} for {remaining} permutations "
            f"({self.test.route.name}: "
            f"{self.test.route.reason})",
            file=sys.stderr,
            flush=True,
        )

    def _placements(self) -> int:
        """How many placements of the folds there will be."""
        question = self.test.question
        if question.atoms is None or self.enumerated:
            return 1
        return len(cosets_of(question, question.atoms, self.total).sizes)

    def _show(self, done: int) -> None:
        say(done, self.total, "permutations")
        if self.verbose > 0 and sys.stderr.isatty() and not heard():
            print(
                f"\rpermutations [{'#' * (30 * done // self.total):.<30}] {done}/{self.total}",
                end="\n" if done == self.total else "",
                file=sys.stderr,
                flush=True,
            )


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def duration(seconds: float) -> str:
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
