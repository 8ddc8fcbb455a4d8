"""Dates as numbers: the year, the month, the day of the week, days since the first, the hour.

The conversion works value by value once the format and the first day are known. A model file stores
both, so that later rows are converted the same way.
"""

from __future__ import annotations

import datetime

import polars as pl

from ..estimators.confounding import DATE_TEXT

DAY = r"^\s*([^ T]+)"
CLOCK = r"[ T](\d{1,2}):(\d{2})"
MOSTLY = 0.9  # share of dates in a column of dates
YEAR, MONTH, WEEKDAY, DAYS, HOUR = "year", "month", "weekday", "days", "hour"
PARTS = (YEAR, MONTH, WEEKDAY, DAYS, HOUR)
ZERO = datetime.timedelta(0)


def holds_dates(text: pl.Series) -> bool:
    """Whether nearly all of the given values look like dates."""
    first = text.head(1000)
    return sum(bool(DATE_TEXT.match(value)) for value in first) > MOSTLY * first.len()


def is_date(series: pl.Series) -> bool:
    """Whether a column without missing values has dates, as such or as text."""
    if series.dtype == pl.String:
        return holds_dates(series)
    return series.dtype.is_temporal() and series.dtype not in (pl.Duration, pl.Time)


def format_of(series: pl.Series) -> tuple[str | None, bool]:
    """The format of dates in text, None if they are not text; and whether day and month could also
    be swapped.
    """
    if series.dtype != pl.String:
        return None, False
    days = series.drop_nulls().str.extract(DAY, 1).drop_nulls()
    mark = next((mark for mark in "-/." if mark in days[0]), "-")
    if len(days[0].split(mark)[0]) == 4:
        return mark.join(("%Y", "%m", "%d")), False
    year = "%Y" if len(days[0].split(mark)[-1]) == 4 else "%y"
    forms = [mark.join((*order, year)) for order in (("%d", "%m"), ("%m", "%d"))]
    read = [days.str.to_date(form, strict=False).is_not_null().mean() for form in forms]
    assert isinstance(read[0], float) and isinstance(read[1], float)
    return forms[int(read[1] > read[0])], read[0] == read[1]


def first_day(series: pl.Series, form: str | None) -> str | None:
    """The earliest day, None if no value is a date."""
    if series.dtype == pl.Time:
        return None
    earliest = _days(series, form).min()
    return None if earliest is None else str(earliest)


def part_of(series: pl.Series, part: str, form: str | None, first: str | None) -> pl.Series:
    """One number for every date, or a name for the day of the week; missing if there is no date."""
    if part == HOUR:
        return _hours(series).cast(pl.Float64)
    days = _days(series, form)
    if part == DAYS:
        start = datetime.date.fromisoformat(first) - datetime.date(1970, 1, 1) if first else ZERO
        return (days.cast(pl.Int32) - start.days).cast(pl.Float64)
    if part == WEEKDAY:
        return days.dt.to_string("%A")
    return (days.dt.year() if part == YEAR else days.dt.month()).cast(pl.Float64)


def _days(series: pl.Series, form: str | None) -> pl.Series:
    if series.dtype == pl.Datetime or series.dtype == pl.Date:
        return series.cast(pl.Date)
    text = series.cast(pl.String).str.extract(DAY, 1)
    return text.str.to_date(form or "%Y-%m-%d", strict=False)


def _hours(series: pl.Series) -> pl.Series:
    if series.dtype == pl.Date:
        return pl.Series(series.name, [None] * series.len(), dtype=pl.Float64)
    if series.dtype == pl.Datetime or series.dtype == pl.Time:
        return series.dt.hour() + series.dt.minute() / 60
    text = series.cast(pl.String)
    hour, minute = (text.str.extract(CLOCK, i).cast(pl.Float64, strict=False) for i in (1, 2))
    return hour + minute / 60
