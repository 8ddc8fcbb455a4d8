r"""Leave-pair-out: an area under the ROC curve that is unbiased for few rows.

Decisions of different training sets are not on the same scale. In leave-one-out, the bias of each
model depends on the class of its left-out row, and a model that has learned nothing gets a pooled
AUC of 0. Leave-pair-out compares two rows only with the model that lacks both (Airola et al. 2011):

    AUC = mean over positive i, negative j of  [d_i > d_j] + ½ [d_i = d_j].

In the *tournament*, every two rows are compared, whatever their classes. The share of comparisons
that a row wins is a score on a common scale, which has a ROC curve (Montoya Perez et al. 2019).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_curve

from ..core.all_pairs import leave_pairs_out
from ..core.arrays import to_numpy
from ..core.ties import ROUNDING
from ..estimators.validation import is_foreign_array
from .decomposed import Decomposed
from .routes import RefitWarning, Route, choose_route
from .stand_in import Shared, n_rows

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
    route : Route
        "one" for the closed form, "refit" if a model was fitted for every pair.
    """

    auc: float
    n_pairs: int
    wins: np.ndarray
    fpr: np.ndarray
    tpr: np.ndarray
    route: Route

    @property
    def tournament_auc(self) -> float:
        """The area under the curve of the tournament. It is close to `auc`, and equal to it only
        if the rows can be put into one order.
        """
        return float(np.sum(np.diff(self.fpr) * 0.5 * (self.tpr[1:] + self.tpr[:-1])))

    def __str__(self) -> str:
        return f"AUC {self.auc:.3f} by leave-pair-out ({self.n_pairs:,} pairs), route {self.route}"


def leave_pair_out(
    estimator: Any, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
) -> LeavePairOut:
    """Area under the ROC curve of a two-class model from leave-pair-out, and the tournament ROC
    curve.

    Parameters
    ----------
    estimator : estimator
        A classifier with a ``decision_function``. `LeastSquaresSVC` and `KernelFisherDiscriminant`
        with fixed parameters need no refit. All others, including tuned models and pipelines, are
        fitted for every pair, with a `RefitWarning`.
    X, y : arrays
        Rows and labels of two classes; the larger label is the positive class.
    groups : array-like of shape (n_samples,), default=None
        If given, the groups of both rows are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Positive weights, used for the fits and for the pairs.

    Returns
    -------
    LeavePairOut

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
    AUC 0.770 by leave-pair-out (400 pairs), route one (fixed parameters)
    """
    codes = _two_classes(estimator, y)
    n = len(codes)
    given = None if sample_weight is None else _weights(sample_weight, n)
    groups = np.arange(n) if groups is None else np.asarray(to_numpy(groups))
    if len(groups) != n or n_rows(X) != n:
        raise ValueError(
            f"X, y and groups must have one entry per row, got {n_rows(X)}, {n} and {len(groups)}."
        )
    _check_enough(codes, groups)
    route = choose_route(estimator, X, None if given is None else {"sample_weight": given})
    if route.name == "one":
        difference = _closed_form(estimator, X, y, given, groups)
    else:
        route = Route("refit", f"{route.reason}: one fit for every pair")
        difference = _by_refits(estimator, X, np.asarray(y), given, groups)
    return _result(difference, codes == 1, np.ones(n) if given is None else given, route)


