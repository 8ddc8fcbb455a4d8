"""Displays of predictions and of what was observed: calibration, and prediction intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.stats

from ..core.arrays import to_numpy
from ..core.calibration import probabilities
from ..estimators.fitted import held_out_output, is_regressor, model_of
from .rows import classifier_of, training_targets
from .style import COLORS, CROSSES, DOTS, QUIET, STRONG, Display, literal, look

EACH_CLASS_UP_TO = 6  # classes; for more, only the curve of the top label is readable
GRID = 200  # points of a band


class CalibrationDisplay(Display):
    """Reliability curves for two or more classes, with 95 % intervals of the observed frequencies.

    Two classes: one curve, for the second class. Up to six classes: one curve for each class
    against the rest. More: how often the most probable class was correct.

    Parameters
    ----------
    curves : list of dict
        One for each curve: ``name``, mean ``predicted`` probability, ``observed`` frequency,
        ``lower``, ``upper`` and ``count`` by bin.
    """

    _size = (5.2, 4.2)

    def __init__(self, *, curves: list[dict[str, Any]]) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        y: Any = None,
        *,
        n_bins: int = 10,
        strategy: str = "quantile",
        ax: Any = None,
    ) -> Self:
        """Plot the held-out probabilities of the training rows of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier, or a Pipeline that ends in one
            Must have ``calibration="temperature"``. This single number was fitted on the same
            rows, which has little effect on the curve; nested cross-validation avoids it.
        y : array, default=None
            The training labels; needed for models that were loaded from a file.
        n_bins : int, default=10
            Number of bins of predicted probability.
        strategy : {"quantile", "uniform"}, default="quantile"
            Bins with equal numbers of rows or with equal widths.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import CalibrationDisplay
        >>> X, y = load_wine(return_X_y=True)
        >>> model = KernelFisherDiscriminant().fit((X - X.mean(0)) / X.std(0), y)
        >>> len(CalibrationDisplay.from_estimator(model, n_bins=5).curves)
        3
        """
        model = classifier_of(estimator, "CalibrationDisplay")
        if model.calibration in ("sigmoid", "isotonic"):
            raise ValueError(
                f"calibration={model.calibration!r} is fitted on the held-out decisions of these "
                "rows, so the curve would look too good: use "
                'cross_val_predict(estimator, X, y, method="predict_proba") and from_predictions.'
            )
        if not hasattr(model, "temperature_"):
            raise ValueError(
                "with calibration=None this classifier has no probabilities: fit it with "
                "calibration='temperature'."
            )
        return cls.from_predictions(
            training_targets(model, y),
            probabilities(held_out_output(model), 1.0 / model.temperature_, model.floor_),
            classes=model.classes_,
            n_bins=n_bins,
            strategy=strategy,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        *,
        classes: Any = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        ax: Any = None,
    ) -> Self:
        """Plot labels and probabilities (n, c) with one column for each of the sorted classes, or
        (n,) for the second of two classes.
        """
        y, p = np.asarray(y), np.asarray(to_numpy(probabilities), dtype=float)
        p = np.column_stack([1.0 - p, p]) if p.ndim == 1 else p
        classes = np.unique(y) if classes is None else np.asarray(classes)
        if p.shape != (len(y), len(classes)):
            raise ValueError(
                f"probabilities must have a row for each of the {len(y)} labels and a column for "
                f"each of the {len(classes)} classes, "
                f"got shape {p.shape} instead."
            )
        if strategy not in ("quantile", "uniform"):
            raise ValueError(f'strategy must be "quantile" or "uniform", got {strategy!r} instead.')
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins!r} instead.")
        y, p = y[np.isfinite(p).all(axis=1)], p[np.isfinite(p).all(axis=1)]
        if len(classes) > EACH_CLASS_UP_TO:
            pairs = [("most probable class", p.max(axis=1), classes[p.argmax(axis=1)] == y)]
        else:
            own = list(zip(classes, p.T, strict=True))
            shown = own[1:] if len(own) == 2 else own  # one curve is enough for two classes
            pairs = [(literal(label), column, y == label) for label, column in shown]
        return cls(curves=[_curve(*pair, n_bins, strategy) for pair in pairs]).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1.0)
        ax.annotate(
            "dashed: perfect calibration",
            (0.98, 0.02),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            fontsize="small",
            color="#666666",
        )
        for index, curve in enumerate(self.curves):
            bars = curve["observed"] - curve["lower"], curve["upper"] - curve["observed"]
            ax.errorbar(
                curve["predicted"],
                curve["observed"],
                np.clip(bars, 0, None),
                capsize=2,
                elinewidth=0.9,
                linewidth=1.5,
                markersize=5,
                label=curve["name"],
                **look(index),
            )
        of = f" of {self.curves[0]['name']}" if len(self.curves) == 1 else ""
        ax.set(
            xlim=(-0.03, 1.03),
            ylim=(-0.03, 1.03),
            aspect="equal",
            xlabel="predicted probability" + of,
            ylabel="observed frequency",
        )


def _curve(
    name: str, p: np.ndarray, happened: np.ndarray, n_bins: int, strategy: str
) -> dict[str, Any]:
    """Mean predicted probability, observed frequency and its Clopper–Pearson interval in each bin
    that has rows.
    """
    grid = np.linspace(0, 1, n_bins + 1)
    edges = np.unique(np.quantile(p, grid) if strategy == "quantile" else grid)
    _, place, n = np.unique(np.digitize(p, edges[1:-1]), return_inverse=True, return_counts=True)
    hits = np.bincount(place, weights=happened)
    ends = [
        scipy.stats.binomtest(int(k), int(m)).proportion_ci() for k, m in zip(hits, n, strict=True)
    ]
    lower, upper = np.array(ends).T
    return {
        "name": name,
        "predicted": np.bincount(place, weights=p) / n,
        "observed": hits / n,
        "lower": lower,
        "upper": upper,
        "count": n,
    }


class IntervalDisplay(Display):
    """Prediction intervals: a band over one feature, or one bar for each row, sorted by prediction.

    Parameters
    ----------
    place : array of shape (m,)
        Position of each interval: the feature, or the rank of the prediction.
    prediction : array of shape (m,)
        Predictions.
    intervals : array of shape (m, 2)
        Lower and upper ends.
    points : tuple of two arrays, default=None
        Observations to draw: positions and targets.
    band : bool, default=True
        Whether to draw a band or bars.
    name, confidence : str and float
        Used in axis labels and legend.
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
        estimator : KernelRidge
            Fitted, or a fitted Pipeline that ends in one.
        X : array of shape (m, n_features)
            Rows. With one feature, the band spans their range; with more, each row gets a bar.
        y : array of shape (m,), default=None
            Their targets, drawn with the intervals.
        confidence, method : float and str
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
