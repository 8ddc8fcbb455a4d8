"""Display of single rows: how much the model leans on each, and how well it predicts it unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ..estimators.fitted import held_out_output, is_regressor, model_of, record_of
from .held_out import training_targets
from .style import COLORS, DOTS, STRONG, Display, legend, literal, names_of, plain, with_room


def margins(decision: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Decision for the own class less the best other one.

    Positive where the row is classified correctly.
    """
    if decision.ndim == 1:
        return np.asarray(np.where(codes == 1, decision, -decision))
    own = codes[:, None] == np.arange(decision.shape[1])
    return np.asarray(decision[own] - np.where(own, -np.inf, decision).max(axis=1))


class InfluenceDisplay(Display):
    """Leverage of every row against its held-out margin (for regression: its held-out residual).

    Leverage is the share of its own fitted value that a row supplies. Rows below zero are
    misclassified when left out; rows far to the right are fitted mostly by themselves. The rows
    with the largest |held-out value| × leverage are named: they move the model most.

    Parameters
    ----------
    leverage : array of shape (n_samples,)
        Diagonal of the hat matrix.
    values : array of shape (n_samples,)
        Held-out margins or residuals.
    kind : {"margin", "residual"}, default="margin"
        What the values are.
    row_names : sequence, default=None
        Names of the rows; their numbers by default.
    n_named : int, default=5
        How many rows are named.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    named_ : array
        Numbers of the named rows.
    """

    def __init__(
        self,
        *,
        leverage: np.ndarray,
        values: np.ndarray,
        kind: str = "margin",
        row_names: Sequence[Any] | None = None,
        n_named: int = 5,
    ) -> None:
        self.leverage = np.asarray(leverage, dtype=float)
        self.values = np.asarray(values, dtype=float)
        self.kind, self.row_names, self.n_named = kind, row_names, n_named

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        y: Any = None,
        *,
        row_names: Sequence[Any] | None = None,
        n_named: int = 5,
        ax: Any = None,
    ) -> Self:
        """From a fitted estimator (or a pipeline that ends in one) and its training targets, which
        it usually still knows.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import InfluenceDisplay
        >>> X, y = load_wine(return_X_y=True)
        >>> model = KernelFisherDiscriminant().fit((X - X.mean(0)) / X.std(0), y)
        >>> display = InfluenceDisplay.from_estimator(model)
        >>> int((display.values < 0).sum())   # rows misclassified when left out
        3
        """
        model = model_of(estimator)
        targets = training_targets(model, y)
        held_out, leverage = held_out_output(model), model.leverage_
        if len(leverage) != len(held_out):  # rows of zero weight have none
            active = record_of(model, "InfluenceDisplay with zero weights").training.active
            held_out, targets = held_out[active], targets[active]
            row_names = None if row_names is None else [row_names[row] for row in active]
        if is_regressor(model):
            kind, values = "residual", targets - held_out
            values = values if values.ndim == 1 else np.linalg.norm(values, axis=1)
        else:
            kind, values = "margin", margins(held_out, np.searchsorted(model.classes_, targets))
        return cls.from_predictions(
            leverage, values, kind=kind, row_names=row_names, n_named=n_named, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        leverage: Any,
        values: Any,
        *,
        kind: str = "margin",
        row_names: Sequence[Any] | None = None,
        n_named: int = 5,
        ax: Any = None,
    ) -> Self:
        """From leverages and held-out margins or residuals of your own."""
        return cls(
            leverage=to_numpy(leverage),
            values=to_numpy(values),
            kind=kind,
            row_names=row_names,
            n_named=n_named,
        ).plot(ax=ax)

    @property
    def influence(self) -> np.ndarray:
        """|held-out value| × leverage.

        For margins only what a misclassified or nearly misclassified row loses counts.
        """
        lost = self.values
        if self.kind == "margin":
            lost = np.minimum(lost - np.nanmedian(lost), 0.0)
        return np.asarray(np.nan_to_num(np.abs(lost) * self.leverage))

    def _draw(self, ax: Any) -> None:
        if self.kind not in ("margin", "residual"):
            raise ValueError(f'kind must be "margin" or "residual", got {self.kind!r} instead.')
        names = names_of(
            self.row_names, [f"row {row}" for row in range(len(self.values))], "row_names"
        )
        plain(ax)
        wrong = (self.values < 0) & (self.kind == "margin")
        points = np.column_stack([self.leverage, self.values])
        label = "right when left out" if self.kind == "margin" else None
        ax.scatter(*points[~wrong].T, color=COLORS[0], label=label, **DOTS)
        if wrong.any():
            style = {**DOTS, "s": 42, "marker": "X", "color": COLORS[1]}
            ax.scatter(*points[wrong].T, label="wrong when left out", **style)
        ax.axhline(0.0, color=STRONG, linewidth=1.0)
        self.named_ = np.argsort(-self.influence)[: self.n_named]
        self._name(ax, points, names)
        meaning = " (own class less best other)" if self.kind == "margin" else ""
        ax.set(
            xlabel="leverage (share of its own fitted value)",
            ylabel=f"held-out {self.kind}{meaning}",
        )
        legend(ax, 2 if wrong.any() else 0, fontsize="small")

    def _name(self, ax: Any, points: np.ndarray, names: list[str]) -> None:
        """Names beside their points, towards the middle so that they stay inside, and none where
        there is no room.
        """
        useful = (self.influence > 0) & np.isfinite(points).all(axis=1)
        rows = self.named_[useful[self.named_]]
        room = 0.16 * np.ptp(ax.get_xlim()), 0.05 * np.ptp(ax.get_ylim())
        for row in rows[with_room(points[rows], room)]:
            left = points[row, 0] > np.mean(ax.get_xlim())
            ax.annotate(
                literal(names[row], 18),
                points[row],
                xytext=(-6 if left else 6, 4),
                textcoords="offset points",
                ha="right" if left else "left",
                fontsize="x-small",
            )
