r"""The dual norm as a smoother of a kernel matrix: penalty μ‖α‖².

The kernel Fisher discriminant of Mika et al. and Xu et al. With K = U diag(σ) Uᵀ,

    T = μ/(K² + μ),  E = T Q₀,  W = K/(K² + μ) Q₀,  S = Q₀ᵀE      functions of K, plus rank u
    I - H = T - E S⁻¹ Eᵀ
    B = K/(K² + μ) - E S⁻¹ Wᵀ                   α = BᵀY
    D = 1/(K² + μ) + W S⁻¹ Wᵀ

A bias that is penalized like every α (K̃ = [K 1] of Saadi et al. 2007, section 3.4) adds to S: with
the column c = s/‖s‖ in place of Q₀ and b = β/‖s‖, the penalty μb² is (μ/‖s‖²)β², and

    S = cᵀE + μ/‖s‖²,        β = (cᵀY - (Kc)ᵀα) / (1 + μ/‖s‖²)        else as above.

Weighted problems come in scaled, as for the function norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Array, asarray_like, eye_like, namespace, spd_solver, take, transposed
from .holdout import Fitted, PairSystem, Path, ResidualMap, Targets, delete_each
from .smoothers import KernelSmoother
from .smoothing import Smoothing
from .spectrum import Spectrum, machine_epsilon


@dataclass(frozen=True)
class DualNorm(KernelSmoother):
    """Penalty μ‖α‖², with U, σ of the uncentered kernel in `spectrum`, and Q0.

    If the bias is free, a constant `offset` may be subtracted from the kernel: α stays the same.
    A spectrum without Q₀ is that of the residual kernel (I - Q₀Q₀ᵀ)K(I - Q₀Q₀ᵀ).
    """

    spectrum: Spectrum
    Q0: Array
    KQ0: Array
    offset: float = 0.0
    has_duals = True

    @property
    def columns(self) -> Array:
        """The columns fitted in addition to the kernels (n, u), orthonormal: here, the unpenalized
        ones that the spectrum has not lost.
        """
        return self.Q0[:, int(self.spectrum.Q0.shape[1]) :]

    @property
    def ridge(self) -> float:
        """The penalty of the coefficients of these columns, divided by mu."""
        return 0.0

    @cached_property
    def conditioning(self) -> float:
        """eps·σ_max²."""
        return machine_epsilon(self.spectrum.V) * self.largest

    @cached_property
    def largest(self) -> float:
        """σ_max², of KK."""
        return self.spectrum.largest**2

    def complement_norm(self, mu: Any) -> Any:
        """μ/(σ_min² + μ)."""
        xp = namespace(self.Q0)
        least = float(xp.min(self.spectrum.eigenvalues**2)) if self.spectrum.complete else 0.0
        return mu / (least + mu)

    @cached_property
    def trace(self) -> float:
        """trace(C K K C), of the Gram matrix that this penalty uses."""
        xp, sigma = namespace(self.KQ0), self.spectrum.eigenvalues
        of_columns = sigma[:, None] * (self.spectrum.V.T @ self.columns)
        return max(float(xp.sum(sigma**2)) - float(xp.sum(of_columns**2)), 0.0)

    def operators(self, mus: np.ndarray) -> DualOperators:
        mus = asarray_like(np.atleast_1d(mus), self.Q0)
        return DualOperators.at(self.spectrum, self.columns, mus, self.ridge)

    def project(self, Y: Array) -> Targets:
        return Targets(Y)

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        operators = self.operators(mus)
        residual, dual = operators.residual(targets.Y), operators.dual(targets.Y)
        one_minus_h, b, d = operators.diagonals()
        return Path(np.asarray(mus, dtype=float), residual, one_minus_h, dual, b, d)

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        operators = self.operators(np.asarray([mu]))
        residual, dual = operators.residual(targets.Y), operators.dual(targets.Y)
        if force is not None:
            residual = residual + operators.transposed_dual(force)
            dual = dual - operators.curvature(force)
        return Fitted(targets.Y, residual[0, ...], dual[0, ...])

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        return fitted.dual

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        return targets.Y.T @ self.operators(mus).residual(targets.Y)

    def residual_map(self, mu: float) -> ResidualMap:
        unit = eye_like(self.n_samples, self.Q0)
        return ResidualMap(self.fit(self.project(unit), mu).residual)

    def leave_one_out_fixed_basis(self, targets: Targets, mus: np.ndarray) -> Array:
        """The approximation of Cawley & Talbot (2003) and Saadi et al.: r_i / (1 - h_i), (m, n, t).

        The row is deleted from the loss, but its kernel function stays in the expansion, so this
        differs from a refit: the relative error is about 2 % at n = 60 and decreases with n. Only
        for their figures.
        """
        path = self.path(targets, mus)
        return delete_each(path.residual, path.one_minus_h[:, :, None]).residual

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        one_minus_H, B, D = self.operators(np.asarray([mu])).blocks(rows)
        solve_D = spd_solver(D)
        return PairSystem(spd_solver(one_minus_H + B @ solve_D(B.T)), B, solve_D)

    def smoothing(self, P: Array, mu: float) -> Smoothing:
        """B Pᵀ and -D Pᵀ are the fit of no targets to the forces Pᵀ."""
        forced = self.fit(self.project(namespace(P).zeros_like(P.T)), mu, P.T)
        return Smoothing(forced.residual.T, -forced.dual.T)  # type: ignore[union-attr]


@dataclass(frozen=True)
class DualNormWithBias(DualNorm):
    """The same with a bias that is penalized like every α: nothing is free, and Q₀ is empty.

    `column` is s/‖s‖ (n, 1), `K_column` the kernel times it.
    """

    column: Array = None
    K_column: Array = None
    size: float = 1.0  # ‖s‖², the sum of the weights

    @property
    def columns(self) -> Array:
        return self.column

    @property
    def ridge(self) -> float:
        return 1.0 / self.size

    @cached_property
    def largest(self) -> float:
        """Of KK + ssᵀ, from above."""
        return self.spectrum.largest**2 + self.size

    @cached_property
    def trace(self) -> float:
        """trace(KK + ssᵀ)."""
        return float(namespace(self.column).sum(self.spectrum.eigenvalues**2)) + self.size

    def bias(self, Y: Array, dual: Array, mu: float) -> Array:
        """b (t,), by its normal equation."""
        of_targets, of_dual = self.bias_of(mu)
        return (of_targets.T @ Y - of_dual.T @ dual)[0, :]

    def bias_of(self, mu: float) -> tuple[Array, Array]:
        """b as a function of the targets and of -α: c and Kc (n, 1), scaled."""
        scale = 1.0 / ((1.0 + self.ridge * mu) * self.size**0.5)
        return scale * self.column, scale * self.K_column


@dataclass(frozen=True)
class DualOperators:
    """I - H, B and D of the dual norm at m values of mu, as functions of K plus terms of rank u.

    T, F, R are the values on the spectrum (r, m) of μ/(σ²+μ), σ/(σ²+μ), 1/(σ²+μ); E and W
    (m, n, u) as in the module's docstring; E_S and W_S are E S⁻¹ and W S⁻¹.
    """

    spectrum: Spectrum
    mus: Array
    T: Array
    F: Array
    R: Array
    E: Array
    W: Array
    E_S: Array
    W_S: Array

    @classmethod
    def at(cls, spectrum: Spectrum, Q0: Array, mus: Array, ridge: float = 0.0) -> DualOperators:
        xp = namespace(mus)
        sigma = spectrum.eigenvalues[:, None]
        q = sigma**2 + mus
        T, F, R = mus / q, sigma / q, 1.0 / q
        E = spectrum.apply(T, xp.ones_like(mus), Q0)
        W = spectrum.apply(F, xp.zeros_like(mus), Q0)
        S = Q0.T @ E + (ridge * mus)[:, None, None] * eye_like(Q0.shape[1], Q0)
        E_S, W_S = (E, W) if Q0.shape[1] == 0 else (_right_divide(E, S), _right_divide(W, S))
        return cls(spectrum, mus, T, F, R, E, W, E_S, W_S)

    def residual(self, Y: Array) -> Array:
        """(I - H) Y."""
        ones = namespace(Y).ones_like(self.mus)
        return self.spectrum.apply(self.T, ones, Y) - self.E_S @ (transposed(self.E) @ Y)

    def dual(self, Y: Array) -> Array:
        """BᵀY."""
        zeros = namespace(Y).zeros_like(self.mus)
        return self.spectrum.apply(self.F, zeros, Y) - self.W_S @ (transposed(self.E) @ Y)

    def transposed_dual(self, Y: Array) -> Array:
        """B Y."""
        zeros = namespace(Y).zeros_like(self.mus)
        return self.spectrum.apply(self.F, zeros, Y) - self.E_S @ (transposed(self.W) @ Y)

    def curvature(self, Y: Array) -> Array:
        """D Y."""
        return self.spectrum.apply(self.R, 1.0 / self.mus, Y) + self.W_S @ (transposed(self.W) @ Y)

    def diagonals(self) -> tuple[Array, Array, Array]:
        """diag(I - H), diag(B), diag(D), each (m, n)."""
        xp = namespace(self.mus)
        ones, zeros = xp.ones_like(self.mus), xp.zeros_like(self.mus)
        phi = xp.concat([self.T, self.F, self.R], axis=1)
        at_zero = xp.concat([ones, zeros, 1.0 / self.mus], axis=0)
        diagonals = self.spectrum.diagonal_of(phi, at_zero).T
        m = self.mus.shape[0]
        one_minus_h = diagonals[:m, :] - xp.sum(self.E_S * self.E, axis=2)
        b = diagonals[m : 2 * m, :] - xp.sum(self.E_S * self.W, axis=2)
        d = diagonals[2 * m :, :] + xp.sum(self.W_S * self.W, axis=2)
        return one_minus_h, b, d

    def blocks(self, rows: np.ndarray) -> tuple[Array, Array, Array]:
        """(I - H), B, D at the given rows, for the single mu of this object."""
        mu = float(self.mus[0])
        E, W, E_S, W_S = (take(A[0, :, :], rows) for A in (self.E, self.W, self.E_S, self.W_S))
        phi = namespace(E).concat([self.T, self.F, self.R], axis=1)
        of_T, of_F, of_R = self.spectrum.blocks(phi, (1.0, 0.0, 1.0 / mu), rows)
        return of_T - E_S @ E.T, of_F - E_S @ W.T, of_R + W_S @ W.T


def _right_divide(A: Array, S: Array) -> Array:
    """A S⁻¹ for symmetric S, batched."""
    return transposed(namespace(A).linalg.solve(S, transposed(A)))
