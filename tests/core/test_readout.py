"""The LDA rule against Fisher's discriminant on explicit features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import reference
from fitonce.core.readout import (
    Axes,
    Evidence,
    Indicators,
    Rule,
    axes_of,
    gain_of,
    labels_of,
    lda_rule,
)
from problems import NORMS, Case, classes_case, rbf, scatter_of


def solve_discriminant(
    E: np.ndarray, sizes: np.ndarray, definite: bool = False
) -> tuple[Axes, Rule]:
    """As the estimator does it.

    Absent classes take no degree of freedom, priors are the class frequencies.
    """
    readout = Indicators(sizes.shape[-1])
    evidence = Evidence(E, sizes)
    return readout.axes(evidence), readout.scores_rule(evidence, definite)


def without_each(case: Case, mu: float) -> np.ndarray:
    """The residual scatter (n, c, c) without each row, as one batch."""
    path = case.smoother.path(case.targets, np.array([mu]))
    E = case.smoother.residual_scatter(case.targets, path.mus)[0]
    return E - path.leave_one_out().each().lost()


def without(case: Case, test: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """The residual scatter without some rows, and the targets predicted for them."""
    fitted = case.smoother.fit(case.targets, mu)
    held = case.smoother.leave_out(test, mu).held_out(fitted)
    return scatter_of(case, mu) - held.lost(), case.Y[test] - held.residual / case.s[test]


# ---- scatter -------------------------------------------------------------------------------------


# ---- the rule ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [(14, 8), (11, 7, 5), (4, 13, 6, 7)])
@pytest.mark.parametrize("norm", NORMS)
def test_discriminant_is_kernel_fda(norm, sizes, weighted):
    """In sample and held out: decisions, projections up to sign, and Λ = a²/(1 - a²)."""
    case, y = classes_case(norm, sizes, weighted)
    everything, w = np.arange(case.n), case.s**2
    tests = [None, np.array([0]), np.array([3, 17, 9, 12, 2])]
    for mu in case.mus((1e-3, 1e-1, 10.0)):
        for test in tests:
            train = everything if test is None else reference.complement(test, case.n)
            if test is None:
                E, rows = scatter_of(case, mu), everything
                values = case.smoother.fit(case.targets, mu).values / case.s
            else:
                (E, values), rows = without(case, test, mu), test
            scores, z, eigenvalues = reference.kfda_brute(
                case.K, y, mu, train, rows, case.weights, norm
            )
            sizes_left = (w * case.Y)[train].sum(axis=0)
            for definite in (False, True):
                solved, rule = solve_discriminant(E, sizes_left, definite)
                np.testing.assert_allclose(rule.decide(values), scores, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(solved.a2 / (1.0 - solved.a2), eigenvalues, rtol=1e-7)
            projected = values @ solved.axes
            signs = np.sign(np.sum(projected * z, axis=0))
            np.testing.assert_allclose(projected * signs, z, rtol=1e-6, atol=1e-6 * np.abs(z).max())


@pytest.mark.parametrize("norm", NORMS)
def test_classes_absent_from_training_take_no_part(norm):
    case, y = classes_case(norm, (9, 2, 7, 6))
    test = np.flatnonzero((y == 1) | (np.arange(case.n) < 3))
    train = reference.complement(test, case.n)
    present = [0, 2, 3]
    mu = case.mus((1e-2,))[0]
    E, values = without(case, test, mu)
    scores, z, _ = reference.kfda_brute(case.K, y, mu, train, test, penalty=norm)
    for definite in (False, True):  # with an absent class there is no inverse to take
        solved, rule = solve_discriminant(E, case.Y[train].sum(axis=0), definite)
        decision = rule.decide(values)
        np.testing.assert_allclose(decision[:, present], scores, rtol=1e-7, atol=1e-7)
        assert np.all(decision[:, 1] == -np.inf)
    np.testing.assert_array_equal(solved.axes[1], 0.0)
    projected = values @ solved.axes
    np.testing.assert_allclose(np.abs(projected[:, :2]), np.abs(z), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(projected[:, 2], 0.0)  # one axis fewer


@pytest.mark.parametrize("sizes", [(14, 8), (11, 7, 5)])
def test_direction_of_the_axes_does_not_depend_on_the_eigensolver(sizes, monkeypatch):
    case, _ = classes_case("function", sizes)
    mu = case.mus((1e-1,))[0]
    solved, _ = solve_discriminant(scatter_of(case, mu), case.Y.sum(axis=0))
    if len(sizes) == 2:
        assert solved.centroids[1, 0] > 0 > solved.centroids[0, 0]
    else:
        farthest = np.abs(solved.centroids).argmax(axis=0)
        assert np.all(solved.centroids[farthest, [0, 1]] > 0)
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda S: type(eigh(S))(eigh(S)[0], -eigh(S)[1]))
    flipped, _ = solve_discriminant(scatter_of(case, mu), case.Y.sum(axis=0))
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
        solved, _ = solve_discriminant(7 * (np.eye(3) - S), np.full(3, 7.0))
        assert solved.centroids[1, 0] > 0


@pytest.mark.parametrize("norm", NORMS)
def test_discriminant_batches_over_leading_axes(norm):
    case, _ = classes_case(norm, (9, 1, 8))  # leaving out the only row of class 1 empties it
    mu = case.mus((1e-2,))[0]
    E = without_each(case, mu)
    sizes = case.Y.sum(axis=0) - case.Y
    solved, rule = solve_discriminant(E, sizes)
    for row in range(case.n):
        one, one_rule = solve_discriminant(E[row], sizes[row])
        np.testing.assert_allclose(solved.axes[row], one.axes, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(solved.centroids[row], one.centroids, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(rule.offsets[row], one_rule.offsets, rtol=1e-10)
        np.testing.assert_allclose(rule.weights[row], one_rule.weights, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(rule.take([row]).weights[0], rule.weights[row], rtol=0)


def test_separable_classes_keep_all_their_axes():
    """a² → 1 on every axis as mu → 0.

    The constant solution is removed by its vector, not as the largest.
    """
    case, y = classes_case("function", (8, 7, 6), seed=1)
    case = Case("function", case.X, rbf(case.X * 3.0), case.Y)
    mu = 1e-5 * case.spectrum_bounds[1]
    everything = np.arange(case.n)
    scores = reference.kfda_brute(case.K, y, mu, everything, everything).scores
    values = case.smoother.fit(case.targets, mu).values
    for definite in (False, True):
        solved, rule = solve_discriminant(scatter_of(case, mu), case.Y.sum(axis=0), definite)
        np.testing.assert_allclose(rule.decide(values), scores, rtol=1e-6)
    assert np.all(solved.a2 > 0.9999)


# ---- by an inverse, and by axes ------------------------------------------------------------------


@dataclass(frozen=True)
class Scatters:
    """A batch of residual scatters with known axes: E = N^½ T (1 - a²) Tᵀ N^½, T ⊥ N^½ 1."""

    E: np.ndarray
    sizes: np.ndarray
    a2: np.ndarray
    theta: np.ndarray

    @classmethod
    def drawn(cls, c: int, batch: tuple[int, ...], rng: np.random.Generator) -> Scatters:
        sizes = rng.uniform(2.0, 30.0, size=(*batch, c))
        columns = rng.normal(size=(*batch, c, c))
        columns[..., 0] = np.sqrt(sizes)
        T = np.linalg.qr(columns)[0][..., 1:]
        a2 = rng.uniform(0.02, 0.98, size=(*batch, c - 1))
        root = np.sqrt(sizes)[..., None]
        E = (
            root
            * ((T * (1.0 - a2)[..., None, :]) @ np.swapaxes(T, -1, -2))
            * root[..., 0][..., None, :]
        )
        return cls(E, sizes, a2, T / root)

    def gain(self) -> np.ndarray:
        """Γ = θ (1 - a²)⁻¹ θᵀ."""
        return (self.theta / (1.0 - self.a2)[..., None, :]) @ np.swapaxes(self.theta, -1, -2)

    def unit(self) -> np.ndarray:
        """Θ = θθᵀ."""
        return self.theta @ np.swapaxes(self.theta, -1, -2)


def predicted_indicators(scatters: Scatters, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Random predicted targets, which sum to one as those of every fit with a free bias do."""
    P = rng.normal(size=(*scatters.sizes.shape[:-1], rows, scatters.sizes.shape[-1]))
    return P + (1.0 - P.sum(axis=-1, keepdims=True)) / P.shape[-1]


