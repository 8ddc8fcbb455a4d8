r"""The models of every fold at many positions at once, for a linear kernel and fewer features than
rows.

For rows X (B, n, p) at B positions, centered if the bias is free, the moments of a training set are
those of all rows minus those of the left-out rows, in one stack for all positions. Centered on the
means of the training rows,

    A = ZᵀWZ,   C = ZᵀWY,   w = (A + μI)⁻¹C,   b = ȳ - z̄·w,   E = YᵀWY - Cᵀw,

a stack of p×p systems for each fold. E is the residual scatter, which determines the LDA rule.
Positions with numerical problems, or whose training rows are all equal, are not covered here,
because they have to issue warnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import Array, asarray_like, eye_like, index_like, namespace, take, to_numpy
from ..core.moments import Moments
from ..core.readout import Evidence, Readout
from ..core.refused import RefusedError
from ..core.spectrum import machine_epsilon
from ..core.splits import Split
from ..core.ties import EPSILON, ROUNDING, settled_sum
from ..crossval.confounds import taken
from ..crossval.depends import depends, fit_weights
from ..crossval.metrics import Outputs
from ..estimators.accuracy_warnings import INACCURATE
from ..estimators.setup import accepted_setup
from ..inference.factors import training_sizes
from ..inference.placements import Placement

STACK_ELEMENTS = 1 << 22  # entries of X that are processed as one array: 32 MiB
SAME = 1e-10  # share of the scatter of all rows below which training rows may all be equal
OFFSET = 1e-8  # share of the squared means below which a scatter loses digits
UNEQUAL = 1e4  # weights that differ by a larger factor lose digits when moments are subtracted


@dataclass(frozen=True)
class LinearModel:
    """x·coef + intercept of one fold at B positions: coef (B, p, o), intercept (B, o)."""

    coef: Array
    intercept: Array

    def at_own(self, X: Array) -> tuple[Array, Array]:
        """Values (B, o, m) for rows X (B, m, p), each from the model of its position, and the
        magnitude (B, o) of the terms they are summed from.
        """
        xp = namespace(X)
        coef = xp.matrix_transpose(self.coef)
        values = coef @ xp.matrix_transpose(X) + self.intercept[:, :, None]
        return values, self._size(largest_of(X)[:, None])

    def at_all(self, X: Array, largest: Array) -> tuple[Array, Array]:
        """Values (B, q, o, m) for rows X (q, m, p) of q positions, each from all B models, as one
        product; `largest` (q,) is the largest entry of X at each position.
        """
        xp, (B, p, o), (q, m, _) = namespace(X), self.coef.shape, X.shape
        coef = xp.reshape(xp.matrix_transpose(self.coef), (B * o, p))
        values = coef @ xp.reshape(X, (q * m, p)).T
        values += xp.reshape(self.intercept, (B * o, 1))
        values = xp.permute_dims(xp.reshape(values, (B, o, q, m)), (0, 2, 1, 3))
        return values, self._size(largest[:, None, None])

    def _size(self, largest: Array) -> Array:
        """max|x| Σ|w| + |b|, for all leading axes of `largest` in addition to the positions."""
        xp = namespace(self.coef)
        total, bias = xp.sum(xp.abs(self.coef), axis=1), xp.abs(self.intercept)
        if largest.ndim == 3:
            return xp.permute_dims(largest * total + bias, (1, 0, 2))
        return largest * total + bias


def largest_of(X: Array) -> Array:
    """The largest |x| (B,) at every position."""
    xp = namespace(X)
    return xp.maximum(xp.max(X, axis=(1, 2)), -xp.min(X, axis=(1, 2)))


@dataclass(frozen=True)
class LinearFolds:
    """All folds of one set of labels: everything that the models of all positions share.

    `Y` (n, t) are the targets, without the first class if the rule follows from the others.
    `truth` is what scores compare with: class indices (n,) or numbers (t, n). `sizes` (k, c) are
    the class sizes of the training sets.
    """

    splits: Sequence[Split]
    deleted: Sequence[np.ndarray]
    readout: Readout
    Y: np.ndarray
    truth: np.ndarray
    weights: np.ndarray | None
    sizes: np.ndarray
    mu: float
    fit_intercept: bool | str

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        splits: Sequence[Split],
        params: Mapping[str, Any] | None,
        scoring: Any = None,
    ) -> LinearFolds | None:
        """None if the models are not linear, depend on more than fixed parameters, or have no such
        form in some fold. X is the array of any one position.
        """
        folds = Placement(0, list(splits), X.shape[0])
        if not folds.deletes or not _is_linear(estimator, X, params, scoring):
            return None
        try:
            setup = accepted_setup(clone(estimator), X, y, fit_weights(estimator, params))
        # the error is raised where the position is processed on its own
        except RefusedError:
            return None
        readout, codes, weights = setup.readout, setup.labels.codes, setup.labels.weights
        sizes = np.zeros((len(splits), 0))
        if codes is not None:
            sizes = training_sizes([folds], codes[None], readout.n_classes, weights)[0]
        few = min(len(train) for train, _ in splits) < 2 or min(len(test) for _, test in splits) < 1
        unequal = weights is not None and np.max(weights) > UNEQUAL * np.min(weights)
        if few or unequal or not np.all(readout.is_regular(sizes)):
            return None
        targets = setup.data.targets
        return cls(
            splits,
            folds.deleted,
            readout,
            Y=targets[:, 1:] if readout.needs_scatter and readout.reduces else targets,
            truth=targets.T if codes is None else codes,
            weights=weights,
            sizes=sizes,
            mu=float(estimator.alpha),
            fit_intercept=setup.specification.fit_intercept,
        )

    def covers(self, n_features: int) -> bool:
        return n_features < len(self.Y)

    def outputs(self, fold: int, values: Array, size: Array) -> Outputs:
        """Values (N, o, m) for the test rows of a fold, in the form that metrics take.

        Decisions are settled as `settled_decisions` settles those of a single fitted model.
        """
        xp, truth = namespace(values), self.truth[..., self.splits[fold][1]]
        seen = np.broadcast_to(truth, (values.shape[0], 1, *truth.shape))
        accuracy = None
        if self.readout.n_classes:
            largest = xp.maximum(xp.max(values, axis=-1), -xp.min(values, axis=-1))
            largest = xp.maximum(largest, xp.ones_like(largest))
            accuracy = self.readout.shaped((ROUNDING * largest + 2.0 * EPSILON * size)[:, None, :])
        shaped = self.readout.shaped(xp.matrix_transpose(values)[:, None, ...])
        shaped = shaped if shaped.ndim == 3 else xp.matrix_transpose(shaped)
        return Outputs(shaped, seen, accuracy)

    def models(self, X: Array) -> tuple[np.ndarray, list[LinearModel]]:
        """Which of the positions X (B, n, p) are covered, and the models of every fold at all of
        them, which are valid only where covered.
        """
        xp = namespace(X)
        if self.fit_intercept == "penalized":
            X = xp.concat([X, xp.ones_like(X[:, :, :1])], axis=2)
        Y = asarray_like(self.Y, X)
        weights = None if self.weights is None else asarray_like(self.weights[:, None], X)
        Z, centre, scatter = self._centred(X, weights)
        scale = None if weights is None else xp.sqrt(weights)
        scaled = Y if scale is None else scale * Y
        total = Moments.of(Z, scaled, scale)
        covered = xp.isfinite(scatter)
        models = []
        for fold, (train, _) in enumerate(self.splits):
            moments = self._training(fold, train, Z, scaled, scale, total)
            A, C, YY = moments.normal(self._free)
            covered = covered & (xp.sum(xp.linalg.diagonal(A), axis=-1) > SAME * scatter)
            w = xp.linalg.solve(A + self.mu * eye_like(int(A.shape[-1]), A), C)
            models.append(self._model(fold, moments, centre, w, YY - xp.matrix_transpose(C) @ w))
        return to_numpy(covered), models

    @property
    def _free(self) -> bool:
        return self.fit_intercept is True

    def _centred(self, X: Array, weights: Array | None) -> tuple[Array, Array, Array]:
        """Rows minus their means (B, 1, p), which are zero if the bias is not free, and their
        scatter (B,): infinite, with rows set to zero, if digits would be lost.
        """
        xp = namespace(X)
        w = xp.ones_like(X[0, :, :1]) if weights is None else weights
        mean = (xp.matrix_transpose(w) @ X) / xp.sum(w)
        centre = mean if self._free else xp.zeros_like(mean)
        Z = X - centre
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = xp.sum((w * Z) * Z, axis=(1, 2))
            offset = xp.sum(w) * xp.sum(centre**2, axis=(1, 2))
            certain = 1e3 * machine_epsilon(Z) * scatter <= INACCURATE * self.mu
            certain = certain & (scatter > OFFSET * offset) & xp.isfinite(offset)
        if not bool(xp.all(certain)):
            Z = xp.where(certain[:, None, None], Z, xp.zeros_like(Z))
            centre = xp.where(certain[:, None, None], centre, xp.zeros_like(centre))
            scatter = xp.where(certain, scatter, xp.inf * xp.ones_like(scatter))
        return Z, centre, scatter

    def _training(
        self,
        fold: int,
        train: np.ndarray,
        Z: Array,
        Y: Array,
        scale: Array | None,
        total: Moments,
    ) -> Moments:
        """The moments of the training rows of a fold, from the rows that train or those that do
        not, whichever are fewer.
        """
        xp, deleted = namespace(Z), self.deleted[fold]
        rows = train if len(train) < len(deleted) else deleted
        part = xp.take(Z, index_like(rows, Z), axis=1)
        own = Moments.of(part, take(Y, rows), None if scale is None else take(scale, rows))
        return own if rows is train else total.without(own)

    def _model(self, fold: int, moments: Moments, centre: Array, w: Array, E: Array) -> LinearModel:
        """Outputs of coefficients w (B, p, t) with the rule for their scatter E (B, t, t)."""
        xp = namespace(w)
        if self.fit_intercept == "penalized":
            coef, intercept = w[:, :-1, :], w[:, -1, :]
        elif self._free:
            mean_Z = moments.sum_Z[:, None, :] / moments.weight + centre
            coef, intercept = w, (moments.sum_Y / moments.weight - mean_Z @ w)[:, 0, :]
        else:
            coef, intercept = w, xp.zeros_like(w[:, 0, :])
        if not self.readout.needs_scatter:
            return LinearModel(coef, intercept)
        sizes = xp.zeros_like(E[:, 0, :1]) + asarray_like(self.sizes[fold], E)
        rule = self.readout.rule(Evidence(E, sizes))
        assert rule is not None
        bias = (intercept[:, None, :] @ rule.weights)[:, 0, :] + rule.offsets
        size = (xp.abs(intercept)[:, None, :] @ xp.abs(rule.weights))[:, 0, :]
        return LinearModel(coef @ rule.weights, settled_sum(bias, size + xp.abs(rule.offsets)))


def _is_linear(estimator: Any, X: Any, params: Mapping[str, Any] | None, scoring: Any) -> bool:
    """Whether the estimator with fixed parameters is a ridge on its features."""
    if taken(estimator, params)[0] is not None:  # each training set has its own confounds
        return False
    if depends(estimator, X, params, scoring).route.name != "one":
        return False
    linear = isinstance(estimator.kernel, str) and estimator.kernel == "linear"
    return linear and estimator.penalty == "function" and estimator.landmarks is None
