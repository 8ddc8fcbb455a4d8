"""Kernel ridge regression with many targets: each with its own alpha, processed in blocks.

Everything that does not depend on the target, the decomposition and the splits, is already there.
The rest is done for blocks of targets, and within them for those that share an alpha.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import device

from ..core.arrays import Array, index_like, namespace, take, to_numpy
from ..core.columns import columns_at_once
from ..core.criteria import BY_TARGET
from ..core.progress import ProgressCounter
from ..core.spectrum import row_blocks
from ..tuning.solution import Solution
from .accuracy import warn_if_inaccurate
from .parameter_values import TUNED_SUM, word
from .record import FitRecord

MANY = 64  # targets; from this number on, they are processed in blocks
STORED = 1 << 25  # largest array that "auto" keeps: 256 MiB in float64
COPIES = 8  # of a block at the peak of memory use


def works_by_target(model: Any, y: Any) -> bool:
    """Whether targets are processed in blocks: if each has its own alpha, or if there are many and
    the criterion evaluates one at a time.
    """
    shape: Any = np.shape(y) if isinstance(y, (list, tuple)) else getattr(y, "shape", ())
    if len(shape) != 2 or not model.multi_output:
        return False
    if model.alpha_per_target:
        return True
    named = isinstance(model.criterion, str) and model.criterion in BY_TARGET
    plain = model.landmarks is None and not model.refine and word(model.kernel) != TUNED_SUM
    return bool(named and plain and int(shape[1]) >= MANY)


def keeps(asked: Any, numbers: int) -> bool:
    """Whether an array of this many numbers is kept: as requested, or by its size."""
    return numbers <= STORED if isinstance(asked, str) else bool(asked)


def solve_by_target(model: Any, record: FitRecord, alpha: Any) -> None:
    """Set the attributes of a model whose targets have this alpha, or each its own (t,).

    Cost: for each target a few products with n×n matrices, and for each block and alpha the
    systems of the splits. Memory: what is kept, and `COPIES` of a block.
    """
    problem, data = record.problem, record.tuner.data
    assert data.columns is not None
    columns, like = data.columns.checked(), problem.smoother.Q0  # as when alpha was chosen
    n, t = columns.shape
    model.alpha_, alphas = alpha, np.broadcast_to(alpha, columns.shape[1])
    _set_degrees_of_freedom(model, record, alphas)
    few = columns.block(slice(0, min(t, 16)), like)
    warn_if_inaccurate(problem.with_targets(few), float(np.min(alphas)))
    held_out = keeps(model.store_held_out, record.training.n_samples * t)
    dual = keeps(model.store_dual_coef, n * t)
    if not (held_out or dual):
        return
    p = 0 if problem.X is None else int(problem.X.shape[1])
    wanted = dual, held_out, p * t <= max(STORED, n * t)
    kept: dict[str, Array] = {}
    progress = ProgressCounter(t, model.verbose, "targets solved")
    for block in row_blocks(t, columns_at_once(COPIES * n, like)):
        Y, own = columns.block(block, like), alphas[block]
        for mu in np.unique(own).tolist():
            chosen = np.flatnonzero(own == mu)
            part = Y if len(chosen) == len(own) else take(Y.T, chosen).T
            solved = _solved(replace(record, problem=problem.with_targets(part)), mu, *wanted)
            for name, values in solved.items():
                if name not in kept:
                    dtype = values.dtype if name == "intercept" else columns.precision(like)
                    shape = t, int(values.shape[0])  # columns are written side by side
                    kept[name] = namespace(like).empty(shape, dtype=dtype, device=device(like)).T
                _put(kept[name], block.start + chosen, values)
        progress(block.stop - block.start)
    if dual:
        of_rows, intercept = kept["dual_coef"], kept["intercept"][0, :]
        others = kept.get("coef"), model._centred, kept.get("confound_coef")
        model._set_solution(Solution(of_rows, intercept, *others), record.readout)
    if held_out:
        model._set_held_out(record.readout.shaped(kept["held_out"]))


def _solved(
    record: FitRecord, mu: float, dual: bool, held_out: bool, coef: bool
) -> dict[str, Array]:
    """Coefficients and held-out predictions (…, t) of targets that share an alpha, by name."""
    path = record.problem.path(np.asarray([mu]))
    found: dict[str, Array | None] = {}
    if dual:
        solution = record.problem.solution(record.fitted(path), mu, with_coef=coef)
        found = {"dual_coef": solution.dual_coef, "intercept": solution.intercept[None, :]}
        found |= {"coef": solution.coef, "confound_coef": solution.confound_coef}
    if held_out:
        values = record.held_out(path)
        found["held_out"] = values[:, None] if values.ndim == 1 else values
    return {name: values for name, values in found.items() if values is not None}


def _put(array: Array, columns: np.ndarray, values: Array) -> None:
    """Set columns of an array in its own precision; without a list of them if contiguous."""
    values = namespace(values).astype(values, array.dtype)
    first, last = int(columns[0]), int(columns[-1])
    contiguous = last - first + 1 == len(columns)
    array[:, slice(first, last + 1) if contiguous else index_like(columns, array)] = values


def _set_degrees_of_freedom(model: Any, record: FitRecord, alphas: np.ndarray) -> None:
    """`effective_dof_`, one number or one for each target; leverages if they are the same."""
    unique, number = np.unique(alphas, return_inverse=True)
    path = record.problem.with_targets(np.zeros((record.problem.n_samples, 1))).path(unique)
    leverage = 1.0 - path.one_minus_h
    dof = to_numpy(namespace(leverage).sum(leverage, axis=1))
    if model.alpha_per_target:
        model.effective_dof_ = dof[number]
        return
    model.leverage_ = leverage[0, :]
    model.effective_dof_ = float(dof[0])


def check_stored(model: Any) -> None:
    """Refuse to predict if the coefficients were not kept."""
    if not hasattr(model, "dual_coef_") and hasattr(model, "alpha_"):
        raise ValueError(
            "this model did not keep its dual coefficients, which predictions need: "
            f'store_dual_coef={model.store_dual_coef!r} ("auto" keeps up to {STORED:,} numbers, '
            "rows times targets). Fit with store_dual_coef=True."
        )
