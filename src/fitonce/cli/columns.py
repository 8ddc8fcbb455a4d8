"""What each column of a table is used for, and its values as numbers or categories.

Whatever is learned from rows (medians, means, the list of categories) is left to the pipeline,
which cross-validation refits in every training set. What a column is (its kind, the format of its
dates and numbers) is decided once, and kept in the model file, so that later rows are read alike.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.model_selection import TimeSeriesSplit

from .errors import UserError, one_of
from .hints import ROW, about_copies, about_order, about_units, copies_together
from .table import Table
from .targets import (
    SPANS,
    check_first_span,
    confound_of,
    confounds_of,
    in_order,
    target_of,
    weights_of,
)
from .values import (
    ABSENT,
    CATEGORY,
    COMMA,
    DATE,
    DAYS,
    EMPTY,
    NESTED,
    NUMBER,
    PARTS,
    Feature,
    format_of,
    has_decimal_commas,
    kind_of,
    labels,
    sentinel,
)
from .words import Remarks, counted, listed, option

TASKS = ("auto", "classification", "regression")
FEWEST_ROWS = 4
TEXT_SHARE, TEXT_LEVELS = 0.5, 20  # a category column with more distinct values than both is text
DENSE = 2.0  # whole numbers that increase by less than this on average are row numbers
NEARLY_ALL = 0.9  # share of different values in a column of identifiers
ID_NAME = re.compile(
    r"(^|.*[_\s.-])(id|ids|idx|index|uuid|guid|key|nr|no|row|rowid|record|unnamed.*)$|.*[a-z]I[dD]$",
    re.IGNORECASE,
)
IDENTIFIER = "identifier"  # why columns that identify rows are left out


# ---- the table and its columns -------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """A table split into features (floats or strings), target, groups, weights and confounds, with
    the decisions that were made. `hints` are remarks about what may make the scores worthless.
    """

    name: str
    X: pl.DataFrame
    y: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    confounds: pl.DataFrame | None  # numbers and text
    numbers: np.ndarray  # of the rows in the table, counted from 1
    names: np.ndarray | None  # of the rows, if a column names them
    task: str
    notes: list[str]
    hints: list[str]
    features: list[Feature]
    identity: dict[str, Any]  # what a model file stores about the table

    @property
    def target(self) -> str:
        return str(self.identity["target"])

    @property
    def forward(self) -> bool:
        """Whether later rows are predicted from earlier ones."""
        return self.identity["time"] is not None

    def folds(self, given: Any) -> Any:
        """The folds to use: those given or, as a number or None, such that they fit the rows."""
        count = given is None or isinstance(given, int)
        return TimeSeriesSplit(given or SPANS) if self.forward and count else given

    @property
    def row_options(self) -> dict[str, Any]:
        """What belongs to the rows, under the names that the library's functions know."""
        return {
            "groups": self.groups,
            "sample_weight": self.weights,
            "confounds": self.confounds,
        }

    def sample(self, most: int, seed: int) -> Design:
        """A random subset of the rows, in their original order."""
        n = len(self.y)
        rows = np.sort(np.random.default_rng(seed).choice(n, min(most, n), replace=False))
        return self if most >= n else self.rows(rows)

    def rows(self, rows: np.ndarray) -> Design:
        """Some of the rows, by position."""
        by_row = ("X", "y", "groups", "weights", "confounds", "numbers", "names")
        given: dict[str, Any] = {name: getattr(self, name) for name in by_row}
        taken: Any = {name: None if v is None else v[rows] for name, v in given.items()}
        return replace(self, **taken)

    @property
    def row_names(self) -> list[str]:
        """How the user identifies the rows: by an identifier, or by the row number in the table."""
        if self.names is None:
            return [f"row {number}" for number in self.numbers.tolist()]
        return [str(name) for name in self.names.tolist()]


