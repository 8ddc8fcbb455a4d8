"""Splits as the rows they delete, arranged so that equal folds are adjacent and can be processed as
one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ..core.splits import checked_splits, complement, row_numbers
from .validity import Split


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


class Resplitter:
    """Splits again for permuted labels. scikit-learn's stratified k-fold is done here, at a tenth
    of the time, if it agrees.

    Its folds depend on the order in which classes first appear and on their sizes: fold numbers are
    dealt to the classes' rows one after the other, and shuffled within each class. Anything else,
    and a disagreement on the observed labels, goes to the splitter.
    """

    def __init__(
        self,
        cv: Any,
        X: Any,
        metadata: Mapping[str, Any],
        observed: np.ndarray,
        splits: list[Split],
    ) -> None:
        self.cv, self.X, self.metadata, self.n_samples = cv, X, metadata, len(observed)
        seeded = type(cv) is StratifiedKFold and (
            not cv.shuffle or isinstance(cv.random_state, (int, np.integer))
        )
        self.own = seeded and observed.ndim == 1 and same_splits(self._stratified(observed), splits)

    def __call__(self, y: Any) -> list[Split]:
        if self.own:
            return self._stratified(np.asarray(y))
        return split_rows(self.cv.split(self.X, y, **self.metadata), self.n_samples)

    def _stratified(self, y: np.ndarray) -> list[Split]:
        k = self.cv.n_splits
        _, first, codes = np.unique(y, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[codes]  # classes numbered as they appear
        ordered = np.sort(codes)
        shares = np.array(
            [np.bincount(ordered[start::k], minlength=len(first)) for start in range(k)]
        )
        rng = np.random.RandomState(self.cv.random_state) if self.cv.shuffle else None
        fold = np.empty(len(y), dtype=int)
        for code in range(len(first)):
            dealt = np.arange(k).repeat(shares[:, code])
            if rng is not None:
                rng.shuffle(dealt)
            fold[codes == code] = dealt
        return [
            (np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(k)
        ]


def same_splits(splits: Sequence[Split], others: Sequence[Split]) -> bool:
    return len(splits) == len(others) and all(
        np.array_equal(test, other_test) and np.array_equal(train, other_train)
        for (train, test), (other_train, other_test) in zip(splits, others, strict=True)
    )


@dataclass(frozen=True)
class FoldRun:
    """Folds in a row that delete and test equally many rows.

    `count` of them from fold `first` and place `start` of the layout on.
    """

    first: int
    start: int
    count: int
    n_deleted: int
    n_test: int

    @property
    def places(self) -> slice:
        return slice(self.start, self.start + self.count * self.n_deleted)

    def each(self) -> Iterator[tuple[int, slice]]:
        """Every fold's number and places."""
        for number in range(self.count):
            start = self.start + number * self.n_deleted
            yield self.first + number, slice(start, start + self.n_deleted)


@dataclass(frozen=True)
class Layout:
    """All folds' deleted rows one after the other, each fold's test rows first and in their own
    order.
    """

    n_samples: int
    deleted: Sequence[np.ndarray]
    n_tests: tuple[int, ...]

    @classmethod
    def of(cls, splits: Sequence[Split], n_samples: int) -> Layout | None:
        """None if a training set repeats rows: deleting cannot express that."""
        deleted = []
        for train, test in splits:
            gone = complement(train, n_samples)
            if len(gone) + len(train) != n_samples:
                return None
            others = () if len(gone) == len(test) else (np.setdiff1d(gone, test),)
            deleted.append(np.concatenate([test, *others]))
        return cls(n_samples, deleted, tuple(len(test) for _, test in splits))

    def moved(self, to: np.ndarray) -> Layout:
        """The same folds with row i at to[i]."""
        return Layout(self.n_samples, [to[rows] for rows in self.deleted], self.n_tests)

    @cached_property
    def order(self) -> np.ndarray:
        return np.concatenate(self.deleted).astype(np.intp)

    @cached_property
    def fold(self) -> np.ndarray:
        """The number of the fold at every place."""
        return np.repeat(np.arange(len(self.deleted)), [len(rows) for rows in self.deleted])

    @cached_property
    def partition(self) -> bool:
        """Whether every row is deleted exactly once.

        The layout is then a reordering of the rows.
        """
        return len(self.order) == self.n_samples and len(np.unique(self.order)) == self.n_samples

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(rows deleted, rows tested) of every fold; layouts with equal shapes can be stacked."""
        return tuple(zip(map(len, self.deleted), self.n_tests, strict=True))

    @cached_property
    def runs(self) -> list[FoldRun]:
        runs, first, start = [], 0, 0
        for (n_deleted, n_test), same in groupby(self.shapes):
            runs.append(FoldRun(first, start, len(list(same)), n_deleted, n_test))
            first, start = first + runs[-1].count, runs[-1].places.stop
        return runs
