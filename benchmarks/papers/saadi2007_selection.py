"""Table 1 of Saadi, Talbot and Cawley (2007) by the methods as they are published, with the time
that each takes to choose its parameters.

Both have the paper's model: penalty μ‖α‖², free bias, targets n/n₁ and -n/n₂, class by the sign.
And both are run with targets ±1 too ("signs"): with a free bias that is the same model, scaled,
with its threshold elsewhere.

- ORKFD: leave-one-out in canonical form (``fifteen_lines.py``), its error smoothed by a logistic
  function with compression factor 10. At the first kernel width the best of the 21 values μ = 2⁻¹⁰
  … 2¹⁰, then Newton's method in log μ with step halving. After that widths and μ alternate: log₂ of
  the width goes up or down by 2, 1, ½ and ¼; after each step Newton's method goes on from the
  present μ; a step is kept if it lowers the criterion, and halved if neither direction does. The
  paper says that the two alternate, but not how its widths were searched.
- KFD: 10 folds, each fitted anew, and the squared error of the held-out outputs, for every pair of
  a lattice: 7 widths (2⁻⁸ … 2⁴ times 2/p, by factors of 4) and 11 values of μ (2⁻¹⁰ … 2¹⁰, by
  factors of 4). KᵀK of a fold is shared by its values of μ. The study that the paper takes its
  numbers from does not print its lattice.
- "lattice": leave-one-out in canonical form on the pairs of KFD's lattice, so that the two ways can
  be compared at equal numbers of candidates.

The protocol is the paper's: parameters are the medians of the choices on the first five training
sets (for KFD on splice and image the first two); the test error is a mean over 100 splits (20 for
image and splice). Splits are drawn by ``fitonce.datasets.raetsch_splits``. Times are CPU seconds of
one thread for one training set, kernel matrices included.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import shared
from fifteen_lines import newton, smoothed_error
from sklearn.metrics import euclidean_distances

sys.path.append(str(shared.HERE.parent))
from raetsch_protocol import Protocol, medians

from fitonce.datasets import RAETSCH, make_torus

FULL = {
    "sets": [
        "thyroid",
        "titanic",
        "heart",
        "breast_cancer",
        "banana",
        "twonorm",
        "ringnorm",
        "waveform",
        "diabetis",
        "flare_solar",
        "german",
        "splice",
        "image",
    ],
    "selection_sets": 5,
    "fewer_for_kfd": {"splice": 2, "image": 2},  # training sets on which the folds are fitted
    "max_splits": 100,
    "compression": 10.0,
    "folds": 10,
}
QUICK = {"sets": ["torus"], "selection_sets": 1, "max_splits": 2, "folds": 3}  # no files needed
CANDIDATES = 2.0 ** np.arange(-10, 11)
COARSE = 2.0 ** np.arange(-10, 11, 2)
WIDTHS = 2.0 ** np.arange(-8, 5, 2)
# the method whose choice is used, and whether targets are ±1: the squared error of the folds is the
# same for both codings, up to a factor, because the bias is free
METHODS = {
    "orkfd": ("orkfd", False),
    "kfd": ("kfd", False),
    "orkfd-signs": ("orkfd-signs", True),
    "kfd-signs": ("kfd", True),
}
WAYS = ("orkfd", "lattice", "kfd", "orkfd-signs")

Choice = dict[str, float]


# ---- choosing ------------------------------------------------------------------------------------


def canonical(squares: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Λ and U = KV of KᵀK = VΛVᵀ."""
    K = np.exp(-gamma * squares)
    lam, V = scipy.linalg.eigh(K @ K, overwrite_a=True, check_finite=False, driver="evd")
    return np.maximum(lam, 0.0), K @ V


def orkfd(squares: np.ndarray, y: np.ndarray, first: float) -> Choice:
    """Newton's method in log μ and steps of the width in turn, from the first width on."""
    lam, U = canonical(squares, first)
    t = min(np.log(CANDIDATES), key=lambda t: smoothed_error(lam, U, y, t)[0])
    error, t = newton(lam, U, y, t)
    width, step, decompositions = np.log2(first), 2.0, 1
    while step >= 0.25:
        for direction in (step, -step):
            decompositions += 1
            found, t_found = newton(*canonical(squares, 2.0 ** (width + direction)), y, t)
            if found < error:
                width, error, t = width + direction, found, t_found
                break
        else:
            step /= 2.0
    return {"gamma": 2.0**width, "alpha": np.exp(t), "loss": error, "kernels": decompositions}


def orkfd_lattice(squares: np.ndarray, y: np.ndarray, first: float) -> Choice:
    """The smoothed leave-one-out error in canonical form, at every pair of the lattice."""
    found = []
    for gamma in WIDTHS * 4.0 * first:
        lam, U = canonical(squares, gamma)
        found += [(smoothed_error(lam, U, y, np.log(mu))[0], gamma, mu) for mu in COARSE]
    error, gamma, mu = min(found)
    return {"gamma": gamma, "alpha": mu, "loss": error, "kernels": len(WIDTHS)}


