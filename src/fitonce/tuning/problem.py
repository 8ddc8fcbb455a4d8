"""From validated rows to one decomposition, and from there to models: of all rows, or without some.

A `Problem` is the smoother of the rows with targets. Labels enter only through the targets, so
other labels are another `Problem` with the same smoother.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.arrays import (
    Array,
    asarray_like,
    namespace,
    take,
)
from ..core.holdout import (
    Deletion,
    Fitted,
    HeldOut,
    Path,
    Removal,
    Smoother,
    Targets,
    scatter_without,
)
from ..core.readout import Evidence
from ..core.refused import RefusedError
from ..core.smoothing import Smoothing
from ..kernels import Kernel
from .decompose import FitIntercept
from .solution import Solution


@dataclass(frozen=True)
class Problem:
    """Training rows, their decomposition and their targets.

    `row_scale` (n, 1) holds the square roots of the row weights, or None. Smoothers work on scaled
    targets, which `projected` holds.
    """

    kernel: Kernel
    X: Any
    smoother: Smoother
    row_scale: Array | None
    fit_intercept: FitIntercept
    targets: Array
    projected: Targets

    @property
    def left_out(self) -> float:
        """What μ must be well above, because smaller eigenvalues were taken for rounding."""
        return 0.0

    def squared_errors(self, alphas: np.ndarray) -> np.ndarray | None:
        """The mean squared leave-one-out error at every alpha, where it can be had without the
        residuals themselves: from rows that are elsewhere.
        """
        return None

    @property
    def n_samples(self) -> int:
        return int(self.targets.shape[0])

    @cached_property
    def row_weights(self) -> Array:
        """(n, 1)"""
        ones = namespace(self.targets).ones_like(self.targets[:, :1])
        return ones if self.row_scale is None else self.row_scale**2

    @cached_property
    def sizes(self) -> Array:
        """Σw y (t,): the class sizes, where targets are indicators."""
        return namespace(self.targets).sum(self.row_weights * self.targets, axis=0)

    def with_targets(self, targets: np.ndarray) -> Problem:
        """The same decomposition with other targets (n, t)."""
        Y = asarray_like(targets, self.smoother.Q0)
        scaled = Y if self.row_scale is None else self.row_scale * Y
        return replace(self, targets=Y, projected=self.smoother.project(scaled))

    def unscale(self, values: Array, rows: Any = None) -> Array:
        """Values of a smoother as predictions: divided by the rows' scale."""
        if self.row_scale is None:
            return values
        return values / (self.row_scale if rows is None else take(self.row_scale, rows))

    def check(self, alphas: np.ndarray) -> None:
        """Refuse an alpha at which the model does not exist."""
        if not self.smoother.admits(alphas):
            bound = self.smoother.lower_bound
            raise RefusedError(
                f"alpha must be greater than {bound:.6g} for this kernel, got "
                f"{float(np.min(alphas)):.6g} instead: the centered kernel matrix is indefinite "
                f"(its smallest eigenvalue is {-bound:.6g}), and below that value the penalized "
                'problem has no minimum. Use a larger alpha, or penalty="dual", which does not '
                "need a definite kernel."
            )

    def path(self, alphas: np.ndarray) -> Path:
        return self.smoother.path(self.projected, alphas)

    def fit(self, mu: float) -> Fitted:
        return self.smoother.fit(self.projected, mu)

    def scatter(self, fitted: Fitted) -> Array:
        """E = Yᵀ(I - H)Y (t, t) of a fit."""
        return fitted.Y.T @ fitted.residual

    def evidence(self, fitted: Fitted) -> Evidence:
        """Scatter and class sizes of all rows."""
        return Evidence(self.scatter(fitted), self.sizes)

    def evidences(self, mus: np.ndarray) -> Evidence:
        """The same for every mu (m, …)."""
        E = self.scatters(mus)
        return Evidence(E, self.sizes + 0.0 * E[:, 0, :])

    def evidence_without_each(self, path: Path) -> Evidence:
        """Of the other rows (n, …), where each one is left out, at the mu of a path."""
        sizes = self.sizes - self.row_weights * self.targets
        return Evidence(self.scatter_without_each(path), sizes)

    def residual(self, fitted: Fitted) -> Array:
        """(I - H)Y (n, t) of a fit."""
        return fitted.residual

    def scatters(self, mus: np.ndarray) -> Array:
        """E for every mu (m, t, t)."""
        return self.smoother.residual_scatter(self.projected, mus)

    def scatter_without_each(self, path: Path) -> Array:
        """E of the other rows (n, t, t) where each one is left out, at the mu of a path."""
        held_out = path.leave_one_out()
        r, rho = path.residual[0, :, None, :], held_out.residual[0, :, None, :]
        force = dual = None
        if held_out.force is not None and path.dual is not None:
            force, dual = held_out.force[0, :, None, :], path.dual[0, :, None, :]
        E = Problem.scatter(self, self.smoother.fitted(self.projected, path))
        return scatter_without(E, r, HeldOut(rho, force), dual)

    def leverage(self, path: Path) -> Array:
        """The diagonal of H (n,) at the mu of a path."""
        return 1.0 - path.one_minus_h[0, :]

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        """The model of a fit: dual_coef = s∘α, and the bias from its normal equation, or the sum of
        α where it is penalized by K + 1; the weights of the features of a linear kernel, unless
        they are not wanted.
        """
        raise NotImplementedError

    def smoothing(self, X: Array, mu: float, excess: bool = False) -> Smoothing:
        """New rows as functions of the scaled targets, with τ where `excess` asks for it."""
        raise NotImplementedError

    def held_out_targets(
        self, mus: np.ndarray, deletions: Sequence[Deletion] | None, path: Path | None = None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Held-out targets (m, k, t) for every mu, the k rows tested and the number of the split
        each belongs to.

        Leave-one-out where no deletions are given, O(n²) per mu and from `path` if that is known;
        otherwise pairs of rows deleted and positions among them tested.
        """
        if deletions is None:
            rows = np.arange(self.n_samples)
            path = self.path(mus) if path is None else path
            return self.unscale(self.projected.Y - path.leave_one_out().residual), rows, rows
        rows, fold = tested_rows(deletions)
        values = self.smoother.held_out_folds(self.projected, mus, deletions)
        return self.unscale(values, rows), rows, fold

    def left_out_residuals(self, columns: Array, mus: np.ndarray) -> Array:
        """Leave-one-out residuals (m, n, t) of other targets (n, t), scaled as the rows are."""
        scaled = columns if self.row_scale is None else self.row_scale * columns
        return self.smoother.leave_one_out(self.smoother.project(scaled), mus).residual

    def values_without_each(self, path: Path) -> Array:
        """Predicted targets (n, t) of every row by the model without it, at the mu of a path."""
        return self.unscale(self.projected.Y - path.leave_one_out().residual[0, ...])

    def features_of(self, rows: np.ndarray) -> Any:
        """Some of the rows as they would come to `predict`; None if they are not kept."""
        return None if self.X is None else take(self.X, rows)

    def confounds_of(self, rows: np.ndarray) -> Array | None:
        """The confounds of some rows, where there are any."""
        return None

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without:
        """The model that a refit without the deleted rows would give."""
        return Without(self, fitted, self.smoother.leave_out(deleted, mu), mu)


def tested_rows(deletions: Sequence[Deletion]) -> tuple[np.ndarray, np.ndarray]:
    """The rows tested by all deletions one after the other, and which deletion tests each."""
    rows = np.concatenate([deleted[tested] for deleted, tested in deletions])
    return rows, np.repeat(np.arange(len(deletions)), [len(tested) for _, tested in deletions])


@dataclass(frozen=True)
class Without:
    """The model without some rows, in closed form: its held-out values there and, on demand,
    everywhere.
    """

    problem: Problem
    fitted: Fitted
    removal: Removal
    mu: float

    @cached_property
    def held_out(self) -> HeldOut:
        return self.removal.held_out(self.fitted)

    @cached_property
    def refitted(self) -> Fitted:
        """A fit of all rows in which the deleted ones have no say; `Problem.solution` makes it a
        model.
        """
        problem = self.problem
        return problem.smoother.refit_without(
            problem.projected, self.removal, self.held_out, self.mu
        )

    @property
    def solution(self) -> Solution:
        """The model as coefficients."""
        return self.problem.solution(self.refitted, self.mu)

    @property
    def evidence(self) -> Evidence:
        """Scatter and class sizes of the rows that are left."""
        problem, rows = self.problem, self.removal.rows
        removed = take(problem.row_weights * problem.targets, rows)
        sizes = problem.sizes - namespace(removed).sum(removed, axis=0)
        return Evidence(self.scatter, sizes)

    @property
    def scatter(self) -> Array:
        """E of the rows that are left."""
        fitted, rows = self.fitted, self.removal.rows
        dual = None if fitted.dual is None else take(fitted.dual, rows)
        E = Problem.scatter(self.problem, fitted)
        return scatter_without(E, take(fitted.residual, rows), self.held_out, dual)

    def values(self, rows: np.ndarray) -> Array:
        """Predicted targets of the given rows, deleted or not."""
        position = np.full(self.problem.n_samples, -1)
        position[self.removal.rows] = np.arange(len(self.removal.rows))
        if np.all(position[rows] >= 0):
            deleted = take(self.fitted.Y, self.removal.rows) - self.held_out.residual
            values = take(deleted, position[rows])
        else:
            values = take(self.refitted.values, rows)
        return self.problem.unscale(values, rows)
