"""Tables in files and iterators of blocks as `Rows`.

Features stay in the file, which is read as record batches, from the start for every pass; targets
are read into memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..core.rows import Rows
from .blocks import STEADY_BLOCKS, ArrayRows, BlockRows, SameRows, checked_block, checksum

BATCH_ROWS = 65_536  # rows read from a file at a time
CSV_BLOCK_BYTES = 1 << 24
OPEN_AGAIN = "Do not change a file while it is in use, or open it again with open_rows()."
KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
}


def open_rows(
    source: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    columns: list[str] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Rows:
    """Open a file or an iterator of blocks as rows for ``fit`` and ``predict`` of an estimator with
    ``landmarks``.

    Parameters
    ----------
    source : path, array, callable, list or iterator
        A Parquet, Arrow/Feather or CSV/TSV file; a (memory-mapped) array; a function that returns a
        new iterator over blocks; a list of blocks; or an iterator, which is first copied to a
        temporary file. A block is X, (X, y) or (X, y, weights).
    target, weight : str, optional
        The columns of a file with the targets and the weights of the rows. They are read into
        memory.
    columns : list of str, optional
        The feature columns of a file; by default all others.
    batch_rows : int
        Number of rows to read from a file at a time.

    Returns
    -------
    Rows
        Has the attributes ``y`` and ``sample_weight`` if the source contains them.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import LeastSquaresSVC
    >>> from fitonce.rows import open_rows
    >>> rng = np.random.default_rng(0)
    >>> def blocks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(5):
    ...         X = rng.normal(size=(200, 2))
    ...         yield X, np.sign(X[:, 0] * X[:, 1])
    >>> rows = open_rows(blocks)
    >>> rows.shape
    (1000, 2)
    >>> model = LeastSquaresSVC(landmarks=50, random_state=0).fit(rows, rows.y)
    >>> print(f"{np.mean(np.sign(model.held_out_decision_) == rows.y):.2f}")
    0.98
    """
    if isinstance(source, Rows):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _file_rows(Path(source), target, weight, columns, batch_rows)
    if target is not None or weight is not None or columns is not None:
        raise ValueError(
            "target, weight and columns are names of columns in a file. For arrays and blocks, "
            "pass the targets as y, or with the blocks."
        )
    if isinstance(source, np.ndarray):
        if source.ndim != 2 or source.shape[0] == 0:
            raise ValueError(
                "an array of rows must be two-dimensional (rows by features) and not empty, got "
                f"shape {source.shape} instead."
            )
        return ArrayRows(source, batch_rows)
    if callable(source):
        return _block_rows(source)
    if isinstance(source, Iterator):
        return _spooled(source)
    if isinstance(source, Iterable):
        return _block_rows(lambda: source)
    raise TypeError(
        f"source must be a path, an array, or blocks of rows, got {type(source).__name__} instead."
    )


# ---- iterators -----------------------------------------------------------------------------------


def _parts(block: Any) -> tuple[Any, Any, Any]:
    """Features, targets and weights of a block."""
    if (
        isinstance(block, (tuple, list))
        and 1 <= len(block) <= 3
        and hasattr(block[0], "__len__")
        and np.ndim(block[0]) == 2
    ):
        return (*block, None, None)[:3]
    return block, None, None


def _block_rows(blocks: Callable[[], Iterable[Any]]) -> BlockRows:
    """One pass for the targets, the weights and the number of rows.

    The features are read again when they are needed.
    """
    same = SameRows("the source of the blocks", STEADY_BLOCKS)
    n, total = 0, 0

    def kept(X: np.ndarray) -> None:
        nonlocal n, total
        n, total = n + len(X), checksum(X, total)
        same.sums[n] = total

    columns = _read_once(blocks(), kept)
    features = lambda: (_parts(block)[0] for block in blocks())  # noqa: E731
    rows = BlockRows(features, n, name="the blocks", same=same)
    rows.y, rows.sample_weight = columns
    return rows


def _spooled(blocks: Iterator[Any]) -> ArrayRows:
    """An iterator that can be read only once, written to a temporary file that is removed with the
    rows.
    """
    spool = tempfile.TemporaryFile(prefix="fitonce-")  # noqa: SIM115 - it lives as long as the array mapped on it
    shapes: list[tuple[int, int]] = []

    def kept(X: np.ndarray) -> None:
        spool.write(np.ascontiguousarray(X).tobytes())
        shapes.append(X.shape)

    columns = _read_once(blocks, kept)
    n = sum(size for size, _ in shapes)
    if not n:
        raise ValueError("the iterator has no rows: there is nothing to fit.")
    spool.flush()
    shape = n, shapes[0][1]
    rows = ArrayRows(np.memmap(spool, dtype=np.float64, mode="r", shape=shape), BATCH_ROWS)
    rows.y, rows.sample_weight = columns
    return rows


def _read_once(
    blocks: Iterable[Any], keep: Callable[[np.ndarray], None]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The targets and weights of all blocks, where they have them; features go to `keep`."""
    found: dict[str, list[np.ndarray]] = {"targets": [], "weights": []}
    n, width = 0, None
    for number, block in enumerate(blocks):
        X, y, w = _parts(block)
        X = checked_block(X, f"block {number} of the blocks (from row {n})", width)
        n, width = n + len(X), X.shape[1]
        keep(X)
        for what, given in (("targets", y), ("weights", w)):
            if given is not None and len(given) != len(X):
                raise ValueError(f"block {number} has {len(X)} rows but {len(given)} {what}.")
            if given is not None:
                found[what].append(np.asarray(given))
    for what, parts in found.items():
        size = sum(map(len, parts))
        if parts and size != n:
            raise ValueError(f"the blocks have {n} rows but {size} {what}.")
    targets, weights = (np.concatenate(parts) if parts else None for parts in found.values())
    return targets, weights


