"""Simulated problems with a known best classifier.

Every ``make_x(n_samples)`` draws rows X and labels y. For two classes, in {-1, +1}, ``x_bayes(X)``
gives the log-odds of class +1 for each row under the same distribution: its sign is the best
possible prediction, with error `BAYES_ERROR`. For more classes, 0, 1, …, it gives the
log-probability of each, and the best prediction is the argmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr, log_softmax, logit, logsumexp

BAYES_ERROR = {
    "torus": 0.0489003,  # quadrature over the radius
    "twonorm": 0.0227501,  # Φ(-2)
    "ringnorm": 0.0123966,  # two non-central chi-square tails
    "waveform": 0.0826,  # Monte Carlo, 2·10⁷ rows: standard error 6e-5
    "threenorm": 0.1046332,  # quadrature along the line between two of its centers
    "checkerboard": 0.1,  # by construction
    "waveform3": 0.1329,  # Monte Carlo, 3·10⁶ rows: standard error 9e-5
}
"""Error of the best prediction, ``x_bayes``, for data of ``make_x``."""

_NORM_FEATURES = 20
_NORM_OFFSET = 2.0 / np.sqrt(_NORM_FEATURES)  # a of twonorm, ringnorm and threenorm
_ALTERNATING = np.where(np.arange(_NORM_FEATURES) % 2 == 0, 1.0, -1.0)

_CHECKERBOARD_FLIPPED = 0.1

# points 1, …, 21 of the two triangles that each of Breiman's classes mixes, (3, 2, 21); the first
# class is +1 here
_WAVE_PEAKS = np.array([[7, 11], [11, 15], [7, 15]])
_WAVES = np.maximum(6.0 - np.abs(np.arange(1, 22) - _WAVE_PEAKS[..., None]), 0.0)

Sample = tuple[np.ndarray, np.ndarray]  # rows X and labels y


def make_torus(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """A Gaussian inside a ring: the synthetic problem of Cawley and Talbot (2003) and Saadi et al.
    (2007).

    A quarter of the rows (rounded) are class +1, N(0, I) in the plane. The others are class -1,
    with radius N(4, 1) and a uniform angle. The Bayes error is 4.89 %; the boundary is at radius
    2.15.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 2)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    rng = _generator(random_state)
    y = rng.permutation(np.where(np.arange(_count(n_samples)) < round(n_samples / 4), 1, -1))
    normal = rng.normal(size=(n_samples, 2))
    radius, angle = rng.normal(4.0, 1.0, n_samples), rng.uniform(0.0, 2.0 * np.pi, n_samples)
    annulus = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.where(y[:, None] > 0, normal, annulus), y


def torus_bayes(X: Any) -> np.ndarray:
    """Return the log-odds of class +1 of `make_torus` given the rows.

    Parameters
    ----------
    X : array of shape (n, 2)
        Rows.

    Returns
    -------
    array of shape (n,)
        Values of the rows.
    """
    r = np.linalg.norm(_rows(X, 2), axis=1)
    with np.errstate(divide="ignore"):
        # radius -r at the opposite angle is the same point; 2πr turns densities of the radius into
        # densities in the plane
        annulus = (
            np.logaddexp(-0.5 * (r - 4.0) ** 2, -0.5 * (r + 4.0) ** 2)
            - 0.5 * np.log(2.0 * np.pi)
            - np.log(2.0 * np.pi * r)
        )
    return np.asarray(-0.5 * r**2 - np.log(2.0 * np.pi) - annulus - np.log(3.0))


