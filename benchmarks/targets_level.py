"""How often a test of 200 correlated targets finds something in noise.

Rows and targets are independent of each other; the targets share 20 factors. Three null problems:
independent rows that are permuted freely, time series (autoregressive, 0.8) in six runs whose rows
turn round in circles, and the same series permuted row by row, as they must not be. Alphas are
chosen for each target on every training set. Run with

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/targets_level.py [data sets]
"""

from __future__ import annotations

import sys
import warnings

import common
import numpy as np
from sklearn.model_selection import KFold, LeaveOneGroupOut

from fitonce import KernelRidge, permutation_test_targets

N, TARGETS, FACTORS, PERMUTATIONS, LEVEL = 48, 200, 20, 99, 0.05


def noise(random: np.random.Generator, columns: int, series: bool) -> np.ndarray:
    """Independent rows, or six autoregressive runs of eight rows."""
    values = random.standard_normal((N, columns))
    if series:
        for row in range(N):
            if row % 8:
                values[row] = 0.8 * values[row - 1] + 0.6 * values[row]
    return values


def smallest(seed: int, series: bool, exchange: str | None) -> tuple[float, float]:
    """The smallest corrected p-value of one data set, and the mean uncorrected rejection."""
    random = np.random.default_rng(seed)
    X = noise(random, 10, series)
    shared = noise(random, FACTORS, series) @ random.standard_normal((FACTORS, TARGETS))
    Y = shared + 2.0 * noise(random, TARGETS, series)
    runs = np.repeat(np.arange(6), 8)
    model = KernelRidge(np.logspace(0, 3, 4), alpha_per_target=True, kernel="linear")
    test = permutation_test_targets(
        model, X, Y, cv=LeaveOneGroupOut() if series else KFold(5), groups=runs if series else None,
        exchange=exchange, pooled=True, scoring="correlation", n_permutations=PERMUTATIONS,
        random_state=seed,
    )  # fmt: skip
    return float(test.pvalue_max.min()), float(np.mean(test.pvalue <= LEVEL))


def main(n_sets: int) -> None:
    problems = {
        "independent rows, permuted freely": (False, None),
        "series in runs, circular shifts": (True, "shift"),
        "series in runs, rows permuted freely (not valid)": (True, "rows"),
    }
    result = {"n": N, "targets": TARGETS, "permutations": PERMUTATIONS, "data_sets": n_sets}
    warnings.simplefilter("ignore")
    for name, (series, exchange) in problems.items():
        found = np.array([smallest(seed, series, exchange) for seed in range(n_sets)])
        rate = float(np.mean(found[:, 0] <= LEVEL))
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / n_sets))
        result[name] = {
            "family_wise_error": rate,
            "standard_errors_above_nominal": (rate - LEVEL) / error,
            "uncorrected_rate_per_target": float(found[:, 1].mean()),
        }
        print(name, result[name], flush=True)
    common.write(__file__, result)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
