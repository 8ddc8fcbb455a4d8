"""The same answers from arrays of another namespace, from sparse rows, and from many rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, leave_pair_out
from problems import labelled_rows, numbered_rows
from reference import assert_close

FIXED = {"alpha": 0.3, "gamma": 0.4}


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, LeastSquaresSVC])
def test_another_namespace(estimator, penalty):
    xp = pytest.importorskip("array_api_strict")
    X, y = labelled_rows(30)
    X_new = labelled_rows(8, seed=5)[0]
    model = estimator(**FIXED, penalty=penalty)
    plain, foreign = model.fit(X, y), estimator(**FIXED, penalty=penalty)
    foreign.fit(xp.asarray(X), xp.asarray(y))
    for method in ("jackknife+", "cv+", "jackknife-minmax", "full")[: 4 - (penalty == "dual")]:
        for per_class in (False, True):
            asked = {"confidence": 0.8, "method": method, "per_class": per_class}
            got = foreign.predict_set(xp.asarray(X_new), **asked)
            np.testing.assert_array_equal(got, plain.predict_set(X_new, **asked))
    assert_close(foreign.influence(), plain.influence())
    two = (y > 0).astype(int)
    expected = leave_pair_out(model, X, two)
    assert leave_pair_out(model, xp.asarray(X), xp.asarray(two)).auc == expected.auc


def test_spreads_of_another_namespace():
    xp = pytest.importorskip("array_api_strict")
    X, y = numbered_rows(30)
    plain = KernelRidge(**FIXED).fit(X, y)
    foreign = KernelRidge(**FIXED).fit(xp.asarray(X), xp.asarray(y))
    for keyword in ("return_std", "return_cov"):
        _, spread = foreign.predict(xp.asarray(X[:6]), **{keyword: True})
        assert_close(np.asarray(spread), plain.predict(X[:6], **{keyword: True})[1])
    for method in ("jackknife+", "jackknife-minmax"):
        asked = {"method": method, "scaled": True}
        got = foreign.predict_interval(xp.asarray(X[:6]), **asked)
        assert_close(np.asarray(got), plain.predict_interval(X[:6], **asked))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_rows(kernel, intercept):
    X, y = numbered_rows(30)
    X[np.abs(X) < 0.5] = 0.0
    settings = {**FIXED, "kernel": kernel, "fit_intercept": intercept}
    dense = KernelRidge(**settings).fit(X, y)
    sparse = KernelRidge(**settings).fit(sp.csr_matrix(X), y)
    for method in ("jackknife+", "full"):
        got = sparse.predict_interval(sp.csr_matrix(X[:5]), 0.8, method)
        assert_close(got, dense.predict_interval(X[:5], 0.8, method))
    for keyword in ("return_std", "return_cov"):
        got = sparse.predict(sp.csr_matrix(X[:5]), **{keyword: True})[1]
        assert_close(got, dense.predict(X[:5], **{keyword: True})[1])


def test_many_rows_have_the_answers_of_few(monkeypatch):
    """More new rows than training rows go through another product, and through blocks."""
    X, y = numbered_rows(24)
    X_new = numbered_rows(60, seed=5)[0]
    model = KernelRidge(**FIXED).fit(X, y)
    for method in ("jackknife+", "cv+", "jackknife-minmax", "full"):
        few = np.concatenate(
            [model.predict_interval(part, 0.8, method) for part in np.array_split(X_new, 6)]
        )
        assert_close(model.predict_interval(X_new, 0.8, method), few)
        with monkeypatch.context() as patch:
            patch.setattr("fitonce.estimators.intervals.ELEMENTS", 24 * 25)
            assert_close(model.predict_interval(X_new, 0.8, method), few)
