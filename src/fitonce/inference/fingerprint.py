"""A short fingerprint of a long run: equal for the same test, different for another.

Everything is identified by its content, never by its address in memory: arrays and tables by their
values, types and column names; functions by their code, defaults, closures and the global names
that they use; classes by their code; objects by their class and what a copy would be made of. What
can be imported from an installed package is identified by its name and the version of the package.

Each object becomes a hash of its kind and of the hashes of its parts.
"""

from __future__ import annotations

import copyreg
import hashlib
import platform
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import scipy
import sklearn

from ..core.arrays import to_numpy
from ..core.version import __version__

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), PurePath)
VERSIONS = (__version__, np.__version__, scipy.__version__, sklearn.__version__)


def fingerprint(**parts: Any) -> str:
    """A hash of named data and settings, and of the versions of the packages.

    Raises ValueError if one of them cannot be identified.
    """
    found = [_hash(name, _Identity(name).of(part)) for name, part in sorted(parts.items())]
    return _hash("fitonce", repr(VERSIONS).encode(), *found).hex()


def _hash(kind: str, *parts: bytes) -> bytes:
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


class _Identity:
    """Hashes of one named thing and of all that it consists of."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inside: list[int] = []  # the things whose parts are being looked at, by their ids

    def of(self, thing: Any) -> bytes:
        """The hash of a thing."""
        if isinstance(thing, PLAIN):
            return _hash(type(thing).__name__, repr(thing).encode("utf-8", "surrogatepass"))
        if id(thing) in self.inside:  # a thing that refers to itself
            return _hash("above", str(len(self.inside) - self.inside.index(id(thing))).encode())
        self.inside.append(id(thing))
        try:
            if isinstance(thing, (set, frozenset, Mapping)):
                unordered = thing.items() if isinstance(thing, Mapping) else thing
                return _hash("unordered", *sorted(map(self.of, unordered)))
            return _hash(type(thing).__name__, *map(self.of, self._parts(thing)))
        finally:
            self.inside.pop()

    def _parts(self, thing: Any) -> Iterable[Any]:
        """What a thing consists of."""
        if isinstance(thing, (list, tuple)):
            return thing
        if isinstance(thing, types.ModuleType):
            return thing.__name__, _version(thing.__name__) or _text(thing)
        if isinstance(thing, types.CodeType):  # without the file and the lines it was written in
            about = (thing.co_varnames, thing.co_freevars, thing.co_argcount, thing.co_flags)
            return platform.python_version(), thing.co_code, thing.co_consts, thing.co_names, about
        if isinstance(thing, type):
            return _published(thing) or _of_class(thing)
        if isinstance(thing, types.FunctionType):
            return _published(thing) or _used(thing)
        if hasattr(thing, "shape") and any(
            hasattr(thing, name) for name in ("dtype", "columns", "iloc", "tocsr")
        ):
            return _data(thing)
        if hasattr(thing, "get_params"):  # an estimator: cloned before use, so parameters are all
            return type(thing), thing.get_params(deep=False)
        return self._reduced(thing)

    def _reduced(self, thing: Any) -> Iterable[Any]:
        """What a copy of it would be made of."""
        try:
            known = copyreg.dispatch_table.get(type(thing))
            made = thing.__reduce_ex__(4) if known is None else known(thing)
        except Exception as error:  # each class has its own
            kind = type(thing)
            raise ValueError(
                "checkpoint needs to recognize a later run of the same test, but cannot identify a "
                f"{kind.__module__}.{kind.__qualname__} in {self.name}: it has no code, parameters "
                "or attributes to compare. Use a function, or an object whose attributes are "
                "numbers, strings, arrays or functions; or do not use checkpoint."
            ) from error
        if isinstance(made, str):
            return made, getattr(thing, "__module__", None)
        return [list(part) if isinstance(part, Iterator) else part for part in made]


def _data(thing: Any) -> Iterable[Any]:
    """Type, shape and values of arrays, sparse matrices and tables."""
    if hasattr(thing, "tocsr"):
        matrix = thing.tocsr()
        return matrix.shape, matrix.data, matrix.indices, matrix.indptr
    tabular = hasattr(thing, "columns") or hasattr(thing, "iloc") or isinstance(thing, np.generic)
    array = np.asarray(thing) if tabular else to_numpy(thing)
    names = (
        list(getattr(thing, "columns", ())),
        [str(kind) for kind in getattr(thing, "dtypes", ())],
    )
    values = array.ravel().tolist() if array.dtype == object else array.tobytes()
    return names if hasattr(thing, "columns") else None, str(array.dtype), array.shape, values


def _used(function: types.FunctionType) -> Iterable[Any]:
    """Code, defaults, closure, and the global names that it uses."""
    cells = [_contents(cell) for cell in function.__closure__ or ()]
    known = function.__globals__
    used = {name: known[name] for name in _names(function.__code__) if name in known}
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells, used


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    """The global names and attributes that a function and the functions inside it use."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _of_class(kind: type) -> Iterable[Any]:
    """Name, bases, and the functions and settings of its body."""
    own: dict[str, Any] = {}
    for name, value in vars(kind).items():
        code = [getattr(value, part, None) for part in ("fget", "fset", "__func__", "func")]
        if isinstance(value, types.FunctionType) or any(code):
            own[name] = [value] if isinstance(value, types.FunctionType) else code
        elif isinstance(value, (*PLAIN, list, tuple, dict, np.ndarray)) and name[:2] != "__":
            own[name] = value
    return kind.__qualname__, [base for base in kind.__bases__ if base is not object], own


def _version(module: str) -> str | None:
    """The version of the package that a module belongs to; Python's for what comes with it."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return platform.python_version()
    return getattr(sys.modules.get(top), "__version__", None)


def _text(module: types.ModuleType) -> bytes | None:
    """The text of a module."""
    file = getattr(module, "__file__", None)
    return Path(file).read_bytes() if file is not None and Path(file).is_file() else None


def _published(thing: Any) -> tuple[str, str] | None:
    """Name and version of what can be imported from a package that has one; None for others."""
    module, name = getattr(thing, "__module__", None) or "__main__", thing.__qualname__
    version = None if module == "__main__" else _version(module)
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (f"{module}.{name}", version) if version is not None and found is thing else None
