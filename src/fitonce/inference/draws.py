"""Rearrangements of labels by index: computed when and where they are needed, many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from .exchange import Exchange, Orders, Rearrangement, stacked_orders
from .keys import Keys


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
    def _orders(self) -> Orders:
        return drawn_orders([self], np.empty(0))

    @property
    def indices(self) -> np.ndarray:
        return np.asarray(to_numpy(self._orders.indices)[0])

    @property
    def signs(self) -> np.ndarray | None:
        return None if self._orders.signs is None else self._orders.signs[0]


def drawn_orders(draws: Sequence[Rearrangement | Draw], like: Array) -> Orders:
    """All of them together, on the device of `like`; signs, if there are any, need no σ."""
    first = draws[0]
    one_source = isinstance(first, Draw) and all(
        isinstance(draw, Draw) and draw.exchange is first.exchange and draw.keys == first.keys
        for draw in draws
    )
    if not one_source:
        return stacked_orders(draws, like)
    numbers = np.array([draw.number for draw in draws])  # type: ignore[union-attr]
    tau = first.exchange.orders(first.keys, numbers, like)  # type: ignore[union-attr]
    xp, parts = namespace(like), []
    for start, stop, sigma in _runs([draw.sigma for draw in draws]):  # type: ignore[union-attr]
        part = tau.indices[start:stop, :]
        moved = None if sigma is None else asarray_like(sigma, like, dtype=xp.int64)
        parts.append(part if moved is None else xp.take(part, moved, axis=1))
    return Orders(parts[0] if len(parts) == 1 else xp.concat(parts, axis=0), tau.signs)


def _runs(values: Sequence[Any]) -> Iterator[tuple[int, int, Any]]:
    """Runs of the same object."""
    start = 0
    for number in range(1, len(values) + 1):
        if number == len(values) or values[number] is not values[start]:
            yield start, number, values[start]
            start = number
