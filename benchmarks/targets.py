"""Many targets, each with an alpha of its own: fitonce beside himalaya in one process.

The same precomputed linear kernel, the same five folds, the same candidates, float64, NumPy. Time
is processor time, memory the growth of the peak during the call. Run with

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/targets.py [n_targets]

Linux only: the peak of memory is read from /proc.
"""

from __future__ import annotations

import gc
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np

N, P, FOLDS, ALPHAS = 1000, 5000, 5, np.logspace(0, 6, 20)


def problem(n_targets: int) -> tuple[np.ndarray, np.ndarray]:
    """A linear kernel of 5,000 features, and targets of which each has a signal of its own size."""
    random = np.random.default_rng(0)
    X = random.standard_normal((N, P))
    Y = np.empty((N, n_targets))
    for start in range(0, n_targets, 1000):
        part = slice(start, min(start + 1000, n_targets))
        size = part.stop - part.start
        signal = X @ (random.standard_normal((P, size)) / np.sqrt(P))
        Y[:, part] = signal * random.uniform(0.0, 2.0, size) + random.standard_normal((N, size))
    return X @ X.T, Y


def ours(K: np.ndarray, Y: np.ndarray, per_target: bool = True) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import KFold

    from fitonce import KernelRidge

    options = {"kernel": "precomputed", "cv": KFold(FOLDS), "fit_intercept": False}
    model = KernelRidge(ALPHAS, alpha_per_target=per_target, **options)
    model.fit(K, Y)
    return np.broadcast_to(model.alpha_, Y.shape[1]), np.broadcast_to(model.best_score_, Y.shape[1])


def theirs(K: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV
    from sklearn.model_selection import KFold

    set_backend("numpy")
    model = KernelRidgeCV(alphas=ALPHAS, kernel="precomputed", cv=KFold(FOLDS)).fit(K, Y)
    return model.best_alphas_, model.cv_scores_


SIDES = {"fitonce": ours, "himalaya": theirs}


def resident(name: str) -> float:
    """VmRSS, what is held now, or VmHWM, the most since the last reset, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measured(run: Any, K: np.ndarray, Y: np.ndarray) -> tuple[Any, dict[str, float]]:
    """What is found, processor time, and by how much the peak of memory exceeds what was there."""
    run(K[:50, :50].copy(), Y[:50, :100].copy())
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins here
    before, start = resident("VmRSS"), time.process_time()
    found = run(K, Y)
    seconds = time.process_time() - start
    return found, {"seconds": seconds, "extra_MiB": resident("VmHWM") - before}


def main(n_targets: int) -> None:
    K, Y = problem(n_targets)
    sides = {**SIDES, "fitonce, one alpha for all": partial(ours, per_target=False)}
    found, result = {}, {"n": N, "p": P, "targets": n_targets, "alphas": len(ALPHAS)}
    for name, run in sides.items():
        found[name], result[name] = measured(run, K, Y)
        print(name, result[name], flush=True)
    alphas, their_alphas = found["fitonce"][0], found["himalaya"][0]
    differ = np.flatnonzero(~np.isclose(alphas, their_alphas))
    result["same_alpha"] = 1.0 - len(differ) / n_targets
    print("same alpha:", result["same_alpha"])
    if n_targets == 10_000:
        common.write(__file__, result)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
