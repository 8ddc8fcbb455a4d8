r"""Permutations in cosets: labels and folds are permuted together.

Under the null hypothesis, the rows of X can be exchanged given the pattern (y, F) of labels and
folds, whatever the order of the labels and whether or not the folds depend on them. So the pair is
permuted: (y, F) → (πy, πF), with π from the group of an exchange.

Let the subgroup contain the rearrangements τ that keep the set of splits (those inside folds; all
of them for leave-one-out), and write π = σ∘τ. σ places the folds on the rows and determines the
fold factors; τ reorders labels inside the folds and costs nothing. Of P + 1 labelings, including
the observed one, J_g have placement g; there are G placements. Placements are drawn independently,
and the observed labeling belongs to placement g with probability J_g/(P + 1). Then each of the P +
1 is equally likely to be the observed one, and p = (1 + #{null ≥ observed})/(P + 1) is exact.

Labelings of one placement are similar, because τ leaves something in place. J is limited so that
this does not cost precision: if a share c of the variance of the labels is left in place, J
labelings count as about J/(1 + (J - 1) c²).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from ..core.splits import Split, complement
from .exchange import Draw, Exchange, Rearrangement
from .keys import Keys

LEAST = 20  # placements, if one is not enough
SPREAD = 0.25  # acceptable loss of precision from several labelings per placement: (J - 1) c²
DISTINCT = 10  # distinct labelings in a placement for each that is drawn


def inverse(indices: np.ndarray) -> np.ndarray:
    """Where each row goes when row i receives what row indices[i] had."""
    to = np.empty_like(indices)
    to[indices] = np.arange(len(indices))
    return to


@dataclass(frozen=True)
class FoldRun:
    """Folds in a row that delete and test equally many rows: from fold `first` on, `count` of them,
    whose deleted rows lie at these places of the placement's order.
    """

    first: int
    count: int
    n_deleted: int
    n_test: int
    places: slice

    def rows(self, placement: Placement) -> np.ndarray:
        """The deleted rows (k, m) of its folds, those tested first."""
        return placement.order[self.places].reshape(self.count, self.n_deleted)


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the folds lie. Number 0 is the observed one, from which others were moved."""

    number: int
    splits: list[Split]
    n_samples: int
    observed: Placement | None = None

    @cached_property
    def deleted(self) -> list[np.ndarray]:
        """Every fold's deleted rows, its test rows first and in their own order."""
        gone = [complement(train, self.n_samples) for train, _ in self.splits]
        return [
            test
            if np.array_equal(rows, np.sort(test))
            else np.concatenate([test, np.setdiff1d(rows, test)])
            for rows, (_, test) in zip(gone, self.splits, strict=True)
        ]

    @cached_property
    def deletes(self) -> bool:
        """Whether training sets are what is left by deletion: none repeats rows."""
        lengths = [len(train) for train, _ in self.splits]
        return [self.n_samples - len(rows) for rows in self.deleted] == lengths

    @cached_property
    def order(self) -> np.ndarray:
        """All folds' deleted rows one after the other."""
        return np.concatenate(self.deleted).astype(np.intp)

    @cached_property
    def trains(self) -> np.ndarray:
        """1 where a row (n) trains in a fold (k), else 0."""
        there = np.ones((self.n_samples, len(self.deleted)))
        for number, rows in enumerate(self.deleted):
            there[rows, number] = 0.0
        return there

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(rows deleted, rows tested) of every fold; those of equal shapes can be stacked."""
        n_tests = (len(test) for _, test in self.splits)
        return tuple(zip(map(len, self.deleted), n_tests, strict=True))

    @cached_property
    def runs(self) -> list[FoldRun]:
        """Folds of equal shapes that follow each other."""
        runs, first, start = [], 0, 0
        for (n_deleted, n_test), same in groupby(self.shapes):
            count = len(list(same))
            stop = start + count * n_deleted
            runs.append(FoldRun(first, count, n_deleted, n_test, slice(start, stop)))
            first, start = first + count, stop
        return runs

    def moved(self, number: int, indices: np.ndarray) -> Placement:
        """These folds, moved as labels are by y[indices]."""
        to = inverse(indices)
        splits = [(to[train], to[test]) for train, test in self.splits]
        return Placement(number, splits, self.n_samples, self)


@dataclass(frozen=True)
class Labelling:
    """A rearrangement of the labels, and where the folds lie.

    `together`: the folds moved with the labels, so that every training set has its rows in the
    order in which the observed one has those that they stand for.
    """

    rearrangement: Rearrangement | Draw
    placement: Placement
    together: bool = False

    @property
    def splits(self) -> list[Split]:
        if not self.together:
            return self.placement.splits
        observed = self.placement.observed or self.placement
        return observed.moved(-1, self.rearrangement.indices).splits


def placement_sizes(
    exchange: Exchange, kept: Exchange, targets: np.ndarray, total: int
) -> list[int]:
    """How many of `total` labelings, the observed one among them, each placement has."""
    if kept is exchange:
        return [total]
    stays = exchange.stays(kept, targets)
    most = total if total * stays**2 <= SPREAD else 1 + int(SPREAD / stays**2)
    most = max(1, min(most, kept.count // DISTINCT))
    count = min(total, max(LEAST, -(-total // most)))
    return [total // count + (number < total % count) for number in range(count)]


class Cosets:
    """Draws of labels and folds together.

    `shuffled` puts them in random order, so that any number of the first ones is as good a sample
    as all, which stopping early needs; otherwise placements come one after the other.
    """

    def __init__(
        self,
        exchange: Exchange,
        atoms: np.ndarray,
        targets: np.ndarray,
        observed: Placement,
        n_permutations: int,
    ) -> None:
        self.exchange, self.kept, self.observed = exchange, exchange.keeping(atoms), observed
        self.sizes = placement_sizes(exchange, self.kept, targets, n_permutations + 1)

    def draw(self, rng: np.random.RandomState, shuffled: bool) -> Iterator[Labelling]:
        """Labels inside a placement are drawn by their number (`Keys`), wherever they are needed;
        the generator gives everything else.
        """
        left = self._with_observed_first(rng)
        keys = Keys(int(rng.randint(2**31)) << 32 | int(rng.randint(2**31)))
        order = np.repeat(np.arange(len(left)), left)
        if shuffled:
            rng.shuffle(order)
        placed: dict[int, tuple[Placement, np.ndarray | None]] = {0: (self.observed, None)}
        for turn, number in enumerate(order.tolist()):
            if number not in placed:
                indices = self.exchange.draw(rng).indices
                placed[number] = self.observed.moved(number, indices), indices
            placement, sigma = placed[number]
            yield Labelling(Draw(self.kept, keys, turn, sigma), placement, True)
            left[number] -= 1
            if not left[number]:
                del placed[number]

    def _with_observed_first(self, rng: np.random.RandomState) -> list[int]:
        """Sizes of the placements, that of the observed labeling first and without it.

        It is any of the labelings with the same probability, and so in a placement in proportion
        to its size.
        """
        ends = np.cumsum(self.sizes)
        chosen = 0
        if len(self.sizes) > 1:
            chosen = int(np.searchsorted(ends, rng.randint(ends[-1]), side="right"))
        others = self.sizes[:chosen] + self.sizes[chosen + 1 :]
        return [self.sizes[chosen] - 1, *others]


def enumerated_cosets(
    exchange: Exchange, atoms: np.ndarray, observed: Placement
) -> Iterator[Labelling]:
    """Every distinct pair of labels and folds but the observed one."""
    placed = {atoms.tobytes(): observed}
    for rearrangement in exchange.paired(atoms).others():
        key = atoms[rearrangement.indices].tobytes()
        if key not in placed:
            placed[key] = observed.moved(len(placed), rearrangement.indices)
        yield Labelling(rearrangement, placed[key], True)


def same_splits(splits: Sequence[Split], others: Sequence[Split]) -> bool:
    return len(splits) == len(others) and all(
        np.array_equal(test, other_test) and np.array_equal(train, other_train)
        for (train, test), (other_train, other_test) in zip(splits, others, strict=True)
    )
