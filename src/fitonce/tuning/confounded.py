"""Problems with confounds: removed from the features, or beside them without a penalty.

The decomposition is that of the joint model, with the confounds among the columns that are not
penalized. Where they are to be removed, `core.confounds` says what is taken off its values and
added to its scatter. Two things have no deletion formula, and are decomposed once more for each set
of rows that leaves: training rows on which the confounds lose rank (all of a site, where sites are
confounds), and the dual norm of features that confounds are removed from, whose kernel functions
change with the rows that train.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..core.arrays import Array, asarray_like, namespace, replace_rows, square_block, take
from ..core.confounds import ConfoundFit, ConfoundRegression
from ..core.dual import DualNorm
from ..core.holdout import Deletion, Fitted, Path, Removal
from ..core.spectrum import spectrum_of_kernel
from ..kernels import Kernel
from .data import Data
from .exact import KernelProblem, smoother_of
from .problem import Problem, Without, tested_rows
from .solution import Solution

PRECOMPUTED = Kernel("precomputed")


@dataclass(frozen=True)
class ConfoundedProblem(KernelProblem):
    """The exact model with confounds; `source` holds the rows, for what has to be decomposed again.

    `removed` says that the confounds are taken out of the features, else they are predictors.
    """

    regression: ConfoundRegression
    source: Data
    penalty: str

    @property
    def C(self) -> Array:
        assert self.source.confounds is not None
        return self.source.confounds.C

    @property
    def removed(self) -> bool:
        assert self.source.confounds is not None
        return self.source.confounds.meaning == "remove"

    def confounds_of(self, rows: np.ndarray) -> Array:
        return take(self.C, rows)

    # ---- the model of all rows -----------------------------------------------------------------

    @cached_property
    def of_confounds(self) -> ConfoundFit:
        """The targets regressed on the confounds alone."""
        return self.regression.fit(self.projected.Y)

    def scatter(self, fitted: Fitted) -> Array:
        E = super().scatter(fitted)
        return E + self.of_confounds.explained if self.removed else E

    def residual(self, fitted: Fitted) -> Array:
        own = super().residual(fitted)
        return own + self.regression.part(self.of_confounds) if self.removed else own

    def scatters(self, mus: np.ndarray) -> Array:
        E = super().scatters(mus)
        return E + self.of_confounds.explained if self.removed else E

    def leverage(self, path: Path) -> Array:
        leverage = super().leverage(path)
        if not self.removed:
            return leverage
        return leverage - namespace(leverage).sum(self.regression.U**2, axis=1)

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        joint = self.joint_solution(fitted, mu)
        return self.less(joint, self.of_confounds) if self.removed else joint

    def joint_solution(self, fitted: Fitted, mu: float) -> Solution:
        """With the coefficients of C that the joint model has."""
        solution = super().solution(fitted, mu)
        Y, dual = fitted.Y, self.smoother.dual_coef(fitted, mu)
        inside = self.smoother.inside(Y, dual, mu) if self.kernel.linear else dual
        return self._with_coef(solution, self.regression.coef(self.smoother.bias_coef(Y, inside)))

    def less(self, joint: Solution, part: ConfoundFit) -> Solution:
        """The joint model minus what a regression on confounds predicts beyond the mean."""
        regression = self.regression
        offset = (part.mean - part.beta[:1, :])[0, :] / regression.norm
        less = replace(joint, intercept=joint.intercept + offset)
        return self._with_coef(less, -regression.coef(part.beta))

    def _with_coef(self, solution: Solution, coef: Array) -> Solution:
        """A model plus (c(x) - c̄)·coef."""
        intercept = solution.intercept - self.regression.centre @ coef
        own = solution.confound_coef
        return replace(
            solution, intercept=intercept, confound_coef=coef if own is None else own + coef
        )

    # ---- models without some rows --------------------------------------------------------------

    @cached_property
    def K(self) -> Array:
        """The kernel matrix of all rows, for what has to be decomposed again."""
        X = self.source.X
        return X if self.kernel.precomputed else self.kernel(X, X)

    def decomposes_anew(self, deleted: np.ndarray) -> bool:
        """Whether the model without these rows has a decomposition of its own."""
        return not self.regression.keeps_rank(deleted)

    @property
    def alone(self) -> np.ndarray:
        """The rows that have to be decomposed again where each is left out."""
        return self.regression.lonely

    def anew(self, deleted: np.ndarray) -> Anew:
        """The problem of the other rows, on blocks of the kernel matrix."""
        kept = np.setdiff1d(np.arange(self.n_samples), deleted)
        source = replace(self.source, X=self.K[:, :0]).rows(kept)
        source = replace(source, X=square_block(self.K, kept), targets=take(self.targets, kept))
        problem = confounded_problem(source, PRECOMPUTED, self.penalty, None)
        return Anew(self, problem, deleted, kept)

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without:
        if self.decomposes_anew(deleted):
            return AnewWithout(self, fitted, _nothing(deleted), mu, self.anew(deleted))
        if not self.removed:
            return super().without(fitted, deleted, mu)
        removal = self.smoother.leave_out(deleted, mu)
        part = self.regression.fit(self.projected.Y, deleted)
        return WithoutConfounds(self, fitted, removal, mu, part)

    def held_out_targets(
        self, mus: np.ndarray, deletions: Sequence[Deletion] | None, path: Path | None = None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        if deletions is None:
            return self._each(mus, path)
        rows, fold = tested_rows(deletions)
        anew = [self.decomposes_anew(deleted) for deleted, _ in deletions]
        closed = [deletion for deletion, other in zip(deletions, anew, strict=True) if not other]
        parts: list[Array] = []
        if closed:
            values = super().held_out_targets(mus, closed)[0] - self._parts(closed)
            ends = np.cumsum([len(tested) for _, tested in closed])
            parts = [
                values[:, end - len(t) : end, :] for end, (_, t) in zip(ends, closed, strict=True)
            ]
        left = iter(parts)
        blocks = [
            self.anew(deleted).values(mus, tested) if other else next(left)
            for (deleted, tested), other in zip(deletions, anew, strict=True)
        ]
        return namespace(blocks[0]).concat(blocks, axis=1), rows, fold

    def _parts(self, deletions: Sequence[Deletion]) -> Array:
        """What is taken off the joint model's values at the tested rows."""
        if not self.removed:
            return 0.0
        Y, parts = self.projected.Y, []
        for deleted, tested in deletions:
            fit, rows = self.regression.fit(Y, deleted), deleted[tested]
            parts.append(self.unscale(self.regression.part(fit, rows), rows))
        return namespace(Y).concat(parts, axis=0)

    def _each(self, mus: np.ndarray, path: Path | None) -> tuple[Array, np.ndarray, np.ndarray]:
        """Leave-one-out of every row."""
        if len(self.alone) == self.n_samples:
            rows = np.arange(self.n_samples)
            blocks = [self.anew(rows[i : i + 1]).values(mus, rows[:1]) for i in rows]
            return namespace(blocks[0]).concat(blocks, axis=1), rows, rows
        values, rows, fold = super().held_out_targets(mus, None, path)
        if self.removed:
            values = values - self.unscale(self.regression.part_each(self.projected.Y))
        if len(self.alone):
            xp = namespace(values)
            anew = [self.anew(np.array([row])).values(mus, np.array([0])) for row in self.alone]
            patches = xp.concat(anew, axis=1)
            values = xp.stack(
                [
                    replace_rows(V, self.alone, patch)
                    for V, patch in zip(values, patches, strict=True)
                ]
            )
        return values, rows, fold

    def left_out_residuals(self, columns: Array, mus: np.ndarray) -> Array:
        other = self.with_targets(columns)
        residual = other.targets - other.held_out_targets(mus, None)[0]
        return residual if self.row_scale is None else self.row_scale * residual

    def values_without_each(self, path: Path) -> Array:
        return self._each(path.mus, path)[0][0, ...]

    def scatter_without_each(self, path: Path) -> Array:
        if len(self.alone) < self.n_samples:
            E = super().scatter_without_each(path)
            E = E + self.regression.explained_each(self.projected.Y) if self.removed else E
            found = {int(row): self.anew(np.array([row])).scatter(path.mus) for row in self.alone}
            return (
                E
                if not found
                else namespace(E).stack([found.get(i, E[i, ...]) for i in range(self.n_samples)])
            )
        rows = np.arange(self.n_samples)
        each = [self.anew(rows[i : i + 1]).scatter(path.mus) for i in rows]
        return namespace(each[0]).stack(each)


