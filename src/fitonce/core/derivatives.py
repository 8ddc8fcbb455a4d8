r"""Exact derivatives of held-out residuals: with respect to log mu (first and second), and to the
kernel (first).

**log mu.** Every ingredient of a held-out residual is a sum of functions of the eigenvalues, and
those have simple derivatives in t = log μ. They are carried through the formulas as truncated
Taylor series, `Jet`s, so that the expressions below are the ones of `smoother`, differentiated
without a formula of their own:

    g = μ/(λ+μ):   g' = g(1-g)    g'' = g(1-g)(1-2g)
    σ/(σ²+μ) = F,  T = μ/(σ²+μ):  F' = -FT,  F'' = FT(2T-1), and the same for 1/(σ²+μ)

**Kernel.** For the function norm with M = I - H, e_i = (MY)_i / M_ii and dM = -M dK M/μ. A loss
with ∂E/∂e = v has

    dE = Σ_ij Γ_ij dK_ij,   Γ = -(1/μ) [ (Mu)(MY)ᵀ - M diag(z) M ],   u = v/o,  z = Σ_t v (MY)/o²,  o = diag M

one product of n×n matrices, from which the derivative with respect to every parameter of the kernel
follows at O(n²) each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .arrays import Array, asarray_like, namespace
from .band import BandNorm
from .smoother import DualNorm, FunctionNorm, FunctionNormAt, Smoother


@dataclass(frozen=True)
class Jet:
    """A value with its first and second derivative in t.

    Arithmetic by the product and quotient rules.
    """

    value: Array
    first: Array
    second: Array

    def __add__(self, other: Jet | Array) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.first, -self.second)

    def __sub__(self, other: Jet | Array) -> Jet:
        return self + (-other)

    def __mul__(self, other: Jet | Array) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.first * other, self.second * other)
        return Jet(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2.0 * self.first * other.first + self.value * other.second,
        )

    def __truediv__(self, other: Jet) -> Jet:
        value = self.value / other.value
        first = (self.first - value * other.first) / other.value
        second = (self.second - 2.0 * first * other.first - value * other.second) / other.value
        return Jet(value, first, second)

    def map(self, linear: Callable[[Array], Array]) -> Jet:
        """A linear operation on each part."""
        return Jet(linear(self.value), linear(self.first), linear(self.second))

    def through(self, value: Array, first: Array, second: Array) -> Jet:
        """f of this jet, given f, f' and f'' at its value."""
        return Jet(value, first * self.first, second * self.first**2 + first * self.second)

    def sum(self) -> Jet:
        return self.map(lambda part: float(namespace(part).sum(part)))


@dataclass(frozen=True)
class HeldOutJets:
    """Held-out residuals and in-sample residuals (n, t) with their derivatives in log mu."""

    held_out: Jet
    residual: Jet


def held_out_jets(smoother: Smoother, Y: Array, mu: float) -> HeldOutJets:
    """Leave-one-out residuals with two exact derivatives in log mu.

    O(n²), three times the price of the values.
    """
    if isinstance(smoother, FunctionNorm):
        return _function_norm_jets(smoother, Y, mu)
    if isinstance(smoother, BandNorm):
        residual, one_minus_h = smoother.log_mu_derivatives(Y, mu)
        jet = _jet(residual)
        return HeldOutJets(jet / _jet(one_minus_h[:, :, None]), jet)
    assert isinstance(smoother, DualNorm)
    return _dual_norm_jets(smoother, Y, mu)


def _function_norm_jets(smoother: FunctionNorm, Y: Array, mu: float) -> HeldOutJets:
    xp = namespace(Y)
    g = mu / (smoother.spectrum.eigenvalues + mu)
    phi = xp.stack([g, g * (1.0 - g), g * (1.0 - g) * (1.0 - 2.0 * g)], axis=1)
    at_zero = asarray_like([1.0, 0.0, 0.0], Y)
    residual = _jet(smoother.spectrum.apply(phi, at_zero, Y))
    one_minus_h = _jet(smoother.spectrum.diagonal(phi, at_zero).T[:, :, None])
    return HeldOutJets(residual / one_minus_h, residual)


def _jet(parts: Array) -> Jet:
    return Jet(parts[0, ...], parts[1, ...], parts[2, ...])


def _dual_norm_jets(smoother: DualNorm, Y: Array, mu: float) -> HeldOutJets:
    xp = namespace(Y)
    spectrum, Q0 = smoother.spectrum, smoother.Q0
    if Q0.shape[1] > 1:
        raise ValueError(
            "derivatives of the dual norm are written for a single unpenalised column."
        )
    sigma = spectrum.eigenvalues
    q = sigma**2 + mu
    T, F, R = mu / q, sigma / q, 1.0 / q
    phi_T = xp.stack([T, T * (1.0 - T), T * (1.0 - T) * (1.0 - 2.0 * T)], axis=1)
    phi_F = xp.stack([F, -F * T, F * T * (2.0 * T - 1.0)], axis=1)
    phi_R = xp.stack([R, -R * T, R * T * (2.0 * T - 1.0)], axis=1)
    zero_T, zero_F = asarray_like([1.0, 0.0, 0.0], Y), asarray_like([0.0, 0.0, 0.0], Y)
    zero_R = asarray_like([1.0 / mu, -1.0 / mu, 1.0 / mu], Y)

    def diagonal(phi: Array, at_zero: Array) -> Jet:
        return _jet(spectrum.diagonal(phi, at_zero).T[:, :, None])

    residual, dual = _jet(spectrum.apply(phi_T, zero_T, Y)), _jet(spectrum.apply(phi_F, zero_F, Y))
    one_minus_h, b, d = diagonal(phi_T, zero_T), diagonal(phi_F, zero_F), diagonal(phi_R, zero_R)
    if Q0.shape[1]:
        E, W = _jet(spectrum.apply(phi_T, zero_T, Q0)), _jet(spectrum.apply(phi_F, zero_F, Q0))
        S = E.map(lambda part: Q0.T @ part)
        E_S, W_S, EY = E / S, W / S, E.map(lambda part: part.T @ Y)
        residual, dual = residual - E_S * EY, dual - W_S * EY
        one_minus_h, b, d = one_minus_h - E_S * E, b - E_S * W, d + W_S * W
    return HeldOutJets((d * residual + b * dual) / (one_minus_h * d + b * b), residual)


def kernel_gradient(smoother: FunctionNormAt, Y: Array, dE_de: Array) -> Array:
    """Γ (n, n) of the module's docstring, for the scaled kernel matrix that the smoother was made
    of: O(n³), one product.
    """
    M = smoother.one_minus_H
    xp = namespace(M)
    o = xp.linalg.diagonal(M)[:, None]
    residual = M @ Y
    z = xp.sum(dE_de * residual / o**2, axis=1)
    outer = (M @ (dE_de / o)) @ residual.T
    return (M @ (z[:, None] * M) - 0.5 * (outer + outer.T)) / smoother.mu
