"""The kernel Fisher discriminant, two and many classes."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..core.arrays import Array, namespace, to_numpy
from ..core.numerical_warnings import depth_inside_package
from ..core.readout import Evidence, Indicators, Readout
from ..core.refused import refuse
from ..tuning.solution import Solution
from .base import fitted_kernel
from .classifier import KernelClassifier
from .parameter_values import as_numbers
from .parameters import store_parameters, used
from .setup import Labels
from .validation import blockwise


class KernelFisherDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelClassifier):
    """Kernel Fisher discriminant analysis for two or more classes: classifier and transformer.

    It finds the directions in feature space that maximize the between-class scatter relative to the
    within-class scatter plus alpha, S_b W = (S_w + alpha I) W Λ. It classifies with the LDA rule
    on the projections: nearest class centroid in within-class standard deviations, plus the
    log-priors. The problem is solved as least squares on class indicators (optimal scoring), so
    one eigendecomposition of the kernel matrix gives the exact held-out predictions of all rows
    for every alpha. Kernel width and alpha are tuned by the `criterion` of these predictions.

    Parameters
    ----------
    kernel : str, list of str, callable or KernelSum, default="rbf"
        "linear", "rbf", "laplacian", "exponential", "matern32", "matern52", "poly", "cosine",
        "sigmoid", "precomputed", a callable ``kernel(X, Y)`` that returns the matrix of all pairs,
        or a `fitonce.KernelSum`. A list of names is compared by `criterion`; "tune" compares "rbf",
        "exponential", "laplacian" and "linear".
    gamma : float, array (n_features,), "tune", "scale", "auto" or None, default="tune"
        Kernel coefficient, as in scikit-learn; 1/length scale of "exponential" and the Matérn
        kernels. "tune" chooses a power of two. An array has one value per feature (`rbf` only).
        "auto" and None are 1/n_features, "scale" is 1/(n_features · variance of X).
    degree, coef0 : float or "tune", default=3 and 1
        Parameters of the polynomial and (coef0) sigmoid kernels. "tune", of the polynomial kernel,
        tries 2, 3, 4 and 0, 1.
    kernel_params : dict, default=None
        Keyword arguments for a callable kernel.
    alpha : float, array of candidates or "tune", default="tune"
        Regularization, the μ of the papers, added to the eigenvalues of the centered kernel matrix.
        "tune" tries powers of two, from 2^-30 to 2^12 times the mean eigenvalue.
    penalty : {"function", "dual", "tune"}, default="function"
        "function" regularizes S_w + alpha I in feature space; "dual" penalizes the dual
        coefficients, as in Mika et al.; "tune" tries both.
    criterion : str, scorer or callable, default="auto"
        The held-out loss that tuning minimizes: "squared_error+log_loss" ("auto" of two classes),
        "brier" ("auto" of more), "log_loss", "squared_error", "smoothed_error", "error",
        "balanced_error", "auc". Or a scikit-learn scorer or its name, or a callable ``criterion(y,
        held_out_decision)``, of which higher is better. The page "Choose and tune" has their
        definitions.
    compression : float, default=10
        Steepness of "smoothed_error".
    pooled : bool, default=True
        Whether to compute the criterion once over all held-out rows, or within each split of `cv`
        and then average.
    refine : bool, default=False
        Whether to continue from the best candidate to the local minimum of the criterion.
    search : {"auto", "full", "coarse"}, default="auto"
        "full" tries every gamma on all rows; "auto" does so below 400 rows, and tries them on a
        sample above; "coarse" tries a quarter of the gammas and of the alphas.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for held-out values, which tuning and calibration use. None means leave-one-out
        (leave-one-group-out if groups are given).
    priors : array-like of shape (n_classes,), default=None
        Class priors; None uses the (weighted) class frequencies of the training rows.
    calibration : {"temperature", "sigmoid", "isotonic", None}, default="temperature"
        How `predict_proba` is calibrated on held-out decisions: a temperature; a temperature and a
        shift for each class, which moves the threshold of `predict` too; or, in addition, a
        non-decreasing function. None uses the LDA posterior.
    readout : {"lda", "centroid"}, default="lda"
        The class of the nearest centroid on the discriminant axes: "lda" with the log-priors,
        "centroid" with equal weights for all classes.
    fit_intercept : bool, "penalized" or "coefficient", default=True
        A free bias b, no bias, or a penalized one: with "penalized" one is added to the kernel;
        "coefficient" penalizes b like a dual coefficient, for ``penalty="dual"``. All but the first
        are for comparison with papers (Treder 2019; Saadi et al. 2007, section 3.4): the scatter
        between classes is then about the origin, and the axis whose class scores are closest to a
        constant is left out.
    n_components : int, default=None
        Number of axes that `transform` returns, at most n_classes - 1.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Points that represent the training rows, or their number: the model is a sum of kernels at
        these points. Time grows as n·m², memory as n.
    landmark_method : {"uniform", "kmeans", "leverage", "cholesky", "greedy"}, default="uniform"
        How a number of landmarks is chosen: random rows, centers of clusters, random rows by
        leverage, rows that the others describe worst, forward selection by leave-one-out squared
        error.
    shared_landmarks : bool or "drop", default=False
        Whether all training sets of a cross-validation share landmarks that are chosen once, from
        all rows; "drop" leaves out those that are test rows.
    confounding : {"remove", "include"}, default="remove"
        Whether confounds are regressed out of the features on the training rows, or are unpenalized
        predictors.
    random_state : int, RandomState instance or None, default=None
        Seed for choosing landmarks.
    n_jobs : int or None, default=None
        Number of kernel parameters tried in parallel with joblib.
    verbose : int, default=0
        If above 0, print an estimate of time and memory, and a line for every kernel tried, to
        standard error.

    Attributes
    ----------
    classes_, priors_ : arrays of shape (n_classes,)
    alpha_, gamma_, degree_, coef0_, penalty_
        The values used, and the parameters of the kernel if it has them.
    kernel_ : str, callable or KernelSum
        The chosen or given kernel; for a sum, with all weights and widths as numbers.
    X_fit_ : array of shape (n_samples, n_features)
        The training rows with positive weight, or the landmarks; not for precomputed kernels.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_classes)
        decision_function(X) = kernel(X, X_fit_) @ dual_coef_ + intercept_.
    intercept_ : float or array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the features; only for the linear kernel.
    scalings_ : array of shape (n_samples, n_axes), or (n_features, n_axes) for the linear kernel
        transform(X) = kernel(X, X_fit_) @ scalings_ (X @ scalings_ for the linear kernel) minus a
        constant.
    means_ : array of shape (n_classes, n_axes)
        Class centroids on the axes.
    explained_variance_ratio_ : array of shape (n_axes,)
        Share of the between-class variance on each axis.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        The result of ``cross_val_predict(..., method="decision_function")`` by refitting with the
        chosen values, for leave-one-out or `cv`: the mean if a row is tested several times, NaN if
        it is never tested or a refit would fail, -inf for a class without training rows.
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix, including the bias.
    effective_dof_ : float
        Sum of the leverages.
    temperature_ : float
        Probabilities are the softmax of the decision values divided by this; 1 without calibration.
    floor_ : float
        The smallest probability, 1/(2 c (n + 1)) for c classes and n rows; 0 without calibration.
    isotonic_ : array of shape (2, n_knots)
        Scores and their probabilities, between which `predict_proba` interpolates.
    cv_results_ : dict
        Everything the search tried, in the format of scikit-learn's searches, with the number of
        rows in ``n_samples``. Scores are minus the loss of `criterion` (for a callable, its return
        value).
    best_score_ : float
        The score of the chosen values, after refinement.
    best_params_ : dict
        The chosen values: alpha, and the other parameters that were tuned.
    refinement_ : Refinement
        The ``steps`` and ``rounds`` of ``refine=True``.
    landmarks_ : array of shape (n_landmarks, n_features)
        The landmarks, if there are any.
    landmark_indices_ : array of shape (n_landmarks,)
        Their row indices in X; -1 for points that are not training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fitonce import KernelFisherDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = KernelFisherDiscriminant().fit(X, y)
    >>> model.transform(X).shape
    (178, 2)
    >>> predicted = model.held_out_decision_.argmax(axis=1)
    >>> print(f"{(predicted == y).mean():.3f}")   # leave-one-out accuracy
    0.994
    """

    __metadata_request__transform: ClassVar[dict[str, bool]] = {"confounds": True}
    default_temperature = 1.0
    fit_intercept: bool | str = True  # of model files of 0.1.0, which do not say so

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
        priors: Any = None,
        calibration: str | None = "temperature",
        readout: str = "lda",
        fit_intercept: bool | str = True,
        n_components: int | None = None,
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
        sizes = np.bincount(codes, weights=weights, minlength=len(classes)).astype(float)
        _check_degrees_of_freedom(sizes, weights is not None)
        priors = None if self.priors is None else _checked_priors(self.priors, len(classes))
        self._check_n_components(len(classes) - 1)
        equal, free = self.readout == "centroid", self.fit_intercept is True
        return Indicators(len(classes), priors, equal, free), classes, codes, weights

    def _check_n_components(self, limit: int) -> None:
        """Refuse a number of axes that the classes do not have."""
        if self.n_components is None:
            return
        whole = isinstance(self.n_components, (int, np.integer))
        if not whole or not 1 <= self.n_components <= limit:
            raise ValueError(
                f"n_components must be an integer from 1 to n_classes - 1 = {limit}, got "
                f"{self.n_components!r} instead: "
                f"{limit + 1} class centroids span {limit} axes."
            )

    def _set_model(self, solution: Solution, readout: Readout, evidence: Evidence | None) -> None:
        """The LDA rule on the axes of all rows, merged into the coefficients."""
        assert evidence is not None
        _check_degrees_of_freedom(to_numpy(evidence.sizes), weighted=True)
        indicators = cast(Indicators, readout)
        solved = indicators.axes(evidence)
        rule = indicators.rule_on(solved, evidence)
        rule = rule.difference() if len(self.classes_) == 2 else rule
        self._set_solution(solution.readout(rule.weights, rule.offsets), readout)
        xp = namespace(solved.axes)
        self.priors_ = xp.exp(indicators.log_priors(evidence.sizes))
        projection = solution.readout(solved.axes, xp.zeros_like(solved.axes[0, :]))
        self.scalings_ = projection.dual_coef if projection.coef is None else projection.coef
        self._projection_offset = projection.intercept
        self._projection_confounds = projection.confound_coef
        self.means_ = solved.centroids
        ratio = solved.a2 / (1.0 - solved.a2)
        total = xp.sum(ratio)
        self.explained_variance_ratio_ = ratio / total if float(total) > 0 else ratio
        asked = len(self.classes_) - 1 if self.n_components is None else self.n_components
        self._n_features_out = min(int(asked), solved.rank)

    @blockwise
    def transform(self, X: Any, confounds: Any = None) -> Array:
        """Project rows on the discriminant axes, in units of the within-class standard deviation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows, or their kernel with the training rows for ``kernel="precomputed"``.
        confounds : table or array, default=None
            The confounds of these rows, if the model was fitted with confounds.

        Returns
        -------
        array of shape (n, n_components)
            Centered on the (weighted) mean of the training rows, scaled as in scikit-learn's
            LinearDiscriminantAnalysis.
        """
        X, dtype, C = self._new_rows(X, "transform", confounds)
        linear = used(self, "kernel") == "linear"
        projection = Solution(
            self.scalings_,
            self._projection_offset,
            self.scalings_ if linear else None,
            self._centred,
            self._projection_confounds,
        )
        rows = getattr(self, "X_fit_", None)
        projected = projection.values(fitted_kernel(self), X, rows, confounds=C)
        projected = projected[:, : self._n_features_out]
        return namespace(projected).astype(projected, dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_degrees_of_freedom(sizes: np.ndarray, weighted: bool) -> None:
    """Refuse rows that leave no degrees of freedom within the classes."""
    if sizes.sum() > len(sizes):
        return
    what = "the sum of the sample weights" if weighted else "the number of samples"
    remedy = " Weights count repetitions: rescale them to a mean of one." if weighted else ""
    raise ValueError(
        f"{what} must be greater than the number of classes, got {sizes.sum():g} and "
        f"{len(sizes)}: the within-class scatter has n_samples - n_classes degrees of "
        f"freedom.{remedy}"
    )


def _checked_priors(given: Any, n_classes: int) -> tuple[float, ...]:
    """Priors that sum to one, as plain numbers; raises errors if they are invalid."""
    priors = as_numbers("priors", given)
    refuse(
        (
            priors.shape != (n_classes,),
            f"priors must have one entry per class ({n_classes}), got shape {priors.shape} "
            "instead.",
        ),
        (
            not np.all(np.isfinite(priors) & (priors > 0)),
            f"priors must be positive and finite, got {priors.tolist()} instead.",
        ),
    )
    if abs(priors.sum() - 1.0) > 1e-5:
        warnings.warn(
            f"the priors do not sum to 1, but to {priors.sum():g}: they are divided by that.",
            UserWarning,
            stacklevel=depth_inside_package(),
        )
    return tuple((priors / priors.sum()).tolist())
