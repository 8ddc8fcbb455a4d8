"""From a fitted model to a graph, which is run in onnxruntime and compared with the model: kernel,
f(x) = k(x, X) A + b, labels and probabilities after the steps of its pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
import scipy.sparse as sp
from onnx import parser
from sklearn.utils.validation import check_is_fitted

from ...core.numerical_warnings import warn_numerical
from ...estimators.fitted import (
    final_step,
    fitted_kernel,
    is_binary,
    is_committee,
    is_model,
    is_regressor,
    members_of,
    solution_of,
    trained_columns,
)
from ...kernels import Kernel, MatrixLookup, SummedKernel
from ..contents import portable
from . import ERROR_KEY, TOLERANCE
from .graph import COLUMNS, Graph, Inputs, Value, beside, steps_of
from .transformers import interpolated, transformed

ROWS_KEY, COLUMNS_KEY = "fitonce.measured_on", "fitonce.columns"
REASONS = {
    "overflow": 'values overflow. Scale the targets, use dtype="float64"',
    "float32": "large terms of k(x, X) A cancel, which loses the leading digits. Use "
    'arithmetic="float64", or a model with a larger alpha',
    "float64": "alpha is so small that even float64 keeps few digits of k(x, X) A, or a step of "
    'the pipeline treats rounded rows differently. Use dtype="float64", or a model with a larger '
    "alpha",
}
METHODS = {  # method of the model for each output of the graph
    "label": "predict",
    "probabilities": "predict_proba",
    "decision": "decision_function",
    "prediction": "predict",
}
LABELS: dict[str, tuple[Any, Any]] = {  # how they are written, and the label of a refused row
    "b": (np.bool_, None),
    "i": (np.int64, np.iinfo(np.int64).min),
    "u": (np.int64, np.iinfo(np.int64).min),
    "f": (np.float64, np.nan),
    "O": (object, ""),
}


def converted(model: Any, X: Any, dtype: str, arithmetic: str, tolerance: float) -> Any:
    """The ONNX model, with the measured error.

    Without rows, only the last step is measured, on the training rows that it keeps.
    """
    model = portable(model)
    *steps, final = steps_of(model) or [None]
    if not is_model(final) and not is_committee(final):
        ending = "" if final is model else f" that ends in {type(final).__name__}"
        raise TypeError(
            "to_onnx() exports KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge, committees "
            f"of them and pipelines that end in one, got {type(model).__name__}{ending} instead."
        )
    check_is_fitted(final)
    graph, inputs = _built(steps, final, dtype, arithmetic)
    if X is not None:
        error, rows = _difference(model, graph, inputs, X), "the rows given"
    else:
        alone = _built([], final, dtype, arithmetic) if steps else (graph, inputs)
        error = _difference(final, *alone, training_rows(final))
        rows = "training rows after preprocessing" if steps else "training rows"
    _judge(error, tolerance, arithmetic)
    names = list(inputs.names.values()) if inputs.named or inputs.by_column else []
    return graph.proto({ERROR_KEY: f"{error:.3g}", ROWS_KEY: rows, COLUMNS_KEY: json.dumps(names)})


def _built(steps: Sequence[Any], final: Any, dtype: str, arithmetic: str) -> tuple[Graph, Inputs]:
    graph = Graph(np.dtype(dtype), np.dtype(arithmetic))
    inputs = Inputs.of(steps, steps[0] if steps else final, graph.dtype)
    rows = transformed(steps, inputs.add_to(graph))
    add_model(final, rows.matrix())
    return graph, inputs


def _difference(model: Any, graph: Graph, inputs: Inputs, X: Any) -> float:
    """The largest difference between any output of graph and model, relative to the largest value
    of that output.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.proto({}).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    rows, names = inputs.rows(X), [output.name for output in session.get_outputs()]
    results = dict(zip(names, session.run(None, inputs.feeds(rows)), strict=True))
    rounded = inputs.rounded(rows)
    expected = {
        name: np.asarray(getattr(model, method)(rounded))
        for name, method in METHODS.items()
        if name in results
    }
    errors = [_relative(results[name], expected[name]) for name in expected if name != "label"]
    if "label" in expected:
        errors.append(_worst_tie(results["label"] != expected["label"], expected["decision"]))
    return max(errors)


def _worst_tie(wrong: np.ndarray, decision: np.ndarray) -> float:
    """How far the rows with wrong labels are from a tie, relative to the largest decision."""
    scores = (
        np.column_stack([np.zeros_like(decision), decision]) if decision.ndim == 1 else decision
    )
    gaps = np.diff(np.sort(scores[wrong], axis=1)[:, -2:])
    return float(gaps.max(initial=0.0) / max(np.abs(decision).max(), np.finfo(float).tiny))


