"""Held-out results of many models, one for each stop of the explorer's sliders, in the form that a
page carries: what is drawn rounded to 8 or 16 bits, figures in words as they are.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import mean_squared_error, r2_score

from ..core.arrays import asarray_like, to_numpy
from ..estimators.fitted import held_out_output, held_out_projection, n_axes
from ..plotting.rows import margins
from .subject import Subject, codes_of, dense, finite_rows, n_columns

SIDE = 40  # points along either side of the grid that shows a boundary
FIGURES = ("error", "r2", "dof")
ALTS = {
    "fit": "Held-out predictions of every row against observed values.",
    "plane": "Rows in the plane of the two features, with the boundary of the model; rows "
    "predicted wrongly when left out have a ring.",
    "axes": "Left-out rows on the first two discriminant axes; rows predicted wrongly have a ring.",
    "lanes": "Held-out decision values of the rows, a lane for each class; rows predicted wrongly "
    "have a ring.",
}


@dataclass
class Channel:
    """One number for each row (or point of a grid) at every stop, as low + step × code; the
    largest code stands for no number.
    """

    bits: int
    length: int
    whole: bool = False  # numbers of classes, which are their own codes
    low: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    codes: list[bytes] = field(default_factory=list)

    @property
    def bytes_per_stop(self) -> int:
        return self.bits // 8 * self.length

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
    """The rows of a model of two features, and the grid on which its boundary is shown."""

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
    """What the picture shows: a plane for two features, discriminant axes, lanes of decision
    values, or for regression a fit.
    """
    model = subject.model
    if not subject.classification:
        return "fit"
    if model.kernel != "precomputed" and n_columns(subject.model_features) == 2:
        return "plane"
    axes = hasattr(model, "scalings_") and len(subject.classes) > 2 and n_axes(model) > 1
    return "axes" if axes and subject.leave_one_out else "lanes"


class Results:
    """Channels and figures of a model's active rows, appended stop by stop."""

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
        return sum(channel.bytes_per_stop for channel in self.channels.values())

    def append_gap(self) -> None:
        """A stop without a model."""
        for channel in self.channels.values():
            channel.append(np.full(channel.length, np.nan))
        for figures in self.figures.values():
            figures.append(None)

    def append(self, model: Any) -> None:
        """The results of a fitted model."""
        held_out = held_out_output(model)[self.subject.active]
        tested = finite_rows(held_out)
        if not tested.any():
            self.append_gap()
            return
        read = self._classified if self.subject.classification else self._fitted
        values, figures = read(held_out, tested)
        values["leverage"] = np.asarray(to_numpy(model.leverage_))
        figures["dof"] = float(model.effective_dof_)
        if self.view == "axes":
            values["x"], values["y"] = held_out_projection(model)[:, :2].T
        if self.plane is not None:
            rows, grid = model.X_fit_, self.plane.grid
            grid = grid if hasattr(rows, "toarray") else asarray_like(grid, rows)
            values |= boundary(np.asarray(to_numpy(model.decision_function(grid))))
        for name, channel in self.channels.items():
            channel.append(values[name])
        for name, kept in self.figures.items():
            kept.append(figures[name] if np.isfinite(figures.get(name, np.nan)) else None)

    def _weights(self, tested: np.ndarray) -> np.ndarray | None:
        weights = self.subject.sample_weight
        return None if weights is None else weights[self.subject.active[tested]]

    def _classified(
        self, held_out: np.ndarray, tested: np.ndarray
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Margins and predicted classes; the share of the weight that is misclassified."""
        codes, predicted = self.subject.codes[self.subject.active], codes_of(held_out)
        values = {
            "value": margins(held_out, codes),
            "predicted": np.where(tested, predicted, np.nan),
        }
        wrong = (predicted != codes)[tested]
        return values, {"error": float(np.average(wrong, weights=self._weights(tested)))}

    def _fitted(
        self, held_out: np.ndarray, tested: np.ndarray
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Predictions of the first target; the root of the mean squared residual and R² of all."""
        both = self.subject.y[self.subject.active][tested].astype(float), held_out[tested]
        weights = self._weights(tested)
        figures = {
            "error": float(np.sqrt(mean_squared_error(*both, sample_weight=weights))),
            "r2": float(r2_score(*both, sample_weight=weights, force_finite=False)),
        }
        return {"value": held_out.reshape(len(held_out), -1)[:, 0]}, figures


def boundary(decision: np.ndarray) -> dict[str, np.ndarray]:
    """The predicted class of every grid point and its lead over the next class, cut to the leads
    beside a boundary: a line between classes is where their leads vanish.
    """
    region = codes_of(decision)
    lead = margins(decision, region)
    square, beside = region.reshape(SIDE, SIDE), np.zeros((SIDE, SIDE), dtype=bool)
    across, along = square[1:] != square[:-1], square[:, 1:] != square[:, :-1]
    beside[1:] |= across
    beside[:-1] |= across
    beside[:, 1:] |= along
    beside[:, :-1] |= along
    most = lead[beside.reshape(-1)].max(initial=0.0)
    return {"region": region, "distance": np.minimum(lead, most)}
