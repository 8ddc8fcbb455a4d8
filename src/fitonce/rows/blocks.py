"""Rows in blocks, wherever they are stored: `map` a function over them, `reduce` its results,
`take` some of the rows.

`ArrayRows` cuts an array in memory (or memory-mapped) into blocks. `BlockRows` reads them from a
source that yields them, again for every pass. `DaskRows`, in its own module, sends the function to
the partitions instead.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj

from ..core.arrays import Array, asarray_like, is_numpy, namespace, take, to_numpy
from ..core.rows import Rows, check_magnitude, chosen, dense_like


class SteppedRows(Rows):
    """Rows that are processed at most `step` at a time."""

    step: int

    def with_step(self, step: int) -> Self:
        other = copy(self)
        other.step = step
        return other


class ArrayRows(SteppedRows):
    """Rows of an array (NumPy, memory-mapped, sparse, torch, CuPy), `step` at a time."""

    def __init__(self, X: Array, step: int) -> None:
        self.X, self.step = X, step
        self.n_samples, self.n_features = int(X.shape[0]), int(X.shape[1])

    @property
    def like(self) -> Array:
        return dense_like(self.X)

    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        starts = range(0, self.n_samples, self.step)
        stops = [*starts[1:], self.n_samples]
        blocks = (_float64(self.X[i:j, :]) for i, j in zip(starts, stops, strict=True))
        return mapped(function, blocks, per_row)

    def take(self, rows: np.ndarray) -> Array:
        return _float64(take(self.X, rows))

    def _subset(self, rows: np.ndarray) -> ArrayRows:
        return ArrayRows(take(self.X, rows), self.step)


def _float64(block: Array) -> Array:
    return np.asarray(block, dtype=np.float64) if is_numpy(block) else block


class SameRows:
    """Checks that every pass over a source yields the same rows in the same order.

    A running checksum of the rows so far is stored at the end of each block, and compared if a
    block of a later pass ends there. The last row ends a block in every pass, so the check does
    not depend on how the source is cut. Cost: a few tenths of a nanosecond per byte.
    """

    def __init__(self, name: str, advice: str) -> None:
        self.name, self.advice = name, advice
        self.sums: dict[int, int] = {}

    def checked(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The blocks of one pass; raises an error as soon as they differ."""
        so_far, total = 0, 0
        for X in blocks:
            so_far, total = so_far + len(X), checksum(X, total)
            self.compare(so_far, total, f"within its first {so_far} rows")
            yield X

    def compare(self, place: int, total: int, where: str) -> None:
        """Refuse a checksum other than that of an earlier pass at the same place."""
        if self.sums.setdefault(place, total) != total:
            raise ValueError(
                f"{self.name} returned different rows than before, {where}: every pass must return "
                "the same rows in the same order, so that rows and targets belong together. "
                f"{self.advice}"
            )


def checksum(X: np.ndarray, start: int = 0) -> int:
    """CRC-32 of the rows as float64, continuing from `start`."""
    return zlib.crc32(np.ascontiguousarray(X).data, start)


STEADY_BLOCKS = (
    "If the source shuffles or draws rows, use a fixed seed, or pass an iterator, which is read "
    "once and copied: open_rows(iter(blocks)). If a file has changed, open it again."
)


