"""Checkpoints of a long run: the results so far, and a fingerprint of the test, so that the file of
another test is refused.

A checkpoint is one NumPy archive without pickled objects, written whole or not at all.

The fingerprint is a hash of what pickling the test would write, which nobody reads again. Things
are told apart by their content, never by their address in memory: arrays and tables by their
values, types and column names; functions and classes that no installed package has by their code,
defaults, closures and the global names that they use; estimators by their parameters.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import platform
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from ..core.arrays import to_numpy
from ..core.atomic import atomic_file, is_stream
from ..core.atomic import check_place as check_writable
from ..core.version import __version__
from .validity import draws_anew

FORMAT = "fitonce permutation test 4"
PACKAGES = (__version__, np.__version__, scipy.__version__, sklearn.__version__)
WRAPPERS = (property, staticmethod, classmethod, cached_property)  # of functions in a class
SETTINGS = (bool, int, float, str, bytes, list, tuple, dict, np.ndarray)
VERSIONS = (platform.python_version(), *PACKAGES)


def check_place(path: str | Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path is None:
        return
    if is_stream(path):
        raise ValueError(f"the checkpoint {path} must be a file, not a pipe or a device.")
    try:
        check_writable(path)
    except OSError as error:
        raise ValueError(f"the checkpoint {error}") from error


def check_resumable(random_state: Any, cv: Any, enumerated: bool) -> None:
    """Refuse draws and folds that a later run would not make again."""
    if not enumerated and not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            f"checkpoint needs an integer random_state, got {random_state!r} instead: otherwise "
            "the same permutations cannot be drawn again."
        )
    if draws_anew(cv) or (getattr(cv, "shuffle", False) and getattr(cv, "random_state", 0) is None):
        raise ValueError(
            "checkpoint needs reproducible folds: give the splitter an integer random_state."
        )


@dataclass(frozen=True)
class Checkpoint:
    """The file of the test with this fingerprint."""

    path: Path
    mark: str

    def save(self, results: Mapping[str, np.ndarray]) -> None:
        """Replace the file by one with everything so far."""
        names = list(results)
        arrays = {f"result_{number}": results[name] for number, name in enumerate(names)}
        header = json.dumps({"format": FORMAT, "fingerprint": self.mark, "names": names})
        with atomic_file(self.path) as file:
            np.savez(file, header=np.array(header), **arrays)  # type: ignore[arg-type]

    def load(self, most: int, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """The results by name, as many of each as are complete, none if there is no file yet.

        There are at most `most`, each of the given shape.
        """
        if not self.path.exists():
            return {}
        if not self.path.stat().st_size:
            raise ValueError(
                f"the checkpoint {self.path} is empty: it was not written by a run. Use another "
                "file, or delete it to start over."
            )
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                header = json.loads(str(archive["header"]))
                names = header["names"]
                results = {name: archive[f"result_{i}"] for i, name in enumerate(names)}
                mine = (header["format"], header["fingerprint"]) == (FORMAT, self.mark)
        except Exception as error:  # damaged archives raise nearly anything
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint ({error}): it is damaged, or another "
                "kind of file. Use another file, or delete it to start over."
            ) from error
        if not mine:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another test: data, column names, "
                "estimator, splits, scoring, options or the versions of fitonce, scikit-learn, "
                "NumPy and SciPy differ from the run that wrote it. Use another file, or delete it "
                "to start over."
            )
        done = len(next(iter(results.values()))) if results else 0
        expected = {name: (done, *shape) for name, shape in shapes.items()}
        if done > most or {name: A.shape for name, A in results.items()} != expected:
            raise ValueError(
                f"the checkpoint {self.path} is damaged: it does not contain the scores of "
                f"{' and '.join(shapes)} for at most {most} results. Delete it to start over."
            )
        return results


# ---- fingerprints --------------------------------------------------------------------------------


def fingerprint(**parts: Any) -> str:
    """A hash of named data and settings, and of the versions of the packages.

    Raises ValueError if one of them cannot be identified.
    """
    digest = hashlib.sha256(repr(VERSIONS).encode())
    for name, part in sorted(parts.items()):
        try:
            digest.update(name.encode() + _content(part))
        except Exception as error:  # each class has its own
            raise ValueError(
                "checkpoint needs to recognize a later run of the same test, but cannot identify a "
                f"part of it in {name} ({error}). Use functions, or objects whose attributes are "
                "numbers, strings, arrays or functions; or do not use checkpoint."
            ) from error
    return digest.hexdigest()


def _content(thing: Any, inside: tuple[int, ...] = ()) -> bytes:
    """A hash of what tells a thing from others; it is part of the functions and classes whose ids
    are given, some of which use themselves.
    """
    digest = hashlib.sha256()
    pickler = _Content(types.SimpleNamespace(write=digest.update), protocol=5)
    pickler.fast = True  # equal things are written alike, whether or not they are the same object
    pickler.inside = inside
    pickler.dump(thing)
    return digest.digest()


class _Content(pickle.Pickler):
    """Writes the parts of some things in their place."""

    inside: tuple[int, ...]

    def persistent_id(self, thing: Any) -> Any:
        """The parts that are written for a thing; None to write the thing itself."""
        if isinstance(thing, WRAPPERS):
            return [getattr(thing, name, None) for name in ("fget", "fset", "__func__", "func")]
        if isinstance(thing, (set, frozenset)):
            return "set", sorted(map(_content, thing))
        if isinstance(thing, types.ModuleType):
            return "module", thing.__name__
        if isinstance(thing, (types.FunctionType, types.CodeType, type)):
            if id(thing) in self.inside:
                return "above", len(self.inside) - self.inside.index(id(thing))
            return (
                None if _is_published(thing) else _content(_used(thing), (*self.inside, id(thing)))
            )
        if hasattr(thing, "get_params"):  # an estimator: cloned before use, so parameters are all
            return type(thing), sorted(thing.get_params(deep=False).items())
        if hasattr(thing, "tocsr"):
            matrix = thing.tocsr()
            return matrix.shape, matrix.data, matrix.indices, matrix.indptr
        if hasattr(thing, "shape") and not isinstance(thing, (np.ndarray, np.generic, np.dtype)):
            names = [list(getattr(thing, name, ())) for name in ("columns", "dtypes")]
            return names, np.asarray(thing) if hasattr(thing, "iloc") else to_numpy(thing)
        return None


def _used(thing: Any) -> tuple[Any, ...]:
    """The code of a function or class, with all that it uses."""
    if isinstance(thing, types.CodeType):
        return thing.co_code, thing.co_consts, thing.co_names, thing.co_varnames
    if isinstance(thing, type):
        kinds = (types.FunctionType, *WRAPPERS)
        own = {
            name: part
            for name, part in vars(thing).items()
            if isinstance(part, kinds) or (name[:2] != "__" and isinstance(part, SETTINGS))
        }
        return thing.__qualname__, thing.__bases__, own
    used = {name: thing.__globals__.get(name) for name in _names(thing.__code__)}
    cells = [cell.cell_contents for cell in thing.__closure__ or ()]
    return thing.__code__, thing.__defaults__, thing.__kwdefaults__, cells, used


def _names(code: types.CodeType) -> list[str]:
    """The global names and attributes that a function and the functions inside it use."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return sum(inner, list(code.co_names))


def _is_published(thing: Any) -> bool:
    """Whether a function or class can be imported from a package with a version."""
    module = getattr(thing, "__module__", None) or "__main__"
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names and not hasattr(sys.modules.get(top), "__version__"):
        return False
    found: Any = sys.modules.get(module)
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    return module != "__main__" and found is thing
