r"""One decomposition per training set, shared by all labellings: for models that depend on their
training rows but not on their labels.

Pipelines of transformers that do not look at y, kernel parameters taken from the training rows, and
hyper-parameters chosen inside every training set. A model is linear in its targets, so unit targets
sent through it give the matrices of the maps

    S: training targets → held-out targets        R = I - H: training targets → residuals, for the scatter E = YᵀRY

Where something is tuned, each labelling goes through the estimator's own search in every training
set. The decompositions it asks for are shared by all labellings; with squared error as the
criterion so are the products that judge the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from ..core.arrays import Array, asarray_like, eye_like, index_like, namespace, to_numpy
from ..core.criteria import criterion_of
from ..crossval.stand_in import Shared, subset
from ..estimators import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from ..estimators.base import PREDICTION_ELEMENTS, Prepared
from ..estimators.problem import Problem, Solution
from ..estimators.validation import check_alpha, check_new_data
from ..tuning import Trial, alpha_lattice, search
from .engine import BLOCK_BYTES, Outputs, ResidualMap, is_definite, training_sizes
from .folds import Layout
from .rules import FisherRule, LabelRule, Rule
from .validity import Split

UNSUPERVISED = (
    "sklearn.preprocessing",
    "sklearn.impute",
    "sklearn.decomposition",
    "sklearn.kernel_approximation",
    "sklearn.random_projection",
)
Choice = tuple[
    tuple[tuple[str, Any], ...], float
]  # the kernel's chosen parameters (and penalty), and alpha


def label_free(estimator: Any) -> bool:
    """Whether everything about a fit but its targets is known not to depend on y.

    The steps before, the kernel, the row weights.
    """
    if isinstance(estimator, Pipeline):
        return all(_unsupervised(step) for _, step in estimator.steps[:-1]) and label_free(
            estimator.steps[-1][1]
        )
    if type(estimator) not in (KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge):
        return False
    threshold_moves = getattr(estimator, "calibration", None) in ("sigmoid", "isotonic")
    return (
        getattr(estimator, "class_weight", None) is None
        and not threshold_moves
        and not _draws_landmarks_by_label(estimator)
    )


def _draws_landmarks_by_label(model: Any) -> bool:
    """Whether landmarks are chosen by y, or anew at every fit."""
    if not isinstance(model.landmarks, (int, np.integer)):
        return False
    return model.landmark_method == "greedy" or not isinstance(
        model.random_state, (int, np.integer)
    )


def repeatable(model: Any) -> bool:
    """Whether the model's search, if it has one, can be run from shared decompositions.

    By leave-one-out, on the lattice alone.
    """
    refined = getattr(model, "refine", False) or (
        isinstance(model.gamma, str) and model.gamma == "ard"
    )
    return model.cv is None and not refined


def _unsupervised(step: Any) -> bool:
    if step is None or isinstance(step, str):
        return True
    if isinstance(step, (Pipeline, FeatureUnion)):
        return all(
            _unsupervised(inner[1])
            for inner in (step.steps if isinstance(step, Pipeline) else step.transformer_list)
        )
    if isinstance(step, ColumnTransformer):
        return all(_unsupervised(inner) for _, inner, _ in step.transformers) and _unsupervised(
            step.remainder
        )
    if isinstance(getattr(step, "random_state", None), np.random.RandomState):
        return False
    module = type(step).__module__
    return (
        any(module.startswith(name + ".") for name in UNSUPERVISED)
        and not step.__sklearn_tags__().target_tags.required
    )


@dataclass
class TrainedFold:
    """One training set.

    Its rows, and for every kernel asked for a decomposition that all labellings share.
    """

    model: Any
    prepared: Prepared
    X_test: Array
    rule: Rule
    max_bytes: int

    def __post_init__(self) -> None:
        self._problems: dict[Any, Problem] = {}
        given = check_alpha(self.model.alpha)
        self.given_alphas = None if given is None else np.unique(given)
        self.lattice = self.model._gamma_lattice(self.prepared)
        self.others = self.model._other_parameters()
        self.tuned = (
            self.lattice is not None
            or len(self.others) > 1
            or self.given_alphas is None
            or len(self.given_alphas) > 1
        )

    def problem(self, parameters: Mapping[str, Any]) -> Problem:
        """The decomposition for these kernel parameters.

        The latest ones are kept while they fit into the budget.
        """
        key = _key(parameters)
        if key not in self._problems:
            size = 8 * self.prepared.X.shape[0] ** 2
            while self._problems and (len(self._problems) + 1) * size > self.max_bytes:
                self._problems.pop(next(iter(self._problems)))
            kernel = self.model._kernel(self.prepared, parameters)
            prepared = self.prepared
            if kernel.precomputed:  # a decomposition overwrites it
                prepared = replace(prepared, X=namespace(prepared.X).asarray(prepared.X, copy=True))
            mu = None if self.tuned or self.given_alphas is None else float(self.given_alphas[0])
            self._problems[key] = self.model._problem(
                prepared, kernel, parameters.get("penalty", self.model.penalty), mu
            )
        return self._problems[key]

    def alphas(self, problem: Problem) -> np.ndarray:
        if self.given_alphas is None:
            return alpha_lattice(problem.decomposition, self.prepared.total_weight)
        return self.given_alphas

    def maps(self, choice: Choice) -> tuple[Array, Array | None]:
        """S (m, n) from unscaled training targets to held-out targets, and diag(s) R diag(s) where
        the rule needs it.
        """
        parameters, mu = dict(choice[0]), choice[1]
        problem = self.problem(parameters)
        unit = eye_like(problem.n_samples, problem.smoother.Q0)
        fitted = problem.smoother.fit(
            unit if problem.row_scale is None else problem.row_scale * unit, mu
        )
        S = predicted_targets(problem, self.X_test, problem.solution(fitted, mu))
        if not self.rule.needs_scatter:
            return S, None
        R = fitted.residual if problem.row_scale is None else problem.row_scale * fitted.residual
        if isinstance(self.rule, FisherRule) and not self.rule.binary:
            penalty = parameters.get("penalty", self.model.penalty)
            self.rule.definite = self.rule.definite and is_definite(
                self.model.kernel, penalty, ResidualMap(fitted.residual)
            )
        return S, R

    def choices(self, values: np.ndarray, Y: Array) -> list[Choice]:
        """What the estimator's search chooses for each labelling.

        Labels (B, n) or numbers (B, t, n), and their targets (B, t, n).
        """
        if not self.tuned:
            assert self.given_alphas is not None
            return [(_key(self.others[0]), float(self.given_alphas[0]))] * len(values)
        judged: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

        def trial(parameters: dict[str, Any], labelling: int) -> Trial:
            key = _key(parameters)
            if key not in judged:
                judged[key] = self._losses(parameters, values, Y)
            alphas, losses = judged[key]
            return Trial(parameters, alphas, losses[labelling])

        def trials(several: Sequence[dict[str, Any]], labelling: int) -> list[Trial]:
            return [trial(parameters, labelling) for parameters in several]

        winners = [
            search(partial(trials, labelling=b), self.others, self.lattice).winner
            for b in range(len(values))
        ]
        return [(_key(winner.parameters), winner.alpha) for winner in winners]

    def _losses(
        self, parameters: Mapping[str, Any], values: np.ndarray, Y: Array
    ) -> tuple[np.ndarray, np.ndarray]:
        """The candidates for alpha, and every labelling's losses (B, candidates)."""
        problem = self.problem(parameters)
        alphas = self.alphas(problem)
        problem.decomposition.check(alphas)
        model = self.model
        if isinstance(model.criterion, str) and model.criterion == "squared_error" and model.pooled:
            return alphas, self._squared_errors(problem, alphas, Y)
        criterion = criterion_of(model.criterion, getattr(model, "compression", 1.0), model.pooled)
        losses = []
        for labels in values:
            y = (
                labels
                if isinstance(self.rule, LabelRule)
                else labels[0]
                if len(labels) == 1
                else labels.T
            )
            targets = model._encode(y, self.prepared.weights)
            prepared = replace(self.prepared, y=y, targets=targets)
            with_labels = replace(problem, targets=asarray_like(targets, problem.smoother.Q0))
            losses.append(model._losses(with_labels, prepared, alphas, None, criterion))
        return alphas, np.array(losses)

    def _squared_errors(self, problem: Problem, alphas: np.ndarray, Y: Array) -> np.ndarray:
        """Leave-one-out squared errors (B, candidates), to a common factor.

        All labellings in one batch of products.
        """
        xp = namespace(Y)
        B, t, n = Y.shape
        scaled = Y if problem.row_scale is None else Y * problem.row_scale[:, 0]
        step = max(1, BLOCK_BYTES // (24 * n * t * len(alphas)))
        errors = []
        for start in range(0, B, step):
            columns = xp.reshape(scaled[start : start + step, ...], (-1, n)).T
            residual = problem.decomposition.leave_one_out(columns, alphas).residual
            residual = xp.reshape(residual, (len(alphas), n, -1, t))
            squares = xp.sum(residual**2, axis=(1, 3))
            if (
                self.rule.completes
            ):  # the dropped column's residuals are minus the sum of the others'
                squares = squares + xp.sum(xp.sum(residual, axis=3) ** 2, axis=1)
            errors.append(to_numpy(squares))
        total = np.concatenate(errors, axis=1).T
        return np.where(np.isfinite(total), total, np.inf)


def _key(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(parameters.items()))


def predicted_targets(problem: Problem, X: Array, solution: Solution) -> Array:
    """What models (all columns of a solution) predict for new rows, in blocks of rows."""
    if solution.coef is not None:
        return X @ solution.coef + solution.intercept
    if problem.kernel.precomputed:
        return X @ solution.dual_coef + solution.intercept
    step = max(1, PREDICTION_ELEMENTS // solution.dual_coef.shape[0])
    blocks = [
        problem.kernel(X[start : start + step, ...], problem.X) @ solution.dual_coef
        for start in range(0, X.shape[0], step)
    ]
    return namespace(blocks[0]).concat(blocks, axis=0) + solution.intercept


class TrainedEngine:
    """Held-out outputs of many labellings with fixed folds, through the decompositions of each
    training set.
    """

    route = "per-fold"

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        rule: Rule,
        splits: Sequence[Split],
        max_bytes: int,
    ) -> None:
        self.estimator, self.y, self.weights, self.rule, self.splits, self.max_bytes = (
            estimator,
            y,
            weights,
            rule,
            splits,
            max_bytes,
        )
        self.shared = Shared(estimator, X, y)
        self.n_samples = len(y)
        self._maps: dict[tuple[int, Choice], tuple[Array, Array | None]] = {}
        self._held = 0
        self._made: dict[int, TrainedFold] = {}

    def block_size(self, layout: Layout | None) -> int:
        """Labellings that travel together.

        As many as the budget allows, since every block may decompose the training sets again.
        """
        columns = getattr(self.rule, "n_classes", self.rule.n_targets)
        return max(1, self.max_bytes // (8 * self.n_samples * (6 * columns + 4)))

    def _make_fold(self, train: np.ndarray, test: np.ndarray) -> TrainedFold:
        """Steps fitted, rows validated. The labels given are placeholders.

        Nothing here looks at them.
        """
        model = clone(self.estimator)
        X_train, X_test = self.shared.rows(train, train), self.shared.rows(test, train)
        if isinstance(model, Pipeline):
            steps, model = model[:-1], model.steps[-1][1]
            X_train = steps.fit_transform(X_train)
            X_test = steps.transform(X_test)
        y = (
            np.arange(len(train)) % self._n_placeholders
            if isinstance(self.rule, LabelRule)
            else subset(self.y, train)
        )
        weights = None if self.weights is None else self.weights[train]
        prepared = model._with_landmarks(model._prepare(model._training(X_train, y, weights, None)))
        X_test, _ = check_new_data(model, X_test, "predict")
        return TrainedFold(model, prepared, X_test, self.rule, self.max_bytes)

    @property
    def _n_placeholders(self) -> int:
        return int(self.rule.n_classes)  # type: ignore[attr-defined]

    def regular(self, layouts: Sequence[Layout], values: np.ndarray) -> np.ndarray:
        if not isinstance(self.rule, LabelRule):
            return np.ones(len(values), dtype=bool)
        return self.rule.regular(self._sizes(layouts[0], values))

    def _sizes(self, layout: Layout, values: np.ndarray) -> np.ndarray:
        order, weights = layout.order, self.weights
        return training_sizes(
            layout,
            values,
            values[:, order],
            self._n_placeholders,
            weights,
            None if weights is None else weights[order],
        )

    def fixed(self, layout: Layout, values: np.ndarray) -> list[Outputs]:
        """Outputs by fold for labels (B, n) or numbers (B, t, n)."""
        sizes = self._sizes(layout, values) if self.rule.needs_scatter else None
        outputs = []
        for number, (train, test) in enumerate(self.splits):
            fold_sizes = None if sizes is None else sizes[:, number : number + 1, :]
            held_out = self._outputs(number, values[..., train], fold_sizes)
            outputs.append(Outputs(held_out, values[..., test][:, None, ...]))
        return outputs

    def _outputs(self, number: int, values: np.ndarray, sizes: np.ndarray | None) -> Array:
        fold = self._made.get(number) or self._make_fold(*self.splits[number])
        if not fold.tuned:
            self._made[number] = fold
        like = _dense_like(fold.prepared.X)
        xp = namespace(like)
        given = (
            values
            if isinstance(like, np.ndarray)
            else asarray_like(values, like, xp.float64 if values.dtype.kind == "f" else xp.int64)
        )
        Y = self.rule.targets(given)
        chosen = fold.choices(values, Y)
        pieces, rows = [], []
        for choice in dict.fromkeys(chosen):
            members = np.array(
                [labelling for labelling, other in enumerate(chosen) if other == choice]
            )
            S, R = self._maps_of(number, fold, choice)
            part = xp.take(Y, index_like(members, Y), axis=0) if len(members) < len(chosen) else Y
            B, t, n = part.shape
            flat = xp.reshape(part, (B * t, n))
            P = xp.reshape(flat @ S.T, (B, 1, t, -1))
            scatter = None
            if R is not None:
                residual = xp.reshape(flat @ R, (B, t, n))
                scatter = (part @ xp.matrix_transpose(residual))[:, None, :, :]
            pieces.append(
                self.rule.read(
                    P, scatter, None if sizes is None else asarray_like(sizes[members], like)
                )
            )
            rows.append(members)
        if len(pieces) == 1:
            return pieces[0]
        return xp.take(
            xp.concat(pieces, axis=0), index_like(np.argsort(np.concatenate(rows)), like), axis=0
        )

    def _maps_of(
        self, number: int, fold: TrainedFold, choice: Choice
    ) -> tuple[Array, Array | None]:
        """Kept while they fit into the budget."""
        key = number, choice
        if key in self._maps:
            return self._maps[key]
        maps = fold.maps(choice)
        size = 8 * sum(int(np.prod(A.shape)) for A in maps if A is not None)
        if self._held + size <= self.max_bytes:
            self._maps[key] = maps
            self._held += size
        return maps


def _dense_like(X: Any) -> Array:
    return np.empty(0) if sp.issparse(X) else X


__all__ = ["TrainedEngine", "label_free", "repeatable"]