def _relative(found: Any, expected: Any) -> float:
    """The largest difference in any column, relative to the largest value of the column."""
    expected = np.asarray(expected, dtype=np.float64).reshape(len(expected), -1)
    found = np.asarray(found, dtype=np.float64).reshape(expected.shape)
    difference = np.abs(found - expected).max(axis=0)
    with np.errstate(invalid="ignore"):
        relative = difference / np.maximum(np.abs(expected).max(axis=0), np.finfo(float).tiny)
    return float(np.where(np.isnan(relative), np.inf, relative).max())


def _judge(error: float, tolerance: float, arithmetic: str) -> None:
    """Refuse an error above the tolerance; warn about one that was allowed."""
    if error > tolerance:
        reason = REASONS[arithmetic if np.isfinite(error) else "overflow"]
        raise ValueError(
            f"in {arithmetic}, the outputs of the graph differ from those of the model by "
            f"{error:.1e} of their size (tolerance {tolerance:.1e}): {reason}, or raise the "
            "tolerance if that is good enough."
        )
    if error > TOLERANCE:
        warn_numerical(
            f"the outputs of the graph differ from those of the model by up to {error:.1e} of "
            "their size."
        )


# ---- the outputs ---------------------------------------------------------------------------------


def add_model(model: Any, x: Value) -> None:
    """Add f(x) = k(x, X) A + b, or the mixture of a committee, and what follows, as outputs."""
    one = members_of(model)[0]
    width, regressor = one.dual_coef_.shape[1:], is_regressor(one)
    p = None
    if is_committee(model) and not regressor:
        values, p = _mixture(model, x)
    elif is_committee(model):
        pairs = zip(model.members_, model.weights_.tolist(), strict=True)
        values = _total([_of_member(member, x, weight) for member, weight in pairs])
    else:
        values = _outputs(model, x)
        p = _probabilities(model, values) if hasattr(model, "predict_proba") else None
    if not regressor:
        _give_classes(model.classes_, values, p)
    name = "prediction" if regressor else "decision"
    (values if width else values.flat()).give(name, *width)


def _outputs(model: Any, x: Value, weight: float = 1.0) -> Value:
    """f(x) = k(x, X) A + b (n, ·) of one model, times a weight, which goes into A and b."""
    if getattr(model, "confounds_", None) is not None:
        raise ValueError(
            "a model with confounds cannot be exported to ONNX: its predictions need the confounds "
            "of every row. Use fitonce.save instead."
        )
    solution = solution_of(model)
    if solution.coef is not None:
        values = x @ (weight * solution.coef)
    else:
        values = _kernel(model, x) @ (weight * solution.dual_coef)
    shifted: Value = values + weight * solution.intercept
    # NaN for rows with NaN or an infinity: a later maximum may lose it, and exp(-∞) is a number
    return shifted + x.row_sums() * 0.0


def _of_member(member: Any, x: Value, weight: float = 1.0) -> Value:
    """The same of a member of a committee, after the steps before its model."""
    return _outputs(final_step(member), transformed(steps_of(member)[:-1], x).matrix(), weight)


def _total(parts: list[Value]) -> Value:
    total: Value = sum(parts[1:], parts[0])
    return total


def _mixture(committee: Any, x: Value) -> tuple[Value, Value]:
    """Decisions and probabilities of the members' probabilities mixed, at the temperature of the
    mixture: log p of every class, or log(p_1/p_0). Weights are rows of equal numbers: onnxruntime
    would fuse a single one.
    """
    c = len(committee.classes_)
    pairs = zip(committee.members_, committee.weights_.tolist(), strict=True)
    each = [_probabilities(final_step(one), _of_member(one, x)) * np.full(c, w) for one, w in pairs]
    p = _total(each)
    scores = p.op("Max", float(np.finfo(p.graph.arithmetic).tiny)).op("Log")
    p = (scores * np.full(c, 1.0 / committee.temperature_)).op("Softmax", axis=1)
    p = _floored(p, committee.floor_, c)
    log_p = p.op("Log")
    return (log_p.select([1]) - log_p.select([0]) if c == 2 else log_p), p


def training_rows(model: Any) -> np.ndarray:
    """The rows stored in the model; for a committee, in its first member without steps."""
    if is_committee(model):
        model = next((one for one in model.members_ if is_model(one)), model)
    if is_committee(model):
        raise ValueError(
            "pass X, some rows for measuring the error: all members of this committee keep rows "
            "after the steps before their models."
        )
    if not hasattr(model, "X_fit_"):
        precomputed = fitted_kernel(model).precomputed
        raise ValueError(
            f"pass X, some rows{' of the kernel with the training rows' if precomputed else ''} "
            "for measuring the error: this model keeps none."
        )
    rows = model.X_fit_.toarray() if sp.issparse(model.X_fit_) else model.X_fit_
    return np.asarray(rows, dtype=np.float64)


