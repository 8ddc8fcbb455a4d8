"""Temperatures of class scores against direct minimisation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from fitonce.core.calibration import (
    calibrate,
    class_scores,
    inverse_temperatures,
    probabilities,
)


def log_loss(
    scores: np.ndarray,
    labels: np.ndarray,
    beta: float,
    weights: np.ndarray | None = None,
    floored: bool = True,
) -> float:
    """Cross-entropy with targets (n + 1)/(n + 2) for the own class of n rows, of probabilities
    mixed with a share of 1/(2(n + 1)) that all classes have alike.

    Classes without a score take no part.
    """
    logits = beta * class_scores(scores)
    c = logits.shape[1]
    weights = np.ones(len(labels)) if weights is None else weights
    n = weights.sum()
    targets = np.where(np.arange(c) == labels[:, None], n + 1.0, 1.0 / (c - 1.0)) / (n + 2.0)
    targets = np.where(np.isfinite(logits), targets, 0.0)
    targets /= targets.sum(axis=1, keepdims=True)
    log_p = scipy.special.log_softmax(logits, axis=1)
    if floored:
        share = 0.5 / (n + 1.0)
        log_p = np.log((1.0 - share) * np.exp(log_p) + share / c)
    terms = np.where(np.isfinite(logits), targets * np.where(targets > 0, log_p, 0.0), 0.0)
    return float(np.average(-terms.sum(axis=1), weights=weights))


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
    best, plain = (
        scipy.optimize.minimize_scalar(
            lambda t, floored=floored: log_loss(scores, labels, np.exp(t), weights, floored),
            bounds=(-8, 8),
            method="bounded",
            options={"xatol": 1e-10},
        )
        for floored in (True, False)
    )
    beta = inverse_temperature(scores, labels, weights)
    batched = inverse_temperatures(
        class_scores(scores)[None], labels, np.ones(len(labels)) if weights is None else weights
    )
    assert np.log(batched) == pytest.approx([plain.x], abs=1e-6)
    assert np.log(beta) == pytest.approx(best.x, abs=1e-6)
    assert log_loss(scores, labels, beta, weights) <= best.fun + 1e-15


def test_inverse_temperature_is_finite_for_separable_scores_and_flat_for_useless_ones():
    labels = np.array([0, 1, 1, 0])
    separable = np.array([-2.0, 1.0, 3.0, -0.5])
    assert 0.1 < inverse_temperature(separable, labels, None) < 10.0  # soft targets hold it
    useless = probabilities(-separable, inverse_temperature(-separable, labels, None))
    np.testing.assert_allclose(useless, 0.5, atol=1e-4)
    assert inverse_temperature(np.zeros(4), labels, None) > 0.0


@pytest.mark.pairwise
@pytest.mark.parametrize("unit", [1e-12, 1e6, 1e12])
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("kind", ["overlapping", "separable", "useless"])
@pytest.mark.parametrize("offsets", [False, True])
def test_the_unit_of_the_decisions_does_not_matter(kind, columns, unit, offsets):
    """Discriminant decisions grow without bound as alpha falls."""
    scores, labels = noisy_scores(columns)
    if kind != "overlapping":
        clear = 2.0 * labels - 1.0 if columns == 1 else np.eye(columns)[labels]
        scores = (9.0 if kind == "separable" else -9.0) * clear + 0.1 * scores

    def calibrated(scores):
        found = calibrate(scores, labels, np.ones(len(labels)), offsets=offsets)
        logits = found.beta * class_scores(scores) + found.offsets
        return scipy.special.softmax(logits, axis=1)

    np.testing.assert_allclose(calibrated(unit * scores), calibrated(scores), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("outlier", [1.0, 1e4, 1e8])
def test_the_bracket_of_the_temperature_always_holds_the_best_one(outlier):
    """Whatever the scores, the loss rises on both sides of what is found."""
    scores, labels = noisy_scores(3)
    scores[0] *= outlier
    labels[0] = np.argmax(scores[0])
    beta = inverse_temperature(scores, labels, None)
    around = [log_loss(scores, labels, factor * beta) for factor in (0.9, 1.0, 1.1)]
    assert around[1] < min(around[0], around[2])


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


def test_temperatures_of_many_candidates_are_those_of_each_alone():
    """Good, useless, misleading and separable scores side by side, one class without a score."""
    rng = np.random.default_rng(3)
    labels = rng.integers(3, size=40)
    own = np.eye(3)[labels]
    candidates = np.stack(
        [
            2.0 * own + rng.normal(size=(40, 3)),
            rng.normal(size=(40, 3)),
            -own,
            1e6 * own,
            np.where(labels[:, None] == 2, 1.0, [1.0, 1.0, -np.inf]) * (own + 0.1),
        ]
    )
    weights = rng.exponential(size=40)
    together = inverse_temperatures(candidates, labels, weights)
    alone = [inverse_temperatures(one[None], labels, weights)[0] for one in candidates]
    np.testing.assert_allclose(together, alone, rtol=1e-11)
    for scores, beta in zip(candidates[:2], together[:2], strict=True):
        loss = [log_loss(scores, labels, b * beta, weights, floored=False) for b in (0.99, 1, 1.01)]
        assert loss[1] < min(loss[0], loss[2])
