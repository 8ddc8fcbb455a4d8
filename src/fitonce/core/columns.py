"""Many targets, a block of columns at a time.

Targets (n, t) are not copied as a whole: they may be in memory, in a memory-mapped file, or on a
device. Only the current block is copied to the device that does the work.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from array_api_compat import device

from .arrays import Array, is_numpy, namespace, on_gpu, take, to_numpy
from .memory import memory_of
from .rows import check_magnitude
from .spectrum import row_blocks

COLUMN_ELEMENTS = 1 << 23  # of a block with what is made of it: 64 MiB
DEVICE_SHARE = 8  # a block takes one part in so many of the free memory of a device
LEAST = 16  # columns


@dataclass(frozen=True)
class Columns:
    """Targets of which some rows train: `rows` of `values` (n, t), or all of them where None.

    `single`: float32 values are processed in float32 where that is offered, not in float64. `sums`
    (t,) of all values, by which they are known again.
    """

    values: Any
    rows: np.ndarray | None = None
    single: bool = False
    sums: np.ndarray | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, int]:
        n, t = (int(size) for size in self.values.shape)
        return (n if self.rows is None else len(self.rows)), t

    @property
    def n_targets(self) -> int:
        return self.shape[1]

    def take(self, rows: np.ndarray) -> Columns:
        """Some of the rows that train."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def precision(self, like: Array) -> Any:
        """The data type that blocks have beside `like`: float32 where that is offered and enough,
        else float64.
        """
        xp, own = namespace(like), namespace(self.values)
        return xp.float32 if self.single and self.values.dtype == own.float32 else xp.float64

    def block(self, columns: slice, like: Array, dtype: Any = None) -> Array:
        """Some of the columns (n, T), on the device of `like`: a copy, in float64 unless told."""
        part = self.values[:, columns]
        part = part if self.rows is None else take(part, self.rows)
        xp = namespace(like)
        dtype = xp.float64 if dtype is None else dtype
        same = not is_numpy(part) and not is_numpy(like) and namespace(part) is xp
        values = part if same else np.ascontiguousarray(to_numpy(part))
        return xp.asarray(values, dtype=dtype, device=device(like), copy=True)

    def whole(self, like: Array) -> Array:
        """All columns, in float64."""
        return self.block(slice(0, self.n_targets), like)

    def checked(self) -> Columns:
        """Refuse what is not finite, too large to square, or not what it was before."""
        sums = []
        step = columns_at_once(int(self.values.shape[0]), self.values)
        for columns in row_blocks(self.n_targets, step):
            part = self.values[:, columns]
            xp = namespace(part)
            real = xp.isdtype(part.dtype, "real floating")
            numbers = part if real else xp.astype(part, xp.float64)
            total = xp.sum(numbers, axis=0, dtype=xp.float64)
            if not bool(xp.all(xp.isfinite(total))):
                _refuse(to_numpy(numbers), columns.start)
            check_magnitude(numbers, "y", "Scale the targets")
            sums.append(to_numpy(total))
        found = np.concatenate(sums)
        if self.sums is not None and not np.array_equal(found, self.sums):
            raise ValueError(
                "the targets have changed since the fit, which did not copy them: fit again, and "
                "do not change the array or file of y in between."
            )
        return replace(self, sums=found)


def _refuse(values: np.ndarray, first: int) -> None:
    """Say which target is not finite; a sum may also overflow where none is."""
    bad = np.flatnonzero(~np.all(np.isfinite(values), axis=0))
    if len(bad):
        what = "NaN" if np.isnan(values[:, bad[0]]).any() else "infinity"
        raise ValueError(
            f"Input y contains {what}, first in target number {first + bad[0]}: leave out "
            "such targets, or impute them. Rows without targets can be given zero weight."
        )


def columns_at_once(per_column: int, like: Array) -> int:
    """How many columns a block has, given how many float64 numbers are held for each of them."""
    memory = memory_of(like) if on_gpu(like) else None
    room = 0 if memory is None else memory.free // 8 // DEVICE_SHARE
    return max(LEAST, max(COLUMN_ELEMENTS, room) // max(per_column, 1))
