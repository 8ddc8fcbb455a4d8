"""Which rearrangements of the labels the null hypothesis makes equally likely, and how to draw or
list them.

A rearrangement is a row of indices (and, for sign flips of numbers, of signs): the permuted targets
are signs ∘ y[indices]. Each kind of exchange is a group of such rearrangements that contains the
identity, so that the p-value (1 + b)/(1 + P) is valid for random draws, and exact when every
distinct labelling is listed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

import numpy as np

EXCHANGES = ("within", "rows", "whole", "sign", "shift")
UNITS = {"whole": "move together as one unit", "sign": "form a pair whose labels swap"}


@dataclass(frozen=True)
class Rearrangement:
    """Permuted targets are signs ∘ y[indices]; `signs` is None where there are none to flip."""

    indices: np.ndarray
    signs: np.ndarray | None = None


class Exchange(ABC):
    """A group of rearrangements of n rows.

    `count` is the number of distinct labellings it can reach.
    """

    @abstractmethod
    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        """One rearrangement, uniform over the group."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rearrangements there are, those that give the same labels counted once where
        they can be told.
        """

    @abstractmethod
    def others(self) -> Iterator[Rearrangement]:
        """Every rearrangement but the one that changes nothing: `count` - 1 of them."""


@dataclass(frozen=True)
class LabelExchange(Exchange):
    """Labels move freely within each block: those of rows, or of `units` of rows.

    Units (groups of rows) whose rows all have one label trade it whatever their sizes; others trade
    the sequence of their labels, in row order, with units of equal size. The generator is used as
    scikit-learn's `permutation_test_score` uses it, so that the same seed draws the same labels.
    """

    labels: np.ndarray
    blocks: Sequence[np.ndarray]
    units: Sequence[np.ndarray] | None = None

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        source = np.arange(len(self.labels))
        for block in self.blocks:
            source[block] = rng.permutation(block)
        return self._of(source)

    def _of(self, source: np.ndarray) -> Rearrangement:
        if self.units is None:
            return Rearrangement(source)
        indices = np.empty(sum(map(len, self.units)), dtype=np.intp)
        for rows, other in zip(self.units, source, strict=True):
            lent = self.units[other]
            indices[rows] = lent if len(lent) == len(rows) else lent[0]
        return Rearrangement(indices)

    @property
    def count(self) -> int:
        return math.prod(_multinomial(self.labels[block]) for block in self.blocks)

    def others(self) -> Iterator[Rearrangement]:
        for arrangement in product(*(_arrangements(self.labels[block]) for block in self.blocks)):
            source = np.arange(len(self.labels))
            for block, order in zip(self.blocks, arrangement, strict=True):
                source[block] = block[order]
            if not np.array_equal(self.labels[source], self.labels):
                yield self._of(source)


@dataclass(frozen=True)
class SignExchange(Exchange):
    """Each unit flips a coin: its two classes swap names, or its numbers change sign. 2^units
    rearrangements.

    `partner` gives, for labels, the row of the same unit whose label a row takes when its unit
    flips; None flips signs.
    """

    unit_of_row: np.ndarray
    n_units: int
    partner: np.ndarray | None

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        return self._of(rng.randint(2, size=self.n_units))

    def _of(self, flips: np.ndarray) -> Rearrangement:
        flipped = flips[self.unit_of_row] == 1
        rows = np.arange(len(self.unit_of_row))
        if self.partner is None:
            return Rearrangement(rows, np.where(flipped, -1.0, 1.0))
        return Rearrangement(np.where(flipped, self.partner, rows))

    @property
    def count(self) -> int:
        return int(2**self.n_units)

    def others(self) -> Iterator[Rearrangement]:
        flips = product((0, 1), repeat=self.n_units)
        return (self._of(np.array(flip)) for flip in islice(flips, 1, None))


@dataclass(frozen=True)
class ShiftExchange(Exchange):
    """The labels of each block turn round in a circle, by the same number of places for all its
    rows.

    For series whose neighbouring rows resemble each other: the shift keeps that, and breaks only
    the alignment with X.
    """

    n_samples: int
    blocks: Sequence[np.ndarray]

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        return self._of([int(rng.randint(len(rows))) for rows in self.blocks])

    def _of(self, shifts: Sequence[int]) -> Rearrangement:
        indices = np.arange(self.n_samples)
        for rows, shift in zip(self.blocks, shifts, strict=True):
            indices[rows] = np.roll(rows, shift)
        return Rearrangement(indices)

    @property
    def count(self) -> int:
        return math.prod(len(rows) for rows in self.blocks)

    def others(self) -> Iterator[Rearrangement]:
        shifts = product(*(range(len(rows)) for rows in self.blocks))
        return (self._of(shift) for shift in islice(shifts, 1, None))


def make_exchange(
    kind: str | None,
    labels: np.ndarray,
    groups: np.ndarray | None,
    atoms: np.ndarray | None,
    classifier: bool,
    n_classes: int,
) -> Exchange:
    """The exchange of that name.

    `labels` numbers the distinct targets, `atoms` numbers the sets of rows that permutations must
    not leave (the test folds, for permutations within folds; None for no such limit).
    """
    n, kind = len(labels), kind or "within"
    if kind not in EXCHANGES:
        raise ValueError(
            f"exchange must be None or one of {', '.join(map(repr, EXCHANGES))}, got {kind!r} "
            "instead."
        )
    if kind in ("within", "rows"):
        return LabelExchange(labels, blocks_of(n, groups if kind == "within" else None, atoms))
    if kind == "shift":
        return ShiftExchange(n, blocks_of(n, groups, atoms))
    if groups is None and (kind == "whole" or classifier):
        raise ValueError(
            f"exchange={kind!r} needs groups, got None instead: they say which rows {UNITS[kind]}."
        )
    unit_of_row = np.arange(n) if groups is None else _numbered(groups)
    units = blocks_of(n, unit_of_row)
    for number, rows in enumerate(units):
        if atoms is not None and len(np.unique(atoms[rows])) > 1:
            raise ValueError(
                f'permute="within-folds" with exchange={kind!r} needs every group inside one test '
                f"fold, but group number {number} is spread over several: moving its labels would "
                "change the folds' class counts. Use a splitter that keeps groups together "
                '(GroupKFold, StratifiedGroupKFold), or permute="resplit".'
            )
    if kind == "whole":
        return _whole(labels, units, atoms)
    partner = _partners(labels, units, n_classes) if classifier else None
    return SignExchange(unit_of_row, len(units), partner)


def blocks_of(n_samples: int, *names: np.ndarray | None) -> list[np.ndarray]:
    """The sets of rows that have all their names in common, ordered by the first, then the next.

    Without names, all rows.
    """
    given = [np.zeros(n_samples, dtype=int), *(_numbered(A) for A in names if A is not None)]
    number = np.unique(np.stack(given), axis=1, return_inverse=True)[1].reshape(-1)
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])


def _numbered(names: np.ndarray) -> np.ndarray:
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def _whole(labels: np.ndarray, units: list[np.ndarray], atoms: np.ndarray | None) -> LabelExchange:
    uniform = all(len(np.unique(labels[rows])) == 1 for rows in units)
    contents = [tuple(labels[rows[:1] if uniform else rows]) for rows in units]
    numbers = {content: number for number, content in enumerate(dict.fromkeys(contents))}
    sizes = np.array([len(content) for content in contents])
    places = None if atoms is None else atoms[[rows[0] for rows in units]]
    blocks = blocks_of(len(units), sizes, places)
    if not uniform and all(len(block) == 1 for block in blocks):
        raise ValueError(
            'exchange="whole" needs groups that can trade places: groups whose labels vary inside '
            f"them must have equal sizes, got sizes {sorted(set(sizes.tolist()))} with no two "
            "alike (in the same fold, for permutations within folds). Use "
            'exchange="within", or groups with one label each.'
        )
    return LabelExchange(np.array([numbers[content] for content in contents]), blocks, units)


def _partners(labels: np.ndarray, units: list[np.ndarray], n_classes: int) -> np.ndarray:
    """For every row the one of its unit whose label it takes when the unit flips."""
    if n_classes != 2:
        raise ValueError(
            f'exchange="sign" needs two classes, got {n_classes} instead: a flip swaps the two '
            'names inside a pair. Use exchange="within".'
        )
    partner = np.arange(len(labels))
    for number, rows in enumerate(units):
        first, second = rows[labels[rows] == 0], rows[labels[rows] == 1]
        if len(first) != len(second):
            raise ValueError(
                'exchange="sign" needs as many rows of one class as of the other in every group, '
                f"got {len(first)} and {len(second)} in group number {number}: otherwise a flip "
                'changes the class sizes. Use exchange="within".'
            )
        partner[first], partner[second] = second, first
    return partner


def _multinomial(labels: np.ndarray) -> int:
    """How many distinct orders a multiset of labels has."""
    sizes = np.unique(labels, return_counts=True)[1]
    return math.factorial(len(labels)) // math.prod(math.factorial(int(size)) for size in sizes)


def _arrangements(labels: np.ndarray) -> Iterator[np.ndarray]:
    """Positions that put a multiset of labels in each of its distinct orders: labels[positions]."""

    def extend(order: list[int], left: list[list[int]]) -> Iterator[np.ndarray]:
        if len(order) == len(labels):
            yield np.array(order, dtype=np.intp)
        for code, places in enumerate(left):
            if places:
                rest = [*left[:code], places[1:], *left[code + 1 :]]
                yield from extend([*order, places[0]], rest)

    return extend([], [np.flatnonzero(labels == name).tolist() for name in np.unique(labels)])
