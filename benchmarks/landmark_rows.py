"""What a fit on landmarks costs for each row, beside a bare kernel evaluation and product.

60,000 rows, 300 landmarks, 21 values of alpha, time of the processor, all in turn in one process;
with the blocks of rows as they are, and four times smaller and larger. Run with

    python benchmarks/landmark_rows.py
"""

from __future__ import annotations

import time
from functools import partial

import common
import numpy as np

from fitonce import KernelRidge
from fitonce.core import rows

N, P, M = 60_000, 20, 300
ALPHAS, GAMMA = np.logspace(-3, 3, 21), 0.05


def bare(X: np.ndarray, points: np.ndarray, W: np.ndarray) -> None:
    """exp(-γ‖x - point‖²) W of all rows, 4096 at a time."""
    for start in range(0, len(X), 4096):
        part = X[start : start + 4096]
        K = part @ points.T
        K *= -2.0
        K += (part**2).sum(axis=1)[:, None]
        K += (points**2).sum(axis=1)
        K *= -GAMMA
        np.exp(K, out=K)
        K @ W


def fitted(X: np.ndarray, y: np.ndarray, penalty: str, elements: int) -> None:
    """A fit whose blocks have so many features."""
    rows.HOST_ELEMENTS = elements
    options = {"gamma": GAMMA, "alpha": ALPHAS, "landmarks": X[:M], "penalty": penalty}
    KernelRidge(**options).fit(X, y)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
    tasks = {"bare": partial(bare, X, X[:M].copy(), rng.normal(size=(M, M)))}
    for factor in (0.25, 1.0, 4.0):
        elements = int(factor * rows.HOST_ELEMENTS)
        for penalty in ("function", "dual"):
            tasks[f"{penalty}, {elements} features"] = partial(fitted, X, y, penalty, elements)
    seconds = common.interleaved(5, time.process_time, **tasks)
    result = {name: 1e6 * found / N for name, found in seconds.items()}
    for name, microseconds in result.items():
        print(
            f"{name:30s} {microseconds:6.2f} µs a row, {microseconds / result['bare']:.2f} × bare"
        )
    common.write(__file__, {"microseconds_per_row": result})


if __name__ == "__main__":
    main()
