r"""Losses of held-out values, of every target by itself.

What a loss needs of one target are sums over the tested rows, which add up over splits and never
hold more than a block of values. With e = y - ŷ and targets less a constant c,

    squared error   Σw e² / Σw
    1 - R²          Σw e² / Σw (y - ȳ)²
    1 - r           1 - Σw (y - ȳ)(ŷ - ŷ̄) / √(Σw (y - ȳ)² Σw (ŷ - ŷ̄)²)

the last two from Σw y, Σw y² and so on; c, near the mean, keeps these from canceling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array, namespace

BY_TARGET = ("squared_error", "r2", "correlation")


@dataclass(frozen=True)
class Sums:
    """Sums over tested rows, of m candidates and T targets.

    `weight` Σw; of the targets Σwy and Σwy² (T,); of the candidates Σwe² (m, T) and, for a
    correlation, Σwŷ, Σwŷ² and Σwyŷ.
    """

    weight: float
    y: Array
    yy: Array
    ee: Array
    p: Array | None = None
    pp: Array | None = None
    py: Array | None = None

    def __add__(self, other: Sums) -> Sums:
        mine, theirs = vars(self).values(), vars(other).values()
        total: Any = [None if a is None else a + b for a, b in zip(mine, theirs, strict=True)]
        return Sums(*total)

    def loss(self, name: str) -> Array:
        """(m, T), lower is better."""
        xp = namespace(self.ee)
        if name == "squared_error":
            return self.ee / self.weight
        total = self.yy - self.y**2 / self.weight
        if name == "r2":
            return self.ee / xp.where(total > 0, total, xp.ones_like(total))
        assert self.p is not None and self.pp is not None and self.py is not None
        spread = total * (self.pp - self.p**2 / self.weight)
        together = self.py - self.p * self.y / self.weight
        known = spread > 0  # a constant goes along with nothing
        root = xp.sqrt(xp.where(known, spread, xp.ones_like(spread)))
        return 1.0 - xp.where(known, together / root, xp.zeros_like(root))


def sums_of(predicted: Array, y: Array, weights: Array | None, correlation: bool) -> Sums:
    """The sums of predictions (m, k, T) for targets y (k, T), both less c; weights (k,) or None.

    Values of any precision, sums in float64: one candidate at a time, so that nothing but a (k, T)
    is added to what is there.
    """
    xp, m = namespace(y), int(predicted.shape[0])
    root = None if weights is None else xp.sqrt(weights)[:, None]
    scaled = y if root is None else root * y
    ones = xp.ones_like(y[:, :1]) if root is None else root
    weight = float(y.shape[0]) if weights is None else float(xp.sum(weights))
    parts: list[list[Array]] = [[], [], [], []]
    for number in range(m):
        value = predicted[number, ...] if root is None else root * predicted[number, ...]
        parts[0].append(_product(scaled - value, None))
        if correlation:
            parts[1].append(_product(value, ones))
            parts[2].append(_product(value, None))
            parts[3].append(_product(value, scaled))
    stacked = [xp.stack(part) if part else None for part in parts]
    return Sums(weight, _product(scaled, ones), _product(scaled, None), *stacked)


def _product(A: Array, B: Any) -> Array:
    """Σ_k A B (T,) in float64; A² where B is None."""
    xp = namespace(A)
    if isinstance(A, np.ndarray) and A.dtype == np.float64 and (B is None or B.shape == A.shape):
        return np.einsum("kt,kt->t", A, A if B is None else B)
    return xp.sum(A * (A if B is None else B), axis=0, dtype=xp.float64)
