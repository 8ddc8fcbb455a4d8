"""Displays of permutation tests: the null distribution, the time course over positions, and the
generalization matrix.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Self

import numpy as np
import scipy.stats

from ..inference import PermutationTest
from ..positions import GroupTest, PositionTest
from .style import COLORS, QUIET, STRONG, Display, borders_of, rounded

MOST_BARS = 40  # from the smallest score to the largest
DASHED = (0, (4, 3))
CORRECTIONS = {  # attribute of a test, and the name of its p-values
    "cluster": ("pvalue_cluster", "clusters"),
    "max": ("pvalue_max", "maximum statistic"),
    "fdr": ("pvalue_fdr", "false discovery rate"),
    "none": ("pvalue", "uncorrected"),
}


def _significant(test: PositionTest | GroupTest, correction: str, level: float) -> np.ndarray:
    """Where a test is significant with the given correction."""
    if correction not in CORRECTIONS:
        raise ValueError(
            f"correction must be one of {', '.join(map(repr, CORRECTIONS))}, got {correction!r} "
            "instead."
        )
    pvalue = getattr(test, CORRECTIONS[correction][0])
    if pvalue is None:
        raise ValueError(
            'correction="cluster" needs a test with adjacent positions, got one without: pass '
            "adjacency to the test."
        )
    return np.asarray(pvalue <= level)


def _places(times: Any, n: int) -> tuple[np.ndarray, str]:
    """The coordinates of n positions on an axis, times in seconds or numbers, and their name."""
    places = np.arange(n, dtype=float) if times is None else np.asarray(times, dtype=float)
    if places.shape != (n,) or not np.all(np.diff(places) > 0):
        raise ValueError(
            f"times must be {n} increasing numbers, one per position, got shape {places.shape} "
            "instead. Positions come first; MNE's scores have the folds first: pass "
            "np.moveaxis(scores, 0, -1)."
        )
    return places, "position" if times is None else "time (s)"


def _mark_zero(times: np.ndarray, line: Any) -> None:
    """A thin line at time zero, the onset, where it is inside the times."""
    if times[0] < 0.0 < times[-1]:
        line(0.0, color=QUIET, linewidth=0.8)


class PermutationNullDisplay(Display):
    """Scores with permuted labels as a histogram, the observed score as a line, and the p-value.

    Parameters
    ----------
    null : array of shape (n_permutations,)
        Scores with permuted labels.
    score : float
        The observed score.
    pvalue : float
        Its p-value.
    pvalue_interval : tuple of float, default=None
        Monte Carlo interval of the p-value.
    name : str, default="score"
        Name of the score.

    Attributes
    ----------
    histogram_ : matplotlib patches
    line_ : matplotlib line of the observed score
    """

    def __init__(
        self,
        *,
        null: np.ndarray,
        score: float,
        pvalue: float,
        pvalue_interval: tuple[float, float] | None = None,
        name: str = "score",
    ) -> None:
        self.null = np.asarray(null, dtype=float)
        self.score, self.pvalue = float(score), float(pvalue)
        self.pvalue_interval, self.name = pvalue_interval, name

    @classmethod
    def from_predictions(
        cls, test: Any, *, metric: str | None = None, name: str | None = None, ax: Any = None
    ) -> Self:
        """Plot the result of `permutation_test_score`, also of scikit-learn's.

        Parameters
        ----------
        test : PermutationTest or tuple (score, permutation_scores, pvalue)
            The result.
        metric : str, default=None
            Which of several metrics; by default the first.
        name : str, default=None
            Label of the horizontal axis; by default the name of the metric.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_iris
        >>> from fitonce import KernelFisherDiscriminant, permutation_test_score
        >>> from fitonce.plotting import PermutationNullDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
        >>> test = permutation_test_score(model, X, y, n_permutations=99, random_state=0)
        >>> print(PermutationNullDisplay.from_predictions(test).pvalue)
        0.01
        """
        if not isinstance(test, PermutationTest):
            score, null, pvalue = test
            return cls(null=null, score=score, pvalue=pvalue, name=name or "score").plot(ax=ax)
        metric = next(iter(test.scores)) if metric is None else metric
        if metric not in test.scores:
            raise ValueError(f"metric must be one of {list(test.scores)}, got {metric!r} instead.")
        if np.ndim(test.scores[metric]) != 0:
            raise ValueError(f"{metric!r} is not one number per labeling; a histogram needs one.")
        return cls(
            null=test.null[metric],
            score=test.scores[metric],
            pvalue=test.pvalues[metric],
            pvalue_interval=test.pvalue_intervals[metric],
            name=name or metric.replace("_", " "),
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        null = self.null[np.isfinite(self.null)]
        _, _, self.histogram_ = ax.hist(
            null, bins=self._bins(null), color=QUIET, edgecolor="white", linewidth=0.4
        )
        self.line_ = ax.axvline(self.score, color=COLORS[1], linewidth=2.2)
        ax.margins(x=0.08)
        ax.set_ylim(0, 1.28 * ax.get_ylim()[1])  # room for the text
        right = self.score > np.mean(ax.get_xlim())
        text = f"observed {rounded(self.score)}\np = {rounded(self.pvalue)}"
        if self.pvalue_interval is not None and np.ptp(self.pvalue_interval) > 0:
            text += "\n(95 % interval of p: {} to {})".format(*map(rounded, self.pvalue_interval))
        ax.annotate(
            text,
            (self.score, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(-8 if right else 8, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top",
            fontsize="small",
            bbox={
                "boxstyle": "round,pad=0.3",
                "facecolor": "white",
                "edgecolor": "none",
                "alpha": 0.85,
            },
        )
        ax.set(xlabel=self.name, ylabel=f"permutations (of {len(self.null):,})")

    def _bins(self, null: np.ndarray) -> Any:
        """One bar per value, or per few values, if scores are discrete, such as accuracies of small
        samples; else a number of bars.
        """
        values = np.unique(np.round(null, 12))
        if not 0 < len(values) <= MOST_BARS:
            return min(MOST_BARS, max(5, int(np.sqrt(len(null)))))
        step = np.min(np.diff(values)) if len(values) > 1 else 0.01
        step *= max(1.0, np.ceil(np.ptp(values) / (MOST_BARS * step)))
        return np.arange(values[0] - step / 2, values[-1] + step, step)


class TimeCourseDisplay(Display):
    """Scores by position, with the chance level, a band, and bars at significant positions.

    Parameters
    ----------
    score : array of shape (n_positions,)
        Scores, drawn as a line.
    times : array of shape (n_positions,), default=None
        Times of the positions in seconds; by default their numbers.
    chance : float or array of shape (n_positions,), default=None
        Drawn as a dashed line.
    band : tuple of two arrays of shape (n_positions,), default=None
        Lower and upper ends of a band.
    band_name : str, default=None
        Its description.
    significant : array of bool of shape (n_positions,), default=None
        Where to draw bars at the bottom of the axes.
    significance_name : str, default="significant"
        Its description.
    name : str, default="score"
        Name of the score.

    Attributes
    ----------
    line_ : matplotlib line of the scores
    chance_ : matplotlib line of the chance level, or None
    band_ : matplotlib collection, or None
    bars_ : list of matplotlib patches, one per run of significant positions
    """

    _size = (6.4, 3.6)
    _legend = MappingProxyType({"loc": "upper left", "bbox_to_anchor": (0.0, 1.0), "ncols": 2})

    def __init__(
        self,
        *,
        score: Any,
        times: Any = None,
        chance: Any = None,
        band: tuple[Any, Any] | None = None,
        band_name: str | None = None,
        significant: Any = None,
        significance_name: str = "significant",
        name: str = "score",
    ) -> None:
        self.score = np.asarray(score, dtype=float)
        if self.score.ndim != 1:
            raise ValueError(
                f"a time course has one score per position, got shape {self.score.shape} instead: "
                "pass one row of a grid."
            )
        self.times, self.place = _places(times, len(self.score))
        self.chance = None if chance is None else np.zeros_like(self.score) + chance
        self.band = None if band is None else tuple(np.asarray(end, dtype=float) for end in band)
        self.band_name, self.significance_name, self.name = band_name, significance_name, name
        self.significant = None if significant is None else np.asarray(significant, dtype=bool)

    @classmethod
    def from_predictions(
        cls,
        test: Any,
        *,
        times: Any = None,
        chance: Any = None,
        correction: str = "cluster",
        level: float = 0.05,
        name: str = "score",
        ax: Any = None,
    ) -> Self:
        """Plot a result of `fitonce.positions`.

        Parameters
        ----------
        test : PositionTest, GroupTest or array of shape (n_positions, n_folds)
            The band contains 95 % of the permutations of a PositionTest. Of a GroupTest it is the
            95 % interval (Student's t) of the mean over subjects, of scores of `cross_val_score`
            the mean ± one standard error over folds.
        times : array of shape (n_positions,), default=None
            Coordinates of the positions.
        chance : float, default=None
            The chance level, if the test does not have one.
        correction : {"cluster", "max", "fdr", "none"}, default="cluster"
            Which p-values are used to mark positions.
        level : float, default=0.05
            Positions with a p-value of at most this are marked.
        name : str, default="score"
            Name of the score.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce.plotting import TimeCourseDisplay
        >>> from fitonce.positions import group_test
        >>> scores = 0.5 + 0.05 * np.random.default_rng(0).normal(size=(12, 40))
        >>> scores[:, 10:15] += 0.1
        >>> display = TimeCourseDisplay.from_predictions(group_test(scores, chance=0.5), name="AUC")
        >>> len(display.bars_)
        1
        """
        values = _course(test)
        if isinstance(test, (PositionTest, GroupTest)):
            chance = test.chance if chance is None else chance
            values["significant"] = _significant(test, correction, level)
            values["significance_name"] = f"p ≤ {level:g} ({CORRECTIONS[correction][1]})"
        return cls(**values, chance=chance, times=times, name=name).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        self.band_, self.chance_ = None, None
        self.bars_: list[Any] = []
        if self.band is not None:
            self.band_ = ax.fill_between(
                self.times, *self.band, color=QUIET, alpha=0.25, linewidth=0, label=self.band_name
            )
        if self.chance is not None:
            (self.chance_,) = ax.plot(
                self.times,
                self.chance,
                label="chance",
                color=STRONG,
                linewidth=1.0,
                linestyle=DASHED,
            )
        (self.line_,) = ax.plot(
            self.times, self.score, color=COLORS[0], linewidth=1.8, label=self.name
        )
        borders = borders_of(self.times)
        ax.set(xlim=borders[[0, -1]], xlabel=self.place, ylabel=self.name)
        _mark_zero(self.times, ax.axvline)
        low, high = ax.get_ylim()
        if self.significant is not None:  # a thick bar at the bottom for every run of positions
            height = 0.022 * (high - low)
            padded = np.concatenate([[False], self.significant, [False]])
            starts, ends = borders[np.flatnonzero(padded[1:] != padded[:-1])].reshape(-1, 2).T
            label = self.significance_name if len(starts) else None
            style = {"align": "edge", "color": COLORS[1], "label": label}
            self.bars_ = list(ax.bar(starts, height, ends - starts, low - 2 * height, **style))
            low -= 3 * height
        ax.set_ylim(low, high + 0.2 * (high - low))  # room for the legend above the data


def _course(test: Any) -> dict[str, Any]:
    """The line and the band of a result over positions."""
    if isinstance(test, PositionTest):
        band = np.nanquantile(test.null, [0.025, 0.975], axis=0)
        return {"score": test.score, "band": band, "band_name": "95 % of permutations"}
    if isinstance(test, GroupTest):
        score, name = test.score, "95 % interval of the mean"
        reach = scipy.stats.t.ppf(0.975, len(test.scores) - 1) * scipy.stats.sem(test.scores)
    else:
        scores = np.asarray(test, dtype=float)
        if scores.ndim != 2:
            raise ValueError(
                f"scores must have shape (n_positions, n_folds), got {scores.shape} instead."
            )
        score, name = scores.mean(axis=1), "± standard error over folds"
        if scores.shape[1] == 1:
            return {"score": score}
        reach = scipy.stats.sem(scores, axis=1)
    return {"score": score, "band": (score - reach, score + reach), "band_name": name}


class GeneralizationDisplay(Display):
    """Scores by training position (rows) and test position (columns), with colors centered on the
    chance level.

    Parameters
    ----------
    scores : array of shape (n_positions, n_positions)
        Scores, with the training position first.
    times : array of shape (n_positions,), default=None
        Times of the positions in seconds; by default their numbers.
    chance : float, default=None
        The score at the center of the color scale; without it, colors range from the lowest to the
        highest score.
    significant : array of bool of shape (n_positions, n_positions), default=None
        Entries to outline.
    name : str, default="score"
        Name of the score.

    Attributes
    ----------
    im_ : matplotlib mesh of the scores
    colorbar_ : matplotlib color bar
    outline_ : matplotlib contours around significant entries, or None
    """

    _size = (5.2, 4.2)

    def __init__(
        self,
        *,
        scores: Any,
        times: Any = None,
        chance: float | None = None,
        significant: Any = None,
        name: str = "score",
    ) -> None:
        self.scores = np.asarray(scores, dtype=float)
        if self.scores.ndim != 2 or self.scores.shape[0] != self.scores.shape[1]:
            raise ValueError(
                "scores must be a square matrix, training positions by test positions, got shape "
                f"{self.scores.shape} instead. MNE's scores have the folds first: pass "
                "np.moveaxis(scores, 0, -1)."
            )
        self.times, self.place = _places(times, len(self.scores))
        self.chance, self.name = chance, name
        self.significant = None if significant is None else np.asarray(significant, dtype=bool)

    @classmethod
    def from_predictions(
        cls,
        scores: Any,
        *,
        times: Any = None,
        chance: float | None = None,
        correction: str = "cluster",
        level: float = 0.05,
        name: str = "score",
        ax: Any = None,
    ) -> Self:
        """Plot the result of `generalize`, or a `GroupTest` over such matrices.

        Parameters
        ----------
        scores : array of shape (n_positions, n_positions[, n_folds]), or GroupTest
            The mean over folds is drawn; for a test, the mean over subjects, with an outline around
            significant entries.
        times : array of shape (n_positions,), default=None
            Coordinates of the positions.
        chance : float, default=None
            The chance level.
        correction, level : str and float
            As in `TimeCourseDisplay.from_predictions`.
        name : str, default="score"
            Name of the score.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce.plotting import GeneralizationDisplay
        >>> scores = np.random.default_rng(0).uniform(0.4, 0.6, size=(6, 6, 5))
        >>> display = GeneralizationDisplay.from_predictions(scores, chance=0.5)
        >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
        ('test position', 'training position')
        """
        significant = None
        if isinstance(scores, (PositionTest, GroupTest)):
            significant = _significant(scores, correction, level)
            chance = float(np.mean(scores.chance)) if chance is None else chance
            scores = scores.score
        scores = np.asarray(scores, dtype=float)
        return cls(
            scores=scores.mean(axis=2) if scores.ndim == 3 else scores,
            times=times,
            chance=chance,
            significant=significant,
            name=name,
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        borders = borders_of(self.times)
        limits: dict[str, Any] = {"cmap": "viridis"}
        if self.chance is not None:
            reach = float(np.nanmax(np.abs(self.scores - self.chance))) or 1.0
            limits = {"cmap": "RdBu_r", "vmin": self.chance - reach, "vmax": self.chance + reach}
        self.im_ = ax.pcolormesh(borders, borders, self.scores, rasterized=True, **limits)
        ends = borders[[0, -1]]
        ax.plot(ends, ends, color=STRONG, linewidth=0.8, linestyle=DASHED)
        self.outline_ = None
        if self.significant is not None and self.significant.any() and len(self.times) > 1:
            self.outline_ = ax.contour(
                self.times,
                self.times,
                self.significant.astype(float),
                levels=[0.5],
                colors=[STRONG],
                linewidths=1.2,
            )
        for line in (ax.axvline, ax.axhline):
            _mark_zero(self.times, line)
        ax.set(aspect="equal", xlabel=f"test {self.place}", ylabel=f"training {self.place}")
        self.colorbar_ = self.figure_.colorbar(self.im_, ax=ax, label=self.name, shrink=0.9)
        if self.chance is not None:
            self.colorbar_.ax.axhline(self.chance, color=STRONG, linewidth=0.8)
            self.colorbar_.ax.set_title(f"chance {rounded(self.chance)}", fontsize="x-small")
