r"""Labels to targets, predicted targets to outputs: the coding of labels and the LDA rule.

Three readouts. `Numbers`: targets are the output (kernel ridge). `Signs`: ±1, one class against the
rest (LS-SVM). `Indicators`: class indicators and the LDA rule on discriminant axes (Fisher).

**The LDA rule by optimal scoring.** With class indicators Y (n, c), class sizes N = diag(YᵀY), the
residual scatter E = Yᵀ(I - H)Y and A = N - E,

    A θ = a² N θ,    θᵀNθ = I,    D = 1/sqrt(a² (1 - a²))

the projections Ŷ θ D are those of the kernel Fisher discriminant S_b W = (S_w + μI) W Λ with
Wᵀ(S_w + μI)W = I and Λ = a²/(1 - a²). Multiplied by √ν, ν = n - c, they have unit within-class
covariance, as in scikit-learn's LDA, so that the decision for predicted indicators P is the LDA
rule, and only two c×c matrices of the axes enter it:

    z·m_j - ½‖m_j‖² + log π_j,          z = P θ D √ν,  m_j the class centroids N⁻¹A θ D √ν
    = ν (P Γ)_j - ½ν (Γ - Θ)_jj + log π_j,          Γ = θ (1 - a²)⁻¹ θᵀ,   Θ = θθᵀ.

Class centroids j, k lie ν[(Γ - Θ)_jj + (Γ - Θ)_kk - 2(Γ - Θ)_jk] apart (squared). Γ and Θ come from
the axes (`axes_of`), which drops those with a² ≈ 0; or, with all axes kept, without any eigenproblem
from an inverse: E1 = 0, so with E_r = E without the first class and Π = I - 1Nᵀ/n

    Γ = Π [0 0; 0 E_r⁻¹] Πᵀ,        Θ = N⁻¹ - 11ᵀ/n.

The constant solution (θ ∝ 1, a² = 1) is deflated by its known vector. Everything is batched over
leading axes: folds, left-out rows, mus, permutations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device

from .arrays import Array, asarray_like, eye_like, is_numpy, namespace, take

NEGLIGIBLE = 1e-12  # axes with a² below this carry rounding noise only and are dropped


# ---- the LDA rule --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Outputs P @ weights + offsets for predicted targets P (…, k, t): weights (…, t, c).

    `separation` (…, c, c) is half the squared distance of the class centroids.
    """

    weights: Array
    offsets: Array
    separation: Array

    def decide(self, P: Array) -> Array:
        """Class scores (…, k, c)."""
        return P @ self.weights + self.offsets[..., None, :]

    def difference(self) -> Rule:
        """Two classes: the decision (…, k, 1), positive for the second; NaN where one is absent."""
        xp = namespace(self.weights)
        offset = self.offsets[..., 1:] - self.offsets[..., :1]
        offset = xp.where(xp.isfinite(offset), offset, xp.nan * xp.ones_like(offset))
        return Rule(self.weights[..., 1:] - self.weights[..., :1], offset, self.separation)

    def take(self, rows: np.ndarray) -> Rule:
        """The rules of some members of a batch."""
        parts = (take(part, rows) for part in (self.weights, self.offsets, self.separation))
        return Rule(*parts)

    def reduced(self) -> Rule:
        """For indicators without the first class, which follows from their sum of one."""
        first = self.weights[..., :1, :]
        offsets = self.offsets + first[..., 0, :]
        return Rule(self.weights[..., 1:, :] - first, offsets, self.separation)


def lda_rule(gain: Array, unit: Array, sizes: Array, dof: Array, log_priors: Array) -> Rule:
    """The rule from Γ, Θ (…, c, c), class sizes (…, c), ν (…) and log priors, absent classes -inf."""
    xp = namespace(gain)
    spread = dof[..., None, None] * (gain - unit)
    own = xp.linalg.diagonal(spread)
    separation = 0.5 * (own[..., :, None] + own[..., None, :]) - spread
    return Rule(dof[..., None, None] * gain, log_priors - 0.5 * own, separation)


@dataclass(frozen=True)
class Axes:
    """θ D √ν (…, c, q), centroids m (…, c, q), a² (…, q); Γ and Θ of those that are kept."""

    axes: Array
    centroids: Array
    a2: Array
    gain: Array
    unit: Array


