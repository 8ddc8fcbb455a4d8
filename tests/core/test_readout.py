"""The LDA rule against Fisher's discriminant on explicit features."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from problems import NORMS, Case, rbf


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
