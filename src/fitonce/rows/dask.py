"""Rows of Dask collections: functions are sent to the partitions, and only results come back.

Works for arrays and data frames with known or unknown partition sizes; features are never gathered.
If partitions are GPU arrays (CuPy), the work happens there, and the results are copied to the host.
Results are merged in a tree of fixed shape on the workers, so the outcome does not depend on which
worker finishes first, nor on workers that fail. A job is a function with bound arrays (landmarks,
coefficients), as a partial or a dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from ..core.arrays import Array, asarray_like, is_numpy, to_numpy
from ..core.rows import DEVICE_ELEMENTS, HOST_ELEMENTS
from .blocks import SameRows, SteppedRows, checked_block, checksum, mapped, rechunked

BRANCHES = 8  # results merged by one task
AT_ONCE = 64  # partitions whose results are fetched together
STEADY_PARTITIONS = (
    "Give random steps of the collection a seed, or keep its partitions in memory: X = X.persist()."
)


@dataclass(frozen=True)
class Gathered:
    """Results of some partitions, and the checksums of their rows by partition index."""

    results: list[Any]
    sums: dict[int, int]


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, data frame or series, without importing Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def _dask() -> Any:
    import dask

    return dask


def gathered(values: Any) -> Any:
    """Targets, weights and groups in memory; anything else unchanged."""
    return np.asarray(values.compute()) if is_dask(values) else values


class DaskRows(SteppedRows):
    """Partitions of a Dask array (rows by features), processed `step` rows at a time."""

    remote = True

    def __init__(self, X: Any, step: int = 4096) -> None:
        self.step = step
        names = list(getattr(X, "columns", []))
        self.names = (
            names if names and all(isinstance(name, str) for name in names) else None
        )  # only strings are names, as in scikit-learn
        array = _array(X)
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead: rows by features."
            )
        if any(np.isnan(size) for size in array.chunks[0]):
            array = array.compute_chunk_sizes()
        self.array = _with_whole_rows(array)
        self.n_samples, self.n_features = (int(size) for size in array.shape)
        if self.n_samples == 0:
            raise ValueError("the Dask collection has no rows: there is nothing to fit.")
        self.same = SameRows("the Dask collection", STEADY_PARTITIONS)

    def _tasks(
        self,
        function: Callable[..., Any],
        per_row: tuple[Array | None, ...],
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> list[Any]:
        """The `Gathered` of each partition, delayed; merged on the workers if `merge` is given."""
        job = _dask().delayed(partial(_in_steps, function, merge), pure=False)
        tasks, start = [], 0
        for number, (block, size) in enumerate(
            zip(self.array.to_delayed().ravel(), self.array.chunks[0], strict=True)
        ):
            rows = slice(start, start + int(size))
            parts = [None if part is None else part[rows] for part in per_row]
            tasks.append(job(block, parts, self.step, (int(size), self.n_features), number, start))
            start = rows.stop
        return tasks

    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        """A few partitions at a time, so that the results of all are never in memory together."""
        tasks = self._tasks(function, per_row)
        for start in range(0, len(tasks), AT_ONCE):
            for found in _dask().compute(*tasks[start : start + AT_ONCE]):
                yield from self._as_before(found)

    def reduce(
        self, function: Callable[..., Any], merge: Callable[[Any, Any], Any], *per_row: Array | None
    ) -> Any:
        merged = _dask().delayed(partial(_merged, merge), pure=False)
        level = self._tasks(function, per_row, merge)
        while len(level) > 1:
            level = [merged(level[i : i + BRANCHES]) for i in range(0, len(level), BRANCHES)]
        results = self._as_before(level[0].compute())
        return results[0] if results else None

    def _as_before(self, found: Gathered) -> list[Any]:
        """The results; raises an error if a partition has other rows than in an earlier pass."""
        for number, total in found.sums.items():
            self.same.compare(number, total, f"in partition {number}")
        return found.results

    def _subset(self, rows: np.ndarray) -> DaskRows:
        return DaskRows(self.array[rows], self.step)


def _array(X: Any) -> Any:
    return X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X


def _with_whole_rows(array: Any) -> Any:
    return array.rechunk({1: -1}) if array.numblocks[1] > 1 else array


def _in_steps(
    function: Callable[..., Any],
    merge: Callable[[Any, Any], Any] | None,
    block: Any,
    parts: list[Any],
    step: int,
    shape: tuple[int, int],
    number: int,
    start: int,
) -> Gathered:
    """The results of a partition, `step` rows at a time, so that its features need no more memory
    than those of a block.
    """
    where = f"partition {number} (from row {start})"
    X = checked_block(block, where, shape[1])
    if len(X) != shape[0]:
        raise ValueError(
            f"{where} has {len(X)} rows, but the collection announces {shape[0]}: targets and "
            "weights would be assigned to the wrong rows. Correct the chunks= of the collection, "
            "or let Dask count them: X.compute_chunk_sizes()."
        )
    sums = {number: checksum(to_numpy(X))}
    if len(X) == 0:
        return Gathered([], sums)
    step = step if is_numpy(X) else step * (DEVICE_ELEMENTS // HOST_ELEMENTS)
    results = mapped(sent(function, X), rechunked([X], step), [sent(part, X) for part in parts])
    if merge is None:
        return Gathered([brought(result) for result in results], sums)
    return Gathered([brought(reduce(merge, results))], sums)


def _merged(merge: Callable[[Any, Any], Any], parts: list[Gathered]) -> Gathered:
    """Several partitions merged: one result, or none if none of them has rows."""
    results = [result for part in parts for result in part.results if result is not None]
    sums = {number: total for part in parts for number, total in part.sums.items()}
    return Gathered([reduce(merge, results)] if results else [], sums)


def sent(value: Any, like: Array) -> Any:
    """A job, or arrays, with all real numbers on the device of `like`; indices and masks stay."""
    if is_numpy(like):
        return value

    def send(A: Any) -> Any:
        return asarray_like(A, like) if isinstance(A, np.ndarray) and A.dtype.kind == "f" else A

    return _converted(value, send)


def brought(value: Any) -> Any:
    """A result with all its arrays on the host."""
    return _converted(value, to_numpy)


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A value with `convert` applied to every array in it."""
    if is_array_api_obj(value):
        return convert(value)
    if isinstance(value, partial):
        arguments = [_converted(argument, convert) for argument in value.args]
        named = {name: _converted(one, convert) for name, one in value.keywords.items()}
        return partial(_converted(value.func, convert), *arguments, **named)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_converted(part, convert) for part in value)
    if isinstance(value, dict):
        return {name: _converted(part, convert) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{n: _converted(part, convert) for n, part in given.items()})
    return value


def apply_lazily(model: Any, method: str, X: Any) -> Any:
    """Apply a method of a fitted model to every partition of a Dask collection.

    Returns a Dask array, computed on demand.
    """
    array = _with_whole_rows(_array(X))
    function = partial(_call, model, method)
    small = function(np.zeros((1, array.shape[1])))
    columns = {"chunks": (array.chunks[0], small.shape[1:])} if small.ndim > 1 else {"drop_axis": 1}
    return array.map_blocks(function, dtype=small.dtype, **columns)


def _call(model: Any, method: str, block: Any) -> np.ndarray:
    """The output of the model for a partition, which may be empty."""
    rows = to_numpy(block) if len(block) else np.zeros((1, block.shape[1]))
    return np.asarray(getattr(model, method)(rows))[: len(block)]
