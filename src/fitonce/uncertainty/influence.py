r"""How leaving out one row changes the outputs at all other rows.

    [i, j] = (output at row j of the model without row i) - (output at row j of the model),

computed with the deletion formula for a new row, with row j in its place, where h(x_j) is row j of
H. Exact, equal to n refits, O(n²) numbers. Discriminants use the rule of the remaining rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..core.arrays import Array, namespace, to_numpy
from ..core.readout import Readout
from ..core.spectrum import row_blocks
from ..core.sum_of_smoothers import smoothing_of_rows
from ..tuning.outputs import rule_of_fit
from ..tuning.problem import Problem
from .left_out import LeftOut

ELEMENTS = 1 << 21  # values of left-out models in memory at a time


def influence(left: LeftOut, readout: Readout) -> np.ndarray:
    """Changes (k, n, o) of outputs o at row j if set i is left out; sets are usually single
    rows.
    """
    problem, path = left.problem, left.path
    fitted = problem.smoother.fitted(problem.projected, path)
    values = problem.unscale(fitted.values)
    rule, rules = rule_of_fit(problem, readout, fitted), left.rules(readout)
    before = to_numpy(readout.read(values, rule))
    of_rows = smoothing_of_rows(problem.smoother, left.mu)
    n, t = values.shape
    parts = []
    for rows in row_blocks(n, max(1, ELEMENTS // (n * t))):
        smoothing = of_rows.map(partial(_unscaled, problem, rows))
        changed = namespace(values).permute_dims(left.values(smoothing, values[rows, :]), (1, 0, 2))
        parts.append(to_numpy(readout.read(changed, rules)) - before[None, rows, :])
    return np.concatenate(parts, axis=1)


def _unscaled(problem: Problem, rows: slice, A: Array) -> Array:
    """Some rows of A (n, n) in the units of their predictions."""
    return problem.unscale(A[rows, :], np.arange(problem.n_samples)[rows])
