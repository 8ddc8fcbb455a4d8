"""What each column of a table is used for, and its values as numbers or categories.

Whatever is learned from rows (medians, means, the list of categories) is left to the pipeline,
which cross-validation refits in every training set. What a column is (its kind, the format of its
dates and numbers) is decided once, and kept in the model file, so that later rows are read alike.
"""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..estimators.confounding import DATE_TEXT
from .errors import UserError, one_of
from .table import LARGEST_WHOLE, Table

TASKS = ("auto", "classification", "regression")
FEWEST_ROWS = 4
CONTINUOUS_ABOVE = 20  # a target with more distinct numbers than this is a regression target
MOST_CLASSES = 100  # without being asked for: more take many minutes
ROW = "\ufdd0row"  # a column of row numbers; starts with a noncharacter, as no other name does
ABSENT = "(missing)"  # the category of a missing value
NUMBER, CATEGORY, DATE, NESTED, EMPTY, DAYS = (
    "number",
    "category",
    "date",
    "nested",
    "empty",
    "days",
)
WHEN = pl.col("when")
PARTS = {  # of a date
    "year": WHEN.dt.year(),
    "month": WHEN.dt.month(),
    "weekday": WHEN.dt.to_string("%A"),
    DAYS: WHEN.dt.epoch("s") / 86_400,
    "hour": WHEN.dt.hour() + WHEN.dt.minute() / 60,
}
DAY, CLOCK = r"^\s*([^ T]+)", r"[ T](\d{1,2}):(\d{2})"
FORMS = [  # of dates; "%Y" would take two digits as well
    form.format(mark)
    for mark in "-/."
    for form in (
        "%d{0}%m{0}%y",
        "%m{0}%d{0}%y",
        "%d{0}%m{0}%Y",
        "%m{0}%d{0}%Y",
        "%Y{0}%m{0}%d",
    )
]
SWAPPED = str.maketrans("dm", "md")
MOSTLY_DATES = 0.9  # share of dates in a column of dates
MOSTLY = 0.8  # share of numbers above which the other values of a column count as missing
LARGEST = 1e100  # larger numbers cannot be squared and summed, and count as missing
COMMA = ","  # the format of numbers with decimal commas
SIGN, GAP = r"[%$€£¥]", r"'’ \u00a0\u202f"  # around numbers, and between their thousands
NUMBER_TEXT = (
    r"^[-+]?{sign}?\s?[-+]?(\d{{1,3}}([{gap}{group}]\d{{3}})+|\d+)?([{point}]\d*)?([eE][-+]?\d+)?"
    r"\s?{sign}?$"
)
WITH_POINT = NUMBER_TEXT.format(sign=SIGN, gap=GAP, group=",", point=".")
WITH_COMMA = NUMBER_TEXT.format(sign=SIGN, gap=GAP, group=".", point=",")
THOUSANDS = r"^\D*[1-9]\d{0,2},\d{3}\D*$"
TEXT_SHARE, TEXT_LEVELS = 0.5, 20  # a category column with more distinct values than both is text
DENSE = 2.0  # whole numbers that increase by less than this on average are row numbers
NEARLY_ALL = 0.9  # share of different values in a column of identifiers
ID_NAME = re.compile(
    r"(^|.*[_\s.-])(id|ids|idx|index|uuid|guid|key|nr|no|row|rowid|record|unnamed.*)$|.*[a-z]I[dD]$",
    re.IGNORECASE,
)
IDENTIFIER = "identifier"  # why columns that identify rows are left out
FEWEST_UNITS, MOST_LEVELS = 5, 10  # of units; of classes that are told from units
BY_CHANCE = 10  # times as many copies as by chance are no chance
MANY_ROWS = 30  # from which an order is told from chance
ALIKE = 0.8  # correlation of a target with that of the next row; 0 in shuffled rows
SENTINELS: list[int] = [
    sign * (10**digits - 1) for digits in range(2, 6) for sign in (-1, 1)
]  # 99, 999, …
COPY_ROWS = 10  # fewest rows in which a copy can be distinguished from chance
SAME_ORDER = 0.999999  # rank correlation from which a number counts as the target transformed
MOST_ALIKE = 3  # columns with a line each; the others are named together


