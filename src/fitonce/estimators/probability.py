"""Probabilities of a classifier from its decisions, calibrated on held-out decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.special
from sklearn.isotonic import IsotonicRegression

from ..core.calibration import (
    Calibration,
    calibrate,
    class_scores,
    inverse_temperatures,
    least_probability,
    mixed,
    probabilities,
    through_floor,
)
from ..core.splits import Splits

PARTS = 5  # parts of the rows, each calibrated without itself


def fit_calibration(
    kind: str | None, decision: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> Calibration:
    """Fit with held-out decisions: "temperature", "sigmoid" or "isotonic"; None treats decisions as
    log-odds.
    """
    if kind is None:
        return Calibration(1.0, np.zeros(class_scores(decision).shape[1]))
    found = calibrate(decision, labels, weights, offsets=kind != "temperature")
    return _with_steps(found, decision, labels, weights) if kind == "isotonic" else found


def _with_steps(
    found: Calibration, decision: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> Calibration:
    """Two classes: steps from the decision to the probability, with the threshold moved to even
    odds; more classes: steps for the probability of the top label.
    """
    moved = found.moved(decision)
    if decision.ndim == 1:
        steps = isotonic_steps(moved, labels == 1, weights)
        threshold = even_odds(steps)
        shift = found.shift + np.array([0.0, -threshold])
        return replace(found, shift=shift, steps=steps - [[threshold], [0.0]])
    usable = np.isfinite(decision).all(axis=1)
    p = probabilities(moved[usable], found.beta)
    hit = p.argmax(axis=1) == labels[usable]
    return replace(found, steps=isotonic_steps(p.max(axis=1), hit, weights[usable]))


def isotonic_steps(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A non-decreasing map from scores to probabilities as rows (2, k) of knots, kept away from 0
    and 1 by half a row.
    """
    usable = np.isfinite(scores)
    fit = IsotonicRegression(out_of_bounds="clip").fit(
        scores[usable], positive[usable].astype(float), weights[usable]
    )
    least = 0.5 / (weights[usable].sum() + 1.0)
    return np.stack([fit.X_thresholds_, np.clip(fit.y_thresholds_, least, 1.0 - least)])


def held_out_probabilities(
    kind: str | None,
    decisions: Sequence[np.ndarray],
    labels: np.ndarray,
    weights: np.ndarray,
    part: np.ndarray,
) -> np.ndarray:
    """Probabilities (m, k, c) of m models from their held-out decisions, each row with a
    calibration that did not use its part (k,) of the rows; rows in part -1 are not used by any.
    """
    scores = np.stack([class_scores(decision) for decision in decisions])
    result = np.empty(scores.shape)
    for number in np.unique(part):
        own, others = part == number, (part != number) & (part >= 0)
        if not others.any():
            others = own
        if kind == "temperature":  # all models together
            seen = scores[:, others], labels[others], weights[others]
            floor = least_probability(weights[others], scores.shape[2])
            betas = through_floor(inverse_temperatures(*seen), *seen, floor)
            p = scipy.special.softmax(betas[:, None, None] * scores[:, own], axis=2)
            result[:, own] = mixed(p, floor)
            continue
        for model, decision in enumerate(decisions):
            found = fit_calibration(kind, decision[others], labels[others], weights[others])
            result[model, own] = found.probabilities(decision[own])
    return result


def calibration_parts(labels: np.ndarray, usable: np.ndarray, folds: Splits | None) -> np.ndarray:
    """The part of each usable row (n,), -1 for the others: rows that are tested together stay
    together, and with leave-one-out the classes are divided evenly.
    """
    part = np.full(len(labels), -1)
    if folds is not None:
        for number, (_, test) in reversed(list(enumerate(folds))):
            part[test] = number % PARTS
        return np.where(usable, part, -1)
    for label in np.unique(labels):
        rows = np.flatnonzero(usable & (labels == label))
        part[rows] = np.arange(len(rows)) % PARTS
    return part


def even_odds(steps: np.ndarray) -> float:
    """The largest score whose probability does not exceed one half.

    Far beyond the knots where none does.
    """
    x, p = steps
    reach = 10.0 * (x[-1] - x[0] + 1.0)
    if p[-1] <= 0.5:
        return float(x[-1] + reach)
    if p[0] > 0.5:
        return float(x[0] - reach)
    last = int(np.flatnonzero(p <= 0.5)[-1])
    return float(x[last] + (0.5 - p[last]) * (x[last + 1] - x[last]) / (p[last + 1] - p[last]))
