"""Fits with one alpha: a Cholesky factorization, whose numbers are those of the eigenvectors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import fitonce.core.spectrum
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, NumericalWarning

GAMMA = 0.3


@pytest.fixture
def decompositions(monkeypatch):
    """The sizes of all eigendecompositions that are made."""
    sizes = []
    eigh = fitonce.core.spectrum.eigh_overwriting

    def counted(A):
        sizes.append(A.shape[0])
        return eigh(A)

    monkeypatch.setattr(fitonce.core.spectrum, "eigh_overwriting", counted)
    return sizes


def rows(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Some rows twice."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[-n // 5 :] = X[: n // 5]
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n) + 2.0


def outputs(model, new: np.ndarray) -> dict[str, np.ndarray]:
    """What a fitted model says, everywhere."""
    said = {"leverage": model.leverage_, "dof": model.effective_dof_, "score": model.best_score_}
    said |= {"dual": model.dual_coef_, "intercept": model.intercept_, "change": model.influence()}
    band = model.predict_interval(new, 0.8)
    spread = {} if model.kernel == "precomputed" else {"std": model.predict(new, True)[1]}
    return said | spread | {"held out": model.held_out_prediction_, "band": band}


def assert_same(got: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float):
    for what, value in expected.items():
        close = tolerance * max(1.0, np.abs(value).max())
        np.testing.assert_allclose(got[what], value, rtol=0, atol=close, err_msg=what)


OPTIONS = {
    "plain": {},
    "weights": {"sample_weight": np.tile([0.5, 1.0, 2.5, 1.0, 0.0], 12)},
    "groups": {"groups": np.arange(60) // 4},
    "folds": {"cv": 5},
    "precomputed": {"kernel": "precomputed"},
    "linear": {"kernel": "linear"},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_numbers_are_those_of_the_eigenvectors(option, decompositions):
    """The same model at another alpha's decomposition, and back again at that one's own."""
    X, y = rows()
    options = dict(OPTIONS[option])
    given = {key: options.pop(key) for key in ("sample_weight", "groups") if key in options}
    new = X[::7] + 0.1
    if option == "linear":  # more columns than rows
        X = np.hstack([X, np.random.default_rng(1).normal(size=(60, 70))])
        new = X[::7] + 0.1
    if option == "precomputed":
        X, new = rbf_kernel(X, gamma=GAMMA), rbf_kernel(new, X, gamma=GAMMA)
    kept = X.copy()
    fixed = KernelRidge(alpha=0.2, gamma=GAMMA, **options).fit(X, y, **given)
    got = outputs(fixed, new)
    assert not decompositions
    elsewhere = KernelRidge(alpha=[3.0, 7.0], gamma=GAMMA, **options).fit(X, y, **given)
    assert len(decompositions) == 1
    assert_same(got, outputs(elsewhere.at(0.2), new), 1e-9)
    assert_same(outputs(fixed.at(3.0), new), outputs(elsewhere.at(3.0), new), 1e-9)
    assert_same(outputs(fixed.at(0.2), new), got, 1e-12)
    fixed.at(11.0)
    assert len(decompositions) == 2  # one for all others
    np.testing.assert_array_equal(X, kept)


def test_held_out_values_are_literal_refits():
    X, y = rows(40)
    model = KernelRidge(alpha=0.2, gamma=GAMMA).fit(X, y)
    check = model.verify(n_refits=40)
    assert check.passed and check.max_deviation < 1e-10
    K, held_out = rbf_kernel(X, gamma=GAMMA), []
    for i in range(40):  # [K + αI, 1; 1ᵀ, 0]
        others = np.delete(np.arange(40), i)
        bordered = np.ones((40, 40))
        bordered[:39, :39] = K[np.ix_(others, others)] + 0.2 * np.eye(39)
        bordered[39, 39] = 0.0
        solved = np.linalg.solve(bordered, np.append(y[others], 0.0))
        held_out.append(K[i, others] @ solved[:39] + solved[39])
    np.testing.assert_allclose(model.held_out_prediction_, held_out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [1e-5, 1e-8, 1e-11])
def test_a_tiny_alpha_has_eigenvectors_and_their_warnings(share, decompositions):
    """Duplicates and a smooth kernel: singular to rounding."""
    X, y = rows()
    alpha = share * 60.0
    seen = []
    for alphas in (alpha, [alpha, 1.0]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = KernelRidge(alpha=alphas, gamma=0.01).fit(X, y).at(alpha)
        texts = [str(w.message) for w in caught if w.category is NumericalWarning]
        seen.append((set(texts), model.held_out_prediction_))
    assert len(decompositions) == 2 or share == 1e-5
    (texts, got), (other_texts, expected) = seen
    assert bool(texts) == (share == 1e-11) and texts >= other_texts
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_a_search_over_gamma_factors(decompositions):
    """A fixed alpha, a tuned gamma: no eigenvectors at all, with the same choice."""
    X, y = rows()
    model = KernelRidge(0.2).fit(X, y)
    assert not decompositions
    other = KernelRidge([0.2, 1e9]).fit(X, y)
    assert model.gamma_ == other.gamma_ and decompositions
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=0, atol=1e-10)


def test_many_targets_with_one_alpha(decompositions):
    X, _ = rows()
    Y = np.random.default_rng(4).normal(size=(60, 70))
    one, all_ = (KernelRidge(alpha, gamma=GAMMA).fit(X, Y) for alpha in (0.2, [0.2, 1e9]))
    assert len(decompositions) == 1
    several = all_.at(0.2)
    np.testing.assert_allclose(one.dual_coef_, several.dual_coef_, rtol=0, atol=1e-10)
    held_out = one.held_out_prediction_, several.held_out_prediction_
    np.testing.assert_allclose(*held_out, rtol=0, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, LeastSquaresSVC])
def test_classifiers_make_no_eigenvectors(estimator, classes, decompositions):
    """Outputs, held-out outputs and probabilities are those of the eigenvectors."""
    X, y = rows()
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    one = estimator(alpha=0.2, gamma=GAMMA).fit(X, labels)
    said = [one.decision_function(X), one.held_out_decision_, one.predict_proba(X)]
    assert one.leverage_.shape == (60,) and one.verify(3).passed and not decompositions
    several = estimator(alpha=[0.2, 1e9], gamma=GAMMA, criterion="squared_error").fit(X, labels)
    several = several.at(0.2)
    expected = several.decision_function(X), several.held_out_decision_, several.predict_proba(X)
    for got, value in zip(said, expected, strict=True):
        np.testing.assert_allclose(got, value, rtol=0, atol=1e-8 * np.abs(value).max())
    elsewhere = one.at(3.0).held_out_decision_, several.at(3.0).held_out_decision_
    assert 60 in decompositions
    np.testing.assert_allclose(*elsewhere, rtol=1e-8, atol=1e-10)
