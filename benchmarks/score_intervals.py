"""Which interval of a cross-validated accuracy holds the accuracy it is about?

Two normal classes in ten features, far apart ("easy") or close together ("hard"), and a linear
least-squares support vector machine. A draw gives n rows; the model of these n rows has an
accuracy on new rows that is known exactly, because a linear rule cuts a normal law. Every method
makes a 95 % interval from cross-validation of the n rows with ten folds:

- Wilson on the pooled labels of one partition;
- Wilson around the mean accuracy of ten partitions;
- the corrected resampled t over ten partitions;
- nested cross-validation (Bates, Hastie and Tibshirani 2024), ten partitions, which `assess` has
  with Wilson's shape: the spread is
  estimated from how far the error of nine folds is from that of the tenth. The 45 models without
  two folds and the ten without one follow, for all partitions, from one decomposition.

Printed last: the method whose smallest coverage is largest.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import common
import numpy as np
from joblib import Parallel, delayed
from scipy.stats import norm, t
from sklearn.model_selection import StratifiedKFold

from fitonce import LeastSquaresSVC, cross_val_predict
from fitonce.assessment.intervals import wilson

LEVEL, FOLDS, REPEATS, FEATURES = 0.95, 10, 10, 10
DISTANCES = {
    "easy": 1.645,
    "hard": 0.6,
}  # of the class means from the origin: 95 % and 73 % at best
MODEL = LeastSquaresSVC("linear", alpha=1.0)
Interval = tuple[float, float]


def draw(rng: np.random.Generator, n: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, FEATURES))
    X[:, 0] += distance * (2 * y - 1)
    return X, y


def true_accuracy(X: np.ndarray, y: np.ndarray, distance: float) -> float:
    """Of the model of all rows on new ones: Φ of the signed distances of both means."""
    model = LeastSquaresSVC("linear", alpha=MODEL.alpha).fit(X, y)
    b = float(model.decision_function(np.zeros((1, FEATURES)))[0])
    w = model.decision_function(np.eye(FEATURES)) - b
    ends = (w[0] * distance + b, w[0] * distance - b) / np.linalg.norm(w)
    return float(np.mean(norm.cdf(ends)))


def partitions(y: np.ndarray, seed: int) -> list[list[np.ndarray]]:
    """The test rows of every fold of every partition."""
    return [
        [test for _, test in StratifiedKFold(FOLDS, shuffle=True, random_state=s).split(y, y)]
        for s in range(seed, seed + REPEATS)
    ]


def held_out_errors(
    X: np.ndarray, y: np.ndarray, folds: list[list[np.ndarray]]
) -> list[tuple[list[np.ndarray], list[list[np.ndarray]]]]:
    """For every partition, errors of each fold by the model without it, and, for each fold k, of
    all other rows by the models without their own fold and k.
    """
    rows = np.arange(len(y))
    pairs = list(combinations(range(FOLDS), 2))
    tests = []
    for parts in folds:
        tests += [*parts, *(np.concatenate([parts[j], parts[k]]) for j, k in pairs)]
    splits = [(np.setdiff1d(rows, test), test) for test in tests]
    found = [
        (said != y[test]).astype(float)
        for test, said in cross_val_predict(MODEL, X, y, cv=splits, by_fold=True)
    ]
    answers, size = [], FOLDS + len(pairs)
    for r, parts in enumerate(folds):
        own = found[r * size : (r + 1) * size]
        inner: list[list[np.ndarray]] = [[] for _ in range(FOLDS)]
        for (j, k), errors in zip(pairs, own[FOLDS:], strict=True):
            inner[k].append(errors[: len(parts[j])])
            inner[j].append(errors[len(parts[j]) :])
        answers.append((own[:FOLDS], inner))
    return answers


def nested_cv(found: list[tuple[list[np.ndarray], list[list[np.ndarray]]]]) -> Interval:
    """Bates, Hastie and Tibshirani's interval of the accuracy.

    For every outer fold k with errors e_out, and inner errors e_in of the other folds,

        a = (mean(e_in) - mean(e_out))²,     b = var(e_out)/n_k,     MSE = mean(a) - mean(b)

    √MSE is kept between one and √K naive standard errors. The centre is the mean of e_in less
    (1 + (K-2)/K) times its distance from usual cross-validation; the half-width is
    z √((K-1)/K) √MSE.
    """
    a, b, inner, outer = [], [], [], []
    for own, others in found:
        for e_out, parts in zip(own, others, strict=True):
            e_in = np.concatenate(parts)
            a.append((e_in.mean() - e_out.mean()) ** 2)
            b.append(np.var(e_out, ddof=1) / len(e_out))
            inner.append(e_in)
        outer.append(np.concatenate(own))
    errors = np.concatenate(outer)
    naive = float(np.std(errors, ddof=1)) / np.sqrt(len(outer[0]))
    spread = np.sqrt(max(0.0, float(np.mean(a) - np.mean(b))))
    spread = min(max(spread, naive), np.sqrt(FOLDS) * naive)
    centre = float(np.mean(np.concatenate(inner)))
    centre -= (1 + (FOLDS - 2) / FOLDS) * (centre - float(np.mean(errors)))
    reach = float(norm.ppf(0.5 + LEVEL / 2)) * np.sqrt((FOLDS - 1) / FOLDS) * spread
    return 1 - centre - reach, 1 - centre + reach


def intervals(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Interval]:
    found = held_out_errors(X, y, partitions(y, seed))
    n = len(y)
    splits = np.array([1 - errors.mean() for own, _ in found for errors in own])
    means = [1 - float(np.mean(np.concatenate(own))) for own, _ in found]
    return {
        "Wilson": wilson(means[0], n, LEVEL),
        "Wilson, ten partitions": wilson(float(np.mean(means)), n, LEVEL),
        "corrected t": corrected_t(splits),
        "nested": nested_cv(found),
    }


def corrected_t(splits: np.ndarray) -> Interval:
    """Nadeau and Bengio's: the variance of a mean of J split scores is s²(1/J + n_test/n_train)."""
    error = np.sqrt((1 / len(splits) + 1 / (FOLDS - 1)) * np.var(splits, ddof=1))
    low, high = t.interval(LEVEL, len(splits) - 1, np.mean(splits), error)
    return float(low), float(high)


