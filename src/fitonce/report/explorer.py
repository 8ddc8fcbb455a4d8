"""The explorer: held-out results of the model at every stop of the sliders.

Each value of gamma is fitted once and read at every alpha by ``model.at``, so that the results are
the estimator's own: leave-one-out, or by the cv of the model. The page only looks them up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import to_numpy
from ..estimators import NumericalWarning
from ..estimators.fitted import record_of, uncalibrated
from .results import Results
from .subject import Subject, calibrated, training_of

Progress = Callable[[str, int, int], None]

# steps to either side of the choice, of gamma and of alpha: the first pair that fits is taken
LADDER = ((4, 20), (4, 16), (3, 16), (3, 12), (2, 12), (2, 8), (1, 8), (1, 4))
OCTAVES = 10  # the alpha slider: so many powers of two to either side
SECONDS = 20.0  # that the table may take
DECOMPOSE_UP_TO = 5000  # rows without landmarks: above, other values of gamma take too long
NO_EXPLORER_ABOVE = 20000  # rows
NO_ROOM = "There is no explorer: it does not fit into the page. Allow more megabytes."
PER_STOP = 300  # characters of a stop's figures


@dataclass(frozen=True)
class Explorer:
    """The results at all stops, in the order of gamma, then alpha."""

    results: Results
    factors: list[float]
    alphas: np.ndarray

    @property
    def chosen(self) -> tuple[int, int]:
        """Positions of the chosen gamma and alpha."""
        return self.factors.index(1.0), len(self.alphas) // 2

    @property
    def gammas(self) -> list[float | None]:
        """None where there is none, or one for each feature."""
        gamma = getattr(self.results.subject.model, "gamma_", None)
        if gamma is None or np.ndim(gamma) > 0:
            return [None] * len(self.factors)
        return [float(gamma) * factor for factor in self.factors]


def build_explorer(
    subject: Subject, room: float, progress: Progress | None = None
) -> Explorer | str:
    """The explorer of a model in about `room` characters, or a sentence that says why there is
    none.

    Raises ValueError where X and y are not the rows that the model was fitted on.
    """
    n = subject.n_samples
    if n > NO_EXPLORER_ABOVE:
        return f"There is no explorer for more than {NO_EXPLORER_ABOVE:,} rows; there are {n:,}."
    if training_of(subject.model) is None and too_heavy(subject):
        return (
            "There is no explorer: a model read from a file would have to be decomposed again, "
            f"which takes long for {n:,} rows."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = _chosen(subject)
        if chosen is None:
            return (
                "There is no explorer: refitting gives other held-out values than the model has, "
                "because its splits are not in its file. Pass its groups, or fit it again."
            )
        results = Results(subject)
        steps = _steps(results, room)
        if steps is None:
            return NO_ROOM
        alphas = float(subject.model.alpha_) * _powers_of_two(OCTAVES, steps[1])
        factors = list(_fill(results, chosen, _powers_of_two(steps[0], steps[0]), alphas, progress))
    return Explorer(results, factors, alphas)


def _powers_of_two(reach: int, steps: int) -> np.ndarray:
    """From 2^-reach to 2^reach in so many steps to either side of one."""
    return np.asarray(2.0 ** (np.arange(-steps, steps + 1) * reach / max(steps, 1)))


def too_heavy(subject: Subject) -> bool:
    """Whether other values of gamma would take too long to decompose."""
    return subject.n_samples * _rank(subject) ** 2 > DECOMPOSE_UP_TO**3


def _rank(subject: Subject) -> int:
    landmarks = getattr(subject.model, "landmarks_", None)
    return subject.n_samples if landmarks is None else len(landmarks)


def _steps(results: Results, room: float) -> tuple[int, int] | None:
    """The first of the ladder that fits into the page and into `SECONDS`; where none of those that
    fit is quick enough, the last.
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
    """The model with its decomposition: itself, or fitted again; None where that gives other
    held-out values.
    """
    model = subject.model
    if training_of(model) is not None and not calibrated(model) and not _dropping(model):
        return model
    fitted = _refitted(subject, 1.0, model.alpha_)
    if not _close(to_numpy(model.dual_coef_), to_numpy(fitted.dual_coef_)):
        raise ValueError(
            "X, y (and sample_weight) must be what the model was fitted on, but fitting the "
            "model's own settings to them gives another model: a report explains the training "
            "rows. Pass the same rows in the same order, or fit the model to these."
        )
    same = _dropping(model) or _close(uncalibrated(model), uncalibrated(fitted))
    return fitted if same else None


def _close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    if ours.shape != theirs.shape:
        return False
    size = np.abs(ours[np.isfinite(ours)]).max(initial=0.0)
    return np.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * size, equal_nan=True)


def _dropping(model: Any) -> bool:
    """Whether a left-out row takes its landmark along, which landmarks given as points do not."""
    return getattr(model, "shared_landmarks", None) == "drop" and hasattr(model, "landmarks_")


def _refitted(subject: Subject, factor: float, alpha: float) -> Any:
    """The model at its chosen settings but for gamma times the factor and another alpha."""
    model = subject.model
    fixed: dict[str, Any] = {"alpha": float(alpha), "penalty": model.penalty_, "refine": False}
    for name in ("gamma", "degree", "coef0"):
        if hasattr(model, f"{name}_"):
            fixed[name] = getattr(model, f"{name}_")
    if "gamma" in fixed:
        fixed["gamma"] = fixed["gamma"] * factor
    if hasattr(model, "landmarks_"):
        fixed |= {"landmarks": model.landmarks_, "shared_landmarks": True}
    if hasattr(model, "calibration"):
        fixed["calibration"] = None
    if training_of(model) is not None:
        fixed["cv"] = record_of(model, "an explorer").folds
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
    """Compute every stop; yields the factors of gamma that can be fitted. Values of alpha that are
    too small for a kernel become gaps.
    """
    for gamma, factor in enumerate(factors):
        model = chosen if factor == 1.0 else _fitted(results.subject, factor, alphas[-1])
        if model is not None:
            yield float(factor)
        for done, alpha in enumerate(alphas, start=gamma * len(alphas) + 1):
            if model is not None:
                _read(results, model, float(alpha))
            if progress is not None:
                progress("explorer", done, len(factors) * len(alphas))


def _fitted(subject: Subject, factor: float, alpha: float) -> Any | None:
    try:
        return _refitted(subject, factor, alpha)
    except ValueError:  # the kernel overflows, or is too indefinite for any alpha here
        return None


def _read(results: Results, model: Any, alpha: float) -> None:
    """Append the results at one alpha, or a gap where it is too small for the kernel."""
    with warnings.catch_warnings():
        if alpha != results.subject.model.alpha_:
            warnings.simplefilter("error", NumericalWarning)
        try:
            other = model.at(alpha)
        except (ValueError, NumericalWarning):
            results.append_gap()
            return
    results.append(other)