class BlockRows(SteppedRows):
    """Rows read block by block, again for every pass, from a function that starts over.

    Checksums verify that all passes are the same.

    Parameters
    ----------
    blocks : callable
        Returns a new iterator over blocks of features (k, n_features): numeric arrays with any
        number of rows.
    n_samples : int, optional
        The number of rows; if not given, an extra pass counts them.
    name : str
        Name of the source in error messages.
    same : SameRows, optional
        Checksums of an earlier pass.
    """

    def __init__(
        self,
        blocks: Callable[[], Iterable[Any]],
        n_samples: int | None = None,
        *,
        name: str = "the source",
        step: int = 4096,
        same: SameRows | None = None,
    ) -> None:
        self.blocks, self.name, self.step = blocks, name, step
        self.same = SameRows(name, STEADY_BLOCKS) if same is None else same
        first = next(iter(self._checked_blocks()), None)
        if first is None:
            raise ValueError(f"{name} has no rows: there is nothing to fit.")
        self.n_features = int(first.shape[1])
        self.n_samples = (
            sum(len(block) for block in self._checked_blocks()) if n_samples is None else n_samples
        )

    def _checked_blocks(self) -> Iterator[np.ndarray]:
        """The nonempty blocks, each validated, and the same in every pass."""
        return self.same.checked(self._blocks_with_rows())

    def _blocks_with_rows(self) -> Iterator[np.ndarray]:
        """The nonempty blocks; errors name the block."""
        blocks, width = self.blocks(), getattr(self, "n_features", None)
        done, start = 0, 0
        try:
            for block in blocks:
                X = checked_block(block, f"block {done} of {self.name} (from row {start})", width)
                width, done, start = X.shape[1], done + 1, start + len(X)
                if len(X):
                    yield X
        except FileNotFoundError:
            raise
        except (OSError, EOFError) as error:
            raise ValueError(
                f"{self.name} could not be read beyond its first {done} blocks: {error}. The file "
                "may be truncated."
            ) from error

    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        return mapped(function, self._blocks_as_before(), per_row)

    def _blocks_as_before(self) -> Iterator[np.ndarray]:
        """Blocks of `step` rows, with the same total number of rows as before."""
        count = 0
        for X in rechunked(self._checked_blocks(), self.step):
            count += len(X)
            if count > self.n_samples:
                break
            yield X
        if count != self.n_samples:
            raise ValueError(
                f"{self.name} returned a different number of rows than before ({self.n_samples} "
                "expected): it must yield the same rows in every pass. Was the file changed or "
                "truncated in the meantime?"
            )

    def _subset(self, rows: np.ndarray) -> Rows:
        if np.any(np.diff(rows) <= 0):  # another order: these rows have to be in memory
            return ArrayRows(self.take(rows), self.step)
        mask = np.zeros(self.n_samples, dtype=bool)
        mask[rows] = True
        return BlockRows(
            lambda: self.map(chosen, mask[:, None]), len(rows), name=self.name, step=self.step
        )


def mapped(
    function: Callable[..., Any], blocks: Iterable[Any], per_row: Sequence[Array | None]
) -> Iterator[Any]:
    """function(block, *parts of per_row) for consecutive blocks of rows."""
    start = 0
    for block in blocks:
        rows = slice(start, start + block.shape[0])
        yield function(block, *[None if part is None else part[rows, ...] for part in per_row])
        start = rows.stop


def checked_block(block: Any, where: str, n_features: int | None) -> Array:
    """A block as float64 (k, n_features) on its own device, or an error that says which block is
    wrong and why.
    """
    if sp.issparse(block):
        raise TypeError(
            f"{where} is a sparse matrix: pass blocks as dense arrays (block.toarray()), or pass "
            "the whole matrix to fit."
        )
    try:
        X = _as_numbers(block)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where} is not numeric: {error}. Encode or leave out such columns."
        ) from error
    if X.ndim != 2:
        raise ValueError(
            f"{where} must be two-dimensional, rows by features, got shape {X.shape} instead."
        )
    if n_features is not None and X.shape[1] != n_features and len(X):
        raise ValueError(
            f"{where} has {X.shape[1]} features, but earlier blocks have {n_features}."
        )
    xp = namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        rows, columns = np.nonzero(~np.isfinite(to_numpy(X)))
        raise ValueError(
            f"{where} contains NaN or infinity, first in its row {rows[0]} (counted from 0), "
            f"column {columns[0]}: the kernel is not defined there. Impute or leave out such rows "
            "first."
        )
    check_magnitude(X, where)
    return X


def _as_numbers(block: Any) -> Array:
    if is_array_api_obj(block) and not is_numpy(block):
        return asarray_like(block, block)
    return np.asarray(block, dtype=np.float64)


def rechunked(blocks: Iterable[Array], step: int) -> Iterator[Array]:
    """The same rows in blocks of `step`; the last one may be shorter.

    Sizes do not depend on how the source is cut.
    """
    rest: Array = None
    for block in blocks:
        some = rest is not None and len(rest)
        rest = namespace(block).concat([rest, block], axis=0) if some else block
        while len(rest) >= step:
            yield rest[:step, :]
            rest = rest[step:, :]
    if rest is not None and len(rest):
        yield rest
