"""Display of discriminant projections or decision values of held-out rows.

Histograms for one axis, a scatter for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ..estimators import KernelFisherDiscriminant
from ._held_out import classifier_of, held_out_projection, training_targets
from ._style import STRONG, axes_of, legend, literal, look, plain


class ProjectionDisplay:
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
        >>> ProjectionDisplay.from_estimator(model).values.shape   # leave-one-out, two axes for three classes
        (178, 2)
        """
        model = classifier_of(estimator, "ProjectionDisplay")
        binary = len(model.classes_) == 2
        if not binary and not isinstance(model, KernelFisherDiscriminant):
            raise TypeError(
                "more than two classes need the axes of a KernelFisherDiscriminant, which "
                "LeastSquaresSVC does not have."
            )
        if X is not None:
            if y is None:
                raise ValueError("y is needed with X: rows are drawn by class.")
            values = to_numpy(estimator.decision_function(X) if binary else estimator.transform(X))
            labels, seen = np.asarray(y), "of these rows"
        elif binary:
            values, labels, seen = (
                to_numpy(model.held_out_decision_),
                training_targets(model, y),
                "held out",
            )
        else:
            labels = training_targets(model, y)
            values, seen = held_out_projection(model), "held out"
            labels = labels[model._kept.training.active] if len(labels) != len(values) else labels
        kind = "decision value" if binary else "discriminant axis"
        display = cls(
            values=values,
            y=labels,
            name=f"{kind}, {seen}",
            threshold=0.0 if binary else None,
            class_names=class_names,
        )
        return display.plot(ax=ax)

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
        return cls(
            values=to_numpy(values), y=np.asarray(y), name=name, class_names=class_names
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        classes = np.unique(self.y)
        names = classes if self.class_names is None else self.class_names
        if len(names) != len(classes):
            raise ValueError(
                f"class_names must have one name per class ({len(classes)}), got {len(names)} "
                "instead."
            )
        self.figure_, self.ax_ = axes_of(ax)
        plain(self.ax_)
        values = self.values[:, None] if self.values.ndim == 1 else self.values
        draw = self._histograms if values.shape[1] == 1 else self._scatter
        draw(values, classes, [literal(name) for name in names])
        return self

    def _histograms(self, values: np.ndarray, classes: np.ndarray, names: list[str]) -> None:
        ax, x = self.ax_, values[:, 0]
        finite = x[np.isfinite(x)]
        edges = (
            np.histogram_bin_edges(finite, bins=min(40, max(8, int(2 * np.sqrt(len(finite))))))
            if len(finite)
            else 1
        )
        for index, (label, name) in enumerate(zip(classes, names, strict=True)):
            style, rows = look(index), x[(self.y == label) & np.isfinite(x)]
            hatch = ("", "///", "\\\\\\", "...", "xxx")[index % 5]
            ax.hist(
                rows,
                bins=edges,
                color=style["color"],
                alpha=0.45,
                label=f"{name} ({np.sum(self.y == label)})",
            )
            ax.hist(
                rows,
                bins=edges,
                histtype="step",
                edgecolor=style["color"],
                linewidth=1.6,
                hatch=hatch,
            )
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
        ax.set_xlabel(self.name)
        ax.set_ylabel("rows")
        legend(ax, len(classes), fontsize="small")

    def _scatter(self, values: np.ndarray, classes: np.ndarray, names: list[str]) -> None:
        ax = self.ax_
        many = len(classes) > 16
        named: list[np.ndarray] = []
        span = np.maximum(
            np.nanmax(values[:, :2], axis=0) - np.nanmin(values[:, :2], axis=0), 1e-300
        )
        for index, (label, name) in enumerate(zip(classes, names, strict=True)):
            rows = values[self.y == label]
            ax.scatter(
                rows[:, 0],
                rows[:, 1],
                s=22,
                linewidths=0.4,
                edgecolors="white",
                alpha=0.85,
                label=f"{name} ({len(rows)})",
                **look(index),
            )
            centre = np.nanmean(rows[:, :2], axis=0) if many and len(rows) else None
            if centre is not None and not any(
                np.all(np.abs(centre - other) / span < (0.09, 0.045)) for other in named
            ):
                named.append(
                    centre
                )  # too many for a legend: names at the centroids that have room for one
                box = {
                    "boxstyle": "round,pad=0.15",
                    "facecolor": "white",
                    "edgecolor": "none",
                    "alpha": 0.7,
                }
                ax.annotate(name, centre, fontsize="xx-small", ha="center", va="center", bbox=box)
        ax.set_xlabel(
            f"{self.name} 1" if "axis" not in self.name else self.name.replace("axis", "axis 1")
        )
        ax.set_ylabel(
            f"{self.name} 2" if "axis" not in self.name else self.name.replace("axis", "axis 2")
        )
        legend(ax, len(classes), fontsize="small")
