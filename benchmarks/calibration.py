"""Which criterion and which calibration give the best probabilities on small training sets?

Forty-nine public sets and generators with two to eleven classes, 60 to 150 training rows (Rätsch's
on splits from 1000, which no published table uses). Of the first 27 every other pair, in the order
below, decides about the defaults; the 22 of the KEEL repository decide or confirm as they decide or
report in accuracy.py. Features are standardised on the training rows.

Each criterion chooses gamma and alpha of both estimators; the chosen model is calibrated in each
way. A temperature is fitted through the floor ("floor"), without it and then mixed with it
("late"), or has none. Peers: the base rates, and an SVC whose C and gamma a grid search finds,
calibrated by `CalibratedClassifierCV`. Reported: log-loss on the test rows, beside the best variant
of the same estimator; error; expected calibration error of the most probable class in ten bins.

    python benchmarks/calibration.py --splits 6      # goes on where it was interrupted
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator

import common
import numpy as np
from accuracy_sets import DECIDING as OF_ACCURACY
from sklearn import datasets as sets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from small_sets import KEEL, Parts, Rows, drawn, keel, made, raetsch, standardized

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC
from fitonce.core.calibration import class_scores, inverse_temperatures, probabilities
from fitonce.datasets import (
    RAETSCH,
    make_checkerboard,
    make_threenorm,
    make_torus,
    make_waveform3,
)

CRITERIA = ("squared_error", "squared_error+log_loss", "brier", "log_loss")
CALIBRATIONS = ("temperature", "sigmoid", "isotonic")
ESTIMATORS = {
    "KernelFisherDiscriminant": KernelFisherDiscriminant,
    "LeastSquaresSVC": LeastSquaresSVC,
}
GRID = {"C": 10.0 ** np.arange(-1, 4), "gamma": 8.0 ** np.arange(-3, 1)}


# ---- data ----------------------------------------------------------------------------------------


def classification(n: int, seed: int, **options: object) -> Rows:
    return sets.make_classification(n, random_state=seed, **options)


RARE = {"n_features": 12, "n_informative": 4, "weights": [0.88], "class_sep": 1.2}
FOUR = {"n_features": 10, "n_informative": 5, "n_classes": 4, "n_clusters_per_class": 1}
FAR = {"n_features": 6, "n_informative": 3, "n_redundant": 0, "class_sep": 2.5, "flip_y": 0.0}

SETS: dict[str, Callable[[int], Parts]] = {
    **{name: drawn(raetsch(name), (60, 100)[i % 2]) for i, name in enumerate(RAETSCH)},
    "iris": drawn(lambda: sets.load_iris(return_X_y=True), 75),
    "wine": drawn(lambda: sets.load_wine(return_X_y=True), 60),
    "digits": drawn(lambda: sets.load_digits(return_X_y=True), 150),
    "wdbc": drawn(lambda: sets.load_breast_cancer(return_X_y=True), 80),
    "torus": made(lambda n, seed: make_torus(n, random_state=seed), 60),
    "checkerboard": made(lambda n, seed: make_checkerboard(n, random_state=seed), 100),
    "threenorm": made(lambda n, seed: make_threenorm(n, random_state=seed), 60),
    "waveform, 3 classes": made(lambda n, seed: make_waveform3(n, random_state=seed), 100),
    "moons": made(lambda n, seed: sets.make_moons(n, noise=0.25, random_state=seed), 60),
    "rare class": made(lambda n, seed: classification(n, seed, **RARE), 60),
    "blobs, 5 classes": made(
        lambda n, seed: sets.make_blobs(n, 4, centers=5, cluster_std=3.0, random_state=seed), 100
    ),
    "quantiles, 3 classes": made(
        lambda n, seed: sets.make_gaussian_quantiles(
            n_samples=n, n_features=4, n_classes=3, random_state=seed
        ),
        100,
    ),
    "hypercube, 4 classes": made(lambda n, seed: classification(n, seed, **FOUR), 100),
    "separable": made(lambda n, seed: classification(n, seed, n_clusters_per_class=1, **FAR), 60),
}
DECIDING = [name for place, name in enumerate(SETS) if place // 2 % 2 == 0]


def of_keel(name: str) -> Callable[[int], Parts]:
    """60 training rows of two classes, 100 of more."""
    table = keel(name)
    return drawn(lambda: (table.X, table.y), 60 if len(np.unique(table.y)) == 2 else 100)


OF_KEEL = sorted(sum(KEEL.values(), ()))
SETS |= {name: lambda number, name=name: of_keel(name)(number) for name in OF_KEEL}
DECIDING += [name for name in OF_KEEL if name in OF_ACCURACY]


# ---- variants ------------------------------------------------------------------------------------


def ours(
    name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Probabilities of one estimator: every criterion and calibration; the temperature also without
    the floor, and fitted without it.
    """
    labels = np.unique(y, return_inverse=True)[1]
    for criterion in CRITERIA:
        tuned = ESTIMATORS[name](criterion=criterion).fit(X, y)
        for calibration in CALIBRATIONS:
            model = clone(tuned).set_params(
                gamma=tuned.gamma_, alpha=tuned.alpha_, calibration=calibration
            )
            model.fit(X, y)
            yield f"{name} | {criterion} | {calibration} | floor", model.predict_proba(X_test)
            if calibration != "temperature":
                continue
            held = class_scores(model.held_out_decision_)[None]
            beta = float(inverse_temperatures(held, labels, np.ones(len(y)))[0])
            decision = model.decision_function(X_test)
            late = probabilities(decision, beta, model.floor_)
            yield f"{name} | {criterion} | {calibration} | late", late
            yield f"{name} | {criterion} | {calibration} | none", probabilities(decision, beta)


