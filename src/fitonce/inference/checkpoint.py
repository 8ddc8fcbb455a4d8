"""A long run on file: what is done so far, and enough of the question to refuse a file that answers
another.

One NumPy archive without pickled objects, replaced atomically, so that an interruption leaves the
last complete block.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from ..core.atomic import atomic_file

FORMAT = "fitonce permutation test 1"


def fingerprint(*parts: Any) -> str:
    """A hash of data and settings; arrays by their bytes, everything else by a stable text."""
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if hasattr(part, "shape") and not hasattr(part, "toarray") and not hasattr(part, "iloc"):
        array = np.ascontiguousarray(to_numpy(part))
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes() if array.dtype != object else repr(array.tolist()).encode())
    elif hasattr(part, "toarray"):
        matrix = part.tocsr()
        for piece in (matrix.data, matrix.indices, matrix.indptr):
            _feed(digest, piece)
    elif hasattr(part, "iloc"):
        _feed(digest, np.asarray(part))
    elif isinstance(part, Mapping):
        for key in sorted(part, key=str):
            _feed(digest, str(key))
            _feed(digest, part[key])
    elif isinstance(part, (list, tuple)):
        digest.update(f"[{len(part)}".encode())
        for item in part:
            _feed(digest, item)
    elif callable(part) and hasattr(part, "__qualname__"):
        digest.update(part.__qualname__.encode())
    elif hasattr(part, "get_params"):
        digest.update(type(part).__name__.encode())
        _feed(digest, part.get_params(deep=False))
    else:
        digest.update(repr(part).encode())
    digest.update(b";")


def save(
    path: Path, mark: str, done: int, scores: Mapping[str, Any], null: Mapping[str, np.ndarray]
) -> None:
    """Write all of it beside the file, then replace the file."""
    names = list(null)
    arrays = {f"null_{number}": null[name] for number, name in enumerate(names)}
    arrays |= {f"score_{number}": np.asarray(scores[name]) for number, name in enumerate(names)}
    header = json.dumps({"format": FORMAT, "fingerprint": mark, "done": done, "names": names})
    with atomic_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, header=np.array(header), **arrays)  # type: ignore[arg-type]


def load(path: Path, mark: str) -> tuple[int, dict[str, np.ndarray]] | None:
    """How many labellings are done and their scores, or None where there is no file yet."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(str(archive["header"]))
            null = {name: archive[f"null_{number}"] for number, name in enumerate(header["names"])}
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"the checkpoint {path} cannot be read as one ({error}): it is damaged or some other "
            "file. "
            "Name another file, or remove it to start over."
        ) from error
    if header.get("format") != FORMAT or header.get("fingerprint") != mark:
        raise ValueError(
            f"the checkpoint {path} belongs to another test: data, estimator, splits, scoring or "
            "options differ from the run that wrote "
            "it, and its scores would be mixed with others. Name another file, or remove it to "
            "start over."
        )
    return int(header["done"]), null
