"""Marked parts of Markdown pages, which scripts write from results.

A table stands between ``<!-- table: name -->`` and ``<!-- end -->``, each on a line of its own.
A figure inside a sentence stands between ``<!-- figure: name -->`` and ``<!-- / -->``; its
paragraph is wrapped again whenever it is written, and is neither a list nor a table.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIDTH = 100
TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
FIGURE = re.compile(r"(<!-- figure: (\S+) -->)[^<]*(<!-- / -->)")
PARAGRAPH = re.compile(r"(?:^.+\n)*^.*<!-- figure: .*\n(?:.+\n)*", re.MULTILINE)
# A line that begins with a mark would end its paragraph, so that a mark stays with the word before.
WITH_MARK = re.compile(r"(?:\S+\s+)?\S*<!-- figure: \S+ -->[^<]*<!-- / -->\S*")
KEPT = "\0"  # a space at which no line is broken


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def wrapped(prose: str) -> str:
    """One paragraph in lines of at most 100 columns, marked figures whole."""
    kept = WITH_MARK.sub(lambda match: KEPT.join(match[0].split()), " ".join(prose.split()))
    lines = textwrap.fill(kept, WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace(KEPT, " ") + "\n"


@dataclass(frozen=True)
class Marked:
    """Pages of a folder, and others, with what scripts write into them."""

    folder: Path
    tables: Mapping[str, Callable[[], str]]
    figures: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    others: tuple[Path, ...] = ()

    def pages(self) -> list[Path]:
        return [*sorted(self.folder.glob("*.md")), *self.others]

    def updated(self, text: str) -> str:
        """The text with every marked table and figure as the results have it now."""
        text = TABLE.sub(lambda match: f"{match[1]}\n{self.tables[match[2]]()}\n{match[3]}", text)
        text = FIGURE.sub(lambda match: match[1] + self.figures[match[2]]() + match[3], text)
        return PARAGRAPH.sub(lambda match: wrapped(match[0]), text)

    def outdated(self) -> list[str]:
        """Pages that differ from the results, then tables and figures that no page shows."""
        texts = {page.name: page.read_text(encoding="utf-8") for page in self.pages()}
        everything = "".join(texts.values())
        shown = {match[2] for mark in (TABLE, FIGURE) for match in mark.finditer(everything)}
        return [name for name, text in texts.items() if self.updated(text) != text] + sorted(
            (set(self.tables) | set(self.figures)) - shown
        )

    def write(self) -> None:
        for page in self.pages():
            text = page.read_text(encoding="utf-8")
            if self.updated(text) != text:
                page.write_text(self.updated(text), encoding="utf-8")
                print(f"wrote {page.name}")

    def main(self) -> None:
        """Write the pages or, with --check, say which are not up to date."""
        if "--check" not in sys.argv[1:]:
            self.write()
        elif names := self.outdated():
            raise SystemExit(f"not up to date: {', '.join(names)}; run {sys.argv[0]}")
