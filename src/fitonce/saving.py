"""Models in files: written with skops, read back trusting our own classes only.

A model file is the zip archive that skops writes (``schema.json`` and arrays) with one more member,
``fitonce.json``: the format, the versions that wrote it and the caller's metadata. Reading goes
from the outside in, and nothing in the file is looked up, imported or built before the step above
it has passed:

    bytes ─► zip archive ─► header (format known?) ─► schema (only known loaders?) ─► types (only
    trusted?) ─► model
"""

from __future__ import annotations

import errno
import importlib
import inspect
import io
import json
import os
import platform
import secrets
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator

from .core.arrays import to_numpy
from .estimators.base import KernelModel

FORMAT = 1  # of model files; raised when an older fitonce could misread a newer file
HEADER = "fitonce.json"
SCHEMA = "schema.json"

# kinds of parts that make up a model: data, estimators, NumPy's and SciPy's functions; never
# methods or partials
LOADERS = frozenset(
    {
        *("DictNode", "ListNode", "TupleNode", "SetNode", "SliceNode", "JsonNode", "CachedNode"),
        *("NdArrayNode", "MaskedArrayNode", "DTypeNode", "RandomStateNode", "SparseMatrixNode"),
        *("ObjectNode", "ConstructorFromReduceNode", "TypeNode", "FunctionNode"),
    }
)
TRUSTED_LAYERS = ("core", "kernels", "landmarks", "rows", "tuning", "estimators")
TRUSTED_ELSEWHERE = (  # plain data and bookkeeping of scikit-learn that skops does not list
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
)
MOST_UNFOLDED = 1 << 30  # bytes that a file may unfold to whatever its size
MOST_FOLDING = 200  # times its size, beyond that
VARIABLE = "SCIPY_ARRAY_API"
CALLBACKS = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)


@dataclass(frozen=True)
class Header:
    """What a model file says of itself.

    Its format, the class of the model, the versions that wrote it, the caller's metadata.
    """

    format: int
    model: str
    versions: dict[str, str]
    metadata: dict[str, Any]


# ---- save ----------------------------------------------------------------------------------------


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, Any] | None = None,
    trusted: Sequence[str | type] = (),
) -> Path:
    """Write a model to a file that `load` reads back, with predictions that are the same bit for
    bit.

    The file is a skops archive: data and names of classes, no code, no pickle. It appears complete
    or not at all; an existing file stays as it was until then. The n×n decomposition is not stored,
    so `at` and `verify` of a loaded model ask for a new fit. A model fitted on torch or CuPy arrays
    is stored, and loaded, as a NumPy model.

    Parameters
    ----------
    model : estimator
        One of ours, fitted or not, or a scikit-learn estimator that contains it, such as a Pipeline
        with a ColumnTransformer.
    path : str or path
        The file; ``.skops`` is its usual ending.
    metadata : mapping, default=None
        Anything that JSON can hold, to be read with `read_metadata`. NumPy numbers and arrays
        become numbers and lists.
    trusted : list of str or type, default=()
        Further classes that the model may contain, such as a transformer of your own. `load` must
        be given the same.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ValueError
        Where the model contains what a file without code cannot hold: a Python function as kernel
        or criterion, or an object of a class that is not trusted.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from fitonce import KernelFisherDiscriminant, load, save
    >>> from fitonce.datasets import make_torus
    >>> X, y = make_torus(80, random_state=0)
    >>> model = KernelFisherDiscriminant().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(model, os.path.join(folder, "torus.skops"), metadata={"columns": ["x1", "x2"]})
    ...     again = load(path)
    >>> np.array_equal(again.predict_proba(X), model.predict_proba(X))
    True
    """
    if not isinstance(model, BaseEstimator) or isinstance(model, type):
        raise TypeError(
            "save() takes an estimator, such as KernelFisherDiscriminant or a Pipeline, got "
            f"{_described(model)} instead."
        )
    path = Path(path)
    names = _trusted(trusted)
    memo: dict[int, Any] = {}
    portable = _portable(model, memo)
    for part, _ in memo.values():
        if isinstance(part, KernelModel):
            _check_no_functions(part)
    archive = _archive(portable, _header(model, metadata))
    unknown = _untrusted_types(archive, names, path)
    if unknown:
        raise ValueError(
            f"{type(model).__name__} cannot be saved: it contains {_listed(unknown)}, which "
            "load() would refuse. Save the part without it "
            "(of a search, best_estimator_), or, if you wrote these classes, name them in "
            "trusted=[…] here and in load()."
        )
    write_atomically(path, archive)
    return path


