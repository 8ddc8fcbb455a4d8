"""Leave-pair-out against a literal fit for every pair."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, leave_pair_out
from fitonce.core.refused import RefusedError
from problems import labelled_rows, row_weights

FIXED = {"gamma": 0.4, "alpha": 0.3, "calibration": None}
ESTIMATORS = (LeastSquaresSVC, KernelFisherDiscriminant)
SETTINGS = {
    "rbf": {},
    "dual": {"penalty": "dual"},
    "linear": {"kernel": "linear"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.6, "coef0": -1.0, "alpha": 30.0},
    "tiny alpha": {"alpha": 1e-6},
    "landmarks": {"landmarks": "given"},
}


def rows(n: int = 11) -> tuple[np.ndarray, np.ndarray]:
    """Unbalanced classes; a row is repeated in its class, another in the other one."""
    X, y = labelled_rows(n, 2, seed=2)
    own, other = np.flatnonzero(y == 1)[:2], np.flatnonzero(y == 0)[0]
    X[own[1]], X[other] = X[own[0]], X[own[0]]
    return X, y


def by_refits(model, X, y, weights=None):
    """AUC and shares of meetings won, by definition."""
    n = len(y)
    w = np.ones(n) if weights is None else weights
    above = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            left = np.setdiff1d(np.arange(n), [i, j])
            given = {} if weights is None else {"sample_weight": weights[left]}
            d = clone(model).fit(X[left], y[left], **given).decision_function(X[[i, j]])
            tie = abs(d[0] - d[1]) <= 1e-9 * np.abs(d).max()
            above[i, j] = 0.5 if tie else float(d[0] > d[1])
            above[j, i] = 1.0 - above[i, j]
    pairs = np.outer(w * (y == 1), w * (y == 0))
    wins = above @ w / (w.sum() - w)
    return np.sum(pairs * above) / pairs.sum(), wins


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_pair_equals_a_refit(estimator, setting, weighted):
    X, y = rows()
    weights = row_weights(len(X)) if weighted else None
    settings = {**FIXED, **SETTINGS[setting]}
    if "landmarks" in settings:
        settings["landmarks"] = X[:8]
    model = estimator(**settings)
    auc, wins = by_refits(model, X, y, weights)
    result = leave_pair_out(model, X, y, sample_weight=weights)
    np.testing.assert_allclose(result.wins, wins, atol=1e-12)
    assert result.auc == pytest.approx(auc, abs=1e-12)
    expected = roc_auc_score(y, wins.round(12), sample_weight=weights)
    assert result.tournament_auc == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_constant_model_gives_one_half(estimator):
    X, y = rows(40)
    model = estimator(gamma=1e-3, alpha=1e14)
    assert leave_pair_out(model, X, y).auc == 0.5
    # where leave-one-out, pooled, gives nothing
    model.fit(X, y)
    assert roc_auc_score(y, model.held_out_decision_) < 0.01


def test_noise_gives_one_half_on_average():
    rng = np.random.default_rng(0)
    model = LeastSquaresSVC(kernel="linear", alpha=1.0)
    found = []
    for _ in range(60):
        X, y = rng.normal(size=(20, 3)), rng.permutation(np.arange(20) % 2)
        found.append(leave_pair_out(model, X, y).auc)
    assert abs(np.mean(found) - 0.5) < 3 * np.std(found) / np.sqrt(60)


def test_precomputed_kernels_and_named_labels():
    X, y = rows()
    K = np.exp(-0.4 * ((X[:, None] - X) ** 2).sum(axis=2))
    named = np.where(y == 1, "patient", "control")
    one = leave_pair_out(LeastSquaresSVC(**FIXED), X, y)
    other = leave_pair_out(LeastSquaresSVC("precomputed", alpha=0.3), K, named)
    assert one.auc == pytest.approx(other.auc) and "leave-pair-out" in str(one)


def test_an_indefinite_kernel_may_leave_a_discriminant_without_an_axis():
    """It then says the same of all rows, though the indicators that it predicts differ."""
    X, y = rows()
    v = (y - y.mean()) / np.linalg.norm(y - y.mean())
    K = 0.3 * X @ X.T - 5.0 * np.outer(v, v)
    model = KernelFisherDiscriminant("precomputed", alpha=9.0, calibration=None)
    above = np.full((len(y), len(y)), 0.5)
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            left = np.setdiff1d(np.arange(len(y)), [i, j])
            d = (
                clone(model)
                .fit(K[np.ix_(left, left)], y[left])
                .decision_function(K[[i, j]][:, left])
            )
            above[i, j] = 0.5 if abs(d[0] - d[1]) < 1e-9 else d[0] > d[1]
    expected = above[np.ix_(y == 1, y == 0)]
    assert np.mean(expected == 0.5) > 0.5
    assert leave_pair_out(model, K, y).auc == pytest.approx(expected.mean(), abs=1e-12)


def test_what_cannot_be_asked_for():
    X, y = rows()
    model = LeastSquaresSVC(**FIXED)
    with pytest.raises(TypeError, match="needs a classifier"):
        leave_pair_out(KernelRidge(1.0), X, y)
    with pytest.raises(ValueError, match="needs two classes, got 3"):
        leave_pair_out(model, *labelled_rows(20, 3))
    with pytest.raises(ValueError, match="three rows"):
        leave_pair_out(model, X, np.arange(len(y)) < 2)
    for other in (LogisticRegression(), clone(model).set_params(alpha=[0.3])):
        with pytest.raises(RefusedError, match="a fit for every pair of rows"):
            leave_pair_out(other, X, y)
    unbiased = KernelFisherDiscriminant(**FIXED, fit_intercept=False)
    with pytest.raises(RefusedError, match="a single target that orders the rows"):
        leave_pair_out(unbiased, X, y)
    with pytest.raises(RefusedError, match="without a positive weight"):
        leave_pair_out(model, X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="one entry per row"):
        leave_pair_out(model, X, y[:2])
