"""A model as coefficients, and its outputs for rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..core.arrays import Array, is_numpy, namespace
from ..core.confounds import ConfoundBasis
from ..core.refused import RefusedError
from ..core.spectrum import row_blocks
from ..core.ties import settled_decisions, settled_sum
from ..kernels import OVERFLOW, Kernel, largest_entry

PREDICTION_ELEMENTS = 1 << 23  # kernel entries computed at a time in predict
TILE = 16  # rows that products of matrices work on together, or a multiple of them


def in_whole_tiles(function: Callable[[Array], Array], X: Array) -> Array:
    """A function of rows, with the same digits for equal rows.

    Products of matrices treat the last rows in another order than those that fill a tile of the
    processor. Copies of the first row fill the last tile, and are taken off again.
    """
    n = X.shape[0]
    missing = -n % TILE
    if not is_numpy(X) or missing == 0 or n == 0:
        return function(X)
    return function(np.concatenate([X, np.repeat(X[:1], missing, axis=0)]))[:n]


@dataclass(frozen=True)
class Solution:
    """A model: f(x) = k(x, X) dual_coef + intercept, and x·coef + intercept as well where the
    kernel is linear; plus c(x)·confound_coef where it has confounds.
    """

    dual_coef: Array
    intercept: Array
    coef: Array | None
    centred: bool = False  # Σ dual_coef = 0: the kernel is wanted up to a constant of each row
    confound_coef: Array | None = None

    def plus(self, basis: ConfoundBasis, beta: Array) -> Solution:
        """The model plus q(x)β, q(x) the basis of a bias and confounds."""
        coef = basis.coef(beta)
        intercept = self.intercept + beta[0, :] / basis.norm - basis.centre @ coef
        coef = coef if self.confound_coef is None else self.confound_coef + coef
        return replace(self, intercept=intercept, confound_coef=coef)

    def readout(self, weights: Array, offsets: Array) -> Solution:
        """The model whose outputs are these outputs times `weights` plus `offsets`."""
        xp = namespace(weights)
        coef = None if self.coef is None else self.coef @ weights
        size = xp.abs(self.intercept) @ xp.abs(weights) + xp.abs(offsets)
        intercept = settled_sum(self.intercept @ weights + offsets, size)
        confound_coef = None if self.confound_coef is None else self.confound_coef @ weights
        return Solution(self.dual_coef @ weights, intercept, coef, self.centred, confound_coef)

    def _kernel_of(self, kernel: Kernel, X_fit: Array) -> Callable[[Array], Array]:
        """What is multiplied by the coefficients, as a function of rows."""
        if self.coef is not None or (kernel.precomputed and not self.centred):
            return lambda rows: rows
        if kernel.precomputed:
            return lambda rows: rows - rows[:, :1]
        return kernel.with_points(X_fit, constant=self.centred)

    def decisions(
        self, kernel: Kernel, X: Array, X_fit: Array, confounds: Array | None = None
    ) -> Array:
        """f(X) with the ties of exact arithmetic, for scores that rank or threshold."""
        return settled_decisions(*self.sized_values(kernel, X, X_fit, confounds))

    def sized_values(
        self, kernel: Kernel, X: Array, X_fit: Array, confounds: Array | None = None
    ) -> tuple[Array, Array]:
        """f(X), and a bound (o,) on the sum of the absolute values of its terms."""
        largest: list[float] = []
        values = self.values(kernel, X, X_fit, largest, confounds)
        weights = self.dual_coef if self.coef is None else self.coef
        xp = namespace(values)
        size = max(largest) * xp.sum(xp.abs(weights), axis=0) + xp.abs(self.intercept)
        if confounds is not None and self.confound_coef is not None:
            size = size + xp.max(xp.abs(confounds) @ xp.abs(self.confound_coef), axis=0)
        return values, size

    def values(
        self,
        kernel: Kernel,
        X: Array,
        X_fit: Array,
        largest: list[float] | None = None,
        confounds: Array | None = None,
    ) -> Array:
        """f(X), in blocks of rows so that the kernel never exceeds a few hundred MiB; `largest`
        gets the largest of what is summed in each, `confounds` are those of the rows.
        """

        kernel_of = self._kernel_of(kernel, X_fit)

        def summed(rows: Array) -> Array:
            """K α of some rows, or X w."""
            K = kernel_of(rows)
            if largest is not None:
                largest.append(largest_entry(K))
            coef = self.dual_coef if self.coef is None else self.coef
            if not is_numpy(coef):  # NumPy multiplies float64 by float32 as it is
                coef = namespace(coef).astype(coef, K.dtype, copy=False)
            return K @ coef

        step = max(1, PREDICTION_ELEMENTS // max(1, self.dual_coef.shape[0]))
        parts = row_blocks(X.shape[0], step)
        # a function of the user's own sees the rows as they are
        tiled = summed if kernel.foreign else partial(in_whole_tiles, summed)
        blocks = [tiled(X[rows, :]) for rows in parts]
        xp = namespace(blocks[0])
        values = (blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=0)) + self.intercept
        if self.confound_coef is not None:
            assert confounds is not None, "a model with confounds needs those of the rows"
            values = values + in_whole_tiles(lambda C: C @ self.confound_coef, confounds)
        if not np.isfinite(float(xp.sum(values))) and not bool(xp.all(xp.isfinite(values))):
            raise RefusedError(OVERFLOW)
        return values
