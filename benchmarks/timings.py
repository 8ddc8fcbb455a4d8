"""How long each task takes, how that grows, and what it stands beside.

    python benchmarks/timings.py                  # everything; goes on where it was interrupted
    python benchmarks/timings.py --only folds     # tasks whose names contain a word
    python benchmarks/timings.py --jobs 8         # tasks in processes of their own, one core each
    python benchmarks/timings.py --write          # results/timings.json from the finished tasks

A task names sizes, and for each size makes its sides: ours, a peer, a floor (what no method of this
kind can do without). All sides of a size run in turn in one process on one thread; the shortest
processor time of several rounds counts. Memory is the growth of the peak during one more run
(Linux). A peer that would take minutes is run on a part and scaled, and the task says so. Slopes
are those of log time over log size, for the upper half of the sizes.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import numpy as np
import scipy.linalg
import sklearn.model_selection
from sklearn.kernel_ridge import KernelRidge as PlainRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, StratifiedKFold
from sklearn.svm import SVC

import fitonce
from fitonce import (
    KernelCommitteeClassifier,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
)

PARTS = Path(__file__).parent / "tmp" / "timings"
ALPHAS = 2.0 ** np.arange(-10, 11)
GRID = {"gamma": 2.0 ** np.arange(-12, 4), "C": 2.0 ** np.arange(-4, 9)}
Side = Callable[[], Any]
Sides = dict[str, Side]


@dataclass(frozen=True)
class Task:
    """`sides(size)` makes what runs in turn; a peer's time is multiplied by `scaled(size)`."""

    name: str
    unit: str
    sizes: tuple[int, ...]
    sides: Callable[[int], Sides]
    scaled: dict[str, Callable[[int], float]] = field(default_factory=dict)
    repeats: int = 3


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
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV

    set_backend("numpy")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, p))
    Y = X @ rng.normal(size=(p, n_targets)) / np.sqrt(p) + rng.normal(size=(1000, n_targets))
    alphas, folds = np.logspace(0, 6, 15), KFold(5)
    options: dict[str, Any] = {"kernel": "linear", "cv": folds}
    ours = KernelRidge(alphas, alpha_per_target=True, fit_intercept=False, **options)
    theirs = KernelRidgeCV(alphas=alphas, **options)
    return {"fitonce": lambda: ours.fit(X, Y), "himalaya": lambda: theirs.fit(X, Y)}


def landmarks(n: int) -> Sides:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline

    X, y = rows(n, p=20)
    points, W = X[:300].copy(), np.random.default_rng(0).normal(size=(300, 300))
    ours = LeastSquaresSVC(
        gamma=0.02, alpha=ALPHAS, landmarks=300, criterion="squared_error", calibration=None
    )
    peer = make_pipeline(
        Nystroem(gamma=0.02, n_components=300, random_state=0), RidgeClassifierCV(ALPHAS)
    )

    def bare() -> None:
        for start in range(0, n, 4096):
            rbf_kernel(X[start : start + 4096], points, gamma=0.02) @ W

    return {
        "fitonce": lambda: ours.fit(X, y),
        "Nystroem + RidgeClassifierCV": lambda: peer.fit(X, y),
        "kernel and product": bare,
    }


def intervals(n: int) -> Sides:
    from mapie.regression import CrossConformalRegressor

    X, y = rows(n, p=5)
    X_new = np.random.default_rng(1).normal(size=(1000, 5))

    def refits() -> Any:
        plain = PlainRidge(alpha=0.1, kernel="rbf", gamma=0.2)
        model = CrossConformalRegressor(
            plain, confidence_level=0.9, method="plus", cv=n, conformity_score="absolute"
        )
        return model.fit_conformalize(X, y).predict_interval(X_new)

    ours = KernelRidge(0.1, gamma=0.2, fit_intercept=False)
    return {
        "fitonce": lambda: ours.fit(X, y).predict_interval(X_new, 0.9),
        "MAPIE": refits,
    }


