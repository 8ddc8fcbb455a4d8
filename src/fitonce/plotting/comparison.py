"""Display of a comparison of models: all differences between their scores, with intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..assessment import Difference, ModelComparison, compare
from ..assessment.words import p_value, score_name
from .style import COLORS, QUIET, STRONG, Display, literal, plain


class DifferenceDisplay(Display):
    """Differences between held-out scores with their intervals, one line for each pair of models.

    A filled, colored point has an interval that excludes zero. To the right of zero, the first
    model of a pair is better; to the left, the second.

    Parameters
    ----------
    differences : sequence of Difference
        The differences to draw, from top to bottom.
    name : str, default="score"
        Name of the score.
    level : float, default=0.95
        Level of the intervals.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(self, *, differences: Any, name: str = "score", level: float = 0.95) -> None:
        self.differences: tuple[Difference, ...] = tuple(differences)
        self.name, self.level = name, level
        if not self.differences:
            raise ValueError("differences must have at least one entry, got none.")
        self._size = (6.4, 1.3 + 0.42 * len(self.differences))

    @classmethod
    def from_predictions(
        cls, result: ModelComparison, *, name: str | None = None, ax: Any = None
    ) -> Self:
        """Plot the result of `fitonce.compare`.

        Parameters
        ----------
        result : ModelComparison
        name : str, default=None
            Name of the score; by default that of the comparison.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_iris
        >>> from fitonce import KernelFisherDiscriminant, compare
        >>> from fitonce.plotting import DifferenceDisplay
        >>> rbf = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
        >>> linear = KernelFisherDiscriminant("linear", alpha=0.1)
        >>> result = compare({"rbf": rbf}, {"linear": linear}, *load_iris(return_X_y=True))
        >>> display = DifferenceDisplay.from_predictions(result)
        >>> display.ax_.get_yticklabels()[0].get_text()
        'rbf - linear'
        """
        named = score_name(result.score_name) if name is None else name
        return cls(differences=result.differences, name=named, level=result.level).plot(ax=ax)

    @classmethod
    def from_estimators(
        cls,
        a: Any,
        b: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Run `fitonce.compare` with the given keywords and plot the result."""
        return cls.from_predictions(compare(a, b, X, y, **keywords), name=name, ax=ax)

    def _draw(self, ax: Any) -> None:
        plain(ax)
        ax.grid(False, axis="y")
        ax.axvline(0.0, color=QUIET, linewidth=1.0)
        for place, one in enumerate(self.differences):
            clear = one.low > 0 or one.high < 0
            color = COLORS[0] if clear else STRONG
            ax.plot([one.low, one.high], [place, place], color=color, linewidth=2.0)
            ax.plot(one.value, place, "o", color=color, markerfacecolor=color if clear else "white")
            ax.annotate(
                f"p = {p_value(one.pvalue)}",
                (1.01, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize="small",
                annotation_clip=False,
            )
        names = [f"{literal(one.first)} - {literal(one.second)}" for one in self.differences]
        ax.set_yticks(np.arange(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel(f"difference in {self.name}, with {100 * self.level:g} % interval")
