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
        "sigmoid", "precomputed", a callable ``kernel(X, Y)`` that returns the matrix of all pairs,
        or a `fitonce.KernelSum`. A list of names is compared by `criterion`; "tune" compares "rbf",
        "exponential", "laplacian" and "linear".
    gamma : float, array (n_features,), "tune", "scale", "auto" or None, default="tune"
        Kernel coefficient, as in scikit-learn; 1/length scale of "exponential" and the Matérn
        kernels. "tune" chooses a power of two. An array has one value per feature (`rbf` only).
        "auto" and None are 1/n_features, "scale" is 1/(n_features · variance of X).
    degree, coef0, kernel_params : object
        As in `KernelFisherDiscriminant`.
    alpha : float, array of candidates or "tune", default="tune"
        Regularization, 1/γ in the LS-SVM literature, added to the eigenvalues of the centered
        kernel matrix. "tune" tries powers of two, from 2^-30 to 2^12 times the mean eigenvalue.
    penalty : {"function", "dual", "tune"}, default="function"
        Whether alpha penalizes the norm of the function or of the dual coefficients; "tune" tries
        both.
    criterion, compression, pooled : object
        As in `KernelFisherDiscriminant`.
    refine, search : object
        As in `KernelFisherDiscriminant`.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for held-out values, which tuning and calibration use. None means leave-one-out
        (leave-one-group-out if groups are given).
    calibration : {"temperature", "sigmoid", "isotonic", None}, default="temperature"
        How `predict_proba` is calibrated on held-out decisions: a temperature; a temperature and a
        shift for each class, which moves the threshold of `predict` too; or, in addition, a
        non-decreasing function. None gives no probabilities.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied by `sample_weight`.
    fit_intercept : bool, "penalized" or "coefficient", default=True
        A free bias b, no bias, or a penalized one: with "penalized" one is added to the kernel;
        "coefficient" penalizes b like a dual coefficient, for ``penalty="dual"``.
    landmarks, landmark_method, shared_landmarks, confounding, random_state, n_jobs : object
        As in `KernelFisherDiscriminant`.
    verbose : int, default=0
        If above 0, print an estimate of time and memory, and a line for every kernel tried, to
        standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
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
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        The result of ``cross_val_predict(..., method="decision_function")`` by refitting with the
        chosen values, for leave-one-out or `cv`: the mean if a row is tested several times, NaN if
        it is never tested or a refit would fail, -inf for a class without training rows.
    leverage_, effective_dof_ : array and float
        Diagonal of the hat matrix, including the bias, and its sum.
    temperature_ : float
        Probabilities are the softmax of the decision values divided by this; absent without
        calibration.
    floor_ : float
        The smallest probability, 1/(2 c (n + 1)) for c classes and n rows.
    isotonic_ : array of shape (2, n_knots)
        Scores and their probabilities, between which `predict_proba` interpolates.
    cv_results_, best_score_, best_params_ : object
        As in `KernelFisherDiscriminant`.
    refinement_, landmarks_, landmark_indices_ : object
        As in `KernelFisherDiscriminant`.

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
            return readout, classes, codes, weights
        ones = np.ones(len(y)) if weights is None else weights
        by_class = self._class_weights(classes, codes, ones)
        return readout, classes, codes, ones * by_class[codes]

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
