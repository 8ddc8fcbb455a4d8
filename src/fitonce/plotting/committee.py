"""Display of a committee: its members and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.fitted import final_step, is_committee
from .style import COLORS, QUIET, Display, literal, plain

MOST = 15  # members that get a bar
LONGEST = 48  # characters of their names


class CommitteeDisplay(Display):
    """The weights of the members of a committee as bars, the largest on top.

    Parameters
    ----------
    names : sequence of str
        Names of the members.
    weights : array of shape (n_members,)
        Their weights.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(self, *, names: Sequence[str], weights: Any) -> None:
        self.names, self.weights = list(names), np.asarray(weights, dtype=float)
        if len(self.names) != len(self.weights) or not len(self.names):
            raise ValueError(
                f"names and weights must have the same length, at least one, got {len(self.names)} "
                f"and {len(self.weights)}."
            )
        self._size = (7.6, 1.1 + 0.28 * min(len(self.names), MOST + 1))

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot a fitted committee, or a pipeline that ends in one.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_iris
        >>> from fitonce import KernelCommitteeClassifier, KernelFisherDiscriminant
        >>> from fitonce.plotting import CommitteeDisplay
        >>> members = [KernelFisherDiscriminant(gamma=0.2), KernelFisherDiscriminant("linear")]
        >>> committee = KernelCommitteeClassifier(members).fit(*load_iris(return_X_y=True))
        >>> display = CommitteeDisplay.from_estimator(committee)
        >>> display.ax_.get_xlabel()
        'weight in the committee'
        """
        model = final_step(estimator)
        if not is_committee(model):
            raise TypeError(
                "estimator must be a committee, or a Pipeline that ends in one, got "
                f"{type(model).__name__} instead: a single model has no member weights."
            )
        check_is_fitted(model)
        return cls(names=model.names_, weights=model.weights_).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        plain(ax)
        ax.grid(False, axis="y")
        names, weights = [literal(name, LONGEST) for name in self.names], self.weights
        colors = [COLORS[0]] * len(names)
        if len(names) > MOST + 1:
            names = [*names[:MOST], f"{len(names) - MOST} others together"]
            weights = np.append(weights[:MOST], weights[MOST:].sum())
            colors = [*colors[:MOST], QUIET]
        places = np.arange(len(names))
        ax.barh(places, weights, color=colors, height=0.7)
        for place, weight in zip(places, weights.tolist(), strict=True):
            ax.annotate(
                f"{weight:.0%}", (weight, place), (3, 0), textcoords="offset points", va="center"
            )
        ax.set_yticks(places, names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlim(0.0, 1.15 * float(weights.max()))
        ax.set_xlabel("weight in the committee")
