"""What do 1,000 honest permutations cost, in matrix products?

n = 1000, 5 classes, 10 folds, 1000 permutations, precomputed kernel, fixed alpha, everything
included (validation, factorisation, drawing, splitting, scoring), processor time in one process
with pinned threads: each mode of `permutation_test_score` beside the bare product of n×n with
n×5000, in turn. Then two classes with 10,000 permutations beside their product of n×n with n×10000.
Refitting is timed on a few permutations and multiplied: scikit-learn's function with SVC on the
same kernel, and with our kernel discriminant. Ratios last.

``--torch cuda`` instead runs n = 16,384, two classes, 10,000 permutations on that device and
reports the seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import sklearn.model_selection
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC

from fitonce import KernelFisherDiscriminant
from fitonce.inference import permutation_test_score

FOLDS = 10
MODES = {
    "cosets": StratifiedKFold(FOLDS),
    "free": KFold(FOLDS, shuffle=True, random_state=0),
    "within-folds": StratifiedKFold(FOLDS),
    "resplit": StratifiedKFold(FOLDS),
}


def problem(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """An rbf kernel matrix of weakly separated classes, and their labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 10)) + 0.2 * rng.normal(size=(n_classes, 10))[y]
    squares = np.sum(X**2, axis=1)
    K = np.exp(-0.05 * np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0))
    return 0.5 * (K + K.T), y


def seconds(function: Callable[[], Any], repeats: int = 1) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def modes(
    n: int, n_classes: int, n_permutations: int, repeats: int, names: list[str]
) -> dict[str, Any]:
    """Every mode beside the product, in turn."""
    K, y = problem(n, n_classes)
    columns = n_permutations * (n_classes if n_classes > 2 else 1)
    right = np.random.default_rng(1).normal(size=(n, columns))
    model = KernelFisherDiscriminant("precomputed", alpha=1.0)

    def run(name: str) -> Callable[[], Any]:
        return lambda: permutation_test_score(
            model, K, y, cv=MODES[name], permute=name, n_permutations=n_permutations
        )

    tasks = {name: run(name) for name in names}
    best = common.interleaved(repeats, time.process_time, product=lambda: K @ right, **tasks)
    rows = {name: {"seconds": best[name], "ratio": best[name] / best["product"]} for name in names}
    return {
        "n": n,
        "classes": n_classes,
        "permutations": n_permutations,
        "columns": columns,
        "product": best["product"],
        "modes": rows,
    }


def refits(n: int, n_classes: int, n_permutations: int, few: int) -> dict[str, float]:
    """Seconds that scikit-learn's function would take for all permutations, from a few of them."""
    K, y = problem(n, n_classes)
    estimators = {
        "sklearn with SVC": SVC(kernel="precomputed"),
        "sklearn with kernel FDA": KernelFisherDiscriminant("precomputed", alpha=1.0),
    }
    result = {}
    for name, estimator in estimators.items():
        spent = seconds(
            lambda estimator=estimator: sklearn.model_selection.permutation_test_score(
                estimator, K, y, cv=MODES["within-folds"], n_permutations=few - 1
            )
        )
        result[name] = spent / few * (n_permutations + 1)
    return result


def on_device(name: str, n: int, n_permutations: int, repeats: int) -> dict[str, Any]:
    """Two classes where the data live on a torch device.

    The whole call, and the bare product there.
    """
    import torch

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = torch.asarray(rng.normal(size=(n, 10)) + 0.1 * y[:, None], device=name)
    K = torch.exp(-0.05 * torch.cdist(X, X) ** 2)
    K = 0.5 * (K + K.T)
    right = torch.asarray(rng.normal(size=(n, n_permutations)), device=name)
    model = KernelFisherDiscriminant("precomputed", alpha=1.0)

    def product() -> None:
        (K @ right).sum().item()

    def test(mode: str) -> Callable[[], Any]:
        return lambda: permutation_test_score(
            model, K, y, cv=MODES["free"], permute=mode, n_permutations=n_permutations
        )

    product()
    best = common.interleaved(repeats, product=product, cosets=test("cosets"), free=test("free"))
    return {
        "n": n,
        "permutations": n_permutations,
        "device": torch.cuda.get_device_name() if "cuda" in name else name,
        **best,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--refitted",
        type=int,
        default=2,
        help="labellings that are refitted literally; 0 leaves refitting out",
    )
    parser.add_argument(
        "--torch", metavar="DEVICE", help="run the large two-class problem on this device instead"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.torch:
        row = on_device(
            arguments.torch,
            16 * 1024 if arguments.n == 1000 else arguments.n,
            10 * arguments.permutations,
            arguments.repeats,
        )
        row["script"] = f"benchmarks/permutation.py --torch {arguments.torch}"
        common.write(__file__, row, "permutation_gpu")
        print(
            f"n = {row['n']}, {row['permutations']} permutations on {row['device']}: "
            f"{row['cosets']:.2f} s, {row['free']:.2f} s with scikit-learn's own draws, "
            f"product {row['product']:.3f} s"
        )
        return
    many = modes(arguments.n, 5, arguments.permutations, arguments.repeats, list(MODES))
    two = modes(
        arguments.n,
        2,
        10 * arguments.permutations,
        max(1, arguments.repeats - 1),
        ["cosets", "free", "within-folds"],
    )
    refitted = (
        refits(arguments.n, 5, arguments.permutations, arguments.refitted)
        if arguments.refitted
        else {}
    )
    common.write(__file__, {"five classes": many, "two classes": two, "refits": refitted})
    for name, value in refitted.items():
        print(
            f"{name:26s} {value:9.1f} s (extrapolated)   "
            f"{value / many['modes']['cosets']['seconds']:8.0f} × cosets"
        )
    for part in (many, two):
        print(
            f"{part['classes']} classes, {part['permutations']} permutations, product "
            f"{part['product']:.3f} s"
        )
        for name, row in part["modes"].items():
            print(f"    {name:14s} {row['seconds']:8.3f} s   ratio {row['ratio']:.2f}")


if __name__ == "__main__":
    main()
