"""The explorer on the page: its texts, labels and numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .explorer import Explorer, too_heavy
from .figures import rounded
from .subject import Subject, calibrated, model_feature_names

HINT = (
    "Hover or tap a point, or focus the picture and go through the rows with the arrow keys, the "
    "worst first; Enter finds the row in the table."
)
CIRCLE = [(np.cos(turn), np.sin(turn)) for turn in np.linspace(0.0, 2.0 * np.pi, 25)[:-1]]
SQUARE = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]
TRIANGLE = [(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]
DIAMOND = [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]
STAR = [
    (radius * np.sin(turn), -radius * np.cos(turn))
    for radius, turn in zip([1.5, 0.6] * 5, np.arange(10) * np.pi / 5, strict=True)
]
PLUS = [
    (sign * a, sign * b)
    for sign in (1, -1)
    for a, b in ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4))
]
CROSS = [((a - b) / 2**0.5, (a + b) / 2**0.5) for a, b in PLUS]
UPSIDE_DOWN = [(a, -b) for a, b in TRIANGLE]
SHAPES = (CIRCLE, SQUARE, TRIANGLE, DIAMOND, UPSIDE_DOWN, PLUS, CROSS, STAR)
COLOURS = 8  # of the page's style
LEGEND_UP_TO = 16  # classes
ALTS = {
    "fit": "Held-out predictions of every row against observed values.",
    "plane": "Rows in the plane of the two features, with the boundary of the model; rows "
    "predicted wrongly when left out have a ring.",
    "axes": "Left-out rows on the first two discriminant axes; rows predicted wrongly have a ring.",
    "lanes": "Held-out decision values of the rows, a lane for each class; rows predicted wrongly "
    "have a ring.",
}


def script_json(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin markup."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def marks(n_classes: int) -> list[list[tuple[float, float]]]:
    """The polygon of every class. Colours repeat after eight classes, pairs of colour and shape
    after 64.
    """
    chosen = [SHAPES[(k + k // COLOURS) % len(SHAPES)] for k in range(min(n_classes, 64))]
    return [[(round(x, 3), round(y, 3)) for x, y in shape] for shape in chosen]


def _legend(names: list[str]) -> list[dict[str, Any]]:
    """Names of the classes with their marks; nothing where they are too many to tell apart."""
    if len(names) > LEGEND_UP_TO:
        return []
    polygons = [" ".join(f"{x},{y}" for x, y in mark) for mark in marks(len(names))]
    return [
        {"name": name, "polygon": polygon, "colour": k % COLOURS}
        for k, (name, polygon) in enumerate(zip(names, polygons, strict=True))
    ]


def explorer_context(explorer: Explorer, include_data: bool) -> dict[str, Any]:
    """Texts of the explorer and its numbers; without data only the figures."""
    subject = explorer.results.subject
    kind = "error" if subject.classification else "root mean squared error"
    leave_one_out = subject.splits == "leave-one-out"
    figure = f"{'leave-one-out' if leave_one_out else 'cross-validation'} {kind}"
    gamma, alpha = explorer.chosen
    numbers = _figures(explorer) | (_rows(explorer) if include_data else {})
    return {
        "json": script_json(numbers),
        "lite": not include_data,
        "n_alphas": len(explorer.alphas),
        "n_gammas": len(explorer.factors),
        "alpha": alpha,
        "gamma": gamma,
        "text": _text(subject, include_data),
        "notes": [_shown(explorer, include_data), *(_notes(subject) if include_data else [])],
        "figure": figure,
        "curve": f"{figure[0].upper()}{figure[1:]} along alpha",
        "curve_alt": f"The {figure} along alpha, one line for each gamma; the figure above says "
        "the current value.",
        "legend": _legend(subject.class_names),
        "alt": ALTS[explorer.results.view],
        "hint": HINT + (" Rows predicted wrongly have a ring." if subject.classification else ""),
    }


def _text(subject: Subject, include_data: bool) -> str:
    if not include_data:
        return (
            f"Move the sliders to see the error of other settings ({subject.splits}). This page "
            "was written without its training rows."
        )
    what = "class" if subject.classification else "value"
    without = "without it"
    if subject.splits != "leave-one-out":
        without = "without its group or fold, by the splits the model was tuned with"
    return (
        f"Move the sliders: at each stop the page shows the {what} of every row, predicted by a "
        f"model that was fitted {without}."
    )


def _shown(explorer: Explorer, include_data: bool) -> str:
    """Which stops there are, and how exact they are."""
    subject, factors, alphas = explorer.results.subject, explorer.factors, explorer.alphas
    stops = f"{len(alphas)} values of alpha, {rounded(alphas[0])} to {rounded(alphas[-1])}"
    if len(factors) > 1:
        reach = f"1/{1 / factors[0]:g} to {factors[-1]:g} times the chosen one"
        stops = f"{len(factors)} values of gamma, {reach}, and {stops}"
    elif hasattr(subject.model, "gamma_"):
        why = f"with {subject.n_samples:,} rows others " if too_heavy(subject) else "others "
        stops += f" at the chosen gamma; {why}were not computed"
    rounding = ", values of single rows rounded to what a screen can show" if include_data else ""
    return (
        f"Shown are {stops}. Everything was computed when the page was written; figures in words "
        f"are exact{rounding}."
    )


def _notes(subject: Subject) -> list[str]:
    model = subject.model
    notes = [
        "This page contains the training rows. Whoever has it can read them; write it with "
        "include_data=False to leave them out."
    ]
    if subject.in_pipeline:
        notes.append(
            "The explorer leaves rows out of the model, not out of the pipeline's preprocessing, "
            "which has seen all of them."
        )
    if calibrated(model):
        notes.append(
            f"Decisions here are those before the {model.calibration} calibration moved the "
            "threshold."
        )
    if len(subject.active) < subject.n_samples:
        hidden = subject.n_samples - len(subject.active)
        notes.append(f"{hidden:,} rows of zero weight are not shown.")
    if hasattr(model, "landmarks_"):
        notes.append(
            f"The {len(model.landmarks_):,} landmarks of the model stay where they are when a row "
            "is left out."
        )
    if subject.y.ndim > 1 and subject.y.shape[1] > 1:
        notes.append(
            f"Of {subject.y.shape[1]} targets the picture shows the first; the error is of all."
        )
    return notes


def _figures(explorer: Explorer) -> dict[str, Any]:
    """What the page says in words at every stop."""
    subject = explorer.results.subject
    gamma, alpha = explorer.chosen
    return {
        "kind": "classification" if subject.classification else "regression",
        "alphas": explorer.alphas.tolist(),
        "gammas": explorer.gammas,
        "factors": explorer.factors,
        "chosen": {"gamma": gamma, "alpha": alpha},
        "errors": explorer.results.figures["error"],
    }


def _rows(explorer: Explorer) -> dict[str, Any]:
    """What the page draws."""
    results = explorer.results
    subject, plane = results.subject, results.plane
    rows = subject.active
    x_label, y_label = _axis_labels(subject, results.view)
    return {
        "view": results.view,
        "r2": results.figures["r2"],
        "dof": results.figures["dof"],
        "rows": rows.tolist(),
        "names": [subject.row_names[row] for row in rows],
        "classes": subject.class_names,
        "marks": marks(max(len(subject.class_names), 1)),
        "codes": subject.codes[rows].tolist() if subject.classification else None,
        "observed": None if subject.classification else _first_target(subject)[rows].tolist(),
        "points": None if plane is None else np.round(plane.points, 12).tolist(),
        "box": None if plane is None else [plane.low.tolist(), plane.high.tolist()],
        "channels": {name: channel.packed() for name, channel in results.channels.items()},
        "xLabel": x_label,
        "yLabel": y_label,
    }


def _first_target(subject: Subject) -> np.ndarray:
    return np.asarray(subject.y.reshape(subject.n_samples, -1)[:, 0].astype(float))


def _axis_labels(subject: Subject, view: str) -> tuple[str, str]:
    if view == "plane":
        first, second = model_feature_names(subject)[:2]
        return first, second
    if view == "fit":
        return "observed", "predicted when left out"
    if view == "axes":
        return "discriminant axis 1", "discriminant axis 2"
    if len(subject.classes) == 2:
        return "decision value when left out", ""
    return "margin when left out: own class less best other", ""
