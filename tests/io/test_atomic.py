"""Files that are whole or absent, whatever stops the writing."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from fitonce.core.atomic import atomic_file, check_place, write_atomically


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
    with atomic_file(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new" and list(target.parent.iterdir()) == [target]


@pytest.fixture(params=["files without names", "files with names"])
def system(request, monkeypatch):
    """Systems that have files without a name, and others."""
    if request.param == "files with names":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without names")
    return request.param


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_while_writing_leaves_the_old_file(error, target, system):
    with pytest.raises(error), atomic_file(target) as file:
        file.write(b"half")
        raise error
    assert_untouched(target)


def test_a_new_file_is_private_until_it_has_its_name(target, system):
    """The content of a file that only its owner may read is never readable by others."""
    target.chmod(0o600)
    with atomic_file(target) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
        file.write(b"new")
    assert target.stat().st_mode & 0o777 == 0o600


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(target, system):
    """A link is followed."""
    target.chmod(0o664)
    link = target.with_name("link")
    link.symlink_to(target)
    umask = os.umask(0o027)
    try:
        write_atomically(link, "new")
        write_atomically(target.with_name("other"), "new")
    finally:
        os.umask(umask)
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o664
    assert target.with_name("other").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("length", [200, 255])
def test_the_longest_names_can_be_written(length, tmp_path, system):
    target = tmp_path / ("n" * length)
    assert write_atomically(target, "a").read_bytes() == b"a"
    with pytest.raises(OSError, match="cannot be written: File name too long"):
        write_atomically(tmp_path / ("n" * 256), "a")


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no files without names")
def test_nothing_remains_of_a_run_that_was_killed(target):
    code = (
        "import sys\nfrom fitonce.core.atomic import atomic_file\n"
        "with atomic_file(sys.argv[1]) as file:\n"
        "    file.write(bytes(1 << 20))\n    file.flush()\n"
        "    print(flush=True)\n    sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    writer = subprocess.Popen([sys.executable, "-c", code, str(target)], **pipes)
    writer.stdout.readline()
    writer.kill()
    writer.communicate()
    assert_untouched(target)


# ---- pipes and devices ---------------------------------------------------------------------------


def read_from(pipe, found):
    found.append(pipe.read_bytes())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(linked, tmp_path):
    pipe, link, found = tmp_path / "pipe", tmp_path / "link", []
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = threading.Thread(target=read_from, args=(pipe, found), daemon=True)
    reader.start()
    check_place(link if linked else pipe)
    write_atomically(link if linked else pipe, "new")
    reader.join(timeout=60)
    assert found == [b"new"] and pipe.is_fifo() and link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"x")
    except (AttributeError, OSError):
        pytest.skip("needs the right to make a device")
    check_place(device)
    write_atomically(device, "new")
    assert device.is_char_device() and os.listdir(tmp_path) == ["null"]


def test_standard_output_can_be_named():
    code = (
        "from fitonce.core.atomic import write_atomically\nwrite_atomically('/dev/stdout', 'new')"
    )
    if not os.path.exists("/dev/stdout"):
        pytest.skip("this system has no /dev/stdout")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout == b"new"


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for call in (check_place, lambda path: write_atomically(path, "new")):
            with pytest.raises(OSError, match="it is a disk or a socket, not a file"):
                call("socket")
        assert os.listdir() == ["socket"] and tmp_path.joinpath("socket").is_socket()


# ---- failures of the system ----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_failure_of_the_system_is_told(call, number, target, monkeypatch):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fails)
    why = r"the disk is full\. Nothing was changed\.$" if number == errno.ENOSPC else ""
    with pytest.raises(OSError, match=rf"file\.txt cannot be written: {why}") as failure:
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


@pytest.mark.parametrize("call", [check_place, lambda path: write_atomically(path, "a")])
def test_places_that_are_none(call, tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        call(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cannot be written: there is no folder .*absent"):
        call(tmp_path / "absent" / "a.txt")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"file is not a folder"):
        call(tmp_path / "file" / "a.txt")
    assert os.listdir(tmp_path) == ["file"]


def test_a_reader_never_sees_a_part(target):
    """Another process writes ones and zeros in turn; whoever reads meanwhile sees one of them."""
    size = 1 << 20
    target.write_bytes(b"0" * size)
    code = (
        "import sys\nfrom fitonce.core.atomic import write_atomically\n"
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
