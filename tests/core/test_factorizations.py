"""Every factorization gives the same answers, in every namespace; what another mu costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from matrices import every_namespace

from fitonce.core.dual import DualNorm
from fitonce.core.inverse import Inverse
from fitonce.core.resolvent import Resolvent
from fitonce.core.smoothers import FunctionNorm, KernelSmoother
from fitonce.core.spectrum import spectrum_of_kernel
from problems import KERNELS, SETTINGS, Case, banded, make_case, refit_without

ROWS = np.array([5, 1, 17, 8])
AsArray = Callable[[np.ndarray], Any]


def never() -> Resolvent:
    raise AssertionError("a spectrum was made")


def one_mu(case: Case, mu: float, asarray: AsArray) -> FunctionNorm:
    K, Q0 = asarray(case.scaled_K.copy()), asarray(case.Q0.copy())
    return FunctionNorm(Inverse.of(K + 0.0, Q0, mu, never), K @ Q0)


def eigenvectors(case: Case, mu: float, asarray: AsArray) -> FunctionNorm:
    K, Q0 = asarray(case.scaled_K.copy()), asarray(case.Q0.copy())
    return FunctionNorm(spectrum_of_kernel(K + 0.0, Q0), K @ Q0)


def band(width: int, case: Case, mu: float, asarray: AsArray) -> FunctionNorm:
    return banded(asarray(case.scaled_K.copy()), asarray(case.Q0.copy()), width)


def dual_norm(case: Case, mu: float, asarray: AsArray) -> DualNorm:
    K, Q0 = asarray(case.scaled_K.copy()), asarray(case.Q0.copy())
    return DualNorm(spectrum_of_kernel(K + 0.0, Q0[:, :0]), Q0, K @ Q0)


BANDS = {f"band of {width}": partial(band, width) for width in (4, 7, 64)}
FACTORIZATIONS = {"one mu": one_mu, **BANDS, "eigenvectors": eigenvectors, "dual": dual_norm}


def answers(
    smoother: KernelSmoother, case: Case, mu: float, asarray: AsArray = np.asarray
) -> dict[str, np.ndarray]:
    """Everything that a smoother is asked for at one mu, on the host."""
    Y, mus = asarray(case.scaled_Y), np.array([mu])
    targets = smoother.project(Y)
    path, fitted = smoother.path(targets, mus), smoother.fit(targets, mu)
    dual = smoother.dual_coef(fitted, mu)
    P = np.random.default_rng(2).normal(size=(5, case.n)) @ case.scaled_K
    P -= (P @ case.Q0) @ case.Q0.T
    removal = smoother.leave_out(ROWS, mu)
    (system,) = smoother.removals(ROWS, mus)
    found = {
        "residual": path.residual[0, ...],
        "one minus leverage": path.one_minus_h,
        "leave one out": smoother.leave_one_out(targets, mus).residual,
        "fit": fitted.residual,
        "coefficients": mu * dual,
        "free": smoother.free_coef(Y, dual)[0],
        "inside": mu * smoother.inside(Y, dual, mu),
        "scatter": smoother.residual_scatter(targets, mus),
        "map": smoother.residual_map(mu)(Y.T),
        "left out": removal.held_out(fitted).residual,
        "rest": refit_without(smoother, targets, ROWS, mu).values,
        "system": system.solve(asarray(case.scaled_Y[ROWS])),
        "new rows": smoother.smoothing(asarray(P), mu).to_targets,
    }
    assert {type(A) for A in found.values()} == {type(Y)}
    return {name: np.asarray(A) for name, A in found.items()}


def check_answers(
    got: dict[str, np.ndarray], expected: dict[str, np.ndarray], case: Case, mu: float
) -> None:
    for name, values in expected.items():
        if values.size:
            case.close(got[name], values, mu, max(np.abs(values).max(), 1e-3))


@pytest.mark.pairwise
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("name", ["one mu", *BANDS])
def test_answers_are_those_of_the_spectrum(name, kind, setting):
    case = make_case("function", kind, setting, n=25)
    for mu in case.mus((1e-3, 1.0, 1e2)):
        smoother, theirs = FACTORIZATIONS[name](case, mu, np.asarray), case.smoother
        check_answers(answers(smoother, case, mu), answers(theirs, case, mu), case, mu)
        assert smoother.admits(np.array([mu])) and smoother.accuracy(mu) > 0
        np.testing.assert_allclose(smoother.KQ0, theirs.KQ0, atol=1e-13)
        assert [smoother.can_leave_out(k) for k in (1, 12, 13)] == [True, True, False]
        if name in BANDS:
            for value in ("largest", "conditioning", "trace", "lower_bound"):
                expected = pytest.approx(getattr(theirs, value), rel=1e-10, abs=1e-14)
                assert getattr(smoother, value) == expected


@every_namespace
@pytest.mark.parametrize(
    ("kind", "setting"),
    [("rbf", "confounds"), ("duplicated", "weights and confounds"), ("indefinite", "no bias")],
)
@pytest.mark.parametrize("name", ["one mu", "band of 7", "eigenvectors", "dual"])
def test_answers_are_numpys_in_every_namespace(name, kind, setting, xp):
    case = make_case("dual" if name == "dual" else "function", kind, setting, n=25)
    for mu in case.mus((1e-2, 1.0)).tolist():
        smoother = FACTORIZATIONS[name](case, mu, xp.asarray)
        got = answers(smoother, case, mu, xp.asarray)
        check_answers(got, answers(case.smoother, case, mu), case, mu)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KERNELS)
def test_another_mu_is_asked_of_the_spectrum(kind, setting):
    case = make_case("function", kind, setting)
    own, another = case.mus((1e-3, 0.3))
    lazy = case.single(own, lambda: case.smoother.resolvent)
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
        other = banded(case.scaled_K, case.Q0, 5)
        assert other.conditioning == pytest.approx(case.smoother.conditioning, rel=1e-6)
        assert other.accuracy(mu) >= (1.0 - 1e-6) * expected
