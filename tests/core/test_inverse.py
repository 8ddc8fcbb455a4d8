"""One mu first: the same answers as from a spectrum, which is made when another mu is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from fitonce.core.resolvent import Resolvent
from fitonce.core.smoothers import KernelSmoother
from problems import KERNELS, SETTINGS, Case, banded, make_case

ROWS = np.array([5, 1, 17, 8])


def never() -> Resolvent:
    raise AssertionError("a spectrum was made")


def answers(smoother: KernelSmoother, case: Case, mu: float) -> dict[str, np.ndarray]:
    """Everything that a smoother is asked for at one mu."""
    mus, targets = np.array([mu]), smoother.project(case.scaled_Y)
    path, fitted = smoother.path(targets, mus), smoother.fit(targets, mu)
    P = np.random.default_rng(2).normal(size=(5, case.n)) @ case.scaled_K
    P -= (P @ case.Q0) @ case.Q0.T
    removal = smoother.leave_out(ROWS, mu)
    (system,) = smoother.pair_systems(ROWS, mus)
    return {
        "residual": path.residual[0],
        "one minus leverage": path.one_minus_h,
        "fit": fitted.residual,
        "coefficients": mu * smoother.dual_coef(fitted, mu),
        "inside": mu * smoother.inside(case.scaled_Y, smoother.dual_coef(fitted, mu), mu),
        "scatter": smoother.residual_scatter(targets, mus),
        "map": smoother.residual_map(mu)(case.scaled_Y.T),
        "left out": removal.held_out(fitted).residual,
        "system": system.solve(case.scaled_Y[ROWS]),
        "new rows": smoother.smoothing(P, mu).to_targets,
    }


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KERNELS)
def test_answers_are_those_of_the_spectrum(kind, setting):
    """At its own mu without it, at others from it."""
    case = make_case("function", kind, setting)
    for own, other in [(1e-3, 0.3), (1.0, 1e-4), (1e2, 1.0)]:
        mu, another = case.mus((own, other))
        first = case.single(mu, never)
        assert first.admits(np.array([mu])) and first.accuracy(mu) > 0
        for name, got in answers(first, case, mu).items():
            expected = answers(case.smoother, case, mu)[name]
            case.close(got, expected, mu, max(np.abs(expected).max(), 1e-3))
        lazy = case.single(mu, lambda: case.smoother.resolvent)
        for name, got in answers(lazy, case, another).items():
            np.testing.assert_array_equal(got, answers(case.smoother, case, another)[name])


def test_others_may_come_from_a_band():
    case = make_case("function", "rbf", "weights")
    mu, another = case.mus((0.1, 3.0))
    lazy = case.single(mu, lambda: banded(case.scaled_K, case.Q0, 5).resolvent)
    for name, got in answers(lazy, case, another).items():
        case.close(got, answers(case.smoother, case, another)[name], another)


def test_what_needs_eigenvalues_is_asked_of_the_spectrum():
    case = make_case("function", "indefinite", "weights")
    mu, another = case.mus((1.0, 0.1))
    made = []
    lazy = case.single(mu, lambda: made.append(1) or case.smoother.resolvent)
    targets, whole = lazy.project(case.scaled_Y), case.smoother
    assert lazy.admits(np.array([mu])) and not made
    assert not lazy.admits(np.array([mu, 0.5 * whole.lower_bound]))
    assert (lazy.largest, lazy.trace, lazy.lower_bound) == (
        whole.largest,
        whole.trace,
        whole.lower_bound,
    )
    mus = np.array([mu, another])
    np.testing.assert_array_equal(lazy.log_determinant(mus), whole.log_determinant(mus))
    got, expected = lazy.path(targets, mus), whole.path(case.targets, mus)
    np.testing.assert_array_equal(got.residual, expected.residual)
    np.testing.assert_array_equal(got.mus, mus)
    assert len(made) == 1


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KERNELS)
def test_tolerance_of_ties_is_the_same_by_every_factorization(kind, setting):
    """So that rows tie on one route where they tie on another."""
    case = make_case("function", kind, setting)
    for mu in case.mus((1e-3, 1.0, 1e2)):
        expected = case.smoother.accuracy(mu)
        assert case.single(mu).accuracy(mu) == pytest.approx(expected, rel=1e-6)
        band = banded(case.scaled_K, case.Q0, 5)
        assert band.conditioning == pytest.approx(case.smoother.conditioning, rel=1e-6)
        assert band.accuracy(mu) >= (1.0 - 1e-6) * expected
