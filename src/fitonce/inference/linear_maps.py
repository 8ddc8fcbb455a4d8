r"""The models of every fold for a linear kernel and fewer features than rows: for many labelings of
the rows X (n, p) of one position, or for one labeling at many positions, in the same arrays.

With a column of ones z_0 for a free bias, the moments of a training set are those of all rows minus
those of the left-out rows, stacked for positions and folds:

    A = ZᵀWZ,   C = ZᵀWY,   w = (A + μD²)⁻¹C,   E = YᵀWY - Cᵀw,

with D = 1, but for the column of ones, where it is 0. E is the residual scatter, which determines
the LDA rule.

A StandardScaler before the model divides each column by its standard deviation d on the training
rows, d² = (A_jj - A_j0²/A_00)/A_00. For the columns as given, this is a penalty for each of them,
with the same E: D = d.

Positions with numerical problems, or whose training rows are all equal, are not covered, because
they have to issue warnings. Exact otherwise. Cost of a placement of k folds: k p³ and, for each
labeling, k p² + 2 n p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ..core.arrays import Array, asarray_like, eye_like, index_like, namespace, to_numpy
from ..core.blocked import symmetric_product
from ..core.readout import Evidence, Readout
from ..core.refused import RefusedError
from ..core.spectrum import machine_epsilon
from ..core.ties import EPSILON, ROUNDING
from ..crossval.confounds import taken
from ..crossval.depends import depends, fit_weights
from ..crossval.metrics import Outputs, size_of_targets
from ..estimators.accuracy import INACCURATE
from ..estimators.fitted import is_model
from ..estimators.parameter_values import word
from ..estimators.setup import accepted_setup
from ..estimators.validation import is_foreign_array
from .deletion_maps import kept_targets, regular_labelings, training_sizes
from .per_fold_maps import TERMS, PlacementMaps
from .placements import FoldRun, Placement
from .question import Question

BLOCK_BYTES = 6 << 20  # of the arrays of a block of labelings: what a processor's cache holds
SAME = 1e-6  # share of the scatter of all rows below which that of training rows loses digits
OFFSET = 1e-8  # share of the squared means below which a scatter loses digits
UNEQUAL = 1e4  # weights that differ by a larger factor lose digits when moments are subtracted


@dataclass(frozen=True)
class LinearModel:
    """A linear model at fixed parameters, the observed folds, and the labels (1, n) or numbers
    (1, t, n) given.
    """

    readout: Readout
    mu: float
    fit_intercept: bool | str
    scaled: bool  # whether columns are divided by their deviation on the training rows
    weights: np.ndarray | None
    values: np.ndarray
    folds: Placement

    @classmethod
    def of(
        cls, estimator: Any, X: Any, y: Any, folds: Placement, params: Mapping[str, Any] | None
    ) -> LinearModel | None:
        """None if the estimator is not linear, depends on more than fixed parameters, or refuses
        these rows (n, p); and where there are fewer of them than features, or a fold has no such
        form.
        """
        scaler, estimator = _scaler_and_model(estimator, params)
        if not is_linear(estimator) or not folds.deletes or X.shape[1] >= X.shape[0]:
            return None
        # each training set would have its own confounds
        confounded = taken(estimator, params)[0] is not None
        if confounded or depends(estimator, X, params).route.name != "one":
            return None
        try:
            setup = accepted_setup(clone(estimator), X, y, fit_weights(estimator, params))
        except RefusedError:  # the error is raised where the position is processed on its own
            return None
        free, scaled = setup.specification.fit_intercept, scaler is not None and scaler.with_std
        codes, weights = setup.data.codes, setup.data.weights
        unequal = weights is not None and np.max(weights) > UNEQUAL * np.min(weights)
        # a scaler rounds to single precision; without a free bias the means matter
        xp = namespace(X)
        single = xp.isdtype(X.dtype, "real floating") and X.dtype != xp.float64
        if unequal or (scaler is not None and (single or free is not True)):
            return None
        values = (setup.data.targets.T if codes is None else codes)[None]
        mu = float(estimator.alpha)
        model = cls(setup.readout, mu, free, scaled, weights, values, folds)
        return model if regular_labelings(setup.readout, [folds], model.sizes).all() else None

    @cached_property
    def sizes(self) -> np.ndarray | None:
        """Class sizes (1, k, c) of the training sets; None for numbers."""
        if not self.readout.n_classes:
            return None
        return training_sizes([self.folds], self.values, self.readout.n_classes, self.weights)


@dataclass(frozen=True)
class LinearFits:
    """The models of a run of k folds for B labelings at S positions: the test rows (S, k, m, p),
    coefficients (S, k, p, B·t), the residual scatter (S·B, k, t, t) where the readout needs it, and
    whether the training rows of a position differ (S, k).
    """

    run: FoldRun
    tested: Array
    coef: Array
    scatter: Array | None
    differ: Array


class LinearMaps(PlacementMaps):
    """The folds of a linear model at S positions X (S, n, p), in float64.

    Columns are Z = (X - centre)/unit, for accuracy only, and a column of ones if the bias is free.
    `certain` (S,) says where no digits are lost.
    """

    route = "per-fold"

    def __init__(self, model: LinearModel, X: Array, max_bytes: int = BLOCK_BYTES) -> None:
        xp = namespace(X)
        self.model, self.readout, self.weights = model, model.readout, model.weights
        self.block_bytes = min(BLOCK_BYTES, max_bytes)
        ones = xp.ones_like(X[:, :, :1])
        if model.fit_intercept == "penalized":
            X = xp.concat([X, ones], axis=2)
        w = ones[0, ...] if self.weights is None else asarray_like(self.weights[:, None], X)
        mean = (xp.matrix_transpose(w) @ X) / xp.sum(w)
        self.free = model.fit_intercept is True
        self.centre = mean if self.free else xp.zeros_like(mean)
        Z, self.root = X - self.centre, xp.sqrt(w)
        Z = xp.concat([Z, ones], axis=2) if self.free else Z
        with np.errstate(over="ignore", invalid="ignore"):
            moments = symmetric_product(Z if self.weights is None else self.root * Z)
            scatter = xp.linalg.diagonal(moments)[:, : X.shape[2]]
            offset = xp.sum(w) * self.centre[:, 0, :] ** 2
            certain = xp.sum(scatter, axis=-1) > OFFSET * xp.sum(offset, axis=-1)
            self.unit = xp.ones_like(Z[:, 0, :])
            if model.scaled:
                certain = xp.all((scatter > OFFSET * offset) | (scatter + offset == 0.0), axis=-1)
                unit = xp.sqrt(_or_one(scatter / X.shape[1]))
                self.unit = xp.concat([unit, ones[:, 0, :]], axis=1)
                Z = Z / self.unit[:, None, :]
                moments = moments / (self.unit[:, :, None] * self.unit[:, None, :])
            self.scatter = xp.linalg.diagonal(moments)[:, : X.shape[2]]
            size = xp.sum(self.scatter, axis=-1)
            certain = certain & (1e3 * machine_epsilon(Z) * size <= INACCURATE * model.mu)
        self.certain = certain & xp.isfinite(size)
        if not bool(xp.all(self.certain)):
            there = self.certain[:, None, None]
            Z = xp.where(there, Z, xp.zeros_like(Z))
            moments = xp.where(there, moments, eye_like(int(Z.shape[2]), Z))
        self.Z, self.like, self.moments = Z, Z, moments

    # ---- fold maps -------------------------------------------------------------------------------

    def block_size(self, placement: Placement) -> int:
        """Labelings that travel together: what a processor's cache holds."""
        each = 6 * len(placement.order) + 3 * len(placement.deleted) * int(self.Z.shape[2])
        return max(1, self.block_bytes // (8 * each * self.readout.n_kept))

    def at(self, placement: Placement, values: Array, sizes: np.ndarray | None) -> list[Outputs]:
        """Outputs (S·B, …) by run of labelings with these folds, which share their systems."""
        return self.outputs_of(placement, self.fits(placement, values), values, sizes)

    # ---- models ----------------------------------------------------------------------------------

    def fits(self, placement: Placement, values: Array) -> list[LinearFits]:
        """The models of labels (B, n) or numbers (B, t, n), run by run."""
        Y = kept_targets(self.readout, values, self.like) * self.root[:, 0]
        xp, (B, t, n) = namespace(Y), Y.shape
        right = xp.reshape(Y, (B * t, n)).T
        C = xp.matrix_transpose(self.Z) @ (right * self.root)
        return [self._fit(placement, run, Y, right, C) for run in placement.runs]

    def _fit(
        self, placement: Placement, run: FoldRun, Y: Array, right: Array, products: Array
    ) -> LinearFits:
        """The models of a run, given all rows' targets Y (B, t, n), the same as columns (n, B·t),
        and ZᵀWY (S, p, B·t).
        """
        xp, (B, t, _) = namespace(Y), Y.shape
        rows = run.rows(placement)
        given = _of_rows(self.Z, rows, 1)
        Z = given if self.weights is None else given * _of_rows(self.root, rows, 0)
        Zt = xp.matrix_transpose(Z)
        A = self.moments[:, None, :, :] - Zt @ Z
        C = products[:, None, :, :] - Zt @ _of_rows(right, rows, 0)
        spread = xp.linalg.diagonal(A)
        if self.free:
            spread = spread[..., :-1] - A[..., :-1, -1] ** 2 / A[..., -1:, -1]
        known = spread > SAME * self.scatter[:, None, :]
        spread = xp.where(known, spread, xp.zeros_like(spread))
        penalty = xp.ones_like(spread)
        if self.model.scaled:
            penalty = _or_one(spread / A[..., -1:, -1])
        if self.free:
            penalty = xp.concat([penalty, xp.zeros_like(penalty[..., :1])], axis=-1)
        eye = eye_like(int(A.shape[-1]), A)
        coef = xp.linalg.solve(A + self.model.mu * penalty[..., None] * eye, C)
        scatter = None
        if self.readout.needs_scatter:
            left = xp.permute_dims(_of_rows(Y, rows, 2), (0, 2, 1, 3))
            E = (Y @ xp.matrix_transpose(Y))[:, None, :, :] - left @ xp.matrix_transpose(left)
            shape = (*C.shape[:3], B, t)
            explained = xp.reshape(C, shape)[..., None] * xp.reshape(coef, shape)[..., None, :]
            E = E - xp.permute_dims(xp.sum(explained, axis=2), (0, 2, 1, 3, 4))
            scatter = xp.reshape(E, (-1, *E.shape[2:]))
        return LinearFits(run, given[:, :, : run.n_test, :], coef, scatter, self._differ(spread))

    def _differ(self, spread: Array) -> Array:
        """Whether the training rows (S, k) differ, given the scatter (S, k, p) of their columns; if
        these are scaled, in every column that is not constant.
        """
        xp, whole = namespace(spread), self.scatter[:, None, :]
        if not self.model.scaled:
            return xp.sum(spread, axis=-1) > SAME * xp.sum(whole, axis=-1)
        differ = (spread > SAME * whole) | (whole == 0.0)
        return xp.all(differ, axis=-1) & xp.any(whole > 0.0, axis=-1)

    def covered(self, fits: Sequence[LinearFits]) -> np.ndarray:
        """Where (S,) nothing of the models of the labels given is in doubt."""
        covered = to_numpy(self.certain)
        for part in fits:
            covered = covered & to_numpy(part.differ).all(axis=1)
            evidence = self.evidence(part, self.model.sizes)
            if evidence is not None:
                share = to_numpy(self.readout.explained(evidence))
                covered = covered & (INACCURATE * share >= 1e3 * EPSILON).all(axis=1)
        return covered

    def always_differ(self) -> bool:
        """Whether the training rows of the only position differ wherever the folds lie: of each
        column, the rows left that differ least are neighbors in order.
        """
        left = len(self.model.values.T) - max(map(len, self.model.folds.deleted))
        columns = np.sort(to_numpy(self.Z)[0, :, : self.scatter.shape[1]], axis=0)
        sums = np.cumsum(np.stack([columns, columns**2]), axis=1)
        sums = np.concatenate([0.0 * sums[:, :1], sums], axis=1)
        total, squares = sums[:, left:] - sums[:, :-left]
        least = asarray_like(np.min(squares - total**2 / left, axis=0), self.like)
        return bool(self._differ(least[None, None, :])[0, 0])

    # ---- what they give --------------------------------------------------------------------------

    def outputs_of(
        self,
        placement: Placement,
        fits: Sequence[LinearFits],
        values: Array,
        sizes: np.ndarray | None,
    ) -> list[Outputs]:
        """Outputs (S·B, …) of these models for the test rows of their folds, run by run."""
        xp, outputs = namespace(self.Z), []
        largest = xp.maximum(xp.max(self.Z, axis=1), -xp.min(self.Z, axis=1))[:, None, :, None]
        for part in fits:
            rows = part.run.rows(placement)[:, : part.run.n_test]
            coef = xp.matrix_transpose(part.coef)
            P = self._by_labeling(coef @ xp.matrix_transpose(part.tested))
            size = self._by_labeling(xp.abs(coef) @ largest)[..., 0]
            seen = _of_rows(values, rows, values.ndim - 1)
            seen = namespace(seen).permute_dims(seen, (0, 2, 1, 3)) if seen.ndim == 4 else seen
            seen = namespace(seen).broadcast_to(seen, (P.shape[0], *seen.shape[1:]))
            outputs.append(self.read(P, size, seen, self.evidence(part, sizes)))
        return outputs

    def _by_labeling(self, A: Array) -> Array:
        """(S, k, B·t, m) as (S·B, k, t, m)."""
        xp, (S, k, _, m) = namespace(A), A.shape
        A = xp.reshape(A, (S, k, -1, self.readout.n_kept, m))
        return xp.reshape(xp.permute_dims(A, (0, 2, 1, 3, 4)), (-1, k, self.readout.n_kept, m))

    def evidence(self, part: LinearFits, sizes: np.ndarray | None) -> Evidence | None:
        """What the readout takes of the training sets (S·B, k), with class sizes (B, k, c)."""
        if part.scatter is None or sizes is None:
            return None
        run, E = part.run, part.scatter
        own = asarray_like(sizes[:, run.first : run.first + run.count, :], E)
        return Evidence(E, namespace(E).broadcast_to(own, (*E.shape[:2], own.shape[2])))

    def read(self, P: Array, size: Array, seen: Array, evidence: Evidence | None) -> Outputs:
        """Outputs of predicted targets P (N, k, t, m), summed from terms of this size (N, k, t)."""
        unit = size_of_targets(P, None if self.readout.n_classes else seen) + TERMS * size
        values, size = self.readout.read_kept(P, unit, evidence, definite=True)
        return Outputs(values, seen, ROUNDING * size)

    def given(self, part: LinearFits) -> tuple[Array, Array]:
        """Coefficients (S, k, p, t) and intercepts (S, k, t) of one labeling, for rows as they were
        given.
        """
        xp, p = (
            namespace(part.coef),
            self.centre.shape[2] - (self.model.fit_intercept == "penalized"),
        )
        coef = part.coef[:, :, :p, :] / self.unit[:, None, :p, None]
        if part.coef.shape[2] == p:
            return coef, xp.zeros_like(coef[:, :, 0, :])
        moved = (self.centre[:, None, :, :p] @ coef)[:, :, 0, :]
        return coef, part.coef[:, :, -1, :] - moved


def linear_maps(
    question: Question, params: Mapping[str, Any] | None, max_bytes: int
) -> LinearMaps | None:
    """The maps of a question; None where they do not cover its labels and any of its training sets,
    or do not fit into the memory.
    """
    X = question.X if is_foreign_array(question.X) else np.asarray(question.X)
    xp, folds = namespace(X), question.observed
    numeric = X.ndim == 2 and xp.isdtype(X.dtype, "numeric")
    fits = numeric and 24 * len(folds.splits) * X.shape[1] ** 2 <= max_bytes
    if not fits or question.confounds is not None:
        return None
    model = LinearModel.of(question.estimator, X, question.given_y, folds, params)
    if model is None:
        return None
    maps = LinearMaps(model, xp.astype(X, xp.float64)[None, ...], max_bytes)
    covered = maps.covered(maps.fits(folds, model.values)).all() and maps.always_differ()
    return maps if covered else None


def _of_rows(A: Array, rows: np.ndarray, axis: int) -> Array:
    xp = namespace(A)
    taken_ = xp.take(A, index_like(rows.ravel(), A), axis=axis)
    return xp.reshape(taken_, (*A.shape[:axis], *rows.shape, *A.shape[axis + 1 :]))


def _or_one(squares: Array) -> Array:
    """Squared deviations of columns, with that of a constant one as 1."""
    xp = namespace(squares)
    return xp.where(squares > 0.0, squares, xp.ones_like(squares))


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
