"""An ONNX graph under construction, and values that can be used like arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ...core.version import __version__

OPSET = 19  # the first with comparisons of strings; onnxruntime 1.15 and later
IR_VERSION = 9
MOST_BYTES = 2**31 - 2**20  # protobuf's limit, with room for the nodes
COLUMNS = np.array([1], dtype=np.int64)  # the second axis


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
    """The columns of all values, concatenated."""
    return first.op("Concat", *others, axis=1) if others else first


def _described(name: str, dtype: Any, *width: int) -> Any:
    """The ONNX description of a tensor (n, *width)."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, ["n", *width])
