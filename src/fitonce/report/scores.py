"""Scores and settings in words: one name and one number format for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .figures import rounded
from .subject import Subject, codes_of, finite_rows

MODELS = {
    "KernelFisherDiscriminant": "kernel Fisher discriminant",
    "LeastSquaresSVC": "least-squares support vector machine",
    "KernelRidge": "kernel ridge regression",
}
SCORES = {
    "roc_auc": "area under the ROC curve",
    "auc": "area under the ROC curve",
    "brier": "Brier score",
    "r2": "R²",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "error": "error rate",
}
LOWER_IS_BETTER = ("log_loss", "brier", "mae", "rmse")


def model_name(subject: Subject) -> str:
    name = type(subject.model).__name__
    return MODELS.get(name, name)


def score_name(name: Any) -> str:
    """Of a metric or criterion."""
    if not isinstance(name, str):
        return "user-defined criterion"
    return SCORES.get(name, name.replace("_", " "))


def main_score(subject: Subject) -> str:
    return "accuracy" if subject.classification else "R²"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "–"


def score_text(subject: Subject, value: float) -> str:
    """A value of the main score."""
    return percent(value) if subject.classification else f"{value:.3f}"


def interval_text(subject: Subject) -> str:
    """The interval of the nested score, empty where it has none."""
    assessment = subject.assessment
    if assessment is None or not np.isfinite(assessment.score.low):
        return ""
    score = assessment.score
    low, high = score_text(subject, score.low), score_text(subject, score.high)
    return f"{100 * score.level:g} % interval {low} to {high}"


def own_score(subject: Subject) -> float:
    """Accuracy or R² of the held-out values of the chosen settings."""
    tested = finite_rows(subject.held_out)
    if not tested.any():
        return float("nan")
    held_out = subject.held_out[tested]
    if subject.classification:
        return float(np.mean(codes_of(held_out) == subject.codes[tested]))
    observed = subject.y[tested].astype(float)
    total = np.sum((observed - observed.mean(axis=0)) ** 2)
    return float(1.0 - np.sum((observed - held_out) ** 2) / total) if total > 0 else float("nan")


def n_candidates(subject: Subject) -> int:
    """How many settings were tried."""
    return len(subject.model.cv_results_["params"])


def kernel_text(model: Any) -> str:
    return model.kernel if isinstance(model.kernel, str) else "user-defined"


def chosen_values(model: Any) -> list[str]:
    """The chosen gamma, where there is one, and alpha."""
    gamma = getattr(model, "gamma_", None)
    alpha = f"alpha = {rounded(float(model.alpha_))}"
    if gamma is None:
        return [alpha]
    several = np.ndim(gamma) > 0
    return ["one gamma per feature" if several else f"gamma = {rounded(float(gamma))}", alpha]
