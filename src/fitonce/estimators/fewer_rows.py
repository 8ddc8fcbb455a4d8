"""Training on fewer rows: on means of rows in kernel space, or on a random subset of the rows."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, check_scalar, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.calibration import by_output
from ..core.readout import labels_of
from ..kernels import Kernel
from ..tuning.specification import Data, Specification
from .base import KernelModel
from .classifier import KernelClassifier
from .parameters import store_parameters
from .setup import setup_of
from .validation import is_foreign_array

WIDTHS = 4.0 ** np.arange(-3, 4)  # times the central gamma: a factor of 64 both ways


class KernelAveraging(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Train a classifier on averages of rows in kernel space (Treder 2018).

    Random blocks of `n_average` rows of one class are replaced by their mean in the feature space
    of the kernel; for the linear kernel, this is the mean of the rows. With A the matrix that makes
    means of rows, the estimator is fitted to the kernel A K Aᵀ of the averages, each weighted by
    its number of rows (or sum of weights), which has the size n/`n_average`. Predictions are for
    single rows.

    Parameters
    ----------
    estimator : KernelFisherDiscriminant or LeastSquaresSVC
        With one kernel of rows, and any penalty. Its tuning and its `cv` leave out averages. With
        ``gamma="tune"``, seven powers of four are tried. `calibration` is not used.
    n_average : int, default=5
        Smallest number of rows in a block. A class of k rows becomes max(1, k // n_average) blocks
        whose sizes differ by at most one, so that no row is discarded.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the blocks.

    Attributes
    ----------
    estimator_ : estimator
        The classifier fitted to the averages, with ``kernel="precomputed"``. Its held-out values,
        leverages and axes are those of averages.
    kernel_ : Kernel
        The kernel of the rows, with the chosen parameters.
    averages_ : sparse matrix of shape (n_averages, n_samples)
        The matrix A, which makes means of rows.
    X_fit_ : array of shape (n_samples, n_features)
        The training rows.
    classes_ : array of shape (n_classes,)

    Notes
    -----
    Cross-validation and permutation tests refit. There are no probabilities; scikit-learn's
    CalibratedClassifierCV adds them. The decision values of a discriminant are those of its rule
    with the scatter of single rows. Prediction needs all training rows.

    References
    ----------
    M. S. Treder (2018). Improving SNR and Reducing Training Time of Classifiers in Large Datasets
    via Kernel Averaging. Lecture Notes in Computer Science 11309, 239-248.

    Examples
    --------
    >>> from fitonce import KernelAveraging, KernelFisherDiscriminant
    >>> from fitonce.datasets import make_twonorm
    >>> X, y = make_twonorm(600, random_state=0)
    >>> model = KernelAveraging(KernelFisherDiscriminant("linear"), n_average=6, random_state=0)
    >>> model = model.fit(X[:300], y[:300])
    >>> model.averages_.shape
    (49, 300)
    >>> print(f"{model.score(X[300:], y[300:]):.2f}")
    0.97
    """

    def __init__(self, estimator: Any, *, n_average: int = 5, random_state: Any = None) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw blocks, average them and fit the estimator to the averages.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Averages are weighted, and have the sum of the weights of their rows.

        Returns
        -------
        self
            Fitted.
        """
        check_scalar(self.n_average, "n_average", numbers.Integral, min_val=1)
        if not isinstance(self.estimator, KernelClassifier):
            raise TypeError(
                "estimator must be a KernelFisherDiscriminant or a LeastSquaresSVC, got "
                f"{type(self.estimator).__name__} instead: averages are formed within classes. "
                "For regression, use landmarks= or Subsampling."
            )
        if is_foreign_array(X):
            raise TypeError(
                "KernelAveraging needs rows on the host, in a NumPy array, a sparse matrix or a "
                f"table, got {type(X).__module__} instead: convert them."
            )
        setup = setup_of(clone(self.estimator), X, y, sample_weight)
        training, rows = setup.training, setup.training.active
        block, weights = self._blocks(training.y[rows]), training.row_weights[rows]
        totals = np.bincount(block, weights)
        shape = len(totals), training.n_samples
        A = sp.csr_matrix((weights / totals[block], (block, rows)), shape)
        labels = training.y[rows[np.unique(block, return_index=True)[1]]]
        plain, fits = clone(self.estimator).set_params(kernel="precomputed", calibration=None), []
        for kernel in candidates(setup.specification, setup.data):
            K = A @ (kernel(training.X, training.X) @ A.T)
            fits.append((clone(plain).fit(0.5 * (K + K.T), labels, sample_weight=totals), kernel))
        self.estimator_, self.kernel_ = max(fits, key=lambda fit: fit[0].best_score_)
        validate_data(self, X, skip_check_array=True)  # sets the number and names of the features
        self.X_fit_, self.averages_, self.classes_ = training.X, A, np.unique(labels)
        total, c = totals.sum(), len(self.classes_)
        freedom = total * len(totals) / len(rows) - c  # of averages; of rows it is total - c
        self._scatter = freedom / (total - c) if hasattr(self.estimator_, "priors_") else 1.0
        return self

    def _blocks(self, y: np.ndarray) -> np.ndarray:
        """The block of each row (n,): each class divided evenly at random."""
        random, block, classes = check_random_state(self.random_state), np.full(len(y), -1), set(y)
        for label in sorted(classes):
            rows = random.permutation(np.flatnonzero(y == label))
            count = max(1, len(rows) // self.n_average)
            block[rows] = block.max() + 1 + np.arange(len(rows)) % count
        if block.max() < len(classes):
            raise ValueError(
                f"n_average={self.n_average} gives {block.max() + 1} averages of {len(classes)} "
                "classes: there must be more averages than classes. Use a smaller n_average."
            )
        return block

    def decision_function(self, X: Any) -> np.ndarray:
        """Decide about single rows.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            Decision values of two classes, or of more.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        cross = self.kernel_(X, self.X_fit_) @ self.averages_.T
        priors = getattr(self.estimator_, "priors_", np.ones(len(self.classes_)))
        log_priors, decision = by_output(np.log(priors)), self.estimator_.decision_function(cross)
        return np.asarray(log_priors + self._scatter * (decision - log_priors))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each single row.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        return labels_of(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self) -> Any:
        return replace(get_tags(self.estimator), array_api_support=False)


