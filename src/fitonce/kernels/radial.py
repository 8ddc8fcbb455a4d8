r"""Kernels as functions φ(z) of one number, z = γ times the distance of two rows, with derivatives.

    name          distance        φ(z)
    rbf           ‖x - y‖₂²       exp(-z)
    laplacian     ‖x - y‖₁        exp(-z)
    exponential   ‖x - y‖₂        exp(-z)                          Matérn 1/2
    matern32      ‖x - y‖₂        (1 + u) exp(-u),                 u = √3 z
    matern52      ‖x - y‖₂        (1 + u + u²/3) exp(-u),          u = √5 z

z φ'(z) is the derivative in log γ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial, sqrt

from ..core.arrays import Array, namespace

SQUARED, EUCLIDEAN, MANHATTAN = "squared", "euclidean", "manhattan"
TERMS = 26  # of the series below, which reaches eps up to SERIES_UP_TO
SERIES_UP_TO = 1.6


@dataclass(frozen=True)
class Radial:
    """φ, φ - 1 without loss of digits if φ is close to one, and φ'."""

    distance: str
    value: Callable[[Array], Array]
    less_one: Callable[[Array], Array]
    slope: Callable[[Array], Array]


def _exp(z: Array) -> Array:
    return namespace(z).exp(-z)


def _expm1(z: Array) -> Array:
    return namespace(z).expm1(-z)


def _minus_exp(z: Array) -> Array:
    return -namespace(z).exp(-z)


def _matern32(z: Array) -> Array:
    u = sqrt(3.0) * z
    return (1.0 + u) * namespace(z).exp(-u)


def _matern32_slope(z: Array) -> Array:
    return -3.0 * z * namespace(z).exp(-sqrt(3.0) * z)


def _matern52(z: Array) -> Array:
    u = sqrt(5.0) * z
    return (1.0 + u + u**2 / 3.0) * namespace(z).exp(-u)


def _matern52_slope(z: Array) -> Array:
    u = sqrt(5.0) * z
    return -(5.0 / 3.0) * z * (1.0 + u) * namespace(z).exp(-u)


def _series(
    value: Callable[[Array], Array], scale: float, coefficient: Callable[[int], float]
) -> Callable[[Array], Array]:
    """φ - 1 as Σ (-u)ᵏ coefficient(k)/k! from k = 2, u = scale · z; φ(z) - 1 where u is large.

    The first powers cancel in φ, so φ - 1 would lose digits.
    """
    coefficients = [(-1) ** k * coefficient(k) / factorial(k) for k in range(2, TERMS)]

    def less_one(z: Array) -> Array:
        u = scale * z
        total = 0.0 * u
        for c in reversed(coefficients):
            total = total * u + c
        return namespace(z).where(u < SERIES_UP_TO, total * u**2, value(z) - 1.0)

    return less_one


RADIAL: dict[str, Radial] = {
    "rbf": Radial(SQUARED, _exp, _expm1, _minus_exp),
    "laplacian": Radial(MANHATTAN, _exp, _expm1, _minus_exp),
    "exponential": Radial(EUCLIDEAN, _exp, _expm1, _minus_exp),
    "matern32": Radial(
        EUCLIDEAN, _matern32, _series(_matern32, sqrt(3.0), lambda k: 1.0 - k), _matern32_slope
    ),
    "matern52": Radial(
        EUCLIDEAN,
        _matern52,
        _series(_matern52, sqrt(5.0), lambda k: 1.0 - k + k * (k - 1) / 3.0),
        _matern52_slope,
    ),
}
