"""The confounds of a table: numeric columns and categorical columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from .errors import UserError
from .values import all_numbers, labels


def confounds_of(
    frame: pl.DataFrame, names: Sequence[str], categorical: Sequence[str]
) -> pl.DataFrame:
    """Confounds as numbers; or as text, if a value is not a number or the user declared the column
    categorical.
    """
    columns = []
    for name in names:
        numbers = None if name in categorical else all_numbers(frame[name])
        values = labels(frame[name]).astype(str).tolist() if numbers is None else numbers
        columns.append(pl.Series(name, values))
    return pl.DataFrame(columns)


def described_confounds(confounds: pl.DataFrame | None) -> list[dict[str, Any]]:
    """What a model file stores about them."""
    if confounds is None:
        return []
    return [{"name": c.name, "category": c.dtype == pl.String} for c in confounds]


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
        numbers = None if column["category"] else all_numbers(series)
        if numbers is None and not column["category"]:
            raise UserError(
                f"the confound {series.name!r} must be numeric, as in the table of the model, got "
                f"values such as {str(series[0])!r}."
            )
        text = labels(series).astype(str).tolist() if numbers is None else np.asarray(numbers)
        columns.append(pl.Series(series.name, text))
    return pl.DataFrame(columns)
