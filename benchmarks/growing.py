"""How much sooner do time-series splits and learning curves arrive than by refitting?

Kernel ridge, n = 1000, fixed parameters, `fitonce` against `sklearn.model_selection` on the same
estimator, in turn in one process, CPU time of one thread: one step ahead for every row after the
first 20, 10 expanding windows, and a learning curve of 10 sizes in 5 folds. Ratios last.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import sklearn.model_selection
from sklearn.model_selection import KFold, TimeSeriesSplit

import fitonce

MODEL = fitonce.KernelRidge(gamma=0.05, alpha=1.0)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


def compare(ours: Callable[[], Any], theirs: Callable[[], Any]) -> dict[str, float]:
    seconds, results = {}, {}
    for name, task in (("fitonce", ours), ("sklearn", theirs)):
        start = time.process_time()
        results[name] = task()
        seconds[name] = time.process_time() - start
    deviation = max(
        float(np.max(np.abs(one - other)) / np.max(np.abs(other)))
        for one, other in zip(results["fitonce"], results["sklearn"], strict=True)
    )
    ratio = seconds["sklearn"] / seconds["fitonce"]
    return {**seconds, "ratio": ratio, "largest_relative_deviation": deviation}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    n = parser.parse_args().n
    X, y = data(n)
    steps, windows = TimeSeriesSplit(n - 20, test_size=1), TimeSeriesSplit(10)
    curve = {"cv": KFold(5), "train_sizes": np.linspace(0.1, 1.0, 10)}
    score = "neg_mean_squared_error"
    ours, theirs = fitonce, sklearn.model_selection
    fitonce.cross_val_score(MODEL, X[:100], y[:100])  # imports

    def scores(module: Any, cv: Any) -> Callable[[], Any]:
        return lambda: [module.cross_val_score(MODEL, X, y, cv=cv, scoring=score)]

    rows = {
        f"one step ahead, {n - 20} windows": compare(scores(ours, steps), scores(theirs, steps)),
        "10 expanding windows": compare(scores(ours, windows), scores(theirs, windows)),
        "learning curve, 10 sizes, 5 folds": compare(
            lambda: ours.learning_curve(MODEL, X, y, **curve),
            lambda: theirs.learning_curve(MODEL, X, y, **curve),
        ),
    }
    for name, row in rows.items():
        print(
            f"{name:36s} sklearn {row['sklearn']:8.2f} s   fitonce {row['fitonce']:6.2f} s   "
            f"largest deviation {row['largest_relative_deviation']:.0e}   ratio {row['ratio']:.0f}"
        )
    common.write(__file__, {"n": n, "rows": rows})


if __name__ == "__main__":
    main()
