"""Rows in memory, in blocks small enough for a cache or a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core._arrays import Array, is_numpy, take

HOST_ELEMENTS, DEVICE_ELEMENTS = 1 << 21, 1 << 27  # features computed at a time: 16 MiB, and 1 GiB on a device


def block_rows(n_features: int, host: bool = True) -> int:
    """Rows of a block whose features have so many columns."""
    return max(64, (HOST_ELEMENTS if host else DEVICE_ELEMENTS) // max(n_features, 1))


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array (NumPy, memory-mapped, sparse, torch, CuPy), `step` at a time."""

    X: Array
    step: int

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def like(self) -> Array:
        return np.empty(0) if sp.issparse(self.X) else self.X

    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        """function(block, *parts of per_row), block by block."""
        for start in range(0, self.n_samples, self.step):
            rows = slice(start, min(start + self.step, self.n_samples))
            yield function(self._block(rows), *[None if part is None else part[rows, ...] for part in per_row])

    def _block(self, rows: slice) -> Array:
        block = self.X[rows] if sp.issparse(self.X) else self.X[rows, :]
        return np.asarray(block, dtype=np.float64) if is_numpy(block) else block

    def take(self, rows: np.ndarray) -> Array:
        block = take(self.X, rows)
        return np.asarray(block, dtype=np.float64) if is_numpy(block) else block
