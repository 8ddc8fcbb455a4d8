r"""Smoothers of a kernel matrix; and the function norm, penalty μ‖f‖², by any factorization.

Kernel ridge with a free bias, LS-SVM, and the kernel Fisher discriminant with S_w + μI:

    I - H = M(μ)           α = (I - H) Y / μ           (see `resolvent`)

Weighted problems come in scaled: K → diag(s) K diag(s), Y → sY, with s the square roots of the
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Array, namespace, replace_rows, take
from .holdout import Deletion, Fitted, Path, Removal, ResidualMap, Smoother, Smoothing, Targets
from .resolvent import Resolvent
from .spectrum import Spectrum, machine_epsilon
from .thin import Thin


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

    def free_coef(self, Y: Array, dual: Array) -> tuple[Array, Array]:
        """Coefficients of Q₀, by its normal equations: β = Q₀ᵀ(Y - Kα); and the size of what they
        are summed from. Of KQ₀ without its part along Q₀ where α has none: that is rounding only.
        """
        xp, Q0, KQ0 = namespace(Y), self.Q0, self.KQ0
        KQ0 = KQ0 - Q0 @ (Q0.T @ KQ0) if self.centres else KQ0
        return Q0.T @ Y - KQ0.T @ dual, xp.abs(Q0).T @ xp.abs(Y) + xp.abs(KQ0).T @ xp.abs(dual)

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        """Of α the part inside the range of the kernel, where it can be told from the rest."""
        return dual

    def smoothing(self, P: Array, mu: float) -> Smoothing:
        """How linear functions P (m, n) of α answer to all targets and forces: P Bᵀ and P D.

        The function norm has B = (I - H)/μ, which is symmetric: a fit to Pᵀ. O(n²) for each row.
        """
        return Smoothing(self.dual_coef(self.fit(self.project(P.T), mu), mu).T)


@dataclass(frozen=True)
class FunctionNorm(KernelSmoother):
    """Penalty μ‖f‖²: I - H = M(μ) of any factorization.

    `entry` is the largest of the kernel as it was computed: rounding is eps times that at least.
    """

    resolvent: Resolvent
    KQ0: Array = None
    entry: float = 0.0
    centres = True

    @cached_property
    def Q0(self) -> Array:
        return self.resolvent.Q0

    @cached_property
    def conditioning(self) -> float:
        """eps·‖G‖, or eps times the largest entry."""
        return machine_epsilon(self.Q0) * max(self.resolvent.norm, self.entry)

    @property
    def largest(self) -> float:
        return self.resolvent.largest

    @property
    def trace(self) -> float:
        return self.resolvent.trace

    @property
    def lower_bound(self) -> float:
        return self.resolvent.lower_bound

    def _at(self, mus: Any) -> tuple[Resolvent, np.ndarray]:
        """What answers at one mu or several, and these as an array."""
        mus = np.atleast_1d(np.asarray(mus, dtype=float))
        return self.resolvent.at(mus), mus

    def _seen(self, resolvent: Resolvent, targets: Targets) -> tuple[Array, Array]:
        """Targets and what this factorization knows of them."""
        known = resolvent is self.resolvent
        return targets.Y, targets.z if known else resolvent.project(targets.Y)

    def admits(self, mus: np.ndarray) -> bool:
        resolvent, mus = self._at(mus)
        return resolvent.admits(mus)

    def complement_norm(self, mu: Any) -> Any:
        """‖M‖."""
        resolvent, mus = self._at(mu)
        sizes = resolvent.sizes(mus)
        return sizes if np.ndim(mu) else float(sizes[0])

    def project(self, Y: Array) -> Targets:
        return Targets(Y, self.resolvent.project(Y))

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        resolvent, mus = self._at(mus)
        return Path(mus, *resolvent.path(*self._seen(resolvent, targets), mus))

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        resolvent, mus = self._at(mu)
        residual = resolvent.residual(*self._seen(resolvent, targets), mus)
        return Fitted(targets.Y, residual[0, ...], z=targets.z)

    def replaced(self, targets: Targets, rows: np.ndarray, rho: Array) -> Targets:
        Y = replace_rows(targets.Y, rows, take(targets.Y, rows) - rho)
        return Targets(Y, self.resolvent.changed(Y, targets.z, rows, -rho))

    def inside(self, Y: Array, dual: Array, mu: float) -> Array:
        return self._at(mu)[0].inside(Y, dual, mu)

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        resolvent, mus = self._at(mus)
        return resolvent.scatter(*self._seen(resolvent, targets), mus)

    def residual_map(self, mu: float) -> ResidualMap:
        return self._at(mu)[0].residual_map(mu)

    def leave_out(self, rows: np.ndarray, mu: float) -> Removal:
        return next(self.removals(rows, np.array([mu])))

    def removals(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Removal]:
        resolvent, mus = self._at(mus)
        return (Removal(rows, solve) for solve in resolvent.solvers(rows, mus))

    def can_leave_out(self, n_rows: int) -> bool:
        full = self.resolvent.rank + int(self.Q0.shape[1]) == self.n_samples
        return super().can_leave_out(n_rows) or not full

    def held_out_folds(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        if isinstance(self.resolvent, Thin):
            return self.resolvent.held_out_folds(targets.Y, targets.z, mus, deletions)
        return super().held_out_folds(targets, mus, deletions)

    @property
    def of_low_rank(self) -> Spectrum | None:
        """The spectrum, where its rank is low and no eigenvalue negative."""
        resolvent = self.resolvent
        if not isinstance(resolvent, Spectrum) or resolvent.lower_bound > 0:
            return None
        return resolvent if 2 * resolvent.rank < self.n_samples else None

    def maps_pay(self, n_targets: int, deleting: bool) -> bool:
        if 2 * self.resolvent.rank >= self.n_samples:
            return super().maps_pay(n_targets, deleting)
        return deleting and self.of_low_rank is not None and n_targets >= 2 * self.resolvent.rank

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        return self.resolvent.log_determinant(np.asarray(mus, dtype=float))
