"""Which landmarks pay? Error on test rows against the number of points that stand for the training
rows.

For every set and seed: n training rows, the others for testing, features standardised on the
training rows. A LeastSquaresSVC with an rbf kernel tunes gamma and alpha by leave-one-out on m
landmarks chosen by each method, on m averages of n/m rows of one class, and on m rows alone. The
exact model on all n training rows is the line to reach. Times: of choosing the landmarks alone, and
of the whole fit. Averages over the seeds; JSON and a figure.

    FITONCE_RAETSCH=folder python benchmarks/landmarks.py    # without the folder: fewer sets
    python benchmarks/landmarks.py --sets digits --seeds 1 --quick
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from fitonce import KernelAveraging, LeastSquaresSVC, Subsampling
from fitonce.datasets import fetch_raetsch, make_ringnorm, make_torus
from fitonce.kernels import Kernel, central_gamma
from fitonce.landmarks.choice import METHODS, Pool, choose_landmarks

Data = tuple[np.ndarray, np.ndarray]
SIZES = (20, 40, 80, 160, 320)
OTHERS = ("averaging", "subsampling")


def _raetsch(name: str) -> Callable[[int], Data]:
    def load(seed: int) -> Data:
        data = fetch_raetsch(name)
        return data.data, data.target

    return load


SETS: dict[str, tuple[Callable[[int], Data], int]] = {  # rows, and how many of them train
    "banana": (_raetsch("banana"), 1000),
    "splice": (_raetsch("splice"), 1000),
    "digits": (lambda seed: load_digits(return_X_y=True), 1000),
    "image": (_raetsch("image"), 1000),
    "ringnorm": (lambda seed: make_ringnorm(6000, random_state=seed), 1000),
    "torus": (lambda seed: make_torus(6000, random_state=seed), 1000),
}


def parts(name: str, seed: int, quick: bool) -> tuple[np.ndarray, ...]:
    """Training and test rows of one seed."""
    load, n_train = SETS[name]
    X, y = load(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [n_train // 3 if quick else n_train])
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def model_of(method: str, m: int, n: int, seed: int) -> Any:
    if method == "averaging":
        return KernelAveraging(LeastSquaresSVC(), n_average=max(1, n // m), random_state=seed)
    if method == "subsampling":
        return Subsampling(LeastSquaresSVC(), max_samples=m, random_state=seed)
    return LeastSquaresSVC(landmarks=m, landmark_method=method, random_state=seed)


def seconds_to_choose(method: str, m: int, X: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Choosing alone, from all training rows."""
    targets = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    pool = Pool(X, targets, np.ones(len(y)), np.arange(len(y)))
    kernel = Kernel("rbf", {"gamma": central_gamma("rbf", X, None)})
    start = time.perf_counter()
    choose_landmarks(pool, kernel, m, method, np.random.RandomState(seed))
    return time.perf_counter() - start


def evaluate(model: Any, data: tuple[np.ndarray, ...]) -> dict[str, float]:
    X, y, X_test, y_test = data
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return {
        "error": 100.0 * float(np.mean(model.predict(X_test) != y_test)),
        "fit_seconds": seconds,
    }


def run(name: str, seed: int, sizes: tuple[int, ...], quick: bool) -> dict[str, Any]:
    """All methods and sizes on one seed of a set."""
    data = parts(name, seed, quick)
    result: dict[str, Any] = {"exact": evaluate(LeastSquaresSVC(), data)}
    for method in (*METHODS, *OTHERS):
        result[method] = {}
        for m in sizes:
            cell = evaluate(model_of(method, m, len(data[1]), seed), data)
            if method in METHODS:
                cell["choosing_seconds"] = seconds_to_choose(method, m, data[0], data[1], seed)
            result[method][str(m)] = cell
    return result


def summary(runs: list[dict[str, Any]], sizes: tuple[int, ...]) -> dict[str, Any]:
    """Means over the seeds, and the standard error of the error."""

    def mean(cells: list[dict[str, float]]) -> dict[str, float]:
        result = {key: float(np.mean([cell[key] for cell in cells])) for key in cells[0]}
        result["error_se"] = (
            float(np.std([cell["error"] for cell in cells], ddof=1) / np.sqrt(len(cells)))
            if len(cells) > 1
            else 0.0
        )
        return result

    table: dict[str, Any] = {"exact": mean([run["exact"] for run in runs])}
    for method in (*METHODS, *OTHERS):
        table[method] = {str(m): mean([run[method][str(m)] for run in runs]) for m in sizes}
    return table


def excess(sets: dict[str, Any], sizes: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Error in points above the exact model's, averaged over the sets.

    One row per method, one column per size.
    """
    return {
        method: {
            str(m): float(
                np.mean(
                    [
                        table[method][str(m)]["error"] - table["exact"]["error"]
                        for table in sets.values()
                    ]
                )
            )
            for m in sizes
        }
        for method in (*METHODS, *OTHERS)
    }


def draw(sets: dict[str, Any], sizes: tuple[int, ...]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    columns = 2 if len(sets) == 4 else min(3, len(sets))
    rows = -(-len(sets) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.4 * rows), squeeze=False, layout="constrained"
    )
    styles = dict(
        zip((*METHODS, *OTHERS), ("-o", "-s", "-^", "-D", "-v", "--P", "--X"), strict=True)
    )
    for ax, (name, table) in zip(axes.flat, sets.items(), strict=False):
        for method, style in styles.items():
            errors = [table[method][str(m)]["error"] for m in sizes]
            ax.plot(sizes, errors, style, label=method, markersize=4, linewidth=1.2)
        ax.axhline(table["exact"]["error"], color="black", linewidth=1, label="exact")
        ax.set(
            xscale="log",
            title=name,
            xlabel="landmarks, averages or rows",
            ylabel="test error, %",
            xticks=sizes,
        )
        ax.set_xticks([], minor=True)
        ax.set_xticklabels([str(m) for m in sizes])
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5)))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter("{x:g}")
    for ax in axes.flat[len(sets) :]:
        ax.set_visible(False)
    axes.flat[0].legend(fontsize=7)
    figure.savefig(common.RESULTS / "landmarks.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a third of the training rows, small numbers of landmarks",
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes = SIZES[:3] if arguments.quick else SIZES
    at_hand = [
        name
        for name in arguments.sets
        if name not in ("banana", "splice", "image") or os.environ.get("FITONCE_RAETSCH")
    ]
    sets: dict[str, Any] = {}
    for done, name in enumerate(at_hand, 1):
        runs = []
        for seed in range(arguments.seeds):
            runs.append(run(name, seed, sizes, arguments.quick))
            common.progress(seed + 1, arguments.seeds, f"{name} ({done}/{len(at_hand)})")
        sets[name] = summary(runs, sizes)
        settings = {"seeds": arguments.seeds, "quick": arguments.quick, "sizes": list(sizes)}
        common.write(
            __file__, {**settings, "sets": sets, "excess_error_over_exact": excess(sets, sizes)}
        )
        draw(sets, sizes)
        print(f"{name}: exact {sets[name]['exact']['error']:.2f} %", flush=True)
        for method in (*METHODS, *OTHERS):
            cells = sets[name][method].values()
            seconds = [cell.get("choosing_seconds", 0.0) for cell in cells]
            print(
                f"  {method:12s}"
                + "".join(f"{cell['error']:8.2f}" for cell in cells)
                + f"   choosing {max(seconds):.3f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
