"""Weights on the simplex, against general optimisers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from fitonce.core import simplex
from fitonce.core.simplex import (
    ROWS_OF_START,
    least_squares_weights,
    mixture_weights,
    without_rest,
)


@pytest.mark.parametrize("seed", range(4))
def test_the_iteration_goes_to_the_best_mixture(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone to its end it is where a general optimiser ends; on the way the likelihood rises."""
    random = np.random.default_rng(seed)
    p, v = random.beta(2.0, 1.0, (5, 60)), random.integers(1, 4, 60).astype(float)
    start = np.full(5, 0.2)

    def loss(w: np.ndarray) -> float:
        return -float(v @ np.log(w @ p))

    before = loss(start)
    for rounds in (10, 40, 20000):
        monkeypatch.setattr(simplex, "FEWEST_ROUNDS", rounds)
        monkeypatch.setattr(simplex, "MOST_ROUNDS", rounds)
        w = mixture_weights(p, v, start)
        assert loss(w) <= before
        assert np.isclose(w.sum(), 1.0)
        assert w.min() >= 0
        before = loss(w)
    best = scipy.optimize.minimize(
        loss,
        start,
        bounds=[(1e-9, 1.0)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-12},
    )
    assert loss(w) <= best.fun + 1e-5


def test_a_weight_of_two_is_a_repeated_row() -> None:
    p = np.random.default_rng(0).uniform(0.1, 1.0, (4, 30))
    v, start = np.where(np.arange(30) < 10, 2.0, 1.0), np.array([0.4, 0.3, 0.2, 0.1])
    repeated = np.concatenate([p, p[:, :10]], axis=1)
    np.testing.assert_allclose(
        mixture_weights(p, v, start), mixture_weights(repeated, np.ones(40), start), rtol=1e-10
    )


def test_the_lightest_leave() -> None:
    weights = np.array([0.04, 0.5, 0.05, 0.41])
    np.testing.assert_allclose(without_rest(weights, 0.1), np.array([0, 50, 0, 41]) / 91)
    np.testing.assert_allclose(without_rest(weights, 0.05), np.array([0, 50, 5, 41]) / 96)
    assert without_rest(np.array([1.0]), 0.5).tolist() == [1.0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_least_squares_has_the_minimum_of_the_simplex(seed: int, scale: float) -> None:
    """No direction within the simplex leads down: the gradient is least, and equal, on members."""
    random = np.random.default_rng(seed)
    y = random.normal(size=(1, 400, 2))
    residuals = scale * (0.5 * y + random.normal(0.3, 0.6, (7, 400, 2)))
    residuals[4] += scale  # far from the others
    residuals[6] = residuals[5]  # a copy
    v, start = random.uniform(0.5, 2.0, 400), np.array([0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1])
    w = least_squares_weights(residuals, v, start)
    assert w.min() >= 0
    assert np.isclose(w.sum(), 1.0)
    gram = np.einsum("n,jnt,knt->jk", v, residuals, residuals) / scale**2
    gradient = gram @ w + ROWS_OF_START * 7 * np.diag(gram).min() / v.sum() * (w - start)
    np.testing.assert_allclose(gradient[w > 0], gradient.min(), rtol=1e-8)


def test_few_rows_keep_the_weights_of_the_start() -> None:
    """The same errors, seen in more rows, move the weights further."""
    random = np.random.default_rng(0)
    residuals = random.normal(size=(3, 50, 1)) * np.array([1.0, 1.2, 1.4])[:, None, None]
    start = np.array([0.2, 0.3, 0.5])
    moved = [
        np.abs(least_squares_weights(np.tile(residuals, (1, k, 1)), np.ones(50 * k), start) - start)
        for k in (1, 10, 100)
    ]
    assert moved[0].sum() < moved[1].sum() < moved[2].sum()


def test_in_least_squares_a_weight_of_two_is_a_repeated_row() -> None:
    residuals = np.random.default_rng(0).normal(size=(3, 30, 2))
    v, start = np.where(np.arange(30) < 10, 2.0, 1.0), np.array([0.5, 0.3, 0.2])
    repeated = np.concatenate([residuals, residuals[:, :10]], axis=1)
    np.testing.assert_allclose(
        least_squares_weights(residuals, v, start),
        least_squares_weights(repeated, np.ones(40), start),
        rtol=1e-10,
    )


def test_perfect_models_share() -> None:
    found = least_squares_weights(np.zeros((3, 5, 1)), np.ones(5), np.ones(3))
    np.testing.assert_allclose(found, 1 / 3)
