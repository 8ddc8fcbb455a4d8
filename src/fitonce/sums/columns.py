"""Columns of X as given by the user, converted to indices."""

from __future__ import annotations

from typing import Any

import numpy as np

Columns = slice | np.ndarray


def column_numbers(name: str, given: Any, n_features: int, feature_names: Any) -> Columns:
    """Columns as a slice of integers or as indices."""
    if isinstance(given, slice):
        try:
            numbers_ = np.arange(n_features)[given]
        except TypeError as error:
            raise ValueError(
                f"columns of the kernel {name!r} must be a slice of integers, got {given!r} "
                "instead: pass names as a list."
            ) from error
        return slice(*given.indices(n_features)) if len(numbers_) else _no_columns(name, given)
    if callable(given) or given is None:
        raise ValueError(
            f"columns of the kernel {name!r} must be a slice, indices, a mask or names, got "
            f"{given!r:.100} instead. Use slice(None) for all columns."
        )
    listed = np.atleast_1d(np.asarray(given))
    if listed.size == 0 or listed.ndim != 1:
        return _no_columns(name, given)
    if listed.dtype == bool:
        if len(listed) != n_features:
            raise ValueError(
                f"the column mask of the kernel {name!r} must have one entry for each of the "
                f"{n_features} columns of X, got {len(listed)} instead."
            )
        return np.flatnonzero(listed) if listed.any() else _no_columns(name, given)
    if listed.dtype.kind in "UO" and all(isinstance(column, str) for column in listed.tolist()):
        return _named_columns(name, listed.tolist(), feature_names)
    whole = listed.dtype.kind in "iu"
    if not whole or np.any(listed < -n_features) or np.any(listed >= n_features):
        raise ValueError(
            f"columns of the kernel {name!r} must be a slice, indices below {n_features}, a mask "
            f"or names, got {given!r:.100} instead."
        )
    return np.asarray(np.where(listed < 0, listed + n_features, listed), dtype=np.intp)


def _named_columns(name: str, wanted: list[str], feature_names: Any) -> np.ndarray:
    if feature_names is None:
        raise ValueError(
            f"columns of the kernel {name!r} are names, but X has no column names: fit on a data "
            "frame, or pass the columns as indices."
        )
    position = {column: number for number, column in enumerate(feature_names)}
    missing = [column for column in wanted if column not in position]
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}, which the kernel {name!r} uses.")
    return np.array([position[column] for column in wanted], dtype=np.intp)


def _no_columns(name: str, given: Any) -> Columns:
    raise ValueError(f"the kernel {name!r} has no columns, got {given!r:.100}.")
