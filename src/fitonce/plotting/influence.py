"""Display of single rows: how much the model leans on each, and how well it predicts it unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ._held_out import model_of, training_targets
from ._style import COLOURS, STRONG, axes_of, legend, literal, names_of, plain


def margins(decision: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Decision for the own class less the best other one.

    Positive where the row is classified correctly.
    """
    if decision.ndim == 1:
        return np.asarray(np.where(codes == 1, decision, -decision))
    rows = np.arange(len(codes))
    others = decision.copy()
    others[rows, codes] = -np.inf
    return np.asarray(decision[rows, codes] - others.max(axis=1))


class InfluenceDisplay:
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
        self.leverage, self.values, self.kind = (
            np.asarray(leverage, dtype=float),
            np.asarray(values, dtype=float),
            kind,
        )
        self.row_names, self.n_named = row_names, n_named

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
        held_out, leverage = to_numpy(model._held_out), to_numpy(model.leverage_)
        if len(leverage) != len(held_out):  # rows of zero weight have none
            active = model._require_kept("InfluenceDisplay with zero weights").training.active
            held_out, targets = held_out[active], targets[active]
            row_names = None if row_names is None else [row_names[row] for row in active]
        if hasattr(model, "classes_"):
            values, kind = margins(held_out, np.searchsorted(model.classes_, targets)), "margin"
        else:
            residual = targets - held_out
            values, kind = (
                residual if residual.ndim == 1 else np.linalg.norm(residual, axis=1),
                "residual",
            )
        return cls(
            leverage=leverage, values=values, kind=kind, row_names=row_names, n_named=n_named
        ).plot(ax=ax)

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
        lost = (
            np.abs(self.values)
            if self.kind == "residual"
            else np.maximum(np.nanmedian(self.values) - self.values, 0.0)
        )
        return np.asarray(np.nan_to_num(lost * self.leverage))

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        if self.kind not in ("margin", "residual"):
            raise ValueError(f'kind must be "margin" or "residual", got {self.kind!r} instead.')
        names = names_of(self.row_names, len(self.values), "row_names", "row ")
        self.figure_, self.ax_ = axes_of(ax)
        ax = self.ax_
        plain(ax)
        wrong = self.values < 0 if self.kind == "margin" else np.zeros(len(self.values), dtype=bool)
        style = {"s": 22, "linewidths": 0.4, "edgecolors": "white", "alpha": 0.85}
        label = "right when left out" if self.kind == "margin" else None
        ax.scatter(
            self.leverage[~wrong], self.values[~wrong], color=COLOURS[0], label=label, **style
        )
        if wrong.any():
            ax.scatter(
                self.leverage[wrong],
                self.values[wrong],
                color=COLOURS[1],
                marker="X",
                label="wrong when left out",
                **{**style, "s": 42},
            )
        ax.axhline(0.0, color=STRONG, linewidth=1.0)
        self.named_ = np.argsort(-self.influence)[: self.n_named]
        self._name(names)
        ax.set_xlabel("leverage (share of its own fitted value)")
        ax.set_ylabel(
            "held-out margin (own class less best other)"
            if self.kind == "margin"
            else "held-out residual"
        )
        legend(ax, 2 if wrong.any() else 0, fontsize="small")
        return self

    def _name(self, names: list[str]) -> None:
        """Names beside their points, on alternating sides of the middle so that they
        stay inside.
        """
        middle = np.mean(self.ax_.get_xlim())
        taken: list[tuple[float, float]] = []
        span = np.ptp(self.ax_.get_xlim()) or 1.0, np.ptp(self.ax_.get_ylim()) or 1.0
        for row in self.named_:
            x, y = self.leverage[row], self.values[row]
            if not (np.isfinite(x) and np.isfinite(y)) or self.influence[row] == 0:
                continue
            crowded = any(
                abs(x - a) / span[0] < 0.16 and abs(y - b) / span[1] < 0.05 for a, b in taken
            )
            if crowded:
                continue
            taken.append((x, y))
            left = x > middle
            self.ax_.annotate(
                literal(names[row], 18),
                (x, y),
                xytext=(-6 if left else 6, 4),
                textcoords="offset points",
                ha="right" if left else "left",
                fontsize="x-small",
            )
