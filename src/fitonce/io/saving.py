"""Model files: written with skops, and read back trusting only our own classes.

A model file is the zip archive that skops writes (``schema.json`` and arrays) with one more member,
``fitonce.json``: the format, the versions that wrote it and the user's metadata. Reading proceeds
from the outside in, and nothing in the file is looked up, imported or built before the previous
step has passed:

    bytes ─► zip archive ─► header (format known?) ─► parts (not too many? sparse matrices sound?)
    ─► names of types (all trusted?) ─► model
"""

from __future__ import annotations

import importlib
import io
import json
import os
import platform
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.atomic import write_atomically
from ..estimators.fitted import final_step, is_committee, is_model
from ..kernels import KernelSum
from .contents import (
    MOST_HEADER,
    check_parts,
    check_text,
    check_unfolding,
    complete,
    full_name,
    portable,
    skops_io,
    untrusted,
)

FORMAT = 1  # of model files; increased if an older fitonce could misread a newer file
HEADER = "fitonce.json"
KINDS = {"format": int, "model": str, "versions": dict, "metadata": dict}  # in every format
PACKAGES = {  # whose versions are recorded: package names and module names
    "fitonce": "fitonce",
    "scikit-learn": "sklearn",
    "numpy": "numpy",
    "scipy": "scipy",
    "skops": "skops",
}
UNREADABLE = {
    FileNotFoundError: "there is no file {path}.",
    IsADirectoryError: "{path} is a folder, not a model file.",
    PermissionError: "{path} cannot be read: permission denied.",
}
NO_ARCHIVE = {  # what a file that is not an archive is, by its first bytes
    b"PK\x03\x04": "is incomplete or damaged: the end of the archive is missing. Copy it again, or "
    "save the model again.",
    b"\x80": "is a pickle, not a model file. Loading a pickle can run arbitrary code, so it was "
    "not read. If you trust its origin, load it with joblib and save it with "
    "fitonce.save().",
    b"": "is not a model file written by fitonce.save().",
}


@dataclass(frozen=True)
class Header:
    """The header of a model file.

    The format, the class of the model, the versions that wrote it, and the user's metadata.
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
    """Save a model to a file that `load` can read. The loaded model gives bit-identical
    predictions.

    The file is a skops archive: data and names of classes, no code. It is written completely or not
    at all. The n×n decomposition is not stored, so `at` and `verify` of a loaded model need a new
    fit. A model fitted on torch or CuPy arrays is loaded as a NumPy model.

    Parameters
    ----------
    model : estimator
        An estimator of fitonce, fitted or not, or a scikit-learn estimator that contains one.
    path : str or path
        The file; its usual ending is ``.skops``.
    metadata : mapping, default=None
        Anything that JSON can represent; read it with `read_metadata`.
    trusted : list of str or type, default=()
        Further classes that the model may contain. Pass the same list to `load`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ValueError
        If the model contains something that a file without code cannot represent: a Python function
        as kernel or criterion, or an object of a class that is not trusted.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from fitonce import KernelFisherDiscriminant, load, save
    >>> from fitonce.datasets import make_torus
    >>> X, y = make_torus(80, random_state=0)
    >>> model = KernelFisherDiscriminant().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(model, os.path.join(folder, "torus.skops"), metadata={"seed": 0})
    ...     again = load(path)
    >>> np.array_equal(again.predict_proba(X), model.predict_proba(X))
    True
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            "save() takes an estimator, such as KernelFisherDiscriminant or a Pipeline, got "
            f"{_described(model)} instead."
        )
    for part in (model, *model.get_params().values()):
        for one in part.members or () if is_committee(part) else (part,):
            if is_model(final_step(one)):
                _check_no_functions(final_step(one))
    archive = _archive(model, _plain_metadata(metadata))
    named, distrusted = _types(archive, Path(path))
    unknown = untrusted(named, distrusted, trusted)
    if unknown:
        raise ValueError(
            f"{type(model).__name__} cannot be saved: it contains {_listed(unknown)}, which "
            "load() would refuse. Save the part without it "
            "(best_estimator_ of a search) or, if you wrote these classes, name them in "
            "trusted=[…] here and in load()."
        )
    return write_atomically(path, archive)


