"""Helpers for encoding models, which predict responses of the brain, or of any slow system, from
features over time.

>>> import numpy as np
>>> from fitonce.encoding import delayed, noise_ceiling
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def delayed(X: Any, delays: Sequence[int] = (1, 2, 3, 4), runs: Any = None) -> np.ndarray:
    """Put features at several delays side by side: a finite impulse response for every feature.

    Delays do not cross from one run to the next: at the start of a run, missing values are zero.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features in temporal order, one run after the other.
    delays : sequence of int, default=(1, 2, 3, 4)
        Delays in rows. Row i has the features of row i - delay; a negative delay looks ahead.
    runs : array-like of shape (n_samples,), default=None
        The run of each row; by default all rows are one run.

    Returns
    -------
    array of shape (n_samples, n_delays * n_features)
        All features at the first delay, then all at the second, and so on.

    Notes
    -----
    Delays use other rows, so compute them before splitting the rows, and leave out whole runs in
    cross-validation: neighboring rows of a run share features.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce.encoding import delayed
    >>> delayed([[1.0], [2.0], [3.0], [4.0]], delays=[0, 1], runs=["a", "a", "b", "b"])
    array([[1., 0.],
           [2., 1.],
           [3., 0.],
           [4., 3.]])
    """
    X = np.asarray(X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features, got {X.ndim} instead.")
    steps = np.atleast_1d(np.asarray(delays))
    if steps.ndim != 1 or steps.size == 0 or steps.dtype.kind not in "iu":
        raise ValueError(f"delays must be integers (numbers of rows), got {delays!r} instead.")
    columns = [np.zeros_like(X) for _ in steps]
    for start, stop in _pieces(runs, len(X)):
        for column, step in zip(columns, steps.tolist(), strict=True):
            length = stop - start - abs(step)
            if length > 0:
                to, source = start + max(step, 0), start + max(-step, 0)
                column[to : to + length] = X[source : source + length]
    return np.hstack(columns)


def _pieces(runs: Any, n: int) -> list[tuple[int, int]]:
    """Start and end of each run."""
    if runs is None:
        return [(0, n)]
    runs = np.asarray(runs)
    if runs.shape != (n,):
        raise ValueError(
            f"runs must have one entry per row ({n}), got an array of shape {runs.shape} instead."
        )
    borders = np.flatnonzero(runs[1:] != runs[:-1]) + 1
    pieces = list(zip([0, *borders.tolist()], [*borders.tolist(), n], strict=True))
    if n and len(pieces) > len(np.unique(runs)):
        raise ValueError(
            "the rows of each run must be contiguous and in temporal order, but a run continues "
            "after another has begun: sort the rows by run and time first."
        )
    return pieces


@dataclass(frozen=True)
class NoiseCeiling:
    """The best possible prediction, estimated from repeated measurements.

    Attributes
    ----------
    signal : float or array of shape (n_targets,)
        Variance over rows of the part that the repeats share, an unbiased estimate.
    noise : float or array of shape (n_targets,)
        Variance of a single measurement around it.
    n_repeats : int
    """

    signal: Any
    noise: Any
    n_repeats: int

    @property
    def r2(self) -> Any:
        """The R² of a perfect prediction of the mean of the repeats; 0 if there is no signal."""
        return self._share(self.noise / self.n_repeats)

    @property
    def r2_single(self) -> Any:
        """The R² of a perfect prediction of a single measurement."""
        return self._share(self.noise)

    @property
    def correlation(self) -> Any:
        """The correlation of a perfect prediction with the mean of the repeats."""
        return np.sqrt(self.r2)

    def _share(self, noise: Any) -> Any:
        """The share of the signal in signal plus noise; 0 without any."""
        signal = np.maximum(self.signal, 0.0)
        total = signal + noise
        share = np.divide(signal, total, out=np.zeros_like(total), where=total > 0)
        return share if share.ndim else float(share)


def noise_ceiling(repeats: Any) -> NoiseCeiling:
    r"""Estimate the noise ceiling of responses that were measured several times.

    With r repeats y of n rows, their mean m and the variance s² of the repeats around it,

        noise = s² = Σ (y - m)²/(n (r - 1)),        signal = Var(m) - s²/r

    Parameters
    ----------
    repeats : array-like of shape (n_repeats, n_samples) or (n_repeats, n_samples, n_targets)
        The responses to the same stimuli.

    Returns
    -------
    NoiseCeiling
        ``r2``, ``r2_single`` and ``correlation`` of a perfect model.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce.encoding import noise_ceiling
    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal(500)
    >>> repeats = signal + rng.standard_normal((4, 500))  # as much noise as signal
    >>> ceiling = noise_ceiling(repeats)
    >>> print(f"{ceiling.r2_single:.2f}, {ceiling.r2:.2f}")  # truly 0.5 and 0.8
    0.52, 0.81
    """
    Y = np.asarray(repeats, dtype=np.float64)
    if Y.ndim not in (2, 3) or Y.shape[0] < 2 or Y.shape[1] < 2:
        raise ValueError(
            "repeats must have the shape (n_repeats, n_samples) or (n_repeats, n_samples, "
            f"n_targets) with at least two repeats and two samples, got {Y.shape} instead."
        )
    if not np.all(np.isfinite(Y)):
        raise ValueError("repeats contain NaN or infinity: leave out such rows or targets.")
    r, n = Y.shape[:2]
    mean = Y.mean(axis=0)
    noise = np.sum((Y - mean) ** 2, axis=(0, 1)) / (n * (r - 1))
    signal = mean.var(axis=0, ddof=1) - noise / r
    return NoiseCeiling(signal, noise, r)


__all__ = ["NoiseCeiling", "delayed", "noise_ceiling"]
