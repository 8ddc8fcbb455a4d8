"""What each column is used for: features, the target, groups, weights; and which columns are left
out or refused, with reasons.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from .confounds import confounds_of, described_confounds
from .errors import UserError, one_of
from .features import Feature, Features, features_of, find_features
from .hints import about_copies, about_groups
from .remarks import Remarks, counted, listed
from .tables import Table
from .targets import known_rows, target_of, weights_of
from .values import labels

TASKS = ("auto", "classification", "regression")
FEWEST_ROWS = 4
ROW = "\ufdd0row"  # a column of row numbers; starts with a noncharacter, as no other name does


@dataclass(frozen=True)
class TableDesign:
    """A table split into features (floats or strings), target, groups and weights, with the
    decisions that were made. `hints` are remarks about columns that may make the scores worthless.
    """

    X: pl.DataFrame
    y: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    task: str
    target: str
    notes: list[str]
    hints: list[str]
    group: str | None
    weight: str | None
    features: list[Feature]
    identifiers: list[str]
    numbers: np.ndarray  # of the rows in the table, counted from 1
    names: np.ndarray | None  # of the rows, if a column names them
    confounds: pl.DataFrame | None = None  # numbers and text

    def sample(self, most: int, seed: int) -> TableDesign:
        """A random subset of the rows, in their original order."""
        n = len(self.y)
        rows = np.sort(np.random.default_rng(seed).choice(n, min(most, n), replace=False))
        return self.rows(rows)

    def rows(self, rows: np.ndarray) -> TableDesign:
        """Some of the rows, by position."""
        names = ("groups", "weights", "numbers", "names")
        given = {name: getattr(self, name) for name in names}
        taken: Any = {name: None if v is None else v[rows] for name, v in given.items()}
        taken["confounds"] = None if self.confounds is None else self.confounds[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], **taken)

    @property
    def row_names(self) -> list[str]:
        """How the user identifies the rows: by an identifier, or by the row number in the table."""
        if self.names is None:
            return [f"row {number}" for number in self.numbers.tolist()]
        return [str(name) for name in self.names.tolist()]

    @property
    def identity(self) -> dict[str, Any]:
        """What a model file stores about the table, so that later rows are read the same way."""
        return {
            "target": self.target,
            "task": self.task,
            "group": self.group,
            "weight": self.weight,
            "columns": [feature.identity for feature in self.features],
            "identifiers": self.identifiers,
            "confounds": described_confounds(self.confounds),
        }


def design(
    table: Table,
    target: str,
    *,
    task: str = "auto",
    group: str | None = None,
    weight: str | None = None,
    confound: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    features: Sequence[Feature] | None = None,
) -> TableDesign:
    """Split a table into features, target, groups and weights; `features` are those of a model, if
    given.
    """
    one_of(task, "task", TASKS)
    drop, keep, categorical = drop or (), keep or (), categorical or ()
    confound = list(dict.fromkeys(confound or ()))
    given: dict[str, Sequence[str | None]] = {
        "target": [target],
        "group": [group],
        "weight": [weight],
        "confound": confound,
        "drop": drop,
        "keep": keep,
        "categorical": categorical,
    }
    for role, names in given.items():
        check_columns(table, names, role)
    if table.frame.width < 2:
        raise UserError(
            f"{table.name} has only one column, {table.frame.columns[0]!r}: there is no column "
            "left to predict the target from."
        )
    remarks = Remarks(table.notes)
    numbered = table.frame.with_row_index(ROW, offset=1)
    frame = known_rows(numbered, target, "target", remarks)
    frame = known_rows(frame, group, "group", remarks)
    for name in confound:
        frame = known_rows(frame, name, f"confound {name!r}", remarks)
    if frame.height < FEWEST_ROWS:
        raise UserError(
            f"{table.name} has {counted(frame.height)} with a target: too few to train and test a "
            "model."
        )
    numbers, frame = frame[ROW].to_numpy(), frame.drop(ROW)
    y, task = target_of(frame[target], task, remarks)
    groups = None if group is None else labels(frame[group])
    weights = None if weight is None else weights_of(frame[weight])
    if features is None:
        other = {target, group, weight, *confound, *drop}
        left = frame.drop([name for name in other if name is not None])
        found = find_features(left, keep, categorical, remarks)
    else:
        X, _ = features_of(replace(table, frame=frame), features)
        found = Features(X, list(features), [])
    if not found.X.width:
        raise UserError(
            f"{table.name} has no usable column to predict {target!r} from. "
            + " ".join(f"{note}." for note in remarks.lines)
        )
    hints = about_copies(target, y, task, found.X)
    notes = [*remarks.lines, *about_groups(group, groups, found.X)]
    return TableDesign(
        found.X,
        y,
        groups,
        weights,
        task=task,
        target=target,
        notes=notes,
        hints=hints,
        group=group,
        weight=weight,
        features=found.chosen,
        identifiers=found.identifiers,
        numbers=numbers,
        names=labels(frame[found.identifiers[0]]) if found.identifiers else None,
        confounds=confounds_of(frame, confound, categorical) if confound else None,
    )


def check_columns(table: Table, names: Sequence[str | None], role: str) -> None:
    """Refuse names that are not columns of the table, and suggest the closest one."""
    columns = table.frame.columns
    for name in names:
        if name is not None and name not in columns:
            near = difflib.get_close_matches(name, columns, n=1, cutoff=0.6) or [
                c for c in columns if c.lower() == name.lower()
            ]
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UserError(
                f"{table.name} has no column {name!r} (--{role}). Its columns are "
                f"{listed(columns, 12)}.{hint}"
            )
