"""The models without each of several sets of rows, evaluated at new rows; and order statistics.

The sets are single rows (jackknife), groups, or folds (CV+); together they are all rows. Each row
has a held-out residual from the model without its set, and a *mass*, its share in order statistics.
Without groups, each row has mass 1/(n + 1). With K groups, each group has mass 1/(K + 1), shared by
its rows (Lee, Barber and Willett 2023). The remaining mass belongs to the new row.

The influence of a row on all others,

    [i, j] = (output at row j of the model without row i) - (output at row j of the model),

follows with row j in the place of a new row, where h(x_j) is row j of H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..core.arrays import Array, asarray_like, is_numpy, namespace, take, to_numpy
from ..core.confounds import smoothing_of_rows
from ..core.holdout import HeldOut, Path, Smoothing
from ..core.readout import Evidence, Readout
from ..core.spectrum import row_blocks
from ..tuning.problem import Problem, Without

ROUNDING = 1e-9  # tolerance for a share of rows to be an integer: 0.9 · 10 is not above 9
ELEMENTS = 1 << 21  # values of left-out models in memory at a time: 16 MiB


@dataclass(frozen=True)
class LeftOut:
    """Held-out residual and force (n, t) of every row from the model without its set.

    `owner` (n,) is the index of the set of each row, `mass` (n,) its share in order statistics;
    `models` are those without each set, none where the sets are single rows in order.
    """

    problem: Problem
    path: Path  # at the mu of the model
    held_out: HeldOut
    owner: np.ndarray
    mass: np.ndarray
    models: Sequence[Without] = ()

    @property
    def mu(self) -> float:
        return float(self.path.mus[0])

    @property
    def n_sets(self) -> int:
        return int(self.owner.max()) + 1

    @cached_property
    def residual(self) -> Array:
        """y minus its held-out value (n, t)."""
        return self.problem.unscale(self.held_out.residual)

    def values(self, smoothing: Smoothing, f: Array) -> Array:
        """Targets (m, k, t) predicted for new rows by the models without each set, given those of
        the model of all rows (m, t).
        """
        shares, xp = smoothing.shares(self.held_out), namespace(f)
        if self.models:
            members = asarray_like(np.eye(self.n_sets)[self.owner], f)
            shares = xp.matrix_transpose(xp.matrix_transpose(shares) @ members)
        return f[:, None, :] - shares

    def own(self, per_set: Array) -> Array:
        """For each row, the entry of its set: from (m, k, t) to (m, n, t)."""
        xp = namespace(per_set)
        rows_first = take(xp.permute_dims(per_set, (1, 0, 2)), self.owner)
        return xp.permute_dims(rows_first, (1, 0, 2))

    def evidence(self) -> Evidence:
        """Of the rows outside each set: a batch of k."""
        if not self.models:
            return self.problem.evidence_without_each(self.path)
        xp, each = namespace(self.problem.targets), [model.evidence() for model in self.models]
        scatter = xp.stack([evidence.scatter for evidence in each])
        return Evidence(scatter, xp.stack([evidence.sizes for evidence in each]))


def left_out(
    problem: Problem, path: Path, sets: Sequence[np.ndarray] | None, counted: np.ndarray
) -> LeftOut:
    """Every row without its set, at the mu of a path; None for `sets` means single rows.

    `counted` (n,) are the groups that order statistics count, one index for each row.
    """
    mass, owner = mass_of(counted), np.arange(problem.n_samples)
    _check_closed(problem, sets)
    if sets is None:
        each = path.leave_one_out().map(lambda A: A[0, ...])
        return LeftOut(problem, path, each, owner, mass)
    fitted = problem.smoother.fitted(problem.projected, path)
    found = (problem.without(fitted, rows, float(path.mus[0])) for rows in sets)
    models = [model for model in found if isinstance(model, Without)]
    order = np.argsort(np.concatenate(sets))
    first, *others = (model.held_out for model in models)
    xp = namespace(fitted.residual)
    held_out = first.map(lambda *parts: take(xp.concat(parts, axis=0), order), *others)
    owner = np.repeat(owner[: len(sets)], [len(rows) for rows in sets])[order]
    return LeftOut(problem, path, held_out, owner, mass, models)


def _check_closed(problem: Problem, sets: Sequence[np.ndarray] | None) -> None:
    """Refuse sets without which the model has to be fitted anew."""
    rows = problem.alone if sets is None else [i for s in sets if problem.fits_anew(s) for i in s]
    if len(rows):
        raise ValueError(
            f"without row {int(rows[0])}, and those that leave with it, the model has no closed "
            'form: the confounds lose a level there, or were removed with penalty="dual", or a '
            "landmark leaves with its row. Merge rare levels, use other folds, "
            'penalty="function", or shared_landmarks=True.'
        )


def mass_of(counted: np.ndarray) -> np.ndarray:
    """1/((K + 1) N_k) for each row of group k, which has N_k rows."""
    _, group, sizes = np.unique(counted, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / ((len(sizes) + 1.0) * sizes[group]))


def influence(left: LeftOut, readout: Readout) -> np.ndarray:
    """Changes (k, n, o) of outputs o at row j if set i is left out; sets are usually single rows.

    Exact, equal to n refits, O(n²) numbers. Discriminants use the rule of the remaining rows.
    """
    problem, path = left.problem, left.path
    fitted = problem.smoother.fitted(problem.projected, path)
    values = problem.unscale(fitted.values)
    rule = readout.rule_from(partial(problem.evidence, fitted))
    rules = readout.rule_from(left.evidence)
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


# ---- order statistics with a guarantee; infinite if they do not exist ----------------------------


def upper(values: Array, mass: np.ndarray, confidence: float) -> Array:
    """The smallest value (m, …) of (m, n, …) such that the rows at or below it have the mass
    `confidence`; infinite if all rows together have less. The values may be put into another order.
    """
    if np.all(mass == mass[0]):
        return _ranked(values, int(np.ceil(confidence / mass[0] - ROUNDING)))
    host = to_numpy(values)
    order = np.argsort(host, axis=1, kind="stable")
    reached = np.cumsum(mass[order], axis=1) >= confidence - ROUNDING
    first = np.argmax(reached, axis=1)[:, None]
    ranked = np.take_along_axis(np.take_along_axis(host, order, axis=1), first, axis=1)[:, 0]
    result = np.where(reached.any(axis=1), ranked, np.inf)
    return result if is_numpy(values) else asarray_like(result, values)


def lower(values: Array, mass: np.ndarray, confidence: float) -> Array:
    """The largest value such that the rows at or above it have the mass `confidence`, or
    -infinity. The values may be put into another order.
    """
    return -upper(-values, mass, confidence)


def _ranked(values: Array, rank: int) -> Array:
    """The rank-th smallest along the second axis, in place."""
    xp = namespace(values)
    if rank > values.shape[1]:
        return xp.full_like(values[:, 0, ...], xp.inf)
    if is_numpy(values):
        values.partition(rank - 1, axis=1)
        return values[:, rank - 1, ...]
    return xp.sort(values, axis=1)[:, rank - 1, ...]
