"""Files that are written completely or not at all: without a name first, which they get whole."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

DESCRIPTORS = Path("/proc/self/fd")
DENIED, FULL = "permission denied in {folder}.", "the disk is full. Nothing was changed."
REASONS = {
    errno.EISDIR: "it is a folder: give the name of a file.",
    errno.ENOTDIR: "{folder} is not a folder.",
    errno.ENOENT: "there is no folder {folder}: create it first.",
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
}


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write bytes, or text as UTF-8, to a file that is there complete or, after an error or an
    interruption, as it was before. Returns its path.
    """
    with atomic_file(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return Path(path)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """An open file in the same folder, to write to; at the end it takes the name `path`.

    It is on the disk before it takes the name, and gone after an error or Ctrl-C; on Linux also
    after a kill, because it has no name until then. An existing file stays as it was until the end
    and passes on its permissions; until then, only its owner can read the new one. A link is
    followed. A pipe or a device is not replaced: it is opened and written to. An OSError while
    writing is raised again with one sentence that names `path`.
    """
    with _explained(path):
        if is_stream(path):
            with open(path, "wb") as file:
                yield file
        else:
            with _replacement(Path(os.path.realpath(path))) as file:
                yield file


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    with _explained(path):
        if is_stream(path):
            writable = os.access(path, os.W_OK)
        else:
            target = Path(os.path.realpath(path))
            _check_replaceable(target)
            os.stat(target.parent)
            writable = os.access(target.parent, os.W_OK)
        if not writable:
            raise PermissionError(errno.EACCES, "permission denied")


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether this is a pipe or a device such as /dev/null, which is written to, not replaced."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise an OSError again with one sentence that names the file."""
    try:
        yield
    except OSError as error:
        other = f"{error.strerror or error}. Nothing was changed."
        folder = Path(os.path.realpath(path)).parent
        reason = REASONS.get(error.errno or 0, other).format(folder=folder)
        failure = type(error)(f"{path} cannot be written: {reason}")
        failure.errno = error.errno
        raise failure from error


@contextmanager
def _replacement(target: Path) -> Iterator[BinaryIO]:
    """A new file that replaces the target at the end."""
    replaced = _check_replaceable(target)
    descriptor, temporary = _opened(target.parent, 0o600 if replaced else 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            if temporary is None:
                temporary = _named(descriptor, target.parent)
        if replaced:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        with suppress(OSError):  # some systems cannot open folders
            _sync_folder(target.parent)
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def _check_replaceable(target: Path) -> bool:
    """Whether there is a file to replace; refuses folders, disks and sockets."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a disk or a socket, not a file")
    return True


def _opened(folder: Path, mode: int) -> tuple[int, Path | None]:
    """A new file without a name, which nothing remains of if the process is killed, where the
    system has such files; else with a random name.
    """
    if hasattr(os, "O_TMPFILE") and DESCRIPTORS.exists():
        with suppress(OSError):
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, mode), None
    temporary = _random_name(folder)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    return os.open(temporary, flags, mode), temporary


def _random_name(folder: Path) -> Path:
    return folder / f".{secrets.token_hex(8)}"


def _named(descriptor: int, folder: Path) -> Path:
    """A random name for a file that has none."""
    temporary = _random_name(folder)
    place = os.open(folder, os.O_RDONLY)
    try:  # with a folder given, the link to the open file is followed
        os.link(DESCRIPTORS / str(descriptor), temporary.name, dst_dir_fd=place)
    finally:
        os.close(place)
    return temporary


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder written to the disk."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
