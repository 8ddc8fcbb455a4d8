"""How long each task takes, how that grows, and what it stands beside.

    python benchmarks/timings.py --jobs 16        # everything, a core each; about eight minutes
    python benchmarks/timings.py --only folds     # tasks whose names contain a word
    python benchmarks/timings.py --quick          # the smallest size of each, nothing is written
    python benchmarks/timings.py --beside BASE    # ten tasks of this checkout beside another one
    python benchmarks/timings.py --beside BASE --allow 1.1   # fails where a median is slower

A task names sizes, and for each size makes its sides: ours, a peer, a floor (what no method of this
kind can do without). All sides of a size run in turn in one process on one thread; the shortest
processor time of several rounds counts. Memory is the growth of the peak during one more run
(Linux). A peer that would take minutes is run on a part and scaled, and the result says so. Slopes
are those of log time over log size, for the upper half of the sizes. Sides whose package is not
installed are left out. A run replaces its tasks in results/timings.json and leaves the others.

With `--beside`, each checkout runs in a process of its own, both in turn, so that other work hits
them alike: medians in milliseconds, their ratio, and the ratio of the shortest times.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
import scipy.linalg
import sklearn.model_selection
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge as PlainRidge
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import fitonce
from fitonce import (
    KernelCommitteeClassifier,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    positions,
)
from fitonce.core import rows as host_rows
from fitonce.report import write_report

ROOT = Path(__file__).resolve().parent.parent
PARTS = Path(__file__).parent / "tmp" / "timings"
ALPHAS = 2.0 ** np.arange(-10, 11)
GRID = {"gamma": 2.0 ** np.arange(-12, 4), "C": 2.0 ** np.arange(-4, 9)}
Side = Callable[[], Any]
Sides = dict[str, Side]


@dataclass(frozen=True)
class Task:
    """`sides(size)` makes what runs in turn; a peer's time is multiplied by `scaled(size)`."""

    unit: str
    sizes: tuple[int, ...]
    sides: Callable[[int], Sides]
    scaled: dict[str, Callable[[int], float]] = field(default_factory=dict)
    repeats: int = 3


def installed(package: str) -> bool:
    return find_spec(package) is not None


def rows(n: int, p: int = 10, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class follows two columns, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]), score)


def eigh_of(X: np.ndarray) -> Side:
    """One eigendecomposition of a kernel matrix of these rows, by divide and conquer."""
    K = rbf_kernel(X, gamma=0.1)
    return lambda: scipy.linalg.eigh(
        K.T.copy(order="F"), driver="evd", overwrite_a=True, check_finite=False
    )


# ---- tasks ---------------------------------------------------------------------------------------


def fixed_fit(n: int) -> Sides:
    X, y = rows(n)
    return {
        "fitonce": lambda: KernelFisherDiscriminant(gamma=0.1, alpha=0.1).fit(X, y),
        "SVC": lambda: SVC(gamma=0.1).fit(X, y),
        "eigh": eigh_of(X),
    }


def path_fit(n: int) -> Sides:
    X, y = rows(n)
    folds = KFold(5)
    grid = GridSearchCV(PlainRidge(kernel="rbf", gamma=0.1), {"alpha": ALPHAS}, cv=folds)
    return {
        "fitonce": lambda: KernelRidge(ALPHAS, gamma=0.1).fit(X, y),
        "fitonce, 5 folds": lambda: KernelRidge(ALPHAS, gamma=0.1, cv=folds).fit(X, y),
        "GridSearchCV(KernelRidge), 5 folds": lambda: grid.fit(X, y),
        "eigh": eigh_of(X),
    }


def default_fit(n: int) -> Sides:
    X, y = rows(n)
    some = {name: values[::2] for name, values in GRID.items()}  # 8 × 7
    sides: Sides = {
        "fitonce": lambda: KernelFisherDiscriminant().fit(X, y),
        'kernel="tune"': lambda: KernelFisherDiscriminant("tune").fit(X, y),
        "committee": lambda: KernelCommitteeClassifier().fit(X, y),
        'search="full"': lambda: KernelFisherDiscriminant(search="full").fit(X, y),
        "eigh": eigh_of(X),
    }
    if n <= 500:
        sides["GridSearchCV(SVC), 8 × 7, 5 folds"] = lambda: GridSearchCV(SVC(), some).fit(X, y)
    return sides


