"""The explorer on the page: its texts, labels and numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .explorer import NEGLIGIBLE, Explorer, payload
from .subject import Subject
from .words import own_splits


def script_json(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin markup."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def explorer_context(subject: Subject, explorer: Explorer, include_data: bool) -> dict[str, Any]:
    """Texts of the explorer and its numbers; without data only the table of errors."""
    labels = subject.classification
    values = _explorer_json(subject, explorer, include_data)
    stops = len(explorer.alphas) if include_data else len(explorer.table)
    start = (
        explorer.chosen
        if include_data
        else int(np.flatnonzero(explorer.table == explorer.chosen)[0])
    )
    what = "class" if labels else "value"
    if include_data:
        text = (
            f"Move the sliders: the {what} of every row, predicted by a model that has not seen "
            "it, is computed anew at each position from "
            "the decomposition embedded in this page, exactly as refitting without the row would "
            "give it."
        )
    else:
        text = (
            "Move the sliders to see the leave-one-out error of other settings. This page was "
            "written without its training rows."
        )
    hint = (
        "Hover or tap a point, or focus the picture and go through the rows with the arrow keys, "
        "the worst first; Enter finds the row in "
        "the table."
    )
    if labels:
        hint += " Rows predicted wrongly have a ring."
    figure_name = "leave-one-out error" if labels else "leave-one-out root mean squared error"
    return {
        "json": script_json(values),
        "lite": not include_data,
        "n_stops": stops,
        "start": start,
        "n_widths": len(explorer.widths),
        "chosen_width": explorer.chosen_width,
        "text": text,
        "notes": _explorer_notes(subject, explorer) if include_data else [],
        "figure": figure_name,
        "curve": f"{figure_name[0].upper()}{figure_name[1:]} along alpha",
        "curve_alt": f"The {figure_name} along alpha, one line for each kernel width; the figure "
        "above says the current value.",
        "alt": _view_alt(subject, explorer),
        "hint": hint,
    }


def _explorer_notes(subject: Subject, explorer: Explorer) -> list[str]:
    notes = [
        "This page contains the training rows. Whoever has it can read them; write it with "
        "include_data=False to leave them out."
    ]
    if subject.model is not subject.estimator:
        notes.append(
            "The explorer leaves rows out of the model, not out of the pipeline's preprocessing, "
            "which has seen all of them."
        )
    if own_splits(subject) != "leave-one-out":
        notes.append(
            "The model was tuned by leaving out groups or folds; the explorer leaves out single "
            "rows, which looks better where rows of a "
            "group are alike."
        )
    if getattr(subject.model, "calibration", None) in ("sigmoid", "isotonic"):
        notes.append(
            f"Decisions here are those before the {subject.model.calibration} calibration moved "
            "the threshold."
        )
    if explorer.n_samples < subject.n_samples:
        notes.append(
            f"{subject.n_samples - explorer.n_samples:,} rows of zero weight are not shown."
        )
    if getattr(subject.model, "landmarks_", None) is not None:
        notes.append(
            f"The {len(subject.model.landmarks_):,} landmarks of the model stay where they are "
            "when a row is left out."
        )
    width = explorer.widths[explorer.chosen_width]
    if width.dropped > NEGLIGIBLE * explorer.alphas[0]:
        notes.append(
            f"With {explorer.n_samples:,} rows the embedded decomposition is cut to "
            f"{width.V.shape[1]:,} of {width.full_rank:,} "
            "directions; below the sliders stands how far that is from exact at each position (at "
            "the chosen width at most "
            f"{np.max(width.deviations):.1e} of the spread of the held-out values)."
        )
    if explorer.Y.shape[1] > 1 and explorer.kind == "regression":
        notes.append(
            f"Of {explorer.Y.shape[1]} targets the picture shows the first; the error is of all."
        )
    return notes


def _view_alt(subject: Subject, explorer: Explorer) -> str:
    if explorer.kind == "regression":
        return "Held-out predictions of every row against observed values."
    if explorer.X is not None:
        return (
            "Rows in the plane of the two features, with the boundary of the model; rows "
            "predicted wrongly when left out have a ring."
        )
    if explorer.kind == "discriminant" and len(subject.classes) > 2:
        return (
            "Left-out rows on the first two discriminant axes; rows predicted wrongly have a ring."
        )
    return (
        "Held-out decision values of the rows, a lane for each class; rows predicted wrongly have "
        "a ring."
    )


def _explorer_json(subject: Subject, explorer: Explorer, include_data: bool) -> dict[str, Any]:
    everything = payload(explorer)
    if not include_data:
        kept = ("kind", "alphas", "chosen", "chosenWidth", "table")
        widths = [
            {name: width[name] for name in ("factor", "gamma", "errors")}
            for width in everything["widths"]
        ]
        return {**{name: everything[name] for name in kept}, "widths": widths}
    gamma = getattr(subject.model, "gamma_", None)
    x_label, y_label = _axis_labels(subject, explorer)
    return {
        **everything,
        "classes": subject.class_names,
        "names": [subject.row_names[row] for row in explorer.active],
        "chosenGammas": None
        if gamma is None or explorer.X is None
        else np.broadcast_to(np.asarray(gamma, dtype=float), 2).tolist(),
        "xLabel": x_label,
        "yLabel": y_label,
        "hint": "None yet. Hover over a point, or go through them with the arrow keys.",
    }


def _axis_labels(subject: Subject, explorer: Explorer) -> tuple[str, str]:
    if explorer.kind == "regression":
        return "observed", "predicted when left out"
    if explorer.X is not None:
        first, second = subject.model_feature_names[:2]
        return first, second
    if explorer.kind == "discriminant" and len(subject.classes) > 2:
        return "discriminant axis 1", "discriminant axis 2"
    if len(subject.classes) == 2:
        return "decision value when left out", ""
    return "margin when left out: own class less best other", ""
