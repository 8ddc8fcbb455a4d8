"""Validation of the rows, targets and weights of the estimators, and outputs for rows that are not
in memory: block by block from files, lazily for Dask collections.

NumPy, sparse and data-frame input goes through scikit-learn's `validate_data`; arrays of other
namespaces (torch, CuPy) are validated here, on their device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import device, is_array_api_obj, is_numpy_array
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from ..core.arrays import Array, namespace, to_numpy
from ..core.refused import refuse
from ..core.rows import Rows, is_rows
from ..kernels import families
from ..rows.dask import DaskRows, apply_lazily, gathered, is_dask
from .parameter_values import as_numbers, is_precomputed
from .parameters import used


def is_foreign_array(X: Any) -> bool:
    """Whether X is an array of a namespace other than NumPy: torch, CuPy, array-api-strict."""
    return bool(is_array_api_obj(X)) and not is_numpy_array(X) and not sp.issparse(X)


def check_landmarks(points: Any, X: Any) -> Any:
    """Validate landmarks given as points: numeric, two-dimensional, finite, with the features of
    X.
    """
    if not (sp.issparse(points) or is_foreign_array(points)):
        points = as_numbers("landmarks", points)
    if points.ndim != 2 or points.shape[0] == 0 or points.shape[1] != X.shape[1]:
        raise ValueError(
            "landmarks must be a number of landmarks, or points of shape (n_landmarks, "
            f"{X.shape[1]}) with the features of X, got shape {tuple(points.shape)} instead."
        )
    values = points.data if sp.issparse(points) else points
    if not bool(namespace(values).all(namespace(values).isfinite(values))):
        raise ValueError("landmarks contain NaN or infinity: the kernel is not defined there.")
    return points


def as_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Any, Any, Any, Any]:
    """Dask collections and rows from files as `Rows`, with their targets in memory.

    Arrays stay unchanged.
    """
    if is_dask(X):
        X, y, sample_weight, groups = (
            DaskRows(X),
            gathered(y),
            gathered(sample_weight),
            gathered(groups),
        )
    if not is_rows(X):
        return X, y, sample_weight, groups
    if estimator.landmarks is None:
        raise ValueError(
            f"{type(estimator).__name__} needs landmarks for rows in files, blocks or Dask "
            "collections, got landmarks=None: the "
            f"exact model has a kernel matrix of {X.shape[0]:,} × {X.shape[0]:,}. Use, for "
            "example, landmarks=500, or pass an array in memory."
        )
    return (
        X,
        X.y if y is None else y,
        X.sample_weight if sample_weight is None else sample_weight,
        groups,
    )


def check_fit_data(
    estimator: Any, X: Any, y: Any, *, multi_output: bool, many: bool = False
) -> tuple[Array, Any]:
    """X as float64 on its device (a copy; blocks are validated when they are read), and y as a
    NumPy array.

    Several outputs must be numbers; a single output may be labels of any kind. `many` targets
    (n, t) are not copied: an array, a memory-mapped file, or an array on a device; their values are
    checked later.
    """
    if y is None:
        raise ValueError(
            f"requires y to be passed, but the target y is None: {type(estimator).__name__} needs "
            "targets."
        )
    if is_rows(X):
        _set_columns(estimator, X)
    elif is_foreign_array(X):
        X = _check_foreign(estimator, X, reset=True)
    else:
        X = validate_data(estimator, X, **_rows_options(estimator, X))
    if not many:
        y = _check_targets(estimator, to_numpy(y) if is_foreign_array(y) else y, multi_output)
    elif not is_foreign_array(y):
        y = check_array(y, dtype="numeric", ensure_all_finite=False)
    check_consistent_length(np.empty(X.shape[0]), np.empty(y.shape[0]))
    return X, y


def _set_columns(estimator: Any, X: Rows) -> None:
    """The number and names of the columns of rows in blocks."""
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)
    if X.names is not None:
        estimator.feature_names_in_ = np.asarray(X.names, dtype=object)


def _check_targets(estimator: Any, y: Any, multi_output: bool) -> np.ndarray:
    """Targets as a new array: numbers, or one label for each row."""
    options = {"ensure_2d": False, "ensure_min_samples": 2, "input_name": "y"}
    y = check_array(y, dtype=np.float64 if multi_output else None, **options)
    if not multi_output and y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape} instead: a classifier "
            "has one label for each row. For several, use sklearn.multioutput."
            f"MultiOutputClassifier({type(estimator).__name__}()), or one model for each column."
        )
    return np.array(y if multi_output or y.ndim == 1 else column_or_1d(y, warn=True))


def _rows_options(estimator: Any, X: Any) -> dict[str, Any]:
    """The options for scikit-learn's validation of training rows."""
    return {
        "accept_sparse": not is_precomputed(estimator.kernel) and "csr",
        # scikit-learn's L1 distances accept only 32-bit indices
        "accept_large_sparse": "laplacian" not in np.atleast_1d(families(estimator.kernel)),
        "dtype": np.float64,
        # a memory-mapped array is read by landmarks block by block; all else is copied, so that
        # later changes by the caller have no effect
        "copy": not isinstance(X, np.memmap) or estimator.landmarks is None,
        "ensure_min_samples": 2,
    }


