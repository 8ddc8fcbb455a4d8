"""Displays of decoding over positions.

The time course with what is significant, and the generalisation matrix.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.stats

from ..positions import GroupTest, PositionTest, generalize, permutation_test
from ._style import COLOURS, QUIET, STRONG, axes_of, plain, rounded

CORRECTIONS = {
    "cluster": "pvalue_cluster",
    "max": "pvalue_max",
    "fdr": "pvalue_fdr",
    "none": "pvalue",
}
NAMES = {
    "cluster": "clusters",
    "max": "maximum statistic",
    "fdr": "false discovery rate",
    "none": "uncorrected",
}


def _significance(test: Any, correction: str, level: float) -> np.ndarray:
    """Where a test is significant, by the named correction."""
    if correction not in CORRECTIONS:
        raise ValueError(
            f"correction must be one of {', '.join(map(repr, CORRECTIONS))}, got {correction!r} "
            "instead."
        )
    pvalue = getattr(test, CORRECTIONS[correction])
    if pvalue is None:
        raise ValueError(
            'correction="cluster" needs a test that knows which positions are adjacent, got one '
            "without: give adjacency to it."
        )
    return np.asarray(pvalue <= level)


def _places(times: Any, n: int, name: str = "times") -> np.ndarray:
    """The places of n positions on an axis."""
    places = np.arange(n, dtype=float) if times is None else np.asarray(times, dtype=float)
    if places.shape != (n,) or not np.all(np.diff(places) > 0):
        raise ValueError(
            f"{name} must be {n} increasing numbers, one per position, got shape {places.shape} "
            "instead."
        )
    return places


def _runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of every run of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(start), int(stop) - 1) for start, stop in edges.reshape(-1, 2)]


def _borders(places: np.ndarray) -> np.ndarray:
    """Where one position ends and the next begins: n + 1 numbers."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middle = 0.5 * (places[1:] + places[:-1])
    return np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])


class TimeCourseDisplay:
    """Scores over positions, with the chance level, a band, and bars where they are significant.

    Parameters
    ----------
    score : array of shape (n_positions,)
        The line.
    times : array of shape (n_positions,), default=None
        Where the positions are on the horizontal axis; their numbers by default.
    chance : float or array of shape (n_positions,), default=None
        Drawn as a dashed line.
    band : tuple of two arrays of shape (n_positions,), default=None
        Lower and upper ends of a band.
    band_name : str, default=None
        What the band is, for the legend.
    significant : array of bool of shape (n_positions,), default=None
        Where bars are drawn, at the foot of the axes.
    significance_name : str, default="significant"
        What the bars mean, for the legend.
    name : str, default="score"
        What the scores are.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line of the scores
    chance_ : matplotlib line of the chance level, or None
    band_ : matplotlib collection, or None
    bars_ : list of matplotlib patches, one per run of significant positions
    """

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
                "take one row of a grid."
            )
        n = len(self.score)
        self.times = _places(times, n)
        self.chance = (
            None if chance is None else np.broadcast_to(np.asarray(chance, dtype=float), (n,))
        )
        self.band = (
            None
            if band is None
            else (np.asarray(band[0], dtype=float), np.asarray(band[1], dtype=float))
        )
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
        """From what `fitonce.positions` returned.

        Parameters
        ----------
        test : PositionTest, GroupTest or array of shape (n_positions, n_folds)
            The band is where 95 % of the permutations are; the 95 % confidence interval of the mean
            over subjects (Student's); or the mean ± one standard error over folds, for scores of
            `cross_val_score`, which come without significance.
        times : array of shape (n_positions,), default=None
            Where the positions are.
        chance : float, default=None
            The chance level, where the test does not say it.
        correction : {"cluster", "max", "fdr", "none"}, default="cluster"
            By which p-values positions are marked.
        level : float, default=0.05
            Those at most this are.
        name : str, default="score"
            What the scores are.

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
        if isinstance(test, (PositionTest, GroupTest)):
            values: dict[str, Any] = {
                "score": test.score,
                "chance": test.chance if chance is None else chance,
            }
            values |= _null_band(test) if isinstance(test, PositionTest) else _group_band(test)
            values |= {
                "significant": _significance(test, correction, level),
                "significance_name": f"p ≤ {level:g} ({NAMES[correction]})",
            }
        else:
            scores = np.asarray(test, dtype=float)
            if scores.ndim != 2:
                raise ValueError(
                    f"scores must have shape (n_positions, n_folds), got {scores.shape} instead."
                )
            mean, error = (
                scores.mean(axis=1),
                scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
                if scores.shape[1] > 1
                else None,
            )
            values = {"score": mean, "chance": chance}
            if error is not None:
                values |= {
                    "band": (mean - error, mean + error),
                    "band_name": "± standard error over folds",
                }
        return cls(**values, times=times, name=name).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        times: Any = None,
        correction: str = "cluster",
        level: float = 0.05,
        name: str = "score",
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Run `fitonce.positions.permutation_test` with the given keywords, and draw it."""
        test = permutation_test(estimator, X, y, **keywords)
        return cls.from_predictions(
            test, times=times, correction=correction, level=level, name=name, ax=ax
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        self.figure_, self.ax_ = axes_of(ax, (6.4, 3.6))
        ax = self.ax_
        plain(ax)
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
                color=STRONG,
                linewidth=1.0,
                linestyle=(0, (4, 3)),
                label="chance",
            )
        (self.line_,) = ax.plot(
            self.times, self.score, color=COLOURS[0], linewidth=1.8, label=self.name
        )
        borders = _borders(self.times)
        ax.set_xlim(borders[0], borders[-1])
        if self.significant is not None:
            self._bars(borders)
        ax.set_xlabel("position")
        ax.set_ylabel(self.name)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.2 * (high - low))  # room for the legend above the data
        ax.legend(loc="upper left", ncols=2, frameon=False, fontsize="small")
        return self

    def _bars(self, borders: np.ndarray) -> None:
        """A thick bar at the foot of the axes for every run of significant positions."""
        low, high = self.ax_.get_ylim()
        height = 0.022 * (high - low)
        self.ax_.set_ylim(low - 3 * height, high)
        for first, last in _runs(
            self.significant if self.significant is not None else np.zeros(0, dtype=bool)
        ):
            label = None if self.bars_ else self.significance_name
            corner = (borders[first], low - 2 * height)
            patch = self.ax_.add_patch(
                _rectangle(corner, borders[last + 1] - borders[first], height, label)
            )
            self.bars_.append(patch)