def ten_folds(n: int) -> Sides:
    X, y = rows(n)
    model, svc = KernelFisherDiscriminant(gamma=0.1, alpha=1.0), SVC(gamma=0.1)
    score = sklearn.model_selection.cross_val_score
    return {
        "fitonce": lambda: fitonce.cross_val_score(model, X, y, cv=10),
        "scikit-learn, same estimator": lambda: score(model, X, y, cv=10),
        "scikit-learn, SVC": lambda: score(svc, X, y, cv=10),
    }


def leave_one_out(n: int) -> Sides:
    X, y = rows(n)
    model = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    some = [split for i, split in enumerate(LeaveOneOut().split(X)) if i % (n // 10) == 0][:10]
    score = sklearn.model_selection.cross_val_score
    return {
        "fitonce": lambda: fitonce.cross_val_score(model, X, y, cv=LeaveOneOut()),
        "scikit-learn, same estimator": lambda: score(model, X, y, cv=some),
        "scikit-learn, SVC": lambda: score(SVC(gamma=0.1), X, y, cv=some),
    }


def pairs(n: int) -> Sides:
    X, y = rows(n)
    model = LeastSquaresSVC(gamma=0.1, alpha=1.0, calibration=None)
    return {
        "fitonce": lambda: fitonce.leave_pair_out(model, X, y),
        "a fit for every pair": lambda: model.fit(X[2:], y[2:]).decision_function(X[:2]),
    }


def permutations(n: int, n_classes: int = 2) -> Sides:
    X, y = rows(n, n_classes=n_classes)
    model, svc = KernelFisherDiscriminant(gamma=0.1, alpha=1.0), SVC(kernel="precomputed")
    K = rbf_kernel(X, gamma=0.1)
    labels = np.random.default_rng(0).normal(size=(n, 1000 * max(1, n_classes - 1)))
    folds = StratifiedKFold(10)
    fixed: dict[str, Any] = {"cv": folds, "random_state": 0}
    test = fitonce.permutation_test_score
    refit = sklearn.model_selection.permutation_test_score
    return {
        "fitonce": lambda: test(model, X, y, n_permutations=1000, **fixed),
        'permute="resplit"': lambda: test(
            model, X, y, n_permutations=1000, permute="resplit", **fixed
        ),
        "scikit-learn, same estimator": lambda: refit(
            model, X, y, n_permutations=1, cv=folds, random_state=0
        ),
        "scikit-learn, SVC": lambda: refit(svc, K, y, n_permutations=2, **fixed),
        "one matrix product": lambda: K @ labels,
    }


def tuned_permutations(n: int) -> Sides:
    X, y = rows(n)
    fixed: dict[str, Any] = {"cv": StratifiedKFold(10), "random_state": 0, "n_permutations": 999}
    test = fitonce.permutation_test_score
    coarse = KernelFisherDiscriminant("tune", search="coarse")
    sides: Sides = {"fitonce, coarse lattice": lambda: test(coarse, X, y, **fixed)}
    if n <= 100:
        whole = KernelFisherDiscriminant("tune")
        sides["fitonce, its own lattice"] = lambda: test(whole, X, y, **fixed)
    return sides


def many_targets(n_targets: int, p: int) -> Sides:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, p))
    Y = X @ rng.normal(size=(p, n_targets)) / np.sqrt(p) + rng.normal(size=(1000, n_targets))
    alphas, folds = np.logspace(0, 6, 15), KFold(5)
    options: dict[str, Any] = {"kernel": "linear", "cv": folds}
    ours = KernelRidge(alphas, alpha_per_target=True, fit_intercept=False, **options)
    sides: Sides = {"fitonce": lambda: ours.fit(X, Y)}
    if installed("himalaya"):
        from himalaya.backend import set_backend
        from himalaya.kernel_ridge import KernelRidgeCV

        set_backend("numpy")
        sides["himalaya"] = lambda: KernelRidgeCV(alphas=alphas, **options).fit(X, Y)
    return sides


def landmarks(n: int, m: int = 300) -> Sides:
    X, y = rows(n, p=20)
    points, W = X[:m].copy(), np.random.default_rng(0).normal(size=(m, m))
    given: dict[str, Any] = {"criterion": "squared_error", "calibration": None}
    ours = LeastSquaresSVC(gamma=0.02, alpha=ALPHAS, landmarks=m, random_state=0, **given)
    features = Nystroem(gamma=0.02, n_components=m, random_state=0)
    peer = make_pipeline(features, RidgeClassifierCV(ALPHAS))

    def bare() -> None:
        for start in range(0, n, 4096):
            rbf_kernel(X[start : start + 4096], points, gamma=0.02) @ W

    return {
        "fitonce": lambda: ours.fit(X, y),
        "Nystroem + RidgeClassifierCV": lambda: peer.fit(X, y),
        "kernel and product": bare,
    }


