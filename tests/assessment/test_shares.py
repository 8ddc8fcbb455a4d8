"""Shares of kernels, against parts that literally refitted models predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, KernelSum, kernel_shares

PARTS = [("a", "linear", slice(0, 5)), ("b", "rbf", [5, 6]), ("c", "linear", [7, 8])]


def rows(n: int = 40, t: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 9))
    Y = (
        X[:, :5] @ rng.standard_normal((5, t))
        + np.sin(X[:, 5:6])
        + 0.5 * rng.standard_normal((n, t))
    )
    return X, Y + 10.0


def literal(model: Any, X: np.ndarray, Y: np.ndarray, cv: Any, weights: Any = None) -> np.ndarray:
    """Parts (B, n, t) by refitting, from public attributes and scikit-learn's kernels."""
    parts = np.zeros((3, *Y.shape))
    for train, test in cv.split(X):
        w = np.ones(len(train)) if weights is None else weights[train]
        fitted = clone(model).fit(X[train], Y[train], w)
        theta, gamma = fitted.kernel_.weights, fitted.kernel_.gamma["b"]
        for b, K in enumerate(
            [
                lambda A, B: A[:, :5] @ B[:, :5].T,
                lambda A, B, g=gamma: rbf_kernel(A[:, 5:7], B[:, 5:7], g),
                lambda A, B: A[:, 7:] @ B[:, 7:].T,
            ]
        ):
            mean = w @ K(X[train], X[train]) / w.sum()
            name = "abc"[b]
            parts[b, test] = theta[name] * (K(X[test], X[train]) - mean) @ fitted.dual_coef_
    return parts


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(4)])
def test_parts_are_those_of_refits(cv: Any, weighted: bool) -> None:
    X, Y = rows()
    weights = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float) if weighted else None
    kernel = KernelSum(PARTS, [0.5, 1.0, 0.2], gamma=0.3)
    model = KernelRidge(0.7, kernel=kernel, cv=None if isinstance(cv, LeaveOneOut) else cv)
    fixed = KernelRidge(0.7, kernel=kernel)
    params = {} if weights is None else {"sample_weight": weights}
    shares = kernel_shares(fixed, X, Y, cv=cv, params=params)
    model.fit(X, Y, weights)
    expected = literal(fixed, X, Y, cv, weights)
    np.testing.assert_allclose(shares.predicted, expected, rtol=1e-8, atol=1e-9)
    held_out = model.held_out_prediction_
    r2 = r2_score(Y, held_out, sample_weight=weights, multioutput="raw_values")
    np.testing.assert_allclose(shares.r2, r2)
    np.testing.assert_allclose(shares.product.sum(axis=0) + shares.rest, r2)
    w = np.ones((len(Y), 1)) if weights is None else weights[:, None]
    y = Y - np.average(Y, axis=0, weights=weights)
    by_hand = np.sum(w * expected * (2 * Y - held_out - (Y - y)), axis=1) / np.sum(w * y**2, axis=0)
    np.testing.assert_allclose(shares.product, by_hand, rtol=1e-7, atol=1e-9)
    for b, name in enumerate("abc"):
        other = clone(model).set_params(kernel=kernel.without(name)).fit(X, Y, weights)
        without = r2_score(
            Y, other.held_out_prediction_, sample_weight=weights, multioutput="raw_values"
        )
        np.testing.assert_allclose(shares.unique[b], r2 - without, atol=1e-9)


def test_nested_shares_tune_again_on_every_training_set() -> None:
    X, Y = rows()
    model = KernelRidge(kernel=KernelSum(PARTS))
    shares = kernel_shares(model, X, Y, cv=KFold(3), unique=False)
    np.testing.assert_allclose(
        shares.predicted, literal(model, X, Y, KFold(3)), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(shares.product.sum(axis=0) + shares.rest, shares.r2)
    assert shares.unique is None


def test_one_target_a_pipeline_and_rows_tested_several_times() -> None:
    X, Y = rows()
    y = Y[:, 0]
    fixed = KernelRidge(0.7, kernel=KernelSum(PARTS, [0.5, 1.0, 0.0], gamma=0.3))
    shares = kernel_shares(
        make_pipeline(StandardScaler(), fixed),
        X,
        y,
        cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    )
    assert shares.product.shape == (3,) and shares.predicted.shape == (3, 40)
    assert shares.product[2] == 0.0 and abs(shares.unique[2]) < 1e-12
    assert abs(shares.product.sum() + shares.rest - shares.r2) < 1e-12
    assert "unique share" in str(shares)
    once = kernel_shares(fixed, X, y, cv=[(np.arange(30), np.arange(30, 40))], unique=False)
    assert np.isnan(once.predicted[:, :30]).all() and np.isfinite(once.r2)


def test_without_the_only_kernel_with_weight_the_mean_is_left() -> None:
    X, Y = rows()
    weights = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float)
    tuned = KernelRidge(kernel=KernelSum(PARTS, [1.0, 0.0, 0.0], gamma=0.3)).fit(X, Y, weights)
    model = KernelRidge(0.7, kernel=tuned.kernel_)
    shares = kernel_shares(model, X, Y, cv=KFold(4), params={"sample_weight": weights})
    means = np.zeros_like(Y)
    for train, test in KFold(4).split(X):
        means[test] = np.average(Y[train], axis=0, weights=weights[train])
    r2 = r2_score(Y, means, sample_weight=weights, multioutput="raw_values")
    np.testing.assert_allclose(shares.unique[0], shares.r2 - r2, rtol=1e-9)
    np.testing.assert_allclose(shares.unique[1:], 0.0, atol=1e-12)


def test_a_pipeline_has_the_weighted_shares_of_its_model() -> None:
    X, Y = rows()
    weights = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float)
    model = KernelRidge(0.7, kernel=KernelSum(PARTS, [0.5, 1.0, 0.2], gamma=0.3))
    bare = kernel_shares(model, X, Y, cv=4, params={"sample_weight": weights})
    given = {"kernelridge__sample_weight": weights}
    piped = kernel_shares(make_pipeline(FunctionTransformer(), model), X, Y, cv=4, params=given)
    np.testing.assert_allclose(piped.r2, bare.r2, rtol=1e-10)
    np.testing.assert_allclose(piped.product, bare.product, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(piped.unique, bare.unique, rtol=1e-9, atol=1e-12)


def test_names_of_a_table_and_refusals() -> None:
    pandas = pytest.importorskip("pandas")
    X, Y = rows()
    frame = pandas.DataFrame(X, columns=list("pqrstuvwx"))
    named = KernelSum([("a", "linear", list("pqrst")), ("b", "linear", ["u", "v"])], [1, 1])
    model = KernelRidge(0.7, kernel=named)
    shares = kernel_shares(model, frame, Y)
    assert shares.unique is not None and np.all(shares.unique[0] > 0.3)
    with pytest.raises(TypeError, match="KernelSum as its kernel"):
        kernel_shares(KernelRidge(), X, Y)
    with pytest.raises(TypeError, match="of a regression"):
        kernel_shares(KernelFisherDiscriminant(kernel=named), frame, Y)
    with pytest.raises(ValueError, match="landmarks"):
        kernel_shares(KernelRidge(0.1, kernel=named, landmarks=5), frame, Y)
