"""The subject of a report: the model, its rows and their names, and the held-out predictions,
computed once and kept together.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..assessment import Assessment, assess
from ..assessment.data import n_columns
from ..assessment.render import shortened
from ..core.arrays import to_numpy
from ..crossval.lookup import n_rows
from ..estimators.accuracy import landmarks_by_labels
from ..estimators.confounding import new_confounds
from ..estimators.fitted import (
    alpha_of,
    held_out_output,
    is_committee,
    is_regressor,
    members_of,
    model_or_committee,
    record_of,
)
from ..plotting.rows import margins
from ..plotting.style import rounded


@dataclass(frozen=True)
class Origin:
    """Where the rows of a report come from, for its introduction.

    Parameters
    ----------
    data : str, default=None
        Name of the data, such as a file name.
    target : str, default=None
        Name of the target; by default that of the Series.
    notes : sequence of str, default=()
        How X and y were prepared, one sentence each: columns left out, treatment of missing values.
        They are printed as they are, unless the report is written without data.
    n_rows : int, default=None
        Total number of rows, if X and y are a random sample.
    """

    data: str | None = None
    target: str | None = None
    notes: Sequence[str] = ()
    n_rows: int | None = None


@dataclass(frozen=True)
class Subject:
    """The model of a report and its training rows."""

    estimator: Any
    model: Any
    record: Any  # what the model keeps of its fit; None if it was loaded from a file
    X: Any  # as given
    y: np.ndarray
    sample_weight: np.ndarray | None
    groups: Any
    assessment: Assessment | None
    feature_names: list[str]  # of the columns of X as given
    row_names: list[str]
    class_names: list[str]  # empty for regression
    origin: Origin = Origin()
    confounds: Any = None
    unassessed: str = ""  # why there is no assessment

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        confounds: Any = None,
        assessment: Any = None,
        features: Sequence[Any] | None = None,
        rows: Sequence[Any] | None = None,
        origin: Origin | None = None,
    ) -> Subject:
        """Validate what can be checked without fitting; weights and groups are taken from the
        model if it keeps them.
        """
        model = model_or_committee(estimator, "a report shows their held-out values")
        first = members_of(model)[0]
        origin = origin or Origin()
        if origin.target is None:
            origin = replace(origin, target=_name(y))
        y = to_numpy(y)
        n = len(held_out_output(model))
        if len(y) != n or n_rows(X) != n:
            raise ValueError(
                f"X and y must be the {n} rows that the model was fitted on, got {n_rows(X)} rows "
                f"and {len(y)} targets instead: a report shows the held-out result of each "
                "training row."
            )
        _check_assessment(assessment, y)
        record = None
        with suppress(ValueError):
            record = record_of(first, "a report")
        if record is not None:
            sample_weight, groups = record.training.weights, record.training.groups
        if sample_weight is not None:
            sample_weight = to_numpy(sample_weight).astype(float)
        classes = [shortened(label) for label in getattr(model, "classes_", [])]
        names = feature_names(X, features), row_names(X, rows), classes
        given = X, y, sample_weight, groups, assessment
        new_confounds(first, confounds, n, "write_report")
        subject = cls(estimator, model, record, *given, *names, origin, confounds)
        if record is not None:
            seen = first is model or first in model.members_  # not after other steps
            _check_training(record.training, subject.model_features if seen else None, y)
        subject = replace(subject, record=None) if subject.committee else subject
        return subject if assessment is not None else subject.assessed()

    def assessed(self) -> Subject:
        """With nested scores, by fits in every fold if the model is tuned; or with the reason why
        there are none, such as several targets.
        """
        names = ("groups", "sample_weight", "confounds")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        try:
            found = assess(self.estimator, self.X, self.y, permutations=0, **given)
        except ValueError as error:
            return replace(self, unassessed=str(error))
        return replace(self, assessment=found)

    # ---- the model and its rows ------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @property
    def first_target(self) -> np.ndarray:
        return self.y.reshape(self.n_samples, -1)[:, 0]

    @property
    def classification(self) -> bool:
        return not is_regressor(self.model)

    @property
    def classes(self) -> np.ndarray:
        return np.asarray(self.model.classes_)

    @property
    def steps(self) -> list[Any]:
        """The steps of a pipeline, the model last; only the model if there is no pipeline."""
        return [step for _, step in getattr(self.estimator, "steps", [("model", self.model)])]

    @property
    def in_pipeline(self) -> bool:
        return len(self.steps) > 1

    @property
    def committee(self) -> bool:
        """Whether the model is a committee, which has neither one kernel nor one decomposition."""
        return is_committee(self.model)

    @property
    def precomputed(self) -> bool:
        """Whether the columns of X are those of a kernel matrix, not features."""
        return bool(members_of(self.model)[0].kernel == "precomputed") and not self.in_pipeline

    @cached_property
    def model_features(self) -> Any:
        """X as the model sees it: after the preprocessing steps of a pipeline."""
        return self.estimator[:-1].transform(self.X) if self.in_pipeline else self.X

    @cached_property
    def active(self) -> np.ndarray:
        """The rows used for training: those with positive weight."""
        weights = np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight
        return np.flatnonzero(weights > 0)

    # ---- held-out results ------------------------------------------------------------------------

    @property
    def leave_one_out(self) -> bool:
        """Whether the model's own held-out values leave out single rows, not groups or folds."""
        return self.model.cv is None and self.groups is None

    @cached_property
    def held_out(self) -> np.ndarray:
        """Held-out decisions or predictions for the chosen settings, from the model's own
        splits; NaN where the landmarks were chosen by the labels of these rows.
        """
        found = held_out_output(self.model)
        told = not self.committee and landmarks_by_labels(self.model)
        return np.full_like(found, np.nan) if told else found

    @cached_property
    def codes(self) -> np.ndarray:
        """Indices of the observed classes."""
        return np.searchsorted(self.classes, self.y)

    @property
    def sizes(self) -> list[int]:
        """Number of rows of every class; empty for regression."""
        return [int(np.sum(self.codes == code)) for code in range(len(self.class_names))]

    @cached_property
    def predictions(self) -> np.ndarray:
        """Held-out predictions: of the assessment; of several targets, those of the model's own
        splits.
        """
        if self.assessment is not None:
            return np.asarray(self.assessment.predictions)
        return np.full(self.n_samples, None) if self.classification else self.held_out

    @cached_property
    def predicted_rows(self) -> np.ndarray:
        none = np.zeros(self.n_samples, dtype=bool)
        return none if self.assessment is None else self.assessment.tested

    @cached_property
    def wrong(self) -> np.ndarray:
        """Rows whose held-out prediction is a wrong class; none for regression."""
        if not self.classification:
            return np.zeros(self.n_samples, dtype=bool)
        differs = np.asarray(self.predictions.astype(object) != self.y, dtype=bool)
        return np.asarray(differs & self.predicted_rows)

    @cached_property
    def margins(self) -> np.ndarray:
        """Margin of the own class according to the model that predicted the row; for regression,
        minus the absolute residual. The smallest is the worst.

        NaN if that model has no decisions for all classes.
        """
        if not self.classification:
            residual = (self.y - self.predictions).reshape(self.n_samples, -1).astype(float)
            return np.asarray(-np.sqrt(np.mean(residual**2, axis=1)))
        decisions = None if self.assessment is None else self.assessment.decisions
        missing = np.full(self.n_samples, np.nan)
        return missing if decisions is None else margins(decisions, self.codes)

    @cached_property
    def n_missing(self) -> int:
        """The number of missing values in X."""
        if hasattr(self.X, "null_count"):  # polars, which counts NaN separately
            floats = [column for column in self.X if column.dtype.is_float()]
            nulls = sum(column.null_count() for column in self.X)
            return int(nulls + sum(column.is_nan().fill_null(False).sum() for column in floats))
        if hasattr(self.X, "isna"):
            return int(np.sum(self.X.isna().to_numpy()))
        numbers = isinstance(self.X, np.ndarray) and self.X.dtype.kind == "f"
        return int(np.isnan(self.X).sum()) if numbers else 0

    @cached_property
    def leverage(self) -> np.ndarray:
        """Diagonal of the hat matrix; NaN for rows with zero weight."""
        result = np.full(self.n_samples, np.nan)
        if self.committee:
            return result
        leverage = to_numpy(self.model.leverage_)
        if len(leverage) == len(self.active):
            result[self.active] = leverage
        return result

    @cached_property
    def influence(self) -> np.ndarray:
        """How far the fitted value of a row moves if the row is left out, in standard deviations
        of the held-out values: in-sample minus held-out; the largest if there are several outputs.
        """
        if self.committee:
            return np.full(self.n_samples, np.nan)
        output = self.model.decision_function if self.classification else self.model.predict
        given = {} if self.confounds is None else {"confounds": self.confounds}
        fitted = to_numpy(output(self.model_features, **given)).astype(float)
        moved = (fitted - self.held_out).reshape(self.n_samples, -1)
        if calibrated(self.model):  # which has shifted all fitted decisions by the same amount
            moved = moved - np.nanmedian(moved, axis=0)
        known = self.held_out[np.isfinite(self.held_out)]
        spread = (np.std(known) if len(known) else 0.0) or 1.0
        return np.asarray(np.max(np.abs(moved), axis=1) / spread)


