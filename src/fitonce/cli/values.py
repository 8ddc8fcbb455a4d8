"""The values of a column as numbers, categories or dates, and how they are told apart.

What a column is (its kind, the format of its dates and numbers) is decided once, and kept in the
model file, so that later rows are read alike.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from ..estimators.confounding import DATE_TEXT
from .errors import UserError
from .words import Remarks, counted, examples, option

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
SENTINELS: list[int] = [
    sign * (10**digits - 1) for digits in range(2, 6) for sign in (-1, 1)
]  # 99, 999, …


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
