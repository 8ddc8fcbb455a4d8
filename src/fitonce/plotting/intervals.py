"""Displays of uncertainty: intervals, their coverage, and standardized residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.stats

from ..core.arrays import to_numpy
from ..estimators.fitted import final_step, is_regressor, model_of
from .style import COLORS, DOTS, QUIET, STRONG, Display, legend, plain

SHARES = tuple(np.linspace(0.1, 0.95, 18))  # confidence levels of a coverage curve
GRID = 200  # points of a band


def regressor_of(estimator: Any, what: str) -> Any:
    """The fitted regressor: the estimator itself, or the last step of a pipeline."""
    model = model_of(estimator)
    if not is_regressor(model):
        raise TypeError(f"{what} needs a KernelRidge, got {type(model).__name__} instead.")
    if model.dual_coef_.ndim > 1:
        raise ValueError(f"{what} shows one target, got a model of {model.dual_coef_.shape[1]}.")
    return model


def intervals_of(estimator: Any, X: Any, confidence: float, method: str) -> np.ndarray:
    """Intervals (m, 2) at rows X; if the model ends a pipeline, after its preprocessing steps."""
    model = final_step(estimator)
    rows = X if model is estimator else estimator[:-1].transform(X)
    return to_numpy(model.predict_interval(rows, confidence, method))


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
        regressor_of(estimator, "IntervalDisplay")
        rows, targets = np.asarray(to_numpy(X), dtype=float), None if y is None else to_numpy(y)
        band = rows.shape[1] == 1
        name = getattr(estimator, "feature_names_in_", ["x"])[0] if band else ""
        shown = np.linspace(rows.min(), rows.max(), GRID)[:, None] if band else rows
        intervals = intervals_of(estimator, shown, confidence, method)
        prediction = to_numpy(estimator.predict(shown))
        place = shown[:, 0] if band else np.argsort(np.argsort(prediction)) + 1.0
        points = None if targets is None else ((rows[:, 0] if band else place), targets)
        made = cls(
            place=place,
            prediction=prediction,
            intervals=intervals,
            points=points,
            band=band,
            name=str(name),
            confidence=confidence,
        )
        return made.plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        low, high = self.intervals.T
        label = f"{self.confidence:.0%} interval"
        order = np.argsort(self.place)
        if self.band:
            ax.fill_between(self.place, low, high, color=COLORS[0], alpha=0.2, lw=0, label=label)
            ax.plot(self.place[order], self.prediction[order], color=COLORS[0], label="prediction")
        else:
            finite = np.isfinite(low) & np.isfinite(high)
            bars = self.place[finite], low[finite], high[finite]
            ax.vlines(*bars, color=COLORS[0], alpha=0.35, lw=2, label=label)
            ax.plot(self.place, self.prediction, "_", color=COLORS[0], label="prediction")
        if self.points is not None:
            self._draw_points(ax, *self.points)
        ax.set_xlabel(self.name if self.band else "rows, sorted by prediction")
        ax.set_ylabel("target")
        plain(ax)
        legend(ax, 2 + (self.points is not None), fontsize="small")

    def _draw_points(self, ax: Any, place: np.ndarray, y: np.ndarray) -> None:
        """Targets; if each row has an interval, those outside are highlighted."""
        inside = np.ones(len(y), dtype=bool)
        if not self.band:
            inside = (self.intervals[:, 0] <= y) & (y <= self.intervals[:, 1])
        ax.scatter(place[inside], y[inside], color=STRONG, label="observed", zorder=3, **DOTS)
        if not inside.all():
            outside = {**DOTS, "s": 34}
            ax.scatter(place[~inside], y[~inside], color=COLORS[1], marker="X", zorder=4, **outside)


class CoverageDisplay(Display):
    """The share of rows inside their intervals against the nominal confidence.

    Parameters
    ----------
    confidence, coverage : arrays of shape (k,)
    n_rows : int
        Number of rows behind the shares.
    name : str, default=""
        The method, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    _size = (4.8, 4.2)

    def __init__(
        self, *, confidence: np.ndarray, coverage: np.ndarray, n_rows: int, name: str = ""
    ) -> None:
        self.confidence, self.coverage, self.n_rows, self.name = confidence, coverage, n_rows, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        method: str = "jackknife+",
        confidence: Sequence[float] = SHARES,
        ax: Any = None,
    ) -> Self:
        """Plot the coverage of new rows X with targets y.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from fitonce import KernelRidge
        >>> from fitonce.plotting import CoverageDisplay
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = KernelRidge(gamma=2.0, alpha=0.5).fit(X[:250], y[:250])
        >>> display = CoverageDisplay.from_estimator(model, X[250:], y[250:])
        >>> bool(abs(display.coverage - display.confidence).max() < 0.1)
        True
        """
        regressor_of(estimator, "CoverageDisplay")
        y = to_numpy(y)
        shares = []
        for level in confidence:
            band = intervals_of(estimator, X, level, method)
            shares.append(np.mean((band[:, 0] <= y) & (y <= band[:, 1])))
        made = cls(
            confidence=np.asarray(confidence, dtype=float),
            coverage=np.array(shares),
            n_rows=len(y),
            name=method,
        )
        return made.plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        grid = np.linspace(0.0, 1.0, 101)
        low, high = (
            scipy.stats.binom.ppf(q, self.n_rows, grid) / self.n_rows for q in (0.05, 0.95)
        )
        ax.fill_between(grid, low, high, color=QUIET, alpha=0.2, lw=0, label="90 % of samples")
        ax.plot([0, 1], [0, 1], color=QUIET, lw=1, label="nominal coverage")
        ax.plot(self.confidence, self.coverage, "o-", color=COLORS[0], ms=4, label=self.name)
        ax.set_xlabel("nominal confidence")
        ax.set_ylabel(f"share of {self.n_rows} rows inside")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_aspect("equal")
        plain(ax)
        ax.legend(frameon=False, loc="upper left", fontsize="small")


