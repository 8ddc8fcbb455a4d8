"""Candidates for a committee, and their held-out outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from ..core.arrays import take, to_numpy
from ..core.doubt import doubts_once
from ..tuning.best import Evaluated, Watch
from .record import FitRecord
from .setup import Folds, Training, setup_of

LEARNING_FOLDS = 5  # for members that learn more than a search can leave out


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


@dataclass(frozen=True)
class Judging:
    """On what candidates are judged: the rows as they came (X, y, weights, groups) and validated,
    the committee's `cv` and its splits, None for leave-one-out.
    """

    rows: tuple[Any, Any, Any, Any]
    training: Training
    cv: Any
    folds: Folds | None

    @property
    def given_folds(self) -> Folds | None:
        """The splits, where `cv` has asked for them."""
        return None if self.cv is None else self.folds


def learns(estimator: Any) -> bool:
    """Whether a fit depends on the labels of all rows in more than the choice of a few numbers, so
    that leave-one-out after it is optimistic.
    """
    weighs = getattr(estimator.kernel, "tunes", False)  # several kernels with weights
    return bool(estimator.refine or weighs or getattr(estimator, "readout", "lda") == "softmax")


def learning_folds(training: Training, classifier: bool) -> Folds:
    """The default splits for a member that learns: five folds, of whole groups if there are
    groups.
    """
    n, y, groups = training.n_samples, training.y, training.groups
    if groups is not None:
        found = min(LEARNING_FOLDS, len(np.unique(groups)))
        return list(GroupKFold(found).split(np.empty((n, 1)), y, groups))
    if classifier:
        smallest = int(np.unique(y[training.active], return_counts=True)[1].min())
        splitter: Any = StratifiedKFold(LEARNING_FOLDS, shuffle=True, random_state=0)
        if smallest < LEARNING_FOLDS:
            splitter = KFold(LEARNING_FOLDS, shuffle=True, random_state=0)
    else:
        splitter = KFold(LEARNING_FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(np.empty((n, 1)), y))


def searched(
    number: int, estimator: Any, X: Any, y: Any, sample_weight: Any, folds: Folds | None
) -> list[Candidate]:
    """All kernels that the search of an estimator decomposes, each at its best alpha.

    With the decomposition, held-out outputs follow in closed form.
    """
    model = clone(estimator).set_params(cv=folds)
    setup = setup_of(model, X, y, sample_weight)
    tuner = setup.tuner(folds)
    found: list[Candidate] = []

    def collect(evaluated: Evaluated) -> None:
        trial, problem = evaluated.trial, evaluated.problem
        if problem is None or trial.sampled is not None:
            return
        record = FitRecord(setup.training, tuner, problem, folds)
        alpha, known = trial.alpha, evaluated.path
        path = problem.path(np.asarray([alpha])) if known is None else known.at(alpha)
        parameters = {**trial.parameters, "alpha": alpha}
        found.append(Candidate(number, parameters, to_numpy(record.held_out(path))))

    with doubts_once():
        tuned = tuner.search(None, Watch(evaluated=collect))
        chosen = {**tuned.winner.parameters, "alpha": tuned.winner.alpha}
        if not any(candidate.parameters == chosen for candidate in found):
            collect(Evaluated(tuned.winner, tuned.problem, tuned.path))
    return found


def refitted(
    number: int, estimator: Any, X: Any, y: Any, sample_weight: Any, folds: Folds
) -> Candidate:
    """An estimator that learns on every training set, with its outputs for the test rows."""
    classifier = is_classifier(estimator)
    y = np.asarray(y)
    classes = np.unique(y)
    shape = (len(y), len(classes)) if classifier else y.shape
    total, count = np.zeros(shape), np.zeros((len(y), *[1] * (len(shape) - 1)))
    for train, test in folds:
        weights = None if sample_weight is None else np.asarray(sample_weight)[train]
        model = clone(estimator).fit(take(X, train), y[train], sample_weight=weights)
        if classifier:
            said = np.zeros((len(test), len(classes)))
            columns = np.searchsorted(classes, model.classes_)
            said[:, columns] = to_numpy(model.predict_proba(take(X, test)))
        else:
            said = to_numpy(model.predict(take(X, test)))
        np.add.at(total, test, said)
        np.add.at(count, test, 1)
    with np.errstate(invalid="ignore"):
        return Candidate(number, {}, total / count, learned=True)


def candidates_of(number: int, estimator: Any, judging: Judging) -> list[Candidate]:
    """The candidates from one of the given estimators.

    Closed forms use the splits of the committee. Estimators that learn use the splits of `cv`, or
    five folds.
    """
    training = judging.training
    rows = training.X, training.y, training.weights
    if not learns(estimator):
        return searched(number, estimator, *rows, judging.folds)
    folds = judging.given_folds or learning_folds(training, is_classifier(estimator))
    return [refitted(number, estimator, *rows, folds)]


def fitted_candidate(one: Candidate, estimator: Any, judging: Judging) -> Any:
    """A candidate fitted on all rows, calibrated by the splits by which it was judged."""
    X, y, sample_weight, _ = judging.rows
    model = clone(estimator).set_params(**one.parameters)
    if one.learned:
        return model.fit(X, y, sample_weight=sample_weight)
    model.set_params(cv=judging.folds).fit(X, y, sample_weight=sample_weight)
    return model.set_params(cv=judging.cv)  # what users know it by, not a list of its splits
