"""Intervals and sets of fitted models: which rows are left out together, new rows in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.holdout import Path
from ..core.smoothing import Smoothing, deleted_lines
from ..core.spectrum import row_blocks
from ..uncertainty.full import conformal_sets, hull
from ..uncertainty.influence import influence
from ..uncertainty.intervals import jackknife_minmax, jackknife_plus
from ..uncertainty.left_out import LeftOut, left_out
from ..uncertainty.sets import FullSets, LeftOutSets
from .record import FitRecord, record_of
from .setup import Folds, default_folds, folds_of

METHODS = ("jackknife+", "cv+", "jackknife-minmax", "full")
FOLDS = 10  # of CV+ by default
ELEMENTS = 1 << 21  # values of left-out models at new rows in memory at a time


def check_request(confidence: float, method: str) -> None:
    """Refuse an invalid confidence and unknown methods."""
    number = isinstance(confidence, (int, float, np.floating)) and not isinstance(confidence, bool)
    if not number or not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence must be a number between 0 and 1, got {confidence!r} instead: 0.9 asks "
            "for intervals that contain 90 % of new rows."
        )
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r} instead.")


def full_path(model: Any, record: FitRecord) -> Path:
    """The path of the model, if a new row can join its fit."""
    if model.penalty_ != "function":
        raise ValueError(
            'method="full" needs penalty="function", got penalty="dual" instead: a row that joins '
            'the fit would add its own kernel function. Use method="jackknife-minmax", which has '
            "the same guarantee."
        )
    if record.training.groups is not None:
        raise ValueError(
            'method="full" compares single rows, but fit was given groups: rows of a group are not '
            'exchangeable with a new row. Use method="jackknife+", which leaves out whole groups.'
        )
    return model_path(model, record)


def model_path(model: Any, record: FitRecord) -> Path:
    return record.problem.path(np.asarray([model.alpha_]))


def left_out_of(model: Any, record: FitRecord, method: str, cv: Any) -> LeftOut:
    """The models without each row, group or fold."""
    training = record.training
    active = training.active
    groups = None if training.groups is None else training.groups[active]
    counted = np.arange(len(active)) if groups is None else groups
    path = model_path(model, record)
    if method != "cv+":
        if cv is not None:
            raise ValueError(f'cv is for method="cv+", got cv={cv!r} with method={method!r}.')
        sets = None if groups is None else _sets(groups)
        return left_out(record.problem, path, sets, counted)
    folds = _folds(model, record, cv)
    sets = [training.deletion(train, test)[0] for train, test in folds]
    _check_partition(sets, len(active))
    return left_out(record.problem, path, sets, counted)


def _sets(groups: np.ndarray) -> list[np.ndarray]:
    if len(np.unique(groups)) < 2:
        raise ValueError("all rows are in one group: no rows would be left for training.")
    return [np.flatnonzero(groups == group) for group in np.unique(groups)]


def _folds(model: Any, record: FitRecord, cv: Any) -> Folds:
    """The requested folds, those of the fit, or ten."""
    training, classifier = record.training, not model.multi_output
    if cv is None and record.folds is not None:
        return record.folds
    if cv is None:
        return default_folds(training, FOLDS, classifier)
    folds = folds_of(cv, training, classifier)
    assert folds is not None
    return folds


def _codes(record: FitRecord) -> np.ndarray:
    codes = record.tuner.data.codes
    assert codes is not None
    return codes


def _check_partition(sets: list[np.ndarray], n: int) -> None:
    rows = np.concatenate(sets)
    if len(rows) != n or len(np.unique(rows)) != n:
        raise ValueError(
            "cv+ needs folds that leave out every row exactly once, such as KFold, got splits that "
            "overlap or leave rows untested."
        )


# ---- new rows, in blocks -----------------------------------------------------------------


def new_row_blocks(
    model: Any, record: FitRecord, X: Any, excess: bool, answer: Callable[[Smoothing, Array], Any]
) -> list[Any]:
    """Results for blocks of new rows, given their smoothing vectors and values."""
    problem = record.problem
    n, t = problem.targets.shape
    X = X.tocsr() if sp.issparse(X) else X
    answers = []
    for rows in row_blocks(X.shape[0], max(1, ELEMENTS // (n * t))):
        smoothing = problem.smoothing(X[rows, :], model.alpha_, excess)
        answers.append(answer(smoothing, smoothing.values(problem.projected.Y)))
    return answers


def intervals(model: Any, X: Any, confidence: float, method: str, cv: Any, union: bool) -> Any:
    """See `KernelRidge.predict_interval`."""
    check_request(confidence, method)
    X, *_ = model._new_rows(X, "predict_interval")
    record = record_of(model, "predict_interval")
    if union and method != "full":
        raise ValueError(f'union is only for method="full", got method={method!r}.')
    single = record.readout.shaped(record.problem.targets).ndim == 1
    if method == "full":
        return _full_intervals(model, record, X, confidence, union, single)
    left = left_out_of(model, record, method, cv)
    band = jackknife_minmax if method == "jackknife-minmax" else jackknife_plus

    def answer(smoothing: Smoothing, f: Array) -> Array:
        return band(left, smoothing, f, confidence)

    blocks = new_row_blocks(model, record, X, False, answer)
    result = namespace(blocks[0]).concat(blocks, axis=0)
    return result[:, :, 0] if single else result


def _full_intervals(
    model: Any, record: FitRecord, X: Any, confidence: float, union: bool, single: bool
) -> Any:
    path, problem = full_path(model, record), record.problem
    residual, one_minus_h = path.residual[0, ...], path.one_minus_h[0, :]

    def answer(smoothing: Smoothing, f: Array) -> list[list[np.ndarray]]:
        lines = deleted_lines(smoothing, residual, one_minus_h, problem.row_scale)
        at_zero, slope, centre = to_numpy(lines.at_zero), to_numpy(lines.slope), to_numpy(f)
        by_target = []
        for t in range(centre.shape[1]):
            sets = conformal_sets(at_zero[:, :, t], slope, confidence)
            by_target.append([z + part for z, part in zip(centre[:, t], sets, strict=True)])
        return by_target

    blocks = new_row_blocks(model, record, X, True, answer)
    n_targets = int(residual.shape[1])
    by_target = [[part for block in blocks for part in block[t]] for t in range(n_targets)]
    if union:
        return by_target[0] if single else by_target
    result = np.stack([hull(sets) for sets in by_target], axis=2)
    result = result[:, :, 0] if single else result
    return result if isinstance(residual, np.ndarray) else asarray_like(result, residual)


def class_sets(model: Any, X: Any, confidence: float, method: str, cv: Any) -> np.ndarray:
    """See `KernelClassifier.predict_set`."""
    check_request(confidence, method)
    X, *_ = model._new_rows(X, "predict_set")
    record = record_of(model, "predict_set")
    codes = _codes(record)
    if method == "full":
        full = FullSets(record.problem, full_path(model, record), record.readout, codes)
        blocks = new_row_blocks(
            model, record, X, True, lambda smoothing, f: full(smoothing, f, confidence)
        )
        return np.concatenate(blocks)
    members = LeftOutSets(left_out_of(model, record, method, cv), record.readout, codes)
    minmax = method == "jackknife-minmax"
    blocks = new_row_blocks(
        model, record, X, False, lambda smoothing, f: members(smoothing, f, confidence, minmax)
    )
    return np.concatenate(blocks)


def influences(model: Any) -> np.ndarray:
    """See `KernelModel.influence`."""
    record = record_of(model, "influence")
    changes = influence(left_out_of(model, record, "jackknife+", None), record.readout)
    return np.asarray(changes[..., 0] if record.readout.shaped(changes).ndim == 2 else changes)
