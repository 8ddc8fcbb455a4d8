"""Kernel ridge as a Gaussian process: against scikit-learn's, and against refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from fitonce import KernelRidge, NumericalWarning
from fitonce.estimators.fitted import record_of
from problems import numbered_rows, rbf, row_weights
from reference import assert_close

GAMMA, ALPHA = 0.4, 0.3


def ours(**settings) -> KernelRidge:
    return KernelRidge(ALPHA, gamma=GAMMA, **settings)


def theirs(X, y) -> GaussianProcessRegressor:
    kernel = RBF(1.0 / np.sqrt(2.0 * GAMMA), "fixed")
    return GaussianProcessRegressor(kernel, alpha=ALPHA, optimizer=None).fit(X, y)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_scikit_learn_has_the_same_numbers(n_targets):
    X, y = numbered_rows(40, n_targets, repeated=4)
    X_new = np.vstack([numbered_rows(12, seed=5)[0], X[:3]])
    model, other = ours(fit_intercept=False).fit(X, y), theirs(X, y)
    for keyword in ("return_std", "return_cov"):
        mean, spread = model.predict(X_new, **{keyword: True})
        expected_mean, expected = other.predict(X_new, **{keyword: True})
        assert_close(mean, expected_mean, 1e-8)
        assert_close(spread, expected, 1e-8)
    likelihood = model.gaussian_process().log_marginal_likelihood
    assert likelihood == pytest.approx(other.log_marginal_likelihood(), rel=1e-9)


def test_a_process_without_each_row():
    X, y = numbered_rows(18, repeated=2)
    read = ours(fit_intercept=False).fit(X, y).gaussian_process()
    for row in range(len(X)):
        kept = np.delete(np.arange(len(X)), row)
        mean, std = theirs(X[kept], y[kept]).predict(X[row : row + 1], return_std=True)
        std = np.sqrt(std**2 + ALPHA)
        assert read.held_out_mean[row] == pytest.approx(mean[0], rel=1e-8)
        assert read.held_out_std[row] == pytest.approx(std[0], rel=1e-8)
        density = norm(mean, std).logpdf(y[row])[0]
        assert read.held_out_log_density[row] == pytest.approx(density, rel=1e-8)
        assert read.standardized[row] == pytest.approx((y[row] - mean[0]) / std[0], rel=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_flat_prior_is_a_very_wide_one(weighted, kernel):
    """A free bias against one of variance 1e6 in the covariance, by the formulas of the process."""
    X, y = numbered_rows(20)
    X_new = numbered_rows(5, seed=5)[0]
    weights = row_weights(len(X)) if weighted else np.ones(len(X))
    both = np.vstack([X, X_new])
    K = (rbf(both, GAMMA) if kernel == "rbf" else both @ both.T) + 1e6
    cross, noisy = K[20:, :20], K[:20, :20] + np.diag(ALPHA / weights)
    expected = K[20:, 20:] - cross @ np.linalg.solve(noisy, cross.T)
    model = ours(kernel=kernel).fit(X, y, weights if weighted else None)
    assert_close(model.predict(X_new, return_cov=True)[1], expected, 1e-5)
    _, std = model.predict(X_new, return_std=True, noise=True)
    assert_close(std, np.sqrt(np.diag(expected) + ALPHA), 1e-5)
    assert_close(model.predict(X_new, return_std=True)[1] ** 2, np.diag(expected), 1e-5)


def test_the_profiled_variance_is_the_most_likely_one():
    X, y = numbered_rows(30)
    model = ours().fit(X, y, row_weights(30))
    best = model.gaussian_process("profile")
    for factor in (0.98, 1.02):
        other = model.gaussian_process(best.signal_variance * factor)
        assert other.log_marginal_likelihood < best.log_marginal_likelihood
    assert best.noise_variance == pytest.approx(ALPHA * best.signal_variance)
    _, plain = model.predict(X, return_std=True)
    _, scaled = model.predict(X, return_std=True, signal_variance="profile")
    assert_close(scaled, plain * np.sqrt(best.signal_variance))


def test_weights_divide_the_noise():
    """The density of y under the covariance itself, without a bias."""
    X, y = numbered_rows(15)
    weights = row_weights(len(X))
    covariance = rbf(X, GAMMA) + np.diag(ALPHA / weights)
    model = ours(fit_intercept=False).fit(X, y, weights)
    expected = multivariate_normal(np.zeros(15), covariance).logpdf(y)
    assert model.gaussian_process().log_marginal_likelihood == pytest.approx(expected, rel=1e-9)


def test_contrasts_have_the_restricted_likelihood():
    X, y = numbered_rows(15)
    contrasts = np.linalg.qr(np.column_stack([np.ones(15), np.eye(15)[:, :14]]))[0][:, 1:]
    covariance = contrasts.T @ (rbf(X, GAMMA) + ALPHA * np.eye(15)) @ contrasts
    expected = multivariate_normal(np.zeros(14), covariance).logpdf(contrasts.T @ y)
    assert ours().fit(X, y).gaussian_process().log_marginal_likelihood == pytest.approx(expected)


# ---- criteria ------------------------------------------------------------------------------------

CRITERIA = ("gcv", "loo_log_density", "marginal_likelihood")


def score(criterion: str, model: KernelRidge, y: np.ndarray) -> float:
    """By definition, from fits and readings of a single target."""
    if criterion == "gcv":
        kept = record_of(model, "test")
        w = kept.problem.row_weights[:, 0]
        n, r = len(y), y - model.predict(model.X_fit_)
        return -n * float(w @ r**2) / (n - model.effective_dof_) ** 2
    if criterion == "marginal_likelihood":
        free = len(y) - (1 if model.fit_intercept is True else 0)
        return model.gaussian_process("profile").log_marginal_likelihood / free
    variances = np.geomspace(1e-3, 1e3, 4001)
    one = model.gaussian_process()
    v = variances[:, None] * one.held_out_std**2
    e = y - one.held_out_mean
    return float(np.max(np.mean(norm(0.0, np.sqrt(v)).logpdf(e), axis=1)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False, "penalized"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_criteria_by_their_definitions(criterion, intercept, weighted):
    X, y = numbered_rows(30)
    weights = row_weights(30) if weighted else None
    alphas = [0.01, 0.3, 10.0]
    model = KernelRidge(alphas, gamma=GAMMA, criterion=criterion, fit_intercept=intercept)
    model.fit(X, y, weights)
    expected = [
        score(criterion, ours(fit_intercept=intercept).set_params(alpha=a).fit(X, y, weights), y)
        for a in alphas
    ]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, rtol=1e-5)
    assert model.alpha_ == alphas[int(np.argmax(expected))]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_refinement_goes_to_the_bottom(criterion):
    X, y = numbered_rows(60)
    coarse = KernelRidge(gamma=GAMMA, criterion=criterion).fit(X, y)
    fine = KernelRidge(gamma=GAMMA, criterion=criterion, refine=True).fit(X, y)
    assert fine.best_score_ >= coarse.best_score_
    last = fine.refinement_.steps[-1]
    assert abs(last.first) < 1e-6
    assert last.second > 0


def test_what_cannot_be_asked_for():
    X, y = numbered_rows(30)
    model = ours().fit(X, y)
    with pytest.raises(ValueError, match="cannot be combined"):
        model.predict(X, return_std=True, return_cov=True)
    for given in (0.0, -1, "unit", True):
        with pytest.raises(ValueError, match="signal_variance must be"):
            model.predict(X, return_std=True, signal_variance=given)
    with pytest.raises(ValueError, match='needs penalty="function"'):
        ours(penalty="dual").fit(X, y).predict(X, return_std=True)
    with pytest.raises(ValueError, match="needs the exact model, got landmarks"):
        ours(landmarks=5, random_state=0).fit(X, y).gaussian_process()
    K = rbf(X, GAMMA)
    with pytest.raises(ValueError, match="precomputed kernel has no k"):
        KernelRidge(ALPHA, kernel="precomputed").fit(K, y).predict(K, return_std=True)
    for penalty in ("dual", "tune"):
        with pytest.raises(ValueError, match='needs penalty="function"'):
            KernelRidge(criterion="marginal_likelihood", penalty=penalty).fit(X, y)
    for settings, groups in (({"cv": 3}, None), ({}, np.arange(30) % 5)):
        with pytest.raises(ValueError, match="uses the fit of all rows"):
            KernelRidge(criterion="gcv", **settings).fit(X, y, groups=groups)


@pytest.mark.filterwarnings(f"ignore::{NumericalWarning.__module__}.NumericalWarning")
def test_landmarks_can_be_tuned_by_the_fit():
    X, y = numbered_rows(40)
    for criterion in CRITERIA:
        exact = KernelRidge([0.1, 1.0], gamma=GAMMA, criterion=criterion).fit(X, y)
        every = KernelRidge([0.1, 1.0], gamma=GAMMA, criterion=criterion, landmarks=X).fit(X, y)
        assert_close(
            every.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], 1e-6
        )
