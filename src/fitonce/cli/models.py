"""From a table and the settings of a command to an estimator.

Preprocessing and model form one pipeline, which is refitted in every fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..estimators import (
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
)
from ..estimators.confounding import MEANINGS
from ..kernels import PARAMETERS
from .columns import TableDesign
from .errors import UserError, one_of
from .options import Settings
from .preprocessing import about_categories, pipeline_of

LANDMARKS_ABOVE = 2000  # rows; larger tables use landmarks unless the user decides otherwise
N_LANDMARKS = 300
MODELS: dict[str, dict[str, Any]] = {
    "classification": {"fisher": KernelFisherDiscriminant, "lssvm": LeastSquaresSVC},
    "regression": {"ridge": KernelRidge},
}
LEFT_OUT = ("polynomial", "sigmoid", "precomputed")  # kernels not offered for tables
COMMITTEES: dict[str, Any] = {
    "classification": KernelCommitteeClassifier,
    "regression": KernelCommitteeRegressor,
}
EFFORTS = ("fast", "default", "best")
KERNELS = ("auto", "tune", *(name for name in PARAMETERS if name not in LEFT_OUT))


def pipeline(design: TableDesign, settings: Settings, seed: int) -> tuple[Any, list[str]]:
    """The estimator for a table, and remarks about it."""
    allowed = MODELS[design.task]
    effort = one_of(settings.effort, "effort", EFFORTS)
    if effort == "best":
        _check_alone(settings)
        if design.confounds is not None:
            raise UserError(
                "--effort best does not support --confound, because committees cannot adjust for "
                "confounds. Leave out one of the two options."
            )
        if len(design.y) <= LANDMARKS_ABOVE:
            return pipeline_of(design, COMMITTEES[design.task]()), about_categories(design)
    name = settings.model or next(iter(allowed))
    if name not in allowed:
        raise UserError(
            f"--model {name} cannot be used for {design.task}: use {' or '.join(allowed)}, or set "
            "the kind of target with --task."
        )
    kernel = kernel_named(settings.kernel)
    chosen: dict[str, Any] = {
        "kernel": _usual_kernel(settings, len(design.y)) if kernel == "auto" else kernel,
        "penalty": one_of(settings.penalty, "penalty", ("function", "dual", "tune")),
        "gamma": _number(settings.gamma, "gamma", ("tune", "scale")),
        "alpha": _number(settings.alpha, "alpha", ("tune",)),
        "confounding": one_of(settings.confounding, "confounding", MEANINGS),
    }
    landmarks, notes = _landmarks(settings.landmarks, kernel, len(design.y))
    if landmarks is not None:
        chosen |= {"landmarks": landmarks, "random_state": seed}
    model = allowed[name](**chosen)
    if effort == "best":
        notes.append(
            f"--effort best needs at most {LANDMARKS_ABOVE:,} rows: one model is used instead"
        )
    choose = effort != "fast"
    return pipeline_of(design, model, choose), [*notes, *about_categories(design, choose)]


def _usual_kernel(settings: Settings, n_rows: int) -> str:
    """The kernel if none is named. It is tuned, unless the fit should be fast, gamma is given
    (which then belongs to rbf), or there are so many rows that landmarks are used.
    """
    chooses = settings.effort == "default" and settings.gamma == "tune"
    return "tune" if chooses and n_rows <= LANDMARKS_ABOVE else "rbf"


def _check_alone(settings: Settings) -> None:
    """Refuse settings of a single model, since a committee chooses them itself."""
    usual = vars(replace(Settings(), effort=settings.effort))
    free = ("effort", "landmarks")
    given = [name for name in usual if name not in free and vars(settings)[name] != usual[name]]
    if given:
        raise UserError(
            f"--effort best tunes kernels, widths and regularization itself and cannot be combined "
            f"with --{given[0]}: leave out one of the two."
        )


def kernel_named(text: str) -> str | list[str]:
    """The kernel given by an option; a list if several are named."""
    names = [one_of(name.strip(), "kernel", KERNELS) for name in text.split(",")]
    if len(names) == 1:
        return names[0]
    words = [name for name in names if name in ("auto", "tune")]
    if words:
        raise UserError(
            f"--kernel {words[0]} cannot be combined with other kernels, got {text!r}: name the "
            "kernels to choose from, separated by commas."
        )
    return names


def _landmarks(text: str, kernel: Any, n_rows: int) -> tuple[int | None, list[str]]:
    """The number of landmarks, None to use every row.

    Tables with more than `LANDMARKS_ABOVE` rows get landmarks by default; a linear kernel needs
    none.
    """
    if text == "none" or (text == "auto" and (n_rows <= LANDMARKS_ABOVE or kernel == "linear")):
        return None, []
    if text.isdigit() and int(text) >= 2:
        return min(int(text), n_rows), []
    if text != "auto":
        raise UserError(
            f"--landmarks must be auto, none or a number of at least 2, got {text!r} instead."
        )
    return N_LANDMARKS, [
        f"more than {LANDMARKS_ABOVE:,} rows ({n_rows:,}): the model uses {N_LANDMARKS} landmarks "
        "(Nyström approximation); change this with --landmarks"
    ]


def _number(text: str, name: str, words: Sequence[str]) -> float | str:
    """A word or a positive number."""
    if text in words:
        return text
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not value > 0 or value == float("inf"):
        raise UserError(
            f"--{name} must be a positive number or {' or '.join(words)}, got {text!r} instead."
        )
    return value