def measure(n: int, name: str, n_draws: int) -> list[dict]:
    rng, inside, width, truths = np.random.default_rng(n), {}, {}, []
    for number in range(n_draws):
        X, y = draw(rng, n, DISTANCES[name])
        truth = true_accuracy(X, y, DISTANCES[name])
        truths.append(truth)
        for method, (low, high) in intervals(X, y, REPEATS * number).items():
            inside.setdefault(method, []).append(low <= truth <= high)
            width.setdefault(method, []).append(min(high, 1.0) - max(low, 0.0))
        common.progress(number + 1, n_draws, f"n = {n}, {name}")
    rows = [
        {
            "n": n,
            "data": name,
            "accuracy": float(np.mean(truths)),
            "method": method,
            "coverage": float(np.mean(hits)),
            "width": float(np.mean(width[method])),
        }
        for method, hits in inside.items()
    ]
    for row in rows:
        print(n, name, row["method"], f"{row['coverage']:.3f} {row['width']:.3f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 300])
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    cells = [(n, name, arguments.draws) for n in arguments.sizes for name in DISTANCES]
    found = Parallel(arguments.jobs)(delayed(measure)(*cell) for cell in cells)
    rows = [row for part in found for row in part]
    common.write(__file__, {"draws": arguments.draws, "level": LEVEL, "rows": rows})
    least: dict[str, float] = {}
    for row in rows:
        least[row["method"]] = min(row["coverage"], least.get(row["method"], 1.0))
    print(f"largest least coverage: {max(least, key=least.__getitem__)}, {least}")


if __name__ == "__main__":
    main()
