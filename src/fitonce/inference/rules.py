r"""From held-out targets to decisions, for many labellings and folds at once.

A rule knows how an estimator encodes labels and what it makes of predicted targets. Arrays carry
labellings first, then folds: held-out targets are (B, k, t, m) for B labellings, k folds, t targets
and m test rows.

**Fewer columns.** With a free bias H1 = 1, so class indicators, which sum to one, keep that sum
when fitted: one class's column follows from the others, and every product is c - 1 columns wide.

**No eigenproblem.** Let E = Y_Trᵀ(I - H_Tr)Y_Tr be the residual scatter of the training rows (c×c,
E1 = 0), N their class sizes, π = N/n and G = E_r⁻¹ the inverse without the last class. Optimal
scoring's axes satisfy Eθ = (1 - a²)Nθ, θᵀNθ = I, so that with all axes kept, and up to a constant
that a row's class scores share, the LDA rule of `core.discriminant` (z·m_j - ½‖m_j‖² + log prior_j)
for predicted indicators P is

    score_j = (n-c) (G P)_j - ½(n-c)(G_jj - 1/N_j) + log prior_j       j < c
    score_c =                + ½(n-c)/N_c + log prior_c

For two classes, with e the only entry of E_r and p the predicted indicator of the second class, the
decision is

    (n-c) ((p - π₁)/e - ½(π₀ - π₁)(1/e - n/(n₀n₁))) + log(prior₁/prior₀)

Axes with a² ≤ 0, which only indefinite kernels have, are dropped by a fit; there
`core.discriminant` itself is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from array_api_compat import device

from ..core.arrays import Array, asarray_like, is_numpy, namespace
from ..core.discriminant import NEGLIGIBLE, discriminant


class Rule(ABC):
    """How one estimator reads labels and predicted targets."""

    n_targets: int
    needs_scatter = False
    # whether a dropped column follows from the others, which sum to its negative in residuals
    completes = False

    @abstractmethod
    def targets(self, values: Array) -> Array:
        """Targets (B, t, n) of labels (B, n), or of numbers (B, t, n)."""

    def regular(self, sizes: np.ndarray) -> np.ndarray:
        """Which labellings (B,) leave every training set a model of the same shape, given class
        sizes (B, k, c).
        """
        return np.ones(sizes.shape[0], dtype=bool)

    @abstractmethod
    def read(self, held_out: Array, scatter: Array | None, sizes: Array | None) -> Array:
        """Outputs (B, k, m), or (B, k, c, m) where there are several per row."""


class NumberRule(Rule):
    """Kernel ridge: predicted targets are the output."""

    def __init__(self, n_targets: int, single: bool) -> None:
        self.n_targets, self.single = n_targets, single

    def targets(self, values: Array) -> Array:
        return values

    def read(self, held_out: Array, scatter: Array | None, sizes: Array | None) -> Array:
        return held_out[:, :, 0, :] if self.single else held_out


class LabelRule(Rule):
    """Shared by the classifiers: indicators of the kept classes."""

    def __init__(self, n_classes: int, free_bias: bool) -> None:
        self.n_classes, self.binary = n_classes, n_classes == 2
        self.completes = free_bias and not self.binary
        self.n_targets = 1 if self.binary else n_classes - self.completes

    def indicators(self, codes: Array) -> Array:
        xp = namespace(codes)
        first = 1 if self.binary else 0
        kept = xp.arange(first, first + self.n_targets, dtype=codes.dtype, device=device(codes))
        return xp.astype(codes[:, None, :] == kept[:, None], xp.float64)

    def regular(self, sizes: np.ndarray) -> np.ndarray:
        return np.asarray(np.all(sizes > 0, axis=(1, 2)))


class LeastSquaresRule(LabelRule):
    """±1 targets, one class against the rest."""

    def targets(self, values: Array) -> Array:
        Y = self.indicators(values)
        Y *= 2.0
        Y -= 1.0
        return Y

    def read(self, held_out: Array, scatter: Array | None, sizes: Array | None) -> Array:
        if self.binary:
            return held_out[:, :, 0, :]
        if not self.completes:
            return held_out
        xp = namespace(held_out)
        last = (2.0 - self.n_classes) - xp.sum(held_out, axis=2, keepdims=True)
        return xp.concat([held_out, last], axis=2)


class FisherRule(LabelRule):
    """The kernel Fisher discriminant; see the module's docstring.

    `definite` says that the kernel is; `comparable` adds what a row's scores share, for decisions
    that are compared between rows.
    """

    needs_scatter = True

    def __init__(
        self,
        n_classes: int,
        priors: np.ndarray | None,
        *,
        definite: bool = True,
        comparable: bool = False,
    ) -> None:
        super().__init__(n_classes, free_bias=True)
        self.priors, self.definite, self.comparable = priors, definite, comparable

    def targets(self, values: Array) -> Array:
        return self.indicators(values)

    def regular(self, sizes: np.ndarray) -> np.ndarray:
        enough = np.all(sizes.sum(axis=2) > self.n_classes, axis=1)
        return np.asarray(super().regular(sizes) & enough)

    def _log_priors(self, sizes: Array) -> Array:
        xp = namespace(sizes)
        if self.priors is not None:
            return xp.log(asarray_like(self.priors, sizes)) + xp.zeros_like(sizes)
        return xp.log(sizes / xp.sum(sizes, axis=-1, keepdims=True))

    def read(self, held_out: Array, scatter: Array | None, sizes: Array | None) -> Array:
        if self.binary:
            return self._two(held_out[:, :, 0, :], scatter[:, :, 0, 0], sizes)  # type: ignore[index]
        if self.definite:
            try:
                return self._many(held_out, scatter, sizes)
            except np.linalg.LinAlgError:  # a scatter that rounding has made singular
                pass
        return self._by_axes(held_out, scatter, sizes)

    def _two(self, p: Array, e: Array, sizes: Any) -> Array:
        xp = namespace(p)
        log_priors = self._log_priors(sizes)
        n0, n1 = sizes[..., 0], sizes[..., 1]
        n = n0 + n1
        kept = 1.0 - e * n / (n0 * n1) > NEGLIGIBLE  # a² of the only axis
        slope = xp.where(kept, (n - 2.0) / xp.where(kept, e, xp.ones_like(e)), xp.zeros_like(e))
        middle = xp.where(
            kept, 0.5 * (n0 - n1) / n * (slope - (n - 2.0) * n / (n0 * n1)), xp.zeros_like(e)
        )
        offset = log_priors[..., 1] - log_priors[..., 0] - middle - slope * n1 / n
        return slope[..., None] * p + offset[..., None]

    def _many(self, P: Array, E: Any, sizes: Any) -> Array:
        """Class scores (B, k, c, m) from the reduced scatter E (B, k, c-1, c-1)."""
        xp = namespace(P)
        n = xp.sum(sizes, axis=-1)
        dof = (n - self.n_classes)[..., None]
        G = xp.linalg.inv(E)
        G_diagonal = xp.linalg.diagonal(G)
        log_priors = self._log_priors(sizes)
        kept, last = sizes[..., :-1], sizes[..., -1:]
        offsets = log_priors[..., :-1] - 0.5 * dof * (G_diagonal - 1.0 / kept)
        offset_last = log_priors[..., -1:] + 0.5 * dof / last
        B, k, t, m = P.shape
        scores = _empty((B, k, t + 1, m), P)
        scores[:, :, :t, :] = (dof[..., None] * G) @ P
        scores[:, :, :t, :] += offsets[..., None]
        scores[:, :, t, :] = offset_last
        if self.comparable:
            pi = kept / n[..., None]
            g = (G @ pi[..., None])[..., 0]
            middle = 0.5 * xp.sum(pi * g, axis=-1) - 0.5 / n
            scores += dof[..., None] * (middle[..., None, None] - (g[..., None, :] @ P))
        return scores

    def _by_axes(self, P: Array, E: Any, sizes: Any) -> Array:
        """The same through the axes, dropping those that a fit drops."""
        xp = namespace(P)
        c = self.n_classes
        E = xp.concat([E, -xp.sum(E, axis=-1, keepdims=True)], axis=-1)
        E = xp.concat([E, -xp.sum(E, axis=-2, keepdims=True)], axis=-2)
        A = sizes[..., :, None] * xp.eye(c, dtype=E.dtype, device=device(E)) - E
        solved = discriminant(A, sizes, xp.sum(sizes, axis=-1) - c)
        P = xp.concat([P, 1.0 - xp.sum(P, axis=-2, keepdims=True)], axis=-2)
        offsets = solved.offsets(xp.exp(self._log_priors(sizes)))
        return xp.matrix_transpose(solved.weights) @ P + offsets[..., :, None]


def _empty(shape: tuple[int, ...], like: Array) -> Array:
    return namespace(like).empty(shape, dtype=like.dtype, device=device(like))


def predicted_codes(decision: Array, binary: bool) -> Array:
    """Class numbers (B, k, m).

    The second class where a two-class decision is positive, else the largest score.
    """
    xp = namespace(decision)
    if binary:
        return xp.astype(decision > 0, xp.int8)
    if not is_numpy(decision):
        return xp.argmax(decision, axis=2)
    best = decision[:, :, 0, :].copy()
    codes = np.zeros(best.shape, dtype=np.int16)
    for number in range(
        1, decision.shape[2]
    ):  # a running maximum: argmax over an inner axis is several times slower
        candidate = decision[:, :, number, :]
        better = candidate > best
        codes[better] = number
        np.maximum(best, candidate, out=best)
    return codes
