"""The target of a table, its groups and its weights."""

from __future__ import annotations

import numpy as np
import polars as pl

from .errors import UserError
from .remarks import Remarks, counted
from .values import DATE, all_numbers, kind_of, labels

CONTINUOUS_ABOVE = 20  # a target with more distinct numbers than this is a regression target


def known_rows(frame: pl.DataFrame, name: str | None, what: str, remarks: Remarks) -> pl.DataFrame:
    """The rows whose target (or group) is known."""
    if name is None:
        return frame
    unknown = frame[name].is_null()
    if frame[name].dtype.is_float():
        unknown |= frame[name].is_nan()
    count = int(unknown.sum())
    if count == frame.height:
        raise UserError(f"the {what} {name!r} is missing in every row.")
    if count:
        remarks.add(f"{counted(count)} without a {what} {'was' if count == 1 else 'were'} left out")
    return frame.filter(~unknown)


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
    whole = numbers is not None and bool(np.all(numbers == np.round(numbers)))
    if task == "auto" and numbers is not None:
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
        return _quantities(series, numbers, said), task
    return _classes(series, numbers if whole else None, distinct, said), "classification"


def _quantities(series: pl.Series, numbers: np.ndarray | None, said: str) -> np.ndarray:
    if numbers is None:
        raise UserError(
            f"{said} must be numeric for --task regression, got values such as {str(series[0])!r}."
        )
    return numbers


def _classes(series: pl.Series, whole: np.ndarray | None, distinct: int, said: str) -> np.ndarray:
    if distinct > series.len() / 2:
        quantity = all_numbers(series) is not None
        advice = "--task regression, if it is a quantity" if quantity else "another --target"
        raise UserError(
            f"{said} has {distinct:,} classes in {counted(series.len())}: each class has too few "
            f"rows to train and test a model. Is it an identifier? Use {advice}."
        )
    found = labels(series) if whole is None else whole.astype(np.int64)
    if np.sum(np.unique(found, return_counts=True)[1] > 1) < 2:
        raise UserError(
            f"{said} has fewer than two classes with more than one row: too few to train and test "
            "a model."
        )
    return found


def weights_of(series: pl.Series) -> np.ndarray:
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
