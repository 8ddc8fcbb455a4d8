"""A graph run in onnxruntime beside the model that it was made from."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...estimators.base import KernelModel
from ...estimators.classifier import KernelClassifier
from ...estimators.validation import warn_numerical
from .graph import Graph, packages

TOLERANCE = 1e-6


def rows_to_measure(final: KernelModel, X: Any) -> Any:
    if X is not None:
        return X
    if final.kernel == "precomputed":
        raise ValueError(
            'pass X, some rows of the kernel with the training rows: with kernel="precomputed" '
            "the model keeps none to measure on."
        )
    if not hasattr(final, "X_fit_"):
        raise ValueError("pass X, some rows to measure the error on: this model keeps none.")
    return final.X_fit_.toarray() if sp.issparse(final.X_fit_) else final.X_fit_


def largest_difference(model: Any, final: KernelModel, graph: Graph, X: Any, dtype: str) -> float:
    """The largest difference of any output of graph and model, relative to the largest value of
    that output.
    """
    rounded, feeds = _rounded(X, graph), _feeds(X, graph)
    runtime = packages()[1]
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        graph.proto().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results = dict(
        zip(
            (output.name for output in session.get_outputs()), session.run(None, feeds), strict=True
        )
    )
    if not isinstance(final, KernelClassifier):
        return _difference(results["prediction"], model.predict(rounded))
    decision = np.asarray(model.decision_function(rounded))
    errors = [_difference(results["decision"], decision)]
    if "probabilities" in results:
        errors.append(_difference(results["probabilities"], model.predict_proba(rounded)))
    wrong = results["label"] != np.asarray(model.predict(rounded)).astype(results["label"].dtype)
    if wrong.any():  # only where the decision is a tie to within its error
        ordered = np.sort(
            np.column_stack([np.zeros(len(decision)), decision])
            if decision.ndim == 1
            else decision,
            axis=1,
        )
        gap = (ordered[:, -1] - ordered[:, -2])[wrong].max() / max(
            np.abs(decision).max(), np.finfo(float).tiny
        )
        errors.append(float(gap))
    return max(errors)


def _difference(found: Any, expected: Any) -> float:
    expected = np.asarray(expected, dtype=np.float64).reshape(len(expected), -1)
    difference = np.abs(np.asarray(found, dtype=np.float64).reshape(expected.shape) - expected).max(
        axis=0
    )
    with np.errstate(invalid="ignore"):
        relative = difference / np.maximum(np.abs(expected).max(axis=0), np.finfo(np.float64).tiny)
    relative = np.where(difference == 0, 0.0, relative)
    return float(np.where(np.isnan(relative), np.inf, relative).max())


def _rounded(X: Any, graph: Graph) -> Any:
    """The rows as the graph sees them: numbers rounded to its input's precision.

    Categories stay what they are.
    """
    if not hasattr(X, "columns"):
        array = np.asarray(X.toarray() if sp.issparse(X) else X)
        if graph.by_column:
            return array
        rounded = array.astype(graph.dtype).astype(np.float64)
        rounded[:, list(graph.categories)] = array[:, list(graph.categories)]
        return rounded
    numbers = {}
    for place, name in enumerate(map(str, X.columns) if not graph.by_column else graph.columns):
        if name not in graph.texts and place not in graph.categories:
            numbers[name] = np.asarray(X[name], dtype=graph.dtype).astype(np.float64)
    if hasattr(X, "with_columns"):
        polars = importlib.import_module("polars")
        return X.with_columns([polars.Series(name, values) for name, values in numbers.items()])
    return X.assign(**numbers)


def _feeds(X: Any, graph: Graph) -> dict[str, np.ndarray]:
    if not graph.by_column:
        X = X[graph.columns] if hasattr(X, "columns") and graph.columns else X
        rows = X.to_numpy() if hasattr(X, "to_numpy") else (X.toarray() if sp.issparse(X) else X)
        return {"X": np.asarray(rows, dtype=graph.dtype)}
    feeds = {}
    for place, (entry, name) in enumerate(zip(graph.inputs, graph.columns, strict=True)):
        values = np.asarray(X[name]) if hasattr(X, "columns") else np.asarray(X)[:, place]
        if name in graph.texts:
            values = np.array(
                [value if isinstance(value, str) else "" for value in values], dtype=object
            )
        feeds[entry.name] = (
            values[:, None] if name in graph.texts else values.astype(graph.dtype)[:, None]
        )
    return feeds


def judge(error: float, tolerance: float, arithmetic: str) -> None:
    """Refuse an error above the tolerance, warn of one that was allowed for."""
    if error > tolerance:
        raise ValueError(
            f"in {arithmetic} the graph's outputs differ from the model's by {error:.1e} of their "
            f"size (tolerance {tolerance:.1e}): "
            f"{_reason(error, arithmetic)}, or raise the tolerance if that is good enough."
        )
    if error > TOLERANCE:
        warn_numerical(
            f"the graph's outputs differ from the model's by up to {error:.1e} of their size."
        )


def _reason(error: float, arithmetic: str) -> str:
    if not np.isfinite(error):
        return 'values overflow. Scale the targets, use dtype="float64"'
    if arithmetic == "float32":
        return (
            "large terms of k(x, X) A cancel, and with them the leading digits. Use "
            'arithmetic="float64", or a model with a larger alpha'
        )
    return (
        "alpha is so small that even float64 keeps few digits of k(x, X) A, or a step of the "
        "pipeline takes rounded rows for others. "
        'Use dtype="float64", or a model with a larger alpha'
    )
