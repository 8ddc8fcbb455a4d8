"""Weights of several kernels: held-out R² and shares, beside himalaya's solvers at equal time.

Two generated problems with known shares, linear kernels of spaces of 60 features each:

- "alike": four independent spaces, all 60 targets with the same shares of their variance;
- "blocks": eight spaces that are correlated with each other, two blocks of 30 targets that use
  different ones; here one model is fitted for each block.

For every seed: 300 training rows, 1,000 test rows. fitonce: `KernelRidge(kernel=KernelSum(...),
criterion="r2")`, leave-one-out inside. himalaya: `MultipleKernelRidgeCV` with random search
and with hyper-gradient descent, five folds inside, one alpha and one set of weights for each
target, kernels centred and of unit mean diagonal; with as many iterations as take the processor
time of fitonce (measured, in the same process), and with its default of 100. Scores: mean R² of
the test rows over targets, and the largest error of a share: product measure over R² (mean over
the targets of a block) less the true one, in both libraries on the test rows.

    python benchmarks/several_kernels.py
    python benchmarks/several_kernels.py --seeds 1
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import common
import numpy as np

from fitonce import KernelRidge, KernelSum
from fitonce.assessment.shares import predicted_parts

N_TRAIN, N_TEST, WIDTH = 300, 1000, 60
NOISE = 0.5  # of the variance of a target
ALPHAS = np.logspace(-3, 6, 28)


@dataclass(frozen=True)
class Generated:
    """Rows, targets, blocks of targets, and true shares of R² (B, blocks)."""

    X: np.ndarray
    Y: np.ndarray
    blocks: list[slice]
    shares: np.ndarray

    @property
    def spaces(self) -> list[slice]:
        return [slice(start, start + WIDTH) for start in range(0, self.X.shape[1], WIDTH)]


def generated(variances: np.ndarray, n_targets: int, common_part: float, seed: int) -> Generated:
    """Targets that are sums of linear functions of spaces with given variances (B, blocks)."""
    rng = np.random.default_rng(seed)
    n, n_spaces = N_TRAIN + N_TEST, len(variances)
    shared = rng.standard_normal((n, WIDTH))
    spaces = [
        np.sqrt(1 - common_part) * rng.standard_normal((n, WIDTH)) + np.sqrt(common_part) * shared
        for _ in range(n_spaces)
    ]
    decay = np.linspace(1.0, 0.3, WIDTH)
    spaces = [space * decay for space in spaces]
    targets, shares, blocks = [], [], []
    for number, variance in enumerate(variances.T):
        parts = [space @ rng.standard_normal((WIDTH, n_targets)) for space in spaces]
        parts = [
            np.sqrt(v) * part / part.std(axis=0) for v, part in zip(variance, parts, strict=True)
        ]
        signal = np.sum(parts, axis=0)
        shares.append(
            [np.mean(np.sum(part * signal, axis=0) / np.sum(signal**2, axis=0)) for part in parts]
        )
        scale = np.sqrt(NOISE / (1 - NOISE)) * signal.std(axis=0)
        targets.append(signal + scale * rng.standard_normal(signal.shape))
        blocks.append(slice(number * n_targets, (number + 1) * n_targets))
    return Generated(np.hstack(spaces), np.hstack(targets), blocks, np.array(shares).T)


PROBLEMS: dict[str, Callable[[int], Generated]] = {
    "alike": lambda seed: generated(np.array([[0.6], [0.3], [0.1], [0.0]]), 60, 0.0, seed),
    "blocks": lambda seed: generated(
        np.array(
            [
                [0.5, 0.0],
                [0.3, 0.0],
                [0.2, 0.0],
                [0.0, 0.4],
                [0.0, 0.4],
                [0.0, 0.2],
                [0.0, 0.0],
                [0.0, 0.0],
            ]
        ),
        30,
        0.2,
        seed,
    ),
}


def r2(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    y_mean = y.mean(axis=0)
    return 1 - np.sum((y - predicted) ** 2, axis=0) / np.sum((y - y_mean) ** 2, axis=0)


def measured(data: Generated, parts: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Scores of test rows from parts (B, m, t), less their training means, and predictions."""
    y = data.Y[N_TRAIN:]
    mean = y.mean(axis=0)
    product = np.sum(parts * (2 * (y - mean) - (predicted - mean)), axis=1)
    product = product / np.sum((y - mean) ** 2, axis=0)
    shares = np.stack([product[:, b].mean(axis=1) for b in data.blocks], axis=1)
    shares = shares / shares.sum(axis=0)
    return {
        "r2": float(np.mean(r2(y, predicted))),
        "share_error": float(np.max(np.abs(shares - data.shares))),
        "shares": shares.tolist(),
    }


