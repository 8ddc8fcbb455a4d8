r"""The function norm at one mu now, and at any other when somebody asks.

A model with a fixed mu needs (G + μI)⁻¹ and nothing else: its coefficients, held-out values, folds
and intervals. A Cholesky factorization gives that for a fifth of the time of an eigendecomposition
(`FunctionNormAt`). What needs other mu, derivatives in mu or eigenvalues is answered by the
smoother of all mu, which is made at the first such question and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Array
from .holdout import Fitted, PairSystem, Path, ResidualMap, Targets
from .jets import HeldOutJets
from .smoothers import FunctionNormAt, KernelSmoother, Response
from .smoothing import Smoothing


@dataclass(frozen=True)
class LazyNorm(KernelSmoother):
    """`at` answers at its own mu, and what `make` returns at all others."""

    at: FunctionNormAt
    make: Callable[[], KernelSmoother]
    centres = True

    @cached_property
    def whole(self) -> KernelSmoother:
        """The smoother of all mu."""
        return self.make()

    @cached_property
    def Q0(self) -> Array:
        return self.at.Q0

    @cached_property
    def KQ0(self) -> Array:
        return self.at.KQ0

    @cached_property
    def conditioning(self) -> float:
        return self.at.conditioning

    @cached_property
    def largest(self) -> float:
        return self.whole.largest

    @cached_property
    def trace(self) -> float:
        return self.whole.trace

    @cached_property
    def lower_bound(self) -> float:
        return self.whole.lower_bound

    def _is_own(self, mus: Any) -> bool:
        return np.size(mus) == 1 and float(np.ravel(mus)[0]) == self.at.mu

    def _of(self, mus: Any) -> KernelSmoother:
        return self.at if self._is_own(mus) else self.whole

    def _seen(self, targets: Targets, mus: Any) -> Targets:
        """The targets as the smoother of these mu wants them."""
        return targets if self._is_own(mus) else self.whole.project(targets.Y)

    def admits(self, mus: np.ndarray) -> bool:
        """At its own mu there is a Cholesky factor."""
        return self._is_own(mus) or self.whole.admits(mus)

    def complement_norm(self, mu: Any) -> Any:
        return self._of(mu).complement_norm(mu)

    def project(self, Y: Array) -> Targets:
        return self.at.project(Y)

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        return self._of(mus).path(self._seen(targets, mus), mus)

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        return self._of(mu).fit(self._seen(targets, mu), mu, force)

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        return self._of(mu).inside(Y, dual, mu)

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        return self._of(mus).residual_scatter(self._seen(targets, mus), mus)

    def residual_map(self, mu: float) -> ResidualMap:
        return self._of(mu).residual_map(mu)

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        return self._of(mu).pairs(rows, mu)

    def pair_systems(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[PairSystem]:
        return self._of(mus).pair_systems(rows, mus)

    def smoothing(self, P: Array, mu: float) -> Smoothing:
        return self._of(mu).smoothing(P, mu)

    def response(self, P: Array, own: np.ndarray, targets: Targets, mus: np.ndarray) -> Response:
        return self.whole.response(P, own, self.whole.project(targets.Y), mus)

    def jets(self, targets: Targets, mu: float) -> HeldOutJets:
        return self.whole.jets(self.whole.project(targets.Y), mu)

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        return self.whole.log_determinant(mus)