# ---- words ---------------------------------------------------------------------------------------


class Remarks:
    """Lines in the order in which they came up; columns with the same remark share a line."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._said: dict[str, list[tuple[str, str]]] = {line: [] for line in lines}

    def add(self, line: str) -> None:
        self._said.setdefault(line, [])

    def about(self, name: str, text: str, kind: str | None = None) -> None:
        """Add a remark about a column; texts of one kind stand together."""
        self._said.setdefault(text if kind is None else kind, []).append((name, text))

    @property
    def lines(self) -> list[str]:
        return [line for key, said in self._said.items() for line in _lines(key, said)]


def _lines(key: str, said: list[tuple[str, str]]) -> list[str]:
    """The remarks of one kind: in one line if they are equal, else the first ones."""
    if not said:
        return [key]
    if len({text for _, text in said}) == 1:
        return [f"{listed([name for name, _ in said])}: {said[0][1]}"]
    lines = [f"{name!r}: {text}" for name, text in said[:MOST_ALIKE]]
    others = [name for name, _ in said[MOST_ALIKE:]]
    return [*lines, f"{listed(others)}: the same"] if others else lines


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in quotes; only the first ones if there are many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(count: int, what: str = "row") -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def option(name: str, *values: str) -> str:
    """An option that can be pasted into a shell, repeated for each value."""
    return " ".join(f"--{name} {quoted(value)}" for value in values)


def quoted(value: str) -> str:
    """A word of a command line, in double quotes, which all shells understand, if that is
    enough.
    """
    if re.fullmatch(r"[\w.,:/+@%=-]+", value):
        return value
    return shlex.quote(value) if re.search(r'["$`\\!]', value) else f'"{value}"'


def examples(values: pl.Series) -> str:
    """The first three distinct values."""
    return ", ".join(repr(value) for value in values.unique(maintain_order=True).head(3))


# ---- the table and its columns -------------------------------------------------------------------


@dataclass(frozen=True)
class Feature:
    """A feature of a model, or a confound, and how its values are obtained from a column."""

    name: str
    kind: str  # NUMBER, CATEGORY or one of PARTS
    source: str
    format: str | None = None  # of dates in text; COMMA for numbers with decimal commas

    @property
    def is_category(self) -> bool:
        return self.kind in (CATEGORY, "weekday")

    def values(self, frame: pl.DataFrame, remarks: Remarks) -> pl.Series:
        """Floats with null for missing values, or strings."""
        column = frame[self.source]
        if self.kind == NUMBER:
            return as_number(column, remarks, self.format == COMMA)
        if self.kind == CATEGORY:
            return as_text(column).fill_null(ABSENT)
        when = pl.DataFrame({"when": moments(column, self.format)})
        part = when.select(PARTS[self.kind]).to_series().alias(self.name)
        return part.fill_null(ABSENT) if self.is_category else part.cast(pl.Float64)

    @property
    def identity(self) -> dict[str, str]:
        """What a model file stores about it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


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
    remarks = Remarks(table.notes)
    frame = table.frame.with_row_index(ROW, offset=1)
    needed = {"target": [target], "group": uses["group"], "confound": confound}
    for role, name in ((role, name) for role, names in needed.items() for name in names):
        frame = _known_rows(frame, name, role, remarks)
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
    adjusting = [_confound(frame[name], name in wishes["categorical"]) for name in confound]
    hints = [*about_copies(target, y, task, X), *about_units(target, y, X)]
    hints += _about_order(y, task, X, features)
    if group is None:
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


# ---- numbers and categories ----------------------------------------------------------------------


