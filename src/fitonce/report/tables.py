"""Tables of a page: scores, confusions, and the rows that are hard or that matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from .figures import rounded
from .names import shortened
from .scores import LOWER_IS_BETTER, score_name
from .subject import Subject

MATRIX_UP_TO = 12  # classes; above, the most frequent confusions are listed
LISTED_CONFUSIONS = 15
TABLE_ROWS = 500
TABLE_COLUMNS = 12  # of the data


def metrics(subject: Subject) -> dict[str, Any] | None:
    """Scores beside the baseline's."""
    assessment = subject.assessment
    if assessment is None:
        return None
    rows = []
    for name, value in assessment.metrics.items():
        baseline = assessment.baseline_metrics.get(name, float("nan"))
        cells = [f"{v:.4g}" if np.isfinite(v) else "–" for v in (value, baseline)]
        lower = " (lower is better)" if name in LOWER_IS_BETTER else ""
        rows.append({"name": f"{score_name(name)}{lower}", "cells": cells})
    return {
        "columns": ["model", "without the features"],
        "rows": rows,
        "caption": "Scores of nested held-out predictions.",
    }


def confusion(subject: Subject) -> dict[str, Any] | None:
    """Observed against predicted, as a matrix or, with many classes, as a list of the most frequent
    confusions.
    """
    if not subject.classification:
        return None
    counts, names = _counts(subject), subject.class_names
    if len(names) > MATRIX_UP_TO:
        return _frequent_confusions(counts, names, subject.source)
    shades = 0.55 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    matrix = [
        [
            {"text": f"{count:g}", "shade": f"{shade:.3f}"}
            for count, shade in zip(*both, strict=True)
        ]
        for both in zip(counts, shades, strict=True)
    ]
    return {
        "heading": "Confusion matrix",
        "matrix": matrix,
        "names": names,
        "pairs": [],
        "caption": f"Rows: observed, columns: predicted when held out ({subject.source}). The "
        "framed diagonal is right.",
    }


def _frequent_confusions(counts: np.ndarray, names: list[str], source: str) -> dict[str, Any]:
    off = counts - np.diag(np.diag(counts))
    order = np.argsort(-off, axis=None)[: min(LISTED_CONFUSIONS, np.count_nonzero(off))]
    where = [np.unravel_index(number, off.shape) for number in order]
    pairs = [
        {"observed": names[i], "predicted": names[j], "count": f"{off[i, j]:g}"} for i, j in where
    ]
    return {
        "heading": "What is taken for what",
        "matrix": [],
        "names": names,
        "pairs": pairs,
        "caption": f"The {len(pairs)} most frequent of {np.count_nonzero(off)} kinds of confusion "
        f"({source}).",
    }


def _counts(subject: Subject) -> np.ndarray:
    if subject.assessment is not None and subject.assessment.confusion is not None:
        return np.asarray(subject.assessment.confusion, dtype=float)
    counts = np.zeros((len(subject.classes),) * 2)
    rows = subject.predicted_rows
    predicted = np.searchsorted(subject.classes, subject.predictions[rows])
    np.add.at(counts, (subject.codes[rows], predicted), 1.0)
    return counts


# ---- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the table of rows."""

    name: str
    help: str
    values: Any
    number: bool = True

    @property
    def kind(self) -> str:
        return "number" if self.number else "text"

    def cell(self, row: int, wrong: bool) -> dict[str, Any]:
        value = self.values[row]
        missing = value is None or (isinstance(value, (float, np.floating)) and np.isnan(value))
        classes = ("number" if self.number else "") + (" wrong" if wrong else "")
        if self.number:
            known = not missing and np.isfinite(float(value))
            text = rounded(float(value)) if known else "–"
            return {"text": text, "value": repr(float(value)) if known else "", "classes": classes}
        text = "–" if missing else shortened(value, 60)
        return {"text": text + (" ✗" if wrong else ""), "value": None, "classes": classes}


def rows_table(subject: Subject, n_rows: int = TABLE_ROWS) -> dict[str, Any]:
    """Rows with their held-out results, the worst and most influential first, and their columns as
    given.
    """
    columns = _result_columns(subject) + _data_columns(subject)
    shown = _shown(subject, n_rows)
    rows = [
        {
            "index": int(row),
            "wrong": int(subject.wrong[row]),
            "cells": [
                column.cell(row, column.name == "predicted" and bool(subject.wrong[row]))
                for column in columns
            ],
        }
        for row in shown
    ]
    return {
        "columns": columns,
        "rows": rows,
        "text": _rows_text(subject, len(shown)),
        "filter": bool(subject.wrong.any()),
    }


def _shown(subject: Subject, n_rows: int) -> np.ndarray:
    """Misclassified rows, then those of a small margin or a large influence; the worst first."""
    margin = _ranks(np.where(np.isfinite(subject.margins), subject.margins, np.inf))
    influence = _ranks(-np.nan_to_num(subject.influence))
    shown = np.lexsort((margin, np.minimum(margin, influence), ~subject.wrong))[:n_rows]
    return np.asarray(shown[np.lexsort((margin[shown], ~subject.wrong[shown]))])


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def _rows_text(subject: Subject, n_shown: int) -> str:
    labels = subject.classification
    worst = "predicted wrongly or nearly so" if labels else "with the largest held-out residuals"
    text = (
        f"{n_shown:,} of {subject.n_samples:,} rows, those {worst} first. Leverage is the share of "
        "its own fitted value that a row supplies; influence how far its own value moves when it "
        "is left out, in standard deviations."
    )
    if labels:
        text += " Margin is the held-out decision for the observed class less the best other."
    hidden = 0 if subject.precomputed else max(subject.n_features - TABLE_COLUMNS, 0)
    if hidden:
        text += f" {hidden:,} further column{'s are' if hidden > 1 else ' is'} not shown."
    return text


def _result_columns(subject: Subject) -> list[Column]:
    numbers = not subject.classification
    observed = subject.y.reshape(subject.n_samples, -1)[:, 0]
    predicted = subject.predictions.reshape(subject.n_samples, -1)[:, 0]
    found = [
        Column("row", "name or number of the row", subject.row_names, number=False),
        Column("observed", "the target as given", observed, numbers),
        Column("predicted", f"held-out prediction, {subject.source}", predicted, numbers),
    ]
    if numbers:
        residual = observed.astype(float) - predicted.astype(float)
        found.append(Column("residual", "observed less held-out prediction", residual))
    else:
        what = "held-out decision for the observed class less the best other"
        found.append(Column("margin", what, subject.margins))
    share = "share of its own fitted value that the row supplies"
    moves = "how far its own value moves when the row is left out, in standard deviations"
    return [
        *found,
        Column("leverage", share, subject.leverage),
        Column("influence", moves, subject.influence),
    ]


def _data_columns(subject: Subject) -> list[Column]:
    if subject.precomputed:
        return []
    found = []
    for number, name in enumerate(subject.feature_names[:TABLE_COLUMNS]):
        values = _data_column(subject.X, number)
        found.append(Column(name, f"column {name}", values, values.dtype.kind in "iufb"))
    return found


def _data_column(X: Any, number: int) -> np.ndarray:
    """One column of X as given: a data frame, a sparse matrix, an array, or a list of rows."""
    if hasattr(X, "columns"):
        column = X.iloc[:, number] if hasattr(X, "iloc") else X[:, number]
        return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if hasattr(X, "tocsc"):
        return np.asarray(X[:, [number]].toarray())[:, 0]
    if hasattr(X, "shape"):
        return np.asarray(to_numpy(X))[:, number]
    return np.asarray([row[number] for row in X])
