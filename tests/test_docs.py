"""The documentation runs.

Every Python block and every doctest of README.md and docs/, each page in one namespace.
"""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fitonce.report.drawings import Figure

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block.

    The words after the fence ("pycon torch"), its text, and the line of the page where that begins.
    """

    words: tuple[str, ...]
    text: str
    line: int

    @property
    def is_doctest(self) -> bool:
        return self.text.lstrip().startswith(">>>")

    @property
    def is_python(self) -> bool:
        return self.is_doctest or "python" in self.words


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [
        Block(tuple(match[1].split()), match[2], text[: match.start(2)].count("\n") + 1)
        for match in found
    ]


def run(page: Path, torch: bool) -> int:
    """Run the Python blocks of a page in order and return their number.

    Those marked torch only where asked for.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    chosen = [
        block for block in blocks(page) if block.is_python and (torch or "torch" not in block.words)
    ]
    for block in chosen:
        if block.is_doctest:
            run_doctest(block, namespace, page)
        else:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
    return len(chosen)


def run_doctest(block: Block, namespace: dict[str, Any], page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line - 1)
    test.globs = namespace  # shared with the blocks that follow, where get_doctest would copy it
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(
        test, out=report.append, clear_globs=False
    )
    assert not result.failed, "".join(report)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # reports with few stops and no drawings; tests/report has them whole
    monkeypatch.setattr("fitonce.report.explorer.LADDER", ((1, 2),))
    monkeypatch.setattr(
        "fitonce.report.drawings.figure", lambda name, _, *words: Figure(name, "", *words)
    )
    assert run(page, torch=False) == sum(
        block.is_python and "torch" not in block.words for block in blocks(page)
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.torch
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any("torch" in block.words for block in blocks(page))],
    ids=lambda page: page.name,
)
def test_the_examples_with_torch_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(page, torch=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences_are_closed_and_have_a_language(page):
    fences = [
        line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("```")
    ]
    assert len(fences) == 2 * len(blocks(page))
    assert all(block.words for block in blocks(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = [
        target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target
    ]
    assert not [target for target in targets if not (page.parent / target).exists()]


def test_the_map_names_every_page():
    for page in PAGES[1:]:
        if page.name != "index.md":
            index = (page.parent / "index.md").read_text(encoding="utf-8")
            assert f"({page.name})" in index


@pytest.mark.parametrize("text", [">>> 1 + 1\n3\n", ">>> raise ValueError\n"])
def test_a_wrong_doctest_is_noticed(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```pycon\n{text}\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="Failed example"):
        run(page, torch=False)


def test_blocks_share_a_namespace_and_errors_are_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 1\n```\n\n```pycon\n>>> a\n1\n>>> b = 2\n\n```\n\n```python\nassert a + b "
        "== 4\n```\n",
        encoding="utf-8",
    )
    with pytest.raises(AssertionError):
        run(page, torch=False)
    page.write_text(page.read_text(encoding="utf-8").replace("== 4", "== 3"), encoding="utf-8")
    assert run(page, torch=False) == 3
