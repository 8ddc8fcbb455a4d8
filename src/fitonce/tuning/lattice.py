"""Candidates on fixed lattices of powers of two, in windows that depend on the scale of the
training rows.

So training sets that differ by a few rows try the same values: the folds of a nested
cross-validation make the same choices as literal refits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.holdout import Smoother

ALPHA_BELOW, ALPHA_ABOVE = 30, 12  # powers of two around trace(G)/Σw
FARTHEST = 16  # powers of two from the center up to which gamma goes on beyond an edge
PRECISION = 4e-9  # the smallest alpha tried, as a share of λ_max: less is below double precision
COARSE = 4  # powers of two from one alpha to the next of a coarse search
DIGITS = 2.3e-9  # and of ‖G‖, from above: below 1e7 eps of it, a fit warns that digits are few


def alpha_lattice(smoother: Smoother, total_weight: float, coarse: bool = False) -> np.ndarray:
    """Powers of two from 2^-30 to 2^12 times the mean eigenvalue trace(G)/Σw.

    The window ends earlier at the limit of float64 precision, and reaches at least 64 λ_max, beyond
    which every model is constant. For an indefinite kernel, it starts above twice the smallest
    alpha that is allowed. A coarse lattice has the powers of 16 among them.
    """
    scale, largest = smoother.trace / total_weight, smoother.largest
    if not (scale > 0 and np.isfinite(scale) and largest > 0):
        return 2.0 ** np.arange(-ALPHA_BELOW, ALPHA_ABOVE + 1)
    if not np.isfinite(64.0 * largest):
        raise ValueError(
            f"the kernel matrix has an eigenvalue of {largest:.1e}, which is too large to "
            "choose an alpha in float64 (up to 1.8e308). Scale the features (StandardScaler), "
            "lower degree or gamma, or divide a precomputed kernel by a constant."
        )
    centre = round(np.log2(scale))
    norm = np.sqrt(largest) * np.sqrt(smoother.trace)  # Frobenius's is not larger
    least = max(PRECISION * largest, DIGITS * norm)
    lowest = max(centre - ALPHA_BELOW, int(np.ceil(np.log2(least))))
    if smoother.lower_bound > 0:
        lowest = max(lowest, int(np.ceil(np.log2(2.0 * smoother.lower_bound))))
    highest = max(centre + ALPHA_ABOVE, int(np.ceil(np.log2(64.0 * largest))), lowest)
    exponents = np.arange(lowest, highest + 1)
    coarsely = exponents[exponents % COARSE == 0] if coarse else exponents
    return 2.0 ** (coarsely if len(coarsely) else exponents)


@dataclass(frozen=True)
class GammaLattice:
    """Powers of two around a center exponent.

    Every second one from `below` to `above` first, on beyond an edge, then the neighbors of the
    best. Smoother kernels have no second valley of the loss, so that the window need not reach far
    below: the edge leads there. Narrower ones may have one, where targets vary fast. A `coarse` one
    has every fourth one as far below as above, and nothing else.
    """

    centre: int
    below: int = 2
    above: int = 6
    coarse: bool = False

    @classmethod
    def around(
        cls, gamma: float, below: int = 2, above: int = 6, coarse: bool = False
    ) -> GammaLattice:
        """The lattice whose center is the power of two nearest to a gamma."""
        if not (gamma > 0 and np.isfinite(gamma)):
            raise ValueError(
                f"gamma cannot be tuned: the size of the features would need a gamma of {gamma:g}. "
                "Change their unit, so that they are neither above 1e100 nor below 1e-100, or give "
                "gamma as a number."
            )
        return cls(round(np.log2(gamma)), below, above, coarse)

    def first(self) -> list[float]:
        """What is tried at once."""
        fine, coarse = (
            range(-self.below, self.above + 1, 2),
            range(2 - self.above, self.above + 1, 4),
        )
        return [2.0 ** (self.centre + step) for step in (coarse if self.coarse else fine)]

    def beyond(self, best: float, tried: list[float]) -> float | None:
        """The next value outwards where the best one tried is at an edge, or None."""
        step = round(np.log2(best)) - self.centre
        if self.coarse:
            return None
        if best == min(tried) and step > -FARTHEST:
            return best / 4.0
        if best == max(tried) and step < FARTHEST:
            return best * 4.0
        return None

    def allows(self, gamma: float) -> bool:
        """Whether a value is within what may be tried."""
        return bool(abs(np.log2(gamma) - self.centre) <= FARTHEST + 1)

    def neighbours(self, best: float) -> list[float]:
        return [] if self.coarse else [best / 2.0, best * 2.0]
