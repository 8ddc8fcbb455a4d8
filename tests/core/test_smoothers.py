"""Smoothers of a kernel matrix against models solved from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from fitonce.core.arrays import NotPositiveDefiniteError
from fitonce.core.dual import DualNorm
from problems import EPS, KERNELS, NORMS, SETTINGS, Case, leverage, make_case

every_case = pytest.mark.parametrize(
    ("norm", "kind", "setting"),
    [(norm, kind, setting) for norm in NORMS for kind in KERNELS for setting in SETTINGS],
)
every_thin_case = pytest.mark.parametrize(
    ("norm", "setting"), [(norm, setting) for norm in NORMS for setting in SETTINGS]
)


def check_fit(case: Case) -> None:
    smoother, targets = case.smoother, case.targets
    for mu in case.mus():
        fitted, model = smoother.fit(targets, mu), case.reference_fit(mu)
        scale = np.abs(case.Y).max()
        case.close(fitted.values / case.s, model.predict(case.K, case.unpenalised), mu, scale)
        dual = smoother.dual_coef(fitted, mu)
        case.close(case.s * dual, model.alpha, mu)
        beta, _ = smoother.free_coef(case.scaled_Y, dual)
        columns = reference.unpenalised_columns(case.n, case.intercept, case.unpenalised)
        if columns.shape[1]:
            case.close(
                case.Q0 @ beta / case.s,
                columns @ model.beta,
                mu,
                max(scale, np.abs(case.K @ model.alpha).max()),
            )
        H = smoother.fit(smoother.project(np.eye(case.n)), mu).values
        case.close(leverage(smoother, targets, mu), np.diag(H), mu, 1.0)
        path = smoother.path(targets, np.array([mu]))
        case.close(smoother.fitted(targets, path).values, fitted.values, mu, scale)


@every_case
def test_fit(norm, kind, setting):
    check_fit(make_case(norm, kind, setting))


@every_thin_case
def test_thin_decompositions(norm, setting):
    """Features fewer than rows."""
    case = make_case(norm, "singular", setting, thin=True)
    smoother = case.smoother
    spectrum = smoother.spectrum if isinstance(smoother, DualNorm) else smoother.resolvent
    assert not spectrum.complete
    check_fit(case)


def test_low_rank_solver_is_used_only_where_it_is_smaller(monkeypatch):
    case = make_case("function", "singular", thin=True)
    used = []
    monkeypatch.setattr(
        "fitonce.core.spectrum.complement_solver", lambda L: used.append(L.shape[0])
    )
    for size in (4, 5):
        case.smoother.leave_out(np.arange(size), 1.0)
    assert used == [5]  # rank 3 and a bias


@pytest.mark.parametrize("norm", NORMS)
def test_trace_and_conditioning(norm):
    case = make_case(norm, "rbf", "weights")
    centred = case.scaled_K - case.Q0 @ (case.Q0.T @ case.scaled_K)
    gram = centred - (centred @ case.Q0) @ case.Q0.T if norm == "function" else centred @ centred.T
    assert case.smoother.trace == pytest.approx(np.trace(gram), rel=1e-10)
    assert case.smoother.conditioning == pytest.approx(EPS * case.spectrum_bounds[1], rel=1e-8)


def test_function_norm_refuses_a_mu_below_the_spectrum_and_the_dual_norm_takes_any():
    case = make_case("function", "indefinite")
    lowest = case.spectrum_bounds[0]
    assert case.smoother.lower_bound == pytest.approx(-lowest, rel=1e-10)
    assert case.smoother.admits(np.array([-1.01 * lowest, 1e3]))
    assert not case.smoother.admits(np.array([1e3, -0.99 * lowest]))
    with pytest.raises(NotPositiveDefiniteError):
        case.single(-0.99 * lowest)
    dual = make_case("dual", "indefinite").smoother
    assert dual.lower_bound == 0.0
    assert dual.admits(np.array([1e-6]))


@pytest.mark.parametrize("kind", ["rbf", "singular", "duplicated"])
@pytest.mark.parametrize("norm", NORMS)
def test_tiny_mu_against_fifty_digits(norm, kind):
    """At a mu that double precision hardly carries.

    Within the promise, and no worse than refitting in float64.
    """
    case = make_case(norm, kind, n=10, seed=2)
    y = case.Y[:, 0]
    for mu in case.mus((1e-8, 1e-10, 1e-12)):
        fitted = case.smoother.fit(case.targets, mu)
        single = y - case.smoother.leave_one_out(case.targets, np.array([mu])).residual[0, :, 0]
        errors = dict.fromkeys(("leave one out", "leave out", "at one mu", "refit"), 0.0)
        for test in [np.array([row]) for row in range(case.n)] + [np.array([2, 5, 9])]:
            exact = reference.held_out_exactly(
                case.K, y, mu, reference.complement(test, case.n), test, norm
            )
            values = {
                "leave out": y[test]
                - case.smoother.leave_out(test, mu).held_out(fitted).residual[:, 0],
                "leave one out": single[test] if len(test) == 1 else exact,
                "refit": case.reference_held_out(test, mu)[:, 0],
            }
            if norm == "function":
                single_mu = case.single(mu)
                values["at one mu"] = (
                    y[test]
                    - single_mu.leave_out(test, mu)
                    .held_out(single_mu.fit(single_mu.project(case.Y), mu))
                    .residual[:, 0]
                )
            for name, value in values.items():
                errors[name] = max(errors[name], np.abs(value - exact).max() / np.abs(y).max())
        limit = min(1e3 * EPS * case.spectrum_bounds[1] / mu, 100 * max(errors["refit"], EPS))
        assert all(error <= limit for error in errors.values()), (mu, limit, errors)