def unshared(weights: np.ndarray) -> np.ndarray:
    """Weights less what they add to all scores of a row alike, for rows that sum to one."""
    return weights - weights.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize("c", [2, 3, 4, 5, 6])
def test_inverse_and_eigenproblem_give_one_rule(c, batch):
    rng = np.random.default_rng(c)
    scatters = Scatters.drawn(c, batch, rng)
    E, sizes = scatters.E, scatters.sizes
    dof = sizes.sum(axis=-1) - c
    log_priors = np.log(sizes / sizes.sum(axis=-1, keepdims=True))
    solved = axes_of(E, sizes, dof)
    np.testing.assert_allclose(solved.a2, -np.sort(-scatters.a2, axis=-1), rtol=1e-9)
    both = [(solved.gain, solved.unit), gain_of(E, sizes), gain_of(E[..., 1:, 1:], sizes)]
    P = predicted_indicators(scatters, 11, rng)
    expected = lda_rule(scatters.gain(), scatters.unit(), sizes, dof, log_priors)
    centroids, z = solved.centroids, P @ solved.axes
    by_distance = (
        z @ np.swapaxes(centroids, -1, -2) - 0.5 * np.sum(centroids**2, axis=-1)[..., None, :]
    )
    for gain, unit in both:
        np.testing.assert_allclose(gain, scatters.gain(), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(unit, scatters.unit(), rtol=1e-9, atol=1e-11)
        rule = lda_rule(gain, unit, sizes, dof, log_priors)
        np.testing.assert_allclose(
            unshared(rule.weights), unshared(expected.weights), rtol=1e-8, atol=1e-9
        )
        decision = rule.decide(P)
        np.testing.assert_allclose(
            decision, by_distance + log_priors[..., None, :], rtol=1e-8, atol=1e-8
        )
        differences = centroids[..., :, None, :] - centroids[..., None, :, :]
        np.testing.assert_allclose(
            rule.separation, 0.5 * np.sum(differences**2, axis=-1), rtol=1e-8, atol=1e-9
        )
        reduced = rule.reduced()
        np.testing.assert_allclose(reduced.decide(P[..., 1:]), decision, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("priors", [None, "given"])
@pytest.mark.parametrize("c", [2, 3, 4, 5, 6])
def test_readout_decides_alike_with_and_without_an_eigenproblem(c, priors):
    rng = np.random.default_rng(10 + c)
    scatters = Scatters.drawn(c, (4,), rng)
    readout = Indicators(
        c, None if priors is None else tuple(np.arange(1.0, c + 1) / (c * (c + 1) / 2))
    )
    P = predicted_indicators(scatters, 40, rng)
    by_axes, by_inverse, reduced = (
        readout.read(targets, readout.rule(Evidence(E, scatters.sizes), definite))
        for targets, E, definite in (
            (P, scatters.E, False),
            (P, scatters.E, True),
            (P[..., 1:], scatters.E[..., 1:, 1:], False),
        )
    )
    assert by_axes.shape == (4, 40, 1 if readout.n_classes == 2 else readout.n_classes)
    np.testing.assert_allclose(by_inverse, by_axes, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(reduced, by_axes, rtol=1e-8, atol=1e-8)
    classes = np.arange(c)
    for one, other in zip(by_axes, by_inverse, strict=True):
        shaped = (readout.shaped(one), readout.shaped(other))
        np.testing.assert_array_equal(*(labels_of(decision, classes) for decision in shaped))
    kept = np.swapaxes(P[..., 1:], -1, -2)[:, None]  # one fold of each labelling
    for definite in (False, True):
        unit = np.abs(kept).max(axis=-1)
        evidence = Evidence(scatters.E[:, None, 1:, 1:], scatters.sizes[:, None])
        got, size = readout.read_kept(kept, unit, evidence, definite)
        assert np.all(np.abs(got) <= (1 + 1e-12) * size[..., None])
        expected = by_axes[:, None, :, 0] if c == 2 else np.swapaxes(by_axes, -1, -2)[:, None]
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)


def test_classes_that_do_not_separate_are_decided_by_their_sizes_alone():
    """a² = 0: E is the scatter about the mean, and its only axis is rounding."""
    sizes = np.array([6.0, 9.0])
    E = np.diag(sizes) - np.outer(sizes, sizes) / sizes.sum()
    P = np.array([[0.9, 0.1], [-0.4, 1.4]])
    for definite in (False, True):
        decision = Indicators(2).read(P, Indicators(2).rule(Evidence(E, sizes), definite))
        np.testing.assert_allclose(decision, np.log(9.0 / 6.0), rtol=1e-12)


def test_a_scatter_without_an_inverse_goes_through_its_axes():
    sizes = np.array([4.0, 5.0, 6.0])
    readout, E = Indicators(3), np.zeros((3, 3))  # every class at a point of its own
    by_axes, by_inverse = (readout.rule(Evidence(E, sizes), definite) for definite in (False, True))
    np.testing.assert_array_equal(by_inverse.weights, by_axes.weights)
    assert np.all(np.isfinite(by_inverse.weights))
