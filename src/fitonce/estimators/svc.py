"""The least-squares support vector machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.readout import Signs
from .classifier import KernelClassifier
from .parameter_values import as_numbers
from .parameters import store_parameters
from .setup import Labels


class LeastSquaresSVC(KernelClassifier):
    """Least-squares support vector classifier (LS-SVM): kernel ridge regression on ±1 targets with
    a free bias.

    It minimizes Σ w_i (y_i - f(x_i))² + alpha ‖f‖² with y = ±1; with more than two classes, one
    class against the rest. One eigendecomposition of the kernel matrix gives the exact held-out
    predictions of all rows for every alpha. Kernel width and alpha are tuned by the `criterion` of
    these predictions.

    Parameters
    ----------
    kernel : str, list of str, callable or KernelSum, default="rbf"
        "linear", "rbf", "laplacian", "exponential", "matern32", "matern52", "poly", "cosine",
        "sigmoid", "precomputed", or a callable ``kernel(X, Y)`` that returns the matrix of all
        pairs; each entry must depend only on its two rows. With a list of names, the kernels are
        compared by `criterion`, each with its own widths; "tune" compares "rbf", "exponential",
        "laplacian" and "linear". Landmarks are chosen with the first kernel. For a weighted
        sum of several kernels, pass a `fitonce.KernelSum`.
    gamma : float, array (n_features,), "tune", "scale", "auto" or None, default="tune"
        Kernel coefficient, as in scikit-learn (`rbf` is exp(-gamma ‖x-x'‖²)); for "exponential"
        (exp(-gamma ‖x-x'‖)) and the Matérn kernels, 1/length scale. "tune" chooses a power of two
        by held-out predictions, with one decomposition for each value. An array (`rbf` only) has
        one value per feature and is not a list of candidates. "auto" and None are 1/n_features,
        "scale" is 1/(n_features · variance of X).
    degree, coef0 : float or "tune", default=3 and 1
        Parameters of the polynomial and (coef0) sigmoid kernels. For the polynomial kernel, "tune"
        tries the degrees 2, 3 and 4 and the values 0 and 1 of coef0.
    kernel_params : dict, default=None
        Keyword arguments for a callable kernel.
    alpha : float, array of candidates or "tune", default="tune"
        Regularization, the μ of the papers, 1/γ in the LS-SVM literature; added to the eigenvalues
        of the centered kernel matrix. "tune" tries powers of two, from 2^-30 to 2^12 times the mean
        eigenvalue, except values below double precision.
    penalty : {"function", "dual", "tune"}, default="function"
        Whether alpha penalizes the norm of the function or of the dual coefficients; "tune" tries
        both.
    criterion : str, scorer or callable, default="auto"
        The held-out loss for choosing tuned parameters and candidates. "auto" is
        "squared_error+log_loss" for two classes and "brier" for more. "brier" and "log_loss": loss
        of the class probabilities at the best temperature of each candidate; "squared_error":
        squared error of the targets (PRESS); "squared_error+log_loss": the log-loss of the n rows
        plus the squared error with the weight of 50 rows, each relative to the loss of the class
        frequencies alone; "smoothed_error": mean of σ(-compression · margin), with margins scaled
        so that the class centroids are at ±1; "error", "balanced_error": misclassified rows; "auc":
        1 minus the area under the ROC curve. Or a scikit-learn scorer, by name ("accuracy",
        "roc_auc", …) or as an object, or a callable ``criterion(y, held_out_decision)`` that
        returns a score; for these, higher is better.
    compression : float, default=10
        Steepness of "smoothed_error".
    pooled : bool, default=True
        Whether to compute the criterion once over all held-out rows, or within each split of `cv`
        and then average. Leave-one-out has one row per split and needs True for "auc",
        "balanced_error" and the calibrated criteria.
    refine : bool, default=False
        Whether to continue from the best point of the lattice to the local minimum: gamma by
        gradient or line search, alpha by Newton's method if the criterion has derivatives.
        Candidates given as an array are not refined.
    search : {"auto", "full", "coarse"}, default="auto"
        How to tune gamma. "full" tries the whole lattice on all rows. "auto" does so below 400
        rows; with more rows, it tries the lattice on a sample and then moves from the best gamma to
        better neighbors on all rows. "coarse" tries a quarter of the gammas, and every fourth power
        of two for alpha: for work that repeats the search many times, such as permutation tests.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for held-out values, which are used for tuning, calibration and
        `held_out_decision_`. None means leave-one-out (leave-one-group-out if groups are given).
    calibration : {"temperature", "sigmoid", "isotonic", None}, default="temperature"
        How `predict_proba` is calibrated, always with held-out decision values: one temperature; a
        temperature and a shift for each class, which also moves the threshold of `predict` and
        `decision_function` (Platt's sigmoid for two classes); or, in addition, a non-decreasing
        step function (for more than two classes, of the largest probability). None gives no
        probabilities.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied by `sample_weight`.
    fit_intercept : bool, "penalized" or "coefficient", default=True
        A free bias b, no bias, or a penalized bias. "penalized" adds one to the kernel, so that b
        is the sum of the dual coefficients: with ``penalty="function"``, the penalty is then alpha
        (‖f‖² + b²), as if the rows had one more feature that is always one; with ``penalty="dual"``
        it is still alpha ‖dual_coef_‖², without a separate term for b. "coefficient", only for
        ``penalty="dual"``, penalizes b like every dual coefficient, alpha (‖dual_coef_‖² + b²): the
        regularized bias of Saadi et al. (2007), section 3.4.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Points that represent the training rows: the model is a sum of kernels at these points only,
        and no n×n matrix is formed. Either a number of landmarks, chosen from the training rows by
        `landmark_method`, or the points themselves. With ``penalty="function"`` this is the Nyström
        approximation, with ``penalty="dual"`` a sparse kernel expansion. Time grows as n·m², memory
        as n.
    landmark_method : {"uniform", "kmeans", "leverage", "cholesky", "greedy"}, default="uniform"
        How to choose landmarks if a number is given: rows at random; the centers of clusters; rows
        at random with probabilities from approximate leverage; the rows that are described worst by
        the others (pivoted Cholesky); forward selection by leave-one-out squared error. Above a few
        thousand rows, all methods use a random sample.
    shared_landmarks : bool or "drop", default=False
        How cross-validation treats landmarks if a number is given. False: every training set
        chooses its own, as in a refit. True: they are chosen once, from all rows. "drop": the same,
        but a landmark that is itself a test row is left out of the model of that fold. The held-out
        values inside `fit` always use the landmarks of the fit, and drop them only with "drop".
    confounding : {"remove", "include"}, default="remove"
        How `fit` uses confounds. "remove": they are regressed out of the features on the training
        rows, in feature space. "include": they are unpenalized predictors.
    random_state : int, RandomState instance or None, default=None
        Seed for choosing landmarks; not used without them.
    n_jobs : int or None, default=None
        Number of kernel parameters tried in parallel with joblib; None means one unless in a
        ``joblib.parallel_config`` context.
    verbose : int, default=0
        If above 0, print an estimate of time and memory before the fit, and a line for every kernel
        tried, to standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    alpha_, gamma_, degree_, coef0_, penalty_
        The values used, and the parameters of the kernel if it has them. gamma_ is an array if
        there is one per feature.
    kernel_ : str, callable or KernelSum
        The chosen or given kernel; for a sum, with all weights and widths as numbers.
    X_fit_ : array of shape (n_samples, n_features)
        The training rows with positive weight, or the landmarks, to which `dual_coef_` refers; not
        for precomputed kernels.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_classes)
        decision_function(X) = kernel(X, X_fit_) @ dual_coef_ + intercept_.
    intercept_ : float or array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the features; only for the linear kernel.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        The result of ``cross_val_predict(..., cv=LeaveOneOut(), method="decision_function")`` by
        refitting with the chosen values. With `cv`, the result for these splits: the mean if a row
        is tested several times, NaN if it is never tested. Like `decision_function`, it includes
        the threshold from calibration. -inf for a class without rows in the training set, NaN
        where a refit would fail, because that has fewer than two classes.
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix, including the bias.
    effective_dof_ : float
        Sum of the leverages.
    temperature_ : float
        Probabilities are the softmax of the decision values divided by this; absent without
        calibration.
    floor_ : float
        The smallest probability, 1/(2 c (n + 1)) for c classes and n rows: the softmax is mixed
        with equal probabilities to this extent.
    isotonic_ : array of shape (2, n_knots)
        Scores and their probabilities, between which `predict_proba` interpolates; only with
        ``calibration="isotonic"``.
    cv_results_ : dict
        Everything the search tried, in the format of scikit-learn's searches: ``params``,
        ``param_<name>``, ``mean_test_score``, ``rank_test_score``. Scores are minus the loss of
        `criterion` (for a callable, its return value), on ``n_samples`` rows: all rows, or a
        sample. Candidates on a sample rank after those on all rows.
    best_score_ : float
        The score of the chosen values, after refinement.
    best_params_ : dict
        The chosen values: alpha, and the other parameters that were tuned.
    refinement_ : Refinement
        Only with ``refine=True``: the ``steps`` of Newton's method and the ``rounds`` of gamma and
        alpha.
    landmarks_ : array of shape (n_landmarks, n_features)
        The landmarks, if there are any; `X_fit_` is then the same.
    landmark_indices_ : array of shape (n_landmarks,)
        Their row indices in X; -1 for points that are not training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fitonce import LeastSquaresSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LeastSquaresSVC().fit(StandardScaler().fit_transform(X), y)
    >>> accuracy = ((model.held_out_decision_ > 0) == y).mean()  # equal to 569 refits
    >>> print(f"{accuracy:.3f}")
    0.982
    """

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
        criterion: Any = "auto",
        compression: float = 10.0,
        pooled: bool = True,
        refine: bool = False,
        search: str = "auto",
        cv: Any = None,
        calibration: str | None = "temperature",
        class_weight: Any = None,
        fit_intercept: bool | str = True,
        landmarks: Any = None,
        landmark_method: str = "uniform",
        shared_landmarks: bool | str = False,
        confounding: str = "remove",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def __fitonce_labels__(self, y: np.ndarray, weights: np.ndarray | None) -> Labels:
        classes, codes = self._classes(y)
        readout = Signs(len(classes), free_bias=self.fit_intercept is True)
        if self.class_weight is None:
            return Labels(readout, classes, codes, weights)
        ones = np.ones(len(y)) if weights is None else weights
        by_class = self._class_weights(classes, codes, ones)
        return Labels(readout, classes, codes, ones * by_class[codes])

    def _class_weights(
        self, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """One weight per class; "balanced" gives every class the same total weight."""
        if isinstance(self.class_weight, str):
            sizes = np.bincount(codes, weights=weights, minlength=len(classes))
            return np.asarray(weights.sum() / (len(classes) * sizes))
        unknown = [label for label in self.class_weight if label not in classes]
        if unknown:
            raise ValueError(
                f"class_weight contains {unknown}, which are not in the labels {classes.tolist()}."
            )
        given = [self.class_weight.get(label, 1.0) for label in classes]
        by_class = as_numbers("the values of class_weight", given)
        if not np.all(np.isfinite(by_class)) or np.any(by_class <= 0):
            raise ValueError(
                "class_weight must be positive and finite for every class, got "
                f"{self.class_weight!r} instead."
            )
        return by_class
