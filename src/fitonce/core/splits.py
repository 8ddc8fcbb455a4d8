"""Row numbers, test sets and splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .refused import refuse

Split = tuple[np.ndarray, np.ndarray]  # training and test rows
Splits = list[Split]


def check_test_sets(test_sets: Iterable[Any], n_samples: int) -> list[np.ndarray]:
    """Test sets as integer index arrays, refused where they do not describe rows."""
    checked = []
    for number, test_set in enumerate(test_sets):
        given = np.asarray(test_set)
        rows = row_numbers(given, n_samples, f"the rows of test set {number}")
        refuse(
            (rows.size == 0, f"test set {number} has no rows. Leave it out."),
            (
                np.unique(rows).size != rows.size,
                f"test set {number} contains a row twice; a row can be left out only once.",
            ),
        )
        checked.append(rows)
    return checked


def checked_splits(
    splits: Iterable[tuple[Any, Any]], n_samples: int, *, none_tested: bool = False
) -> Iterator[Split]:
    """The (train, test) index pairs, refused where they are no rows, where nothing is tested
    (unless `none_tested`), and where a test row is also a training row.
    """
    number = -1
    for number, split in enumerate(splits):
        train, test = _pair(split, number)
        trained = row_numbers(train, n_samples, f"the training rows of split {number}")
        tested = row_numbers(test, n_samples, f"the test rows of split {number}")
        if tested.size == 0 and not none_tested:
            raise ValueError(
                f"split {number} has no test rows. Leave it out, or correct the splitter."
            )
        taken = np.zeros(n_samples, dtype=bool)
        taken[trained] = True
        seen = np.sort(tested[taken[tested]])
        if seen.size:
            raise ValueError(
                f"split {number} has {seen.size} test row(s) inside its own training set (row "
                f"{seen[0]} is the first): predictions for "
                "rows that the model was trained on are not held out, and their score would be too "
                "good. Remove them from one side."
            )
        yield train, test
    if number < 0:
        raise ValueError("cv must give at least one split into training and test rows, got none.")


def split_rows(
    splits: Iterable[tuple[Any, Any]], n_samples: int, *, none_tested: bool = False
) -> Splits:
    """The splits as row numbers, refused as by `checked_splits`."""
    checked = checked_splits(splits, n_samples, none_tested=none_tested)
    return [
        (row_numbers(train, n_samples), row_numbers(test, n_samples)) for train, test in checked
    ]


def _pair(split: Any, number: int) -> Split:
    """Training and test rows; an empty list is one of row indices."""
    try:
        train, test = (np.asarray(rows) for rows in split)
    except (TypeError, ValueError):
        raise ValueError(
            f"split {number} must be a pair of training rows and test rows, got {split!r:.200} "
            "instead."
        ) from None
    train, test = (rows if rows.size else rows.astype(np.intp) for rows in (train, test))
    return train, test


def row_numbers(rows: np.ndarray, n_samples: int, what: str = "rows") -> np.ndarray:
    """Rows counted from the start, whether given as a mask, or from the end."""
    if rows.dtype == bool and rows.shape == (n_samples,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"{what} must be a list of row indices, or a mask of {n_samples} rows, got an array of "
            f"{rows.dtype} of shape {rows.shape} instead."
        )
    if rows.size == 0 or (rows.min() >= 0 and rows.max() < n_samples):
        return rows.copy()
    outside = rows[(rows < -n_samples) | (rows >= n_samples)]
    if outside.size:
        raise ValueError(
            f"{what} contain row {outside[0]}, but there are {n_samples} rows, 0 to "
            f"{n_samples - 1}: were the splits made for other data? Make them for these rows."
        )
    return np.where(rows < 0, rows + n_samples, rows)


def complement(rows: Sequence[int] | np.ndarray, n_samples: int) -> np.ndarray:
    """The rows that are not among the given ones, ascending."""
    mask = np.ones(n_samples, dtype=bool)
    mask[np.asarray(rows, dtype=np.intp)] = False
    return np.flatnonzero(mask)
