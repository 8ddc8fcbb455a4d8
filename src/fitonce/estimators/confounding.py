"""Confounds: numbers and categories, coded as columns.

Numbers stay unchanged, dates become days since 1970, categories become one column per level. A
level that was not in the fit has zeros everywhere, and the regression on the known levels gives it
their mean (minimum norm, as scikit-learn's LinearRegression on the same columns).
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from ..core.numerical_warnings import depth_inside_package
from ..core.refused import refuse

MEANINGS = ("remove", "include")
CATEGORIES = ("category", "Categorical", "Enum")  # dtypes of pandas and polars
DATE_TEXT = re.compile(
    r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))"
    r"([ T]\d{1,2}:\d{2}.*)?\s*$"
)


@dataclass(frozen=True)
class Coding:
    """How confounds are coded: the name of each, and its levels; None for numbers."""

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]

    def coded(self, columns: list[np.ndarray]) -> np.ndarray:
        """The confounds as numbers (n, q), one column for each numeric confound and each level."""
        parts = [
            _as_number(name, column)[:, None]
            if levels is None
            else (_texts(column)[:, None] == np.array(levels)).astype(np.float64)
            for name, column, levels in zip(self.names, columns, self.levels, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    @property
    def words(self) -> str:
        """The names of the confounds, for messages."""
        listed = list(self.names)
        return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def coding_of(confounds: Any, n_samples: int) -> tuple[Coding, np.ndarray]:
    """The coding of confounds, and the coded numbers (n, q)."""
    names, columns = _columns(confounds, n_samples, "fit")
    levels = tuple(
        tuple(np.unique(_texts(column)).tolist()) if _is_category(column) else None
        for column in columns
    )
    for name, found in zip(names, levels, strict=True):
        if found is not None and 2 * len(found) > n_samples:
            warnings.warn(
                f"the confound {name!r} is a category with {len(found)} levels in {n_samples} "
                "rows: hardly anything is left when the mean of each level has been removed, and "
                "with a level for each row the model is a constant. Merge levels, pass numbers, "
                "or leave it out.",
                UserWarning,
                stacklevel=depth_inside_package(),
            )
    coding = Coding(names, levels)
    return coding, coding.coded(columns)


def discrete_levels(confounds: Any, n_samples: int) -> np.ndarray | None:
    """An index for each combination of levels (n,) if all confounds are discrete: categories,
    booleans, or numbers with two values. None otherwise.
    """
    _, columns = _columns(confounds, n_samples, "fit")
    numbers = []
    for column in columns:
        if not (_is_category(column) or len(np.unique(column)) <= 2):
            return None
        numbers.append(np.unique(_texts(column), return_inverse=True)[1])
    return np.asarray(np.unique(np.stack(numbers), axis=1, return_inverse=True)[1]).reshape(-1)


def new_confounds(model: Any, confounds: Any, n_samples: int, method: str) -> np.ndarray | None:
    """The confounds of new rows (m, q), coded as in the fit; None if it had none."""
    coding: Coding | None = getattr(model, "confounds_", None)
    name = type(model).__name__
    if coding is None:
        if confounds is None:
            return None
        raise ValueError(
            f"{name}.{method}() got confounds, but the model was fitted without them, so its "
            "predictions do not depend on them. Fit with confounds=, or leave them out here."
        )
    if confounds is None:
        raise ValueError(
            f"{name}.{method}() needs the confounds of these rows ({coding.words}), got None: the "
            f"model was fitted with confounds. Pass {method}(X, confounds=...)."
        )
    names, columns = _columns(confounds, n_samples, method)
    refuse(
        (
            len(columns) != len(coding.names),
            f"confounds must have the {len(coding.names)} columns of the fit ({coding.words}), "
            f"got {len(columns)} instead.",
        ),
        (
            hasattr(confounds, "columns") and names != coding.names,
            "confounds must have the columns of the fit in the same order, "
            f"{list(coding.names)}, got {list(names)} instead.",
        ),
    )
    return coding.coded(columns)


def _columns(
    confounds: Any, n_samples: int, method: str
) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """Names and columns of a data frame, an array (n,) or (n, q), or a list."""
    if hasattr(confounds, "columns"):
        names = tuple(map(str, confounds.columns))
        frame = confounds.iloc if hasattr(confounds, "iloc") else confounds
        series = [frame[:, j] for j in range(len(names))]
    else:
        A = confounds if hasattr(confounds, "iloc") else np.asarray(to_numpy(confounds))
        if A.ndim not in (1, 2):
            raise ValueError(
                f"confounds must be a data frame, or an array of shape (n_samples,) or (n_samples, "
                f"n_confounds), got {A.ndim} dimensions instead."
            )
        series = [A] if A.ndim == 1 else list(A.T)
        names = tuple(f"confound {j + 1}" for j in range(len(series)))
        if len(series) == 1:
            names = (str(getattr(confounds, "name", None) or "confound"),)
    columns = [_column(one) for one in series]
    if not columns:
        raise ValueError("confounds have no columns: leave them out (confounds=None).")
    if len(columns[0]) != n_samples:
        raise ValueError(
            f"confounds must have one row for each row of X ({n_samples}), got {len(columns[0])} "
            f"in {method} instead."
        )
    plain = [_plain(column) for column in columns]
    for name, column, given in zip(names, plain, series, strict=True):
        if not str(given.dtype).startswith(CATEGORIES) and _looks_like_dates(column):
            raise ValueError(
                f"the confound {name!r} has dates as text, such as {str(column[0])!r}; as a "
                "category, every date would be a level. For their trend, convert them to dates, as "
                "with pandas.to_datetime, or to numbers. If each date is a level, pass them as a "
                "category of a data frame."
            )
    return names, plain


def _column(series: Any) -> np.ndarray:
    """A column of a data frame; its categories as strings."""
    if str(getattr(series, "dtype", "")) != "category":
        return np.asarray(series)
    as_objects = np.asarray(series.astype(object), dtype=object)
    return _texts(as_objects)


def _plain(column: np.ndarray) -> np.ndarray:
    """Dates and spans of time as days, dates since 1970; objects that are all numbers as such."""
    if column.dtype.kind == "O" and all(isinstance(value, date) for value in column):
        column = np.array([_universal(value) for value in column], dtype="datetime64[us]")
    if column.dtype.kind in "mM":
        start = np.datetime64(0, "D") if column.dtype.kind == "M" else np.timedelta64(0, "D")
        return np.asarray((column - start) / np.timedelta64(1, "D"))
    numbers = column.dtype.kind == "O" and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        for value in column
    )
    return column.astype(np.float64) if numbers else column


def _universal(value: date) -> date:
    """A date without a time zone: the time in UTC, if it has one."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _looks_like_dates(column: np.ndarray) -> bool:
    return column.dtype.kind in "OU" and all(
        isinstance(value, str) and DATE_TEXT.match(value) for value in column
    )


