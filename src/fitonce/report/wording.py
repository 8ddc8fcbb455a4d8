"""Numbers, scores and settings in words: one name and one format for each. The sentences
themselves are in the template of the page.
"""

from __future__ import annotations

import importlib
import platform
from typing import Any

import numpy as np

from .figures import rounded
from .subject import Subject, codes_of, finite_rows, shortened

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
FEW = 5  # rows of a class, of which nothing certain can be said


def count(number: int) -> str:
    return f"{int(number):,}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "–"


def four_digits(value: float | None) -> str:
    return f"{value:.4g}" if value is not None and np.isfinite(value) else "–"


def type_name(value: Any) -> str:
    return type(value).__name__


def model_name(model: Any) -> str:
    return MODELS.get(type_name(model), type_name(model))


def score_name(name: Any) -> str:
    """Of a metric or criterion."""
    if not isinstance(name, str):
        return "user-defined criterion"
    return SCORES.get(name, name.replace("_", " "))


def score_text(subject: Subject, value: float) -> str:
    """A value of the main score: accuracy or R²."""
    return percent(value) if subject.classification else f"{value:.3f}"


def interval_text(subject: Subject) -> str:
    """The interval of the nested score, empty where it has none."""
    assessment = subject.assessment
    if assessment is None or not np.isfinite(assessment.score.low):
        return ""
    low, high = (score_text(subject, end) for end in (assessment.score.low, assessment.score.high))
    return f"{100 * assessment.score.level:g} % interval {low} to {high}"


def own_splits(subject: Subject) -> str:
    """How the model's own held-out values were made."""
    together = "cross-validation by the model's own splits"
    return "leave-one-out" if subject.leave_one_out else together


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


def chosen_values(model: Any) -> list[str]:
    """The chosen gamma, where there is one, and alpha."""
    gamma = getattr(model, "gamma_", None)
    alpha = f"alpha = {rounded(float(model.alpha_))}"
    if gamma is None:
        return [alpha]
    several = np.ndim(gamma) > 0
    return ["one gamma per feature" if several else f"gamma = {rounded(float(gamma))}", alpha]


def setting(value: Any) -> str:
    """The value of a parameter."""
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if isinstance(value, np.ndarray):
        shown = ", ".join(f"{number:.4g}" for number in value.reshape(-1)[:6])
        return f"[{shown}{', …' if value.size > 6 else ''}]"
    return shortened(value if isinstance(value, str) else repr(value), 120)


def listed(names: list[str], limit: int = 6) -> str:
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def doubts(subject: Subject) -> list[str]:
    """What a reader must know before believing the figures."""
    found = [] if subject.assessment is None else list(subject.assessment.warnings)
    few = [
        name for name, size in zip(subject.class_names, subject.sizes, strict=True) if size < FEW
    ]
    if few:
        found.append(
            f"Fewer than five rows of {listed(few)}: nothing certain can be said of so few."
        )
    if subject.n_samples < 20:
        found.append(
            f"There are only {subject.n_samples} rows: every figure on this page is uncertain."
        )
    return found


def versions(own: str) -> str:
    modules = ("numpy", "scipy", "sklearn")
    numbers = [f"{name} {importlib.import_module(name).__version__}" for name in modules]
    return ", ".join([f"fitonce {own}", *numbers, f"Python {platform.python_version()}"])
