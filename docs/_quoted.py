"""Measured figures that stand in README.md or docs/*.md without coming from a result file.

    python docs/_quoted.py    # lists them

Times, memory, shares and ratios ("8 times", "12 ×", "half the time") count as measured. They belong
between marks, which _figures.py fills from benchmarks/results (see _marked.py). Figures that are no
measurements, such as a definition, a size by arithmetic or a setting, are listed in _quoted.json,
page by page, with what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
KNOWN = DOCS / "_quoted.json"

FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
WRITTEN = re.compile(
    r"<!-- table: \S+ -->.*?<!-- end -->"
    r"|<!-- figure: \S+ -->[^<]*<!-- / -->",
    re.DOTALL,
)
CODE = re.compile(r"`[^`\n]*`")
NUMBER = r"(?<![\w.])[\d][\d.,]*(?:⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
WORDS = r"(?:two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand)"
UNIT = (
    r"(?:ms|s|min|h|seconds?|minutes?|hours?|[KMGT]i?B|%|percentage points?|times"
    r"|×(?!\s?(?:\d|\w\b|\(|<!--)))"  # a ratio, not the sizes of a table: 400 × 10, 400 × p
)
SHARE = r"\b(?:half|twice|an? (?:third|quarter|fifth|sixth|tenth) of) the (?:time|memory)\b"
MEASURED = re.compile(rf"(?:{NUMBER}|\b{WORDS})\s{UNIT}(?![\w/])|{SHARE}")


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def quoted(text: str) -> Iterator[str]:
    """The measured figures of a page outside code and outside what scripts write."""
    for pattern in (FENCE, WRITTEN, CODE):
        text = pattern.sub(" ", text)
    yield from (" ".join(match[0].split()) for match in MEASURED.finditer(text))


def known() -> dict[str, dict[str, str]]:
    """By page: what a figure is that no script writes."""
    loaded: dict[str, dict[str, str]] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return loaded


def unsupported() -> list[str]:
    """`page: figure` for each that neither a script writes nor the list explains, then entries of
    the list that no page has.
    """
    listed, lines = known(), []
    for page in pages():
        found = list(quoted(page.read_text(encoding="utf-8")))
        explained = listed.get(page.name, {})
        lines += [f"{page.name}: {figure}" for figure in found if figure not in explained]
        lines += [f"{page.name} has no {figure}" for figure in explained if figure not in found]
    return lines


if __name__ == "__main__":
    print("\n".join(unsupported()) or "every measured figure comes from a result file")
