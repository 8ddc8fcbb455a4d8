"""Warnings about numerical accuracy, issued once and from the user's own line."""

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
_HELD: ContextVar[list[str] | None] = ContextVar("warnings held back", default=None)
_ALONE = threading.RLock()


class NumericalWarning(UserWarning):
    """A result may be numerically inaccurate. The message says why and what to do."""


def warn_numerical(message: str) -> None:
    """Warn now or, inside `warnings_held_back`, add the message to the list of this thread.

    Python's warning filters are not changed, because all threads of the process share them.
    """
    held = _HELD.get()
    if held is not None:
        held.append(message)
        return
    warnings.warn(message, NumericalWarning, stacklevel=depth_inside_package())


def depth_inside_package() -> int:
    """The number of frames up to the user's own line, so that a warning points there."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        depth, frame = depth + 1, frame.f_back
    return depth


def warn_constant() -> None:
    """Warn that the kernel tells no rows apart."""
    warn_numerical(
        "all training rows look the same to the kernel, so the model predicts a constant. "
        "Check for constant features, or a gamma far too small."
    )


def kinds_of(
    complaints: Iterable[tuple[type[Warning], str]],
) -> list[tuple[type[Warning], list[str]]]:
    """Warnings grouped by kind: those of one kind differ only in numbers."""
    kinds: dict[tuple[type[Warning], str], list[str]] = {}
    for category, text in complaints:
        alike = re.sub(r"[-+]?\d[\d.e+-]*", "#", text)
        kinds.setdefault((category, alike), []).append(text)
    return [(category, texts) for (category, _), texts in kinds.items()]


@contextmanager
def caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect every warning issued inside in a list instead of showing it.

    For whole commands, never inside a fit: Python has one list of filters for all threads.
    """
    with _ALONE, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextmanager
def warnings_held_back() -> Iterator[list[str]]:
    """Collect the messages of `warn_numerical` in this thread in a list instead of issuing them."""
    held: list[str] = []
    before = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(before)


@contextmanager
def warnings_once() -> Iterator[None]:
    """Issue messages that occur repeatedly inside, for example for every kernel, once at the
    end.
    """
    with warnings_held_back() as held:
        yield
    for message in dict.fromkeys(held):
        warn_numerical(message)
