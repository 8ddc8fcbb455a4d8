r"""Fewer rows for training: means of rows in kernel space, or a random part of the rows.

**Averages.** The rows of a block j, all of one class, are replaced by their mean in the feature
space of the kernel. With A (m, n) the matrix of means, the kernel of the averages is A K Aᵀ, that
of rows with averages K Aᵀ, and a model α of the averages is Aᵀα on the rows:

    f(x) = k(x, X) Aᵀα + b.

With s the square roots of the averages' weights, Q₀ = s/‖s‖ and a = α/s the coefficients that the
smoother of the averages gives to scaled targets Y,

    f(x) = P(x) a + Q₀ᵀY/‖s‖,       P(x) = s∘(k(x, X)Aᵀ) - (K_s Q₀)ᵀ/‖s‖,      K_s = diag(s) A K Aᵀ diag(s).

**Held out.** A row is tested by the model without its block. Without block j the targets are Y -
e_jρ_j, ρ the held-out residuals of the averages, and for the dual norm a_j is held at zero by a
force ν_j (see `core.smoother`); f is linear in both, so with a = M Y

    f₋ⱼ(x) = f(x) - (P(x)M_j + Q₀ⱼ/‖s‖) ρ_j - P(x)D_j ν_j

where M = (G + μ)⁻¹ and no D for the function norm, M = Bᵀ for the dual norm. All of it for all μ is
one product of n×m with m×#μ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import check_random_state, gen_batches, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, is_numpy, namespace, take
from ..core.discriminant import scatter, scatter_without, scatter_without_each
from ..core.features import Deletions
from ..core.holdout import complement
from ..core.smoother import DualNorm, Fitted, FunctionNorm, HeldOut, unpenalised_coef
from ..core.spectrum import machine_epsilon
from ..kernels import Kernel
from ..rows.blocks import is_rows
from .base import Folds, KernelModel, Prepared, Training
from .fisher import KernelFisherDiscriminant, Readout
from .problem import FitIntercept, Problem, Solution, Without, decompose, row_scale_of
from .svc import LeastSquaresSVC
from .validation import OVERFLOW, check_options, check_square
from .verification import Verification

KERNEL_ELEMENTS = 1 << 23  # kernel entries computed at a time


# ---- the problem of averages ---------------------------------------------------------------------


@dataclass(frozen=True)
class AveragedProblem(Problem):
    """Averages in the place of rows: `smoother`, `row_scale` and `targets` are theirs, `X` and
    held-out values are the rows'.

    `block` (n,) numbers the average that a row belongs to, A (m, n) makes means of rows, P (n, m)
    is as in the module's docstring. For the linear kernel `means` (m, p) are the averages
    themselves, less the row `centre`.
    """

    block: np.ndarray
    A: Any
    P: Array
    means: Array | None
    centre: Array | None

    @property
    def n_rows(self) -> int:
        return len(self.block)

    @cached_property
    def _norm(self) -> Array:
        """‖s‖, the root of the total weight."""
        xp = namespace(self.targets)
        return xp.sqrt(xp.sum(self.row_weights))

    def _bias_part(self, Y: Array) -> Array:
        """Q₀ᵀY/‖s‖ (t,)."""
        return namespace(Y).sum(self.smoother.Q0.T @ Y, axis=0) / self._norm

    def values(self, fitted: Fitted, mu: float, rows: np.ndarray) -> Array:
        """f (k, t) at some rows."""
        return take(self.P, rows) @ self.smoother.dual_coef(fitted, mu) + self._bias_part(fitted.Y)

    def solution(self, fitted: Fitted, mu: float) -> Solution:
        """The model on the rows: dual_coef = Aᵀ(s∘a)."""
        Y, dual = fitted.Y, self.smoother.dual_coef(fitted, mu)
        xp = namespace(Y)
        alpha = self.row_scale * dual
        coef = (
            None
            if self.means is None
            else self.means.T @ (self.row_scale * self._dual_inside(Y, dual, mu))
        )
        if self.fit_intercept == "penalized":
            intercept = xp.sum(alpha, axis=0)
        elif not self.fit_intercept:
            intercept = xp.zeros_like(alpha[0, :])
        else:
            intercept = unpenalised_coef(self.smoother, Y, dual)[0, :] / self._norm
        if coef is not None and self.centre is not None:
            intercept = intercept - self.centre @ coef
        return Solution(self.A.T @ alpha, intercept, coef)

    def _dual_inside(self, Y: Array, dual: Array, mu: float) -> Array:
        """Of α the part inside the range of the kernel.

        What lies outside adds rounding only, magnified by 1/μ.
        """
        if not isinstance(self.smoother, FunctionNorm):
            return dual
        spectrum = self.smoother.spectrum
        return spectrum.apply(1.0 / (spectrum.eigenvalues + mu), 0.0, Y)

    def held_out_targets(
        self, mus: np.ndarray, deletions: Deletions | None
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Held-out targets (m, k, t) of single rows, by the models without their blocks."""
        if deletions is None:
            return (
                self._without_own_block(np.asarray(mus, dtype=float)),
                np.arange(self.n_rows),
                self.block,
            )
        rows = np.concatenate([deleted[tested] for deleted, tested in deletions])
        fold = np.repeat(np.arange(len(deletions)), [len(tested) for _, tested in deletions])
        xp = namespace(self.targets)
        return xp.stack([self._held_out_at(float(mu), deletions) for mu in mus]), rows, fold

    def _held_out_at(self, mu: float, deletions: Deletions) -> Array:
        fitted = self.fit(mu)
        values = []
        for deleted, tested in deletions:
            without = self.without(fitted, np.unique(self.block[deleted]), mu)
            values.append(self.values(without.refitted, mu, deleted[tested]))
        return namespace(fitted.Y).concat(values, axis=0)

    def _without_own_block(self, mus: np.ndarray) -> Array:
        """Every row by the model without its block, for all mu at once: (m, n, t)."""
        Y, Q0 = self.scaled_targets, self.smoother.Q0
        xp = namespace(Y)
        held_out = self.decomposition.leave_one_out(Y, mus)
        response = (
            self._function_norm(mus, Y)
            if isinstance(self.smoother, FunctionNorm)
            else self._dual_norm(mus, Y)
        )
        own = take(xp.sum(Q0, axis=1, keepdims=True), self.block)[:, 0] / self._norm
        parts = []
        for j in range(len(mus)):
            value = response.values[j, ...] + self._bias_part(Y)
            value = value - (response.to_targets[:, j] + own)[:, None] * take(
                held_out.residual[j, ...], self.block
            )
            if response.to_forces is not None and held_out.force is not None:
                value = value - response.to_forces[:, j][:, None] * take(
                    held_out.force[j, ...], self.block
                )
            parts.append(value)
        return xp.stack(parts)

    def _function_norm(self, mus: np.ndarray, Y: Array) -> _Response:
        """P(G + μ)⁻¹Y, and P(x)·(G + μ)⁻¹e_j at each row for its own block."""
        xp = namespace(Y)
        spectrum = cast(FunctionNorm, self.smoother).spectrum
        eigenvalues = spectrum.eigenvalues[:, None]
        inverse = 1.0 / (eigenvalues + asarray_like(mus, Y))
        if (
            spectrum.smallest >= 0
        ):  # directions without any kernel add rounding only, magnified by 1/μ
            noise = spectrum.n_samples * machine_epsilon(Y) * spectrum.largest
            inverse = xp.where(eigenvalues > noise, inverse, xp.zeros_like(inverse))
        PV = self.P @ spectrum.V
        values = PV @ (inverse.T[:, :, None] * (spectrum.V.T @ Y))
        return _Response(values, (PV * take(spectrum.V, self.block)) @ inverse)

    def _dual_norm(self, mus: np.ndarray, Y: Array) -> _Response:
        """P BᵀY, P(x)·Bᵀe_j and P(x)·De_j, with B and D as functions of the kernel plus a term of
        the bias.
        """
        xp = namespace(Y)
        smoother = cast(DualNorm, self.smoother)
        operators = smoother._operators(mus)
        V = smoother.spectrum.V
        products = (self.P @ V) * take(V, self.block)
        PW = self.P @ operators.W_S  # (#mu, n, u)
        E, W = (
            xp.stack([take(matrix[j, ...], self.block) for j in range(len(mus))])
            for matrix in (operators.E, operators.W)
        )
        to_targets = products @ operators.F - xp.sum(PW * E, axis=2).T
        to_forces = products @ operators.R + xp.sum(PW * W, axis=2).T
        return _Response(self.P @ operators.dual(Y), to_targets, to_forces)


