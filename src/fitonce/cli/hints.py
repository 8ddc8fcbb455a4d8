"""What may make the scores of a table worthless: copies of the target and of rows, units measured
repeatedly, rows that follow each other in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from .values import DAYS, Feature
from .words import counted, option

ROW = "\ufdd0row"  # a column of row numbers; starts with a noncharacter, as no other name does
FEWEST_UNITS, MOST_LEVELS = 5, 10  # of units; of classes that are told from units
BY_CHANCE = 10  # times as many copies as by chance are no chance
MANY_ROWS = 30  # from which an order is told from chance
ALIKE = 0.8  # correlation of a target with that of the next row; 0 in shuffled rows
COPY_ROWS = 10  # fewest rows in which a copy can be distinguished from chance
SAME_ORDER = 0.999999  # rank correlation from which a number counts as the target transformed


def about_copies(target: str, y: np.ndarray, task: str, features: Iterable[pl.Series]) -> list[str]:
    """Features that are the target under another name, which makes the scores meaningless."""
    return [
        f"{values.name!r} predicts {target!r} without error: if it is a copy of the target, or "
        f"known only after it, use {option('drop', values.name)}"
        for values in features
        if len(y) >= COPY_ROWS and _is_copy(values, y, task)
    ]


def _is_copy(values: pl.Series, y: np.ndarray, task: str) -> bool:
    known = values.is_not_null()
    if int(known.sum()) < max(COPY_ROWS, 0.5 * len(y)):
        return False
    values, target = values.filter(known), pl.Series("y", y).filter(known)
    if task == "classification":
        levels, distinct = target.n_unique(), values.n_unique()
        if levels < 2 or pl.DataFrame([values.alias("x"), target]).n_unique() != distinct:
            return False
        sorted_target = target.gather(values.arg_sort())
        in_order = (sorted_target != sorted_target.shift()).sum() == levels - 1
        return distinct == levels or (values.dtype != pl.String and in_order)
    if values.dtype == pl.String or values.n_unique() < max(COPY_ROWS, 0.9 * target.n_unique()):
        return False
    ranks, others = (v.rank().to_numpy() for v in (values, target))
    return bool(abs(np.corrcoef(ranks, others)[0, 1]) > SAME_ORDER)


def about_units(target: str, y: np.ndarray, features: Iterable[pl.Series]) -> list[str]:
    """Features with repeated values within which the target never changes: units measured several
    times, which must not stand on both sides of a split.
    """
    told = pl.Series("y", y)
    levels = told.n_unique()
    return [
        f"all rows with the same value of {values.name!r} have the same {target!r}, for each of "
        f"its {values.n_unique()} values: if these are units that were measured repeatedly, add "
        f"{option('group', values.name)}; otherwise the scores are too optimistic for new ones"
        for values in features
        if max(FEWEST_UNITS, 2 * min(levels, MOST_LEVELS)) < values.n_unique() <= len(y) / 2
        and pl.DataFrame([values.alias("x"), told]).n_unique() == values.n_unique()
    ]


def copies_together(X: pl.DataFrame, y: np.ndarray) -> tuple[np.ndarray | None, list[str]]:
    """Groups that keep exact copies of rows in one fold, and a warning; None without copies.

    Equal rows are copies if there are many more of them than pairs of equal rows are expected in
    columns that know nothing of each other.
    """
    table = X.with_columns(pl.Series(ROW, y))
    found, groups = np.unique(table.hash_rows().to_numpy(), return_inverse=True)
    n, copies = len(y), len(y) - len(found)
    alike = (float((v.value_counts()["count"] / n).pow(2).sum()) for v in table)
    if copies <= BY_CHANCE * n * (n - 1) / 2 * math.prod(alike):
        return None, []
    return groups, [
        f"{counted(copies)} repeat another row exactly: copies stay in one fold, because a model "
        "that has seen a copy knows the answer. Remove them if they are there by mistake"
    ]


def about_order(
    y: np.ndarray, task: str, X: pl.DataFrame, features: Sequence[Feature]
) -> list[str]:
    """A warning if rows follow each other in time: then neighbours are alike."""
    why = [
        f"the rows are in the order of {feature.source!r}"
        for feature in features
        if feature.kind == DAYS
        and (v := X[feature.name].drop_nulls()).len() >= MANY_ROWS
        and (v.is_sorted() or v.is_sorted(descending=True))
    ]
    steps = np.diff(y) if task == "regression" and len(y) >= MANY_ROWS else np.zeros(0)
    if np.any(steps > 0) and np.any(steps < 0):
        alike = float(np.corrcoef(y[1:], y[:-1])[0, 1])
        if alike > ALIKE:
            why.append(f"the target of neighbouring rows is alike (correlation {alike:.2f})")
    dated = [feature.source for feature in features if feature.kind == DAYS]
    named = option("time", dated[0]) if dated else "--time COLUMN"
    return [
        f"{' and '.join(why)}: if they follow each other in time, shuffled folds make the scores "
        f"too optimistic for later rows; {named} predicts every row from earlier ones"
    ] * bool(why)
