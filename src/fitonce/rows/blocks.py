"""Rows in blocks, wherever they are: `map` a function over them, `reduce` its results, `take` some
of the rows.

`ArrayRows` cuts an array in memory (or memory-mapped) into blocks; `BlockRows` reads them from
whatever yields them, again for every pass; `DaskRows`, in a module of its own, sends the function
to the partitions instead. The functions are plain and see one block, so the same code serves all
three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, is_numpy, take
from ..core.rows import Rows, chosen, dense_like


class ArrayRows(Rows):
    """Rows of an array (NumPy, memory-mapped, sparse, torch, CuPy), `step` at a time."""

    def __init__(self, X: Array, step: int) -> None:
        self.X, self.step = X, step
        self.n_samples, self.n_features = int(X.shape[0]), int(X.shape[1])

    @property
    def like(self) -> Array:
        return dense_like(self.X)

    def with_step(self, step: int) -> ArrayRows:
        return ArrayRows(self.X, step)

    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        for start in range(0, self.n_samples, self.step):
            rows = slice(start, min(start + self.step, self.n_samples))
            yield function(
                self._block(rows), *[None if part is None else part[rows, ...] for part in per_row]
            )

    def _block(self, rows: slice) -> Array:
        block = self.X[rows] if sp.issparse(self.X) else self.X[rows, :]
        return np.asarray(block, dtype=np.float64) if is_numpy(block) else block

    def take(self, rows: np.ndarray) -> Array:
        block = take(self.X, rows)
        return np.asarray(block, dtype=np.float64) if is_numpy(block) else block

    def _subset(self, rows: np.ndarray) -> ArrayRows:
        return ArrayRows(take(self.X, rows), self.step)


class BlockRows(Rows):
    """Rows read block by block, anew for every pass, from a function that starts over.

    Parameters
    ----------
    blocks : callable
        Returns a fresh iterator over blocks of features (k, n_features): arrays of numbers, of any
        number of rows.
    n_samples : int, optional
        The number of rows; counted in a pass of its own if not given.
    name : str
        What errors call the source.
    """

    def __init__(
        self,
        blocks: Callable[[], Iterable[Any]],
        n_samples: int | None = None,
        *,
        name: str = "the source",
        step: int = 4096,
    ) -> None:
        self.blocks, self.name, self.step = blocks, name, step
        first = next(iter(self._checked_blocks()), None)
        if first is None:
            raise ValueError(f"{name} has no rows: there is nothing to learn from.")
        self.n_features = int(first.shape[1])
        self.n_samples = (
            sum(len(block) for block in self._checked_blocks()) if n_samples is None else n_samples
        )

    def with_step(self, step: int) -> BlockRows:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.step = step
        return other

    def _checked_blocks(self) -> Iterator[np.ndarray]:
        """The blocks that have rows, each checked; errors name the block."""
        width = getattr(self, "n_features", None)
        start = 0
        for number, block in enumerate(_numbered_errors(self.blocks(), self.name)):
            X = checked_block(block, f"block {number} of {self.name} (from row {start})", width)
            width = X.shape[1]
            start += len(X)
            if len(X):
                yield X

    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        start = 0
        for X in rechunked(self._checked_blocks(), self.step):
            rows = slice(start, start + len(X))
            start = rows.stop
            if start > self.n_samples:
                break
            yield function(X, *[None if part is None else part[rows] for part in per_row])
        if start != self.n_samples:
            raise ValueError(
                f"{self.name} gave another number of rows than before ({self.n_samples} "
                "expected): it must yield the same rows at every "
                "pass. Was the file changed or cut short in the meantime?"
            )

    def _subset(self, rows: np.ndarray) -> Rows:
        if np.any(np.diff(rows) <= 0):  # another order: those rows have to be in memory
            return ArrayRows(self.take(rows), self.step)
        mask = np.zeros(self.n_samples, dtype=bool)
        mask[rows] = True
        return BlockRows(
            lambda: self.map(chosen, mask[:, None]), len(rows), name=self.name, step=self.step
        )


def _numbered_errors(blocks: Iterable[Any], name: str) -> Iterator[Any]:
    """The blocks; a failure to read one says which."""
    done = 0
    try:
        for block in blocks:
            yield block
            done += 1
    except (OSError, EOFError) as error:
        raise ValueError(
            f"{name} could not be read beyond its first {done} blocks: {error}. The file may be "
            "cut short."
        ) from error


def checked_block(block: Any, where: str, n_features: int | None) -> np.ndarray:
    """A block as float64 (k, n_features), or an error that says where it is and what is wrong with
    it.
    """
    if sp.issparse(block):
        raise TypeError(
            f"{where} is a sparse matrix: pass blocks as dense arrays (block.toarray()), or the "
            "whole matrix to fit."
        )
    try:
        X = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where} does not consist of numbers: {error}. Encode or leave out such columns."
        ) from error
    if X.ndim != 2:
        raise ValueError(
            f"{where} must be two-dimensional, rows by features, got shape {X.shape} instead."
        )
    if n_features is not None and X.shape[1] != n_features and len(X):
        raise ValueError(f"{where} has {X.shape[1]} features, the blocks before it {n_features}.")
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ValueError(
            f"{where} contains NaN or infinity, first in its row {row} (counted from 0), column "
            f"{int(np.flatnonzero(~np.isfinite(X[row]))[0])}: a kernel has no value there. Impute "
            "or leave out such rows before."
        )
    return X


def rechunked(blocks: Iterable[np.ndarray], step: int) -> Iterator[np.ndarray]:
    """The same rows in blocks of `step`, the last one shorter.

    Sizes do not depend on how the source is cut.
    """
    waiting: list[np.ndarray] = []
    count = 0
    for block in blocks:
        start = 0
        while count + len(block) - start >= step:
            stop = start + step - count
            yield np.concatenate([*waiting, block[start:stop]]) if waiting else block[start:stop]
            waiting, count, start = [], 0, stop
        if start < len(block):
            waiting.append(block[start:])
            count += len(block) - start
    if waiting:
        yield np.concatenate(waiting)
