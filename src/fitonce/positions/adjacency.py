"""Which positions are neighbours: on a grid, by a matrix, by lists of indices, or by distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree


def grid_edges(shape: tuple[int, ...]) -> np.ndarray:
    """Pairs (e, 2) of positions next to each other along one axis of a grid, in the order of its
    flat index.
    """
    number = np.arange(int(np.prod(shape))).reshape(shape)
    axes = (np.moveaxis(number, axis, 0) for axis in range(len(shape)))
    pairs = [np.stack([along[:-1].ravel(), along[1:].ravel()], axis=1) for along in axes]
    return np.concatenate(pairs)


def edges_of(adjacency: Any, n_positions: int) -> np.ndarray:
    """Pairs (e, 2) from a square matrix, sparse or not, or a list of index arrays.

    Neighbours in one direction are neighbours.
    """
    if getattr(adjacency, "ndim", 0) == 2:
        adjacency = sp.csr_array(adjacency)
    lists = index_lists(adjacency, n_positions, "adjacency", "positions")
    if len(lists) != n_positions:
        raise ValueError(
            "adjacency must be a square matrix with a row per position, or have a list of indices "
            f"for each ({n_positions}), got {len(lists)} instead."
        )
    first = np.repeat(np.arange(n_positions), [len(indices) for indices in lists])
    pairs = np.sort(np.stack([first, np.concatenate(lists)], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def index_lists(given: Any, n_indices: int, name: str, what: str) -> list[np.ndarray]:
    """A boolean matrix (rows, n_indices), sparse or not, or a sequence of index arrays, as index
    arrays.
    """
    matrix = isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype == bool
    if matrix or sp.issparse(given):
        rows = sp.csr_array(given != 0)
        if rows.shape[1] != n_indices:
            raise ValueError(
                f"{name} must have a column for each of the {n_indices} {what}, got "
                f"{rows.shape[1]} instead."
            )
        return [row.astype(np.intp) for row in np.split(rows.indices, rows.indptr[1:-1])]
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        raise TypeError(
            f"{name} must be a list of index arrays or a boolean matrix with a column for each of "
            f"the {n_indices} {what}, got "
            f"{type(given).__name__} instead."
        )
    lists = []
    for number, entry in enumerate(given):
        indices = np.asarray(entry if np.size(entry) else np.empty(0, dtype=np.intp))
        if indices.dtype == bool and indices.shape == (n_indices,):
            indices = np.flatnonzero(indices)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise ValueError(
                f"{name}[{number}] must be a one-dimensional array of indices, got {entry!r} "
                "instead."
            )
        if indices.size and (indices.min() < 0 or indices.max() >= n_indices):
            raise ValueError(
                f"{name}[{number}] must hold indices from 0 to {n_indices - 1} ({what}), got "
                f"{indices.tolist()} instead."
            )
        if len(np.unique(indices)) != len(indices):
            raise ValueError(f"{name}[{number}] names an index twice, got {indices.tolist()}.")
        lists.append(indices.astype(np.intp))
    return lists


def spheres(coordinates: Any, radius: float) -> list[np.ndarray]:
    """Neighbourhoods by distance: for every point the indices of all points at most `radius` away,
    itself included.

    The result serves as `neighbors` (the features of a searchlight) and, with a radius of one step
    between neighbouring points, as `adjacency`.

    Parameters
    ----------
    coordinates : array-like of shape (n_points, n_dimensions)
        Where voxels, sensors or sources are.
    radius : float
        In the units of the coordinates.

    Examples
    --------
    >>> from fitonce.positions import spheres
    >>> [neighbors.tolist() for neighbors in spheres([[0.0], [1.0], [2.0], [4.0]], radius=1.0)]
    [[0, 1], [0, 1, 2], [1, 2], [3]]
    """
    points = np.asarray(coordinates, dtype=np.float64)
    if points.ndim != 2 or not np.all(np.isfinite(points)):
        raise ValueError(
            "coordinates must be a finite array of shape (n_points, n_dimensions), got shape "
            f"{points.shape} instead."
        )
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius!r} instead.")
    found = KDTree(points).query_ball_point(points, radius * (1.0 + 1e-12), return_sorted=True)
    return [np.asarray(indices, dtype=np.intp) for indices in found]
