"""Plots of the page.

Displays drawn by matplotlib, inlined as SVG that follows the page's colours and fonts.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..plotting.style import COLORS, QUIET, axes_of, plain, pyplot, rounded

__all__ = ["Figure", "FitDisplay", "figure", "rounded"]

# matplotlib writes colours as style properties, where CSS variables are allowed: so one drawing
# serves light, dark and print
FOLLOWING = {
    "#000000": "var(--ink)",
    "#222222": "var(--ink)",
    "#8a8a8a": "var(--soft)",
    "#dddddd": "var(--line)",
    "#ffffff": "var(--paper)",
    **{colour.lower(): f"var(--c{index})" for index, colour in enumerate(COLORS)},
}
MOST_MARKS = 2000  # of a scatter plot drawn one by one; more become a picture, which is smaller
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": "#000000",
    "axes.edgecolor": "#8a8a8a",
    "savefig.transparent": True,
    "figure.dpi": 72,
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Figure:
    """An inline drawing with what it says in words."""

    name: str
    svg: str
    alt: str
    caption: str


def figure(name: str, draw: Callable[[], Any], alt: str, caption: str) -> Figure:
    """Call a function that returns a display, and take its figure as SVG."""
    plt = pyplot()
    with plt.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font"
        )  # text stays text: the reader's fonts draw it
        display = draw()
        for axes in display.figure_.axes:
            for collection in axes.collections:
                collection.set_rasterized(len(collection.get_offsets()) > MOST_MARKS)
        buffer = io.StringIO()
        display.figure_.savefig(
            buffer, format="svg", dpi=144, metadata={"Date": None, "Creator": None}
        )
        plt.close(display.figure_)
    return Figure(name, _inline(buffer.getvalue(), name), alt, caption)


def _inline(svg: str, name: str) -> str:
    """The svg element alone.

    Ids made unique on the page, colours that follow it, a size that fits its container.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", svg)
    for colour, variable in FOLLOWING.items():
        svg = re.sub(rf"(fill|stroke): {colour}", rf"\g<1>: {variable}", svg)
    svg = re.sub(r"font: ([^;\"']*?)'[^\"]*?sans-serif", r"font: \g<1>sans-serif", svg)
    return re.sub(
        r'<svg ([^>]*?)width="[\d.]+pt" ',
        r'<svg \g<1>aria-hidden="true" ',
        re.sub(r' height="[\d.]+pt"', "", svg, count=1),
        count=1,
    )


class FitDisplay:
    """Held-out predictions of a regression against what was observed."""

    def __init__(self, observed: np.ndarray, predicted: np.ndarray) -> None:
        self.figure_, ax = axes_of(None, (5.2, 4.2))
        plain(ax)
        low, high = np.nanmin([observed, predicted]), np.nanmax([observed, predicted])
        ax.plot([low, high], [low, high], color=QUIET, linestyle="--", linewidth=1.0)
        ax.scatter(
            observed,
            predicted,
            s=16,
            color=COLORS[0],
            edgecolors="#ffffff",
            linewidths=0.4,
            alpha=0.85,
        )
        ax.set_xlabel("observed")
        ax.set_ylabel("predicted, held out")
