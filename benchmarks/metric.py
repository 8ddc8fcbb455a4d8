"""Does a learned metric pay, and does it do better than one width per feature by gradient?

Test error in % (for numbers the share of the variance that is not explained), at most 150 training
rows, means over splits, of `rbf` alone, of `metric="full"`, `"diagonal"` and `"learn"`, and of the
earlier `gamma="ard"` where this version still has it; how often a metric was kept, and processor
time.
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
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge
from fitonce import datasets as own

N_TRAIN, N_ROWS = 150, 1500
Set = tuple[Any, Any]
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ard": {"gamma": "ard"},
    "full": {"metric": "full"},
    "diagonal": {"metric": "diagonal"},
    "learn": {"metric": "learn"},
}


def made(
    rule: Callable[[np.ndarray, np.random.Generator], Any], p: int, binary: bool = False
) -> Callable[[], Set]:
    def load() -> Set:
        rng = np.random.default_rng(p)
        X = rng.normal(size=(N_ROWS, p))
        X = (X > 0.3).astype(float) if binary else X
        return X, rule(X, rng)

    return load


def product(X: np.ndarray, rng: np.random.Generator) -> Any:
    return np.digitize(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(X)), [-0.3, 0.3])


def rules(X: np.ndarray, rng: np.random.Generator) -> Any:
    return ((X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]) > 0).astype(int) ^ (rng.random(len(X)) < 0.03)


def rotated(X: np.ndarray, rng: np.random.Generator) -> Any:
    """One oblique direction of fifteen decides."""
    return (np.sin(2.0 * X @ np.ones(X.shape[1]) / np.sqrt(X.shape[1])) > 0).astype(int)


def nothing(X: np.ndarray, rng: np.random.Generator) -> Any:
    return rng.integers(0, 2, len(X))


def wave(X: np.ndarray, rng: np.random.Generator) -> Any:
    return np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=len(X))


SETS: dict[str, Callable[[], Set]] = {
    "product, 3 classes": made(product, 6),
    "rules": made(rules, 16, binary=True),
    "oblique": made(rotated, 15),
    "nothing, 60 features": made(nothing, 60),
    "cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "waveform, 3 classes": lambda: own.make_waveform3(N_ROWS, random_state=0),
    "clusters": lambda: datasets.make_classification(
        N_ROWS, 20, n_informative=5, n_redundant=2, flip_y=0.03, random_state=3
    ),
    "friedman (numbers)": lambda: datasets.make_friedman1(N_ROWS, noise=1.0, random_state=0),
    "diabetes (numbers)": lambda: datasets.load_diabetes(return_X_y=True),
    "wave (numbers)": made(wave, 8),
}


def scores(X: Any, y: Any, n_splits: int) -> dict[str, Any]:
    """Error of each way, how often a metric was kept, and processor time."""
    numbers = y.dtype.kind == "f"
    n = min(N_TRAIN, int(0.7 * len(y)))
    cv = (ShuffleSplit if numbers else StratifiedShuffleSplit)(
        n_splits, train_size=n, random_state=0
    )
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in WAYS}
    for train, test in cv.split(X, y):
        scaler = StandardScaler().fit(X[train])
        rows, unseen = scaler.transform(X[train]), scaler.transform(X[test])
        for name, options in WAYS.items():
            start = time.process_time()
            try:
                model = (KernelRidge if numbers else KernelFisherDiscriminant)(**options)
                model.fit(rows, y[train])
            except ValueError:
                if name != "ard":
                    raise
                continue
            seconds = time.process_time() - start
            kept = float(getattr(model, "metric_", None) is not None)
            found[name].append((100.0 * (1.0 - model.score(unseen, y[test])), kept, seconds))
    return {
        name: dict(zip(("error", "kept", "seconds"), np.mean(each, axis=0).tolist(), strict=True))
        | {"standard_error": float(np.std([e for e, _, _ in each]) / np.sqrt(len(each)))}
        for name, each in found.items()
        if each
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=4)
    n_splits = parser.parse_args().splits
    warnings.simplefilter("ignore")
    path = common.RESULTS / "metric.json"
    known = json.loads(path.read_text())["sets"] if path.exists() else {}
    for number, (name, load) in enumerate(SETS.items(), start=1):
        if name not in known:
            known[name] = scores(*load(), n_splits)
            common.write(__file__, {"splits": n_splits, "rows": N_TRAIN, "sets": known})
        common.progress(number, len(SETS), "metric")
        print(name, {way: round(s["error"], 1) for way, s in known[name].items()}, flush=True)


if __name__ == "__main__":
    main()
