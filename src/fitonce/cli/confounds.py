"""The confounds of a table: numbers, dates and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from .dates import DAYS, HOUR, format_of, is_date, part_of
from .errors import UserError
from .values import all_numbers, labels


def confounds_of(
    frame: pl.DataFrame, names: Sequence[str], categorical: Sequence[str]
) -> pl.DataFrame:
    """Confounds as numbers or dates; or as categories, if a value is neither or the user declared
    the column categorical.
    """
    columns = []
    for name in names:
        series = frame[name]
        category = name in categorical or (all_numbers(series) is None and not is_date(series))
        columns.append(_categories(series) if category else _numbers_or_dates(series))
    return pl.DataFrame(columns)


def _categories(series: pl.Series) -> pl.Series:
    values = labels(series).astype(str).tolist()
    return pl.Series(series.name, values, dtype=pl.Categorical)


def _numbers_or_dates(series: pl.Series) -> pl.Series:
    """Numbers, or dates with their time of day; text only where it begins with the year."""
    numbers = all_numbers(series)
    if numbers is not None:
        return pl.Series(series.name, numbers)
    form, _ = format_of(series)
    if form is not None and not form.startswith("%Y"):
        raise UserError(
            f"the confound {series.name!r} has dates such as {series[0]!r}, whose order of day and "
            "month later tables need not share: write them as 2024-12-31, or declare the column "
            "--categorical, if each date is a level."
        )
    days = part_of(series, DAYS, form, None)
    if days.null_count():
        raise UserError(
            f"the confound {series.name!r} has values that are no dates, such as "
            f"{str(series.filter(days.is_null())[0])!r}: correct them, or declare the column "
            "--categorical."
        )
    hours = part_of(series, HOUR, form, None).fill_null(0.0)
    seconds = (86_400.0 * days + 3_600.0 * hours).round().cast(pl.Int64)
    return (1_000_000 * seconds).cast(pl.Datetime("us"))


def described_confounds(confounds: pl.DataFrame | None) -> list[dict[str, Any]]:
    """What a model file stores about them."""
    if confounds is None:
        return []
    return [
        {"name": c.name, "category": c.dtype == pl.Categorical, "date": c.dtype == pl.Datetime}
        for c in confounds
    ]


def confounds_like(
    frame: pl.DataFrame, known: Sequence[Mapping[str, Any]], name: str
) -> pl.DataFrame | None:
    """The confounds of new rows, read as for the rows of the model; None if it has none."""
    if not known:
        return None
    missing = [column["name"] for column in known if column["name"] not in frame.columns]
    if missing:
        raise UserError(
            f"{name} has no column {missing[0]!r}. The model was fitted with it as a confound and "
            "needs it for every row."
        )
    columns = []
    for column in known:
        series = frame[column["name"]]
        unknown = int(series.null_count())
        if unknown:
            raise UserError(
                f"the confound {series.name!r} is missing in {unknown:,} rows of {name}: fill it "
                "in, or leave these rows out."
            )
        if column["category"]:
            columns.append(_categories(series))
            continue
        fits = is_date(series) if column["date"] else all_numbers(series) is not None
        if not fits:
            kind = "dates" if column["date"] else "numeric"
            raise UserError(
                f"the confound {series.name!r} must be {kind}, as in the table of the model, got "
                f"values such as {str(series[0])!r}."
            )
        columns.append(_numbers_or_dates(series))
    return pl.DataFrame(columns)
