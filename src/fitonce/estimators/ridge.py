"""Kernel ridge regression with an optional free bias."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metadata_routing import UNUSED

from ..core.arrays import Array, to_numpy
from ..core.holdout import Path
from ..core.readout import Numbers
from ..tuning.search import Search, TargetTrial, Trial
from ..uncertainty.process import GaussianProcess
from .base import KernelModel
from .blockwise import blockwise
from .by_target import check_by_target, check_stored, solve_by_target, works_by_target
from .confounding import check_no_confounds
from .parameters import check_options
from .process import predict_with_spread, process_of
from .progress import with_callbacks
from .record import kept_of
from .setup import Labels
from .uncertain import intervals


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelModel):
    """Kernel ridge regression, one or several targets, with held-out predictions of all rows.

    It minimises Σ w_i ‖y_i - f(x_i)‖² + alpha ‖f‖². Kernel width and alpha are chosen by held-out
    predictions, all from one decomposition per kernel. With ``fit_intercept=False`` and fixed gamma
    and alpha it is scikit-learn's KernelRidge.

    Parameters
    ----------
    alpha : float, array of candidates or "tune", default="tune"
        Regularisation; added to the eigenvalues of the centred kernel matrix. "tune" tries powers
        of two, from 2^-30 to 2^12 times the mean eigenvalue, except where that is below
        double precision. An array is a list of candidates, not one value per target.
    alpha_per_target : bool, default=False
        Whether every column of y chooses its own alpha among the candidates, by its own held-out
        predictions. Other tuned parameters are common to all, those with the best mean over
        targets. float32 targets are then worked on in float32; sums over rows are in float64.
    kernel : str, list of str, callable or KernelSum, default="rbf"
        "linear", "rbf", "laplacian", "exponential", "matern32", "matern52", "poly", "cosine",
        "sigmoid", "precomputed", or a callable ``kernel(X, Y)`` that returns the matrix of all
        pairs; each entry must depend on its two rows only. A list of names is one of candidates,
        compared by `criterion`, each with its own widths; "tune" compares "rbf", "exponential",
        "laplacian", "linear" and "poly". Landmarks are chosen by the first of them. Several kernels
        with weights are a `fitonce.KernelSum`.
    gamma : float, array (n_features,), "tune", "scale", "auto" or None, default="tune"
        Kernel coefficient, as in scikit-learn (`rbf` is exp(-gamma ‖x-x'‖²)); 1/length scale of
        "exponential" (exp(-gamma ‖x-x'‖)) and of the Matérn kernels. "tune" chooses a
        power of two by held-out predictions, with one decomposition for each value tried. An array
        (`rbf` only) is one value per feature, not a list of candidates; ``metric="diagonal"`` finds
        weights of the features. "auto" and None are 1/n_features, "scale" is 1/(n_features ·
        variance of X).
    degree, coef0 : float or "tune", default=3 and 1
        Parameters of the polynomial and (coef0) sigmoid kernels. "tune", for the polynomial kernel,
        tries the degrees 2, 3 and 4 and the values 0 and 1 of coef0.
    kernel_params : dict, default=None
        Keyword arguments for a callable kernel.
    metric : {None, "learn", "full", "diagonal"} or array, default=None
        A metric M in which the distances of a kernel are taken, (x-x')ᵀM(x-x'); for `rbf`,
        `exponential` and the Matérn kernels. "full" learns a matrix, "diagonal" a weight for each
        feature, "learn" the better of both, from the gradients of the fitted model. It is kept only
        if it pays in five folds (those of `cv` or whole groups, if given) in which it is learned on
        the training rows. Held-out outputs are then those of these folds. Landmarks stay those of
        the fit, in every fold. An array is used as it is: a matrix, or its diagonal.
    penalty : {"function", "dual", "tune"}, default="function"
        Whether alpha multiplies the norm of the function or of the dual coefficients; "tune" tries
        both.
    criterion : str, scorer or callable, default="squared_error"
        The loss by which tuned parameters and candidates are chosen. Of held-out values:
        "squared_error", the mean squared error of the targets (PRESS), "r2" or "correlation",
        1 - R² or 1 - r, averaged over targets. Of the fit of all rows, without `cv`: "gcv"
        (generalised cross-validation), and of the model as a Gaussian process "loo_log_density" and
        "marginal_likelihood", minus the mean log density a row at the most likely signal variance.
        Or one of scikit-learn's
        scorers, by name ("neg_mean_absolute_error", …) or as an object, or a callable
        ``criterion(y, held_out_prediction)`` that returns a score; higher is better for these.
    pooled : bool, default=True
        Whether the criterion is computed once over all held-out rows, or within each split of `cv`
        and then averaged.
    refine : bool, default=False
        Whether to move from the best point of the lattice to the bottom of its valley: gamma by
        gradient or line search, alpha by Newton's method where the criterion has derivatives.
        Candidates given as an array are left as they are.
    search : {"auto", "full"}, default="auto"
        How a tuned gamma is looked for. "full" tries the lattice on all rows. "auto" does so below
        1000 rows; with more it tries the lattice on a sample of them, then walks on all rows from
        the best gamma to better neighbours.
    cv : int, splitter, iterable of splits or None, default=None
        Where held-out values come from, for tuning and for `held_out_prediction_`: leave-one-out if
        None (leave-one-group-out when groups are given).
    fit_intercept : bool, "penalized" or "coefficient", default=True
        A free bias b; none; or one that is penalised. "penalized" adds one to the kernel, so that b
        is the sum of the dual coefficients: with ``penalty="function"`` the penalty is then
        alpha (‖f‖² + b²), as if the rows had one more feature that is always one; with
        ``penalty="dual"`` it is still alpha ‖dual_coef_‖², and b has none of its own.
        "coefficient", for ``penalty="dual"`` only, penalises b like every dual coefficient,
        alpha (‖dual_coef_‖² + b²): the regularised bias of Saadi et al. (2007), section 3.4.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Points that stand for the training rows: the model is a sum of kernels at these only, and
        nothing of size n×n is formed. A number of them, chosen from the training rows by
        `landmark_method`, or the points themselves. With ``penalty="function"`` this is the Nyström
        approximation, with ``penalty="dual"`` a sparse kernel expansion. Time grows like n·m²,
        memory like n.
    landmark_method : {"uniform", "kmeans", "leverage", "cholesky", "greedy"}, default="uniform"
        How a number of landmarks is chosen: rows at random; the centres of clusters; rows at random
        by approximate leverage; rows that the others describe worst (pivoted Cholesky); forward
        selection by leave-one-out squared error. Above a few thousand rows all of them look at a
        random sample.
    shared_landmarks : bool or "drop", default=False
        What happens to a number of landmarks in cross-validation. False: every training set chooses
        its own, as a refit does. True: they are chosen once, on all rows. "drop": the same, but a
        landmark that is itself a test row is left out of that fold's model. The held-out values
        that `fit` itself uses always share the landmarks of the fit, and drop them only with
        "drop".
    confounding : {"remove", "include", "columns"}, default="remove"
        What is done with the confounds that `fit` is given. "remove": they are regressed out of the
        features on the training rows, in feature space. "include": they are predictors without a
        penalty. "columns": they are regressed out of the columns of X on the training rows; for
        the linear kernel that is "remove", for others another model.
    random_state : int, RandomState instance or None, default=None
        Draws landmarks; not used without them.
    n_jobs : int or None, default=None
        How many kernel parameters are tried at the same time, through joblib; None is one unless in
        a ``joblib.parallel_config``.
    store_dual_coef, store_held_out : bool or "auto", default="auto"
        Whether to keep `dual_coef_`, which `predict` needs, and `held_out_prediction_`. "auto"
        keeps those of up to 2^25 numbers (rows times targets, 256 MiB), and always all where there
        are fewer than 64 targets.
    verbose : int, default=0
        Above 0, an estimate of time and memory before the fit and a line for every kernel tried, on
        the standard error stream; with many targets, how many are done.

    Attributes
    ----------
    alpha_, gamma_, degree_, coef0_, penalty_
        The values used; the parameters of the kernel where it has them. gamma_ is an array where
        there is one per feature, alpha_ (n_targets,) where there is one per target.
    kernel_ : str, callable or KernelSum
        The kernel that was chosen, or the one given; a sum with all weights and widths as numbers.
    metric_ : array of shape (n_features, n_features) or (n_features,), or None
        The learned metric; None where none was worth it. Only with a metric to learn.
    metric_search_ : dict
        What the folds said of it: ``kept``, the ``losses`` of all forms tried, and the ``gain`` in
        squared error of the best one with its ``standard_error``. Only with a metric to learn.
    X_fit_ : array of shape (n_samples, n_features)
        The training rows of positive weight, or the landmarks, to which `dual_coef_` refers; not
        for precomputed kernels.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        predict(X) = kernel(X, X_fit_) @ dual_coef_ + intercept_.
    intercept_ : float or array of shape (n_targets,)
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Weights of the features; linear kernel only.
    held_out_prediction_ : array of shape (n_samples,) or (n_samples, n_targets)
        What ``cross_val_predict(..., cv=LeaveOneOut())`` gives by refitting with the chosen values
        (by `cv`, if given: the mean where a row is tested several times, NaN where it never is).
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix, bias included; not with an alpha per target.
    effective_dof_ : float or array of shape (n_targets,)
        Sum of the leverages.
    cv_results_ : dict
        Everything the search tried, in the shape of scikit-learn's searches: ``params``,
        ``param_<name>``, ``mean_test_score``, ``rank_test_score``. Scores are minus the loss of
        `criterion` (what it returned, for a callable), on ``n_samples`` rows: all of them, or those
        of a sample, which rank behind. With an alpha per target, means over the targets.
    best_score_ : float or array of shape (n_targets,)
        The score of the chosen values, after refinement; of every target with an alpha of its own.
    best_params_ : dict
        The chosen values: alpha, and the other parameters that were tuned.
    refinement_ : Refinement
        With ``refine=True``: the ``steps`` of Newton's method, the ``rounds`` of gamma and alpha.
    landmarks_ : array of shape (n_landmarks, n_features)
        The landmarks, if any; `X_fit_` are then these.
    landmark_indices_ : array of shape (n_landmarks,)
        Their row numbers in X, -1 for points that are no training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.metrics import r2_score
    >>> from fitonce import KernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRidge().fit(X, y)
    >>> print(f"{r2_score(y, model.held_out_prediction_):.2f}")   # leave-one-out, 442 refits' worth
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
        metric: Any = None,
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
        self.alpha = alpha
        self.alpha_per_target = alpha_per_target
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.metric = metric
        self.penalty = penalty
        self.criterion = criterion
        self.pooled = pooled
        self.refine = refine
        self.search = search
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.shared_landmarks = shared_landmarks
        self.confounding = confounding
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.store_dual_coef = store_dual_coef
        self.store_held_out = store_held_out
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        confounds: Any = None,
    ) -> Self:
        """Fit the model, choosing what is to be tuned by `criterion` of held-out predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``. With
            `landmarks` also a Dask collection, or the rows of a file or of blocks
            (`fitonce.rows.open_rows`), which bring their targets with them.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. From 64 columns on, or with an alpha for each, they are worked on a block of
            columns at a time and not copied: an ``np.memmap`` is read as it is needed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows of weight 0 do not train.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.
        confounds : table or array of shape (n_samples,) or (n_samples, n_confounds), default=None
            What must not explain anything, such as age and site: see `confounding`. Numbers are
            numbers; text, truth values and categories of a table are categories.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, groups, confounds)
        return self

    def __fitonce_labels__(self, y: np.ndarray, weights: np.ndarray | None) -> Labels:
        readout = Numbers(1 if y.ndim == 1 else y.shape[1], single=y.ndim == 1)
        return Labels(readout, None, None, weights)

    def _set_held_out(self, held_out: Array) -> None:
        self.held_out_prediction_ = held_out

    def _by_target(self, y: Any, *given: Any) -> bool:
        return works_by_target(self, y, confounded=len(given) > 2 and given[2] is not None)

    def _check_stored(self) -> None:
        check_stored(self)

    def _record(self, found: Search, winner: Trial, perfect: float, n_samples: int) -> None:
        super()._record(found, winner, perfect, n_samples)
        if isinstance(winner, TargetTrial):
            self.best_score_ = perfect - winner.chosen_loss
            self.best_params_["alpha"] = winner.alphas[winner.chosen]

    def _solve_winner(self, winner: Trial, path: Path | None) -> None:
        record = kept_of(self, "a fit")
        if not record.by_target:
            super()._solve_winner(winner, path)
        elif isinstance(winner, TargetTrial):
            self.alpha_ = winner.alphas[winner.chosen]
            solve_by_target(self, record, self.alpha_)
        else:
            self.alpha_ = winner.alpha
            solve_by_target(self, record, np.full(record.readout.n_targets, winner.alpha))

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
        """Predicted targets, with the standard deviations of a Gaussian process where asked for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            Rows, or their kernel with the training rows for ``kernel="precomputed"``.
        return_std, return_cov : bool, default=False
            Also the standard deviations (m,) or covariances (m, m) of the predicted function, with
            a last axis for the targets where y has columns. The model is read as a Gaussian process
            with covariance σ² times the kernel, noise variance σ² · alpha (divided by a row's
            weight) and a flat prior on a free bias; ``penalty="function"`` only.
        signal_variance : float or "profile", default=1.0
            σ². At 1, without a bias, these are the values of scikit-learn's
            GaussianProcessRegressor. "profile" is the most likely one, of each target its own.
        noise : bool, default=False
            Whether the spread is that of a new observation, not of the function alone.
        confounds : table or array, default=None
            The confounds of these rows, where the model was fitted with confounds.

        Returns
        -------
        array of shape (m,) or (m, n_targets), or a pair of arrays
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be asked for: choose one.")
        if return_std or return_cov:
            check_no_confounds(self, "the spread of a Gaussian process")
            return predict_with_spread(self, X, return_cov, signal_variance, noise)
        return self._predicted(X, "predict", confounds)

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

        `multioutput` is that of scikit-learn's ``r2_score``: "raw_values" for one R² per target.
        """
        given = {} if confounds is None else {"confounds": confounds}
        predicted = to_numpy(self.predict(X, **given))
        options = {"sample_weight": sample_weight, "multioutput": multioutput}
        return r2_score(to_numpy(y), predicted, **options)

    def gaussian_process(self, signal_variance: Any = 1.0) -> GaussianProcess:
        """The model read as a Gaussian process: leave-one-out densities and marginal likelihood.

        Parameters
        ----------
        signal_variance : float or "profile", default=1.0
            σ², as in `predict`.

        Returns
        -------
        GaussianProcess
            ``held_out_mean``, ``held_out_std``, ``held_out_log_density`` and ``standardized``
            errors of every training row by the process without it, ``log_marginal_likelihood``,
            ``signal_variance`` and ``noise_variance``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from fitonce import KernelRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = KernelRidge(criterion="marginal_likelihood").fit(X, y)
        >>> process = model.gaussian_process("profile")
        >>> print(f"{process.standardized.std():.2f}")  # of rows that were left out
        1.00
        """
        check_no_confounds(self, "gaussian_process()")
        return process_of(self, signal_variance)

    def __fitonce_check__(self) -> None:
        super().__fitonce_check__()
        check_options(
            self,
            alpha_per_target=(True, False),
            store_dual_coef=(True, False, "auto"),
            store_held_out=(True, False, "auto"),
        )
        check_by_target(self)
        likelihood = ("loo_log_density", "marginal_likelihood")
        named = isinstance(self.criterion, str) and self.criterion in likelihood
        if named and self.penalty != "function":
            raise ValueError(
                f'criterion={self.criterion!r} needs penalty="function", got '
                f"penalty={self.penalty!r} instead: only the norm of the function is the prior of "
                "a Gaussian process."
            )

    def predict_interval(
        self,
        X: Any,
        confidence: float = 0.9,
        method: str = "jackknife+",
        *,
        cv: Any = None,
        union: bool = False,
    ) -> Any:
        """Intervals that hold the targets of new rows, without a second set of data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            New rows, or their kernel with the training rows for ``kernel="precomputed"``.
        confidence : float, default=0.9
            The share of new rows that the intervals should hold, 1 - α.
        method : {"jackknife+", "cv+", "jackknife-minmax", "full"}, default="jackknife+"
            What is guaranteed for rows that are exchangeable with the training rows and for
            parameters that were not tuned on them: "full" and "jackknife-minmax" hold at least
            1 - α of them, "jackknife+" at least 1 - 2α, "cv+" at least 1 - 2α - √(2/n). In practice
            "jackknife+", "cv+" and "full" are near 1 - α, "jackknife-minmax" above it. Where `fit`
            was given groups, whole groups are left out and counted.
        cv : int, splitter or iterable of splits, default=None
            The folds of "cv+", which leave out every row once: by default those of the estimator's
            own `cv`, else ten at random.
        union : bool, default=False
            For "full", whose set of values can have gaps: a list with the intervals (k, 2) of each
            row instead of the one interval around them.

        Returns
        -------
        array of shape (m, 2), or (m, 2, n_targets) where y has columns
            Lower and upper ends; infinite where there are too few rows for this confidence.

        Notes
        -----
        Exact: what n refits give (k for "cv+"). From the decomposition of the fit it takes O(n²)
        for each new row. Parameters tuned on the same rows make the guarantee approximate; see the
        guide on uncertainty for measured coverage.

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
        check_no_confounds(self, "predict_interval()")
        return intervals(self, X, confidence, method, cv, union)
