r"""Random numbers by position, not by order of use: the same on every device and in every order.

The number at position j of a stream is the j-th of the generator SplitMix64 (Steele, Lea and Flood
2014), which can be computed directly, in arithmetic modulo 2⁶⁴:

    z = seed + (j + 1)·γ          γ = 0x9E3779B97F4A7C15
    z = (z ⊕ (z ≫ 30))·0xBF58476D1CE4E5B9
    z = (z ⊕ (z ≫ 27))·0x94D049BB133111EB
    z = z ⊕ (z ≫ 31)

Sorting rows by such keys puts them in a random order, so labels can be drawn on the device of the
data, thousands of orders at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.arrays import Array, asarray_like, index_like, namespace, sorted_rows

BITS = 63  # of a key: it must not be negative


def _signed(value: int) -> int:
    """A number modulo 2⁶⁴ as a 64-bit integer with a sign."""
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


GAMMA = _signed(0x9E3779B97F4A7C15)
FACTORS = (30, _signed(0xBF58476D1CE4E5B9)), (27, _signed(0x94D049BB133111EB))


def _shifted(z: Array, places: int) -> Array:
    """z ≫ places of numbers without a sign."""
    shifted = z >> places
    shifted &= (1 << (64 - places)) - 1
    return shifted


@dataclass(frozen=True)
class Keys:
    """A stream of random 64-bit numbers."""

    seed: int

    def at(self, places: Array) -> Array:
        """The numbers at some places (int64), where those live."""
        z = places * GAMMA
        z += _signed(GAMMA + self.seed)
        for shift, factor in FACTORS:  # in place: a block of labelings has millions of numbers
            z ^= _shifted(z, shift)
            z *= factor
        z ^= _shifted(z, 31)
        return z

    def rows(self, numbers: np.ndarray, width: int, like: Array) -> Array:
        """`width` numbers for each of the given rows of a table, (B, width), on the device of
        `like`.
        """
        xp = namespace(like)
        first = asarray_like(np.asarray(numbers, dtype=np.int64) * width, like, dtype=xp.int64)
        return self.at(first[:, None] + asarray_like(np.arange(width), like, dtype=xp.int64))


@dataclass(frozen=True)
class BlockShuffle:
    """Random orders of units that stay inside their blocks."""

    block_of_unit: np.ndarray

    @cached_property
    def _in_blocks(self) -> np.ndarray:
        return np.argsort(self.block_of_unit, kind="stable")

    def __call__(self, keys: Keys, numbers: np.ndarray, like: Array) -> Array:
        """Sources (B, n): which unit each unit receives from, on the device of `like`.

        What is sorted has the number of the block in its first bits and the unit's place in its
        last ones, so that no two are equal, and the places come out of the sorted numbers.
        """
        xp = namespace(like)
        blocks, units = self.block_of_unit[self._in_blocks], self._in_blocks
        n = len(units)
        in_front, behind = (max(1, int(size).bit_length()) for size in (blocks.max(initial=0), n))
        fixed = (blocks.astype(np.int64) << (BITS - in_front)) + np.arange(n)
        random = _shifted(keys.rows(numbers, n, like), in_front + 1)
        random &= -1 << behind
        random |= asarray_like(fixed, like, dtype=xp.int64)
        order = sorted_rows(random)
        order &= (1 << behind) - 1
        if np.all(np.diff(units) == 1):  # blocks one after the other, or a single one
            return order
        place = np.empty(n, dtype=np.int64)
        place[units] = np.arange(n)
        order = xp.take(order, index_like(place, like), axis=1)
        received = xp.take(index_like(units, like), xp.reshape(order, (-1,)), axis=0)
        return xp.reshape(received, order.shape)
