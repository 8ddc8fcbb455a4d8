"""Display of discriminant projections or decision values of held-out rows: histograms for one axis,
a scatter for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ..estimators.fitted import held_out_output, held_out_projection, is_binary, record_of
from .held_out import classifier_of, training_targets
from .style import DOTS, STRONG, Display, legend, literal, look, names_of, plain, with_room


class ProjectionDisplay(Display):
    """Rows on discriminant axes, by class.

    One axis gives a histogram for each class, more a scatter of the first two. `from_estimator`
    shows held-out values: in-sample ones of a flexible kernel collapse on the class centroids
    whatever the data.

    Parameters
    ----------
    values : array of shape (n_samples,) or (n_samples, n_axes)
        Projections or decision values.
    y : array of shape (n_samples,)
        Labels.
    name : str, default="projection"
        What the axes are.
    threshold : float, default=None
        Where the decision changes, for one axis.
    class_names : sequence, default=None
        Names in the order of the sorted labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
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
        self.values, self.y = np.asarray(values, dtype=float), np.asarray(y)
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
        """Held-out values of the training rows, or with X and y given those of other rows.

        Two classes: decision values (without X those of ``held_out_decision_``). More: projections
        on the discriminant axes, without X leave-one-out values on the axes of the whole fit.
        `LeastSquaresSVC` has no axes; of its classes two can be shown.

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
                "more than two classes need the axes of a KernelFisherDiscriminant, which "
                "LeastSquaresSVC does not have."
            )
        if X is not None:
            if y is None:
                raise ValueError("y is needed with X: rows are drawn by class.")
            values = to_numpy(estimator.decision_function(X) if binary else estimator.transform(X))
            labels, seen = np.asarray(y), "of these rows"
        else:
            values = held_out_output(model) if binary else held_out_projection(model)
            labels, seen = training_targets(model, y), "held out"
            if len(labels) != len(values):  # rows of zero weight have no projection
                labels = labels[record_of(model, "ProjectionDisplay").training.active]
        kind = "decision value" if binary else "discriminant axis"
        return cls(
            values=values,
            y=labels,
            name=f"{kind}, {seen}",
            threshold=0.0 if binary else None,
            class_names=class_names,
        ).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        values: Any,
        *,
        name: str = "projection",
        class_names: Sequence[Any] | None = None,
        ax: Any = None,
    ) -> Self:
        """From labels and projections or decision values of your own."""
        return cls(values=to_numpy(values), y=y, name=name, class_names=class_names).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        classes = np.unique(self.y)
        names = [literal(name) for name in names_of(self.class_names, list(classes), "class_names")]
        plain(ax)
        members = [self.y == label for label in classes]
        labels = [f"{name} ({rows.sum()})" for name, rows in zip(names, members, strict=True)]
        if self.values.ndim == 1 or self.values.shape[1] == 1:
            self._histograms(ax, self.values.ravel(), members, labels)
        else:
            self._scatter(ax, self.values[:, :2], members, labels)
            if len(classes) > 16:  # too many for a legend
                self._names(ax, members, names)
        legend(ax, len(classes), fontsize="small")

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

    def _names(self, ax: Any, members: list[np.ndarray], names: list[str]) -> None:
        """Names at the centroids of classes that have room for one."""
        values = self.values[:, :2]
        span = np.nanmax(values, axis=0) - np.nanmin(values, axis=0)
        centers = np.stack([np.nanmean(values[own], axis=0) for own in members])
        for number in with_room(centers, (0.09, 0.045) * span):
            ax.annotate(
                names[number],
                centers[number],
                fontsize="xx-small",
                ha="center",
                va="center",
                bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.7},
            )
