"""How far a long computation is, told to whoever listens.

The library calls `say`; a program that wants to show progress calls the library inside `listening`.
Each thread has a listener of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[int, int, str], None]
"""Called with what is done, the total (0 if unknown), and what it is about."""

_listener: ContextVar[Report | None] = ContextVar("fitonce_progress", default=None)


@contextmanager
def listening(report: Report) -> Iterator[None]:
    """Inside, progress of this thread goes to `report` instead of the standard error stream.

    Examples
    --------
    >>> with listening(lambda done, total, what: print(f"{what}: {done} of {total}")):
    ...     say(3, 10, "folds")
    folds: 3 of 10
    """
    token = _listener.set(report)
    try:
        yield
    finally:
        _listener.reset(token)


def heard() -> bool:
    """Whether somebody listens, so that nothing need be printed."""
    return _listener.get() is not None


def say(done: int, total: int, what: str) -> None:
    """Tell the listener, if there is one, that `done` of `total` (0 if unknown) are done."""
    report = _listener.get()
    if report is not None:
        report(done, total, what)


__all__ = ["Report", "heard", "listening", "say"]
