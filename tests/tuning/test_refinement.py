"""Newton on log alpha, gradients in the kernel, gamma and alpha together.

Against differences and fine grids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import KFold

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.core.inverse import Inverse
from fitonce.datasets import make_torus
from fitonce.estimators.setup import setup_of
from fitonce.kernels import RADIAL
from fitonce.tuning import Tuner, newton
from fitonce.tuning.gradient import Objective, Term, fold_gradient
from fitonce.tuning.problem import Problem
from fitonce.tuning.refine import Losses, step_at
from problems import ESTIMATORS, make_case

# ---- derivatives in log mu -----------------------------------------------------------------------


def losses_of(tuner: Tuner, problem: Problem) -> Losses:
    return lambda mus: tuner.losses(problem, mus).mean(axis=1)


def exact_step(problem: Problem, M: np.ndarray) -> tuple[float, float, float]:
    """The squared leave-one-out error of e = r/o with its derivatives in log mu, from I - H: the
    derivatives of M are M - M² and M - 3M² + 2M³.
    """
    series = M, M - M @ M, M - 3.0 * M @ M + 2.0 * M @ M @ M
    r, r1, r2 = (A @ problem.projected.Y for A in series)
    o, o1, o2 = (np.diag(A)[:, None] for A in series)
    e = r / o
    e1 = (r1 - e * o1) / o
    e2 = (r2 - 2.0 * e1 * o1 - e * o2) / o
    total = np.sum(problem.row_weights) * problem.targets.shape[1]
    return tuple(np.sum(A) / total for A in (e**2, 2.0 * e * e1, 2.0 * (e1**2 + e * e2)))


@pytest.mark.parametrize("estimator", [LeastSquaresSVC, KernelRidge])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_steps_have_the_derivatives_of_the_squared_error(
    estimator: type, intercept: bool, weighted: bool
) -> None:
    model, X, y = model_and_data(estimator, "squared_error", fit_intercept=intercept)
    tuner, problem = problem_of(model, X, y, weights_for(len(X), weighted), 0.4)
    for t in np.linspace(-5.0, 4.0, 7):
        unit = problem.smoother.project(np.eye(len(X)))
        M = problem.smoother.fit(unit, float(np.exp(t))).residual
        value, first, second = exact_step(problem, M)
        step = step_at(losses_of(tuner, problem), t)
        assert step.loss == pytest.approx(value, rel=1e-10)
        assert step.first == pytest.approx(first, rel=1e-7, abs=1e-8 * value)
        assert step.second == pytest.approx(second, rel=1e-7, abs=1e-8 * value)


def model_and_data(
    estimator: type, criterion: str, **options: Any
) -> tuple[Any, np.ndarray, np.ndarray]:
    X, y = make_torus(50, random_state=3)
    if estimator is KernelRidge:
        return (
            KernelRidge(criterion=criterion, **options),
            X,
            np.column_stack([np.sin(X[:, 0]), y + 0.1 * X[:, 1]]),
        )
    return estimator(criterion=criterion, compression=4.0, **options), X, y


def weights_for(n: int, weighted: bool) -> np.ndarray | None:
    return np.random.default_rng(8).uniform(0.3, 3.0, size=n) if weighted else None


SMOOTH = [
    (KernelFisherDiscriminant, "squared_error"),
    (KernelFisherDiscriminant, "smoothed_error"),
    (LeastSquaresSVC, "squared_error"),
    (LeastSquaresSVC, "smoothed_error"),
    (KernelRidge, "squared_error"),
]


def problem_of(
    model: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, gamma: float
) -> tuple[Tuner, Problem]:
    tuner = setup_of(model, X, y, weights).tuner()
    return tuner, tuner.problem({"gamma": gamma})


@pytest.mark.pairwise
@pytest.mark.parametrize(("estimator", "criterion"), SMOOTH)
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_steps_have_the_slopes_of_longer_differences(
    estimator: type, criterion: str, penalty: str, weighted: bool
) -> None:
    """Chebyshev's interpolation on an interval sixteen times as long."""
    model, X, y = model_and_data(estimator, criterion, penalty=penalty)
    if estimator is KernelFisherDiscriminant:
        model.set_params(priors=[0.4, 0.6])
    tuner, problem = problem_of(model, X, y, weights_for(len(X), weighted), 0.4)
    losses = losses_of(tuner, problem)
    for t in np.random.default_rng(2).uniform(-4.0, 3.0, size=3):
        wide = Chebyshev.interpolate(lambda s: losses(np.exp(s)), 14, [t - 0.25, t + 0.25])
        step = step_at(losses, t)
        expected = [wide.deriv(order)(t) if order else wide(t) for order in range(3)]
        got = step.loss, step.first, step.second
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6 * abs(expected[0]))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_criteria_without_derivatives_take_no_steps(estimator: type) -> None:
    other = "r2" if estimator is KernelRidge else "brier"
    for settings in ({"pooled": False}, {"criterion": other}):
        model, X, y = model_and_data(estimator, "squared_error", gamma=0.4, refine=True)
        assert not model.set_params(**settings).fit(X, y).refinement_.steps