def candidates(tuned: Specification, data: Data) -> list[Kernel]:
    """The kernel of rows that an estimator asks for, or one for each gamma."""
    several = tuned.chooses_kernel or tuned.tunes_sum or "tune" in (tuned.degree, tuned.coef0)
    kernel = tuned.central_kernel(data)
    if several or kernel.precomputed or data.landmarks is not None:
        raise ValueError(
            "averages need landmarks=None and one kernel of rows, of which only gamma is tuned: "
            "pass degree, coef0 and the parameters of a KernelSum as numbers. GridSearchCV chooses "
            "among such estimators."
        )
    if not tuned.tunes_gamma:
        return [kernel]
    gammas = kernel.parameters["gamma"] * WIDTHS
    return [tuned.kernel_at(data, {"gamma": gamma}) for gamma in gammas]


class Subsampling(MetaEstimatorMixin, BaseEstimator):
    """Train on a random subset of the rows: the simplest way to a smaller problem, as a reference
    for other methods.

    Parameters
    ----------
    estimator : estimator
        An estimator of fitonce: `KernelFisherDiscriminant`, `LeastSquaresSVC` or `KernelRidge`.
    max_samples : int or float, default=1000
        Largest number of rows to draw, or the share of the rows. Classes keep their shares.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, with held-out outputs for all rows: leave-one-out (or `cv`) for the
        drawn rows; for the others, those of the fitted model.
    sample_indices_ : array
        Indices of the drawn rows.

    Notes
    -----
    In cross-validation, every training set draws its own rows. Other methods and attributes are
    those of `estimator_`.

    Examples
    --------
    >>> from fitonce import LeastSquaresSVC, Subsampling
    >>> from fitonce.datasets import make_ringnorm
    >>> X, y = make_ringnorm(2000, random_state=0)
    >>> model = Subsampling(LeastSquaresSVC(), max_samples=200, random_state=0)
    >>> model = model.fit(X[:1000], y[:1000])
    >>> print(f"{model.score(X[1000:], y[1000:]):.2f}")
    0.98
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self, estimator: Any, *, max_samples: Any = 1000, random_state: Any = None
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Draw rows and fit the estimator to them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; rows with zero weight are not drawn.
        groups : array-like of shape (n_samples,), default=None
            For the estimator's `cv`.

        Returns
        -------
        self
            Fitted.
        """
        if not isinstance(self.estimator, KernelModel):
            raise TypeError(
                "estimator must be one of fitonce's estimators, got "
                f"{type(self.estimator).__name__} instead."
            )
        model = clone(self.estimator)
        training = setup_of(model, X, y, sample_weight, groups).training  # or errors of the data
        rows, size = training.active, self.max_samples
        if not (isinstance(size, (int, np.integer)) and size >= len(rows)):
            labels = training.y[rows] if is_classifier(model) else None
            rows, _ = train_test_split(
                rows, train_size=size, stratify=labels, random_state=self.random_state
            )
        drawn = np.isin(np.arange(training.n_samples), rows)
        model.fit(X, y, sample_weight=training.row_weights * drawn, groups=groups)
        self.estimator_, self.sample_indices_ = model, np.flatnonzero(drawn)
        return self

    @available_if(lambda self: hasattr(self, "transform"))
    def fit_transform(self, X: Any, y: Any, **params: Any) -> Any:
        """Fit, then project the training rows."""
        return self.fit(X, y, **params).transform(X)

    def __getattr__(self, name: str) -> Any:
        """What the estimator has, fitted or not: its methods and attributes."""
        if name.startswith(("_", "fit")) or "estimator" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(vars(self).get("estimator_", self.estimator), name)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)
