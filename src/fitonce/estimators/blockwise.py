"""Outputs for rows that are not in memory.

Block by block from files, lazily for Dask collections.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from ..core.rows import is_rows
from ..rows.dask import apply_lazily, is_dask


def blockwise(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of X that also accepts, without further arguments, `Rows` (returning an array of all
    outputs) and Dask collections (returning a lazy Dask array).
    """

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if args or options:
            return method(self, X, *args, **options)
        if is_rows(X):
            _check_names(self, X.names)
            return np.concatenate(list(X.map(partial(method, _unnamed(self)))))
        if is_dask(X):
            _check_names(self, getattr(X, "columns", None))
            return apply_lazily(_unnamed(self), method.__name__, X)
        return method(self, X)

    return call


def _unnamed(model: Any) -> Any:
    """The model for blocks, which have no names: the names were checked for all rows."""
    copy = object.__new__(type(model))
    copy.__dict__ = {name: v for name, v in vars(model).items() if name != "feature_names_in_"}
    return copy


def _check_names(model: Any, names: Any) -> None:
    """Check that the columns of a file are those of the fit, in the same order."""
    expected = getattr(model, "feature_names_in_", None)
    if expected is not None and names is not None and list(expected) != list(names):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{list(expected)[:10]}, got {list(names)[:10]} instead. "
            "Select the columns in this order; for a file, with open_rows(..., columns=...)."
        )
