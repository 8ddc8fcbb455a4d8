"""What each column is for: numbers, categories, the target, groups, weights; and what is left out
or refused, with reasons.

Everything here is decided column by column and value by value, without a fit, so that the same is
done to rows that come later. What is learned from rows (medians, means, the list of categories) is
left to the pipeline, which cross-validation refits in every training set.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from .errors import UserError
from .tables import MISSING, NUMBER, Table

ABSENT = "(missing)"  # the category of a missing value
NUMBERS, CATEGORY, DATE, NESTED, EMPTY = "number", "category", "date", "nested", "empty"
FEWEST_ROWS = 4
MOSTLY = 0.8  # share of numbers above which the other values of a column count as missing
CONTINUOUS_ABOVE = 20  # distinct numbers in a target that make it a regression
TEXT_SHARE, TEXT_LEVELS = (
    0.5,
    20,
)  # a category column with more distinct values than both is text or an identifier
GROUP_NAME = re.compile(  # what an experiment repeats itself in: a subject's rows are alike
    r"(^|.*[_\s.-])(sub|subj|subject|participant|proband|patient|person|individual|donor|animal|mouse|rat|monkey|litter|cage|family|site|"
    r"cent(re|er)|hospital|session|batch|plate)s?([_\s.-]?(id|ids|nr|no|number|name|code))?$",
    re.IGNORECASE,
)
ID_NAME = re.compile(
    r"(^|.*[_\s.-])(id|ids|idx|index|uuid|guid|key|nr|no|row|rowid|record|unnamed.*)$|.*[a-z]I[dD]$",
    re.IGNORECASE,
)
NUMBER_UNIT = re.compile(r"^[-+]?\d+(?:[.,]\d+)?\s*([^\d\s].*)$")
DATE_TEXT = re.compile(
    r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})([ T]\d{1,2}:\d{2}.*)?\s*$"
)
DECIMAL_COMMA, THOUSANDS = (
    r"^\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*$",
    r"^\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*$",
)


@dataclass(frozen=True)
class Column:
    """A feature: its name and whether it holds numbers or categories."""

    name: str
    kind: str


@dataclass(frozen=True)
class Design:
    """A table taken apart: features, target, groups, weights, and what was decided on the way."""

    X: pl.DataFrame
    y: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    task: str
    target: str
    columns: list[Column]
    notes: list[str] = field(default_factory=list)
    group: str | None = None
    weight: str | None = None

    @property
    def classes(self) -> np.ndarray | None:
        return np.unique(self.y) if self.task == "classification" else None

    def sample(self, most: int, seed: int) -> Design:
        """Some rows, drawn without a look at them, in their order."""
        rows = np.sort(
            np.random.default_rng(seed).choice(len(self.y), min(most, len(self.y)), replace=False)
        )
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], groups=groups, weights=weights)

    @property
    def identity(self) -> dict[str, Any]:
        """What a model file remembers of the table, so that later rows are read alike."""
        columns = [{"name": c.name, "kind": c.kind} for c in self.columns]
        return {
            "target": self.target,
            "task": self.task,
            "group": self.group,
            "weight": self.weight,
            "columns": columns,
        }


def design(
    table: Table, target: str, *, task: str = "auto", group: str | None = None, weight: str | None = None, drop: Sequence[str] = (),
    keep: Sequence[str] = (), categorical: Sequence[str] = (),
) -> Design:  # fmt: skip
    """Features, target, groups and weights of a table."""
    frame, notes = table.frame, list(table.notes)
    for role, names in (
        ("target", [target]),
        ("group", [group]),
        ("weight", [weight]),
        ("drop", drop),
        ("keep", keep),
        ("categorical", categorical),
    ):
        for name in names:
            if name is not None and name not in frame.columns:
                raise UserError(_no_column(role, name, frame.columns, table.name))
    if frame.width < 2:
        raise UserError(
            f"{table.name} has only one column, {frame.columns[0]!r}: there is nothing to predict "
            "the target from."
        )
    frame = _with_target(frame, target, group, notes)
    if frame.height < FEWEST_ROWS:
        raise UserError(
            f"{table.name} has {_rows(frame.height)} with a target: too few to learn from and to "
            "test on."
        )
    y, task = _target(frame[target], task, notes)
    groups = None if group is None else _labels(frame[group])
    weights = None if weight is None else _weights(frame[weight], weight)
    others = {target, group, weight, *drop}
    columns, series = _features(
        frame.select([name for name in frame.columns if name not in others]),
        keep,
        categorical,
        notes,
    )
    if not columns:
        raise UserError(
            f"no column of {table.name} is left to predict {target!r} from. "
            + " ".join(f"{note}." for note in notes)
        )
    notes.extend(_about_groups(group, groups) if groups is not None else _possible_groups(series))
    return Design(
        pl.DataFrame(series), y, groups, weights, task, target, columns, notes, group, weight
    )


def features_of(
    frame: pl.DataFrame, columns: Sequence[Column], name: str
) -> tuple[pl.DataFrame, list[str]]:
    """The features of new rows, read as those of a model were."""
    missing = [column.name for column in columns if column.name not in frame.columns]
    if missing:
        raise UserError(
            f"{name} lacks {len(missing)} of the {len(columns)} columns that the model was fitted "
            f"on: {_listed(missing)}. "
            f"It has {_listed(frame.columns)}."
        )
    notes: list[str] = []
    series = [
        _as_category(frame[c.name]) if c.kind == CATEGORY else _as_number(frame[c.name], notes)
        for c in columns
    ]
    return pl.DataFrame(series), notes


def _no_column(role: str, name: str, columns: Sequence[str], table: str) -> str:
    near = difflib.get_close_matches(name, columns, n=1, cutoff=0.6) or [
        c for c in columns if c.lower() == name.lower()
    ]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{table} has no column {name!r} (--{role}). Its columns are {_listed(columns, 12)}.{hint}"
    )


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


# ---- target, groups, weights ---------------------------------------------------------------------


def _with_target(
    frame: pl.DataFrame, target: str, group: str | None, notes: list[str]
) -> pl.DataFrame:
    """Rows whose target (and group) is known."""
    for name, what in ((target, "target"), (group, "group")):
        if name is None:
            continue
        unknown = frame[name].is_null() | (
            frame[name].is_nan() if frame[name].dtype.is_float() else False
        )
        count = int(unknown.sum())
        if count == frame.height:
            raise UserError(f"the {what} {name!r} is missing in every row.")
        if count:
            notes.append(
                f"{_rows(count)} without a {what} {'was' if count == 1 else 'were'} left out"
            )
            frame = frame.filter(~unknown)
    return frame


def _target(series: pl.Series, task: str, notes: list[str]) -> tuple[np.ndarray, str]:
    """The target as labels or numbers, and which of the two."""
    name = series.name
    numbers = _numbers(series)
    if numbers is None and _kind(series) == DATE:
        raise UserError(
            f"the target {name!r} holds dates: turn them into numbers or classes first."
        )
    distinct = series.n_unique()
    if distinct < 2:
        raise UserError(
            f"the target {name!r} has one value only, {series[0]!r}: there is nothing to tell "
            "apart."
        )
    if task == "regression" and numbers is None:
        raise UserError(
            f"the target {name!r} must be numbers for --task regression, got values such as "
            f"{str(series[0])!r}."
        )
    whole = numbers is not None and bool(np.all(numbers == np.round(numbers)))
    if task == "auto":
        few = distinct == 2 or (whole and distinct <= min(CONTINUOUS_ABOVE, series.len() // 2))
        task = "classification" if numbers is None or few else "regression"
        if numbers is not None and task == "regression":
            notes.append(
                f"the target {name!r} looks continuous ({distinct:,} distinct numbers): "
                "regression (else --task classification)"
            )
        elif numbers is not None and distinct > 2:
            notes.append(
                f"the target {name!r} has {distinct} distinct whole numbers: classes (else --task "
                "regression)"
            )
    if task == "regression":
        assert numbers is not None
        if not np.all(np.isfinite(numbers)):
            raise UserError(f"the target {name!r} holds infinite numbers: leave these rows out.")
        return numbers, task
    if distinct > series.len() / 2:
        advice = (
            "--task regression, if it is a quantity"
            if numbers is not None
            else "--target with another column"
        )
        raise UserError(
            f"the target {name!r} has {distinct:,} classes in {_rows(series.len())}: too few rows "
            "of each to learn from and to test. "
            f"Is it an identifier? Use {advice}."
        )
    labels = numbers.astype(np.int64) if whole and numbers is not None else _labels(series)
    if np.sum(np.unique(labels, return_counts=True)[1] > 1) < 2:
        raise UserError(
            f"the target {name!r} has fewer than two classes of more than one row: too few to "
            "learn from and to test on."
        )
    return labels, task


def _numbers(series: pl.Series) -> np.ndarray | None:
    """All values as floats, None if one of them is no number; nothing is missing here."""
    if series.dtype == pl.Boolean:
        return None
    if series.dtype.is_numeric():
        return series.cast(pl.Float64).to_numpy()
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return None
    text = series.cast(pl.String).str.strip_chars()
    values = text.cast(pl.Float64, strict=False)
    if values.null_count():
        values = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    return (
        None
        if values.null_count() or not all(NUMBER.match(value) for value in text.unique())
        else values.to_numpy()
    )


def _labels(series: pl.Series) -> np.ndarray:
    """Values as strings, whole numbers as such."""
    if series.dtype.is_integer():
        return series.to_numpy()
    return np.array(series.cast(pl.String).str.strip_chars().to_list(), dtype=np.str_)


def _about_groups(name: str | None, groups: np.ndarray) -> list[str]:
    return [f"{len(np.unique(groups)):,} groups in {name!r}: rows of one group are tested together"]


def _possible_groups(features: Sequence[pl.Series]) -> list[str]:
    """A word about features that seem to name what rows belong to.

    Tested apart, rows of one subject give its labels away.
    """
    return [
        f"{values.name!r} is used as a feature; if rows that share its value belong together, "
        f"--group {values.name} tests them together, "
        "and held-out scores are not too good"
        for values in features
        if GROUP_NAME.match(values.name) and 2 < values.n_unique() <= values.len() / 2
    ]


def _weights(series: pl.Series, name: str) -> np.ndarray:
    values = None if series.null_count() else _numbers(series)
    if values is None:
        raise UserError(
            f"the weights {name!r} must be numbers in every row, got missing or other values."
        )
    if np.any(values < 0) or not np.all(np.isfinite(values)) or not np.any(values > 0):
        raise UserError(
            f"the weights {name!r} must be finite, not negative and not all zero, got values from "
            f"{values.min():g} to {values.max():g}."
        )
    return values


# ---- features ------------------------------------------------------------------------------------


def _features(
    frame: pl.DataFrame, keep: Sequence[str], categorical: Sequence[str], notes: list[str]
) -> tuple[list[Column], list[pl.Series]]:
    columns: list[Column] = []
    series: list[pl.Series] = []
    dates: list[str] = []
    nested: list[str] = []
    mixed: list[str] = []
    left_out: dict[str, list[str]] = {}
    for values in frame:
        kind = CATEGORY if values.name in categorical else _kind(values)
        if kind in (DATE, NESTED):
            (dates if kind == DATE else nested).append(values.name)
            continue
        typed = _as_category(values) if kind == CATEGORY else _as_number(values, mixed)
        if kind == CATEGORY and (example := _with_unit(values)):
            mixed.append(
                f"{values.name!r} holds numbers with a unit ({example}), which are taken for "
                "text: write them without it"
            )
        reason = _left_out(values, typed, kind)
        if reason and values.name not in keep:
            left_out.setdefault(reason, []).append(values.name)
            continue
        columns.append(Column(values.name, kind if kind != EMPTY else NUMBERS))
        series.append(typed)
    if dates:
        raise UserError(
            f"{_listed(dates)} {_holds(dates)} dates, which are no features as they stand: turn "
            "them into numbers (an age in days, the "
            f"month) or leave them out with {' '.join(f'--drop {name}' for name in dates[:3])}."
        )
    if nested:
        raise UserError(
            f"{_listed(nested)} {_holds(nested)} lists or structures: flatten them, or leave them "
            "out with --drop."
        )
    notes.extend(mixed)
    notes.extend(f"left out: {_listed(names)} ({reason})" for reason, names in left_out.items())
    gaps = sum(int(values.null_count()) for values in series if values.dtype.is_numeric())
    gaps += sum(int((values == ABSENT).sum()) for values in series if values.dtype == pl.String)
    if gaps:
        share = gaps / (len(series) * frame.height)
        notes.append(
            f"{gaps:,} missing values ({share:.1%}): medians and a mark for numbers, a category "
            "of their own for categories"
        )
    return columns, series


def _with_unit(values: pl.Series) -> str | None:
    """An example of numbers with the same unit behind all of them.

    Text as it stands, but hardly meant so.
    """
    text = values.cast(pl.String).drop_nulls().str.strip_chars()
    parts = [NUMBER_UNIT.match(value) for value in text.unique(maintain_order=True)]
    units = {part[1] if part else None for part in parts}
    return repr(text[0]) if len(parts) > 2 and len(units) == 1 and None not in units else None


def _holds(names: Sequence[str]) -> str:
    return "holds" if len(names) == 1 else "hold"


def _kind(series: pl.Series) -> str:
    """What a column holds, by its type or, for text, its values."""
    dtype = series.dtype
    if dtype.is_temporal():
        return DATE
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return NESTED
    if series.null_count() == series.len():
        return EMPTY
    if dtype.is_numeric() or dtype == pl.Boolean or _plain_numbers(series) is not None:
        return NUMBERS
    values = series.cast(pl.String).drop_nulls().str.strip_chars()
    values = values.filter(~values.is_in(list(MISSING)))
    if not values.len():
        return EMPTY
    if sum(bool(DATE_TEXT.match(value)) for value in values.head(1000)) > 0.9 * min(
        values.len(), 1000
    ):
        return DATE
    if _decimal_comma(values):
        return NUMBERS
    if _ambiguous_comma(values):
        example = values.filter(values.str.contains(",", literal=True))[0]
        raise UserError(
            f"{series.name!r} has values such as {example!r}, which could be "
            f"{example.replace(',', '.')} or {example.replace(',', '')}: "
            "write them with a point or without commas, or leave the column out with --drop "
            f"{series.name}."
        )
    return (
        NUMBERS
        if values.cast(pl.Float64, strict=False).is_not_null().mean() >= MOSTLY
        else CATEGORY
    )  # type: ignore[operator]


def _plain_numbers(series: pl.Series) -> pl.Series | None:
    """Text as floats, None unless every value is one as it stands.

    Soon known, and true of nearly all columns of a wide table.
    """
    values = series.cast(pl.String).cast(pl.Float64, strict=False)
    return values if values.null_count() == series.null_count() else None


def _decimal_comma(values: pl.Series) -> bool:
    """Whether the commas in these values can only be decimal ones."""
    with_comma = values.filter(values.str.contains(",", literal=True))
    plain = values.filter(~values.str.contains(",", literal=True))
    if not with_comma.len() or not bool(with_comma.str.contains(DECIMAL_COMMA).all()):
        return False
    return (
        not bool(with_comma.str.contains(THOUSANDS).all())
        and plain.cast(pl.Float64, strict=False).null_count() == 0
    )


def _ambiguous_comma(values: pl.Series) -> bool:
    """Whether all values are numbers, if only one knew what their commas mean."""
    with_comma = values.filter(values.str.contains(",", literal=True))
    plain = values.filter(~values.str.contains(",", literal=True))
    return (
        bool(with_comma.len() and with_comma.str.contains(THOUSANDS).all())
        and plain.cast(pl.Float64, strict=False).null_count() == 0
    )


def _as_number(series: pl.Series, notes: list[str]) -> pl.Series:
    """Floats, with null for what is no finite number.

    Told where that is more than the usual marks of a missing value.
    """
    if series.dtype == pl.Boolean or series.dtype.is_numeric():
        values = series.cast(pl.Float64)
    elif (plain := _plain_numbers(series)) is not None:
        values = plain
    else:
        text = series.cast(pl.String).str.strip_chars()
        text = text.set(text.is_in(list(MISSING)), None)
        if _decimal_comma(text.drop_nulls()):
            notes.append(f"{series.name!r} has decimal commas")
            text = text.str.replace(",", ".", literal=True)
        values = text.cast(pl.Float64, strict=False)
        others = text.filter(values.is_null() & text.is_not_null())
        if others.len():
            examples = ", ".join(
                repr(value) for value in others.unique(maintain_order=True).head(3)
            )
            notes.append(
                f"{others.len():,} values of {series.name!r} are no numbers ({examples}) and "
                "count as missing"
            )
    if not values.null_count() and values.is_finite().all():
        return values
    infinite = values.is_infinite() & values.is_not_null()
    if infinite.any():
        notes.append(f"{int(infinite.sum()):,} infinite values of {series.name!r} count as missing")
    usable = values.is_finite().fill_null(False)
    return pl.select(pl.when(usable).then(values).otherwise(None)).to_series().alias(series.name)


def _as_category(series: pl.Series) -> pl.Series:
    """Strings, with a category of its own for what is missing."""
    if series.dtype.is_float():  # 1.0 and 1 are one category
        whole = series.drop_nulls().drop_nans()
        series = (
            series.cast(pl.Int64)
            if whole.len() and bool((whole == whole.round(0)).all()) and not series.is_nan().any()
            else series
        )
    text = series.cast(pl.String).str.strip_chars()
    return (
        text.set(text.is_in(list(MISSING)).fill_null(True), ABSENT)
        .fill_null(ABSENT)
        .alias(series.name)
    )


def _left_out(values: pl.Series, typed: pl.Series, kind: str) -> str | None:
    """Why a column is of no use, None if it is."""
    if kind == EMPTY or typed.null_count() == typed.len():
        return "no values"
    distinct = typed.drop_nulls().n_unique()
    if distinct == 1 and not typed.null_count():
        return "the same value in every row"
    if kind == CATEGORY:
        many = distinct > TEXT_LEVELS and distinct > TEXT_SHARE * typed.len()
        return (
            "nearly every value is different: text or an identifier; --keep brings it back"
            if many
            else None
        )
    if distinct < typed.len() or typed.len() < 10 or values.dtype.is_float():
        return None
    numbers = typed.to_numpy()
    if np.any(numbers != np.round(numbers)):
        return None
    counts_up = bool(np.all(np.diff(numbers) == 1))
    if counts_up or ID_NAME.match(values.name):
        return "looks like an identifier: whole numbers, all different; --keep brings it back"
    return None


__all__ = ["ABSENT", "Column", "Design", "design", "features_of"]
