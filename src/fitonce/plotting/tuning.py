"""Displays of what tuning tried: the criterion along alpha, and over gamma × alpha."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ._held_out import model_of
from ._style import COLOURS, QUIET, STRONG, axes_of, plain, pyplot, rounded


def _columns(results: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """gamma (NaN where the kernel has none, or one per feature), alpha and score of every
    candidate.
    """
    alpha = np.asarray([entry["alpha"] for entry in results["params"]], dtype=float)
    gamma = np.asarray(
        [
            entry.get("gamma", np.nan) if np.ndim(entry.get("gamma")) == 0 else np.nan
            for entry in results["params"]
        ]
    )
    return gamma.astype(float), alpha, np.asarray(results["mean_test_score"], dtype=float)


def _score_name(model: Any) -> str:
    criterion = (
        model.criterion
        if isinstance(model.criterion, str)
        else getattr(model.criterion, "__name__", "criterion")
    )
    known = {"auc": "AUC", "r2": "R²", "brier": "Brier loss", "error": "error rate"}
    return known.get(criterion, criterion.replace("_", " ")) + ", held out"


class RegularizationPathDisplay:
    """The criterion along alpha for every kernel width that was tried, the chosen model marked.

    Losses are drawn as losses (lower is better); AUC and R² as scores. It is recommended to use
    `from_estimator`.

    Parameters
    ----------
    alphas : array of shape (n_candidates,)
        Regularisation values, of all widths.
    values : array of shape (n_candidates,)
        Criterion of each candidate.
    gammas : array of shape (n_candidates,)
        Kernel widths; NaN where the kernel has none.
    alpha, value, gamma : float
        The chosen candidate.
    name : str, default="criterion"
        What the vertical axis is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line of the chosen width
    chosen_ : matplotlib line with the one marker of the chosen candidate
    """

    def __init__(
        self,
        *,
        alphas: np.ndarray,
        values: np.ndarray,
        gammas: np.ndarray,
        alpha: float,
        value: float,
        gamma: float = np.nan,
        name: str = "criterion",
    ) -> None:
        self.alphas, self.values, self.gammas = alphas, values, gammas
        self.alpha, self.value, self.gamma = alpha, value, gamma
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """From a fitted estimator's ``cv_results_`` (or a pipeline that ends in one).

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import RegularizationPathDisplay
        >>> X, y = load_wine(return_X_y=True)
        >>> model = KernelFisherDiscriminant().fit((X - X.mean(0)) / X.std(0), y)
        >>> display = RegularizationPathDisplay.from_estimator(model)
        >>> bool(display.value == display.values.min())
        True
        """
        model = model_of(estimator)
        gammas, alphas, scores = _columns(model.cv_results_)
        sign = 1.0 if model.criterion in ("auc", "r2") or callable(model.criterion) else -1.0
        gamma = getattr(model, "gamma_", np.nan)
        gamma = float(gamma) if np.ndim(gamma) == 0 and np.isfinite(gammas).any() else np.nan
        display = cls(
            alphas=alphas,
            values=sign * scores,
            gammas=gammas,
            alpha=float(model.alpha_),
            value=sign * float(model.best_score_),
            gamma=gamma,
            name=_score_name(model),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        self.figure_, self.ax_ = ax_figure = axes_of(ax)
        ax = ax_figure[1]
        plain(ax)
        widths = np.unique(self.gammas[np.isfinite(self.gammas)])
        chosen = self._same(self.gammas, self.gamma)
        for width in widths:
            rows = self._same(self.gammas, width)
            if np.sum(rows) > 1 and not np.array_equal(rows, chosen):
                self._line(
                    rows,
                    color=QUIET,
                    linewidth=0.9,
                    alpha=0.7,
                    label="other widths" if width == widths[0] else None,
                )
        if not chosen.any():
            chosen = (
                np.ones(len(self.alphas), dtype=bool)
                if not len(widths)
                else np.zeros(len(self.alphas), dtype=bool)
            )
        label = f"gamma = {rounded(self.gamma)}" if np.isfinite(self.gamma) else "criterion"
        self.line_ = self._line(chosen, color=COLOURS[0], linewidth=2.0, label=label)
        marker = {
            "marker": "o",
            "markersize": 9,
            "markerfacecolor": "white",
            "markeredgewidth": 2,
            "color": COLOURS[1],
        }
        self.chosen_ = ax.plot(
            [self.alpha],
            [self.value],
            linestyle="none",
            label=f"chosen: alpha = {rounded(self.alpha)}",
            **marker,
        )[0]
        ax.set_xscale("log", base=10)
        ax.set_xlabel("alpha (regularisation)")
        ax.set_ylabel(self.name)
        ax.legend(frameon=False, fontsize="small")
        return self

    @staticmethod
    def _same(gammas: np.ndarray, gamma: float) -> np.ndarray:
        return np.asarray(
            np.isnan(gammas) if np.isnan(gamma) else np.isclose(gammas, gamma, rtol=1e-9, atol=0.0)
        )

    def _line(self, rows: np.ndarray, **style: Any) -> Any:
        rows = np.flatnonzero(rows & np.isfinite(self.values))
        order = rows[np.argsort(self.alphas[rows])]
        return self.ax_.plot(self.alphas[order], self.values[order], **style)[0]


class CriterionMapDisplay:
    """The criterion over kernel width × regularisation as tiles, the choice marked with a cross.

    Windows of alpha differ between widths; what was not tried stays blank.

    Parameters
    ----------
    gammas, alphas, values : arrays of shape (n_candidates,)
        Every candidate and its criterion.
    gamma, alpha : float
        The chosen one.
    name : str, default="criterion"
        Label of the colour bar.
    lower_is_better : bool, default=True
        Whether the best values are dark.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    tiles_ : matplotlib collection
    colorbar_ : matplotlib colour bar
    """

    def __init__(
        self,
        *,
        gammas: np.ndarray,
        alphas: np.ndarray,
        values: np.ndarray,
        gamma: float,
        alpha: float,
        name: str = "criterion",
        lower_is_better: bool = True,
    ) -> None:
        self.gammas, self.alphas, self.values = gammas, alphas, values
        self.gamma, self.alpha = gamma, alpha
        self.name, self.lower_is_better = name, lower_is_better

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """From a fitted estimator whose gamma was tuned (or a pipeline that ends in one).

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import CriterionMapDisplay
        >>> X, y = load_wine(return_X_y=True)
        >>> model = KernelFisherDiscriminant().fit((X - X.mean(0)) / X.std(0), y)
        >>> display = CriterionMapDisplay.from_estimator(model)
        >>> display.alpha == model.alpha_
        True
        """
        model = model_of(estimator)
        gammas, alphas, scores = _columns(model.cv_results_)
        several = len(np.unique(gammas[np.isfinite(gammas)])) > 1
        if not several or np.ndim(getattr(model, "gamma_", [])) != 0:
            raise ValueError(
                "CriterionMapDisplay needs a model whose gamma was chosen among several "
                '(gamma="tune"): cv_results_ has one width or none. '
                "Use RegularizationPathDisplay."
            )
        higher = model.criterion in ("auc", "r2") or callable(model.criterion)
        display = cls(
            gammas=gammas,
            alphas=alphas,
            values=scores if higher else -scores,
            gamma=float(model.gamma_),
            alpha=float(model.alpha_),
            name=_score_name(model),
            lower_is_better=not higher,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        pyplot()
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        self.figure_, self.ax_ = axes_of(ax)
        ax = self.ax_
        usable = np.isfinite(self.values) & np.isfinite(self.gammas)
        x, y, values = (
            np.log2(self.gammas[usable]),
            np.log2(self.alphas[usable]),
            self.values[usable],
        )
        # the neighbours of a lattice point are one or two powers of two away; a tile reaches
        # half-way to each
        tiles = [
            Rectangle((left, b - 0.5), right - left, 1.0)
            for (left, right), b in zip(self._edges(x), y, strict=True)
        ]
        self.tiles_ = PatchCollection(
            tiles,
            cmap="cividis" if self.lower_is_better else "cividis_r",
            edgecolor="face",
            linewidth=0.4,
        )
        self.tiles_.set_array(values)
        low, high = (
            np.quantile(values, [0.0, 0.9])
            if self.lower_is_better
            else np.quantile(values, [0.1, 1.0])
        )
        self.tiles_.set_clim(low, max(high, low + 1e-12))
        ax.add_collection(self.tiles_)
        mark = {
            "marker": "X",
            "markersize": 12,
            "markerfacecolor": COLOURS[1],
            "markeredgecolor": "white",
            "markeredgewidth": 1.6,
        }
        ax.plot(
            [np.log2(self.gamma)], [np.log2(self.alpha)], linestyle="none", label="chosen", **mark
        )
        ax.autoscale_view()
        ax.set_xlabel("log₂ gamma (small: smooth kernel)")
        ax.set_ylabel("log₂ alpha (regularisation)")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        extend = "max" if self.lower_is_better else "min"
        self.colorbar_ = self.figure_.colorbar(self.tiles_, ax=ax, label=self.name, extend=extend)
        self.colorbar_.outline.set_visible(False)
        ax.legend(
            frameon=True,
            framealpha=0.85,
            edgecolor="none",
            loc="upper right",
            fontsize="small",
            labelcolor=STRONG,
        )
        return self

    @staticmethod
    def _edges(x: np.ndarray) -> list[tuple[float, float]]:
        known, position = np.unique(np.round(x, 9), return_inverse=True)
        gaps = np.diff(known)
        left = np.concatenate([gaps[:1], gaps]) / 2
        right = np.concatenate([gaps, gaps[-1:]]) / 2
        return [(float(known[i] - left[i]), float(known[i] + right[i])) for i in position]
