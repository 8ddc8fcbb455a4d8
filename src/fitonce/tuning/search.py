"""The lattice search over gamma and regularization, and the record of what was tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .lattice import GammaLattice

# losses closer than this (relative) are equal: the larger alpha wins, then the smoother kernel
TIE = 1e-9
WORTH_EXTENDING = (
    1e-3  # a window is extended while its edge improves the loss by more than this (relative)
)

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Branch:
    """Values of the parameters that are not gamma or alpha, and the gammas to be tried with them;
    None if there is nothing to try.
    """

    other: Parameters
    lattice: GammaLattice | None

    @property
    def kernel(self) -> Any:
        """Which of several kernels; None if there is one."""
        return self.other.get("kernel")


@dataclass(frozen=True)
class Trial:
    """One decomposition.

    The kernel's parameters (and penalty), the alphas tried, ascending, and their losses; and the
    number of rows, where these are a sample of all.
    """

    parameters: Parameters
    alphas: np.ndarray
    losses: np.ndarray
    sampled: int | None = None

    @property
    def best(self) -> int:
        """The least loss, and among equals the largest alpha."""
        return int(np.flatnonzero(self.losses <= _tied(self.losses.min()))[-1])

    @property
    def falling_edge(self) -> str | None:
        """Which end the best alpha is at, "lower" or "upper", where it is clearly better than its
        neighbor; else None.
        """
        n, best = len(self.alphas), self.best
        if n < 3 or best not in (0, n - 1):
            return None
        neighbour = self.losses[1] if best == 0 else self.losses[-2]
        if neighbour - self.losses[best] <= WORTH_EXTENDING * abs(neighbour):
            return None
        return "lower" if best == 0 else "upper"

    @property
    def loss(self) -> float:
        return float(self.losses[self.best])

    @property
    def alpha(self) -> float:
        return float(self.alphas[self.best])


@dataclass(frozen=True)
class TargetTrial(Trial):
    """One decomposition from which every target takes its own alpha.

    `losses` are means over the targets; `chosen` (t,) is the number of each one's alpha, and
    `chosen_loss` (t,) what it loses there.
    """

    chosen: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    chosen_loss: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(
        cls, parameters: Parameters, alphas: np.ndarray, losses: np.ndarray, sampled: int | None
    ) -> TargetTrial:
        """From the losses (m, t) of all targets: the least, and among equals the largest alpha."""
        tied = losses <= _tied(losses.min(axis=0))
        chosen = len(alphas) - 1 - np.argmax(tied[::-1], axis=0)
        own = np.take_along_axis(losses, chosen[None, :], axis=0)[0]
        return cls(parameters, alphas, losses.mean(axis=1), sampled, chosen, own)

    @property
    def loss(self) -> float:
        return float(self.chosen_loss.mean())


def _tied(loss: Any) -> Any:
    return loss + TIE * abs(loss)


@dataclass(frozen=True)
class Search:
    """All trials, in the order tried, and the winner: the one `chosen`, or else the best."""

    trials: list[Trial]
    chosen: Trial | None = None

    @property
    def winner(self) -> Trial:
        """The least loss on all rows; of a sample, where nothing else was tried.

        Of equals the larger alpha, then the smaller gamma, then the earlier trial.
        """
        if self.chosen is not None:
            return self.chosen
        trials = [trial for trial in self.trials if trial.sampled is None] or self.trials
        limit = _tied(min(trial.loss for trial in trials))
        tied = [trial for trial in trials if trial.loss <= limit]
        return min(tied, key=lambda trial: (-trial.alpha, trial.parameters.get("gamma", 0.0)))

    def cv_results(self, best: float = 0.0, n_samples: int = 0) -> dict[str, Any]:
        """In the shape of scikit-learn's searches: one entry per (kernel, alpha) pair.

        Scores are `best` minus the losses, on all `n_samples` rows or on a sample of them; ranks
        compare what was tried on all rows, then the rest.
        """
        params = [
            {**trial.parameters, "alpha": float(alpha)}
            for trial in self.trials
            for alpha in trial.alphas
        ]
        scores = best - np.concatenate([trial.losses for trial in self.trials])
        lengths = [len(trial.alphas) for trial in self.trials]
        rows = np.repeat([trial.sampled or n_samples for trial in self.trials], lengths)
        names = dict.fromkeys(name for entry in params for name in entry)
        columns = {f"param_{name}": _column([p.get(name) for p in params]) for name in names}
        return {
            **columns,
            "params": params,
            "mean_test_score": scores,
            "rank_test_score": _ranks(scores, rows == n_samples),
            "n_samples": rows,
        }


def _ranks(scores: np.ndarray, first: np.ndarray) -> np.ndarray:
    """How many are better, plus one: equal scores share a rank; those of `first` before others."""
    ranks = np.empty(len(scores), dtype=np.int32)
    for part, before in ((first, 0), (~first, int(first.sum()))):
        ranks[part] = np.searchsorted(np.sort(-scores[part]), -scores[part]) + before + 1
    return ranks


def _column(values: list[Any]) -> np.ma.MaskedArray:
    """Values as scikit-learn's masked arrays, masked where a kernel has no such parameter.

    Of objects where one of them is a vector of widths.
    """
    missing = [value is None for value in values]
    if any(np.ndim(value) for value in values):
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return np.ma.masked_array(column, missing) if any(missing) else np.ma.masked_array(column)
    if not any(missing):
        return np.ma.masked_array(values)
    return np.ma.masked_array([np.nan if value is None else value for value in values], missing)


def described(parameters: Parameters) -> str:
    """Parameters in a line."""
    return ", ".join(f"{name}={_text(value)}" for name, value in parameters.items())


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(item)}" for name, item in value.items()) + "}"
    return value if isinstance(value, str) else format(value, ".4g")


Evaluate = Callable[
    [Sequence[Parameters]], list[Trial]
]  # several at once, so that they can be tried side by side


def coarse_gammas(evaluate: Evaluate, other: Parameters, lattice: GammaLattice) -> list[Trial]:
    """The first gammas of the lattice: one decomposition each, seven of them."""
    return evaluate([{**other, "gamma": gamma} for gamma in lattice.first()])


def finer_gammas(
    evaluate: Evaluate, other: Parameters, lattice: GammaLattice, coarse: list[Trial]
) -> list[Trial]:
    """The first gammas, those beyond an edge while that pays, and the two neighbors of the best."""

    def attempt(gammas: Sequence[float]) -> dict[float, Trial]:
        return dict(
            zip(gammas, evaluate([{**other, "gamma": gamma} for gamma in gammas]), strict=True)
        )

    trials = {trial.parameters["gamma"]: trial for trial in coarse}

    def best() -> Trial:
        return Search(list(trials.values())).winner

    while (gamma := lattice.beyond(best().parameters["gamma"], list(trials))) is not None:
        before = best().loss
        trials |= attempt([gamma])
        if before - best().loss <= WORTH_EXTENDING * abs(before):
            break
    trials |= attempt(
        [gamma for gamma in lattice.neighbours(best().parameters["gamma"]) if gamma not in trials]
    )
    return list(trials.values())
