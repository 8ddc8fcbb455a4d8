"""The explorer: held-out results of the model for every position of the sliders.

The model is fitted once for each value of gamma and evaluated at every alpha with ``model.at``, so
the results are those of the estimator: leave-one-out, or its own cv. The page only looks them up:
`numbers` is the data in the page, `legend` has the markers of the classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..assessment import choice_of
from ..core.arrays import to_numpy
from ..core.numerical_warnings import warnings_held_back
from ..estimators.fitted import uncalibrated
from .results import Results
from .subject import Subject, calibrated, model_feature_names

Progress = Callable[[str, int, int], None]

# steps to either side of the chosen gamma and alpha: the first pair that fits is used
LADDER = ((4, 20), (4, 16), (3, 16), (3, 12), (2, 12), (2, 8), (1, 8), (1, 4))
OCTAVES = 10  # the alpha slider covers this many powers of two to either side
SECONDS = 20.0  # time limit for the table
DECOMPOSE_UP_TO = 5000  # rows without landmarks; above this, other values of gamma take too long
NO_EXPLORER_ABOVE = 20000  # rows
NO_ROOM = "There is no explorer: it does not fit into the page. Increase max_megabytes."
PER_STOP = 300  # characters for the figures of one position

CIRCLE = [(np.cos(turn), np.sin(turn)) for turn in np.linspace(0.0, 2.0 * np.pi, 25)[:-1]]
SQUARE = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]
TRIANGLE = [(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]
DIAMOND = [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]
STAR = [
    (radius * np.sin(turn), -radius * np.cos(turn))
    for radius, turn in zip([1.5, 0.6] * 5, np.arange(10) * np.pi / 5, strict=True)
]
PLUS = [
    (sign * a, sign * b)
    for sign in (1, -1)
    for a, b in ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4))
]
CROSS = [((a - b) / 2**0.5, (a + b) / 2**0.5) for a, b in PLUS]
UPSIDE_DOWN = [(a, -b) for a, b in TRIANGLE]
SHAPES = (CIRCLE, SQUARE, TRIANGLE, DIAMOND, UPSIDE_DOWN, PLUS, CROSS, STAR)
COLOURS = 8  # in the style of the page
LEGEND_UP_TO = 16  # classes


@dataclass(frozen=True)
class Explorer:
    """The results at all positions, in the order of gamma, then alpha."""

    results: Results
    factors: list[float]
    alphas: np.ndarray

    @property
    def chosen(self) -> tuple[int, int]:
        return self.factors.index(1.0), len(self.alphas) // 2

    @property
    def gammas(self) -> list[float | None]:
        """The gammas; None if there is none, or one for each feature."""
        gamma = getattr(self.results.subject.model, "gamma_", None)
        if gamma is None or np.ndim(gamma) > 0:
            return [None] * len(self.factors)
        return [float(gamma) * factor for factor in self.factors]


def build_explorer(
    subject: Subject, room: float, progress: Progress | None = None
) -> Explorer | str:
    """The explorer of a model in about `room` characters, or a sentence that says why there is
    none.

    Raises ValueError if X and y are not the rows that the model was fitted on.
    """
    n = subject.n_samples
    if subject.confounds is not None:
        return "There is no explorer for models with confounds."
    if n > NO_EXPLORER_ABOVE:
        return f"There is no explorer for more than {NO_EXPLORER_ABOVE:,} rows; there are {n:,}."
    if subject.committee:
        return "There is no explorer: every member of the committee has settings of its own."
    if subject.record is None and too_heavy(subject):
        return (
            "There is no explorer: a model loaded from a file would have to be decomposed again, "
            f"which takes too long for {n:,} rows."
        )
    with warnings_held_back():
        chosen = _chosen(subject)
        if chosen is None:
            return (
                "There is no explorer: refitting does not reproduce the held-out values of the "
                "model, because the model file does not contain its splits. Pass its groups, or "
                "fit it again."
            )
        if not np.isfinite(subject.held_out).any():
            return "There is no explorer: no row has a held-out prediction."
        results = Results(subject)
        steps = _steps(results, room)
        if steps is None:
            return NO_ROOM
        alphas = float(subject.model.alpha_) * _powers_of_two(OCTAVES, steps[1])
        factors = list(_fill(results, chosen, _powers_of_two(steps[0], steps[0]), alphas, progress))
    return Explorer(results, factors, alphas)


def _powers_of_two(reach: int, steps: int) -> np.ndarray:
    """From 2^-reach to 2^reach, with this many steps to either side of one."""
    return np.asarray(2.0 ** (np.arange(-steps, steps + 1) * reach / max(steps, 1)))


def too_heavy(subject: Subject) -> bool:
    """Whether decompositions for other values of gamma would take too long."""
    return subject.n_samples * _rank(subject) ** 2 > DECOMPOSE_UP_TO**3


def _rank(subject: Subject) -> int:
    landmarks = getattr(subject.model, "landmarks_", None)
    return subject.n_samples if landmarks is None else len(landmarks)


def _steps(results: Results, room: float) -> tuple[int, int] | None:
    """The first step sizes that fit into the page and into `SECONDS`; if none is fast enough, the
    coarsest that fits.
    """
    subject = results.subject
    n, rank = subject.n_samples, _rank(subject)
    reading = 2.5e-8 * n * rank + 1.2e-7 * n * len(subject.class_names) ** 2  # seconds on one core
    fitting = 2e-10 * n * rank**2
    has_gamma = hasattr(subject.model, "gamma_") and not too_heavy(subject)
    found = None
    for gamma_steps, alpha_steps in LADDER:
        n_gammas = 2 * gamma_steps * has_gamma + 1
        n_stops = n_gammas * (2 * alpha_steps + 1)
        if n_stops * (results.bytes_per_stop * 4 / 3 + PER_STOP) <= room:
            found = gamma_steps * has_gamma, alpha_steps
            if n_stops * reading + n_gammas * fitting <= SECONDS:
                break
    return found


def _chosen(subject: Subject) -> Any | None:
    """The model with its decomposition: itself, or refitted; None if refitting gives other held-out
    values.
    """
    model = subject.model
    if subject.record is not None and not calibrated(model) and not _dropping(model):
        return model
    fitted = _refitted(subject, 1.0, model.alpha_)
    if not _close(to_numpy(model.dual_coef_), to_numpy(fitted.dual_coef_)):
        raise ValueError(
            "X, y (and sample_weight) must be the data that the model was fitted on, but refitting "
            "the model on them gives a different model. A report explains the training rows: pass "
            "the same rows in the same order, or fit the model to these rows."
        )
    same = _dropping(model) or _close(uncalibrated(model), uncalibrated(fitted))
    return fitted if same else None


def _close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    least = 1e-4 * np.abs(ours[np.isfinite(ours)]).max(initial=0.0)
    alike = ours.shape == theirs.shape
    return alike and np.allclose(ours, theirs, rtol=1e-3, atol=least, equal_nan=True)


def _dropping(model: Any) -> bool:
    """Whether a left-out row removes its landmark, which is not so for landmarks given as
    points.
    """
    return getattr(model, "shared_landmarks", None) == "drop" and hasattr(model, "landmarks_")


def _refitted(subject: Subject, factor: float, alpha: float) -> Any:
    """The model with its chosen settings, except for gamma times the factor and another alpha."""
    model = subject.model
    fixed = choice_of(model) | {"alpha": float(alpha), "refine": False}
    if "gamma" in fixed:
        fixed["gamma"] = np.multiply(fixed["gamma"], factor)
    if hasattr(model, "landmarks_"):
        fixed |= {"landmarks": model.landmarks_, "shared_landmarks": True}
    if hasattr(model, "calibration"):
        fixed["calibration"] = None
    if subject.record is not None:
        fixed["cv"] = subject.record.folds
    return (
        clone(model)
        .set_params(**fixed)
        .fit(
            subject.model_features,
            subject.y,
            sample_weight=subject.sample_weight,
            groups=subject.groups,
        )
    )


def _fill(
    results: Results,
    chosen: Any,
    factors: np.ndarray,
    alphas: np.ndarray,
    progress: Progress | None,
) -> Iterator[float]:
    """Compute every position; yields the factors of gamma that can be fitted. Values of alpha that
    are too small for a kernel leave gaps.
    """
    for gamma, factor in enumerate(factors):
        model = chosen if factor == 1.0 else None
        if model is None:
            with suppress(ValueError):  # the kernel overflows, or is too indefinite for any alpha
                model = _refitted(results.subject, factor, alphas[-1])
        if model is not None:
            yield float(factor)
        for done, alpha in enumerate(alphas, start=gamma * len(alphas) + 1):
            if model is not None:
                results.append(_at(model, float(alpha), results.subject.model.alpha_))
            if progress is not None:
                progress("explorer", done, len(factors) * len(alphas))


def _at(model: Any, alpha: float, chosen: float) -> Any | None:
    """The model at another alpha; None if that is too small for the kernel."""
    with warnings_held_back() as warned:
        try:
            found = model.at(alpha)
        except ValueError:
            return None
    return found if alpha == chosen or not warned else None


# ---- the data in the page ------------------------------------------------------------------------


def script_json(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or start markup."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def marks(n_classes: int) -> list[list[tuple[float, float]]]:
    """The polygon of every class. Colors repeat after eight classes, combinations of color and
    shape after 64.
    """
    numbers = range(min(n_classes, 64))
    return [np.round(SHAPES[(k + k // COLOURS) % len(SHAPES)], 3).tolist() for k in numbers]


def legend(names: list[str]) -> list[dict[str, Any]]:
    """Names of the classes with their markers; empty if there are too many to distinguish."""
    shown = names if len(names) <= LEGEND_UP_TO else []
    polygons = [" ".join(f"{x},{y}" for x, y in mark) for mark in marks(len(shown))]
    return [
        {"name": name, "polygon": polygon, "colour": k % COLOURS}
        for k, (name, polygon) in enumerate(zip(shown, polygons, strict=True))
    ]


def numbers(explorer: Explorer, include_data: bool) -> dict[str, Any]:
    """The data for every position: the error and, if the report may contain data, the rows."""
    gamma, alpha = explorer.chosen
    errors = {
        "kind": "classification" if explorer.results.subject.classification else "regression",
        "alphas": explorer.alphas.tolist(),
        "gammas": explorer.gammas,
        "factors": explorer.factors,
        "chosen": {"gamma": gamma, "alpha": alpha},
        "errors": explorer.results.figures["error"],
    }
    return errors | (_rows(explorer) if include_data else {})


def _rows(explorer: Explorer) -> dict[str, Any]:
    """The data that the page draws."""
    results, subject, plane = explorer.results, explorer.results.subject, explorer.results.plane
    rows = subject.active
    return {
        "view": results.view,
        "r2": results.figures["r2"],
        "dof": results.figures["dof"],
        "splits": "leave-one-out" if subject.leave_one_out else "cross-validation",
        "rows": rows.tolist(),
        "names": [subject.row_names[row] for row in rows],
        "classes": subject.class_names,
        "marks": marks(max(len(subject.class_names), 1)),
        "codes": subject.codes[rows].tolist() if subject.classification else None,
        "observed": None if subject.classification else subject.first_target[rows].tolist(),
        "points": None if plane is None else plane.points.tolist(),
        "box": None if plane is None else plane.box.tolist(),
        "channels": {name: channel.packed() for name, channel in results.channels.items()},
        "labels": _axis_labels(results),
    }


def _axis_labels(results: Results) -> list[str]:
    binary = len(results.subject.class_names) == 2
    decision = "decision value" if binary else "margin (own class minus best other class),"
    labels = {
        "fit": ["observed", "predicted when left out"],
        "axes": ["discriminant axis 1", "discriminant axis 2"],
        "lanes": [f"{decision} when left out", ""],
    }
    return labels.get(results.view) or model_feature_names(results.subject)
