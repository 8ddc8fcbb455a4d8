"""Where intervals, sets and probabilities are hardest to trust, and what helps.

- few: intervals of models tuned on 20, 40 or 80 rows, nominal 90 %, on the laws of
  `prediction_intervals.py`;
- density: bands of ±1.645 and ±1.96 deviations of a Gaussian process whose parameters were chosen
  by its log densities (nominal 90 and 95 %), new rows of the same laws, with the noise they assume;
- rare: sets of a class of one tenth (nominal 90 %), for all rows together and for each class;
- selection: log-loss on noise, and coverage of its sets, after SelectKBest has seen the labels.

Every number is a mean over draws, with its standard error.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import common
import numpy as np
import prediction_intervals as laws
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline

from fitonce import KernelFisherDiscriminant, KernelRidge, TunedPipeline

NEW = 200  # new rows for each model
LAWS = (laws.wave, laws.many_features, laws.friedman)  # normal noise of constant variance


def few(rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Coverage of intervals of tuned models, for each number of rows and method."""
    for law in LAWS:
        for n in (20, 40, 80):
            X, y = law(rng, n + NEW)
            model = KernelRidge().fit(X[:n], y[:n])
            for method in ("jackknife+", "jackknife-minmax"):
                low, high = model.predict_interval(X[n:], 0.9, method).T
                yield f"{n} {method}", float(np.mean((low <= y[n:]) & (y[n:] <= high)))


def density(rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Coverage of bands of a process, for each criterion and number of rows."""
    for law in LAWS:
        for n in (40, 100):
            X, y = law(rng, n + NEW)
            for criterion in ("loo_log_density", "marginal_likelihood"):
                model = KernelRidge(criterion=criterion).fit(X[:n], y[:n])
                asked = {"return_std": True, "signal_variance": "profile", "noise": True}
                mean, std = model.predict(X[n:], **asked)
                for share, times in ((90, 1.645), (95, 1.96)):
                    inside = np.abs(y[n:] - mean) <= times * std
                    yield f"{n} {criterion} {share}", float(inside.mean())


def rare(rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Coverage of the rows of the rare class, of all rows, and the size of the sets."""
    y = (np.arange(100 + 10 * NEW) % 10 == 0).astype(int)
    X = rng.normal(size=(len(y), 2)) + 1.2 * y[:, None]
    model = KernelFisherDiscriminant("linear", alpha=1.0).fit(X[:100], y[:100])
    X, y = X[100:], y[100:]
    for per_class in (False, True):
        sets = model.predict_set(X, 0.9, per_class=per_class)
        held = sets[np.arange(len(y)), y]
        yield f"{per_class} rare", float(held[y == 1].mean())
        yield f"{per_class} all", float(held.mean())
        yield f"{per_class} size", float(sets.sum(axis=1).mean())


def selection(rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Log-loss of pipelines that choose 10 of 300 columns of noise; log 2 is the best."""
    n, y = 60, np.arange(60 + NEW) % 2
    X = rng.normal(size=(len(y), 300))
    for kind in (Pipeline, TunedPipeline):
        steps = [("best", SelectKBest(k=10)), ("model", KernelFisherDiscriminant("linear"))]
        model = kind(steps).fit(X[:n], y[:n])
        yield f"{kind.__name__} log-loss", float(log_loss(y[n:], model.predict_proba(X[n:])))
        if kind is Pipeline:
            sets = model[-1].predict_set(model[:-1].transform(X[n:]), 0.9)
            yield "Pipeline sets", float(sets[np.arange(NEW), y[n:]].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list[float]]] = {}
    for what in (few, density, rare, selection):
        rng, every = np.random.default_rng(0), found.setdefault(what.__name__, {})
        for number in range(arguments.draws):
            for name, value in what(rng):
                every.setdefault(name, []).append(value)
            common.progress(number + 1, arguments.draws, what.__name__)
    results = {
        what: {
            name: {
                "mean": float(np.mean(values)),
                "standard_error": float(np.std(values, ddof=1) / np.sqrt(len(values))),
            }
            for name, values in every.items()
        }
        for what, every in found.items()
    }
    common.write(__file__, {**vars(arguments), **results})
    for what, every in results.items():
        for name, one in every.items():
            print(f"{what:10s} {name:30s} {one['mean']:.3f} ± {one['standard_error']:.3f}")


if __name__ == "__main__":
    main()
