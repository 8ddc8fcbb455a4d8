"""The values of a column as numbers, categories or dates, and how they are told apart; the target,
weights and confounds.

What a column is (its kind, the format of its dates and numbers) is decided once, and kept in the
model file, so that later rows are read alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from ..estimators.confounding import DATE_TEXT
from .table import LARGEST_WHOLE, Table
from .words import Remarks, UserError, counted, examples, option, refuse

ABSENT = "(missing)"  # the category of a missing value
NUMBER, CATEGORY, DATE, NESTED, EMPTY = "number", "category", "date", "nested", "empty"
DAYS = "days"  # since 1970
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
MONEY = r"[$€£¥]"
SIGN, GAP = r"[%$€£¥]", r"'’ \u00a0\u202f"  # around numbers, and between their thousands
NUMBER_TEXT = (
    r"^[-+]?{sign}?\s?[-+]?([1-9]\d{{0,2}}([{gap}{group}]\d{{3}})+|\d+)?([{point}]\d*)?"
    r"([eE][-+]?\d+)?"
    r"\s?{sign}?$"
)
WITH_POINT = NUMBER_TEXT.format(sign=SIGN, gap=GAP, group=",", point=".")
WITH_COMMA = NUMBER_TEXT.format(sign=SIGN, gap=GAP, group=".", point=",")
SENTINELS: list[int] = [
    sign * (10**digits - 1) for digits in range(2, 6) for sign in (-1, 1)
]  # 99, 999, …
ORDERS = (  # of categories that have one
    ("very low", "low", "medium", "moderate", "high", "very high"),
    ("none", "mild", "moderate", "severe"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("small", "medium", "large"),
    ("poor", "fair", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
)
SPANS = 5  # of time, each predicted from the rows before it
CONTINUOUS_ABOVE = 20  # a target with more distinct numbers than this is a regression target
COUNTS_ABOVE = 5  # whole numbers with more values, one of them in few rows, are counts
FEWEST, RAREST = 3, 0.01  # rows of a class, and their share
MOST_CLASSES = 100  # without being asked for: more take many minutes


@dataclass(frozen=True)
class Feature:
    """A feature of a model, or a confound, and how its values are obtained from a column."""

    name: str
    kind: str  # NUMBER, CATEGORY or one of PARTS
    source: str
    format: str | None = None  # of dates in text; COMMA for numbers with decimal commas
    levels: Sequence[str] = ()  # of ordered categories, which are numbers: their places

    @property
    def is_category(self) -> bool:
        return self.kind in (CATEGORY, "weekday")

    def values(self, frame: pl.DataFrame, remarks: Remarks) -> pl.Series:
        """Floats with null for missing values, or strings."""
        column = frame[self.source]
        if self.levels:
            places, others = levelled(column, self.levels)
            if others.len():
                said = f"{examples(others)}: none of its levels, treated as missing"
                remarks.about(self.source, said)
            return places.to_physical().cast(pl.Float64)
        if self.kind == NUMBER:
            return as_number(column, remarks, self.format == COMMA)
        if self.kind == CATEGORY:
            return as_text(column).fill_null(ABSENT)
        when = pl.DataFrame({"when": moments(column, self.format)})
        part = when.select(PARTS[self.kind]).to_series().alias(self.name)
        return part.fill_null(ABSENT) if self.is_category else part.cast(pl.Float64)

    @property
    def identity(self) -> dict[str, Any]:
        """What a model file stores about it."""
        return {name: value for name, value in asdict(self).items() if value}


def feature_of(series: pl.Series, kind: str) -> Feature:
    """A column of numbers, or of categories, as a feature; those with an order are numbers."""
    if kind == NUMBER and isinstance(series.dtype, pl.Enum):
        return Feature(series.name, kind, series.name, levels=series.dtype.categories.to_list())
    comma = kind == NUMBER and has_decimal_commas(series)
    return Feature(series.name, kind, series.name, COMMA if comma else None)


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
    """Whether commas in the numbers of a column stand before decimals, not between thousands, from
    the numbers that can be read in one way only. Amounts of money have no three decimals.
    """
    if series.dtype != pl.String or plain_numbers(series) is not None:
        return False
    commas = series.str.contains(COMMA, literal=True)
    thousands, decimals = (series.str.contains(form) for form in (WITH_POINT, WITH_COMMA))
    if (thousands & commas & ~decimals).any():
        return False
    if (decimals & ~thousands).any():
        return True
    unsure = series.filter(thousands & commas)
    if unsure.len() and not series.str.contains(rf"{MONEY}|\.").any():
        example = unsure[0]
        raise UserError(
            f"{series.name!r} has values such as {example!r}, which could be "
            f"{example.replace(',', '.')} or {example.replace(',', '')}: "
            "write them with a decimal point or without commas, or leave out the column with "
            f"{option('drop', series.name)}."
        )
    return False


def numbers_of(series: pl.Series, comma: bool = False) -> pl.Series:
    """Floats, null for what is no number; durations are days."""
    if series.dtype == pl.Duration:
        return series.dt.total_microseconds().cast(pl.Float64) / 86_400e6
    known = series.cast(pl.String) if series.dtype.is_temporal() else series
    plain = plain_numbers(known)
    return _floats(known, comma) if plain is None else plain


def as_number(series: pl.Series, remarks: Remarks, comma: bool = False) -> pl.Series:
    """Floats, null for values that are not usable numbers; with remarks about these."""
    values = numbers_of(series, comma)
    others = series.filter(values.is_null() & series.is_not_null())
    infinite, huge = values.is_infinite(), values.is_finite() & (values.abs() > LARGEST)
    words = f"{counted(others.len(), 'non-numeric value')} ({examples(others)}), treated as missing"
    endless = f"{counted(int(infinite.sum() or 0), 'infinite value')}, treated as missing"
    far = f"{counted(int(huge.sum() or 0), 'number')} beyond {LARGEST:g}, too large to compute with"
    for told, said, kind in (
        (others.len() > 0, words, "no number"),
        (infinite.any(), endless, "infinite"),
        (huge.any(), f"{far}, treated as missing", "huge"),
    ):
        if told:
            remarks.about(series.name, said, kind)
    usable = values.is_finite() & ~huge
    return values if usable.all() else values.set(~usable, None)


def levelled(series: pl.Series, levels: Sequence[str]) -> tuple[pl.Series, pl.Series]:
    """A column as ordered categories, and the values that are none of the levels, which become
    null.
    """
    text = as_text(series)
    found = text.cast(pl.Enum(levels), strict=False)
    return found, text.filter(found.is_null() & text.is_not_null())


def order_of(series: pl.Series) -> list[str]:
    """The levels of a column in a common order such as low, medium, high; empty if they have
    none.
    """
    found = {level.lower(): level for level in as_text(series).drop_nulls().unique()}
    known = (order for order in ORDERS if len(found) > 2 and set(found) <= set(order))
    return [found[level] for level in next(known, ()) if level in found]


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
    text = series.dtype == pl.String
    if not series.dtype.is_numeric() and not (text and kind_of(series) == NUMBER):
        return None
    values = numbers_of(series, has_decimal_commas(series))
    return None if values.null_count() or values.is_nan().any() else values.to_numpy()


def as_text(series: pl.Series) -> pl.Series:
    return series.cast(pl.String).str.strip_chars()


def labels(series: pl.Series) -> np.ndarray:
    """Values as strings, whole numbers as they are."""
    if series.dtype.is_integer():
        return series.to_numpy()
    return np.array(as_text(series).to_list(), dtype=np.str_)


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


# ---- the columns beside the features -------------------------------------------------------------


def target_of(series: pl.Series, task: str, remarks: Remarks) -> tuple[np.ndarray, str]:
    """The target as labels or numbers, and which of the two it is."""
    said, n, distinct = f"the target {series.name!r}", series.len(), series.n_unique()
    numbers = all_numbers(series)
    values = np.zeros(1) if numbers is None else numbers
    infinite = int(np.sum(~np.isfinite(values)))
    refuse(
        (
            numbers is None and kind_of(series) == DATE,
            f"{said} contains dates: convert them to numbers or classes first.",
        ),
        (
            distinct < 2,
            f"{said} has only one value, {series[0]!r}: there is nothing to predict.",
        ),
        (
            infinite > 0,
            f"{said} is infinite in {counted(infinite)}: leave these rows out, or mark the value "
            "as missing (NA).",
        ),
        (
            numbers is None and task == "regression",
            f"{said} must be numeric for --task regression, got values such as {str(series[0])!r}.",
        ),
    )
    whole = bool(np.all((values == np.round(values)) & (np.abs(values) < LARGEST_WHOLE)))
    auto, rarest = task == "auto", series.value_counts()["count"].to_numpy().min()
    counts = distinct > COUNTS_ABOVE and rarest < max(FEWEST, RAREST * n)
    kind = "like counts" if whole and distinct <= CONTINUOUS_ABOVE else "continuous"
    if auto:
        few = (whole and distinct <= min(CONTINUOUS_ABOVE, n // 2) and not counts) or distinct == 2
        task = "classification" if few or numbers is None else "regression"
    if auto and numbers is not None and distinct > 2:
        remarks.add(
            f"{said} has {distinct} distinct whole numbers: classification (change with --task "
            "regression)"
            if task == "classification"
            else f"{said} looks {kind} ({distinct:,} distinct "
            "numbers): regression (change with --task classification)"
        )
    if task == "regression":
        return values, task
    found = values.astype(np.int64) if whole and numbers is not None else labels(series)
    rows = np.unique(found, return_counts=True)[1]
    said = f"{said} has {distinct:,} classes"
    advice = "another --target" if numbers is None else "--task regression, if it is a quantity"
    refuse(
        (
            distinct > n / 2,
            f"{said} in {counted(n)}: each class has too few rows to train and test a model. Is it "
            f"an identifier? Use {advice}.",
        ),
        (
            distinct > MOST_CLASSES and auto,
            f"{said}, which can take many minutes: say --task classification if that is meant, "
            "preferably with --effort fast and --permutations 0.",
        ),
        (
            np.sum(rows > 1) < 2,
            f"the target {series.name!r} has fewer than two classes with more than one row: too "
            "few to train and test a model.",
        ),
    )
    return found, task


def logarithm_of(target: str, y: np.ndarray, task: str) -> np.ndarray:
    wrong = task != "regression" or y.min() <= 0
    refuse((wrong, f"--log-target needs numbers above 0, which the target {target!r} has not."))
    return np.asarray(np.log(y))


def weights_of(series: pl.Series) -> np.ndarray:
    """Finite weights that are not negative, and not all zero."""
    numbers = None if series.null_count() else all_numbers(series)
    values = np.ones(1) if numbers is None else numbers
    said, fine = f"the weights {series.name!r} must be", np.isfinite(values) & (values >= 0)
    refuse(
        (numbers is None, f"{said} numbers in every row, got missing or non-numeric values."),
        (
            not fine.all() or not values.any(),
            f"{said} finite, not negative and not all zero, got values from {values.min():g} to "
            f"{values.max():g}.",
        ),
    )
    return values


def in_order(frame: pl.DataFrame, time: str) -> pl.DataFrame:
    """The rows of a table in the order of a column of dates or numbers."""
    feature = confound_of(frame[time], False, "time")
    values = feature.values(frame, Remarks())
    if feature.is_category or values.null_count():
        raise UserError(
            f"the time {time!r} must be a date or a number in every row, got values such as "
            f"{examples(frame[time].filter(values.is_null() | feature.is_category))}."
        )
    return frame[np.argsort(values.to_numpy(), kind="stable")]


def check_first_span(target: str, y: np.ndarray, task: str) -> None:
    """Refuse classes that come late: the first model learns from the earliest rows alone."""
    first = y[: len(y) // (SPANS + 1)]
    if task == "classification" and np.sum(np.unique(first, return_counts=True)[1] > 1) < 2:
        raise UserError(
            f"the first {counted(len(first))} of {len(y):,} have fewer than two classes of "
            f"{target!r} with more than one row: too few to predict the later rows. Leave out "
            "--time, or the first rows."
        )


def confound_of(series: pl.Series, is_category: bool, role: str = "confound") -> Feature:
    """How a confound is read: as numbers, as days, or as a category if it is neither or the user
    declared it categorical.
    """
    name, kind = series.name, CATEGORY if is_category else kind_of(series)
    if kind != DATE:
        number = kind == NUMBER and all_numbers(series) is not None
        return feature_of(series, NUMBER if number else CATEGORY)
    form, unsure = format_of(series)
    if unsure:
        level = "" if role == "time" else ", or use --categorical, if each date is a level"
        raise UserError(
            f"the {role} {name!r} has dates such as {series[0]!r}, whose order of day and month is "
            f"not known: write them as 2024-12-31{level}."
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
