"""Labels to targets, predicted targets to outputs: three readouts.

`Numbers`: targets are the output (kernel ridge). `Signs`: ±1, one class against the rest (LS-SVM).
`Indicators`: class indicators and the LDA rule of `lda` on them (Fisher).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import device

from .arrays import Array, asarray_like, namespace, to_numpy
from .lda import (
    NEGLIGIBLE,
    Axes,
    Rule,
    axes_of,
    completed_scatter,
    gain_of,
    lda_rule,
)
from .ties import settled_outputs


@dataclass(frozen=True)
class Evidence:
    """What is known of the classes of training sets, with any leading axes: the residual scatter
    E = Yᵀ(I - H)Y (…, t, t), and the class sizes (…, c).
    """

    scatter: Array
    sizes: Array


class Readout(ABC):
    """How an estimator codes labels and reads predicted targets; without data and parameters.

    Targets are (n, t). If `reduces`, the first column follows from the others (they keep their sum
    in every fit with a free bias), and computations with many labelings leave it out.
    """

    n_classes: int = 0  # 0: not a classifier
    needs_scatter = False

    @property
    @abstractmethod
    def n_targets(self) -> int:
        """Columns of targets."""

    @property
    def reduces(self) -> bool:
        return False

    @property
    def single(self) -> bool:
        """Whether there is one output, without an axis of its own."""
        return self.n_classes == 2

    @property
    def n_kept(self) -> int:
        """Number of target columns that are used."""
        return self.n_targets - self.reduces

    @abstractmethod
    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets (n, t) of class indices (n,), or of numbers (n,) or (n, t)."""

    @abstractmethod
    def kept_targets(self, values: Array) -> Array:
        """The kept columns (B, t, n) of many labelings: class indices (B, n), or (B, t, n)."""

    def is_regular(self, sizes: np.ndarray) -> np.ndarray:
        """Whether training sets with (weighted) class sizes (…, c) give models of the same
        shape.
        """
        return np.asarray(np.all(sizes > 0, axis=-1))

    def can_fit(self, sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Whether there is a model at all of training sets with (weighted) class sizes and numbers
        of rows (…, c): it needs two classes.
        """
        return np.asarray(np.sum(counts > 0, axis=-1) >= 2)

    def scores_rule(self, evidence: Evidence, definite: bool = False) -> Rule | None:
        """The rule that turns predicted targets into class scores; None if they are the output."""
        return None

    def rule(self, evidence: Evidence | None, definite: bool = False) -> Rule | None:
        """The rule that turns predicted targets into outputs, class scores or the difference of
        two, for targets as the scatter has them: all, or those kept. None if they are the output.
        """
        rule = None if evidence is None else self.scores_rule(evidence, definite)
        if evidence is None or rule is None:
            return None
        rule = rule.reduced() if evidence.scatter.shape[-1] < self.n_targets else rule
        return rule.difference() if self.n_classes == 2 else rule

    def rule_from(self, evidence: Callable[[], Evidence]) -> Rule | None:
        """The same, where the evidence is made only if outputs depend on it."""
        return self.rule(evidence()) if self.needs_scatter else None

    def shaped(self, outputs: Array) -> Array:
        """Outputs (n, o) in scikit-learn's shape: without the second axis if there is one."""
        return outputs[..., 0] if self.single else outputs

    def read(self, P: Array, rule: Rule | None) -> Array:
        """Outputs (…, k, o) of predicted targets (…, k, t)."""
        return P if rule is None else rule.decide(P)

    def size(self, unit: Array, rule: Rule | None) -> Array:
        """The magnitude (…, o) of the terms of the outputs, for targets of the size unit (…, t)."""
        return unit if rule is None else rule.size(unit)

    def settled(self, P: Array, rule: Rule | None, largest: Array, accuracy: float) -> Array:
        """Outputs (k, o) of predicted targets P (k, t) by one rule, or one for each row, with the
        ties of exact arithmetic: what lies below the accuracy is rounding, which knows the labels
        of the rows held out. `largest` (t,) are the largest targets.
        """
        xp = namespace(P)
        each = rule is not None and rule.offsets.ndim > 1
        outputs = self.read(P[:, None, :], rule)[:, 0, :] if each else self.read(P, rule)
        unit = xp.maximum(xp.max(xp.abs(P), axis=0), largest)
        size = self.size(unit, rule)
        size = xp.max(size, axis=0) if size.ndim > 1 else size
        return settled_outputs(outputs, accuracy * to_numpy(size))

    def read_kept(
        self, P: Array, unit: Array, evidence: Evidence | None, definite: bool
    ) -> tuple[Array, Array]:
        """Outputs (B, k, m) or (B, k, c, m) of the kept columns (B, k, t, m) of many labelings,
        given the reduced scatter (B, k, t, t) and class sizes (B, k, c) of their training sets.

        And the size (B, k) or (B, k, c) of what they are summed from, for targets of the size unit
        (B, k, t).
        """
        return (P[:, :, 0, :], unit[:, :, 0]) if self.single else (P, unit)

    def explained(self, evidence: Evidence) -> Array | float:
        """The share (…) of a target that outputs use; one if they are the targets."""
        return 1.0

    def class_scores(
        self, P: Array, evidence: Evidence | None, accuracy: np.ndarray | None
    ) -> tuple[Array, Array] | None:
        """Scores (m, k, c) and separations (m, c, c) for criteria, with the ties of exact
        arithmetic where accuracies (m,) are given; None for numbers.
        """
        rule = None if evidence is None else self.scores_rule(evidence)
        scored = self._scored(P, rule)
        if scored is None or accuracy is None:
            return scored
        xp = namespace(P)
        unit = xp.max(xp.abs(P), axis=-2)
        size = self.size(xp.maximum(unit, xp.ones_like(unit)), rule)
        tau = accuracy[:, None] * to_numpy(size)
        return settled_outputs(scored[0], np.broadcast_to(tau, scored[0].shape[::2])), scored[1]

    def _scored(self, P: Array, rule: Rule | None) -> tuple[Array, Array] | None:
        return None


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

    def can_fit(self, sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Two rows, which are of one "class"."""
        return np.asarray(np.sum(counts, axis=-1) >= 2)


@dataclass(frozen=True)
class Signs(Readout):
    """±1, one class against the rest; a single column for two classes."""

    n_classes: int
    free_bias: bool = True

    @property
    def n_targets(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
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

    def read_kept(
        self, P: Array, unit: Array, evidence: Evidence | None, definite: bool
    ) -> tuple[Array, Array]:
        """The column that was left out follows: all of them sum to 2 - c."""
        if not self.reduces:
            return super().read_kept(P, unit, evidence, definite)
        xp = namespace(P)
        first = (2.0 - self.n_classes) - xp.sum(P, axis=-2, keepdims=True)
        first_unit = self.n_classes + xp.sum(unit, axis=-1, keepdims=True)
        return xp.concat([first, P], axis=-2), xp.concat([first_unit, unit], axis=-1)

    def _scored(self, P: Array, rule: Rule | None) -> tuple[Array, Array]:
        """Two classes: (0, value), whose difference is the value; more: the values.

        Ideal targets differ by 1 and 2.
        """
        xp, c = namespace(P), self.n_classes
        scores = xp.concat([xp.zeros_like(P), P], axis=-1) if c == 2 else P
        ones = xp.ones((P.shape[0], c, c), dtype=P.dtype, device=device(P))
        return scores, ones if c == 2 else 2.0 * ones


@dataclass(frozen=True)
class Indicators(Readout):
    """Class indicators and the LDA rule on discriminant axes, with fixed priors where given, or
    equal ones: the nearest centroid.
    """

    n_classes: int
    priors: tuple[float, ...] | None = None
    equal_priors: bool = False
    free_bias: bool = True
    needs_scatter = True

    @property
    def reduces(self) -> bool:
        return self.free_bias

    @property
    def n_targets(self) -> int:
        return self.n_classes

    def targets(self, y: np.ndarray) -> np.ndarray:
        return indicators(y, self.n_classes)

    def kept_targets(self, values: Array) -> Array:
        return kept_indicators(values, self.n_classes, self.n_kept)

    def is_regular(self, sizes: np.ndarray) -> np.ndarray:
        return np.asarray(super().is_regular(sizes) & (sizes.sum(axis=-1) > self.n_classes))

    def can_fit(self, sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Two classes, and a degree of freedom within them."""
        free = np.sum(sizes, axis=-1) > np.sum(counts > 0, axis=-1)
        return np.asarray(super().can_fit(sizes, counts) & free)

    def log_priors(self, sizes: Array) -> Array:
        """Given, or those of the class sizes; -inf for a class that is absent."""
        xp = namespace(sizes)
        present = sizes > 0
        if self.equal_priors:
            there = xp.astype(present, sizes.dtype)
            priors = there / xp.sum(there, axis=-1, keepdims=True)
        elif self.priors is None:
            priors = sizes / xp.sum(sizes, axis=-1, keepdims=True)
        else:
            priors = asarray_like(self.priors, sizes) + xp.zeros_like(sizes)
        ones = xp.ones_like(sizes)
        return xp.where(present, xp.log(xp.where(present, priors, ones)), -xp.inf * ones)

    def degrees_of_freedom(self, evidence: Evidence) -> Array:
        """Of the scatter within classes: the number of rows less that of the classes present."""
        sizes, xp = evidence.sizes, namespace(evidence.sizes)
        dof = xp.sum(sizes, axis=-1) - xp.sum(xp.astype(sizes > 0, sizes.dtype), axis=-1)
        return xp.where(dof > 0, dof, xp.zeros_like(dof))

    def axes(self, evidence: Evidence) -> Axes:
        """Discriminant axes, by the eigenvectors of the whole scatter."""
        dof = self.degrees_of_freedom(evidence)
        return axes_of(evidence.scatter, evidence.sizes, dof, self.free_bias)

    def scores_rule(self, evidence: Evidence, definite: bool = False) -> Rule:
        """By an inverse where the kernel is definite and all classes are there, else by axes."""
        E, sizes, xp = evidence.scatter, evidence.sizes, namespace(evidence.scatter)
        if definite and self.free_bias and bool(xp.all(sizes > 0)):
            try:
                gain, unit = gain_of(E, sizes)
            except np.linalg.LinAlgError:  # a scatter that rounding has made singular
                return self.scores_rule(evidence)
            if self.n_classes == 2:  # the only axis may be none: a² = 1 - Θ/Γ
                kept = (gain - unit)[..., :1, :1] > NEGLIGIBLE * gain[..., :1, :1]
                gain = xp.where(kept, gain, xp.zeros_like(gain))
                unit = xp.where(kept, unit, xp.zeros_like(unit))
        else:
            E = completed_scatter(E, self.n_classes) if self.free_bias else E
            return self.rule_on(self.axes(Evidence(E, sizes)), evidence)
        dof = self.degrees_of_freedom(evidence)
        return lda_rule(gain, unit, sizes, dof, self.log_priors(sizes))

    def rule_on(self, axes: Axes, evidence: Evidence) -> Rule:
        """The rule of class scores on these axes."""
        sizes, dof = evidence.sizes, self.degrees_of_freedom(evidence)
        return lda_rule(axes.gain, axes.unit, sizes, dof, self.log_priors(sizes))

    def explained(self, evidence: Evidence) -> Array:
        """The largest share of the variance of a class's indicator that the fit explains,
        1 - E_jj n/(n_j (n - n_j)): a Rayleigh quotient of a², and no larger than the first one.
        """
        sizes, xp = evidence.sizes, namespace(evidence.sizes)
        total = xp.sum(sizes, axis=-1, keepdims=True)
        variance = sizes * (total - sizes) / total
        residual = xp.linalg.diagonal(completed_scatter(evidence.scatter, self.n_classes))
        present = variance > 0
        share = 1.0 - residual / xp.where(present, variance, xp.ones_like(variance))
        return xp.max(xp.where(present, share, xp.zeros_like(share)), axis=-1)

    def read_kept(
        self, P: Array, unit: Array, evidence: Evidence | None, definite: bool
    ) -> tuple[Array, Array]:
        rule = self.rule(evidence, definite)
        assert rule is not None
        if self.n_kept == 1:
            decision = rule.weights[..., 0, :] * P[:, :, 0, :] + rule.offsets
            return decision, rule.size(unit)[..., 0]
        xp = namespace(P)
        scores = xp.matrix_transpose(rule.weights) @ P
        scores += rule.offsets[..., None]
        size = rule.size(unit)
        return (scores[:, :, 0, :], size[..., 0]) if self.n_classes == 2 else (scores, size)

    def _scored(self, P: Array, rule: Rule | None) -> tuple[Array, Array]:
        assert rule is not None
        return rule.decide(P), rule.separation


def indicators(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Class indicators (n, c)."""
    return np.asarray(np.eye(n_classes)[codes])


def kept_indicators(codes: Array, n_classes: int, n_kept: int) -> Array:
    """Indicators (B, t, n) of the last t classes, for labels (B, n)."""
    xp = namespace(codes)
    kept = xp.arange(n_classes - n_kept, n_classes, dtype=codes.dtype, device=device(codes))
    return xp.astype(codes[:, None, :] == kept[:, None], xp.float64)


def predicted_codes(decision: Array, binary: bool, accuracy: Array) -> Array:
    """Class numbers (B, k, m) of decisions (B, k, m) of two classes, or scores (B, k, c, m).

    The first class of those that are equal to their accuracy, (B, k) or (B, k, c).
    """
    xp = namespace(decision)
    if binary:
        return xp.astype(decision > accuracy[:, :, None], xp.int8)
    best = decision[:, :, 0, :] + 0.0
    codes = xp.zeros(best.shape, dtype=xp.int16, device=device(decision))
    # a running maximum: argmax over an inner axis is several times slower
    for number in range(1, decision.shape[2]):
        candidate = decision[:, :, number, :]
        higher = candidate > best + accuracy[:, :, number][:, :, None]
        codes = xp.where(higher, xp.asarray(number, dtype=xp.int16, device=device(codes)), codes)
        best = xp.where(higher, candidate, best)
    return codes


def labels_of(decision: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The label with the largest decision; for two classes the second where it is positive."""
    codes = (decision > 0).astype(int) if decision.ndim == 1 else np.argmax(decision, axis=1)
    return np.asarray(classes[codes])