def ours(data: Generated) -> dict[str, Any]:
    kernel = KernelSum([(f"space {b}", "linear", s) for b, s in enumerate(data.spaces)])
    start = time.process_time()
    models = [
        KernelRidge(kernel=kernel, criterion="r2").fit(data.X[:N_TRAIN], data.Y[:N_TRAIN, block])
        for block in data.blocks
    ]
    seconds = time.process_time() - start
    test = data.X[N_TRAIN:]
    predicted = np.hstack([model.predict(test) for model in models])
    parts = np.concatenate([predicted_parts(model, test) for model in models], axis=2)
    return measured(data, parts, predicted) | {"seconds": seconds}


def theirs(data: Generated, solver: str, n_iter: int) -> dict[str, Any]:
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    Xs = [data.X[:, s] - data.X[:N_TRAIN, s].mean(axis=0) for s in data.spaces]
    Xs = [X / np.sqrt(np.mean(np.sum(X[:N_TRAIN] ** 2, axis=1))) for X in Xs]
    train, test = [X[:N_TRAIN] for X in Xs], [X[N_TRAIN:] for X in Xs]
    mean = data.Y[:N_TRAIN].mean(axis=0)
    if solver == "random_search":
        params: dict[str, Any] = {"n_iter": n_iter, "alphas": ALPHAS, "progress_bar": False}
    else:
        params = {"max_iter": n_iter, "progress_bar": False}
    start = time.process_time()
    K = np.stack([X @ X.T for X in train])
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver=solver, solver_params=params, cv=5, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(K, data.Y[:N_TRAIN] - mean)
    seconds = time.process_time() - start
    cross = np.stack([A @ B.T for A, B in zip(test, train, strict=True)])
    parts = np.asarray(model.predict(cross, split=True))
    predicted = parts.sum(axis=0) + mean
    return measured(data, parts, predicted) | {"seconds": seconds, "iterations": n_iter}


def at_equal_time(data: Generated, solver: str, seconds: float) -> dict[str, Any]:
    """As many iterations as take at least this long: the last run that was needed."""
    n_iter = 4
    while True:
        found = theirs(data, solver, n_iter)
        if found["seconds"] >= seconds:
            return found
        n_iter = max(n_iter + 2, int(np.ceil(1.1 * n_iter * seconds / found["seconds"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    results = []
    for name, make in PROBLEMS.items():
        ours(make(0))  # libraries are loaded
        for seed in range(args.seeds):
            data = make(seed)
            row: dict[str, Any] = {"problem": name, "seed": seed, "true": data.shares.tolist()}
            row["fitonce"] = ours(data)
            for solver in ("random_search", "hyper_gradient"):
                row[f"{solver}, equal time"] = at_equal_time(
                    data, solver, row["fitonce"]["seconds"]
                )
                row[f"{solver}, 100"] = theirs(data, solver, 100)
            results.append(row)
            line = {k: v for k, v in row.items() if isinstance(v, dict)}
            print(
                name,
                seed,
                *(
                    f"{k}: {v['seconds']:.2f} s R² {v['r2']:.4f} share {v['share_error']:.3f};"
                    for k, v in line.items()
                ),
                flush=True,
            )
    common.write(__file__, {"results": results, "summary": summary(results)})


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds."""
    table: dict[str, Any] = {}
    for problem in dict.fromkeys(row["problem"] for row in results):
        rows = [row for row in results if row["problem"] == problem]
        ways = [way for way, value in rows[0].items() if isinstance(value, dict)]
        table[problem] = {
            way: {
                key: float(np.mean([row[way][key] for row in rows]))
                for key in ("r2", "share_error", "seconds")
            }
            for way in ways
        }
    return table


if __name__ == "__main__":
    main()
