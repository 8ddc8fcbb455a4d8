r"""Leave-pair-out: an area under the ROC curve that is unbiased for few rows.

In leave-one-out, the bias of each model depends on the class of its left-out row, and a model that
has learned nothing gets a pooled AUC of 0. Leave-pair-out compares two rows only with the model
that lacks both (Airola et al. 2011):

    AUC = mean over positive i, negative j of  [d_i > d_j] + ½ [d_i = d_j].

In the *tournament*, every two rows are compared, whatever their classes. The share of comparisons
that a row wins is a score on a common scale, which has a ROC curve (Montoya Perez et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import auc, roc_curve

from ..core.arrays import to_numpy
from ..core.holdout import leave_pairs_out
from ..core.refused import RefusedError
from ..estimators.validation import is_foreign_array
from .decomposed import Decomposed
from .depends import depends
from .lookup import n_rows

NEGLIGIBLE = 1e-12  # of a²: below this, there is no axis, and all decisions are equal


@dataclass(frozen=True)
class LeavePairOut:
    """The result of `leave_pair_out`.

    Attributes
    ----------
    auc : float
        The area under the ROC curve from leave-pair-out; pairs are weighted by the product of the
        weights of their rows.
    n_pairs : int
        Number of pairs of a positive and a negative row.
    wins : array of shape (n_samples,)
        The share of other rows that each row was ranked above, by models trained without both.
    fpr, tpr : arrays
        The ROC curve of the tournament, from `wins`.
    """

    auc: float
    n_pairs: int
    wins: np.ndarray
    fpr: np.ndarray
    tpr: np.ndarray

    @property
    def tournament_auc(self) -> float:
        """The area under the curve of the tournament. It is close to `auc`, and equal to it only
        if the rows can be put into one order.
        """
        return float(auc(self.fpr, self.tpr))

    def __str__(self) -> str:
        return f"AUC {self.auc:.3f} by leave-pair-out ({self.n_pairs:,} pairs)"


def leave_pair_out(estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> LeavePairOut:
    """Area under the ROC curve of a two-class model from leave-pair-out, and the tournament ROC
    curve.

    Parameters
    ----------
    estimator : estimator
        `LeastSquaresSVC` or `KernelFisherDiscriminant` with fixed parameters, for which no model
        is refitted. Others are refused: they would need n(n-1)/2 fits.
    X, y : arrays
        Rows and labels of two classes; the larger label is the positive class.
    sample_weight : array-like of shape (n_samples,), default=None
        Positive weights, used for the fits and for the pairs.

    Returns
    -------
    LeavePairOut
        The area under the ROC curve, and the curve.

    Notes
    -----
    Exact: equal to a refit for each of the n(n-1)/2 pairs, including ties. Cost: O(n³) once and
    O(n²) for all pairs; memory: a dozen n×n matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import LeastSquaresSVC, leave_pair_out
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    >>> X[y == 1, 0] += 1.0
    >>> result = leave_pair_out(LeastSquaresSVC(kernel="linear", alpha=10.0), X, y)
    >>> print(result)
    AUC 0.770 by leave-pair-out (400 pairs)
    """
    positive = _positive(estimator, y, n_rows(X))
    params = None if sample_weight is None else {"sample_weight": sample_weight}
    route = depends(estimator, X, params).route
    if route.name != "one":
        raise RefusedError(
            f"leave_pair_out needs a model with fixed parameters, got {type(estimator).__name__}, "
            f"which needs a fit for every pair of rows ({route.reason}). Fix its parameters (alpha "
            "and gamma as numbers) and leave out rows without a positive weight, or use "
            "cross_val_predict."
        )
    decomposed = Decomposed.of(estimator, X, y, sample_weight)
    weights = np.ones(len(positive)) if sample_weight is None else to_numpy(sample_weight)
    return _result(_differences(decomposed), positive, np.asarray(weights, dtype=float))


def _positive(estimator: Any, y: Any, n_samples: int) -> np.ndarray:
    """Which rows have the larger of two labels; refused where a pair may leave a single class."""
    if not is_classifier(estimator):
        raise TypeError(
            f"leave_pair_out needs a classifier, got {type(estimator).__name__} instead: it "
            "compares rows of two classes."
        )
    y = np.asarray(to_numpy(y) if is_foreign_array(y) else y)
    if len(y) != n_samples:
        raise ValueError(f"X and y must have one entry per row, got {n_samples} and {len(y)}.")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(
            f"leave_pair_out needs two classes, got {len(classes)}: select two of them, or use one "
            "against the rest."
        )
    if np.bincount(codes).min() < 3:
        raise ValueError(
            "leave_pair_out needs at least three rows of each class: after two are left out, the "
            "model must still have both classes."
        )
    return np.asarray(codes == 1)


def _differences(decomposed: Decomposed) -> np.ndarray:
    """Differences (n, n) of the decisions of two rows, by models trained without both."""
    smoother, readout = decomposed.problem.smoother, decomposed.readout
    if decomposed.setup.specification.dropping and decomposed.setup.data.landmarks is not None:
        raise RefusedError(
            "leave_pair_out cannot drop landmarks with their rows: use shared_landmarks=True, or "
            "pass the landmarks as points."
        )
    if readout.needs_scatter and not readout.reduces:
        raise RefusedError(
            "leave_pair_out needs a single target that orders the rows, which a discriminant "
            "without a free bias does not have: use fit_intercept=True, or LeastSquaresSVC."
        )
    values = _of_all_pairs(decomposed)
    difference = values - values.T
    accuracy = 2.0 * smoother.accuracy(decomposed.mu)
    # what differs only by rounding is equal: repeated rows, constant models
    equal = np.abs(difference) <= accuracy * max(1.0, float(np.abs(values).max()))
    return np.where(equal, 0.0, difference)


def _of_all_pairs(decomposed: Decomposed) -> np.ndarray:
    """Values (n, n): [i, j] is that of row i from the model without i and j, for the last column
    of targets, which orders the rows.
    """
    problem = decomposed.problem
    problem = problem.with_targets(to_numpy(problem.targets)[:, -1:])
    rho = leave_pairs_out(problem.smoother, problem.projected, decomposed.mu)
    scale = 1.0 if problem.row_scale is None else to_numpy(problem.row_scale)
    values = to_numpy(problem.targets) - rho / scale
    if decomposed.readout.needs_scatter and not problem.smoother.has_duals:
        values[_without_axis(problem, rho, decomposed.mu)] = 0.0
    return np.asarray(values)


def _without_axis(problem: Any, rho: np.ndarray, mu: float) -> np.ndarray:
    """Where the discriminant without a pair has no axis, a² ≤ 0, which happens for indefinite
    kernels.

    a² = 1 - E n/(n₀n₁), with E = yᵀ(I - H)y of the indicator of one class minus r_i ρ_i + r_j ρ_j.
    """
    r = to_numpy(problem.fit(mu).residual)[:, 0]
    y, w = to_numpy(problem.targets)[:, 0], to_numpy(problem.row_weights)[:, 0]
    part = r[:, None] * rho
    E = float(r @ to_numpy(problem.projected.Y)[:, 0]) - part - part.T
    n = w.sum() - w[:, None] - w[None, :]
    n1 = w @ y - (w * y)[:, None] - (w * y)[None, :]
    return np.asarray(E * n >= (1.0 - NEGLIGIBLE) * n1 * (n - n1))


def _result(difference: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> LeavePairOut:
    above = (difference > 0) + 0.5 * (difference == 0)
    w1, w0 = weights[positive], weights[~positive]
    area = w1 @ above[np.ix_(positive, ~positive)] @ w0 / (w1.sum() * w0.sum())
    met = np.ones_like(above) - np.eye(len(above))
    wins = ((above * met) @ weights) / (met @ weights)
    fpr, tpr, _ = roc_curve(positive, np.round(wins, 12), sample_weight=weights)
    n_pairs = int(positive.sum() * (~positive).sum())
    return LeavePairOut(float(area), n_pairs, wins, fpr, tpr)
