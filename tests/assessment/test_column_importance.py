"""Columns left out, against literal refits without them, and how often noise seems to matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    column_importance,
)
from fitonce.assessment.intervals import holm
from problems import numbered_rows


def refitted(model, X, y, output):
    """Held-out outputs of every row, by refitting without it."""
    rows = np.arange(len(y))
    fits = [clone(model).fit(X[rows != i], y[rows != i]) for i in rows]
    return np.array([output(fit)(X[i : i + 1])[0] for i, fit in enumerate(fits)])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_regressions_lose_what_refits_without_a_column_lose(kernel):
    X, y = numbered_rows(30)
    gamma = {} if kernel == "linear" else {"gamma": 0.3}
    model = KernelRidge(0.5, kernel=kernel, **gamma).fit(X, y)
    found = column_importance(model, X, y, level=0.9)
    whole = (y - refitted(model, X, y, lambda fit: fit.predict)) ** 2 / np.var(y)
    assert found.score == pytest.approx(1 - np.mean(whole))
    expected = []
    for j in range(X.shape[1]):
        less = np.delete(X, j, axis=1)
        said = refitted(model, less, y, lambda fit: fit.predict)
        d = (y - said) ** 2 / np.var(y) - whole
        law = stats.ttest_1samp(d, 0.0, alternative="greater")
        assert found.loss[j] == pytest.approx(np.mean(d), abs=1e-9)
        two = stats.ttest_1samp(d, 0.0).confidence_interval(0.9)
        assert (found.low[j], found.high[j]) == pytest.approx((two.low, two.high), abs=1e-9)
        assert found.change[j] == pytest.approx(found.score - r2_score(y, said))
        expected.append(law.pvalue)
    assert found.pvalues == pytest.approx(holm(expected))


@pytest.mark.parametrize("kind", ["two", "three"])
def test_classes_lose_log_loss_and_accuracy(kind):
    X = np.random.default_rng(1).normal(size=(36, 3))
    y = np.arange(36) % (2 if kind == "two" else 3)
    X = X + 1.6 * y[:, None] * (np.arange(X.shape[1]) == 0)
    model = KernelFisherDiscriminant(gamma=0.3, alpha=1.0, calibration=None).fit(X, y)
    found = column_importance(model, X, y)
    for j in range(X.shape[1]):
        said = refitted(model, np.delete(X, j, axis=1), y, lambda fit: fit.predict)
        assert found.score - found.change[j] == pytest.approx(accuracy_score(y, said))
    assert np.argmin(found.pvalues) == 0 and found.loss[0] > 0
    assert "accuracy falls by" in str(found) and "<table" in found._repr_html_()


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_columns_of_any_table_in_a_pipeline(kind):
    rng = np.random.default_rng(0)
    colour, size = np.array(["red", "blue"])[rng.integers(0, 2, 80)], rng.normal(size=80)
    y = np.where(colour == "red", "hot", "cold")
    if kind == "array":
        X = np.column_stack([colour, size.astype(str)]).astype(object)
    else:
        frame = pd.DataFrame if kind == "pandas" else pytest.importorskip("polars").DataFrame
        X = frame({"colour": colour, "size": size})
    columns = ColumnTransformer([("c", OneHotEncoder(), [0]), ("n", StandardScaler(), [1])])
    model = make_pipeline(columns, LeastSquaresSVC(gamma=0.3, alpha=0.1)).fit(X, y)
    found = column_importance(model, X, y)
    assert found.score > 0.95 and found.change[0] > 0.3 > 0.1 > abs(found.change[1])
    assert found.pvalues[0] < 1e-6 < 0.05 < found.pvalues[1]


def test_near_copies_leave_together_and_given_columns_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    X = np.column_stack([X, X[:, 0] + 0.05 * rng.normal(size=60)])
    model = KernelRidge(0.5, kernel="linear").fit(X, y)
    found = column_importance(model, X, y)
    assert found.names == ["x0 (with x3)", "x1", "x2"] and found.pvalues[0] < 0.01
    given = column_importance(model, X, y, columns={"both": [0, 3], "one": [0]})
    assert given.loss[0] == pytest.approx(found.loss[0])
    assert given.loss[1] < 0.2 * given.loss[0]


def test_groups_are_units_and_stay_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 3)
    X = rng.normal(size=(20, 2))[groups]
    y = X[:, 0] + 0.5 * rng.normal(size=20)[groups]
    model = KernelRidge(0.5, gamma=0.3).fit(X, y, groups=groups)
    alone, together = (column_importance(model, X, y, groups=g) for g in (None, groups))
    assert together.score < alone.score - 0.1
    assert together.high[0] - together.low[0] > alone.high[0] - alone.low[0]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_columns_of_noise_seldom_matter(kernel):
    """Family-wise, at 5 %: at most 6 of 60 draws have probability 97 %."""
    rng, wrong, found = np.random.default_rng(0), 0, 0
    gamma = {} if kernel == "linear" else {"gamma": 0.1}
    for _ in range(60):
        X = rng.normal(size=(60, 5))
        y = X[:, 0] + rng.normal(size=60)
        model = KernelRidge(1.0, kernel=kernel, **gamma).fit(X, y)
        p = column_importance(model, X, y).pvalues
        wrong += np.any(p[1:] < 0.05)
        found += p[0] < 0.05
    assert wrong <= 6 and found >= 50
