"""Classification of several classes by models for every two of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, to_numpy
from ..core.coupling import coupled
from .classifier import KernelClassifier
from .probability import Calibration
from .several import ByProbabilities, SeveralModels
from .svc import LeastSquaresSVC


class PairwiseClassifier(MetaEstimatorMixin, ByProbabilities, SeveralModels):
    """One model for every two classes (one against one), with coupled probabilities.

    Least squares with one class against the rest, or on class indicators, can mask a class that
    lies between others. With two classes at a time, this cannot happen. Each pair has its own
    model, fitted to the rows of these two classes, tuned and calibrated for them. The
    probabilities of all classes follow with the second method of Wu, Lin and Weng (2004).

    Parameters
    ----------
    estimator : LeastSquaresSVC or KernelFisherDiscriminant, default=None
        The estimator that is fitted to every two classes; None is ``LeastSquaresSVC()``. It must
        have probabilities, and class weights may only be "balanced".
    n_jobs : int or None, default=None
        Number of pairs fitted in parallel with joblib.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimators_ : list of estimators
        The fitted models, for the pairs (0, 1), (0, 2), …, (1, 2), … of `classes_`. Rows of other
        classes have zero weight in their fits.
    held_out_proba_ : array of shape (n_samples, n_classes)
        Coupled probabilities from the held-out decisions of all pairs: leave-one-out, or the `cv`
        of the estimator. The calibrations depend on all rows. For probabilities that do not depend
        on the row at all, use `cross_val_predict`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    In cross-validation, every training set has its own pairs (route "per-fold"). A permutation
    test fits them for every labeling, with a warning. `decision_function` is log p for several
    classes and log(p_1/p_0) for two, so that it agrees with `predict`.

    Cost: c(c - 1)/2 fits. With classes of equal size, each fit has 2n/c rows, so for more than four
    classes all fits together cost less than one fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fitonce import LeastSquaresSVC, PairwiseClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = PairwiseClassifier(LeastSquaresSVC("linear")).fit(X[::2], y[::2])
    >>> print(f"{model.score(X[1::2], y[1::2]):.2f}")
    0.96
    """

    __fitonce_route__ = "every two classes have their own model on each training set"

    def __init__(self, estimator: Any = None, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, confounds: Any = None
    ) -> Self:
        """Fit a model to every two classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows with zero weight are not used for training.
        groups : array-like of shape (n_samples,), default=None
            Groups for the estimator's ``cv``; with ``cv=None``, whole groups are left out together.
        confounds : None
            Refused: pairs know no confounds.

        Returns
        -------
        self
        """
        model = self._estimator()
        training = self._training(model, X, y, sample_weight, groups, confounds)
        classes, _ = model._classes(training.y[training.active])
        weights = np.ones(training.n_samples) if training.weights is None else training.weights

        def fitted(pair: tuple[int, int]) -> Any:
            own = np.where(np.isin(training.y, classes[list(pair)]), weights, 0.0)
            return clone(model).fit(X, y, sample_weight=own, groups=groups)

        pairs = list(combinations(range(len(classes)), 2))
        self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(fitted)(pair) for pair in pairs
        )
        self.classes_ = classes
        held_out = [_held_out(one) for one in self.estimators_]
        self.held_out_proba_ = self._coupled(held_out)
        return self

    def _estimator(self) -> Any:
        model = LeastSquaresSVC() if self.estimator is None else self.estimator
        if not isinstance(model, KernelClassifier):
            raise TypeError(
                "estimator must be a LeastSquaresSVC or a KernelFisherDiscriminant, got "
                f"{type(model).__name__} instead: pairs are combined by their probabilities."
            )
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"a {type(model).__name__} with calibration=None has no probabilities to couple: "
                "use "
                '"temperature", "sigmoid" or "isotonic".'
            )
        for name in ("priors", "class_weight"):
            given = getattr(model, name, None)
            if given is not None and not isinstance(given, str):
                raise ValueError(
                    f"{name} of the estimator would have to apply to every two classes, got "
                    f"{given!r}: use sample_weight instead."
                )
        return model

    def _coupled(self, pairs: list[np.ndarray]) -> np.ndarray:
        """Class probabilities (n, c) from those of the second class of every pair (n,).

        NaN if a pair has none.
        """
        c, n = len(self.classes_), len(pairs[0])
        r = np.zeros((n, c, c))
        for (j, k), p in zip(combinations(range(c), 2), pairs, strict=True):
            r[:, k, j], r[:, j, k] = p, 1.0 - p
        known = np.isfinite(r).all(axis=(1, 2))
        result = np.full((n, c), np.nan)
        result[known] = coupled(r[known])
        return result

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, n_classes), coupled from those of every two classes."""
        check_is_fitted(self)
        pairs = [model.predict_proba(X)[:, 1] for model in self.estimators_]
        p = self._coupled([to_numpy(pair) for pair in pairs])
        return p if isinstance(pairs[0], np.ndarray) else asarray_like(p, pairs[0])

    def _models(self) -> list[Any]:
        return list(self.estimators_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        return get_tags(LeastSquaresSVC() if self.estimator is None else self.estimator)


def _held_out(model: Any) -> np.ndarray:
    """Probabilities (n,) of the second class from the held-out decisions of a fitted model."""
    steps = to_numpy(model.isotonic_) if hasattr(model, "isotonic_") else None
    fitted = Calibration(1.0 / model.temperature_, np.zeros(2), model.floor_, steps)
    return fitted.probabilities(to_numpy(model.held_out_decision_))[:, 1]
