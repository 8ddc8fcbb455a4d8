"""Files that are whole or absent, whatever stops the writing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import pytest

from fitonce import LeastSquaresSVC, load, save
from fitonce.io.atomic import atomic_file, write_atomically


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"old")
    return path


def assert_untouched(target):
    assert target.read_bytes() == b"old" and list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("data", ["grün\n", "grün\n".encode()])
def test_texts_and_bytes(data, target):
    for path in (target, str(target), target.with_name("new.txt")):
        assert write_atomically(path, data) == type(target)(path)
        assert type(target)(path).read_bytes() == "grün\n".encode()
    assert sorted(os.listdir(target.parent)) == ["file.txt", "new.txt"]


def test_the_old_file_stays_until_the_end(target):
    with atomic_file(target) as temporary:
        assert temporary.parent == target.parent and temporary.suffix == target.suffix
        assert not temporary.exists()
        temporary.write_bytes(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new" and not temporary.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_error_while_writing_leaves_the_old_file(error, target):
    with pytest.raises(error), atomic_file(target) as temporary:
        temporary.write_bytes(b"half")
        raise error
    assert_untouched(target)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_failure_of_the_system_is_told(call, number, target, monkeypatch):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(OSError, match=r"file\.txt cannot be written: ") as failure:
        write_atomically(target, "new")
    assert failure.value.errno == number and type(failure.value) is type(OSError(number, ""))
    assert_untouched(target)


def test_the_content_is_on_the_disk_before_the_name(target, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        calls.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def replaced(source, destination):
        calls.append("replaced")
        replace(source, destination)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_atomically(target, "new")
    assert calls == [target.stat().st_ino, "replaced", target.parent.stat().st_ino]


def test_a_folder_that_cannot_be_synced_does_no_harm(target, monkeypatch):
    fsync = os.fsync

    def only_files(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    write_atomically(target, "new")
    assert target.read_bytes() == b"new"


def test_places_that_are_none(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        write_atomically(tmp_path, "a")
    with pytest.raises(FileNotFoundError, match=r"cannot be written: there is no folder .*absent"):
        write_atomically(tmp_path / "absent" / "a.txt", "a")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_never_sees_a_part(target):
    """Another process writes ones and zeros in turn; whoever reads meanwhile sees one of them."""
    size = 1 << 20
    target.write_bytes(b"0" * size)
    code = (
        "import sys\nfrom fitonce.io.atomic import write_atomically\n"
        f"while True:\n    for data in (b'1', b'0'):\n"
        f"        write_atomically(sys.argv[1], data * {size})\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(target)])
    try:
        seen, end = set(), time.monotonic() + 300
        while len(seen) < 2 and time.monotonic() < end:
            content = target.read_bytes()
            assert len(content) == size and len(set(content)) == 1
            seen.add(content[:1])
    finally:
        writer.kill()
        writer.wait()
    assert seen == {b"0", b"1"}


# ---- model files ---------------------------------------------------------------------------------


def test_a_failure_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OSError, match=r"model\.skops cannot be written: the disk is full\. Nothing was changed\.$"
    ) as failure:
        save(LeastSquaresSVC(), saved)
    assert failure.value.errno == errno.ENOSPC
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.skops"]


@pytest.mark.slow
def test_a_limit_of_the_system_leaves_the_old_file(saved):
    """A real failure half-way through the write, by a limit on the size of files."""
    before = saved.read_bytes()
    code = (
        "import sys, resource, fitonce\n"
        "model = fitonce.load(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n    fitonce.save(model, sys.argv[1])\n"
        "except OSError as error:\n    print(error)\n"
    )
    assert len(before) > 2000
    result = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True
    )
    assert "cannot be written" in result.stdout and "Nothing was changed" in result.stdout
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.skops"]


def test_an_interruption_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(LeastSquaresSVC(), saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.skops"]


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        save(LeastSquaresSVC(), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cannot be written: there is no folder .*absent"):
        save(LeastSquaresSVC(), tmp_path / "absent" / "m.skops")

    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", denied)
    with pytest.raises(PermissionError, match="cannot be written: permission denied in"):
        save(LeastSquaresSVC(), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "m.skops", tmp_path / "link.skops"
    umask = os.umask(0o027)
    try:
        save(LeastSquaresSVC(), path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    link.symlink_to(path)
    save(LeastSquaresSVC(alpha=3.0), link)
    assert link.is_symlink() and load(path).alpha == 3.0 and path.stat().st_mode & 0o777 == 0o600
