"""What the tables of the papers' pages share: results, numbers as they are printed, Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "papers"
DOCS = HERE.parent.parent / "docs"
sys.path.insert(0, str(DOCS))

from _marked import Marked, table  # noqa: E402
from recording import read  # noqa: E402

__all__ = ["DOCS", "RESULTS", "Marked", "number", "plus_minus", "result", "table"]


def result(name: str) -> dict[str, Any]:
    return read(RESULTS / f"{name}.json")


def number(value: float) -> str:
    """Three figures: plain where that is short, with a power of ten elsewhere."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def plus_minus(pair: Sequence[float], digits: int = 1) -> str:
    return f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f}"
