"""The models without each of several sets of rows, evaluated at new rows.

The sets are single rows (jackknife), groups, or folds (CV+); together they are all rows. Each row
has a held-out residual from the model without its set, and a *mass*, its share in order statistics.
Without groups, each row has mass 1/(n + 1). With K groups, each group has mass 1/(K + 1), shared by
its rows (Lee, Barber and Willett 2023). The remaining mass belongs to the new row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.arrays import Array, asarray_like, namespace, replace_rows, take, to_numpy
from ..core.holdout import HeldOut, Path, scatter_without
from ..core.lda import Rule
from ..core.readout import Evidence, Readout
from ..core.smoothing import Smoothing
from ..tuning.problem import Problem

SetsOfRows = Sequence[np.ndarray]


@dataclass(frozen=True)
class LeftOut:
    """Held-out residual and force (n, t) of every row from the model without its set.

    `owner` (n,) is the index of the set of each row, `mass` (n,) its share in order statistics.
    """

    problem: Problem
    path: Path  # at the mu of the model
    held_out: HeldOut
    owner: np.ndarray
    mass: np.ndarray
    single: bool  # whether every set is a single row, in order

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

    @cached_property
    def members(self) -> Array:
        """1 if a row (n) is in a set (k)."""
        return asarray_like(np.eye(self.n_sets)[self.owner], self.problem.targets)

    def by_set(self, per_row: Array) -> Array:
        """Sums (…, k, t) over the rows of each set of values (…, n, t)."""
        if self.single:
            return per_row
        xp = namespace(per_row)
        swapped = xp.matrix_transpose(per_row) @ self.members
        return xp.matrix_transpose(swapped)

    def values(self, smoothing: Smoothing, f: Array) -> Array:
        """Targets (m, k, t) predicted for new rows by the models without each set, given those of
        the model of all rows (m, t).
        """
        return f[:, None, :] - self.by_set(smoothing.shares(self.held_out))

    def own(self, per_set: Array) -> Array:
        """For each row, the entry of its set: from (m, k, …) to (m, n, …)."""
        if self.single:
            return per_set
        xp = namespace(per_set)
        axes = (1, 0, *range(2, per_set.ndim))
        return xp.permute_dims(take(xp.permute_dims(per_set, axes), self.owner), axes)

    def rules(self, readout: Readout) -> Rule | None:
        """The rule of the rows outside each set: a batch of k; None if values are outputs."""
        problem, fitted = (
            self.problem,
            self.problem.smoother.fitted(self.problem.projected, self.path),
        )
        lost = self.by_set(problem.row_weights * problem.targets)
        sizes = problem.sizes - lost
        if readout.n_classes and not np.all(readout.is_regular(to_numpy(self._sizes(readout)))):
            raise ValueError(
                "a class has too few rows outside one of the left-out sets: every model needs rows "
                "of all classes. Use fewer or smaller sets, or leave out rare classes."
            )
        if not readout.needs_scatter:
            return None
        r, rho = fitted.residual[:, None, :], self.held_out.residual[:, None, :]
        dual = force = None
        if self.held_out.force is not None and fitted.dual is not None:
            dual, force = fitted.dual[:, None, :], self.held_out.force[:, None, :]
        E = problem.scatter(fitted)
        change = scatter_without(E, r, HeldOut(rho, force), dual) - E
        n, t, _ = change.shape
        xp = namespace(change)
        summed = xp.reshape(self.by_set(xp.reshape(change, (n, t * t))), (-1, t, t))
        return readout.rule(Evidence(E + summed, sizes))

    def _sizes(self, readout: Readout) -> Array:
        """Class sizes (k, c) outside each set."""
        problem, c = self.problem, readout.n_classes
        targets = problem.targets
        xp = namespace(targets)
        if targets.shape[1] == 1:  # ±1 of two classes
            member = xp.concat([targets < 0, targets > 0], axis=1)
        else:
            member = targets > 0
        weights = problem.row_weights * xp.astype(member, targets.dtype)
        assert weights.shape[1] == c
        return xp.sum(weights, axis=0) - self.by_set(weights)


def left_out(problem: Problem, path: Path, sets: SetsOfRows | None, counted: np.ndarray) -> LeftOut:
    """Every row without its set, at the mu of a path; None for `sets` means single rows.

    `counted` (n,) are the groups that order statistics count, one index for each row.
    """
    mass = _mass(counted)
    n = problem.n_samples
    if sets is None:
        held_out = path.leave_one_out()
        force = None if held_out.force is None else held_out.force[0, ...]
        each = HeldOut(held_out.residual[0, ...], force)
        return LeftOut(problem, path, each, np.arange(n), mass, True)
    fitted = problem.smoother.fitted(problem.projected, path)
    owner = np.full(n, -1)
    residual, force = fitted.residual, fitted.dual
    for number, rows in enumerate(sets):
        owner[rows] = number
        without = problem.without(fitted, rows, float(path.mus[0])).held_out
        residual = replace_rows(residual, rows, without.residual)
        if force is not None:
            force = replace_rows(force, rows, without.force)
    return LeftOut(problem, path, HeldOut(residual, force), owner, mass, False)


def _mass(counted: np.ndarray) -> np.ndarray:
    """1/((K + 1) N_k) for each row of group k, which has N_k rows."""
    _, group, sizes = np.unique(counted, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / ((len(sizes) + 1.0) * sizes[group]))
