r"""How leaving out one row changes the outputs at all other rows.

    [i, j] = (output at row j of the model without row i) - (output at row j of the model),

computed with the deletion formula for a new row, with row j in its place, where h(x_j) is row j of
H. Exact, equal to n refits, O(n²) numbers. Discriminants use the rule of the remaining rows.
"""

from __future__ import annotations

import numpy as np

from ..core.arrays import Array, asarray_like, eye_like, namespace, to_numpy
from ..core.readout import Readout
from ..core.smoothing import Smoothing
from ..core.spectrum import row_blocks
from ..tuning.outputs import rule_of_fit
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
    H, B = _of_rows(left)
    step = max(1, ELEMENTS // int(H.shape[0] * values.shape[1]))
    parts = []
    for rows in row_blocks(int(H.shape[0]), step):
        smoothing = Smoothing(H[rows, :], None if B is None else B[rows, :])
        changed = namespace(values).permute_dims(left.values(smoothing, values[rows, :]), (1, 0, 2))
        parts.append(to_numpy(readout.read(changed, rules)) - before[None, rows, :])
    return np.concatenate(parts, axis=1)


def _of_rows(left: LeftOut) -> tuple[Array, Array | None]:
    """h and b of the training rows themselves (n, n), in the units of their predictions.

    Ŷ = HY - Bν, so h(x_j) is row j of H and b(x_j) is row j of B.
    """
    problem, mu = left.problem, left.mu
    smoother, n = problem.smoother, problem.n_samples
    unit = eye_like(n, problem.targets)
    H = unit - smoother.fit(smoother.project(unit), mu).residual
    if left.held_out.force is None:
        return problem.unscale(H), None
    none = smoother.project(asarray_like(np.zeros((n, n)), problem.targets))
    return problem.unscale(H), problem.unscale(smoother.fit(none, mu, unit).residual)
