r"""The function norm as a smoother of a kernel matrix: penalty μ‖f‖².

Kernel ridge with a free bias, LS-SVM, and the kernel Fisher discriminant with S_w + μI:

    I - H = g(G),  g(λ) = μ/(λ + μ)           α = (I - H) Y / μ

Weighted problems come in scaled: K → diag(s) K diag(s), Y → sY, with s the square roots of the
weights. In t = log μ the derivatives are g' = g(1-g) and g'' = g(1-g)(1-2g).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import (
    Array,
    add_to_diagonal,
    asarray_like,
    eye_like,
    namespace,
    spd_solver,
    square_block,
    take,
    to_numpy,
)
from .blocked import spd_inverse_overwriting
from .holdout import Fitted, PairSystem, Path, ResidualMap, Smoother, Solver, Targets, delete_each
from .jets import HeldOutJets, Jet
from .smoothing import Smoothing
from .spectrum import Spectrum, machine_epsilon, project_off, row_blocks

DENSE_UP_TO = 500  # rows; below, I - H as a matrix is cheaper to use than its thin factors


class KernelSmoother(Smoother):
    """A smoother of a kernel matrix K, whose model is a sum of kernels at all rows.

    `KQ0` is K Q₀, from which the coefficients of the unpenalized columns follow.
    """

    KQ0: Array
    offset: float = 0.0  # that K is less than the kernel, which a free bias makes good
    centres = False  # whether α (n, t) is orthogonal to the bias: rows may be taken off their mean

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        """The coefficients α (n, t) of the model f = Σ α k(x, ·)."""
        return fitted.residual / mu

    def bias_coef(self, Y: Array, dual: Array) -> Array:
        """Coefficients of Q₀, by its normal equations: β = Q₀ᵀ(Y - Kα)."""
        return self.Q0.T @ Y - self._KQ0_seen.T @ dual

    def bias_size(self, Y: Array, dual: Array) -> Array:
        """The size of what `bias_coef` is summed from."""
        xp = namespace(Y)
        return xp.abs(self.Q0).T @ xp.abs(Y) + xp.abs(self._KQ0_seen).T @ xp.abs(dual)

    @property
    def _KQ0_seen(self) -> Array:
        """KQ₀, less its part along Q₀ where α has none: that would be rounding only."""
        return self.KQ0 - self.Q0 @ (self.Q0.T @ self.KQ0) if self.centres else self.KQ0

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        """Of α the part inside the range of the kernel, where it can be told from the rest."""
        return dual

    def jets(self, targets: Targets, mu: float) -> HeldOutJets:
        """Leave-one-out residuals with two exact derivatives in log mu: O(n²)."""
        raise NotImplementedError

    def response(self, P: Array, own: np.ndarray, targets: Targets, mus: np.ndarray) -> Response:
        """How linear functions P (k, n) of α answer to changes at one row `own` (k,) each."""
        raise NotImplementedError

    def smoothing(self, P: Array, mu: float) -> Smoothing:
        """How linear functions P (m, n) of α answer to all targets and forces: P Bᵀ and P D.

        The function norm has B = (I - H)/μ, which is symmetric: a fit to Pᵀ. O(n²) for each row.
        """
        return Smoothing(self.dual_coef(self.fit(self.project(P.T), mu), mu).T)


@dataclass(frozen=True)
class Response:
    """Pα (m, k, t), and what it gains from a unit of its own row's target and force (k, m)."""

    values: Array
    to_targets: Array
    to_forces: Array | None = None


def dense_map(smoother: Smoother, mu: float) -> ResidualMap:
    """I - H as a matrix: n unit targets sent through the smoother."""
    unit = eye_like(smoother.n_samples, smoother.Q0)
    return ResidualMap(smoother.fit(smoother.project(unit), mu).residual)


def thin_or_dense_map(smoother: Any, mu: float) -> ResidualMap:
    """The thin factors of a low rank, or the matrix where that is cheaper."""
    n, spectrum = smoother.n_samples, smoother.spectrum
    if n <= DENSE_UP_TO or 4 * spectrum.rank >= n:
        return dense_map(smoother, mu)
    filter_factors = spectrum.eigenvalues / (spectrum.eigenvalues + mu)
    return ResidualMap(None, (spectrum.V, filter_factors, smoother.Q0))


def complement_solver(L: Array) -> Solver:
    """R → (I - LLᵀ)⁻¹R for L (k, p): as it is, or I + L(I - LᵀL)⁻¹Lᵀ where k > p."""
    k, p = L.shape
    if k <= p:
        return spd_solver(eye_like(k, L) - L @ L.T)
    solve = spd_solver(eye_like(p, L) - L.T @ L)
    return lambda R: R + L @ solve(L.T @ R)


