"""Weights on the simplex: how much each of several models says in a mixture of them.

Models are judged together by what they say about rows they have not seen. Everything here is on the
host and small: K models, n rows.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize

ROWS_PER_ROUND, FEWEST_ROUNDS, MOST_ROUNDS = 5.0, 10, 2000  # of the iteration for mixtures
# how many rows the equal weights count, for least squares: on few rows the weights of members
# follow noise; what committees reach: benchmarks/models.py tables
ROWS_OF_START = 10.0
REST = 0.1  # the lightest models that have no more than this together are dropped
TINY = float(np.finfo(float).tiny)


def mixture_weights(p: np.ndarray, row_weights: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Weights (K,) that raise the likelihood Σ_i v_i log Σ_k w_k p_k(i) of a mixture.

    p (K, n) are probabilities of the true class of row i. Expectation and maximization for the
    shares of a mixture whose parts are fixed:

        w_k ← w_k · Σ_i v_i p_k(i) / Σ_l w_l p_l(i) / Σ_i v_i

    The likelihood rises with every round and has one maximum. Few rounds leave models that are
    almost equally good almost equal weights; the more rows, the more rounds.
    """
    total = float(row_weights.sum())
    rounds = int(np.clip(total / ROWS_PER_ROUND, FEWEST_ROUNDS, MOST_ROUNDS))
    v = row_weights / total
    w = start / start.sum()
    for _ in range(rounds):
        w = w * (p @ (v / np.maximum(w @ p, TINY)))
    return np.asarray(w / w.sum())


def without_rest(weights: np.ndarray, rest: float = REST) -> np.ndarray:
    """Weights (K,) on the simplex without the lightest, which have at most `rest` together."""
    order = np.argsort(-weights, kind="stable")
    heavier = np.cumsum(weights[order]) - weights[order]  # than each, together
    kept = np.where(heavier < 1.0 - rest, weights[order], 0.0)
    result = np.zeros(len(weights))
    result[order] = kept / kept.sum()
    return result


def least_squares_weights(
    residuals: np.ndarray, row_weights: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Weights (K,) on the simplex that make the squared error of the mixture small without going
    far from those of the start s. For residuals r (K, n, t) and row weights v

        L(w) = Σ_i v_i ‖Σ_k w_k r_k(i)‖²/Σ_i v_i,

    the weights minimize L(w) + λ ‖w - s‖² with λ = `ROWS_OF_START` K min_k L(e_k)/Σ_i v_i. With
    few rows it is chance which of many models is ahead, and the mean of all is safer.

    Weights add up to one, so that w - s = Σ_k w_k (e_k - s): λ adds K rows of residuals. The point
    of a convex hull nearest to the origin is a problem of non-negative least squares (Lawson and
    Hanson 1974): with u = c w, c ≥ 0,

        min ‖R u‖² + (1 - Σ u)²    is, over c, a/(1 + a) for a = ‖R w‖²,

    which rises with a. Most weights are zero where rows are many.
    """
    share = row_weights / row_weights.sum()
    rows = np.sqrt(share)[:, None] * residuals
    points = rows.reshape(len(residuals), -1)
    losses = np.sum(points**2, axis=1)
    strength = ROWS_OF_START * len(points) * losses.min() / row_weights.sum()
    apart = np.sqrt(strength) * (np.eye(len(points)) - start / start.sum())
    points = np.concatenate([points, apart], axis=1)
    scale = float(np.sqrt(np.mean(np.sum(points**2, axis=1))))
    if scale == 0.0:
        return np.full(len(points), 1.0 / len(points))
    triangle = np.linalg.qr(points.T / scale, mode="r")
    system = np.concatenate([triangle, np.ones((1, len(points)))])
    u, _ = scipy.optimize.nnls(system, np.append(np.zeros(len(triangle)), 1.0))
    return np.asarray(u / u.sum())
