"""The core against models solved from their definitions and refitted row by row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate
import scipy.optimize
import scipy.special
from fitonce.core.discriminant import discriminant, scatter, scatter_without, scatter_without_each
from fitonce.core.smoother import unpenalised_coef
from fitonce.estimators.problem import Problem, decompose, decompose_at

import reference
from fitonce import held_out
from fitonce.core.arrays import spd_solver
from fitonce.core.criteria import calibrate, class_scores, inverse_temperatures, probabilities
from fitonce.core.holdout import check_test_sets, checked_splits, complement
from fitonce.core.spectrum import Spectrum, orthonormal, spectrum_of_features, spectrum_of_kernel
from fitonce.kernels import Kernel
from optional import require
from problems import (
    EPS,
    KERNELS,
    NORMS,
    SETTINGS,
    Case,
    features,
    kernel,
    make_case,
    no_columns,
    rbf,
)

every_case = pytest.mark.parametrize(
    ("norm", "kind", "setting"),
    [(norm, kind, setting) for norm in NORMS for kind in KERNELS for setting in SETTINGS],
)
every_thin_case = pytest.mark.parametrize(
    ("norm", "setting"), [(norm, setting) for norm in NORMS for setting in SETTINGS]
)

# ---- spectrum ------------------------------------------------------------------------------------


def basis(columns: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Q0 of a bias and random columns beside it."""
    if columns == 0:
        return no_columns(n)
    return orthonormal(np.hstack([np.ones((n, 1)), rng.normal(size=(n, columns - 1))]))


def dense_function(phi, G: np.ndarray, Q0: np.ndarray) -> np.ndarray:
    """φ of the projected matrix, on the complement of Q0 only, by a plain eigendecomposition."""
    project = np.eye(len(G)) - Q0 @ Q0.T
    eigenvalues, U = np.linalg.eigh(project @ G @ project)
    return project @ (U * phi(eigenvalues)) @ U.T @ project


@pytest.mark.parametrize("columns", [0, 1, 4])
@pytest.mark.parametrize("kind", KERNELS)
def test_spectrum_of_kernel_is_an_orthonormal_decomposition_off_the_unpenalised_columns(
    kind, columns
):
    n, rng = 20, np.random.default_rng(1)
    K = kernel(kind, features(kind, n, rng))
    Q0 = basis(columns, n, rng)
    spectrum = spectrum_of_kernel(K.copy(), Q0)
    V = spectrum.V
    assert spectrum.complete and spectrum.rank == n - columns
    np.testing.assert_allclose(V.T @ V, np.eye(n - columns), atol=1e-13)
    np.testing.assert_allclose(Q0.T @ V, 0.0, atol=1e-13)
    project = np.eye(n) - Q0 @ Q0.T
    np.testing.assert_allclose(
        (V * spectrum.eigenvalues) @ V.T, project @ K @ project, atol=1e-13 * n
    )
    eigenvalues = np.linalg.eigvalsh(project @ K @ project)
    assert spectrum.largest == pytest.approx(np.abs(eigenvalues).max(), abs=1e-13 * n)
    if kind == "indefinite":
        assert (
            spectrum.smallest == pytest.approx(eigenvalues[0], rel=1e-10)
            and spectrum.smallest < -0.1
        )
    else:
        assert spectrum.smallest >= 0.0  # rounding of zero is not indefiniteness


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("gamma", [0.0, 1e-15, 1e-10])
def test_kernel_that_is_nearly_constant_stays_off_the_unpenalised_columns(gamma, columns):
    """What is left of it is rounding, and must not leak into the columns that were
    projected out.
    """
    n, rng = 20, np.random.default_rng(1)
    Q0 = basis(columns, n, rng)
    spectrum = spectrum_of_kernel(rbf(rng.normal(size=(n, 3)), gamma), Q0)
    np.testing.assert_allclose(Q0.T @ spectrum.V, 0.0, atol=1e-9)


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_large_offset_is_not_indefiniteness(offset):
    X = np.random.default_rng(1).normal(size=(20, 3))
    assert spectrum_of_kernel(X @ X.T + offset, orthonormal(np.ones((20, 1)))).smallest >= 0.0


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("thin", [False, True])
def test_functions_of_the_matrix_equal_the_dense_ones(thin, columns):
    n, rng = 18, np.random.default_rng(2)
    Z = rng.normal(size=(n, 4)) + 1.0
    Q0 = basis(columns, n, rng)
    spectrum = spectrum_of_features(Z, Q0) if thin else spectrum_of_kernel(Z @ Z.T, Q0)
    assert spectrum.complete is not thin
    functions = [
        lambda x: 1.0 / (np.abs(x) + 0.5),
        lambda x: x / (x**2 + 2.0),
        lambda x: np.exp(-np.abs(x)),
    ]
    phi = np.column_stack([function(spectrum.eigenvalues) for function in functions])
    at_zero = np.array([function(0.0) for function in functions])
    Y = rng.normal(size=(n, 2))
    rows = np.array([7, 0, 3])
    applied, diagonal = spectrum.apply(phi, at_zero, Y), spectrum.diagonal(phi, at_zero)
    for number, function in enumerate(functions):
        dense = dense_function(function, Z @ Z.T, Q0)
        np.testing.assert_allclose(applied[number], dense @ Y, atol=1e-12)
        np.testing.assert_allclose(
            spectrum.apply(phi[:, number], at_zero[number], Y), dense @ Y, atol=1e-12
        )
        np.testing.assert_allclose(diagonal[:, number], np.diag(dense), atol=1e-12)
        np.testing.assert_allclose(
            spectrum.block(phi[:, number], at_zero[number], rows),
            dense[np.ix_(rows, rows)],
            atol=1e-12,
        )


