"""An ONNX graph under construction, and the rows on their way through it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

OPSET = 19  # the first with comparisons of texts; onnxruntime 1.15 and later
IR_VERSION = 9
MOST_BYTES = 2**31 - 2**20  # protobuf's limit, with room for the nodes


@dataclass
class Graph:
    """Nodes and constants so far; every operation returns the name of its result."""

    dtype: np.dtype[Any]  # of input and outputs
    arithmetic: np.dtype[Any]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    columns: list[str] = field(
        default_factory=list
    )  # names of the input columns, in order, where they have names
    texts: frozenset[str] = frozenset()  # names of those that are texts
    categories: frozenset[int] = (
        frozenset()
    )  # places among the input columns of numbers that are compared, not computed with
    by_column: bool = False  # one input for every column

    @property
    def _helper(self) -> Any:
        return importlib.import_module("onnx.helper")

    def _fresh(self) -> str:
        return f"fitonce/{len(self.nodes) + len(self.constants)}"

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """The result of an ONNX operator."""
        result = name or self._fresh()
        self.nodes.append(self._helper.make_node(kind, list(inputs), [result], **attributes))
        return result

    def number(self, value: Any) -> str:
        """A constant in the arithmetic's precision."""
        return self.constant(np.asarray(value, dtype=self.arithmetic))

    def constant(self, value: np.ndarray) -> str:
        name = self._fresh()
        if value.dtype.kind in "OUT":
            texts = [str(text).encode() for text in value.ravel()]
            self.constants.append(
                self._helper.make_tensor(name, tensor_type(value.dtype), value.shape, texts)
            )
        else:
            self.constants.append(
                importlib.import_module("onnx.numpy_helper").from_array(
                    np.ascontiguousarray(value), name
                )
            )
        return name

    def cast(self, value: str, dtype: Any, name: str | None = None) -> str:
        return self.op("Cast", value, name=name, to=tensor_type(np.dtype(dtype)))

    def row_sum(self, x: str) -> str:
        """Sums over the second axis, (n, 1)."""
        return self.op("ReduceSum", x, self.constant(np.array([1], dtype=np.int64)), keepdims=1)

    def input(self, name: str, dtype: Any, width: int) -> str:
        self.inputs.append(
            self._helper.make_tensor_value_info(name, tensor_type(np.dtype(dtype)), ["n", width])
        )
        return name

    def output(self, name: str, dtype: Any, shape: list[Any]) -> None:
        self.outputs.append(
            self._helper.make_tensor_value_info(name, tensor_type(np.dtype(dtype)), shape)
        )

    def give(self, value: str, name: str, shape: list[Any]) -> None:
        """A result as an output of the graph."""
        self.cast(value, self.dtype, name=name)
        self.output(name, self.dtype, shape)

    def proto(self, properties: dict[str, str] | None = None) -> Any:
        size = sum(constant.ByteSize() for constant in self.constants)
        if size > MOST_BYTES:
            raise ValueError(
                f"the graph would have {size / 2**30:.1f} GiB of training rows and coefficients, "
                "and an ONNX file holds 2: fit with fewer "
                "landmarks."
            )
        graph = self._helper.make_graph(
            self.nodes, "fitonce", self.inputs, self.outputs, self.constants
        )
        opset = self._helper.make_opsetid("", OPSET)
        proto = self._helper.make_model(
            graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="fitonce"
        )
        proto.producer_version = version("fitonce")
        self._helper.set_model_props(proto, properties or {})
        return proto


def tensor_type(dtype: np.dtype[Any]) -> int:
    if dtype.kind in "OUT":
        return int(importlib.import_module("onnx").TensorProto.STRING)
    return int(importlib.import_module("onnx.helper").np_dtype_to_tensor_dtype(dtype))


@dataclass(frozen=True)
class Matrix:
    """Numbers: one tensor (n, width) in the arithmetic's precision."""

    tensor: str
    width: int

    def matrix(self, graph: Graph) -> str:
        return self.tensor

    def select(self, graph: Graph, numbers: Sequence[int]) -> Matrix:
        if list(numbers) == list(range(self.width)):
            return self
        return Matrix(
            graph.op(
                "Gather", self.tensor, graph.constant(np.asarray(numbers, dtype=np.int64)), axis=1
            ),
            len(numbers),
        )


@dataclass(frozen=True)
class Columns:
    """A table.

    One tensor (n, 1) for every column, numbers in the arithmetic's precision, or texts; empty where
    nothing uses the column.
    """

    tensors: tuple[str, ...]
    texts: frozenset[int]

    @property
    def width(self) -> int:
        return len(self.tensors)

    def matrix(self, graph: Graph) -> str:
        if self.texts:
            raise ValueError(
                "a column of texts reaches a step that takes numbers: encode it, for example with "
                "OneHotEncoder."
            )
        return self.tensors[0] if self.width == 1 else graph.op("Concat", *self.tensors, axis=1)

    def select(self, graph: Graph, numbers: Sequence[int]) -> Matrix | Columns:
        chosen = tuple(self.tensors[number] for number in numbers)
        selected = Columns(
            chosen, frozenset(place for place, number in enumerate(numbers) if number in self.texts)
        )
        return selected if selected.texts else Matrix(selected.matrix(graph), selected.width)


Rows = Matrix | Columns


def packages() -> tuple[Any, Any]:
    try:
        return importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ImportError(
            "exporting models needs onnx and onnxruntime: pip install 'fitonce[onnx]'."
        ) from error
