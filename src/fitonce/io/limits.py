"""Limits on the cost of reading a model file, checked before anything in it is unpacked or built.

A file of a few kilobytes can ask for gigabytes, or for endless work: members that expand to a
thousand times their size, arrays that are named many times, archives inside members, nested lists
that are shared by number, strings of brackets. Everything is counted in bytes of memory, with one
budget.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp

MOST_UNFOLDED = 1 << 30  # bytes that a file may expand to, whatever its size
MOST_FOLDING = 200  # times its size, beyond that
MOST_HEADER = 1 << 24  # bytes of the header
BYTES_PER_CHARACTER, BYTES_PER_BRACKET = 8, 256  # upper bounds for JSON in Python
SCHEMA = "schema.json"
READ_HEADER = {  # by version of the format of arrays
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
SPARSE_LOADER = "SparseMatrixNode"


def budget(archive: bytes) -> int:
    """The memory in bytes that reading a file may use."""
    return max(MOST_UNFOLDED, MOST_FOLDING * len(archive))


def check_unfolding(opened: zipfile.ZipFile, archive: bytes) -> None:
    """Check all members together."""
    _within(sum(member.file_size for member in opened.infolist()), archive)


def check_text(text: bytes, archive: bytes) -> None:
    """Check the size of JSON in memory."""
    brackets = text.count(b"[") + text.count(b"{")
    _within(BYTES_PER_CHARACTER * len(text) + BYTES_PER_BRACKET * brackets, archive)


def check_parts(opened: zipfile.ZipFile, archive: bytes) -> set[str]:
    """The names of the types in a file, once everything that is read and visited to build the
    model has been checked: the schema, the members that its parts name, sharing, and every sparse
    matrix, whose indices compiled code does not check.
    """
    text = opened.read(SCHEMA)
    check_text(text, archive)
    parts = _parts(json.loads(text))
    named: dict[Any, str] = {}  # a shared part is read once
    for number, part in enumerate(parts):
        if "file" in part:
            named[part.get("__id__", ("unshared", number))] = str(part["file"])
    _within(sum(_unfolded(opened, name, archive) for name in named.values()), archive)
    for part in parts:
        _check_sparse(opened, part)
    return {f"{part['__module__']}.{part['__class__']}" for part in parts if part.get("__module__")}


def _within(n_bytes: int, archive: bytes) -> None:
    if n_bytes > budget(archive):
        raise ValueError(
            f"it claims to expand to {n_bytes:.1e} bytes from {len(archive)}, which no model does, "
            "so it was not read"
        )


def _unfolded(opened: zipfile.ZipFile, name: str, archive: bytes) -> int:
    """The size of a member in bytes, unpacked; of an archive, with its members."""
    member = opened.read(name)
    if not member.startswith(b"PK"):
        return _size(member)
    with zipfile.ZipFile(io.BytesIO(member)) as inner:
        check_unfolding(inner, archive)
        return len(member) + sum(_size(inner.read(part)) for part in inner.namelist())


def _size(member: bytes) -> int:
    """The size of an array by its header, where an item or an axis of no size counts too: going
    through it takes time.
    """
    if not member.startswith(np.lib.format.MAGIC_PREFIX):
        return len(member)
    file = io.BytesIO(member)
    shape, _, dtype = READ_HEADER[np.lib.format.read_magic(file)](file)
    items = math.prod(max(length, 1) for length in shape)
    size = dtype.itemsize if math.prod(shape) else 0
    return max(len(member), items * (size or BYTES_PER_BRACKET))


def _parts(schema: Any) -> list[dict[str, Any]]:
    """Every mapping in a schema, outer ones first, once their sharing has been checked.

    Parts with the same number are the same part, of which the reader takes the first. Each is
    written in full, so all have the same size. If they did not, a small file could have parts that
    name each other without end.
    """
    first: dict[Any, int] = {}
    parts: list[dict[str, Any]] = []

    def size(value: Any) -> int:
        """The number of mappings inside, and in all."""
        mapping = isinstance(value, dict)
        parts.extend([value] if mapping else [])
        inside = value.values() if mapping else value if isinstance(value, list) else ()
        found = mapping + sum(map(size, inside))
        number = value.get("__id__") if mapping else None
        if number is not None and first.setdefault(number, found) != found:
            raise ValueError(f"its parts of number {number} differ from each other")
        return found

    size(schema)
    return parts


def _check_sparse(opened: zipfile.ZipFile, part: dict[str, Any]) -> None:
    """A sparse matrix must come from its own member, with indices inside its shape."""
    loader, module = part.get("__loader__"), str(part.get("__module__", ""))
    if loader != SPARSE_LOADER:
        if module.startswith("scipy.sparse"):
            raise ValueError(f"a sparse matrix is read by {loader}, which does not check it")
        return
    matrix = sp.load_npz(io.BytesIO(opened.read(str(part["file"]))))
    if matrix.format != "csr":
        raise ValueError(f"a sparse matrix is in format {matrix.format}, which models do not have")
    matrix.check_format(full_check=True)