@dataclass(frozen=True)
class _Response:
    """P a (#mu, n, t), and how f at each row answers to its own block's target and
    force (n, #mu).
    """

    values: Array
    to_targets: Array
    to_forces: Array | None = None


def averaged_problem(
    X: Array,
    kernel: Kernel,
    penalty: str,
    fit_intercept: FitIntercept,
    weights: np.ndarray | None,
    targets: np.ndarray,
    block: np.ndarray,
) -> AveragedProblem:
    """The problem of the means of blocks of rows. Cost.

    N² kernel entries, never all in memory, and a decomposition of m×m.
    """
    n, m = len(block), int(block.max()) + 1
    w = np.ones(n) if weights is None else weights
    total = np.bincount(block, weights=w, minlength=m)
    like = np.empty(0) if sp.issparse(X) else X
    A = _means(block, w / total[block], m, like)
    row_scale = cast(Array, row_scale_of(total, X))
    first = np.unique(block, return_index=True)[1]
    Y = asarray_like(targets[first], like)
    means = centre = None
    if kernel.linear:
        means = A @ X
        if penalty == "function" and fit_intercept is True and not sp.issparse(X):
            centre = namespace(means).sum(row_scale**2 * means, axis=0) / float(total.sum())
            means, X = means - centre, X - centre
        smoother = decompose(means, kernel, penalty, fit_intercept, row_scale)
        cross = X @ means.T
        cross = cross.toarray() if sp.issparse(cross) else cross
    else:
        cross = _kernel_with_averages(X, kernel, A)
        if not bool(namespace(cross).all(namespace(cross).isfinite(cross))):
            raise ValueError(OVERFLOW)
        K = A @ cross
        smoother = decompose(
            0.5 * (K + K.T), Kernel("precomputed"), penalty, fit_intercept, row_scale
        )
    if fit_intercept == "penalized":
        cross = cross + 1.0
    P = cross * row_scale.T
    if fit_intercept is True:
        P = P - smoother.KQ0.T / float(np.sqrt(total.sum()))
    rows = None if kernel.precomputed else (X if centre is None else X + centre)
    return AveragedProblem(
        kernel, rows, smoother, row_scale, fit_intercept, Y, block, A, P, means, centre
    )


