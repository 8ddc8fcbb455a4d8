"""X at each position.

A slice of an array (n, features, positions), or a neighbourhood of its features or positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, index_like, namespace
from ..estimators.validation import is_foreign_array
from .adjacency import edges_of, grid_edges, index_lists


@dataclass(frozen=True)
class Slices:
    """X (n, features, positions) and, for every place asked for, a position or the positions whose
    features it joins.

    `shape` is how positions are arranged; `lattice` says that places next to each other in it are
    neighbours.
    """

    X: Array
    places: Sequence[Any]
    shape: tuple[int, ...]
    lattice: bool

    @classmethod
    def of(cls, X: Any, neighbors: Any) -> Slices:
        X = _array(X)
        if X.ndim < 2 or (X.ndim == 2 and neighbors is None):
            raise ValueError(
                f"X must have shape (n_samples, n_features, n_positions), got {tuple(X.shape)} "
                "instead. For a searchlight over the columns of X give neighbors; to decode from "
                "each column by itself pass X[:, None, :]."
            )
        searchlight = X.ndim == 2
        shape = tuple(int(size) for size in X.shape[1 if searchlight else 2 :])
        n_positions = int(np.prod(shape))
        if min(X.shape) == 0:
            raise ValueError(
                f"X must have samples, features and positions, got shape {tuple(X.shape)} instead."
            )
        X = namespace(X).reshape(X, (X.shape[0], 1 if searchlight else X.shape[1], n_positions))
        if neighbors is None:
            return cls(X, range(n_positions), shape, True)
        lists = index_lists(
            neighbors, n_positions, "neighbors", "features" if searchlight else "positions"
        )
        empty = [number for number, indices in enumerate(lists) if not len(indices)]
        if empty or not lists:
            where = f"neighborhood {empty[0]} is empty" if empty else "there is none"
            raise ValueError(
                f"neighbors must name at least one index for every position, but {where}: "
                "nothing can be decoded there."
            )
        lattice = not searchlight and len(lists) == n_positions
        return cls(X, lists, shape if lattice else (len(lists),), lattice)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def at(self, number: int) -> Array:
        """X (n, features) at a place."""
        xp = namespace(self.X)
        place = index_like(np.atleast_1d(self.places[number]), self.X)
        return xp.reshape(xp.take(self.X, place, axis=2), (self.n_samples, -1))

    def part(self, start: int, stop: int) -> Slices:
        """The places from `start` to before `stop`, as far as there are, with the whole X."""
        places = self.places[start:stop]
        return Slices(self.X, places, (len(places),), False)

    def edges(self, adjacency: Any) -> np.ndarray | None:
        """Pairs of neighbouring places.

        None where neither an adjacency nor an arrangement says which they are.
        """
        if adjacency is not None:
            return edges_of(adjacency, len(self))
        return grid_edges(self.shape) if self.lattice else None


def _array(X: Any) -> Array:
    if is_foreign_array(X):
        return X
    if sp.issparse(X):
        raise TypeError(
            "X must be a dense array, got a sparse matrix instead: pass X.toarray(), or the part "
            "of it that neighbors name."
        )
    X = np.asarray(X)
    if X.dtype.kind not in "iufb":
        raise ValueError(f"X must hold numbers, got dtype {X.dtype} instead.")
    return X
