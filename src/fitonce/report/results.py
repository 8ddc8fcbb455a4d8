"""Held-out results of many models, one for each position of the explorer's sliders, as stored in
the page: drawn values are rounded to 8 or 16 bits, printed figures are exact.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.ndimage import generate_binary_structure, maximum_filter, minimum_filter
from sklearn.metrics import mean_squared_error, r2_score

from ..assessment.data import n_columns
from ..core.arrays import asarray_like, to_numpy
from ..estimators.fitted import held_out_output, held_out_projection, n_axes
from ..plotting.rows import margins
from .subject import Subject, codes_of, dense, finite_rows

SIDE = 40  # points along each side of the grid that shows a boundary
FIGURES = ("error", "r2", "dof")
ALTS = {
    "fit": "Held-out predictions of every row against observed values.",
    "plane": "Rows in the plane of the two features, with the decision boundary of the model; rows "
    "that are misclassified when left out have a ring.",
    "axes": "Left-out rows on the first two discriminant axes; misclassified rows have a ring.",
    "lanes": "Held-out decision values of the rows, one lane for each class; misclassified rows "
    "have a ring.",
}


@dataclass
class Channel:
    """One number for each row (or grid point) at every position, as low + step × code; the largest
    code means that there is no number.
    """

    bits: int
    length: int
    whole: bool = False  # class indices, which are their own codes
    low: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    codes: list[bytes] = field(default_factory=list)

    def append(self, values: np.ndarray) -> None:
        most, known = 2**self.bits - 2, np.isfinite(values)
        low, step = 0.0, 1.0
        if not self.whole and known.any():
            low = float(values[known].min())
            step = float(values[known].max() - low) / most or 1.0
        codes = np.full(self.length, most + 1)
        codes[known] = np.clip(np.rint((values[known] - low) / step), 0, most)
        self.low.append(low)
        self.step.append(step)
        self.codes.append(codes.astype(f"<u{self.bits // 8}").tobytes())

    def packed(self) -> dict[str, Any]:
        data = base64.b64encode(b"".join(self.codes)).decode("ascii")
        return {"bits": self.bits, "low": self.low, "step": self.step, "data": data}


@dataclass(frozen=True)
class Plane:
    """The rows of a model with two features, and the grid on which its boundary is drawn."""

    points: np.ndarray  # (n, 2)

    @cached_property
    def box(self) -> np.ndarray:
        """The lowest and the highest corner, a little outside the rows."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        room = np.where(high > low, 0.06 * (high - low), 1.0)
        return np.stack([low - room, high + room])

    @cached_property
    def grid(self) -> np.ndarray:
        x, y = np.linspace(self.box[0], self.box[1], SIDE).T
        return np.column_stack([np.tile(x, SIDE), np.repeat(y, SIDE)])


def view_of(subject: Subject) -> str:
    """The type of picture: a plane for two features, discriminant axes, lanes of decision values,
    or a fit for regression.
    """
    model = subject.model
    if not subject.classification:
        return "fit"
    if model.kernel != "precomputed" and n_columns(subject.model_features) == 2:
        return "plane"
    axes = hasattr(model, "scalings_") and len(subject.classes) > 2 and n_axes(model) > 1
    return "axes" if axes and subject.leave_one_out else "lanes"


class Results:
    """Channels and figures for the active rows of a model, appended position by position."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.view = subject, view_of(subject)
        self.alt = ALTS[self.view]
        n = len(subject.active)
        self.channels = {"value": Channel(16, n), "leverage": Channel(8, n)}
        self.figures: dict[str, list[float | None]] = {name: [] for name in FIGURES}
        self.plane: Plane | None = None
        class_bits = 8 if len(subject.class_names) < 255 else 16
        if subject.classification:
            self.channels["predicted"] = Channel(class_bits, n, whole=True)
        if self.view == "axes":
            self.channels |= {"x": Channel(16, n), "y": Channel(16, n)}
        if self.view == "plane":
            self.plane = Plane(dense(subject.model_features)[subject.active])
            self.channels |= {
                "region": Channel(class_bits, SIDE**2, whole=True),
                "distance": Channel(8, SIDE**2),
            }

    @property
    def bytes_per_stop(self) -> int:
        return sum(channel.bits // 8 * channel.length for channel in self.channels.values())

    def append(self, model: Any | None) -> None:
        """Append the results of a fitted model; a gap if there is no model, or it has no
        results.
        """
        found = {} if model is None else self._found(model)
        for name, channel in self.channels.items():
            channel.append(found.get(name, np.full(channel.length, np.nan)))
        for name, figures in self.figures.items():
            figure = float(found.get(name, np.nan))
            figures.append(figure if np.isfinite(figure) else None)

    def _found(self, model: Any) -> dict[str, Any]:
        """Channels and figures by name; empty if no row was left out."""
        subject, rows = self.subject, self.subject.active
        held_out = held_out_output(model)[rows]
        tested = finite_rows(held_out)
        if not tested.any():
            return {}
        weights = None if subject.sample_weight is None else subject.sample_weight[rows[tested]]
        found = {"leverage": to_numpy(model.leverage_), "dof": model.effective_dof_}
        if subject.classification:  # the error is the misclassified share of the weight
            codes, predicted = subject.codes[rows], codes_of(held_out)
            found["value"] = margins(held_out, codes)
            found["predicted"] = np.where(tested, predicted, np.nan)
            found["error"] = np.average((predicted != codes)[tested], weights=weights)
        else:  # the first target is drawn, figures are for all
            both = subject.y[rows][tested].astype(float), held_out[tested]
            found["value"] = held_out.reshape(len(held_out), -1)[:, 0]
            found["error"] = np.sqrt(mean_squared_error(*both, sample_weight=weights))
            found["r2"] = r2_score(*both, sample_weight=weights, force_finite=False)
        if self.view == "axes":
            found["x"], found["y"] = held_out_projection(model)[:, :2].T
        if self.plane is not None:
            fitted, grid = model.X_fit_, self.plane.grid
            grid = grid if hasattr(fitted, "toarray") else asarray_like(grid, fitted)
            found |= boundary(to_numpy(model.decision_function(grid)))
        return found


def boundary(decision: np.ndarray) -> dict[str, np.ndarray]:
    """The predicted class of every grid point and its lead over the next class, clipped to the
    leads near a boundary: the boundary between classes is where their leads vanish.
    """
    region = codes_of(decision)
    lead, square = margins(decision, region), region.reshape(SIDE, SIDE)
    near = generate_binary_structure(2, 1)  # a point and its four neighbors
    highest, lowest = (f(square, footprint=near) for f in (maximum_filter, minimum_filter))
    most = lead[(highest > lowest).reshape(-1)].max(initial=0.0)
    return {"region": region, "distance": np.minimum(lead, most)}
