"""What all displays share: drawing, matplotlib imported on demand, colors that everyone can
distinguish, and plain axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np

# Okabe & Ito's colors, which can be distinguished with every common type of color vision; black is
# reserved for text and the yellow is darkened for white paper
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A500", "#666666")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
QUIET, STRONG = "#8a8a8a", "#222222"
SHORT_LEGEND = 42  # characters that fit above the axes
ABOVE: dict[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (0.0, 1.0),
    "borderaxespad": 0.2,
    "columnspacing": 1.2,
    "handletextpad": 0.4,
}
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
DOTS: dict[str, Any] = {"s": 22, "linewidths": 0.4, "edgecolors": "white", "alpha": 0.85}
CROSSES = {**DOTS, "s": 38, "marker": "X", "color": COLORS[1]}


def pyplot() -> Any:
    """matplotlib.pyplot, or an ImportError that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'fitonce[plot]'") from error
    return plt


class Display:
    """A plot that can be drawn again, on the matplotlib axes `ax_` of `figure_`."""

    _size = (5.6, 3.8)  # of a new figure, in inches
    _legend: Mapping[str, Any] = MappingProxyType({})  # where it is not above or beside the axes

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        self.figure_, self.ax_ = axes_of(ax, self._size)
        plain(self.ax_)
        self._draw(self.ax_)
        legend(self.ax_, self._legend)
        return self

    def _draw(self, ax: Any) -> None:
        """Fill the axes."""


def axes_of(ax: Any, size: tuple[float, float] = (5.6, 3.8)) -> tuple[Any, Any]:
    """(figure, axes): the given axes, or new ones with a tight layout."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=size, layout="constrained")
    return ax.figure, ax


def plain(ax: Any) -> None:
    """Reduce the axes to an open frame and a faint grid below the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def look(index: int) -> dict[str, Any]:
    """Color and marker of a class, never color alone. They repeat after 8 × 8 combinations."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[(index + index // len(COLORS)) % len(MARKERS)],
    }


def literal(name: Any, limit: int = 28) -> str:
    """A name as plain text: dollar signs do not start math mode, long names are cut, and lone
    surrogates, which cannot be written to a file, become question marks.
    """
    text = str(name).replace("\n", " ").encode("utf-8", "replace").decode("utf-8")
    return (text if len(text) <= limit else text[: limit - 1] + "…").replace("$", r"\$")


def names_of(names: Sequence[Any] | None, default: Sequence[Any], what: str) -> list[str]:
    """The given names as text, as many as the default ones; or the default ones."""
    names = default if names is None else names
    if len(names) != len(default):
        raise ValueError(
            f"{what} must have one entry for each of the {len(default)}, got {len(names)} instead."
        )
    return [str(name) for name in names]


def legend(ax: Any, keywords: Mapping[str, Any]) -> None:
    """A legend above the axes, or beside them if it is long, so that it covers no data; or where
    the keywords of matplotlib say.

    No legend for a single entry, and if there are too many to distinguish.
    """
    labels = ax.get_legend_handles_labels()[1]
    n_entries = len(labels)
    short = n_entries <= 4 and sum(map(len, labels)) <= SHORT_LEGEND
    columns = n_entries if short else 1 + (n_entries > 8) + (n_entries > 32)
    given = {"ncols": columns, **(ABOVE if short else BESIDE), **keywords}
    if 1 < n_entries <= 48:
        ax.legend(frameon=False, fontsize="small", **given)


def rounded(value: float, digits: int = 3) -> str:
    """A few significant digits, for labels."""
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return np.format_float_positional(value, digits, fractional=False, trim="-")
    return f"{value:.{digits - 1}e}"


def borders_of(places: np.ndarray) -> np.ndarray:
    """The borders between n places on an axis: n + 1 numbers."""
    half = 0.5 * np.diff(places) if len(places) > 1 else np.array([0.5])
    return np.concatenate([places[:1] - half[0], places[:-1] + half, places[-1:] + half[-1]])