def _is_category(column: np.ndarray) -> bool:
    return column.dtype.kind not in "iuf"


def _texts(column: np.ndarray) -> np.ndarray:
    """The values as strings; raises an error if one is missing."""
    missing = [value is None or value != value for value in column.tolist()]
    if any(missing):
        raise ValueError(
            f"confounds are missing in row {int(np.argmax(missing))}. Fill in the value (for a "
            "category, use a separate level such as 'unknown'), or leave out the row."
        )
    return column.astype(str)


def _as_number(name: str, column: np.ndarray) -> np.ndarray:
    """The values as float64; raises an error if one is no finite number."""
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"the confound {name!r} was numeric in the fit, got {column[0]!r} instead."
        ) from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise ValueError(
            f"the confound {name!r} contains NaN or infinity (row {int(np.argmax(bad))}): fill in "
            "the value, or leave out the row."
        )
    return numbers


DONE = {
    "remove": "regressed out of the features on every training set",
    "include": "included as unpenalized predictors",
}


def confounded_words(estimator: Any, confounds: Any, n_samples: int) -> str:
    """The confounds and how they are used; empty if there are none."""
    if confounds is None:
        return ""
    model = estimator[-1] if hasattr(estimator, "steps") else estimator
    how = DONE[getattr(model, "confounding", "remove")]  # members of committees: the default
    return f"{coding_of(confounds, n_samples)[0].words}, {how}"
