"""The inputs of a graph: one numeric matrix, or one input for every column that is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from .graph import Graph, Value, beside

OUTPUTS = ("label", "probabilities", "decision", "prediction")  # names that no input may have
TEXTS = np.frompyfunc(lambda value: value if isinstance(value, str) else "", 1, 1)


class Role(IntEnum):
    """How an input column is used; if it is used twice, the greater counts."""

    UNUSED = 0
    NUMBER = 1  # computed with
    CATEGORY = 2  # numbers compared with the categories of an encoder
    TEXT = 3


class InputColumn(NamedTuple):
    """An input column: its position, its name and its role."""

    number: int
    name: str
    role: Role


@dataclass(frozen=True)
class Inputs:
    """The input columns of a graph."""

    dtype: np.dtype[Any]
    columns: list[InputColumn]
    named: bool  # whether the model was fitted on a data frame
    by_column: bool  # one input for each column, not one matrix

    @classmethod
    def of(cls, steps: Sequence[Any], first: Any, dtype: np.dtype[Any]) -> Inputs:
        """The inputs of the steps of a pipeline, of which `first` takes them."""
        width, given = int(first.n_features_in_), getattr(first, "feature_names_in_", None)
        names = [f"x{number}" for number in range(width)] if given is None else map(str, given)
        roles = column_roles(steps, width)
        by_column = Role.TEXT in roles or (given is not None and Role.UNUSED in roles)
        columns = list(map(InputColumn, range(width), names, roles))
        used = [column for column in columns if column.role or not by_column]
        return cls(dtype, used, given is not None, by_column)

    def add_to(self, graph: Graph) -> Rows:
        """The rows in the form that the first step of a pipeline takes."""
        if not self.by_column:
            return graph.input("X", self.dtype, len(self.columns)).cast()
        values, texts = {}, {column.number for column in self.columns if column.role is Role.TEXT}
        for number, name, _ in self.columns:
            value = graph.input(_input_name(name), object if number in texts else self.dtype, 1)
            values[number] = value if number in texts else value.cast()
        return ColumnValues(values, texts)

    def rows(self, X: Any) -> Any:
        """A data frame if the model knows the names of its columns, else a dense array."""
        if self.named and hasattr(X, "columns"):
            return X
        return np.asarray(X.toarray() if sp.issparse(X) else X)

    def feeds(self, rows: Any) -> dict[str, np.ndarray]:
        """The rows for onnxruntime; a missing string is the empty string."""
        feeds = {_input_name(column.name): self._fed(rows, column) for column in self.columns}
        return feeds if self.by_column else {"X": np.hstack(list(feeds.values()))}

    def _fed(self, rows: Any, column: InputColumn) -> np.ndarray:
        """One column (n, 1)."""
        table = hasattr(rows, "columns")
        values = np.asarray(rows[column.name] if table else rows[:, column.number])[:, None]
        return TEXTS(values) if column.role is Role.TEXT else values.astype(self.dtype)

    def rounded(self, rows: Any) -> Any:
        """The rows as the graph sees them: numbers rounded to the precision of its input.

        Categories stay unchanged.
        """
        numbers = {
            column: self._fed(rows, column)[:, 0].astype(np.float64)
            for column in self.columns
            if column.role is Role.NUMBER
        }
        if hasattr(rows, "columns"):
            replace = rows.with_columns if hasattr(rows, "with_columns") else rows.assign
            return replace(**{column.name: values for column, values in numbers.items()})
        rounded = rows.astype(object if self.by_column else np.float64)
        for column, values in numbers.items():
            rounded[:, column.number] = values
        return rounded


def _input_name(name: str) -> str:
    """The name of the input of a column, which must not be the name of an output."""
    return f"column {name}" if name in OUTPUTS or name.startswith("fitonce/") else name


@dataclass(frozen=True)
class ColumnValues:
    """A table: a value (n, 1) for every column that is used, numbers or strings."""

    values: dict[int, Value]
    texts: set[int]
    nonempty: set[int] = field(default_factory=set)  # columns whose empty strings were filled

    def matrix(self) -> Value:
        if self.texts:
            raise ValueError(
                "a column of strings reaches a step that takes numbers: encode it, for example "
                "with OneHotEncoder."
            )
        return beside(*self.values.values())

    def select(self, numbers: Sequence[int]) -> Rows:
        chosen = {place: self.values[number] for place, number in enumerate(numbers)}
        texts = {place for place, number in enumerate(numbers) if number in self.texts}
        nonempty = {place for place, number in enumerate(numbers) if number in self.nonempty}
        return ColumnValues(chosen, texts, nonempty) if texts else beside(*chosen.values())


Rows = Value | ColumnValues


# ---- how the steps of a pipeline use their columns -----------------------------------------------


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, and of pipelines in it, without those that do nothing.

    For any other estimator, itself.
    """
    if model is None or isinstance(model, str):
        return []
    if not isinstance(model, Pipeline):
        return [model]
    return [part for _, step in model.steps for part in steps_of(step)]


def column_roles(steps: Sequence[Any], width: int) -> list[Role]:
    """The role of each input column, from what the first steps learned from it."""
    first = steps[0] if steps else None
    width = getattr(first, "n_features_in_", width)
    if isinstance(first, ColumnTransformer):
        roles = [Role.UNUSED] * width
        for _, part, numbers in selections(first):
            inside = column_roles(steps_of(part), len(numbers))
            for number, role in zip(numbers, inside, strict=True):
                roles[number] = max(roles[number], role)
        return roles
    roles = [Role.NUMBER] * width
    if isinstance(first, SimpleImputer):
        kept = [number for number, fill in enumerate(first.statistics_) if fill == fill]
        later = column_roles(steps[1:], len(kept))
        for number, role in zip(kept, later, strict=False):  # any further ones are indicators
            text = isinstance(first.statistics_[number], str)
            roles[number] = Role.TEXT if text else max(role, Role.NUMBER)
    for number, known in enumerate(getattr(first, "categories_", ())):
        texts = any(isinstance(category, str) for category in known)
        roles[number] = Role.TEXT if texts else Role.CATEGORY
    return roles


def selections(transformer: ColumnTransformer) -> list[tuple[str, Any, list[int]]]:
    """Each part of a ColumnTransformer that returns columns: its name, itself, and the indices of
    its columns.
    """
    names, width = getattr(transformer, "feature_names_in_", ()), transformer.n_features_in_
    taken = [
        (name, part, _numbers(columns, list(names), width))
        for name, part, columns in transformer.transformers_
        if not (isinstance(part, str) and part == "drop")
    ]
    return [one for one in taken if one[-1]]


def _numbers(columns: Any, names: list[Any], width: int) -> list[int]:
    """Column indices from the forms that scikit-learn accepts: names, indices, slices, masks."""
    if isinstance(columns, slice):
        start, stop = (
            names.index(end) if isinstance(end, str) else end
            for end in (columns.start, columns.stop)
        )
        stop = stop + 1 if isinstance(columns.stop, str) else stop  # names include the last
        chosen: Any = slice(start, stop, columns.step)
    else:
        listed = np.atleast_1d(columns)
        chosen = [names.index(entry) if isinstance(entry, str) else entry for entry in listed]
    return [int(number) for number in np.arange(width)[chosen]]