def blocks(elements: int) -> Sides:
    """60,000 rows on 300 landmarks, in blocks of so many features."""
    X, y = rows(60_000, p=20)

    def fitted(penalty: str) -> Side:
        def run() -> None:
            host_rows.HOST_ELEMENTS = elements
            given: dict[str, Any] = {"gamma": 0.05, "alpha": ALPHAS, "landmarks": X[:300]}
            KernelRidge(penalty=penalty, **given).fit(X, y.astype(float))

        return run

    return {"fitonce": fitted("function"), "fitonce, dual norm": fitted("dual")}


def columns(p: int) -> Sides:
    X, y = rows(500, p)
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    score, peer = sklearn.model_selection.cross_val_score, RidgeClassifier()
    return {
        "fitonce": lambda: fitonce.cross_val_score(model, X, y, cv=10),
        "scikit-learn, RidgeClassifier": lambda: score(peer, X, y, cv=10),
    }


def decoding(n_times: int) -> Sides:
    """300 epochs of 64 channels, five folds: 1,000 permutations, scores, and time by time."""
    rng, folds = np.random.default_rng(0), StratifiedKFold(5)
    y = rng.permutation(np.arange(300) % 2)
    X = rng.normal(size=(300, 64, n_times))
    X[:, :8, n_times // 3 : n_times // 2] += 0.3 * y[:, None, None]
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    sides: Sides = {
        "fitonce": lambda: positions.permutation_test(model, X, y, cv=folds, n_permutations=1000)
    }
    scaled = (
        make_pipeline(StandardScaler(), model),
        make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    )
    sides["fitonce, scaled"] = partial(
        positions.permutation_test, scaled[0], X, y, cv=folds, n_permutations=1000
    )
    for end, ours, theirs in (("", model, LinearDiscriminantAnalysis()), (", scaled", *scaled)):
        sides[f"scores{end}"] = partial(positions.cross_val_score, ours, X, y, cv=folds)
        sides[f"time × time{end}"] = partial(positions.generalize, ours, X, y, cv=folds)
        if installed("mne"):
            from mne import decoding as mne

            given = {"scoring": "accuracy", "verbose": "ERROR"}
            refit = partial(mne.cross_val_multiscore, X=X, y=y, cv=folds, verbose="ERROR")
            sliding = mne.SlidingEstimator(theirs, **given)
            sides[f"MNE, scores{end}"] = partial(refit, sliding)
            sides[f"MNE, time × time{end}"] = partial(
                refit, mne.GeneralizingEstimator(theirs, **given)
            )
            if not end:
                sides["MNE"] = partial(refit, sliding, y=rng.permutation(y))
    return sides


def page(n: int) -> Sides:
    """A report of two classes: twelve columns, and two, with boundaries; five classes."""

    def written(n_classes: int, p: int) -> Side:
        X, y = make_classification(
            n, p, n_informative=min(p, 8), n_redundant=0, n_classes=n_classes,
            n_clusters_per_class=1, class_sep=0.7, random_state=0,
        )  # fmt: skip
        model, path = KernelFisherDiscriminant().fit(X, y), Path(tempfile.mkdtemp()) / "page.html"
        return lambda: write_report(path, model, X, y)

    return {"fitonce": written(2, 12), "2 columns": written(2, 2), "5 classes": written(5, 12)}


def intervals(n: int) -> Sides:
    X, y = rows(n, p=5)
    X_new = np.random.default_rng(1).normal(size=(1000, 5))
    ours = KernelRidge(0.1, gamma=0.2, fit_intercept=False)
    sides: Sides = {"fitonce": lambda: ours.fit(X, y).predict_interval(X_new, 0.9)}
    if installed("mapie"):
        from mapie.regression import CrossConformalRegressor

        given: dict[str, Any] = {"method": "plus", "conformity_score": "absolute"}
        plain = PlainRidge(alpha=0.1, kernel="rbf", gamma=0.2)
        model = CrossConformalRegressor(plain, confidence_level=0.9, cv=n, **given)
        sides["MAPIE"] = lambda: model.fit_conformalize(X, y).predict_interval(X_new)
    return sides


def assessed(n: int) -> Sides:
    X, y = rows(n)
    fixed = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    return {
        "fitonce": lambda: fitonce.assess(fixed, X, y, permutations=0),
        "tuned": lambda: fitonce.assess(KernelFisherDiscriminant(), X, y, permutations=0),
        "10 × 10 fits of SVC": lambda: sklearn.model_selection.cross_val_score(
            SVC(gamma=0.1), X, y, cv=sklearn.model_selection.RepeatedStratifiedKFold(n_splits=10)
        ),
    }


def all_pairs(n: int) -> float:
    return n * (n - 1) / 2


A_TENTH = {name: lambda n: n / 10 for name in ("scikit-learn, same estimator", "scikit-learn, SVC")}
LABELINGS = {
    "scikit-learn, same estimator": lambda n: 1000 / 2,
    "scikit-learn, SVC": lambda n: 1000 / 3,
}
ROWS = (250, 500, 1000, 2000)
TASKS = {
    "fit, fixed parameters": Task("rows", (60, 500, 1000, 2000, 4000), fixed_fit),
    "fit, 21 alphas": Task("rows", (500, 1000, 2000), path_fit),
    "fit, gamma and alpha tuned": Task("rows", (60, 250, 500, 1000, 2000), default_fit, repeats=2),
    "10 folds": Task("rows", ROWS, ten_folds),
    "10 folds of 500 rows": Task("columns", (100, 1000, 10_000), columns),
    "leave-one-out": Task("rows", ROWS, leave_one_out, A_TENTH),
    "leave-pair-out": Task("rows", ROWS[:3], pairs, {"a fit for every pair": all_pairs}),
    "1,000 permutations, 2 classes": Task("rows", ROWS, permutations, LABELINGS),
    "1,000 permutations, 5 classes": Task(
        "rows", ROWS[:3], lambda n: permutations(n, 5), LABELINGS, repeats=2
    ),
    "999 permutations, tuned": Task("rows", (100, 200), tuned_permutations, repeats=1),
    "targets, 200 columns": Task(
        "targets", (1000, 2500, 5000), lambda t: many_targets(t, 200), repeats=2
    ),
    "targets, 5,000 columns": Task(
        "targets", (1000, 2500, 5000), lambda t: many_targets(t, 5000), repeats=2
    ),
    "300 landmarks, 21 alphas": Task("rows", (20_000, 80_000, 320_000), landmarks, repeats=1),
    "21 alphas, 40,000 rows": Task(
        "landmarks", (100, 300, 1000), lambda m: landmarks(40_000, m), repeats=1
    ),
    "500 landmarks, 21 alphas": Task(
        "rows", (250_000, 1_000_000), lambda n: landmarks(n, 500), repeats=1
    ),
    "blocks of rows": Task("features", tuple(2**k for k in range(18, 25, 2)), blocks, repeats=2),
    "decoding, 1,000 permutations": Task(
        "times", (20, 200), decoding, {"MNE": lambda t: 1000}, repeats=2
    ),
    "jackknife+ for 1,000 rows": Task("rows", (250, 500), intervals, repeats=1),
    "assess": Task("rows", (60, 200, 500), assessed, repeats=1),
    "report": Task("rows", (150, 1000, 2000), page, repeats=1),
}
GUARDED = {
    "fit, fixed parameters": 1000,
    "fit, 21 alphas": 1000,
    "fit, gamma and alpha tuned": 250,
    "10 folds": 1000,
    "leave-one-out": 500,
    "1,000 permutations, 2 classes": 500,
    "targets, 200 columns": 1000,
    "300 landmarks, 21 alphas": 20_000,
    "decoding, 1,000 permutations": 20,
    "assess": 60,
}


# ---- measuring -----------------------------------------------------------------------------------


def resident(name: str) -> float:
    """VmRSS, what is held now, or VmHWM, the most since the last reset, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def extra_memory(side: Side) -> float:
    """By how many MiB the peak of memory exceeds what was there."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins here
    before = resident("VmRSS")
    side()
    return resident("VmHWM") - before


def measure(task: Task, size: int) -> dict[str, dict[str, float]]:
    """By side: seconds, and MiB beside the data."""
    sides = task.sides(size)
    seconds = common.interleaved(task.repeats, time.process_time, **sides)
    factor = {name: task.scaled.get(name, lambda _: 1.0)(size) for name in sides}
    return {
        name: {"seconds": factor[name] * seconds[name], "MiB": extra_memory(side)}
        for name, side in sides.items()
    }


def slopes(found: dict[str, dict[str, dict[str, float]]]) -> dict[str, float]:
    """By side: the slope of log seconds over log size, upper half."""
    sizes = sorted(map(int, found))
    upper = sizes[-max(2, (len(sizes) + 1) // 2) :]
    sides = [name for name in found[str(upper[0])] if all(name in found[str(n)] for n in upper)]
    return {
        name: float(
            np.polyfit(np.log(upper), np.log([found[str(n)][name]["seconds"] for n in upper]), 1)[0]
        )
        for name in sides
        if len(upper) > 1
    }


def run(name: str, quick: bool = False) -> None:
    """All sizes, one after the other; what is written stands in a file of its own."""
    task, found = TASKS[name], {}
    for size in task.sizes[: 1 if quick else None]:
        found[str(size)] = measure(task, size)
        print(name, size, {k: round(v["seconds"], 4) for k, v in found[str(size)].items()})
    if not quick:
        part = {"unit": task.unit, "scaled": sorted(task.scaled), "sizes": found}
        record = common.record(f"timings.py {name}", part | {"slopes": slopes(found)})
        path = PARTS / ("".join(c if c.isalnum() else "-" for c in name) + ".json")
        path.write_text(json.dumps({name: record}), encoding="utf-8")


def merged() -> Path:
    """The tasks that were run, in the place of those in the result."""
    path = common.RESULTS / "timings.json"
    tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
    for part in sorted(PARTS.glob("*.json")):
        tasks |= json.loads(part.read_text(encoding="utf-8"))
        part.unlink()
    tasks = {name: tasks[name] for name in TASKS if name in tasks}
    path.write_text(common.compact({"tasks": tasks}) + "\n", encoding="utf-8")
    return path


def in_processes(chosen: list[str], jobs: int) -> None:
    """Every task in a process of its own, some at a time, the longest first."""
    waiting, running = list(chosen), []
    while waiting or running:
        while waiting and len(running) < jobs:
            command = [sys.executable, __file__, "--part", waiting.pop()]
            running.append(subprocess.Popen(command))
        running = [process for process in running if process.poll() is None]
        time.sleep(0.2)


# ---- two checkouts -------------------------------------------------------------------------------


def serve() -> None:
    """Run the guarded tasks named on standard input, and answer with seconds."""
    sides = {name: TASKS[name].sides(size)["fitonce"] for name, size in GUARDED.items()}
    for line in sys.stdin:
        start = time.perf_counter()
        sides[line.strip()]()
        print(time.perf_counter() - start, flush=True)


class Checkout:
    """A process with one version of the package."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env={**os.environ, "PYTHONPATH": str(root / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def beside(base: Path, rounds: int, allow: float, only: str) -> None:
    sides, slower = [Checkout(base.resolve()), Checkout(ROOT)], []
    print(f"{'':34s}{'base, ms':>10s}{'now, ms':>10s}{'ratio':>8s}{'of shortest':>13s}")
    for name in (name for name in GUARDED if only in name):
        times = np.array([[side.seconds(name) for side in sides] for _ in range(rounds + 1)])[1:]
        before, now = (1e3 * median(column) for column in times.T)
        shortest = np.divide(*times.min(axis=0)[::-1])
        print(f"{name:34s}{before:10.1f}{now:10.1f}{now / before:8.2f}{shortest:13.2f}", flush=True)
        slower += [name] if now > allow * before else []
    if slower:
        raise SystemExit(f"slower than the base: {', '.join(slower)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="part of a task's name")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, nothing written")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time")
    parser.add_argument("--beside", type=Path, metavar="BASE", help="another checkout")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--allow", type=float, default=float("inf"))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    PARTS.mkdir(parents=True, exist_ok=True)
    if given.serve:
        return serve()
    if given.part:
        return run(given.part)
    if given.beside:
        return beside(given.beside, given.rounds, given.allow, given.only)
    chosen = [name for name in TASKS if given.only in name]
    if given.jobs > 1:
        in_processes(chosen, given.jobs)
    else:
        for name in chosen:
            run(name, given.quick)
    if not given.quick:
        print(merged())


if __name__ == "__main__":
    main()