class StandardizedResidualDisplay(Display):
    """Leave-one-out residuals in units of their standard deviation against a normal distribution.

    If the points lie on the line, the uncertainty of the model, seen as a Gaussian process, is
    right. A steeper slope means that it is too small, a flatter one that it is too large.

    Parameters
    ----------
    residuals : array of shape (n,)

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    _size = (4.8, 4.2)

    def __init__(self, *, residuals: np.ndarray) -> None:
        self.residuals = residuals

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, signal_variance: Any = "profile", ax: Any = None
    ) -> Self:
        """Plot the training rows of a fitted `KernelRidge`, or of a pipeline that ends in one.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from fitonce import KernelRidge
        >>> from fitonce.plotting import StandardizedResidualDisplay
        >>> model = KernelRidge(gamma=2.0, alpha=0.5).fit(*load_diabetes(return_X_y=True))
        >>> StandardizedResidualDisplay.from_estimator(model).residuals.shape
        (442,)
        """
        model = regressor_of(estimator, "StandardizedResidualDisplay")
        return cls(residuals=model.gaussian_process(signal_variance).standardized).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        n = len(self.residuals)
        share = (np.arange(n) + 0.5) / n
        expected = scipy.stats.norm.ppf(share)
        # order statistics of n normal variables, from those of n uniform ones
        ranks = np.arange(1, n + 1)
        low, high = (
            scipy.stats.norm.ppf(scipy.stats.beta.ppf(q, ranks, n + 1 - ranks))
            for q in (0.025, 0.975)
        )
        ax.fill_between(expected, low, high, color=QUIET, alpha=0.2, lw=0, label="95 % of samples")
        ax.plot(
            expected[[0, -1]], expected[[0, -1]], color=QUIET, lw=1, label="normal distribution"
        )
        ax.scatter(expected, np.sort(self.residuals), color=COLORS[0], label="rows", **DOTS)
        ax.set_xlabel("expected from a normal distribution")
        ax.set_ylabel("leave-one-out residual / its std")
        plain(ax)
        ax.legend(frameon=False, loc="upper left", fontsize="small")
