"""Held-out values from a smoother: for a user's own hat matrix, and for rows deleted from ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from .arrays import Array, eye_like, index_like, namespace, take


def held_out(H: Array, Y: Array, test_sets: Iterable[Any]) -> list[Array]:
    """Held-out predictions of any linear smoother Ŷ = H Y, without refitting (Treder 2019,
    algorithm 1).

    For each test set Te the residuals solve (I - H_TeTe) R = (Y - Ŷ)_Te, and the held-out values
    are Y_Te - R. This equals deleting the rows and fitting again for every smoother that minimises
    a sum of squared errors plus a quadratic penalty that does not depend on the rows: least
    squares, ridge, kernel ridge, splines.

    Parameters
    ----------
    H : array of shape (n_samples, n_samples)
        The hat matrix of all rows, bias included.
    Y : array of shape (n_samples,) or (n_samples, n_targets)
        Targets; permuted copies of the labels may stand side by side as columns.
    test_sets : iterable of index arrays or boolean masks
        Any collection, overlapping or not.

    Returns
    -------
    list of arrays
        One per test set, in its row order, of shape (n_test,) or (n_test, n_targets).

    Notes
    -----
    Exact. Cost: one product H Y, then O(m³ + m² t) for a test set of m rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import held_out
    >>> X = np.column_stack([np.ones(6), np.arange(6.0)])
    >>> H = X @ np.linalg.pinv(X)
    >>> y = np.array([0.0, 1.2, 1.9, 3.2, 3.9, 5.1])
    >>> [values.round(2).tolist() for values in held_out(H, y, [[0], [4, 5]])]
    [[0.12], [4.15, 5.18]]
    """
    H, Y = (
        array if is_array_api_obj(array) else np.asarray(array, dtype=np.float64)
        for array in (H, Y)
    )
    xp = namespace(H, Y)
    if H.ndim != 2 or H.shape[0] != H.shape[1]:
        raise ValueError(
            f"H must be a square hat matrix, got shape {tuple(H.shape)} instead: row i of H maps "
            "all targets to the fitted value of row i."
        )
    if Y.ndim not in (1, 2) or Y.shape[0] != H.shape[0]:
        raise ValueError(
            f"Y must have one row per row of H ({H.shape[0]}) and at most two dimensions, got "
            f"shape {tuple(Y.shape)} instead."
        )
    for name, array in (("H", H), ("Y", Y)):
        if not bool(xp.all(xp.isfinite(array))):
            raise ValueError(
                f"{name} contains NaN or infinite values; remove or impute them first."
            )
    targets = xp.reshape(Y, (Y.shape[0], -1))
    residual = targets - H @ targets
    shape = tuple(Y.shape[1:])
    results = []
    for number, rows in enumerate(check_test_sets(test_sets, H.shape[0])):
        index = index_like(rows, H)
        block = eye_like(len(rows), H) - xp.take(xp.take(H, index, axis=0), index, axis=1)
        _check_determined(block, number)
        solution = xp.linalg.solve(block, take(residual, rows))
        results.append(xp.reshape(take(targets, rows) - solution, (len(rows), *shape)))
    return results


def _check_determined(block: Array, number: int) -> None:
    """I - H_TeTe is singular where the rows that remain cannot determine the model."""
    smallest = float(namespace(block).min(namespace(block).linalg.svdvals(block)))
    if smallest < SINGULAR:
        raise ValueError(
            f"test set {number} cannot be held out: I - H is singular there (smallest singular "
            f"value {smallest:.1g}), which means "
            "that the rows that remain do not determine the smoother's fit. Leave out fewer rows, "
            "or regularise."
        )


SINGULAR = 1e-11


def check_test_sets(test_sets: Iterable[Any], n_samples: int) -> list[np.ndarray]:
    """Test sets as integer index arrays, refused where they do not describe rows."""
    checked = []
    for number, test_set in enumerate(test_sets):
        rows = np.asarray(test_set)
        if rows.dtype == bool:
            if rows.shape != (n_samples,):
                raise ValueError(
                    f"test set {number} is a mask of shape {rows.shape}; it must have shape "
                    f"({n_samples},)."
                )
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer) or rows.size == 0:
            raise ValueError(
                f"test set {number} must be a non-empty list of row indices or a boolean mask, "
                f"got {test_set!r} instead."
            )
        if rows.min() < -n_samples or rows.max() >= n_samples:
            raise ValueError(f"test set {number} names rows outside 0 … {n_samples - 1}.")
        rows = rows % n_samples
        if np.unique(rows).size != rows.size:
            raise ValueError(
                f"test set {number} names a row twice; a row can be left out only once."
            )
        checked.append(rows)
    return checked


def checked_splits(
    splits: Iterable[tuple[Any, Any]], n_samples: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The (train, test) index pairs, refused where a test row is also a training row."""
    for number, (train, test) in enumerate(splits):
        train, test = np.asarray(train), np.asarray(test)
        seen = np.intersect1d(row_numbers(train, n_samples), row_numbers(test, n_samples))
        if seen.size:
            raise ValueError(
                f"split {number} has {seen.size} test row(s) inside its own training set (row "
                f"{seen[0]} is the first): predictions for "
                "rows that the model has seen are not held-out, and their score would be too "
                "good. Remove them from one side."
            )
        yield train, test


def row_numbers(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Rows counted from the start, whether given as a mask, or from the end."""
    return (
        np.flatnonzero(rows) if rows.dtype == bool else np.where(rows < 0, rows + n_samples, rows)
    )


def complement(rows: Sequence[int] | np.ndarray, n_samples: int) -> np.ndarray:
    """The rows that are not among the given ones, ascending."""
    mask = np.ones(n_samples, dtype=bool)
    mask[np.asarray(rows, dtype=np.intp)] = False
    return np.flatnonzero(mask)


__all__ = ["check_test_sets", "checked_splits", "complement", "held_out", "row_numbers"]