def design(
    table: Table,
    target: str,
    *,
    task: str = "auto",
    group: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    confound: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    features: Sequence[Feature] | None = None,
) -> Design:
    """Split a table into features, target, groups, weights and confounds; `features` are those of
    a model, if given.
    """
    one_of(task, "task", TASKS)
    confound = list(dict.fromkeys(confound or ()))
    uses: dict[str, Sequence[str]] = {
        "target": [target],
        "group": [group] if group is not None else [],
        "time": [time] if time is not None else [],
        "weight": [weight] if weight is not None else [],
        "confound": confound,
        "drop": drop or (),
    }
    wishes = {"keep": keep or (), "categorical": categorical or ()}
    for role, names in {**uses, **wishes}.items():
        check_columns(table, names, role)
    used = _used_once(uses)
    if table.frame.width < 2:
        raise UserError(
            f"{table.name} has only one column, {table.frame.columns[0]!r}: there is no column "
            "left to predict the target from."
        )
    if group is not None and time is not None:
        raise UserError(
            "--group and --time cannot be combined: a fold is a span of time or a set of groups. "
            "Leave out one of the two."
        )
    remarks = Remarks(table.notes)
    frame = table.frame.with_row_index(ROW, offset=1)
    needed = {name: uses[name] for name in ("target", "group", "time", "confound")}
    for role, name in ((role, name) for role, names in needed.items() for name in names):
        frame = _known_rows(frame, name, role, remarks)
    if time is not None:
        frame = in_order(frame, time)
        remarks.add(f"in the order of {time!r}, every fold is predicted from the rows before it")
    if frame.height < FEWEST_ROWS:
        raise UserError(
            f"{table.name} has {counted(frame.height)} with a target: too few to train and test a "
            "model."
        )
    numbers, frame = frame[ROW].to_numpy(), frame.drop(ROW)
    y, task = target_of(frame[target], task, remarks)
    identifiers: list[str] = []
    if features is None:
        left = frame.drop(used)
        features, X, identifiers = find_features(
            left, wishes["keep"], wishes["categorical"], remarks
        )
    else:
        X, _ = features_of(replace(table, frame=frame), features)
    if not X.width:
        raise UserError(
            f"{table.name} has no usable column to predict {target!r} from. "
            + " ".join(f"{note}." for note in remarks.lines)
        )
    adjusting = [confound_of(frame[name], name in wishes["categorical"]) for name in confound]
    hints = [*about_copies(target, y, task, X), *about_units(target, y, X)]
    if time is None:
        hints += about_order(y, task, X, features)
    if time is not None:
        groups = None
        check_first_span(target, y, task)
    elif group is None:
        groups, said = copies_together(X, y)
        hints += said
    else:
        groups = labels(frame[group])
        units = counted(len(np.unique(groups)), "group")
        remarks.add(f"{units} in {group!r}: rows of one group are tested together")
    return Design(
        name=table.name,
        X=X,
        y=y,
        groups=groups,
        weights=weights_of(frame[weight]) if weight is not None else None,
        confounds=confounds_of(replace(table, frame=frame), adjusting),
        numbers=numbers,
        names=labels(frame[identifiers[0]]) if identifiers else None,
        task=task,
        notes=remarks.lines,
        hints=hints,
        features=list(features),
        identity={
            "target": target,
            "task": task,
            "group": group,
            "time": time,
            "weight": weight,
            "columns": [feature.identity for feature in features],
            "identifiers": identifiers,
            "confounds": [feature.identity for feature in adjusting],
        },
    )


def check_columns(table: Table, names: Sequence[str], role: str) -> None:
    """Refuse names that are not columns of the table, and suggest the closest one."""
    columns = table.frame.columns
    for name in names:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=1, cutoff=0.6) or [
                c for c in columns if c.lower() == name.lower()
            ]
            hint = f" Did you mean {near[0]!r}?" if near else ""
            sheets = "".join(f" fitonce {note}." for note in table.notes if "sheet" in note)
            raise UserError(
                f"{table.name} has no column {name!r} (--{role}). Its columns are "
                f"{listed(columns, 12)}.{hint}{sheets}"
            )


def _used_once(uses: dict[str, Sequence[str]]) -> list[str]:
    """The columns that are no features; none of them may be used for two things."""
    roles: dict[str, str] = {}
    for role, names in uses.items():
        for name in names:
            if roles.setdefault(name, role) != role:
                raise UserError(
                    f"{name!r} cannot be both --{roles[name]} and --{role}: leave out one of the "
                    "two."
                )
    return list(roles)


def _known_rows(frame: pl.DataFrame, name: str, role: str, remarks: Remarks) -> pl.DataFrame:
    """The rows whose target (or group, or confound) is known."""
    count = frame[name].null_count()
    what = f"confound {name!r}" if role == "confound" else role
    if count == frame.height:
        raise UserError(f"the {role} {name!r} is missing in every row.")
    if count:
        remarks.add(f"{counted(count)} without a {what} {'was' if count == 1 else 'were'} left out")
    return frame.filter(frame[name].is_not_null())


# ---- features ------------------------------------------------------------------------------------


def features_of(table: Table, features: Sequence[Feature]) -> tuple[pl.DataFrame, list[str]]:
    """The features of new rows, read as for the rows of the model, and remarks about them."""
    remarks = Remarks(table.notes)
    sources = list(dict.fromkeys(feature.source for feature in features))
    missing = [name for name in sources if name not in table.frame.columns]
    if missing:
        raise UserError(
            f"{table.name} lacks {len(missing)} of the {len(sources)} columns that the model was "
            f"fitted on: {listed(missing)}. It has {listed(table.frame.columns)}."
        )
    X = pl.DataFrame([feature.values(table.frame, remarks) for feature in features])
    return X, remarks.lines