def check_new_data(estimator: Any, X: Any, method: str, fitted: Any) -> tuple[Array, Any]:
    """Rows to predict, as float64 in the namespace and on the device of an array of the fit, and
    the dtype of the input.
    """
    precomputed = is_precomputed(used(estimator, "kernel"))
    came_in, fitted_in = namespace_name(X), namespace_name(fitted)
    if fitted_in != came_in:
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace "
            "and the same device as those "
            f"passed to fit(), got {came_in} after {fitted_in} instead: convert one of them."
        )
    try:
        if is_foreign_array(X):
            return _check_foreign(estimator, X, reset=False), X.dtype
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        checks = {"accept_sparse": not precomputed and "csr", "dtype": np.float64, "reset": False}
        return validate_data(estimator, X, **checks), dtype
    except ValueError as error:
        if not precomputed or not str(error).startswith("X has"):
            raise
        raise ValueError(
            f"{error} A precomputed kernel of new rows has one column for each training row."
        ) from None


def namespace_name(X: Any) -> str:
    return (
        f"{namespace(X).__name__.split('.')[-1]} on {device(X)}" if is_foreign_array(X) else "numpy"
    )


def _check_foreign(estimator: Any, X: Array, reset: bool) -> Array:
    """A two-dimensional array as float64 on its device; its shape is checked on the host."""
    xp, name = namespace(X), type(estimator).__name__
    X = X.detach() if getattr(X, "requires_grad", False) else X  # no gradients are needed here
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported by {name}, got dtype {X.dtype}.")
    options = {"ensure_min_samples": 2 if reset else 1, "ensure_all_finite": False}
    # a refusal shows the values of a vector
    shown = np.broadcast_to(0.0, tuple(X.shape)) if X.ndim > 1 else to_numpy(X)
    validate_data(estimator, shown, reset=reset, **options)
    try:
        X = xp.asarray(X, dtype=xp.float64, copy=True if reset else None)
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"{name} computes in float64, which the device {device(X)} does not support: in "
            "float32, held-out values lose all digits for small alpha. Move the data to a device "
            "with float64, or to the host."
        ) from error
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(
            f"Input X contains NaN or infinity. {name} does not accept missing values: impute "
            "them first, in a pipeline."
        )
    return X


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Row weights as float64 NumPy array, or None if all are one. Zeros are allowed.

    Rows with zero weight are not used for training.
    """
    if sample_weight is None:
        return None
    weights = as_numbers(
        "sample_weight",
        to_numpy(sample_weight) if is_foreign_array(sample_weight) else sample_weight,
    )
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    refuse(
        (
            weights.ndim != 1,
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array instead.",
        ),
        (
            weights.shape != (n_samples,),
            f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}: one weight per row.",
        ),
    )
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    refuse(
        (
            wrong.size,
            f"sample_weight must be finite and not negative, got {np.sum(wrong[:1]):g} instead: "
            "a weight counts how often a row occurs. Use 0 to leave out a row.",
        ),
        (
            not np.any(weights > 0),
            "sample_weight is zero for every row: there is nothing to fit.",
        ),
    )
    return None if np.all(weights == 1.0) else weights


# ---- rows that are not in memory ----------------------------------------------------------------


def blockwise(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of X that also accepts, without further arguments, `Rows` (returning an array of all
    outputs) and Dask collections (returning a lazy Dask array).
    """

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if args or options:
            return method(self, X, *args, **options)
        if is_rows(X):
            _check_names(self, X.names)
            return np.concatenate(list(X.map(partial(method, _unnamed(self)))))
        if is_dask(X):
            _check_names(self, getattr(X, "columns", None))
            return apply_lazily(_unnamed(self), method.__name__, X)
        return method(self, X)

    return call


def _unnamed(model: Any) -> Any:
    """The model for blocks, which have no names: the names were checked for all rows."""
    copy = object.__new__(type(model))
    copy.__dict__ = {name: v for name, v in vars(model).items() if name != "feature_names_in_"}
    return copy


def _check_names(model: Any, names: Any) -> None:
    """Check that the columns of a file are those of the fit, in the same order."""
    expected = getattr(model, "feature_names_in_", None)
    if expected is not None and names is not None and list(expected) != list(names):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{list(expected)[:10]}, got {list(names)[:10]} instead. "
            "Select the columns in this order; for a file, with open_rows(..., columns=...)."
        )
