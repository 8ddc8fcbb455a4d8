"""Rows to assess."""

from __future__ import annotations

import numpy as np


def two_classes(n=90, shift=1.0, seed=0):
    """Unbalanced classes with names, two rows alike."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n // 3, "sick", "healthy")
    X = rng.normal(size=(n, 3)) + shift * (y == "sick")[:, None]
    X[-1] = X[0]
    return X, y
