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
class RowExchange(Exchange):
    """Labels move freely among the rows of each block (of all rows, where `blocks` is None).

    The generator is used as scikit-learn's `permutation_test_score` uses it, so that the same seed
    draws the same labels.
    """

    labels: np.ndarray
    blocks: Sequence[np.ndarray] | None = None

    @property
    def n_samples(self) -> int:
        return len(self.labels)

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        if self.blocks is None:
            return Rearrangement(rng.permutation(self.n_samples))
        indices = np.arange(self.n_samples)
        for rows in self.blocks:
            indices[rows] = rng.permutation(rows)
        return Rearrangement(indices)

    @property
    def _blocks(self) -> Sequence[np.ndarray]:
        return [np.arange(self.n_samples)] if self.blocks is None else self.blocks

    @property
    def count(self) -> int:
        return math.prod(_multinomial(self.labels[rows]) for rows in self._blocks)

    def others(self) -> Iterator[Rearrangement]:
        for arrangement in product(
            *(list(_arrangements(self.labels[rows])) for rows in self._blocks)
        ):
            indices = np.arange(self.n_samples)
            for rows, order in zip(self._blocks, arrangement, strict=True):
                indices[rows] = rows[order]
            if not np.array_equal(self.labels[indices], self.labels):
                yield Rearrangement(indices)


@dataclass(frozen=True)
class WholeExchange(Exchange):
    """Units (groups of rows) trade their labels as they are, among units of the same kind.

    Units whose rows all have one label trade it whatever their sizes; others trade the sequence of
    their labels, in row order, with units of equal size.
    """

    n_samples: int
    units: Sequence[np.ndarray]
    unit_labels: np.ndarray
    kinds: Sequence[np.ndarray]

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        source = np.arange(len(self.units))
        for kind in self.kinds:
            source[kind] = rng.permutation(kind)
        return self._of(source)

    def _of(self, source: np.ndarray) -> Rearrangement:
        indices = np.arange(self.n_samples)
        for unit, other in enumerate(source):
            rows, lent = self.units[unit], self.units[other]
            indices[rows] = lent if len(lent) == len(rows) else lent[0]
        return Rearrangement(indices)

    @property
    def count(self) -> int:
        return math.prod(_multinomial(self.unit_labels[kind]) for kind in self.kinds)

    def others(self) -> Iterator[Rearrangement]:
        for arrangement in product(
            *(list(_arrangements(self.unit_labels[kind])) for kind in self.kinds)
        ):
            source = np.arange(len(self.units))
            for kind, order in zip(self.kinds, arrangement, strict=True):
                source[kind] = kind[order]
            if not np.array_equal(self.unit_labels[source], self.unit_labels):
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

    @property
    def n_samples(self) -> int:
        return len(self.unit_of_row)

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        return self._of(rng.randint(2, size=self.n_units))

    def _of(self, flips: np.ndarray) -> Rearrangement:
        flipped = flips[self.unit_of_row] == 1
        rows = np.arange(self.n_samples)
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
    n = len(labels)
    kind = kind or "within"
    if kind not in EXCHANGES:
        raise ValueError(
            f"exchange must be None or one of {', '.join(map(repr, EXCHANGES))}, got {kind!r} "
            "instead."
        )
    if kind in ("within", "rows"):
        return RowExchange(labels, blocks_of(groups if kind == "within" else None, atoms))
    if kind == "shift":
        return ShiftExchange(n, blocks_of(groups, atoms) or [np.arange(n)])
    if groups is None and (kind == "whole" or classifier):
        raise ValueError(
            f"exchange={kind!r} needs groups, got None instead: they say which rows "
            + (
                "move together as one unit."
                if kind == "whole"
                else "form a pair whose labels swap."
            )
        )
    units = [np.arange(row, row + 1) for row in range(n)] if groups is None else _members(groups)
    if atoms is not None:
        _check_units_inside(units, atoms, kind)
    return (
        _whole(labels, units, atoms)
        if kind == "whole"
        else _sign(labels, units, classifier, n_classes)
    )


