"""Splits as row numbers, and how they are made again for permuted labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

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
