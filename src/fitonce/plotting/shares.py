"""Displays of how much several kernels explain: bars, and flat maps of many targets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..assessment import KernelShares, kernel_shares
from .style import COLORS, QUIET, Display, literal, plain, pyplot

MEASURES = {"product": "product measure", "unique": "unique share"}
MOST_DOTS = 400  # number of targets up to which each share is drawn next to the bar


class KernelSharesDisplay(Display):
    """Shares of several kernels in held-out R²: one bar per kernel, the mean over targets.

    With several targets, each is a dot on its bar. Light bars are unique shares: the loss without
    the kernel.

    Parameters
    ----------
    shares : KernelShares
        The result of `fitonce.kernel_shares`.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(self, *, shares: KernelShares) -> None:
        self.shares = shares
        self._size = (6.0, 1.4 + 0.55 * len(shares.names))

    @classmethod
    def from_shares(cls, shares: KernelShares, *, ax: Any = None) -> Self:
        """Plot the result of `fitonce.kernel_shares`.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce import KernelRidge, KernelSum, kernel_shares
        >>> from fitonce.plotting import KernelSharesDisplay
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((60, 6))
        >>> y = X[:, 0] + rng.standard_normal(60)
        >>> kernel = KernelSum([("a", "linear", [0, 1, 2]), ("b", "linear", [3, 4, 5])])
        >>> shares = kernel_shares(KernelRidge(kernel=kernel).fit(X, y))
        >>> display = KernelSharesDisplay.from_shares(shares)
        >>> display.ax_.get_xlabel()
        'share of held-out R²'
        """
        return cls(shares=shares).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, **keywords: Any
    ) -> Self:
        """Run `fitonce.kernel_shares` with the given keywords and plot the result."""
        return cls.from_shares(kernel_shares(estimator, X, y, **keywords), ax=ax)

    def _draw(self, ax: Any) -> None:
        plain(ax)
        ax.grid(False, axis="y")
        shares = self.shares
        places = np.arange(len(shares.names))
        both = shares.unique is not None
        height = 0.36 if both else 0.6
        for number, (name, words) in enumerate(MEASURES.items()):
            values = getattr(shares, name)
            if values is None:
                continue
            at = places + (number - 0.5) * height * both
            table = values.reshape(len(values), -1)
            ax.barh(
                at,
                table.mean(axis=1),
                height=0.9 * height,
                color=COLORS[0] if number == 0 else "#a8cfe6",
                label=words,
            )
            if 1 < table.shape[1] <= MOST_DOTS:
                spread = np.linspace(-0.3, 0.3, table.shape[1]) * height
                ax.plot(table, at[:, None] + spread, ".", color=QUIET, markersize=2.5, alpha=0.6)
        ax.axvline(0.0, color=QUIET, linewidth=1.0)
        ax.set_yticks(places, [literal(name) for name in shares.names])
        ax.set_ylim(len(places) - 0.5, -0.5)
        ax.set_xlabel("share of held-out R²")
        ax.set_title(f"held-out R² = {np.mean(shares.r2):.2f}", loc="right", fontsize="medium")
        if both:
            ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)


class ShareMapDisplay:
    """Shares of many targets on a flat map: one panel per kernel, all with the same color scale.

    Parameters
    ----------
    shares : KernelShares
        The result of `fitonce.kernel_shares` for several targets.
    places : array of shape (n_targets, 2), or tuple of two ints
        Position of each target on the map, or the shape of a grid that the targets fill row by row.
    measure : {"product", "unique"}, default="product"
    limit : float, default=None
        End of the color scale; by default the 99th percentile of the shares.

    Attributes
    ----------
    axes_, figure_ : matplotlib axes, one for each kernel, and figure
    """

    def __init__(
        self, *, shares: KernelShares, places: Any, measure: str = "product", limit: Any = None
    ) -> None:
        values = getattr(shares, measure) if measure in MEASURES else None
        if values is None or values.ndim != 2:
            raise ValueError(
                'measure must be "product", or "unique" if unique shares were computed, and there '
                f"must be several targets, got {measure!r} and shares of shape "
                f"{shares.product.shape} instead."
            )
        self.shares, self.measure, self.values = shares, measure, values
        self.places = _places(places, values.shape[1])
        self.grid = places if isinstance(places, tuple) else None
        largest = float(np.percentile(np.abs(values), 99))
        self.limit = largest or 1.0 if limit is None else float(limit)

    @classmethod
    def from_shares(
        cls, shares: KernelShares, places: Any, *, measure: str = "product", limit: Any = None
    ) -> Self:
        """Plot the result of `fitonce.kernel_shares`, with the positions of the targets."""
        return cls(shares=shares, places=places, measure=measure, limit=limit).plot()

    def plot(self, axes: Any = None) -> Self:
        """Draw on the given axes, one for each kernel, or on new ones."""
        n_kernels = len(self.shares.names)
        if axes is None:
            size = (2.6 * n_kernels + 1.0, 2.9)
            _, axes = pyplot().subplots(1, n_kernels, figsize=size, layout="constrained")
        self.axes_ = np.atleast_1d(axes)
        self.figure_ = self.axes_[0].figure
        for ax, name, values in zip(self.axes_, self.shares.names, self.values, strict=True):
            drawn = self._panel(ax, values)
            ax.set_title(
                f"{literal(name)}: mean {values.mean().round(2) + 0.0:.2f}", fontsize="medium"
            )
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_aspect("equal")
            ax.spines[:].set_visible(False)
        words = f"{MEASURES[self.measure]} in held-out R²"
        self.figure_.colorbar(drawn, ax=list(self.axes_), label=words, shrink=0.85, extend="both")
        return self

    def _panel(self, ax: Any, values: np.ndarray) -> Any:
        colours = {"cmap": "RdBu_r", "vmin": -self.limit, "vmax": self.limit}
        if self.grid is not None:
            return ax.imshow(values.reshape(self.grid), interpolation="nearest", **colours)
        size = float(np.clip(4000.0 / len(values), 0.3, 60.0))
        return ax.scatter(*self.places.T, c=values, s=size, linewidths=0, **colours)


def _places(places: Any, n_targets: int) -> np.ndarray:
    if isinstance(places, tuple) and len(places) == 2 and np.prod(places) == n_targets:
        return np.indices(places).reshape(2, -1).T[:, ::-1]
    if not isinstance(places, tuple) and np.shape(places) == (n_targets, 2):
        return np.asarray(places, dtype=np.float64)
    raise ValueError(
        f"places must be the positions ({n_targets}, 2) of the targets, or the shape of a grid "
        f"with {n_targets} cells, got {places!r:.80} instead."
    )
