"""Running out of memory, told with what was asked, what was there and what to do instead."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from array_api_compat import device, is_cupy_array, is_torch_array

from .arrays import Array

GIB = 2**30


class NotEnoughMemoryError(MemoryError):
    """An n×n matrix that does not fit, with the number of rows that would."""


@dataclass(frozen=True)
class Memory:
    """Bytes free and in all on the device of an array."""

    place: str
    free: int
    total: int


def memory_of(like: Array) -> Memory | None:
    """The memory of the device of `like`, or of this machine; where a container leaves this process
    less than the machine has, that.

    None if the platform does not say.
    """
    if is_torch_array(like) and like.is_cuda:
        cuda: Any = sys.modules["torch"].cuda
        free, total = cuda.mem_get_info(like.device)
        unused = cuda.memory_reserved(like.device) - cuda.memory_allocated(
            like.device
        )  # kept by torch for itself, and to be had
        return Memory(f"on {like.device}", int(free + unused), int(total))
    if is_cupy_array(like):
        cupy: Any = sys.modules["cupy"]
        with device(like):
            free, total = cupy.cuda.runtime.memGetInfo()
            return Memory(
                f"on {device(like)}",
                int(free + cupy.get_default_memory_pool().free_bytes()),
                int(total),
            )
    places = [_machine_memory(), *_group_memory(Path("/"))]
    known = [memory for memory in places if memory is not None]
    return min(known, key=lambda memory: memory.free, default=None)


def _group_memory(root: Path) -> list[Memory]:
    """Limits of the control groups (cgroups) that this process is in: those of a container, of a
    batch system, of a service. Files that are merely cached count as free.
    """
    found = []
    for line in _lines(root / "proc/self/cgroup"):
        base = root / "sys/fs/cgroup"
        own = base / line.removeprefix("0::").strip("/")
        for folder in (own, *own.parents) if line.startswith("0::") else ():
            if folder.is_relative_to(base):
                found.append(_limit_of(folder))
    return [memory for memory in found if memory is not None]


def _limit_of(folder: Path) -> Memory | None:
    """What a group may use, if that is limited."""
    total, used = _number(folder / "memory.max"), _number(folder / "memory.current")
    if total is None or used is None:
        return None
    for line in _lines(folder / "memory.stat"):
        if line.startswith("inactive_file "):
            used -= int(line.split()[1])
    place = "within the memory limit of this container or job (cgroup)"
    return Memory(place, max(total - used, 0), total)


def _lines(path: Path) -> list[str]:
    """The lines of a file of the system; none where it cannot be read."""
    try:
        return path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def _machine_memory() -> Memory | None:
    """The memory of this machine, where the platform says."""
    try:
        page, total = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
        free = page * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    # here, what the system holds only as a cache counts as free
    with (
        suppress(OSError, StopIteration, ValueError),
        open("/proc/meminfo", encoding="ascii") as info,
    ):
        free = next(1024 * int(line.split()[1]) for line in info if line.startswith("MemAvailable"))
    return Memory("on this machine", free, page * total)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether NumPy, torch (on either device) or CuPy raised this for want of memory.

    None of them needs to be imported.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return (
        isinstance(error, MemoryError)
        or "OutOfMemoryError" in names
        or "DefaultCPUAllocator" in str(error)
    )


@contextmanager
def out_of_memory_explained(n_samples: int, like: Array, matrices: float = 2.0) -> Iterator[None]:
    """Inside, running out of memory raises NotEnoughMemoryError with the size asked, the memory
    free at the start and what would fit: of `matrices` n×n at the peak, where `like` lives.
    """
    memory = memory_of(like)
    try:
        yield
    except NotEnoughMemoryError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise NotEnoughMemoryError(explanation(n_samples, matrices, memory)) from error


def explanation(n_samples: int, matrices: float, memory: Memory | None) -> str:
    """What the error says."""
    each = 8 * n_samples**2
    asked = (
        f"not enough memory for {n_samples:,} rows: one {n_samples:,} × {n_samples:,} float64 "
        f"matrix takes {size_text(each)}, "
        f"and about {matrices:g} of them are needed ({size_text(matrices * each)})"
    )
    advice = (
        "Use landmarks= (say 4096), which needs no matrix of that size and gives the same "
        "held-out values, tuning and permutations "
        "of its model, or fit fewer rows."
    )
    if memory is None:
        return f"{asked}. {advice}"
    fits = rows_that_fit(memory.free, matrices)
    if fits >= n_samples:  # what else was held took more than the estimate
        fits = n_samples * 3 // 4
    free = f"{size_text(memory.free)} of {size_text(memory.total)} were free {memory.place}"
    return f"{asked}; {free}. About {fits:,} rows would fit. {advice}"


def rows_that_fit(free: int, matrices: float = 2.0) -> int:
    """The number of rows whose n×n matrices fit into so many bytes, rounded down to two digits."""
    rows = math.isqrt(int(free / (8 * matrices)))
    unit = int(10 ** max(len(str(rows)) - 2, 0))
    return rows // unit * unit


def size_text(n_bytes: float) -> str:
    """Bytes for people."""
    return f"{n_bytes / GIB:.1f} GiB" if n_bytes >= GIB / 10 else f"{n_bytes / 2**20:.1f} MiB"
