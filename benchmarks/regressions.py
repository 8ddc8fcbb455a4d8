"""Is this checkout slower, or does it need more memory, than another one?

    python benchmarks/regressions.py BASE               # BASE/src holds the other version
    python benchmarks/regressions.py BASE --only folds
    python benchmarks/regressions.py BASE --device cuda # the tasks of a GPU, by torch
    python benchmarks/regressions.py BASE --allow 1.1   # fails where a median is slower

Each version runs in a process of its own. Both run every task in turn, so that other work on the
machine hits them alike; of both, the median and the shortest time in milliseconds is printed, the
ratio new/base, and the peak of NumPy's allocations in one more run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import common  # noqa: F401 - threads are pinned before NumPy is imported
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
Task = Callable[[], Any]


# ---- tasks ---------------------------------------------------------------------------------------


def problem(n: int, p: int = 10, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=n)
    cuts = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(cuts, score)


def rows_of_file(X: np.ndarray, y: np.ndarray) -> Any:
    """The rows as a CSV file."""
    from fitonce.rows import open_rows

    path = Path(tempfile.mkdtemp()) / "rows.csv"
    names = ",".join(f"x{j}" for j in range(X.shape[1]))
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=f"{names},y", comments="")
    return lambda: open_rows(path, target="y")


def tasks() -> dict[str, Task]:
    """What users do, on sizes that take a fraction of a second."""
    from sklearn.model_selection import LeaveOneOut

    import fitonce
    from fitonce import KernelFisherDiscriminant as Discriminant
    from fitonce import KernelRidge, LeastSquaresSVC
    from fitonce.positions import cross_val_score as position_scores
    from fitonce.positions import permutation_test

    alphas = np.logspace(-6, 4, 21)
    X, y = problem(800)
    few, few_y = problem(200, n_classes=3)
    long, long_y = problem(8000)
    fixed = Discriminant(gamma=0.1, alpha=0.1)
    Y = X[:, :3] @ np.random.default_rng(1).normal(size=(3, 500))
    Y += np.random.default_rng(2).normal(size=Y.shape)
    epochs = np.random.default_rng(3).normal(size=(120, 30, 60))
    some = Discriminant("linear", alpha=1.0)
    by_landmarks = LeastSquaresSVC(gamma=0.1, alpha=alphas, landmarks=100)
    from_file = rows_of_file(long, long_y)

    def permuted(mode: str) -> Task:
        options: dict[str, Any] = {"cv": 5, "n_permutations": 1000, "random_state": 0}
        if mode != "default":
            options["permute"] = mode
        return lambda: fitonce.permutation_test_score(fixed, few, few_y, **options)

    return {
        "path of 21 alphas": lambda: Discriminant(gamma=0.1, alpha=alphas).fit(X, y),
        "default fit": lambda: Discriminant().fit(few, few_y),
        "default fit, ridge": lambda: KernelRidge().fit(X[:400], Y[:400, 0]),
        "fixed fit": lambda: fixed.fit(X, y),
        "fixed fit, 60 rows": lambda: fixed.fit(X[:60], y[:60]),
        "ten folds": lambda: fitonce.cross_val_score(fixed, X, y, cv=10),
        "ten folds, tuned": lambda: fitonce.cross_val_score(Discriminant(), few, few_y, cv=10),
        "leave-one-out": lambda: fitonce.cross_val_predict(fixed, X, y, cv=LeaveOneOut()),
        "permutations": permuted("default"),
        "permutations, resplit": permuted("resplit"),
        "permutations, within folds": permuted("within-folds"),
        "positions": lambda: position_scores(some, epochs, few_y[:120] > 0, cv=5),
        "positions, permutations": lambda: permutation_test(
            some, epochs[:, :, :20], few_y[:120] > 0, cv=5, n_permutations=200, random_state=0
        ),
        "landmarks": lambda: by_landmarks.fit(long, long_y),
        "landmarks, file": lambda: by_landmarks.fit(from_file(), long_y),
        "many targets": lambda: fitonce.cross_val_predict(
            KernelRidge(alphas, kernel="linear", alpha_per_target=True), X, Y, cv=5
        ),
    }


def device_tasks(device: str) -> dict[str, Task]:
    """The same for a GPU, on sizes that fill it."""
    import torch

    import fitonce
    from fitonce import KernelFisherDiscriminant as Discriminant
    from fitonce import KernelRidge, LeastSquaresSVC

    alphas = np.logspace(-6, 4, 21)

    def there(A: np.ndarray) -> Any:
        return torch.asarray(A, device=device)

    X, y = map(there, problem(16384))
    X_long, y_long = map(there, problem(1_000_000))
    few, few_y = map(there, problem(2000))
    Y = there(np.random.default_rng(1).normal(size=(2000, 100_000)))
    fixed = Discriminant(gamma=0.1, alpha=0.1)

    def finished(task: Task) -> Task:
        def run() -> None:
            task()
            torch.cuda.synchronize()

        return run

    found = {
        "path of 21 alphas": lambda: Discriminant(gamma=0.1, alpha=alphas).fit(X, y),
        "fit": lambda: fixed.fit(X, y),
        "10,000 permutations": lambda: fitonce.permutation_test_score(
            fixed, few, few_y, cv=5, n_permutations=10_000, random_state=0
        ),
        "100,000 targets": lambda: KernelRidge(alphas, kernel="linear").fit(few, Y),
        "a million rows, 4,096 landmarks": lambda: LeastSquaresSVC(
            gamma=0.1, alpha=alphas, landmarks=4096, random_state=0
        ).fit(X_long, y_long),
    }
    return {name: finished(task) for name, task in found.items()}


# ---- one process for each version ----------------------------------------------------------------


def serve(device: str | None) -> None:
    """Run the tasks named on standard input: seconds, or the peak of allocations in bytes."""
    warnings.simplefilter("ignore")
    found = tasks() if device is None else device_tasks(device)
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        what, name = json.loads(line)
        if what == "memory":
            tracemalloc.start()
            found[name]()
            result = float(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        else:
            start = time.perf_counter()
            found[name]()
            result = time.perf_counter() - start
        print(json.dumps(result), flush=True)


class Version:
    """A process with one version of the package."""

    def __init__(self, source: Path, device: str | None) -> None:
        arguments = [] if device is None else ["--device", device]
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(source), "--serve", *arguments],
            env={**os.environ, "PYTHONPATH": str(source / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names = self._answer()

    def run(self, name: str, what: str = "time") -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([what, name]) + "\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--device")
    parser.add_argument("--allow", type=float, default=float("inf"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(given.device)
    base, new = Version(given.base.resolve(), given.device), Version(ROOT, given.device)
    slower = []
    print(f"{'':34s}{'base':>10s}{'new':>10s}{'ratio':>8s}{'shortest':>10s}{'memory':>9s}")
    for name in (name for name in new.names if given.only in name):
        base.run(name), new.run(name)  # imports and caches
        times = [(base.run(name), new.run(name)) for _ in range(given.rounds)]
        before, now = (1e3 * median(side) for side in zip(*times, strict=True))
        shortest = min(b for _, b in times) / min(a for a, _ in times)
        memory = new.run(name, "memory") / base.run(name, "memory")
        print(
            f"{name:34s}{before:10.1f}{now:10.1f}{now / before:8.2f}{shortest:10.2f}{memory:9.2f}",
            flush=True,
        )
        slower += [name] if now > given.allow * before else []
    if slower:
        raise SystemExit(f"slower than the base: {', '.join(slower)}")


if __name__ == "__main__":
    main()
