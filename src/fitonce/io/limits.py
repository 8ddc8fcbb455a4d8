"""How much a model file may cost to read, judged before anything in it is unfolded or built.

A file of a few kilobytes can ask for gigabytes, or for work without end: members that unfold to a
thousand times their size, arrays named many times, archives inside members, lists of lists that are
shared by number, texts of brackets. All of it is counted in bytes of memory, against one budget.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import scipy.sparse as sp

MOST_UNFOLDED = 1 << 30  # bytes that a file may unfold to whatever its size
MOST_FOLDING = 200  # times its size, beyond that
MOST_HEADER = 1 << 24  # bytes of the header
MOST_VISITS = 200_000  # of parts, however often they are shared; or
MOST_SHARING = 4  # times as many as there are parts
BYTES_PER_CHARACTER, BYTES_PER_BRACKET = 8, 256  # of JSON as Python holds it, at most
SCHEMA = "schema.json"
SPARSE_LOADER = "SparseMatrixNode"


def budget(archive: bytes) -> int:
    """Bytes of memory that reading a file may take."""
    return max(MOST_UNFOLDED, MOST_FOLDING * len(archive))


def check_unfolding(opened: zipfile.ZipFile, archive: bytes) -> None:
    """The members together, once each."""
    _within(sum(member.file_size for member in opened.infolist()), archive)


def check_text(text: bytes, archive: bytes) -> None:
    """What JSON becomes in memory."""
    brackets = text.count(b"[") + text.count(b"{")
    _within(BYTES_PER_CHARACTER * len(text) + BYTES_PER_BRACKET * brackets, archive)


def check_parts(opened: zipfile.ZipFile, archive: bytes) -> None:
    """All that is read and visited to build the model: the schema, the members that its parts name,
    sharing, and every sparse matrix, whose indices go unchecked to compiled code otherwise.
    """
    text = opened.read(SCHEMA)
    check_text(text, archive)
    parts = list(_dicts(json.loads(text)))
    _check_visits(parts)
    named: dict[Any, str] = {}  # a part that is shared is read once
    for number, part in enumerate(parts):
        if "file" in part:
            named[part.get("__id__", ("unshared", number))] = str(part["file"])
    _within(sum(_unfolded(opened, name) for name in named.values()), archive)
    for part in parts:
        _check_sparse(opened, part)


def _within(n_bytes: int, archive: bytes) -> None:
    if n_bytes > budget(archive):
        raise ValueError(
            f"it claims to unfold to {n_bytes:.1e} bytes from {len(archive)}: no model does, and "
            "it was not read"
        )


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a piece of JSON, outer ones first."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _unfolded(opened: zipfile.ZipFile, name: str) -> int:
    """Bytes of a member; of an archive inside it, what that unfolds to."""
    size = opened.getinfo(name).file_size
    with opened.open(name) as member:
        if member.read(2) != b"PK":
            return size
    with zipfile.ZipFile(io.BytesIO(opened.read(name))) as inner:
        return size + sum(part.file_size for part in inner.infolist())


def _check_visits(parts: list[dict[str, Any]]) -> None:
    """Parts with the same number are one part, visited again at every place that names it.

    visits(part) = 1 + Σ visits(parts inside); of parts with one number the largest, because it is
    the first that counts, and which is first depends on the reader.
    """
    alike: dict[Any, list[dict[str, Any]]] = {}
    for part in parts:
        if part.get("__id__") is not None:
            alike.setdefault(part["__id__"], []).append(part)
    most = max(MOST_VISITS, MOST_SHARING * len(parts))
    known: dict[Any, int] = {}

    def visits(value: Any) -> int:
        if isinstance(value, list):
            return sum(map(visits, value))
        if not isinstance(value, dict):
            return 0
        number = value.get("__id__")
        if number is None:
            return 1 + sum(map(visits, value.values()))
        if number not in known:
            known[number] = most + 1  # a part that contains itself
            known[number] = max(1 + sum(map(visits, part.values())) for part in alike[number])
        return known[number]

    if parts and visits(parts[0]) > most:
        raise ValueError(f"its {len(parts)} parts contain each other more than {most} times")


def _check_sparse(opened: zipfile.ZipFile, part: dict[str, Any]) -> None:
    """A sparse matrix must come from a member of its own, with indices inside its shape."""
    loader, module = part.get("__loader__"), str(part.get("__module__", ""))
    if loader != SPARSE_LOADER:
        if module.startswith("scipy.sparse"):
            raise ValueError(f"a sparse matrix is read by {loader}, which does not check it")
        return
    matrix = sp.load_npz(io.BytesIO(opened.read(str(part["file"]))))
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