def _check_no_functions(model: Any) -> None:
    for name, value in model.get_params(deep=False).items():
        value = next(iter(value.functions), None) if isinstance(value, KernelSum) else value
        if callable(value) and not hasattr(value, "get_params"):
            remedy = (
                'compute its matrices yourself and use kernel="precomputed"'
                if name == "kernel"
                else f"set {name} to one of the named options"
            )
            raise ValueError(
                f"{type(model).__name__} cannot be saved with "
                f"{name}={getattr(value, '__name__', value)!s}: a file without code cannot contain "
                f"a Python function. Before fitting, {remedy}. Or pickle the model, for "
                "people who trust you."
            )


def _archive(model: Any, metadata: dict[str, Any]) -> bytes:
    """The model as written by skops, with our header."""
    try:
        content = skops_io().dumps(
            portable(model), compression=zipfile.ZIP_DEFLATED, compresslevel=1
        )
    except (TypeError, AttributeError) as error:  # from objects that skops cannot serialize
        raise ValueError(
            f"{type(model).__name__} cannot be saved: a part of it cannot be represented in a file "
            f"without code ({error})."
        ) from error
    versions = {name: _version(module) for name, module in PACKAGES.items()}
    versions["python"] = platform.python_version()
    header = Header(FORMAT, full_name(type(model)), versions, metadata)
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps(asdict(header)))
    return buffer.getvalue()


def _version(module: str) -> str:
    return str(importlib.import_module(module).__version__)


def _plain_metadata(metadata: Any) -> dict[str, Any]:
    """The metadata as JSON will return it."""
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise TypeError(
            f"metadata must be a mapping with strings as keys, got {_described(metadata)} instead."
        )
    plain = {}
    for key, value in metadata.items():
        try:
            plain[key] = json.loads(json.dumps(value, default=_plain))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"metadata[{key!r}] must consist of JSON types (strings, numbers, lists, "
                f"mappings): {error}."
            ) from error
    size = len(json.dumps(plain))
    if size > MOST_HEADER // 2:
        raise ValueError(
            f"metadata takes {size:,} bytes as JSON, but the limit is {MOST_HEADER // 2:,}: load() "
            "refuses more to protect the memory. Keep large data in a separate file."
        )
    return plain