def _means(block: np.ndarray, share: np.ndarray, m: int, like: Array) -> Any:
    """A (m, n): sparse on the host."""
    n = len(block)
    A = sp.csr_matrix((share, (block, np.arange(n))), shape=(m, n))
    return A if is_numpy(like) else asarray_like(A.toarray(), like)


def _kernel_with_averages(X: Array, kernel: Kernel, A: Any) -> Array:
    """K Aᵀ (n, m), a few rows of K at a time."""
    if kernel.precomputed:
        check_square(X)
        return (A @ X.T).T + 0.0
    step = max(1, KERNEL_ELEMENTS // X.shape[0])
    blocks = [(A @ kernel(X[rows, :], X).T).T for rows in gen_batches(X.shape[0], step)]
    return blocks[0] if len(blocks) == 1 else namespace(blocks[0]).concat(blocks, axis=0)


def draw_blocks(strata: np.ndarray, size: int, random: np.random.RandomState) -> np.ndarray:
    """Blocks of at least `size` rows, less where a stratum has fewer: the number (n,) of each row's
    block.

    A stratum of k rows becomes max(1, k // size) blocks drawn at random, whose sizes differ by at
    most one.
    """
    block = np.empty(len(strata), dtype=int)
    start = 0
    for stratum in np.unique(strata):
        rows = random.permutation(np.flatnonzero(strata == stratum))
        for part in np.array_split(rows, max(1, len(rows) // size)):
            block[part] = start
            start += 1
    return block


# ---- estimators whose rows are averaged ----------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """How blocks are drawn."""

    n_average: int
    by: str
    random_state: Any


class _Averaged(KernelModel):
    """What an estimator does otherwise when blocks of its rows are averaged.

    `_plan` is set before `fit`.
    """

    _plan: _Plan
    _block: np.ndarray  # of the active rows

    def _folds(self, training: Training) -> Folds | None:
        folds = super()._folds(training)
        self._block = self._draw(training, folds)
        return folds

    def _draw(self, training: Training, folds: Folds | None) -> np.ndarray:
        """Blocks within classes, within groups where asked for, and never across a
        split of `cv`.
        """
        plan, active = self._plan, training.active
        self._prepare(training)  # complains of labels that are none
        columns = [np.unique(training.y, return_inverse=True)[1].reshape(-1, 1)]
        if plan.by == "group":
            if training.groups is None:
                raise ValueError('by="group" needs groups: pass them to fit, or use by="class".')
            columns.append(np.unique(training.groups, return_inverse=True)[1].reshape(-1, 1))
        together = _strata(np.hstack(columns))[active]
        strata = together
        if folds is not None:
            member = np.zeros((training.n_samples, len(folds)), dtype=np.int8)
            for number, (train, test) in enumerate(folds):
                member[train, number], member[test, number] = 1, 2
            strata = _strata(np.column_stack([_strata(np.hstack(columns)), _strata(member)]))[
                active
            ]
        block = draw_blocks(strata, plan.n_average, check_random_state(plan.random_state))
        if (
            len(np.unique(block)) == len(active)
            and len(np.unique(together)) < len(active)
            and plan.n_average > 1
        ):
            raise ValueError(
                "no two rows can be averaged: blocks never straddle a split, and these splits "
                "part all rows of a class. Use cv=None, which "
                "leaves out one block at a time, or fewer splits."
            )
        n_classes = len(np.unique(training.y[active]))
        if block.max() + 1 <= n_classes and n_classes > 1:
            raise ValueError(
                f"n_average={plan.n_average} leaves {block.max() + 1} averages of {n_classes} "
                "classes: there must be more averages than "
                "classes. Use a smaller n_average."
            )
        return block

    def _problem(
        self, prepared: Prepared, kernel: Kernel, penalty: str, mu: float | None = None
    ) -> Problem:
        return averaged_problem(
            prepared.X,
            kernel,
            penalty,
            self._intercept_option,
            prepared.weights,
            prepared.targets,
            self._block,
        )

    def _held_out_outputs(self, problem: Problem, fitted: Fitted, mu: float) -> Array:
        """The main output of every row from the model without its block, or by `cv`."""
        training, folds = self._kept.training, self._kept.folds
        if folds is not None:
            return self._averaged(
                training, [self._fold_outputs(problem, fitted, mu, *fold) for fold in folds], folds
            )
        values = problem.held_out_targets(np.asarray([mu]), None)[0][0, ...]
        held_out = problem.decomposition.leave_one_out(problem.scaled_targets, np.asarray([mu]))
        force = None if held_out.force is None else held_out.force[0, ...]
        outputs = self._read_each(
            cast(AveragedProblem, problem),
            fitted,
            HeldOut(held_out.residual[0, ...], force),
            values,
        )
        return self._with_inactive(training, outputs)

    def _read_each(
        self, problem: AveragedProblem, fitted: Fitted, held_out: HeldOut, values: Array
    ) -> Array:
        """The main output of rows for the targets (n, t) that the models without their blocks
        predict.
        """
        return self._output(values)

    def _fold_outputs(
        self, problem: Problem, fitted: Fitted, mu: float, train: np.ndarray, test: np.ndarray
    ) -> Array:
        problem = cast(AveragedProblem, problem)
        training = self._kept.training
        position = np.full(training.n_samples, -1)
        position[training.active] = np.arange(len(training.active))
        deleted = complement(position[train][position[train] >= 0], problem.n_rows)
        without = problem.without(fitted, np.unique(problem.block[deleted]), mu)
        inside = position[test] >= 0
        values = problem.values(without.refitted, mu, position[test[inside]])
        if not inside.all():
            outside = self._values(
                training.inactive_rows(test[~inside]), problem.solution(without.refitted, mu)
            )
            order = np.argsort(np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]))
            values = take(namespace(values).concat([values, outside], axis=0), order)
        return self._read_without(without, values, self._main_method)

    def _row_dependence(self) -> str | None:
        return "rows are averaged on each training set"

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Not for averages: a refit on fewer rows would draw other blocks."""
        raise ValueError(
            "verify() compares with refits on fewer rows, which would draw other blocks to "
            "average: it has nothing to compare."
        )


class AveragedFisher(_Averaged, KernelFisherDiscriminant):
    """The kernel Fisher discriminant of averages, placed for single rows; made by
    `KernelAveraging`.

    Averages of g rows have a g-th of the rows' within-class scatter, and a g-th of their number of
    degrees of freedom: with averages weighted by their number of rows, scatter over degrees of
    freedom is the covariance of single rows, which is what test rows are.
    """

    def _readout(self, A: Array, sizes: Array) -> Readout:
        m, n = int(self._block.max()) + 1, len(self._block)
        return self._readout_for_rows(A, sizes, m / n)

    def _readout_for_rows(self, A: Array, sizes: Array, averages_per_row: Any) -> Readout:
        """The rule with Σw · averages per row, less the classes, as degrees of freedom."""
        xp = namespace(A)
        readout = super()._readout(A, sizes)
        total, n_classes = (
            xp.sum(sizes, axis=-1),
            xp.sum(xp.astype(sizes > 0, sizes.dtype), axis=-1),
        )
        dof = total - n_classes
        ratio = (total * averages_per_row - n_classes) / xp.where(dof > 0, dof, xp.ones_like(dof))
        scale = xp.sqrt(xp.where(ratio > 0, ratio, xp.zeros_like(ratio)))[..., None, None]
        solved = readout.discriminant
        return Readout(
            replace(solved, axes=solved.axes * scale, centroids=solved.centroids * scale),
            readout.priors,
        )

    def _readout_without(self, without: Without) -> Readout:
        problem, blocks = without.problem, without.removal.rows
        A = scatter_without(scatter(without.fitted), without.removed, without.held_out)
        sizes = self._sizes(problem) - namespace(A).sum(
            take(problem.row_weights * problem.targets, blocks), axis=0
        )
        left = np.bincount(self._block)
        left[blocks] = 0
        return self._readout_for_rows(A, sizes, float((left > 0).sum() / max(left.sum(), 1)))

    def _read_each(
        self, problem: AveragedProblem, fitted: Fitted, held_out: HeldOut, values: Array
    ) -> Array:
        A = scatter_without_each(scatter(fitted), fitted, held_out)
        sizes = self._sizes(problem) - problem.row_weights * problem.targets
        rows = np.bincount(self._block)
        averages_per_row = asarray_like(
            (len(rows) - 1) / np.maximum(len(self._block) - rows, 1), values
        )
        readout = self._readout_for_rows(A, sizes, averages_per_row)
        weights, offsets = (
            take(readout.discriminant.weights, self._block),
            take(readout.offsets, self._block),
        )
        return self._output_decision((values[:, None, :] @ weights)[:, 0, :] + offsets)


class AveragedSVC(_Averaged, LeastSquaresSVC):
    """The least-squares support vector machine of averages; made by `KernelAveraging`."""


def _strata(columns: np.ndarray) -> np.ndarray:
    """Numbers (n,) of the distinct rows of columns (n, k)."""
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


# ---- what users see ------------------------------------------------------------------------------


def _inner_offers(method: str) -> Any:
    """Whether the estimator, fitted or not, has a method."""
    return available_if(
        lambda wrapper: hasattr(getattr(wrapper, "estimator_", wrapper.estimator), method)
    )


class ReducedTraining(MetaEstimatorMixin, BaseEstimator):
    """Shared by the wrappers that train on less than the rows they are given.

    Not for direct use.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    estimator: Any
    estimator_: Any

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    @property
    def classes_(self) -> np.ndarray:
        """The labels (classifiers only)."""
        classes: np.ndarray = self.estimator_.classes_
        return classes

    @property
    def n_features_in_(self) -> int:
        """How many features `fit` saw."""
        count: int = self.estimator_.n_features_in_
        return count

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Their names, where `fit` saw a data frame."""
        names: np.ndarray = self.estimator_.feature_names_in_
        return names

    def predict(self, X: Any) -> Any:
        """Labels or values of single rows; see the estimator's `predict`."""
        return self._fitted().predict(X)

    @_inner_offers("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Decision values of single rows; see the estimator's `decision_function`."""
        return self._fitted().decision_function(X)

    @_inner_offers("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of single rows; see the estimator's `predict_proba`."""
        return self._fitted().predict_proba(X)

    @_inner_offers("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return self._fitted().predict_log_proba(X)

    @_inner_offers("transform")
    def transform(self, X: Any) -> Array:
        """Projections of single rows on the discriminant axes; see the estimator's `transform`."""
        return self._fitted().transform(X)

    @_inner_offers("transform")
    def fit_transform(self, X: Any, y: Any, **fit_params: Any) -> Array:
        """Fit, then project the training rows."""
        return self.fit(X, y, **fit_params).transform(X)

    @_inner_offers("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the discriminant axes."""
        names: np.ndarray = self._fitted().get_feature_names_out(input_features)
        return names

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The estimator's score: accuracy, or R²."""
        score: float = self._fitted().score(X, y, sample_weight=sample_weight)
        return score

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


_AVERAGED: dict[type, type[_Averaged]] = {
    KernelFisherDiscriminant: AveragedFisher,
    LeastSquaresSVC: AveragedSVC,
}


class KernelAveraging(ReducedTraining):
    """Train a classifier on means of rows in kernel space instead of the rows (Treder 2018).

    Blocks of `n_average` rows of one class are drawn at random and replaced by their mean in the
    feature space of the kernel, which is their mean itself for the linear kernel. The estimator is
    fitted to these averages, weighted by the number of their rows (the sum of their weights); its
    decomposition is of n/`n_average` instead of n. Averaging also raises the ratio of signal to
    noise of what it trains on. Rows that are predicted are single rows, never averaged.

    Tuning, calibration and `held_out_decision_` test single rows too: each by the model without the
    block it belongs to, in closed form.

    Parameters
    ----------
    estimator : KernelFisherDiscriminant or LeastSquaresSVC
        With any kernel and penalty; not with `landmarks`, ``refine=True`` or ``gamma="ard"``.
    n_average : int, default=5
        Rows in a block, at least. A class of k rows becomes max(1, k // n_average) blocks whose
        sizes differ by at most one, so that no row is thrown away.
    by : {"class", "group"}, default="class"
        Whether blocks are drawn within each class, or within each class of each group. Blocks never
        straddle a split by which `fit` tests: with groups and ``cv=None``, which leaves out whole
        groups, or with a splitter as the estimator's `cv`, they lie within its parts.
    random_state : int, RandomState instance or None, default=None
        Draws the blocks.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier. Its `dual_coef_` belongs to the training rows; its `leverage_` and
        `effective_dof_` are the averages'.
    blocks_ : array of shape (n_samples,)
        The block of each row, -1 for rows of weight zero, which are in none.
    n_averages_ : int
        How many there are.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        Decision values of every row by the model without its block (by `cv`, if the estimator has
        one).
    classes_ : array of shape (n_classes,)

    Notes ----- In cross-validation every training set draws and averages its own rows. The kernel
    of all rows is computed once for every gamma tried, a part at a time, and prediction needs all
    training rows: what averaging saves is the decomposition, from n³ to (n/g)³, and the memory,
    from n² to n²/g. For regression use `landmarks`, or `Subsampling`.

    References ---------- M. S. Treder (2018). Improving SNR and Reducing Training Time of
    Classifiers in Large Datasets via Kernel Averaging. Lecture Notes in Computer Science 11309,
    239-248.

    Examples
    --------
    >>> from fitonce import KernelAveraging, KernelFisherDiscriminant
    >>> from fitonce.datasets import make_twonorm
    >>> X, y = make_twonorm(600, random_state=0)
    >>> model = KernelAveraging(KernelFisherDiscriminant("linear"), n_average=6, random_state=0).fit(X[:300], y[:300])
    >>> model.n_averages_
    49
    >>> print(f"{model.score(X[300:], y[300:]):.2f}")
    0.96
    """

    def __init__(
        self, estimator: Any, *, n_average: int = 5, by: str = "class", random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.n_average = n_average
        self.by = by
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Draw blocks, average them and fit the estimator, choosing what is to be tuned by held-out
        predictions of single rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Means are weighted, and the weight of a mean is the sum; rows of weight 0 do not train.
        groups : array-like of shape (n_samples,), default=None
            For ``by="group"`` and for the estimator's `cv`; with ``cv=None``, whole groups are left
            out together.

        Returns
        -------
        self
        """
        self._check_parameters()
        model = _AVERAGED[type(self.estimator)](**self.estimator.get_params(deep=False))
        model._plan = _Plan(int(self.n_average), self.by, self.random_state)
        model.fit(X, y, sample_weight=sample_weight, groups=groups)
        self.estimator_ = model
        active = model._kept.training.active
        self.blocks_ = np.full(model._kept.training.n_samples, -1)
        self.blocks_[active] = model._block
        self.n_averages_ = int(model._block.max()) + 1
        return self

    @property
    def held_out_decision_(self) -> Array:
        """Decision values of every row by the model without its block."""
        return self.estimator_.held_out_decision_

    def _check_parameters(self) -> None:
        inner = self.estimator
        if type(inner) not in _AVERAGED:
            raise TypeError(
                "estimator must be a KernelFisherDiscriminant or a LeastSquaresSVC, got "
                f"{type(inner).__name__} instead: averages are taken within classes. Regression "
                "has landmarks= and Subsampling."
            )
        check_options(self, by=("class", "group"))
        if (
            not isinstance(self.n_average, (int, np.integer))
            or isinstance(self.n_average, bool)
            or self.n_average < 1
        ):
            raise ValueError(
                f"n_average must be a positive integer, got {self.n_average!r} instead."
            )
        if inner.landmarks is not None:
            raise ValueError(
                "landmarks and averages both stand for the training rows: use one of them "
                "(landmarks=None, or no averaging)."
            )
        if inner.refine or (isinstance(inner.gamma, str) and inner.gamma == "ard"):
            raise ValueError(
                'averaging tunes on the lattice only: use refine=False and gamma="tune".'
            )


class Subsampling(ReducedTraining):
    """Train on a random part of the rows: the plainest way to a smaller problem, to compare the
    others with.

    Parameters
    ----------
    estimator : estimator
        One of fitonce's: `KernelFisherDiscriminant`, `LeastSquaresSVC` or `KernelRidge`.
    max_samples : int or float, default=1000
        How many rows to draw, at most; as a float, the share of the rows. Classes keep their
        shares, and at least one row each.
    random_state : int, RandomState instance or None, default=None
        Draws the rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator; the rows that were not drawn had weight zero in its fit. Its held-out
        outputs are those of all rows: leave-one-out (or `cv`) where a row was drawn, the fitted
        model, which has not seen them, for the others.
    sample_indices_ : array
        The rows that were drawn.

    Notes
    -----
    In cross-validation every training set draws its own rows.

    Examples
    --------
    >>> from fitonce import LeastSquaresSVC, Subsampling
    >>> from fitonce.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, random_state=0)
    >>> model = Subsampling(LeastSquaresSVC(), max_samples=200, random_state=0).fit(X[:1000], y[:1000])
    >>> print(f"{model.score(X[1000:], y[1000:]):.2f}")
    0.98
    """

    def __init__(
        self, estimator: Any, *, max_samples: Any = 1000, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.max_samples = max_samples
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Draw rows and fit the estimator to them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; rows of weight 0 are not drawn.
        groups : array-like of shape (n_samples,), default=None
            For the estimator's `cv`.

        Returns
        -------
        self
        """
        if not isinstance(self.estimator, KernelModel):
            raise TypeError(
                f"estimator must be one of fitonce's, got {type(self.estimator).__name__} instead."
            )
        model = _copy(self.estimator)
        training = model._training(
            X, y, sample_weight, groups
        )  # what the estimator has to say of the data, it says here
        if is_rows(training.X):
            raise ValueError(
                "Subsampling needs the rows in memory, got rows in files, blocks or Dask: use an "
                "estimator with landmarks=."
            )
        drawn = self._draw(training)
        weights = np.zeros(training.n_samples)
        weights[drawn] = 1.0 if training.weights is None else training.weights[drawn]
        model.fit(X, y, sample_weight=weights, groups=groups)
        self.estimator_, self.sample_indices_ = model, drawn
        return self

    def _draw(self, training: Training) -> np.ndarray:
        rows, random = training.active, check_random_state(self.random_state)
        count = self._count(len(rows))
        if count >= len(rows):
            return rows
        if not is_classifier(self.estimator):
            return np.sort(random.choice(rows, count, replace=False))
        codes = np.unique(training.y[rows], return_inverse=True)[1]
        parts = [
            random.choice(rows[codes == code], size, replace=False)
            for code, size in enumerate(shares(np.bincount(codes), count))
        ]
        return np.sort(np.concatenate(parts))

    def _count(self, n: int) -> int:
        given = self.max_samples
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 2:
            return min(int(given), n)
        if isinstance(given, (float, np.floating)) and 0 < given <= 1:
            return max(2, round(float(given) * n))
        raise ValueError(
            f"max_samples must be an integer of at least 2, or a share in (0, 1], got {given!r} "
            "instead."
        )


def _copy(estimator: Any) -> Any:
    return type(estimator)(**estimator.get_params(deep=False))


def shares(sizes: np.ndarray, count: int) -> np.ndarray:
    """`count` divided among classes in proportion to their sizes, at least one for each.

    The largest remainders get what is left.
    """
    exact = count * sizes / sizes.sum()
    result = np.minimum(np.maximum(np.floor(exact).astype(int), 1), sizes)
    order = np.argsort(-(exact - np.floor(exact)), kind="stable")
    for code in np.resize(order, 2 * len(sizes)):
        if result.sum() < count and result[code] < sizes[code]:
            result[code] += 1
    while result.sum() > count and result.max() > 1:
        result[np.argmax(result)] -= 1
    return np.asarray(result)


__all__ = ["KernelAveraging", "ReducedTraining", "Subsampling"]
