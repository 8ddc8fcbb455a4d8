r"""The models of every fold at many positions at once, for a linear kernel and fewer features than
rows.

For rows X (B, n, p) at B positions, centered if the bias is free, the moments of a training set are
those of all rows minus those of the left-out rows, in one stack for all positions. Centered on the
means of the training rows,

    A = ZᵀWZ,   C = ZᵀWY,   w = (A + μI)⁻¹C,   b = ȳ - z̄·w,   E = YᵀWY - Cᵀw,

a stack of p×p systems for each fold. E is the residual scatter, which determines the LDA rule.

A StandardScaler before the model divides each column by its standard deviation on the training
rows, d² = diag(A)/n. For the columns as given, this is a penalty for each of them, with the same E:

    D⁻¹(D⁻¹AD⁻¹ + μI)⁻¹D⁻¹C = (A + μD²)⁻¹C = w.

Positions with numerical problems, or whose training rows are all equal, are not covered here,
because they have to issue warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

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
from ..estimators.accuracy import INACCURATE
from ..estimators.fitted import is_model
from ..estimators.parameter_values import word
from ..estimators.setup import accepted_setup
from ..inference.deletion_maps import training_sizes
from ..inference.placements import Placement
from ..inference.scoring import Scoring
from .slices import Slices

STACK_ELEMENTS = 1 << 22  # entries of X that are processed as one array: 32 MiB
SAME = 1e-10  # share of the scatter of all rows below which training rows may all be equal
OFFSET = 1e-8  # share of the squared means below which a scatter loses digits
UNEQUAL = 1e4  # weights that differ by a larger factor lose digits when moments are subtracted

Block = tuple[Array, Array]  # rows at some positions, and the largest entry at each


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
        return values, self._size(largest_of(X)[:, None])[:, 0, :]

    def at_all(self, X: Array, largest: Array) -> tuple[Array, Array]:
        """Values (B·q, o, m) for rows X (q, m, p) of q positions, each from all B models, as one
        product, and their magnitude (B·q, o); `largest` (q,) is the largest entry of X at each
        position.
        """
        xp, (B, p, o), (q, m, _) = namespace(X), self.coef.shape, X.shape
        coef = xp.reshape(xp.matrix_transpose(self.coef), (B * o, p))
        values = coef @ xp.reshape(X, (q * m, p)).T
        values += xp.reshape(self.intercept, (B * o, 1))
        values = xp.permute_dims(xp.reshape(values, (B, o, q, m)), (0, 2, 1, 3))
        size = xp.reshape(self._size(largest), (B * q, o))
        return xp.reshape(values, (B * q, o, m)), size

    def _size(self, largest: Array) -> Array:
        """max|x| Σ|w| + |b| (B, q, o), for the largest entries (q,), or (B, 1) of own rows."""
        xp = namespace(self.coef)
        total, bias = xp.sum(xp.abs(self.coef), axis=1), xp.abs(self.intercept)
        return largest[..., None] * total[:, None, :] + bias[:, None, :]


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
    scaled: bool  # whether columns are divided by their deviation on the training rows

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        splits: Sequence[Split],
        params: Mapping[str, Any] | None,
    ) -> LinearFolds | None:
        """None if the models are not linear, depend on more than fixed parameters, or have no such
        form in some fold. X is the array of any one position.
        """
        scaler, estimator = _scaler_and_model(estimator, params)
        folds = Placement(0, list(splits), X.shape[0])
        # each training set would have its own confounds
        confounded = taken(estimator, params)[0] is not None
        if confounded or not folds.deletes or not is_linear(estimator):
            return None
        if depends(estimator, X, params).route.name != "one":
            return None
        try:
            setup = accepted_setup(clone(estimator), X, y, fit_weights(estimator, params))
        # the error is raised where the position is processed on its own
        except RefusedError:
            return None
        readout, codes, weights = setup.readout, setup.data.codes, setup.data.weights
        sizes = (
            np.zeros((len(splits), 0))
            if codes is None
            else training_sizes([folds], codes[None], readout.n_classes, weights)[0]
        )
        few = min(len(train) for train, _ in splits) < 2 or min(len(test) for _, test in splits) < 1
        unequal = weights is not None and np.max(weights) > UNEQUAL * np.min(weights)
        # a scaler rounds to single precision; without a free bias the means matter
        single = namespace(X).isdtype(X.dtype, "real floating") and X.dtype != namespace(X).float64
        other = scaler is not None and (single or setup.specification.fit_intercept is not True)
        if few or unequal or other or not np.all(readout.is_regular(sizes)):
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
            scaled=scaler is not None and scaler.with_std,
        )

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
        Z, centre, unit, scatter = self._centred(X, weights)
        scale = None if weights is None else xp.sqrt(weights)
        scaled = Y if scale is None else scale * Y
        total = Moments.of(Z, scaled, scale)
        covered = xp.all(xp.isfinite(scatter), axis=-1)
        models = []
        for fold, (train, _) in enumerate(self.splits):
            # from the rows that train or those that do not, whichever are fewer
            fewer = len(train) < len(self.deleted[fold])
            rows = train if fewer else self.deleted[fold]
            part = xp.take(Z, index_like(rows, Z), axis=1)
            own = Moments.of(part, take(scaled, rows), None if scale is None else take(scale, rows))
            moments = own if fewer else total.without(own)
            A, C, YY = moments.normal(self.fit_intercept is True)
            spread = xp.linalg.diagonal(A)
            penalty = self.mu * self._squared_deviation(spread, moments.weight)
            w = xp.linalg.solve(A + penalty[:, None, :] * eye_like(int(A.shape[-1]), A), C)
            E = YY - xp.matrix_transpose(C) @ w
            evidence = Evidence(E, xp.zeros_like(E[:, 0, :1]) + asarray_like(self.sizes[fold], E))
            clear = INACCURATE * self.readout.explained(evidence) >= 1e3 * EPSILON
            covered = covered & self._differ(spread, scatter) & clear
            coef = w / unit[:, :, None]
            mean = moments.sum_Z / moments.weight * unit + centre[:, 0, :]
            mean_Y = moments.sum_Y / moments.weight
            models.append(self._model(coef, mean, mean_Y, evidence))
        return to_numpy(covered), models

    def _centred(self, X: Array, weights: Array | None) -> tuple[Array, Array, Array, Array]:
        """Rows minus their means (B, 1, p), which are zero if the bias is not free, in units (B, p)
        that are one unless columns are scaled, and the scatter (B, p) of columns: infinite, with
        rows set to zero, if digits would be lost.
        """
        xp = namespace(X)
        w = xp.ones_like(X[0, :, :1]) if weights is None else weights
        mean = (xp.matrix_transpose(w) @ X) / xp.sum(w)
        centre = mean if self.fit_intercept is True else xp.zeros_like(mean)
        Z = X - centre
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = xp.sum((w * Z) * Z, axis=1)
            offset = xp.sum(w) * centre[:, 0, :] ** 2
            certain = xp.sum(scatter, axis=-1) > OFFSET * xp.sum(offset, axis=-1)
            unit = xp.ones_like(scatter)
            if self.scaled:
                certain = xp.all((scatter > OFFSET * offset) | (scatter + offset == 0.0), axis=-1)
                unit = xp.sqrt(self._squared_deviation(scatter, X.shape[1]))
                Z, scatter = Z / unit[:, None, :], scatter / unit**2
            size = xp.sum(scatter, axis=-1)
            certain = certain & (1e3 * machine_epsilon(Z) * size <= INACCURATE * self.mu)
        if not bool(xp.all(certain)):
            Z = xp.where(certain[:, None, None], Z, xp.zeros_like(Z))
            centre = xp.where(certain[:, None, None], centre, xp.zeros_like(centre))
            unit = xp.where(certain[:, None], unit, xp.ones_like(unit))
            scatter = xp.where(certain[:, None], scatter, xp.inf * xp.ones_like(scatter))
        return Z, centre, unit, scatter

    def _squared_deviation(self, scatter: Array, weight: float) -> Array:
        """The squares of what columns (…, p) are divided by: a constant one by 1."""
        xp = namespace(scatter)
        ones = xp.ones_like(scatter)
        return xp.where(scatter > 0.0, scatter / weight, ones) if self.scaled else ones

    def _differ(self, spread: Array, scatter: Array) -> Array:
        """Whether the training rows of each position differ; if columns are scaled, in every column
        that is not constant.
        """
        xp = namespace(spread)
        if not self.scaled:
            return xp.sum(spread, axis=-1) > SAME * xp.sum(scatter, axis=-1)
        differ = (spread > SAME * scatter) | (scatter == 0.0)
        return xp.all(differ, axis=-1) & xp.any(scatter > 0.0, axis=-1)

    def _model(self, coef: Array, mean: Array, mean_Y: Array, evidence: Evidence) -> LinearModel:
        """Outputs of coefficients (B, p, t), with the means (B, p) and (t,) of training rows and
        targets.
        """
        xp = namespace(coef)
        intercept = xp.zeros_like(coef[:, 0, :])
        if self.fit_intercept == "penalized":
            coef, intercept = coef[:, :-1, :], coef[:, -1, :]
        elif self.fit_intercept is True:
            intercept = mean_Y - (mean[:, None, :] @ coef)[:, 0, :]
        rule = self.readout.rule(evidence)
        if rule is None:
            return LinearModel(coef, intercept)
        bias = (intercept[:, None, :] @ rule.weights)[:, 0, :] + rule.offsets
        size = (xp.abs(intercept)[:, None, :] @ xp.abs(rule.weights))[:, 0, :]
        return LinearModel(coef @ rule.weights, settled_sum(bias, size + xp.abs(rule.offsets)))


@dataclass(frozen=True)
class StackedScores:
    """Scores of the models of many positions: at their own position (folds,) or, with `tested`, at
    all positions (positions, folds).

    `tested` gives the test rows of a fold at blocks of positions.
    """

    folds: LinearFolds
    scoring: Scoring
    tested: Callable[[int], Iterable[Block]] | None = None

    def __call__(self, slices: Slices) -> Sequence[np.ndarray | None]:
        """None where a position is not covered."""
        found: list[np.ndarray | None] = [None] * len(slices)
        for numbers, X in slices.stacks(STACK_ELEMENTS):
            if X.shape[2] < len(self.folds.Y):
                covered, models = self.folds.models(X)
                by_fold = [self._scores(fold, model, X) for fold, model in enumerate(models)]
                scores = np.stack(by_fold, axis=-1)
                for number in np.flatnonzero(covered):
                    found[numbers[number]] = scores[number]
        return found

    def _scores(self, fold: int, model: LinearModel, X: Array) -> np.ndarray:
        """Scores (B,) or (B, positions) of a fold's models; X (B, n, p) are their positions."""
        if self.tested is None:
            rows = index_like(self.folds.splits[fold][1], X)
            return self._read(fold, *model.at_own(namespace(X).take(X, rows, axis=1)))
        blocks = [
            self._read(fold, *model.at_all(rows, largest)).reshape(X.shape[0], -1)
            for rows, largest in self.tested(fold)
        ]
        return np.concatenate(blocks, axis=1)

    def _read(self, fold: int, values: Array, size: Array) -> np.ndarray:
        outputs = self.folds.outputs(fold, values, size)
        return self.scoring.of_outputs([outputs])[self.scoring.measures[0].name]


def _scaler_and_model(
    estimator: Any, params: Mapping[str, Any] | None
) -> tuple[StandardScaler | None, Any]:
    """The StandardScaler of a pipeline of two steps, and its model; None and the estimator of all
    others.
    """
    if type(estimator) is Pipeline and len(estimator.steps) == 2 and not params:
        first, last = (step for _, step in estimator.steps)
        if type(first) is StandardScaler:
            return first, last
    return None, estimator


def is_linear(estimator: Any) -> bool:
    """Whether the estimator is a ridge on its features."""
    own = is_model(estimator) and estimator.landmarks is None
    return bool(own and word(estimator.kernel) == "linear" and estimator.penalty == "function")
