"""What committees of classifiers and of regressions share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like
from ..core.rows import is_rows
from ..core.splits import Splits
from ..preparation import NormalScores, RelevanceScaler
from .base import KernelModel
from .committee_members import Candidate, candidates_of, final_step, suits
from .parameter_values import is_precomputed
from .parameters import store_parameters
from .setup import Training, default_folds, folds_of, training_of
from .verification import Verification, worst_of

LEARNING_FOLDS = 5  # for members that learn more than a search can leave out, unless cv is given
DEFAULT_KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
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
            Weight 2 equals a repeated row, but for steps before a model, which count every row
            once; rows with zero weight are not used for training.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.
        confounds : None
            Refused: a committee knows no confounds.

        Returns
        -------
        self
        """
        given = self.estimators()
        training = self._training(final_step(given[0]), X, y, sample_weight, groups, confounds)
        classifies = not self.multi_output
        folds = folds_of(self.cv, training, classifier=classifies)
        judged = None if self.cv is None else folds
        splits = judged or default_folds(training, LEARNING_FOLDS, classifies)
        if self.members is None:
            given = [member for member in given if suits(member, training, splits)]
        jobs = (
            delayed(candidates_of)(number, member, training, folds, splits)
            for number, member in enumerate(given)
        )
        pool = list(chain.from_iterable(Parallel(n_jobs=self.n_jobs)(jobs)))
        weights, scores = self._weigh(pool, training, folds)
        order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
        self.members_ = [pool[k].fitted(X, training, folds, self.cv) for k in order]
        self.weights_ = weights[order]
        several = len({type(final_step(member)) for member in given}) > 1
        names = [one.name(several) for one in pool]
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
        checked = clone(model)
        training = training_of(checked, X, y, sample_weight, groups)
        if is_rows(training.X):
            raise ValueError(
                f"{name} needs the rows in memory, got rows in files, blocks or Dask: load them "
                "into memory, or use a single estimator with landmarks=."
            )
        checked.__fitonce_labels__(training.y[training.active], None)  # refuses invalid ones
        return training

    @abstractmethod
    def _weigh(
        self, pool: Sequence[Candidate], training: Training, folds: Splits | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the candidates, and the score of each alone."""

    def estimators(self) -> list[Any]:
        """The given estimators, or the default ones; raises errors if they cannot be members."""
        if self.members is None:
            kernels = [self.default(**kernel) for kernel in DEFAULT_KERNELS]
            ranked = make_pipeline(NormalScores(), self.default(kernel="laplacian"))
            relevance = RelevanceScaler(labels=not self.multi_output)
            weighed = make_pipeline(relevance, self.default(kernel="exponential"))
            return [*kernels, ranked, weighed]
        if isinstance(self.members, (str, BaseEstimator)) or not hasattr(self.members, "__iter__"):
            raise TypeError(
                f"members must be a list of estimators or None, got {self.members!r} instead."
            )
        given = list(self.members)
        if not given:
            raise ValueError("members must contain at least one estimator, got an empty list.")
        models = [final_step(member) for member in given]
        for model in models:
            self._check_member(model)
        if len({is_precomputed(model.kernel) for model in models}) > 1:
            raise ValueError(
                "members must all take rows or all take a kernel matrix: kernel='precomputed' "
                "cannot be combined with other kernels."
            )
        return given

    def _check_member(self, member: Any) -> None:
        name, names = type(member).__name__, " or ".join(kind.__name__ for kind in self.takes)
        if not issubclass(type(member), self.takes):
            raise TypeError(
                f"members of a {type(self).__name__} must be of type {names}, or pipelines that "
                f"end in one, got {name} instead: their held-out outputs have a closed form."
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
        return worst_of([final_step(member).verify(**options) for member in self.members_])

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


def as_came(output: np.ndarray, training: Training) -> Array:
    """An output on the device of the rows."""
    return output if training.namespace == "numpy" else asarray_like(output, training.X)
