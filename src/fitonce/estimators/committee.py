"""Committees: several models, weighted by their held-out outputs, predict together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.calibration import calibrate, class_scores, probabilities
from ..core.simplex import least_squares_weights, mixture_weights, without_rest
from ..core.splits import Splits
from .classifier import KernelClassifier, labels_as_rows
from .committee_base import Candidate, KernelCommittee, as_came
from .fisher import KernelFisherDiscriminant
from .probability import calibration_parts, held_out_probabilities
from .ridge import KernelRidge
from .setup import Training

TINY = float(np.finfo(float).tiny)


class KernelCommitteeClassifier(ClassifierMixin, KernelCommittee):
    """Combine classifiers, weighted by their held-out probabilities.

    All kernels that the searches of the members try, each at its best alpha, are candidates with
    leave-one-out probabilities in closed form. Let p_k(i) be the probability that candidate k
    assigns to the true class of row i. Weights w on the simplex are chosen to maximize Σ_i log Σ_k
    w_k p_k(i).
    Candidates with little weight are dropped, and the others predict together,

        p(x) ∝ (Σ_k w_k p_k(x))^(1/T)

    A mixture of well calibrated probabilities is underconfident. The temperature T, fitted to its
    held-out probabilities, corrects this.

    Parameters
    ----------
    members : list of estimators, default=None
        Estimators for classes, with fixed or tuned parameters, and pipelines that end in one. The
        default is discriminants with four kernels, and two more behind `NormalScores` and
        `RelevanceScaler` of `fitonce.preparation`.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for held-out outputs of all members: leave-one-out if None (leave-one-group-out
        if groups are given). Members that learn more than a closed form can leave out
        (``refine=True``, a step that uses labels) take these splits, or five folds.
    n_jobs : int or None, default=None
        Number of `members` searched in parallel with joblib.

    Attributes
    ----------
    members_ : list of estimators and pipelines
        The members with a weight, fitted on all rows; largest weights first.
    weights_ : array of shape (n_members,)
        Weights of the members; they sum to one.
    candidates_ : dict
        All candidates: ``name``, ``score`` (minus the held-out log-loss of each alone) and
        ``weight``.
    classes_ : array of shape (n_classes,)
    temperature_, floor_ : float
        The temperature of the mixture and its smallest probability.
    held_out_proba_ : array of shape (n_samples, n_classes)
        The mixture of the held-out probabilities of the members; the weights depend on all rows.
    best_score_ : float
        Minus the log-loss of `held_out_proba_`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Steps of a pipeline that use no labels are fitted once to all rows. In cross-validation, every
    training set chooses its own members and weights. A permutation test fits the committee for
    every labeling, with a warning.

    Cost: one decomposition for each kernel, O(n³), as in the searches of the members; each
    candidate adds O(n²).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelCommitteeClassifier, KernelFisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [KernelFisherDiscriminant(gamma=0.2), KernelFisherDiscriminant("linear")]
    >>> committee = KernelCommitteeClassifier(members).fit(X[::2], y[::2])
    >>> print(f"{committee.score(X[1::2], y[1::2]):.2f}")
    0.97
    >>> print(f"{committee.weights_.sum():.1f}")
    1.0
    """

    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"confounds": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"confounds": True}
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = {"confounds": True}
    takes = (KernelClassifier,)
    default = KernelFisherDiscriminant
    score = KernelClassifier.score

    def _weigh(
        self,
        pool: Sequence[Candidate],
        start: np.ndarray,
        training: Training,
        folds: Splits | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        weights = training.row_weights
        self.classes_ = np.unique(training.y[training.active])
        labels = np.where(weights > 0, np.searchsorted(self.classes_, training.y), 0)
        usable = (weights > 0) & np.all([_has_own(one, labels) for one in pool], axis=0)
        if not usable.any():
            raise ValueError(
                "no row has a held-out probability of its own class: in every split of cv, the "
                "class of the test rows is missing from the training rows. Use a cv whose training "
                "sets have all classes."
            )
        part = calibration_parts(labels, usable, folds)
        p = np.empty((len(pool), training.n_samples, len(self.classes_)))
        kinds = [one.calibration for one in pool]
        for kind in dict.fromkeys(kinds):
            which = [k for k, other in enumerate(kinds) if other == kind]
            outputs: Any = [pool[k].held_out for k in which]
            if kind is not None:
                outputs = held_out_probabilities(kind, outputs, labels, weights, part)
            p[which] = outputs
        rows = np.flatnonzero(usable)
        own = np.maximum(p[:, rows, labels[rows]], TINY)
        found = without_rest(mixture_weights(own, weights[rows], start))
        kept = np.flatnonzero(found)
        log_p = np.log(np.tensordot(found[kept], np.maximum(p[kept], TINY), axes=1))
        calibrated = calibrate(
            log_p[rows], labels[rows], weights[rows], offsets=False, floored=True
        )
        self.temperature_, self.floor_ = 1.0 / calibrated.beta, calibrated.floor
        held_out = probabilities(log_p, calibrated.beta, calibrated.floor)
        share = weights[rows] / weights[rows].sum()
        self.best_score_ = float(np.log(held_out[rows, labels[rows]]) @ share)
        self.held_out_proba_ = as_came(held_out, training)
        return found, np.asarray(np.log(own) @ share)

    @property
    def held_out_decision_(self) -> Array:
        """`held_out_proba_` as decisions: log(p_1/p_0), or log p for more than two classes."""
        return self._decisions(self.held_out_proba_)

    def predict_proba(self, X: Any, confounds: Any = None) -> Array:
        """Predict class probabilities: the mixture of the members, at its temperature.

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities.
        """
        p = self._mixture("predict_proba", X, confounds)
        log_p = np.log(np.maximum(to_numpy(p), TINY))
        result = probabilities(log_p, 1.0 / self.temperature_, self.floor_)
        return result if isinstance(p, np.ndarray) else asarray_like(result, p)

    def predict_log_proba(self, X: Any, confounds: Any = None) -> Array:
        """Predict logarithms of probabilities.

        Returns
        -------
        array of shape (n, n_classes)
            log p of `predict_proba`.
        """
        return _logarithms(self.predict_proba(X, confounds))

    def decision_function(self, X: Any, confounds: Any = None) -> Array:
        """Decide by logarithms of probabilities.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            log(p_1/p_0) for two classes, log p for more.
        """
        return self._decisions(self.predict_proba(X, confounds))

    def _decisions(self, p: Array) -> Array:
        log_p = _logarithms(p)
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p

    def predict(self, X: Any, confounds: Any = None) -> Any:
        """Predict the most probable class of each row.

        Returns
        -------
        array of shape (n,)
            Labels, in the namespace of X if it can represent them.
        """
        return labels_as_rows(self.predict_proba(X, confounds), self.classes_)


class KernelCommitteeRegressor(RegressorMixin, KernelCommittee):
    """Combine kernel ridge models, weighted by their held-out predictions.

    All kernels that the searches of the members try, each at its best alpha, are candidates with
    leave-one-out predictions f_k in closed form. Weights w on the simplex minimize the squared
    error of the held-out mixture, with equal weights as if seen in ten rows more,

        mean_i (y_i - Σ_k w_k f_k(i))² + (10/n) K min_k mean_i (y_i - f_k(i))² ‖w - 1/K‖²,

    since with few rows it is chance which candidate is ahead. (In place of 1/K, members share
    equally, and the candidates of each its part.) Candidates without weight are dropped.

    Parameters
    ----------
    members : list of estimators, default=None
        `KernelRidge` estimators, and pipelines that end in one; the default as in
        `KernelCommitteeClassifier`.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for held-out outputs of all members: leave-one-out if None (leave-one-group-out
        if groups are given). Members that learn more than a closed form can leave out
        (``refine=True``, a step that uses labels) take these splits, or five folds.
    n_jobs : int or None, default=None
        Number of `members` searched in parallel with joblib.

    Attributes
    ----------
    members_ : list of estimators and pipelines
        The members with a weight, fitted on all rows; largest weights first.
    weights_ : array of shape (n_members,)
        Weights of the members, which sum to one; several targets share them.
    candidates_ : dict
        All candidates: ``name``, ``score`` (minus the held-out squared error of each alone, in
        units of the variance) and ``weight``.
    held_out_prediction_ : array of shape (n_samples,) or (n_samples, n_targets)
        The mixture of the held-out predictions of the members; the weights depend on all rows.
    best_score_ : float
        Minus the squared error of `held_out_prediction_`, in units of the variance.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fitonce import KernelCommitteeRegressor, KernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [KernelRidge(gamma=2.0), KernelRidge(kernel="linear")]
    >>> committee = KernelCommitteeRegressor(members).fit(X[:300], y[:300])
    >>> print(f"{committee.score(X[300:], y[300:]):.2f}")
    0.51
    """

    takes = (KernelRidge,)
    default = KernelRidge
    multi_output = True

    def _weigh(
        self,
        pool: Sequence[Candidate],
        start: np.ndarray,
        training: Training,
        folds: Splits | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        weights = training.row_weights
        y = training.y.astype(float).reshape(training.n_samples, -1)
        predicted = np.stack([one.held_out.reshape(y.shape) for one in pool])
        rows = np.flatnonzero((weights > 0) & np.isfinite(predicted).all(axis=(0, 2)))
        share = weights[rows] / weights[rows].sum()
        spread = np.sqrt(share @ (y[rows] - share @ y[rows]) ** 2)
        residuals = (y - predicted)[:, rows] / np.where(spread > 0, spread, 1.0)
        found = least_squares_weights(residuals, weights[rows], start)
        mixture = np.tensordot(found, predicted, axes=1).reshape(training.y.shape)
        self.held_out_prediction_ = as_came(mixture, training)
        of_mixture = np.tensordot(found, residuals, axes=1)
        self.best_score_ = -float(share @ np.mean(of_mixture**2, axis=1))
        return found, -np.mean(residuals**2, axis=2) @ share

    score = KernelRidge.score

    def predict(self, X: Any, confounds: Any = None) -> Array:
        """Predict the weighted mean of the members' predictions.

        Returns
        -------
        array of shape (n,) or (n, n_targets)
            Predictions.
        """
        return self._mixture("predict", X, confounds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _logarithms(p: Array) -> Array:
    return namespace(p).log(namespace(p).clip(p, TINY, None))


def _has_own(candidate: Candidate, labels: np.ndarray) -> np.ndarray:
    scores = class_scores(candidate.held_out)
    known = np.isfinite(scores[np.arange(len(labels)), labels])
    return np.asarray(known & ~np.isnan(scores).any(axis=1))
