"""The best of several variants, without the luck of being picked where it is measured."""

from __future__ import annotations

import numpy as np


def picked_elsewhere(table: np.ndarray) -> float:
    """The mean loss (variants, splits) of the variant that is best on the other splits.

    The best of all on the same splits is small by chance too, the more so the more variants there
    are.
    """
    n = table.shape[1]
    if n < 2:
        return float(table.mean(axis=1).min())
    others = [np.delete(table, k, axis=1).mean(axis=1).argmin() for k in range(n)]
    return float(np.mean([table[best, k] for k, best in enumerate(others)]))
