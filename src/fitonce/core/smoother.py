r"""The two penalties as linear smoothers: labels in, fitted and held-out values out.

Both are Ŷ = H Y with an unpenalised block Q₀ (n, u), and both answer the same questions:

- `fit(Y, mu)`: residuals (and dual coefficients) of all rows;
- `leave_one_out(Y, mus)`: held-out residuals of every row for a whole vector of mu, O(n²) each;
- `leave_out(rows, mu)`: a `Removal`, which factors what a test set needs once and is then applied
  to any labels.

**Function norm**, μ‖f‖² (kernel ridge with a free bias, LS-SVM, kernel Fisher discriminant with S_w
+ μI):

    I - H = g(G),  g(λ) = μ/(λ + μ)           α = (I - H) Y / μ

**Dual norm**, μ‖α‖² (the kernel Fisher discriminant of Mika et al. and Xu et al.), with K = U
diag(σ) Uᵀ:

    T = μ/(K² + μ),  E = T Q₀,  W = K/(K² + μ) Q₀,  S = Q₀ᵀE            all functions of K, plus rank u
    I - H = T - E S⁻¹ Eᵀ
    B = K/(K² + μ) - E S⁻¹ Wᵀ                   α = BᵀY
    D = 1/(K² + μ) + W S⁻¹ Wᵀ

Deleting a row of the dual-norm model also forces its α to zero, as a refit would; see
`DualNorm.leave_out`. Weighted problems come in scaled: K → diag(s) K diag(s), Y → sY, with s the
square roots of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .arrays import (
    Array,
    add_to_diagonal,
    asarray_like,
    eye_like,
    namespace,
    replace_rows,
    spd_inverse_overwriting,
    spd_solver,
    square_block,
    take,
    zeros_like_shape,
)
from .spectrum import Spectrum, machine_epsilon, project_off, row_blocks

SMALL = 1e-6  # of λ_max: below this mu, dual coefficients keep to the range of G


@dataclass(frozen=True)
class Fitted:
    """A smoother applied to targets Y (n, t).

    Residual Y - HY and, for the dual norm, the coefficients α.
    """

    Y: Array
    residual: Array
    dual: Array | None = None

    @property
    def values(self) -> Array:
        return self.Y - self.residual

    def rows(self, rows: Array) -> Fitted:
        dual = None if self.dual is None else take(self.dual, rows)
        return Fitted(take(self.Y, rows), take(self.residual, rows), dual)


@dataclass(frozen=True)
class HeldOut:
    """Held-out residuals ρ = Y - (held-out values), and for the dual norm the forces ν that hold α
    at zero.
    """

    residual: Array
    force: Array | None = None


@dataclass(frozen=True)
class Removal:
    """Everything about deleting a set of rows at one mu that does not see the labels.

    `held_out(fitted)` gives the deleted rows' held-out residuals for any targets: O(m²) each after
    an O(m³) factorisation of m deleted rows.
    """

    rows: Array
    solve: Callable[[Fitted], HeldOut]

    def held_out(self, fitted: Fitted) -> HeldOut:
        return self.solve(fitted.rows(self.rows))


class SmootherAt(Protocol):
    """What every smoother answers at one mu."""

    @property
    def Q0(self) -> Array: ...
    @property
    def KQ0(self) -> Array: ...
    @property
    def conditioning(self) -> float: ...
    def fit(self, Y: Array, mu: float) -> Fitted: ...
    def dual_coef(self, fitted: Fitted, mu: float) -> Array: ...
    def leave_out(self, rows: Array, mu: float) -> Removal: ...
    def can_leave_out(self, n_rows: int) -> bool: ...
    def refit_without(self, fitted: Fitted, removal: Removal, mu: float) -> Fitted: ...


class Smoother(SmootherAt, Protocol):
    """What a decomposition adds: any mu, many at once."""

    @property
    def spectrum(self) -> Spectrum: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def largest(self) -> float: ...
    @property
    def trace(self) -> float: ...
    def check(self, mus: np.ndarray) -> None: ...
    def leverage(self, mu: float) -> Array: ...
    def leave_one_out(self, Y: Array, mus: np.ndarray) -> HeldOut: ...
    def residual_scatter(self, Y: Array, mus: np.ndarray) -> Array: ...


def unpenalised_coef(smoother: SmootherAt, Y: Array, dual: Array) -> Array:
    """Coefficients of Q₀, by its normal equations: β = Q₀ᵀ(Y - Kα)."""
    return smoother.Q0.T @ Y - smoother.KQ0.T @ dual


@dataclass(frozen=True)
class FunctionNorm:
    """Penalty μ‖f‖².

    I - H = g(G) with g = μ/(λ + μ), written as a sum of non-negative terms throughout.
    """

    spectrum: Spectrum
    KQ0: Array

    @property
    def Q0(self) -> Array:
        return self.spectrum.Q0

    @property
    def conditioning(self) -> float:
        """eps·λ_max: over mu, the relative error that float64 leaves in a held-out value."""
        return machine_epsilon(self.spectrum.V) * self.largest

    @property
    def largest(self) -> float:
        """λ_max of G."""
        return self.spectrum.largest

    @property
    def trace(self) -> float:
        """Σ|λ|: the trace of G, of its absolute value where the kernel is indefinite."""
        xp = namespace(self.spectrum.V)
        return float(xp.sum(xp.abs(self.spectrum.eigenvalues)))

    @property
    def lower_bound(self) -> float:
        """mu must exceed this: -λ_min of an indefinite kernel, else 0."""
        return max(0.0, -self.spectrum.smallest)

    def check(self, mus: np.ndarray) -> None:
        """Refuse a mu at which H does not exist."""
        if np.any(mus <= self.lower_bound):
            raise ValueError(
                f"alpha must be greater than {self.lower_bound:.6g} for this kernel, got "
                f"{float(np.min(mus)):.6g} "
                "instead: the centred kernel matrix is indefinite (its smallest eigenvalue is "
                f"{self.spectrum.smallest:.6g}), "
                "and below that value the penalised problem has no minimum. "
                'Use a larger alpha, or penalty="dual", which needs no definiteness.'
            )

    def _g(self, mu: float) -> Array:
        return mu / (self.spectrum.eigenvalues + mu)

    def residual(self, Y: Array, mu: float) -> Array:
        """(I - H) Y = V (g ∘ VᵀY) + what lies outside V."""
        return self.spectrum.apply(self._g(mu), 1.0, Y)

    def fit(self, Y: Array, mu: float) -> Fitted:
        return Fitted(Y, self.residual(Y, mu))

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        """α = (Y - Ŷ)/μ. At a tiny μ only its part inside the range of a definite G.

        The rest predicts nothing, but grows like 1/μ.
        """
        if self.spectrum.smallest < 0 or mu > SMALL * self.largest:
            return fitted.residual / mu
        xp = namespace(fitted.Y)
        eigenvalues = self.spectrum.eigenvalues
        noise = self.spectrum.n_samples * machine_epsilon(self.spectrum.V) * self.largest
        phi = xp.where(eigenvalues > noise, 1.0 / (eigenvalues + mu), xp.zeros_like(eigenvalues))
        return self.spectrum.apply(phi, 0.0, fitted.Y)

    def leverage(self, mu: float) -> Array:
        """h_ii, the share of its own fitted value that a row supplies; the bias's part included."""
        g = self._g(mu)[:, None]
        return 1.0 - self.spectrum.diagonal(g, asarray_like([1.0], g))[:, 0]

    def leave_one_out(self, Y: Array, mus: np.ndarray) -> HeldOut:
        """Held-out residuals (m, n, t): r_i / (1 - h_i), equal to n refits.

        One product V² g for all mu.
        """
        xp = namespace(Y)
        mus = asarray_like(mus, Y)
        g = mus / (self.spectrum.eigenvalues[:, None] + mus)
        ones = xp.ones_like(mus)
        one_minus_h = self.spectrum.diagonal(g, ones)
        residual = self.spectrum.apply(g, ones, Y)
        return HeldOut(residual / one_minus_h.T[:, :, None])

    def residual_scatter(self, Y: Array, mus: np.ndarray) -> Array:
        """Yᵀ(I - H)Y for every mu: (m, t, t)."""
        xp = namespace(Y)
        mus = asarray_like(mus, Y)
        return self.spectrum.quadratic(
            mus / (self.spectrum.eigenvalues[:, None] + mus), xp.ones_like(mus), Y
        )

    def leave_out(self, rows: Array, mu: float) -> Removal:
        """ρ solves (I - H)_TeTe ρ = r_Te."""
        solve = self._solver(rows, mu)
        return Removal(rows, lambda fitted: HeldOut(solve(fitted.residual)))

    def can_leave_out(self, n_rows: int) -> bool:
        """Whether deleting so many rows is cheaper than decomposing the rest.

        Half of them, or any number at low rank.
        """
        return n_rows <= self.spectrum.n_samples // 2 or not self.spectrum.complete

    def _solver(self, rows: Array, mu: float) -> Callable[[Array], Array]:
        r, u = self.spectrum.rank, int(self.Q0.shape[1])
        if len(rows) > r + u and self.spectrum.smallest >= 0:
            return self._low_rank_solver(rows, mu)
        return spd_solver(self.spectrum.block(self._g(mu), 1.0, rows))

    def _low_rank_solver(self, rows: Array, mu: float) -> Callable[[Array], Array]:
        """More deleted rows than directions.

        (I - LLᵀ)⁻¹ = I + L (I - LᵀL)⁻¹ Lᵀ with L = [Q₀, V√f]_Te.
        """
        xp = namespace(self.spectrum.V)
        f = self.spectrum.eigenvalues / (self.spectrum.eigenvalues + mu)
        L = xp.concat([take(self.Q0, rows), take(self.spectrum.V, rows) * xp.sqrt(f)], axis=1)
        solve = spd_solver(eye_like(L.shape[1], L) - L.T @ L)
        return lambda R: R + L @ solve(L.T @ R)

    def refit_without(self, fitted: Fitted, removal: Removal, mu: float) -> Fitted:
        """The fit without the removed rows; see `_refit_to_held_out`."""
        return _refit_to_held_out(self, fitted, removal, mu)


