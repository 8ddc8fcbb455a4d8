"""Tables of a page: scores, confusions, and the rows that are hard or that matter most."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plotting.style import rounded
from .subject import Subject, shortened
from .words import own_splits

MATRIX_UP_TO = 12  # classes; above, the most frequent confusions are listed
LISTED_CONFUSIONS = 15
TABLE_ROWS = 500
TABLE_COLUMNS = 12  # of the data
SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under the ROC curve",
    "log_loss": "log loss (lower is better)",
    "brier": "Brier score (lower is better)",
    "r2": "R²",
    "mae": "mean absolute error (lower is better)",
    "rmse": "root mean squared error (lower is better)",
}


def metrics(subject: Subject) -> dict[str, Any] | None:
    """Scores beside the baseline's."""
    assessment = subject.assessment
    if assessment is None:
        return None
    rows = []
    for name, value in assessment.metrics.items():
        baseline = assessment.baseline_metrics.get(name, float("nan"))
        cells = [f"{v:.4g}" if np.isfinite(v) else "–" for v in (value, baseline)]
        rows.append({"name": SCORES.get(name, name.replace("_", " ")), "cells": cells})
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
    source = "nested cross-validation" if subject.nested else own_splits(subject)
    if len(names) <= MATRIX_UP_TO:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
        matrix = [
            [
                {"text": f"{counts[i, j]:g}", "shade": f"{0.55 * shares[i, j]:.3f}"}
                for j in range(len(names))
            ]
            for i in range(len(names))
        ]
        caption = (
            f"Rows: observed, columns: predicted when held out ({source}). The framed diagonal is "
            "right."
        )
        return {
            "heading": "Confusion matrix",
            "matrix": matrix,
            "names": names,
            "pairs": [],
            "caption": caption,
        }
    off = counts.copy()
    np.fill_diagonal(off, 0)
    order = np.argsort(-off, axis=None)[:LISTED_CONFUSIONS]
    where = [np.unravel_index(number, off.shape) for number in order if off.reshape(-1)[number] > 0]
    pairs = [
        {"observed": names[i], "predicted": names[j], "count": f"{off[i, j]:g}"} for i, j in where
    ]
    caption = (
        f"The {len(pairs)} most frequent of {np.count_nonzero(off)} kinds of confusion ({source})."
    )
    return {
        "heading": "What is taken for what",
        "matrix": [],
        "names": names,
        "pairs": pairs,
        "caption": caption,
    }


def _counts(subject: Subject) -> np.ndarray:
    if subject.assessment is not None and subject.assessment.confusion is not None:
        return np.asarray(subject.assessment.confusion, dtype=float)
    counts = np.zeros((len(subject.classes),) * 2)
    rows = subject.predicted_rows
    np.add.at(
        counts,
        (subject.codes[rows], np.searchsorted(subject.classes, subject.predictions[rows])),
        1.0,
    )
    return counts


def rows_table(subject: Subject, n_rows: int = TABLE_ROWS) -> dict[str, Any]:
    """Rows with their held-out results, the worst and most influential first, and their columns as
    given.
    """
    severity = np.argsort(
        np.where(np.isfinite(subject.margins), subject.margins, np.inf), kind="stable"
    )
    rank = np.empty(subject.n_samples)
    rank[severity] = np.arange(subject.n_samples)
    by_influence = np.empty(subject.n_samples)
    by_influence[np.argsort(-np.nan_to_num(subject.influence), kind="stable")] = np.arange(
        subject.n_samples
    )
    shown = np.lexsort((rank, np.minimum(rank, by_influence), ~subject.wrong))[:n_rows]
    shown = shown[np.lexsort((rank[shown], ~subject.wrong[shown]))]
    columns = _table_columns(subject)
    rows = [
        {
            "index": int(row),
            "wrong": int(subject.wrong[row]),
            "cells": [_cell(column, row, subject) for column in columns],
        }
        for row in shown
    ]
    worst = (
        "predicted wrongly or nearly so"
        if subject.classification
        else "with the largest held-out residuals"
    )
    text = (
        f"{len(shown):,} of {subject.n_samples:,} rows, those {worst} first. Leverage is the "
        "share of its own fitted value that a row "
        "supplies; influence how far its own value moves when it is left out, in standard "
        "deviations."
    )
    if subject.classification:
        text += " Margin is the held-out decision for the observed class less the best other."
    hidden = 0 if subject.precomputed else max(subject.n_features - TABLE_COLUMNS, 0)
    if hidden:
        text += f" {hidden:,} further column{'s are' if hidden > 1 else ' is'} not shown."
    heads = [
        {"name": c["name"], "kind": "number" if c["number"] else "text", "help": c["help"]}
        for c in columns
    ]
    return {
        "columns": heads,
        "rows": rows,
        "text": text,
        "filter": subject.classification and bool(subject.wrong.any()),
    }


def _table_columns(subject: Subject) -> list[dict[str, Any]]:
    def column(name: str, values: Any, help_text: str, number: bool = True) -> dict[str, Any]:
        return {"name": name, "values": values, "help": help_text, "number": number}

    labels = subject.classification
    single = subject.y.ndim == 1
    found = [column("row", subject.row_names, "name or number of the row", number=False)]
    observed = subject.y if single else subject.y[:, 0]
    predicted = subject.predictions if subject.predictions.ndim == 1 else subject.predictions[:, 0]
    how = "nested cross-validation" if subject.nested else own_splits(subject)
    found.append(column("observed", observed, "the target as given", number=not labels))
    found.append(column("predicted", predicted, f"held-out prediction, {how}", number=not labels))
    if labels:
        found.append(
            column(
                "margin",
                subject.margins,
                "held-out decision for the observed class less the best other",
            )
        )
    else:
        found.append(
            column(
                "residual",
                observed.astype(float) - predicted.astype(float),
                "observed less held-out prediction",
            )
        )
    found.append(
        column("leverage", subject.leverage, "share of its own fitted value that the row supplies")
    )
    found.append(
        column(
            "influence",
            subject.influence,
            "how far its own value moves when the row is left out, in standard deviations",
        )
    )
    if not subject.precomputed:
        for number, name in enumerate(subject.feature_names[:TABLE_COLUMNS]):
            values = subject.column(number)
            found.append(column(name, values, f"column {name}", number=values.dtype.kind in "iufb"))
    return found


def _cell(column: dict[str, Any], row: int, subject: Subject) -> dict[str, Any]:
    value = column["values"][row]
    classes = "number" if column["number"] else ""
    if column["name"] == "predicted" and subject.wrong[row]:
        classes += " wrong"
    if column["number"]:
        number = float(value) if value is not None else float("nan")
        text = rounded(number) if np.isfinite(number) else "–"
        return {
            "text": text,
            "value": repr(number) if np.isfinite(number) else "",
            "classes": classes,
        }
    text = (
        "–"
        if value is None or (isinstance(value, float) and np.isnan(value))
        else shortened(value, 60)
    )
    return {"text": text + (" ✗" if "wrong" in classes else ""), "value": None, "classes": classes}