def make_twonorm(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """Draw Breiman's twonorm: N(a·1, I) for class +1 against N(-a·1, I) in 20 dimensions.

    a = 2/√20, equal priors. The best classifier is the sign of the sum of the features; its error
    is Φ(-2) = 2.28 %.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 20)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    rng, y = _fair_labels(n_samples, random_state)
    return rng.normal(size=(n_samples, _NORM_FEATURES)) + _NORM_OFFSET * y[:, None], y


def twonorm_bayes(X: Any) -> np.ndarray:
    """Return the log-odds of class +1 of `make_twonorm` given the rows.

    Parameters
    ----------
    X : array of shape (n, 20)
        Rows.

    Returns
    -------
    array of shape (n,)
        Values of the rows.
    """
    return np.asarray(2.0 * _NORM_OFFSET * _rows(X, _NORM_FEATURES).sum(axis=1))


def make_ringnorm(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """Draw Breiman's ringnorm: N(0, 4I) for class +1 around N(a·1, I) in 20 dimensions.

    a = 2/√20, equal priors. The best classifier is a ball around 4a/3; its error is 1.24 % (Breiman
    gives 1.3 %).

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 20)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    rng, y = _fair_labels(n_samples, random_state)
    Z = rng.normal(size=(n_samples, _NORM_FEATURES))
    return np.where(y[:, None] > 0, 2.0 * Z, _NORM_OFFSET + Z), y


def ringnorm_bayes(X: Any) -> np.ndarray:
    """Return the log-odds of class +1 of `make_ringnorm` given the rows.

    Parameters
    ----------
    X : array of shape (n, 20)
        Rows.

    Returns
    -------
    array of shape (n,)
        Values of the rows.
    """
    X = _rows(X, _NORM_FEATURES)
    distance = ((X - _NORM_OFFSET) ** 2).sum(axis=1) / 2.0 - (X**2).sum(axis=1) / 8.0
    return np.asarray(distance - _NORM_FEATURES * np.log(2.0))


def make_threenorm(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """Draw Breiman's threenorm, in 20 dimensions.

    Class +1 is N(a·1, I) and N(-a·1, I) in equal parts, class -1 N(a·(1, -1, 1, …), I), with a =
    2/√20 and equal priors. In the plane of the three centers, the best boundary is v = ½ log cosh
    2u; its error is 10.5 %.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 20)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    rng, y = _fair_labels(n_samples, random_state)
    side = np.where(rng.integers(2, size=n_samples) > 0, 1.0, -1.0)
    centre = np.where(y[:, None] > 0, side[:, None] * np.ones(_NORM_FEATURES), _ALTERNATING)
    return rng.normal(size=(n_samples, _NORM_FEATURES)) + _NORM_OFFSET * centre, y


def threenorm_bayes(X: Any) -> np.ndarray:
    """Return the log-odds of class +1 of `make_threenorm` given the rows.

    All centers have the same distance from 0.

    Parameters
    ----------
    X : array of shape (n, 20)
        Rows.

    Returns
    -------
    array of shape (n,)
        Values of the rows.
    """
    X = _NORM_OFFSET * _rows(X, _NORM_FEATURES)
    along = X.sum(axis=1)
    return np.asarray(np.logaddexp(along, -along) - np.log(2.0) - X @ _ALTERNATING)


def make_checkerboard(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """A checkerboard of 4 by 4 fields on the unit square, black +1 and white -1, with 10 % wrong
    labels.

    Rows are uniform, and a label is wrong with probability 0.1, which is the Bayes error. A linear
    rule is hardly better than chance.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 2)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    rng = _generator(random_state)
    X = rng.uniform(size=(_count(n_samples), 2))
    return X, np.where(rng.uniform(size=n_samples) < _CHECKERBOARD_FLIPPED, -1, 1) * _field(X)


def checkerboard_bayes(X: Any) -> np.ndarray:
    """Return the log-odds of class +1 of `make_checkerboard` given the rows.

    Parameters
    ----------
    X : array of shape (n, 2)
        Rows.

    Returns
    -------
    array of shape (n,)
        Values of the rows.
    """
    return np.asarray(_field(_rows(X, 2)) * logit(1.0 - _CHECKERBOARD_FLIPPED))


