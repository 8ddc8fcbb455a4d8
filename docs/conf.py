"""Sphinx's settings for the documentation site.

python -m sphinx -W --keep-going -b html docs docs/_build/html

The pages are plain Markdown that a code host shows as well. What the site needs beyond them is made
here: the side bar from the tables of index.md, and the targets of links that lead out of docs/.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import fitonce  # noqa: E402

project = "fitonce"
author = "the fitonce developers"
copyright = author
release = version = fitonce.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "_gallery",
]
exclude_patterns = ["_build", "_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".markdown": "markdown"}
default_role = "code"
suppress_warnings = ["config.cache"]

# ---- Markdown: headings have the anchors of code hosts; a link to none is a warning --------------

myst_heading_anchors = 4

# ---- API -----------------------------------------------------------------------------------------

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_use_plots = False
numpydoc_validation_checks = {
    *("GL08", "RT01", "RT03"),  # described, with what is returned
    *("PR02", "PR03", "PR04", "PR06", "PR07"),  # parameters: known, in order, with type and words
    *("SS02", "SS05"),  # one sentence, as an order
}
numpydoc_validation_exclude = {  # what one line describes
    r"\.rows\.(\w*Rows)\.",
    r"\.rows\.is_rows",
    r"\.KernelSum\.",
    r"\.TunedPipeline\.(plain|fit_transform)",
    r"\.Subsampling\.fit_transform",
    r"\.KernelCommittee\w+\.(describe|estimators|score)",
    r"\.(Assessment|ModelComparison|PrevalenceTest)\.",
    r"\.(corrected|plot)$",
    r"\.preparation\.\w+\.(fit|transform)",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ---- appearance: nothing is fetched from elsewhere -----------------------------------------------

html_theme = "furo"
html_title = f"fitonce {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
templates_path = ["_templates"]
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# ---- links that lead out of docs/ ----------------------------------------------------------------

ELSEWHERE = {  # path from docs/: page of the site
    "../examples": "gallery/index",
    "../benchmarks": "benchmarks",
    "../CHANGELOG.md": "changelog",
    "../CONTRIBUTING.md": "contributing",
    "../README.md": "index",
    "../benchmarks/results/measurements.md": "_generated/measurements.markdown",
    "../benchmarks/results/papers.md": "_generated/papers.markdown",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
BACK = re.compile(r"_generated/([\w.]+)\.html#([\w.]+)")
IN_DOCS = re.compile(r"\]\(\.\./\.\./docs/([^)#]+)\.md(#[^)]*)?\)")
DOCTEST_END = re.compile(r"\n\n```$", re.MULTILINE)
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def page_of(target: str, folder: Path) -> str | None:
    """The page of the site that a link to somewhere outside docs/ means, None for other links."""
    for path, page in ELSEWHERE.items():
        if (folder / target).resolve() == (HERE / path).resolve():
            return page
    return None


def lead_back(text: str, folder: Path) -> str:
    """Links to folders and pages outside docs/, turned to their places on the site."""

    def replaced(match: re.Match[str]) -> str:
        page = page_of(match[2], folder)
        return match[0] if page is None else f"[{match[1]}](/{page}{match[3] or ''})"

    return LINK.sub(replaced, text)


def side_bar(index: str) -> str:
    """One hidden toctree for every section of an index whose table links to pages; one for all of
    an index without sections.
    """
    trees = []
    for title, body in SECTION.findall(index) or [("", index)]:
        rows = [line for line in body.splitlines() if line.startswith("| [")]
        links = [match for row in rows if (match := LINK.search(row))]
        pages = [
            f"{match[1].replace('`', '')} "
            f"<{page_of(match[2], HERE) or Path(match[2]).with_suffix('')}>"
            for match in links
        ]
        if pages:
            caption = [f":caption: {title}"] if title else []
            trees.append("\n".join(["```{toctree}", ":hidden:", *caption, "", *pages, "```", ""]))
    return "\n".join(trees)


def write_tables(app: Any) -> None:
    """The whole tables of benchmarks/results as pages of the site, outside the side bar."""
    folder = HERE / "_generated"
    folder.mkdir(exist_ok=True)
    for name in ("measurements", "papers"):
        text = (HERE.parent / f"benchmarks/results/{name}.md").read_text(encoding="utf-8")
        text = IN_DOCS.sub(lambda match: f"](/{match[1]}.md{match[2] or ''})", text)
        page = folder / f"{name}.markdown"
        page.write_text("---\norphan: true\n---\n\n" + text, encoding="utf-8")


def read_source(app: Any, name: str, source: list[str]) -> None:
    folder = HERE / Path(name).parent
    original = source[0]
    if Path(name).name == "index" and name.split("/")[0] in ("index", "papers"):
        source[0] = original + "\n" + side_bar(original)
    if (HERE / f"{name}.md").exists():
        # doctests want an empty line before the closing fence; readers do not
        source[0] = DOCTEST_END.sub("\n```", lead_back(source[0], folder))


# ---- docstrings are written for help(): plain text, equations indented ---------------------------

CODE = re.compile(r"(``.*?``|`[^`]+`)")
NAME_WITH_UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")


def show_equations(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """What stands indented after a colon and an empty line is an equation: keep its lines."""
    for i in range(len(lines) - 2):
        here, gap, following = lines[i : i + 3]
        deeper = len(following) - len(following.lstrip()) > len(here) - len(here.lstrip())
        introduces = here.endswith(":") and not here.endswith("::") and not gap.strip()
        if introduces and deeper and not following.lstrip().startswith("- "):
            lines[i] += ":"


def escape_names(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Names that end in an underscore, |λ| and a lone * are plain text, not references,
    substitutions and emphasis.
    """
    literal = -1  # the indentation of the line that a literal block belongs to
    doctest = False
    for i, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            doctest = False
            continue
        doctest = doctest or line.lstrip().startswith(">>>")
        if 0 <= literal < depth or doctest:
            continue
        literal = depth if line.endswith("::") else -1
        if line.lstrip().startswith(".. "):
            continue
        parts = CODE.split(line)
        for j in range(0, len(parts), 2):
            plain = NAME_WITH_UNDERSCORE.sub(r"\_", parts[j]).replace("|", r"\|")
            parts[j] = (
                plain.replace("*", r"\*") if plain.count("*") % 2 and "**" not in plain else plain
            )
        lines[i] = "".join(parts)


# ---- members of other libraries' base classes are documented there -------------------------------


def is_foreign(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    function = getattr(member, "fget", member)
    module = getattr(function, "__module__", None) or ""
    if (
        what == "class"
        and (name.startswith("set_") or not module.startswith("fitonce"))
        and callable(function)
    ):
        return True
    return None


def lead_to_objects(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """In pages of source, lead back to each object by the name that its own page has: the
    extension takes one module name for all objects of a file.
    """

    def replaced(match: re.Match[str]) -> str:
        name = match[1].rpartition(".")[2]
        return f"_generated/{match[1]}.html#{match[1]}{match[2].partition(name)[2]}"

    if page.startswith("_modules/") and "body" in context:
        context["body"] = BACK.sub(replaced, context["body"])


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write_tables)
    app.connect("html-page-context", lead_to_objects)
    app.connect("source-read", read_source)
    app.connect("autodoc-skip-member", is_foreign)
    # before and after numpydoc takes the sections apart
    app.connect("autodoc-process-docstring", show_equations, priority=100)
    app.connect("autodoc-process-docstring", escape_names, priority=900)
    return {"parallel_read_safe": True}
