r"""The function norm's one matrix, by any factorization.

With G the kernel matrix without the columns Q₀ that are not penalized, and penalty μ‖f‖²,

    M(μ) = I - H = μ (G + μI)⁻¹ off Q₀,       residuals MY,  1 - h = diag M,  α = MY/μ

so that products with M, its diagonal and solutions with its blocks are all that a
smoother asks for. `Spectrum` has them from eigenvectors, for any mu; `Inverse` from Cholesky's
factor, at one mu; `Banded` from a block band form, for many mu on a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array, eye_like, symmetric
from .holdout import ResidualMap, Solver


class Resolvent(ABC):
    """M(μ) for some values of mu (m,).

    `Q0` (n, u) are the columns that are not penalized, orthonormal. `norm` is Frobenius's of G,
    which every factorization knows, perhaps from above.
    """

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def Q0(self) -> Array: ...
        @property
        def norm(self) -> float: ...

    @property
    def rank(self) -> int:
        """The number of directions in which G may differ from zero."""
        return int(self.Q0.shape[0] - self.Q0.shape[1])

    @property
    def whole(self) -> Resolvent:
        """The factorization that knows G at every mu."""
        return self

    @property
    def largest(self) -> float:
        """The largest |λ| of G."""
        return self.whole.largest

    @property
    def trace(self) -> float:
        """Σ|λ|: the trace of G, of its absolute value where the kernel is indefinite."""
        return self.whole.trace

    @property
    def lower_bound(self) -> float:
        """-λ_min of an indefinite kernel, else 0: mu must be larger."""
        return self.whole.lower_bound

    def at(self, mus: np.ndarray) -> Resolvent:
        """The factorization that answers at these mu."""
        return self

    def admits(self, mus: np.ndarray) -> bool:
        """Whether M exists at every mu."""
        return not np.any(mus <= self.lower_bound)

    def project(self, Y: Array) -> Array:
        """What is known of targets Y (n, t) for every mu, if anything."""
        return None

    def changed(self, Y: Array, z: Array, rows: np.ndarray, change: Array) -> Array:
        """The same of Y, of which z was known before some of its rows were changed."""
        return self.project(Y)

    @abstractmethod
    def residual(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        """MY (m, n, t), for Y that come projected."""

    def scatter(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        """YᵀMY (m, t, t), symmetric."""
        return symmetric(Y.T @ self.residual(Y, z, mus))

    @abstractmethod
    def diagonal(self, mus: np.ndarray) -> Array:
        """diag M (m, n)."""

    def path(self, Y: Array, z: Array, mus: np.ndarray) -> tuple[Array, Array]:
        """MY and diag M."""
        return self.residual(Y, z, mus), self.diagonal(mus)

    @abstractmethod
    def sizes(self, mus: np.ndarray) -> np.ndarray:
        """‖M‖ (m,), Frobenius's or a bound of it."""

    @abstractmethod
    def solvers(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Solver]:
        """R → M_TT⁻¹R for a set of rows, one mu after the other."""

    def residual_map(self, mu: float) -> ResidualMap:
        """M as a map of rows of targets."""
        unit = eye_like(int(self.Q0.shape[0]), self.Q0)
        return ResidualMap(self.residual(unit, self.project(unit), np.array([mu]))[0, ...])

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        """Of α the part in the range of G, where it can be told from the rest."""
        return dual

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        """log |G + μI| (m,) off Q₀."""
        return self.whole.log_determinant(mus)
