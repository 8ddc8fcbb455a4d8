"""A short fingerprint of a long run: equal for the same test, different for another.

Everything is identified by its content, never by its address in memory. Arrays and tables by their
values, types and column names; functions by their code, defaults and closures, and by the global
names that they use; objects by their class and attributes. Objects of an installed package are
identified by their name and the version of the package. Objects that have none of these, such as an
open file or a generator, are refused, since the run could not be identified.

Each object becomes a hash of its kind and of the hashes of its parts.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import scipy
import sklearn

from ..core.arrays import to_numpy
from ..core.version import __version__

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), PurePath)
CODE = (types.FunctionType, property, staticmethod, classmethod, functools.cached_property)
BUILT_IN = (types.BuiltinFunctionType, np.ufunc, types.WrapperDescriptorType)
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
        if isinstance(thing, PLAIN):
            return _hash(type(thing).__name__, repr(thing).encode("utf-8", "surrogatepass"))
        if id(thing) in self.inside:  # a thing that refers to itself
            return _hash("above", str(len(self.inside) - self.inside.index(id(thing))).encode())
        self.inside.append(id(thing))
        try:
            return self._of(thing)
        finally:
            self.inside.pop()

    def _of(self, thing: Any) -> bytes:
        if isinstance(thing, Mapping):
            pairs = [_hash("pair", self.of(key), self.of(value)) for key, value in thing.items()]
            return _hash("mapping", *sorted(pairs))
        if isinstance(thing, (list, tuple)):
            return _hash("sequence", *map(self.of, thing))
        if isinstance(thing, (set, frozenset)):
            return _hash("set", *sorted(map(self.of, thing)))
        if isinstance(thing, Enum):
            return _hash("enum", self._class(type(thing)), thing.name.encode())
        if isinstance(thing, (np.dtype, np.random.SeedSequence)):
            return _hash("text", repr(thing).encode())
        if isinstance(thing, np.random.RandomState):
            return _hash("RandomState", self.of(thing.get_state(legacy=False)))
        if isinstance(thing, np.random.Generator):
            return _hash("Generator", self.of(thing.bit_generator.state))
        if _is_data(thing):
            return self._data(thing)
        return self._code(thing)

    # ---- data ------------------------------------------------------------------------------------

    def _data(self, thing: Any) -> bytes:
        """Arrays, sparse matrices and tables."""
        if hasattr(thing, "tocsr"):
            matrix = thing.tocsr()
            parts = (matrix.shape, matrix.data, matrix.indices, matrix.indptr)
            return _hash("sparse", *map(self.of, parts))
        names = getattr(thing, "columns", None)
        if names is not None:
            kinds = [str(kind) for kind in getattr(thing, "dtypes", ())]
            named = self.of([list(names), kinds])
            return _hash("table", named, self._values(np.asarray(thing)))
        if isinstance(thing, np.generic) or hasattr(thing, "iloc"):
            return self._values(np.asarray(thing))
        return self._values(to_numpy(thing))

    def _values(self, array: np.ndarray) -> bytes:
        about = f"{array.dtype}{array.shape}".encode()
        if array.dtype == object:
            return _hash("objects", about, *map(self.of, array.ravel().tolist()))
        return _hash("array", about, np.ascontiguousarray(array).tobytes())

    # ---- functions, classes, objects -------------------------------------------------------------

    def _code(self, thing: Any) -> bytes:
        if isinstance(thing, functools.partial):
            return _hash("partial", *map(self.of, (thing.func, thing.args, thing.keywords)))
        if isinstance(thing, types.MethodType):
            return _hash("method", self.of(thing.__self__), self.of(thing.__func__))
        if isinstance(thing, types.ModuleType):
            return _hash("module", thing.__name__.encode(), _contents(thing))
        if isinstance(thing, BUILT_IN):
            owner = getattr(thing, "__self__", None)
            of = b"" if owner is None or isinstance(owner, types.ModuleType) else self.of(owner)
            return _hash("built in", _full_name(thing).encode(), of)
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, types.CodeType):
            return self._instructions(thing)
        if isinstance(thing, type):
            return self._class(thing)
        return self._object(thing)

    def _function(self, function: types.FunctionType) -> bytes:
        published = _published(function)
        if published is not None:
            return published
        cells = [_contents_of_cell(cell) for cell in function.__closure__ or ()]
        used = {
            name: function.__globals__[name]
            for name in _names(function.__code__)
            if name in function.__globals__
        }
        parts = (function.__defaults__, function.__kwdefaults__, cells, used)
        return _hash("function", self.of(function.__code__), *map(self.of, parts))

    def _instructions(self, code: types.CodeType) -> bytes:
        """Code without the file and the lines it was written in."""
        python = ".".join(platform.python_version_tuple()[:2])
        parts = (code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags)
        return _hash("code", python.encode(), code.co_code, self.of(code.co_consts), self.of(parts))

    def _class(self, kind: type) -> bytes:
        published = _published(kind)
        if published is not None:
            return published
        own = {
            name: _unwrapped(value)
            for name, value in vars(kind).items()
            if isinstance(value, CODE)
            or (isinstance(value, (*PLAIN, list, tuple, dict, np.ndarray)) and name[:2] != "__")
        }
        bases = [base for base in kind.__bases__ if base is not object]
        return _hash("class", kind.__qualname__.encode(), self.of(bases), self.of(own))

    def _object(self, thing: Any) -> bytes:
        """By what would make a copy of it: its class and attributes, or arguments."""
        if hasattr(thing, "get_params"):  # an estimator: cloned before use, so parameters are all
            parameters = self.of(thing.get_params(deep=False))
            return _hash("estimator", self._class(type(thing)), parameters)
        try:
            made = thing.__reduce_ex__(4)
        except Exception as error:  # each class has its own
            raise ValueError(
                "checkpoint needs to recognize a later run of the same test, but cannot identify a "
                f"{_full_name(type(thing))} in {self.name}: it has no code, parameters or "
                "attributes to compare. Use a function, or an object whose attributes are numbers, "
                "strings, arrays or functions; or do not use checkpoint."
            ) from error
        if isinstance(made, str):
            return _hash("name", made.encode(), self._class(type(thing)))
        how, arguments, *rest = made
        state = [list(part) if isinstance(part, Iterator) else part for part in rest]
        return _hash("object", self.of(how), self.of(arguments), self.of(state))


def _is_data(thing: Any) -> bool:
    """Whether it is an array, a sparse matrix or a table."""
    if isinstance(thing, type) or not hasattr(thing, "shape"):
        return False
    return any(hasattr(thing, name) for name in ("dtype", "columns", "iloc", "tocsr"))


def _contents_of_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _contents(module: types.ModuleType) -> bytes:
    """The version of a module's package; the text of one that has none."""
    version, file = _version(module.__name__), getattr(module, "__file__", None)
    if version is None and file is not None:
        with suppress(OSError):
            return Path(file).read_bytes()
    return repr(version).encode()


def _unwrapped(value: Any) -> Any:
    """The functions behind a name in a class."""
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    return value.func if isinstance(value, functools.cached_property) else value


def _names(code: types.CodeType) -> set[str]:
    """The global names and attributes that a function and the functions inside it use."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _full_name(thing: Callable[..., Any]) -> str:
    module = getattr(thing, "__module__", None) or ""
    return f"{module}.{getattr(thing, '__qualname__', thing.__name__)}"


def _version(module: str) -> str | None:
    """The version of the package that a module belongs to; Python's for what comes with it."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return platform.python_version()
    return getattr(sys.modules.get(top), "__version__", None)


def _published(thing: Any) -> bytes | None:
    """Name and version of what can be imported from a package that has one; None for others."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    version = None if module in (None, "__main__") else _version(module)
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if version is None or found is not thing:
        return None
    return _hash("published", f"{module}.{name}".encode(), str(version).encode())
