"""Parquet, Arrow and CSV files as record batches, read from the start for every pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def _pyarrow() -> Any:
    """The package, imported only where files are read."""
    try:
        import pyarrow.csv
        import pyarrow.parquet
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
        """The names of the columns."""
        with self._readable():
            if self.kind == "parquet":
                return list(self.arrow.parquet.ParquetFile(self.path).schema_arrow.names)
            if self.kind == "arrow":
                with self.arrow.ipc.open_file(self.path) as reader:
                    return list(reader.schema.names)
            return list(self._csv(None).schema.names)

    def batches(self, columns: list[str] | None, numbers: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of some columns, all if None; `numbers` are known to be numeric.

        Each batch is fully validated: a damaged file could claim lengths and offsets that lead
        outside its memory.
        """
        with self._readable():
            self._check_as_opened(columns)
            for batch in self._batches(columns, numbers):
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

    def _batches(self, columns: list[str] | None, numbers: Sequence[str]) -> Iterator[Any]:
        """Record batches as the reader of this kind of file gives them."""
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
            yield from self._csv(columns, numbers)

    def _csv(self, columns: list[str] | None, numbers: Sequence[str] = ()) -> Any:
        """Columns known to be numeric are read as such: the first block may contain only integers.

        An empty label is missing.
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
                f"{str(self.path)!r} cannot be read: {error}. The file may be damaged or truncated."
            ) from error
