"""What committees share: candidates tried, weighed by their held-out outputs, and fitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array
from ..core.rows import is_rows
from ..kernels import PARAMETERS
from .base import KernelModel
from .candidates import Candidate, candidates_of, learning_folds, learns
from .setup import Folds, Training, folds_of, training_of
from .verification import Verification, worst_of

DEFAULT_KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "exponential"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
)


class KernelCommittee(BaseEstimator):
    """Shared by the committees; not for direct use."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __fitonce_route__ = "members and their weights are found on each training set"
    takes: ClassVar[tuple[type, ...]] = ()  # what members may be
    default: ClassVar[type] = KernelModel
    members: Any
    cv: Any
    n_jobs: int | None
    members_: list[Any]
    weights_: np.ndarray
    candidates_: dict[str, Any]

    # ---- fit -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Try all candidates, weigh them by their held-out outputs, and fit those with a weight.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix where all members have
            ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type; for regression numbers, also of shape (n_samples, n_targets).
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows of weight 0 do not train.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.

        Returns
        -------
        self
        """
        given = self.estimators()
        training = training_of(clone(given[0]), X, y, sample_weight, groups)
        if is_rows(training.X):
            raise ValueError(
                "a committee needs the rows in memory, got rows in files, blocks or Dask: gather "
                "them, or use one estimator with landmarks=."
            )
        classifier = not given[0].multi_output
        folds = folds_of(self.cv, training, classifier=classifier)
        if folds is None and any(map(learns, given)):
            folds = learning_folds(training, classifier)
        rows = training.X, training.y, training.weights
        jobs = (
            delayed(candidates_of)(number, estimator, *rows, folds)
            for number, estimator in enumerate(given)
        )
        pool = [one for found in Parallel(n_jobs=self.n_jobs)(jobs) for one in found]
        weights, scores = self._weigh(pool, given, training, folds)
        order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]

        fitted = [self._fitted(given, pool[k], folds, X, y, sample_weight) for k in order]
        self.members_, self.weights_ = fitted, weights[order]
        several = len(set(map(type, given))) > 1
        self.candidates_ = {
            "name": [member_name(given[one.number], one.parameters, several) for one in pool],
            "score": scores,
            "weight": weights,
        }
        self._place = order
        return self

    def _fitted(
        self,
        given: Sequence[Any],
        one: Candidate,
        folds: Folds | None,
        X: Any,
        y: Any,
        weights: Any,
    ) -> Any:
        """A candidate fitted on all rows, calibrated by the splits by which it was judged."""
        model = clone(given[one.number]).set_params(**one.parameters)
        if one.learned:
            return model.fit(X, y, sample_weight=weights)
        model.set_params(cv=folds).fit(X, y, sample_weight=weights)
        return model.set_params(cv=self.cv)  # what users know it by, not a list of its splits

    @abstractmethod
    def _weigh(
        self,
        pool: Sequence[Candidate],
        given: Sequence[Any],
        training: Training,
        folds: Folds | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the candidates, and how well each does by itself."""

    def estimators(self) -> list[Any]:
        """The estimators given, or the default ones; errors where they cannot be members."""
        if self.members is None:
            return default_members(self.default)
        if isinstance(self.members, (str, BaseEstimator)) or not hasattr(self.members, "__iter__"):
            raise TypeError(
                f"members must be a list of estimators or None, got {self.members!r} instead."
            )
        given = list(self.members)
        if not given:
            raise ValueError("members must name at least one estimator, got an empty list.")
        for member in given:
            self._check_member(member)
        if len({member.kernel == "precomputed" for member in given}) > 1:
            raise ValueError(
                "members must all take rows or all take a kernel matrix: kernel='precomputed' "
                "cannot go with other kernels."
            )
        return given

    def _check_member(self, member: Any) -> None:
        name, names = type(member).__name__, " or ".join(kind.__name__ for kind in self.takes)
        if not issubclass(type(member), self.takes):
            raise TypeError(
                f"members of a {type(self).__name__} must be estimators of the kind {names}, got "
                f"{name} instead: their held-out outputs come in closed form."
            )
        if member.cv is not None:
            raise ValueError(
                f"a member has cv={member.cv!r}, but all members must be judged on the same "
                "held-out rows: give cv to the committee."
            )
        drawn = isinstance(member.landmarks, (int, np.integer))
        if drawn and not isinstance(member.random_state, (int, np.integer)):
            raise ValueError(
                "a member with a number of landmarks needs an integer random_state, got "
                f"{member.random_state!r} instead: its fit must draw those by which it was judged."
            )
        if getattr(member, "calibration", "") is None and not hasattr(member, "predict_proba"):
            raise ValueError(
                f"a {name} with calibration=None has no probabilities to be combined: use "
                '"temperature", "sigmoid" or "isotonic".'
            )

    # ---- what it is ----------------------------------------------------------------------------

    @property
    def names_(self) -> list[str]:
        """The members in a few words each."""
        return [self.candidates_["name"][k] for k in self._place]

    def describe(self, most: int | None = None) -> str:
        """Who is in the committee, with what weight, in words.

        Parameters
        ----------
        most : int, default=None
            How many of the members are named, the heaviest first; all if None.
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

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Refit a few splits of every member literally, and compare with the closed-form held-out
        outputs by which the members were weighed.

        Parameters
        ----------
        n_refits : int, default=5
            How many of the splits (rows, for leave-one-out) to refit for each member.
        X : array, optional
            The training kernel matrix, for ``kernel="precomputed"``.
        random_state : int, default=0
            Which splits are taken.

        Returns
        -------
        Verification
            The worst of the members. Members that learn on every training set were refitted in
            the first place.
        """
        check_is_fitted(self)
        return worst_of(
            [member.verify(n_refits, X=X, random_state=random_state) for member in self.members_]
        )

    def _mixture(self, outputs: Sequence[Array]) -> Array:
        """The weighted mean of the members' outputs."""
        total = float(self.weights_[0]) * outputs[0]
        for w, output in zip(self.weights_[1:].tolist(), outputs[1:], strict=True):
            total = total + w * output
        return total

    @property
    def n_features_in_(self) -> int:
        """How many features `fit` saw."""
        count: int = self.members_[0].n_features_in_
        return count

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Their names, where `fit` saw a data frame."""
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
    """A small committee: kernels of different kinds, whose widths and alphas are all candidates."""
    return [kind(**given) for given in DEFAULT_KERNELS if given["kernel"] in PARAMETERS]


def member_name(estimator: Any, parameters: dict[str, Any], kind: bool) -> str:
    """A candidate in a few words, such as "rbf, gamma=0.5, alpha=2"; with the `kind` of estimator
    before them, where there are several.
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
