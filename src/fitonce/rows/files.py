"""Tables in files and iterators of blocks as `Rows`.

Features stay where they are, targets come into memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..core.rows import Rows
from .blocks import ArrayRows, BlockRows, checked_block

BATCH_ROWS = 65_536  # rows read from a file at a time
CSV_BLOCK_BYTES = 1 << 24
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
    """Rows of a file or of an iterator of blocks, for ``fit`` and ``predict`` of an estimator with
    ``landmarks``.

    Parameters
    ----------
    source : path, array, callable, list or iterator
        A Parquet, Arrow/Feather or CSV/TSV file; a (memory-mapped) array; a function that returns a
        fresh iterator over blocks; a list of blocks; or an iterator that can be read only once,
        which is copied to a temporary file first. A block is an array (k, n_features), a pair of it
        and its targets, or a triple with weights.
    target, weight : str, optional
        The columns of a file that hold the targets and the weights of the rows. They are read into
        memory.
    columns : list of str, optional
        The feature columns of a file; all others if not given.
    batch_rows : int
        Rows read from a file at a time.

    Returns
    -------
    Rows
        With ``y`` and ``sample_weight`` where the source has them.

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
            "target, weight and columns name columns of a file; give the targets of arrays and "
            "blocks as y, or with the blocks."
        )
    if isinstance(source, np.ndarray):
        if source.ndim != 2 or source.shape[0] == 0:
            raise ValueError(
                "an array of rows must be two-dimensional, rows by features, and not empty, got "
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
    """One pass for the targets, the weights and the count.

    The features are read again when they are needed.
    """
    targets: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    n = 0
    for number, block in enumerate(blocks()):
        X, y, w = _parts(block)
        size = np.shape(X)[0]  # whatever the block is: its kind is checked when it is read
        n += size
        for given, collected, what in ((y, targets, "targets"), (w, weights, "weights")):
            if given is not None:
                if len(given) != size:
                    raise ValueError(
                        f"block {number} of the blocks has {size} rows but {len(given)} {what}."
                    )
                collected.append(np.asarray(given))
            elif collected:
                raise ValueError(
                    f"block {number} of the blocks has no {what}, the blocks before it had."
                )
    rows = BlockRows(lambda: (_parts(block)[0] for block in blocks()), n, name="the blocks")
    rows.y, rows.sample_weight = (
        _of_all_blocks(targets, n, "targets"),
        _of_all_blocks(weights, n, "weights"),
    )
    return rows


def _of_all_blocks(parts: list[np.ndarray], n_rows: int, what: str) -> np.ndarray | None:
    """What came with the blocks, of all rows or of none."""
    if not parts:
        return None
    values = np.concatenate(parts)
    if len(values) != n_rows:
        raise ValueError(f"the blocks have {n_rows} rows but {len(values)} {what}.")
    return values


def _spooled(blocks: Iterator[Any]) -> ArrayRows:
    """An iterator that can be read only once, written to a temporary file that goes away with the
    rows.
    """
    spool = tempfile.TemporaryFile(prefix="fitonce-")  # noqa: SIM115 - it lives as long as the array mapped on it
    targets: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    n, width = 0, None
    for number, block in enumerate(blocks):
        X, y, w = _parts(block)
        X = checked_block(X, f"block {number} (from row {n})", width)
        width, n = X.shape[1], n + len(X)
        spool.write(np.ascontiguousarray(X).tobytes())
        targets += [] if y is None else [np.asarray(y)]
        weights += [] if w is None else [np.asarray(w)]
    if not n or width is None:
        raise ValueError("the iterator has no rows: there is nothing to learn from.")
    spool.flush()
    rows = ArrayRows(np.memmap(spool, dtype=np.float64, mode="r", shape=(n, width)), BATCH_ROWS)
    rows.y, rows.sample_weight = (
        _of_all_blocks(targets, n, "targets"),
        _of_all_blocks(weights, n, "weights"),
    )
    return rows


# ---- files ---------------------------------------------------------------------------------------


def _pyarrow() -> Any:
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "reading rows from files needs pyarrow: pip install 'fitonce[files]'"
        ) from error
    return pyarrow


