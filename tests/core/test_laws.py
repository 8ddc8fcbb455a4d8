"""Laws that hold whatever the kernel, targets and regularisation.

Scaling, offsets, weights, order, limits, linearity.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import KERNELS, NORMS, SETTINGS, Case, make_case

law = settings(deadline=None, max_examples=25, derandomize=True)
both_norms = pytest.mark.parametrize("norm", NORMS)
magnitudes = st.floats(-4.0, 4.0).map(lambda exponent: 10.0**exponent)


@st.composite
def problems(draw, kinds=KERNELS, sets=SETTINGS) -> tuple[dict, np.ndarray, float]:
    """Arguments of `make_case`, some rows to leave out, and mu as a multiple of λ_max."""
    n = draw(st.integers(9, 20))
    arguments = {
        "kind": draw(st.sampled_from(kinds)),
        "setting": draw(st.sampled_from(sets)),
        "n": n,
        "seed": draw(st.integers(0, 99)),
    }
    rows = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n - 6, unique=True))
    return arguments, np.array(rows), 10.0 ** draw(st.floats(-4.0, 3.0))


def answers(case: Case, rows: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fitted values, leave-one-out values, and held-out values of the rows, as predictions of Y."""
    targets = case.smoother.project(case.scaled_Y)
    fitted = case.smoother.fit(targets, mu)
    loo = case.smoother.leave_one_out(targets, np.array([mu])).residual[0]
    held = case.smoother.leave_out(rows, mu).held_out(fitted).residual
    return fitted.values / case.s, case.Y - loo / case.s, case.Y[rows] - held / case.s[rows]


def same(case: Case, got, expected, mu: float) -> None:
    for one, other in zip(got, expected, strict=True):
        case.close(one, other, mu, max(np.abs(case.Y).max(), np.abs(other).max()))


@both_norms
@law
@given(
    problem=problems(sets=("bias", "no bias", "weights", "confounds", "weights and confounds")),
    a=magnitudes,
)
def test_kernel_and_mu_scale_together(norm, problem, a):
    """(aK, aμ) ≡ (K, μ) for the function norm, (aK, a²μ) for the dual norm."""
    arguments, rows, factor = problem
    case = make_case(norm, **arguments)
    mu = case.mus((factor,))[0]
    scaled = replace(case, K=a * case.K)
    same(
        case,
        answers(scaled, rows, mu * (a if norm == "function" else a * a)),
        answers(case, rows, mu),
        mu,
    )


@both_norms
@law
@given(
    problem=problems(sets=("bias", "weights", "confounds", "weights and confounds")),
    a=st.floats(-1.0, 1.0),
)
def test_constant_added_to_the_kernel_changes_nothing_with_a_free_bias(norm, problem, a):
    arguments, rows, factor = problem
    case = make_case(norm, **arguments)
    mu = case.mus((factor,))[0]
    same(case, answers(replace(case, K=case.K + a), rows, mu), answers(case, rows, mu), mu)


@both_norms
@law
@given(problem=problems(), seed=st.integers(0, 99))
def test_order_of_the_rows_does_not_matter(norm, problem, seed):
    arguments, rows, factor = problem
    case = make_case(norm, **arguments)
    order = np.random.default_rng(seed).permutation(case.n)
    reordered = replace(
        case,
        X=case.X[order],
        K=case.K[np.ix_(order, order)],
        Y=case.Y[order],
        weights=None if case.weights is None else case.weights[order],
        unpenalised=None if case.unpenalised is None else case.unpenalised[order],
    )
    mu = case.mus((factor,))[0]
    values, single, held = answers(case, rows, mu)
    position = np.argsort(order)
    same(case, answers(reordered, position[rows], mu), (values[order], single[order], held), mu)


@both_norms
@law
@given(problem=problems(sets=("bias", "weights", "no bias")))
def test_much_regularisation_leaves_the_mean_of_the_training_targets(norm, problem):
    """The weighted mean, of the rows that remain; zero without a bias."""
    arguments, rows, _ = problem
    case = make_case(norm, **arguments)
    mu = 1e12 * case.spectrum_bounds[1]
    values, single, held = answers(case, rows, mu)

    def mean_without(deleted) -> np.ndarray:
        kept = np.delete(np.arange(case.n), deleted)
        weights = None if case.weights is None else case.weights[kept]
        return np.average(case.Y[kept], axis=0, weights=weights) * (case.intercept is True)

    np.testing.assert_allclose(values, np.tile(mean_without([]), (case.n, 1)), atol=1e-9)
    np.testing.assert_allclose(single, [mean_without([row]) for row in range(case.n)], atol=1e-9)
    np.testing.assert_allclose(held, np.tile(mean_without(rows), (len(rows), 1)), atol=1e-9)


@both_norms
@law
@given(problem=problems(), a=st.floats(-3.0, 3.0), seed=st.integers(0, 99))
def test_everything_is_linear_in_the_targets(norm, problem, a, seed):
    """Held-out values of aY + Y' are a times those of Y plus those of Y'.

    Columns do not see one another.
    """
    arguments, rows, factor = problem
    case = make_case(norm, **arguments)
    other = np.random.default_rng(seed).normal(size=case.Y.shape)
    mu = case.mus((factor,))[0]
    first, second = answers(case, rows, mu), answers(replace(case, Y=other), rows, mu)
    combined = replace(case, Y=a * case.Y + other)
    same(
        combined,
        answers(combined, rows, mu),
        [a * one + two for one, two in zip(first, second, strict=True)],
        mu,
    )
    beside = replace(case, Y=np.hstack([case.Y, other]))
    same(
        beside,
        answers(beside, rows, mu),
        [np.hstack(pair) for pair in zip(first, second, strict=True)],
        mu,
    )
