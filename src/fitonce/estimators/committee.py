"""Committees: several models, weighted by their held-out outputs, predict together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.calibration import calibrate, class_scores, probabilities
from ..core.numerical_warnings import warnings_once
from ..core.rows import is_rows
from ..core.simplex import least_squares_weights, mixture_weights, without_rest
from ..core.splits import Splits
from ..tuning.trial_runner import TrialRunner
from ..tuning.tuner import Tried
from .base import KernelModel
from .classifier import KernelClassifier, labels_as_rows
from .fisher import KernelFisherDiscriminant
from .parameter_values import NUMBER, is_precomputed, word
from .parameters import store_parameters
from .probability import calibration_parts, held_out_probabilities
from .record import FitRecord
from .ridge import KernelRidge
from .setup import Training, default_folds, folds_of, setup_of, training_of
from .verification import Verification, worst_of

TINY = float(np.finfo(float).tiny)
LEARNING_FOLDS = 5  # for members that learn more than a search can leave out
DEFAULT_KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "exponential"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
)
DEPENDENT = "the combination depends on every row, if only through the weights, so {} would have no"
FOR_ONE_MODEL = {  # what only single models have, and why
    "predict_interval": DEPENDENT.format("intervals from its held-out residuals") + " guarantee",
    "predict_set": DEPENDENT.format("sets from its held-out probabilities") + " guarantee",
    "influence": "influence needs the decomposition of a single model",
    "at": "each of its models has its own alpha",
}


# ---- candidates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """One of the given estimators, with fixed parameters if its search tried several; and its
    held-out outputs for all rows: decisions before calibration, or predictions.

    `learned`: probabilities instead of decisions, from a fit on every training set.
    """

    number: int
    parameters: dict[str, Any]
    held_out: np.ndarray
    learned: bool = False


def candidates_of(
    number: int, estimator: Any, training: Training, folds: Splits | None, by_cv: bool
) -> list[Candidate]:
    """The candidates from one of the given estimators, judged by the splits of the committee.

    Where a fit depends on the labels of all rows in more than the choice of a few numbers,
    leave-one-out after it would be optimistic. Such an estimator is refitted on every training set
    of the splits, which test every row once, if `cv` has asked for them, or of five folds.
    """
    weighs = getattr(estimator.kernel, "tunes", False)  # several kernels with weights
    greedy = word(estimator.landmarks) == NUMBER and estimator.landmark_method == "greedy"
    if not (estimator.refine or weighs or greedy):
        return searched(number, estimator, training, folds)
    classifies = is_classifier(estimator)
    if not by_cv or folds is None:
        folds = default_folds(training, LEARNING_FOLDS, classifies)
    held_out = cross_val_predict(
        estimator,
        training.X if training.namespace == "numpy" else to_numpy(training.X),
        training.y,
        cv=folds,
        method="predict_proba" if classifies else "predict",
        params={"sample_weight": training.row_weights},
    )
    return [Candidate(number, {}, held_out, learned=True)]


def searched(
    number: int, estimator: Any, training: Training, folds: Splits | None
) -> list[Candidate]:
    """All kernels that the search of an estimator decomposes, each at its best alpha.

    With the decomposition, held-out outputs follow in closed form.
    """
    model = clone(estimator).set_params(cv=folds)
    setup = setup_of(model, training.X, training.y, training.weights)
    tuner = setup.tuner(folds)
    found: list[Candidate] = []

    def collect(tried: Tried) -> None:
        trial, problem = tried.trial, tried.problem
        if problem is None or trial.sampled is not None:
            return
        record = FitRecord(setup.training, tuner, problem, folds)
        alpha, known = trial.alpha, tried.path
        path = problem.path(np.asarray([alpha])) if known is None else known.at(alpha)
        parameters = {**trial.parameters, "alpha": alpha}
        found.append(Candidate(number, parameters, to_numpy(record.held_out(path))))

    with warnings_once():
        _, best = TrialRunner(tuner, seen=collect).search()
        chosen = {**best.trial.parameters, "alpha": best.trial.alpha}
        if not any(candidate.parameters == chosen for candidate in found):
            collect(best)
    return found


# ---- what committees share -------------------------------------------------------------------


class KernelCommittee(BaseEstimator):
    """Base class of the committees; not for direct use."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "confounds": True}
    __fitonce_route__ = "members and their weights are chosen on each training set"
    takes: ClassVar[tuple[type, ...]] = ()  # allowed classes of members
    default: ClassVar[type] = KernelModel
    multi_output: ClassVar[bool] = False

    def __init__(self, members: Any = None, *, cv: Any = None, n_jobs: int | None = None) -> None:
        store_parameters(self, locals())

    def __getattr__(self, name: str) -> Any:
        """An error that says why a committee has not what single models have."""
        remedy = "Use a single model, such as one of those that this estimator is made of."
        why = f": {FOR_ONE_MODEL[name]}. {remedy}" if name in FOR_ONE_MODEL else ""
        raise AttributeError(f"{type(self).__name__} has no {name}{why}")

    # ---- fit -----------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, confounds: Any = None
    ) -> Self:
        """Try all candidates, weight them by their held-out outputs, and fit those with a weight.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix if all members have
            ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type; for regression numbers, also of shape (n_samples, n_targets).
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows with zero weight are not used for training.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.
        confounds : None
            Refused: a committee knows no confounds.

        Returns
        -------
        self
        """
        given = self.estimators()
        training = self._training(given[0], X, y, sample_weight, groups, confounds)
        folds = folds_of(self.cv, training, classifier=not self.multi_output)
        jobs = (
            delayed(candidates_of)(number, estimator, training, folds, self.cv is not None)
            for number, estimator in enumerate(given)
        )
        pool = list(chain.from_iterable(Parallel(n_jobs=self.n_jobs)(jobs)))
        weights, scores = self._weigh(pool, given, training, folds)
        order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]

        members = []
        for one in (pool[k] for k in order):
            # calibrated by the splits by which it was judged
            model = clone(given[one.number]).set_params(**one.parameters)
            model.set_params(cv=None if one.learned else folds).fit(X, y, sample_weight)
            members.append(model.set_params(cv=None if one.learned else self.cv))
        self.members_, self.weights_ = members, weights[order]
        several = len(set(map(type, given))) > 1
        names = [member_name(given[one.number], one.parameters, several) for one in pool]
        self.candidates_: dict[str, Any] = {"name": names, "score": scores, "weight": weights}
        self.names_ = [names[k] for k in order]
        return self

    def _training(
        self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any, confounds: Any
    ) -> Training:
        """Validated rows, in memory and without confounds."""
        name = type(self).__name__
        if confounds is not None:
            raise ValueError(
                f"{name} does not support confounds: use a single estimator, such as "
                "KernelFisherDiscriminant or KernelRidge, with confounds=, or leave them out."
            )
        training = training_of(clone(model), X, y, sample_weight, groups)
        if is_rows(training.X):
            raise ValueError(
                f"{name} needs the rows in memory, got rows in files, blocks or Dask: load them "
                "into memory, or use a single estimator with landmarks=."
            )
        return training

    @abstractmethod
    def _weigh(
        self,
        pool: Sequence[Candidate],
        given: Sequence[Any],
        training: Training,
        folds: Splits | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the candidates, and the score of each alone."""

    def estimators(self) -> list[Any]:
        """The given estimators, or the default ones; raises errors if they cannot be members."""
        if self.members is None:
            return [self.default(**given) for given in DEFAULT_KERNELS]
        if isinstance(self.members, (str, BaseEstimator)) or not hasattr(self.members, "__iter__"):
            raise TypeError(
                f"members must be a list of estimators or None, got {self.members!r} instead."
            )
        given = list(self.members)
        if not given:
            raise ValueError("members must contain at least one estimator, got an empty list.")
        for member in given:
            self._check_member(member)
        if len({is_precomputed(member.kernel) for member in given}) > 1:
            raise ValueError(
                "members must all take rows or all take a kernel matrix: kernel='precomputed' "
                "cannot be combined with other kernels."
            )
        return given

    def _check_member(self, member: Any) -> None:
        name, names = type(member).__name__, " or ".join(kind.__name__ for kind in self.takes)
        if not issubclass(type(member), self.takes):
            raise TypeError(
                f"members of a {type(self).__name__} must be of type {names}, got {name} instead: "
                "their held-out outputs have a closed form."
            )
        if member.cv is not None:
            raise ValueError(
                f"a member has cv={member.cv!r}, but all members must be evaluated on the same "
                "held-out rows: pass cv to the committee instead."
            )
        drawn = isinstance(member.landmarks, (int, np.integer))
        if drawn and not isinstance(member.random_state, (int, np.integer)):
            raise ValueError(
                "a member with a number of landmarks needs an integer random_state, got "
                f"{member.random_state!r} instead: its fit must use the landmarks that were "
                "evaluated."
            )
        if getattr(member, "calibration", "") is None and not hasattr(member, "predict_proba"):
            raise ValueError(
                f"a {name} with calibration=None has no probabilities to combine: use "
                '"temperature", "sigmoid" or "isotonic".'
            )

    # ---- description ---------------------------------------------------------------------------

    def describe(self, most: int | None = None) -> str:
        """Describe the members and their weights.

        Parameters
        ----------
        most : int, default=None
            Number of members to list, largest weights first; None lists all.
        """
        check_is_fitted(self)
        lines = [f"{w:6.1%}  {name}" for w, name in zip(self.weights_, self.names_, strict=True)]
        members = "1 member" if len(lines) == 1 else f"{len(lines)} members"
        if lines[most:] and most is not None:
            lines[most:] = [f"{self.weights_[most:].sum():6.1%}  {len(lines[most:])} others"]
        return "\n".join([f"{members}, of {len(self.candidates_['name'])} candidates:", *lines])

    def _mixture(self, outputs: Sequence[Array]) -> Array:
        """The weighted mean of the members' outputs."""
        return sum(w * output for w, output in zip(self.weights_.tolist(), outputs, strict=True))

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Refit a few splits of every model literally, and compare with its closed-form held-out
        outputs.

        Parameters
        ----------
        n_refits : int, default=5
            Number of splits (rows, for leave-one-out) to refit for each model.
        X : array, optional
            The training kernel matrix, for ``kernel="precomputed"``.
        random_state : int, default=0
            Seed for choosing the splits.

        Returns
        -------
        Verification
            The worst result of all models. What they learn on every training set was refitted
            anyway.
        """
        check_is_fitted(self)
        options = {"n_refits": n_refits, "X": X, "random_state": random_state}
        return worst_of([member.verify(**options) for member in self.members_])

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        return int(self.members_[0].n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, if `fit` was given a data frame."""
        return self.members_[0].feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.members if isinstance(self.members, (list, tuple)) else ()
        pairwise = any(is_precomputed(getattr(member, "kernel", None)) for member in given)
        tags.input_tags.pairwise, tags.input_tags.sparse = pairwise, not pairwise
        tags.array_api_support = True
        return tags


def member_name(estimator: Any, parameters: dict[str, Any], kind: bool) -> str:
    """A short description, such as "rbf, gamma=0.5, alpha=2"; preceded by the class of the
    estimator if there are several.
    """
    kernel = parameters.get("kernel", estimator.kernel)
    named = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", None)
    words = [named or type(kernel).__name__]
    if words[0] in ("poly", "polynomial"):
        words.append(f"degree={parameters.get('degree', estimator.degree)}")
    words += [
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in parameters.items()
        if name not in ("kernel", "degree")
    ]
    return f"{type(estimator).__name__}: " * kind + ", ".join(words)


# ---- the two committees -----------------------------------------------------------------------


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
        `KernelFisherDiscriminant` and `LeastSquaresSVC`, with fixed or tuned parameters. None gives
        a small committee of discriminants with different kernels.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for the held-out probabilities of all members: leave-one-out if None
        (leave-one-group-out if groups are given). Members that learn more than a closed form can
        leave out (``refine=True``) are evaluated with the splits of `cv`, or
        with five folds in which they learn on the training rows.
    n_jobs : int or None, default=None
        Number of `members` searched in parallel with joblib.

    Attributes
    ----------
    members_ : list of estimators
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
        The mixture of the held-out probabilities of the members, each calibrated on other rows.
        The weights depend on all rows. For probabilities that do not depend on the row at all, use
        `cross_val_predict`.
    best_score_ : float
        Minus the log-loss of `held_out_proba_`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    In cross-validation, every training set chooses its own members and weights (route "per-fold").
    A permutation test fits the committee for every labeling, with a warning. `decision_function`
    is log p for several classes and log(p_1/p_0) for two, so that it agrees with `predict`.

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

    takes = (KernelClassifier,)
    default = KernelFisherDiscriminant

    def _weigh(
        self,
        pool: Sequence[Candidate],
        given: Sequence[Any],
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
        kinds = [None if one.learned else given[one.number].calibration for one in pool]
        for kind in dict.fromkeys(kinds):
            which = [k for k, other in enumerate(kinds) if other == kind]
            outputs: Any = [pool[k].held_out for k in which]
            if kind is not None:
                outputs = held_out_probabilities(kind, outputs, labels, weights, part)
            p[which] = outputs
        rows = np.flatnonzero(usable)
        own = np.maximum(p[:, rows, labels[rows]], TINY)
        found = without_rest(mixture_weights(own, weights[rows], equal_shares(pool)))
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

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, n_classes): the mixture of the members, at its temperature."""
        check_is_fitted(self)
        p = self._mixture([member.predict_proba(X) for member in self.members_])
        log_p = np.log(np.maximum(to_numpy(p), TINY))
        result = probabilities(log_p, 1.0 / self.temperature_, self.floor_)
        return result if isinstance(p, np.ndarray) else asarray_like(result, p)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return _logarithms(self.predict_proba(X))

    def decision_function(self, X: Any) -> Array:
        """log(p_1/p_0) for two classes (n,); log p (n, n_classes) for more."""
        return self._decisions(self.predict_proba(X))

    def _decisions(self, p: Array) -> Array:
        log_p = _logarithms(p)
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of each row.

        Labels are returned in the namespace of X if it can represent them.
        """
        return labels_as_rows(self.predict_proba(X), self.classes_)


class KernelCommitteeRegressor(RegressorMixin, KernelCommittee):
    """Combine kernel ridge models, weighted by their held-out predictions.

    All kernels that the searches of the members try, each at its best alpha, are candidates with
    leave-one-out predictions f_k in closed form. Weights w on the simplex minimize the squared
    error of the held-out mixture, Σ_i (y_i - Σ_k w_k f_k(i))². Candidates without weight are
    dropped.

    Parameters
    ----------
    members : list of estimators, default=None
        `KernelRidge` estimators, with fixed or tuned parameters. None gives a small committee with
        different kernels.
    cv : int, splitter, iterable of splits or None, default=None
        The splits for the held-out predictions of all members: leave-one-out if None
        (leave-one-group-out if groups are given). Members that learn more than a closed form can
        leave out (``refine=True``) are evaluated with the splits of `cv`, or
        with five folds in which they learn on the training rows.
    n_jobs : int or None, default=None
        Number of `members` searched in parallel with joblib.

    Attributes
    ----------
    members_ : list of estimators
        The members with a weight, fitted on all rows; largest weights first.
    weights_ : array of shape (n_members,)
        Weights of the members; they sum to one. Several targets share them, each scaled by its
        standard deviation.
    candidates_ : dict
        All candidates: ``name``, ``score`` (minus the held-out squared error of each alone, in
        units of the variance) and ``weight``.
    held_out_prediction_ : array of shape (n_samples,) or (n_samples, n_targets)
        The mixture of the held-out predictions of the members. The weights depend on all rows. For
        predictions that do not depend on the row at all, use `cross_val_predict`.
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
        given: Sequence[Any],
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
        found = least_squares_weights(residuals, share)
        mixture = np.tensordot(found, predicted, axes=1).reshape(training.y.shape)
        self.held_out_prediction_ = as_came(mixture, training)
        of_mixture = np.tensordot(found, residuals, axes=1)
        self.best_score_ = -float(share @ np.mean(of_mixture**2, axis=1))
        return found, -np.mean(residuals**2, axis=2) @ share

    def predict(self, X: Any) -> Array:
        """The weighted mean of the members' predictions."""
        check_is_fitted(self)
        return self._mixture([member.predict(X) for member in self.members_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _logarithms(p: Array) -> Array:
    return namespace(p).log(namespace(p).clip(p, TINY, None))


def as_came(output: np.ndarray, training: Training) -> Array:
    """An output on the device of the rows."""
    return output if training.namespace == "numpy" else asarray_like(output, training.X)


def _has_own(candidate: Candidate, labels: np.ndarray) -> np.ndarray:
    """Whether each row has a held-out output for its own class."""
    scores = class_scores(candidate.held_out)
    known = np.isfinite(scores[np.arange(len(labels)), labels])
    return np.asarray(known & ~np.isnan(scores).any(axis=1))


def equal_shares(pool: Sequence[Candidate]) -> np.ndarray:
    """Starting values: each given estimator has the same weight, shared by its candidates."""
    numbers = np.array([one.number for one in pool])
    return np.asarray(1.0 / np.bincount(numbers)[numbers] / len(np.unique(numbers)))