def _archive(model: Any, header: Header) -> bytes:
    """The model as skops writes it, with our header beside."""
    skops_io = _skops()
    try:
        buffer = io.BytesIO(
            skops_io.dumps(model, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        )
    except (
        TypeError,
        AttributeError,
    ) as error:  # what skops says of objects that it has no way to take apart
        raise ValueError(
            f"{type(model).__name__} cannot be saved: a part of it has no form in a file without "
            f"code ({error})."
        ) from error
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            HEADER,
            json.dumps({field.name: getattr(header, field.name) for field in fields(header)}),
        )
    return buffer.getvalue()


def _header(model: Any, metadata: Mapping[str, Any] | None) -> Header:
    packages = ("fitonce", "scikit-learn", "numpy", "scipy", "skops")
    versions = {name: found for name in packages if (found := _version(name))} | {
        "python": platform.python_version()
    }
    return Header(
        FORMAT,
        f"{type(model).__module__}.{type(model).__qualname__}",
        versions,
        _jsonable_metadata(metadata),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _jsonable_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise TypeError(
            f"metadata must be a mapping with names as keys, got {_described(metadata)} instead."
        )
    plain = {}
    for key, value in metadata.items():
        try:
            plain[key] = json.loads(json.dumps(value, default=_plain))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"metadata[{key!r}] must be made of what JSON can hold (texts, numbers, lists, "
                f"mappings): {error}."
            ) from error
    return plain


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and paths, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"got {_described(value)}")


def on_host(model: Any) -> Any:
    """The same model in NumPy, wherever it was fitted; the original stays as it is."""
    return _portable(model, {})


def _portable(value: Any, memo: dict[int, Any]) -> Any:
    """The same model on the host, without callbacks and decompositions: foreign arrays become NumPy
    arrays, at any depth.

    Estimators, their containers and dataclasses are rebuilt; arrays and everything else are shared
    with the original. An object that is met twice stays one object.
    """
    if id(value) in memo:
        return memo[id(value)][1]
    portable = _rebuilt(value, memo)
    memo[id(value)] = value, portable  # the original too, so that its id is not given to another
    return portable


def _rebuilt(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, (np.ndarray, np.generic, str, bytes, type)) or sp.issparse(value):
        return value
    if is_array_api_obj(value):
        return to_numpy(value)
    if type(value) is dict:
        return {_portable_key(key, value): _portable(item, memo) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_portable(item, memo) for item in value)
    if isinstance(value, BaseEstimator):
        return _portable_estimator(value, memo)
    if is_dataclass(value) and type(value).__module__.startswith("fitonce."):
        return _with_attributes(
            value, {name: _portable(item, memo) for name, item in vars(value).items()}
        )
    return value


def _portable_estimator(model: Any, memo: dict[int, Any]) -> Any:
    state = model.__getstate__()
    if not isinstance(state, dict):
        return model
    attributes = {
        name: _portable(value, memo) for name, value in state.items() if name not in CALLBACKS
    }
    if isinstance(model, KernelModel) and "_namespace_name" in attributes:
        attributes["_namespace_name"] = "numpy"
    return _with_attributes(model, attributes)


def _with_attributes(like: Any, attributes: dict[str, Any]) -> Any:
    copy = object.__new__(type(like))
    copy.__dict__.update(attributes)
    return copy


def _check_no_functions(model: KernelModel) -> None:
    for name, value in model.get_params(deep=False).items():
        if callable(value) and not hasattr(value, "get_params"):
            remedy = (
                'compute its matrices yourself and use kernel="precomputed"'
                if name == "kernel"
                else f"set {name} to one of the names"
            )
            raise ValueError(
                f"{type(model).__name__} cannot be saved with "
                f"{name}={getattr(value, '__name__', value)!s}: a file without code cannot "
                f"hold a Python function. Before fitting, {remedy}; or pickle the model, for "
                "people who trust you."
            )


def _portable_key(key: Any, mapping: dict[Any, Any]) -> Any:
    """Keys travel as texts with their type.

    Those that would not come back are refused, or replaced by an equal one.
    """
    if isinstance(key, (bool, np.bool_)):
        return int(key)  # {True: …} equals {1: …}
    if (
        not isinstance(key, (str, int, float, np.integer, np.floating))
        or sum(str(key) == str(other) for other in mapping) > 1
    ):
        raise ValueError(
            f"a mapping with the key {key!r} cannot be saved: keys must be texts or numbers that "
            "read differently."
        )
    return key


