"""Export to ONNX.

Every fitted model is f(x) = k(x, X) A + b, with the centering folded into A and b, followed by
labels and probabilities; the preprocessing of a pipeline comes first, and a committee sums its
members. The graph is built node by node, run once in onnxruntime, and compared with the model. The
largest difference is stored in the file, and a graph that differs too much is refused.

    columns ─► preprocessing ─► kernel with X ─► · A + b ─► decision ─► label, probabilities
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ...core.atomic import check_place, write_atomically

__all__ = ["measured_error", "to_onnx"]

ERROR_KEY = "fitonce.max_relative_error"
TOLERANCE = 1e-6


def to_onnx(
    model: Any,
    X: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    dtype: str = "float32",
    arithmetic: str = "float64",
    tolerance: float = TOLERANCE,
) -> Any:
    """Export a fitted model as an ONNX graph, for onnxruntime and other programs without Python.

    A classifier has the outputs ``label`` (n,), ``probabilities`` (n, n_classes) if the model has
    them, and ``decision``. A regression has ``prediction``. For rows with NaN or infinities,
    numbers are NaN and the label is none of the classes: ``""``, NaN, or -2⁶³. The input is ``X``
    (n, n_features), or one input (n, 1) for every column where some are strings.

    The graph is run on rows and compared with the model itself. The largest difference, relative to
    the largest value of that output, is stored in the graph: see `measured_error`.

    Parameters
    ----------
    model : estimator
        A fitted estimator or committee of fitonce, or a Pipeline that ends in one, after scalers,
        SimpleImputer, OneHotEncoder, PCA, feature selection and ColumnTransformer.
    X : array-like or data frame, default=None
        Rows for measuring the error. None uses the training rows (or landmarks) that the model
        keeps; for a pipeline, this measures only the last step.
    path : str or path, default=None
        A file to write, completely or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of the outputs.
    arithmetic : {"float64", "float32"}, default="float64"
        Type of the internal computations; float32 loses digits at small alpha.
    tolerance : float, default=1e-6
        Largest acceptable difference.

    Returns
    -------
    onnx.ModelProto
        The graph.

    Raises
    ------
    ValueError
        If the graph differs from the model by more than the tolerance, or a part of the model
        cannot be expressed in ONNX.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import LeastSquaresSVC, to_onnx
    >>> from fitonce.datasets import make_torus
    >>> X, y = make_torus(80, random_state=0)
    >>> graph = to_onnx(LeastSquaresSVC().fit(X, y))
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities', 'decision']
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> label, probabilities, decision = session.run(None, {"X": X[:3].astype(np.float32)})
    >>> probabilities.shape
    (3, 2)
    """
    for name, value in (("dtype", dtype), ("arithmetic", arithmetic)):
        if value not in ("float32", "float64"):
            raise ValueError(f'{name} must be "float32" or "float64", got {value!r} instead.')
    if not tolerance > 0:
        raise ValueError(f"tolerance must be a positive number, got {tolerance!r} instead.")
    for package in ("onnx", "onnxruntime"):
        _imported(package)
    if path is not None:
        check_place(path)
    from .model import converted  # needs these packages

    proto = converted(model, X, dtype, arithmetic, tolerance)
    if path is not None:
        write_atomically(path, proto.SerializeToString())
    return proto


def measured_error(graph: Any) -> float:
    """The largest relative difference between a graph of `to_onnx` and its model, measured when the
    graph was made, on the rows passed to `to_onnx`. Without rows, it is that of the model alone,
    not of the pipeline steps before it.

    Parameters
    ----------
    graph : onnx.ModelProto, str or path
        The graph, or its file.

    Returns
    -------
    float
    """
    if isinstance(graph, (str, os.PathLike)):
        graph = _imported("onnx").load(os.fspath(graph))
    found = {entry.key: entry.value for entry in graph.metadata_props}
    if ERROR_KEY not in found:
        raise ValueError(
            "this ONNX graph was not made by fitonce.to_onnx(): it does not contain the error that "
            "was measured."
        )
    return float(found[ERROR_KEY])


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            "exporting models needs onnx and onnxruntime: pip install 'fitonce[onnx]'."
        ) from error