def _file_rows(
    path: Path, target: str | None, weight: str | None, columns: list[str] | None, batch_rows: int
) -> BlockRows:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r} to read rows from.")
    table = _Table(path, batch_rows)
    names = table.names()
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{str(path)!r} has more than one column {twice[0]!r}: give every column a name of "
            "its own."
        )
    special = [name for name in (target, weight) if name is not None]
    for name in [*special, *(columns or [])]:
        if name not in names:
            raise ValueError(
                f"{str(path)!r} has no column {name!r}; it has {', '.join(map(repr, names[:20]))}."
            )
    for name in special:
        if name in (columns or []):
            raise ValueError(
                f"columns names {name!r}, which is the target or the weight: a model that sees it "
                "learns nothing else."
            )
    features = columns if columns is not None else [name for name in names if name not in special]
    if not features:
        raise ValueError(f"{str(path)!r} has no feature columns beside {special}.")
    values, n = _columns(table, special)
    rows = BlockRows(
        lambda: (_numbers(batch, features) for batch in table.batches(features, numbers=True)),
        n,
        name=repr(str(path)),
    )
    rows.names, rows.y = list(features), values.get(target)
    rows.sample_weight = values[weight].astype(float) if weight in values else None
    return rows


def _columns(table: _Table, names: list[str]) -> tuple[dict[str | None, np.ndarray], int]:
    """Some columns of all rows, and how many rows there are: one pass over those columns."""
    parts: dict[str | None, list[np.ndarray]] = {name: [] for name in names}
    n = 0
    for number, batch in enumerate(table.batches(names or None)):
        n += batch.num_rows
        for name, collected in parts.items():
            column = batch.column(name)
            if column.null_count:
                raise ValueError(
                    f"block {number} of {str(table.path)!r} has {column.null_count} missing "
                    f"values in {name!r}: leave those rows out."
                )
            collected.append(column.to_numpy(zero_copy_only=False))
    return {name: np.concatenate(found) for name, found in parts.items() if found}, n


def _numbers(batch: Any, names: list[str]) -> np.ndarray:
    """The named columns of a record batch as float64.

    Missing values become NaN, which is refused with its place.
    """
    result = np.empty((batch.num_rows, len(names)))
    for place, name in enumerate(names):
        column = batch.column(name)
        try:
            result[:, place] = column.cast("float64").to_numpy(zero_copy_only=False)
        except Exception as error:  # pyarrow has several classes for what cannot be cast
            raise ValueError(
                f"column {name!r} is {column.type}, not numbers: encode it, or name the columns "
                "to use."
            ) from error
    return result


class _Table:
    """A file that can be read from the start again, in record batches."""

    def __init__(self, path: Path, batch_rows: int) -> None:
        self.path, self.batch_rows, self.arrow = path, batch_rows, _pyarrow()
        suffix = path.suffix.lower()
        if suffix not in KINDS:
            raise ValueError(
                f"{str(path)!r} is not a .parquet, .arrow, .feather, .csv or .tsv file."
            )
        self.kind = KINDS[suffix]

    def names(self) -> list[str]:
        with self._readable():
            if self.kind == "parquet":
                return list(self.arrow.parquet.ParquetFile(self.path).schema_arrow.names)
            if self.kind == "arrow":
                with self.arrow.ipc.open_file(self.path) as reader:
                    return list(reader.schema.names)
            return list(self._csv(None).schema.names)

    def batches(self, columns: list[str] | None, numbers: bool = False) -> Iterator[Any]:
        """Record batches of some columns, all if None; of numbers, where they are known to be."""
        with self._readable():
            if self.kind == "parquet":
                yield from self.arrow.parquet.ParquetFile(self.path).iter_batches(
                    self.batch_rows, columns=columns
                )
            elif self.kind == "arrow":
                with self.arrow.ipc.open_file(self.path) as reader:
                    for number in range(reader.num_record_batches):
                        batch = reader.get_batch(number)
                        yield batch if columns is None else batch.select(columns)
            else:
                yield from self._csv(columns, tuple(columns or ()) if numbers else ())

    def _csv(self, columns: list[str] | None, numbers: tuple[str, ...] = ()) -> Any:
        """Columns known to be numbers are read as such: the first block may have whole ones only.

        A label that is not there is missing.
        """
        csv = self.arrow.csv
        types = {name: self.arrow.float64() for name in numbers}
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=CSV_BLOCK_BYTES),
            parse_options=csv.ParseOptions(
                delimiter="\t" if self.path.suffix.lower() == ".tsv" else ","
            ),
            convert_options=csv.ConvertOptions(
                include_columns=columns, column_types=types, strings_can_be_null=True
            ),
        )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Errors of a file that is damaged, cut short or not what its name says, in one
        sentence.
        """
        try:
            yield
        except FileNotFoundError:
            raise
        except (self.arrow.ArrowException, OSError) as error:
            raise ValueError(
                f"{str(self.path)!r} cannot be read: {error}. The file may be damaged or cut short."
            ) from error
