"""Permutation tests that choose kernel, gamma and alpha again for every labeling: how often they
reject noise, and what they cost.

The coarse lattice (`search="coarse"`), which assessments of more than a few rows test on. Noise in
five columns, two classes or numbers, in stratified or plain folds. Times are of the processor, for
999 labelings in ten folds, with and without the choice among kernels. Run with

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/tuned_level.py [data sets]
"""

from __future__ import annotations

import sys
import time
import warnings

import common
import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from fitonce import KernelFisherDiscriminant, KernelRidge, permutation_test_score

LEVEL, PERMUTATIONS, ROWS = 0.05, 19, 30
COARSE = [(n, "coarse", "tune") for n in (100, 200, 500)]
TIMED = [(100, "auto", "rbf"), *COARSE]  # rows, search, kernel


def pvalue(
    seed: int, numbers: bool, n: int, n_permutations: int, folds: int, **model: str
) -> float:
    """The p-value of one table of noise."""
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((n, 5)), random.permutation(np.arange(n) % 2)
    estimator = KernelFisherDiscriminant(**model)
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    if numbers:
        estimator, y = KernelRidge(**model), random.standard_normal(n)
        cv = KFold(folds, shuffle=True, random_state=seed)
    test = permutation_test_score(
        estimator, X, y, cv=cv, n_permutations=n_permutations, random_state=seed,
        permute="free" if numbers else "within-folds", pooled=True,
    )  # fmt: skip
    return float(test.pvalue)


def main(n_sets: int) -> None:
    warnings.simplefilter("ignore")
    result: dict[str, object] = {"rows": ROWS, "permutations": PERMUTATIONS, "data_sets": n_sets}
    for numbers in (False, True):
        task = "numbers" if numbers else "two classes"
        given = {"kernel": "tune", "search": "coarse"}
        found = [pvalue(seed, numbers, ROWS, PERMUTATIONS, 3, **given) for seed in range(n_sets)]
        rate = float(np.mean(np.array(found) <= LEVEL))
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / n_sets))
        result[f"rejected at 5 %, {task}"] = {"rate": rate, "binomial_error": error}
        print(task, rate, "+-", error, flush=True)
        for n, search, kernel in TIMED:
            start = time.process_time()
            pvalue(0, numbers, n, 999, 10, kernel=kernel, search=search)
            seconds = time.process_time() - start
            result[f"seconds, {task}, {n} rows, kernel={kernel}, search={search}"] = seconds
            print(task, n, search, kernel, f"{seconds:.1f} s", flush=True)
    common.write(__file__, result)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
