"""Displays of single rows: their held-out values on discriminant axes, their leverage, and how well
they are predicted when held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ..estimators.fitted import (
    held_out_output,
    held_out_projection,
    is_binary,
    is_regressor,
    model_of,
    record_of,
)
from .style import (
    COLORS,
    CROSSES,
    DOTS,
    STRONG,
    Display,
    literal,
    look,
    names_of,
)


def classifier_of(estimator: Any, what: str) -> Any:
    """`model_of`, restricted to classifiers."""
    model = model_of(estimator)
    if is_regressor(model):
        raise TypeError(f"{what} needs a classifier, got {type(model).__name__} instead.")
    return model


def training_targets(model: Any, y: Any) -> np.ndarray:
    """The targets the model was fitted on: as given, or those kept with its decomposition."""
    if y is None:
        return record_of(model, "this display without y").training.y
    targets, n = np.asarray(to_numpy(y)), len(held_out_output(model))
    if len(targets) != n:
        raise ValueError(
            f"y must be the {n} targets that the model was fitted on, got {len(targets)} instead: "
            "they are compared with the held-out values."
        )
    return targets


def margins(decision: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Decision for the own class minus that of the best other class.

    Positive if the row is classified correctly.
    """
    if decision.ndim == 1:
        return np.asarray(np.where(codes == 1, decision, -decision))
    own = codes[:, None] == np.arange(decision.shape[1])
    return np.asarray(decision[own] - np.where(own, -np.inf, decision).max(axis=1))


class InfluenceDisplay(Display):
    """Leverage of every row against its held-out margin (for regression, its held-out residual).

    Leverage is the share of a row's fitted value that comes from the row itself. Rows below zero
    are misclassified when left out. The rows with the largest |held-out value| × leverage are
    named.

    Parameters
    ----------
    leverage : array of shape (n_samples,)
        Diagonal of the hat matrix.
    values : array of shape (n_samples,)
        Held-out margins or residuals.
    kind : {"margin", "residual"}, default="margin"
        Type of the values.
    row_names : sequence, default=None
        Names of the rows; by default their indices.
    n_named : int, default=5
        Number of rows to name.

    Attributes
    ----------
    named_ : array
        Indices of the named rows.
    """

    def __init__(
        self,
        *,
        leverage: np.ndarray,
        values: np.ndarray,
        kind: str = "margin",
        row_names: Sequence[Any] | None = None,
        n_named: int = 5,
    ) -> None:
        self.leverage = np.asarray(to_numpy(leverage), dtype=float)
        self.values = np.asarray(to_numpy(values), dtype=float)
        self.kind, self.row_names, self.n_named = kind, row_names, n_named

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        y: Any = None,
        *,
        row_names: Sequence[Any] | None = None,
        n_named: int = 5,
        ax: Any = None,
    ) -> Self:
        """Plot a fitted estimator (or a pipeline that ends in one) and its training targets, which
        it usually keeps.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import InfluenceDisplay
        >>> X, y = load_wine(return_X_y=True)
        >>> model = KernelFisherDiscriminant().fit((X - X.mean(0)) / X.std(0), y)
        >>> display = InfluenceDisplay.from_estimator(model)
        >>> int((display.values < 0).sum())   # rows misclassified when left out
        1
        """
        model = model_of(estimator)
        targets = training_targets(model, y)
        held_out, leverage = held_out_output(model), model.leverage_
        if len(leverage) != len(held_out):  # rows with zero weight have no leverage
            active = record_of(model, "InfluenceDisplay with zero weights").training.active
            held_out, targets = held_out[active], targets[active]
            row_names = None if row_names is None else [row_names[row] for row in active]
        if is_regressor(model):
            kind, values = "residual", targets - held_out
            values = values if values.ndim == 1 else np.linalg.norm(values, axis=1)
        else:
            kind, values = "margin", margins(held_out, np.searchsorted(model.classes_, targets))
        return cls(
            leverage=leverage, values=values, kind=kind, row_names=row_names, n_named=n_named
        ).plot(ax=ax)

    @property
    def influence(self) -> np.ndarray:
        """|held-out value| × leverage.

        For margins, only the loss of misclassified or nearly misclassified rows counts.
        """
        margin = self.kind == "margin"
        lost = np.minimum(self.values - np.nanmedian(self.values), 0.0) if margin else self.values
        return np.asarray(np.nan_to_num(np.abs(lost) * self.leverage))

    def _draw(self, ax: Any) -> None:
        if self.kind not in ("margin", "residual"):
            raise ValueError(f'kind must be "margin" or "residual", got {self.kind!r} instead.')
        names = names_of(
            self.row_names, [f"row {row}" for row in range(len(self.values))], "row_names"
        )
        wrong = (self.values < 0) & (self.kind == "margin")
        points = np.column_stack([self.leverage, self.values])
        label = "correct when left out" if self.kind == "margin" else None
        ax.scatter(*points[~wrong].T, color=COLORS[0], label=label, **DOTS)
        if wrong.any():
            ax.scatter(*points[wrong].T, label="wrong when left out", **CROSSES)
        ax.axhline(0.0, color=STRONG, linewidth=1.0)
        self.named_ = np.argsort(-self.influence)[: self.n_named]
        useful = (self.influence > 0) & np.isfinite(points).all(axis=1)
        room = 0.16 * np.ptp(ax.get_xlim()), 0.05 * np.ptp(ax.get_ylim())
        taken: list[int] = []
        for row in self.named_[useful[self.named_]]:
            if np.any(np.all(np.abs(points[taken] - points[row]) <= room, axis=1)):
                continue  # no room beside a name that matters more
            taken.append(row)
            left = points[row, 0] > np.mean(ax.get_xlim())  # names stay inside the axes
            ax.annotate(
                literal(names[row], 18),
                points[row],
                xytext=(-6 if left else 6, 4),
                textcoords="offset points",
                ha="right" if left else "left",
                fontsize="x-small",
            )
        ax.set(xlabel="leverage", ylabel=f"held-out {self.kind}")


