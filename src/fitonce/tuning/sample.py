"""A sample of the rows for the first part of the search over kernels.

The rows are sorted by a fixed projection of their features, and rows at equal distances in that
order are taken. So the sample depends on the rows and not on their order, and it is spread over all
of them. Labels matter only for rows with equal features, and for rare classes, which are included
completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import asarray_like, namespace, to_numpy
from ..core.holdout import Deletion
from ..core.rows import dense_like
from .specification import Data

# what these cost in quality: benchmarks/search_quality.py, with --n 500 too
SAMPLED_FROM = 400  # rows; below, every kernel is tried on all of them
PROBED_FROM = 1000  # rows; below, the walk on all of them decomposes at every gamma
SAMPLE = 700  # rows that are enough to begin with, unless that is below a third of all
FEW = 5  # sampled rows of a class; where it has fewer, all of its rows come


@dataclass(frozen=True)
class Sample:
    """Numbers of the sampled rows, and a key: equal keys are equal features and weights."""

    rows: np.ndarray
    key: bytes

    def deletions(
        self, deletions: Sequence[Deletion] | None, n_samples: int
    ) -> list[Deletion] | None:
        """Splits of all rows as splits of the sample; those that test none of its rows are gone."""
        if deletions is None:
            return None
        position = np.full(n_samples, -1)
        position[self.rows] = np.arange(len(self.rows))
        restricted = []
        for deleted, tested in deletions:
            left = position[deleted] >= 0
            number = np.cumsum(left) - 1
            if left[tested].any():
                restricted.append((position[deleted[left]], number[tested[left[tested]]]))
        return restricted


def sample_of(data: Data, deletions: Sequence[Deletion] | None = None) -> Sample:
    """The sample of the rows that train. Cost: one projection and a sort."""
    n = data.X.shape[0]
    place = _projected(data.X)
    weights = np.ones(n) if data.weights is None else data.weights
    split = np.zeros(n)  # of rows that are the same in all else
    for number, (deleted, _) in enumerate(deletions or ()):
        split[deleted] = number
    order = np.lexsort((split, *data.targets.T, weights, place))
    m = max(n // 3, min(n // 2, SAMPLE))
    taken = np.zeros(n, dtype=bool)
    taken[order[((np.arange(m) + 0.5) * n / m).astype(int)]] = True
    if data.codes is not None:
        counts = np.bincount(data.codes[taken], minlength=int(data.codes.max()) + 1)
        taken |= counts[data.codes] < FEW
    rows = order[taken[order]]
    return Sample(rows, place[rows].tobytes() + weights[rows].tobytes())


def _projected(X: Any) -> np.ndarray:
    """One number for each row, on the host; the sums run over a row's own entries only, so that
    equal rows have equal ones wherever they stand.
    """
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    if hasattr(X, "multiply"):
        return np.asarray(X.multiply(direction[None, :]).sum(axis=1), dtype=np.float64).ravel()
    u = asarray_like(direction, dense_like(X))
    return np.asarray(to_numpy(namespace(X).sum(X * u, axis=1)), dtype=np.float64)