def _plain(value: Any) -> Any:
    """NumPy numbers, arrays and paths, converted for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"got {_described(value)}")


# ---- load ----------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, trusted: Sequence[str | type] = ()) -> Any:
    """Load a model that was written by `save`.

    Only data, fitonce's classes, and a fixed list of scikit-learn's are accepted. If a file
    contains anything else, `load` names it and refuses the file before anything in it is imported
    or run.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : list of str or type, default=()
        Further classes to accept. Name only classes whose code you know, and of scikit-learn only
        in files that you trust: anyone can write names and numbers into a file.

    Returns
    -------
    estimator
        Predictions are bit-identical to those of the saved model. `at` and `verify` need a new fit.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged, has a newer format, or contains classes that
        are not trusted.
    OSError
        If the file does not exist or cannot be read.
    """
    path = Path(path)
    archive = _read(path)
    header = _header(archive, path)
    named, distrusted = _types(archive, path)
    unknown = untrusted(named, distrusted, trusted)
    if unknown:
        raise ValueError(_refusal(path, header, unknown))
    with _damage(path, f"the model, of fitonce {header.versions.get('fitonce')}, cannot be built"):
        model = skops_io().loads(archive, trusted=sorted(distrusted))
        complete(model)
    if not isinstance(model, BaseEstimator):
        raise ValueError(
            f"{path} contains {_described(model)}, not an estimator: it was not written by "
            "fitonce.save()."
        )
    return model


def trusted_types(model: Any) -> list[str]:
    """Names of the types in a model that skops must be told to trust, for programs that keep
    models with skops themselves: mlflow, or `skops.io.load`.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    list of str
        Types that `load` accepts and skops does not.

    Examples
    --------
    >>> from fitonce import LeastSquaresSVC
    >>> from fitonce.io.saving import trusted_types
    >>> trusted_types(LeastSquaresSVC())
    ['fitonce.estimators.svc.LeastSquaresSVC']
    """
    skops = skops_io()
    distrusted = set(skops.get_untrusted_types(data=skops.dumps(model)))
    return sorted(distrusted.difference(untrusted(set(), distrusted)))


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata that was passed to `save`, without building the model.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        As returned by JSON: tuples become lists. Empty if there is none.
    """
    return read_header(path).metadata


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header of a model file, without building the model.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Header
        ``format``, ``model`` (the name of its class), ``versions`` that wrote it, and ``metadata``.
    """
    path = Path(path)
    return _header(_read(path), path)


def _read(path: Path) -> bytes:
    """The bytes of a file, or a one-sentence error."""
    try:
        return path.read_bytes()
    except OSError as error:
        message = UNREADABLE.get(type(error), "{path} cannot be read: {error}.")
        raise type(error)(message.format(path=path, error=error.strerror or error)) from error


def _header(archive: bytes, path: Path) -> Header:
    """The header of an archive that can be opened and has a known format."""
    with _opened(archive, path) as opened:
        if HEADER not in opened.namelist():
            raise ValueError(
                f"{path} is an archive, but not a model file written by fitonce.save(): it has no "
                f"{HEADER}."
            )
        with _damage(path, f"{HEADER} does not name a known format"):
            if opened.getinfo(HEADER).file_size > MOST_HEADER:
                raise ValueError(f"it has more than {MOST_HEADER} bytes")
            text = opened.read(HEADER)
            check_text(text, archive)
            found = json.loads(text)
            header = Header(**{name: found[name] for name in KINDS})
            if any(type(found[name]) is not KINDS[name] for name in KINDS) or header.format < 1:
                raise ValueError(f"format {header.format!r}")
    if header.format > FORMAT:
        raise ValueError(
            f"{path} was written by fitonce {header.versions.get('fitonce')} in file format "
            f"{header.format}, but this version, {_version('fitonce')}, reads only formats up to "
            f"{FORMAT}: update fitonce to load it."
        )
    return header


def _opened(archive: bytes, path: Path) -> zipfile.ZipFile:
    try:
        opened = zipfile.ZipFile(io.BytesIO(archive))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        kind = next(text for start, text in NO_ARCHIVE.items() if archive.startswith(start))
        raise ValueError(f"{path} {kind if archive else 'is empty, not a model file.'}") from error
    with _damage(path, "it is not a model"):
        check_unfolding(opened, archive)
    return opened


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """Turn any error from a damaged or forged file into one sentence."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"{path} is damaged: {what} ({type(error).__name__}: {error}). Copy it again, or save "
            "the model again."
        ) from error


def _types(archive: bytes, path: Path) -> tuple[set[str], set[str]]:
    """Names of all types in the archive, and of those that skops does not trust; only names are
    read.

    The cost of building it is checked first.
    """
    skops = skops_io()
    with _opened(archive, path) as opened, _damage(path, "its parts cannot be read"):
        named = check_parts(opened, archive)
        return named, set(skops.get_untrusted_types(data=archive))


def _refusal(path: Path, header: Header, unknown: Sequence[str]) -> str:
    advice = (
        f"It was written by fitonce {header.versions.get('fitonce')}, and this version, "
        f"{_version('fitonce')}, does not have these parts: load it with the version that wrote "
        "it, or fit and save the model again."
        if all(name.startswith("fitonce.") for name in unknown)
        else "Nothing in the file was run. If you know these classes and the origin of the file, "
        "name them in trusted=[…]."
    )
    return f"{path} contains {_listed(unknown)}, which fitonce does not trust. {advice}"


def _described(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an object of type {type(value).__name__}"


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
