"""Display of prediction intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ..estimators.fitted import is_regressor, model_of
from .style import COLORS, CROSSES, DOTS, STRONG, Display

GRID = 200  # points of a band


class IntervalDisplay(Display):
    """Prediction intervals: a band over one feature, or one bar for each row, sorted by prediction.

    Parameters
    ----------
    place : array of shape (m,)
        Position of each interval: the feature, or the rank of the prediction.
    prediction : array of shape (m,)
    intervals : array of shape (m, 2)
    points : tuple of two arrays, default=None
        Observations to draw: positions and targets.
    band : bool, default=True
        Whether to draw a band or bars.
    name, confidence
        Used in axis labels and legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(
        self,
        *,
        place: np.ndarray,
        prediction: np.ndarray,
        intervals: np.ndarray,
        points: tuple[np.ndarray, np.ndarray] | None = None,
        band: bool = True,
        name: str = "x",
        confidence: float = 0.9,
    ) -> None:
        self.place, self.prediction, self.intervals = place, prediction, intervals
        self.points, self.band, self.name, self.confidence = points, band, name, confidence

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        confidence: float = 0.9,
        method: str = "jackknife+",
        ax: Any = None,
    ) -> Self:
        """Plot the intervals of a fitted `KernelRidge`, or of a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted KernelRidge, or a Pipeline that ends in one
        X : array of shape (m, n_features)
            Rows. With one feature, the band spans their range; with more, each row gets a bar.
        y : array of shape (m,), default=None
            Their targets, drawn with the intervals.
        confidence, method
            As in `KernelRidge.predict_interval`.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce import KernelRidge
        >>> from fitonce.plotting import IntervalDisplay
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, size=(80, 1))
        >>> y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=80)
        >>> display = IntervalDisplay.from_estimator(KernelRidge().fit(X, y), X, y)
        >>> display.intervals.shape
        (200, 2)
        """
        model = model_of(estimator)
        if not is_regressor(model):
            raise TypeError(f"IntervalDisplay needs a KernelRidge, got {type(model).__name__}.")
        if model.dual_coef_.ndim > 1:
            raise ValueError(
                f"IntervalDisplay shows one target, got a model of {model.dual_coef_.shape[1]}."
            )
        rows = np.asarray(to_numpy(X), dtype=float)
        band = rows.shape[1] == 1
        shown = np.linspace(rows.min(), rows.max(), GRID)[:, None] if band else rows
        seen = shown if model is estimator else estimator[:-1].transform(shown)
        prediction = to_numpy(estimator.predict(shown))
        place = shown[:, 0] if band else np.argsort(np.argsort(prediction)) + 1.0
        return cls(
            place=place,
            prediction=prediction,
            intervals=to_numpy(model.predict_interval(seen, confidence, method)),
            points=None if y is None else (rows[:, 0] if band else place, to_numpy(y)),
            band=band,
            name=str(getattr(estimator, "feature_names_in_", ["x"])[0]),
            confidence=confidence,
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        low, high = self.intervals.T
        label = f"{self.confidence:.0%} interval"
        if self.band:
            order = np.argsort(self.place)
            ax.fill_between(self.place, low, high, color=COLORS[0], alpha=0.2, lw=0, label=label)
            ax.plot(self.place[order], self.prediction[order], color=COLORS[0], label="prediction")
        else:
            finite = np.isfinite(low) & np.isfinite(high)
            bars = self.place[finite], low[finite], high[finite]
            ax.vlines(*bars, color=COLORS[0], alpha=0.35, lw=2, label=label)
            ax.plot(self.place, self.prediction, "_", color=COLORS[0], label="prediction")
        if self.points is not None:
            place, y = self.points
            inside = (low <= y) & (y <= high) if not self.band else np.ones(len(y), dtype=bool)
            ax.scatter(place[inside], y[inside], color=STRONG, label="observed", zorder=3, **DOTS)
            ax.scatter(place[~inside], y[~inside], zorder=4, **CROSSES)
        ax.set(xlabel=self.name if self.band else "rows, sorted by prediction", ylabel="target")
