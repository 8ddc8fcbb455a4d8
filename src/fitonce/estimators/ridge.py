"""Kernel ridge regression with an optional free bias."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metadata_routing import UNUSED

from ..core.arrays import Array, asarray_like, to_numpy
from ..core.readout import Numbers
from ..core.rows import is_rows
from ..rows.dask import is_dask
from ..uncertainty.process import GaussianProcess
from .base import KernelModel
from .intervals import intervals, process_of, spread_of
from .parameters import store_parameters
from .record import record_of, record_of_unseen
from .setup import Labels
from .validation import blockwise


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelModel):
    """Kernel ridge regression for one or several targets, with held-out predictions of all rows.

    It minimizes Σ w_i ‖y_i - f(x_i)‖² + alpha ‖f‖². Kernel width and alpha are tuned by held-out
    predictions, all from one decomposition per kernel. With ``fit_intercept=False`` and fixed
    gamma and alpha, it equals scikit-learn's KernelRidge.

    Parameters
    ----------
    alpha : float, array of candidates or "tune", default="tune"
        Regularization, added to the eigenvalues of the centered kernel matrix. "tune" tries powers
        of two, from 2^-30 to 2^12 times the mean eigenvalue. An array is a list of candidates.
    alpha_per_target : bool, default=False
        Whether every column of y chooses its own alpha among the candidates. Other tuned parameters
        have the best mean over targets.
    kernel : str, list of str, callable or KernelSum, default="rbf"
        "linear", "rbf", "laplacian", "exponential", "matern32", "matern52", "poly", "cosine",
        "sigmoid", "precomputed", a callable ``kernel(X, Y)`` that returns the matrix of all pairs,
        or a `fitonce.KernelSum`. A list of names is compared by `criterion`; "tune" compares "rbf",
        "exponential", "laplacian" and "linear".
    gamma : float, array (n_features,), "tune", "scale", "auto" or None, default="tune"
        Kernel coefficient, as in scikit-learn; 1/length scale of "exponential" and the Matérn
        kernels. "tune" chooses a power of two. An array has one value per feature (`rbf` only).
        "auto" and None are 1/n_features, "scale" is 1/(n_features · variance of X).
    degree, coef0, kernel_params : object
        As in `KernelFisherDiscriminant`.
    penalty : {"function", "dual", "tune"}, default="function"
        Whether alpha penalizes the norm of the function or of the dual coefficients; "tune" tries
        both.
    criterion : str, scorer or callable, default="squared_error"
        The loss that tuning minimizes. Of held-out values: "squared_error", "r2" or "correlation"
        (1 - R², 1 - r). Of the fit of all rows, without `cv`: "gcv", "loo_log_density",
        "marginal_likelihood". Or a scikit-learn scorer or its name, or a callable ``criterion(y,
        held_out_prediction)``, of which higher is better.
    pooled : bool, default=True
        Whether to compute the criterion once over all held-out rows, or within each split of `cv`
        and then average.
    refine, search : object
        As in `KernelFisherDiscriminant`.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for held-out values, which tuning uses. None means leave-one-out
        (leave-one-group-out if groups are given).
    fit_intercept : bool, "penalized" or "coefficient", default=True
        A free bias b, no bias, or a penalized one: with "penalized" one is added to the kernel;
        "coefficient" penalizes b like a dual coefficient, for ``penalty="dual"``.
    landmarks, landmark_method, shared_landmarks, confounding, random_state, n_jobs : object
        As in `KernelFisherDiscriminant`.
    store_dual_coef, store_held_out : bool or "auto", default="auto"
        Whether to keep `dual_coef_`, which `predict` needs, and `held_out_prediction_`. "auto"
        keeps arrays of up to 256 MiB, and all of fewer than 64 targets.
    verbose : int, default=0
        If above 0, print an estimate of time and memory, and a line for every kernel tried, to
        standard error.

    Attributes
    ----------
    alpha_, gamma_, degree_, coef0_, penalty_
        The values used, and the parameters of the kernel if it has them. alpha_ is an array if
        there is one per target.
    kernel_ : str, callable or KernelSum
        The chosen or given kernel; for a sum, with all weights and widths as numbers.
    X_fit_ : array of shape (n_samples, n_features)
        The training rows with positive weight, or the landmarks; not for precomputed kernels.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        predict(X) = kernel(X, X_fit_) @ dual_coef_ + intercept_.
    intercept_ : float or array of shape (n_targets,)
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Weights of the features; only for the linear kernel.
    held_out_prediction_ : array of shape (n_samples,) or (n_samples, n_targets)
        The result of ``cross_val_predict`` by refitting with the chosen values, for leave-one-out
        or `cv`: the mean if a row is tested several times, NaN if it is never tested.
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix, including the bias; not with one alpha per target.
    effective_dof_ : float or array of shape (n_targets,)
        Sum of the leverages.
    cv_results_ : dict
        As in `KernelFisherDiscriminant`; with one alpha per target, scores are means over the
        targets.
    best_score_ : float or array of shape (n_targets,)
        The score of the chosen values, after refinement; for each target if each has its own alpha.
    best_params_ : dict
        The chosen values: alpha, and the other parameters that were tuned.
    refinement_, landmarks_, landmark_indices_ : object
        As in `KernelFisherDiscriminant`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.metrics import r2_score
    >>> from fitonce import KernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRidge().fit(X, y)
    >>> print(f"{r2_score(y, model.held_out_prediction_):.2f}")  # equal to 442 refits
    0.51
    """

    multi_output: ClassVar[bool] = True
    __metadata_request__score: ClassVar[dict[str, Any]] = {"multioutput": UNUSED}

    def __init__(
        self,
        alpha: Any = "tune",
        *,
        alpha_per_target: bool = False,
        kernel: Any = "rbf",
        gamma: Any = "tune",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        penalty: str = "function",
        criterion: Any = "squared_error",
        pooled: bool = True,
        refine: bool = False,
        search: str = "auto",
        cv: Any = None,
        fit_intercept: bool | str = True,
        landmarks: Any = None,
        landmark_method: str = "uniform",
        shared_landmarks: bool | str = False,
        confounding: str = "remove",
        random_state: Any = None,
        n_jobs: int | None = None,
        store_dual_coef: bool | str = "auto",
        store_held_out: bool | str = "auto",
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def __fitonce_labels__(self, y: np.ndarray, weights: np.ndarray | None) -> Labels:
        readout = Numbers(1 if y.ndim == 1 else y.shape[1], single=y.ndim == 1)
        return readout, None, None, weights

    def _set_held_out(self, held_out: Array) -> None:
        self.held_out_prediction_ = held_out

    @blockwise
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        signal_variance: Any = 1.0,
        noise: bool = False,
        confounds: Any = None,
    ) -> Any:
        """Predict targets, optionally with the standard deviations of a Gaussian process.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            Rows, or their kernel with the training rows for ``kernel="precomputed"``.
        return_std, return_cov : bool, default=False
            Whether to return also the standard deviations (m,) or covariances (m, m) of the
            predicted function, with a last axis for the targets if y has columns. The model is
            treated as a Gaussian process with covariance σ² times the kernel, noise variance σ² ·
            alpha (divided by the weight of a row) and a flat prior on a free bias; only for
            ``penalty="function"``.
        signal_variance : float or "profile", default=1.0
            σ². "profile" is the most likely value, for each target.
        noise : bool, default=False
            Whether to return the uncertainty of a new observation instead of the function.
        confounds : table or array, default=None
            The confounds of these rows, if the model was fitted with confounds.

        Returns
        -------
        array of shape (m,) or (m, n_targets), or a pair of arrays
            Predictions, and their deviations or covariances.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot be combined: choose one.")
        if return_std or return_cov:
            return self._predicted_with_spread(X, return_cov, signal_variance, noise)
        return self._predicted(X, "predict", confounds)

    def _predicted_with_spread(self, X: Any, covariance: bool, *given: Any) -> tuple[Array, Array]:
        """Predictions, and standard deviations or covariances."""
        if is_rows(X) or is_dask(X):
            raise ValueError(
                "return_std and return_cov need the rows in memory, got a file, blocks or a Dask "
                "collection: predict some rows at a time."
            )
        mean = self._predicted(X, "predict")
        record = record_of(self, "return_cov" if covariance else "return_std")
        spread = spread_of(record, self._new_rows(X, "predict")[0], covariance, *given)
        return mean, spread if isinstance(mean, np.ndarray) else asarray_like(spread, mean)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        confounds: Any = None,
        *,
        multioutput: Any = "uniform_average",
    ) -> Any:
        """R² of the predictions, averaged over targets.

        `multioutput` is as in scikit-learn's ``r2_score``: "raw_values" for one R² per target.

        Returns
        -------
        float or array of shape (n_targets,)
            R².
        """
        given = {} if confounds is None else {"confounds": confounds}
        predicted = to_numpy(self.predict(X, **given))
        options = {"sample_weight": sample_weight, "multioutput": multioutput}
        return r2_score(to_numpy(y), predicted, **options)

    def gaussian_process(self, signal_variance: Any = 1.0) -> GaussianProcess:
        """The model as a Gaussian process: leave-one-out densities and marginal likelihood.

        Parameters
        ----------
        signal_variance : float or "profile", default=1.0
            σ², as in `predict`.

        Returns
        -------
        GaussianProcess
            ``held_out_mean``, ``held_out_std``, ``held_out_log_density`` and ``standardized``
            errors of every training row from the process without it, ``log_marginal_likelihood``,
            ``signal_variance`` and ``noise_variance``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from fitonce import KernelRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = KernelRidge(criterion="marginal_likelihood").fit(X, y)
        >>> process = model.gaussian_process("profile")
        >>> print(f"{process.standardized.std():.2f}")  # of held-out rows
        1.00
        """
        return process_of(record_of(self, "gaussian_process"), signal_variance)

    def predict_interval(
        self,
        X: Any,
        confidence: float = 0.9,
        method: str = "jackknife+",
        *,
        cv: Any = None,
        union: bool = False,
        scaled: bool = False,
        confounds: Any = None,
    ) -> Any:
        """Prediction intervals for new rows, without an extra calibration set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            New rows, or their kernel with the training rows for ``kernel="precomputed"``.
        confidence : float, default=0.9
            The desired coverage, 1 - α: the share of new rows inside their interval.
        method : {"jackknife+", "cv+", "jackknife-minmax", "full"}, default="jackknife+"
            Guaranteed coverage for exchangeable rows and parameters that were not tuned on them: at
            least 1 - α for "full" and "jackknife-minmax", 1 - 2α for "jackknife+", 1 - 2α - √(2/n)
            for "cv+". If `fit` was given groups, whole groups are left out and counted.
        cv : int, splitter or iterable of splits, default=None
            The folds of "cv+"; by default those of the estimator's `cv`, else ten random folds.
        union : bool, default=False
            For "full", whose set of values can have gaps: whether to return a list of the intervals
            (k, 2) of each row.
        scaled : bool, default=False
            Whether the width follows the deviation of the Gaussian process at the row, so that it
            grows away from the training rows. For "jackknife+" and "jackknife-minmax" without
            groups, landmarks or confounds, and ``penalty="function"``.
        confounds : table or array, default=None
            The confounds of these rows, if the model was fitted with confounds.

        Returns
        -------
        array of shape (m, 2), or (m, 2, n_targets) where y has columns
            Lower and upper ends; infinite if there are too few rows for this confidence.

        Notes
        -----
        Exact: equal to n refits (k for "cv+"). With the decomposition of the fit, it takes O(n²)
        for each new row. If parameters were tuned on the same rows, the guarantee is approximate.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from fitonce import KernelRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = KernelRidge(gamma=2.0, alpha=0.5).fit(X[:300], y[:300])
        >>> band = model.predict_interval(X[300:], confidence=0.8)
        >>> inside = (band[:, 0] <= y[300:]) & (y[300:] <= band[:, 1])
        >>> print(f"{inside.mean():.2f}")
        0.80
        """
        record = record_of_unseen(self, "predict_interval")
        X, _, C = self._new_rows(X, "predict_interval", confounds)
        return intervals(record, X, C, confidence, method, cv, union, scaled)