def test_diagonal_is_the_same_in_blocks_of_rows(monkeypatch):
    spectrum = spectrum_of_features(
        np.random.default_rng(3).normal(size=(23, 4)), basis(1, 23, np.random.default_rng(0))
    )
    phi, at_zero = 1.0 / (1.0 + spectrum.eigenvalues[:, None]), np.ones(1)
    whole = spectrum.diagonal(phi, at_zero)
    monkeypatch.setattr("fitonce.core.spectrum.BLOCK_ROWS", 5)
    np.testing.assert_allclose(spectrum.diagonal(phi, at_zero), whole, rtol=1e-14)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_features_route_equals_kernel_route(columns):
    n, rng = 20, np.random.default_rng(4)
    Z = rng.normal(size=(n, 5))
    Z = (
        np.hstack([Z, Z[:, :2] @ rng.normal(size=(2, 2))]) + 50.0
    )  # two dependent features and a large offset
    Q0 = basis(columns, n, rng)
    thin, full = spectrum_of_features(Z, Q0), spectrum_of_kernel(Z @ Z.T, Q0)
    assert thin.rank == (5 if columns else 6)
    np.testing.assert_allclose(Q0.T @ thin.V, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        thin.eigenvalues, full.eigenvalues[-thin.rank :], rtol=1e-8, atol=1e-9 * full.largest
    )
    Y = rng.normal(size=(n, 2))
    g = [10.0 / (spectrum.eigenvalues + 10.0) for spectrum in (thin, full)]
    np.testing.assert_allclose(thin.apply(g[0], 1.0, Y), full.apply(g[1], 1.0, Y), atol=1e-9)


def test_spectrum_without_directions():
    spectrum = spectrum_of_features(np.ones((6, 2)), basis(1, 6, np.random.default_rng(0)))
    assert spectrum.largest < 1e-30 and spectrum.smallest >= 0.0
    empty = Spectrum(no_columns(6), np.zeros(0), no_columns(6))
    np.testing.assert_array_equal(empty.apply(np.zeros(0), 2.0, np.eye(6)), 2.0 * np.eye(6))


# ---- smoothers -----------------------------------------------------------------------------------


def check_fit(case: Case, single: bool = False) -> None:
    for mu in case.mus():
        smoother = case.single(mu) if single else case.smoother
        fitted, model = smoother.fit(case.scaled_Y, mu), case.reference_fit(mu)
        scale = np.abs(case.Y).max()
        case.close(fitted.values / case.s, model.predict(case.K, case.unpenalised), mu, scale)
        dual = smoother.dual_coef(fitted, mu)
        case.close(case.s * dual, model.alpha, mu)
        beta = unpenalised_coef(smoother, case.scaled_Y, dual)
        columns = reference.unpenalised_columns(case.n, case.intercept, case.unpenalised)
        if columns.shape[1]:
            case.close(
                case.Q0 @ beta / case.s,
                columns @ model.beta,
                mu,
                max(scale, np.abs(case.K @ model.alpha).max()),
            )
        if not single:
            case.close(
                smoother.leverage(mu), np.diag(smoother.fit(np.eye(case.n), mu).values), mu, 1.0
            )


def check_leave_one_out(case: Case) -> None:
    mus = case.mus()
    held = case.smoother.leave_one_out(case.scaled_Y, mus)
    assert held.residual.shape == (len(mus), case.n, 2)
    for number, mu in enumerate(mus):
        expected = np.vstack(
            [case.reference_held_out(np.array([row]), mu) for row in range(case.n)]
        )
        case.close(case.Y - held.residual[number] / case.s, expected, mu)


