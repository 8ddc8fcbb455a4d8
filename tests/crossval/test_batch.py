"""All splits in one batch: scikit-learn's numbers, warnings and NaN without its loop."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
from refit_cases import assert_same_outcome
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

import fitonce
import fitonce.core.smoothers
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.crossval import lookup
from problems import labelled_rows, numbered_rows

SPLITTERS = {
    "leave-one-out": LeaveOneOut(),
    "folds of two sizes": KFold(7, shuffle=True, random_state=0),
    "stratified": StratifiedKFold(4),
    "overlapping": ShuffleSplit(5, test_size=0.3, random_state=0),
    "masks": [(np.arange(31) >= 8, np.arange(31) < 8), (np.arange(31) < 20, np.arange(31) >= 20)],
}
every_splitter = pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
classifiers = pytest.mark.parametrize(
    "model",
    [
        KernelFisherDiscriminant(gamma=0.3, alpha=0.1),
        LeastSquaresSVC(gamma=0.3, alpha=0.1, penalty="dual"),
    ],
    ids=["fisher", "svc"],
)


@pytest.fixture
def fits(monkeypatch):
    """How often scikit-learn's loop has fitted the lookup estimator."""
    counted = []
    fit = lookup.RowLookupEstimator.fit

    def counting(self, *args, **kwargs):
        counted.append(1)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(lookup.RowLookupEstimator, "fit", counting)
    return counted


@pytest.mark.pairwise
@every_splitter
@classifiers
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "scoring", [None, "accuracy", "balanced_accuracy", ["accuracy", "balanced_accuracy"]], ids=str
)
def test_scores_of_labels_are_scikit_learns(model, cv, n_classes, scoring):
    X, y = labelled_rows(31, n_classes)
    labels = np.array(["ash", "birch", "cedar"])[y]
    assert_same_outcome("cross_validate", model, X, labels, cv=cv, scoring=scoring)
    if not isinstance(scoring, list):
        assert_same_outcome("cross_val_score", model, X, labels, cv=cv, scoring=scoring)


@pytest.mark.pairwise
@every_splitter
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        {"one": "neg_mean_absolute_error", "two": "r2"},
    ],
    ids=str,
)
def test_scores_of_numbers_are_scikit_learns(cv, n_targets, scoring):
    """R² of single rows is NaN, with scikit-learn's warning."""
    X, y = numbered_rows(31, n_targets)
    if isinstance(cv, StratifiedKFold):
        cv = KFold(4)
    assert_same_outcome("cross_validate", KernelRidge(0.1, gamma=0.3), X, y, cv=cv, scoring=scoring)


@classifiers
def test_the_loop_is_skipped_where_it_can_be(model, fits):
    X, y = labelled_rows(31, 2)
    for scoring in (None, "accuracy"):
        fitonce.cross_val_score(model, X, y, cv=LeaveOneOut(), scoring=scoring)
    for method in ("predict", "decision_function"):
        fitonce.cross_val_predict(model, X, y, cv=LeaveOneOut(), method=method)
    assert not fits
    fitonce.cross_val_score(model, X, y, cv=5, scoring="roc_auc")  # not one of those known here
    assert len(fits) == 5


@classifiers
def test_the_loop_runs_where_something_depends_on_it(model, fits):
    X, y = labelled_rows(31, 2)
    y[:30], y[30] = 0, 1  # without its only row a class is gone: that fold has to be fitted
    assert_same_outcome("cross_val_score", model, X, y, cv=LeaveOneOut())
    assert_same_outcome("cross_val_predict", model, X, y, cv=LeaveOneOut())
    assert fits


def test_leave_one_out_takes_one_batch(monkeypatch):
    """Not one deletion a row: all rows leave by one formula."""
    X, y = labelled_rows(31, 3)
    model = KernelFisherDiscriminant(gamma=0.3, alpha=0.1)
    expected = sklearn.model_selection.cross_val_predict(
        model, X, y, cv=LeaveOneOut(), method="decision_function"
    )
    calls = []
    smoother = fitonce.core.smoothers.FunctionNorm
    leave_out = smoother.leave_out
    monkeypatch.setattr(smoother, "leave_out", lambda *args: calls.append(1) or leave_out(*args))
    got = fitonce.cross_val_predict(model, X, y, cv=LeaveOneOut(), method="decision_function")
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert not calls