def _refit_to_held_out(
    smoother: FunctionNorm | FunctionNormAt, fitted: Fitted, removal: Removal, mu: float
) -> Fitted:
    """Deleting rows equals replacing their targets by their held-out values.

    The result is a fit of all rows to those targets Y*: Ŷ(new) = H Y*, with α zero at the removed
    rows.
    """
    Y = replace_rows(
        fitted.Y, removal.rows, take(fitted.Y, removal.rows) - removal.held_out(fitted).residual
    )
    return smoother.fit(Y, mu)


@dataclass(frozen=True)
class FunctionNormAt:
    """The function norm at one mu: I - H as a matrix, from a Cholesky factorisation instead of an
    eigendecomposition.

    I - H = μ (G + cQ₀Q₀ᵀ + μI)⁻¹ - μ/(c + μ) Q₀Q₀ᵀ for any c; a large one keeps the second term
    small and the first well conditioned. Several times cheaper than a Spectrum where only one mu is
    wanted, and blocks of it are there already.
    """

    one_minus_H: Array
    Q0: Array
    KQ0: Array
    mu: float
    conditioning: float

    @classmethod
    def of_kernel(cls, K: Array, Q0: Array, mu: float) -> FunctionNormAt:
        """From a kernel matrix, which is overwritten; ValueError where mu ≤ -λ_min."""
        KQ0 = K @ Q0
        shift, norm = project_off(K, Q0)
        add_to_diagonal(K, mu)
        one_minus_H = spd_inverse_overwriting(K)
        one_minus_H *= mu
        for rows in row_blocks(K.shape[0]):
            one_minus_H[rows, :] -= (mu / (shift + mu) * Q0[rows, :]) @ Q0.T
        return cls(one_minus_H, Q0, KQ0, mu, machine_epsilon(K) * norm)

    def fit(self, Y: Array, mu: float) -> Fitted:
        return Fitted(Y, self.one_minus_H @ Y)

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        return fitted.residual / mu

    def leave_out(self, rows: Array, mu: float) -> Removal:
        """ρ solves (I - H)_TeTe ρ = r_Te."""
        solve = spd_solver(square_block(self.one_minus_H, rows))
        return Removal(rows, lambda fitted: HeldOut(solve(fitted.residual)))

    def can_leave_out(self, n_rows: int) -> bool:
        return n_rows <= int(self.Q0.shape[0]) // 2

    def refit_without(self, fitted: Fitted, removal: Removal, mu: float) -> Fitted:
        return _refit_to_held_out(self, fitted, removal, mu)


