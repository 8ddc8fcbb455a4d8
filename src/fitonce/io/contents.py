"""What a model file may contain.

Models are saved and exported as NumPy arrays and plain data. Names of types in a file are checked
before anything is imported or built.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Any

import numpy as np
import sklearn.model_selection
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator

from ..core.arrays import to_numpy

CALLBACKS = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)
OWN = tuple(
    f"fitonce.{layer}"
    for layer in ("core", "kernels", "landmarks", "rows", "tuning", "estimators", "preparation")
)
LISTED = (  # plain data and internals of scikit-learn that skops does not list
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
)
VARIABLE = "SCIPY_ARRAY_API"


# ---- writing -------------------------------------------------------------------------------------


def portable(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """The same model in NumPy, wherever it was fitted; the original is not changed.

    Estimators, their containers and our dataclasses are rebuilt from `__getstate__`, without
    callbacks; everything else is shared with the original. An object that occurs twice stays one
    object.
    """
    memo = {} if memo is None else memo
    if id(value) not in memo:  # the value is kept too, so that its id is not reused
        memo[id(value)] = value, _rebuilt(value, partial(portable, memo=memo))
    return memo[id(value)][1]


def _rebuilt(value: Any, rebuild: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ma.MaskedArray) and not np.any(value.mask):
        return np.asarray(value)  # the names of masked arrays and of numpy.bool_ depend on NumPy
    if isinstance(value, np.bool_):
        return bool(value)
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
    """Keys are stored as strings with their type.

    Keys that would not be restored are refused, or replaced by an equal one.
    """
    if isinstance(key, (bool, np.bool_)):
        return int(key)  # {True: …} equals {1: …}
    plain = isinstance(key, (str, int, float, np.integer, np.floating))
    if not plain or sum(str(key) == str(other) for other in mapping) > 1:
        raise ValueError(
            f"a mapping with the key {key!r} cannot be saved: keys must be strings or numbers with "
            "distinct text representations."
        )
    return key


# ---- reading -------------------------------------------------------------------------------------


def untrusted(types: Sequence[str], further: Sequence[str | type]) -> list[str]:
    """The types that are not trusted."""
    if isinstance(further, (str, type)):
        raise TypeError(
            f"trusted must be a list of classes or of their full names, got {further!r} instead."
        )
    named = {name if isinstance(name, str) else full_name(name) for name in further}
    return [name for name in types if name not in named and not _vouched(name)]


def _vouched(name: str) -> bool:
    """Whether this is one of our estimators or dataclasses, a splitter, or a listed type.

    Nothing is imported: everything that a file may contain has been imported before.
    """
    module, _, attribute = name.rpartition(".")
    home = sys.modules.get(module) if module.startswith(OWN) else sklearn.model_selection
    found = getattr(home, "__dict__", {}).get(attribute)
    if not isinstance(found, type) or full_name(found) != name:
        return name in LISTED
    return is_dataclass(found) or issubclass(found, BaseEstimator) or hasattr(found, "split")


def full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def skops_io() -> Any:
    """skops.io, imported on first use.

    scikit-learn 1.6 with array-api-compat and SciPy 1.14 cannot list its estimators, as skops
    requests, without SCIPY_ARRAY_API in the environment, although nothing here uses that feature.
    It is set only during the import.
    """
    try:
        return importlib.import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'fitonce[io]'."
        ) from error
    except RuntimeError:
        if VARIABLE in os.environ:
            raise
    os.environ[VARIABLE] = "1"
    try:
        return importlib.import_module("skops.io")
    finally:
        del os.environ[VARIABLE]
