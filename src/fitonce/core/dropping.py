"""Landmarks that leave with their rows.

What leaves with a set of them, and what the rest replaces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Array, eigh_overwriting, eye_like, namespace, take, to_numpy

REPLACEABLE = 1e-8  # a landmark with this share of itself in the others is replaced by them


@dataclass(frozen=True)
class DroppedLandmarks:
    """Row numbers of the landmarks (q,), -1 where they are none, and α = N w of features (q, p).

    Where K_mm is singular, α is not unique, and leaving out a landmark that the others can replace
    (a repeated row, a very smooth kernel) takes nothing from the model. With K_mm = U diag(λ) Uᵀ,
    the directions that leave with a set T of landmarks are the combinations E of them with
    E'U_TU_T'E = 1; `directions` gives these, all of T where U is None (dual norm) or K_mm regular.
    """

    rows: np.ndarray
    N: Array
    U: Array | None = None

    def directions(self, landmarks: np.ndarray) -> Array:
        """E (k, q), the orthonormal combinations of k landmarks that leave with them."""
        if self.U is None:
            return eye_like(len(landmarks), self.N)
        own = take(self.U, landmarks)
        share, E = eigh_overwriting(own @ own.T)
        return take(E.T, np.flatnonzero(to_numpy(share).astype(float) > 1.0 - REPLACEABLE)).T

    def within(self, rows: np.ndarray) -> np.ndarray:
        """The landmarks among some rows."""
        return np.flatnonzero((self.rows >= 0) & np.isin(self.rows, rows))

    def irreplaceable(self) -> np.ndarray:
        """The landmarks that are rows and, left out alone, take something from the model."""
        own = self.rows >= 0
        if self.U is not None:
            shares = to_numpy(namespace(self.N).sum(self.U**2, axis=1))
            own = own & (shares.astype(float) > 1.0 - REPLACEABLE)
        return np.flatnonzero(own)
