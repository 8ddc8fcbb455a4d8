r"""The problem of means of rows in kernel space.

The rows of a block j, all of one class, are replaced by their mean in the feature space of the
kernel. With A (m, n) the matrix of means, the kernel of the averages is A K Aᵀ, that of rows with
averages K Aᵀ, and a model α of the averages is Aᵀα on the rows:

    f(x) = k(x, X) Aᵀα + b.

With s the square roots of the averages' weights, Q₀ = s/‖s‖ and a = α/s the coefficients that the
smoother of the averages gives to scaled targets Y,

    f(x) = P(x) a + Q₀ᵀY/‖s‖,   P(x) = s∘(k(x, X)Aᵀ) - (K_s Q₀)ᵀ/‖s‖,  K_s = diag(s) A K Aᵀ diag(s).

**Held out.** A row is tested by the model without its block. Deleting block j changes the targets
by -e_jρ_j and, for the dual norm, pulls at a_j with ν_j (see `core.holdout`). f is linear in both,
so with a = M Y

    f₋ⱼ(x) = f(x) - (P(x)M_j + Q₀ⱼ/‖s‖) ρ_j - P(x)D_j ν_j

where M = (G + μ)⁻¹ and no D for the function norm, M = Bᵀ for the dual norm. All of it for all μ is
one product of n×m with m×#μ.

Averages of g rows have a g-th of the rows' within-class scatter, and a g-th of their degrees of
freedom: weighted by their number of rows, scatter over degrees of freedom is the covariance of
single rows, which is what test rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, is_numpy, namespace, take
from ..core.dual import DualNorm
from ..core.holdout import Deletion, Fitted, Path, Targets
from ..core.rows import dense_like
from ..core.spectrum import row_blocks
from ..kernels import OVERFLOW, Kernel, check_square
from .data import Data
from .decompose import FitIntercept, decompose, row_scale_of
from .exact import KernelProblem
from .problem import Without, tested_rows
from .solution import Solution

KERNEL_ELEMENTS = 1 << 23  # kernel entries computed at a time


@dataclass(frozen=True)
class AveragedProblem(KernelProblem):
    """Averages in the place of rows: `smoother`, `row_scale` and `targets` are theirs, `X` and
    held-out values are the rows'.

    `block` (n,) numbers the average that a row belongs to, A (m, n) makes means of rows, P (n, m)
    is as in the module's docstring. For the linear kernel `means` (m, p) are the averages
    themselves, less the row `centre`.
    """

    block: np.ndarray
    A: Any
    P: Array
    means: Array | None
    centre: Array | None

    @property
    def reads_path(self) -> bool:
        return False

    @cached_property
    def _norm(self) -> Array:
        """‖s‖, the root of the total weight."""
        xp = namespace(self.targets)
        return xp.sqrt(xp.sum(self.row_weights))

    def _bias_part(self, Y: Array) -> Array:
        """Q₀ᵀY/‖s‖ (t,)."""
        return namespace(Y).sum(self.smoother.Q0.T @ Y, axis=0) / self._norm

    def values(self, fitted: Fitted, mu: float, rows: np.ndarray) -> Array:
        """f (k, t) at some rows."""
        dual = self.smoother.dual_coef(fitted, mu)
        return take(self.P, rows) @ dual + self._bias_part(fitted.Y)

    def solution(self, fitted: Fitted, mu: float, with_coef: bool = True) -> Solution:
        """The model on the rows: dual_coef = Aᵀ(s∘a)."""
        Y, dual = fitted.Y, self.smoother.dual_coef(fitted, mu)
        xp = namespace(Y)
        alpha = self.row_scale * dual
        coef = None
        if self.means is not None:
            coef = self.means.T @ (self.row_scale * self.smoother.inside(Y, dual, mu))
        if self.fit_intercept == "penalized":
            intercept = xp.sum(alpha, axis=0)
        elif not self.fit_intercept:
            intercept = xp.zeros_like(alpha[0, :])
        else:
            intercept = self.smoother.bias_coef(Y, dual)[0, :] / self._norm
            intercept = intercept - self.smoother.offset * xp.sum(alpha, axis=0)
        if coef is not None and self.centre is not None:
            intercept = intercept - self.centre @ coef
        return Solution(self.A.T @ alpha, intercept, coef)

    def held_out_targets(
        self, mus: np.ndarray, deletions: Sequence[Deletion] | None, path: Path | None = None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Held-out targets (m, k, t) of single rows, by the models without their blocks."""
        xp = namespace(self.targets)
        if deletions is None:
            return self._without_own_block(mus), np.arange(len(self.block)), self.block
        rows, fold = tested_rows(deletions)
        by_mu = []
        for mu in map(float, mus):
            fitted = self.fit(mu)
            parts = [
                self.without(fitted, deleted, mu).values(deleted[tested])
                for deleted, tested in deletions
            ]
            by_mu.append(xp.concat(parts, axis=0))
        return xp.stack(by_mu), rows, fold

    def values_without_each(self, path: Path) -> Array:
        return self._without_own_block(path.mus)[0, ...]

    def _without_own_block(self, mus: np.ndarray) -> Array:
        """Every row by the model without its block, for all mu at once: (m, n, t)."""
        Y, Q0 = self.projected.Y, self.smoother.Q0
        xp = namespace(Y)
        held_out = self.smoother.leave_one_out(self.projected, mus)
        response = self.smoother.response(self.P, self.block, self.projected, mus)
        own_bias = take(xp.sum(Q0, axis=1, keepdims=True), self.block)[:, 0] / self._norm
        parts = []
        for j in range(len(mus)):
            rho = take(held_out.residual[j, ...], self.block)
            value = response.values[j, ...] + self._bias_part(Y)
            value = value - (response.to_targets[:, j] + own_bias)[:, None] * rho
            if response.to_forces is not None:
                force = take(held_out.force[j, ...], self.block)
                value = value - response.to_forces[:, j][:, None] * force
            parts.append(value)
        return xp.stack(parts)

    def of_rows(self, per_sample: Array) -> Array:
        return per_sample.take(self.block)

    def degrees_of_freedom(
        self, sizes: Array, deleted: np.ndarray | None = None, each: bool = False
    ) -> Array:
        """Σw · averages per row, less the classes."""
        xp = namespace(sizes)
        rows = np.bincount(self.block)
        if each:
            ratio = asarray_like((len(rows) - 1) / np.maximum(len(self.block) - rows, 1), sizes)
        else:
            if deleted is not None:
                rows[deleted] = 0
            ratio = float((rows > 0).sum() / max(rows.sum(), 1))
        n_classes = xp.sum(xp.astype(sizes > 0, sizes.dtype), axis=-1)
        dof = xp.sum(sizes, axis=-1) * ratio - n_classes
        return xp.where(dof > 0, dof, xp.zeros_like(dof))

    def without(self, fitted: Fitted, deleted: np.ndarray, mu: float) -> Without:
        blocks = np.unique(self.block[deleted])
        return WithoutBlocks(self, fitted, self.smoother.leave_out(blocks, mu), mu)


