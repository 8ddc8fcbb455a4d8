"""The flow that all three estimators share.

Validate, decompose, choose what is to be tuned, solve, hold out.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import LeaveOneGroupOut, check_cv
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.criteria import CLASSIFICATION, REGRESSION, Criterion, HeldOutScores, criterion_of
from ..core.derivatives import Jet, held_out_jets
from ..core.features import Deletions
from ..core.holdout import checked_splits, complement, row_numbers
from ..core.smoother import Fitted, HeldOut
from ..kernels import PARAMETERS, Kernel, central_gamma, scale_gamma
from ..landmarks.choice import METHODS, Landmarks, Pool, choose_landmarks, on_host, pool_size
from ..landmarks.features import as_points
from ..rows.blocks import is_rows
from ..tuning import GammaLattice, Search, Trial, alpha_lattice, search
from ..tuning.gradient import LossAndSlope
from .guidance import Progress, check_fits
from .problem import (
    FitIntercept,
    LandmarkProblem,
    Problem,
    Solution,
    Without,
    decompose,
    decompose_at,
    landmark_problem,
    row_scale_of,
)
from .progress import CallbackSupportMixin, FitTasks
from .refinement import refine, squared_loss
from .validation import (
    OVERFLOW,
    _namespace_name,
    as_rows,
    check_alpha,
    check_criterion,
    check_fit_data,
    check_kernel_parameters,
    check_landmark_parameters,
    check_landmarks,
    check_new_data,
    check_options,
    check_weights,
    repeated_warnings_once,
    rows_at,
    warn_numerical,
)
from .verification import Verification, compare_with_refits

DOUBTFUL = 1e-4  # relative error of held-out values (1e3·eps·λ_max/mu) above which a fit warns
PREDICTION_ELEMENTS = 1 << 23  # kernel entries computed at a time in predict


TUNED_VALUES: dict[str, tuple[Any, ...]] = {
    "penalty": ("function", "dual"),
    "degree": (2, 3, 4),
    "coef0": (0.0, 1.0),
}
OPTIONAL_ATTRIBUTES = (
    "refinement_", "isotonic_", "temperature_", "coef_", "X_fit_", "gamma_", "degree_", "coef0_", "landmarks_", "landmark_indices_",
)  # fmt: skip
KEEP_BEST_UP_TO = (
    2500  # rows; above, the winner is decomposed again rather than kept beside the trial under way
)
SELECTION_ELEMENTS = 1 << 22  # held-out values that a criterion looks at together
PATH_ELEMENTS = (
    1 << 24,
    1 << 27,
)  # held-out values computed together: exactly, and where each time is a pass over the rows

Folds = list[tuple[np.ndarray, np.ndarray]]


def _tuned(value: Any) -> bool:
    return isinstance(value, str) and value in ("tune", "ard")


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name


@dataclass(frozen=True)
class Prepared:
    """The active rows of a fit.

    Features (or kernel), targets as given and encoded, weights and their square roots.
    """

    X: Array
    y: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    row_scale: Array | None
    landmarks: Landmarks | None = None

    def rows(self, rows: np.ndarray) -> Prepared:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        row_scale = None if self.row_scale is None else take(self.row_scale, rows)
        return Prepared(take(self.X, rows), self.y[rows], self.targets[rows], weights, row_scale)

    @property
    def total_weight(self) -> float:
        return float(self.X.shape[0]) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True)
class Training:
    """What `fit` was given, validated.

    All rows, of which only those with positive weight (`active`) train.
    """

    X: Array
    y: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None
    active: np.ndarray
    precomputed: bool

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def without_destroyed_kernel(self) -> Training:
        """After the decomposition has overwritten a precomputed kernel, nothing of it is kept."""
        overwritten = self.precomputed and len(self.active) == self.n_samples
        return replace(self, X=self.X[:, :0]) if overwritten else self

    def active_X(self) -> Array:
        if len(self.active) == self.n_samples:
            return self.X
        X = take(self.X, self.active)
        return take(X.T, self.active) if self.precomputed else X  # a kernel is symmetric

    def inactive_rows(self, rows: np.ndarray) -> Array:
        """The given rows as `predict` takes them.

        Their features, or their kernel with the active rows.
        """
        X = take(self.X, rows)
        return take(X.T, self.active).T if self.precomputed else X


class KernelModel(CallbackSupportMixin, BaseEstimator):
    """Shared flow and parameters of the kernel least-squares estimators; not for direct use."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    _multi_output: ClassVar[bool] = False
    _main_method: ClassVar[str] = "decision_function"

    # ---- what the subclasses say -----------------------------------------------------------------

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Targets (n, t) of the active rows; sets what is known of the classes."""
        raise NotImplementedError

    def _row_weights(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Weights of the active rows, class weights included."""
        return weights

    def _finish(self, problem: Problem, fitted: Fitted, mu: float) -> None:
        """Set the fitted attributes that depend on alpha."""
        raise NotImplementedError

    def _decide_each(self, problem: Problem, fitted: Fitted, held_out: HeldOut) -> Array:
        """The main output of every row from the model without it."""
        return self._output(problem.unscale(fitted.Y - held_out.residual))

    def _read_without(self, without: Without, values: Array, method: str) -> Array:
        """An output of the model without some rows, for targets that it predicts."""
        return self._output(values)

    def _output(self, values: Array) -> Array:
        """Held-out or predicted targets in the shape of the estimator's main output."""
        raise NotImplementedError

    def _class_scores(
        self, problem: Problem, alphas: np.ndarray, predicted: Array
    ) -> tuple[Array, Array] | None:
        """Class scores (m, k, c) for predicted targets (m, k, t) and the separation of the classes
        (m, c, c); None for regression.
        """
        return None

    def _row_dependence(self) -> str | None:
        """Why a refit on fewer rows could use other parameters than this estimator on all rows, or
        None.
        """
        if isinstance(self.alpha, str) or np.ndim(self.alpha) > 0:
            return "alpha is chosen on each training set"
        if self.cv is not None:
            return "cv splits each training set"
        if isinstance(self.landmarks, (int, np.integer)):
            return "landmarks are chosen on each training set"
        used = PARAMETERS.get(self.kernel, ()) if isinstance(self.kernel, str) else ()
        for name in (*used, "penalty"):
            value = getattr(self, name)
            if isinstance(value, str) and value in ("tune", "scale", "ard"):
                return f"{name}={value!r} depends on the training rows"
        return None

    # ---- fit -------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_kernel_parameters(self)
        check_alpha(self.alpha)
        check_options(self, penalty=("function", "dual", "tune"))
        check_options(self, pooled=(True, False), refine=(True, False))
        check_criterion(self, REGRESSION if self._multi_output else CLASSIFICATION)
        if self.landmarks is not None:
            check_landmark_parameters(self, METHODS)
        if self._ard and self.penalty != "function":
            raise ValueError(
                f'gamma="ard" needs penalty="function", got penalty={self.penalty!r} instead: its '
                "gradient is that of the function norm."
            )

    @property
    def _intercept_option(self) -> FitIntercept:
        return getattr(self, "fit_intercept", True)

    def _training(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Training:
        """Validated data; remembers the namespace that the caller used."""
        self._check_parameters()
        X, y, sample_weight, groups = as_rows(self, X, y, sample_weight, groups)
        namespace_name = _namespace_name(X)
        X, y = check_fit_data(self, X, y, multi_output=self._multi_output)
        self._namespace_name = namespace_name
        weights = check_weights(sample_weight, X.shape[0])
        active = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0)
        if len(active) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two rows with positive sample_weight, got "
                f"{len(active)}."
            )
        if is_rows(X) and len(active) < X.shape[0]:
            raise ValueError(
                f"{X.shape[0] - len(active)} rows have weight zero: leave them out of the source, "
                "which is read as it is."
            )
        groups = None if groups is None else np.asarray(to_numpy(groups))
        if groups is not None and len(groups) != X.shape[0]:
            raise ValueError(
                f"groups must have one entry per row ({X.shape[0]}), got {len(groups)} instead."
            )
        return Training(X, y, weights, groups, active, self.kernel == "precomputed")

    def _prepare(self, training: Training) -> Prepared:
        """Targets, weights and rows of the active part.

        What every decomposition of this fit shares.
        """
        y = training.y[training.active]
        weights = None if training.weights is None else training.weights[training.active]
        targets = self._encode(y, weights)
        weights = self._row_weights(y, weights)
        X = training.active_X()
        return Prepared(X, y, targets, weights, row_scale_of(weights, X))

    def _problem(
        self, prepared: Prepared, kernel: Kernel, penalty: str, mu: float | None = None
    ) -> Problem:
        """One decomposition; good for any mu, or for the given one only."""
        recipe = prepared.X, kernel, penalty, self._intercept_option, prepared.row_scale
        if prepared.landmarks is not None:
            return landmark_problem(
                prepared.X,
                prepared.landmarks,
                *recipe[1:],
                prepared.targets,
                dropping=self.shared_landmarks == "drop",
            )
        with check_fits(prepared.X, kernel, penalty, mu):
            smoother = decompose(*recipe) if mu is None else decompose_at(*recipe, mu)
        X = None if kernel.precomputed else prepared.X
        return Problem(
            kernel,
            X,
            smoother,
            prepared.row_scale,
            self._intercept_option,
            asarray_like(prepared.targets, smoother.Q0),
        )

    def _problem_of(self, training: Training, mu: float) -> Problem:
        """The problem of an estimator whose parameters are all fixed, at its one mu."""
        prepared = self._with_landmarks(self._prepare(training))
        return self._problem(prepared, self._kernel(prepared, {}), self.penalty, mu)

    def _with_landmarks(self, prepared: Prepared) -> Prepared:
        """The rows with the landmarks that stand for them, where there are to be any.

        Chosen once, whatever is tuned.
        """
        if self.landmarks is None:
            return prepared
        if not isinstance(self.landmarks, (int, np.integer)):
            points = check_landmarks(self.landmarks, prepared.X)
            return replace(
                prepared,
                landmarks=Landmarks(as_points(points, prepared.X), np.full(points.shape[0], -1)),
            )
        n, m = prepared.X.shape[0], min(int(self.landmarks), prepared.X.shape[0])
        if m == n:
            return replace(
                prepared, landmarks=Landmarks(rows_at(prepared.X, np.arange(n)), np.arange(n))
            )
        random = check_random_state(self.random_state)
        weights = np.ones(n) if prepared.weights is None else prepared.weights
        size = min(n, max(pool_size(m, self.landmark_method), m))
        probability = weights / weights.sum() if self.landmark_method == "uniform" else None
        numbers = (
            np.arange(n)
            if size == n
            else np.sort(random.choice(n, size, replace=False, p=probability))
        )
        pool = Pool(
            on_host(rows_at(prepared.X, numbers)),
            prepared.targets[numbers],
            weights[numbers],
            numbers,
        )
        chosen = choose_landmarks(
            pool, self._central_kernel(prepared), m, self.landmark_method, random
        )
        return replace(
            prepared, landmarks=Landmarks(as_points(chosen.points, prepared.X), chosen.rows)
        )

    def _central_kernel(self, prepared: Prepared) -> Kernel:
        """The kernel by which landmarks are chosen.

        As given, tuned parameters in the middle of what will be tried.
        """
        centre: dict[str, Any] = {"degree": 3, "coef0": 1.0}
        if not callable(self.kernel) and "gamma" in PARAMETERS[self.kernel]:
            centre["gamma"] = central_gamma(self.kernel, prepared.X, prepared.weights)
        return self._kernel(
            prepared, {name: value for name, value in centre.items() if _tuned(getattr(self, name))}
        )

    def _kernel(self, prepared: Prepared, chosen: Mapping[str, Any]) -> Kernel:
        """The kernel with chosen values for the parameters that are tuned."""
        if callable(self.kernel):
            return Kernel(self.kernel, dict(self.kernel_params or {}))
        parameters: dict[str, Any] = {
            name: chosen.get(name, getattr(self, name)) for name in PARAMETERS[self.kernel]
        }
        gamma, n_features = parameters.get("gamma", 0.0), prepared.X.shape[1]
        if np.ndim(gamma) == 1:
            if len(gamma) != n_features:
                raise ValueError(
                    f"gamma must be one number, or one width per feature ({n_features}), got "
                    f"{len(gamma)} of them instead. It is not "
                    'a list of candidates: use "tune" to have it chosen.'
                )
            parameters["gamma"] = np.asarray(gamma, dtype=np.float64)
        elif gamma is None:
            parameters["gamma"] = 1.0 / n_features
        elif _is(parameters.get("gamma"), "scale"):
            parameters["gamma"] = scale_gamma(prepared.X, prepared.weights)
        return Kernel(self.kernel, parameters)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        for name in OPTIONAL_ATTRIBUTES:  # of an earlier fit with other settings
            self.__dict__.pop(name, None)
        tasks = FitTasks(self, X, y)
        training = self._training(X, y, sample_weight, groups)
        folds = self._folds(training)
        prepared = self._with_landmarks(self._prepare(training))
        deletions = None if folds is None else _deletions(folds, training)
        with repeated_warnings_once():
            found, problem = self._search(prepared, deletions, tasks)
        winner = found.winner
        if (self.refine or self._ard) and self._anything_tuned:
            with tasks.task("refine"):
                winner, problem, self.refinement_ = refine(
                    self, prepared, deletions, winner, problem
                )
            found = Search([*found.trials, *self.refinement_.trials])
        self._warn_at_edges(found, winner, problem)
        self._record(found)
        self.penalty_ = winner.parameters.get("penalty", self.penalty)
        for name, value in problem.kernel.parameters.items():
            if not callable(self.kernel):
                setattr(self, f"{name}_", value)
        if prepared.landmarks is not None:
            self.landmark_indices_ = np.where(
                prepared.landmarks.rows >= 0, training.active[prepared.landmarks.rows], -1
            )
        self._columns = (
            training.active
            if training.precomputed and len(training.active) < training.n_samples
            else None
        )
        self._kept = Kept(training.without_destroyed_kernel(), problem, folds)
        with tasks.task("solve"):
            self._solve(winner.alpha)
        tasks.end()

    def _record(self, found: Search) -> None:
        """What was tried, as scores: minus the losses, and for AUC and R² what is left to one."""
        perfect = 1.0 if self.criterion in ("auc", "r2") else 0.0
        self.cv_results_ = found.cv_results(perfect)
        self.best_score_ = perfect - found.winner.loss

    @property
    def _criterion(self) -> Criterion:
        return criterion_of(self.criterion, getattr(self, "compression", 1.0), self.pooled)

    def _search(
        self, prepared: Prepared, deletions: Deletions | None, tasks: FitTasks
    ) -> tuple[Search, Problem]:
        """Everything that is to be tuned, by held-out predictions.

        The winner's decomposition comes along.
        """
        others = self._other_parameters()
        lattice = self._gamma_lattice(prepared)
        say = Progress(
            self.verbose, len(others) * (1 if lattice is None else len(lattice.first()) + 2)
        )
        say.plan(prepared.X, prepared.landmarks, prepared.targets.shape[1])
        best: list[tuple[Trial, Problem | None]] = []

        def one_by_one(several: Sequence[dict[str, Any]]) -> list[Trial]:
            return [evaluate(parameters) for parameters in several]

        def evaluate(parameters: dict[str, Any]) -> Trial:
            with tasks.task(
                " ".join(
                    f"{name}={value:.4g}" for name, value in parameters.items() if name != "penalty"
                )
                or "decompose"
            ):
                if best and prepared.X.shape[0] > KEEP_BEST_UP_TO and prepared.landmarks is None:
                    best[0] = (best[0][0], None)
                trial, problem = self._trial(prepared, deletions, parameters)
            say.tried(trial)
            if not best or Search([best[0][0], trial]).winner is trial:
                best[:] = [(trial, problem)]
            return trial

        def side_by_side(several: Sequence[dict[str, Any]]) -> list[Trial]:
            jobs = (
                delayed(_trial_alone)(self, prepared, deletions, parameters)
                for parameters in several
            )
            trials: list[Trial] = Parallel(n_jobs=self.n_jobs)(jobs)
            for trial in trials:
                say.tried(trial)
            return trials

        alone = lattice is None and len(others) == 1
        found = search(
            one_by_one if alone or effective_n_jobs(self.n_jobs) == 1 else side_by_side,
            others,
            lattice,
        )
        trial, problem = best[0] if best else (None, None)
        if problem is None or trial is not found.winner:
            problem = self._problem_for(prepared, found.winner.parameters)
        return found, problem

    def _problem_for(self, prepared: Prepared, parameters: Mapping[str, Any]) -> Problem:
        """The decomposition at some values of the tuned parameters."""
        kernel = self._kernel(prepared, parameters)
        # a decomposition overwrites a precomputed kernel: all but a single one get a copy
        if kernel.precomputed and len(self._other_parameters()) > 1:
            prepared = replace(prepared, X=prepared.X + 0.0)
        return self._problem(prepared, kernel, parameters.get("penalty", self.penalty))

    def _trial(
        self, prepared: Prepared, deletions: Deletions | None, parameters: dict[str, Any]
    ) -> tuple[Trial, Problem]:
        """All candidates for alpha at some values of the other parameters, and their
        decomposition.
        """
        problem = self._problem_for(prepared, parameters)
        given = check_alpha(self.alpha)
        alphas = (
            alpha_lattice(problem.decomposition, prepared.total_weight)
            if given is None
            else np.unique(given)
        )
        problem.decomposition.check(alphas)
        return Trial(
            parameters, alphas, self._losses(problem, prepared, alphas, deletions, self._criterion)
        ), problem

    @property
    def _ard(self) -> bool:
        return _is(self.kernel, "rbf") and _is(self.gamma, "ard")

    def _warn_at_edges(self, found: Search, winner: Trial, problem: Problem) -> None:
        """Tell where the criterion still falls at the end of what was tried."""
        edge = winner.falling_edge
        if _tuned(self.alpha) and edge is not None:
            if edge == "upper":
                reason = (
                    "beyond it every model is constant; this kernel finds nothing in these data"
                )
            elif problem.decomposition.lower_bound > 0:
                reason = 'this indefinite kernel allows no smaller one; penalty="dual" does'
            else:
                reason = (
                    "float64 does not carry a smaller one; the targets may be free of noise, or "
                    "nothing here predicts them"
                )
            warn_numerical(
                f"the best alpha, {winner.alpha:.3g}, is at the {edge} end of what was tried: "
                f"{reason}."
            )
        tried = [
            trial.parameters["gamma"]
            for trial in found.trials
            if np.ndim(trial.parameters.get("gamma", [])) == 0
        ]
        gamma = winner.parameters.get("gamma", np.nan)
        at_the_end = np.ndim(gamma) == 0 and bool(tried) and gamma in (min(tried), max(tried))
        if (
            at_the_end
            and np.log2(max(tried) / min(tried)) >= GammaLattice.limit + GammaLattice.reach
        ):  # extended as far as it goes
            smooth = gamma == min(tried)
            advice = (
                "so smooth a kernel is nearly linear: try kernel='linear'"
                if smooth
                else "scale the features, or give gamma"
            )
            warn_numerical(
                f"the best gamma, {gamma:.3g}, is at the end of what was tried; {advice}."
            )

    @property
    def _anything_tuned(self) -> bool:
        return _tuned(self.alpha) or (
            not callable(self.kernel) and "gamma" in PARAMETERS[self.kernel] and _tuned(self.gamma)
        )

    def _loss_jet(self, problem: Problem, prepared: Prepared, mu: float) -> Jet | None:
        """The criterion with two derivatives in log mu, by leave-one-out, where it has them."""
        if self.criterion != "squared_error" or not self.pooled:
            return None
        e = held_out_jets(problem.decomposition, problem.scaled_targets, mu).held_out
        squares: Jet = e * e
        mean: Jet = squares.sum() * (1.0 / (prepared.total_weight * problem.targets.shape[1]))
        return mean

    def _loss_and_slope(self, problem: Problem, prepared: Prepared) -> LossAndSlope | None:
        """The criterion as a function of leave-one-out residuals, with its slope, where gradients
        in the kernel are to be had.
        """
        if self.criterion != "squared_error" or not self.pooled:
            return None
        return squared_loss(prepared.total_weight * problem.targets.shape[1])

    def _other_parameters(self) -> list[dict[str, Any]]:
        """Every combination of the tuned parameters that are not gamma or alpha."""
        used = () if callable(self.kernel) else PARAMETERS[self.kernel]
        options = {
            name: values
            for name, values in TUNED_VALUES.items()
            if (name in used or name == "penalty") and _tuned(getattr(self, name))
        }
        return [
            dict(zip(options, values, strict=True))
            for values in itertools.product(*options.values())
        ]

    def _gamma_lattice(self, prepared: Prepared) -> GammaLattice | None:
        if (
            callable(self.kernel)
            or "gamma" not in PARAMETERS[self.kernel]
            or not _tuned(self.gamma)
        ):
            return None
        reach = 6 if self.kernel in ("rbf", "laplacian") else 4
        return GammaLattice.around(central_gamma(self.kernel, prepared.X, prepared.weights), reach)

    def _losses(
        self,
        problem: Problem,
        prepared: Prepared,
        alphas: np.ndarray,
        deletions: Deletions | None,
        criterion: Criterion,
    ) -> np.ndarray:
        """The criterion for every alpha, a chunk of them at a time."""
        size = problem.targets.shape[0] * max(problem.targets.shape[1], 2)
        chunk = max(1, PATH_ELEMENTS[prepared.landmarks is not None] // size)
        parts = [alphas[start : start + chunk] for start in range(0, len(alphas), chunk)]
        losses = np.concatenate(
            [
                _criterion_of_each(criterion, self._scores(problem, prepared, part, deletions))
                for part in parts
            ]
        )
        if not np.isfinite(losses).any():
            raise ValueError(
                "the criterion is not finite for any alpha; scale the targets, or use larger "
                "candidates."
            )
        return np.where(np.isfinite(losses), losses, np.inf)

    def _scores(
        self, problem: Problem, prepared: Prepared, alphas: np.ndarray, deletions: Deletions | None
    ) -> HeldOutScores:
        """Held-out outputs of every candidate on the host.

        Discriminants on the axes of the fit of all rows.
        """
        predicted, rows, fold = problem.held_out_targets(alphas, deletions)
        classes = self._class_scores(problem, alphas, predicted)
        decision, separation = (None, None) if classes is None else map(to_numpy, classes)
        weights = np.ones(len(rows)) if prepared.weights is None else prepared.weights[rows]
        labels = None if classes is None else np.searchsorted(self.classes_, prepared.y[rows])
        return HeldOutScores(
            to_numpy(predicted),
            prepared.targets[rows],
            weights,
            fold,
            decision,
            labels,
            separation,
            prepared.y[rows],
        )

    def _solve(self, mu: float) -> None:
        """Everything after alpha is known: the model, its held-out outputs, its diagnostics."""
        problem = self._kept.problem
        self._warn_if_doubtful(problem, mu)
        self.alpha_ = mu
        if problem.X is not None:
            self.X_fit_ = problem.X
        if isinstance(problem, LandmarkProblem):
            self.landmarks_ = problem.X
        fitted = problem.fit(mu)
        self.leverage_ = problem.decomposition.leverage(mu)
        self.effective_dof_ = float(namespace(self.leverage_).sum(self.leverage_))
        self._finish(problem, fitted, mu)
        if isinstance(problem, LandmarkProblem):
            problem.forget()

    def _warn_if_doubtful(self, problem: Problem, mu: float) -> None:
        error = 1e3 * problem.smoother.conditioning / mu
        if error > DOUBTFUL:
            enough = 1e3 * problem.smoother.conditioning / DOUBTFUL
            warn_numerical(
                f"alpha={mu:.3g} is very small beside the largest eigenvalue of the kernel "
                "matrix: held-out values may be wrong by "
                f"{min(error, 1.0):.1g} relative to their size. Use an alpha of at least "
                f"{enough:.3g}."
            )

    # ---- held-out outputs ------------------------------------------------------------------------

    def _folds(self, training: Training) -> Folds | None:
        """The splits that tuning and calibration use; None stands for leave-one-out."""
        if self.cv is None and training.groups is None:
            return None
        X = (
            np.empty((training.n_samples, 1))
            if not isinstance(training.X, np.ndarray)
            else training.X
        )
        cv = (
            LeaveOneGroupOut()
            if self.cv is None
            else check_cv(self.cv, training.y, classifier=not self._multi_output)
        )
        splits = checked_splits(cv.split(X, training.y, training.groups), training.n_samples)
        folds = [
            (row_numbers(train, training.n_samples), row_numbers(test, training.n_samples))
            for train, test in splits
        ]
        if any(len(np.unique(train)) != len(train) for train, _ in folds):
            raise ValueError(
                "cv names a training row twice in one split; use sample_weight to count a row "
                "more than once."
            )
        if not folds:
            raise ValueError(
                "cv must give at least one split into training and test rows, got none."
            )
        return folds

    def _held_out_outputs(self, problem: Problem, fitted: Fitted, mu: float) -> Array:
        """The main output of every row from models that have not seen it, by `cv` or leave-one-out.

        Rows tested by several splits get the mean, rows tested by none NaN. Rows of zero weight are
        predicted from the kernel.
        """
        training, folds = self._kept.training, self._kept.folds
        if folds is None:
            held_out = problem.decomposition.leave_one_out(problem.scaled_targets, np.asarray([mu]))
            force = None if held_out.force is None else held_out.force[0, ...]
            outputs = self._decide_each(problem, fitted, HeldOut(held_out.residual[0, ...], force))
            return self._with_inactive(training, outputs)
        return self._averaged(
            training, [self._fold_outputs(problem, fitted, mu, *fold) for fold in folds], folds
        )

    def _with_inactive(self, training: Training, outputs: Array) -> Array:
        """Outputs of the active rows extended to all.

        The others never train, so the fitted model holds them out.
        """
        n = training.n_samples
        if len(training.active) == n:
            return outputs
        inactive = complement(training.active, n)
        xp = namespace(outputs)
        both = xp.concat(
            [
                outputs,
                self._output(self._values(training.inactive_rows(inactive), self._main_solution)),
            ],
            axis=0,
        )
        return take(both, np.argsort(np.concatenate([training.active, inactive])))

    def _fold_outputs(
        self, problem: Problem, fitted: Fitted, mu: float, train: np.ndarray, test: np.ndarray
    ) -> Array:
        training = self._kept.training
        position = np.full(training.n_samples, -1)
        position[training.active] = np.arange(len(training.active))
        deleted = complement(position[train][position[train] >= 0], problem.n_samples)
        without = problem.without(fitted, deleted, mu)
        inside = position[test] >= 0
        values = without.values(position[test[inside]])
        if not inside.all():
            outside = self._values(
                training.inactive_rows(test[~inside]), problem.solution(without.refitted, mu)
            )
            order = np.argsort(np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]))
            values = take(namespace(values).concat([values, outside], axis=0), order)
        return self._read_without(without, values, self._main_method)

    def _averaged(self, training: Training, outputs: list[Array], folds: Folds) -> Array:
        host = [to_numpy(output) for output in outputs]
        total = np.zeros((training.n_samples, *host[0].shape[1:]))
        count = np.zeros(training.n_samples)
        for (_, test), output in zip(folds, host, strict=True):
            np.add.at(total, test, output)
            np.add.at(count, test, 1)
        with np.errstate(invalid="ignore"):
            mean = total / count.reshape(-1, *[1] * (total.ndim - 1))
        return asarray_like(mean, outputs[0])

    # ---- predict ---------------------------------------------------------------------------------

    def _set_main_solution(self, solution: Solution, squeeze: bool) -> None:
        """The public attributes dual_coef_, intercept_ and coef_.

        Without their second axis where there is one output.
        """
        dual_coef, intercept, coef = solution.dual_coef, solution.intercept, solution.coef
        self.dual_coef_ = dual_coef[:, 0] if squeeze else dual_coef
        self.intercept_ = float(intercept[0]) if squeeze else intercept
        if coef is not None:
            self.coef_ = self._public_coef(coef.T, squeeze)

    def _public_coef(self, coef: Array, squeeze: bool) -> Array:
        """Weights in the shape of scikit-learn's classifiers: (1, p) or (c, p)."""
        return coef

    @property
    def _main_solution(self) -> Solution:
        """The fitted model behind the main output, from the public attributes."""
        like = self.dual_coef_
        intercept = (
            asarray_like([self.intercept_], like)
            if isinstance(self.intercept_, float)
            else self.intercept_
        )
        coef = getattr(self, "coef_", None)
        if coef is not None:
            coef = coef[:, None] if coef.ndim == 1 else coef.T
        return Solution(like[:, None] if like.ndim == 1 else like, intercept, coef)

    def _predicted(self, X: Any, method: str) -> Array:
        """The main output for new rows."""
        X, _ = self._new_rows(X, method)
        return self._output(self._values(X, self._main_solution))

    def _new_rows(self, X: Any, method: str) -> tuple[Array, Any]:
        """Validated rows for `_values`, and their dtype.

        Of a precomputed kernel only the columns of rows that trained.
        """
        check_is_fitted(self)
        X, dtype = check_new_data(self, X, method)
        return (X if self._columns is None else take(X.T, self._columns).T), dtype

    def _values(self, X: Array, solution: Solution) -> Array:
        """k(X, X_fit) dual_coef + intercept, in blocks of rows so that the kernel never exceeds a
        few hundred MiB.
        """
        if solution.coef is not None:
            return X @ solution.coef + solution.intercept
        if self.kernel == "precomputed":
            return X @ solution.dual_coef + solution.intercept
        return self._finite(self._kernel_values(X, solution))

    def _finite(self, values: Array) -> Array:
        xp = namespace(values)
        if not np.isfinite(float(xp.sum(values))) and not bool(xp.all(xp.isfinite(values))):
            raise ValueError(OVERFLOW)
        return values

    def _kernel_values(self, X: Array, solution: Solution) -> Array:
        kernel = self._fitted_kernel
        step = max(1, PREDICTION_ELEMENTS // solution.dual_coef.shape[0])
        blocks = [
            kernel(X[rows, :], self.X_fit_) @ solution.dual_coef
            for rows in gen_batches(X.shape[0], step)
        ]
        return (
            blocks[0] if len(blocks) == 1 else namespace(blocks[0]).concat(blocks, axis=0)
        ) + solution.intercept

    @property
    def _fitted_kernel(self) -> Kernel:
        if callable(self.kernel):
            return Kernel(self.kernel, dict(self.kernel_params or {}))
        return Kernel(
            self.kernel, {name: getattr(self, f"{name}_") for name in PARAMETERS[self.kernel]}
        )

    # ---- company ---------------------------------------------------------------------------------

    def at(self, alpha: float) -> Any:
        """The fitted model at another regularisation value, from the same decomposition.

        Parameters
        ----------
        alpha : float
            The new regularisation value; the kernel's parameters stay as they were chosen.

        Returns
        -------
        estimator
            A new fitted estimator, equal to fitting with this ``alpha`` (and the same ``gamma_``).
            Cost: O(n²); with landmarks a pass over the rows.
        """
        check_is_fitted(self)
        kept = self._require_kept("at")
        candidates = check_alpha(alpha)
        if candidates is None or np.ndim(alpha) != 0:
            raise ValueError(f"alpha must be a single positive number here, got {alpha!r} instead.")
        kept.problem.decomposition.check(candidates)
        other = clone(self).set_params(alpha=float(alpha))
        for name, value in vars(self).items():
            if name not in other.get_params(deep=False):
                setattr(other, name, value)
        prepared = self._prepare(kept.training)
        deletions = None if kept.folds is None else _deletions(kept.folds, kept.training)
        losses = self._losses(kept.problem, prepared, candidates, deletions, self._criterion)
        other._record(Search([Trial({}, candidates, losses)]))
        other._solve(float(alpha))
        return other

    def _require_kept(self, method: str) -> Kept:
        kept: Kept | None = getattr(self, "_kept", None)
        if kept is None:
            raise ValueError(
                f"{method}() needs the decomposition of the training rows, which is not stored in "
                "files or sent to other processes "
                "(it is n×n): fit again first."
            )
        return kept

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Refit a few folds literally and compare with the closed-form held-out outputs.

        Parameters
        ----------
        n_refits : int, default=5
            How many of the splits (rows, for leave-one-out) to refit.
        X : array, optional
            The training kernel matrix, needed again for ``kernel="precomputed"`` because fitting
            does not keep it.
        random_state : int, default=0
            Which splits are taken.

        Returns
        -------
        Verification
            The largest deviation, the tolerance it is held to, the conditioning and the smallest 1
            - leverage; its text is meant to be quoted in a methods section.
        """
        check_is_fitted(self)
        return compare_with_refits(self, self._require_kept("verify"), n_refits, X, random_state)

    def report(self, path: Any, X: Any, y: Any, **options: Any) -> Any:
        """Write one offline HTML page that explains this model and lets its reader try others;
        needs ``fitonce[report]``.

        Parameters
        ----------
        path : path-like
            The file to write.
        X, y : arrays or tables
            What the model was fitted on, in the same order.
        **options
            Those of `fitonce.report.write_report`: ``assessment``, ``feature_names``,
            ``row_names``, ``title``, ``include_data``, ….

        Returns
        -------
        pathlib.Path
            Where the page is.
        """
        check_is_fitted(self)
        return importlib.import_module("fitonce.report").write_report(
            path, self, X, y, **options
        )  # a layer above this one

    def __getstate__(self) -> dict[str, Any]:
        """Without the decomposition: n×n numbers that only `at` and `verify` need."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.array_api_support = True
        return tags


@dataclass(frozen=True)
class Kept:
    """What a fitted estimator keeps for `at` and `verify`."""

    training: Training
    problem: Problem
    folds: Folds | None


def _trial_alone(
    model: Any, prepared: Prepared, deletions: Deletions | None, parameters: dict[str, Any]
) -> Trial:
    """A trial for another process: its decomposition stays there."""
    trial: Trial = model._trial(prepared, deletions, parameters)[0]
    return trial


def _criterion_of_each(criterion: Criterion, scores: HeldOutScores) -> np.ndarray:
    """The criterion of every candidate, a few at a time.

    Its temporaries are several times the size of what it looks at.
    """
    n_candidates, size = scores.predicted.shape[0], max(1, int(np.prod(scores.predicted.shape[1:])))
    step = max(1, SELECTION_ELEMENTS // size)
    return np.concatenate(
        [
            criterion(scores.candidates(slice(start, start + step)))
            for start in range(0, n_candidates, step)
        ]
    )


def _deletions(folds: Folds, training: Training) -> Deletions:
    """Each split as the active rows it deletes, and where among them its test rows are."""
    position = np.full(training.n_samples, -1)
    position[training.active] = np.arange(len(training.active))
    deletions = []
    for train, test in folds:
        deleted = complement(position[train][position[train] >= 0], len(training.active))
        tested = position[test][position[test] >= 0]
        deletions.append((deleted, np.searchsorted(deleted, tested)))
    return deletions
