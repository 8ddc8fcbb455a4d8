"""Settings and versions: everything needed to do it again."""

from __future__ import annotations

import importlib
import platform
from typing import Any

import numpy as np

from .explorer import Explorer
from .figures import rounded
from .names import shortened
from .scores import n_candidates
from .subject import Subject


def settings(subject: Subject, version: str, explorer: Explorer | str) -> list[tuple[str, str]]:
    """Names and values, in the order of the page."""
    model = subject.model
    found = [("model", type(model).__name__)]
    if subject.in_pipeline:
        found.append(("pipeline", " → ".join(type(step).__name__ for step in subject.steps)))
    given = model.get_params(deep=False)
    found += [
        ("parameters", _listed({k: given[k] for k in sorted(given) if given[k] is not None}, "=")),
        ("chosen", _listed(_fitted(model), " = ")),
        ("effective degrees of freedom", f"{model.effective_dof_:.2f}"),
    ]
    if hasattr(model, "temperature_"):
        found.append(("temperature of the probabilities", rounded(float(model.temperature_))))
    found.append(("candidates tried", f"{n_candidates(subject):,}"))
    found += _assessment(subject)
    found += [("explorer", _explorer(explorer)), ("versions", _versions(version))]
    return found


def _fitted(model: Any) -> dict[str, Any]:
    names = ("gamma_", "alpha_", "penalty_", "degree_", "coef0_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def _assessment(subject: Subject) -> list[tuple[str, str]]:
    assessment = subject.assessment
    if assessment is None:
        return []
    splits = (
        f"{assessment.cv}; {assessment.repeats} × {assessment.n_splits}, random state "
        f"{assessment.random_state}"
    )
    found = [("outer splits", splits), ("route", str(assessment.route))]
    test = assessment.permutation
    if test is not None:
        done = (
            f"{test.n_permutations_done:,} relabellings, mode {test.mode}, exchange "
            f"{test.exchange}; {assessment.permutation_statistic}, "
            f"{assessment.permutation_rows:,} rows"
        )
        found.append(("permutation test", done))
    return found


def _explorer(explorer: Explorer | str) -> str:
    if isinstance(explorer, str):
        return explorer
    gammas = f"{len(explorer.factors)} values of gamma × " if len(explorer.factors) > 1 else ""
    return f"{gammas}{len(explorer.alphas)} values of alpha"


def _versions(version: str) -> str:
    modules = ("numpy", "scipy", "sklearn")
    numbers = [f"{name} {importlib.import_module(name).__version__}" for name in modules]
    return ", ".join([f"fitonce {version}", *numbers, f"Python {platform.python_version()}"])


def _listed(values: dict[str, Any], sign: str) -> str:
    return ", ".join(f"{name}{sign}{_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if isinstance(value, np.ndarray):
        shown = ", ".join(f"{number:.4g}" for number in value.reshape(-1)[:6])
        return f"[{shown}{', …' * (value.size > 6)}]"
    return shortened(value if isinstance(value, str) else repr(value), 120)
