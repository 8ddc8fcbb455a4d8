"""X at each position, and which positions are neighbors.

X at a position is a slice of an array (n, features, positions), or a neighborhood of its features
or positions. Neighbors are given on a grid, by a matrix, by lists of indices, or by distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from ..core.arrays import Array, index_like, is_numpy, namespace, take
from ..estimators.validation import is_foreign_array


@dataclass(frozen=True)
class Slices:
    """X (n, features, positions) and, for every place, a position or the positions whose features
    are joined.

    `shape` is the arrangement of positions; `lattice` says that adjacent places in it are
    neighbors.
    """

    X: Array
    places: Sequence[Any]
    shape: tuple[int, ...]
    lattice: bool

    @classmethod
    def of(cls, X: Any, neighbors: Any) -> Slices:
        if hasattr(X, "get_data") or sp.issparse(X):
            raise TypeError(
                f"X must be a dense array, got {type(X).__name__} instead. Of epochs, pass "
                "X.get_data(), whose axes are (n_samples, n_features, n_positions), with the "
                "channels to decode from picked; of a sparse matrix, X.toarray(), or the part of "
                "it that neighbors uses."
            )
        X = X if is_foreign_array(X) else np.asarray(X)
        if is_numpy(X) and X.dtype.kind not in "iufb":
            raise ValueError(f"X must be numeric, got dtype {X.dtype} instead.")
        if X.ndim < 2 or (X.ndim == 2 and neighbors is None):
            raise ValueError(
                f"X must have shape (n_samples, n_features, n_positions), got {tuple(X.shape)} "
                "instead. For a searchlight over the columns of X, pass neighbors. To decode from "
                "each column separately, pass X[:, None, :]."
            )
        searchlight = X.ndim == 2
        shape = tuple(int(size) for size in X.shape[1 if searchlight else 2 :])
        n_positions = math.prod(shape)
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
                f"neighbors must have at least one index for every position, but {where}: there "
                "are no features to decode from."
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

    @property
    def sizes(self) -> np.ndarray:
        """The number of positions that each place joins."""
        return np.array([np.size(place) for place in self.places])

    def stacked(self, numbers: Any = None, rows: np.ndarray | None = None) -> Array:
        """X (B, n, features) at some places of equal sizes (by default, all), as float64 and
        contiguous by place; or only some of its rows.
        """
        places = self.places if numbers is None else [self.places[number] for number in numbers]
        index = np.stack([np.atleast_1d(place) for place in places])
        X = self.X if rows is None else take(self.X, rows)
        xp, (n, p) = namespace(X), X.shape[:2]
        X = xp.take(xp.astype(X, xp.float64, copy=False), index_like(index.ravel(), X), axis=2)
        X = xp.permute_dims(xp.reshape(X, (n, p, *index.shape)), (2, 0, 1, 3))
        X = xp.reshape(X, (len(index), n, p * index.shape[1]))
        return np.ascontiguousarray(X) if is_numpy(X) else X

    def stacks(self, elements: int, n_folds: int) -> Iterator[tuple[np.ndarray, Array]]:
        """Groups of places of equal sizes, and X there: with at most this many entries together
        with a matrix of features by features for every fold.
        """
        for size in np.unique(self.sizes):
            alike, p = np.flatnonzero(self.sizes == size), int(size * self.X.shape[1])
            step = max(1, elements // (p * (self.n_samples + n_folds * p)))
            for start in range(0, len(alike), step):
                numbers = alike[start : start + step]
                yield numbers, self.stacked(numbers)

    def part(self, start: int, stop: int) -> Slices:
        """The places from `start` up to `stop` (exclusive), with the whole X."""
        places = self.places[start:stop]
        return Slices(self.X, places, (len(places),), False)

    def edges(self, adjacency: Any) -> np.ndarray | None:
        """Pairs of neighboring places.

        None if neither an adjacency nor an arrangement defines them.
        """
        if adjacency is None and not self.lattice:
            return None
        return edges_of(adjacency, self.shape)


def edges_of(adjacency: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Pairs (e, 2) from a square matrix, sparse or dense, or from a list of index arrays; None:
    those of the grid of positions.

    A pair counts if it is given in at least one direction.
    """
    n_positions = math.prod(shape)
    if adjacency is None:
        number = np.arange(n_positions).reshape(shape)
        axes = [np.moveaxis(number, axis, 0) for axis in range(len(shape))]
        ends = [[along[:-1].ravel(), along[1:].ravel()] for along in axes]
        return np.concatenate(ends, axis=1).T
    if getattr(adjacency, "ndim", 0) == 2:
        adjacency = sp.csr_array(adjacency)
    lists = index_lists(adjacency, n_positions, "adjacency", "positions")
    if len(lists) != n_positions:
        raise ValueError(
            "adjacency must be a square matrix with one row per position, or one list of indices "
            f"for each of the {n_positions} positions, got {len(lists)} instead."
        )
    first = np.repeat(np.arange(n_positions), [len(indices) for indices in lists])
    pairs = np.sort(np.stack([first, np.concatenate(lists)], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def index_lists(given: Any, n_indices: int, name: str, what: str) -> list[np.ndarray]:
    """Index arrays from a boolean matrix (rows, n_indices), sparse or dense, or from a sequence of
    index arrays.
    """
    matrix = isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype == bool
    if matrix or sp.issparse(given):
        rows = sp.csr_array(given != 0)
        if rows.shape[1] != n_indices:
            raise ValueError(
                f"{name} must have one column for each of the {n_indices} {what}, got "
                f"{rows.shape[1]} instead."
            )
        return [row.astype(np.intp) for row in np.split(rows.indices, rows.indptr[1:-1])]
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        raise TypeError(
            f"{name} must be a list of index arrays or a boolean matrix with one column for each "
            f"of the {n_indices} {what}, got {type(given).__name__} instead."
        )
    lists = []
    for number, entry in enumerate(given):
        indices = np.asarray(entry if np.size(entry) else np.empty(0, dtype=np.intp))
        if indices.dtype == bool and indices.shape == (n_indices,):
            indices = np.flatnonzero(indices)
        proper = indices.ndim == 1 and indices.dtype.kind in "iu"
        if (
            not proper
            or np.any((indices < 0) | (indices >= n_indices))
            or (len(np.unique(indices)) < len(indices))
        ):
            raise ValueError(
                f"{name}[{number}] must contain indices from 0 to {n_indices - 1} ({what}), as a "
                f"one-dimensional array of indices, none of them twice, got {entry!r:.200} instead."
            )
        lists.append(indices.astype(np.intp))
    return lists


def spheres(coordinates: Any, radius: float) -> list[np.ndarray]:
    """Find neighborhoods by distance, for `neighbors` (the features of a searchlight) or, with the
    distance between neighboring points as radius, for `adjacency`.

    Parameters
    ----------
    coordinates : array-like of shape (n_points, n_dimensions)
        Coordinates of voxels, sensors or sources.
    radius : float
        Radius in the units of the coordinates.

    Returns
    -------
    list of arrays
        For every point, the indices of all points within the radius, including itself.

    Examples
    --------
    >>> from fitonce.positions import spheres
    >>> [neighbors.tolist() for neighbors in spheres([[0.0], [1.0], [2.0], [4.0]], radius=1.0)]
    [[0, 1], [0, 1, 2], [1, 2], [3]]
    """
    points = np.asarray(coordinates, dtype=np.float64)
    if points.ndim != 2 or not np.all(np.isfinite(points)) or not radius > 0:
        raise ValueError(
            "coordinates must be a finite array of shape (n_points, n_dimensions), and radius "
            f"positive, got shape {points.shape} and radius {radius!r} instead."
        )
    found = KDTree(points).query_ball_point(points, radius * (1.0 + 1e-12), return_sorted=True)
    return [np.asarray(indices, dtype=np.intp) for indices in found]
