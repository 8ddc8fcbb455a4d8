"""Warnings about digits in doubt, pointing at the user's own line, each given once."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# our own frames, those of the wrapper that scikit-learn's callbacks put around fit, and of "with"
_INSIDE = ("fitonce.", "sklearn.callback", "contextlib")
_HELD: ContextVar[list[str] | None] = ContextVar("doubts held back", default=None)
_ALONE = threading.RLock()


class NumericalWarning(UserWarning):
    """A result whose digits are in doubt: the message says why and what to do."""


def warn_numerical(message: str) -> None:
    """Warn now or, inside `doubts_held_back`, leave it to whoever holds the doubts of this thread.

    No filter of Python's warnings is touched for it: they belong to all threads of the process.
    """
    held = _HELD.get()
    if held is not None:
        held.append(message)
        return
    warnings.warn(message, NumericalWarning, stacklevel=depth_inside_package())


def depth_inside_package() -> int:
    """How many callers up the user's own line is, so that a warning points there."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        depth, frame = depth + 1, frame.f_back
    return depth


def warn_constant() -> None:
    warn_numerical(
        "all training rows look the same to the kernel, so the model predicts a constant. "
        "Check for constant features, or a gamma far too small."
    )


def kinds_of(
    complaints: Iterable[tuple[type[Warning], str]],
) -> list[tuple[type[Warning], list[str]]]:
    """Warnings of one kind together: those that differ in nothing but numbers."""
    kinds: dict[tuple[type[Warning], str], list[str]] = {}
    for category, text in complaints:
        alike = re.sub(r"[-+]?\d[\d.e+-]*", "#", text)
        kinds.setdefault((category, alike), []).append(text)
    return [(category, texts) for (category, _), texts in kinds.items()]


@contextmanager
def caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Every warning raised inside is in the list instead of being given.

    For whole commands, never inside a fit: Python keeps one list of filters for all threads, so
    only one thread at a time may be in here, and it sees the warnings of all.
    """
    with _ALONE, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextmanager
def doubts_held_back() -> Iterator[list[str]]:
    """The messages of `warn_numerical` inside, in this thread, are in the list instead of being
    given.
    """
    held: list[str] = []
    before = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(before)


@contextmanager
def doubts_once() -> Iterator[None]:
    """What is doubted again and again inside, such as by every kernel tried, is told once, after
    it.
    """
    with doubts_held_back() as held:
        yield
    for message in dict.fromkeys(held):
        warn_numerical(message)
