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


def masses(y, group, per_class):
    """What each row counts (n, c) for every candidate; its groups count alike."""
    mass = np.zeros((len(y), len(np.unique(y))))
    for candidate in range(mass.shape[1]):
        compared = [i for i in range(len(y)) if y[i] == candidate or not per_class]
        present = [group[i] for i in compared]
        for i in compared:
            n_groups = len(set(present))
            mass[i, candidate] = 1.0 / ((n_groups + 1) * present.count(group[i]))
    return mass


def least(new, mass):
    """The smallest oddity of new rows to the models without the rows that are compared."""
    return np.where(mass > 0, new, np.inf).min(axis=1, keepdims=True) + np.zeros_like(new)


def counted(own, new, mass, confidence):
    return np.einsum("mnc,nc->mc", own[None, :, None] < new, mass) < confidence - 1e-9


@pytest.mark.pairwise
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sets_equal_refits(estimator, n_classes, penalty, weighted, per_class):
    X, y = labelled_rows(24, n_classes)
    X_new = labelled_rows(12, n_classes, seed=5)[0]
    weights = row_weights(len(X)) if weighted else None
    model = estimator(**FIXED, penalty=penalty)
    mass = masses(y, np.arange(len(X)), per_class)
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    alone = [np.array([i]) for i in range(len(X))]
    own, new = oddities(model, X, y, X_new, alone, weights)
    folds = [test for _, test in cv.split(X, y)]
    expected = {
        "jackknife+": counted(own, new, mass, 0.6),
        "jackknife-minmax": counted(own, least(new, mass), mass, 0.6),
        "cv+": counted(*oddities(model, X, y, X_new, folds, weights), mass, 0.6),
    }
    model.fit(X, y, weights)
    for method, sets in expected.items():
        asked = {"per_class": per_class, "cv": cv if method == "cv+" else None}
        got = model.predict_set(X_new, 0.6, method, **asked)
        np.testing.assert_array_equal(got, sets)
        assert 0 < got.sum() < got.size


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_groups_leave_together_and_count_alike(estimator, per_class):
    X, y = labelled_rows(40)
    X_new = labelled_rows(12, seed=5)[0]
    groups = np.random.default_rng(0).integers(9, size=len(X))
    mass = masses(y, groups, per_class)
    sets = [test for _, test in LeaveOneGroupOut().split(X, y, groups)]
    model = estimator(**FIXED)
    expected = counted(*oddities(model, X, y, X_new, sets), mass, 0.8)
    got = model.fit(X, y, groups=groups).predict_set(X_new, 0.8, per_class=per_class)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("n_classes", "landmarks", "weighted", "per_class"),
    [(2, False, True, False), (3, False, False, True), (3, True, True, False)],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_full_conformal_sets_equal_refits(estimator, n_classes, landmarks, weighted, per_class):
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
            compared = y1 == label if per_class else np.full(len(y1), True)
            expected[row, label] = np.sum(E[-1] <= E[compared]) > 0.3 * compared.sum()
    got = model.fit(X, y, weights).predict_set(X_new, 0.7, "full", per_class=per_class)
    np.testing.assert_array_equal(got, expected)
    assert 0 < got.sum() < got.size


@pytest.mark.parametrize("method", ["jackknife+", "cv+", "jackknife-minmax", "full"])
def test_sets_per_class_cover_a_rare_class(method):
    rng, hits = np.random.default_rng(0), {False: [], True: []}
    for _ in range(10):
        y = (np.arange(1100) % 10 == 0).astype(int)
        X = rng.normal(size=(1100, 2)) + 1.2 * y[:, None]
        model = KernelFisherDiscriminant("linear", alpha=1.0, calibration=None)
        model.fit(X[:100], y[:100])
        rare = X[100:][y[100:] == 1]
        for per_class, found in hits.items():
            found.append(model.predict_set(rare, 0.9, method, per_class=per_class)[:, 1].mean())
    assert np.mean(hits[False]) < 0.6  # the rows of the frequent class fill the 90 %
    assert 0.84 < np.mean(hits[True]) < 0.99


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
