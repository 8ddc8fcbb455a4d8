"""The softmax readout, against refits and scikit-learn."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.model_selection as plain
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import LeaveOneOut, StratifiedKFold

import fitonce
from fitonce import (
    KernelFisherDiscriminant,
    LeastSquaresSVC,
    RefitWarning,
)
from fitonce.core.calibration import class_scores, inverse_temperatures
from fitonce.core.softmax import softmax_regression
from sklearn_checks import with_checks

try:
    import sklearn.utils.estimator_checks  # noqa: F401
except RuntimeError as error:  # scikit-learn 1.6 with SciPy 1.14 and later
    pytest.skip(f"scikit-learn's checks cannot be imported: {error}", allow_module_level=True)


def classes(c: int) -> tuple[np.ndarray, np.ndarray]:
    """Unbalanced, with a row that occurs twice."""
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:7, 50:66, 100:111, 100] if c == 3 else np.r_[50:62, 100:124, 100]
    return X[rows], np.array(["a", "b", "c"])[y[rows]]


def middle(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """A class between two others, which least squares masks."""
    random = np.random.default_rng(0)
    y = random.choice(3, n, p=[0.4, 0.2, 0.4])
    return (4.0 * (y - 1) + random.normal(size=n))[:, None], y


MODELS = {
    "softmax": KernelFisherDiscriminant(gamma=0.3, alpha=[0.1, 1.0], readout="softmax"),
    "linear": KernelFisherDiscriminant("linear", alpha=0.1, readout="softmax", calibration=None),
    "cv": KernelFisherDiscriminant(gamma=0.3, alpha=0.5, readout="softmax", cv=4),
}


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_softmax_is_fitted_to_held_out_projections(c: int, kernel: str) -> None:
    """Written out: refits without each row, their decisions as projections, the regression."""
    X, y = classes(c)
    model = KernelFisherDiscriminant(
        kernel, gamma=0.3, alpha=0.5, readout="softmax", calibration=None
    ).fit(X, y)
    lda = clone(model).set_params(readout="lda").fit(X, y)
    d = class_scores(
        plain.cross_val_predict(lda, X, y, cv=LeaveOneOut(), method="decision_function")
    )
    codes = np.searchsorted(model.classes_, y)
    beta = inverse_temperatures(d[None], codes, np.ones(len(y)))[0]
    own = class_scores(lda.decision_function(X))
    # differences of class scores tell where the refits see the row on the axes of all rows
    M, constant = lda.means_, np.log(lda.priors_) - 0.5 * np.sum(lda.means_**2, axis=1)
    Z = np.linalg.solve(M[1:] - M[0], (d[:, 1:] - d[:, :1] - (constant[1:] - constant[0])).T).T
    theta = softmax_regression(Z, codes, np.ones(len(y)), beta * d)
    expected = beta * own + lda.transform(X) @ theta[:-1] + theta[-1]
    expected = expected[:, 1] - expected[:, 0] if c == 2 else expected
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.transform(X), lda.transform(X))
    assert model.verify(3).passed


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("c", [2, 3])
def test_outputs_agree_with_each_other(name: str, c: int) -> None:
    X, y = classes(c)
    model = clone(MODELS[name]).fit(X, y)
    p, decision = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    codes = (decision > 0).astype(int) if c == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[codes])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_cross_val_predict_is_scikit_learns(name: str, method: str) -> None:
    X, y = classes(3)
    weights = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    given = {"cv": StratifiedKFold(3), "method": method, "params": {"sample_weight": weights}}
    ours = fitonce.cross_val_predict(MODELS[name], X, y, **given)
    theirs = plain.cross_val_predict(MODELS[name], X, y, **given)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_permutations_are_scikit_learns_and_said() -> None:
    X, y = classes(3)
    options = {"cv": StratifiedKFold(3), "n_permutations": 3, "random_state": 0}
    with pytest.warns(RefitWarning, match="readout"):
        ours = fitonce.permutation_test_score(MODELS["linear"], X, y, permute="resplit", **options)
    theirs = plain.permutation_test_score(MODELS["linear"], X, y, **options)
    np.testing.assert_allclose(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1])
    with pytest.warns(RefitWarning, match="readout"):
        fixed = fitonce.permutation_test_score(
            MODELS["linear"], X, y, permute="within-folds", **options
        )
    np.testing.assert_allclose(fixed[0], theirs[0])


def test_a_class_in_the_middle_is_found() -> None:
    """One against the rest has one direction on one feature, and the middle no end of it."""
    X, y = middle()
    linear = KernelFisherDiscriminant("linear", alpha=1e-3)
    lssvm = LeastSquaresSVC("linear", alpha=1e-3)
    assert np.mean(lssvm.fit(X, y).predict(X)[y == 1] == 1) < 0.1
    for model in (linear.set_params(readout="softmax"), lssvm.set_params(kernel="rbf")):
        assert np.mean(model.fit(X, y).predict(X)[y == 1] == 1) > 0.8


def test_saved_models_predict_the_same(tmp_path: Path) -> None:
    X, y = classes(3)
    model = clone(MODELS["softmax"]).fit(X, y)
    again = fitonce.load(fitonce.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_another_alpha_and_another_readout_leave_nothing_behind() -> None:
    X, y = classes(3)
    model = KernelFisherDiscriminant(gamma=0.3, alpha=0.5, readout="softmax").fit(X, y)
    other = clone(model).set_params(alpha=2.0).fit(X, y)
    np.testing.assert_allclose(model.at(2.0).predict_proba(X), other.predict_proba(X))
    lda = KernelFisherDiscriminant(gamma=0.3, alpha=0.5).fit(X, y)
    model.set_params(readout="lda").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), lda.predict_proba(X))
    assert model.verify(1).passed


def test_a_class_of_one_row_does_not_stop_it() -> None:
    X, y = classes(3)
    rows = np.r_[0, 7 : len(y)]
    assert np.isfinite(clone(MODELS["softmax"]).fit(X[rows], y[rows]).predict_proba(X)).all()


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelFisherDiscriminant(readout="quadratic"), "readout"),
        (KernelFisherDiscriminant(readout="softmax", priors=[0.5, 0.3, 0.2]), "priors"),
    ],
)
def test_refusals(model: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(*classes(3))


@pytest.mark.slow
@with_checks(
    [
        KernelFisherDiscriminant(gamma=0.1, alpha=1.0, readout="softmax"),
    ]
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