def _rectangle(corner: tuple[float, float], width: float, height: float, label: str | None) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor=COLOURS[1], edgecolor="none", label=label)


def _null_band(test: PositionTest) -> dict[str, Any]:
    lower, upper = np.nanquantile(test.null, [0.025, 0.975], axis=0)
    return {"band": (lower, upper), "band_name": "95 % of permutations"}


def _group_band(test: GroupTest) -> dict[str, Any]:
    n = len(test.scores)
    reach = scipy.stats.t.ppf(0.975, n - 1) * test.scores.std(axis=0, ddof=1) / np.sqrt(n)
    return {
        "band": (test.score - reach, test.score + reach),
        "band_name": "95 % interval of the mean",
    }


class GeneralizationDisplay:
    """Scores by training position (rows) and test position (columns), coloured from the chance
    level.

    Parameters
    ----------
    scores : array of shape (n_positions, n_positions)
        Training position first.
    times : array of shape (n_positions,), default=None
        Where the positions are; their numbers by default.
    chance : float, default=None
        The score in the middle of the colours; without it colours go from the lowest to the
        highest.
    significant : array of bool of shape (n_positions, n_positions), default=None
        Outlined.
    name : str, default="score"
        What the scores are.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    im_ : matplotlib mesh of the scores
    colorbar_ : matplotlib colour bar
    outline_ : matplotlib contours around what is significant, or None
    """

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
                f"{self.scores.shape} instead."
            )
        self.times = _places(times, len(self.scores))
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
        """From what `generalize` returned, or a `GroupTest` over such matrices.

        Parameters ---------- scores : array of shape (n_positions, n_positions, n_folds) or
        (n_positions, n_positions), or GroupTest
            The mean over folds is drawn; of a test its mean over subjects, with an outline around
            what is significant.
        times : array of shape (n_positions,), default=None
            Where the positions are.
        chance : float, default=None
            The chance level.
        correction, level
            As in `TimeCourseDisplay.from_predictions`.
        name : str, default="score"
            What the scores are.

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
        if isinstance(scores, (GroupTest, PositionTest)):
            level_of_chance = float(np.mean(scores.chance)) if chance is None else chance
            significant = _significance(scores, correction, level)
            display = cls(
                scores=scores.score,
                times=times,
                chance=level_of_chance,
                significant=significant,
                name=name,
            )
        else:
            values = np.asarray(scores, dtype=float)
            display = cls(
                scores=values.mean(axis=2) if values.ndim == 3 else values,
                times=times,
                chance=chance,
                name=name,
            )
        return display.plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        times: Any = None,
        chance: float | None = None,
        name: str = "score",
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Run `fitonce.positions.generalize` with the given keywords, and draw it."""
        return cls.from_predictions(
            generalize(estimator, X, y, **keywords), times=times, chance=chance, name=name, ax=ax
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        self.figure_, self.ax_ = axes_of(ax, (5.2, 4.2))
        ax, borders = self.ax_, _borders(self.times)
        limits: dict[str, Any] = {"cmap": "viridis"}
        if self.chance is not None:
            reach = float(np.nanmax(np.abs(self.scores - self.chance))) or 1.0
            limits = {"cmap": "RdBu_r", "vmin": self.chance - reach, "vmax": self.chance + reach}
        self.im_ = ax.pcolormesh(borders, borders, self.scores, **limits)
        self.im_.set_rasterized(True)
        ax.plot(
            borders[[0, -1]], borders[[0, -1]], color=STRONG, linewidth=0.8, linestyle=(0, (4, 3))
        )
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
        ax.set_aspect("equal")
        ax.set_xlabel("test position")
        ax.set_ylabel("training position")
        self.colorbar_ = self.figure_.colorbar(self.im_, ax=ax, label=self.name, shrink=0.9)
        if self.chance is not None:
            self.colorbar_.ax.axhline(self.chance, color=STRONG, linewidth=0.8)
            self.colorbar_.ax.set_title(f"chance {rounded(self.chance)}", fontsize="x-small")
        return self
