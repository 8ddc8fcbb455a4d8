"""The explorer on the page: its numbers, its labels, the marks of its classes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .explorer import Explorer
from .results import Results
from .subject import model_feature_names

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


def legend(names: list[str]) -> list[dict[str, Any]]:
    """Names of the classes with their marks; nothing where they are too many to tell apart."""
    if len(names) > LEGEND_UP_TO:
        return []
    polygons = [" ".join(f"{x},{y}" for x, y in mark) for mark in marks(len(names))]
    return [
        {"name": name, "polygon": polygon, "colour": k % COLOURS}
        for k, (name, polygon) in enumerate(zip(names, polygons, strict=True))
    ]


def numbers(explorer: Explorer, include_data: bool) -> dict[str, Any]:
    """What the page looks up at every stop: the error, and where data may go along, the rows."""
    gamma, alpha = explorer.chosen
    errors = {
        "kind": "classification" if explorer.results.subject.classification else "regression",
        "alphas": explorer.alphas.tolist(),
        "gammas": explorer.gammas,
        "factors": explorer.factors,
        "chosen": {"gamma": gamma, "alpha": alpha},
        "errors": explorer.results.figures["error"],
    }
    return errors | (_rows(explorer) if include_data else {})


def _rows(explorer: Explorer) -> dict[str, Any]:
    """What the page draws."""
    results = explorer.results
    subject, plane = results.subject, results.plane
    rows = subject.active
    return {
        "view": results.view,
        "r2": results.figures["r2"],
        "dof": results.figures["dof"],
        "rows": rows.tolist(),
        "names": [subject.row_names[row] for row in rows],
        "classes": subject.class_names,
        "marks": marks(max(len(subject.class_names), 1)),
        "codes": subject.codes[rows].tolist() if subject.classification else None,
        "observed": None if subject.classification else subject.first_target[rows].tolist(),
        "points": None if plane is None else plane.points.tolist(),
        "box": None if plane is None else plane.box.tolist(),
        "channels": {name: channel.packed() for name, channel in results.channels.items()},
        "labels": _axis_labels(results),
    }


def _axis_labels(results: Results) -> list[str]:
    binary = len(results.subject.class_names) == 2
    decision = "decision value" if binary else "margin, own class less best other,"
    labels = {
        "fit": ["observed", "predicted when left out"],
        "axes": ["discriminant axis 1", "discriminant axis 2"],
        "lanes": [f"{decision} when left out", ""],
    }
    return labels.get(results.view) or model_feature_names(results.subject)
