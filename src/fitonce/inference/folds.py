"""Splits as row numbers, and whether two are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..core.splits import Split, checked_splits, row_numbers


def split_rows(splits: Iterable[tuple[np.ndarray, np.ndarray]], n_samples: int) -> list[Split]:
    """The (train, test) pairs as row indices, refused where a test row is also a training row."""
    pairs: list[Split] = []
    for train, test in splits:
        pair = row_numbers(np.asarray(train), n_samples), row_numbers(np.asarray(test), n_samples)
        trained = np.zeros(n_samples, dtype=bool)
        trained[pair[0]] = True
        if trained[pair[1]].any():
            list(checked_splits([*pairs, pair], n_samples))  # raises, naming the rows
        pairs.append(pair)
    return pairs


def same_splits(splits: Sequence[Split], others: Sequence[Split]) -> bool:
    return len(splits) == len(others) and all(
        np.array_equal(test, other_test) and np.array_equal(train, other_train)
        for (train, test), (other_train, other_test) in zip(splits, others, strict=True)
    )