@dataclass(frozen=True)
class DualNorm:
    """Penalty μ‖α‖², with U, σ of the uncentred kernel in `spectrum` and the unpenalised basis Q0
    beside it.
    """

    spectrum: Spectrum
    Q0: Array
    KQ0: Array

    @property
    def conditioning(self) -> float:
        """eps·σ_max²: over mu, the relative error that float64 leaves in a held-out value."""
        return machine_epsilon(self.spectrum.V) * self.largest

    @property
    def largest(self) -> float:
        """σ_max², of KK."""
        return self.spectrum.largest**2

    @property
    def trace(self) -> float:
        """trace(C K K C), of the Gram matrix that this penalty sees."""
        xp = namespace(self.KQ0)
        return max(float(xp.sum(self.spectrum.eigenvalues**2)) - float(xp.sum(self.KQ0**2)), 0.0)

    @property
    def lower_bound(self) -> float:
        """Every mu > 0 will do: K enters squared."""
        return 0.0

    def check(self, mus: np.ndarray) -> None:
        """Nothing to refuse."""

    def _operators(self, mus: np.ndarray) -> _DualOperators:
        return _DualOperators.at(
            self.spectrum, self.Q0, asarray_like(np.atleast_1d(mus), self.spectrum.V)
        )

    def fit(self, Y: Array, mu: float) -> Fitted:
        operators = self._operators(np.asarray([mu]))
        return Fitted(Y, operators.residual(Y)[0, ...], operators.dual(Y)[0, ...])

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        return fitted.dual

    def leverage(self, mu: float) -> Array:
        return 1.0 - self._operators(np.asarray([mu])).diagonals()[0][0, :]

    def leave_one_out(self, Y: Array, mus: np.ndarray) -> HeldOut:
        """Exact held-out residuals (m, n, t), row and basis function deleted together.

        With d, b, 1-h the diagonals of D, B, I-H:  ρ_i = (d_i r_i + b_i α_i) / ((1 - h_i) d_i + b_i²).
        """
        operators = self._operators(mus)
        one_minus_h, b, d = (diagonal[:, :, None] for diagonal in operators.diagonals())
        residual, dual = operators.residual(Y), operators.dual(Y)
        rho = (d * residual + b * dual) / (one_minus_h * d + b**2)
        return HeldOut(rho, (dual - b * rho) / d)

    def residual_scatter(self, Y: Array, mus: np.ndarray) -> Array:
        """Yᵀ(I - H)Y for every mu: (m, t, t)."""
        return Y.T @ self._operators(mus).residual(Y)

    def leave_one_out_fixed_basis(self, Y: Array, mus: np.ndarray) -> Array:
        """The approximation of Cawley & Talbot (2003) and Saadi et al.: r_i / (1 - h_i), (m, n, t).

        The row is deleted from the loss but its kernel function stays in the expansion, so this is
        not what a refit gives: the relative error is about 2 % at n = 60 and falls with n. For
        their figures only.
        """
        operators = self._operators(mus)
        return operators.residual(Y) / operators.diagonals()[0][:, :, None]

    def leave_out(self, rows: Array, mu: float) -> Removal:
        """Delete the rows and hold their α at zero by forces ν; blocks at the test rows, one SPD
        solve:

        (I - H + B D⁻¹ Bᵀ) ρ = r + B D⁻¹ α,        ν = D⁻¹ (α - Bᵀρ)
        """
        one_minus_H, B, D = self._operators(np.asarray([mu])).blocks(rows)
        solve_D = spd_solver(D)
        solve = spd_solver(one_minus_H + B @ solve_D(B.T))

        def held_out(fitted: Fitted) -> HeldOut:
            rho = solve(fitted.residual + B @ solve_D(fitted.dual))
            return HeldOut(rho, solve_D(fitted.dual - B.T @ rho))

        return Removal(rows, held_out)

    def can_leave_out(self, n_rows: int) -> bool:
        return n_rows <= self.spectrum.n_samples // 2

    def refit_without(self, fitted: Fitted, removal: Removal, mu: float) -> Fitted:
        """As for the function norm, with the forces: α = BᵀY* - Dν and Ŷ = HY* - Bν."""
        held_out = removal.held_out(fitted)
        Y = replace_rows(fitted.Y, removal.rows, take(fitted.Y, removal.rows) - held_out.residual)
        force = replace_rows(zeros_like_shape(Y.shape, Y), removal.rows, held_out.force)
        operators = self._operators(np.asarray([mu]))
        residual = operators.residual(Y) + operators.transposed_dual(force)
        dual = operators.dual(Y) - operators.curvature(force)
        return Fitted(Y, residual[0, ...], dual[0, ...])


