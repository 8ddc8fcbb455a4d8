"""Which rearrangements of the labels are equally likely under the null hypothesis, and how to draw
or enumerate them.

A rearrangement is a row of indices (and, for sign flips of numbers, of signs): the permuted targets
are signs ∘ y[indices]. Each kind of exchange is a group of such rearrangements that contains the
identity. So the p-value (1 + b)/(1 + P) is valid for random draws, and exact if every distinct
labeling is enumerated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice, product
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like, is_numpy, namespace, to_numpy
from .keys import BlockShuffle, Keys


class ValidityWarning(UserWarning):
    """The p-value may not be valid. The message says why and what to do."""


@dataclass(frozen=True)
class Rearrangement:
    """Permuted targets are signs ∘ y[indices]; `signs` is None if there are none to flip.

    Of many, indices are (B, n) where they were asked for, and signs (B, n) on the host.
    """

    indices: Array
    signs: np.ndarray | None = None


class Exchange(ABC):
    """A group of rearrangements of n rows.

    `count` is the number of distinct labelings it can reach.
    """

    @abstractmethod
    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        """One rearrangement, uniform over the group."""

    def orders(self, keys: Keys, numbers: np.ndarray, like: Array) -> Rearrangement:
        """Many at once, uniform over the group, by their numbers: the same ones wherever `like`
        lives and however they are grouped. Each from a generator of its own.
        """
        seeds = (keys.at(np.asarray(numbers, dtype=np.int64)) & (2**32 - 1)).tolist()
        return stacked([self.draw(np.random.RandomState(seed)) for seed in seeds], like)

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rearrangements there are, those that give the same labels counted once where
        they can be told.
        """

    @abstractmethod
    def others(self) -> Iterator[Rearrangement]:
        """Every rearrangement but the one that changes nothing: `count` - 1 of them."""

    @abstractmethod
    def keeping(self, atoms: np.ndarray) -> Exchange:
        """The subgroup that keeps every row in its atom; the exchange itself where all of it
        does.
        """

    @abstractmethod
    def stays(self, kept: Exchange, targets: np.ndarray) -> float:
        """How alike two labelings of one coset of the subgroup `kept` are: the share of the
        targets' (n, t) variance that its rearrangements leave in place, from 0 to 1.
        """

    def paired(self, atoms: np.ndarray) -> Exchange:
        """The same rearrangements, of labels and atoms together: `count` is then the number of
        distinct pairs.
        """
        return self