@dataclass(frozen=True)
class WithoutBlocks(Without):
    """The model without some averages."""

    problem: AveragedProblem

    def values(self, rows: np.ndarray) -> Array:
        return self.problem.values(self.refitted, self.mu, rows)


def averaged_problem(
    data: Data, kernel: Kernel, penalty: str, fit_intercept: FitIntercept
) -> AveragedProblem:
    """The problem of the means of blocks of rows.

    Cost: n² kernel entries, never all in memory, and a decomposition of m×m.
    """
    assert data.block is not None
    X, block = data.X, data.block
    n, m = len(block), int(block.max()) + 1
    w = np.ones(n) if data.weights is None else data.weights
    total = np.bincount(block, weights=w, minlength=m)
    like = dense_like(X)
    A = _means(block, w / total[block], m, like)
    row_scale: Array = row_scale_of(total, X)
    Y = asarray_like(data.targets[np.unique(block, return_index=True)[1]], like)
    means = centre = None
    if kernel.linear:
        means = A @ X
        if penalty == "function" and fit_intercept is True and not sp.issparse(X):
            centre = namespace(means).sum(row_scale**2 * means, axis=0) / float(total.sum())
            means, X = means - centre, X - centre
        smoother = decompose(means, kernel, penalty, fit_intercept, row_scale)
        cross = X @ means.T
        cross = cross.toarray() if sp.issparse(cross) else cross
    else:
        cross, offset = _kernel_with_averages(X, kernel, A, fit_intercept is True)
        if not bool(namespace(cross).all(namespace(cross).isfinite(cross))):
            raise ValueError(OVERFLOW)
        K = A @ cross
        K = 0.5 * (K + K.T)
        smoother = decompose(K, Kernel("precomputed"), penalty, fit_intercept, row_scale)
        if isinstance(smoother, DualNorm):
            smoother = replace(smoother, offset=offset)
    if fit_intercept == "penalized":
        cross = cross + 1.0
    P = cross * row_scale.T
    if fit_intercept is True:
        P = P - smoother.KQ0.T / float(np.sqrt(total.sum()))
    rows = None if kernel.precomputed else data.X
    projected: Targets = smoother.project(row_scale * Y)
    common = kernel, rows, smoother, row_scale, fit_intercept, Y, projected
    return AveragedProblem(*common, block, A, P, means, centre)


def _means(block: np.ndarray, share: np.ndarray, m: int, like: Array) -> Any:
    """A (m, n): sparse on the host."""
    n = len(block)
    A = sp.csr_matrix((share, (block, np.arange(n))), shape=(m, n))
    return A if is_numpy(like) else asarray_like(A.toarray(), like)


def _kernel_with_averages(X: Any, kernel: Kernel, A: Any, constant: bool) -> tuple[Array, float]:
    """K Aᵀ (n, m), a few rows of K at a time, less an offset where a `constant` is free."""
    if kernel.precomputed:
        check_square(X)
        return (A @ X.T).T + 0.0, 0.0
    of_rows = kernel.with_points(X, constant)
    parts = row_blocks(X.shape[0], max(1, KERNEL_ELEMENTS // X.shape[0]))
    blocks = [(A @ of_rows(X[rows, :]).T).T for rows in parts]
    whole = blocks[0] if len(blocks) == 1 else namespace(blocks[0]).concat(blocks, axis=0)
    return whole, of_rows.offset