@dataclass(frozen=True)
class _DualOperators:
    """I - H, B and D of the dual norm at m values of mu, as functions of K plus terms of rank u.

    T, F, R are the values on the spectrum (r, m) of μ/(σ²+μ), σ/(σ²+μ), 1/(σ²+μ); E and W (m, n, u)
    as in the module's docstring; E_S and W_S are E S⁻¹ and W S⁻¹.
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
    def at(cls, spectrum: Spectrum, Q0: Array, mus: Array) -> _DualOperators:
        xp = namespace(mus)
        sigma = spectrum.eigenvalues[:, None]
        q = sigma**2 + mus
        T, F, R = mus / q, sigma / q, 1.0 / q
        E = spectrum.apply(T, xp.ones_like(mus), Q0)
        W = spectrum.apply(F, xp.zeros_like(mus), Q0)
        S = Q0.T @ E
        E_S, W_S = (E, W) if Q0.shape[1] == 0 else (_right_divide(E, S), _right_divide(W, S))
        return cls(spectrum, mus, T, F, R, E, W, E_S, W_S)

    def residual(self, Y: Array) -> Array:
        """(I - H) Y."""
        xp = namespace(Y)
        return self.spectrum.apply(self.T, xp.ones_like(self.mus), Y) - self.E_S @ (
            _transpose(self.E) @ Y
        )

    def dual(self, Y: Array) -> Array:
        """BᵀY."""
        xp = namespace(Y)
        return self.spectrum.apply(self.F, xp.zeros_like(self.mus), Y) - self.W_S @ (
            _transpose(self.E) @ Y
        )

    def transposed_dual(self, Y: Array) -> Array:
        """B Y."""
        xp = namespace(Y)
        return self.spectrum.apply(self.F, xp.zeros_like(self.mus), Y) - self.E_S @ (
            _transpose(self.W) @ Y
        )

    def curvature(self, Y: Array) -> Array:
        """D Y."""
        return self.spectrum.apply(self.R, 1.0 / self.mus, Y) + self.W_S @ (_transpose(self.W) @ Y)

    def diagonals(self) -> tuple[Array, Array, Array]:
        """diag(I - H), diag(B), diag(D), each (m, n)."""
        xp = namespace(self.mus)
        ones, zeros = xp.ones_like(self.mus), xp.zeros_like(self.mus)
        phi = xp.concat([self.T, self.F, self.R], axis=1)
        diagonals = self.spectrum.diagonal(phi, xp.concat([ones, zeros, 1.0 / self.mus], axis=0)).T
        m = self.mus.shape[0]
        one_minus_h = diagonals[:m, :] - xp.sum(self.E_S * self.E, axis=2)
        b = diagonals[m : 2 * m, :] - xp.sum(self.E_S * self.W, axis=2)
        d = diagonals[2 * m :, :] + xp.sum(self.W_S * self.W, axis=2)
        return one_minus_h, b, d

    def blocks(self, rows: Array) -> tuple[Array, Array, Array]:
        """(I - H), B, D at the given rows, for the single mu of this object."""
        mu = float(self.mus[0])
        E, W, E_S, W_S = (take(A[0, :, :], rows) for A in (self.E, self.W, self.E_S, self.W_S))
        one_minus_H = self.spectrum.block(self.T[:, 0], 1.0, rows) - E_S @ E.T
        B = self.spectrum.block(self.F[:, 0], 0.0, rows) - E_S @ W.T
        D = self.spectrum.block(self.R[:, 0], 1.0 / mu, rows) + W_S @ W.T
        return one_minus_H, B, D


def _transpose(A: Array) -> Array:
    return namespace(A).matrix_transpose(A)


def _right_divide(A: Array, S: Array) -> Array:
    """A S⁻¹ for symmetric S, batched."""
    return _transpose(namespace(A).linalg.solve(S, _transpose(A)))
