"""Names, counts and remarks in words; options that can be pasted into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

import polars as pl

MOST_ALIKE = 3  # columns with a line each; the others are named together


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


def examples(values: pl.Series) -> str:
    """The first three distinct values."""
    return ", ".join(repr(value) for value in values.unique(maintain_order=True).head(3))
