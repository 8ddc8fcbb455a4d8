"""The least-squares support vector machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.readout import Signs
from .classifier import KernelClassifier
from .parameters import as_numbers
from .setup import Labels


class LeastSquaresSVC(KernelClassifier):
    """Least-squares support vector classifier (LS-SVM): kernel ridge regression on ±1 targets with
    a free bias.

    It minimises Σ w_i (y_i - f(x_i))² + alpha ‖f‖² with y = ±1, one class against the rest where
    there are more than two. One eigendecomposition of the kernel matrix gives the held-out
    predictions of all rows, for every alpha, exactly. Kernel width and alpha are chosen by
    `criterion` of these predictions.

    Parameters
    ----------
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
    alpha : float, array of candidates or "tune", default="tune"
        Regularisation, the μ of the papers, 1/γ of the LS-SVM literature; added to the eigenvalues
        of the centred kernel matrix. "tune" tries powers of two, from 2^-30 to 2^12 times the mean
        eigenvalue, except where that is below double precision.
    penalty : {"function", "dual", "tune"}, default="function"
        Whether alpha multiplies the norm of the function or of the dual coefficients; "tune" tries
        both.
    criterion : str, scorer or callable, default="auto"
        The held-out loss by which tuned parameters and candidates are chosen. "auto" is
        "squared_error+brier" for two classes and "brier" for more. "brier" and "log_loss": of class
        probabilities at the best temperature of each candidate; "squared_error": of the targets
        (PRESS); "squared_error+brier": the Brier score of the n rows and the squared error as if of
        50 more, each over what the class frequencies alone have; "smoothed_error": mean of
        σ(-compression · margin), margins in units in which the class centroids lie at ±1; "error",
        "balanced_error": rows misclassified; "auc": 1 less the area under the ROC curve. Or one of
        scikit-learn's scorers, by name ("accuracy", "roc_auc", …) or as an object, or a callable
        ``criterion(y, held_out_decision)`` that returns a score; higher is better for these.
    compression : float, default=10
        Steepness of "smoothed_error".
    pooled : bool, default=True
        Whether the criterion is computed once over all held-out rows, or within each split of `cv`
        and then averaged. Leave-one-out has one row per split and needs True for "auc",
        "balanced_error" and the calibrated criteria to mean anything.
    refine : bool, default=False
        Whether to move from the best point of the lattice to the bottom of its valley: gamma by
        gradient or line search, alpha by Newton's method where the criterion has derivatives.
        Candidates given as an array are left as they are.
    search : {"auto", "full"}, default="auto"
        How a tuned gamma is looked for. "full" tries the lattice on all rows. "auto" does so below
        1000 rows; with more it tries the lattice on a sample of them, then walks on all rows from
        the best gamma to better neighbours.
    cv : int, splitter, iterable of splits or None, default=None
        Where held-out values come from, for tuning, for calibration and for `held_out_decision_`:
        leave-one-out if None (leave-one-group-out when groups are given).
    calibration : {"temperature", "sigmoid", "isotonic", None}, default="temperature"
        How `predict_proba` is made, always from held-out decision values: one temperature; a
        temperature and a shift for each class, which also moves the threshold of `predict` and
        `decision_function` (Platt's sigmoid for two classes); or a non-decreasing step function
        after that (for more than two classes, of the largest probability). None leaves
        probabilities out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight`.
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
    verbose : int, default=0
        Above 0, an estimate of time and memory before the fit and a line for every kernel tried, on
        the standard error stream.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    alpha_, gamma_, degree_, coef0_, penalty_
        The values used; the parameters of the kernel where it has them. gamma_ is an array where
        there is one per feature.
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
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_classes)
        decision_function(X) = kernel(X, X_fit_) @ dual_coef_ + intercept_.
    intercept_ : float or array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the features; linear kernel only.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        What ``cross_val_predict(..., cv=LeaveOneOut(), method="decision_function")`` gives by
        refitting with the chosen values (by `cv`, if given: the mean where a row is tested several
        times, NaN where it never is). Like `decision_function`, it has the threshold that
        calibration moves.
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix, bias included.
    effective_dof_ : float
        Sum of the leverages.
    temperature_ : float
        Probabilities are the softmax of decision values over this; absent without calibration.
    floor_ : float
        The least probability, 1/(2 c (n + 1)) for c classes and n rows: the softmax is mixed with
        equal probabilities by that much.
    isotonic_ : array of shape (2, n_knots)
        Scores and their probabilities, between which `predict_proba` interpolates;
        ``calibration="isotonic"`` only.
    cv_results_ : dict
        Everything the search tried, in the shape of scikit-learn's searches: ``params``,
        ``param_<name>``, ``mean_test_score``, ``rank_test_score``. Scores are minus the loss of
        `criterion` (what it returned, for a callable), on ``n_samples`` rows: all of them, or those
        of a sample, which rank behind.
    best_score_ : float
        The score of the chosen values, after refinement.
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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fitonce import LeastSquaresSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LeastSquaresSVC().fit(StandardScaler().fit_transform(X), y)
    >>> accuracy = ((model.held_out_decision_ > 0) == y).mean()   # leave-one-out, 569 refits' worth
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
        metric: Any = None,
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
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.metric = metric
        self.alpha = alpha
        self.penalty = penalty
        self.criterion = criterion
        self.compression = compression
        self.pooled = pooled
        self.refine = refine
        self.search = search
        self.cv = cv
        self.calibration = calibration
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.shared_landmarks = shared_landmarks
        self.confounding = confounding
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __fitonce_check__(self) -> None:
        super().__fitonce_check__()
        given = self.class_weight
        if not (given is None or isinstance(given, Mapping) or given == "balanced"):
            raise ValueError(
                f'class_weight must be a dict, "balanced" or None, got {given!r} instead.'
            )

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
        """One weight per class; "balanced" gives every class the same total."""
        if isinstance(self.class_weight, str):
            sizes = np.bincount(codes, weights=weights, minlength=len(classes))
            return np.asarray(weights.sum() / (len(classes) * sizes))
        unknown = [label for label in self.class_weight if label not in classes]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown}, which are not among the labels {classes.tolist()}."
            )
        given = [self.class_weight.get(label, 1.0) for label in classes]
        by_class = as_numbers("the values of class_weight", given)
        if not np.all(np.isfinite(by_class)) or np.any(by_class <= 0):
            raise ValueError(
                "class_weight must be positive and finite for every class, got "
                f"{self.class_weight!r} instead."
            )
        return by_class
