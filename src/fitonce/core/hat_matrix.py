"""Held-out values of a hat matrix of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from .arrays import Array, eye_like, namespace, square_block, take
from .splits import check_test_sets

SINGULAR = 1e-11  # smallest singular value of I - H at which a test set can be held out


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
        block = eye_like(len(rows), H) - square_block(H, rows)
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
