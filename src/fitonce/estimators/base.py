"""The workflow that all three estimators share: validate, tune, solve, hold out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.holdout import Fitted
from ..core.readout import Evidence, Readout
from ..core.rows import dense_like
from ..kernels import Kernel, KernelSum, SummedKernel
from ..tuning.refine import refine
from ..tuning.solution import Solution
from ..tuning.trial_runner import SearchProgress, TrialRunner
from ..tuning.trials import Trial, Trials
from ..tuning.tuner import Candidates
from .accuracy import (
    Verification,
    verified,
    warn_if_inaccurate,
    warn_of_greedy_landmarks,
    warn_of_weighted_landmarks,
)
from .by_target import check_stored, solve_by_target, works_by_target
from .confounding import new_confounds
from .intervals import influences
from .parameter_values import check_alpha, is_precomputed
from .parameters import OTHER_WORDS, used
from .record import FitRecord, kept_of, record_of
from .setup import Labels, folds_of, setup_of
from .validation import check_new_data

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


class CallbackTasks:
    """Steps of a fit as tasks of scikit-learn's callbacks, the root and its subtasks; does nothing
    without callback support.

    ``model.set_callbacks(sklearn.callback.ProgressBar())`` then shows one line per decomposition,
    inside GridSearchCV too.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._arguments = {"estimator": estimator, "X": X, "y": y}
        start = getattr(estimator, "_init_callback_context", None)
        self._root = None if start is None else start(max_subtasks=None)
        if self._root is not None:
            self._root.call_on_fit_task_begin(**self._arguments)

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        """One subtask, such as a decomposition."""
        context = None if self._root is None else self._root.subcontext(task_name=name)
        if context is not None:
            context.call_on_fit_task_begin(**self._arguments)
        yield
        if context is not None:
            context.call_on_fit_task_end(**self._arguments)

    def end(self) -> None:
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._arguments)


