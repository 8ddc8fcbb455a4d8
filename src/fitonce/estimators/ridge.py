"""Kernel ridge regression with an optional free bias."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ..core._arrays import Array
from ..core.smoother import Fitted
from .base import KernelModel
from .problem import Problem
from .progress import with_callbacks
from .validation import check_options


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelModel):
    """Kernel ridge regression, one or several targets, with leave-one-out predictions and alpha for free.

    It minimises Σ w_i ‖y_i - f(x_i)‖² + alpha ‖f‖². With ``fit_intercept=False`` and one alpha it is scikit-learn's KernelRidge.

    Parameters
    ----------
    kernel, gamma, degree, coef0, kernel_params
        As in :class:`LeastSquaresSVC`.
    alpha : float, array of candidates or "tune", default="tune"
        Regularisation, added to the eigenvalues of the centred kernel matrix. An array is a list of candidates for all targets
        together, not one value per target.
    penalty : {"function", "dual"}, default="function"
        Whether alpha multiplies the norm of the function or of the dual coefficients.
    cv : int, splitter, iterable of splits or None, default=None
        Where held-out values come from: leave-one-out if None (leave-one-group-out when groups are given).
    fit_intercept : bool or "penalized", default=True
        A free bias, none, or one that is penalised like every other weight.

    Attributes
    ----------
    alpha_, gamma_, penalty_
        The values used.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        predict(X) = kernel(X, X_fit_) @ dual_coef_ + intercept_.
    intercept_ : float or array of shape (n_targets,)
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Weights of the features; linear kernel only.
    held_out_prediction_ : array of shape (n_samples,) or (n_samples, n_targets)
        What ``cross_val_predict(..., cv=LeaveOneOut())`` gives by refitting (by `cv`, if given).
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix; `effective_dof_` is its sum.
    cv_results_, best_score_
        Candidates of alpha with minus their held-out squared error.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.metrics import r2_score
    >>> from fitonce import KernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRidge().fit(X, y)
    >>> print(f"{r2_score(y, model.held_out_prediction_):.2f}")   # leave-one-out, 442 refits' worth
    0.48
    """

    _multi_output: ClassVar[bool] = True
    _main_method: ClassVar[str] = "predict"

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "tune",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: Any = "tune",
        penalty: str = "function",
        criterion: Any = "squared_error",
        pooled: bool = True,
        refine: bool = False,
        cv: Any = None,
        fit_intercept: bool | str = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.penalty = penalty
        self.criterion = criterion
        self.pooled = pooled
        self.refine = refine
        self.cv = cv
        self.fit_intercept = fit_intercept

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model, choosing alpha by held-out squared error where several candidates are given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows of weight 0 do not train.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_options(self, fit_intercept=(True, False, "penalized"))

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        self._single = y.ndim == 1
        return y.astype(np.float64).reshape(len(y), -1)

    def _output(self, values: Array) -> Array:
        return values[:, 0] if self._single else values

    def _public_coef(self, coef: Array, squeeze: bool) -> Array:
        return coef[0, :] if squeeze else coef

    def _finish(self, problem: Problem, fitted: Fitted, mu: float) -> None:
        self._set_main_solution(problem.solution(fitted, mu), squeeze=self._single)
        self.held_out_prediction_ = self._held_out_outputs(problem, fitted, mu)

    @property
    def _held_out(self) -> Array:
        return self.held_out_prediction_

    def predict(self, X: Any) -> Array:
        """Predicted targets of the rows of X (their kernel with the training rows for ``kernel="precomputed"``)."""
        return self._predicted(X, "predict")
