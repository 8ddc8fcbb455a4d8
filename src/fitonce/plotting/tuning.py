"""Displays of the tuning search: the criterion by alpha, and by gamma × alpha."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from ..estimators.fitted import alpha_of, criterion_of, model_of
from .style import COLORS, QUIET, Display, borders_of, rounded

NAMES = {
    "auc": "AUC",
    "r2": "R²",
    "correlation": "r",
    "brier": "Brier loss",
    "squared_error+log_loss": "squared error and log-loss",
    "error": "error rate",
}


def _shown(results: Mapping[str, Any]) -> np.ndarray:
    """For each kernel, the candidates on all rows or, if these are only a few of its alphas, those
    on a sample.
    """
    rows = np.asarray(results.get("n_samples", np.ones(len(results["params"]))))
    kernels = [repr({**entry, "alpha": None}) for entry in results["params"]]
    _, kernel = np.unique(kernels, return_inverse=True)
    on_all = rows == rows.max()
    n_all, n_sampled = (np.bincount(kernel, weights=part) for part in (on_all, ~on_all))
    return np.asarray(on_all == (n_all >= n_sampled)[kernel])


def _width(gamma: Any) -> float:
    """The width; NaN if the kernel has none, or one per feature."""
    return np.nan if gamma is None or np.ndim(gamma) else float(gamma)


class _SearchDisplay(Display):
    """Every candidate of a search for the chosen kernel, and the one that was chosen. Scores are
    losses if the criterion is one.
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
        lower_is_better: bool = True,
    ) -> None:
        self.alphas, self.values, self.gammas = alphas, values, gammas
        self.alpha, self.value, self.gamma = alpha, value, gamma
        self.name, self.lower_is_better = name, lower_is_better

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot ``cv_results_`` of a fitted estimator (or of a pipeline that ends in one)."""
        model = model_of(estimator)
        criterion, results = criterion_of(model), model.cv_results_
        kernel = model.best_params_.get("kernel")
        of_kernel = np.array([entry.get("kernel") == kernel for entry in results["params"]])
        shown = np.flatnonzero(_shown(results) & of_kernel)
        candidates = [results["params"][number] for number in shown]
        is_loss = not (criterion in ("auc", "r2", "correlation") or callable(criterion))
        sign = -1.0 if is_loss else 1.0
        name = getattr(criterion, "__name__", "criterion") if callable(criterion) else criterion
        gammas = np.array([_width(entry.get("gamma")) for entry in candidates])
        return cls(
            gammas=gammas,
            alphas=np.array([entry["alpha"] for entry in candidates], dtype=float),
            values=sign * np.asarray(results["mean_test_score"], dtype=float)[shown],
            gamma=_width(getattr(model, "gamma_", None)) if np.isfinite(gammas).any() else np.nan,
            alpha=alpha_of(model),
            value=sign * float(model.best_score_),
            name="held-out " + NAMES.get(name, name.replace("_", " ")),
            lower_is_better=is_loss,
        ).plot(ax=ax)


class RegularizationPathDisplay(_SearchDisplay):
    """The criterion as a function of alpha for every kernel width, with the chosen model marked.

    Parameters
    ----------
    alphas : array of shape (n_candidates,)
        Regularization values, for all widths.
    values : array of shape (n_candidates,)
        Criterion of each candidate.
    gammas : array of shape (n_candidates,)
        Kernel widths; NaN if the kernel has none.
    alpha, value, gamma : float
        The chosen candidate.
    name : str, default="criterion"
        Label of the vertical axis.
    lower_is_better : bool, default=True
        Whether the criterion is a loss.

    Attributes
    ----------
    line_ : matplotlib line of the chosen width
    chosen_ : matplotlib line with the one marker of the chosen candidate

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

    _legend = MappingProxyType({"loc": "best", "bbox_to_anchor": None, "ncols": 1})

    def _draw(self, ax: Any) -> None:
        widths = np.unique(self.gammas[np.isfinite(self.gammas)])
        chosen = self._of_width(self.gamma) if len(widths) else np.ones(len(self.alphas), bool)
        for width in widths:
            rows = self._of_width(width)
            if np.sum(rows) > 1 and not np.array_equal(rows, chosen):
                label = "other widths" if width == widths[0] else None
                self._line(rows, color=QUIET, linewidth=0.9, alpha=0.7, label=label)
        self.line_ = self._line(
            chosen,
            color=COLORS[0],
            linewidth=2.0,
            label=f"gamma = {rounded(self.gamma)}" if np.isfinite(self.gamma) else "criterion",
        )
        (self.chosen_,) = ax.plot(
            [self.alpha],
            [self.value],
            linestyle="none",
            label=f"chosen: alpha = {rounded(self.alpha)}",
            color=COLORS[1],
            marker="o",
            markersize=9,
            markerfacecolor="white",
            markeredgewidth=2,
        )
        ax.set(xscale="log", xlabel="alpha (regularization)", ylabel=self.name)
        ax.xaxis.set_major_formatter("{x:g}")

    def _of_width(self, gamma: float) -> np.ndarray:
        return np.asarray(np.isclose(self.gammas, gamma, rtol=1e-9, atol=0.0, equal_nan=True))

    def _line(self, rows: np.ndarray, **style: Any) -> Any:
        rows = np.flatnonzero(rows & np.isfinite(self.values))
        order = rows[np.argsort(self.alphas[rows])]
        return self.ax_.plot(self.alphas[order], self.values[order], **style)[0]