def find_features(
    frame: pl.DataFrame, keep: Collection[str], categorical: Collection[str], remarks: Remarks
) -> tuple[list[Feature], pl.DataFrame, list[str]]:
    """The useful columns as features, their values, and the columns that identify rows."""
    kinds = {v.name: CATEGORY if v.name in categorical else kind_of(v) for v in frame}
    _refuse_nested([name for name, kind in kinds.items() if kind == NESTED])
    found: list[tuple[Feature, pl.Series]] = []
    useless: dict[str, list[str]] = {}
    for column in frame:
        name, kind = column.name, kinds[column.name]
        if kind == DATE:
            found += _date_parts(column, remarks)
            continue
        form = COMMA if kind == NUMBER and has_decimal_commas(column) else None
        feature = Feature(name, CATEGORY if kind == CATEGORY else NUMBER, name, form)
        values = feature.values(frame, remarks)
        if code := sentinel(values):
            said = f"some values are {code}, far from all others: if this stands for missing, add "
            remarks.about(name, said + option("missing", str(code)))
        reason = why_useless(column, values, kind)
        if reason and name not in keep:
            useless.setdefault(reason, []).append(name)
        else:
            found.append((feature, values))
    for reason, names in useless.items():
        remarks.add(f"left out: {listed(names)} ({reason})")
    X = pl.DataFrame([values for _, values in found])
    _count_gaps(X, remarks)
    named = [name for reason, names in useless.items() if IDENTIFIER in reason for name in names]
    identifiers = [name for name in named if frame[name].n_unique() == frame.height]
    return [feature for feature, _ in found], X, identifiers


def _count_gaps(X: pl.DataFrame, remarks: Remarks) -> None:
    gaps = sum(int((v == ABSENT).sum()) if v.dtype == pl.String else v.null_count() for v in X)
    if gaps:
        remarks.add(
            f"{counted(gaps, 'missing value')} ({gaps / (X.width * X.height):.1%}): replaced by "
            "the median and flagged in numeric columns, a separate category in the others"
        )


def _refuse_nested(names: Sequence[str]) -> None:
    """Refuse lists and structures, which cannot be used as features."""
    if names:
        hold = "holds" if len(names) == 1 else "hold"
        raise UserError(
            f"{listed(names)} {hold} lists or structures: flatten them, or leave them out with "
            f"{option('drop', *names[:3])}."
        )


def why_useless(values: pl.Series, typed: pl.Series, kind: str) -> str | None:
    """Why a column is useless, None if it is useful."""
    if kind == EMPTY or typed.null_count() == typed.len():
        return "no values"
    n, distinct = typed.len(), typed.drop_nulls().n_unique()
    if distinct == 1 and not typed.null_count():
        return "the same value in every row"
    if kind == CATEGORY and distinct > max(TEXT_LEVELS, TEXT_SHARE * n):
        return f"nearly every value is different: text or an {IDENTIFIER}; use it with --keep"
    if kind == CATEGORY or n < 10 or values.dtype.is_float() or typed.null_count():
        return None
    if not (typed == typed.round()).all():
        return None
    if distinct == n and _row_numbers(typed):
        return f"row numbers, an {IDENTIFIER}; use them with --keep"
    if distinct >= NEARLY_ALL * n and ID_NAME.match(values.name):
        different = "all different" if distinct == n else "nearly all different"
        return f"looks like an {IDENTIFIER}: whole numbers, {different}; use it with --keep"
    return None


def _row_numbers(typed: pl.Series) -> bool:
    """Whole numbers that increase from row to row, with few gaps.

    Removed rows leave small gaps; a sorted quantity has wider ones.
    """
    steps = typed.diff().drop_nulls()
    return bool((steps > 0).all()) and float(typed[-1] - typed[0]) <= DENSE * steps.len()


def _date_parts(column: pl.Series, remarks: Remarks) -> Iterator[tuple[Feature, pl.Series]]:
    """A column of dates as numbers, without those that are the same in all rows."""
    name = column.name
    form, unsure = format_of(column)
    used = []
    for part in PARTS:
        feature = Feature(f"{name} ({part})", part, name, form)
        values = feature.values(column.to_frame(), remarks)
        if values.drop_nulls().n_unique() > 1:
            used.append("days since 1970" if part == DAYS else part)
            yield feature, values
    said = f"dates, used as {', '.join(used)}" if used else "left out, the same date in every row"
    if unsure and form is not None:
        order = "day before month" if form.startswith("%d") else "month before day"
        said += f" (read as {order}; write dates as 2024-12-31 to avoid the ambiguity)"
    remarks.about(name, said, "dates")
