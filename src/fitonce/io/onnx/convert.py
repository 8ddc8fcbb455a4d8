"""From a fitted model to a graph, which is run in onnxruntime and compared with the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from sklearn.utils.validation import check_is_fitted

from ...core.numerical_warnings import warn_numerical
from ...estimators.fitted import is_committee, is_model
from ..contents import portable
from . import ERROR_KEY, TOLERANCE
from .graph import Graph, Inputs, steps_of
from .model import add_model, training_rows
from .transformers import transformed

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