@dataclass(frozen=True)
class ResidualDualProblem(ConfoundedProblem):
    """The dual norm of the features minus what confounds explain of them: kernel MKM.

    With M = I - Q₀Q₀ᵀ the model is a sum of the residual kernels k̃(x, xᵢ) of the training rows. In
    the kernel itself α becomes Mα, and the coefficients of C are those of -KMα regressed on C.
    """

    KQ: Array  # KQ₀, of the kernel as it came

    @property
    def alone(self) -> np.ndarray:
        return np.arange(self.n_samples)

    def decomposes_anew(self, deleted: np.ndarray) -> bool:
        return True

    def scatter(self, fitted: Fitted) -> Array:
        return Problem.scatter(self, fitted)

    def residual(self, fitted: Fitted) -> Array:
        return fitted.residual

    def scatters(self, mus: np.ndarray) -> Array:
        return Problem.scatters(self, mus)

    def leverage(self, path: Path) -> Array:
        return Problem.leverage(self, path)

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        regression, xp = self.regression, namespace(fitted.Y)
        Q0 = regression.Q0
        dual = self.smoother.dual_coef(fitted, mu)
        dual = dual - Q0 @ (Q0.T @ dual)
        beta = -(self.KQ.T @ dual)
        mean = regression.bias.T @ fitted.Y
        intercept = (mean + beta[:1, :])[0, :] / regression.norm
        dual_coef = self._scaled(dual)
        coef = self.X.T @ dual_coef if self.kernel.linear else None
        assert xp is not None
        return self._with_coef(Solution(dual_coef, intercept, coef), regression.coef(beta))


