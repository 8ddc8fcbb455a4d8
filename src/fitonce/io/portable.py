"""A model made only of what files and other programs can hold: NumPy arrays and plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator

from ..core.arrays import to_numpy

CALLBACKS = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)


def portable(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """The same model in NumPy, wherever it was fitted; the original stays as it is.

    Estimators, their containers and our dataclasses are rebuilt from what `__getstate__` gives,
    without callbacks; everything else is shared with the original. An object that is met twice
    stays one object.
    """
    memo = {} if memo is None else memo
    if id(value) not in memo:  # the value is kept too, so that its id is not given to another
        memo[id(value)] = value, _rebuilt(value, partial(portable, memo=memo))
    return memo[id(value)][1]


def _rebuilt(value: Any, rebuild: Callable[[Any], Any]) -> Any:
    if isinstance(value, (np.ndarray, np.generic, type)):
        return value
    if is_array_api_obj(value):
        return to_numpy(value)
    if type(value) is dict:
        return {_key(key, value): rebuild(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(rebuild, value))
    ours = is_dataclass(value) and type(value).__module__.startswith("fitonce.")
    state = value.__getstate__() if ours or isinstance(value, BaseEstimator) else None
    if not isinstance(state, dict):
        return value
    copy = object.__new__(type(value))
    vars(copy).update(
        {name: rebuild(item) for name, item in state.items() if name not in CALLBACKS}
    )
    return copy


def _key(key: Any, mapping: dict[Any, Any]) -> Any:
    """Keys travel as texts with their type.

    Those that would not come back are refused, or replaced by an equal one.
    """
    if isinstance(key, (bool, np.bool_)):
        return int(key)  # {True: …} equals {1: …}
    plain = isinstance(key, (str, int, float, np.integer, np.floating))
    if not plain or sum(str(key) == str(other) for other in mapping) > 1:
        raise ValueError(
            f"a mapping with the key {key!r} cannot be saved: keys must be texts or numbers that "
            "read differently."
        )
    return key
