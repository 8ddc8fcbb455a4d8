"""Functions that are sent to the device of a block of rows, and results that are brought back.

A job is a function with bound arrays (landmarks, coefficients), as a partial or a dataclass. If the
block of a worker is on a GPU, these arrays are copied there, and the result is copied back to the
host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from ..core.arrays import Array, asarray_like, is_numpy, to_numpy


def sent(value: Any, like: Array) -> Any:
    """A job, or arrays, with all real numbers on the device of `like`; indices and masks stay."""
    if is_numpy(like):
        return value

    def send(A: Any) -> Any:
        return asarray_like(A, like) if isinstance(A, np.ndarray) and A.dtype.kind == "f" else A

    return _converted(value, send)


def brought(value: Any) -> Any:
    """A result with all its arrays on the host."""
    return _converted(value, to_numpy)


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A value with `convert` applied to every array in it."""
    if is_array_api_obj(value):
        return convert(value)
    if isinstance(value, partial):
        arguments = [_converted(argument, convert) for argument in value.args]
        named = {name: _converted(one, convert) for name, one in value.keywords.items()}
        return partial(_converted(value.func, convert), *arguments, **named)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_converted(part, convert) for part in value)
    if isinstance(value, dict):
        return {name: _converted(part, convert) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{n: _converted(part, convert) for n, part in given.items()})
    return value
