"""A fitted kernel ridge model as a Gaussian process: checks, shapes, and new rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like, namespace
from ..core.rows import is_rows
from ..rows.dask import is_dask
from ..uncertainty.process import GaussianProcess, profiled_variance, read_process, spread
from .record import FitRecord, record_of
from .uncertain import model_path, new_row_blocks


def process_record(model: Any, what: str) -> FitRecord:
    """The record of a model that is a Gaussian process."""
    record = record_of(model, what)
    if model.penalty_ != "function":
        raise ValueError(
            f'{what} needs penalty="function", got penalty="dual" instead: only the function norm '
            "corresponds to a Gaussian process prior. For intervals with both, use "
            "predict_interval."
        )
    if record.problem.features is not None:
        raise ValueError(
            f"{what} needs the exact model, got landmarks: away from them, the variance would "
            "vanish. For intervals with landmarks, use predict_interval."
        )
    return record


def signal_variances(given: Any, record: FitRecord, model: Any) -> np.ndarray:
    """σ² (t,) as requested: a number, or "profile"."""
    if isinstance(given, str) and given == "profile":
        return profiled_variance(record.problem, model_path(model, record))
    number = isinstance(given, (int, float, np.floating)) and not isinstance(given, bool)
    if not number or not 0.0 < given < np.inf:
        raise ValueError(
            f'signal_variance must be a positive number or "profile", got {given!r} instead.'
        )
    return np.full(record.problem.targets.shape[1], float(given))


def process_of(model: Any, signal_variance: Any) -> GaussianProcess:
    """See `KernelRidge.gaussian_process`."""
    record = process_record(model, "gaussian_process")
    variance = signal_variances(signal_variance, record, model)
    read = read_process(record.problem, model_path(model, record), variance)
    if record.readout.shaped(record.problem.targets).ndim == 2:
        return read
    names = ("held_out_mean", "held_out_std", "held_out_log_density", "standardized")
    single: dict[str, Any] = {name: getattr(read, name)[:, 0] for name in names}
    for name in ("signal_variance", "noise_variance"):
        single[name] = float(getattr(read, name)[0])
    return replace(read, **single)


def predict_with_spread(
    model: Any, X: Any, covariance: bool, signal_variance: Any, noise: bool
) -> tuple[Array, Array]:
    """Predictions, and standard deviations or covariances; see `KernelRidge.predict`."""
    if is_rows(X) or is_dask(X):
        raise ValueError(
            "return_std and return_cov need the rows in memory, got a file, blocks or a Dask "
            "collection: predict some rows at a time."
        )
    mean = model.predict(X)
    X, *_ = model._new_rows(X, "predict")
    record = process_record(model, "return_cov" if covariance else "return_std")
    variance, mu = signal_variances(signal_variance, record, model), model.alpha_
    if covariance:
        tau = record.problem.smoothing(X, mu, excess=True, matrix=True).excess
        result = spread(tau, variance, mu, noise)
    else:
        blocks = new_row_blocks(model, record, X, None, True, lambda smoothing, f: smoothing.excess)
        tau = namespace(blocks[0]).concat(blocks, axis=0)
        result = np.sqrt(spread(tau, variance, mu, noise))
    result = result[..., 0] if mean.ndim == 1 else result
    return mean, result if isinstance(mean, np.ndarray) else asarray_like(result, mean)
