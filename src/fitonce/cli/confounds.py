"""The confounds of a table: columns of numbers, and columns of names."""

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
    """Confounds as numbers, or as text: what is no number in some row, or is said to be a name."""
    columns = []
    for name in names:
        numbers = None if name in categorical else all_numbers(frame[name])
        values = labels(frame[name]).astype(str).tolist() if numbers is None else numbers
        columns.append(pl.Series(name, values))
    return pl.DataFrame(columns)


def described_confounds(confounds: pl.DataFrame | None) -> list[dict[str, Any]]:
    """What a model file remembers of them."""
    if confounds is None:
        return []
    return [{"name": c.name, "category": c.dtype == pl.String} for c in confounds]


def confounds_like(
    frame: pl.DataFrame, known: Sequence[Mapping[str, Any]], name: str
) -> pl.DataFrame | None:
    """The confounds of new rows, as the model's rows had them; None where it has none."""
    if not known:
        return None
    missing = [column["name"] for column in known if column["name"] not in frame.columns]
    if missing:
        raise UserError(
            f"{name} has no column {missing[0]!r}: the model was fitted with it as a confound, and "
            "needs it for every row."
        )
    columns = []
    for column in known:
        series = frame[column["name"]]
        unknown = int(series.null_count())
        if unknown:
            raise UserError(
                f"the confound {series.name!r} of {name} is missing in {unknown:,} rows: fill it "
                "in, or leave these rows out."
            )
        numbers = None if column["category"] else all_numbers(series)
        if numbers is None and not column["category"]:
            raise UserError(
                f"the confound {series.name!r} must be numbers, as in the table of the model, got "
                f"values such as {str(series[0])!r}."
            )
        text = labels(series).astype(str).tolist() if numbers is None else np.asarray(numbers)
        columns.append(pl.Series(series.name, text))
    return pl.DataFrame(columns)
