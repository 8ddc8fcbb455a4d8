"""Rows in blocks, wherever they are: `map` a function over them, `reduce` its results, `take` some.

The functions are plain and see one block, so that the same code serves rows in memory, in files and
on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import Array, is_numpy, namespace, take, to_numpy

LARGEST = 1e150  # of a value: beyond, the squares that kernels and losses are made of overflow
# features at a time: on the host 4 MiB, which a cache holds, with rows enough for products at full
# speed (benchmarks/timings.py); 1 GiB on a device
HOST_ELEMENTS, LEAST_ROWS, DEVICE_ELEMENTS = 1 << 19, 256, 1 << 27


class Rows(ABC):
    """The interface of all sources of rows."""

    n_samples: int
    n_features: int
    names: list[str] | None = None  # of the columns, where they have names
    y: np.ndarray | None = None  # targets that came with the rows
    sample_weight: np.ndarray | None = None
    remote: bool = False  # whether others do the work, so that few numbers should come back

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n_samples, self.n_features)

    @property
    def like(self) -> Array:
        """An array on the device of the results."""
        return np.empty(0)

    @abstractmethod
    def with_step(self, step: int) -> Rows:
        """The same rows in blocks of at most this many."""

    @abstractmethod
    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        """function(block, *parts of per_row) for every block, in the order of the rows.

        Arrays with n rows are cut to the rows of the block.
        """

    def reduce(
        self, function: Callable[..., Any], merge: Callable[[Any, Any], Any], *per_row: Array | None
    ) -> Any:
        """The results of `map`, merged two by two."""
        return reduce(merge, self.map(function, *per_row))

    def take(self, rows: np.ndarray) -> Array:
        """Some of the rows, in the given order, in memory."""
        mask = np.zeros(self.n_samples, dtype=bool)
        mask[rows] = True
        found = np.concatenate(list(self.map(chosen, mask[:, None])))
        position = np.cumsum(mask) - 1
        return found[position[np.asarray(rows, dtype=np.intp)]]

    def subset(self, rows: np.ndarray) -> Rows:
        """A source of some of the rows, with their names, targets and weights."""
        rows = np.asarray(rows)
        part = self._subset(rows)
        part.names = self.names
        part.y = None if self.y is None else self.y[rows]
        part.sample_weight = None if self.sample_weight is None else self.sample_weight[rows]
        return part

    @abstractmethod
    def _subset(self, rows: np.ndarray) -> Rows: ...


def chosen(X: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The rows of a block that are wanted."""
    return np.asarray(to_numpy(X)[mask[:, 0]])


def check_magnitude(values: Array, what: str, scaled: str = "Scale the features") -> None:
    """Refuse numbers whose squares float64 does not hold; no copy is made."""
    xp = namespace(values)
    largest = max(float(xp.max(values)), -float(xp.min(values))) if 0 not in values.shape else 0.0
    if largest > LARGEST:
        raise ValueError(
            f"{what} has values as large as {largest:.1e}: kernels and losses use squares, "
            f"which overflow float64 here. {scaled} or change the unit; if they are a code "
            "for missing values, leave them out."
        )


def is_rows(X: Any) -> bool:
    """Whether X is a source of rows, as `open_rows` returns it."""
    return isinstance(X, Rows)


def on_host(X: Any) -> bool:
    """Whether work on X happens in this machine's memory: NumPy, sparse and rows in blocks."""
    return sp.issparse(X) or is_rows(X) or is_numpy(X)


def dense_like(X: Any) -> Array:
    """An array where dense results of work on X live."""
    return np.empty(0) if sp.issparse(X) or is_rows(X) else X


def rows_at(X: Any, rows: np.ndarray) -> Any:
    """Some rows, in memory."""
    return X.take(rows) if is_rows(X) else take(X, rows)


def block_rows(n_features: int, host: bool = True) -> int:
    """Rows of a block whose features have so many columns."""
    return max(LEAST_ROWS, (HOST_ELEMENTS if host else DEVICE_ELEMENTS) // max(n_features, 1))
