"""Outputs for rows that are not in memory: block by block from files, lazily on Dask collections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from ..scale.dask import apply_lazily, is_dask
from ..scale.rows import is_rows


def blockwise(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A method of one argument X, also for `Rows` (an array of all outputs) and Dask collections (a Dask array, not yet computed)."""

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        if is_rows(X):
            return np.concatenate(list(X.map(partial(method, self))))
        if is_dask(X):
            return apply_lazily(self, method.__name__, X)
        return method(self, X)

    return call