def kind_of(series: pl.Series) -> str:
    """The type of a column, from its dtype or, for text, from its values."""
    if series.null_count() == series.len():
        return EMPTY
    if series.dtype.is_temporal() and series.dtype != pl.Duration:
        return DATE
    if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object):
        return NESTED
    if series.dtype != pl.String or plain_numbers(series) is not None:
        return NUMBER
    values = series.drop_nulls()
    if holds_dates(values):
        return DATE
    signs = values.str.extract(f"({SIGN})").n_unique(), values.str.contains(SIGN).all()
    if signs[0] > 2 - signs[1]:  # of several currencies
        return CATEGORY
    gaps = min(_floats(values, comma).null_count() for comma in (False, True))
    return NUMBER if gaps <= (1 - MOSTLY) * values.len() else CATEGORY


def plain_numbers(series: pl.Series) -> pl.Series | None:
    """Text as floats, None unless every value is a plain number.

    A fast check that settles nearly all columns of a wide table.
    """
    values = series.cast(pl.Float64, strict=False)
    return values if values.null_count() == series.null_count() else None


def _floats(text: pl.Series, comma: bool) -> pl.Series:
    """Text as floats, null if it is not a number; currencies, percent signs and the marks between
    thousands are left out.
    """
    group, point = (".", COMMA) if comma else (COMMA, ".")
    bare = text.str.replace_all(f"{SIGN}|[{GAP}{group}]", "").str.replace(point, ".", literal=True)
    fits = text.str.contains(WITH_COMMA if comma else WITH_POINT).fill_null(False)
    return bare.zip_with(fits, text).cast(pl.Float64, strict=False)


def has_decimal_commas(series: pl.Series) -> bool:
    """Whether commas in the numbers of a column stand before decimals, not between thousands."""
    if series.dtype != pl.String or plain_numbers(series) is not None:
        return False
    numbers = series.filter(series.str.contains(f"{WITH_POINT}|{WITH_COMMA}"))
    if numbers.str.contains(r",.*[.,]").any():
        return False
    if numbers.str.contains(r"\..*[.,]").any():
        return True
    commas = numbers.filter(numbers.str.contains(COMMA, literal=True))
    if not commas.str.contains(THOUSANDS).all():
        return True
    if commas.len() and not numbers.str.contains(".", literal=True).any():
        example = commas[0]
        raise UserError(
            f"{series.name!r} has values such as {example!r}, which could be "
            f"{example.replace(',', '.')} or {example.replace(',', '')}: "
            "write them with a decimal point or without commas, or leave out the column with "
            f"{option('drop', series.name)}."
        )
    return False


def as_number(series: pl.Series, remarks: Remarks, comma: bool = False) -> pl.Series:
    """Floats, with null for values that are not usable numbers.

    A remark is made if these are more than the usual codes of missing values.
    """
    if series.dtype == pl.Duration:
        values = series.dt.total_microseconds().cast(pl.Float64) / 86_400e6  # days
    else:
        known = series.cast(pl.String) if series.dtype.is_temporal() else series
        plain = plain_numbers(known)
        values = _parsed(known, remarks, comma) if plain is None else plain
    finite = values.is_finite()
    infinite, huge = values.is_infinite(), finite & (values.abs() > LARGEST)
    if infinite.any():
        said = f"{counted(int(infinite.sum()), 'infinite value')}, treated as missing"
        remarks.about(series.name, said, "infinite")
    if huge.any():
        many = f"{counted(int(huge.sum()), 'number')} beyond {LARGEST:g}"
        remarks.about(series.name, f"{many}, too large to compute with, treated as missing", "huge")
    usable = finite & ~huge
    return values if usable.all() else values.set(~usable, None)


def _parsed(text: pl.Series, remarks: Remarks, comma: bool) -> pl.Series:
    """Text as floats, null for what is not a number."""
    values = _floats(text, comma)
    if comma:
        remarks.about(text.name, "decimal commas")
    elif values.null_count() < text.cast(pl.Float64, strict=False).null_count():
        remarks.about(text.name, "numbers with currency or percent signs, or marked thousands")
    others = text.filter(values.is_null() & text.is_not_null())
    if others.len():
        said = (
            f"{counted(others.len(), 'non-numeric value')} ({examples(others)}), treated as missing"
        )
        remarks.about(text.name, said, "no number")
    return values