# ---- files ---------------------------------------------------------------------------------------


def _file_rows(
    path: Path, target: str | None, weight: str | None, columns: list[str] | None, batch_rows: int
) -> BlockRows:
    """The rows of a file, with its target and weight read into memory."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    table = TableFile(path, batch_rows)
    names = table.names()
    special = [name for name in (target, weight) if name is not None]
    for name in [*special, *(columns or [])]:
        if name not in names:
            raise ValueError(
                f"{str(path)!r} has no column {name!r}; it has {', '.join(map(repr, names[:20]))}."
            )
    for name in special:
        if name in (columns or []):
            raise ValueError(
                f"columns contains {name!r}, which is the target or the weight: it must not be a "
                "feature."
            )
    features = columns if columns is not None else [name for name in names if name not in special]
    if not features:
        raise ValueError(f"{str(path)!r} has no feature columns besides {special}.")
    values, n = _columns(table, special)
    rows = BlockRows(lambda: _features(table, features, values), n, name=repr(str(path)))
    rows.names, rows.y = list(features), values.get(target)
    rows.sample_weight = values[weight].astype(float) if weight in values else None
    return rows


def _columns(table: TableFile, names: list[str]) -> tuple[dict[str | None, np.ndarray], int]:
    """Some columns of all rows, and the number of rows: one pass over these columns."""
    parts: dict[str | None, list[np.ndarray]] = {name: [] for name in names}
    n = 0
    for number, batch in enumerate(table.batches(names or None)):
        n += batch.num_rows
        for name, collected in parts.items():
            column = batch.column(name)
            if column.null_count:
                raise ValueError(
                    f"block {number} of {str(table.path)!r} has {column.null_count} missing values "
                    f"in {name!r}: leave out these rows."
                )
            collected.append(_values(column))
    return {name: np.concatenate(found) for name, found in parts.items() if found}, n


def _features(
    table: TableFile, names: list[str], values: dict[str | None, np.ndarray]
) -> Iterator[np.ndarray]:
    """Blocks of the named columns; targets and weights must be the same as when the file was
    opened.
    """
    special = [name for name in values if name is not None]
    start = 0
    for batch in table.batches([*names, *special], numbers=names):
        stop = start + batch.num_rows
        for name in special:
            now, before = _values(batch.column(name)), values[name][start:stop]
            if not np.array_equal(now, before, equal_nan=before.dtype.kind == "f"):
                raise ValueError(
                    f"{str(table.path)!r} has different values in {name!r}, in rows {start} to "
                    f"{stop}, than when it was opened: its rows have changed. {OPEN_AGAIN}"
                )
        start = stop
        yield _numbers(batch, names)


def _values(column: Any) -> np.ndarray:
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _numbers(batch: Any, names: list[str]) -> np.ndarray:
    """The named columns of a record batch as float64.

    Missing values become NaN, which raises an error that gives their position.
    """
    result = np.empty((batch.num_rows, len(names)))
    for place, name in enumerate(names):
        column = batch.column(name)
        try:
            result[:, place] = column.cast("float64").to_numpy(zero_copy_only=False)
        except Exception as error:  # pyarrow has several classes for failed casts
            raise ValueError(
                f"column {name!r} has type {column.type}, which is not numeric: encode it, or "
                "choose the columns to use."
            ) from error
    return result


def _pyarrow() -> Any:
    """The package, imported only where files are read."""
    try:
        import pyarrow.csv
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError(
            "reading rows from files needs pyarrow: pip install 'fitonce[files]'"
        ) from error
    return pyarrow


class TableFile:
    """A file that can be read repeatedly, in record batches."""

    def __init__(self, path: Path, batch_rows: int) -> None:
        self.path, self.batch_rows, self.arrow = path, batch_rows, _pyarrow()
        suffix = path.suffix.lower()
        if suffix not in KINDS:
            raise ValueError(
                f"{str(path)!r} is not a .parquet, .arrow, .feather, .csv or .tsv file."
            )
        self.kind = KINDS[suffix]
        self.opened = self._stamp()

    def _stamp(self) -> tuple[int, int]:
        """Size and time, which change when a file is rewritten."""
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns

    def names(self) -> list[str]:
        with self._readable():
            return list(self._dataset().schema.names)

    def batches(self, columns: list[str] | None, numbers: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of some columns, all if None; `numbers` are known to be numeric.

        Each batch is fully validated: a damaged file could claim lengths and offsets that lead
        outside its memory.
        """
        with self._readable():
            self._check_as_opened(columns)
            source = self._dataset(numbers)
            at_once = {"batch_size": self.batch_rows, "batch_readahead": 1, "use_threads": False}
            for batch in source.to_batches(columns=columns, **at_once):
                batch.validate(full=True)
                yield batch

    def _check_as_opened(self, columns: list[str] | None) -> None:
        """Refuse a file that is not as it was when it was opened."""
        if self._stamp() == self.opened:
            return
        gone = sorted(set(columns or ()) - set(self.names()))
        what = (
            f"the column {gone[0]!r} is missing"
            if gone
            else "its size or modification time differs"
        )
        raise ValueError(
            f"{str(self.path)!r} has changed since it was opened ({what}), so its rows may no "
            f"longer match the targets that were read then. {OPEN_AGAIN}"
        )

    def _dataset(self, numbers: Sequence[str] = ()) -> Any:
        """The file as pyarrow reads it. Columns of a CSV known to be numeric are read as such: the
        first block may contain only integers. An empty label is missing.
        """
        dataset, csv = self.arrow.dataset, self.arrow.csv
        types = {name: self.arrow.float64() for name in numbers}
        delimiter = "\t" if self.path.suffix.lower() == ".tsv" else ","
        of_csv = dataset.CsvFileFormat(
            read_options=csv.ReadOptions(block_size=CSV_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True),
        )
        return dataset.dataset(self.path, format=of_csv if self.kind == "csv" else self.kind)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn the errors of a file that is damaged, truncated or of another type into one
        sentence.
        """
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{str(self.path)!r} no longer exists, but every pass reads it again. Restore it, "
                "or pass an array in memory."
            ) from error
        except (self.arrow.ArrowException, OSError) as error:
            raise ValueError(
                f"{str(self.path)!r} cannot be read: {error}. The file may be damaged or truncated "
                "or have several columns of one name."
            ) from error
