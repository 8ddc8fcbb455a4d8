"""Warnings about digits in doubt, pointing at the user's own line, each given once."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# our own frames, and those of the wrapper that scikit-learn's callbacks put around fit
_INSIDE = ("fitonce.", "sklearn.callback")


class NumericalWarning(UserWarning):
    """A result whose digits are in doubt: the message says why and what to do."""


def warn_numerical(message: str) -> None:
    warnings.warn(message, NumericalWarning, stacklevel=depth_inside_package())


def depth_inside_package() -> int:
    """How many callers up the user's own line is, so that a warning points there."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(_INSIDE):
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
    """Every warning raised inside is in the list instead of being given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextmanager
def repeated_warnings_once() -> Iterator[None]:
    """Warnings raised again and again inside, such as one per kernel tried, are given once, after
    it.
    """
    with caught_warnings() as caught:
        yield
    for warning in {(str(item.message), item.category): item for item in caught}.values():
        warnings.warn_explicit(
            warning.message,
            warning.category,
            warning.filename,
            warning.lineno,
            source=warning.source,
        )
