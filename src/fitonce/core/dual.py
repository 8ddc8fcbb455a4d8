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
from .holdout import Fitted, Path, Removal, ResidualMap, Smoothing, Targets
from .smoothers import KernelSmoother
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
        fits = operators.complement(targets.Y), operators.complement.diagonal
        of_dual = operators.dual(targets.Y), operators.force.diagonal, operators.curvature.diagonal
        return Path(np.asarray(mus, dtype=float), *fits, *of_dual)

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        operators = self.operators(np.asarray([mu]))
        residual, dual = operators.complement(targets.Y), operators.dual(targets.Y)
        if force is not None:
            residual = residual + operators.force(force)
            dual = dual - operators.curvature(force)
        return Fitted(targets.Y, residual[0, ...], dual[0, ...])

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        return fitted.dual

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        return targets.Y.T @ self.operators(mus).complement(targets.Y)

    def residual_map(self, mu: float) -> ResidualMap:
        unit = eye_like(self.n_samples, self.Q0)
        return ResidualMap(self.fit(self.project(unit), mu).residual)

    def leave_out(self, rows: np.ndarray, mu: float) -> Removal:
        operators = self.operators(np.asarray([mu]))
        B, solve_D = operators.force.block(rows), spd_solver(operators.curvature.block(rows))
        system = operators.complement.block(rows) + B @ solve_D(B.T)
        return Removal(rows, spd_solver(system), B, solve_D)

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
class Corrected:
    """φ(K) minus terms of low rank, for m values of mu: φ(σ) in the columns of phi (r, m), its
    values outside the spectrum (m,), and the terms left (m, n, u) times right (m, n, u)ᵀ.
    """

    spectrum: Spectrum
    phi: Array
    at_zero: Array
    left: Array
    right: Array

    def __call__(self, Y: Array) -> Array:
        """Applied to Y (n, t): (m, n, t)."""
        of_terms = self.left @ (transposed(self.right) @ Y)
        return self.spectrum.apply(self.phi, self.at_zero, Y) - of_terms

    @property
    def diagonal(self) -> Array:
        """(m, n)"""
        of_terms = namespace(self.left).sum(self.left * self.right, axis=2)
        return self.spectrum.diagonal_of(self.phi, self.at_zero).T - of_terms

    def block(self, rows: np.ndarray) -> Array:
        """The square block at some rows, for the first mu."""
        left, right = take(self.left[0, ...], rows), take(self.right[0, ...], rows)
        return next(self.spectrum.blocks(self.phi, self.at_zero, rows)) - left @ right.T


@dataclass(frozen=True)
class DualOperators:
    """I - H, B, Bᵀ and D of the dual norm at some mu, in the names of the module's docstring."""

    complement: Corrected
    force: Corrected
    dual: Corrected
    curvature: Corrected

    @classmethod
    def at(cls, spectrum: Spectrum, Q0: Array, mus: Array, ridge: float = 0.0) -> DualOperators:
        """For all mu (m,); `ridge` times mu is added to S."""
        ones, zeros = namespace(mus).ones_like(mus), namespace(mus).zeros_like(mus)
        sigma = spectrum.eigenvalues[:, None]
        R = 1.0 / (sigma**2 + mus)
        T, F = mus * R, sigma * R
        E, W = spectrum.apply(T, ones, Q0), spectrum.apply(F, zeros, Q0)
        S = Q0.T @ E + (ridge * mus)[:, None, None] * eye_like(Q0.shape[1], Q0)
        E_S, W_S = (E, W) if Q0.shape[1] == 0 else (_right_divide(E, S), _right_divide(W, S))
        return cls(
            Corrected(spectrum, T, ones, E_S, E),
            Corrected(spectrum, F, zeros, E_S, W),
            Corrected(spectrum, F, zeros, W_S, E),
            Corrected(spectrum, R, 1.0 / mus, -W_S, W),
        )


def _right_divide(A: Array, S: Array) -> Array:
    """A S⁻¹ for symmetric S, batched."""
    return transposed(namespace(A).linalg.solve(S, transposed(A)))
