r"""Expanding windows: the models of the first a rows, for every a, from one Cholesky factor.

Let the rows be in the order in which they join, G the kernel matrix with the unpenalized columns Q₀
taken off (which a free bias allows), G + μI = LLᵀ, w = L⁻¹Y and U = L⁻¹Q₀. The leading block of L
is the factor of the first a rows, so that their model (function norm) has

    b = (U_aᵀU_a)⁻¹ U_aᵀw_a                          coefficients of Q₀
    c = w_a - U_a b                                  coordinates, α = L_aa⁻ᵀ c
    f(x_i) = L_i,a c + Q₀,i b                        at every later row i
    E = μ cᵀc                                        residual scatter Yᵀ(I - H)Y of the a rows
    Y_a - Ŷ_a = μ L_aa⁻ᵀ c                           residuals of the a rows themselves

Exact. Cost: n³/3 once, and O(a) for each later row and target. Without Q₀ and with one step ahead,
f(x_i) is L_i,a w_a, and the prediction error w_i L_ii, as every Kalman filter has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arrays import (
    Array,
    add_to_diagonal,
    cholesky_overwriting,
    spd_solver,
    take,
    triangular_solve,
    zeros_like_shape,
)
from .spectrum import project_off


@dataclass(frozen=True)
class WindowFactor:
    """L (n, n) of rows in the order in which they join, with Q₀ and U = L⁻¹Q₀ (n, u), at one mu."""

    L: Array
    Q0: Array
    U: Array
    mu: float

    @classmethod
    def of_kernel(cls, K: Array, Q0: Array, mu: float) -> WindowFactor:
        """From a kernel matrix, which is overwritten; NotPositiveDefiniteError where mu ≤ -λ_min of
        some window.
        """
        project_off(K, Q0)  # G + cQ₀Q₀ᵀ: a multiple of Q₀Q₀ᵀ changes nothing
        add_to_diagonal(K, mu)
        L = cholesky_overwriting(K)
        return cls(L, Q0, triangular_solve(L, Q0), mu)

    def project(self, Y: Array) -> Array:
        """w = L⁻¹Y (n, t), for targets in the order of the factor."""
        return triangular_solve(self.L, Y)

    def window(self, w: Array, size: int) -> Window:
        """The model of the first rows."""
        U, w = self.U[:size, :], w[:size, :]
        if self.Q0.shape[1] == 0:
            return Window(self, zeros_like_shape((0, w.shape[1]), w), w)
        b = spd_solver(U.T @ U)(U.T @ w)
        return Window(self, b, w - U @ b)


@dataclass(frozen=True)
class Window:
    """The model of the first a rows: coefficients b (u, t) of Q₀ and coordinates c (a, t)."""

    factor: WindowFactor
    b: Array
    c: Array

    @property
    def size(self) -> int:
        return int(self.c.shape[0])

    def values(self, rows: Array) -> Array:
        """Predicted targets (k, t) of later rows."""
        factor, a = self.factor, self.size
        return take(factor.L, rows)[:, :a] @ self.c + take(factor.Q0, rows) @ self.b

    def residuals(self) -> Array:
        """Y - Ŷ (a, t) of the window's own rows: O(a²) for each target."""
        a = self.size
        return self.factor.mu * triangular_solve(self.factor.L[:a, :a], self.c, transposed=True)

    def residual_scatter(self) -> Array:
        """E = Yᵀ(I - H)Y (t, t)."""
        return self.factor.mu * (self.c.T @ self.c)
