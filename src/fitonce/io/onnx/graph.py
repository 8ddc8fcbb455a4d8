"""An ONNX graph under construction, values that can be used like arrays, and the inputs of a graph:
one numeric matrix, or one input for every column that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from onnx import helper, numpy_helper
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from ...core.version import __version__

OPSET = 19  # the first with comparisons of strings; onnxruntime 1.15 and later
IR_VERSION = 9
MOST_BYTES = 2**31 - 2**20  # protobuf's limit, with room for the nodes
COLUMNS = np.array([1], dtype=np.int64)  # the second axis
OUTPUTS = ("label", "probabilities", "decision", "prediction")  # names that no input may have
TEXTS = np.frompyfunc(lambda value: value if isinstance(value, str) else "", 1, 1)


@dataclass
class Graph:
    """Nodes and constants so far."""

    dtype: np.dtype[Any]  # of input and outputs
    arithmetic: np.dtype[Any]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def op(self, kind: str, *operands: Any, name: str | None = None, **attributes: Any) -> Value:
        """The result of an ONNX operator on values and constants.

        Real constants are converted to the precision of the arithmetic.
        """
        names = [(x if isinstance(x, Value) else self.constant(x, True)).name for x in operands]
        result = name or self._fresh()
        self.nodes.append(helper.make_node(kind, names, [result], **attributes))
        return Value(self, result)

    def constant(self, value: Any, rounded: bool = False) -> Value:
        """Numbers, booleans or strings as they are, or with real numbers rounded."""
        array, name = np.atleast_1d(value), self._fresh()
        array = array.astype(self.arithmetic) if rounded and array.dtype.kind == "f" else array
        self.constants.append(numpy_helper.from_array(array, name))
        return Value(self, name)

    def _fresh(self) -> str:
        return f"fitonce/{len(self.nodes) + len(self.constants)}"

    def input(self, name: str, dtype: Any, width: int) -> Value:
        self.inputs.append(_described(name, dtype, width))
        return Value(self, name)

    def proto(self, properties: dict[str, str]) -> Any:
        """The complete graph as a protobuf."""
        size = sum(constant.ByteSize() for constant in self.constants)
        if size > MOST_BYTES:
            raise ValueError(
                f"the graph would have {size / 2**30:.1f} GiB of training rows and coefficients, "
                "but an ONNX file is limited to 2 GiB: fit with fewer landmarks."
            )
        graph = helper.make_graph(self.nodes, "fitonce", self.inputs, self.outputs, self.constants)
        proto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="fitonce",
            producer_version=__version__,
        )
        helper.set_model_props(proto, properties)
        return proto


@dataclass(frozen=True)
class Value:
    """A tensor in a graph; as rows (n, p), numbers in the precision of the arithmetic."""

    graph: Graph
    name: str

    def op(self, kind: str, *operands: Any, **attributes: Any) -> Value:
        """The result of an ONNX operator that takes this value first."""
        return self.graph.op(kind, self, *operands, **attributes)

    def __add__(self, other: Any) -> Value:
        return self.op("Add", other)

    def __sub__(self, other: Any) -> Value:
        return self.op("Sub", other)

    def __mul__(self, other: Any) -> Value:
        return self.op("Mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self.op("Div", other)

    def __matmul__(self, other: Any) -> Value:
        return self.op("MatMul", other)

    def __rsub__(self, other: float) -> Value:
        return self.graph.op("Sub", other, self)

    def row_sums(self) -> Value:
        return self.op("ReduceSum", COLUMNS, keepdims=1)

    def flat(self) -> Value:
        """The only column, (n,)."""
        return self.op("Squeeze", COLUMNS)

    def select(self, numbers: Any) -> Value:
        """Some of the columns."""
        return self.op("Gather", np.asarray(numbers, dtype=np.int64), axis=1)

    def matrix(self) -> Value:
        return self

    def cast(self, dtype: Any = None) -> Value:
        """The value in another type; None is the type of the arithmetic."""
        kind = np.dtype(self.graph.arithmetic if dtype is None else dtype)
        return self.op("Cast", to=helper.np_dtype_to_tensor_dtype(kind))

    def give(self, name: str, *width: int, dtype: Any = None) -> None:
        """Make the value an output of the graph; None keeps the precision of its numbers."""
        described = _described(name, self.graph.dtype if dtype is None else dtype, *width)
        self.op("Cast", name=name, to=described.type.tensor_type.elem_type)
        self.graph.outputs.append(described)


def beside(first: Value, *others: Value) -> Value:
    return first.op("Concat", *others, axis=1) if others else first


def _described(name: str, dtype: Any, *width: int) -> Any:
    """The ONNX description of a tensor (n, *width)."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, ["n", *width])