def _field(X: np.ndarray) -> np.ndarray:
    return np.where(np.floor(4.0 * X).sum(axis=1) % 2 == 0, 1, -1)


def make_waveform(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """A two-class variant of Breiman's waveforms: 21 noisy points on a random mixture of two of
    three triangles.

    A row is u·h + (1-u)·h' + N(0, I) with u uniform on (0, 1) and triangles h of height 6 that
    peak at points 7, 11 or 15. Breiman has three equally probable classes, one for each pair of
    triangles. Here, as in Rätsch's benchmark, class +1 is the pair (7, 11) and class -1 the other
    two. The Bayes error is 8.3 %.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 21)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    X, pair = make_waveform3(n_samples, random_state=random_state)
    return X, np.where(pair == 0, 1, -1)


def waveform_bayes(X: Any) -> np.ndarray:
    """Return the log-odds of class +1 of `make_waveform` given the rows.

    Parameters
    ----------
    X : array of shape (n, 21)
        Rows.

    Returns
    -------
    array of shape (n,)
        Values of the rows.
    """
    one, other, another = waveform3_bayes(X).T
    return np.asarray(one - np.logaddexp(other, another))


def make_waveform3(n_samples: int = 100, *, random_state: Any = None) -> Sample:
    """Draw Breiman's waveforms with three equally probable classes.

    As `make_waveform`, with one class for each pair of triangles: 0 for (7, 11), 1 for (11, 15), 2
    for (7, 15). The Bayes error is 13.3 % (Breiman et al. give 14 %).

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 21)
        Rows.
    y : array of shape (n_samples,)
        Labels.
    """
    rng = _generator(random_state)
    pair = rng.integers(len(_WAVES), size=_count(n_samples))
    u = rng.uniform(size=(n_samples, 1))
    first, second = _WAVES[pair, 0], _WAVES[pair, 1]
    return u * first + (1.0 - u) * second + rng.normal(size=first.shape), pair


def waveform3_bayes(X: Any) -> np.ndarray:
    """Return the log-probabilities of the classes of `make_waveform3` given the rows.

    Parameters
    ----------
    X : array of shape (n, 21)
        Rows.

    Returns
    -------
    array of shape (n, 3)
        Values of the rows.
    """
    X = _rows(X, _WAVES.shape[2])
    mixtures = [_log_wave_mixture(X, first, second) for first, second in _WAVES]
    return np.asarray(log_softmax(np.column_stack(mixtures), axis=1))


def _log_wave_mixture(X: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log ∫₀¹ exp(-½‖x - u·first - (1-u)·second‖²) du, up to a constant that is the same for all
    pairs of waves.
    """
    d = first - second
    length = np.linalg.norm(d)
    at = (X - second) @ d / length  # the projection of x on the line through both waves
    off = ((X - second) ** 2).sum(axis=1) - at**2
    return np.asarray(-0.5 * off + _log_normal_probability(-at, length - at) - np.log(length))


def _log_normal_probability(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log(Φ(high) - Φ(low)) without cancellation: in the tail, for the mirror image."""
    mirror = low > 0
    ends = np.where(mirror, -low, high), np.where(mirror, -high, low)
    return np.asarray(logsumexp(log_ndtr(ends), axis=0, b=[[1.0], [-1.0]]))


def _fair_labels(n_samples: int, random_state: Any) -> tuple[np.random.Generator, np.ndarray]:
    """A generator, and labels -1 and +1 that it drew with equal probabilities."""
    rng = _generator(random_state)
    return rng, np.where(rng.integers(2, size=_count(n_samples)) > 0, 1, -1)


def _count(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"n_samples must be an integer of at least 1, got {value!r} instead.")
    return int(value)


def _rows(X: Any, n_features: int) -> np.ndarray:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(
            f"X must have shape (n, {n_features}), got {rows.shape} instead: these data have "
            f"{n_features} features."
        )
    return rows


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)