# ---- kernels: k(x, X) (n, n_fit) of new rows x with the rows X stored in the model ---------------


def _kernel(model: Any, x: Value) -> Value:
    kernel, columns = fitted_kernel(model), trained_columns(model)
    if kernel.precomputed:
        return x if columns is None else x.select(columns)
    if not isinstance(kernel, SummedKernel):
        return _formula(kernel, x, training_rows(model))
    return _sum(kernel, x, training_rows(model))


def _sum(kernel: SummedKernel, x: Value, X: np.ndarray) -> Value:
    """Σ θ k over columns. Uses a row of equal weights: onnxruntime would fuse a single number."""
    parts = []
    for number in np.flatnonzero(kernel.weights):
        member = kernel.members[number]
        columns = np.arange(X.shape[1])[member.columns]
        part = _formula(kernel.kernels[number], x.select(columns), X[:, columns])
        parts.append(part * np.full(len(X), kernel.weights[number]))
    return _total(parts)


def _formula(kernel: Kernel, x: Value, X: np.ndarray) -> Value:
    if isinstance(kernel.function, MatrixLookup):
        raise ValueError(
            "a precomputed matrix in a sum of kernels cannot be exported to ONNX: use named "
            "kernels."
        )
    if callable(kernel.function):
        raise ValueError(
            f"the kernel {kernel.function!r} is a Python function and cannot be exported to ONNX: "
            "use one of the named kernels."
        )
    return KERNELS[kernel.function](x, X, **kernel.parameters)


def _linear(x: Value, X: np.ndarray) -> Value:
    """x·X. Factors are put into X.

    onnxruntime would fuse a single number next to a product, rounded to float32.
    """
    return x @ X.T


def _squared(x: Value, X: np.ndarray, gamma: Any) -> Value:
    """Σ γ (u - U)² with u = x - center.

    The center does not change the distances, but reduces their rounding errors.
    """
    gammas = np.broadcast_to(gamma, X.shape[1:])
    U = X - X.mean(axis=0)
    u: Value = x - X.mean(axis=0)
    norms: Value = (u * u) @ gammas[:, None] + (gammas * U**2).sum(axis=1)
    return (norms + _linear(u, -2.0 * gammas * U)).op("Max", 0.0)


def _rbf(x: Value, X: np.ndarray, *, gamma: Any) -> Value:
    return _squared(x, X, gamma).op("Neg").op("Exp")


def _matern32(x: Value, X: np.ndarray, *, gamma: float) -> Value:
    u = _squared(x, X, 3.0 * gamma**2).op("Sqrt")
    return (u + 1.0) * u.op("Neg").op("Exp")


def _matern52(x: Value, X: np.ndarray, *, gamma: float) -> Value:
    squared = _squared(x, X, 5.0 * gamma**2)
    u = squared.op("Sqrt")
    return (u + squared / 3.0 + 1.0) * u.op("Neg").op("Exp")


def _summed(x: Value, X: np.ndarray, size: str) -> Value:
    """The distances of x - X, summed feature by feature in a scan, so that only (n, n_fit) numbers
    are kept.
    """
    kind = {4: "float", 8: "double"}[x.graph.arithmetic.itemsize]
    distance_in_one_feature = parser.parse_graph(f"""
        one_feature ({kind}[n, m] so_far, {kind}[n] a, {kind}[m] b) => ({kind}[n, m] further) {{
            axis = Constant <value_ints = [1]> ()
            column = Unsqueeze (a, axis)
            difference = Sub (column, b)
            size = {size}
            further = Add (so_far, size)
        }}""")
    zeros = x.row_sums() * np.zeros((1, len(X)))
    features = x.op("Transpose", perm=[1, 0])
    return zeros.op("Scan", features, X.T, num_scan_inputs=2, body=distance_in_one_feature)


def _laplacian(x: Value, X: np.ndarray, *, gamma: float) -> Value:
    return (_summed(x, X, "Abs (difference)") * -gamma).op("Exp")


def _exponential(x: Value, X: np.ndarray, *, gamma: float) -> Value:
    """From differences: the root of a rounded zero is not zero, and this kernel has a cusp
    there.
    """
    squared = _summed(x, X, "Mul (difference, difference)")
    return (squared.op("Sqrt") * -gamma).op("Exp")


