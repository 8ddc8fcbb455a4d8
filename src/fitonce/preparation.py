"""Columns prepared for a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.preprocessing import StandardScaler

from .core.arrays import asarray_like, namespace
from .core.refused import RefusedError


class ClippedScaler(StandardScaler):
    r"""Standardize columns, and pull values far from the mean smoothly towards a limit.

    With the mean m and the standard deviation s of each column on the training rows,

        z = (x - m)/s ↦ z/√(1 + (z/limit)²)

    which is nearly z in the middle and never exceeds the limit (Holzmüller et al. 2024). A row
    that lies far outside the training rows comes near their edge instead, so that a linear or
    polynomial kernel does not extrapolate, and an outlier among the training rows has no kernel
    value out of all proportion. Missing values stay missing.

    Parameters
    ----------
    limit : float, default=3.0
        In standard deviations. Infinity is StandardScaler.
    copy : bool, default=True
        As in StandardScaler.

    Attributes
    ----------
    mean_, var_, scale_, n_samples_seen_, n_features_in_, feature_names_in_
        As in StandardScaler.

    Examples
    --------
    >>> from fitonce import ClippedScaler
    >>> scaler = ClippedScaler().fit([[0.0], [1.0], [2.0]])
    >>> scaler.transform([[1.0], [2.0], [1000.0]]).round(2).tolist()
    [[0.0], [1.13], [3.0]]
    """

    def __init__(self, limit: float = 3.0, *, copy: bool = True) -> None:
        super().__init__(copy=copy)
        self.limit = limit

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the means and variances; `fit` calls this once."""
        if not (isinstance(self.limit, (int, float, np.number)) and self.limit > 0):
            raise RefusedError(
                f"limit must be a positive number of standard deviations, got {self.limit!r} "
                "instead."
            )
        super().partial_fit(X, y, sample_weight)
        return self

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """The clipped columns (n_samples, n_features)."""
        Z = _as_array(super().transform(X, copy))
        return Z / namespace(Z).hypot(asarray_like(1.0, Z, Z.dtype), Z / self.limit)

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """The columns as they were; what is at the limit or beyond becomes very large."""
        Z = _as_array(X)
        xp = namespace(Z)
        inside = xp.clip(1.0 - (Z / self.limit) ** 2, min=float(xp.finfo(Z.dtype).tiny))
        return super().inverse_transform(Z / xp.sqrt(inside), copy)


def _as_array(X: Any) -> Any:
    """An array of any library; a frame or a list as NumPy."""
    return X if is_array_api_obj(X) else np.asarray(X)


__all__ = ["ClippedScaler"]
