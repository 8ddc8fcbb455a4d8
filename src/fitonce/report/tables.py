"""Tables of a report: confusions, and the rows that are hard to predict or that matter most."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..assessment import ColumnImportance, ModelComparison, column_importance
from ..assessment.render import baseline_name, interval_text, score_text, shortened
from ..core.arrays import to_numpy
from ..crossval.lookup import subset
from ..plotting.rows import margins
from ..plotting.style import rounded
from ..uncertainty.left_out import upper
from .subject import Subject, finite_rows

THIS = "this model"  # in the same folds
SET_SHARE = 0.9  # share of held-out rows whose set contains the right class
TABLE_ROWS = 500
DEPENDENCE_UP_TO = 2000  # rows; n×n numbers are examined
DEPENDENCE_ROWS = 5
SECONDS, PER_CUBE = 5.0, 3e-10  # for columns left out; seconds per column and cubed row
FEWEST_ROWS = 100  # on which columns are left out
TABLE_COLUMNS = 12  # columns of the data


def first_table(subject: Subject, others: ModelComparison | None) -> dict[str, Any] | None:
    """The model, other kinds of models and the baseline on held-out rows; None without an
    assessment.
    """
    answer = subject.assessment
    if answer is None:
        return None
    labels, interval = subject.classification, interval_text(answer.score, subject.classification)
    rows = [(THIS, score_text(answer.score.value, labels), interval)]
    same, better = True, None
    if others is not None:
        ours = next(iter(others.scores))
        same, better = ours == THIS, others.clearly_better(ours)
        note = "" if same else others.cv
        shown = [(name, found.value) for name, found in others.scores.items() if name != THIS]
        rows += [(name, score_text(value, labels), note) for name, value in shown]
    rows.append((baseline_name(answer), score_text(answer.baseline.value, labels), ""))
    return {"rows": rows, "better": better, "same": same, "others": others is not None}


def class_sets(subject: Subject) -> dict[str, Any] | None:
    """Prediction sets that contain the right class for 90 % of the held-out rows of each class: the
    number of rows with sets of each size. None if there are no decisions, or too few rows.

    A class belongs to the set of a row if its margin is not lower than the margin that 90 % of its
    own rows exceed; always, if it has too few rows for that. All margins come from models that were
    not trained on the row.
    """
    decisions = None if subject.assessment is None else subject.assessment.decisions
    if decisions is None or subject.committee:
        return None
    rows = np.flatnonzero(finite_rows(decisions) & subject.predicted_rows)
    n, classes = len(rows), len(subject.class_names)
    of_class = [margins(decisions[rows], np.full(n, code)) for code in range(classes)]
    own = margins(decisions[rows], subject.codes[rows])
    mine = [own[subject.codes[rows] == code] for code in range(classes)]
    mass = [np.full(len(one), 1.0 / (len(one) + 1)) for one in mine]
    found = [upper(-m[None, :], w, SET_SHARE)[0] for m, w in zip(mine, mass, strict=True)]
    lowest = -np.array(found)
    if not np.any(np.isfinite(lowest)):
        return None
    sizes = np.sum(np.stack(of_class) >= lowest[:, None], axis=0)
    counts = [(size, int(np.sum(sizes == size))) for size in range(classes + 1)]
    named = [(_set_name(size), count, f"{count / n:.0%}") for size, count in counts if count]
    held = float(np.mean(own >= lowest[subject.codes[rows]]))
    return {"sizes": named, "held": held, "n": n}


def _set_name(size: int) -> str:
    return {0: "no class", 1: "one class"}.get(size, f"{size} classes")


def importance(subject: Subject) -> ColumnImportance | None:
    """What prediction loses without each column; None if there are no meaningful columns, or too
    many. Of many rows a sample is taken.
    """
    X, columns = subject.X, len(subject.feature_names)
    shaped = isinstance(X, np.ndarray) or hasattr(X, "iloc") or hasattr(X, "with_columns")
    single = subject.committee or subject.precomputed or subject.y.ndim > 1 or not shaped
    most = int((SECONDS / (columns * PER_CUBE)) ** (1 / 3))
    if single or columns < 2 or most < FEWEST_ROWS:
        return None
    rows, rng = subject.active, np.random.default_rng(0)
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    groups, weights, confounds = (
        None if values is None else subset(values, rows)
        for values in (subject.groups, subject.sample_weight, subject.confounds)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return column_importance(
                subject.estimator,
                subset(X, rows),
                subject.y[rows],
                feature_names=subject.feature_names,
                groups=groups,
                sample_weight=weights,
                confounds=confounds,
            )
        # a training set that cannot be fitted, for example one that lacks a class
        except ValueError:
            return None


# ---- rows ----------------------------------------------------------------------------------------


def dependence(subject: Subject) -> list[dict[str, str]]:
    """The rows that influence the predictions of other rows most: the mean absolute change of the
    other rows if a row is left out, and the row that changes most. Exact, from `influence`.

    Empty if it is not available: models loaded from files, groups, too many rows.
    """
    n, known = subject.n_samples, subject.held_out[np.isfinite(subject.held_out)]
    none = subject.record is None or subject.groups is not None or not len(known)
    if none or not 2 < n <= DEPENDENCE_UP_TO:
        return []
    try:
        change = subject.model.influence()
    except ValueError:  # a class with one row
        return []
    change = change.reshape(*change.shape[:2], -1)
    size = np.max(np.abs(change), axis=2)
    np.fill_diagonal(size, 0.0)
    mean = size.sum(axis=1) / (size.shape[1] - 1)
    unit = float(np.std(known)) or 1.0
    names = [subject.row_names[row] for row in subject.active]
    return [
        {
            "row": names[row],
            "mean": rounded(float(mean[row] / unit)),
            "other": names[int(size[row].argmax())],
            "most": rounded(float(size[row].max() / unit)),
        }
        for row in np.argsort(-mean)[:DEPENDENCE_ROWS]
    ]


@dataclass(frozen=True)
class Column:
    """A column of the table of rows."""

    name: str
    help: str
    values: Any
    number: bool = True

    def cell(self, row: int, wrong: bool) -> dict[str, Any]:
        """The text, whether it is a number, and whether it is marked as wrong."""
        value = self.values[row]
        missing = value is None or (isinstance(value, (float, np.floating)) and np.isnan(value))
        if self.number:
            text = "–" if missing or not np.isfinite(float(value)) else self._rounded(float(value))
        else:
            text = "–" if missing else shortened(value, 60) + (" ✗" if wrong else "")
        return {"text": text, "number": self.number, "wrong": wrong}

    def _rounded(self, value: float) -> str:
        """Four digits; values negligible next to the largest of the column become zero."""
        return "0" if abs(value) < 1e-6 * self._largest else rounded(value, 4)

    @cached_property
    def _largest(self) -> float:
        values = np.abs(np.asarray(self.values, dtype=float))
        return float(values[np.isfinite(values)].max(initial=0.0))


def rows_table(subject: Subject, n_rows: int = TABLE_ROWS) -> dict[str, Any]:
    """Rows with their held-out results, the worst and most influential first, and their columns as
    given.
    """
    columns = _result_columns(subject) + _data_columns(subject)
    rows = [
        {
            "index": int(row),
            "wrong": int(subject.wrong[row]),
            "cells": [
                column.cell(row, column.name == "predicted" and bool(subject.wrong[row]))
                for column in columns
            ],
        }
        for row in _shown(subject, n_rows)
    ]
    hidden = 0 if subject.precomputed else max(len(subject.feature_names) - TABLE_COLUMNS, 0)
    return {"columns": columns, "rows": rows, "hidden": hidden}


def _shown(subject: Subject, n_rows: int) -> np.ndarray:
    """Misclassified rows, then those with a small margin or a large influence; the worst first."""
    margin = np.where(np.isfinite(subject.margins), subject.margins, np.inf)
    worst = [margin, -np.nan_to_num(subject.influence)]
    margin, influence = (rankdata(values, method="ordinal") for values in worst)
    shown = np.lexsort((margin, np.minimum(margin, influence), ~subject.wrong))[:n_rows]
    return np.asarray(shown[np.lexsort((margin[shown], ~subject.wrong[shown]))])


def _result_columns(subject: Subject) -> list[Column]:
    numbers, observed = not subject.classification, subject.first_target
    predicted = subject.predictions.reshape(subject.n_samples, -1)[:, 0]
    first = [
        Column("row", "name or number of the row", subject.row_names, number=False),
        Column("observed", "the target as given", observed, numbers),
        Column("predicted", "held-out prediction", predicted, numbers),
    ]
    if numbers:
        residual = observed.astype(float) - predicted.astype(float)
        error = Column("residual", "observed minus held-out prediction", residual)
    else:
        what = "decision of the model that predicted it: own class minus the best other"
        error = Column("margin", what, subject.margins)
    if subject.committee:
        return [*first, error]
    share = "model of all rows: share of the row's fitted value that comes from the row itself"
    moves = "model of all rows: how far the row's fitted value moves if the row is left out"
    return [
        *first,
        error,
        Column("leverage", share, subject.leverage),
        Column("influence", moves, subject.influence),
    ]


def _data_columns(subject: Subject) -> list[Column]:
    names = [] if subject.precomputed else subject.feature_names[:TABLE_COLUMNS]
    columns = [(name, _data_column(subject.X, number)) for number, name in enumerate(names)]
    return [Column(n, f"column {n}", values, values.dtype.kind in "iufb") for n, values in columns]


def _data_column(X: Any, number: int) -> np.ndarray:
    """One column of X as given: a data frame, a sparse matrix, an array, or a list of rows."""
    if hasattr(X, "columns"):
        column = X.iloc[:, number] if hasattr(X, "iloc") else X[:, number]
        return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if hasattr(X, "tocsc"):
        return np.asarray(X[:, [number]].toarray())[:, 0]
    if hasattr(X, "shape"):
        return to_numpy(X)[:, number]
    return np.asarray([row[number] for row in X])
