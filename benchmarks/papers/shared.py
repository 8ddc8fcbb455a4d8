"""What the scripts of this folder share: results that an interrupted run goes on from, progress,
the papers' data, direct models.

Each script remakes one table or figure of one paper. It writes ``<name>.json``, which names the
script, the settings and the versions, and ``<name>.png`` where there is a figure, to
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
    os.environ.setdefault(_name, "1")  # before NumPy is imported

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import scipy.linalg  # noqa: E402
import sklearn  # noqa: E402
from sklearn.metrics.pairwise import rbf_kernel  # noqa: E402

from fitonce.core.smoothers import KernelSmoother  # noqa: E402
from fitonce.datasets import make_torus  # noqa: E402
from fitonce.kernels import Kernel  # noqa: E402
from fitonce.tuning.decompose import decompose  # noqa: E402

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "papers"
CACHE = HERE.parent / "cache" / "papers"

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = (
    "#1f77b4",
    "#e6792b",
    "#2a9d5c",
    "#c8372d",
    "#7b5ea7",
    "#777777",
)


# ---- running and recording -----------------------------------------------------------------------


class Run:
    """The results of one script: settings, cells that are computed once, and what is derived from
    them.

    A cell is written as soon as it is there. A run with the same settings goes on with what it
    finds; with others it starts again.
    """

    def __init__(
        self, script: str, folder: Path, settings: dict[str, Any], quick: bool, fresh: bool = False
    ) -> None:
        self.name = Path(script).stem
        self.path = folder / f"{self.name}.json"
        self.quick = quick
        self.settings = json.loads(json.dumps({"quick": quick, **settings}))
        self.cells: dict[str, Any] = {}
        self.derived: dict[str, Any] = {}
        if self.path.is_file() and not fresh:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if found.get("settings") == self.settings:
                self.cells = found["cells"]

    def each(self, keys: Iterable[Hashable], compute: Callable[..., Any]) -> dict[str, Any]:
        """``compute(*key)`` for every key that has no cell yet, with a progress bar.

        All cells by the key's text.
        """
        keys = [key if isinstance(key, tuple) else (key,) for key in keys]
        bar = Bar(len(keys), self.name)
        for key in keys:
            text = " ".join(str(part) for part in key)
            if text in self.cells:
                bar.skip()
                continue
            bar.show(text)
            try:
                self.cells[text] = compute(*key)
            except KeyboardInterrupt:
                bar.close()
                raise SystemExit(
                    f"interrupted at {text}; what was done is in {self.path}, and the same "
                    "command goes on from there"
                ) from None
            self.save()
            bar.advance(text)
        bar.close()
        return self.cells

    def save(self, **derived: Any) -> None:
        """Write everything, atomically, under a name of its own until it is whole."""
        self.derived.update(derived)
        record = {
            "script": f"benchmarks/papers/{self.name}.py{' --quick' if self.quick else ''}",
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
            "cells": self.cells,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(record, indent=1, default=plain) + "\n", encoding="utf-8")
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


def plain(value: Any) -> Any:
    """NumPy numbers and arrays as JSON's own."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


class Bar:
    """A progress bar on a terminal; elsewhere nothing."""

    def __init__(self, total: int, label: str) -> None:
        self.total, self.label, self.done, self.skipped = total, label, 0, 0
        self.started = time.perf_counter()
        self.shown = sys.stderr.isatty()

    def skip(self) -> None:
        self.done += 1
        self.skipped += 1

    def advance(self, text: str) -> None:
        self.done += 1
        self.show(text)

    def show(self, text: str) -> None:
        if not self.shown:
            return
        share = self.done / max(self.total, 1)
        filled = round(28 * share)
        spent = self.done - self.skipped
        left = (
            (time.perf_counter() - self.started) / spent * (self.total - self.done)
            if spent
            else float("nan")
        )
        remaining = f"{left / 60:5.1f} min left" if spent else " " * 14
        print(
            f"\r\033[K{'█' * filled}{'·' * (28 - filled)} {share:4.0%} {remaining}  {self.label}: "
            f"{text}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


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


def seconds(task: Callable[[], Any]) -> float:
    """CPU seconds of this process.

    With one thread, the time that a task takes where nothing else runs.
    """
    began = time.process_time()
    task()
    return time.process_time() - began


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Exponent of a power law, by least squares on log-log axes."""
    return float(np.polyfit(np.log(list(x)), np.log(list(y)), 1)[0])


# ---- the two-class problem of Cawley & Talbot (2003) and Saadi et al. (2007) ---------------------


def torus(n: int, trial: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Kernel matrix (n, n) and labels ±1 of one draw.

    A Gaussian (a quarter of the rows) inside an annulus.
    """
    X, y = make_torus(n, random_state=np.random.default_rng([2003, n, trial]))
    return rbf_kernel(X, gamma=gamma), y.astype(float)


def indicators(y: np.ndarray) -> np.ndarray:
    """(n, 2): one column for y > 0, one for y < 0."""
    return np.column_stack([y > 0, y < 0]).astype(float)


def fisher_targets(y: np.ndarray) -> np.ndarray:
    """n/n₁ for y > 0 and -n/n₂ for y < 0."""
    return indicators(y) @ fisher_scores(y)


def fisher_scores(y: np.ndarray) -> np.ndarray:
    """(n/n₁, -n/n₂)"""
    return len(y) / np.array([np.sum(y > 0), -np.sum(y < 0)], dtype=float)


def bordered_normal_equations(Z: np.ndarray, mu: float) -> np.ndarray:
    """C = ZᵀZ + diag(μ, …, μ, 0) for Z = [K 1].

    The last parameter is the bias, which is not penalised.
    """
    C = Z.T @ Z
    C[np.diag_indices(len(C) - 1)] += mu
    return C


def with_ones(K: np.ndarray) -> np.ndarray:
    return np.column_stack([K, np.ones(len(K))])


def direct_leave_one_out(K: np.ndarray, Y: np.ndarray, mu: float) -> np.ndarray:
    """Held-out values (n, t) by n literal fits of equation (4), each without the row and without
    its kernel function.
    """
    values = np.empty_like(Y)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        Z = with_ones(K[np.ix_(rest, rest)])
        coefficients = scipy.linalg.solve(
            bordered_normal_equations(Z, mu), Z.T @ Y[rest], assume_a="pos"
        )
        values[i] = np.append(K[i, rest], 1.0) @ coefficients
    return values


def direct_leave_one_out_basis_kept(K: np.ndarray, Y: np.ndarray, mu: float) -> np.ndarray:
    """The same where only the row leaves.

    The kernel function centred on it stays in the expansion, as in the papers' algebra.
    """
    Z = with_ones(K)
    values = np.empty_like(Y)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        coefficients = scipy.linalg.solve(
            bordered_normal_equations(Z[rest], mu), Z[rest].T @ Y[rest], assume_a="pos"
        )
        values[i] = Z[i] @ coefficients
    return values


def dual_norm(K: np.ndarray) -> KernelSmoother:
    """fitonce's decomposition of the same model (penalty μ‖α‖², free bias), for any μ.

    K is left as it is.
    """
    return decompose(K.copy(), Kernel("precomputed"), "dual", True, None)


def relative_error(direct: np.ndarray, other: np.ndarray) -> float:
    """e = ‖r̃ - r̂‖² / ‖r̃‖², the papers' measure: squared norms, so that 1e-30 is rounding."""
    return float(np.sum((direct - other) ** 2) / np.sum(direct**2))
