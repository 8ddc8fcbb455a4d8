"""Models that may become members of a committee, and what each says of rows it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from ..core.arrays import take, to_numpy
from ..core.doubt import doubts_once
from ..tuning.tuner import Evaluated, Watch
from .record import FitRecord
from .setup import Folds, Training, setup_of

LEARNING_FOLDS = 5  # by which members are judged that learn more than a search can leave out


@dataclass(frozen=True)
class Candidate:
    """One of the estimators given, at fixed parameters where its search tried several; and its
    held-out outputs: decisions before calibration, or predictions, of all rows.

    `learned`: probabilities in place of decisions, from a fit on every training set.
    """

    number: int
    parameters: dict[str, Any]
    held_out: np.ndarray
    learned: bool = False


def learns(estimator: Any) -> bool:
    """Whether a fit depends on the labels of all rows in more than the choice of a few numbers, so
    that leave-one-out after it is optimistic.
    """
    metric = getattr(estimator, "metric", None)
    weighs = getattr(estimator.kernel, "tunes", False)  # several kernels with weights
    return bool(
        estimator.refine
        or metric is not None
        or weighs
        or getattr(estimator, "readout", "lda") == "softmax"
    )


def learning_folds(training: Training, classifier: bool) -> Folds:
    """Where nothing else is asked for and a member learns: five folds, the same for all members."""
    n, y = training.n_samples, training.y
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
    """All kernels that an estimator's search decomposes, each at its best alpha.

    The decomposition is there, and held-out outputs follow from it in closed form.
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
    """An estimator that learns on every training set, by what its fits say of the test rows."""
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


def candidates_of(
    number: int, estimator: Any, X: Any, y: Any, sample_weight: Any, folds: Folds | None
) -> list[Candidate]:
    """What one of the estimators given brings into the pool."""
    if not learns(estimator):
        return searched(number, estimator, X, y, sample_weight, folds)
    assert folds is not None
    return [refitted(number, estimator, X, y, sample_weight, folds)]