def sentinel(values: pl.Series) -> int | None:
    """A repeated number such as -999 that lies far from all others, and may stand for missing."""
    for code in SENTINELS if values.dtype.is_numeric() else ():
        others = values.filter(values != code).to_numpy()
        if len(others) and len(others) < values.drop_nulls().len() - 1:
            low, high = float(others.min()), float(others.max())
            if max(low - code, code - high) > high - low > 0:
                return code
    return None


def all_numbers(series: pl.Series) -> np.ndarray | None:
    """All values as floats, None if one of them is not a number; nothing is missing here."""
    if series.dtype.is_numeric():
        return series.cast(pl.Float64).to_numpy()
    if series.dtype != pl.String or series.str.contains(r"(?i)^[-+]?nan$").any():
        return None
    values = plain_numbers(series)
    if values is None and kind_of(series) == NUMBER:
        values = _floats(series, has_decimal_commas(series))
    return None if values is None or values.null_count() else values.to_numpy()


def as_text(series: pl.Series) -> pl.Series:
    return series.cast(pl.String).str.strip_chars()


def labels(series: pl.Series) -> np.ndarray:
    """Values as strings, whole numbers as they are."""
    if series.dtype.is_integer():
        return series.to_numpy()
    return np.array(as_text(series).to_list(), dtype=np.str_)


# ---- dates ---------------------------------------------------------------------------------------


def holds_dates(text: pl.Series) -> bool:
    """Whether nearly all of the given values look like dates."""
    first = text.head(1000)
    return sum(bool(DATE_TEXT.match(value)) for value in first) > MOSTLY_DATES * first.len()


def format_of(series: pl.Series) -> tuple[str | None, bool]:
    """The format of dates in text, None if they are not text; and whether day and month could also
    be swapped.
    """
    if series.dtype != pl.String:
        return None, False
    days = series.str.extract(DAY, 1).unique()
    gaps = {form: days.str.to_date(form, strict=False).null_count() for form in FORMS}
    best = min(gaps, key=gaps.__getitem__)
    return best, gaps[best] == gaps.get(best.translate(SWAPPED))


def moments(series: pl.Series, form: str | None) -> pl.Series:
    """Dates, times and text as dates with a time of day; null where there is none."""
    if series.dtype == pl.Time:
        return pl.select(pl.date(1970, 1, 1).dt.combine(pl.lit(series))).to_series()
    if series.dtype.is_temporal():
        return series.cast(pl.Datetime("us")).dt.replace_time_zone(None)
    text = series.cast(pl.String)
    days = text.str.extract(DAY, 1).str.to_date(form or "%Y-%m-%d", strict=False)
    hours, minutes = (
        text.str.extract(CLOCK, i).cast(pl.Int64, strict=False).fill_null(0) for i in (1, 2)
    )
    clock = (60_000_000 * (60 * hours + minutes)).cast(pl.Duration("us"))
    return days.cast(pl.Datetime("us")) + clock


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


# ---- target, weights, confounds ------------------------------------------------------------------


