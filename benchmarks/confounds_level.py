"""How often permutation tests with confounds reject where features tell nothing beyond them.

Rows have a confound c on which features and targets both depend; given c they are independent. A
test at the nominal level 5 % should reject 5 % of such sets.

    python benchmarks/confounds_level.py [--sets 300]

Writes benchmarks/results/confounds_level.json, after every cell; cells that are there are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from fitonce import KernelRidge, LeastSquaresSVC, permutation_test_score

RESULTS = Path(__file__).parent / "results" / "confounds_level.json"
PERMUTATIONS = 99


def rows(rng, n, shape, discrete):
    """Features, a confound, and the part of it that targets follow."""
    c = rng.normal(size=n)
    if discrete:
        c = np.digitize(c, [-0.5, 0.5]).astype(float) - 1.0
    effect = c if shape == "linear" else c**2 - 1.0
    X = effect[:, None] * rng.uniform(0.5, 1.5, size=5) + rng.normal(size=(n, 5))
    return X, c, effect


def pvalue(rng, n, shape, task, confounds, kernel):
    discrete = confounds == "levels"
    X, c, effect = rows(rng, n, shape, discrete)
    given = (
        None
        if confounds == "ignored"
        else np.array(list("abc"))[c.astype(int) + 1]
        if discrete
        else c
    )
    if task == "regression":
        y = effect + rng.normal(size=n)
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
    for confounds in ("ignored", "numbers", "levels"):
        for task in ("classes", "regression"):
            for shape in ("linear", "nonlinear"):
                for n in (40, 100):
                    for kernel in ("linear", "rbf"):
                        if confounds == "ignored" and (n == 40 or kernel == "rbf"):
                            continue
                        if confounds == "levels" and (shape, kernel) != ("linear", "linear"):
                            continue  # levels of any effect are levels
                        yield confounds, task, shape, n, kernel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=300)
    sets = parser.parse_args().sets
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
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
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name:45s} {share:.3f} ± {error:.3f}", flush=True, file=sys.stderr)


if __name__ == "__main__":
    main()