# ---- names ---------------------------------------------------------------------------------------


def _name(y: Any) -> str | None:
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def feature_names(X: Any, given: Sequence[Any] | None = None) -> list[str]:
    """The given names, those of a data frame, or x0, x1, …"""
    n = n_columns(X)
    if given is None:
        given = list(getattr(X, "columns", [f"x{index}" for index in range(n)]))
    return _named(given, n, "feature_names", "columns")


def row_names(X: Any, given: Sequence[Any] | None = None) -> list[str]:
    """The given names, those of a data frame's index, or row 0, row 1, …"""
    n = n_rows(X)
    if given is None:
        index = getattr(X, "index", None)
        labels = range(n) if index is None or callable(index) or len(index) != n else index
        given = [f"row {name}" if isinstance(name, (int, np.integer)) else name for name in labels]
    return _named(given, n, "row_names", "rows")


def _named(given: Sequence[Any], n: int, what: str, things: str) -> list[str]:
    if len(given) != n:
        raise ValueError(
            f"{what} must have one name for each of the {n} {things}, got {len(given)} instead."
        )
    return [shortened(name) for name in given]


def model_feature_names(subject: Subject) -> list[str]:
    """Names of the columns that the model sees, after the preprocessing steps of a pipeline."""
    if not subject.in_pipeline:
        return subject.feature_names
    if not hasattr(subject.model_features, "columns"):
        with suppress(AttributeError, ValueError, TypeError):  # steps that cannot name their output
            names = [str(name) for name in subject.estimator[:-1].get_feature_names_out()]
            short = [name.partition("__")[2] or name for name in names]  # without their transformer
            return [shortened(name) for name in (short if len(set(short)) == len(short) else names)]
    return feature_names(subject.model_features)


