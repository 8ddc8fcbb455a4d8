"""What each column is for: features, the target, groups, weights; and what is left out or refused,
with reasons.

What is learned from rows (medians, means, the list of categories) is left to the pipeline, which
cross-validation refits in every training set.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from .errors import UserError, one_of
from .tables import Table
from .values import (
    ABSENT,
    CATEGORY,
    DATE,
    NESTED,
    NUMBERS,
    all_numbers,
    as_category,
    as_number,
    kind_of,
    labels,
    why_useless,
    with_unit,
)

TASKS = ("auto", "classification", "regression")
FEWEST_ROWS = 4
CONTINUOUS_ABOVE = 20  # distinct numbers in a target that make it a regression
REFUSED = {
    DATE: "dates, which are no features as they stand: turn them into numbers (an age in days, "
    "the month)",
    NESTED: "lists or structures: flatten them",
}
GROUP_NAME = re.compile(  # what an experiment repeats itself in: a subject's rows are alike
    r"(^|.*[_\s.-])(sub|subj|subject|participant|proband|patient|person|individual|donor|animal|"
    r"mouse|rat|monkey|litter|cage|family|site|cent(re|er)|hospital|session|batch|plate)s?"
    r"([_\s.-]?(id|ids|nr|no|number|name|code))?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TableDesign:
    """A table taken apart: features (floats or strings), target, groups, weights, and what was
    decided on the way.
    """

    X: pl.DataFrame
    y: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    task: str
    target: str
    notes: list[str]
    group: str | None
    weight: str | None

    def sample(self, most: int, seed: int) -> TableDesign:
        """Some rows, drawn without a look at them, in their order."""
        n = len(self.y)
        rows = np.sort(np.random.default_rng(seed).choice(n, min(most, n), replace=False))
        groups, weights = (None if v is None else v[rows] for v in (self.groups, self.weights))
        return replace(self, X=self.X[rows], y=self.y[rows], groups=groups, weights=weights)

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each feature holds numbers or categories."""
        return {v.name: CATEGORY if v.dtype == pl.String else NUMBERS for v in self.X}

    @property
    def identity(self) -> dict[str, Any]:
        """What a model file remembers of the table, so that later rows are read alike."""
        return {
            "target": self.target,
            "task": self.task,
            "group": self.group,
            "weight": self.weight,
            "columns": [{"name": name, "kind": kind} for name, kind in self.kinds.items()],
        }


def design(
    table: Table,
    target: str,
    *,
    task: str = "auto",
    group: str | None = None,
    weight: str | None = None,
    drop: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
) -> TableDesign:
    """Features, target, groups and weights of a table."""
    one_of(task, "task", TASKS)
    drop, keep, categorical = drop or (), keep or (), categorical or ()
    given: dict[str, Sequence[str | None]] = {
        "target": [target],
        "group": [group],
        "weight": [weight],
        "drop": drop,
        "keep": keep,
        "categorical": categorical,
    }
    for role, names in given.items():
        check_columns(table, names, role)
    if table.frame.width < 2:
        raise UserError(
            f"{table.name} has only one column, {table.frame.columns[0]!r}: there is nothing to "
            "predict the target from."
        )
    notes = list(table.notes)
    frame = _known(_known(table.frame, target, "target", notes), group, "group", notes)
    if frame.height < FEWEST_ROWS:
        raise UserError(
            f"{table.name} has {_rows(frame.height)} with a target: too few to learn from and to "
            "test on."
        )
    y, task = _target(frame[target], task, notes)
    groups = None if group is None else labels(frame[group])
    weights = None if weight is None else _weights(frame[weight])
    left = frame.drop([name for name in {target, group, weight, *drop} if name is not None])
    X = _features(left, keep, categorical, notes)
    if not X.width:
        raise UserError(
            f"no column of {table.name} is left to predict {target!r} from. "
            + " ".join(f"{note}." for note in notes)
        )
    notes.extend(_about_groups(group, groups, X))
    return TableDesign(X, y, groups, weights, task, target, notes, group, weight)


def features_of(table: Table, kinds: Mapping[str, str]) -> tuple[pl.DataFrame, list[str]]:
    """The features of new rows, read as those of a model were, and what is to be said of them."""
    notes = list(table.notes)
    missing = [name for name in kinds if name not in table.frame.columns]
    if missing:
        raise UserError(
            f"{table.name} lacks {len(missing)} of the {len(kinds)} columns that the model was "
            f"fitted on: {_listed(missing)}. It has {_listed(table.frame.columns)}."
        )
    return pl.DataFrame([_typed(table.frame[name], kinds[name], notes) for name in kinds]), notes


def _typed(values: pl.Series, kind: str, notes: list[str]) -> pl.Series:
    return as_category(values) if kind == CATEGORY else as_number(values, notes)


def check_columns(table: Table, names: Sequence[str | None], role: str) -> None:
    """Refuse names that are no columns of the table, with the nearest one that is."""
    columns = table.frame.columns
    for name in names:
        if name is not None and name not in columns:
            near = difflib.get_close_matches(name, columns, n=1, cutoff=0.6) or [
                c for c in columns if c.lower() == name.lower()
            ]
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UserError(
                f"{table.name} has no column {name!r} (--{role}). Its columns are "
                f"{_listed(columns, 12)}.{hint}"
            )


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


# ---- target, groups, weights ---------------------------------------------------------------------