# ---- inputs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """The input columns of a graph: names by number, and which of them hold texts."""

    dtype: np.dtype[Any]
    names: dict[int, str]
    texts: set[int]
    named: bool  # whether the model was fitted on a data frame
    by_column: bool  # one input for each column, not one matrix

    @classmethod
    def of(cls, steps: Sequence[Any], first: Any, dtype: np.dtype[Any]) -> Inputs:
        """The inputs of the steps of a pipeline, of which `first` takes them."""
        width, given = int(first.n_features_in_), getattr(first, "feature_names_in_", None)
        names = (
            [f"x{number}" for number in range(width)] if given is None else list(map(str, given))
        )
        used = used_columns(steps, width)
        by_column = any(used.values()) or (given is not None and len(used) < width)
        numbers = sorted(used) if by_column else range(width)
        texts = {number for number, text in used.items() if text}
        chosen = {number: names[number] for number in numbers}
        return cls(dtype, chosen, texts, given is not None, by_column)

    def add_to(self, graph: Graph) -> Rows:
        """The rows in the form that the first step of a pipeline takes."""
        if not self.by_column:
            return graph.input("X", self.dtype, len(self.names)).cast()
        values = {}
        for number, name in self.names.items():
            text = number in self.texts
            value = graph.input(_input_name(name), object if text else self.dtype, 1)
            values[number] = value if text else value.cast()
        return ColumnValues(values, self.texts)

    def rows(self, X: Any) -> Any:
        """A data frame if the model knows the names of its columns, else a dense array."""
        if self.named and hasattr(X, "columns"):
            return X
        return np.asarray(X.toarray() if sp.issparse(X) else X)

    def feeds(self, rows: Any) -> dict[str, np.ndarray]:
        """The rows for onnxruntime; a missing string is the empty string."""
        feeds = {_input_name(name): self._fed(rows, number) for number, name in self.names.items()}
        return feeds if self.by_column else {"X": np.hstack(list(feeds.values()))}

    def _fed(self, rows: Any, number: int) -> np.ndarray:
        """One column (n, 1)."""
        column = rows[self.names[number]] if hasattr(rows, "columns") else rows[:, number]
        values = np.asarray(column)[:, None]
        return TEXTS(values) if number in self.texts else values.astype(self.dtype)

    def rounded(self, rows: Any) -> Any:
        """The rows as the graph sees them: numbers rounded to the precision of its input."""
        numbers = {
            number: self._fed(rows, number)[:, 0].astype(np.float64)
            for number in self.names.keys() - self.texts
        }
        if hasattr(rows, "columns"):
            replace = rows.with_columns if hasattr(rows, "with_columns") else rows.assign
            return replace(**{self.names[number]: values for number, values in numbers.items()})
        rounded = rows.astype(object if self.by_column else np.float64)
        for number, values in numbers.items():
            rounded[:, number] = values
        return rounded


def _input_name(name: str) -> str:
    """The name of the input of a column, which must not be the name of an output."""
    return f"column {name}" if name in OUTPUTS or name.startswith("fitonce/") else name


@dataclass(frozen=True)
class ColumnValues:
    """A table: a value (n, 1) for every column that is used, numbers or strings."""

    values: dict[int, Value]
    texts: set[int]
    filled: bool = False  # whether empty strings were replaced

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
        return ColumnValues(chosen, texts, self.filled) if texts else beside(*chosen.values())


Rows = Value | ColumnValues


# ---- how the steps of a pipeline use their columns -----------------------------------------------


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, and of pipelines in it, without those that do nothing.

    For any other estimator, itself.
    """
    if model is None or isinstance(model, str) or getattr(model, "func", model) is None:
        return []
    if not isinstance(model, Pipeline):
        return [model]
    return [part for _, step in model.steps for part in steps_of(step)]


def used_columns(steps: Sequence[Any], width: int) -> dict[int, bool]:
    """The input columns that are used, and whether they hold texts, from what the first step
    learned of them.
    """
    first = steps[0] if steps else None
    if isinstance(first, ColumnTransformer):
        used: dict[int, bool] = {}
        for _, part, numbers in selections(first):
            for place, text in used_columns(steps_of(part), len(numbers)).items():
                used[numbers[place]] = text or used.get(numbers[place], False)
        return used
    fills = [[fill] for fill in getattr(first, "statistics_", [0.0] * width)]
    learned = getattr(first, "categories_", fills)
    return {
        number: any(isinstance(value, str) for value in values)
        for number, values in enumerate(learned)
    }


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
    """Column indices from names, indices, a mask or a slice of indices."""
    if not isinstance(columns, slice):
        listed = np.atleast_1d(columns)
        columns = [names.index(entry) if isinstance(entry, str) else entry for entry in listed]
    elif isinstance(columns.start, str) or isinstance(columns.stop, str):
        raise ValueError(
            f"a ColumnTransformer that selects columns by {columns!r} cannot be exported to ONNX: "
            "list the names of the columns before fitting."
        )
    return [int(number) for number in np.arange(width)[columns]]