# ---- looking up ----------------------------------------------------------------------------------


def codes_of(decision: np.ndarray) -> np.ndarray:
    """Index of the class with the largest decision; for two classes, the second if it is
    positive.
    """
    return (decision > 0).astype(int) if decision.ndim == 1 else np.argmax(decision, axis=1)


def finite_rows(values: np.ndarray) -> np.ndarray:
    """Rows with a value (a cv of the model may leave some untested)."""
    return np.asarray(np.isfinite(values).reshape(len(values), -1).any(axis=1))


def calibrated(model: Any) -> bool:
    """Whether calibration has moved the threshold of the decisions."""
    return getattr(model, "calibration", None) in ("sigmoid", "isotonic")


def dense(X: Any) -> np.ndarray:
    """Rows as a NumPy array."""
    return to_numpy(X.toarray() if hasattr(X, "toarray") else X).astype(float)


def own_splits(subject: Subject) -> str:
    """How the model's own held-out values were computed."""
    together = "cross-validation with the model's own splits"
    return "leave-one-out" if subject.leave_one_out else together


def chosen_values(model: Any) -> list[str]:
    """Gamma, if there is one, and alpha."""
    alpha, gamma = f"alpha = {rounded(alpha_of(model))}", getattr(model, "gamma_", None)
    if gamma is None:
        return [alpha]
    several = np.ndim(gamma) > 0
    width = "one gamma per feature" if several else f"gamma = {rounded(float(gamma))}"
    return [width, alpha]


def _check_assessment(assessment: Any, y: np.ndarray) -> None:
    if assessment is None:
        return
    if not isinstance(assessment, Assessment):
        raise TypeError(
            "assessment must be the result of fitonce.assess, got "
            f"{type(assessment).__name__} instead."
        )
    theirs = np.asarray(assessment.y)
    same = theirs.shape == y.shape and (
        np.array_equal(theirs, y) or bool(np.all(theirs.astype(str) == y.astype(str)))
    )
    if not same:
        raise ValueError(
            "assessment belongs to other rows: its target is not y. Call fitonce.assess with the "
            "same X and y."
        )


def _check_training(training: Any, X: Any, y: np.ndarray) -> None:
    """Compare with the rows that the model keeps; if it keeps only the targets, with those."""
    same = np.array_equal(np.asarray(training.y), y)
    if X is not None and isinstance(training.X, np.ndarray) and training.X.shape[1] > 0:
        same = same and np.allclose(training.X, dense(X))
    if not same:
        raise ValueError(
            "X and y must be the data that the model was fitted on, in the same order, but they "
            "differ from the rows that it keeps: a report explains the training rows."
        )
