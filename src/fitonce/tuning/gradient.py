r"""The held-out squared error and its exact gradient in weights, widths and alpha of a sum of
kernels.

For K = Σ_b θ_b K_b with the function norm, M = I - H, r = MY and rows D left out, the held-out
residuals are e_D = M_DD⁻¹ r_D, and dM = -M dK M/μ. With v_D = ∂E/∂e = 2e_D, zero where D is not
tested,

    Γ = ∂E/∂K = (1/μ) Σ_D M_:D (Z_D M_D: - u_D rᵀ),   u_D = M_DD⁻¹ v_D,  Z_D = u_D e_Dᵀ

and the symmetric part of it. Then

    ∂E/∂log θ_b = θ_b ⟨Γ, K_b⟩        ∂E/∂log γ_b = θ_b ⟨Γ, ∂K_b/∂log γ_b⟩
    ∂E/∂log μ = -⟨Γ, K⟩               since (aK, aμ) is the same model as (K, μ)

An evaluation costs one Cholesky factorization, one inversion and a product of n×n matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.optimize

from ..core.arrays import Array, NotPositiveDefiniteError, asarray_like, namespace, symmetric, take
from ..core.holdout import Deletion
from ..core.inverse import Inverse
from ..kernels import Kernel

FARTHEST_WEIGHT, FARTHEST_WIDTH = np.log(2.0**16), np.log(2.0**6)  # from where they started
ITERATIONS = 40  # of L-BFGS-B at most: each costs a factorization, an inversion and a product
IMPASSABLE = 1e100  # the loss where alpha is too small for the kernel: a step there is taken back


@dataclass(frozen=True)
class Term:
    """One kernel of a sum at its rows, as a function of gamma, with gamma at the start."""

    kernel: Callable[[Any], Kernel]
    rows: Any
    gamma: Any
    tunes_gamma: bool

    def matrix(self, gamma: Any) -> Array:
        """K_b at a gamma."""
        return self.kernel(gamma)(self.rows, self.rows)


@dataclass(frozen=True)
class Objective:
    """E and its gradient in the logarithms of what is tuned: the weights θ of all terms, then the
    widths, and mu.

    `theta` and `mu` are those of the start, `Y` targets scaled as the rows are, `Q0` what is not
    penalized; `penalized` says that the constant is. E is the sum of squares over `total`.
    """

    terms: Sequence[Term]
    theta: np.ndarray
    mu: float
    Y: Array
    Q0: Array
    row_scale: Array | None
    total: float
    deletions: Sequence[Deletion] | None = None
    tunes_theta: bool = False
    tunes_mu: bool = True
    penalized: bool = False

    @property
    def widths(self) -> list[int]:
        """Numbers of the terms whose gamma is tuned."""
        return [b for b, term in enumerate(self.terms) if term.tunes_gamma]

    @property
    def start(self) -> np.ndarray:
        theta = self.theta.tolist() if self.tunes_theta else []
        widths = [self.terms[b].gamma for b in self.widths]
        return np.log([*theta, *widths, *[self.mu] * self.tunes_mu])

    def values(self, x: np.ndarray) -> tuple[np.ndarray, list[Any], float]:
        """θ, gammas and mu of a point."""
        given = np.exp(x)
        n_theta = len(self.theta) if self.tunes_theta else 0
        gammas = [term.gamma for term in self.terms]
        for b, gamma in zip(self.widths, given[n_theta:].tolist(), strict=False):
            gammas[b] = gamma
        theta = given[:n_theta] if self.tunes_theta else self.theta
        return theta, gammas, float(given[-1]) if self.tunes_mu else self.mu

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        theta, gammas, mu = self.values(x)
        matrices = [
            term.matrix(gamma) if fixed is None else fixed
            for term, gamma, fixed in zip(self.terms, gammas, self._fixed, strict=True)
        ]
        K = sum((t * matrix for t, matrix in zip(theta, matrices, strict=True)), 0.0)
        K = K + 1.0 if self.penalized else K
        s = self.row_scale
        try:
            inverse = Inverse.of(K + 0.0 if s is None else K * s * s.T, self.Q0, mu)
            value, slope = fold_gradient(inverse, self.Y, self.deletions)
        except NotPositiveDefiniteError:
            return IMPASSABLE, np.zeros_like(x)
        if not np.isfinite(value):  # confounds that lose their rank without some rows
            return IMPASSABLE, np.zeros_like(x)
        value, slope = value / self.total, (slope if s is None else slope * s * s.T) / self.total
        total = namespace(slope).sum
        slopes = []
        if self.tunes_theta:
            slopes += [
                t * float(total(slope * K_b)) for t, K_b in zip(theta, matrices, strict=True)
            ]
        for b in self.widths:
            term = self.terms[b]
            moved = term.kernel(gammas[b]).log_gamma_slope(term.rows)
            slopes.append(theta[b] * float(total(slope * moved)))
        if self.tunes_mu:
            slopes.append(-float(total(slope * K)))
        return value, np.array(slopes)

    @cached_property
    def _fixed(self) -> list[Array | None]:
        return [None if term.tunes_gamma else term.matrix(term.gamma) for term in self.terms]

    def minimise(self, window: tuple[float, float]) -> tuple[np.ndarray, list[Any], float]:
        """θ, gammas and mu that L-BFGS-B ends with, mu within a window, or those of the start where
        nothing is better.
        """
        start = self.start
        reach = [FARTHEST_WEIGHT] * (len(self.theta) if self.tunes_theta else 0)
        reach += [FARTHEST_WIDTH] * len(self.widths)
        bounds = [(s - r, s + r) for s, r in zip(start, reach, strict=False)]
        bounds += [tuple(np.log(window))] * self.tunes_mu
        result = scipy.optimize.minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ITERATIONS},
        )
        return self.values(result.x if result.fun < self(start)[0] else start)


def fold_gradient(
    inverse: Inverse, Y: Array, deletions: Sequence[Deletion] | None
) -> tuple[float, Array]:
    """E = Σe² and Γ = ∂E/∂K (n, n) of the module's docstring; leave-one-out where no deletions are
    given.
    """
    M = inverse.M
    xp = namespace(M)
    r = M @ Y
    if deletions is None:
        o = xp.linalg.diagonal(M)[:, None]
        e = r / o
        u = 2.0 * e / o
        right = xp.sum(u * e, axis=1)[:, None] * M - u @ r.T
        return float(xp.sum(e**2)), symmetric(M @ right) / inverse.mu
    value, parts = 0.0, []
    for deleted, tested in deletions:
        (solve,) = inverse.solvers(deleted, np.array([inverse.mu]))
        e = solve(take(r, deleted))
        counted = np.zeros((len(deleted), 1))
        counted[tested] = 1.0
        seen = asarray_like(counted, e) * e
        value, u = value + float(xp.sum(seen**2)), solve(2.0 * seen)
        parts.append((u @ e.T) @ take(M, deleted) - u @ r.T)
    rows = np.concatenate([deleted for deleted, _ in deletions])
    return value, symmetric(take(M, rows).T @ xp.concat(parts, axis=0)) / inverse.mu
