"""Prediction sets of classes against literal refits, counted by their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC
from problems import labelled_rows, row_weights

FIXED = {"alpha": 0.3, "gamma": 0.4, "calibration": None}
ESTIMATORS = (KernelFisherDiscriminant, LeastSquaresSVC)


def oddity(model, X):
    """How far the best other class lies above each one (n, c)."""
    decision = model.decision_function(X)
    if decision.ndim == 1:
        return np.column_stack([decision, -decision])
    every = []
    for c in range(decision.shape[1]):
        every.append(np.delete(decision, c, axis=1).max(axis=1) - decision[:, c])
    return np.column_stack(every)


def refits(model, X, y, sets, weights=None):
    for rows in sets:
        kept = np.setdiff1d(np.arange(len(X)), rows)
        yield clone(model).fit(X[kept], y[kept], None if weights is None else weights[kept])


def oddities(model, X, y, X_new, sets, weights=None):
    """Of every row to a model without its set (n), and of new rows to that model (m, n, c)."""
    own, new = np.empty(len(X)), np.empty((len(X_new), len(X), len(np.unique(y))))
    for rows, other in zip(sets, refits(model, X, y, sets, weights), strict=True):
        own[rows] = oddity(other, X[rows])[np.arange(len(rows)), y[rows]]
        new[:, rows] = oddity(other, X_new)[:, None]
    return own, new


def counted(own, new, mass, confidence):
    return np.einsum("mnc,n->mc", own[None, :, None] < new, mass) < confidence - 1e-9


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sets_equal_refits(estimator, n_classes, penalty, weighted):
    X, y = labelled_rows(24, n_classes)
    X_new = labelled_rows(12, n_classes, seed=5)[0]
    weights = row_weights(len(X)) if weighted else None
    model = estimator(**FIXED, penalty=penalty)
    mass = np.full(len(X), 1.0 / (len(X) + 1))
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    alone = [np.array([i]) for i in range(len(X))]
    own, new = oddities(model, X, y, X_new, alone, weights)
    least = np.repeat(new.min(axis=1, keepdims=True), len(X), axis=1)
    folds = [test for _, test in cv.split(X, y)]
    expected = {
        "jackknife+": counted(own, new, mass, 0.6),
        "jackknife-minmax": counted(own, least, mass, 0.6),
        "cv+": counted(*oddities(model, X, y, X_new, folds, weights), mass, 0.6),
    }
    model.fit(X, y, weights)
    for method, sets in expected.items():
        got = model.predict_set(X_new, 0.6, method, cv=cv if method == "cv+" else None)
        np.testing.assert_array_equal(got, sets)
        assert 0 < got.sum() < got.size


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_groups_leave_together_and_count_alike(estimator):
    X, y = labelled_rows(40)
    X_new = labelled_rows(12, seed=5)[0]
    groups = np.random.default_rng(0).integers(9, size=len(X))
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    mass = 1.0 / ((len(sizes) + 1) * sizes[group])
    sets = [test for _, test in LeaveOneGroupOut().split(X, y, groups)]
    model = estimator(**FIXED)
    expected = counted(*oddities(model, X, y, X_new, sets), mass, 0.8)
    got = model.fit(X, y, groups=groups).predict_set(X_new, 0.8)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("n_classes", "landmarks", "weighted"), [(2, False, True), (3, False, False), (3, True, True)]
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_full_conformal_sets_equal_refits(estimator, n_classes, landmarks, weighted):
    X, y = labelled_rows(12, n_classes)
    X_new = labelled_rows(3, n_classes, seed=5)[0]
    weights = row_weights(len(X)) if weighted else None
    model = estimator(**FIXED, landmarks=X[:7] if landmarks else None)
    expected = np.empty((len(X_new), n_classes), dtype=bool)
    for row, x in enumerate(X_new):
        for label in range(n_classes):
            X1, y1 = np.vstack([X, x]), np.append(y, label)
            w1 = None if weights is None else np.append(weights, 1.0)
            sets = [np.array([i]) for i in range(len(X1))]
            others = enumerate(refits(model, X1, y1, sets, w1))
            E = np.array([oddity(other, X1[i : i + 1])[0, y1[i]] for i, other in others])
            expected[row, label] = np.sum(E[-1] <= E) > 0.3 * (len(X) + 1)
    got = model.fit(X, y, weights).predict_set(X_new, 0.7, "full")
    np.testing.assert_array_equal(got, expected)
    assert 0 < got.sum() < got.size


def test_calibration_does_not_change_the_sets():
    X, y = labelled_rows(60, 2)
    X_new = labelled_rows(20, 2, seed=5)[0]
    plain, moved = (
        LeastSquaresSVC(alpha=0.3, gamma=0.4, calibration=name).fit(X, y)
        for name in (None, "sigmoid")
    )
    np.testing.assert_array_equal(plain.predict_set(X_new), moved.predict_set(X_new))


def test_a_class_that_leaves_with_its_only_row():
    X, y = labelled_rows(20, 2)
    y[0] = 2
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="too few rows outside"):
            estimator(**FIXED).fit(X, y).predict_set(X)


def test_too_few_rows_give_every_class():
    X, y = labelled_rows(12, 2)
    for method in ("jackknife+", "jackknife-minmax", "full"):
        model = LeastSquaresSVC(**FIXED).fit(X, y)
        assert np.all(model.predict_set(X, 0.99, method))
