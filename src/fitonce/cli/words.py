"""What the program says: failures in one sentence, remarks about columns, and advice that can be
pasted into a shell.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer

FAILED, INTERRUPTED = 1, 130  # exit codes
# what a terminal may take for a command, or show in another order than it is
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TRACEBACK = "FITONCE_TRACEBACK"  # environment variable that shows tracebacks, for debugging
MOST_ALIKE = 3  # columns with a line each; the others are named together


class UserError(Exception):
    """What is wrong, what was given and what to do, in words for the user of a command."""


def printable(text: str) -> str:
    """The text without control characters, which could come from a label, a column or a file."""
    return CONTROL.sub("\ufffd", text)


def refuse(*cases: tuple[bool, str]) -> None:
    """Raise the first refusal that holds."""
    for holds, said in cases:
        if holds:
            raise UserError(said)


def one_of(text: str, name: str, words: Sequence[str]) -> str:
    """Check that the value of an option is one of some words."""
    if text not in words:
        raise UserError(f"--{name} must be one of {', '.join(words)}, got {text!r} instead.")
    return text


def word_or_number(
    text: str, name: str, words: Sequence[str], above: int = 0, kind: type = float
) -> Any:
    """The value of an option: one of some words, or a number."""
    if text in words:
        return text
    with contextlib.suppress(ValueError):
        if above < (value := kind(text)) < math.inf:
            return value
    number = "a whole number" if kind is int else "a number"
    raise UserError(
        f"--{name} must be {', '.join(words)} or {number} above {above}, got {text!r} instead."
    )


def careful(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that every failure ends with a sentence on standard error and an exit
    code.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            _silence_stdout()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            print("fitonce: stopped; no incomplete files were left behind.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            print(f"fitonce: {printable(_sentence(error))}", file=sys.stderr)
            raise typer.Exit(FAILED) from error

    return run


def _sentence(error: Exception) -> str:
    """The message of an error for the user, without the blank lines of long messages."""
    text = str(error)
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for this table: use fewer rows, or --landmarks with a "
            "smaller number."
        )
    no_space = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if no_space and getattr(error, "filename", None) is None and "full" not in text:
        _silence_stdout()
        return "the disk is full: the output could not be written."
    if isinstance(error, (UserError, ValueError, TypeError, ImportError, OSError)):
        return " ".join(text.split()) or "the library raised an error without a message."
    return (
        f"an unexpected error occurred ({type(error).__name__}: {text}). Please report it; "
        f"{TRACEBACK}=1 shows where it happened."
    )


def _silence_stdout() -> None:
    """Nothing more can be written to stdout; keep the interpreter from trying at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ---- remarks and advice --------------------------------------------------------------------------


class Remarks:
    """Lines in the order in which they came up; columns with the same remark share a line."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._said: dict[str, list[tuple[str, str]]] = {line: [] for line in lines}

    def add(self, line: str) -> None:
        self._said.setdefault(line, [])

    def about(self, name: str, text: str, kind: str | None = None) -> None:
        """Add a remark about a column; texts of one kind stand together."""
        self._said.setdefault(text if kind is None else kind, []).append((name, text))

    @property
    def lines(self) -> list[str]:
        return [line for key, said in self._said.items() for line in _lines(key, said)]


def _lines(key: str, said: list[tuple[str, str]]) -> list[str]:
    """The remarks of one kind: in one line if they are equal, else the first ones."""
    if not said:
        return [key]
    if len({text for _, text in said}) == 1:
        return [f"{listed([name for name, _ in said])}: {said[0][1]}"]
    lines = [f"{name!r}: {text}" for name, text in said[:MOST_ALIKE]]
    others = [name for name, _ in said[MOST_ALIKE:]]
    return [*lines, f"{listed(others)}: the same"] if others else lines


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in quotes; only the first ones if there are many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(count: int, what: str = "row") -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def option(name: str, *values: str) -> str:
    """An option that can be pasted into a shell, repeated for each value."""
    return " ".join(f"--{name} {quoted(value)}" for value in values)


def quoted(value: str) -> str:
    """A word of a command line, in double quotes, which all shells understand, if that is
    enough.
    """
    if re.fullmatch(r"[\w.,:/+@%=-]+", value):
        return value
    return shlex.quote(value) if re.search(r'["$`\\!]', value) else f'"{value}"'


def examples(values: Any) -> str:
    """The first three distinct values of a column."""
    return ", ".join(repr(value) for value in values.unique(maintain_order=True).head(3))
