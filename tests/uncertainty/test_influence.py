"""Influence of each row on each other, against n literal refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from problems import row_weights, rows_for
from reference import assert_close, output

FIXED = {"alpha": 0.3, "gamma": 0.4}


def by_refits(model, X, y, weights, sets):
    before = output(clone(model).fit(X, y, weights), X)
    changes = []
    for rows in sets:
        kept = np.setdiff1d(np.arange(len(X)), rows)
        w = None if weights is None else weights[kept]
        changes.append(output(clone(model).fit(X[kept], y[kept], w), X) - before)
    return np.array(changes)


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", [{}, {"penalty": "dual"}, {"landmarks": True}], ids=str)
@pytest.mark.parametrize("estimator", [KernelRidge, LeastSquaresSVC, KernelFisherDiscriminant])
def test_every_entry_equals_a_refit(estimator, settings, weighted):
    for outputs in (1, 2):
        X, y = rows_for(estimator, 20, n_classes=outputs + 1, n_targets=outputs, repeated=2)
        weights = row_weights(len(X)) if weighted else None
        used = {**settings, "landmarks": X[:8]} if settings.get("landmarks") else settings
        model = estimator(**FIXED, **used)
        if estimator is not KernelRidge:
            model.set_params(calibration=None)
        expected = by_refits(model, X, y, weights, [[row] for row in range(len(X))])
        assert_close(model.fit(X, y, weights).influence(), expected, 1e-8)


def test_on_the_diagonal_are_the_held_out_values():
    X, y = rows_for(KernelRidge, 25)
    model = KernelRidge(**FIXED).fit(X, y)
    change = model.held_out_prediction_ - model.predict(X)
    assert_close(np.diagonal(model.influence()), change)


def test_groups_leave_whole():
    X, y = rows_for(KernelRidge, 24)
    groups = np.arange(24) % 5
    model = KernelRidge(**FIXED)
    sets = [np.flatnonzero(groups == group) for group in range(5)]
    expected = by_refits(model, X, y, None, sets)
    assert_close(model.fit(X, y, groups=groups).influence(), expected, 1e-8)
