"""The type of a column, and its values as numbers or categories.

Conversion works value by value, without a fit, so that later rows are converted the same way.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from .dates import holds_dates
from .errors import UserError
from .remarks import Remarks, counted, option
from .tables import MISSING, NUMBER

ABSENT = "(missing)"  # the category of a missing value
NUMBERS, CATEGORY, DATE, NESTED, EMPTY = "number", "category", "date", "nested", "empty"
MOSTLY = 0.8  # share of numbers above which the other values of a column count as missing
LARGEST = 1e100  # larger numbers cannot be squared and summed, and count as missing
TEXT_SHARE, TEXT_LEVELS = 0.5, 20  # a category column with more distinct values than both is text
DENSE = 2.0  # whole numbers that increase by less than this on average are row numbers
ID_NAME = re.compile(
    r"(^|.*[_\s.-])(id|ids|idx|index|uuid|guid|key|nr|no|row|rowid|record|unnamed.*)$|.*[a-z]I[dD]$",
    re.IGNORECASE,
)
IDENTIFIER = "identifier"  # why columns that identify rows are left out
NUMBER_UNIT = re.compile(r"^[-+]?\d+(?:[.,]\d+)?\s*([^\d\s].*)$")
DECIMAL_COMMA = r"^\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*$"
THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*$"
INFINITE = r"(?i)^[-+]?inf(inity)?$"
DECIMAL, AMBIGUOUS = "decimal", "ambiguous"  # what commas in numbers mean


def text_of(series: pl.Series) -> pl.Series:
    return series.cast(pl.String).str.strip_chars()


def _known_text(series: pl.Series) -> pl.Series:
    """Values as text, null for the usual codes of missing values."""
    return text_of(series).replace(MISSING, None)


def _floats(text: pl.Series) -> pl.Series:
    """Text as floats, null if it is not a number."""
    return text.cast(pl.Float64, strict=False)


def _with_points(text: pl.Series) -> pl.Series:
    return text.str.replace(",", ".", literal=True)


def examples(values: pl.Series) -> str:
    """The first three distinct values."""
    return ", ".join(repr(value) for value in values.unique(maintain_order=True).head(3))


def kind_of(series: pl.Series) -> str:
    """The type of a column, from its dtype or, for text, from its values."""
    dtype = series.dtype
    if dtype == pl.Duration:
        return NUMBERS
    if dtype.is_temporal():
        return DATE
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return NESTED
    if series.null_count() == series.len():
        return EMPTY
    if dtype.is_numeric() or dtype == pl.Boolean or plain_numbers(series) is not None:
        return NUMBERS
    values = _known_text(series).drop_nulls()
    if not values.len():
        return EMPTY
    if holds_dates(values):
        return DATE
    commas = _commas(values)
    if commas == AMBIGUOUS:
        example = values.filter(values.str.contains(",", literal=True))[0]
        raise UserError(
            f"{series.name!r} has values such as {example!r}, which could be "
            f"{example.replace(',', '.')} or {example.replace(',', '')}: "
            "write them with a decimal point or without commas, or leave out the column with "
            f"{option('drop', series.name)}."
        )
    share = 1 - _floats(values).null_count() / values.len()
    return NUMBERS if commas == DECIMAL or share >= MOSTLY else CATEGORY


def plain_numbers(series: pl.Series) -> pl.Series | None:
    """Text as floats, None unless every value is a plain number.

    A fast check that settles nearly all columns of a wide table.
    """
    values = _floats(series.cast(pl.String))
    return values if values.null_count() == series.null_count() else None


def _commas(values: pl.Series) -> str | None:
    """What the commas in numbers mean: decimal, ambiguous, or None if some values are not numbers
    or none has a comma.
    """
    comma = values.str.contains(",", literal=True)
    if not comma.any() or _floats(values.filter(~comma)).null_count():
        return None
    if values.filter(comma).str.contains(THOUSANDS).all():
        return AMBIGUOUS
    return DECIMAL if values.filter(comma).str.contains(DECIMAL_COMMA).all() else None


def as_number(series: pl.Series, remarks: Remarks) -> pl.Series:
    """Floats, with null for values that are not usable numbers.

    A remark is made if these are more than the usual codes of missing values.
    """
    if series.dtype == pl.Duration:
        values = series.dt.total_microseconds().cast(pl.Float64) / 86_400e6  # days
    elif series.dtype == pl.Boolean or series.dtype.is_numeric():
        values = series.cast(pl.Float64)
    else:
        plain = plain_numbers(series)
        values = _parsed(series, remarks) if plain is None else plain
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


def _parsed(series: pl.Series, remarks: Remarks) -> pl.Series:
    """Text as floats, with decimal commas, null for what is not a number."""
    text = _known_text(series)
    if _commas(text.drop_nulls()) == DECIMAL:
        remarks.about(series.name, "decimal commas")
        text = _with_points(text)
    values = _floats(text)
    others = text.filter(values.is_null() & text.is_not_null())
    if others.len():
        said = (
            f"{counted(others.len(), 'non-numeric value')} ({examples(others)}), treated as missing"
        )
        remarks.about(series.name, said, "no number")
    return values


def as_category(series: pl.Series) -> pl.Series:
    """Strings, with a separate category for missing values."""
    if series.dtype.is_float() and not series.is_nan().any():  # 1.0 and 1 are the same category
        known = series.drop_nulls()
        if known.len() and (known == known.round(0)).all():
            series = series.cast(pl.Int64)
    return _known_text(series).fill_null(ABSENT)


def with_unit(values: pl.Series) -> str | None:
    """An example if all values are numbers with the same unit.

    Such columns are text, but probably meant as numbers.
    """
    text = text_of(values.drop_nulls())
    parts = [NUMBER_UNIT.match(value) for value in text.unique(maintain_order=True)]
    units = {part[1] if part else None for part in parts}
    return repr(text[0]) if len(parts) > 2 and len(units) == 1 and None not in units else None


def why_useless(values: pl.Series, typed: pl.Series, kind: str) -> str | None:
    """Why a column is useless, None if it is useful."""
    if kind == EMPTY or typed.null_count() == typed.len():
        return "no values"
    n, distinct = typed.len(), typed.drop_nulls().n_unique()
    if distinct == 1 and not typed.null_count():
        return "the same value in every row"
    if kind == CATEGORY and distinct > max(TEXT_LEVELS, TEXT_SHARE * n):
        return f"nearly every value is different: text or an {IDENTIFIER}; use it with --keep"
    if kind == CATEGORY or distinct < n or n < 10 or values.dtype.is_float():
        return None
    if not (typed == typed.round()).all():
        return None
    if _row_numbers(typed):
        return f"row numbers, an {IDENTIFIER}; use them with --keep"
    if ID_NAME.match(values.name):
        return f"looks like an {IDENTIFIER}: whole numbers, all different; use it with --keep"
    return None


def _row_numbers(typed: pl.Series) -> bool:
    """Whole numbers that increase from row to row, with few gaps.

    Removed rows leave small gaps; a sorted quantity has wider ones.
    """
    steps = typed.diff().drop_nulls()
    return bool((steps > 0).all()) and float(typed[-1] - typed[0]) <= DENSE * steps.len()


def all_numbers(series: pl.Series) -> np.ndarray | None:
    """All values as floats, None if one of them is not a number; nothing is missing here."""
    if series.dtype.is_numeric():
        return series.cast(pl.Float64).to_numpy()
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return None
    text = text_of(series)
    values = _floats(_with_points(text))
    finite = text.filter(~text.str.contains(INFINITE)).unique()
    numbers = finite.len() and not values.null_count() and all(map(NUMBER.match, finite))
    return values.to_numpy() if numbers else None


def labels(series: pl.Series) -> np.ndarray:
    """Values as strings, whole numbers without decimals."""
    if series.dtype.is_integer():
        return series.to_numpy()
    return np.array(text_of(series).to_list(), dtype=np.str_)
