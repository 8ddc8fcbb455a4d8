"""Names on the page: of rows, columns and classes, cut to what fits and cleaned of what no page can
show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

LONGEST_NAME = 80  # characters of a name that are shown


def shortened(name: Any, limit: int = LONGEST_NAME) -> str:
    """A name as one line of text; control characters and lone surrogates as question marks."""
    text = "".join(
        letter if letter.isprintable() or letter == " " else "\ufffd" for letter in str(name)
    )
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def all_shortened(names: Iterable[Any]) -> list[str]:
    return [shortened(name) for name in names]


def feature_names(X: Any, given: Sequence[Any] | None = None) -> list[str]:
    """The given names, those of a data frame, or x0, x1, …"""
    if given is not None and len(given) != n_columns(X):
        raise ValueError(
            f"feature_names must have one name for each of the {n_columns(X)} columns, "
            f"got {len(given)} instead."
        )
    if given is None:
        columns = getattr(X, "columns", None)
        given = [f"x{index}" for index in range(n_columns(X))] if columns is None else list(columns)
    return all_shortened(given)


def row_names(X: Any, given: Sequence[Any] | None = None) -> list[str]:
    """The given names, those of a data frame's index, or row 0, row 1, …"""
    n = n_rows(X)
    if given is not None:
        if len(given) != n:
            raise ValueError(
                f"row_names must have one name for each of the {n} rows, got {len(given)} instead."
            )
        return all_shortened(given)
    index = getattr(X, "index", None)
    if index is None or callable(index) or len(index) != n:
        index = range(n)
    return [
        f"row {name}" if isinstance(name, (int, np.integer)) else shortened(name) for name in index
    ]


def n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def n_columns(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])
