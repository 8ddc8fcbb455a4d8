"""From the first labelling to the last.

Blocks, early stopping, progress, and a file to go on from.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..core.progress import heard, say
from . import checkpoint as checkpoints
from .evaluation import Evaluation, Labelling
from .exchange import Rearrangement
from .folds import Resplitter
from .question import Question
from .result import reaches

LONG = 5.0  # seconds; a run expected to take longer says so before it starts


def labellings_of(
    question: Question, enumerated: bool, rng: np.random.RandomState
) -> Iterator[Labelling]:
    """The permuted labellings in order.

    All but the observed one where they are enumerated, endless draws otherwise.
    """
    resplit = (
        Resplitter(question.cv, question.X, question.groups, question.y, question.splits)
        if question.mode == "resplit"
        else None
    )
    drawn = (question.exchange.draw(rng) for _ in repeat(None))
    for rearrangement in question.exchange.others() if enumerated else drawn:
        # drawn, then split, as scikit-learn does: the two may share a generator
        splits = question.splits if resplit is None else resplit(question.permuted(rearrangement))
        yield Labelling(rearrangement, splits)


def unpermuted(question: Question) -> Labelling:
    """The observed labelling."""
    return Labelling(Rearrangement(np.arange(question.n_samples)), question.splits)


class Draws:
    """The observed score, then block after block of labellings, until there are enough."""

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
        self.stop_after = math.inf if stop_after is None else stop_after
        self.rng = check_random_state(random_state)
        self.path, self.mark, self.verbose = path, mark, verbose

    def finish(self) -> tuple[dict[str, Any], dict[str, np.ndarray], bool]:
        """Scores, null scores by name, and whether early stopping ended the run."""
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
        labellings = labellings_of(question, self.enumerated, self.rng)
        known = checkpoints.load(self.path, self.mark) if self.path is not None else None
        if known is not None:
            null = known[1]
            next(islice(labellings, known[0], known[0]), None)
        done = len(next(iter(null.values())))
        self._announce(time.perf_counter() - start, self.total - done, given)
        parts = [null]
        first = self.test.scoring.measures[0].name
        hits = int(np.sum(reaches(null[first], scores[first])))
        while done < self.total and hits < self.stop_after:
            block = list(islice(labellings, min(self.test.block_size, self.total - done)))
            found = self.test.scores(block)
            so_far = hits + np.cumsum(reaches(found[first], scores[first]))
            # up to the one that completes the number at which to stop
            kept = min(len(block), int(np.searchsorted(so_far, self.stop_after)) + 1)
            hits = int(so_far[kept - 1])
            parts.append({name: values[:kept] for name, values in found.items()})
            done += kept
            if self.path is not None:
                parts = [_joined(parts)]
                checkpoints.save(self.path, self.mark, done, scores, parts[0])
            self._show(done)
        stopped = hits >= self.stop_after and not (self.enumerated and done == self.total)
        return scores, _joined(parts), stopped

    def _announce(self, seconds: float, remaining: int, given: Labelling) -> None:
        """About how long it will take, where that is long and blocks are not nearly free; `seconds`
        is what one labelling took.

        With decompositions shared by a block, two more labellings tell what each costs by itself.
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
            estimate = seconds * math.ceil(remaining / self.test.block_size) + each * remaining
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
