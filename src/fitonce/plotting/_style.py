"""What all displays share.

Matplotlib imported on demand, colours that everyone can tell apart, and plain axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Okabe & Ito's colours, told apart with every common colour vision; black is left to text and the
# yellow is darkened for white paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A500", "#666666")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
QUIET, STRONG = "#8a8a8a", "#222222"


def pyplot() -> Any:
    """matplotlib.pyplot, or an ImportError that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'fitonce[plot]'") from error
    return plt


def axes_of(ax: Any, size: tuple[float, float] = (5.6, 3.8)) -> tuple[Any, Any]:
    """(figure, axes): the given axes, or new ones with a tight layout."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=size, layout="constrained")
    return ax.figure, ax


def plain(ax: Any) -> None:
    """Only the lines that carry something.

    No frame above and to the right, a faint grid below the data.
    """
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def look(index: int) -> dict[str, Any]:
    """Colour and marker of a class: never colour alone. They repeat after 8 × 8 combinations."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
    }


def literal(name: Any, limit: int = 28) -> str:
    """A name as plain text: dollar signs do not start mathematics, long ones are cut."""
    text = str(name).replace("\n", " ")
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")


def names_of(names: Sequence[Any] | None, n: int, what: str, prefix: str) -> list[str]:
    """The given names as text, checked, or prefix0, prefix1, …"""
    if names is None:
        return [f"{prefix}{index}" for index in range(n)]
    if len(names) != n:
        raise ValueError(
            f"{what} must have one entry for each of the {n}, got {len(names)} instead."
        )
    return [str(name) for name in names]


def legend(ax: Any, n_entries: int, **keywords: Any) -> None:
    """A legend beside the axes where it would cover data.

    None where its entries cannot be told apart.
    """
    if 1 < n_entries <= 16:
        columns = 1 if n_entries <= 8 else 2
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            frameon=False,
            borderaxespad=0.0,
            ncols=columns,
            **keywords,
        )


def rounded(value: float) -> str:
    """Three significant digits, for labels."""
    if value == 0:
        return "0"
    return (
        np.format_float_positional(value, 3, fractional=False, trim="-")
        if 1e-4 <= abs(value) < 1e5
        else f"{value:.2e}"
    )