def overlapping_sets(n: int) -> list[np.ndarray]:
    """Some rows, some of the same again in another order, more than half, and nearly all."""
    rng = np.random.default_rng(5)
    return [
        np.array([4, 1]),
        np.array([6, 4, 11, 2, 9]),
        rng.permutation(n)[: n // 2 + 3],
        rng.permutation(n)[: n - 7],
    ]


def check_leave_out(case: Case, single: bool = False) -> None:
    for mu in case.mus((1e-6, 1e-2, 1e4)):
        smoother = case.single(mu) if single else case.smoother
        fitted = smoother.fit(case.scaled_Y, mu)
        for test in overlapping_sets(case.n):
            removal = smoother.leave_out(test, mu)
            got = case.Y[test] - removal.held_out(fitted).residual / case.s[test]
            case.close(got, case.reference_held_out(test, mu), mu, np.abs(case.Y).max())
            check_refit_without(case, smoother, fitted, removal, mu)


def check_refit_without(case: Case, smoother, fitted, removal, mu: float) -> None:
    """Values of the remaining rows, their α, zero α of the removed rows, and β."""
    train = reference.complement(removal.rows, case.n)
    model = case.reference_refit(train, mu)
    new = smoother.refit_without(fitted, removal, mu)
    scale = np.abs(case.Y).max()
    predicted = model.predict(case.K[:, train], case.unpenalised)
    case.close(new.values / case.s, predicted, mu, max(scale, np.abs(predicted).max()))
    dual = case.s * smoother.dual_coef(new, mu)
    alpha = np.zeros_like(case.Y)
    alpha[train] = model.alpha
    case.close(dual, alpha, mu)


@every_case
def test_fit(norm, kind, setting):
    check_fit(make_case(norm, kind, setting))


@every_case
def test_leave_one_out(norm, kind, setting):
    check_leave_one_out(make_case(norm, kind, setting))


@every_case
def test_leave_out(norm, kind, setting):
    check_leave_out(make_case(norm, kind, setting))


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_function_norm_at_one_mu(kind, setting):
    """By Cholesky, without a decomposition."""
    case = make_case("function", kind, setting)
    check_fit(case, single=True)
    check_leave_out(case, single=True)


@every_thin_case
def test_thin_decompositions(norm, setting):
    """Features fewer than rows; sets larger than the rank go through the low-rank solver."""
    case = make_case(norm, "singular", setting, thin=True)
    assert not case.smoother.spectrum.complete
    for check in (check_fit, check_leave_one_out, check_leave_out):
        check(case)


@pytest.mark.parametrize("setting", ["bias", "weights and confounds"])
def test_low_rank_solver_equals_the_dense_one(setting):
    case = make_case("function", "singular", setting, thin=True)
    full = make_case("function", "singular", setting)
    test = np.arange(0, case.n, 2)
    assert len(test) > case.smoother.spectrum.rank + case.Q0.shape[1]
    for mu in case.mus():
        low, dense = (
            c.smoother.leave_out(test, mu).held_out(c.smoother.fit(c.scaled_Y, mu)).residual
            for c in (case, full)
        )
        case.close(low, dense, mu)


def test_low_rank_solver_is_used_only_where_it_is_smaller(monkeypatch):
    case = make_case("function", "singular", thin=True)
    used = []
    monkeypatch.setattr(
        type(case.smoother), "_low_rank_solver", lambda self, rows, mu: used.append(len(rows))
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
    case.smoother.check(np.array([-1.01 * lowest, 1e3]))
    with pytest.raises(
        ValueError, match=r"alpha must be greater than .* the centred kernel matrix is indefinite"
    ):
        case.smoother.check(np.array([1e3, -0.99 * lowest]))
    with pytest.raises(ValueError, match="not positive definite"):
        case.single(-0.99 * lowest)
    dual = make_case("dual", "indefinite").smoother
    assert dual.lower_bound == 0.0
    dual.check(np.array([1e-6]))


@pytest.mark.parametrize("kind", KERNELS)
def test_fixed_basis_is_the_row_deleted_and_its_basis_function_kept(kind):
    case = make_case("dual", kind)
    mus = case.mus((1e-4, 1e-1, 10.0))
    residual = case.smoother.leave_one_out_fixed_basis(case.Y, mus)
    exact = case.smoother.leave_one_out(case.Y, mus).residual
    for number, mu in enumerate(mus):
        case.close(
            case.Y - residual[number], reference.fixed_basis_held_out(case.K, case.Y, mu), mu
        )
    assert np.abs(residual - exact).max() > 1e-3  # and is another thing


@pytest.mark.parametrize("kernel_name", ["precomputed", "rbf", "linear"])
@pytest.mark.parametrize("setting", ["bias", "no bias", "penalised bias", "weights"])
@pytest.mark.parametrize("norm", NORMS)
def test_problem_gives_the_model_and_its_refits(norm, setting, kernel_name):
    case = make_case(norm, "singular" if kernel_name == "linear" else "rbf", setting)
    function = Kernel(kernel_name, {"gamma": 0.3} if kernel_name == "rbf" else {})
    X = case.K if kernel_name == "precomputed" else case.X
    row_scale = None if case.weights is None else case.s
    deleted = np.array([3, 20, 8, 0])
    for mu, single in zip(case.mus((1e-5, 1.0, 1e-2)), (False, False, True), strict=True):
        arguments = (X.copy(), function, norm, case.intercept, row_scale)
        smoother = decompose_at(*arguments, mu) if single else decompose(*arguments)
        problem = Problem(function, case.X, smoother, row_scale, case.intercept, case.Y)
        fitted = problem.fit(mu)
        train = reference.complement(deleted, case.n)
        without = problem.without(fitted, deleted, mu)
        case.close(without.values(deleted[::-1]), case.reference_held_out(deleted[::-1], mu), mu)
        mixed = np.array([8, 5, 0])
        model = case.reference_refit(train, mu)
        case.close(without.values(mixed), model.predict(case.K[np.ix_(mixed, train)]), mu)
        for solution, expected, rows in (
            (problem.solution(fitted, mu), case.reference_fit(mu), np.arange(case.n)),
            (problem.solution(without.refitted, mu), model, train),
        ):
            case.close(solution.dual_coef[rows], expected.alpha, mu)
            scale = max(np.abs(case.Y).max(), np.abs(case.K[:, rows] @ expected.alpha).max())
            case.close(solution.intercept, expected.b, mu, scale)
            if kernel_name == "linear":
                case.close(case.X @ solution.coef, case.K[:, rows] @ expected.alpha, mu, scale)


@pytest.mark.parametrize("kind", ["rbf", "singular", "duplicated"])
@pytest.mark.parametrize("norm", NORMS)
def test_tiny_mu_against_fifty_digits(norm, kind):
    """At a mu that double precision hardly carries.

    Within the promise, and no worse than refitting in float64.
    """
    case = make_case(norm, kind, n=10, seed=2)
    y = case.Y[:, 0]
    for mu in case.mus((1e-8, 1e-10, 1e-12)):
        fitted = case.smoother.fit(case.Y, mu)
        single = y - case.smoother.leave_one_out(case.Y, np.array([mu])).residual[0, :, 0]
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
                    .held_out(single_mu.fit(case.Y, mu))
                    .residual[:, 0]
                )
            for name, value in values.items():
                errors[name] = max(errors[name], np.abs(value - exact).max() / np.abs(y).max())
        limit = min(1e3 * EPS * case.spectrum_bounds[1] / mu, 100 * max(errors["refit"], EPS))
        assert all(error <= limit for error in errors.values()), (mu, limit, errors)


def test_solver_takes_definite_matrices_and_those_that_rounding_has_spoilt():
    rng = np.random.default_rng(10)
    B = rng.normal(size=(4, 2))
    spd = B @ B.T + np.eye(4)
    for A in (spd, spd - 2.0 * np.eye(4), np.array([[3.0]])):
        np.testing.assert_allclose(A @ spd_solver(A.copy())(B[: len(A)]), B[: len(A)], atol=1e-12)


@pytest.mark.parametrize(
    "backend", ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
@pytest.mark.parametrize("norm", NORMS)
def test_other_array_libraries_give_the_same_numbers(norm, backend):
    xp = require(backend)
    case = make_case(norm, "rbf", "confounds")
    K, Y, Q0 = (xp.asarray(A.copy()) for A in (case.K, case.Y, case.Q0))
    excluded = Q0 if norm == "function" else Q0[:, :0]
    spectrum = spectrum_of_kernel(xp.asarray(case.K.copy()), excluded)
    smoother = (
        type(case.smoother)(spectrum, K @ Q0)
        if norm == "function"
        else type(case.smoother)(spectrum, Q0, K @ Q0)
    )
    mus, rows = case.mus((1e-2, 1.0)), np.array([9, 2, 5])
    mu = float(mus[0])
    loo = smoother.leave_one_out(Y, mus).residual
    fitted = smoother.fit(Y, mu)
    removal = smoother.leave_out(rows, mu)
    new = smoother.refit_without(fitted, removal, mu)
    plain = case.smoother.fit(case.Y, mu)
    plain_removal = case.smoother.leave_out(rows, mu)
    plain_new = case.smoother.refit_without(plain, plain_removal, mu)
    for got, expected in (
        (loo, case.smoother.leave_one_out(case.Y, mus).residual),
        (fitted.values, plain.values),
        (removal.held_out(fitted).residual, plain_removal.held_out(plain).residual),
        (new.values, plain_new.values),
        (scatter(fitted), scatter(plain)),
    ):
        assert type(got).__module__.split(".")[0] == backend
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-9, atol=1e-10)


# ---- held_out for any hat matrix -----------------------------------------------------------------


def least_squares(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.vander(x, 4), np.zeros((4, 4))


def ridge_with_free_bias(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.column_stack([np.ones_like(x), np.sin(np.outer(x, np.arange(1, 8)))]), np.diag(
        [0.0] + [0.3] * 7
    )


def penalised_spline(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    knots = np.concatenate([[0.0] * 3, np.linspace(0, 1, 12), [1.0] * 3])
    B = scipy.interpolate.BSpline.design_matrix(x, knots, 3).toarray()
    differences = np.diff(np.eye(B.shape[1]), 2, axis=0)
    return B, 0.1 * differences.T @ differences


@pytest.mark.parametrize("model", [least_squares, ridge_with_free_bias, penalised_spline])
@pytest.mark.parametrize("targets", [None, 3])
def test_held_out_equals_refitting_any_penalised_least_squares(model, targets):
    rng = np.random.default_rng(6)
    x = np.sort(rng.uniform(size=30))
    Z, penalty = model(x)
    Y = (
        np.sin(6 * x) + 0.1 * rng.normal(size=30)
        if targets is None
        else rng.normal(size=(30, targets))
    )
    H = Z @ np.linalg.solve(Z.T @ Z + penalty, Z.T)
    mask = x > 0.8
    test_sets = [[4], np.array([9, 2, 28]), [-1, 2], mask, rng.permutation(30)[:18]]
    results = held_out(H, Y, iter(test_sets))
    assert len(results) == len(test_sets)
    for rows, values in zip(
        [[4], [9, 2, 28], [29, 2], np.flatnonzero(mask), test_sets[-1]], results, strict=True
    ):
        kept, y_kept = np.delete(Z, rows, axis=0), np.delete(Y, rows, axis=0)
        expected = Z[rows] @ np.linalg.solve(kept.T @ kept + penalty, kept.T @ y_kept)
        assert values.shape == expected.shape
        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"H": np.zeros((4, 3))}, r"H must be a square hat matrix, got shape \(4, 3\)"),
        ({"H": np.zeros(4)}, "H must be a square hat matrix"),
        ({"Y": np.zeros(5)}, r"one row per row of H \(4\)"),
        ({"Y": np.zeros((4, 1, 1))}, "at most two dimensions"),
        ({"H": np.full((4, 4), np.nan)}, "H contains NaN or infinite"),
        ({"Y": np.array([0.0, np.inf, 0.0, 0.0])}, "Y contains NaN or infinite"),
        ({"test_sets": [[0], [4]]}, r"test set 1 names rows outside 0 … 3"),
        ({"test_sets": [[-5]]}, "test set 0 names rows outside"),
        ({"test_sets": [[]]}, "non-empty list of row indices"),
        ({"test_sets": [[0.5]]}, "non-empty list of row indices"),
        ({"test_sets": [[[0, 1]]]}, "non-empty list of row indices"),
        ({"test_sets": [0, 1]}, "non-empty list of row indices"),
        ({"test_sets": [[3, -1]]}, "names a row twice"),
        (
            {"test_sets": [np.zeros(3, dtype=bool)]},
            r"mask of shape \(3,\); it must have shape \(4,\)",
        ),
        ({"test_sets": [np.zeros(4, dtype=bool)]}, "non-empty"),
    ],
)
def test_held_out_says_what_is_wrong(change, message):
    arguments = {"H": np.full((4, 4), 0.25), "Y": np.arange(4.0), "test_sets": [[0]]} | change
    with pytest.raises(ValueError, match=message):
        held_out(**arguments)


