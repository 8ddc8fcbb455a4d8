r"""New rows as linear functions of the targets of a kernel model.

With s the roots of the weights, ‖s‖² = Σw, and a free bias, f(x) = s∘k(x)ᵀα + β/‖s‖ with
β = Q₀ᵀ(Y - Kα), that is

    f(x) = P(x) α + Q₀ᵀY/‖s‖,          P(x) = s∘k(x) - Q₀ᵀK/‖s‖      x minus the mean of the rows,

and α = BᵀY - Dν gives h(x) = B P(x)ᵀ + Q₀/‖s‖ and b(x) = D P(x)ᵀ. The function norm has the
variance of f(x), in units of the noise,

    τ(x) = (k̄(x, x) - P (G + μ)⁻¹Pᵀ)/μ + 1/Σw,      k̄(x, x) of x minus the mean of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, namespace
from ..core.dual import DualNormWithBias
from ..core.smoothers import KernelSmoother
from ..core.smoothing import Smoothing
from ..kernels import Kernel


class KernelModelRows(Protocol):
    """What is read of a problem."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def X(self) -> Any: ...
    @property
    def smoother(self) -> KernelSmoother: ...
    @property
    def row_scale(self) -> Array | None: ...
    @property
    def row_weights(self) -> Array: ...
    @property
    def fit_intercept(self) -> bool | str: ...
    @property
    def centred(self) -> bool: ...


@dataclass(frozen=True)
class NewKernel:
    """k(x, X) s (m, n) of new rows, K Q₀ (n, u) of the training rows by the same kernel, and
    k(x, x) (m,), or of every two new rows (m, m), where it is known.
    """

    cross: Array
    KQ0: Array
    own: Array | None


def kernel_smoothing(
    problem: KernelModelRows, X: Any, mu: float, excess: bool, matrix: bool = False
) -> Smoothing:
    """h, b and, where asked for, τ of new rows; exact, O(n²) for each.

    With `matrix`, τ (m, m) of every two of them.
    """
    new, Q0 = _new_kernel(problem, X, excess, matrix), problem.smoother.Q0
    xp = namespace(Q0)
    norm = xp.sqrt(xp.sum(problem.row_weights))
    free = bool(Q0.shape[1])
    of_targets, of_dual = Q0 / norm, new.KQ0 / norm
    if isinstance(problem.smoother, DualNormWithBias):
        of_targets, of_dual = problem.smoother.bias_of(mu)
    P = new.cross - _row(of_dual) if of_dual.shape[1] else new.cross
    answer = problem.smoother.smoothing(P, mu)
    h = answer.to_targets + _row(of_targets) if of_dual.shape[1] else answer.to_targets
    if not excess:
        return Smoothing(h, answer.to_forces)
    if new.own is None:
        raise ValueError(
            "a precomputed kernel has no k(x, x) of new rows, which variances and "
            'method="full" need: pass the rows and a kernel by name or as a function, or use '
            'method="jackknife+" of predict_interval.'
        )
    own, bias = new.own, 0.0
    if free:
        of_mean = (new.cross @ Q0)[:, 0] / norm - 0.5 * (Q0.T @ new.KQ0)[0, 0] / norm**2
        own = own - (of_mean[:, None] + of_mean[None, :] if matrix else 2.0 * of_mean)
        bias = 1.0 / norm**2
    explained = answer.to_targets @ P.T if matrix else xp.sum(answer.to_targets * P, axis=1)
    tau = (own - explained) / mu + bias
    if not matrix:
        tau = xp.where(tau > 0, tau, xp.zeros_like(tau))
    return Smoothing(h, answer.to_forces, tau)


def _row(A: Array) -> Array:
    """The sum of the columns of A (n, u) as a row."""
    return namespace(A).sum(A, axis=1)[None, :]


def _dense(K: Any) -> Array:
    return K.toarray() if sp.issparse(K) else K


def _sum_of_squares(X: Array) -> Array:
    return namespace(X).sum(X**2, axis=1)


def _new_kernel(problem: KernelModelRows, X: Any, own: bool, matrix: bool) -> NewKernel:
    kernel, s, penalized = problem.kernel, problem.row_scale, problem.fit_intercept == "penalized"
    if kernel.precomputed:
        cross, KQ0, diagonal = X + 0.0, problem.smoother.KQ0, None
    elif kernel.linear:
        cross, KQ0, diagonal = _linear(problem, X, matrix)
    else:
        of_rows = kernel.with_points(problem.X, problem.centred or problem.smoother.offset > 0)
        cross, KQ0 = of_rows(X), problem.smoother.KQ0
        diagonal = None
        if own:
            diagonal = (kernel(X, X) if matrix else kernel.diagonal(X)) - of_rows.offset
    if penalized:
        cross = cross + 1.0
        diagonal = None if diagonal is None else diagonal + 1.0
    return NewKernel(cross if s is None else cross * s.T, KQ0, diagonal)


def _linear(problem: KernelModelRows, X: Any, matrix: bool) -> tuple[Array, Array, Array]:
    """The linear kernel of rows minus the mean of the training rows, where that is the
    same model with fewer digits lost.
    """
    Q0, w, rows = problem.smoother.Q0, problem.row_weights, problem.X
    if problem.fit_intercept is True and problem.smoother.centres and not sp.issparse(X):
        mean = (rows.T @ w)[:, 0] / namespace(w).sum(w)
        X, rows = X - mean, rows - mean
    scaled_Q0 = Q0 * namespace(w).sqrt(w)
    KQ0 = namespace(w).sqrt(w) * (rows @ (rows.T @ scaled_Q0))
    if matrix:
        own = _dense(X @ X.T)
    else:
        own = np.ravel(X.multiply(X).sum(axis=1)) if sp.issparse(X) else _sum_of_squares(X)
    return _dense(X @ rows.T), KQ0, own
