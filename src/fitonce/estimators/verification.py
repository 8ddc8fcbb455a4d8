"""Literal refits beside the closed form: what a methods section can quote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core._arrays import namespace, take, to_numpy


@dataclass(frozen=True)
class Verification:
    """How far the closed-form held-out outputs are from literal refits.

    `max_deviation` is relative to the largest output; `tolerance` is max(1e-8, 1e3·conditioning) with
    `conditioning` = eps·λ_max/alpha, the share of the digits that float64 cannot carry.
    """

    n_refits: int
    max_deviation: float
    tolerance: float
    conditioning: float
    smallest_one_minus_leverage: float
    route: str = "one"

    @property
    def passed(self) -> bool:
        return bool(self.max_deviation <= self.tolerance)

    def __str__(self) -> str:
        verdict = "agree" if self.passed else "DISAGREE"
        return (
            f"{self.n_refits} literal refits {verdict} with the closed form: largest relative deviation {self.max_deviation:.1e} "
            f"(tolerance {self.tolerance:.1e}); conditioning eps*lambda_max/alpha = {self.conditioning:.1e}, "
            f"smallest 1 - leverage = {self.smallest_one_minus_leverage:.1e}, route {self.route!r}."
        )


def compare_with_refits(estimator: Any, kept: Any, n_refits: int, X: Any, random_state: int | None) -> Verification:
    """Refit `n_refits` randomly chosen splits of a fitted estimator; see `KernelModel.verify`."""
    training, problem = kept.training, kept.problem
    X = _training_X(training, X)
    n = training.n_samples
    splits = kept.folds if kept.folds is not None else [(np.delete(np.arange(n), i), np.array([i])) for i in training.active]
    rng = np.random.default_rng(random_state)
    chosen = rng.permutation(len(splits))[: max(1, n_refits)]
    expected = to_numpy(estimator._held_out)
    scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=np.finfo(float).tiny)
    deviations, done = [0.0], 0
    for number in chosen:
        train, test = splits[number]
        try:
            outputs = _refit_outputs(estimator, training, X, train, test)
        except ValueError:  # a split that cannot be fitted, such as one left with a single class
            continue
        deviation = np.abs(outputs - expected[test])
        deviations.append(float(np.nanmax(deviation, initial=0.0)))
        done += 1
    conditioning = problem.smoother.conditioning / estimator.alpha_
    leverage = estimator.leverage_
    return Verification(
        n_refits=done,
        max_deviation=max(deviations) / scale,
        tolerance=max(1e-8, 1e3 * conditioning),
        conditioning=conditioning,
        smallest_one_minus_leverage=float(namespace(leverage).min(1.0 - leverage)),
    )


def _training_X(training: Any, X: Any) -> Any:
    if not training.precomputed:
        return training.X
    if X is None:
        raise ValueError("pass the training kernel matrix as X: with kernel='precomputed' it is not kept after fitting.")
    if tuple(X.shape) != (training.n_samples, training.n_samples):
        raise ValueError(f"X must be the training kernel matrix of shape {(training.n_samples,) * 2}, got {tuple(X.shape)} instead.")
    return X


def _refit_outputs(estimator: Any, training: Any, X: Any, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The main output at the test rows of an ordinary fit on the training rows, with the chosen parameters."""
    names = [name for name in ("alpha", "gamma", "degree", "coef0", "penalty") if hasattr(estimator, f"{name}_")]
    parameters = {name: getattr(estimator, f"{name}_") for name in names}
    if hasattr(estimator, "calibration"):
        parameters["calibration"] = None  # held-out decisions are those before calibration
    model = clone(estimator).set_params(cv=None, **parameters)
    X_train, X_test = take(X, train), take(X, test)
    if training.precomputed:
        X_train, X_test = take(X_train.T, train).T, take(X_test.T, train).T
    weights = None if training.weights is None else training.weights[train]
    model.fit(X_train, training.y[train], sample_weight=weights)
    outputs = model.decision_function(X_test) if hasattr(model, "decision_function") else model.predict(X_test)
    return to_numpy(outputs)
