"""The kernel Fisher discriminant, two and many classes."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.lda import Axes
from ..core.readout import Indicators, Readout
from ..core.softmax import LinearScores
from ..tuning.solution import Solution
from .base import fitted_kernel
from .blockwise import blockwise
from .classifier import KernelClassifier
from .parameters import as_numbers, check_options, used
from .probability import fit_softmax, of_outputs
from .record import record_of
from .setup import Labels


class KernelFisherDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelClassifier):
    """Kernel Fisher discriminant analysis: classifier and transformer, two and many classes.

    It finds the directions in feature space that maximise the scatter between the classes over the
    scatter within them plus alpha, S_b W = (S_w + alpha I) W Λ, and classifies by the LDA rule on
    the projections: nearest class centroid in within-class standard deviations, with the log-priors
    added. It is solved as least squares on class indicators (optimal scoring), so one
    eigendecomposition of the kernel matrix gives the held-out predictions of all rows, for every
    alpha, exactly. Kernel width and alpha are chosen by `criterion` of these predictions.

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
        Regularisation, the μ of the papers; added to the eigenvalues of the centred kernel matrix.
        "tune" tries powers of two, from 2^-30 to 2^12 times the mean eigenvalue, except where
        that is below double precision.
    penalty : {"function", "dual", "tune"}, default="function"
        "function" regularises S_w + alpha I in feature space; "dual" penalises the dual
        coefficients, as Mika et al. do; "tune" tries both.
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
    priors : array-like of shape (n_classes,), default=None
        Class priors; None takes the (weighted) class frequencies of the training rows.
    calibration : {"temperature", "sigmoid", "isotonic", None}, default="temperature"
        How `predict_proba` is made, always from held-out decision values: one temperature; a
        temperature and a shift for each class, which also moves the threshold of `predict` and
        `decision_function` (Platt's sigmoid for two classes); or a non-decreasing step function
        after that (for more than two classes, of the largest probability). None takes the LDA
        posterior as it is.
    readout : {"lda", "centroid", "softmax"}, default="lda"
        How decisions are made of the projections on the discriminant axes. "lda": nearest class
        centroid, with the log-priors. "centroid": nearest class centroid, all classes alike.
        "softmax": the rule of "lda", corrected by a softmax regression on the held-out projections,
        which may find a class that lies between others. `priors` can be given with "lda" only.
        Parameters are tuned as for "lda".
    fit_intercept : bool, "penalized" or "coefficient", default=True
        A free bias b; none; or one that is penalised. All but the first are for comparison with
        papers: the between-class scatter is then taken about the origin of the feature space, and
        the axis whose class scores lie nearest to a constant is left out (Treder 2019).
        "penalized" adds one to the kernel, so that b is the sum of the dual coefficients: a
        penalty alpha b² with ``penalty="function"``, none of its own with ``penalty="dual"``.
        "coefficient", for ``penalty="dual"`` only, penalises b like every dual coefficient (Saadi
        et al. 2007, section 3.4).
    n_components : int, default=None
        Number of axes that `transform` gives, at most n_classes - 1.
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
    classes_, priors_ : arrays of shape (n_classes,)
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
    scalings_ : array of shape (n_samples, n_axes), or (n_features, n_axes) for the linear kernel
        The axes: transform(X) = kernel(X, X_fit_) @ scalings_ (X @ scalings_ for the linear kernel)
        less a constant.
    means_ : array of shape (n_classes, n_axes)
        Class centroids on the axes.
    explained_variance_ratio_ : array of shape (n_axes,)
        Share of the between-class variance on each axis.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        What ``cross_val_predict(..., cv=LeaveOneOut(), method="decision_function")`` gives by
        refitting with the chosen values (by `cv`, if given: the mean where a row is tested several
        times, NaN where it never is). Like `decision_function`, it has the threshold that
        calibration moves. Where leaving out a row leaves its class empty, that class's decision is
        -inf (NaN for two classes).
    leverage_ : array of shape (n_samples,)
        Diagonal of the hat matrix, bias included.
    effective_dof_ : float
        Sum of the leverages.
    temperature_ : float
        Probabilities are the softmax of decision values over this; 1 without calibration.
    floor_ : float
        The least probability, 1/(2 c (n + 1)) for c classes and n rows: the softmax is mixed with
        equal probabilities by that much. 0 without calibration.
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
        self.priors = priors
        self.calibration = calibration
        self.readout = readout
        self.fit_intercept = fit_intercept
        self.n_components = n_components
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.shared_landmarks = shared_landmarks
        self.confounding = confounding
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __fitonce_labels__(self, y: np.ndarray, weights: np.ndarray | None) -> Labels:
        classes, codes = self._classes(y)
        sizes = np.bincount(codes, weights=weights, minlength=len(classes)).astype(float)
        _check_degrees_of_freedom(sizes, weights is not None)
        priors = None if self.priors is None else _checked_priors(self.priors, len(classes))
        self._check_n_components(len(classes) - 1)
        equal, free = self.readout == "centroid", self.fit_intercept is True
        return Labels(Indicators(len(classes), priors, equal, free), classes, codes, weights)

    def __fitonce_check__(self) -> None:
        super().__fitonce_check__()
        check_options(self, readout=("lda", "centroid", "softmax"))
        if self.readout == "softmax" and self.priors is not None:
            raise ValueError(
                'priors cannot go with readout="softmax", which takes the class frequencies of '
                'the training rows into its constants: use readout="lda".'
            )
        if self.readout == "centroid" and self.priors is not None:
            raise ValueError(
                'priors cannot go with readout="centroid", which takes all classes as equally '
                'frequent: use readout="lda".'
            )
        if self.readout == "softmax" and self.fit_intercept is not True:
            raise ValueError(
                f'readout="softmax" needs fit_intercept=True, got {self.fit_intercept!r} instead: '
                "without a free bias an axis is left out, and class scores no longer tell where a "
                'row lies. Use readout="lda" or "centroid".'
            )

    def _set_held_out(self, held_out: Array) -> None:
        """With a softmax readout, the LDA decisions are replaced by its scores before they are
        calibrated; held-out ones by a regression that has not seen the row's part.
        """
        if self.readout != "softmax":
            return super()._set_held_out(held_out)
        self.held_out_decision_ = held_out
        self._before_readout = to_numpy(held_out)
        scores = LinearScores.of(to_numpy(self.means_), to_numpy(self.priors_))
        fitted = fit_softmax(scores, *self._labelled_decisions())
        weights, offsets = of_outputs(*fitted.everything)
        solution = self._solution()
        like = solution.dual_coef
        solution = solution.readout(asarray_like(weights, like), asarray_like(offsets, like))
        self._set_solution(solution, record_of(self, "a readout").readout)
        return super()._set_held_out(asarray_like(fitted.held_out, held_out))

    def _check_n_components(self, limit: int) -> None:
        if self.n_components is None:
            return
        whole = isinstance(self.n_components, (int, np.integer))
        if not whole or not 1 <= self.n_components <= limit:
            raise ValueError(
                f"n_components must be an integer from 1 to n_classes - 1 = {limit}, got "
                f"{self.n_components!r} instead: "
                f"{limit + 1} class centroids span {limit} axes."
            )

    def _set_model(
        self, solution: Solution, readout: Readout, E: Array, sizes: Array, dof: Array
    ) -> None:
        """The LDA rule on the axes of all rows, folded into the coefficients."""
        _check_degrees_of_freedom(to_numpy(sizes), weighted=True)
        indicators = cast(Indicators, readout)
        rule = indicators.rule(E, sizes, dof=dof)
        rule = rule.difference() if readout.n_classes == 2 else rule
        self._set_solution(solution.readout(rule.weights, rule.offsets), readout)
        self.priors_ = namespace(E).exp(indicators.log_priors(sizes))
        self._set_axes(solution, indicators.axes(E, sizes, dof))

    def _set_axes(self, solution: Solution, solved: Axes) -> None:
        xp = namespace(solved.axes)
        projection = solution.readout(solved.axes, xp.zeros_like(solved.axes[0, :]))
        self.scalings_ = projection.dual_coef if projection.coef is None else projection.coef
        self._projection_offset = projection.intercept
        self._projection_confounds = projection.confound_coef
        self.means_ = solved.centroids
        ratio = solved.a2 / (1.0 - solved.a2)
        total = xp.sum(ratio)
        self.explained_variance_ratio_ = ratio / total if float(total) > 0 else ratio
        limit = len(self.classes_) - 1
        self._n_features_out = limit if self.n_components is None else int(self.n_components)

    @blockwise
    def transform(self, X: Any, confounds: Any = None) -> Array:
        """Project rows on the discriminant axes, in units of the within-class standard deviation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows, or their kernel with the training rows for ``kernel="precomputed"``.
        confounds : table or array, default=None
            The confounds of these rows, where the model was fitted with confounds.

        Returns
        -------
        array of shape (n, n_components)
            Centred on the (weighted) mean of the training rows, scaled as scikit-learn's
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
    if sizes.sum() > len(sizes):
        return
    what = "the sum of the sample weights" if weighted else "the number of samples"
    remedy = " Weights count repetitions: rescale them to a mean of one." if weighted else ""
    raise ValueError(
        f"{what} must be more than the number of classes, got {sizes.sum():g} and "
        f"{len(sizes)}: the within-class scatter has n_samples - n_classes degrees of "
        f"freedom.{remedy}"
    )


def _checked_priors(given: Any, n_classes: int) -> tuple[float, ...]:
    priors = as_numbers("priors", given)
    if priors.shape != (n_classes,):
        raise ValueError(
            f"priors must have one entry per class ({n_classes}), got shape {priors.shape} instead."
        )
    if not np.all(np.isfinite(priors)) or np.any(priors <= 0):
        raise ValueError(f"priors must be positive and finite, got {priors.tolist()} instead.")
    if abs(priors.sum() - 1.0) > 1e-5:
        raise ValueError(f"priors must sum to 1, got a sum of {priors.sum():g} instead.")
    return tuple((priors / priors.sum()).tolist())
