"""Progress of long computations: a callback for each thread, or a bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ProgressCallback = Callable[[int, int, str], None]
"""Called with what is done, the total (0 if unknown), and what it is about."""

_callback: ContextVar[ProgressCallback | None] = ContextVar("fitonce_progress", default=None)


@contextmanager
def progress_callback(callback: ProgressCallback) -> Iterator[None]:
    """Inside, progress of this thread goes to `callback` instead of the standard error stream.

    Examples
    --------
    >>> with progress_callback(lambda done, total, what: print(f"{what}: {done} of {total}")):
    ...     report_progress(3, 10, "folds")
    folds: 3 of 10
    """
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def has_callback() -> bool:
    """Whether there is a callback, so that nothing need be printed."""
    return _callback.get() is not None


def report_progress(done: int, total: int, what: str) -> None:
    """Call the callback, if there is one: `done` of `total` (0 if unknown) are done."""
    callback = _callback.get()
    if callback is not None:
        callback(done, total, what)


class ProgressCounter:
    """Counts what is done, for the callback or as a bar on the standard error stream."""

    def __init__(self, total: int, verbose: int, what: str = "targets") -> None:
        self.done, self.total, self.what = 0, total, what
        self.shown = bool(verbose) and not has_callback() and sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        """`count` more are done."""
        self.done += count
        report_progress(self.done, self.total, self.what)
        if self.shown:
            share = 30 * self.done // max(self.total, 1)
            line = f"\r{self.what} [{'#' * share:.<30}] {self.done}/{self.total}"
            end = "\n" if self.done >= self.total else ""
            print(line, end=end, file=sys.stderr, flush=True)