def _poly(x: Value, X: np.ndarray, *, gamma: float, degree: float, coef0: float) -> Value:
    return (_linear(x, gamma * X) + float(coef0)).op("Pow", float(degree))


def _sigmoid(x: Value, X: np.ndarray, *, gamma: float, coef0: float) -> Value:
    return (_linear(x, gamma * X) + float(coef0)).op("Tanh")


def _cosine(x: Value, X: np.ndarray) -> Value:
    norms, norm = np.linalg.norm(X, axis=1, keepdims=True), (x * x).row_sums().op("Sqrt")
    divisor = x.graph.op("Where", norm.op("Equal", 0.0), 1.0, norm)  # a row of zeros stays zero
    return _linear(x / divisor, X / np.where(norms == 0, 1.0, norms))


KERNELS: dict[Any, Callable[..., Value]] = {
    "rbf": _rbf,
    "exponential": _exponential,
    "matern32": _matern32,
    "matern52": _matern52,
    "linear": _linear,
    "poly": _poly,
    "polynomial": _poly,
    "laplacian": _laplacian,
    "cosine": _cosine,
    "sigmoid": _sigmoid,
}


# ---- classes -------------------------------------------------------------------------------------


def _give_classes(classes: np.ndarray, values: Value, p: Value | None) -> None:
    """Labels, and probabilities if the model has them."""
    n_classes = len(classes)
    if n_classes == 2:
        codes = values.op("Greater", 0.0).cast(np.int64).flat()
    else:
        codes = values.op("ArgMax", axis=1, keepdims=0)
    refused = values.row_sums().op("IsNaN").flat()
    codes = refused.op("Where", np.array(n_classes, dtype=np.int64), codes)
    labels = _labels(classes)
    values.graph.constant(labels).op("Gather", codes).give("label", dtype=labels.dtype)
    if p is not None:
        p = p + values.row_sums() * 0.0  # clipping would lose NaN
        p.give("probabilities", n_classes)


def _labels(classes: np.ndarray) -> np.ndarray:
    """Labels in ONNX types: strings, booleans, 64-bit integers or floats; and last the label of a
    row that the model refuses.

    Booleans have none: onnxruntime stops at such a row, as the model does.
    """
    kind = classes.dtype.kind if classes.dtype.kind in LABELS else "O"
    texts = kind != "O" or all(isinstance(label, str) for label in classes)
    if not texts or (kind == "u" and classes.max() > np.iinfo(np.int64).max):
        raise ValueError(
            "labels must be strings, integers below 2⁶³, floats or booleans to be exported, got "
            f"{classes.tolist()[:3]} instead."
        )
    dtype, none = LABELS[kind]
    labels = classes.astype(dtype)
    told_apart = none is not None and none not in labels.tolist()
    return np.append(labels, np.array([none], dtype=dtype)) if told_apart else labels


def _probabilities(model: Any, values: Value) -> Value:
    """softmax(decision / temperature), or isotonic steps; none below the floor."""
    isotonic, n_classes = model.calibration == "isotonic", len(model.classes_)
    if isotonic and is_binary(model):
        p = interpolated(values, model.isotonic_)
        return beside(1.0 - p, p)
    scores = beside(values * 0.0, values) if is_binary(model) else values
    # one factor for each class: a single number might be fused in float32
    p = (scores * np.full(n_classes, 1.0 / model.temperature_)).op("Softmax", axis=1)
    p = _top_label_isotonic(p, model.isotonic_, n_classes) if isotonic else p
    return _floored(p, model.floor_, n_classes)


def _floored(p: Value, floor: float, n_classes: int) -> Value:
    """Mixed with even odds, so that no class has less than the floor."""
    share: Value = p * np.full(n_classes, 1.0 - n_classes * floor)
    return share + np.full(n_classes, float(floor)) if floor else p


def _top_label_isotonic(p: Value, steps: np.ndarray, n_classes: int) -> Value:
    """`core.calibration.top_label_isotonic`, in the same order."""
    where = p.op("ArgMax", axis=1, keepdims=1)
    top = where.op("Equal", np.arange(n_classes, dtype=np.int64))
    others = top.op("Where", 0.0, p)
    rest = others.row_sums().op("Max", float(np.finfo(p.graph.arithmetic).tiny))
    second = others.op("ReduceMax", COLUMNS, keepdims=1)
    least = (second + second * 1e-9) / (rest + second)  # a factor of 1 + 1e-9 counts as 1
    confidence = interpolated(p.op("ReduceMax", COLUMNS, keepdims=1), steps).op("Max", least)
    result = top.op("Where", confidence, others * ((1.0 - confidence) / rest))
    return result / result.row_sums()