def peers(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    shares = np.unique(y, return_counts=True)[1] / len(y)
    yield "base rates", np.tile(shares, (len(X_test), 1))
    folds = int(min(5, np.min(np.unique(y, return_counts=True)[1])))
    grid = GridSearchCV(SVC(), GRID, cv=folds).fit(X, y)
    model = CalibratedClassifierCV(grid.best_estimator_, cv=folds).fit(X, y)
    yield "SVC grid, calibrated", model.predict_proba(X_test)


# ---- measures ------------------------------------------------------------------------------------


def measures(p: np.ndarray, labels: np.ndarray) -> list[float]:
    """Log-loss, error in % and expected calibration error of the most probable class."""
    own = np.maximum(p[np.arange(len(labels)), labels], 1e-300)
    top, right = p.max(axis=1), p.argmax(axis=1) == labels
    bins = np.minimum((10.0 * top).astype(int), 9)
    gaps = [abs(np.sum(right[bins == b]) - np.sum(top[bins == b])) for b in range(10)]
    return [
        float(-np.mean(np.log(own))),
        100.0 * float(np.mean(~right)),
        float(np.sum(gaps)) / len(labels),
    ]


def levels_of(name: str, X: np.ndarray) -> np.ndarray:
    return keel(name).levels if name in OF_KEEL else np.zeros(X.shape[1], bool)


def evaluate(name: str, splits: int) -> dict[str, list[list[float]]]:
    """For every variant, the measures of each split."""
    found: dict[str, list[list[float]]] = {}
    for number in range(splits):
        X, y, X_test, y_test = SETS[name](number)
        X, X_test = standardized(X, X_test, levels_of(name, X))
        labels = np.searchsorted(np.unique(y), y_test)
        given = [*peers(X, y, X_test)]
        for estimator in ESTIMATORS:
            given += ours(estimator, X, y, X_test)
        for variant, p in given:
            found.setdefault(variant, []).append(measures(p, labels))
    return found


def summary(by_split: dict[str, list[list[float]]]) -> dict[str, dict[str, float]]:
    """Means over the splits, the standard error of the log-loss and its worst split."""
    result = {}
    for variant, values in by_split.items():
        table = np.array(values)
        loss, error, calibration = table.mean(axis=0)
        result[variant] = {
            "log_loss": round(loss, 5),
            "standard_error": round(table[:, 0].std(ddof=1) / np.sqrt(len(table)), 5),
            "worst_split": round(table[:, 0].max(), 4),
            "error": round(error, 3),
            "calibration_error": round(calibration, 4),
        }
    return result


# ---- choice --------------------------------------------------------------------------------------


def two_classes(name: str) -> bool:
    return len(np.unique(SETS[name](0)[1])) == 2


def with_auto(row: dict[str, dict[str, float]], binary: bool) -> dict[str, dict[str, float]]:
    """The variants of a set and those of criterion="auto", which is one of them."""
    meant = "squared_error+log_loss" if binary else "brier"
    auto = {
        key.replace(f"| {meant} |", "| auto |"): value
        for key, value in row.items()
        if f"| {meant} |" in key
    }
    return {**row, **auto}


def ranking(
    found: dict[str, dict[str, dict[str, float]]], names: list[str], estimator: str
) -> list[tuple[str, dict[str, float]]]:
    """Variants of an estimator and the peers on some sets, best mean relative log-loss first."""
    rows = {name: with_auto(found[name], two_classes(name)) for name in names}
    variants = [key for key in rows[names[0]] if "|" not in key or key.startswith(estimator)]
    losses = np.array([[rows[name][v]["log_loss"] for v in variants] for name in names])
    own = np.array(["|" in variant for variant in variants])
    relative = losses / losses[:, own].min(axis=1, keepdims=True)
    means = {
        variant: {
            "relative": round(float(relative[:, j].mean()), 3),
            "median": round(float(np.median(relative[:, j])), 3),
            "worst": round(float(relative[:, j].max()), 2),
            "log_loss": round(float(losses[:, j].mean()), 4),
            "worst_split": max(rows[name][variant]["worst_split"] for name in names),
            "error": round(float(np.mean([rows[name][variant]["error"] for name in names])), 2),
            "calibration_error": round(
                float(np.mean([rows[name][variant]["calibration_error"] for name in names])), 3
            ),
        }
        for j, variant in enumerate(variants)
    }
    return sorted(means.items(), key=lambda item: item[1]["relative"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", type=int, default=6)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    path = common.RESULTS / "calibration.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    found = before.get("sets", {}) if before.get("splits") == arguments.splits else {}
    for done, name in enumerate(arguments.sets, 1):
        if name not in found:
            found[name] = summary(evaluate(name, arguments.splits))
            common.write(__file__, {"splits": arguments.splits, "sets": found})
        common.progress(done, len(arguments.sets), "sets")
    halves = {
        "deciding": [name for name in found if name in DECIDING],
        "confirming": [name for name in found if name not in DECIDING],
    }
    tables = {
        half: {estimator: dict(ranking(found, names, estimator)) for estimator in ESTIMATORS}
        for half, names in halves.items()
        if names
    }
    result = {"splits": arguments.splits, "halves": halves, "ranking": tables}
    common.write(__file__, {**result, "sets": found})
    for half, by_estimator in tables.items():
        for estimator, rows in by_estimator.items():
            print(f"\n{half}, {estimator}")
            for variant, values in rows.items():
                print(f"  {variant:62s}", *(f"{key} {value}" for key, value in values.items()))


if __name__ == "__main__":
    main()
