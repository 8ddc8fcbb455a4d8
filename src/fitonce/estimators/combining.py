"""What committees share: candidates are tried, weighted by their held-out outputs, and fitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array
from ..core.rows import is_rows
from ..kernels import PARAMETERS
from .base import KernelModel
from .candidates import Candidate, Judging, candidates_of, fitted_candidate
from .setup import Folds, Training, folds_of, training_of
from .verification import Verification, worst_of

DEFAULT_KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "exponential"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
)


class ForOneModel:
    """A method that only single models have; using it raises an error that says so."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: {self.why}. Use a single model, such as one of "
            "those that this estimator is made of."
        )


class KernelCommittee(BaseEstimator):
    """Base class of the committees; not for direct use."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "confounds": True}
    predict_interval = ForOneModel(
        "the combination depends on every row, if only through the weights, so intervals from its "
        "held-out residuals would have no guarantee"
    )
    predict_set = ForOneModel(
        "the combination depends on every row, if only through the weights, so sets from its "
        "held-out probabilities would have no guarantee"
    )
    influence = ForOneModel("influence needs the decomposition of a single model")
    at = ForOneModel("each of its models has its own alpha")
    __fitonce_route__ = "members and their weights are chosen on each training set"
    takes: ClassVar[tuple[type, ...]] = ()  # allowed classes of members
    default: ClassVar[type] = KernelModel
    multi_output: ClassVar[bool] = False
    members_: list[Any]
    weights_: np.ndarray
    candidates_: dict[str, Any]

    def __init__(self, members: Any = None, *, cv: Any = None, n_jobs: int | None = None) -> None:
        self.members = members
        self.cv = cv
        self.n_jobs = n_jobs

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
        classifier = not given[0].multi_output
        folds = folds_of(self.cv, training, classifier=classifier)
        judging = Judging((X, y, sample_weight, groups), training, self.cv, folds)
        jobs = (
            delayed(candidates_of)(number, estimator, judging)
            for number, estimator in enumerate(given)
        )
        pool = [one for several in Parallel(n_jobs=self.n_jobs)(jobs) for one in several]
        weights, scores = self._weigh(pool, given, training, folds)
        order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]

        self.members_ = [fitted_candidate(pool[k], given[pool[k].number], judging) for k in order]
        self.weights_ = weights[order]
        several = len(set(map(type, given))) > 1
        self.candidates_ = {
            "name": [member_name(given[one.number], one.parameters, several) for one in pool],
            "score": scores,
            "weight": weights,
        }
        self._place = order
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
        folds: Folds | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the candidates, and the score of each alone."""

    def estimators(self) -> list[Any]:
        """The given estimators, or the default ones; raises errors if they cannot be members."""
        if self.members is None:
            return default_members(self.default)
        if isinstance(self.members, (str, BaseEstimator)) or not hasattr(self.members, "__iter__"):
            raise TypeError(
                f"members must be a list of estimators or None, got {self.members!r} instead."
            )
        given = list(self.members)
        if not given:
            raise ValueError("members must contain at least one estimator, got an empty list.")
        for member in given:
            self._check_member(member)
        if len({member.kernel == "precomputed" for member in given}) > 1:
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

    @property
    def names_(self) -> list[str]:
        """Short descriptions of the members."""
        return [self.candidates_["name"][k] for k in self._place]

    def describe(self, most: int | None = None) -> str:
        """Describe the members and their weights.

        Parameters
        ----------
        most : int, default=None
            Number of members to list, largest weights first; None lists all.
        """
        check_is_fitted(self)
        weights, names = self.weights_.tolist()[:most], self.names_[:most]
        lines = [f"{w:6.1%}  {name}" for w, name in zip(weights, names, strict=True)]
        count, total = len(self.weights_), len(self.candidates_["name"])
        if count > len(lines):
            rest = float(self.weights_[len(lines) :].sum())
            lines.append(f"{rest:6.1%}  {count - len(lines)} others")
        members = "1 member" if count == 1 else f"{count} members"
        return "\n".join([f"{members}, of {total} candidates:", *lines])

    def _mixture(self, outputs: Sequence[Array]) -> Array:
        """The weighted mean of the members' outputs."""
        total = float(self.weights_[0]) * outputs[0]
        for w, output in zip(self.weights_[1:].tolist(), outputs[1:], strict=True):
            total = total + w * output
        return total

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
        each = [model.verify(n_refits, X=X, random_state=random_state) for model in self.members_]
        return worst_of(each)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        count: int = self.members_[0].n_features_in_
        return count

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if `fit` was given a data frame."""
        names: np.ndarray = self.members_[0].feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernels = [getattr(member, "kernel", None) for member in self.members or ()]
        tags.input_tags.pairwise = "precomputed" in kernels
        tags.input_tags.sparse = "precomputed" not in kernels
        tags.array_api_support = True
        return tags


def default_members(kind: type) -> list[Any]:
    """A small committee with different kernels, whose widths and alphas are all candidates."""
    return [kind(**given) for given in DEFAULT_KERNELS if given["kernel"] in PARAMETERS]


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
