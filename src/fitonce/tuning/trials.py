"""What a search has tried, and which of it is the best."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.holdout import Path

# losses closer than this (relative) are equal: the larger alpha wins, then the smoother kernel
TIE = 1e-9
# a window is extended while its edge improves the loss by more than this (relative)
WORTH_EXTENDING = 1e-3

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One decomposition: the kernel's parameters (and penalty), the alphas tried, ascending, and
    the mean loss over the targets at each of them.

    `sampled`: the number of rows, where these are a sample of all. Where every target has an alpha
    of its own, `chosen` (t,) is the number of each one's alpha, and `own_losses` (t,) what each one
    loses there. The decomposition, a `Problem`, and its path over the alphas are kept for the best.
    """

    parameters: Parameters
    alphas: np.ndarray
    losses: np.ndarray
    sampled: int | None = None
    chosen: np.ndarray | None = None
    own_losses: np.ndarray | None = None
    problem: Any = field(default=None, compare=False, repr=False)
    path: Path | None = field(default=None, compare=False, repr=False)

    def light(self) -> Trial:
        """Without the decomposition."""
        return replace(self, problem=None, path=None)

    def each_target(self, losses: np.ndarray) -> Trial:
        """Every target takes the least of its own losses (m, t)."""
        chosen = least(losses)
        own = np.take_along_axis(losses, chosen[None, :], axis=0)[0]
        return replace(self, chosen=chosen, own_losses=own)

    def probes(self, other: Trial) -> bool:
        """Whether it is one of the alphas that the other has all of, but for rounding."""
        return self.parameters == other.parameters and len(self.alphas) < len(other.alphas)

    @cached_property
    def best(self) -> int:
        """The number of the best alpha for all targets."""
        return int(least(self.losses))

    @property
    def alpha(self) -> float:
        return float(self.alphas[self.best])

    @cached_property
    def loss(self) -> float:
        """What is lost at the best alpha, or by all targets at their own."""
        return float(self.losses[self.best] if self.own_losses is None else self.own_losses.mean())

    @property
    def choice(self) -> tuple[Any, Any]:
        """Alpha and loss: numbers, or one of each for every target (t,)."""
        if self.chosen is None:
            return self.alpha, self.loss
        return self.alphas[self.chosen], self.own_losses

    @property
    def falling_edge(self) -> str | None:
        """Which end the best alpha is at, "lower" or "upper", where it is clearly better than its
        neighbor; else None.
        """
        n, best = len(self.alphas), self.best
        if n < 3 or best not in (0, n - 1) or self.chosen is not None:
            return None
        neighbour = self.losses[1] if best == 0 else self.losses[-2]
        if neighbour - self.losses[best] <= WORTH_EXTENDING * abs(neighbour):
            return None
        return "lower" if best == 0 else "upper"


def least(losses: np.ndarray) -> Any:
    """The number of the least loss on the first axis, and among equals the last: the largest
    alpha.
    """
    tied = losses <= _tied(losses.min(axis=0))
    return len(losses) - 1 - np.argmax(tied[::-1], axis=0)


def _tied(loss: Any) -> Any:
    return loss + TIE * abs(loss)


@dataclass(frozen=True)
class Trials:
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
    """Values as scikit-learn's masked arrays, masked where a kernel has no such parameter."""
    missing = [value is None for value in values]
    column = np.array([np.nan if value is None else value for value in values])
    return np.ma.masked_array(column, missing if any(missing) else np.ma.nomask)


def described(parameters: Parameters) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in parameters.items())


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(item)}" for name, item in value.items()) + "}"
    return value if isinstance(value, str) else format(value, ".4g")
