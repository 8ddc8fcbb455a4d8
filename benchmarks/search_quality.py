"""Does a search that begins on a sample choose as well as the full one?

25 sets, 1200 training rows each (or `--n 500`, in a result of its own): `search="full"` and the
default. The criterion of the choice
relative to the full search's, whether gamma is the same, the error on test rows (in %; for numbers
the share of the variance that is not explained) and CPU time. The largest loss of criterion and the
mean difference in error are printed last.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from sklearn import datasets

from fitonce import KernelFisherDiscriminant, KernelRidge
from fitonce import datasets as own

N_TRAIN, N_ROWS = 1200, 4000  # the first is a default
MODES = ("full", "auto")
Set = tuple[Any, Any]


def noise() -> Set:
    """Many rows: every model errs on half of them, and the test rows must be able to show that."""
    rng = np.random.default_rng(5)
    return rng.normal(size=(10 * N_ROWS, 6)), rng.integers(0, 2, 10 * N_ROWS)


def spirals() -> Set:
    rng = np.random.default_rng(6)
    turn, arm = 3 * np.pi * np.sqrt(rng.random(N_ROWS)), rng.integers(0, 2, N_ROWS)
    X = np.c_[turn * np.cos(turn + np.pi * arm), turn * np.sin(turn + np.pi * arm)]
    return X + 0.4 * rng.normal(size=X.shape), arm


def sinc() -> Set:
    rng = np.random.default_rng(7)
    x = rng.uniform(-10, 10, (N_ROWS, 1))
    return x, np.sinc(1.5 * x[:, 0] / np.pi) + 0.2 * rng.normal(size=N_ROWS)


def waves() -> Set:
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 1, (N_ROWS, 2))
    return x, np.sin(25 * x[:, 0]) * np.cos(18 * x[:, 1]) + 0.1 * rng.normal(size=N_ROWS)


def raetsch(name: str) -> Callable[[], Set]:
    def load() -> Set:
        found = own.fetch_raetsch(name)
        return found.data, found.target

    return load


def classification(**options: Any) -> Callable[[], Set]:
    return lambda: datasets.make_classification(N_ROWS, **options)


CLASSES: dict[str, Callable[[], Set]] = {
    **{name: raetsch(name) for name in ("banana", "image", "splice", "titanic")},
    **{name: raetsch(name) for name in ("twonorm", "waveform", "ringnorm")},
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "torus": lambda: own.make_torus(N_ROWS, random_state=0),
    "threenorm": lambda: own.make_threenorm(N_ROWS, random_state=0),
    "checkerboard": lambda: own.make_checkerboard(N_ROWS, random_state=0),
    "waveform, 3 classes": lambda: own.make_waveform3(N_ROWS, random_state=0),
    "moons": lambda: datasets.make_moons(N_ROWS, noise=0.25, random_state=0),
    "quantiles, 4 classes": lambda: datasets.make_gaussian_quantiles(
        n_samples=N_ROWS, n_features=10, n_classes=4, random_state=0
    ),
    "clusters": classification(
        n_features=20,
        n_informative=8,
        n_redundant=4,
        n_clusters_per_class=4,
        flip_y=0.05,
        random_state=0,
    ),
    "unbalanced": classification(
        n_features=10,
        n_informative=6,
        n_clusters_per_class=3,
        weights=[0.95],
        flip_y=0.01,
        random_state=1,
    ),
    "clusters, 8 classes": classification(
        n_features=15, n_informative=10, n_classes=8, n_clusters_per_class=2, random_state=2
    ),
    "hastie": lambda: datasets.make_hastie_10_2(N_ROWS, random_state=0),
    "noise": noise,
    "spirals": spirals,
}
NUMBERS: dict[str, Callable[[], Set]] = {
    "friedman 1": lambda: datasets.make_friedman1(N_ROWS, noise=1.0, random_state=0),
    "friedman 2": lambda: datasets.make_friedman2(N_ROWS, noise=50.0, random_state=0),
    "friedman 3": lambda: datasets.make_friedman3(N_ROWS, noise=0.1, random_state=0),
    "sinc": sinc,
    "waves": waves,
}


def split(X: Any, y: Any, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shuffled, standardised by the training rows."""
    order = np.random.default_rng(0).permutation(len(X))
    X, y = np.asarray(X, dtype=float)[order], np.asarray(y)[order]
    mean, spread = X[:n].mean(axis=0), X[:n].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return X[:n], y[:n], X[n:], y[n:]


def measure(name: str, n: int) -> dict[str, Any]:
    kind, load = (KernelRidge, NUMBERS[name]) if name in NUMBERS else (None, CLASSES[name])
    X, y, X_test, y_test = split(*load(), n)
    row: dict[str, Any] = {}
    for mode in MODES:
        model = (kind or KernelFisherDiscriminant)(search=mode)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        row[mode] = {
            "seconds": time.process_time() - start,
            "gamma": float(model.gamma_),
            "alpha": float(model.alpha_),
            "criterion": -float(model.best_score_),
            "test error": 100.0 * (1.0 - model.score(X_test, y_test)),
        }
    full = row["full"]
    for mode in MODES[1:]:
        found = row[mode]
        found["criterion worse by %"] = 100.0 * (found["criterion"] / full["criterion"] - 1.0)
        found["test error difference"] = found["test error"] - full["test error"]
    return row


def summary(rows: dict[str, Any], mode: str) -> dict[str, float]:
    found, full = [row[mode] for row in rows.values()], [row["full"] for row in rows.values()]
    worse = [row["criterion worse by %"] for row in found]
    difference = [row["test error difference"] for row in found]
    pairs = list(zip(found, full, strict=True))
    return {
        "criterion worse by %, largest": max(worse),
        "criterion worse by %, mean": float(np.mean(worse)),
        "same gamma": sum(a["gamma"] == b["gamma"] for a, b in pairs),
        "test error difference, mean": float(np.mean(difference)),
        "test error difference, largest": max(difference),
        "times faster, median": float(np.median([b["seconds"] / a["seconds"] for a, b in pairs])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*CLASSES, *NUMBERS]
    parser.add_argument("--only", nargs="+", default=names, help="the other results stay")
    parser.add_argument("--n", type=int, default=N_TRAIN, help="training rows")
    arguments = parser.parse_args()
    result = "search_quality" if arguments.n == N_TRAIN else f"search_quality_{arguments.n}"
    path = common.RESULTS / f"{result}.json"
    again = set(arguments.only) != set(names) and path.exists()
    rows = json.loads(path.read_text())["rows"] if again else {}
    for name in arguments.only:
        rows[name] = row = measure(name, arguments.n)
        print(
            f"{name:22s}"
            + "".join(
                f"  {mode}: criterion {row[mode]['criterion worse by %']:+.3f} %, error "
                f"{row[mode]['test error difference']:+.2f}"
                for mode in MODES[1:]
            ),
            flush=True,
        )
    summaries = {mode: summary(rows, mode) for mode in MODES[1:]}
    if set(rows) == set(names):
        found = {"n_train": arguments.n, "summary": summaries, "rows": rows}
        common.write(__file__, found, result)
    for mode, values in summaries.items():
        print(mode, ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
    auto = summaries["auto"]
    print(f"largest {auto['criterion worse by %, largest']:.3f} %", end=", ")
    print(f"mean difference {auto['test error difference, mean']:+.3f} points")


if __name__ == "__main__":
    main()
