"""The band form against the eigenvalue form, against literal refits, and in every namespace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import every_namespace, same

import fitonce.core.banded
from fitonce.core.arrays import NotPositiveDefiniteError
from fitonce.core.band import Band, BandFactor
from fitonce.core.smoothers import FunctionNorm
from fitonce.core.spectrum import orthonormal, spectrum_of_kernel
from problems import (
    Case,
    banded,
    leverage,
    make_case,
    no_columns,
    rbf,
)

FACTORS = (1e-4, 1e-2, 1.0, 1e4)


def norm_of(case: Case, width: int, asarray=np.array) -> FunctionNorm:
    return banded(asarray(case.scaled_K), asarray(case.Q0), width)


def test_many_targets_are_worked_on_in_blocks():
    case = make_case("function", "rbf", "weights", n=25)
    smoother, Y = norm_of(case, 6), np.random.default_rng(1).normal(size=(25, 5000))
    targets, expected_targets = (each.project(Y) for each in (smoother, case.smoother))
    same(smoother.fit(targets, 0.2).residual, case.smoother.fit(expected_targets, 0.2).residual)
    assert smoother.fit(smoother.project(Y[:, :0]), 0.2).residual.shape == (25, 0)


def counted(monkeypatch, kind, name: str, measure) -> list[int]:
    """What `measure` says of the argument of every call of a method from now on."""
    calls, method = [], getattr(kind, name)

    def recorded(self, argument):
        calls.append(measure(argument))
        return method(self, argument)

    monkeypatch.setattr(kind, name, recorded)
    return calls


def test_batches_of_mu_change_nothing(monkeypatch):
    case = make_case("function", "rbf", "bias", n=25)
    mus = case.mus(FACTORS)[[2, 0, 3, 1]]  # in no order
    at_once, one_by_one = norm_of(case, 4), norm_of(case, 4)
    calls = counted(monkeypatch, Band, "factor", len)
    whole = at_once.leave_one_out(at_once.project(case.scaled_Y), mus).residual
    same(whole, case.smoother.leave_one_out(case.targets, mus).residual)
    monkeypatch.setattr(fitonce.core.banded, "WORKSPACE", 1)
    parts = one_by_one.leave_one_out(one_by_one.project(case.scaled_Y), mus).residual
    same(parts, whole, 1e-13)
    assert calls == [4, *[1] * 8]  # once for the residuals, once for the diagonals


@pytest.mark.parametrize(("workspace", "solved"), [(1, [2, 3, 2, 3, 2, 3]), (2**31, [25, 25, 25])])
def test_folds_at_several_mu_in_turn(workspace, solved, monkeypatch):
    """Whether or not all of L⁻¹Qᵀ is kept between folds."""
    monkeypatch.setattr(fitonce.core.banded, "WORKSPACE", workspace)
    case = make_case("function", "rbf", "weights", n=25)
    smoother, theirs = norm_of(case, 4), case.smoother
    targets = smoother.project(case.scaled_Y)
    mus = (0.3, 2.0, 0.3)
    fits = [smoother.fit(targets, mu) for mu in mus]
    columns = counted(monkeypatch, BandFactor, "forward", lambda Z: Z.shape[-1])
    for mu, fitted in zip(mus, fits, strict=True):
        for rows in (np.array([2, 3]), np.array([11, 0, 5])):
            got = smoother.leave_out(rows, mu).held_out(fitted).residual
            same(got, theirs.leave_out(rows, mu).held_out(theirs.fit(case.targets, mu)).residual)
    assert columns == solved


def test_one_factorisation_serves_the_check_the_path_and_the_folds(monkeypatch):
    calls = counted(monkeypatch, Band, "factor", len)
    case = make_case("function", "rbf", "bias", n=25)
    smoother, mus = norm_of(case, 4), case.mus(FACTORS)
    targets = smoother.project(case.scaled_Y)
    assert smoother.admits(mus)
    smoother.leave_one_out(targets, mus)
    for mu in mus:
        smoother.leave_out(np.array([1, 2]), mu).held_out(smoother.fit(targets, mu))
        leverage(smoother, targets, mu)
    assert smoother.trace > 0 and calls == [1 + len(mus)]
    smoother.fit(targets, 0.123)
    assert calls == [1 + len(mus), 1]
    same(
        smoother.leave_one_out(targets, mus).residual,
        case.smoother.leave_one_out(case.targets, mus).residual,
    )


@every_namespace
def test_mu_at_which_there_is_no_minimum_is_refused_as_by_the_eigenvalue_form(xp):
    case = make_case("function", "indefinite", "bias", n=25)
    smoother = norm_of(case, 6, xp.asarray)
    bound = case.smoother.lower_bound
    assert bound > 0.1
    for mus in ([0.9 * bound], [2.0 * bound, 0.5 * bound]):
        assert not case.smoother.admits(np.array(mus))
        assert not smoother.admits(np.array(mus))
        fresh = norm_of(case, 6, xp.asarray)
        with pytest.raises(NotPositiveDefiniteError):
            fresh.leave_one_out(fresh.project(xp.asarray(case.scaled_Y)), np.array(mus))
    assert smoother.lower_bound == pytest.approx(bound, rel=1e-10)
    assert smoother.admits(np.array([1.1 * bound]))


@pytest.mark.parametrize("kind", ["singular", "duplicated"])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_singular_kernel_is_not_an_indefinite_one(kind, offset):
    case = make_case("function", kind, "bias", n=25)
    smoother = banded(case.K + offset, case.Q0, 6)
    assert smoother.resolvent.definite and smoother.lower_bound == 0.0
    assert smoother.admits(np.array([1e-300]))


def test_mu_below_the_noise_goes_through_the_eigenvalues():
    case = make_case("function", "rbf", "bias", n=12)
    smoother, theirs = norm_of(case, 4), case.smoother
    assert (
        0 < smoother.resolvent.noise < 1e-5 * theirs.resolvent.smallest
    )  # a regular matrix: nothing is lost yet
    mus = np.array([1.0, 0.1 * smoother.resolvent.noise, 2.0, 0.2 * smoother.resolvent.noise])
    assert smoother.admits(mus)
    targets = smoother.project(case.Y)
    for answer in (
        lambda form, its: form.leave_one_out(its, mus).residual,
        lambda form, its: form.residual_scatter(its, mus),
    ):
        got, expected = answer(smoother, targets), answer(theirs, case.targets)
        same(got[[0, 2]], expected[[0, 2]])
        for number in (1, 3):
            same(got[number], expected[number], 1e-6)
    for mu in mus[[1, 3]]:
        fitted, expected = smoother.fit(targets, mu), theirs.fit(case.targets, mu)
        same(fitted.residual, expected.residual, 1e-6)
        same(smoother.dual_coef(fitted, mu), theirs.dual_coef(expected, mu), 1e-6)
        same(
            1 - leverage(smoother, targets, mu), 1 - leverage(theirs, case.targets, mu), 1e-2
        )  # both are rounding of zero
        removal, removal_expected = (
            each.leave_out(np.array([1, 5]), mu) for each in (smoother, theirs)
        )
        same(removal.held_out(fitted).residual, removal_expected.held_out(expected).residual, 1e-6)


@pytest.mark.parametrize("value", [1.0, 0.0])
@pytest.mark.parametrize("bias", [True, False])
def test_constant_kernel_predicts_the_mean(value, bias):
    n = 13
    Q0 = orthonormal(np.ones((n, 1))) if bias else no_columns(n)
    smoother = banded(np.full((n, n), value), Q0, 4)
    Y = np.random.default_rng(0).normal(size=(n, 2))
    mus = np.array([1e-12, 1.0])
    assert smoother.admits(mus)
    if value and not bias:  # the constant is all there is: K = 11ᵀ has one eigenvalue, n
        assert smoother.largest == pytest.approx(n) == smoother.trace
        return
    assert smoother.largest == smoother.trace == smoother.lower_bound == 0.0
    mean_of_the_others = (Y.sum(axis=0) - Y) / (n - 1) if bias else 0.0 * Y
    for form in (smoother, FunctionNorm(smoother.resolvent.spectral, smoother.KQ0)):
        residual = form.leave_one_out(form.project(Y), mus).residual
        same(residual, np.stack([Y - mean_of_the_others] * 2), 1e-13)


# ---- laws ----------------------------------------------------------------------------------------

problems = st.tuples(
    st.integers(2, 40),
    st.integers(1, 12),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 2**16),
)


def drawn(problem: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """A kernel of any rank with repeated rows, unpenalised columns, targets and a width."""
    n, width, columns, targets, seed = problem
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rng.integers(1, 6)))[rng.integers(0, n, n)]
    K = rbf(X, 0.5) if seed % 2 else X @ X.T
    columns = min(columns, n - 1)
    return (
        K,
        orthonormal(rng.normal(size=(n, columns))) if columns else no_columns(n),
        rng.normal(size=(n, targets)),
        width,
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems, st.floats(-4, 4))
def test_law_the_eigenvalue_form_whatever_the_shape(problem, exponent):
    K, Q0, Y, width = drawn(problem)
    theirs = FunctionNorm(spectrum_of_kernel(K.copy(), Q0), K @ Q0)
    mus = np.array([1.0, 10.0**exponent]) * (theirs.largest or 1.0)
    ours = banded(K, Q0, width)
    targets, expected_targets = ours.project(Y), theirs.project(Y)
    expected = leverage(theirs, expected_targets, mus[1])
    np.testing.assert_allclose(leverage(ours, targets, mus[1]), expected, atol=1e-10)
    if (
        expected.max() < 1 - 1e-3
    ):  # a row that alone decides an unpenalised column has no held-out value
        same(
            ours.leave_one_out(targets, mus).residual,
            theirs.leave_one_out(expected_targets, mus).residual,
        )


@pytest.mark.torch
def test_on_a_gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    case = make_case("function", "rbf", "weights", n=300)
    ours = norm_of(case, 32, lambda A: torch.asarray(A, device="cuda"))
    mus = case.mus(FACTORS)
    targets = ours.project(torch.asarray(case.scaled_Y, device="cuda"))
    got = ours.leave_one_out(targets, mus).residual
    assert got.is_cuda
    same(got.cpu(), case.smoother.leave_one_out(case.targets, mus).residual)