# ---- load ----------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, trusted: Sequence[str | type] = ()) -> Any:
    """Read a model that `save` wrote.

    Only data, our own classes, and the classes of scikit-learn, NumPy and SciPy that make up
    estimators are accepted. A file that contains anything else is refused with its name, before
    anything in it is imported or run. Pickle files are never read.

    Parameters
    ----------
    path : str or path
    trusted : list of str or type, default=()
        Further classes to accept: only those whose code you know, as their names in a file can come
        from anyone.

    Returns
    -------
    estimator
        Predictions are those of the saved model, bit for bit. `at` and `verify` need a new fit.

    Raises
    ------
    ValueError
        Where the file is not a model file, is damaged, has a newer format, or contains classes that
        are not trusted.
    OSError
        Where there is no such file, or it cannot be read.
    """
    path = Path(path)
    archive = _read(path)
    header = _read_header(archive, path)
    names = _trusted(trusted)
    unknown = _untrusted_types(archive, names, path)
    if unknown:
        raise ValueError(_refusal(path, header, unknown))
    model = _constructed(archive, names, path)
    if not isinstance(model, BaseEstimator):
        raise ValueError(
            f"{path} contains {_described(model)}, not an estimator: it was not written by "
            "fitonce.save()."
        )
    return model


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata that `save` was given, without building the model.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        As JSON holds it: tuples have become lists. Empty where none was given.
    """
    return read_header(path).metadata


def read_header(path: str | os.PathLike[str]) -> Header:
    """What a model file says of itself, without building the model.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Header
        ``format``, ``model`` (the name of its class), ``versions`` that wrote it and ``metadata``.
    """
    path = Path(path)
    return _read_header(_read(path), path)


def _read(path: Path) -> bytes:
    """The bytes of a file, or one sentence about why there are none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder, not a model file.") from None
    except PermissionError:
        raise PermissionError(f"{path} cannot be read: permission denied.") from None
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror or error}.") from error


def _opened(archive: bytes, path: Path) -> zipfile.ZipFile:
    try:
        opened = zipfile.ZipFile(io.BytesIO(archive))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ValueError(_not_an_archive(archive, path)) from error
    unfolded = sum(member.file_size for member in opened.infolist())
    if unfolded > max(MOST_UNFOLDED, MOST_FOLDING * len(archive)):
        raise ValueError(
            f"{path} claims to unfold to {unfolded:.1e} bytes from {len(archive)}: no model does, "
            "and it was not read."
        )
    return opened


def _not_an_archive(archive: bytes, path: Path) -> str:
    if not archive:
        return f"{path} is empty, not a model file."
    if archive.startswith(b"PK\x03\x04"):
        return (
            f"{path} is incomplete or damaged: the end of the archive is missing. Copy it again, "
            "or save the model again."
        )
    if archive[:1] == b"\x80":
        return (
            f"{path} is a pickle, not a model file. Reading a pickle runs whatever code it "
            "contains, so it was not read; where you trust "
            "its origin, load it with joblib and write it with fitonce.save()."
        )
    return f"{path} is not a model file written by fitonce.save()."


def _member(archive: bytes, name: str, path: Path) -> Any:
    """A JSON member of the archive, or None where it is missing."""
    with _opened(archive, path) as opened:
        if name not in opened.namelist():
            return None
        try:
            return json.loads(opened.read(name))
        except Exception as error:  # of zipfile, zlib or json: whatever the damage led to
            raise ValueError(_damaged(path, f"{name} cannot be read")) from error


def _damaged(path: Path, what: str) -> str:
    return f"{path} is damaged: {what}. Copy it again, or save the model again."


def _read_header(archive: bytes, path: Path) -> Header:
    header = _member(archive, HEADER, path)
    if header is None:
        raise ValueError(
            f"{path} is an archive, but not a model file written by fitonce.save(): it has no "
            f"{HEADER}."
        )
    kinds = {"format": int, "model": str, "versions": dict, "metadata": dict}
    number = header.get("format") if isinstance(header, dict) else None
    if type(number) is int and number > FORMAT:
        writer = dict(header.get("versions") or {}).get("fitonce", "of a later version")
        raise ValueError(
            f"{path} was written by fitonce {writer} in file format {number}, and this is fitonce "
            f"{_version('fitonce')}, which reads "
            f"formats up to {FORMAT}: update fitonce to load it."
        )
    if (
        type(number) is not int
        or number < 1
        or not all(isinstance(header.get(name), kind) for name, kind in kinds.items())
    ):
        raise ValueError(_damaged(path, f"{HEADER} does not name a known format"))
    return Header(**{name: header[name] for name in kinds})


