"""How often permutation tests with confounds reject where features tell nothing beyond them.

Rows have a confound c on which features and targets both depend; given c they are independent. A
test at the nominal level 5 % should reject 5 % of such sets.

    python benchmarks/confounds_level.py [--sets 200]

The results are written after every cell, and cells that are there are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings

import common
import numpy as np

from fitonce import KernelRidge, LeastSquaresSVC, permutation_test_score

PERMUTATIONS = 99


def rows(rng, n, shape, discrete):
    """Features, a confound, the part of it that targets follow, and deviations of the noise."""
    c = rng.normal(size=n)
    if discrete:
        c = np.digitize(c, [-0.5, 0.5]).astype(float) - 1.0
    effect = c**2 - 1.0 if shape == "nonlinear" else c
    deviation = np.exp(c) if shape == "unequal" else np.ones(n)
    noise = deviation[:, None] * rng.normal(size=(n, 5))
    X = effect[:, None] * rng.uniform(0.5, 1.5, size=5) + noise
    return X, c, effect, deviation


def pvalue(rng, n, shape, task, confounds, kernel):
    discrete = confounds == "levels"
    X, c, effect, deviation = rows(rng, n, shape, discrete)
    given = {
        "ignored": None,
        "numbers": c,
        "squares": np.column_stack([c, c**2]),
        "levels": np.array(list("abc"))[c.astype(int) + 1] if discrete else None,
    }[confounds]
    if task == "regression":
        y = effect + deviation * rng.normal(size=n)
        model = KernelRidge(1.0, kernel=kernel, gamma=0.1)
    else:
        y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-1.5 * effect))).astype(int)
        if min(np.bincount(y, minlength=2)) < 5:
            return pvalue(rng, n, shape, task, confounds, kernel)
        model = LeastSquaresSVC(kernel=kernel, gamma=0.1, alpha=1.0, calibration=None)
    params = None if given is None else {"confounds": given}
    options = {"n_permutations": PERMUTATIONS, "cv": 5, "random_state": int(rng.integers(2**31))}
    return permutation_test_score(model, X, y, params=params, **options).pvalue


def cells():
    """What is simulated, the most telling first."""
    shapes, sizes, kernels = ("linear", "nonlinear"), (40, 100), ("linear", "rbf")
    tasks = ("classes", "regression")
    yield "numbers", "regression", "unequal", 100, "linear"
    for task in tasks:
        for shape in shapes:
            yield "ignored", task, shape, 100, "linear"
    for kernel in kernels:
        for task in tasks[::-1]:
            for n in sizes:
                yield "numbers", task, "linear", n, kernel
                yield "numbers", task, "nonlinear", n, kernel
                yield "squares", task, "nonlinear", n, kernel
        if kernel == "linear":  # levels of any effect are levels
            for task in tasks:
                for n in sizes:
                    yield "levels", task, "linear", n, "linear"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=200)
    sets = parser.parse_args().sets
    path = common.RESULTS / "confounds_level.json"
    found = json.loads(path.read_text())["cells"] if path.exists() else {}
    for cell in cells():
        confounds, task, shape, n, kernel = cell
        name = f"{confounds}, {task}, {shape}, n={n}, {kernel}"
        if name in found:
            continue
        rng = np.random.default_rng([n, *map(ord, name)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = [pvalue(rng, n, shape, task, confounds, kernel) for _ in range(sets)]
        share = float(np.mean(np.array(p) <= 0.05))
        error = float(np.sqrt(max(share * (1 - share), 0.05 * 0.95 / sets) / sets))
        found[name] = {"rejected": round(share, 4), "error": round(error, 4), "sets": sets}
        common.write(__file__, {"permutations": PERMUTATIONS, "cells": found})
        print(f"{name:45s} {share:.3f} ± {error:.3f}", flush=True, file=sys.stderr)


if __name__ == "__main__":
    main()
