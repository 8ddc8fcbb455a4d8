"""What a model file may contain: names of types, judged before anything is imported or built."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

import sklearn.model_selection
from sklearn.base import BaseEstimator

OWN = tuple(
    f"fitonce.{layer}" for layer in ("core", "kernels", "landmarks", "rows", "tuning", "estimators")
)
LISTED = (  # plain data and bookkeeping of scikit-learn that skops does not list
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
)
VARIABLE = "SCIPY_ARRAY_API"


def untrusted(types: Sequence[str], further: Sequence[str | type]) -> list[str]:
    """Those of the types that nobody vouches for."""
    if isinstance(further, (str, type)):
        raise TypeError(
            f"trusted must be a list of classes or of their full names, got {further!r} instead."
        )
    named = {name if isinstance(name, str) else full_name(name) for name in further}
    return [name for name in types if name not in named and not _vouched(name)]


def _vouched(name: str) -> bool:
    """Whether this is one of our estimators or dataclasses, a splitter, or listed.

    Nothing is imported for it: what a file may contain has been imported before.
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

    scikit-learn 1.6 beside array-api-compat and SciPy 1.14 cannot list its estimators, as skops
    asks it to, without SCIPY_ARRAY_API in the environment, though nothing here uses what that
    switches on; it is set for the length of the import.
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
