"""Many targets, each with an alpha of its own: fitonce beside himalaya in one process.

The same precomputed linear kernel, the same five folds, the same candidates, float64, NumPy. Time
is processor time, memory the growth of the peak during the call. Run with

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/targets.py [n_targets]

Each side is measured in a process of its own for memory, both in this one for time.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

N, P, FOLDS, ALPHAS = 1000, 5000, 5, np.logspace(0, 6, 20)
RESULTS = Path(__file__).parent / "results" / "targets.json"


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


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def extra_memory(side: str, n_targets: int) -> float:
    """MiB that the peak of a fresh process grows by, after a small call has loaded everything."""
    return float(subprocess.check_output([sys.executable, __file__, side, str(n_targets)]))


def measure(side: str, n_targets: int) -> None:
    K, Y = problem(n_targets)
    SIDES[side](K[:50, :50].copy(), Y[:50, :100].copy())
    before = peak()
    SIDES[side](K, Y)
    print(peak() - before)


def main(n_targets: int) -> None:
    K, Y = problem(n_targets)
    found, seconds = {}, {}
    for name, run in SIDES.items():
        run(K[:50, :50].copy(), Y[:50, :100].copy())
        start = time.process_time()
        found[name] = run(K, Y)
        seconds[name] = time.process_time() - start
    start = time.process_time()
    ours(K, Y, per_target=False)
    seconds["fitonce, one alpha for all"] = time.process_time() - start
    (alphas, scores), (their_alphas, _) = found["fitonce"], found["himalaya"]
    differ = np.flatnonzero(~np.isclose(alphas, their_alphas))
    result = {
        "n": N, "p": P, "targets": n_targets, "alphas": len(ALPHAS), "folds": FOLDS,
        "seconds": seconds,
        "extra_memory_MiB": {name: extra_memory(name, n_targets) for name in SIDES},
        "same_alpha": 1.0 - len(differ) / n_targets,
        "losses_at_differing_targets": (-scores[differ]).tolist()[:10],
    }  # fmt: skip
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
