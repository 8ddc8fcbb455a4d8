"""What does choosing the kernel cost, and what does it bring?

Processor time of a fit with `kernel="tune"` beside that of `kernel="rbf"`, at 400 and 2000 rows of
20 features. Then test error in % and log-loss of each kernel alone and of the choice, at most 300
training rows, means over splits; and over all sets the mean rank of each.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant
from fitonce import datasets as own

N_TRAIN, N_ROWS, N_SPLITS = 300, 2000, 4
Set = tuple[Any, Any]
WAYS: dict[str, Any] = {
    name: name
    for name in ("rbf", "exponential", "laplacian", "matern32", "matern52", "linear", "poly")
} | {
    "tune": "tune",
    "three": ["rbf", "exponential", "laplacian"],
    "all": ["rbf", "exponential", "laplacian", "matern32", "matern52", "linear", "poly"],
}


def binary(seed: int, rule: Callable[[np.ndarray], np.ndarray], p: int, noise: float) -> Set:
    """Truth values, of which some decide."""
    rng = np.random.default_rng(seed)
    X = (rng.random((N_ROWS, p)) < 0.4).astype(float)
    flipped = rng.random(N_ROWS) < noise
    return X, rule(X).astype(int) ^ flipped


SETS: dict[str, Callable[[], Set]] = {
    "cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "checkerboard": lambda: own.make_checkerboard(N_ROWS, random_state=0),
    "waveform, 3 classes": lambda: own.make_waveform3(N_ROWS, random_state=0),
    "clusters": lambda: datasets.make_classification(
        N_ROWS, 20, n_informative=6, n_clusters_per_class=4, flip_y=0.05, random_state=0
    ),
    "friedman": lambda: _halved(*datasets.make_friedman1(N_ROWS, noise=1.0, random_state=0)),
    "majority": lambda: binary(1, lambda X: X[:, :5].sum(axis=1) > 2, 20, 0.05),
    "rules": lambda: binary(2, lambda X: (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]) > 0, 16, 0.05),
}


def _halved(X: np.ndarray, y: np.ndarray) -> Set:
    return X, (y > np.median(y)).astype(int)


def costs() -> dict[str, Any]:
    found = {}
    for n in (400, 2000):
        X, y = datasets.make_classification(n, 20, n_informative=8, random_state=0)
        seconds = common.interleaved(
            3 if n == 400 else 2,
            time.process_time,
            rbf=lambda X=X, y=y: KernelFisherDiscriminant().fit(X, y),
            tune=lambda X=X, y=y: KernelFisherDiscriminant(kernel="tune").fit(X, y),
        )
        found[str(n)] = {**seconds, "times": seconds["tune"] / seconds["rbf"]}
    return found


def scores(X: Any, y: Any) -> dict[str, Any]:
    """Mean error and log-loss of each way."""
    n = min(N_TRAIN, int(0.7 * len(y)))
    splits = StratifiedShuffleSplit(N_SPLITS, train_size=n, random_state=0).split(X, y)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for train, test in splits:
        scaler = StandardScaler().fit(X[train])
        rows, unseen = scaler.transform(X[train]), scaler.transform(X[test])
        for name, kernel in WAYS.items():
            model = KernelFisherDiscriminant(kernel=kernel).fit(rows, y[train])
            p = model.predict_proba(unseen)
            error = float(np.mean(model.classes_[p.argmax(axis=1)] != y[test]))
            found[name].append((100.0 * error, float(log_loss(y[test], p))))
    means = {name: np.mean(pairs, axis=0) for name, pairs in found.items()}
    return {name: {"error": float(e), "log_loss": float(loss)} for name, (e, loss) in means.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {"costs": costs(), "sets": {}}
    print(record["costs"], flush=True)
    common.write(__file__, record)
    if "--costs" in sys.argv:
        return
    for number, (name, load) in enumerate(SETS.items(), start=1):
        record["sets"][name] = scores(*load())
        common.progress(number, len(SETS), "kernels")
        print(name, {way: round(s["error"], 1) for way, s in record["sets"][name].items()})
    for measure in ("error", "log_loss"):
        table = np.array([[s[way][measure] for way in WAYS] for s in record["sets"].values()])
        ranks = (table[:, :, None] > table[:, None, :]).sum(axis=2) + 1.0
        ranks += 0.5 * ((table[:, :, None] == table[:, None, :]).sum(axis=2) - 1)
        record[f"mean rank, {measure}"] = dict(zip(WAYS, ranks.mean(axis=0).tolist(), strict=True))
        print(
            measure, {way: round(rank, 2) for way, rank in record[f"mean rank, {measure}"].items()}
        )
    common.write(__file__, record)


if __name__ == "__main__":
    main()