def axes_of(E: Array, sizes: Array, dof: Array) -> Axes:
    """The c×c eigenproblem for residual scatter E (…, c, c), class sizes (…, c) and ν (…).

    Classes of size zero take no part. Axes are ordered by a²; see `_signs` for their direction.
    """
    xp = namespace(E, sizes)
    present = sizes > 0
    zeros = xp.zeros_like(sizes)
    root = xp.where(present, 1.0 / xp.sqrt(xp.where(present, sizes, zeros + 1.0)), zeros)
    known = xp.where(present, sizes, zeros)
    constant = xp.sqrt(known / xp.sum(sizes, axis=-1, keepdims=True))
    # the constant solution has a² = 1, others -> I - E; taken to -1 it lies below all others
    whitened = root[..., :, None] * E * root[..., None, :]
    identity = eye_like(E.shape[-1], E) * xp.astype(present, E.dtype)[..., None, :]
    S = identity - 0.5 * (whitened + xp.matrix_transpose(whitened))
    S = S - 2.0 * constant[..., :, None] * constant[..., None, :]
    a2, T = xp.linalg.eigh(S)
    a2, T = xp.flip(a2[..., 1:], axis=-1), xp.flip(T[..., 1:], axis=-1)
    kept = a2 > NEGLIGIBLE
    a2 = xp.where(kept, xp.clip(a2, None, 1.0 - xp.finfo(E.dtype).eps), xp.zeros_like(a2))
    theta = root[..., :, None] * T * xp.astype(kept, E.dtype)[..., None, :]
    safe = xp.where(kept, a2 * (1.0 - a2), xp.ones_like(a2))
    axes = theta * (xp.sqrt(dof)[..., None] / xp.sqrt(safe))[..., None, :]
    # A θ = a² N θ, so the centroids N⁻¹A θ D √ν are a² times the axes
    centroids = a2[..., None, :] * axes
    signs = _signs(centroids)
    gain = (theta / (1.0 - a2)[..., None, :]) @ xp.matrix_transpose(theta)
    return Axes(axes * signs, centroids * signs, a2, gain, theta @ xp.matrix_transpose(theta))


def gain_of(E: Array, sizes: Array) -> tuple[Array, Array]:
    """Γ and Θ with all axes kept, by an inverse; E may lack its first row and column."""
    xp = namespace(E, sizes)
    c = sizes.shape[-1]
    E = E[..., 1:, 1:] if E.shape[-1] == c else E
    inverse = 1.0 / E if c == 2 else xp.linalg.inv(E)
    total = xp.sum(sizes, axis=-1, keepdims=True)
    pi = sizes / total
    # Π [0 0; 0 G] Πᵀ, with G π and πᵀGπ taken off
    G = xp.zeros((*inverse.shape[:-2], c, c), dtype=E.dtype, device=device(E))
    G[..., 1:, 1:] = inverse
    g = (G @ pi[..., None])[..., 0]
    gain = G - g[..., None, :] - g[..., :, None] + xp.sum(g * pi, axis=-1)[..., None, None]
    unit = eye_like(c, E) * (1.0 / sizes)[..., None, :] - (1.0 / total)[..., None]
    return gain, unit


def _signs(centroids: Array) -> Array:
    """±1 per axis (…, 1, q): two classes, the second one's centroid positive; more, the farthest
    centroid positive.

    Of centroids equally far to within 1e-6 the last one counts, so that rounding does not choose
    the direction.
    """
    xp = namespace(centroids)
    c = centroids.shape[-2]
    if c > 2:
        numbers = xp.arange(c, dtype=centroids.dtype, device=device(centroids))
        centroids = centroids * (1.0 + 1e-6 * numbers)[:, None]
        highest = xp.max(centroids, axis=-2, keepdims=True)
        positive = highest >= -xp.min(centroids, axis=-2, keepdims=True)
    else:
        positive = centroids[..., 1:, :] >= 0
    ones = xp.ones_like(centroids[..., :1, :])
    return xp.where(positive, ones, -ones)


# ---- readouts ------------------------------------------------------------------------------------


