"""Figure 1 of Treder (2019), remade: how much sooner do cross-validation and permutation tests
arrive than by retraining?

The paper's generator: class centroids on the unit hypersphere, one Wishart covariance for all
classes, equal class sizes. 10-fold cross-validation for 10 to 1000 features in logarithmic steps
(20 repeats), permutation tests with 10 and 100 permutations as printed and 1000 (10 repeats), n =
100 and 1000, 5 and 10 classes; the same data and folds for both approaches. Retraining fits our
kernel discriminant (linear kernel, precomputed) on every training set; for many permutations it is
timed on a few and multiplied (noted in the results). Every setting is written when done, so that an
interrupted run goes on where it was. ``--quick`` takes a minute.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
import scipy.stats
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from fitonce import KernelFisherDiscriminant, cross_val_predict
from fitonce.inference import permutation_test_score

ALPHA = 1.0
# labellings retrained literally in each repeat, by n; more are extrapolated
RETRAINED = {100: 3, 1000: 1}


def generate(n: int, n_features: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a multivariate normal about centroids on the unit hypersphere, with a Wishart
    covariance; labels of equal shares.
    """
    rng = np.random.default_rng(seed)
    centroids = rng.normal(size=(n_classes, n_features))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    # factor @ factor.T is Wishart, scaled
    factor = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    y = rng.permutation(np.arange(n) % n_classes)
    return centroids[y] + rng.normal(size=(n, n_features)) @ factor.T, y


def retrain(K: np.ndarray, y: np.ndarray, folds: list[Any]) -> float:
    """Seconds of fitting and predicting every fold."""
    start = time.perf_counter()
    for train, test in folds:
        model = clone(MODEL).fit(K[np.ix_(train, train)], y[train])
        model.predict(K[np.ix_(test, train)])
    return time.perf_counter() - start


MODEL = KernelFisherDiscriminant("precomputed", alpha=ALPHA, calibration=None)


def cross_validation(n: int, n_features: int, n_classes: int, seed: int) -> dict[str, float]:
    X, y = generate(n, n_features, n_classes, seed)
    K = X @ X.T
    folds = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(K, y))
    start = time.perf_counter()
    cross_val_predict(MODEL, K, y, cv=folds)
    return {"direct": time.perf_counter() - start, "retrained": retrain(K, y, folds)}


def permutations(
    n: int, n_features: int, n_classes: int, n_permutations: int, seed: int
) -> dict[str, float]:
    X, y = generate(n, n_features, n_classes, seed)
    K = X @ X.T
    cv = StratifiedKFold(10, shuffle=True, random_state=seed)
    folds = list(cv.split(K, y))
    start = time.perf_counter()
    permutation_test_score(
        MODEL, K, y, cv=cv, permute="within-folds", n_permutations=n_permutations, random_state=seed
    )
    direct = time.perf_counter() - start
    rng = np.random.default_rng(seed)
    timed = min(RETRAINED[n], n_permutations + 1)
    spent = [retrain(K, rng.permutation(y), folds) for _ in range(timed)]
    return {
        "direct": direct,
        "retrained": float(np.mean(spent)) * (n_permutations + 1),
        "retrained_labellings": timed,
    }


def settings(quick: bool) -> list[dict[str, Any]]:
    sizes, classes = ((100,) if quick else (100, 1000)), (5, 10)
    features = [round(float(value)) for value in np.geomspace(10, 1000, 3 if quick else 9)]
    repeats = (2, 2) if quick else (20, 10)
    counts = (10, 100, 1000)
    left = [
        {"kind": "cross-validation", "n": n, "features": p, "classes": c, "repeats": repeats[0]}
        for n, p, c in itertools.product(sizes, features, classes)
    ]
    right = [
        {
            "kind": "permutations",
            "n": n,
            "features": p,
            "classes": c,
            "permutations": count,
            "repeats": repeats[1],
        }
        for n, p, c, count in itertools.product(sizes, (100, 1000), classes, counts)
    ]
    return left + right


def speed_up(setting: dict[str, Any]) -> dict[str, Any]:
    """All repeats of one setting; the figure's quantity is retrained over direct time."""
    arguments = {
        "n": setting["n"],
        "n_features": setting["features"],
        "n_classes": setting["classes"],
    }
    if setting["kind"] == "permutations":
        runs = [
            permutations(**arguments, n_permutations=setting["permutations"], seed=seed)
            for seed in range(setting["repeats"])
        ]
    else:
        runs = [cross_validation(**arguments, seed=seed) for seed in range(setting["repeats"])]
    ratios = np.array([run["retrained"] / run["direct"] for run in runs])
    return {
        **setting,
        "runs": runs,
        "speed_up_median": float(np.median(ratios)),
        "speed_up_geometric_mean": float(scipy.stats.gmean(ratios)),
    }


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """The two panels of the figure.

    Speed-up against features for cross-validation, against permutations for the tests.
    """
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for n, classes in itertools.product((100, 1000), (5, 10)):
        style = {
            "color": "tab:blue" if n == 100 else "tab:orange",
            "linestyle": "-" if classes == 5 else "--",
            "marker": "o",
            "markersize": 4,
        }
        chosen = [row for row in rows if row["n"] == n and row["classes"] == classes]
        points = [
            (row["features"], row["speed_up_median"])
            for row in chosen
            if row["kind"] == "cross-validation"
        ]
        if points:
            left.plot(
                *zip(*sorted(points), strict=True), label=f"n = {n}, {classes} classes", **style
            )
        for features, fill in ((100, "full"), (1000, "none")):
            tests = [
                row
                for row in chosen
                if row["kind"] == "permutations" and row["features"] == features
            ]
            points = [(row["permutations"], row["speed_up_median"]) for row in tests]
            if points:
                label = f"n = {n}, {classes} classes, {features} features"
                right.plot(*zip(*sorted(points), strict=True), label=label, fillstyle=fill, **style)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="features",
        ylabel="retraining time / direct time",
        title="10-fold cross-validation",
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="permutations",
        ylabel="retraining time / direct time",
        title="Permutation test",
    )
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--plot",
        action="store_true",
        help="draw what is there, as a PNG beside the results; needs matplotlib",
    )
    parser.add_argument(
        "--quick", action="store_true", help="n = 100 only, two repeats, three numbers of features"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    script = Path(__file__).with_name(
        "permutation_figure1_quick.py" if arguments.quick else "permutation_figure1.py"
    )
    path = common.RESULTS / f"{script.stem}.json"
    done = json.loads(path.read_text())["rows"] if path.exists() else []
    todo = settings(arguments.quick)
    for number, setting in enumerate(todo):
        if not any(all(row.get(key) == value for key, value in setting.items()) for row in done):
            done.append(speed_up(setting))
            option = " --quick" if arguments.quick else ""
            made_by = f"benchmarks/permutation_figure1.py{option}"
            common.write(str(script), {"script": made_by, "rows": done})
        common.progress(number + 1, len(todo), "settings")
    if arguments.plot:
        draw(done, path.with_suffix(".png"))
    for row in done:
        count = (
            f"{row['permutations']:5d} permutations"
            if row["kind"] == "permutations"
            else "cross-validation  "
        )
        place = f"n = {row['n']:4d}, {row['features']:4d} features, {row['classes']:2d} classes"
        print(f"{count}  {place}   speed-up {row['speed_up_median']:8.1f}")


if __name__ == "__main__":
    main()