def _known(frame: pl.DataFrame, name: str | None, what: str, notes: list[str]) -> pl.DataFrame:
    """Rows whose target (or group) is known."""
    if name is None:
        return frame
    unknown = frame[name].is_null()
    if frame[name].dtype.is_float():
        unknown |= frame[name].is_nan()
    count = int(unknown.sum())
    if count == frame.height:
        raise UserError(f"the {what} {name!r} is missing in every row.")
    if count:
        notes.append(f"{_rows(count)} without a {what} {'was' if count == 1 else 'were'} left out")
    return frame.filter(~unknown)


def _target(series: pl.Series, task: str, notes: list[str]) -> tuple[np.ndarray, str]:
    """The target as labels or numbers, and which of the two."""
    said = f"the target {series.name!r}"
    numbers, distinct = all_numbers(series), series.n_unique()
    if numbers is None and kind_of(series) == DATE:
        raise UserError(f"{said} holds dates: turn them into numbers or classes first.")
    if distinct < 2:
        raise UserError(
            f"{said} has one value only, {series[0]!r}: there is nothing to tell apart."
        )
    whole = numbers is not None and bool(np.all(numbers == np.round(numbers)))
    if task == "auto" and numbers is not None:
        few = distinct == 2 or (whole and distinct <= min(CONTINUOUS_ABOVE, series.len() // 2))
        task = "classification" if few else "regression"
        if task == "regression":
            notes.append(
                f"{said} looks continuous ({distinct:,} distinct numbers): regression (else "
                "--task classification)"
            )
        elif distinct > 2:
            notes.append(
                f"{said} has {distinct} distinct whole numbers: classes (else --task regression)"
            )
    if task == "regression":
        return _quantities(series, numbers, said), task
    return _classes(series, numbers if whole else None, distinct, said), "classification"


def _quantities(series: pl.Series, numbers: np.ndarray | None, said: str) -> np.ndarray:
    if numbers is None:
        raise UserError(
            f"{said} must be numbers for --task regression, got values such as {str(series[0])!r}."
        )
    if not np.all(np.isfinite(numbers)):
        raise UserError(f"{said} holds infinite numbers: leave these rows out.")
    return numbers


def _classes(series: pl.Series, whole: np.ndarray | None, distinct: int, said: str) -> np.ndarray:
    if distinct > series.len() / 2:
        quantity = all_numbers(series) is not None
        advice = "--task regression, if it is a quantity" if quantity else "another --target"
        raise UserError(
            f"{said} has {distinct:,} classes in {_rows(series.len())}: too few rows of each to "
            f"learn from and to test. Is it an identifier? Use {advice}."
        )
    found = labels(series) if whole is None else whole.astype(np.int64)
    if np.sum(np.unique(found, return_counts=True)[1] > 1) < 2:
        raise UserError(
            f"{said} has fewer than two classes of more than one row: too few to learn from and "
            "to test on."
        )
    return found


def _about_groups(
    name: str | None, groups: np.ndarray | None, features: Iterable[pl.Series]
) -> list[str]:
    """A word about the groups, or about features that seem to name what rows belong to.

    Tested apart, rows of one subject give its labels away.
    """
    if groups is not None:
        number = len(np.unique(groups))
        return [f"{number:,} groups in {name!r}: rows of one group are tested together"]
    return [
        f"{values.name!r} is used as a feature; if rows that share its value belong together, "
        f"--group {values.name} tests them together, and held-out scores are not too good"
        for values in features
        if GROUP_NAME.match(values.name) and 2 < values.n_unique() <= values.len() / 2
    ]


def _weights(series: pl.Series) -> np.ndarray:
    values = None if series.null_count() else all_numbers(series)
    said = f"the weights {series.name!r} must be"
    if values is None:
        raise UserError(f"{said} numbers in every row, got missing or other values.")
    if np.any(values < 0) or not np.all(np.isfinite(values)) or not np.any(values > 0):
        raise UserError(
            f"{said} finite, not negative and not all zero, got values from {values.min():g} to "
            f"{values.max():g}."
        )
    return values


# ---- features ------------------------------------------------------------------------------------


def _features(
    frame: pl.DataFrame, keep: Sequence[str], categorical: Sequence[str], notes: list[str]
) -> pl.DataFrame:
    """The columns that are of use, with their values as floats or strings."""
    kinds = {v.name: CATEGORY if v.name in categorical else kind_of(v) for v in frame}
    _refuse_others(kinds)
    series: list[pl.Series] = []
    useless: dict[str, list[str]] = {}
    for values in frame:
        kind = kinds[values.name]
        typed = _typed(values, kind, notes)
        if kind == CATEGORY and (example := with_unit(values)):
            notes.append(
                f"{values.name!r} holds numbers with a unit ({example}), which are taken for "
                "text: write them without it"
            )
        reason = why_useless(values, typed, kind)
        if reason and values.name not in keep:
            useless.setdefault(reason, []).append(values.name)
        else:
            series.append(typed)
    notes.extend(f"left out: {_listed(names)} ({reason})" for reason, names in useless.items())
    gaps = sum(int((v == ABSENT).sum()) if v.dtype == pl.String else v.null_count() for v in series)
    if gaps:
        notes.append(
            f"{gaps:,} missing values ({gaps / (len(series) * frame.height):.1%}): medians and a "
            "mark for numbers, a category of their own for categories"
        )
    return pl.DataFrame(series)


def _refuse_others(kinds: dict[str, str]) -> None:
    """Refuse dates, lists and structures, which are no features as they stand."""
    for refused, advice in REFUSED.items():
        names = [name for name, kind in kinds.items() if kind == refused]
        if names:
            raise UserError(
                f"{_listed(names)} {'holds' if len(names) == 1 else 'hold'} {advice}, or leave "
                f"them out with {' '.join(f'--drop {name}' for name in names[:3])}."
            )