class KernelModel(CallbackSupportMixin, BaseEstimator):
    """Workflow and parameters of the kernel least-squares estimators; not for direct use."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "confounds": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"confounds": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"confounds": True}
    multi_output: ClassVar[bool] = False
    _kept: FitRecord | None = None
    _used: Mapping[str, Any] = MappingProxyType({})  # parameters as they were in the fit
    _shift: Any = 0.0  # added to held-out outputs by calibration
    _step_with_targets_: str | None = None  # a step before the model in a pipeline

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Name our words where those of other software are given; Python refuses all others."""
        for name in OTHER_WORDS.keys() & given.keys():
            raise TypeError(f"{cls.__name__} has no parameter {name}: pass {OTHER_WORDS[name]}.")
        return cast(Self, super().__new__(cls))

    def __fitonce_labels__(self, y: np.ndarray, weights: np.ndarray | None) -> Labels:
        """How y of the active rows is read; raises errors if it is invalid."""
        raise NotImplementedError

    def _set_model(self, solution: Solution, readout: Readout, evidence: Evidence | None) -> None:
        """Set the attributes of a model of targets, given what the rows say of the classes, where
        the readout needs it.
        """
        self._set_solution(solution, readout)

    def _set_held_out(self, held_out: Array) -> None:
        raise NotImplementedError

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        confounds: Any = None,
    ) -> Self:
        """Fit the model and tune its parameters by the `criterion` of held-out predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``. With
            `landmarks`, also a Dask collection, or the rows of a file or of blocks
            (`fitonce.rows.open_rows`), which contain their targets.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels of any type; for KernelRidge, numbers. Many targets are processed in blocks of
            columns, so that an ``np.memmap`` is read as needed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows with zero weight are not used for training.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.
        confounds : table or array of shape (n_samples,) or (n_samples, n_confounds), default=None
            Variables to adjust for, such as age and site. Strings, booleans and categories are
            categorical.

        Returns
        -------
        self
            Fitted.
        """
        tasks = CallbackTasks(self, X, y)
        fresh = object.__new__(type(self))  # a fit that fails leaves this object unchanged
        fresh.__dict__ = self._as_given()
        fresh._fit_here(tasks, X, y, sample_weight, groups, confounds)
        self.__dict__ = self._as_given() | vars(fresh)
        tasks.end()
        return self

    def _as_given(self) -> dict[str, Any]:
        """All attributes except those of an earlier fit, whose names end with an underscore."""
        return {name: v for name, v in vars(self).items() if not name.endswith("_")}

    def _fit_here(self, tasks: CallbackTasks, X: Any, y: Any, *given: Any) -> None:
        """Validate, tune and solve, given the weights, groups and confounds of the rows."""
        setup = setup_of(self, X, y, *given, by_target=works_by_target(self, y))
        folds = folds_of(self.cv, setup.training, classifier=not self.multi_output)
        tuner = setup.tuner(folds)
        runner = TrialRunner(tuner, self.n_jobs, tasks.task)
        runner.seen = SearchProgress(runner, self.verbose).tried
        trials, best = runner.search()
        if setup.specification.refines:
            with tasks.task("refine"):
                trials, best, self.refinement_ = refine(tuner, trials, best)
        runner.warn_at_edges(best, best.problem.smoother)
        record = FitRecord(setup.training, tuner, best.problem, folds).light()
        self._set_search(record, trials, best)
        warn_of_weighted_landmarks(self.penalty_, setup.data)
        warn_of_greedy_landmarks(self)
        with tasks.task("solve"):
            self._solve(record, best)

    def _set_search(self, record: FitRecord, trials: Trials, winner: Trial) -> None:
        """Set what was chosen, and what was tried."""
        self._kept = record
        training, problem, landmarks = record.training, record.problem, record.tuner.data.landmarks
        self._set_labels(record.tuner.data.classes, problem.kernel)
        self._record(record, trials, winner)
        if problem.X is not None:
            self.X_fit_ = problem.X
        self.penalty_ = winner.parameters.get("penalty", self.penalty)
        if landmarks is not None:
            self.landmarks_ = problem.X
            rows = training.active[landmarks.rows]
            self.landmark_indices_ = np.where(landmarks.rows >= 0, rows, -1)
        partly = training.precomputed and not training.all_active
        self._columns = training.active if partly else None

    def _set_labels(self, classes: np.ndarray | None, kernel: Kernel) -> None:
        """Set the classes, the kernel as it was chosen, and the parameters that predictions use."""
        kernel_and_rows = ("kernel", "kernel_params", "fit_intercept", "landmarks")
        names = (*kernel_and_rows, "calibration", "criterion")
        self._used = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if classes is not None:
            self.classes_ = classes
        if isinstance(self.kernel, KernelSum):
            self.kernel_: Any = self.kernel.decided(cast(SummedKernel, kernel))
            return
        self.kernel_ = kernel.function
        self._used |= {"kernel": kernel.function}
        if not callable(kernel.function):
            for name, value in kernel.parameters.items():
                setattr(self, f"{name}_", value)

    def _record(self, record: FitRecord, found: Trials, winner: Trial) -> None:
        """Set what was tried, as scores: minus the losses, and for AUC and R² one minus the loss;
        and the parameters of the model.
        """
        perfect = record.tuner.specification.criterion.perfect
        self.cv_results_ = found.cv_results(perfect, len(record.training.active))
        alpha, loss = winner.choice
        self.best_score_: Any = perfect - loss
        self.best_params_ = {**winner.parameters, "alpha": alpha}

    def _solve(self, record: FitRecord, winner: Trial) -> None:
        """Everything after alpha is known: the model, its held-out outputs, its diagnostics; of
        many targets in blocks, at their own alphas.
        """
        if record.tuner.data.columns is not None:
            solve_by_target(self, record, winner.choice[0])
            return
        problem, mu = record.problem, winner.alpha
        self.alpha_: Any = mu
        path = problem.path(np.asarray([mu])) if winner.path is None else winner.path.at(mu)
        warn_if_inaccurate(problem, mu, path, record.readout)
        fitted: Fitted = record.fitted(path)
        self.leverage_ = 1.0 - path.one_minus_h[0, :]
        self.effective_dof_ = float(namespace(self.leverage_).sum(self.leverage_))
        evidence = problem.evidence(fitted) if record.readout.needs_scatter else None
        self._set_model(problem.solution(fitted, mu), record.readout, evidence)
        self._set_held_out(record.held_out(path))

    def _set_solution(self, solution: Solution, readout: Readout) -> None:
        """Set the public attributes dual_coef_, intercept_ and coef_; without a second axis if
        there is only one output.
        """
        shaped = readout.shaped
        self.dual_coef_ = shaped(solution.dual_coef)
        intercept = shaped(solution.intercept[None, :])[0, ...]
        self.intercept_ = intercept if intercept.ndim else float(intercept)
        if solution.coef is not None:
            # classifiers have scikit-learn's shape (1, p) or (c, p)
            self.coef_ = shaped(solution.coef).T if self.multi_output else solution.coef.T
        if solution.confound_coef is not None:
            self.confound_coef_ = shaped(solution.confound_coef)

    def _solution(self) -> Solution:
        """The fitted model behind the main output, from the public attributes, which are all that
        files have.
        """
        dual_coef, coef = self.dual_coef_, getattr(self, "coef_", None)
        intercept = namespace(dual_coef).reshape(asarray_like(self.intercept_, dual_coef), (-1,))
        if coef is not None and coef.ndim > 1:
            coef = coef.T
        parts = dual_coef, coef, getattr(self, "confound_coef_", None)
        dual_coef, coef, of_confounds = (
            A[:, None] if A is not None and A.ndim == 1 else A for A in parts
        )
        return Solution(dual_coef, intercept, coef, self._centred, of_confounds)

    @property
    def _centred(self) -> bool:
        """Whether the dual coefficients sum to zero."""
        free = used(self, "fit_intercept") is True and used(self, "landmarks") is None
        return free and bool(self.penalty_ == "function")

    def _predicted(self, X: Any, method: str, confounds: Any = None) -> Array:
        """The main output for new rows."""
        X, _, C = self._new_rows(X, method, confounds)
        solution = self._solution()
        predict = solution.values if self.multi_output else solution.decisions
        values = predict(fitted_kernel(self), X, getattr(self, "X_fit_", None), confounds=C)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values

    def _new_rows(
        self, X: Any, method: str, confounds: Any = None
    ) -> tuple[Array, Any, Array | None]:
        """Validated rows, their dtype, and their confounds if the model has coefficients for them.

        For a precomputed kernel, only the columns used for training.
        """
        check_is_fitted(self)
        check_stored(self)
        X, dtype = check_new_data(self, X, method, self.dual_coef_)
        C = new_confounds(self, confounds, int(X.shape[0]), method)
        X = X if self._columns is None else take(X.T, self._columns).T
        return X, dtype, None if C is None else asarray_like(C, dense_like(X))

    def at(self, alpha: float) -> Any:
        """The fitted model at another regularization value, from the same decomposition.

        Parameters
        ----------
        alpha : float
            The new regularization value; the kernel parameters stay as chosen.

        Returns
        -------
        estimator
            A new fitted estimator, equal to fitting with this ``alpha`` (and the same ``gamma_``).
            Cost: O(n²); with landmarks, one pass over the rows. After a regression of many
            rows with a single fixed alpha, the first call makes the decomposition.
        """
        check_is_fitted(self)
        record = kept_of(self, "at")
        candidates = check_alpha(alpha)
        if candidates is None or np.ndim(alpha) != 0:
            raise ValueError(f"alpha must be a single positive number here, got {alpha!r} instead.")
        record.problem.check(candidates)
        other = clone(self).set_params(alpha=float(alpha))
        vars(other).update({n: v for n, v in vars(self).items() if n not in vars(other)})
        (trial,) = record.tuner.judged([Candidates(record.problem, candidates)])
        other._record(record, Trials([trial]), trial)
        other._solve(record, trial)
        # the rows among them, so that writing into one model does not change the other
        fitted = {name: value for name, value in vars(other).items() if name.endswith("_")}
        vars(other).update(deepcopy(fitted))
        return other

    def influence(self) -> np.ndarray:
        """How leaving out each training row changes the output at every training row.

        Returns
        -------
        array of shape (n, n), or (n, n, n_outputs)
            ``[i, j]``: the output at row j of the model without row i, minus that of the full
            model.
            Outputs are predictions, or decisions before calibration. Rows with zero weight are left
            out. If `fit` was given groups, the first axis counts these, in sorted order.

        Notes
        -----
        Exact: equal to n refits with the chosen parameters. Cost: O(n²) after one product of n×n
        matrices; for discriminants, also n rules.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from fitonce import KernelRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = KernelRidge(gamma=2.0, alpha=0.5).fit(X, y)
        >>> size = abs(model.influence()).sum(axis=1)
        >>> int(size.argmax())  # the row that influences the others most
        123
        """
        check_is_fitted(self)
        return influences(record_of(self, "influence"))

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Refit a few folds literally and compare with the closed-form held-out outputs.

        Parameters
        ----------
        n_refits : int, default=5
            Number of splits (rows, for leave-one-out) to refit.
        X : array, optional
            The training kernel matrix. It is needed again for ``kernel="precomputed"``, because the
            fitted model does not keep it.
        random_state : int, default=0
            Seed for choosing the splits.

        Returns
        -------
        Verification
            The largest deviation, its tolerance, the conditioning and the smallest 1 - leverage.
            Its text can be quoted in a methods section.
        """
        check_is_fitted(self)
        record = kept_of(self, "verify").whole()
        options = {"n_refits": n_refits, "X": X, "random_state": random_state}
        return verified(self, record, uncalibrated(self), **options)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the decomposition: n×n numbers that only `at`, `verify` and displays
        need.
        """
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the search results as scikit-learn's masked arrays, which files store as plain
        ones.
        """
        super().__setstate__(state)
        if hasattr(self, "cv_results_"):
            self.cv_results_ = {
                name: np.ma.asarray(values) if name.startswith("param_") else values
                for name, values in self.cv_results_.items()
            }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        tags.array_api_support = True
        return tags


def held_out_output(model: Any) -> np.ndarray:
    """`held_out_decision_` or `held_out_prediction_`, as a NumPy array."""
    if model.multi_output and not hasattr(model, "held_out_prediction_"):
        raise ValueError(
            "this model did not keep its held-out predictions: fit with store_held_out=True."
        )
    output = model.held_out_prediction_ if model.multi_output else model.held_out_decision_
    return to_numpy(output)


def uncalibrated(model: Any) -> np.ndarray:
    """Held-out outputs before calibration moved their threshold."""
    return np.asarray(held_out_output(model) - model._shift)


def fitted_kernel(model: Any) -> Kernel:
    """The kernel with the parameters of the fit."""
    kernel = used(model, "kernel")
    if isinstance(kernel, KernelSum):
        return cast(KernelSum, model.kernel_).kernel(model.n_features_in_)
    if callable(kernel):
        return Kernel(kernel, dict(used(model, "kernel_params") or {}))
    names = ("gamma", "degree", "coef0")
    parameters = {n: getattr(model, f"{n}_") for n in names if hasattr(model, f"{n}_")}
    return Kernel(kernel, parameters)