def _schema(archive: bytes, path: Path) -> Any:
    schema = _member(archive, SCHEMA, path)
    if not isinstance(schema, dict):
        raise ValueError(_damaged(path, f"it has no {SCHEMA}"))
    return schema


def _trusted(further: Sequence[str | type]) -> list[str]:
    """Names of the classes that a file may contain beyond those that skops accepts.

    Ours, splitters, and a few of scikit-learn.
    """
    if isinstance(further, (str, type)):
        raise TypeError(
            f"trusted must be a list of classes or of their full names, got {further!r} instead."
        )
    public = [
        getattr(sklearn.model_selection, name, None)
        for name in sklearn.model_selection.__all__
        if "Halving" not in name
    ]
    splitters = [cls for cls in public if inspect.isclass(cls) and hasattr(cls, "split")]
    named = [name if isinstance(name, str) else _name(name) for name in further]
    return [*map(_name, _own_classes()), *map(_name, splitters), *TRUSTED_ELSEWHERE, *named]


def _own_classes() -> Iterator[type]:
    """Estimators and dataclasses of the layers that fitted models are made of."""
    package = __name__.partition(".")[0]
    layers = tuple(f"{package}.{layer}" for layer in TRUSTED_LAYERS)
    for name, module in list(sys.modules.items()):
        if name.startswith(layers):
            for value in vars(module).values():
                if (
                    inspect.isclass(value)
                    and value.__module__ == name
                    and (is_dataclass(value) or issubclass(value, BaseEstimator))
                ):
                    yield value


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _untrusted_types(archive: bytes, trusted: Sequence[str], path: Path) -> list[str]:
    """Names of what the archive contains and nobody vouches for; looking at names only.

    Loaders first, and by a list of our own: what skops says of a node is asked only where the
    node's kind is known to be plain data.
    """
    strange = {
        _node_name(node)
        for node in _nodes(_schema(archive, path))
        if node.get("__loader__") not in LOADERS
    }
    if strange:
        return sorted(strange)
    try:
        found = _skops().get_untrusted_types(data=archive)
    except Exception as error:  # whatever a schema that skops did not write leads to
        raise ValueError(
            _damaged(
                path, f"its {SCHEMA} or its arrays cannot be read ({type(error).__name__}: {error})"
            )
        ) from error
    return sorted(set(found) - set(trusted))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of the schema: whatever names a loader or a class."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part or "__class__" in part:
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _node_name(node: Mapping[str, Any]) -> str:
    names = [str(node.get(key)) for key in ("__module__", "__class__") if node.get(key)]
    func = node.get("content", {}).get("func") if isinstance(node.get("content"), dict) else None
    return (
        ".".join([*names, *([func] if isinstance(func, str) else [])])
        + f" (as {node.get('__loader__')})"
    )


def _refusal(path: Path, header: Header, unknown: Sequence[str]) -> str:
    writer, here = header.versions.get("fitonce"), _version("fitonce")
    advice = (
        f"It was written by fitonce {writer}, this is {here}: another version may know them."
        if all(name.startswith("fitonce.") for name in unknown) and writer != here
        else "Nothing in the file was run. If you know these classes and where the file comes "
        "from, name them in trusted=[…]."
    )
    return f"{path} contains {_listed(unknown)}, which fitonce does not trust. {advice}"


def _constructed(archive: bytes, trusted: list[str], path: Path) -> Any:
    try:
        return _skops().loads(archive, trusted=trusted)
    except Exception as error:  # arrays cut short, attributes missing: whatever the damage leads to
        raise ValueError(
            _damaged(path, f"the model cannot be built ({type(error).__name__}: {error})")
        ) from error


def _skops() -> Any:
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


def _described(value: Any) -> str:
    return (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else f"an object of type {type(value).__name__}"
    )


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# ---- files that are whole or absent --------------------------------------------------------------


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is there complete or, after an error or an interruption, as it was
    before.

    The content goes to a new file in the same folder, which then takes the name. An existing file
    passes on its permissions; a link is followed.

    Parameters
    ----------
    path : str or path
    content : bytes
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        failure = type(error)(_write_failure(path, target, error))
        failure.errno = error.errno
        raise failure from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write_failure(path: str | os.PathLike[str], target: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path} cannot be written: there is no folder {target.parent}."
    if isinstance(error, PermissionError):
        return f"{path} cannot be written: permission denied in {target.parent}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path} cannot be written: the disk is full. Nothing was changed."
    return f"{path} cannot be written: {error.strerror or error}. Nothing was changed."
