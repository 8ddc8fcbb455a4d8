"""Which columns matter: how much worse held-out rows are predicted if the values of one column are
shuffled (Breiman 2001; Fisher, Rudin and Dominici 2019).

Models with the chosen settings are fitted on training rows and evaluated on test rows with one
column shuffled, so no row is predicted by a model that was trained on it. Shuffling needs no fit.
If other columns carry the same information, shuffling one of them loses little: the measure
describes this model, not nature.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from ..assessment import choice_of
from ..assessment.data import n_columns
from ..core.arrays import to_numpy
from ..crossval.confounds import call, fit_parameters
from ..crossval.lookup import subset
from ..estimators.fitted import settled
from .subject import Subject

MOST_ROWS = 1000  # larger data are sampled
SECONDS = 3.0  # approximate time limit for shuffling
SHUFFLES = 5  # of every column, if time allows
FOLDS = 5
LISTED = 12
PER_ENTRY, PER_CALL = 2e-9, 3e-3  # seconds per kernel entry and feature, and per prediction


@dataclass(frozen=True)
class Importance:
    """The loss from shuffling each column, largest first; `score` is the score without
    shuffling.
    """

    names: list[str]
    losses: np.ndarray
    score: float
    n_shuffles: int
    n_rows: int
    n_folds: int

    @property
    def listed(self) -> list[dict[str, Any]]:
        """The columns that matter most, with the length of a bar in percent."""
        most = max(float(self.losses.max()), 1e-12)
        order = np.argsort(-self.losses, kind="stable")[:LISTED]
        losses = [(self.names[j], float(self.losses[j])) for j in order]
        return [{"name": name, "loss": x, "bar": 100 * max(x, 0.0) / most} for name, x in losses]

    @property
    def others(self) -> int:
        """The number of columns that are not listed."""
        return max(len(self.names) - LISTED, 0)


def importance(subject: Subject) -> Importance | None:
    """The losses; None if there are no meaningful columns, or shuffling would take too long."""
    X, names = subject.X, subject.feature_names
    if (
        subject.committee
        or subject.precomputed
        or subject.y.ndim > 1
        or len(names) < 2
        or not _shufflable(X)
    ):
        return None
    rng = np.random.default_rng(0)
    rows = _rows(subject, rng)
    entries = len(rows) ** 2 * n_columns(subject.model_features) * PER_ENTRY
    calls = len(names) * (entries + FOLDS * PER_CALL)
    n_shuffles = int(min(SHUFFLES, SECONDS // calls)) if calls > 0 else SHUFFLES
    if n_shuffles < 1:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _measured(subject, rows, n_shuffles, rng)
        # a training set that cannot be fitted, for example one that lacks a class
        except ValueError:
            return None


def _rows(subject: Subject, rng: np.random.Generator) -> np.ndarray:
    rows = subject.active
    return rows if len(rows) <= MOST_ROWS else np.sort(rng.choice(rows, MOST_ROWS, replace=False))


def _measured(
    subject: Subject, rows: np.ndarray, n_shuffles: int, rng: np.random.Generator
) -> Importance:
    """Losses of the mean score over shuffles."""
    y, X = subject.y[rows], subset(subject.X, rows)
    n_features, splits = len(subject.feature_names), _splits(subject, rows)
    merit = np.zeros((1 + n_features * n_shuffles, len(rows)))
    for train, test in splits:
        model = _fitted(subject, rows[train])
        tested = subset(X, test)
        C = None if subject.confounds is None else subset(subject.confounds, rows[test])
        merit[0, test] = _merit(subject, call(model, "predict", tested, C), y[test])
        for j in range(n_features):
            for shuffle in range(n_shuffles):
                order = rng.permutation(len(test))
                found = call(model, "predict", _shuffled(tested, j, order), C)
                place = 1 + j * n_shuffles + shuffle
                merit[place, test] = _merit(subject, found, y[test])
    weights = None if subject.sample_weight is None else subject.sample_weight[rows]
    scores = np.average(merit, axis=1, weights=weights)
    if not subject.classification:  # mean squared residuals, which R² divides by the variance
        centre = np.average(y, weights=weights)
        scores = 1.0 + scores / np.average((y - centre) ** 2, weights=weights)
    losses = scores[0] - scores[1:].reshape(n_features, n_shuffles).mean(axis=1)
    return Importance(
        subject.feature_names, losses, float(scores[0]), n_shuffles, len(rows), len(splits)
    )


def _merit(subject: Subject, predicted: Any, y: np.ndarray) -> np.ndarray:
    """For every row: one if its class is right, or minus the squared residual."""
    predicted = to_numpy(predicted)
    return np.asarray(predicted == y if subject.classification else -((y - predicted) ** 2))


def _fitted(subject: Subject, rows: np.ndarray) -> Any:
    """The estimator with the chosen settings, fitted on some of its rows."""
    settings: dict[str, Any] = {**choice_of(subject.model), "refine": False, "cv": None}
    if hasattr(subject.model, "calibration"):
        settings["calibration"] = None
    model = settled(subject.estimator)
    prefix = f"{model.steps[-1][0]}__" if subject.in_pipeline else ""
    model.set_params(**{prefix + name: value for name, value in settings.items()})
    weights = subject.sample_weight
    given = {} if weights is None else {f"{prefix}sample_weight": weights[rows]}
    if subject.confounds is not None:
        given |= fit_parameters(model, subset(subject.confounds, rows))
    return model.fit(subset(subject.X, rows), subject.y[rows], **given)


def _splits(subject: Subject, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds that keep groups together, or else are stratified by class."""
    y, groups = subject.y[rows], None
    if subject.groups is not None:
        groups = np.unique(to_numpy(subject.groups)[rows], return_inverse=True)[1]
        cv: Any = GroupKFold(min(FOLDS, int(groups.max()) + 1))
    elif subject.classification and np.unique(y, return_counts=True)[1].min() >= 2:
        cv = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    else:
        cv = KFold(min(FOLDS, len(rows)), shuffle=True, random_state=0)
    return list(cv.split(y, y, groups=groups))


def _shufflable(X: Any) -> bool:
    return isinstance(X, np.ndarray) or hasattr(X, "iloc") or hasattr(X, "with_columns")


def _shuffled(X: Any, column: int, order: np.ndarray) -> Any:
    """Rows with the values of one column in another order."""
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(X.to_series(column)[order])
    if hasattr(X, "iloc"):
        changed = X.copy()
        changed.isetitem(column, X.iloc[order, column].set_axis(X.index))
        return changed
    changed = X.copy()
    changed[:, column] = X[order, column]
    return changed