def _two_classes(estimator: Any, y: Any) -> np.ndarray:
    if not is_classifier(estimator):
        raise TypeError(
            f"leave_pair_out needs a classifier, got {type(estimator).__name__} instead: it "
            "compares rows of two classes."
        )
    y = np.asarray(to_numpy(y) if is_foreign_array(y) else y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(
            f"leave_pair_out needs two classes, got {len(classes)}: select two of them, or use one "
            "against the rest."
        )
    return codes


def _weights(given: Any, n: int) -> np.ndarray:
    weights = np.asarray(to_numpy(given), dtype=float)
    if weights.shape != (n,) or not np.all(weights > 0) or not np.all(np.isfinite(weights)):
        raise ValueError(
            f"sample_weight must have {n} positive numbers: leave out rows with zero weight."
        )
    return weights


def _check_enough(codes: np.ndarray, groups: np.ndarray) -> None:
    """Check that both classes remain if any two rows (groups) are left out."""
    _, number = np.unique(groups, return_inverse=True)
    counts = np.zeros((2, number.max() + 1))
    np.add.at(counts, (codes, number), 1)
    two_largest = np.sort(counts, axis=1)[:, -2:].sum(axis=1)
    if np.any(counts.sum(axis=1) <= two_largest):
        raise ValueError(
            "leave_pair_out needs at least three rows (or groups) of each class: after two are "
            "left out, the model must still have both classes."
        )


# ---- decisions by models without both rows -------------------------------------------------------


def _closed_form(
    estimator: Any, X: Any, y: Any, weights: np.ndarray | None, groups: np.ndarray
) -> np.ndarray:
    decomposed = Decomposed.of(estimator, X, y, weights)
    smoother, mu = decomposed.problem.smoother, decomposed.mu
    if smoother.has_duals and decomposed.setup.data.landmarks is not None:
        raise ValueError(
            "leave_pair_out cannot drop landmarks with their rows: use shared_landmarks=True, or "
            "pass the landmarks as points."
        )
    single = len(np.unique(groups)) == len(groups)
    # a discriminant without a free bias orders rows by both of its targets
    by_column = single and (decomposed.readout.reduces or not decomposed.readout.needs_scatter)
    values = _single_rows(decomposed) if by_column else _whole_groups(decomposed, groups)
    difference = values - values.T
    return _tied(difference, values, 2.0 * smoother.accuracy(mu))


def _tied(difference: np.ndarray, values: np.ndarray, accuracy: float) -> np.ndarray:
    """Zero if values differ only by rounding: repeated rows, constant models."""
    equal = np.abs(difference) <= accuracy * max(1.0, float(np.abs(values).max()))
    return np.where(equal, 0.0, difference)


def _column(decomposed: Decomposed) -> tuple[Any, np.ndarray]:
    """The problem of the last column of targets, which orders the rows, and its scale."""
    problem = decomposed.problem
    last = problem.with_targets(to_numpy(problem.targets)[:, -1:])
    scale = problem.row_scale
    return last, np.ones(problem.n_samples) if scale is None else to_numpy(scale)[:, 0]


def _single_rows(decomposed: Decomposed) -> np.ndarray:
    """Values (n, n): [i, j] is that of row i from the model without i and j."""
    problem, s = _column(decomposed)
    rho = leave_pairs_out(problem.smoother, problem.projected, decomposed.mu)
    values = to_numpy(problem.targets) - rho / s[:, None]
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


def _whole_groups(decomposed: Decomposed, groups: np.ndarray) -> np.ndarray:
    """Decisions (n, n) with the groups of both rows left out."""
    values = np.zeros((len(groups), len(groups)))
    for rows, one, other in _pairs_of_groups(groups):
        held_out = np.zeros(len(groups))
        held_out[rows] = decomposed.output(rows, rows, "decision_function")
        values[np.ix_(one, other)] = held_out[one][:, None]
        values[np.ix_(other, one)] = held_out[other][:, None]
    return values


def _pairs_of_groups(
    groups: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The left-out rows, and the rows of either group, for every two groups and each alone."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    for number, one in enumerate(members):
        yield one, one, one
        for other in members[number + 1 :]:
            yield np.sort(np.concatenate([one, other])), one, other


def _by_refits(
    estimator: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, groups: np.ndarray
) -> np.ndarray:
    """Differences (n, n) of decisions from one literal fit for every two groups."""
    warnings.warn(
        f"fitonce has no closed form for this {type(estimator).__name__}: it is fitted for every "
        "pair. To avoid this, fix its parameters (alpha and gamma as numbers).",
        RefitWarning,
        stacklevel=3,
    )
    shared = Shared(estimator, X, y)
    difference = np.zeros((len(y), len(y)))
    for rows, one, other in _pairs_of_groups(groups):
        if len(rows) == 1:
            continue
        train = np.setdiff1d(np.arange(len(y)), rows)
        given = {} if weights is None else {"sample_weight": weights[train]}
        model = clone(estimator).fit(shared.rows(train, train), y[train], **given)
        held_out = np.zeros(len(y))
        held_out[rows] = np.ravel(to_numpy(model.decision_function(shared.rows(rows, train))))
        part = _tied(held_out[one][:, None] - held_out[other], held_out, ROUNDING)
        difference[np.ix_(one, other)], difference[np.ix_(other, one)] = part, -part.T
    return difference


def _result(
    difference: np.ndarray, positive: np.ndarray, weights: np.ndarray, route: Route
) -> LeavePairOut:
    above = (difference > 0) + 0.5 * (difference == 0)
    w1, w0 = weights[positive], weights[~positive]
    auc = w1 @ above[np.ix_(positive, ~positive)] @ w0 / (w1.sum() * w0.sum())
    met = np.ones_like(above) - np.eye(len(above))
    wins = ((above * met) @ weights) / (met @ weights)
    fpr, tpr, _ = roc_curve(positive, np.round(wins, 12), sample_weight=weights)
    n_pairs = int(positive.sum() * (~positive).sum())
    return LeavePairOut(float(auc), n_pairs, wins, fpr, tpr, route)