def _nothing(deleted: np.ndarray) -> Removal:
    """Rows that leave without a system of their own."""
    return Removal(deleted, None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Anew:
    """A problem of some rows of another, on blocks of its kernel matrix."""

    whole: ConfoundedProblem
    problem: KernelProblem
    deleted: np.ndarray
    kept: np.ndarray

    @cached_property
    def _cross(self) -> Array:
        """The kernel of the deleted rows with the others."""
        return take(take(self.whole.K, self.deleted).T, self.kept).T

    def values(self, mus: np.ndarray, tested: np.ndarray) -> Array:
        """Predicted targets (m, k, t) of some of the deleted rows, for every mu."""
        K, C = take(self._cross, tested), self.whole.confounds_of(self.deleted[tested])
        problem, xp = self.problem, namespace(self._cross)
        solutions = [problem.solution(problem.fit(float(mu)), float(mu)) for mu in mus]
        return xp.stack([s.values(PRECOMPUTED, K, None, confounds=C) for s in solutions])

    def scatter(self, mus: np.ndarray) -> Array:
        """E at the first mu."""
        return self.problem.scatter(self.problem.fit(float(mus[0])))

    def solution(self, mu: float) -> Solution:
        """The model as coefficients of all rows, zero if they have left."""
        own = self.problem.solution(self.problem.fit(mu), mu)
        n = self.whole.n_samples
        zero = asarray_like(np.zeros((n, int(own.dual_coef.shape[1]))), own.dual_coef)
        dual_coef = replace_rows(zero, self.kept, own.dual_coef)
        coef = self.whole.X.T @ dual_coef if self.whole.kernel.linear else None
        return replace(own, dual_coef=dual_coef, coef=coef)


@dataclass(frozen=True)
class WithoutConfounds(Without):
    """The model without some rows, less what confounds predict there: `part`."""

    problem: ConfoundedProblem
    part: ConfoundFit

    @property
    def solution(self) -> Solution:
        return self.problem.less(self.problem.joint_solution(self.refitted, self.mu), self.part)

    @property
    def scatter(self) -> Array:
        return super().scatter + self.part.explained

    def values(self, rows: np.ndarray) -> Array:
        part = self.problem.regression.part(self.part, rows)
        return super().values(rows) - self.problem.unscale(part, rows)


@dataclass(frozen=True)
class AnewWithout(Without):
    """The model without some rows, from a decomposition of its own."""

    problem: ConfoundedProblem
    anew: Anew

    @cached_property
    def solution(self) -> Solution:
        return self.anew.solution(self.mu)

    @property
    def scatter(self) -> Array:
        return self.anew.scatter(np.array([self.mu]))

    def values(self, rows: np.ndarray) -> Array:
        C, K = self.problem.confounds_of(rows), take(self.problem.K, rows)
        return replace(self.solution, coef=None).values(PRECOMPUTED, K, None, confounds=C)


def confounded_problem(
    data: Data, kernel: Kernel, penalty: str, mu: float | None
) -> ConfoundedProblem:
    """The problem of all rows with a free bias and confounds; a precomputed kernel is copied."""
    assert data.confounds is not None
    regression = ConfoundRegression.of(data.confounds.C, data.row_scale)
    working = replace(data, X=data.X + 0.0) if kernel.precomputed else data
    X = None if kernel.precomputed else data.X
    scale = data.row_scale
    if penalty == "dual" and data.confounds.meaning == "remove":
        smoother, KQ = _residual_dual(working, kernel, regression)
        Y = asarray_like(data.targets, smoother.Q0)
        projected = smoother.project(Y if scale is None else scale * Y)
        common = kernel, X, smoother, scale, True, Y, projected, regression, data, penalty
        return ResidualDualProblem(*common, KQ)
    joint = smoother_of(working, kernel, penalty, True, mu, regression.Q0)
    Y = asarray_like(data.targets, joint.Q0)
    projected = joint.project(Y if scale is None else scale * Y)
    return ConfoundedProblem(kernel, X, joint, scale, True, Y, projected, regression, data, penalty)


def _residual_dual(
    data: Data, kernel: Kernel, regression: ConfoundRegression
) -> tuple[DualNorm, Array]:
    """The dual norm of (I - Q₀Q₀ᵀ)K(I - Q₀Q₀ᵀ), and KQ₀."""
    K = data.X if kernel.precomputed else kernel(data.X, data.X)
    if data.row_scale is not None:
        K = data.row_scale * K * data.row_scale.T
    Q0 = regression.Q0
    KQ = K @ Q0
    half = KQ - 0.5 * (Q0 @ (Q0.T @ KQ))
    K = K - Q0 @ half.T - half @ Q0.T
    xp = namespace(K)
    spectrum = spectrum_of_kernel(0.5 * (K + K.T), xp.zeros_like(Q0[:, :0]))
    return DualNorm(spectrum, regression.bias, xp.zeros_like(regression.bias)), KQ


__all__ = ["ConfoundedProblem", "confounded_problem"]
