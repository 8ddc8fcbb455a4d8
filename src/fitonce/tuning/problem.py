"""From validated rows to one decomposition, and from there to models: of all rows, or without some.

A `Problem` is the smoother of the rows with targets. Labels enter only through the targets, so
other labels are another `Problem` with the same smoother.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..core.arrays import (
    Array,
    asarray_like,
    namespace,
    replace_rows,
    square_block,
    take,
    zeros_like_shape,
)
from ..core.confounds import ConfoundBasis, Sum, SumFitted, SumSmoothing
from ..core.holdout import Deletion, Fitted, HeldOut, Path, Removal, Smoother, Smoothing, Targets
from ..core.readout import Evidence
from ..core.refused import RefusedError
from ..core.rows import rows_at
from ..core.smoothers import FunctionNorm, KernelSmoother
from ..core.splits import complement
from ..core.thin import Thin
from ..kernels import Kernel
from ..landmarks.choice import Landmarks
from ..landmarks.features import LandmarkMap
from .decompose import FitIntercept
from .solution import (
    Solution,
    free_columns,
    kernel_smoothing,
    kernel_solution,
    side_by_side,
)
from .specification import Data

LINEAR = Kernel("linear")


@dataclass(frozen=True)
class Refits:
    """Models of some rows of `data` that have no closed form: `make` makes a problem of rows. These
    are `needed` for sets of rows that leave, and for the rows that are `alone`.
    """

    data: Data
    make: Callable[[Data], Problem]
    alone: np.ndarray
    needed: Callable[[np.ndarray], bool]


@dataclass(frozen=True)
class Problem:
    """Training rows, their decomposition and their targets.

    The model is a sum of kernels at `X`, which are the rows, or landmarks if there are `features`;
    None for a kernel matrix. `row_scale` (n, 1) holds the square roots of the row weights, or None.
    Smoothers work on scaled targets, which `projected` holds.

    Confounds are free columns beside the bias; where they are removed, the smoother is a `Sum`, and
    `Z` holds the features of landmarks. Models without some rows may have no closed form (of
    confounds, and of landmarks that are dropped with their rows): these are `refits`.
    """

    kernel: Kernel
    X: Any
    smoother: Smoother
    row_scale: Array | None
    fit_intercept: FitIntercept
    targets: Array
    projected: Targets
    features: LandmarkMap | None = None
    Z: Array | None = None
    confounds: ConfoundBasis | None = None
    refits: Refits | None = None

    @property
    def n_samples(self) -> int:
        return int(self.targets.shape[0])

    @property
    def of_kernel(self) -> KernelSmoother:
        """The smoother of a kernel matrix: the joint one where confounds are removed."""
        smoother = self.smoother
        return cast(KernelSmoother, smoother.terms[0] if isinstance(smoother, Sum) else smoother)

    @property
    def left_out(self) -> float:
        """What μ must be well above, because smaller eigenvalues were taken for rounding: those of
        K_mm, n/m times as large in the sums over rows.
        """
        if self.features is None:
            return 0.0
        return self.features.left_out * self.n_samples / int(self.X.shape[0])

    def squared_errors(self, alphas: np.ndarray) -> np.ndarray | None:
        """The mean squared leave-one-out error at every alpha, where it can be had without the
        residuals themselves: from rows that are elsewhere.
        """
        thin, targets = self.thin, self.projected
        if thin is None or not thin.data.remote or len(self.alone):
            return None
        total = int(targets.Y.shape[1]) * thin.solved.weight
        return thin.squared_errors(targets.Y, targets.z, alphas) / total

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

    # ---- the model of all rows -----------------------------------------------------------------

    def path(self, alphas: np.ndarray) -> Path:
        return self.smoother.path(self.projected, alphas)

    def fit(self, mu: float) -> Fitted:
        return self.smoother.fit(self.projected, mu)

    def scatter(self, fitted: Fitted) -> Array:
        """E = Yᵀ(I - H)Y (t, t) of a fit."""
        return fitted.Y.T @ fitted.residual

    def evidence(self, fitted: Fitted) -> Evidence:
        return Evidence(self.scatter(fitted), self.sizes)

    def evidences(self, mus: np.ndarray) -> Evidence:
        """The same for every mu (m, …)."""
        E = self.smoother.residual_scatter(self.projected, mus)
        return Evidence(E, self.sizes + 0.0 * E[:, 0, :])

    def solution(self, fitted: Fitted | None, mu: float, with_coef: bool = True) -> Solution:
        """The model of a fit as coefficients, or of all rows if that is None, with the weights of
        the features of a linear kernel unless they are not wanted.

        Of features that are read block by block, no pass: α = N w and the bias ȳ - z̄·w, from
        coefficients w of features minus their center.
        """
        if self.thin is not None:
            known, thin = self.projected if fitted is None else fitted, self.thin
            of_features = thin.coef(known.z, mu), thin.mean_Y(known.Y), thin.solved.mean_Z
            return Solution(*cast(LandmarkMap, self.features).model(*of_features))
        fitted = self.fit(mu) if fitted is None else fitted
        if self.Z is not None:
            own = self._linear.solution(fitted, mu)
            assert self.features is not None and own.coef is not None
            model = self.features.model(own.coef, own.intercept, 0.0 * own.coef[:, 0])
            return Solution(*model, confound_coef=own.confound_coef)
        if not isinstance(fitted, SumFitted):
            return kernel_solution(self, fitted, mu, with_coef)
        joint, of_all, of_bias = fitted.parts
        solution, basis = kernel_solution(self, joint, mu, with_coef), self.confounds
        assert basis is not None
        beta = -(basis.Q0.T @ of_all.values)
        mean = basis.bias.T @ of_bias.values
        beta = namespace(beta).concat([mean + beta[:1, :], beta[1:, :]], axis=0)
        return solution.plus(basis, beta)

    @property
    def thin(self) -> Thin | None:
        """The factorization of features that are read block by block, if it is that."""
        resolvent = self.smoother.resolvent if isinstance(self.smoother, FunctionNorm) else None
        return resolvent if isinstance(resolvent, Thin) else None

    @property
    def _linear(self) -> Problem:
        return replace(self, kernel=LINEAR, X=self.Z, features=None, Z=None)

    def smoothing(
        self,
        X: Any,
        mu: float,
        excess: bool = False,
        matrix: bool = False,
        confounds: Array | None = None,
    ) -> Smoothing:
        """New rows as functions of the scaled targets, with τ where `excess` asks for it, of every
        two rows where it is to be a `matrix`.
        """
        if self.thin is not None:
            return self.thin.smoothing(X, mu)
        if self.features is not None:
            return self._linear.smoothing(self.features(X), mu, excess, matrix, confounds)
        joint = kernel_smoothing(self, X, mu, excess, matrix, confounds)
        if not isinstance(self.smoother, Sum):
            return joint
        q = free_columns(self, X, confounds)
        free = [term.Q0 for term in self.smoother.terms[1:]]
        parts = [joint, *(Smoothing(q[:, : Q.shape[1]] @ Q.T) for Q in free)]
        return SumSmoothing.of(self.smoother.signs, parts)

    # ---- models without some rows --------------------------------------------------------------

    def held_out_targets(
        self, mus: np.ndarray, deletions: Sequence[Deletion] | None, path: Path | None = None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Held-out targets (m, k, t) for every mu, the k rows tested and the number of the split
        each belongs to.

        Leave-one-out where no deletions are given, O(n²) per mu and from `path` if that is known;
        otherwise pairs of rows deleted and positions among them tested. Where one of the splits has
        no closed form, all are fitted.
        """
        if deletions is None:
            each = np.arange(self.n_samples)
            return self.values_without_each(self.path(mus) if path is None else path), each, each
        sizes = [len(tested) for _, tested in deletions]
        rows = np.concatenate([deleted[tested] for deleted, tested in deletions])
        fold = np.repeat(np.arange(len(deletions)), sizes)
        if any(self.fits_anew(deleted) for deleted, _ in deletions):
            refitted = [
                self._refitted(mus, deleted, deleted[tested]) for deleted, tested in deletions
            ]
            return namespace(refitted[0]).concat(refitted, axis=1), rows, fold
        values = self.smoother.held_out_folds(self.projected, mus, deletions)
        return self.unscale(values, rows), rows, fold

    def values_without_each(self, path: Path) -> Array:
        """Predicted targets (m, n, t) of every row by the model without it, on a path."""
        values = self.unscale(self.projected.Y - self._each(path).residual)
        for row in self.alone[:, None]:
            values[:, row[0], :] = self._refitted(path.mus, row, row)[:, 0, :]
        return values

    def evidence_without_each(self, path: Path) -> Evidence:
        """Of the other rows (n, …) where each one is left out, at the mu of a path."""
        sizes = self.sizes - self.row_weights * self.targets
        E = self.scatter(self.smoother.fitted(self.projected, path))
        E = E - self._each(path).each().lost()
        if len(self.alone):
            mu = float(path.mus[0])
            refits = [self.refit(np.array([row]), mu).evidence().scatter for row in self.alone]
            E = replace_rows(E, self.alone, namespace(E).stack(refits))
        return Evidence(E, sizes)

    def _each(self, path: Path) -> HeldOut:
        """Every row deleted; what the formula gives where it does not hold is not looked at."""
        with np.errstate(divide="ignore" if len(self.alone) else None):
            return path.leave_one_out()

    def features_of(self, rows: np.ndarray) -> Any:
        """Some of the rows as they would come to `predict`; None if they are not kept."""
        if self.thin is not None:
            return self.thin.data.take(rows)
        return None if self.X is None or self.Z is not None else take(self.X, rows)

    def confounds_of(self, rows: np.ndarray) -> Array | None:
        return None if self.confounds is None else take(self.confounds.C, rows)

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without | Refit:
        """The model that a refit without the deleted rows would give."""
        if self.fits_anew(deleted):
            return self.refit(deleted, mu)
        return Without(self, fitted, self.smoother.leave_out(deleted, mu), mu)

    # ---- models that are fitted anew -----------------------------------------------------------

    @property
    def alone(self) -> np.ndarray:
        """The rows whose leaving has no closed form."""
        return np.arange(0) if self.refits is None else self.refits.alone

    def fits_anew(self, deleted: np.ndarray) -> bool:
        """Whether the model without these rows has no closed form."""
        return self.refits is not None and self.refits.needed(deleted)

    def refit(self, deleted: np.ndarray, mu: float) -> Refit:
        """The model of the rows that are not deleted, decomposed anew."""
        assert self.refits is not None
        rows = kept = complement(deleted, self.n_samples)
        data = replace(self.refits.data, targets=self.targets, columns=None)
        some = data.rows(rows)
        if data.landmarks is not None:
            gone = deleted if self.confounds is None else deleted[:0]
            kept = np.flatnonzero(~np.isin(data.landmarks.rows, gone))
            if len(kept) == 0:
                raise RefusedError(
                    "in one of the splits, no landmark is a training row, so that "
                    'shared_landmarks="drop" leaves no landmarks for its model: use more '
                    "landmarks, or shared_landmarks=True, which keeps them."
                )
            left = Landmarks(take(data.landmarks.points, kept), data.landmarks.rows[kept])
            some = replace(some, landmarks=left)
        if self.kernel.precomputed:
            some = replace(some, X=square_block(data.X, rows))
        return Refit(self, self.refits.make(some), kept, mu)

    def _refitted(self, mus: np.ndarray, deleted: np.ndarray, rows: np.ndarray) -> Array:
        """Values (m, k, t) of some rows by the models without those deleted."""
        first = self.refit(deleted, float(mus[0]))
        models = [replace(first, mu=float(mu)).solution for mu in mus]
        values = first.values(rows, side_by_side(models))
        by_mu = namespace(values).reshape(values, (len(rows), len(mus), -1))
        return namespace(values).permute_dims(by_mu, (1, 0, 2))


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

    def evidence(self) -> Evidence:
        problem, rows = self.problem, self.removal.rows
        removed = take(problem.row_weights * problem.targets, rows)
        sizes = problem.sizes - namespace(removed).sum(removed, axis=0)
        return Evidence(problem.scatter(self.fitted) - self.held_out.lost(), sizes)

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


