"""The documentation site: links with their anchors, names that the API lists, figures that are
those of the results, the side bar.

Building the site itself is a part of .ci/run, with warnings as errors; these tests need no Sphinx.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fitonce

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]
FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
MODULES = (
    "fitonce.positions",
    "fitonce.rows",
    "fitonce.plotting",
    "fitonce.report",
    "fitonce.datasets",
)
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))
CONSTANTS = {"BAYES_ERROR", "RAETSCH"}  # tables, described on the page of the data sets


@pytest.fixture(scope="module", autouse=True)
def importable():
    """The scripts' folders on the path, and their modules forgotten afterwards."""
    folders = [str(DOCS), str(ROOT / "benchmarks")]
    before, path = set(sys.modules), list(sys.path)
    sys.path[:0] = folders
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(tuple(folders)):
            del sys.modules[name]


def load(name: str) -> ModuleType:
    """A module of docs/ or benchmarks/, which are no packages."""
    return importlib.import_module(name)


def anchors(text: str) -> set[str]:
    """The anchors that code hosts, and the site, give to headings."""
    found: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(
            r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        ).replace(" ", "-")
        count = found.get(plain, 0)
        found[plain] = count + 1
        names.add(plain if count == 0 else f"{plain}-{count}")
    return names


def broken_links(page: Path) -> list[str]:
    """Links of a page to files or headings that are not there."""
    text = page.read_text(encoding="utf-8")
    broken = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        goal = page.parent / path if path else page
        if not goal.exists() or (
            anchor
            and goal.suffix == ".md"
            and anchor not in anchors(goal.read_text(encoding="utf-8"))
        ):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_anchors_lead_somewhere(page):
    assert broken_links(page) == []


def test_broken_links_are_noticed(tmp_path):
    (tmp_path / "other.md").write_text(
        "# One heading: `x`\n\n## Twice\n\n## Twice\n", encoding="utf-8"
    )
    page = tmp_path / "page.md"
    good = (
        "[a](other.md#one-heading-x) [b](other.md#twice-1) [c](#here) "
        "[d](https://example.org/#no)\n\n# Here\n"
    )
    page.write_text(good, encoding="utf-8")
    assert broken_links(page) == []
    page.write_text(
        good + "[e](other.md#three) [f](no.md) [g](#nowhere)\n```text\n[h](no.md)\n```\n",
        encoding="utf-8",
    )
    assert broken_links(page) == ["other.md#three", "no.md", "#nowhere"]


def test_broken_links_of_a_built_site_are_noticed(tmp_path):
    links = load("_links")
    good = (
        '<h1 id="a">x</h1><a href="#a"></a><a href="sub/two.html#b"></a><a '
        'href="https://example.org"></a><img src="one.html">'
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.html").write_text(
        '<p id="b"></p><a href="../one.html#a">', encoding="utf-8"
    )
    (tmp_path / "one.html").write_text(good, encoding="utf-8")
    assert links.broken(tmp_path) == []
    bad = (
        '<a href="#c"></a><a href="three.html"></a><script '
        'src="https://example.org/x.js"></script><img src="x.png">'
    )
    (tmp_path / "one.html").write_text(good + bad, encoding="utf-8")
    assert links.broken(tmp_path) == [
        "one.html loads https://example.org/x.js",
        "one.html links to #c",
        "one.html links to three.html",
        "one.html links to x.png",
    ]


def test_the_api_lists_every_public_name():
    listed = set(
        re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.MULTILINE)
    )
    public = set(fitonce.__all__)
    for module in MODULES:
        public |= set(importlib.import_module(module).__all__) - CONSTANTS
    assert public - listed == set()


def test_the_api_lists_nothing_else():
    module, missing = "fitonce", []
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif match := re.fullmatch(r"   ([\w.]+)", line):
            *inner, name = match[1].split(".")
            if not hasattr(importlib.import_module(".".join([module, *inner])), name):
                missing.append(f"{module}.{match[1]}")
    assert missing == []


def test_measured_figures_are_those_of_the_results():
    assert load("_figures").MARKED.outdated() == [], "run docs/_figures.py"


def test_a_changed_figure_is_noticed():
    figures = load("_figures")
    text = figures.MARKED.others[0].read_text(encoding="utf-8")
    task = figures.result("timings")["tasks"]["500 landmarks, 21 alphas"]
    seconds = task["sizes"]["1000000"]["fitonce"]["seconds"]
    shown = figures.duration(seconds)
    large = (DOCS / "large-data.md").read_text(encoding="utf-8")
    assert shown in large
    assert figures.MARKED.updated(large.replace(shown, "1 ms")) == large
    assert figures.MARKED.updated(text) == text
    peak = figures.FIGURES["peak_matrices"]()
    assert (
        figures.MARKED.updated("It takes <!-- figure: peak_matrices -->9<!-- / --> times.\n")
        == f"It takes <!-- figure: peak_matrices -->{peak}<!-- / --> times.\n"
    )


def test_tables_and_figures_that_no_page_shows_are_noticed(tmp_path):
    marked = load("_marked")
    shown = "<!-- table: one -->\n\n| a |\n| --- |\n\n<!-- end -->\n"
    (tmp_path / "page.md").write_text(shown, encoding="utf-8")
    tables = {"one": lambda: marked.table(["a"], [])}
    assert marked.Marked(tmp_path, tables).outdated() == []
    assert marked.Marked(tmp_path, {**tables, "two": str}, {"three": str}).outdated() == [
        "three",
        "two",
    ]