def kfd(squares: np.ndarray, y: np.ndarray, first: float, folds: int) -> Choice:
    """The squared error of k folds, each fitted anew, at every pair of the lattice."""
    order = np.random.default_rng(len(y)).permutation(len(y))
    tests = [np.sort(part) for part in np.array_split(order, folds)]
    losses = np.zeros((len(WIDTHS), len(COARSE)))
    for row, gamma in zip(losses, WIDTHS * 4.0 * first, strict=True):
        K = np.exp(-gamma * squares)
        for test in tests:
            train = np.setdiff1d(np.arange(len(y)), test)
            Z, rows = (shared.with_ones(K[np.ix_(part, train)]) for part in (train, test))
            ZZ, Zy = Z.T @ Z, Z.T @ y[train]
            for number, mu in enumerate(COARSE):
                residual = y[test] - rows @ solve(ZZ, Zy, mu)
                row[number] += residual @ residual
    i, j = np.unravel_index(np.argmin(losses), losses.shape)
    return {
        "gamma": WIDTHS[i] * 4.0 * first,
        "alpha": COARSE[j],
        "loss": losses[i, j] / len(y),
        "kernels": len(WIDTHS),
    }


def solve(ZZ: np.ndarray, Zy: np.ndarray, mu: float) -> np.ndarray:
    """α and b of equation (4)."""
    C = ZZ.copy()
    C[np.diag_indices(len(C) - 1)] += mu
    return scipy.linalg.solve(C, Zy, assume_a="pos", overwrite_a=True, check_finite=False)


# ---- the protocol --------------------------------------------------------------------------------


def choose(method: str, name: str, number: int, folds: int) -> dict[str, Any]:
    X, labels, _, _ = split(name, number)
    y = targets(labels, method.endswith("signs"))
    ways: dict[str, Callable[..., Choice]] = {
        "orkfd": orkfd,
        "orkfd-signs": orkfd,
        "lattice": orkfd_lattice,
        "kfd": lambda *given: kfd(*given, folds),
    }
    clock = time.process_time()
    squares = euclidean_distances(X, squared=True)
    chosen = ways[method](squares, y, 0.5 / X.shape[1])
    return {"seconds": time.process_time() - clock, **chosen}


def targets(labels: np.ndarray, signs: bool) -> np.ndarray:
    y = labels.astype(float)
    return y if signs else shared.fisher_targets(y)


def test_error(name: str, number: int, gamma: float, mu: float, signs: bool) -> float:
    X, labels, X_test, labels_test = split(name, number)
    y = targets(labels, signs)
    Z = shared.with_ones(np.exp(-gamma * euclidean_distances(X, squared=True)))
    model = solve(Z.T @ Z, Z.T @ y, mu)
    rows = shared.with_ones(np.exp(-gamma * euclidean_distances(X_test, X, squared=True)))
    return float(np.mean(np.sign(rows @ model) != labels_test))


def split(name: str, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised training rows and labels, test rows and labels."""
    if name == "torus":
        X, y = make_torus(120, random_state=number)
        return X[:60], y[:60], X[60:], y[60:]
    return Protocol(shared.RESULTS, 0, None, False).split(name, number)


def training_sets(way: str, name: str, settings: dict[str, Any]) -> range:
    """The numbers of the training sets on which a way chooses."""
    most: int = settings["selection_sets"]
    return range(min(most, settings["fewer_for_kfd"].get(name, most) if way == "kfd" else most))


def n_splits(name: str, settings: dict[str, Any]) -> int:
    most: int = settings["max_splits"]
    return min(RAETSCH[name].n_splits, most) if name in RAETSCH else most


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """By set and method: medians, seconds and kernels of a selection (means), errors."""
    found: dict[str, Any] = {}
    for name in settings["sets"]:
        row = found[name] = {}
        for method in (*METHODS, "lattice"):
            way = METHODS[method][0] if method in METHODS else method
            numbers = training_sets(way, name, settings)
            choices = [cells.get(f"choose {way} {name} {number}") for number in numbers]
            if None in choices:
                continue
            row[method] = {
                "parameters": median_of(choices),
                "seconds": float(np.mean([choice["seconds"] for choice in choices])),
                "kernels": float(np.mean([choice["kernels"] for choice in choices])),
                "training_sets": len(choices),
            }
            splits = n_splits(name, settings)
            errors = [cells.get(f"test {method} {name} {number}") for number in range(splits)]
            if method in METHODS and None not in errors:
                row[method] |= {
                    "mean": float(np.mean(errors)),
                    "sd": float(np.std(errors, ddof=1)),
                    "splits": splits,
                }
    return found


def median_of(choices: list[Any]) -> dict[str, float]:
    return medians([{key: choice[key] for key in ("gamma", "alpha")} for choice in choices])


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    for name in settings["sets"]:
        keys = [
            ("choose", way, name, i) for way in WAYS for i in training_sets(way, name, settings)
        ]
        run.each(keys, lambda _, method, name, i: choose(method, name, i, settings["folds"]))
        for method, (way, signs) in METHODS.items():
            numbers = training_sets(way, name, settings)
            best = median_of([run.cells[f"choose {way} {name} {i}"] for i in numbers])
            splits = range(n_splits(name, settings))
            run.each(
                [("test", method, name, i) for i in splits],
                lambda _, method, name, i, best=best, signs=signs: test_error(
                    name, i, best["gamma"], best["alpha"], signs
                ),
            )
        summary = summarise(run.cells, {**settings, "sets": [name]})[name]
        for method, found in summary.items():
            error = f"{100 * found['mean']:.2f} %" if "mean" in found else ""
            print(f"{name:14s} {method:12s} {found['seconds']:7.1f} s  {error}", flush=True)
    run.save(sets=summarise(run.cells, settings))


if __name__ == "__main__":
    main()
