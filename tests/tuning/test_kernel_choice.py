"""Kernels of distances against other libraries, and the choice among kernels against fits of each
of them.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.gaussian_process.kernels import Matern

import fitonce
from fitonce import KernelRidge, LeastSquaresSVC, load
from fitonce.kernels import FAMILIES, RADIAL, DistancesTo, Kernel
from fitonce.plotting import CriterionMapDisplay, RegularizationPathDisplay
from fitonce.tuning import Branch, Trial, search
from problems import every_estimator, rows_for
from reference import output

SMOOTHNESS = {"exponential": 0.5, "matern32": 1.5, "matern52": 2.5}
SOME = ("linear", "exponential", "rbf")


# ---- kernels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", SMOOTHNESS)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_matern_kernels_are_those_of_gaussian_processes(kernel, as_sparse):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(30, 4)), rng.normal(size=(9, 4))
    X[5], X[6] = X[4], X[4] + 1e-9
    given = sp.csr_matrix(X) if as_sparse else X
    K = Kernel(kernel, {"gamma": 0.4})(new, given if not as_sparse else X)
    expected = Matern(1.0 / 0.4, nu=SMOOTHNESS[kernel])
    np.testing.assert_allclose(K, expected(new, X), rtol=1e-12)
    K = Kernel(kernel, {"gamma": 0.4})(given, given)
    np.testing.assert_allclose(K, expected(X), rtol=1e-12)
    assert K[4, 5] == 1.0  # roots of rounding would be 1e-8 away


def test_rows_that_nearly_coincide_keep_their_distance():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 50)) + 10.0
    X[1:4] = X[0] + 1e-7 * rng.normal(size=(3, 50))
    expected = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    np.testing.assert_allclose(DistancesTo("euclidean", X)(X), expected, rtol=1e-7)


@pytest.mark.parametrize("kernel", RADIAL)
def test_slopes_in_log_gamma_are_those_of_finite_differences(kernel):
    X = np.random.default_rng(2).normal(size=(6, 5))
    below, above = (Kernel(kernel, {"gamma": 0.3 * np.exp(h)})(X, X) for h in (-1e-6, 1e-6))
    found = Kernel(kernel, {"gamma": 0.3}).log_gamma_slope(X)
    np.testing.assert_allclose(found, (above - below) / 2e-6, rtol=1e-7, atol=1e-9)


# ---- one of several ------------------------------------------------------------------------------


def gammas_of(model, kernel: str) -> dict[float, float]:
    """The gammas tried with a kernel, and their best scores."""
    best: dict[float, float] = {}
    scores = model.cv_results_["mean_test_score"]
    for given, score in zip(model.cv_results_["params"], scores, strict=True):
        if given.get("kernel", kernel) == kernel:
            gamma = given.get("gamma", 0.0)
            best[gamma] = max(float(score), best.get(gamma, -np.inf))
    return best


@pytest.mark.pairwise
@every_estimator
@pytest.mark.parametrize("given", ["tune", list(SOME)])
@pytest.mark.parametrize("cv", [None, 4])
def test_the_kernel_is_the_best_of_those_fitted_one_by_one(estimator, given, cv):
    X, y = rows_for(estimator, 40)
    model = estimator(kernel=given, cv=cv).fit(X, y)
    alone = {
        name: estimator(kernel=name, cv=cv).fit(X, y)
        for name in (FAMILIES if given == "tune" else given)
    }
    best = max(alone, key=lambda name: alone[name].best_score_)
    assert model.kernel_ == model.best_params_["kernel"] == best
    assert model.best_score_ == alone[best].best_score_
    assert model.alpha_ == alone[best].alpha_
    np.testing.assert_array_equal(output(model, X), output(alone[best], X))
    tried = model.cv_results_
    for name, fit in alone.items():  # those that fall behind are not tried at finer gammas
        own, whole = gammas_of(model, name), gammas_of(fit, name)
        least = min(-score for score in own.values())
        assert own.items() <= whole.items()
        assert set(own) == set(whole) or least > 1.1 * -model.best_score_
    assert np.all(tried["param_gamma"].mask == (tried["param_kernel"] == "linear"))
    assert model.verify(3).passed
    assert model.at(0.7).kernel_ == best and model.at(0.7).verify(2).passed


@every_estimator
def test_cross_validation_chooses_on_each_training_set(estimator):
    X, y = rows_for(estimator, 36)
    method = "predict" if estimator is KernelRidge else "decision_function"
    model = estimator(kernel=list(SOME))
    ours, theirs = (
        function(model, X, y, cv=3, method=method)
        for function in (fitonce.cross_val_predict, sklearn.model_selection.cross_val_predict)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    route = fitonce.cross_validate(model.set_params(alpha=1.0, gamma=0.3), X, y, cv=3).route
    assert str(route) == "per-fold (the kernel is chosen on each training set)"


@pytest.mark.parametrize("criterion", ["auto", "squared_error"])
def test_permutations_choose_the_kernel_inside(criterion):
    X, y = rows_for(LeastSquaresSVC, 30)
    model = LeastSquaresSVC(kernel=["linear", "exponential"], criterion=criterion)
    cv, options = 3, {"n_permutations": 6, "random_state": 0}
    ours = fitonce.permutation_test_score(model, X, y, cv=cv, permute="resplit", **options)
    theirs = sklearn.model_selection.permutation_test_score(model, X, y, cv=cv, **options)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-12)
    assert ours[0] == pytest.approx(theirs[0])


@every_estimator
def test_landmarks_refinement_and_files(estimator, tmp_path):
    X, y = rows_for(estimator, 40)
    on_landmarks = estimator(kernel=list(SOME), landmarks=15, random_state=0).fit(X, y)
    assert on_landmarks.kernel_ in SOME and on_landmarks.verify(2).passed
    refined = estimator(kernel=["exponential", "matern32"], refine=True).fit(X, y)
    plain = estimator(kernel=["exponential", "matern32"]).fit(X, y)
    assert refined.best_score_ >= plain.best_score_ and refined.kernel_ == plain.kernel_
    again = load(fitonce.save(refined, tmp_path / "model.skops"))
    np.testing.assert_array_equal(output(again, X), output(refined, X))
    assert again.kernel_ == refined.kernel_


def test_displays_of_a_chosen_kernel():
    X, y = rows_for(LeastSquaresSVC, 40)
    model = LeastSquaresSVC(kernel=["linear", "rbf", "matern52"]).fit(X, y)
    shown = RegularizationPathDisplay.from_estimator(model)
    of_kernel = [p for p in model.cv_results_["params"] if p["kernel"] == model.kernel_]
    assert len(shown.alphas) == len(of_kernel)
    if model.kernel_ != "linear":
        assert CriterionMapDisplay.from_estimator(model).gamma == model.gamma_


def test_a_sample_sorts_out_kernels_and_all_rows_judge_the_rest(monkeypatch):
    monkeypatch.setattr("fitonce.tuning.tuner.SAMPLED_FROM", 60)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(90, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=90)
    model = KernelRidge(kernel=["linear", "rbf", "matern52"]).fit(X, y)
    rows, kernels = model.cv_results_["n_samples"], model.cv_results_["param_kernel"]
    assert set(kernels[rows < 90]) == {"linear", "rbf", "matern52"}
    assert "linear" not in set(kernels[rows == 90])
    alone = KernelRidge(kernel=model.kernel_).fit(X, y)
    assert model.best_score_ == alone.best_score_ and model.gamma_ == alone.gamma_


@pytest.mark.parametrize(("size", "share"), [(2000, 0.01), (250, 0.04)])
def test_kernels_close_on_the_sample_are_all_judged_on_all_rows(size, share):
    def trial(parameters, loss, sampled):
        return Trial(parameters, np.ones(1), np.array([loss]), sampled)

    on_sample = {"a": 1.0, "b": 1.0 + 0.99 * share, "c": 1.0 + 1.01 * share}
    on_all = {"a": 1.0, "b": 0.9, "c": 0.1}

    def attempt(several, *, sample=False, alpha=None):
        losses, rows = (on_sample, size) if sample else (on_all, None)
        return [trial(p, losses[p["kernel"]], rows) for p in several]

    found = search(attempt, [Branch({"kernel": name}, None) for name in "abc"], sampled=True)
    assert found.winner.parameters == {"kernel": "b"}
    assert [t.parameters["kernel"] for t in found.trials if t.sampled is None] == ["a", "b"]


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        ([], ValueError, "at least one"),
        (["rbf", np.dot], TypeError, "names"),
        (["rbf", "precomputed"], ValueError, "kernel matrix"),
        (["rbf", "gauss"], ValueError, "gauss"),
        ("Tune", ValueError, '"tune" or a list'),
    ],
)
def test_refused_lists(kernel, error, message):
    X, y = rows_for(KernelRidge, 20)
    with pytest.raises(error, match=message):
        KernelRidge(kernel=kernel).fit(X, y)


def test_a_list_of_one_is_that_kernel():
    X, y = rows_for(KernelRidge, 20)
    model = KernelRidge(kernel=["rbf"], gamma=0.3, alpha=1.0)
    assert fitonce.cross_validate(model, X, y, cv=3).route.name == "one"
    assert "kernel" not in model.fit(X, y).best_params_
