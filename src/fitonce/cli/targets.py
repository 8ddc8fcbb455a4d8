"""The columns beside the features: the target, weights and confounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from .errors import UserError
from .table import LARGEST_WHOLE, Table
from .values import (
    ABSENT,
    CATEGORY,
    COMMA,
    DATE,
    DAYS,
    NUMBER,
    Feature,
    all_numbers,
    format_of,
    has_decimal_commas,
    kind_of,
    labels,
)
from .words import Remarks, counted, examples

SPANS = 5  # of time, each predicted from the rows before it
CONTINUOUS_ABOVE = 20  # a target with more distinct numbers than this is a regression target
MOST_CLASSES = 100  # without being asked for: more take many minutes


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
        comma = number and has_decimal_commas(series)
        return Feature(name, NUMBER if number else CATEGORY, name, COMMA if comma else None)
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
