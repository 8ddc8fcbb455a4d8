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
from .accuracy_warnings import warn_if_inaccurate
from .parameters import TUNED_SUM, word
from .record import FitRecord

MANY = 64  # targets; from this number on, they are processed in blocks
STORED = 1 << 25  # largest array that "auto" keeps: 256 MiB in float64
COPIES = 8  # of a block at the peak of memory use


def works_by_target(model: Any, y: Any) -> bool:
    """Whether targets are processed in blocks: if each has its own alpha, or if there are many and
    the criterion evaluates one at a time.
    """
    shape: Any = np.shape(y) if isinstance(y, (list, tuple)) else getattr(y, "shape", ())
    if len(shape) != 2:
        return False
    if model.alpha_per_target:
        return True
    named = isinstance(model.criterion, str) and model.criterion in BY_TARGET
    plain = model.landmarks is None and not model.refine and word(model.kernel) != TUNED_SUM
    return bool(named and plain and int(shape[1]) >= MANY)


def keeps(asked: Any, numbers: int) -> bool:
    """Whether an array of this many numbers is kept: as requested, or by its size."""
    return numbers <= STORED if isinstance(asked, str) else bool(asked)


def solve_by_target(model: Any, record: FitRecord, alphas: np.ndarray) -> None:
    """Set the attributes of a model whose targets have these alphas (t,).

    Cost: for each target a few products with n×n matrices, and for each block and alpha the
    systems of the splits. Memory: what is kept, and `COPIES` of a block.
    """
    problem, data = record.problem, record.tuner.data
    assert data.columns is not None
    columns, like = data.columns, problem.smoother.Q0
    n, t = columns.shape
    _set_degrees_of_freedom(model, record, alphas)
    few = columns.block(slice(0, min(t, 16)), like)
    warn_if_inaccurate(problem.with_targets(few), float(np.min(alphas)))
    if problem.X is not None:
        model.X_fit_ = problem.X
    held_out = keeps(model.store_held_out, record.training.n_samples * t)
    dual = keeps(model.store_dual_coef, n * t)
    if not (held_out or dual):
        return
    p = 0 if problem.X is None else int(problem.X.shape[1])
    wanted = dual, held_out, p * t <= max(STORED, n * t)
    kept = _Kept(t, columns.precision(like), like)
    told = ProgressCounter(t, model.verbose, "targets solved")
    for block in row_blocks(t, columns_at_once(COPIES * n, like)):
        Y, own = columns.block(block, like), alphas[block]
        for mu in np.unique(own).tolist():
            chosen = np.flatnonzero(own == mu)
            part = Y if len(chosen) == len(own) else take(Y.T, chosen).T
            solved = replace(record, problem=problem.with_targets(part))
            kept.put(block.start + chosen, *_solved(solved, mu, *wanted))
        told(block.stop - block.start)
    if kept.solution is not None:
        model._set_solution(kept.solution, record.readout)
    if "held_out" in kept.arrays:
        model._set_held_out(record.readout.shaped(kept.arrays["held_out"]))


def _solved(
    record: FitRecord, mu: float, dual: bool, held_out: bool, coef: bool
) -> tuple[Solution | None, Array | None]:
    """The model and the held-out predictions of targets that share an alpha."""
    path = record.problem.path(np.asarray([mu]))
    solution = None
    if dual:
        solution = record.problem.solution(record.fitted(path), mu, with_coef=coef)
    values = record.held_out(path) if held_out else None
    if values is not None and values.ndim == 1:
        values = values[:, None]
    return solution, values


class _Kept:
    """Arrays with one column for each target, filled as targets are solved."""

    def __init__(self, n_targets: int, dtype: Any, like: Array) -> None:
        self.n_targets, self.dtype, self.like = n_targets, dtype, like
        self.arrays: dict[str, Array] = {}
        self.centred = False

    def put(self, columns: np.ndarray, solution: Solution | None, held_out: Array | None) -> None:
        found = {"held_out": held_out}
        if solution is not None:
            self.centred = solution.centred
            found |= {"dual_coef": solution.dual_coef, "coef": solution.coef}
            found["intercept"] = solution.intercept[None, :]
            found["confound_coef"] = solution.confound_coef
        for name, values in found.items():
            if values is not None:
                self._put(name, columns, values)

    def _put(self, name: str, columns: np.ndarray, values: Array) -> None:
        if name not in self.arrays:
            xp = namespace(self.like)
            dtype = xp.float64 if name == "intercept" else self.dtype
            shape = (int(values.shape[0]), self.n_targets)
            self.arrays[name] = xp.empty(shape, dtype=dtype, device=device(self.like))
        array = self.arrays[name]
        values = namespace(values).astype(values, array.dtype)
        first, last = int(columns[0]), int(columns[-1])
        if last - first + 1 == len(columns):  # contiguous: no list of columns
            array[:, first : last + 1] = values
        else:
            array[:, index_like(columns, array)] = namespace(array).astype(values, array.dtype)

    @property
    def solution(self) -> Solution | None:
        if "dual_coef" not in self.arrays:
            return None
        arrays = self.arrays
        intercept = arrays["intercept"][0, :]
        coefs = arrays.get("coef"), self.centred, arrays.get("confound_coef")
        return Solution(arrays["dual_coef"], intercept, *coefs)


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
