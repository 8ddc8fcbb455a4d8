"""The gallery: one page for each script in examples/, with the figure and the words that it
produced while the site was built.

The pages are written to docs/gallery, which is not kept in the repository. A script runs again when
it, or the version of the package, has changed.
"""

from __future__ import annotations

import ast
import hashlib
import html
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
PAGES = DOCS / "gallery"

FIRST = (
    "quickstart",
    "decision_surface",
    "tuning_landscape",
    "probabilities",
    "discriminant_axes",
    "permutation_null",
    "time_resolved_decoding",
    "own_smoother",
)
NOT_RUN = {"gpu": "Not run here: it is about a GPU."}
ARGUMENTS = {"large_data": ["20000"]}  # fewer rows than by default
TIME_LIMIT = 180  # seconds

RUNNER = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
script, figure, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
runpy.run_path(script, run_name="__main__")
if plt.get_fignums():
    last = plt.figure(plt.get_fignums()[-1])
    last.savefig(figure, dpi=110, facecolor="white", bbox_inches="tight")
"""


@dataclass(frozen=True)
class Example:
    """A script with its docstring taken apart: the first sentence and the rest."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize().replace("Gpu", "GPU")

    @property
    def documentation(self) -> str:
        return ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""

    @property
    def first_line(self) -> int:
        """Where the code begins, after the docstring."""
        docstring = ast.parse(self.path.read_text(encoding="utf-8")).body[0]
        return (docstring.end_lineno or 0) + 2

    @property
    def summary(self) -> str:
        return " ".join(self.documentation.split("\n\n")[0].split())

    @property
    def figure(self) -> Path:
        return PAGES / f"{self.name}.png"

    @property
    def output(self) -> Path:
        return PAGES / f"{self.name}.txt"

    @property
    def words(self) -> str:
        """What it printed."""
        return self.output.read_text(encoding="utf-8").strip() if self.output.exists() else ""

    @property
    def stamp(self) -> str:
        import fitonce

        return hashlib.sha256(self.path.read_bytes() + fitonce.__version__.encode()).hexdigest()


def examples() -> list[Example]:
    found = [Example(path) for path in sorted(EXAMPLES.glob("*.py"))]
    return sorted(
        found,
        key=lambda example: FIRST.index(example.name) if example.name in FIRST else len(FIRST),
    )


def run(example: Example) -> None:
    """Run a script once and keep what it printed and drew."""
    stamp = PAGES / f"{example.name}.stamp"
    if stamp.exists() and stamp.read_text() == example.stamp:
        return
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    command = [
        sys.executable,
        "-c",
        RUNNER,
        str(example.path),
        str(example.figure),
        *ARGUMENTS.get(example.name, []),
    ]
    example.figure.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:  # for what it writes
        options: dict[str, Any] = {
            "capture_output": True,
            "text": True,
            "encoding": "utf-8",
            "timeout": TIME_LIMIT,
            "env": environment,
        }
        done = subprocess.run(command, cwd=folder, **options)
    if done.returncode:
        from sphinx.errors import ExtensionError

        raise ExtensionError(f"examples/{example.path.name} failed:\n{done.stderr}")
    example.output.write_text(done.stdout, encoding="utf-8")
    stamp.write_text(example.stamp)


def indented(text: str) -> str:
    return "\n".join("   " + line if line else "" for line in text.rstrip().splitlines())


def page(example: Example) -> str:
    """The page of an example: what it is about, its figure, its words, its code."""
    text = [
        f".. code-block:: sh\n\n{part}" if part.startswith("    ") else part
        for part in example.documentation.split("\n\n")
    ]
    parts = [example.title, "=" * len(example.title), "", "\n\n".join(text), ""]
    if example.figure.exists():
        parts += [f".. image:: {example.figure.name}", f"   :alt: {example.summary}", ""]
    if example.name in NOT_RUN:
        parts += [NOT_RUN[example.name], ""]
    elif words := example.words:
        parts += [".. rubric:: Output", "", ".. code-block:: text", "", indented(words), ""]
    parts += [
        ".. rubric:: Code",
        "",
        f":download:`examples/{example.path.name} <../../examples/{example.path.name}>`",
        "",
    ]
    parts += [
        f".. literalinclude:: ../../examples/{example.path.name}",
        "   :language: python",
        f"   :lines: {example.first_line}-",
        "",
    ]
    return "\n".join(parts)


def card(example: Example) -> str:
    """A tile of the gallery: the figure, or the first lines of output, with title and summary."""
    if example.figure.exists():
        picture = f'<img src="../_images/{example.figure.name}" alt="" loading="lazy">'
    else:
        text = example.words or example.path.read_text(encoding="utf-8")
        picture = f"<pre>{html.escape(text[:900])}</pre>"
    title, summary = html.escape(example.title), html.escape(example.summary.replace("``", ""))
    return (
        f'<a class="example" href="{example.name}.html"><span class="picture">{picture}</span>'
        f"<strong>{title}</strong><span>{summary}</span></a>"
    )


def index(all_examples: list[Example]) -> str:
    tiles = "".join(
        f"   {card(example)}\n".replace("\n", "&#10;").removesuffix("&#10;") + "\n"
        for example in all_examples
    )
    return "\n".join(
        [
            "Examples",
            "========",
            "",
            "Scripts that run as they stand: ``python examples/quickstart.py``. Figures and "
            "output are those of the build of this site.",
            "",
            ".. raw:: html",
            "",
            '   <div class="examples">',
            tiles + "   </div>",
            "",
            ".. toctree::",
            "   :hidden:",
            "",
            *(f"   {example.name}" for example in all_examples),
            "",
        ]
    )


def write_if_changed(path: Path, text: str) -> None:
    """Sphinx reads again what is newer than its last build."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def build(app: Any) -> None:
    PAGES.mkdir(exist_ok=True)
    all_examples = examples()
    # each thread waits for a process of its own
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        list(pool.map(run, [example for example in all_examples if example.name not in NOT_RUN]))
    for example in all_examples:
        write_if_changed(PAGES / f"{example.name}.rst", page(example))
    write_if_changed(PAGES / "index.rst", index(all_examples))


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", build, priority=100)
    return {"parallel_read_safe": True}
