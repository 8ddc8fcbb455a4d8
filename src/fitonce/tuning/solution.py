r"""Models as coefficients with their outputs, and new rows as functions of the targets.

With s the roots of the weights and Q₀ the columns that are free of a penalty (a bias, s/‖s‖, and
the basis of confounds), which are q(x) at a new row,

    f(x) = s∘k(x)ᵀα + q(x)β,           β = Q₀ᵀ(Y - Kα),
         = P(x) α + q(x)Q₀ᵀY,          P(x) = s∘k(x) - q(x)Q₀ᵀK      x less what Q₀ explains of it,

and α = BᵀY - Dν gives h(x) = B P(x)ᵀ + Q₀q(x)ᵀ and b(x) = D P(x)ᵀ. The function norm has the
variance of f(x), in units of the noise,

    τ(x) = (k̄(x, x) - P (G + μ)⁻¹Pᵀ)/μ + q(x)q(x)ᵀ,     k̄(x, x) of x less what Q₀ explains of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, is_numpy, namespace, zeros_like_shape
from ..core.confounds import ConfoundBasis
from ..core.dual import DualNormWithBias
from ..core.holdout import Fitted, Smoothing
from ..core.refused import RefusedError
from ..core.spectrum import row_blocks
from ..core.ties import settled_decisions, settled_sum
from ..kernels import OVERFLOW, Kernel, largest_entry

if TYPE_CHECKING:
    from .problem import Problem

PREDICTION_ELEMENTS = 1 << 23  # kernel entries computed at a time in predict
TILE = 16  # rows that products of matrices work on together, or a multiple of them


def in_whole_tiles(function: Callable[[Array], Array], X: Array) -> Array:
    """A function of rows, with the same digits for equal rows.

    Products of matrices treat the last rows in another order than those that fill a tile of the
    processor. Copies of the first row fill the last tile, and are taken off again.
    """
    n = X.shape[0]
    missing = -n % TILE
    if not is_numpy(X) or missing == 0 or n == 0:
        return function(X)
    return function(np.concatenate([X, np.repeat(X[:1], missing, axis=0)]))[:n]


@dataclass(frozen=True)
class Solution:
    """A model: f(x) = k(x, X) dual_coef + intercept, and x·coef + intercept as well where the
    kernel is linear; plus c(x)·confound_coef where it has confounds.
    """

    dual_coef: Array
    intercept: Array
    coef: Array | None
    centred: bool = False  # Σ dual_coef = 0: the kernel is wanted up to a constant of each row
    confound_coef: Array | None = None

    def plus(self, basis: ConfoundBasis, beta: Array) -> Solution:
        """The model plus q(x)β, q(x) the basis of a bias and confounds."""
        coef = basis.coef(beta)
        intercept = self.intercept + beta[0, :] / basis.norm - basis.centre @ coef
        coef = coef if self.confound_coef is None else self.confound_coef + coef
        return replace(self, intercept=intercept, confound_coef=coef)

    def readout(self, weights: Array, offsets: Array) -> Solution:
        """The model whose outputs are these outputs times `weights` plus `offsets`."""
        xp = namespace(weights)
        coef = None if self.coef is None else self.coef @ weights
        size = xp.abs(self.intercept) @ xp.abs(weights) + xp.abs(offsets)
        intercept = settled_sum(self.intercept @ weights + offsets, size)
        confound_coef = None if self.confound_coef is None else self.confound_coef @ weights
        return Solution(self.dual_coef @ weights, intercept, coef, self.centred, confound_coef)

    def _kernel_of(self, kernel: Kernel, X_fit: Array) -> Callable[[Array], Array]:
        """What is multiplied by the coefficients, as a function of rows."""
        if self.coef is not None or (kernel.precomputed and not self.centred):
            return lambda rows: rows
        if kernel.precomputed:
            return lambda rows: rows - rows[:, :1]
        return kernel.with_points(X_fit, constant=self.centred)

    def decisions(
        self, kernel: Kernel, X: Array, X_fit: Array, confounds: Array | None = None
    ) -> Array:
        """f(X) with the ties of exact arithmetic, for scores that rank or threshold."""
        return settled_decisions(*self.sized_values(kernel, X, X_fit, confounds))

    def sized_values(
        self, kernel: Kernel, X: Array, X_fit: Array, confounds: Array | None = None
    ) -> tuple[Array, Array]:
        """f(X), and a bound (o,) on the sum of the absolute values of its terms."""
        largest: list[float] = []
        values = self.values(kernel, X, X_fit, largest, confounds)
        weights = self.dual_coef if self.coef is None else self.coef
        xp = namespace(values)
        size = max(largest) * xp.sum(xp.abs(weights), axis=0) + xp.abs(self.intercept)
        if confounds is not None and self.confound_coef is not None:
            size = size + xp.max(xp.abs(confounds) @ xp.abs(self.confound_coef), axis=0)
        return values, size

    def values(
        self,
        kernel: Kernel,
        X: Array,
        X_fit: Array,
        largest: list[float] | None = None,
        confounds: Array | None = None,
    ) -> Array:
        """f(X), in blocks of rows so that the kernel never exceeds a few hundred MiB; `largest`
        gets the largest of what is summed in each, `confounds` are those of the rows.
        """

        kernel_of = self._kernel_of(kernel, X_fit)

        def summed(rows: Array) -> Array:
            """K α of some rows, or X w."""
            K = kernel_of(rows)
            if largest is not None:
                largest.append(largest_entry(K))
            coef = self.dual_coef if self.coef is None else self.coef
            if not is_numpy(coef):  # NumPy multiplies float64 by float32 as it is
                coef = namespace(coef).astype(coef, K.dtype, copy=False)
            return K @ coef

        step = max(1, PREDICTION_ELEMENTS // max(1, self.dual_coef.shape[0]))
        parts = row_blocks(X.shape[0], step)
        # a function of the user's own sees the rows as they are
        tiled = summed if kernel.foreign else partial(in_whole_tiles, summed)
        blocks = [tiled(X[rows, :]) for rows in parts]
        xp = namespace(blocks[0])
        values = (blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=0)) + self.intercept
        if self.confound_coef is not None:
            assert confounds is not None, "a model with confounds needs those of the rows"
            values = values + in_whole_tiles(lambda C: C @ self.confound_coef, confounds)
        if not np.isfinite(float(xp.sum(values))) and not bool(xp.all(xp.isfinite(values))):
            raise RefusedError(OVERFLOW)
        return values


# ---- sums of kernels at all rows -----------------------------------------------------------------


def side_by_side(models: Sequence[Solution]) -> Solution:
    """One model with the outputs of several, one after the other."""
    names = ("dual_coef", "intercept", "coef", "confound_coef")
    parts = {name: [getattr(model, name) for model in models] for name in names}
    known = {name: given for name, given in parts.items() if given[0] is not None}
    xp = namespace(models[0].intercept)
    return replace(models[0], **{name: xp.concat(given, axis=-1) for name, given in known.items()})


def centred(model: Problem) -> bool:
    """Whether dual coefficients add up to zero, so that the kernel is known up to a constant of
    each row.
    """
    return model.fit_intercept is True and model.of_kernel.centres


def kernel_solution(model: Problem, fitted: Fitted, mu: float, with_coef: bool) -> Solution:
    """dual_coef = s∘α, and the bias from its normal equation, or the sum of α where it is penalized
    by K + 1; the weights of the features of a linear kernel, unless they are not wanted.
    """
    smoother, Y = model.of_kernel, fitted.Y
    dual, xp = smoother.dual_coef(fitted, mu), namespace(fitted.Y)
    dual_coef, coef = _scaled(model, dual), None
    if model.kernel.linear and with_coef:  # outside the range of X is rounding only, over μ
        dual = smoother.inside(Y, dual, mu)
        coef = _coef(model, _scaled(model, dual))
    if model.fit_intercept == "penalized":
        intercept = xp.sum(dual_coef, axis=0)
    elif isinstance(smoother, DualNormWithBias):
        intercept = smoother.bias(Y, dual, mu)
    elif not model.fit_intercept:
        intercept = xp.zeros_like(dual_coef[0, :])
    elif coef is not None:
        s, w = model.row_scale, model.row_weights
        mean = xp.sum(w * Y / (1.0 if s is None else s), axis=0) / xp.sum(w)
        intercept = mean - _mean_row(model) @ coef
    else:
        beta, size = smoother.free_coef(Y, dual)
        intercept = settled_sum(beta[0, :], size[0, :]) / xp.sqrt(xp.sum(model.row_weights))
        if smoother.offset:
            intercept = intercept - smoother.offset * xp.sum(dual_coef, axis=0)
    solution = Solution(dual_coef, intercept, coef, centred(model))
    if model.confounds is None:
        return solution
    beta, _ = smoother.free_coef(Y, dual)
    beta = xp.concat([0.0 * beta[:1, :], beta[1:, :]], axis=0)  # the bias is there already
    return solution.plus(model.confounds, beta)


def _scaled(model: Problem, dual: Array) -> Array:
    return dual if model.row_scale is None else model.row_scale * dual


def _mean_row(model: Problem) -> Array:
    w = model.row_weights[:, 0]
    return (model.X.T @ w) / namespace(w).sum(w)


def _coef(model: Problem, dual_coef: Array) -> Array:
    """Xᵀ dual_coef, X minus its mean where the kernel was made so: a free bias makes that the same
    model.
    """
    if not centred(model):
        return model.X.T @ dual_coef
    if sp.issparse(model.X):
        return model.X.T @ dual_coef - np.outer(_mean_row(model), np.sum(dual_coef, axis=0))
    return (model.X - _mean_row(model)).T @ dual_coef


def kernel_smoothing(
    model: Problem,
    X: Any,
    mu: float,
    excess: bool,
    matrix: bool = False,
    confounds: Array | None = None,
) -> Smoothing:
    """h, b and, where asked for, τ of new rows with these confounds; exact, O(n²) for each.

    With `matrix`, τ (m, m) of every two of them.
    """
    (cross, KQ0, own), smoother = _new_kernel(model, X, excess, matrix), model.of_kernel
    of_targets, of_dual, q = smoother.Q0, KQ0, free_columns(model, X, confounds)
    if isinstance(smoother, DualNormWithBias):
        of_targets, of_dual = smoother.bias_of(mu)
        q = namespace(of_dual).ones_like(cross[:, :1])
    P = cross - q @ of_dual.T
    answer = smoother.smoothing(P, mu)
    h = answer.to_targets + q @ of_targets.T
    if not excess:
        return Smoothing(h, answer.to_forces)
    if own is None:
        raise ValueError(
            "a precomputed kernel has no k(x, x) of new rows, which variances and "
            'method="full" need: pass the rows and a kernel by name or as a function, or use '
            'method="jackknife+" of predict_interval.'
        )
    of_free = cross @ smoother.Q0 - 0.5 * q @ (smoother.Q0.T @ KQ0)
    explained = _products(answer.to_targets, P, matrix)
    shared = _products(of_free, q, matrix)
    shared = shared + shared.T if matrix else 2.0 * shared
    tau = (own - shared - explained) / mu + _products(q, q, matrix)
    if not matrix:
        xp = namespace(tau)
        tau = xp.where(tau > 0, tau, xp.zeros_like(tau))
    return Smoothing(h, answer.to_forces, tau)


def free_columns(model: Problem, X: Any, confounds: Array | None) -> Array:
    """q (m, u) of new rows."""
    Q0 = model.of_kernel.Q0
    if model.confounds is not None:
        assert confounds is not None, "a model with confounds needs those of the rows"
        return model.confounds.of_rows(confounds)
    xp = namespace(Q0)
    norm = xp.sqrt(xp.sum(model.row_weights))
    return zeros_like_shape((int(X.shape[0]), int(Q0.shape[1])), Q0) + 1.0 / norm


def _products(A: Array, B: Array, matrix: bool) -> Array:
    """The scalar products (m,) of the rows of A and B, or of every two of them (m, m)."""
    return A @ B.T if matrix else namespace(A).sum(A * B, axis=1)


def _new_kernel(
    model: Problem, X: Any, own: bool, matrix: bool
) -> tuple[Array, Array, Array | None]:
    """k(x, X) s (m, n) of new rows, K Q₀ (n, u) of the training rows by the same kernel, and their
    `own` k(x, x) (m,), or of every two of them (m, m), where that is asked for and known.
    """
    kernel, rows, s, smoother = model.kernel, model.X, model.row_scale, model.of_kernel
    KQ0, diagonal = smoother.KQ0, None
    if kernel.precomputed:
        cross = X + 0.0
    else:
        if kernel.linear:
            if centred(model) and not sp.issparse(X):  # the same model with fewer digits lost
                mean = _mean_row(model)
                X, rows = X - mean, rows - mean
            KQ0 = _scaled(model, rows @ (rows.T @ _scaled(model, smoother.Q0)))
        of_rows = kernel.with_points(rows, centred(model) or smoother.offset > 0)
        cross = of_rows(X)
        if own:
            diagonal = (kernel(X, X) if matrix else kernel.diagonal(X)) - of_rows.offset
    if model.fit_intercept == "penalized":
        cross = cross + 1.0
        diagonal = None if diagonal is None else diagonal + 1.0
    return cross if s is None else cross * s.T, KQ0, diagonal