def test_paragraphs_are_wrapped_and_marks_stay_whole():
    marked = load("_marked")
    mark = "<!-- figure: x -->1.5 GiB<!-- / -->"
    for length in range(60, 100):
        text = f"{'a' * length} takes {mark}, no more. {'Words follow. ' * 20}\n"
        lines = marked.wrapped(text).splitlines()
        assert max(map(len, lines)) <= 100
        assert not any(line.startswith("<!--") for line in lines)
        assert sum(mark in line for line in lines) == 1
        assert " ".join(lines).split() == text.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_prose_have_at_most_100_columns(page):
    """Outside code; tables and lines with a link are excepted."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > 100 and "](" not in line] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_marks_are_whole_and_no_line_begins_with_a_figure(page):
    for line in page.read_text(encoding="utf-8").splitlines():
        assert line.count("<!--") == line.count("-->")
        assert not line.lstrip().startswith("<!-- figure")


def test_every_result_names_a_script_that_exists():
    for name, found in load("provenance").results().items():
        script = found["script"].split()[0]
        assert (ROOT / script).is_file(), f"{name}.json names {script}"


def test_no_result_is_older_than_its_script():
    assert load("provenance").outdated(scripts_only=True) == [], (
        "run the script again, or benchmarks/provenance.py --note NAME WHY"
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_use_names_that_the_package_has(script):
    missing = []
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fitonce":
            for one in node.names:
                whole = f"{node.module}.{one.name}"
                found = hasattr(importlib.import_module(node.module), one.name)
                if not found and importlib.util.find_spec(whole) is None:
                    missing.append(whole)
    assert missing == []


def test_an_entry_of_a_list_counts_with_what_it_reaches(tmp_path, monkeypatch):
    provenance = load("provenance")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    other = (
        "def used():\n    return inner()\ndef inner():\n    return 1\ndef idle():\n    return 2\n"
    )
    script = "from other import used\nX = 3\ndef g():\n    return X\n"
    script += "STUDIES = {'a': used, 'b': g}\ndef main():\n    return STUDIES\n"

    def hashes(other: str, script: str) -> list[str]:
        for cached in (provenance.module, provenance.imported):
            cached.cache_clear()
        (tmp_path / "benchmarks/other.py").write_text(other)
        (tmp_path / "benchmarks/list.py").write_text(script)
        asked = ("benchmarks/list.py a", "benchmarks/list.py b", "benchmarks/list.py")
        return [provenance.inputs(one)[one] for one in asked]

    def differ(other_then: str, script_then: str) -> list[bool]:
        then = hashes(other_then, script_then)
        return [a != b for a, b in zip(then, hashes(other, script), strict=True)]

    assert differ(other, script) == [False, False, False]
    assert differ(other.replace("return 1", "return 5"), script) == [True, False, True]
    assert differ(other.replace("return 2", "return 5"), script) == [False, False, False]
    assert differ(other, script.replace("'b': g", "'b': X")) == [False, True, True]
    assert differ(other + "# words\n", script) == [False, False, False]
    for cached in (provenance.module, provenance.imported):
        cached.cache_clear()


def test_a_change_of_code_is_noticed_and_a_note_speaks_of_it():
    provenance = load("provenance")
    name, found = next(iter(provenance.results().items()))
    script = provenance.script_of(found)
    changed = {**found, "inputs": {**found["inputs"], script: "0"}}
    assert script in provenance.changed(changed)
    noted = {"inputs": {script: provenance.inputs(script)[script]}}
    assert script not in provenance.changed(changed, noted), name


def test_every_measured_figure_is_written_from_a_result():
    assert load("_quoted").unsupported() == []


def test_a_measured_figure_without_a_result_is_noticed():
    quoted = load("_quoted").quoted
    text = "It took 3.2 s.\n\n```text\n4 s\n```\n\n<!-- figure: x -->5 s<!-- / --> and `6 s`\n"
    assert list(quoted(text)) == ["3.2 s"]
    assert list(quoted("12 times faster, 7 % of the rows, 1.5 GiB, n = 12")) == [
        "12 times",
        "7 %",
        "1.5 GiB",
    ]
    ratios = "8 times the time, 12 × and 3 × faster, half the time; 400 × 10 rows, n × p"
    assert list(quoted(ratios)) == ["8 times", "12 ×", "3 ×", "half the time"]


@pytest.mark.parametrize("folder", [DOCS, DOCS / "papers"], ids=["docs", "papers"])
def test_the_side_bar_has_every_page(folder):
    bar = load("conf").side_bar((folder / "index.md").read_text(encoding="utf-8"))
    pages = set(re.findall(r"<([^>]+)>", bar))
    expected = {page.stem for page in folder.glob("*.md")} - {"index"}
    if folder == DOCS:
        expected |= {"api", "contributing", "gallery/index", "papers/index"}
        assert bar.count(":caption:") == 5
        assert len(pages) <= 24
    assert pages == expected


def test_every_example_has_a_place_in_the_gallery():
    gallery = load("_gallery")
    names = [example.name for example in gallery.examples()]
    assert sorted(names) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    assert set(gallery.FIRST) | set(gallery.NOT_RUN) | set(gallery.ARGUMENTS) <= set(names)
    assert all(
        example.summary and example.title in gallery.page(example) for example in gallery.examples()
    )


def test_badges_say_what_the_settings_say():
    badges = load("_badges")
    for stem, words in badges.badges().items():
        assert (DOCS / "_static" / f"{stem}.svg").read_text(encoding="utf-8") == badges.drawn(
            *words
        ), "run docs/_badges.py"


def test_the_picture_of_the_architecture_is_drawn_by_its_script():
    picture = load("_architecture")
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.drawn(), (
        "run docs/_architecture.py"
    )
