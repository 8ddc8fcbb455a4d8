"""Where answers, progress and remarks are printed.

Rich tables and progress bars on a terminal, plain text elsewhere, only paths with --quiet.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from ..assessment.render import Block
from ..core.progress import listening

PIPED_WIDTH = 110


class Counted(MofNCompleteColumn):
    """How many of how many are done; nothing if the total is not known."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is not None else Text("")


class Screen:
    """Standard output for answers, standard error for progress and warnings."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        for stream in (sys.stdout, sys.stderr):
            # do not fail on a terminal that cannot show a character
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        self.quiet, self.as_json = quiet, as_json
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        self.out = Console(file=sys.stdout, highlight=False, width=width)
        self.err = Console(file=sys.stderr, highlight=False)

    @property
    def silent(self) -> bool:
        return self.quiet or self.as_json

    def show(self, *parts: RenderableType) -> None:
        """Print parts of an answer, one below the other."""
        if not self.silent:
            for part in parts:
                self.out.print(part)

    def files(self, written: Mapping[str, str]) -> None:
        """Print the files that were written, one per line; only the paths with --quiet."""
        if not self.as_json:
            for what, path in written.items():
                label = Text() if self.quiet else Text(f"{what}: ", style="dim")
                self.out.print(label + Text(path), soft_wrap=True)

    def json(self, answer: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps(answer, ensure_ascii=False, allow_nan=False, indent=2))

    def aside(self, text: str) -> None:
        """Print a remark on standard error, separate from data on standard output."""
        if not self.silent:
            self.err.print(Text(text, style="dim"), soft_wrap=True)

    def table(self, *columns: str | Column, rows: Iterable[Iterable[str]] = ()) -> RichTable:
        """A table to be shown, with rows or to be filled; Markdown unless on a terminal."""
        plain = not self.out.is_terminal
        kind = box.MARKDOWN if plain else box.SIMPLE_HEAD
        table = RichTable(*columns, box=kind, pad_edge=plain, header_style="dim")
        for row in rows:
            table.add_row(*row)
        return table

    def block(self, block: Block) -> RenderableType:
        """A part of an answer: its title, its table with numbers to the right, its notes."""
        numbers = [all(map(_is_number, column)) for column in zip(*block.rows, strict=True)]
        columns = [
            Column(escape(name), justify="right" if right else "left")
            for name, right in zip(block.head, numbers, strict=False)
        ]
        rows = ([escape(cell) for cell in row] for row in block.rows)
        parts = [Text(block.title, style="bold")] if block.title else []
        table = [self.table(*columns, rows=rows)] if block.rows else []
        return Group(*parts, *table, *(Text(note, style="dim") for note in block.notes))

    @contextlib.contextmanager
    def bars(self) -> Iterator[Bars]:
        """Progress bars while the library works, on a terminal."""
        progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            Counted(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.err,
            transient=True,
            disable=self.quiet or not self.err.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        bars = Bars(progress)
        with progress, listening(bars):
            yield bars


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("–", "0").isdigit()


class Bars:
    """Named progress bars of one piece of work.

    A bar ends when it is finished, or, if its total is not known, when the next one begins.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}
        self.ended: set[str] = set()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show that `done` of `total` (0 if unknown) are done."""
        for other in self.ended - {what}:
            self.progress.remove_task(self.tasks.pop(other))
        self.ended &= {what}
        if what not in self.tasks:
            self.tasks[what] = self.progress.add_task(what, total=total or None)
        self.progress.update(self.tasks[what], completed=done, total=total or None)
        if done >= total:
            self.ended.add(what)
        else:
            self.ended.discard(what)
