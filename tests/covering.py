"""Few combinations of settings in which every pair of them occurs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

Row = Mapping[str, Hashable]


def pairs_of(row: Row) -> set[tuple[Hashable, Hashable]]:
    """Every two settings of a row, as pairs of (name, level)."""
    return set(combinations(row.items(), 2))


def covering(rows: Sequence[Row]) -> list[int]:
    """Positions of few rows that hold every pair of levels that any of the rows holds.

    Greedy, so not the fewest, and always the same. Rows of fewer than two settings are all kept.
    """
    pairs = [pairs_of(row) for row in rows]
    uncovered = set().union(*pairs)
    if not uncovered:
        return list(range(len(rows)))
    kept = []
    while uncovered:
        best = max(range(len(rows)), key=lambda i: len(pairs[i] & uncovered))
        kept.append(best)
        uncovered -= pairs[best]
    return sorted(kept)
