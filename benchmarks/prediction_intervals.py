"""Do prediction intervals and sets hold what they promise?

Five laws of numbers and, by random splits, three real data sets. For each draw a model is fitted to
n rows and asked for intervals (sets) at new rows: with parameters fixed beforehand, for which the
guarantees hold, and with parameters tuned on the same rows. A coverage is the mean over draws, with
its standard error over draws. The smallest distance from the guarantee, in standard errors, is
printed last (fixed parameters; above -2 is as promised).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator

import common
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, NumericalWarning

METHODS = ("jackknife+", "cv+", "jackknife-minmax", "full")
ALPHA = 0.1
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # rows and targets, new ones after


def guarantee(method: str, n: int) -> float:
    """The least coverage that is proved, for exchangeable rows and fixed parameters."""
    if method in ("jackknife-minmax", "full"):
        return 1.0 - ALPHA
    return 1.0 - 2.0 * ALPHA - (np.sqrt(2.0 / n) if method == "cv+" else 0.0)


def wave(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-3.0, 3.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def growing_noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-3.0, 3.0, size=(n, 1))
    return X, X[:, 0] + (0.1 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=n)


def heavy_tails(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + 0.4 * rng.standard_t(3, size=n)


def many_features(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 40))
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n)


def friedman(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(n, 10))
    y = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return X, y + 10.0 * X[:, 3] + 5.0 * X[:, 4] + rng.normal(size=n)


LAWS = (wave, growing_noise, heavy_tails, many_features, friedman)
SETS = {"diabetes": load_diabetes, "wine": load_wine, "breast cancer": load_breast_cancer}


def draws_of_law(law: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[..., Draw]:
    def draw(rng: np.random.Generator, n: int, m: int) -> Draw:
        X, y = law(rng, n + m)
        return X[:n], y[:n], X[n:], y[n:]

    return draw


def draws_of_set(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[..., Draw]:
    X, y = load(return_X_y=True)

    def draw(rng: np.random.Generator, n: int, m: int) -> Draw:
        order = rng.permutation(len(X))
        train, test = order[:n], order[n : n + m]
        # the scale comes from all rows, which treats them alike
        scaled = StandardScaler().fit_transform(X)
        return scaled[train], y[train], scaled[test], y[test]

    return draw


def models(name: str, p: int) -> Iterator[tuple[str, KernelRidge | KernelFisherDiscriminant]]:
    kind = KernelFisherDiscriminant if name in ("wine", "breast cancer") else KernelRidge
    yield "fixed", kind(gamma=0.5 / p, alpha=0.3)
    yield "tuned", kind()


def covered(model: KernelRidge, method: str, draw: Draw) -> tuple[float, float]:
    """The share of new targets inside, and the median width (mean number of classes)."""
    _, _, X, y = draw
    if isinstance(model, KernelRidge):
        band = model.predict_interval(X, 1.0 - ALPHA, method)
        inside = (band[:, 0] <= y) & (y <= band[:, 1])
        return float(inside.mean()), float(np.median(band[:, 1] - band[:, 0]))
    sets = model.predict_set(X, 1.0 - ALPHA, method)
    inside = sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(inside.mean()), float(sets.sum(axis=1).mean())


def measure(name: str, draw_one: Callable[..., Draw], n: int, m: int, n_draws: int) -> list[dict]:
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    rng = np.random.default_rng(0)
    for number in range(n_draws):
        draw = draw_one(rng, n, m)
        for kind, model in models(name, draw[0].shape[1]):
            model.fit(draw[0], draw[1])
            for method in METHODS:
                found.setdefault((kind, method), []).append(covered(model, method, draw))
        common.progress(number + 1, n_draws, name)
    rows = []
    for (kind, method), values in found.items():
        coverage, size = np.array(values).T
        row = {
            "law": name,
            "parameters": kind,
            "method": method,
            "guarantee": guarantee(method, n),
            "coverage": float(coverage.mean()),
            "standard_error": float(coverage.std(ddof=1) / np.sqrt(n_draws)),
            "size": float(size.mean()),
        }
        rows.append(row)
        print(
            f"{name:14s} {kind:6s} {method:17s} {row['coverage']:.3f} ± "
            f"{row['standard_error']:.3f}, guaranteed {row['guarantee']:.3f}, "
            f"size {row['size']:.3g}",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--new", type=int, default=50)
    parser.add_argument("--draws", type=int, default=500)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NumericalWarning)
    sources = {law.__name__.replace("_", " "): draws_of_law(law) for law in LAWS}
    sources |= {name: draws_of_set(load) for name, load in SETS.items()}
    rows: list[dict] = []
    for name, draw in sources.items():
        rows += measure(name, draw, arguments.n, arguments.new, arguments.draws)
    common.write(__file__, {**vars(arguments), "confidence": 1.0 - ALPHA, "rows": rows})
    fixed = [row for row in rows if row["parameters"] == "fixed"]
    distance = min((r["coverage"] - r["guarantee"]) / r["standard_error"] for r in fixed)
    print(f"smallest distance from the guarantee: {distance:.2f} standard errors")


if __name__ == "__main__":
    main()