class Readout(ABC):
    """How an estimator codes labels and reads predicted targets; free of data and parameters.

    Targets are (n, t). Where `reduces`, the first column follows from the others (they keep their
    sum in every fit with a free bias), and work on many labellings leaves it out.
    """

    n_classes = 0  # 0: not a classifier
    n_targets: int
    reduces = False
    needs_scatter = False

    @property
    def n_outputs(self) -> int:
        """Columns that an output has before its shape is made scikit-learn's."""
        return self.n_targets

    @property
    def n_kept(self) -> int:
        """Columns of targets that are worked with."""
        return self.n_targets - self.reduces

    @abstractmethod
    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets (n, t) of class numbers (n,), or of numbers (n,) or (n, t)."""

    @abstractmethod
    def kept_targets(self, values: Array) -> Array:
        """The kept columns (B, t, n) of many labellings: class numbers (B, n), or (B, t, n)."""

    def is_regular(self, sizes: np.ndarray) -> np.ndarray:
        """Whether training sets with (weighted) class sizes (…, c) give models like the whole's."""
        return np.asarray(np.all(sizes > 0, axis=-1))

    @abstractmethod
    def rule(
        self, E: Array, sizes: Array, definite: bool = False, dof: Array = None
    ) -> Rule | None:
        """What makes outputs of predicted targets, given the scatter and class sizes of a training
        set, or a batch of them; None where predicted targets are the output.
        """

    def shaped(self, outputs: Array) -> Array:
        """Outputs (n, o) in scikit-learn's shape: without their second axis where o is one."""
        return outputs[..., 0] if outputs.shape[-1] == 1 else outputs

    def read(self, P: Array, rule: Rule | None) -> Array:
        """Outputs (…, k, o) of predicted targets (…, k, t)."""
        return P if rule is None else rule.decide(P)

    def read_kept(self, P: Array, E: Array, sizes: Array, definite: bool) -> Array:
        """Outputs (B, k, m) or (B, k, c, m) of the kept columns (B, k, t, m) of many labellings,
        given the reduced scatter (B, k, t, t) and class sizes (B, k, c) of their training sets.
        """
        return P[:, :, 0, :] if self.n_kept == 1 else P

    def margins(self, e: Any, scatter: Any, targets: Array, sizes: Array) -> Any:
        """Margins (n, 1) of two classes in units of their separation, as jets, from held-out
        residuals e (n, t) and the residual scatter (t, t); None where they have no derivatives.
        """
        return None

    @abstractmethod
    def class_scores(self, P: Array, rule: Rule | None) -> tuple[Array, Array] | None:
        """Scores (m, k, c) and separations (m, c, c) for criteria; None for numbers."""


@dataclass(frozen=True)
class Numbers(Readout):
    """Kernel ridge: predicted targets are the output; `single` where y came without columns."""

    n_targets: int = 1
    single: bool = True

    def targets(self, y: np.ndarray) -> np.ndarray:
        numbers = y.astype(np.float64)
        return numbers[:, None] if y.ndim == 1 else numbers

    def kept_targets(self, values: Array) -> Array:
        return values

    def is_regular(self, sizes: np.ndarray) -> np.ndarray:
        return np.ones(sizes.shape[:-1], dtype=bool)

    def rule(self, E: Array, sizes: Array, definite: bool = False, dof: Array = None) -> None:
        return None

    def shaped(self, outputs: Array) -> Array:
        return outputs[..., 0] if self.single else outputs

    def read_kept(self, P: Array, E: Array, sizes: Array, definite: bool) -> Array:
        return P[:, :, 0, :] if self.single else P

    def class_scores(self, P: Array, rule: Rule | None) -> None:
        return None


