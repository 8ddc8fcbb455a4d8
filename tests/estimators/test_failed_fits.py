"""A fit that fails or is interrupted leaves the object as it was: fitted, or not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import check_is_fitted

from fitonce import (
    KernelAveraging,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    Subsampling,
)
from fitonce.core.refused import RefusedError
from fitonce.estimators import base

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(40, 3)), columns=["a", "b", "c"])
Y = np.where(X["a"] + 0.5 * RNG.normal(size=40) > 0.3, "ill", "healthy")
OTHER = np.where(Y == "ill", "dog", "cat")

MODELS = {
    "fisher": lambda: KernelFisherDiscriminant(gamma=0.3),
    "svc": lambda: LeastSquaresSVC(gamma=0.3),
    "ridge": lambda: KernelRidge(gamma=0.3),
    "averaging": lambda: KernelAveraging(LeastSquaresSVC(gamma=0.3), n_average=3, random_state=0),
    "subsampling": lambda: Subsampling(LeastSquaresSVC(gamma=0.3), max_samples=30, random_state=0),
}
OUTPUTS = ("predict", "decision_function", "predict_proba", "transform")


class Interrupted(dict):
    """A kernel that raises an error at its n-th call; never, as long as n is None."""

    n, error = None, KeyboardInterrupt

    def __call__(self, A, B):
        if self.n is not None:
            self.n -= 1
            if self.n <= 0:
                raise self.error("stopped here")
        return rbf_kernel(A, B, gamma=0.3)


def inner(model):
    return model.estimator if hasattr(model, "estimator") else model


def targets(model, labels):
    return np.isin(labels, ["ill", "dog"]) * 1.0 if isinstance(model, KernelRidge) else labels


def outputs(model, rows=X):
    return {name: getattr(model, name)(rows) for name in OUTPUTS if hasattr(model, name)}


def assert_unchanged(model, attributes, before):
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[name] is value for name, value in attributes.items())
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name)(X), value)


def with_nan(rows):
    rows = rows.copy()
    rows.iloc[7, 1] = np.nan
    return rows


RENAMED = X.rename(columns={"a": "z"})
BAD_FITS = {
    "missing values": (lambda y: (with_nan(RENAMED), y, {}), "NaN"),
    "other columns, too few targets": (lambda y: (X[["a", "b"]], y[:-1], {}), "inconsistent"),
    "array, no targets": (lambda y: (X.to_numpy()[:, :2], None, {}), "requires y"),
    "negative weight": (lambda y: (RENAMED, y, {"sample_weight": -np.ones(40)}), "sample_weight"),
    "weights all zero": (lambda y: (RENAMED, y, {"sample_weight": np.zeros(40)}), "zero for every"),
    "too few groups": (lambda y: (RENAMED, y, {"groups": [1, 2]}), "groups"),
    "one group": (lambda y: (RENAMED, y, {"groups": np.ones(40)}), "group"),
}


@pytest.mark.parametrize("case", BAD_FITS)
@pytest.mark.parametrize("name", MODELS)
def test_rows_that_cannot_be_fitted(name, case):
    make, message = BAD_FITS[case]
    model = MODELS[name]()
    rows, y, options = make(targets(inner(model), OTHER))
    if name == "averaging" and "groups" in options:
        pytest.skip("averages of rows are in no group, so that fit takes none")
    with pytest.raises(ValueError, match=message):
        model.fit(rows, y, **options)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
    model.fit(X, targets(inner(model), Y))
    attributes, before = dict(vars(model)), outputs(model)
    with pytest.raises(ValueError, match=message):
        model.fit(rows, y, **options)
    assert_unchanged(model, attributes, before)


@pytest.mark.pairwise
@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_that_stops_the_fit(name, n, error):
    kernel = Interrupted()
    model = MODELS[name]()
    inner(model).set_params(kernel=kernel, landmarks=None if name == "averaging" else 10)
    kernel.n, kernel.error = 1, error
    with pytest.raises((error, RefusedError), match="stopped here"):
        model.fit(X, targets(inner(model), Y))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    kernel.n = None
    model.fit(X, targets(inner(model), Y))
    attributes, before = dict(vars(model)), outputs(model)
    kernel.n = 1 if name == "averaging" else n
    with pytest.raises((error, RefusedError), match="stopped here"):
        model.fit(RENAMED, targets(inner(model), OTHER))
    kernel.n = None
    assert_unchanged(model, attributes, before)


@pytest.mark.parametrize("step", ["setup_of", "warn_at_edges", "warn_if_inaccurate", "FitRecord"])
@pytest.mark.parametrize("name", MODELS)
def test_an_interruption_at_any_step(name, step, monkeypatch):
    model = MODELS[name]().fit(X, targets(inner(MODELS[name]()), Y))
    attributes, before = dict(vars(model)), outputs(model)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    owner = base.TrialRunner if hasattr(base.TrialRunner, step) else base
    monkeypatch.setattr(owner, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(RENAMED, targets(inner(model), OTHER))
    assert_unchanged(model, attributes, before)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "nonsense"},
        {"kernel": "precomputed"},
        {"kernel": "linear", "alpha": -1.0},
        {"calibration": None, "gamma": -1.0},
        {"calibration": "isotonic", "criterion": "nonsense"},
        {"cv": 1},
    ],
)
@pytest.mark.parametrize("name", ["fisher", "svc"])
def test_settings_that_cannot_be_fitted(name, settings):
    """Parameters of a failed fit stay as they were set; the fitted model goes by its own."""
    model = MODELS[name]().fit(X, Y)
    attributes, before = dict(vars(model)), outputs(model)
    model.set_params(**settings)
    with pytest.raises(ValueError):
        model.fit(X, OTHER)
    assert_unchanged(model, attributes | settings, before)
    assert set(before) == set(outputs(model))