@dataclass(frozen=True)
class Refit:
    """The model of the rows that are left, fitted to these: where rows leave `problem` without a
    closed form. `kept` are those of its coefficients, at rows or at landmarks, that are left.
    """

    problem: Problem
    own: Problem
    kept: np.ndarray
    mu: float

    @cached_property
    def fitted(self) -> Fitted:
        return self.own.fit(self.mu)

    @cached_property
    def solution(self) -> Solution:
        """The model as coefficients, zero for the rows and landmarks that have left."""
        solution, problem = self.own.solution(None, self.mu), self.problem
        n = problem.n_samples if problem.features is None else int(problem.X.shape[0])
        zero = zeros_like_shape((n, int(solution.dual_coef.shape[1])), solution.dual_coef)
        return replace(solution, dual_coef=replace_rows(zero, self.kept, solution.dual_coef))

    def evidence(self) -> Evidence:
        return self.own.evidence(self.fitted)

    def values(self, rows: np.ndarray, solution: Solution | None = None) -> Array:
        """Predicted targets of the given rows; by several models of these rows, if given."""
        problem, refits = self.problem, self.problem.refits
        assert refits is not None
        solution = self.solution if solution is None else solution
        given = problem.kernel, rows_at(refits.data.X, rows), problem.X
        return solution.values(*given, confounds=problem.confounds_of(rows))
