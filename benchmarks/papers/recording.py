"""Results that an interrupted run goes on from, the figure beside them, a progress bar.

A script writes ``<name>.json``, which names the script, the settings, the versions and the hashes
of the code (``benchmarks/provenance.py``), and ``<name>.png`` where there is a figure, to
``benchmarks/results/papers``; with ``--quick``, which takes seconds, to ``benchmarks/cache/papers``
instead, and with ``--out FOLDER`` to that folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import sklearn  # noqa: E402
import threadpoolctl  # noqa: E402

# a script may have imported NumPy before, which has then not seen the variables
threadpoolctl.threadpool_limits(int(os.environ["OMP_NUM_THREADS"]))

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "papers"
CACHE = HERE.parent / "cache" / "papers"
sys.path.append(str(HERE.parent))

import common  # noqa: E402
import provenance  # noqa: E402


class Run:
    """The results of one script: settings, cells that are computed once, and what is derived from
    them.

    A cell is written as soon as it is there. A run with the same settings goes on with what it
    finds, and its hashes stay those of the code that made the first cells; with others it starts
    again.
    """

    def __init__(
        self, script: str, folder: Path, settings: dict[str, Any], quick: bool, fresh: bool = False
    ) -> None:
        self.name = Path(script).stem
        self.script = f"benchmarks/papers/{self.name}.py"
        there = (HERE / f"{self.name}.py").is_file()
        self.inputs = provenance.inputs(self.script) if there else {}
        self.path = folder / f"{self.name}.json"
        self.quick = quick
        self.settings = json.loads(json.dumps({"quick": quick, **settings}))
        self.cells: dict[str, Any] = {}
        self.derived: dict[str, Any] = {}
        if self.path.is_file() and not fresh:
            found = read(self.path)
            if found.get("settings") == self.settings:
                self.cells = found["cells"]
                self.inputs = found.get("inputs", {}) if self.cells else self.inputs

    def each(self, keys: Iterable[Hashable], compute: Callable[..., Any]) -> dict[str, Any]:
        """``compute(*key)`` for every key that has no cell yet, with a progress bar.

        All cells by the key's text.
        """
        keys = [key if isinstance(key, tuple) else (key,) for key in keys]
        texts = [" ".join(str(part) for part in key) for key in keys]
        for done, (key, text) in enumerate(zip(keys, texts, strict=True), 1):
            if text in self.cells:
                continue
            try:
                self.cells[text] = compute(*key)
            except KeyboardInterrupt:
                raise SystemExit(
                    f"interrupted at {text}; what was done is in {self.path}, and the same "
                    "command goes on from there"
                ) from None
            self.save()
            common.progress(done, len(keys), f"{self.name}: {text}")
        return self.cells

    def save(self, **derived: Any) -> None:
        """Write everything, atomically, under a name of its own until it is whole."""
        self.derived.update(derived)
        record = {
            "script": f"{self.script}{' --quick' if self.quick else ''}",
            "date": time.strftime("%Y-%m-%d"),
            "commit": common.commit(),
            "processor": common.processor(),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
                "sklearn": sklearn.__version__,
            },
            "threads": os.environ["OMP_NUM_THREADS"],
            "clock": "CPU seconds of the process",
            "settings": self.settings,
            **self.derived,
            "inputs": self.inputs,
            "cells": packed(self.cells),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        given = json.loads(json.dumps(record, default=plain))
        temporary.write_text(common.compact(given) + "\n", encoding="utf-8")
        temporary.replace(self.path)

    def figure(self, draw: Callable[..., Any], *arguments: Any) -> None:
        """``draw(plt, …)`` returns a figure, which is saved beside the results.

        Nothing where matplotlib is missing.
        """
        try:
            import matplotlib
        except ImportError:
            print("no figure: matplotlib is missing (pip install 'fitonce[plot]')", file=sys.stderr)
            return
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        style = {
            "axes.grid": True,
            "grid.alpha": 0.25,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
        with plt.rc_context({**style, "font.size": 9.5, "axes.titlesize": 10.5}):
            figure = draw(plt, *arguments)
            figure.savefig(self.path.with_suffix(".png"), dpi=130)
            plt.close(figure)
        smaller(self.path.with_suffix(".png"))


def smaller(picture: Path) -> None:
    """The picture with 64 colors, which lines and text do not miss."""
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)


def packed(cells: dict[str, Any]) -> dict[str, Any]:
    """Cells of the same numbers as rows below their names, written once."""
    names = [tuple(cell) if isinstance(cell, dict) else () for cell in cells.values()]
    if len(set(names)) != 1 or not names[0]:
        return cells
    return {"columns": list(names[0])} | {key: list(cell.values()) for key, cell in cells.items()}


def read(path: Path) -> dict[str, Any]:
    """A result with its cells as they were computed."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if columns := found.get("cells", {}).pop("columns", None):
        found["cells"] = {k: dict(zip(columns, v, strict=True)) for k, v in found["cells"].items()}
    return found


def plain(value: Any) -> Any:
    """NumPy numbers and arrays as JSON's own."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def start(script: str, doc: str | None, full: dict[str, Any], quick: dict[str, Any]) -> Run:
    """Parse the command line and open the run with the full settings, or with those of the quick
    mode over them.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a small version, in seconds; goes to benchmarks/cache/papers",
    )
    parser.add_argument("--fresh", action="store_true", help="start again instead of going on")
    parser.add_argument("--out", type=Path, help="folder for the results")
    arguments = parser.parse_args()
    folder = arguments.out or (CACHE if arguments.quick else RESULTS)
    return Run(
        script,
        folder,
        {**full, **(quick if arguments.quick else {})},
        arguments.quick,
        arguments.fresh,
    )
