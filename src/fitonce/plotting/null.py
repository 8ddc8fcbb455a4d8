"""Display of a permutation test: the null distribution, the observed score, the p-value."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..inference import PermutationTest
from .style import COLORS, QUIET, Display, rounded

MOST_BARS = 40  # from the smallest score to the largest


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
    ax_, figure_ : matplotlib axes and figure
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
