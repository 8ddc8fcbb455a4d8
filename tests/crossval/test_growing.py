"""Training sets that grow: time series and learning curves against scikit-learn's refits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.model_selection as reference
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC

KERNEL = {"gamma": 0.2, "alpha": 0.3}
MODELS = [
    KernelRidge(**KERNEL),
    KernelRidge(penalty="dual", fit_intercept="penalized", **KERNEL),
    LeastSquaresSVC(**KERNEL, calibration=None),
    KernelFisherDiscriminant("laplacian", **KERNEL, calibration=None),
]
CURVES = {
    "time series": TimeSeriesSplit(3),
    "repeated rows": [
        (np.r_[np.arange(20), np.arange(10)], np.arange(70, 80)),
        (np.arange(20), np.arange(40, 45)),
    ],
    "folds": KFold(4, shuffle=True, random_state=1),
}


def series(n=80, classes=3, seed=0):
    """Rows with all classes early, so that nearly every window has them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (np.arange(n) * 7 + rng.integers(2, size=n)) % classes
    X[:, 0] += y
    X[n // 2] = X[10]
    return X, y


def data_for(model):
    X, y = series()
    return X, (X[:, 1] * X[:, 2] + 0.1 * y if isinstance(model, KernelRidge) else y)


def test_windows_of_less_than_half_of_the_rows_are_fitted():
    X, y = series()
    result = fitonce.cross_validate(KernelRidge(**KERNEL), X, X[:, 0] + y, cv=TimeSeriesSplit(20))
    sizes = [len(train) for train, _ in TimeSeriesSplit(20).split(X)]
    assert result.route.fitted_folds == sum(size < len(X) / 2 for size in sizes)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("cv", CURVES.values(), ids=CURVES.keys())
def test_learning_curves_equal_refits(model, cv, shuffle):
    X, y = data_for(model)
    what = {"cv": cv, "train_sizes": [0.3, 0.5, 1.0], "shuffle": shuffle, "random_state": 3}
    sizes, *scores = fitonce.learning_curve(model, X, y, **what)
    expected, *refitted = reference.learning_curve(model, X, y, **what)
    assert np.array_equal(sizes, expected)
    for ours, theirs in zip(scores, refitted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_brier_score"])
def test_learning_curves_of_probabilities_and_weights(scoring):
    X, y = series(classes=2)
    what = {
        "cv": StratifiedKFold(3),
        "train_sizes": [12, 30, 50],
        "scoring": scoring,
        "params": {"sample_weight": np.linspace(1.0, 2.0, len(y))},
    }
    model = KernelFisherDiscriminant(**KERNEL)
    ours, theirs = (
        f(model, X, y, **what) for f in (fitonce.learning_curve, reference.learning_curve)
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_learning_curve_of_a_foreign_estimator_and_a_pipeline():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = series()
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LeastSquaresSVC(**KERNEL))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fitonce.RefitWarning)
            ours = fitonce.learning_curve(model, X, y, cv=3)
        for one, other in zip(ours, reference.learning_curve(model, X, y, cv=3), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8)


def test_a_splitter_that_never_draws_the_same_twice_is_asked_once():
    """A class that is predicted but absent from a fold sends balanced accuracy back to the loop."""
    X, y = series(40, classes=4)
    model = LeastSquaresSVC(**KERNEL)

    def scores(function):
        cv = ShuffleSplit(8, test_size=4, random_state=np.random.RandomState(0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return function(model, X, y, cv=cv, scoring="balanced_accuracy")

    ours, theirs = scores(fitonce.cross_val_score), scores(reference.cross_val_score)
    np.testing.assert_allclose(ours, theirs)