def log_determinant(eigenvalues: np.ndarray, n_free: int, mus: np.ndarray) -> np.ndarray:
    """log |G + μI| outside what is not penalized, (m,): Σ log(λ + μ), zeros of G among them."""
    mus = np.asarray(mus, dtype=float)
    missing = n_free - len(eigenvalues)
    return np.asarray(np.sum(np.log(eigenvalues[:, None] + mus), axis=0) + missing * np.log(mus))


def sigmoid_series(g: Array) -> list[Array]:
    """μ/(λ+μ) with its derivatives in log μ."""
    return [g, g * (1.0 - g), g * (1.0 - g) * (1.0 - 2.0 * g)]


@dataclass(frozen=True)
class FunctionNorm(KernelSmoother):
    """Penalty μ‖f‖²: I - H = g(G) with g = μ/(λ + μ), a sum of non-negative terms throughout."""

    spectrum: Spectrum
    KQ0: Array
    entry: float = 0.0
    centres = True

    @cached_property
    def Q0(self) -> Array:
        return self.spectrum.Q0

    @cached_property
    def conditioning(self) -> float:
        """eps·λ_max, or eps times the largest entry of the kernel as it was computed."""
        return machine_epsilon(self.spectrum.V) * max(self.largest, self.entry)

    @cached_property
    def largest(self) -> float:
        """λ_max of G."""
        return self.spectrum.largest

    @cached_property
    def trace(self) -> float:
        """Σ|λ|: the trace of G, of its absolute value where the kernel is indefinite."""
        xp = namespace(self.spectrum.V)
        return float(xp.sum(xp.abs(self.spectrum.eigenvalues)))

    @cached_property
    def lower_bound(self) -> float:
        """-λ_min of an indefinite kernel, else 0."""
        return max(0.0, -self.spectrum.smallest)

    def _g(self, mus: Any) -> Array:
        """g on the spectrum: (r,) for one mu, (r, m) for several."""
        eigenvalues = self.spectrum.eigenvalues
        return mus / ((eigenvalues if np.ndim(mus) == 0 else eigenvalues[:, None]) + mus)

    def complement_norm(self, mu: Any) -> Any:
        """μ/(λ_min + μ)."""
        return mu / (self.spectrum.smallest + mu)

    def project(self, Y: Array) -> Targets:
        return Targets(Y, self.spectrum.V.T @ Y)

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        """One product V² g and one V (g ∘ z) for all mu."""
        mu = asarray_like(mus, targets.Y)
        g, ones = self._g(mu), namespace(mu).ones_like(mu)
        one_minus_h = self.spectrum.diagonal(g, ones)
        residual = self.spectrum.apply(g, ones, targets.Y, targets.z)
        return Path(np.asarray(mus, dtype=float), residual, one_minus_h.T)

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        """(I - H) Y = V (g ∘ z) + what lies outside V."""
        return Fitted(targets.Y, self.spectrum.apply(self._g(mu), 1.0, targets.Y, targets.z))

    def inverse(self, mus: np.ndarray) -> Array:
        """1/(λ + μ) (r, m)."""
        eigenvalues = self.spectrum.eigenvalues[:, None]
        return 1.0 / (eigenvalues + asarray_like(mus, eigenvalues))

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        return self.spectrum.apply(1.0 / (self.spectrum.eigenvalues + mu), 0.0, Y)

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        mu = asarray_like(mus, targets.Y)
        ones = namespace(mu).ones_like(mu)
        return self.spectrum.quadratic(self._g(mu), ones, targets.Y, targets.z)

    def residual_map(self, mu: float) -> ResidualMap:
        return thin_or_dense_map(self, mu)

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        return next(self.pair_systems(rows, np.asarray([mu])))

    def pair_systems(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[PairSystem]:
        """(I - H)_TeTe, or its low-rank form where more rows are deleted than there are
        directions.
        """
        spectrum = self.spectrum
        if len(rows) <= spectrum.rank + int(self.Q0.shape[1]) or spectrum.smallest < 0:
            g = self._g(asarray_like(mus, spectrum.V))
            for block in spectrum.blocks(g, [1.0] * len(mus), rows):
                yield PairSystem(spd_solver(block))
            return
        xp = namespace(spectrum.V)
        V, Q0 = take(spectrum.V, rows), take(self.Q0, rows)
        for mu in map(float, mus):
            root = xp.sqrt(spectrum.eigenvalues / (spectrum.eigenvalues + mu))
            yield PairSystem(complement_solver(xp.concat([Q0, V * root], axis=1)))

    def can_leave_out(self, n_rows: int) -> bool:
        return super().can_leave_out(n_rows) or not self.spectrum.complete

    def maps_pay(self, n_targets: int) -> bool:
        return super().maps_pay(n_targets) and 2 * self.spectrum.rank >= self.n_samples

    def smoothing(self, P: Array, mu: float) -> Smoothing:
        """P (G + μ)⁻¹; through the matrix itself where there are more rows than it has."""
        spectrum, xp = self.spectrum, namespace(P)
        if P.shape[0] < self.n_samples or not spectrum.complete:
            return super().smoothing(P, mu)
        root = spectrum.V / xp.sqrt(spectrum.eigenvalues + mu)
        return Smoothing(P @ (root @ root.T))

    def response(self, P: Array, own: np.ndarray, targets: Targets, mus: np.ndarray) -> Response:
        """P(G + μ)⁻¹Y, and P(G + μ)⁻¹e_j."""
        inverse = self.inverse(mus)
        PV = P @ self.spectrum.V
        values = PV @ (inverse.T[:, :, None] * targets.z)
        return Response(values, (PV * take(self.spectrum.V, own)) @ inverse)

    def jets(self, targets: Targets, mu: float) -> HeldOutJets:
        xp = namespace(targets.Y)
        phi = xp.stack(sigmoid_series(self._g(mu)), axis=1)
        at_zero = asarray_like([1.0, 0.0, 0.0], phi)
        residual = Jet.of(self.spectrum.apply(phi, at_zero, targets.Y, targets.z))
        one_minus_h = Jet.of(self.spectrum.diagonal(phi, at_zero).T[:, :, None])
        return HeldOutJets(delete_each(residual, one_minus_h).residual, residual, one_minus_h)

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        n_free = self.n_samples - int(self.Q0.shape[1])
        return log_determinant(to_numpy(self.spectrum.eigenvalues), n_free, mus)


@dataclass(frozen=True)
class FunctionNormAt(KernelSmoother):
    """The function norm at one mu: I - H as a matrix, from a Cholesky factorization instead of an
    eigendecomposition.

    I - H = μ (G + cQ₀Q₀ᵀ + μI)⁻¹ - μ/(c + μ) Q₀Q₀ᵀ for any c; a large one keeps the second term
    small and the first well conditioned. Several times cheaper than a Spectrum where only one mu
    is wanted, and blocks of it are there already.
    """

    one_minus_H: Array
    Q0: Array
    KQ0: Array
    mu: float
    conditioning: float
    expands = True
    centres = True

    @classmethod
    def of_kernel(
        cls, K: Array, Q0: Array, mu: float, KQ0: Array | None = None, entry: float = 0.0
    ) -> FunctionNormAt:
        """From a kernel matrix, which is overwritten; ValueError where mu ≤ -λ_min.

        Where K came centered, KQ₀ and the largest entry are those before.
        """
        KQ0 = K @ Q0 if KQ0 is None else KQ0
        shift, norm = project_off(K, Q0)
        add_to_diagonal(K, mu)
        one_minus_H = spd_inverse_overwriting(K)
        one_minus_H *= mu
        for rows in row_blocks(K.shape[0]) if Q0.shape[1] else ():
            one_minus_H[rows, :] -= (mu / (shift + mu) * Q0[rows, :]) @ Q0.T
        return cls(one_minus_H, Q0, KQ0, mu, machine_epsilon(K) * max(norm, entry))

    def complement_norm(self, mu: Any) -> float:
        """By the largest sum of a row, from above."""
        return self._norm

    @cached_property
    def _norm(self) -> float:
        xp = namespace(self.one_minus_H)
        sums = (
            xp.max(xp.sum(xp.abs(self.one_minus_H[rows, :]), axis=1))
            for rows in row_blocks(self.n_samples)
        )
        return max(map(float, sums))

    def project(self, Y: Array) -> Targets:
        return Targets(Y)

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        residual = (self.one_minus_H @ targets.Y)[None, ...]
        diagonal = namespace(residual).linalg.diagonal(self.one_minus_H)
        return Path(np.array([self.mu]), residual, diagonal[None, :])

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        return Fitted(targets.Y, self.one_minus_H @ targets.Y)

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        return PairSystem(spd_solver(square_block(self.one_minus_H, rows)))

    def smoothing(self, P: Array, mu: float) -> Smoothing:
        """P (I - H)/μ: one product."""
        to_targets = P @ self.one_minus_H
        to_targets /= mu
        return Smoothing(to_targets)

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        return (targets.Y.T @ (self.one_minus_H @ targets.Y))[None, ...]

    def residual_map(self, mu: float) -> ResidualMap:
        return ResidualMap(self.one_minus_H)
