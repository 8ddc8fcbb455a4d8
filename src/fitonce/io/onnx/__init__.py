"""Models for other programs: ONNX.

Every fitted model is f(x) = k(x, X) A + b with the centring folded into A and b, followed by labels
and probabilities; preprocessing of a pipeline goes before it. The graph is built node by node here,
run once in onnxruntime, and compared with the model that it was made from: the largest difference
is written into the file, and a graph that differs too much is refused.

    columns ─► preprocessing ─► kernel with X ─► · A + b ─► decision ─► label, probabilities
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ...core.atomic import write_atomically

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
    """The fitted model as an ONNX graph, for onnxruntime and other programs that know nothing of
    Python.

    A classifier has the outputs ``label`` (n,), ``probabilities`` (n, n_classes) where the model
    gives them, and ``decision``, shaped as ``decision_function`` shapes it; a regression has
    ``prediction``. Rows with NaN or infinities, which the model refuses, have NaN as numbers and a
    label that is none of the classes: ``""``, NaN, or -2⁶³. The input is ``X`` (n, n_features);
    where a pipeline takes columns of texts, there is one input (n, 1) for every column, under its
    name, and a missing text is the empty text.

    The graph is run on the rows given, or on the training rows that the model keeps, and compared
    with the model itself in float64 on the same (rounded) rows. The largest difference, relative to
    the largest value of that output, is stored in the graph: see `measured_error`.

    Parameters
    ----------
    model : estimator
        One of ours, fitted, with any kernel but a Python function; or a Pipeline that ends in one,
        with StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, OneHotEncoder,
        PCA, feature selection, ColumnTransformer and pipelines of them before it.
    X : array-like or data frame, default=None
        Rows to measure the error on. None takes the model's training rows (its landmarks, if it has
        them); of a pipeline only the last step is then measured. Needed for
        ``kernel="precomputed"``.
    path : str or path, default=None
        A file to write, complete or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Of the input and of the outputs.
    arithmetic : {"float64", "float32"}, default="float64"
        What is computed with in between. In float32 large terms of opposite sign cancel, the more
        the smaller alpha is. Choose it for devices that have no float64.
    tolerance : float, default=1e-6
        The largest difference to accept.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ValueError
        Where the graph differs from the model by more than the tolerance, or something in the model
        has no form in ONNX.

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
    from .convert import converted  # which needs them

    proto = converted(model, X, dtype, arithmetic, tolerance)
    if path is not None:
        write_atomically(path, proto.SerializeToString())
    return proto


def measured_error(graph: Any) -> float:
    """The largest relative difference between a graph of `to_onnx` and its model, as measured when
    it was made: on the rows that `to_onnx` was given. Without rows it is that of the model alone,
    and says nothing of the steps of a pipeline before it.

    Parameters
    ----------
    graph : onnx.ModelProto, str or path
        The graph, or the file with it.

    Returns
    -------
    float
    """
    if isinstance(graph, (str, os.PathLike)):
        graph = _imported("onnx").load(os.fspath(graph))
    found = {entry.key: entry.value for entry in graph.metadata_props}
    if ERROR_KEY not in found:
        raise ValueError(
            "this ONNX graph was not made by fitonce.to_onnx(): it does not say what error was "
            "measured."
        )
    return float(found[ERROR_KEY])


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            "exporting models needs onnx and onnxruntime: pip install 'fitonce[onnx]'."
        ) from error
