"""The fitted estimator as the last part of an ONNX graph.

Kernel, f(x) = k(x, X) A + b, labels and probabilities.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...estimators.base import KernelModel
from ...estimators.classifier import KernelClassifier
from .graph import Graph, tensor_type


def add_model(graph: Graph, model: KernelModel, x: str) -> None:
    """f(x) = k(x, X) A + b and what follows from it."""
    solution = model._main_solution
    if solution.coef is not None:
        values = graph.op("MatMul", x, graph.number(solution.coef))
    else:
        values = graph.op("MatMul", _kernel(graph, model, x), graph.number(solution.dual_coef))
    values = graph.op("Add", values, graph.number(solution.intercept))
    if isinstance(model, KernelClassifier):
        _add_classes(graph, model, values)
    elif model.dual_coef_.ndim == 1:
        graph.give(_flat(graph, values), "prediction", ["n"])
    else:
        graph.give(values, "prediction", ["n", model.dual_coef_.shape[1]])


def _flat(graph: Graph, column: str) -> str:
    return graph.op("Squeeze", column, graph.constant(np.array([1], dtype=np.int64)))


def _kernel(graph: Graph, model: KernelModel, x: str) -> str:
    """k(x, X) (n, n_fit) of new rows x with the rows that the model is made of."""
    kernel = model._fitted_kernel
    if callable(kernel.function):
        raise ValueError(
            f"the kernel {kernel.function!r} is a Python function and has no form in ONNX: use "
            "one of the named kernels."
        )
    if kernel.precomputed:
        return (
            x
            if model._columns is None
            else graph.op("Gather", x, graph.constant(model._columns.astype(np.int64)), axis=1)
        )
    X = np.asarray(
        model.X_fit_.toarray() if sp.issparse(model.X_fit_) else model.X_fit_, dtype=np.float64
    )
    return KERNELS[kernel.function](graph, x, X, **kernel.parameters)


def _products(graph: Graph, x: str, X: np.ndarray) -> str:
    """x·X. Factors go into X.

    Onnxruntime fuses a single number beside a product with it, rounded to float32.
    """
    return graph.op("MatMul", x, graph.number(X.T))


def _rbf(graph: Graph, x: str, X: np.ndarray, *, gamma: Any) -> str:
    """exp(-Σ γ (u - U)²) with u = x - centre.

    The centre takes nothing from the distances, and much from their rounding.
    """
    centre, gammas = X.mean(axis=0), np.broadcast_to(gamma, X.shape[1:])
    U = X - centre
    u = graph.op("Sub", x, graph.number(centre))
    own = graph.op("MatMul", graph.op("Mul", u, u), graph.number(gammas[:, None]))
    norms = graph.op("Add", own, graph.number((gammas * U**2).sum(axis=1)))
    squared = graph.op("Add", norms, _products(graph, u, -2.0 * gammas * U))
    return graph.op("Exp", graph.op("Neg", graph.op("Max", squared, graph.number(0.0))))


def _laplacian(graph: Graph, x: str, X: np.ndarray, *, gamma: float) -> str:
    """exp(-γ ‖x - X‖₁), summed feature by feature in a scan, so that no more than (n, n_fit) is
    kept.
    """
    helper = importlib.import_module("onnx.helper")
    kind = tensor_type(graph.arithmetic)
    value_info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Unsqueeze", ["a", "last"], ["a1"]),
        helper.make_node("Sub", ["a1", "b"], ["difference"]),
        helper.make_node("Abs", ["difference"], ["size"]),
        helper.make_node("Add", ["so_far", "size"], ["further"]),
    ]
    inputs = [
        value_info("so_far", kind, ["n", len(X)]),
        value_info("a", kind, ["n"]),
        value_info("b", kind, [len(X)]),
    ]
    last = importlib.import_module("onnx.numpy_helper").from_array(
        np.array([1], dtype=np.int64), "last"
    )
    body = helper.make_graph(
        nodes,
        "distance in one feature",
        inputs,
        [value_info("further", kind, ["n", len(X)])],
        [last],
    )
    zero = graph.op("Mul", graph.row_sum(x), graph.number(np.zeros((1, len(X)))))
    distance = graph.op(
        "Scan",
        zero,
        graph.op("Transpose", x, perm=[1, 0]),
        graph.number(X.T),
        num_scan_inputs=2,
        body=body,
    )
    return graph.op("Exp", graph.op("Mul", distance, graph.number(-gamma)))


def _poly(graph: Graph, x: str, X: np.ndarray, *, gamma: float, degree: float, coef0: float) -> str:
    products = graph.op("Add", _products(graph, x, gamma * X), graph.number(coef0))
    return graph.op("Pow", products, graph.number(degree))


def _sigmoid(graph: Graph, x: str, X: np.ndarray, *, gamma: float, coef0: float) -> str:
    return graph.op("Tanh", graph.op("Add", _products(graph, x, gamma * X), graph.number(coef0)))


def _cosine(graph: Graph, x: str, X: np.ndarray) -> str:
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    norm = graph.op("Sqrt", graph.row_sum(graph.op("Mul", x, x)))
    one = graph.op(
        "Where", graph.op("Equal", norm, graph.number(0.0)), graph.number(1.0), norm
    )  # a row of zeros stays one
    return _products(graph, graph.op("Div", x, one), X / np.where(norms == 0, 1.0, norms))


KERNELS: dict[Any, Callable[..., str]] = {
    "rbf": _rbf,
    "linear": _products,
    "poly": _poly,
    "polynomial": _poly,
    "laplacian": _laplacian,
    "cosine": _cosine,
    "sigmoid": _sigmoid,
}


def _add_classes(graph: Graph, model: KernelClassifier, values: str) -> None:
    """Labels, probabilities where the model has them, decisions."""
    n_classes = len(model.classes_)
    if model._binary:
        positive = graph.op("Greater", values, graph.number(0.0))
        codes = _flat(graph, graph.cast(positive, np.int64))
    else:
        codes = graph.op("ArgMax", values, axis=1, keepdims=0)
    classes = _labels(model.classes_)
    graph.op("Gather", graph.constant(classes), codes, name="label")
    graph.output("label", classes.dtype, ["n"])
    if hasattr(model, "predict_proba"):
        graph.give(_probabilities(graph, model, values), "probabilities", ["n", n_classes])
    if model._binary:
        graph.give(_flat(graph, values), "decision", ["n"])
    else:
        graph.give(values, "decision", ["n", n_classes])


def _labels(classes: np.ndarray) -> np.ndarray:
    """Labels as ONNX has them: texts, truth values, 64-bit integers or floats."""
    if classes.dtype.kind in "OUT":
        if not all(isinstance(label, str) for label in classes):
            raise ValueError(
                "labels must be texts, integers, floats or truth values to be exported, got "
                f"{classes.tolist()[:3]} instead."
            )
        return classes.astype(object)
    return (
        classes
        if classes.dtype.kind == "b"
        else classes.astype(np.int64 if classes.dtype.kind in "iu" else np.float64)
    )


def _probabilities(graph: Graph, model: KernelClassifier, values: str) -> str:
    """softmax(decision / temperature), or isotonic steps."""
    if model.calibration == "isotonic" and model._binary:
        p = _interpolated(graph, values, model.isotonic_)
        return graph.op("Concat", graph.op("Sub", graph.number(1.0), p), p, axis=1)
    scores = values
    if model._binary:
        scores = graph.op("Concat", graph.op("Mul", values, graph.number(0.0)), values, axis=1)
    beta = np.full(
        len(model.classes_), 1.0 / model.temperature_
    )  # one each: a single number might be fused in float32
    p = graph.op("Softmax", graph.op("Mul", scores, graph.number(beta)), axis=1)
    return (
        _top_label_isotonic(graph, p, model.isotonic_, len(model.classes_))
        if model.calibration == "isotonic"
        else p
    )


def _interpolated(graph: Graph, x: str, steps: np.ndarray) -> str:
    """np.interp of a column (n, 1): p₀ + Σ Δp · clip((x - knot)/width, 0, 1)."""
    knots, p = steps
    if len(knots) == 1:
        return graph.op("Add", graph.op("Mul", x, graph.number(0.0)), graph.number(p[0]))
    position = graph.op(
        "Div", graph.op("Sub", x, graph.number(knots[:-1])), graph.number(np.diff(knots))
    )
    inside = graph.op("Clip", position, graph.number(0.0), graph.number(1.0))
    return graph.op(
        "Add", graph.op("MatMul", inside, graph.number(np.diff(p)[:, None])), graph.number(p[0])
    )


def _top_label_isotonic(graph: Graph, p: str, steps: np.ndarray, n_classes: int) -> str:
    """`estimators.classifier.top_label_isotonic`, in the same order."""
    axis = graph.constant(np.array([1], dtype=np.int64))
    top = graph.op(
        "Equal",
        graph.op("ArgMax", p, axis=1, keepdims=1),
        graph.constant(np.arange(n_classes, dtype=np.int64)),
    )
    others = graph.op("Where", top, graph.number(0.0), p)
    rest = graph.op("Max", graph.row_sum(others), graph.number(np.finfo(graph.arithmetic).tiny))
    second = graph.op("ReduceMax", others, axis, keepdims=1)
    a_little_more = graph.op(
        "Add", second, graph.op("Mul", graph.number(1e-9), second)
    )  # a factor of 1 + 1e-9 is taken for 1
    least = graph.op("Div", a_little_more, graph.op("Add", rest, second))
    confidence = graph.op(
        "Max", _interpolated(graph, graph.op("ReduceMax", p, axis, keepdims=1), steps), least
    )
    shared = graph.op(
        "Mul", others, graph.op("Div", graph.op("Sub", graph.number(1.0), confidence), rest)
    )
    result = graph.op("Where", top, confidence, shared)
    return graph.op("Div", result, graph.row_sum(result))
