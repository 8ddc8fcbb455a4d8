"""Do scores, intervals, p-values and importances mean what they say? Counts from simulations.

- bias: the accuracy that `assess` prints on pure noise, beside that of the majority class;
- coverage: how often the 95 % interval holds the score that the model of all rows has on new ones;
- level: how often `compare` rejects at 5 % where two ways of making a model are equally good;
- columns: how often `column_importance` calls a column without effect important at 5 %, on average
  and any of them, and one with effect, corrected over columns.

Every count is printed with its binomial standard error.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from joblib import Parallel, delayed

from fitonce import KernelRidge, LeastSquaresSVC, assess, column_importance, compare

FEATURES, NEW = 5, 4000
BALANCE = {"balanced": 0.5, "30:70": 0.3}
ALPHAS = [0.1, 1.0, 10.0, 100.0]


def classes(rng: np.random.Generator, n: int, share: float, shift: float) -> tuple[Any, Any]:
    y = rng.permutation(np.arange(n) < round(share * n)).astype(int)
    X = rng.normal(size=(n, FEATURES))
    X[:, :2] += shift * (2 * y[:, None] - 1)
    return X, y


def numbers(rng: np.random.Generator, n: int, slope: float) -> tuple[Any, Any]:
    X = rng.normal(size=(n, FEATURES))
    return X, slope * (X[:, 0] + np.sin(2 * X[:, 1])) + rng.normal(size=n)


def model_of(kind: str, kernel: str, tuned: bool) -> Any:
    alpha: Any = ALPHAS if tuned else 1.0
    gamma = {} if kernel == "linear" else {"gamma": 0.1}
    if kind == "accuracy":
        return LeastSquaresSVC(kernel, alpha=alpha, calibration=None, **gamma)
    return KernelRidge(alpha, kernel=kernel, **gamma)


def coverage(seed: int, kind: str, n: int, share: float, kernel: str, effect: float, tuned: bool):
    """Whether the interval of one draw holds the true score."""
    rng, model = np.random.default_rng(seed), model_of(kind, kernel, tuned)
    if kind == "accuracy":
        (X, y), (X_new, y_new) = (classes(rng, size, share, effect) for size in (n, NEW))
        truth = float(np.mean(model.fit(X, y).predict(X_new) == y_new))
    else:
        (X, y), (X_new, y_new) = (numbers(rng, size, effect) for size in (n, NEW))
        truth = 1.0 - float(np.mean((model.fit(X, y).predict(X_new) - y_new) ** 2) / np.var(y_new))
    score = assess(model, X, y, permutations=0, random_state=seed).score
    return score.low <= truth <= score.high


def bias(seed: int, few: int, many: int) -> float:
    """The accuracy of one draw of noise, less that of the majority class."""
    y = np.repeat([0, 1], [few, many])
    X = np.random.default_rng(seed).normal(size=(len(y), FEATURES))
    model = LeastSquaresSVC(gamma=0.1, alpha=1e4, calibration=None)
    answer = assess(model, X, y, permutations=0, random_state=seed)
    return answer.accuracy.value - answer.baseline.value


def level(seed: int, n: int, effect: float, tuned: bool) -> bool:
    """Whether two halves of the features, of one law, are told apart."""

    def half(columns: slice) -> Any:
        alpha: Any = ALPHAS if tuned else 1.0
        return LeastSquaresSVC(lambda A, B: A[:, columns] @ B[:, columns].T, alpha=alpha)

    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 4)) + effect * (2 * y[:, None] - 1)
    found = compare(half(slice(0, 2)), half(slice(2, 4)), X, y, repeats=2, random_state=seed)
    return found.differences[0].pvalue <= 0.05


def columns(seed: int, n: int, kernel: str) -> tuple[float, float, float]:
    """Shares of columns without effect below .05, any of them, and of those with effect."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    y = X[:, :2].sum(axis=1) + rng.normal(size=n)
    model = model_of("r2", kernel, False).fit(X, y)
    p = column_importance(model, X, y).pvalues
    return (
        float(np.mean(p[2:] <= 0.05)),
        float(np.any(p[2:] <= 0.05)),
        float(np.mean(p[:2] <= 0.05)),
    )


def counted(what: Callable[..., Any], draws: int, jobs: int, **given: Any) -> dict[str, Any]:
    """The mean over draws, with its standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Parallel(jobs)(delayed(what)(seed, **given) for seed in range(draws))
    values = np.asarray(found, dtype=float).reshape(draws, -1)
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(draws)
    print(what.__name__, given, np.round(mean, 3), "+-", np.round(error, 3), flush=True)
    said = {"what": what.__name__, "draws": draws, **given}
    return said | {"mean": mean.tolist(), "error": error.tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 60, 100, 200])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fixed", action="store_true", help="only models that are not tuned")
    asked = parser.parse_args()
    kinds = (False,) if asked.fixed else (False, True)
    rows = []
    for few, many in ((15, 15), (25, 25), (17, 23), (20, 40)):
        rows.append(counted(bias, asked.draws, asked.jobs, few=few, many=many))
    for tuned, n in ((tuned, n) for tuned in kinds for n in asked.sizes):
        draws = asked.draws if not tuned else int(0.4 * asked.draws)
        if tuned and n > 100:
            continue
        for kernel in ("linear", "rbf"):
            for effect in (0.0, 0.5):
                given = {"n": n, "kernel": kernel, "effect": effect, "tuned": tuned}
                for share in BALANCE.values():
                    given |= {"kind": "accuracy", "share": share}
                    rows.append(counted(coverage, draws, asked.jobs, **given))
                given |= {"kind": "r2"}
                rows.append(counted(coverage, draws, asked.jobs, **given))
    for tuned in kinds:
        for effect in (0.0, 0.5):
            draws = asked.draws if not tuned else int(0.4 * asked.draws)
            given = {"n": 40, "effect": effect, "tuned": tuned}
            rows.append(counted(level, draws, asked.jobs, **given))
    for kernel in ("linear", "rbf"):
        rows.append(counted(columns, asked.draws, asked.jobs, n=80, kernel=kernel))
    common.write(__file__, {"draws": asked.draws, "rows": rows})


if __name__ == "__main__":
    main()