def test_held_out_refuses_to_leave_fewer_rows_than_unpenalised_columns():
    Z = np.column_stack([np.ones(6), np.random.default_rng(0).normal(size=(6, 2))])
    with pytest.raises(ValueError, match="test set 0"):
        held_out(Z @ np.linalg.pinv(Z), np.arange(6.0), [[0, 1, 2, 3]])


def test_splits_with_a_test_row_in_training_are_refused():
    train, test = np.array([0, 1, 2]), np.array([3, 4])
    assert [tuple(map(list, pair)) for pair in checked_splits([(train, test)], 5)] == [
        ([0, 1, 2], [3, 4])
    ]
    with pytest.raises(
        ValueError, match=r"split 1 has 1 test row\(s\) inside its own training set \(row 4"
    ):
        list(checked_splits([(train, test), (np.array([0, 4]), test)], 5))
    masks = np.array([True, True, False]), np.array([False, True, True])
    with pytest.raises(ValueError, match="split 0 has 1 test row"):
        list(checked_splits([masks], 3))
    with pytest.raises(ValueError, match=r"row 4 is the first"):
        list(checked_splits([(np.array([-1, 0]), test)], 5))


def test_complement_and_checked_sets_are_row_numbers():
    assert complement([3, 0], 5).tolist() == [1, 2, 4]
    assert [
        rows.tolist() for rows in check_test_sets([[-1, 0], np.array([False, True, False])], 3)
    ] == [[2, 0], [1]]