def blocks_of(groups: np.ndarray | None, atoms: np.ndarray | None) -> list[np.ndarray] | None:
    """The sets of rows within which labels may move, ordered by group, then atom.

    None where that is everywhere.
    """
    if groups is None and atoms is None:
        return None
    if groups is None or atoms is None:
        return _members(groups if atoms is None else atoms)
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    return _members(number * (int(atoms.max()) + 1) + atoms)


def _members(names: np.ndarray | None) -> list[np.ndarray]:
    """The rows of each distinct name, names ascending."""
    names = np.asarray(names)
    return [np.flatnonzero(names == name) for name in np.unique(names)]


def _check_units_inside(units: Sequence[np.ndarray], atoms: np.ndarray, kind: str) -> None:
    for number, rows in enumerate(units):
        if len(np.unique(atoms[rows])) > 1:
            raise ValueError(
                f'permute="within-folds" with exchange={kind!r} needs every group inside one test '
                f"fold, but group number {number} "
                "is spread over several: moving its labels would change the folds' class counts. "
                "Use a splitter that keeps groups "
                'together (GroupKFold, StratifiedGroupKFold), or permute="resplit".'
            )


def _whole(labels: np.ndarray, units: list[np.ndarray], atoms: np.ndarray | None) -> WholeExchange:
    uniform = all(len(np.unique(labels[rows])) == 1 for rows in units)
    contents = {tuple(labels[rows]) if not uniform else (labels[rows[0]],): None for rows in units}
    numbers = {content: number for number, content in enumerate(contents)}
    unit_labels = np.array(
        [numbers[tuple(labels[rows]) if not uniform else (labels[rows[0]],)] for rows in units]
    )
    sizes = np.zeros(len(units), dtype=int) if uniform else np.array([len(rows) for rows in units])
    places = (
        np.zeros(len(units), dtype=int)
        if atoms is None
        else np.array([atoms[rows[0]] for rows in units])
    )
    keys = sizes * (int(places.max()) + 1) + places
    kinds = _members(keys)
    if not uniform and all(len(kind) == 1 for kind in kinds):
        raise ValueError(
            'exchange="whole" needs groups that can trade places: groups whose labels vary inside '
            "them must have equal sizes, got "
            f"sizes {sorted({len(rows) for rows in units})} with no two alike (in the same fold, "
            "for permutations within folds). Use "
            'exchange="within", or groups with one label each.'
        )
    return WholeExchange(len(labels), units, unit_labels, kinds)


def _sign(
    labels: np.ndarray, units: list[np.ndarray], classifier: bool, n_classes: int
) -> SignExchange:
    unit_of_row = np.empty(len(labels), dtype=int)
    for number, rows in enumerate(units):
        unit_of_row[rows] = number
    if not classifier:
        return SignExchange(unit_of_row, len(units), None)
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
                f"got {len(first)} and {len(second)} in "
                f"group number {number}: otherwise a flip changes the class sizes. Use "
                'exchange="within".'
            )
        partner[first], partner[second] = second, first
    return SignExchange(unit_of_row, len(units), partner)


def _multinomial(labels: np.ndarray) -> int:
    """How many distinct orders a multiset of labels has."""
    sizes = np.unique(labels, return_counts=True)[1]
    return math.factorial(len(labels)) // math.prod(math.factorial(int(size)) for size in sizes)


def _arrangements(labels: np.ndarray) -> Iterator[np.ndarray]:
    """Positions that put a multiset of labels in each of its distinct orders: labels[positions]."""
    names, codes = np.unique(labels, return_inverse=True)
    places = [np.flatnonzero(codes == code).tolist() for code in range(len(names))]
    used = [0] * len(names)
    order: list[int] = []

    def extend() -> Iterator[np.ndarray]:
        if len(order) == len(labels):
            yield np.array(order, dtype=np.intp)
            return
        for code, rows in enumerate(places):
            if used[code] < len(rows):
                order.append(rows[used[code]])
                used[code] += 1
                yield from extend()
                used[code] -= 1
                order.pop()

    return extend()