# ---- derivatives in the kernel -------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["bias", "no bias", "weights", "weights and confounds"])
def test_kernel_gradient_is_the_slope_in_every_entry(setting: str) -> None:
    case, mu = make_case("function", "rbf", setting, n=9), 0.7
    rng = np.random.default_rng(0)

    def loss(K: np.ndarray) -> float:
        M = Inverse.of(K.copy(), case.Q0, mu).M
        return float(np.sum((M @ case.scaled_Y / np.diag(M)[:, None]) ** 2))

    smoother = Inverse.of(case.scaled_K.copy(), case.Q0, mu)
    value, gradient = fold_gradient(smoother, case.scaled_Y, None)
    assert value == pytest.approx(loss(case.scaled_K), rel=1e-10)
    np.testing.assert_allclose(gradient, gradient.T, atol=1e-12)
    for _ in range(6):
        D = rng.normal(size=case.K.shape)
        D = D + D.T
        h = 1e-5
        expected = (loss(case.scaled_K + h * D) - loss(case.scaled_K - h * D)) / (2 * h)
        assert np.sum(gradient * D) == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kernel", RADIAL)
def test_kernel_objective_has_the_slopes_of_finite_differences(weighted: bool, kernel: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(25, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=25) > 0, 1, -1)
    model = LeastSquaresSVC(kernel=kernel, criterion="squared_error")
    tuner, problem = problem_of(model, X, y, weights_for(25, weighted), 0.4)
    start = np.array([rng.normal(), -0.5])
    term = Term(
        lambda gamma: tuner.specification.kernel_at(tuner.data, {"gamma": gamma}),
        *(X, np.exp(start[0]), True),
    )
    scaled = problem.projected.Y, problem.smoother.Q0, problem.row_scale
    total = tuner.data.total_weight
    objective = Objective([term], np.ones(1), np.exp(start[1]), *scaled, total)
    np.testing.assert_allclose(objective.start, start)
    theta = start + 0.3 * rng.normal(size=len(start))
    value, slope = objective(theta)
    expected = [
        (objective(theta + h)[0] - objective(theta - h)[0]) / 2e-5
        for h in 1e-5 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(slope, expected, rtol=2e-6, atol=1e-9)
    gamma, alpha = np.exp(theta)
    direct = tuner.losses(tuner.problem({"gamma": float(gamma)}), np.array([alpha])).mean()
    assert value == pytest.approx(direct, rel=1e-9)
    low, high = np.exp(start[-1]) * np.array([0.01, 100])
    _, (gamma,), alpha = objective.minimise((low, high))
    assert objective(np.log([gamma, alpha]))[0] <= objective(start)[0]


# ---- Newton --------------------------------------------------------------------------------------


def test_newton_finds_the_bottom_of_a_quartic_within_its_window() -> None:
    """E = (t-1)⁴ + (t-1)²/10 with t = log alpha: wrong curvature nowhere, long first steps."""

    def loss(alpha: np.ndarray) -> np.ndarray:
        u = np.log(alpha) - 1.0
        return u**4 + u**2 / 10

    path = newton(loss, np.exp(6.0), 1e-8, 1e8)
    assert path[-1].alpha == pytest.approx(np.e, rel=1e-6)
    assert np.all(np.diff([step.loss for step in path]) < 0)
    assert abs(np.log(path[1].alpha / path[0].alpha)) <= np.log(4.0) + 1e-12
    assert newton(loss, np.exp(6.0), np.exp(3.0), 1e8)[-1].alpha == pytest.approx(np.exp(3.0))


def test_newton_goes_downhill_where_the_curvature_is_negative_and_rests_where_all_is_flat() -> None:
    path = newton(lambda alpha: np.cos(np.log(alpha)), np.exp(0.5), 1e-8, 1e8)
    assert (path[0].first, path[0].second) == pytest.approx((-np.sin(0.5), -np.cos(0.5)), rel=1e-8)
    assert np.log(path[-1].alpha) == pytest.approx(np.pi, abs=1e-6)
    flat = newton(np.ones_like, 2.0, 1e-8, 1e8)
    assert [step.alpha for step in flat] == [pytest.approx(2.0)]


@pytest.mark.pairwise
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize(("estimator", "criterion"), SMOOTH)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_newton_reaches_the_minimum_of_a_fine_grid_on_the_torus(
    estimator: type, criterion: str, penalty: str, weighted: bool
) -> None:
    model, X, y = model_and_data(estimator, criterion, penalty=penalty, gamma=0.3)
    weights = weights_for(len(X), weighted)
    coarse = model.fit(X, y, sample_weight=weights)
    alpha, lattice_score = coarse.alpha_, coarse.best_score_
    fine = estimator(
        **{**model.get_params(), "alpha": alpha * 2.0 ** np.linspace(-1.5, 1.5, 601)}
    ).fit(X, y, sample_weight=weights)
    refined = model.set_params(refine=True).fit(X, y, sample_weight=weights)
    assert refined.best_score_ >= max(
        lattice_score, fine.best_score_ - 1e-9 * abs(fine.best_score_)
    )
    assert refined.alpha_ == pytest.approx(fine.alpha_, rel=0.005)
    steps = refined.refinement_.steps
    assert steps[0].alpha == pytest.approx(alpha)
    assert steps[-1].alpha == pytest.approx(refined.alpha_)
    assert np.all(np.diff([step.loss for step in steps]) < 0)
    assert abs(steps[-1].first) < 1e-5 * max(steps[-1].loss, abs(steps[-1].second))
    assert steps[-1].loss == pytest.approx(-refined.best_score_, rel=1e-8)
    assert refined.verify(3).max_deviation < 1e-7


# ---- gamma and alpha together --------------------------------------------------------------------

TOGETHER: dict[str, dict[str, Any]] = {
    "plain": {"criterion": "squared_error"},
    "laplacian": {"criterion": "squared_error", "kernel": "laplacian"},
    "dual": {"penalty": "dual", "criterion": "squared_error"},
    "folds": {
        "criterion": "squared_error",
        "cv": KFold(4, shuffle=True, random_state=0),
    },
    "penalized intercept": {"criterion": "squared_error", "fit_intercept": "penalized"},
    "given alphas": {"criterion": "squared_error", "alpha": np.array([0.01, 0.1, 1.0])},
}


@pytest.mark.parametrize("way", TOGETHER)
@pytest.mark.parametrize("estimator", [LeastSquaresSVC, KernelRidge])
def test_refinement_improves_on_the_lattice_and_ends_at_a_local_minimum(
    estimator: type, way: str
) -> None:
    options = TOGETHER[way]
    _, X, y = model_and_data(estimator, "squared_error")
    lattice = estimator(**options).fit(X, y)
    refined = estimator(refine=True, **options).fit(X, y)
    assert refined.best_score_ >= lattice.best_score_
    rounds = refined.refinement_.rounds
    assert (rounds[0]["gamma"], rounds[0]["alpha"]) == (lattice.gamma_, lattice.alpha_)
    assert np.all(np.diff([r["loss"] for r in rounds]) <= 0)
    assert rounds[-1]["gamma"] == pytest.approx(refined.gamma_)
    if way == "given alphas":
        assert refined.alpha_ == lattice.alpha_
    steps = 1.0 + 0.1 * np.array([-1, 0, 1])
    around = {
        (a, g): estimator(**{**options, "alpha": refined.alpha_ * a, "gamma": refined.gamma_ * g})
        .fit(X, y)
        .best_score_
        for a in (steps if way != "given alphas" else steps[1:2])
        for g in steps
    }
    assert max(around.values()) <= refined.best_score_ + 2e-3 * abs(refined.best_score_)
    assert around[1.0, 1.0] == pytest.approx(refined.best_score_, rel=1e-8)


@pytest.mark.parametrize("criterion", ["brier", "log_loss", "error", "auc", "roc_auc"])
def test_refinement_of_criteria_without_derivatives_never_loses(criterion: str) -> None:
    X, y = make_torus(36, random_state=3)
    lattice = KernelFisherDiscriminant(criterion=criterion).fit(X, y)
    refined = KernelFisherDiscriminant(criterion=criterion, refine=True).fit(X, y)
    assert refined.best_score_ >= lattice.best_score_
    at_refined = KernelFisherDiscriminant(
        criterion=criterion, gamma=refined.gamma_, alpha=refined.alpha_
    ).fit(X, y)
    assert at_refined.best_score_ == pytest.approx(refined.best_score_, rel=1e-8)
    np.testing.assert_allclose(
        refined.decision_function(X), at_refined.decision_function(X), rtol=1e-8, atol=1e-8
    )


def test_refinement_with_nothing_to_tune_changes_nothing() -> None:
    X, y = make_torus(40, random_state=1)
    model = KernelFisherDiscriminant(gamma=0.3, alpha=0.5, refine=True).fit(X, y)
    assert (model.gamma_, model.alpha_) == (0.3, 0.5)


@pytest.mark.parametrize("penalty", ["function", "dual"])
def test_refined_precomputed_kernel_equals_the_kernel_by_name(penalty: str) -> None:
    X, y = make_torus(40, random_state=1)
    options = {"penalty": penalty, "refine": True, "criterion": "squared_error"}
    named = LeastSquaresSVC(gamma=0.3, **options).fit(X, y)
    given = LeastSquaresSVC(kernel="precomputed", **options).fit(
        pairwise_kernels(X, metric="rbf", gamma=0.3), y
    )
    assert given.alpha_ == pytest.approx(named.alpha_, rel=1e-6)