# ---- discriminant --------------------------------------------------------------------------------


def classes_case(
    norm: str, sizes: tuple[int, ...], weighted: bool = False, seed: int = 0
) -> tuple[Case, np.ndarray]:
    """Unbalanced, overlapping classes as indicator targets, and the class of each row."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(y), 3)) + np.eye(len(sizes), 3)[y] * 1.5
    weights = rng.uniform(0.3, 2.5, size=len(y)) if weighted else None
    return Case(norm, X, rbf(X), np.eye(len(sizes))[y], weights), y


def solve_discriminant(A: np.ndarray, sizes: np.ndarray):
    """As the estimator does it.

    Absent classes take no degree of freedom, priors are the class frequencies.
    """
    solved = discriminant(A, sizes, sizes.sum(axis=-1) - (sizes > 0).sum(axis=-1))
    return solved, solved.offsets(sizes / sizes.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_scatter_without_rows_equals_the_refit(norm, weighted):
    case, _ = classes_case(norm, (9, 6, 5), weighted)
    w = case.s**2
    for mu in case.mus((1e-3, 0.1)):
        fitted = case.smoother.fit(case.scaled_Y, mu)
        A = scatter(fitted)
        values = case.reference_fit(mu).predict(case.K)
        case.close(A, case.Y.T @ (w * values), mu)
        each = scatter_without_each(
            A,
            fitted,
            held_out_of_one_mu(case.smoother.leave_one_out(case.scaled_Y, np.array([mu]))),
        )
        sets = [np.array([row]) for row in range(case.n)] + overlapping_sets(case.n)
        for test in sets:
            train = reference.complement(test, case.n)
            values = case.reference_refit(train, mu).predict(case.K[np.ix_(train, train)])
            expected = case.Y[train].T @ (w[train] * values)
            removal = case.smoother.leave_out(test, mu)
            got = scatter_without(A, fitted.rows(test), removal.held_out(fitted))
            case.close(got, expected, mu)
            if len(test) == 1:
                case.close(each[test[0]], expected, mu)


def held_out_of_one_mu(held):
    """The only entry of the leading axis of a leave-one-out."""
    return type(held)(held.residual[0], None if held.force is None else held.force[0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [(14, 8), (11, 7, 5), (4, 13, 6, 7)])
@pytest.mark.parametrize("norm", NORMS)
def test_discriminant_is_kernel_fda(norm, sizes, weighted):
    """In sample and held out: decisions, projections up to sign, and Λ = a²/(1 - a²)."""
    case, y = classes_case(norm, sizes, weighted)
    everything, w = np.arange(case.n), case.s**2
    tests = [None, np.array([0]), np.array([3, 17, 9, 12, 2])]
    for mu in case.mus((1e-3, 1e-1, 10.0)):
        fitted = case.smoother.fit(case.scaled_Y, mu)
        for test in tests:
            train = everything if test is None else reference.complement(test, case.n)
            if test is None:
                A, values, rows = scatter(fitted), fitted.values / case.s, everything
            else:
                held = case.smoother.leave_out(test, mu).held_out(fitted)
                A = scatter_without(scatter(fitted), fitted.rows(test), held)
                values, rows = case.Y[test] - held.residual / case.s[test], test
            solved, offsets = solve_discriminant(A, (w * case.Y)[train].sum(axis=0))
            scores, z, eigenvalues = reference.kfda_brute(
                case.K, y, mu, train, rows, case.weights, norm
            )
            np.testing.assert_allclose(
                values @ solved.weights + offsets, scores, rtol=1e-7, atol=1e-7
            )
            np.testing.assert_allclose(solved.a2 / (1.0 - solved.a2), eigenvalues, rtol=1e-7)
            projected = solved.project(values)
            signs = np.sign(np.sum(projected * z, axis=0))
            np.testing.assert_allclose(projected * signs, z, rtol=1e-6, atol=1e-6 * np.abs(z).max())


@pytest.mark.parametrize("norm", NORMS)
def test_classes_absent_from_training_take_no_part(norm):
    case, y = classes_case(norm, (9, 2, 7, 6))
    test = np.flatnonzero((y == 1) | (np.arange(case.n) < 3))
    train = reference.complement(test, case.n)
    present = [0, 2, 3]
    mu = case.mus((1e-2,))[0]
    fitted = case.smoother.fit(case.Y, mu)
    held = case.smoother.leave_out(test, mu).held_out(fitted)
    A = scatter_without(scatter(fitted), fitted.rows(test), held)
    solved, offsets = solve_discriminant(A, case.Y[train].sum(axis=0))
    decision = (case.Y[test] - held.residual) @ solved.weights + offsets
    scores, z, _ = reference.kfda_brute(case.K, y, mu, train, test, penalty=norm)
    np.testing.assert_allclose(decision[:, present], scores, rtol=1e-7, atol=1e-7)
    assert np.all(decision[:, 1] == -np.inf) and solved.present.tolist() == [
        True,
        False,
        True,
        True,
    ]
    projected = solved.project(case.Y[test] - held.residual)
    np.testing.assert_allclose(np.abs(projected[:, :2]), np.abs(z), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(projected[:, 2], 0.0)  # one axis fewer


@pytest.mark.parametrize("sizes", [(14, 8), (11, 7, 5)])
def test_direction_of_the_axes_does_not_depend_on_the_eigensolver(sizes, monkeypatch):
    case, _ = classes_case("function", sizes)
    mu = case.mus((1e-1,))[0]
    fitted = case.smoother.fit(case.Y, mu)
    solved, _ = solve_discriminant(scatter(fitted), case.Y.sum(axis=0))
    if len(sizes) == 2:
        assert solved.centroids[1, 0] > 0 > solved.centroids[0, 0]
    else:
        farthest = np.abs(solved.centroids).argmax(axis=0)
        assert np.all(solved.centroids[farthest, [0, 1]] > 0)
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda S: type(eigh(S))(eigh(S)[0], -eigh(S)[1]))
    flipped, _ = solve_discriminant(scatter(fitted), case.Y.sum(axis=0))
    np.testing.assert_array_equal(flipped.axes, solved.axes)
    np.testing.assert_array_equal(flipped.centroids, solved.centroids)


def test_farthest_centroids_that_tie_leave_the_direction_to_the_last():
    """Three equal classes, the first two opposite on the first axis.

    Rounding must not choose the sign.
    """
    T = np.column_stack(
        [
            np.ones(3) / np.sqrt(3),
            np.array([1, -1, 0]) / np.sqrt(2),
            np.array([1, 1, -2]) / np.sqrt(6),
        ]
    )
    for noise in (-1e-12, 0.0, 1e-12):
        S = (T * [1.0, 0.6, 0.2]) @ T.T
        S[0, 0] += noise
        solved, _ = solve_discriminant(7 * S, np.full(3, 7.0))
        assert solved.centroids[1, 0] > 0


@pytest.mark.parametrize("norm", NORMS)
def test_discriminant_batches_over_leading_axes(norm):
    case, _ = classes_case(norm, (9, 1, 8))  # leaving out the only row of class 1 empties it
    mu = case.mus((1e-2,))[0]
    fitted = case.smoother.fit(case.Y, mu)
    held = held_out_of_one_mu(case.smoother.leave_one_out(case.Y, np.array([mu])))
    A = scatter_without_each(scatter(fitted), fitted, held)
    sizes = case.Y.sum(axis=0) - case.Y
    solved, offsets = solve_discriminant(A, sizes)
    for row in range(case.n):
        one, one_offsets = solve_discriminant(A[row], sizes[row])
        np.testing.assert_allclose(solved.axes[row], one.axes, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(solved.centroids[row], one.centroids, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(offsets[row], one_offsets, rtol=1e-10)


def test_separable_classes_keep_all_their_axes():
    """a² → 1 on every axis as mu → 0.

    The constant solution is removed by its vector, not as the largest.
    """
    case, y = classes_case("function", (8, 7, 6), seed=1)
    case = Case("function", case.X, rbf(case.X * 3.0), case.Y)
    mu = 1e-5 * case.spectrum_bounds[1]
    fitted = case.smoother.fit(case.Y, mu)
    solved, offsets = solve_discriminant(scatter(fitted), case.Y.sum(axis=0))
    assert np.all(solved.a2 > 0.9999)
    everything = np.arange(case.n)
    scores = reference.kfda_brute(case.K, y, mu, everything, everything).scores
    np.testing.assert_allclose(fitted.values @ solved.weights + offsets, scores, rtol=1e-6)


# ---- temperature ---------------------------------------------------------------------------------


def log_loss(
    scores: np.ndarray, labels: np.ndarray, beta: float, weights: np.ndarray | None = None
) -> float:
    """Cross-entropy with Platt's targets, (N + 1)/(N + c) for the own class of N rows.

    Classes without a score take no part.
    """
    logits = beta * class_scores(scores)
    c = logits.shape[1]
    weights = np.ones(len(labels)) if weights is None else weights
    sizes = np.array([weights[labels == j].sum() for j in range(c)])[labels]
    targets = (
        np.where(np.arange(c) == labels[:, None], (sizes + 1)[:, None], 1.0) / (sizes + c)[:, None]
    )
    with np.errstate(invalid="ignore"):
        terms = np.where(np.isfinite(logits), targets * logits, 0.0)
    return float(
        np.average(scipy.special.logsumexp(logits, axis=1) - terms.sum(axis=1), weights=weights)
    )


def inverse_temperature(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> float:
    return calibrate(
        scores, labels, np.ones(len(labels)) if weights is None else weights, offsets=False
    ).beta


def noisy_scores(columns: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    labels = rng.integers(max(columns, 2), size=n)
    if columns == 1:
        return 3.0 * (2.0 * labels - 1.0) + 6.0 * rng.normal(size=n), labels
    return 4.0 * np.eye(columns)[labels] + 3.0 * rng.normal(size=(n, columns)), labels


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_inverse_temperature_minimises_the_log_loss(columns, weighted):
    scores, labels = noisy_scores(columns)
    weights = np.random.default_rng(8).uniform(0.1, 4.0, size=len(labels)) if weighted else None
    best = scipy.optimize.minimize_scalar(
        lambda t: log_loss(scores, labels, np.exp(t), weights),
        bounds=(-8, 8),
        method="bounded",
        options={"xatol": 1e-10},
    )
    beta = inverse_temperature(scores, labels, weights)
    batched = inverse_temperatures(
        class_scores(scores)[None], labels, np.ones(len(labels)) if weights is None else weights
    )
    assert np.log(batched) == pytest.approx([np.log(beta)], abs=1e-5)
    assert np.log(beta) == pytest.approx(best.x, abs=1e-6)
    assert log_loss(scores, labels, beta, weights) <= best.fun + 1e-15


def test_inverse_temperature_is_finite_for_separable_scores_and_stops_at_its_bounds():
    labels = np.array([0, 1, 1, 0])
    separable = np.array([-2.0, 1.0, 3.0, -0.5])
    assert 0.1 < inverse_temperature(separable, labels, None) < 10.0  # Platt's targets hold it
    assert inverse_temperature(1e-7 * separable, labels, None) == pytest.approx(np.exp(10.0))
    assert inverse_temperature(-separable, labels, None) == pytest.approx(np.exp(-10.0))
    assert inverse_temperature(np.zeros(4), labels, None) > 0.0


def test_weights_of_the_temperature_are_repetitions():
    scores, labels = noisy_scores(3, n=40)
    weights = np.random.default_rng(9).integers(1, 4, size=40)
    repeated = np.repeat(np.arange(40), weights)
    expected = inverse_temperature(scores[repeated], labels[repeated], None)
    assert inverse_temperature(scores, labels, weights.astype(float)) == pytest.approx(
        expected, rel=1e-10
    )


def test_rows_without_a_score_of_their_class_are_left_out_of_the_temperature():
    scores, labels = noisy_scores(3)
    spoilt = np.vstack([scores, [[-np.inf, 0.0, 1.0], [np.nan, 1.0, 2.0]]])
    expected = inverse_temperature(scores, labels, None)
    assert inverse_temperature(spoilt, np.append(labels, [0, 1]), np.ones(62)) == pytest.approx(
        expected, rel=1e-12
    )
    assert inverse_temperature(np.full((2, 2), np.nan), np.array([0, 1]), None) == 1.0
    absent = scores.copy()
    absent[
        np.flatnonzero(labels != 2)[:9], 2
    ] = -np.inf  # a class absent from the training rows has probability 0
    beta = inverse_temperature(absent, labels, None)
    assert log_loss(absent, labels, beta) <= min(
        log_loss(absent, labels, factor * beta) for factor in (0.99, 1.01)
    )


def test_probabilities_are_a_softmax_of_the_class_scores():
    scores, _ = noisy_scores(1)
    np.testing.assert_allclose(
        probabilities(scores, 0.7)[:, 1], scipy.special.expit(0.7 * scores), rtol=1e-12
    )
    scores, _ = noisy_scores(3)
    scores[0, 1] = -np.inf
    P = probabilities(scores, 0.5)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert P[0, 1] == 0.0
    np.testing.assert_array_equal(P.argmax(axis=1), scores.argmax(axis=1))