def assessed(n: int) -> Sides:
    X, y = rows(n)
    fixed = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    return {
        "fitonce, fixed": lambda: fitonce.assess(fixed, X, y, permutations=0),
        "fitonce, tuned": lambda: fitonce.assess(KernelFisherDiscriminant(), X, y, permutations=0),
        "10 × 10 fits of SVC": lambda: sklearn.model_selection.cross_val_score(
            SVC(gamma=0.1), X, y, cv=sklearn.model_selection.RepeatedStratifiedKFold(n_splits=10)
        ),
    }


def all_pairs(n: int) -> float:
    return n * (n - 1) / 2


TASKS = (
    Task("fit, fixed parameters", "rows", (60, 500, 1000, 2000, 4000), fixed_fit),
    Task("fit, 21 alphas", "rows", (500, 1000, 2000), path_fit),
    Task("fit, gamma and alpha tuned", "rows", (60, 250, 500, 1000, 2000), default_fit, repeats=2),
    Task("10 folds", "rows", (250, 500, 1000, 2000), ten_folds),
    Task(
        "leave-one-out",
        "rows",
        (250, 500, 1000, 2000),
        leave_one_out,
        {
            "scikit-learn, same estimator": lambda n: n / 10,
            "scikit-learn, SVC": lambda n: n / 10,
        },
    ),
    Task("leave-pair-out", "rows", (250, 500, 1000), pairs, {"a fit for every pair": all_pairs}),
    Task(
        "1,000 permutations, 2 classes",
        "rows",
        (250, 500, 1000, 2000),
        permutations,
        {"scikit-learn, SVC": lambda n: 1000 / 3},
    ),
    Task(
        "1,000 permutations, 5 classes",
        "rows",
        (250, 500, 1000),
        lambda n: permutations(n, 5),
        {"scikit-learn, SVC": lambda n: 1000 / 3},
    ),
    Task("999 permutations, tuned", "rows", (100, 200, 500), tuned_permutations, repeats=1),
    Task(
        "targets, 200 columns",
        "targets",
        (1000, 2500, 5000),
        lambda t: many_targets(t, 200),
        repeats=2,
    ),
    Task(
        "targets, 5,000 columns",
        "targets",
        (1000, 2500, 5000),
        lambda t: many_targets(t, 5000),
        repeats=2,
    ),
    Task("300 landmarks, 21 alphas", "rows", (20_000, 80_000, 320_000), landmarks, repeats=2),
    Task("jackknife+ for 1,000 rows", "rows", (250, 500), intervals, repeats=1),
    Task("assess", "rows", (60, 200, 500), assessed, repeats=1),
)


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


def part(task: Task) -> Path:
    return PARTS / ("".join(c if c.isalnum() else "-" for c in task.name) + ".json")


def run(task: Task) -> None:
    """All sizes that are not there yet, written one after the other."""
    path = part(task)
    found = json.loads(path.read_text()) if path.exists() else {}
    for size in task.sizes:
        if str(size) not in found:
            found[str(size)] = measure(task, size)
            path.write_text(json.dumps(found))
            print(task.name, size, {k: round(v["seconds"], 4) for k, v in found[str(size)].items()})


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
    }


def finished() -> Iterator[tuple[str, dict[str, Any]]]:
    for task in TASKS:
        if part(task).exists():
            found = json.loads(part(task).read_text())
            scaled = sorted(task.scaled)
            yield (
                task.name,
                {"unit": task.unit, "scaled": scaled, "sizes": found, "slopes": slopes(found)},
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of a task's name")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time")
    parser.add_argument("--write", action="store_true", help="nothing is run")
    arguments = parser.parse_args()
    PARTS.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    chosen = [task for task in TASKS if arguments.only in task.name]
    if not arguments.write and arguments.jobs > 1:
        in_processes(chosen, arguments.jobs)
    elif not arguments.write:
        for task in chosen:
            run(task)
    print(common.write(__file__, {"tasks": dict(finished())}))


def in_processes(chosen: list[Task], jobs: int) -> None:
    """Every task in a process of its own, some at a time."""
    waiting, running = list(chosen), []
    while waiting or running:
        while waiting and len(running) < jobs:
            command = [sys.executable, __file__, "--only", waiting.pop(0).name]
            running.append(subprocess.Popen(command))
        running = [process for process in running if process.poll() is None]
        time.sleep(0.2)


if __name__ == "__main__":
    main()