class ProjectionDisplay(Display):
    """Rows on discriminant axes, colored by class.

    One axis gives a histogram for each class, two or more a scatter plot of the first two.
    `from_estimator` shows held-out values: for a flexible kernel, in-sample values collapse on the
    class centroids, whatever the data.

    Parameters
    ----------
    values : array of shape (n_samples,) or (n_samples, n_axes)
        Projections or decision values.
    y : array of shape (n_samples,)
        Labels.
    name : str, default="projection"
        Name of the axes.
    threshold : float, default=None
        Position of the decision threshold, for one axis.
    class_names : sequence, default=None
        Names in the order of the sorted labels.
    """

    def __init__(
        self,
        *,
        values: np.ndarray,
        y: np.ndarray,
        name: str = "projection",
        threshold: float | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> None:
        self.values, self.y = np.asarray(to_numpy(values), dtype=float), np.asarray(y)
        self.name, self.threshold, self.class_names = name, threshold, class_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        class_names: Sequence[Any] | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot the held-out values of the training rows or, with X and y, the values of other rows.

        Two classes: decision values (without X, ``held_out_decision_``). More: projections on the
        discriminant axes (without X, leave-one-out values on the axes of the whole fit).
        `LeastSquaresSVC` has no axes, so it can be shown only for two classes.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import ProjectionDisplay
        >>> X, y = load_wine(return_X_y=True)
        >>> model = KernelFisherDiscriminant().fit((X - X.mean(0)) / X.std(0), y)
        >>> ProjectionDisplay.from_estimator(model).values.shape  # two axes for three classes
        (178, 2)
        """
        model = classifier_of(estimator, "ProjectionDisplay")
        binary = is_binary(model)
        if not binary and not hasattr(model, "transform"):
            raise TypeError(
                "more than two classes need the discriminant axes of a KernelFisherDiscriminant; "
                "LeastSquaresSVC does not have them."
            )
        if X is not None:
            if y is None:
                raise ValueError("y is needed with X: rows are colored by class.")
            values = to_numpy(estimator.decision_function(X) if binary else estimator.transform(X))
            labels, seen = np.asarray(y), ""
        else:
            values = held_out_output(model) if binary else held_out_projection(model)
            labels, seen = training_targets(model, y), "held-out "
            if len(labels) != len(values):  # rows with zero weight have no projection
                labels = labels[record_of(model, "ProjectionDisplay").training.active]
        kind = "decision value" if binary else "discriminant axis"
        return cls(
            values=values,
            y=labels,
            name=f"{seen}{kind}",
            threshold=0.0 if binary else None,
            class_names=class_names,
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        classes = np.unique(self.y)
        names = names_of(self.class_names, list(classes), "class_names")
        members = [self.y == label for label in classes]
        labels = [
            f"{literal(name)} ({rows.sum()})" for name, rows in zip(names, members, strict=True)
        ]
        if self.values.ndim == 1 or self.values.shape[1] == 1:
            self._histograms(ax, self.values.ravel(), members, labels)
        else:
            self._scatter(ax, self.values[:, :2], members, labels)

    def _histograms(
        self, ax: Any, values: np.ndarray, members: list[np.ndarray], labels: list[str]
    ) -> None:
        finite = np.isfinite(values)
        n_bins = min(40, max(8, int(2 * np.sqrt(finite.sum()))))
        edges = np.histogram_bin_edges(values[finite], n_bins) if finite.any() else 1
        for index, (own, label) in enumerate(zip(members, labels, strict=True)):
            rows, color = values[own & finite], look(index)["color"]
            hatch = ("", "///", "\\\\\\", "...", "xxx")[index % 5]
            ax.hist(rows, edges, color=color, alpha=0.45, label=label)
            ax.hist(rows, edges, histtype="step", edgecolor=color, linewidth=1.6, hatch=hatch)
        if self.threshold is not None:
            ax.axvline(self.threshold, color=STRONG, linewidth=1.2, linestyle="--")
            ax.annotate(
                "threshold",
                (self.threshold, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, -3),
                textcoords="offset points",
                va="top",
                fontsize="x-small",
                rotation=90,
            )
        ax.set(xlabel=self.name, ylabel="rows")

    def _scatter(
        self, ax: Any, values: np.ndarray, members: list[np.ndarray], labels: list[str]
    ) -> None:
        for index, (own, label) in enumerate(zip(members, labels, strict=True)):
            ax.scatter(*values[own].T, label=label, **DOTS, **look(index))
        name = self.name.replace("axis", "axis {}") if "axis" in self.name else self.name + " {}"
        ax.set(xlabel=name.format(1), ylabel=name.format(2))
