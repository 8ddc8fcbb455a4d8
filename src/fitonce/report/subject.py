"""What a page is about.

The model, its rows and their names, the held-out predictions, looked up once and kept together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..assessment import Assessment
from ..core.arrays import to_numpy
from ..estimators.base import KernelModel
from ..estimators.classifier import labels_of
from ..estimators.fitted import model_of
from ..plotting.influence import margins

LONGEST_NAME = 80  # characters of a name that are shown


def shortened(name: Any, limit: int = LONGEST_NAME) -> str:
    """A name as one line of text.

    Control characters and lone surrogates, which no page can show, as question marks.
    """
    text = "".join(
        letter if letter.isprintable() or letter == " " else "\ufffd" for letter in str(name)
    )
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"


@dataclass(frozen=True)
class Subject:
    """The model of a page and its training rows."""

    estimator: Any
    model: KernelModel
    X: Any  # as given
    y: np.ndarray
    sample_weight: Any
    assessment: Assessment | None
    given_features: Sequence[Any] | None
    given_rows: Sequence[Any] | None

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        assessment: Any,
        features: Any,
        rows: Any,
    ) -> Subject:
        """Checked for what can be checked without work: lengths and kinds."""
        model = model_of(estimator)
        y = np.asarray(to_numpy(y))
        n = len(to_numpy(model._held_out))
        if len(y) != n or _n_rows(X) != n:
            raise ValueError(
                f"X and y must be the {n} rows the model was fitted on, got {_n_rows(X)} rows and "
                f"{len(y)} targets instead: a report shows "
                "each training row's held-out result."
            )
        if assessment is not None and not isinstance(assessment, Assessment):
            raise TypeError(
                "assessment must be what fitonce.assess returned, got "
                f"{type(assessment).__name__} instead."
            )
        if assessment is not None and not _same_targets(assessment.y, y):
            raise ValueError(
                "assessment is of other rows: its target is not y. Call fitonce.assess with the "
                "same X and y."
            )
        if rows is not None and len(rows) != n:
            raise ValueError(
                f"row_names must have one name for each of the {n} rows, got {len(rows)} instead."
            )
        subject = cls(estimator, model, X, y, sample_weight, assessment, features, rows)
        if features is not None and len(features) != subject.n_features:
            raise ValueError(
                f"feature_names must have one name for each of the {subject.n_features} columns, "
                f"got {len(features)} instead."
            )
        return subject

    # ---- names -----------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @cached_property
    def n_features(self) -> int:
        return int(self.X.shape[1]) if hasattr(self.X, "shape") else len(self.X[0])

    @property
    def classification(self) -> bool:
        return hasattr(self.model, "classes_")

    @property
    def classes(self) -> np.ndarray:
        return np.asarray(self.model.classes_)

    @cached_property
    def class_names(self) -> list[str]:
        return [shortened(label) for label in self.classes] if self.classification else []

    @property
    def precomputed(self) -> bool:
        return bool(self.model.kernel == "precomputed") and not isinstance(self.estimator, Pipeline)

    @cached_property
    def feature_names(self) -> list[str]:
        """Names of the columns of X as given."""
        names = self.given_features
        if names is None:
            names = (
                list(self.X.columns)
                if hasattr(self.X, "columns")
                else [f"x{index}" for index in range(self.n_features)]
            )
        return [shortened(name) for name in names]

    @cached_property
    def row_names(self) -> list[str]:
        if self.given_rows is not None:
            return [shortened(name) for name in self.given_rows]
        index = getattr(self.X, "index", None)
        if index is not None and not callable(index) and len(index) == self.n_samples:
            return [
                f"row {shortened(name)}" if isinstance(name, (int, np.integer)) else shortened(name)
                for name in index
            ]
        return [f"row {index}" for index in range(self.n_samples)]

    @cached_property
    def model_features(self) -> Any:
        """X as the model sees it: after the steps of a pipeline."""
        if isinstance(self.estimator, Pipeline) and len(self.estimator.steps) > 1:
            return self.estimator[:-1].transform(self.X)
        return self.X

    @cached_property
    def model_feature_names(self) -> list[str]:
        if self.model_features is self.X:
            return self.feature_names
        columns = getattr(self.model_features, "columns", None)
        if columns is None:
            try:
                columns = self.estimator[:-1].get_feature_names_out()
            except (AttributeError, ValueError, TypeError):  # a step that cannot name its output
                columns = [f"x{index}" for index in range(self.model_features.shape[1])]
        return [shortened(name) for name in columns]

    def column(self, number: int) -> np.ndarray:
        """One column of X as given, for the table of rows."""
        if hasattr(self.X, "columns"):
            column = self.X.iloc[:, number] if hasattr(self.X, "iloc") else self.X[:, number]
            return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
        if hasattr(self.X, "tocsc"):
            return np.asarray(self.X[:, [number]].toarray())[:, 0]
        return (
            np.asarray(to_numpy(self.X))[:, number]
            if hasattr(self.X, "shape")
            else np.asarray([row[number] for row in self.X])
        )

    # ---- held-out results ------------------------------------------------------------------------

    @cached_property
    def held_out(self) -> np.ndarray:
        """Held-out decisions or predictions of the chosen settings, by leave-one-out or the model's
        own cv.
        """
        return np.asarray(to_numpy(self.model._held_out))

    @cached_property
    def tested(self) -> np.ndarray:
        """Rows with a held-out value (a cv of the model's own may leave some untested)."""
        return np.asarray(np.isfinite(self.held_out).reshape(self.n_samples, -1).any(axis=1))

    @property
    def nested(self) -> bool:
        return self.assessment is not None

    @cached_property
    def codes(self) -> np.ndarray:
        """Numbers of the observed classes."""
        return np.searchsorted(self.classes, self.y)

    @cached_property
    def predictions(self) -> np.ndarray:
        """Held-out predictions: nested ones where there is an assessment."""
        if self.assessment is not None:
            return np.asarray(self.assessment.predictions)
        return labels_of(self.held_out, self.classes) if self.classification else self.held_out

    @cached_property
    def predicted_rows(self) -> np.ndarray:
        """Which rows have a prediction."""
        return np.asarray(self.assessment.tested) if self.assessment is not None else self.tested

    @cached_property
    def wrong(self) -> np.ndarray:
        """Rows whose held-out prediction is another class; none for regression."""
        if not self.classification:
            return np.zeros(self.n_samples, dtype=bool)
        differs = np.array(
            [
                predicted != observed
                for predicted, observed in zip(self.predictions, self.y, strict=True)
            ],
            dtype=bool,
        )
        return np.asarray(differs & self.predicted_rows)

    @cached_property
    def margins(self) -> np.ndarray:
        """Held-out margin of the own class.

        For regression minus the size of the held-out residual. The smallest first is the worst.
        """
        if self.classification:
            return margins(self.held_out, self.codes)
        residual = (self.y - self.held_out).reshape(self.n_samples, -1)
        return np.asarray(-np.sqrt(np.mean(residual**2, axis=1)))

    @cached_property
    def leverage(self) -> np.ndarray:
        """Diagonal of the hat matrix; NaN for rows of zero weight."""
        leverage = np.asarray(to_numpy(self.model.leverage_))
        if len(leverage) == self.n_samples:
            return leverage
        result = np.full(self.n_samples, np.nan)
        kept = getattr(self.model, "_kept", None)
        if kept is not None:
            result[kept.training.active] = leverage
        return result

    @cached_property
    def influence(self) -> np.ndarray:
        """How far a row's own value moves when the row is left out, in standard deviations of the
        held-out values.

        In-sample less held-out decision; of several outputs the one that moves most.
        """
        output = self.model.predict if self.model._multi_output else self.model.decision_function
        fitted = np.asarray(to_numpy(output(self.model_features)), dtype=float)
        moved = (fitted - self.held_out).reshape(self.n_samples, -1)
        if getattr(self.model, "calibration", None) in ("sigmoid", "isotonic"):
            moved = moved - np.nanmedian(
                moved, axis=0
            )  # the calibration has shifted every fitted decision alike
        spread = np.std(self.held_out[np.isfinite(self.held_out)]) or 1.0
        return np.asarray(np.max(np.abs(moved), axis=1) / spread)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _same_targets(first: np.ndarray, second: np.ndarray) -> bool:
    if len(first) != len(second):
        return False
    return bool(
        np.all(np.asarray(first).astype(str) == second.astype(str)) or np.array_equal(first, second)
    )
