"""Values with two exact derivatives in t = log μ, carried through formulas as truncated series.

Every ingredient of a held-out residual is a sum of functions of the eigenvalues, and those have
simple derivatives. As jets they go through the very formulas of `holdout` and `readout`, which so
are differentiated without a formula of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .arrays import Array, namespace


@dataclass(frozen=True)
class Jet:
    """A value with its first and second derivative; arithmetic by the product and quotient rules.

    Arrays of any kind leave multiplication from the left to the jet.
    """

    value: Any
    first: Any
    second: Any

    __array_ufunc__ = None  # NumPy's arrays, too

    @classmethod
    def of(cls, parts: Array) -> Jet:
        """From an array (3, …) of values and derivatives."""
        return cls(parts[0, ...], parts[1, ...], parts[2, ...])

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.first, -self.second)

    def __sub__(self, other: Any) -> Jet:
        difference: Jet = self + (-other)
        return difference

    def __rsub__(self, other: Any) -> Jet:
        difference: Jet = -self + other
        return difference

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.first * other, self.second * other)
        return Jet(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2.0 * self.first * other.first + self.value * other.second,
        )

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Jet) -> Jet:
        value = self.value / other.value
        first = (self.first - value * other.first) / other.value
        second = (self.second - 2.0 * first * other.first - value * other.second) / other.value
        return Jet(value, first, second)

    def __rtruediv__(self, other: Any) -> Jet:
        return Jet(other, 0.0, 0.0) / self

    def map(self, linear: Callable[[Array], Array]) -> Jet:
        """A linear operation on each part."""
        return Jet(linear(self.value), linear(self.first), linear(self.second))

    def through(self, value: Array, first: Array, second: Array) -> Jet:
        """f of this jet, given f, f' and f'' at its value."""
        return Jet(value, first * self.first, second * self.first**2 + first * self.second)

    def log(self) -> Jet:
        number = isinstance(self.value, float)
        value = math.log(self.value) if number else namespace(self.value).log(self.value)
        return self.through(value, 1.0 / self.value, -1.0 / self.value**2)

    def sum(self) -> Jet:
        return self.map(lambda part: float(namespace(part).sum(part)))


@dataclass(frozen=True)
class HeldOutJets:
    """Held-out residuals, in-sample residuals (n, t) and 1 - h (n, 1) with their derivatives in log
    mu.
    """

    held_out: Jet
    residual: Jet
    one_minus_h: Jet