@dataclass(frozen=True)
class Signs(Readout):
    """±1, one class against the rest; a single column for two classes."""

    n_classes: int
    free_bias: bool = True

    @cached_property
    def n_targets(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @cached_property
    def reduces(self) -> bool:
        return self.free_bias and self.n_classes > 2

    def targets(self, y: np.ndarray) -> np.ndarray:
        signs = 2.0 * indicators(y, self.n_classes) - 1.0
        return signs[:, 1:] if self.n_classes == 2 else signs

    def kept_targets(self, values: Array) -> Array:
        Y = kept_indicators(values, self.n_classes, self.n_kept)
        Y *= 2.0
        Y -= 1.0
        return Y

    def rule(self, E: Array, sizes: Array, definite: bool = False, dof: Array = None) -> None:
        return None

    def read_kept(self, P: Array, E: Array, sizes: Array, definite: bool) -> Array:
        """The column that was left out follows: all of them sum to 2 - c."""
        if not self.reduces:
            return super().read_kept(P, E, sizes, definite)
        xp = namespace(P)
        first = (2.0 - self.n_classes) - xp.sum(P, axis=-2, keepdims=True)
        return xp.concat([first, P], axis=-2)

    def margins(self, e: Any, scatter: Any, targets: Array, sizes: Array) -> Any:
        return 1.0 - e * targets if self.n_classes == 2 else None  # y (y - e) with y = ±1

    def class_scores(self, P: Array, rule: Rule | None) -> tuple[Array, Array]:
        """Two classes: (0, value), whose difference is the value; more: the values.

        Ideal targets differ by 1 and 2.
        """
        xp, c = namespace(P), self.n_classes
        scores = xp.concat([xp.zeros_like(P), P], axis=-1) if c == 2 else P
        ones = xp.ones((P.shape[0], c, c), dtype=P.dtype, device=device(P))
        return scores, ones if c == 2 else 2.0 * ones


@dataclass(frozen=True)
class Indicators(Readout):
    """Class indicators and the LDA rule on discriminant axes, with fixed priors where given."""

    n_classes: int
    priors: tuple[float, ...] | None = None
    reduces = True
    needs_scatter = True

    @cached_property
    def n_targets(self) -> int:
        return self.n_classes

    @cached_property
    def n_outputs(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def targets(self, y: np.ndarray) -> np.ndarray:
        return indicators(y, self.n_classes)

    def kept_targets(self, values: Array) -> Array:
        return kept_indicators(values, self.n_classes, self.n_kept)

    def is_regular(self, sizes: np.ndarray) -> np.ndarray:
        return np.asarray(super().is_regular(sizes) & (sizes.sum(axis=-1) > self.n_classes))

    def log_priors(self, sizes: Array) -> Array:
        """Given, or those of the class sizes; -inf for a class that is absent."""
        xp = namespace(sizes)
        present = sizes > 0
        if self.priors is None:
            priors = sizes / xp.sum(sizes, axis=-1, keepdims=True)
        else:
            priors = asarray_like(self.priors, sizes) + xp.zeros_like(sizes)
        ones = xp.ones_like(sizes)
        return xp.where(present, xp.log(xp.where(present, priors, ones)), -xp.inf * ones)

    def degrees_of_freedom(self, sizes: Array) -> Array:
        xp = namespace(sizes)
        dof = xp.sum(sizes, axis=-1) - xp.sum(xp.astype(sizes > 0, sizes.dtype), axis=-1)
        return xp.where(dof > 0, dof, xp.zeros_like(dof))

    def axes(self, E: Array, sizes: Array, dof: Array = None) -> Axes:
        return axes_of(E, sizes, self.degrees_of_freedom(sizes) if dof is None else dof)

    def rule(self, E: Array, sizes: Array, definite: bool = False, dof: Array = None) -> Rule:
        """By an inverse where the kernel is definite and all classes are there, else by axes."""
        xp = namespace(E)
        dof = self.degrees_of_freedom(sizes) if dof is None else dof
        if definite and bool(xp.all(sizes > 0)):
            try:
                gain, unit = gain_of(E, sizes)
            except np.linalg.LinAlgError:  # a scatter that rounding has made singular
                return self.rule(E, sizes, False, dof)
            if self.n_classes == 2:  # the only axis may be none: a² = 1 - Θ/Γ
                kept = (gain - unit)[..., :1, :1] > NEGLIGIBLE * gain[..., :1, :1]
                gain = xp.where(kept, gain, xp.zeros_like(gain))
                unit = xp.where(kept, unit, xp.zeros_like(unit))
        else:
            solved = axes_of(completed_scatter(E, self.n_classes), sizes, dof)
            gain, unit = solved.gain, solved.unit
        return lda_rule(gain, unit, sizes, dof, self.log_priors(sizes))

    def read(self, P: Array, rule: Rule | None) -> Array:
        assert rule is not None
        return (rule.difference() if self.n_classes == 2 else rule).decide(P)

    def read_kept(self, P: Array, E: Array, sizes: Array, definite: bool) -> Array:
        rule = self.rule(E, sizes, definite).reduced()
        if self.n_classes == 2:
            rule = rule.difference()
            return rule.weights[..., 0, :] * P[:, :, 0, :] + rule.offsets
        xp = namespace(P)
        scores = xp.matrix_transpose(rule.weights) @ P
        scores += rule.offsets[..., None]
        return scores

    def margins(self, e: Any, scatter: Any, targets: Array, sizes: Array) -> Any:
        if self.n_classes != 2:
            return None
        log_priors = self.log_priors(sizes)
        P = targets[:, 1:] - e.map(lambda part: part[:, 1:])
        own = scatter.map(lambda E: float(E[1, 1]))
        log_odds = float(log_priors[1] - log_priors[0])
        decision, separation = two_class_margins(P, own, sizes, log_odds)
        return decision * (targets[:, 1:] - targets[:, :1]) / separation

    def class_scores(self, P: Array, rule: Rule | None) -> tuple[Array, Array]:
        assert rule is not None
        return rule.decide(P), rule.separation


def indicators(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Class indicators (n, c)."""
    result = np.zeros((len(codes), n_classes))
    result[np.arange(len(codes)), codes] = 1.0
    return result


def kept_indicators(codes: Array, n_classes: int, n_kept: int) -> Array:
    """Indicators (B, t, n) of the last t classes, for labels (B, n)."""
    xp = namespace(codes)
    kept = xp.arange(n_classes - n_kept, n_classes, dtype=codes.dtype, device=device(codes))
    return xp.astype(codes[:, None, :] == kept[:, None], xp.float64)


def completed_scatter(E: Array, n_classes: int) -> Array:
    """E (…, c, c) from itself without the first class: rows and columns sum to zero."""
    if E.shape[-1] == n_classes:
        return E
    xp = namespace(E)
    E = xp.concat([-xp.sum(E, axis=-1, keepdims=True), E], axis=-1)
    return xp.concat([-xp.sum(E, axis=-2, keepdims=True), E], axis=-2)


def predicted_codes(decision: Array, binary: bool) -> Array:
    """Class numbers (B, k, m) of decisions (B, k, m) of two classes, or scores (B, k, c, m)."""
    xp = namespace(decision)
    if binary:
        return xp.astype(decision > 0, xp.int8)
    if not is_numpy(decision):
        return xp.argmax(decision, axis=2)
    best = decision[:, :, 0, :].copy()
    codes = np.zeros(best.shape, dtype=np.int16)
    # a running maximum: argmax over an inner axis is several times slower
    for number in range(1, decision.shape[2]):
        candidate = decision[:, :, number, :]
        codes[candidate > best] = number
        np.maximum(best, candidate, out=best)
    return codes


def labels_of(decision: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The label with the largest decision; for two classes the second where it is positive."""
    codes = (decision > 0).astype(int) if decision.ndim == 1 else np.argmax(decision, axis=1)
    return np.asarray(classes[codes])


def two_class_margins(P: Any, e: Any, sizes: Array, log_odds: float) -> tuple[Any, Any]:
    """The LDA decision and half the squared distance of two classes' centroids, from the predicted
    indicator P (n, 1) of the second class and its residual scatter e: numbers, or jets of them.

    Γ of two classes is vvᵀ/e with v = (-π₁, π₀), and Θ = vvᵀ n/(n₀n₁).
    """
    n0, n1 = float(sizes[0]), float(sizes[1])
    n = n0 + n1
    gain, unit, dof = 1.0 / e, n / (n0 * n1), n - 2.0
    middle = 0.5 * (n0 - n1) / n
    decision = ((P - n1 / n) * gain - (gain - unit) * middle) * dof + log_odds
    return decision, (gain - unit) * (0.5 * dof)