def target_of(series: pl.Series, task: str, remarks: Remarks) -> tuple[np.ndarray, str]:
    """The target as labels or numbers, and which of the two it is."""
    said = f"the target {series.name!r}"
    numbers, distinct = all_numbers(series), series.n_unique()
    if numbers is None and kind_of(series) == DATE:
        raise UserError(f"{said} contains dates: convert them to numbers or classes first.")
    if distinct < 2:
        raise UserError(f"{said} has only one value, {series[0]!r}: there is nothing to predict.")
    infinite = 0 if numbers is None else int(np.sum(~np.isfinite(numbers)))
    if infinite:
        raise UserError(
            f"{said} is infinite in {counted(infinite)}: leave these rows out, or mark the value "
            "as missing (NA)."
        )
    whole = numbers is not None and bool(
        np.all((numbers == np.round(numbers)) & (np.abs(numbers) < LARGEST_WHOLE))
    )
    asked = task != "auto"
    if not asked and numbers is not None:
        few = distinct == 2 or (whole and distinct <= min(CONTINUOUS_ABOVE, series.len() // 2))
        task = "classification" if few else "regression"
        if task == "regression":
            remarks.add(
                f"{said} looks continuous ({distinct:,} distinct numbers): regression (change with "
                "--task classification)"
            )
        elif distinct > 2:
            remarks.add(
                f"{said} has {distinct} distinct whole numbers: classification (change with --task "
                "regression)"
            )
    if task == "regression":
        if numbers is None:
            raise UserError(
                f"{said} must be numeric for --task regression, got values such as "
                f"{str(series[0])!r}."
            )
        return numbers, task
    _check_classes(series, numbers is not None, distinct, asked)
    found = numbers.astype(np.int64) if whole and numbers is not None else labels(series)
    if np.sum(np.unique(found, return_counts=True)[1] > 1) < 2:
        raise UserError(
            f"{said} has fewer than two classes with more than one row: too few to train and test "
            "a model."
        )
    return found, "classification"


def _check_classes(series: pl.Series, quantity: bool, distinct: int, asked: bool) -> None:
    """Refuse a target with too many classes to be one."""
    said = f"the target {series.name!r} has {distinct:,} classes"
    if distinct > series.len() / 2:
        advice = "--task regression, if it is a quantity" if quantity else "another --target"
        raise UserError(
            f"{said} in {counted(series.len())}: each class has too few "
            f"rows to train and test a model. Is it an identifier? Use {advice}."
        )
    if distinct > MOST_CLASSES and not asked:
        raise UserError(
            f"{said}, which can take many minutes: say --task classification if that is meant, "
            "preferably with --effort fast and --permutations 0."
        )


def weights_of(series: pl.Series) -> np.ndarray:
    """Finite weights that are not negative, and not all zero."""
    values = None if series.null_count() else all_numbers(series)
    said = f"the weights {series.name!r} must be"
    if values is None:
        raise UserError(f"{said} numbers in every row, got missing or non-numeric values.")
    if np.any(values < 0) or not np.all(np.isfinite(values)) or not np.any(values > 0):
        raise UserError(
            f"{said} finite, not negative and not all zero, got values from {values.min():g} to "
            f"{values.max():g}."
        )
    return values


def _confound(series: pl.Series, is_category: bool) -> Feature:
    """How a confound is read: as numbers, as days, or as a category if it is neither or the user
    declared it categorical.
    """
    name, kind = series.name, CATEGORY if is_category else kind_of(series)
    if kind != DATE:
        number = kind == NUMBER and all_numbers(series) is not None
        comma = number and has_decimal_commas(series)
        return Feature(name, NUMBER if number else CATEGORY, name, COMMA if comma else None)
    form, unsure = format_of(series)
    if unsure:
        raise UserError(
            f"the confound {name!r} has dates such as {series[0]!r}, whose order of day and month "
            "is not known: write them as 2024-12-31, or declare the column --categorical, if each "
            "date is a level."
        )
    return Feature(name, DAYS, name, form)


def confounds_of(table: Table, confounds: Sequence[Feature]) -> pl.DataFrame | None:
    """The values of confounds, which must be known in every row; None if there are none."""
    remarks, columns = Remarks(), []
    for feature in confounds:
        if feature.source not in table.frame.columns:
            raise UserError(
                f"{table.name} has no column {feature.source!r}. The model was fitted with it as a "
                "confound and needs it for every row."
            )
        values = feature.values(table.frame, remarks)
        unknown = int(values.is_in([ABSENT]).sum()) if feature.is_category else values.null_count()
        if unknown:
            wanted = {DAYS: "dates", NUMBER: "numbers"}.get(feature.kind, "a value")
            raise UserError(
                f"the confound {feature.name!r} of {table.name} must have {wanted} in every row, "
                f"as in the table of the model, but {unknown:,} have none: fill them in, or leave "
                "these rows out."
            )
        columns.append(values.cast(pl.Categorical) if feature.is_category else values)
    return pl.DataFrame(columns) if columns else None


# ---- what may make the scores worthless ----------------------------------------------------------


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


def _about_order(
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
    return [
        f"{' and '.join(why)}: if they follow each other in time, shuffled folds make the scores "
        "too optimistic for later rows"
    ] * bool(why)
