"""Candidates for a committee: what the searches of its members try, with held-out outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..core.arrays import take, to_numpy
from ..core.numerical_warnings import warnings_once
from ..core.splits import Splits
from ..tuning.trial_runner import TrialRunner
from ..tuning.tuner import Tried
from .parameter_values import NUMBER, word
from .record import FitRecord
from .setup import Training, setup_of

FEWEST = 4  # rows of a class in a training set from which the default learns importances


@dataclass(frozen=True)
class Candidate:
    """One of the given members, with fixed parameters if its search tried several; and its
    held-out outputs for all rows: decisions before calibration, or predictions.

    `learned`: probabilities instead of decisions, from a fit on every training set.
    """

    number: int
    member: Any
    parameters: dict[str, Any]
    held_out: np.ndarray
    learned: bool = False

    @property
    def calibration(self) -> str | None:
        """How its held-out outputs become probabilities; None if they are such already."""
        return None if self.learned else final_step(self.member).calibration

    def fitted(self, X: Any, training: Training, folds: Splits | None, cv: Any) -> Any:
        """Fitted on all rows, X as they came, and calibrated by the splits that judged it."""
        made = clone(self.member)
        model = final_step(made).set_params(**self.parameters, cv=None if self.learned else folds)
        model.fit(prepared(made, X, training), training.y, training.weights)
        model.set_params(cv=None if self.learned else cv)
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


# ---- members -------------------------------------------------------------------------------------


def final_step(estimator: Any) -> Any:
    """The last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def steps_of(member: Any) -> list[Any]:
    """The steps before the model of a member."""
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


def suits(member: Any, training: Training, splits: Splits) -> bool:
    """Whether a default member can be made of these rows: dense ones if it prepares them; if it
    uses labels, several columns, splits that test every row once, and a few rows of each class in
    every training set.
    """
    if not steps_of(member):
        return True
    if sp.issparse(training.X):
        return False
    if not uses_labels(member):
        return True
    y, active = training.y, training.active
    tested = np.sort(np.concatenate([test for _, test in splits]))
    trained = [y[np.intersect1d(train, active)] for train, _ in splits]
    fewest = min(map(len, trained)) / 2.0
    if is_classifier(final_step(member)):
        fewest = min(np.sum(part == label) for part in trained for label in np.unique(y[active]))
    once = np.array_equal(tested, np.arange(training.n_samples))
    return bool(once and training.X.shape[1] > 1 and fewest >= FEWEST)


# ---- candidates ----------------------------------------------------------------------------------


def candidates_of(
    number: int, member: Any, training: Training, folds: Splits | None, splits: Splits
) -> list[Candidate]:
    """The candidates from one of the given members, judged by the folds of the committee.

    Where a fit depends on the labels of all rows in more than the choice of a few numbers,
    leave-one-out after it would be optimistic. Such a member is refitted on every training set of
    the splits. If only a step before the model uses labels, its model has the parameters that a
    search on all rows has found.
    """
    model = final_step(member)
    weighs = getattr(model.kernel, "tunes", False)  # several kernels with weights
    greedy = word(model.landmarks) == NUMBER and model.landmark_method == "greedy"
    if model.refine or weighs or greedy:
        return [learned(number, member, {}, training, splits)]
    found = searched(number, member, training, folds)
    if uses_labels(member):
        return [learned(number, member, found[-1].parameters, training, splits)]
    return found


def learned(
    number: int, member: Any, parameters: dict[str, Any], training: Training, splits: Splits
) -> Candidate:
    """Probabilities or predictions of fits on the training sets, rows without weight left out."""
    fixed = clone(member)
    final_step(fixed).set_params(**parameters)
    weights = training.row_weights
    step = f"{member.steps[-1][0]}__" if isinstance(member, Pipeline) else ""
    held_out = cross_val_predict(
        fixed,
        training.X if training.namespace == "numpy" else to_numpy(training.X),
        training.y,
        cv=[(train[weights[train] > 0], test) for train, test in splits],
        method="predict_proba" if is_classifier(final_step(member)) else "predict",
        params={f"{step}sample_weight": weights},
    )
    return Candidate(number, member, parameters, held_out, learned=True)


def searched(number: int, member: Any, training: Training, folds: Splits | None) -> list[Candidate]:
    """All kernels that the search of a member decomposes, each at its best alpha, the chosen one
    last.

    With the decomposition, held-out outputs follow in closed form, given the steps before the
    model.
    """
    made = clone(member)
    model = final_step(made).set_params(cv=folds)
    X = prepared(made, training.X, training)
    setup = setup_of(model, X, training.y, training.weights)
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
        found.append(Candidate(number, member, parameters, to_numpy(record.held_out(path))))

    with warnings_once():
        _, best = TrialRunner(tuner, seen=collect).search()
        chosen = {**best.trial.parameters, "alpha": best.trial.alpha}
        if not any(candidate.parameters == chosen for candidate in found):
            collect(best)
    return sorted(found, key=lambda candidate: candidate.parameters == chosen)


__all__ = ["Candidate", "candidates_of", "final_step", "suits"]