@dataclass(frozen=True)
class LabelExchange(Exchange):
    """Labels move freely within each block: those of rows, or of `units` of rows.

    Units (groups of rows) trade the sequence of their labels, in row order, with units of equal
    size; units of one label each may trade it whatever their sizes. The generator is used as
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

    def orders(self, keys: Keys, numbers: np.ndarray, like: Array) -> Rearrangement:
        if self.units is None:
            return Rearrangement(self._shuffle(keys, numbers, like))
        sources = self._shuffle(keys, numbers, np.empty(0))
        return stacked([self._of(source) for source in sources], like)

    @cached_property
    def _shuffle(self) -> BlockShuffle:
        block_of_unit = np.empty(len(self.labels), dtype=np.int64)
        for number, block in enumerate(self.blocks):
            block_of_unit[block] = number
        return BlockShuffle(block_of_unit)

    def _of(self, source: np.ndarray) -> Rearrangement:
        if self.units is None:
            return Rearrangement(source)
        indices = np.empty(sum(map(len, self.units)), dtype=np.intp)
        for rows, other in zip(self.units, source, strict=True):
            lent = self.units[other]
            indices[rows] = lent if len(lent) == len(rows) else lent[0]
        return Rearrangement(indices)

    @cached_property
    def count(self) -> int:
        return math.prod(_multinomial(self.labels[block]) for block in self.blocks)

    def others(self) -> Iterator[Rearrangement]:
        for arrangement in product(*(_arrangements(self.labels[block]) for block in self.blocks)):
            source = np.arange(len(self.labels))
            for block, order in zip(self.blocks, arrangement, strict=True):
                source[block] = block[order]
            if not np.array_equal(self.labels[source], self.labels):
                yield self._of(source)

    def _numbers(self, atoms: np.ndarray) -> np.ndarray:
        """A number for the atoms of every row, or for those of every unit in row order."""
        if self.units is None:
            return atoms
        return first_seen([tuple(atoms[rows]) for rows in self.units])

    def keeping(self, atoms: np.ndarray) -> LabelExchange:
        numbers = self._numbers(atoms)
        parts = parted(self.blocks, numbers)
        return self if len(parts) == len(self.blocks) else replace(self, blocks=parts)

    def paired(self, atoms: np.ndarray) -> LabelExchange:
        pairs = zip(self.labels.tolist(), self._numbers(atoms).tolist(), strict=True)
        return replace(self, labels=first_seen(list(pairs)))

    def stays(self, kept: Exchange, targets: np.ndarray) -> float:
        """1 - (squares within the blocks of `kept`)/(squares within the blocks): what the means of
        the smaller blocks explain. Of targets that do not vary, by the number of blocks.
        """
        if kept is self or not isinstance(kept, LabelExchange):
            return 0.0
        if self.units is not None:
            targets = np.stack([targets[rows].mean(axis=0) for rows in self.units])
        before, after = (
            sum(float(np.sum((targets[b] - targets[b].mean(axis=0)) ** 2)) for b in part.blocks)
            for part in (self, kept)
        )
        if before <= 1e-12 * max(1.0, float(np.sum(targets**2))):
            moving = sum(len(block) - 1 for block in self.blocks)
            return (len(kept.blocks) - len(self.blocks)) / max(moving, 1)
        return 1.0 - after / before


@dataclass(frozen=True)
class TurnExchange(Exchange):
    """The labels of each block turn round in a circle: block i can be turned in `n_turns[i]` ways.

    By any number of places for series whose neighboring rows resemble each other: the shift keeps
    that, and breaks only the alignment with X. By half for units of two classes, those of one
    class before those of the other: the classes swap names. `signs`: the numbers of a block change
    sign instead, or do not.
    """

    n_samples: int
    blocks: Sequence[np.ndarray]
    n_turns: Sequence[int]
    signs: bool = False

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        return self._of(rng.randint(np.array(self.n_turns, dtype=int)))

    def _of(self, turns: Iterable[int]) -> Rearrangement:
        indices, signs = np.arange(self.n_samples), np.ones(self.n_samples)
        for rows, turn, most in zip(self.blocks, turns, self.n_turns, strict=True):
            indices[rows] = np.roll(rows, turn * len(rows) // most)
            signs[rows] = -1.0 if turn else 1.0
        if self.signs:
            return Rearrangement(np.arange(self.n_samples), signs)
        return Rearrangement(indices)

    @property
    def count(self) -> int:
        return math.prod(self.n_turns)

    def others(self) -> Iterator[Rearrangement]:
        return (self._of(turns) for turns in islice(product(*map(range, self.n_turns)), 1, None))

    def keeping(self, atoms: np.ndarray) -> TurnExchange:
        """Numbers change sign where they are; pairs swap inside one atom; series turn if all do."""
        turns = zip(self.blocks, self.n_turns, strict=True)
        kept = [
            (rows, most)
            for rows, most in turns
            if self.signs or np.array_equal(np.roll(atoms[rows], len(rows) // most), atoms[rows])
        ]
        if len(kept) == len(self.blocks):
            return self
        if set(self.n_turns) != {2}:
            kept = []
        return replace(self, blocks=[rows for rows, _ in kept], n_turns=[2] * len(kept))

    def stays(self, kept: Exchange, targets: np.ndarray) -> float:
        """The share of the rows whose blocks do not turn."""
        moving = sum(map(len, kept.blocks)) if isinstance(kept, TurnExchange) else 0
        return 1.0 - moving / self.n_samples


@dataclass(frozen=True, eq=False)
class Draw:
    """A rearrangement by its index: σ∘τ, labels reordered by the τ of an exchange, then moved by σ.
    Computed on demand, alone or with others (`drawn_orders`).
    """

    exchange: Exchange
    keys: Keys
    number: int
    sigma: np.ndarray | None = None

    @cached_property
    def _alone(self) -> Rearrangement:
        return drawn_orders([self], np.empty(0))

    @property
    def indices(self) -> np.ndarray:
        return np.asarray(to_numpy(self._alone.indices)[0])

    @property
    def signs(self) -> np.ndarray | None:
        return None if self._alone.signs is None else self._alone.signs[0]


def drawn_orders(each: Sequence[Rearrangement | Draw], like: Array) -> Rearrangement:
    """All of them together, on the device of `like`; signs, if there are any, need no σ."""
    first, draws = each[0], [draw for draw in each if isinstance(draw, Draw)]
    if not isinstance(first, Draw) or len(draws) < len(each):
        return stacked(each, like)
    xp, numbers = namespace(like), np.array([draw.number for draw in draws])
    tau, parts = first.exchange.orders(first.keys, numbers, like), []
    for _, run in spans([id(draw.sigma) for draw in draws]):
        part, sigma = tau.indices[run, :], draws[run.start].sigma
        moved = None if sigma is None else asarray_like(sigma, like, dtype=xp.int64)
        parts.append(part if moved is None else xp.take(part, moved, axis=1))
    return Rearrangement(parts[0] if len(parts) == 1 else xp.concat(parts, axis=0), tau.signs)


def stacked(each: Sequence[Any], like: Array) -> Rearrangement:
    """Rearrangements that were made on the host, where they are wanted; some may have no signs."""
    indices = np.stack([one.indices for one in each])
    signs = None
    if any(one.signs is not None for one in each):
        ones = np.ones(indices.shape[1])
        signs = np.stack([ones if one.signs is None else one.signs for one in each])
    if not is_numpy(like):
        indices = asarray_like(indices, like, dtype=namespace(like).int64)
    return Rearrangement(indices, signs)


def spans(values: Sequence[Any]) -> Iterator[tuple[Any, slice]]:
    """Runs of the same value, and where they are."""
    start = 0
    for value, same in groupby(values):
        stop = start + len(list(same))
        yield value, slice(start, stop)
        start = stop


def parted(blocks: Sequence[np.ndarray], numbers: np.ndarray) -> list[np.ndarray]:
    """Blocks divided into sets with equal numbers."""
    return [block[part] for block in blocks for part in blocks_of(len(block), numbers[block])]


def blocks_of(n_samples: int, *names: np.ndarray | None) -> list[np.ndarray]:
    """The sets of rows that have all their names in common, ordered by the first, then the next.

    Without names, all rows.
    """
    given = [np.zeros(n_samples, dtype=int), *(numbered(A) for A in names if A is not None)]
    number = np.unique(np.stack(given), axis=1, return_inverse=True)[1].reshape(-1)
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])


def numbered(names: np.ndarray) -> np.ndarray:
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def first_seen(names: list[tuple[int, ...]]) -> np.ndarray:
    """Names numbered in the order in which they first occur."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=int)


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
