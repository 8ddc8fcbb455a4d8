"""Intervals, sets and variances of fitted models: which rows are left out together, new rows in
blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.confounds import Sum
from ..core.holdout import Path, Smoothing, deleted_lines
from ..core.readout import indicators
from ..core.refused import refuse
from ..core.spectrum import row_blocks
from ..kernels.sums import is_finite_number
from ..uncertainty.intervals import conformal_sets, hull, jackknife
from ..uncertainty.left_out import ELEMENTS, LeftOut, influence, left_out, mass_of
from ..uncertainty.process import GaussianProcess, profiled_variance, read_process, spread
from ..uncertainty.sets import FullSets, LeftOutSets, mass_of_classes
from .record import FitRecord
from .setup import default_folds, folds_of

METHODS = ("jackknife+", "cv+", "jackknife-minmax", "full")
FOLDS = 10  # of CV+ by default, as in its paper (Barber et al. 2021)


def check_asked(confidence: Any, method: str) -> None:
    """Refuse an invalid confidence or method."""
    share = is_finite_number(confidence) and 0.0 < confidence < 1.0
    refuse(
        (
            not share,
            f"confidence must be a number between 0 and 1, got {confidence!r} instead: 0.9 asks "
            "for intervals that contain 90 % of new rows.",
        ),
        (
            method not in METHODS,
            f"method must be one of {', '.join(METHODS)}, got {method!r} instead.",
        ),
    )


def full_path(record: FitRecord) -> Path:
    """The path of the model, if a new row can join its fit."""
    refuse(
        (
            record.penalty != "function",
            'method="full" needs penalty="function", got penalty="dual" instead: a row that joins '
            'the fit would add its own kernel function. Use method="jackknife-minmax", which has '
            "the same guarantee.",
        ),
        (
            isinstance(record.problem.smoother, Sum),
            'method="full" lets one row join one model, but where confounds are removed it would '
            'join three: use method="jackknife-minmax", which has the same guarantee, or '
            'confounding="include".',
        ),
        (
            record.training.groups is not None,
            'method="full" compares single rows, but fit was given groups: rows of a group are not '
            'exchangeable with a new row. Use method="jackknife+", which leaves out whole groups.',
        ),
    )
    return record.path


def counted_of(record: FitRecord) -> np.ndarray:
    """What order statistics count (n,): the group of each row, or the row itself."""
    training = record.training
    counted = np.arange(training.n_samples) if training.groups is None else training.groups
    return np.asarray(counted[training.active])


def left_out_of(record: FitRecord, method: str, cv: Any) -> LeftOut:
    """The models without each row, group or fold."""
    training, counted, sets = record.training, counted_of(record), None
    if method == "cv+":
        sets = _folds(record, cv)
    elif cv is not None:
        raise ValueError(f'cv is for method="cv+", got cv={cv!r} with method={method!r}.')
    elif training.groups is not None:
        sets = [np.flatnonzero(counted == group) for group in np.unique(counted)]
    if sets is not None and len(sets) < 2:
        raise ValueError("all rows are in one group: no rows would be left for training.")
    left = left_out(record.problem, record.path, sets, counted)
    _check_classes(left, record)
    return left


def _folds(record: FitRecord, cv: Any) -> list[np.ndarray]:
    """The rows of the requested folds, those of the fit, or ten."""
    training, classifier = record.training, record.readout.n_classes > 0
    folds = record.folds if cv is None else folds_of(cv, training, classifier)
    folds = default_folds(training, FOLDS, classifier) if folds is None else folds
    sets = [training.deletion(train, test)[0] for train, test in folds]
    if not np.array_equal(np.sort(np.concatenate(sets)), np.arange(len(training.active))):
        raise ValueError(
            "cv+ needs folds that leave out every row exactly once, such as KFold, got splits that "
            "overlap or leave rows untested."
        )
    return sets


def _check_classes(left: LeftOut, record: FitRecord) -> None:
    """Refuse a classifier with models that lack a class."""
    codes, readout = record.tuner.data.codes, record.readout
    if codes is None:
        return
    Z = indicators(codes, readout.n_classes) * to_numpy(record.problem.row_weights)
    lost = np.zeros((left.n_sets, readout.n_classes))
    np.add.at(lost, left.owner, Z)
    if not np.all(readout.is_regular(Z.sum(axis=0) - lost)):
        raise ValueError(
            "a class has too few rows outside one of the left-out sets: every model needs rows "
            "of all classes. Use fewer or smaller sets, or leave out rare classes."
        )


def new_row_blocks(
    record: FitRecord,
    X: Any,
    C: Array | None,
    excess: bool,
    answer: Callable[[Smoothing, Array], Any],
) -> list[Any]:
    """Results for blocks of new rows with confounds C, given their smoothing vectors and values."""
    problem = record.problem
    n, t = problem.targets.shape
    X = X.tocsr() if sp.issparse(X) else X
    answers = []
    for rows in row_blocks(X.shape[0], max(1, ELEMENTS // (n * t))):
        own = None if C is None else C[rows, :]
        smoothing = problem.smoothing(X[rows, :], record.alpha, excess, confounds=own)
        answers.append(answer(smoothing, smoothing.values(problem.projected.Y)))
    return answers


def intervals(
    record: FitRecord,
    X: Any,
    C: Array | None,
    confidence: float,
    method: str,
    cv: Any,
    union: bool,
    scaled: bool,
) -> Any:
    """See `KernelRidge.predict_interval`."""
    check_asked(confidence, method)
    if scaled:
        _check_scaled(record, method)
    if union and method != "full":
        raise ValueError(f'union is only for method="full", got method={method!r}.')
    if method == "full":
        by_target = _full_intervals(record, X, C, confidence)
        if union:
            single = record.readout.shaped(record.problem.targets).ndim == 1
            return by_target[0] if single else by_target
        result = asarray_like(np.stack([*map(hull, by_target)], axis=2), record.problem.targets)
        return record.readout.shaped(result)
    left = left_out_of(record, method, cv)
    ends = partial(jackknife, left, confidence, method == "jackknife-minmax", scaled)
    blocks = new_row_blocks(record, X, C, scaled, ends)
    return record.readout.shaped(namespace(blocks[0]).concat(blocks, axis=0))


def _check_scaled(record: FitRecord, method: str) -> None:
    """Refuse to scale intervals where models without single rows have no known deviation."""
    check_process(record, "scaled=True")
    grouped = record.training.groups is not None
    if grouped or method not in ("jackknife+", "jackknife-minmax"):
        given = "groups" if grouped else f"method={method!r}"
        raise ValueError(
            "scaled=True needs the models without single rows, those of jackknife+ and "
            f"jackknife-minmax, got {given}: use scaled=False."
        )


def _full_intervals(
    record: FitRecord, X: Any, C: Array | None, confidence: float
) -> list[list[np.ndarray]]:
    """For each target the set of each new row, as intervals (k, 2)."""
    path, problem = full_path(record), record.problem
    residual, one_minus_h = path.residual[0, ...], path.one_minus_h[0, :]

    def answer(smoothing: Smoothing, f: Array) -> list[list[np.ndarray]]:
        lines = deleted_lines(smoothing, residual, one_minus_h, problem.row_scale)
        at_zero, slope, centre = to_numpy(lines.at_zero), to_numpy(lines.slope), to_numpy(f)
        sets = [conformal_sets(own, slope, confidence) for own in np.moveaxis(at_zero, 2, 0)]
        return [
            [z + part for z, part in zip(*own, strict=True)]
            for own in zip(centre.T, sets, strict=True)
        ]

    blocks = new_row_blocks(record, X, C, True, answer)
    return [[*chain.from_iterable(of_target)] for of_target in zip(*blocks, strict=True)]


def class_sets(
    record: FitRecord,
    X: Any,
    C: Array | None,
    confidence: float,
    method: str,
    cv: Any,
    per_class: bool,
) -> np.ndarray:
    """See `KernelClassifier.predict_set`."""
    check_asked(confidence, method)
    codes, readout, counted = record.tuner.data.codes, record.readout, counted_of(record)
    assert codes is not None
    if per_class:
        mass = mass_of_classes(codes, counted, readout.n_classes)
    else:
        mass = np.tile(mass_of(counted)[:, None], readout.n_classes)
    if method == "full":
        full = FullSets(record.problem, full_path(record), readout, codes, mass > 0)
        answer = partial(full.members, confidence)
    else:
        left = LeftOutSets(left_out_of(record, method, cv), readout, codes, mass)
        answer = partial(left.members, confidence, method == "jackknife-minmax")
    return np.concatenate(new_row_blocks(record, X, C, method == "full", answer))


def influences(record: FitRecord) -> np.ndarray:
    """See `KernelModel.influence`."""
    left = left_out_of(record, "jackknife+", None)
    return np.asarray(record.readout.shaped(influence(left, record.readout)))


# ---- the Gaussian process of a kernel ridge model ------------------------------------------------


def check_process(record: FitRecord, what: str) -> None:
    """Refuse a model that is no Gaussian process."""
    refuse(
        (
            record.training.confounds is not None,
            f"{what} is not available for models with confounds. For intervals with them, use "
            "predict_interval.",
        ),
        (
            record.penalty != "function",
            f'{what} needs penalty="function", got penalty="dual" instead: only the function norm '
            "corresponds to a Gaussian process prior. For intervals with both, use "
            "predict_interval.",
        ),
        (
            record.problem.features is not None,
            f"{what} needs the exact model, got landmarks: away from them, the variance would "
            "vanish. For intervals with landmarks, use predict_interval.",
        ),
    )


def signal_variances(given: Any, record: FitRecord) -> np.ndarray:
    """σ² (t,) as requested: a number, or "profile"."""
    if isinstance(given, str) and given == "profile":
        return profiled_variance(record.problem, record.path)
    if not is_finite_number(given) or given <= 0.0:
        raise ValueError(
            f'signal_variance must be a positive number or "profile", got {given!r} instead.'
        )
    return np.full(record.problem.targets.shape[1], float(given))


def process_of(record: FitRecord, signal_variance: Any) -> GaussianProcess:
    check_process(record, "gaussian_process")
    variance = signal_variances(signal_variance, record)
    return read_process(record.problem, record.path, variance, record.readout.shaped)


def spread_of(
    record: FitRecord, X: Any, covariance: bool, signal_variance: Any, noise: bool
) -> np.ndarray:
    """Standard deviations or covariances at new rows; see `KernelRidge.predict`."""
    check_process(record, "return_cov" if covariance else "return_std")
    variance = signal_variances(signal_variance, record)
    if covariance:
        tau = record.problem.smoothing(X, record.alpha, excess=True, matrix=True).excess
    else:
        blocks = new_row_blocks(record, X, None, True, lambda smoothing, f: smoothing.excess)
        tau = namespace(blocks[0]).concat(blocks, axis=0)
    result = record.readout.shaped(spread(tau, variance, record.alpha, noise))
    return np.asarray(result if covariance else np.sqrt(result))