class CriterionMapDisplay(_SearchDisplay):
    """The criterion by kernel width and regularization as tiles, with the choice marked by a cross.

    The range of alpha differs between widths; tiles that were not tried stay blank. Parameters are
    those of `RegularizationPathDisplay`, with at least two widths; the best values are dark.

    Attributes
    ----------
    tiles_ : matplotlib collection
    colorbar_ : matplotlib color bar

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

    def _draw(self, ax: Any) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        if len(np.unique(self.gammas[np.isfinite(self.gammas)])) < 2 or np.isnan(self.gamma):
            raise ValueError(
                "CriterionMapDisplay needs a model whose gamma was chosen among several values "
                '(gamma="tune"), but cv_results_ has at most one width. '
                "Use RegularizationPathDisplay instead."
            )
        usable = np.isfinite(self.values) & np.isfinite(self.gammas)
        values, bottom = self.values[usable], np.log2(self.alphas[usable]) - 0.5
        # the neighbors of a width are one or two powers of two away; a tile reaches half-way
        widths, place = np.unique(np.log2(self.gammas[usable]).round(9), return_inverse=True)
        borders = borders_of(widths)
        left, width = borders[place], np.diff(borders)[place]
        low, high = np.quantile(values, [0.0, 0.9] if self.lower_is_better else [0.1, 1.0])
        self.tiles_ = ax.add_collection(
            PatchCollection(
                [Rectangle((x, y), w, 1.0) for x, y, w in zip(left, bottom, width, strict=True)],
                cmap="cividis" if self.lower_is_better else "cividis_r",
                edgecolor="face",
                linewidth=0.4,
                array=values,
                clim=(low, max(high, low + 1e-12)),
            )
        )
        ax.plot(
            np.log2([self.gamma]),
            np.log2([self.alpha]),
            linestyle="none",
            marker="X",
            markersize=12,
            markerfacecolor=COLORS[1],
            markeredgecolor="white",
            markeredgewidth=1.6,
        )
        ax.autoscale_view()
        ax.set(
            xlabel="log₂ gamma (small: smooth kernel; cross: chosen)",
            ylabel="log₂ alpha (regularization)",
        )
        self.colorbar_ = self.figure_.colorbar(
            self.tiles_, ax=ax, label=self.name, extend="max" if self.lower_is_better else "min"
        )
        self.colorbar_.outline.set_visible(False)
