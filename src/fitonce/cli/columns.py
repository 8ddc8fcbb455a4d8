"""What each column of a table is used for, its values as numbers or categories, and warnings of
what may make the scores worthless.

Whatever is learned from rows (medians, means, categories) is left to the pipeline. What a column is
(its kind, the format of its dates and numbers) is decided once, and kept in the model file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.model_selection import TimeSeriesSplit

from ..assessment.data import copies_of
from .table import Table
from .values import (
    ABSENT,
    CATEGORY,
    COMMA,
    DATE,
    DAYS,
    NESTED,
    NUMBER,
    PARTS,
    SPANS,
    Feature,
    check_first_span,
    confound_of,
    confounds_of,
    feature_of,
    format_of,
    in_order,
    kind_of,
    labels,
    levelled,
    logarithm_of,
    order_of,
    sentinel,
    target_of,
    weights_of,
)
from .words import Remarks, UserError, counted, examples, listed, one_of, option, refuse

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
MARKED = "numbers with currency or percent signs, or marked thousands"
ROW = "\ufdd0row"  # a column of row numbers; starts with a noncharacter, as no other name does
FEWEST_UNITS, MOST_LEVELS = 5, 10  # of units; of classes that are told from units
MANY_ROWS = 30  # from which an order is told from chance
ALIKE = 0.8  # correlation of a target with that of the next row; 0 in shuffled rows
COPY_ROWS = 10  # fewest rows in which a copy can be distinguished from chance
SKEWED = 2.0  # skewness of a target from which its logarithm is mentioned
SAME_ORDER = 0.999999  # rank correlation from which a number counts as the target transformed


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
        """What is predicted, in words."""
        name = str(self.identity["target"])
        return f"log({name})" if self.identity["log_target"] else name

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
        given = {name: getattr(self, name) for name in by_row}
        taken: Any = {name: v if v is None else v[rows] for name, v in given.items()}
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
    ordered: Sequence[str] | None = None,
    log_target: bool = False,
    features: Sequence[Feature] | None = None,
) -> Design:
    """Split a table into features, target, groups, weights and confounds; `features` are those of
    a model, if given.
    """
    one_of(task, "task", TASKS)
    single = {"target": target, "group": group, "time": time, "weight": weight}
    uses = {role: [name] for role, name in single.items() if name is not None}
    uses |= {"confound": list(dict.fromkeys(confound or ())), "drop": list(drop or ())}
    keep, categorical = keep or (), categorical or ()
    for role, names in {**uses, "keep": keep, "categorical": categorical}.items():
        check_columns(table, names, role)
    used = _used_once(uses)
    for said in ordered or ():
        table = with_order(table, said)
    refuse(
        (
            table.frame.width < 2,
            f"{table.name} has only one column, {table.frame.columns[0]!r}: there is no column "
            "left to predict the target from.",
        ),
        (
            group is not None and time is not None,
            "--group and --time cannot be combined: a fold is a span of time or a set of groups. "
            "Leave out one of the two.",
        ),
    )
    remarks = Remarks(table.notes)
    frame = _usable_rows(table, uses, remarks)
    numbers, frame = frame[ROW].to_numpy(), frame.drop(ROW)
    y, task = target_of(frame[target], task, remarks)
    if log_target:
        y = logarithm_of(target, y, task)
    elif task == "regression" and is_skewed(y):
        remarks.add(
            f"a few values of {target!r} are very large: --log-target predicts its logarithm"
        )
    identifiers: list[str] = []
    if features is None:
        features, X, identifiers = find_features(frame.drop(used), keep, categorical, remarks)
    else:
        X, _ = features_of(replace(table, frame=frame), features)
    reasons = " ".join(f"{note}." for note in remarks.lines)
    none = f"{table.name} has no usable column to predict {target!r} from. {reasons}"
    refuse((X.width == 0, none))
    adjusting = [confound_of(frame[name], name in categorical) for name in uses["confound"]]
    copies, said = copies_of(X, y) if group is None and time is None else (None, "")
    once = slice(None) if copies is None else np.unique(copies, return_index=True)[1]
    hints = [*about_copies(target, y[once], task, X[once]), *filter(None, [said])]
    groups = copies if group is None else labels(frame[group])
    if time is not None:
        check_first_span(target, y, task)
    else:
        hints += about_order(y, task, X, features)
    if group is not None and groups is not None:
        units = counted(len(np.unique(groups)), "group")
        remarks.add(f"{units} in {group!r}: rows of one group are tested together")
    return Design(
        name=table.name,
        X=X,
        y=y,
        groups=groups,
        weights=None if weight is None else weights_of(frame[weight]),
        confounds=confounds_of(replace(table, frame=frame), adjusting),
        numbers=numbers,
        names=labels(frame[identifiers[0]]) if identifiers else None,
        task=task,
        notes=remarks.lines,
        hints=hints,
        features=list(features),
        identity={
            **single,
            "task": task,
            "log_target": log_target,
            "columns": [feature.identity for feature in features],
            "identifiers": identifiers,
            "confounds": [feature.identity for feature in adjusting],
        },
    )


def with_order(table: Table, said: str) -> Table:
    """A table with a column of ordered categories, of which all levels are said: size=S,M,L."""
    name, _, given = said.rpartition("=")
    check_columns(table, [name], "ordered")
    levels = given.split(",")
    form = f"--ordered must be like size=S,M,L, from the lowest level up, got {said} instead."
    refuse((len(set(levels)) < max(2, len(levels)), form))
    column, others = levelled(table.frame[name], levels)
    lacks = f"--ordered {said} leaves out values of the column: {examples(others)}. Name all."
    refuse((others.len() > 0, lacks))
    return replace(table, frame=table.frame.with_columns(column))


def _usable_rows(table: Table, uses: dict[str, list[str]], remarks: Remarks) -> pl.DataFrame:
    """The numbered rows whose target, group, time and confounds are known, in the order of time."""
    frame = table.frame.with_row_index(ROW, offset=1)
    for role, names in uses.items():
        for name in names if role not in ("weight", "drop") else ():
            frame = _known_rows(frame, name, role, remarks)
    for time in uses.get("time", ()):
        frame = in_order(frame, time)
        remarks.add(f"in the order of {time!r}, every fold is predicted from the rows before it")
    few = f"{table.name} has {counted(frame.height)} with a target: too few to train and test a "
    refuse((frame.height < FEWEST_ROWS, f"{few}model."))
    return frame


def check_columns(table: Table, names: Sequence[str], role: str) -> None:
    """Refuse names that are not columns of the table, and suggest the closest one."""
    columns = table.frame.columns
    for name in (name for name in names if name not in columns):
        alike = [column for column in columns if column.lower() == name.lower()]
        near = alike or difflib.get_close_matches(name, columns, n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        sheets = "".join(f" fitonce {note}." for note in table.notes if "sheet" in note)
        raise UserError(
            f"{table.name} has no column {name!r} (--{role}). Its columns are "
            f"{listed(columns, 12)}.{hint}{sheets}"
        )


def _used_once(uses: dict[str, list[str]]) -> list[str]:
    """The columns that are no features; none of them may be used for two things."""
    roles: dict[str, str] = {}
    for role, name in ((role, name) for role, names in uses.items() for name in names):
        first = roles.setdefault(name, role)
        both = f"{name!r} cannot be both --{first} and --{role}: leave out one of the two."
        refuse((first != role, both))
    return list(roles)


def _known_rows(frame: pl.DataFrame, name: str, role: str, remarks: Remarks) -> pl.DataFrame:
    """The rows whose target (or group, or confound) is known."""
    count = frame[name].null_count()
    what = f"confound {name!r}" if role == "confound" else role
    refuse((count == frame.height, f"the {role} {name!r} is missing in every row."))
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
    nested = [name for name, kind in kinds.items() if kind == NESTED]
    holding = f"{listed(nested)} {'holds' if len(nested) == 1 else 'hold'} lists or structures"
    advice = f"flatten them, or leave them out with {option('drop', *nested[:3])}."
    refuse((bool(nested), f"{holding}: {advice}"))
    found: list[tuple[Feature, pl.Series]] = []
    useless: dict[str, list[str]] = {}
    for column in frame:
        name, kind = column.name, kinds[column.name]
        if kind == DATE:
            found += _date_parts(column, remarks)
            continue
        feature = feature_of(column, CATEGORY if kind == CATEGORY else NUMBER)
        values = feature.values(frame, remarks)
        order = order_of(column) if kind == CATEGORY and name not in categorical else []
        if feature.levels:
            remarks.about(name, f"ordered, {' < '.join(feature.levels)}, used as one number")
        elif order:
            said = option("ordered", f"{name}={','.join(order)}")
            remarks.about(name, f"if these categories have an order, {said} uses one number")
        marked = column.dtype == pl.String and feature.kind == NUMBER
        if marked and column.cast(pl.Float64, strict=False).null_count() > values.null_count():
            remarks.about(name, "decimal commas" if feature.format == COMMA else MARKED)
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


def why_useless(values: pl.Series, typed: pl.Series, kind: str) -> str | None:
    """Why a column is useless, None if it is useful."""
    n, known, text = typed.len(), typed.drop_nulls(), kind == CATEGORY
    distinct, full = known.n_unique(), known.len() == n
    whole = full and n >= 10 and not text and not values.dtype.is_float()
    whole = whole and bool((typed == typed.round()).all())
    different = "all different" if distinct == n else "nearly all different"
    reasons = {
        "no values": known.is_empty(),
        "the same value in every row": distinct == 1 and full,
        f"nearly every value is different: text or an {IDENTIFIER}; use it with --keep": text
        and distinct > max(TEXT_LEVELS, TEXT_SHARE * n),
        f"row numbers, an {IDENTIFIER}; use them with --keep": whole
        and distinct == n
        and _row_numbers(typed),
        f"looks like an {IDENTIFIER}: whole numbers, {different}; use it with --keep": whole
        and distinct >= NEARLY_ALL * n
        and ID_NAME.match(values.name),
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _row_numbers(typed: pl.Series) -> bool:
    """Whole numbers that increase from row to row, with few gaps.

    Removed rows leave small gaps; a sorted quantity has wider ones.
    """
    steps = typed.diff().drop_nulls()
    return bool((steps > 0).all()) and float(typed[-1] - typed[0]) <= DENSE * steps.len()


def _date_parts(column: pl.Series, remarks: Remarks) -> list[tuple[Feature, pl.Series]]:
    """A column of dates as numbers, without those that are the same in all rows."""
    name, (form, unsure) = column.name, format_of(column)
    features = [Feature(f"{name} ({part})", part, name, form) for part in PARTS]
    found = [(feature, feature.values(column.to_frame(), remarks)) for feature in features]
    used = [(feature, values) for feature, values in found if values.drop_nulls().n_unique() > 1]
    kinds = ["days since 1970" if feature.kind == DAYS else feature.kind for feature, _ in used]
    said = f"dates, used as {', '.join(kinds)}" if used else "left out, the same date in every row"
    if unsure and form is not None:
        order = "day before month" if form.startswith("%d") else "month before day"
        said += f" (read as {order}; write dates as 2024-12-31 to avoid the ambiguity)"
    remarks.about(name, said, "dates")
    return used


# ---- what may make the scores worthless ----------------------------------------------------------


def is_skewed(y: np.ndarray) -> bool:
    """Whether positive numbers have a long tail of large ones, which their logarithm has not."""
    if y.min() <= 0:
        return False
    skew, of_log = (pl.Series(values).skew() or 0.0 for values in (y, np.log(y)))
    return skew > SKEWED and abs(of_log) < skew / 2


def about_copies(
    target: str, y: np.ndarray, task: str, features: Iterable[pl.Series]
) -> Iterator[str]:
    """Features that are the target under another name, which makes the scores meaningless, or units
    measured several times, which must not stand on both sides of a split.
    """
    for values in features:
        name, units = values.name, _are_units(values, y)
        drop, group = option("drop", name), option("group", name)
        if len(y) >= COPY_ROWS and _is_copy(values, y, task):
            other = f"; if it names units that were measured repeatedly, {group}" if units else ""
            yield (
                f"{name!r} predicts {target!r} without error: if it is a copy of the target, or "
                f"known only after it, use {drop}{other}"
            )
        elif units:
            yield (
                f"all rows with the same value of {name!r} have the same {target!r}, for each of "
                f"its {values.n_unique()} values: if these are units that were measured "
                f"repeatedly, add {group}; otherwise the scores are too optimistic "
                "for new ones"
            )


def _are_units(values: pl.Series, y: np.ndarray) -> bool:
    """Whether values are repeated, and the target never changes within one of them."""
    told, distinct = pl.Series("y", y), values.n_unique()
    fewest = max(FEWEST_UNITS, 2 * min(told.n_unique(), MOST_LEVELS))
    pairs = pl.DataFrame([values.alias("x"), told])
    return fewest < distinct <= len(y) / 2 and pairs.n_unique() == distinct


def _is_copy(values: pl.Series, y: np.ndarray, task: str) -> bool:
    """Whether known values tell all classes apart, or have the order of the target."""
    pairs = pl.DataFrame({"x": values, "y": y}).drop_nulls()
    distinct, levels = pairs["x"].n_unique(), pairs["y"].n_unique()
    number = values.dtype != pl.String
    if pairs.height < max(COPY_ROWS, 0.5 * len(y)) or levels < 2:
        return False
    if task == "classification":
        classes = pairs.sort("x", maintain_order=True)["y"]
        in_order = number and (classes != classes.shift()).sum() == levels - 1
        return pairs.n_unique() == distinct and (distinct == levels or in_order)
    if not number or distinct < max(COPY_ROWS, 0.9 * levels):
        return False
    return bool(abs(pairs.select(pl.corr("x", "y", method="spearman")).item()) > SAME_ORDER)


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
