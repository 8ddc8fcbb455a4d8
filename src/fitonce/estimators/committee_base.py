"""What committees of classifiers and of regressions share: members, and the candidates that their
searches try, with held-out outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array, asarray_like, take, to_numpy
from ..core.numerical_warnings import warnings_once
from ..core.refused import refuse
from ..core.rows import is_rows
from ..core.splits import Splits
from ..preparation import NormalScores, RelevanceScaler
from ..tuning.trial_runner import TrialRunner
from ..tuning.trials import Trial
from .accuracy import Verification, worst_of
from .base import KernelModel
from .parameter_values import NUMBER, is_precomputed, word
from .parameters import store_parameters
from .record import FitRecord
from .setup import Training, default_folds, folds_of, setup_of, training_of
from .validation import is_foreign_array

FEWEST = 4  # rows of a class in a training set from which the default learns importances
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
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"confounds": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"confounds": True}
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
            Training rows, or the kernel matrix if all members have ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type; for regression numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row, but for steps before a model.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.
        confounds : table or array of shape (n_samples,) or (n_samples, n_confounds), default=None
            As in the members. Members that learn on every training set take none.

        Returns
        -------
        self
            Fitted.
        """
        given = self.estimators()
        training = self._training(final_step(given[0]), X, y, sample_weight, groups)
        classifies = not self.multi_output
        folds = folds_of(self.cv, training, classifier=classifies)
        judged = None if self.cv is None else folds
        splits = judged or default_folds(training, LEARNING_FOLDS, classifies)
        if self.members is None:
            adjusts = confounds is not None
            given = [one for one in given if suits(one, training, splits, adjusts)]
        jobs = (delayed(candidates_of)(one, X, training, confounds, folds, splits) for one in given)
        found = list(Parallel(n_jobs=self.n_jobs)(jobs))
        pool = list(chain.from_iterable(found))
        # every member starts with the same weight, shared by its candidates
        start = np.concatenate([np.full(len(own), 1.0 / len(own) / len(found)) for own in found])
        weights, scores = self._weigh(pool, start, training, folds)
        order = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
        self.members_ = [pool[k].fitted(training, confounds, folds, self.cv) for k in order]
        self.weights_ = weights[order]
        several = len({type(final_step(member)) for member in given}) > 1
        names = [one.name(several) for one in pool]
        self.candidates_: dict[str, Any] = {"name": names, "score": scores, "weight": weights}
        self.names_ = [names[k] for k in order]
        return self

    def _training(self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Training:
        """Validated rows, in memory."""
        checked = clone(model)
        training = training_of(checked, X, y, sample_weight, groups)
        if is_rows(training.X):
            raise ValueError(
                f"{type(self).__name__} needs the rows in memory, got rows in files, blocks or "
                "Dask: load them into memory, or use a single estimator with landmarks=."
            )
        checked.__fitonce_labels__(training.y[training.active], None)  # refuses invalid ones
        return training

    @abstractmethod
    def _weigh(
        self,
        pool: Sequence[Candidate],
        start: np.ndarray,
        training: Training,
        folds: Splits | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights of the candidates, found from those of the start, and the score of each
        alone.
        """

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
        drawn = isinstance(member.landmarks, (int, np.integer))
        refuse(
            (
                member.cv is not None,
                f"a member has cv={member.cv!r}, but all members must be evaluated on the same "
                "held-out rows: pass cv to the committee instead.",
            ),
            (
                drawn and not isinstance(member.random_state, (int, np.integer)),
                "a member with a number of landmarks needs an integer random_state, got "
                f"{member.random_state!r} instead: its fit must use the landmarks that were "
                "evaluated.",
            ),
            (
                getattr(member, "calibration", "") is None and not hasattr(member, "predict_proba"),
                f"a {name} with calibration=None has no probabilities to combine: use "
                '"temperature", "sigmoid" or "isotonic".',
            ),
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

    def _mixture(self, method: str, X: Any, confounds: Any) -> Array:
        """The weighted mean of an output of the members."""
        check_is_fitted(self)
        given = {} if confounds is None else {"confounds": confounds}
        outputs = [getattr(member, method)(X, **given) for member in self.members_]
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.members if isinstance(self.members, (list, tuple)) else ()
        pairwise = any(is_precomputed(getattr(member, "kernel", None)) for member in given)
        tags.input_tags.pairwise, tags.input_tags.sparse = pairwise, not pairwise
        tags.array_api_support = True
        return tags


def as_came(output: np.ndarray, training: Training) -> Array:
    """An output on the device of the rows."""
    return asarray_like(output, training.X) if is_foreign_array(training.X) else output


# ---- members -------------------------------------------------------------------------------------


def final_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def steps_of(member: Any) -> list[Any]:
    steps = member.steps[:-1] if isinstance(member, Pipeline) else []
    return [step for _, step in steps if not isinstance(step, (str, type(None)))]


def uses_labels(member: Any) -> bool:
    """Whether a step before the model does."""
    return any(get_tags(step).target_tags.required for step in steps_of(member))


def prepared(member: Any, X: Any, training: Training) -> Any:
    """All rows after the steps of a member, which are fitted here to the rows with a weight."""
    rows, steps = training.active, steps_of(member)
    if steps and not training.all_active:
        X = training.X
    for step in steps:
        seen = X if training.all_active else take(X, rows)
        X = step.fit(seen, training.y[rows]).transform(X)
    return X


def suits(member: Any, training: Training, splits: Splits, adjusts: bool) -> bool:
    """Whether a default member can be made of these rows: dense ones if it prepares them; if it
    uses labels, several columns, no confounds, splits that test every row once, and a few rows of
    each class in every training set.
    """
    if not uses_labels(member):
        return not (steps_of(member) and sp.issparse(training.X))
    y, active = training.y, training.active
    trained = [y[np.intersect1d(train, active)] for train, _ in splits]
    if is_classifier(final_step(member)):
        fewest = min(np.sum(part == label) for part in trained for label in np.unique(y[active]))
    else:
        fewest = min(map(len, trained)) // 2
    tested = np.sort(np.concatenate([test for _, test in splits]))
    once = np.array_equal(tested, np.arange(training.n_samples))
    dense = not sp.issparse(training.X) and training.X.shape[1] > 1
    return bool(dense and once and not adjusts and fewest >= FEWEST)


# ---- candidates ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """One of the given members, with fixed parameters if its search tried several; and its
    held-out outputs for all rows: decisions before calibration, or predictions.

    Its steps are fitted, and X are the rows after them. `learned`: probabilities instead of
    decisions, from a fit on every training set.
    """

    member: Any
    X: Any
    parameters: dict[str, Any]
    held_out: np.ndarray
    learned: bool = False

    @property
    def calibration(self) -> str | None:
        """How its held-out outputs become probabilities; None if they are such already."""
        return None if self.learned else final_step(self.member).calibration

    def fitted(self, training: Training, confounds: Any, folds: Splits | None, cv: Any) -> Any:
        """The member fitted on all rows, calibrated by the splits that judged it."""
        model = clone(final_step(self.member)).set_params(**self.parameters)
        model.set_params(cv=None if self.learned else folds)
        model.fit(self.X, training.y, training.weights, confounds=confounds)
        model.set_params(cv=None if self.learned else cv)
        if not isinstance(self.member, Pipeline):
            return model
        made = copy(self.member)
        made.steps = [*made.steps[:-1], (made.steps[-1][0], model)]
        return made

    def name(self, kind: bool) -> str:
        """A short description, such as "NormalScores, rbf, gamma=0.5, alpha=2"; preceded by the
        class of the estimator if there are several.
        """
        model = final_step(self.member)
        kernel = self.parameters.get("kernel", model.kernel)
        named = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", None)
        words = [type(step).__name__ for step in steps_of(self.member)]
        words.append(named or type(kernel).__name__)
        if words[-1] in ("poly", "polynomial"):
            words.append(f"degree={self.parameters.get('degree', model.degree)}")
        words += [
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.parameters.items()
            if name not in ("kernel", "degree")
        ]
        return f"{type(model).__name__}: " * kind + ", ".join(words)


def candidates_of(
    given: Any, X: Any, training: Training, confounds: Any, folds: Splits | None, splits: Splits
) -> list[Candidate]:
    """The candidates from one of the given members, judged by the folds of the committee.

    Where a fit depends on the labels of all rows in more than the choice of a few numbers,
    leave-one-out after it would be optimistic. Such a member is refitted on every training set of
    the splits. If only a step before the model uses labels, its model has the parameters that a
    search on all rows has found.
    """
    member = clone(given)
    alone = Candidate(member, prepared(member, X, training), {}, np.empty(0))
    model = final_step(member)
    weighs = getattr(model.kernel, "tunes", False)  # several kernels with weights
    greedy = word(model.landmarks) == NUMBER and model.landmark_method == "greedy"
    learns = model.refine or weighs or greedy
    refuse(
        (
            confounds is not None and (learns or uses_labels(member)),
            "confounds= needs members whose held-out outputs have a closed form, got one that is "
            "fitted anew on every training set (refine=True, tuned weights of kernels, greedy "
            "landmarks, or a step that uses labels): leave it or the confounds out.",
        )
    )
    if learns:
        return [learned(alone, training, splits)]
    found = searched(alone, training, confounds, folds)
    return [learned(found[-1], training, splits)] if uses_labels(member) else found


def learned(candidate: Candidate, training: Training, splits: Splits) -> Candidate:
    """With probabilities or predictions of fits on the training sets, rows without weight left
    out.
    """
    fixed = clone(candidate.member)
    final_step(fixed).set_params(**candidate.parameters)
    weights = training.row_weights
    step = f"{fixed.steps[-1][0]}__" if isinstance(fixed, Pipeline) else ""
    held_out = cross_val_predict(
        fixed,
        to_numpy(training.X) if is_foreign_array(training.X) else training.X,
        training.y,
        cv=[(train[weights[train] > 0], test) for train, test in splits],
        method="predict_proba" if is_classifier(final_step(fixed)) else "predict",
        params={f"{step}sample_weight": weights},
    )
    return replace(candidate, held_out=held_out, learned=True)


def searched(
    alone: Candidate, training: Training, confounds: Any, folds: Splits | None
) -> list[Candidate]:
    """All kernels that the search of a member decomposes, each at its best alpha, the chosen one
    last.

    With the decomposition, held-out outputs follow in closed form, given the steps before the
    model.
    """
    model = clone(final_step(alone.member)).set_params(cv=folds)
    setup = setup_of(model, alone.X, training.y, training.weights, confounds=confounds)
    tuner = setup.tuner(folds)
    found: list[Candidate] = []

    def collect(trial: Trial) -> None:
        problem, path = trial.problem, trial.path
        if problem is None or trial.sampled is not None:
            return
        alpha = trial.alpha
        path = problem.path(np.asarray([alpha])) if path is None else path.at(alpha)
        held_out = FitRecord(setup.training, tuner, problem, folds).held_out(path)
        parameters = {**trial.parameters, "alpha": alpha}
        found.append(replace(alone, parameters=parameters, held_out=to_numpy(held_out)))

    with warnings_once():
        _, best = TrialRunner(tuner, seen=collect).search()
        chosen = {**best.parameters, "alpha": best.alpha}
        if not any(candidate.parameters == chosen for candidate in found):
            collect(best)
    return sorted(found, key=lambda candidate: candidate.parameters == chosen)
