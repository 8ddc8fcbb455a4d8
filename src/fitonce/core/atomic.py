"""Files that are written completely or not at all: to a temporary name, which is then renamed."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file that is there complete or, after an error or an interruption, as it was before.

    Parameters
    ----------
    path : str or path
    data : bytes or str
        Text is written as UTF-8.

    Returns
    -------
    Path
        The file that was written.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
    return Path(path)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new path in the same folder, to write to; at the end that file takes the name `path`.

    It is on the disk before it takes the name, and gone after an error or Ctrl-C. An existing file
    stays as it was until then and passes on its permissions; a link is followed. An OSError while
    writing is raised again with one sentence that names `path`.

    Parameters
    ----------
    path : str or path

    Yields
    ------
    Path
        A name that no file has yet, with the ending of `path`.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file.")
    temporary = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    try:
        yield temporary
        _to_disk(temporary, os.O_RDWR)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        with suppress(OSError):  # some systems cannot open folders
            _to_disk(target.parent, os.O_RDONLY)
    except OSError as error:
        failure = type(error)(f"{path} cannot be written: {_reason(error, target.parent)}")
        failure.errno = error.errno
        raise failure from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _to_disk(path: Path, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: OSError, folder: Path) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no folder {folder}."
    if isinstance(error, PermissionError):
        return f"permission denied in {folder}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full. Nothing was changed."
    return f"{error.strerror or error}. Nothing was changed."
