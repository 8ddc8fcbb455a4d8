"""The search over gamma on many rows: the lattice on a sample of them, then a walk on all.

On the sample every gamma of the lattice is tried. On all rows the best of them is decomposed, and
its neighbors are tried at single alphas, each by a Cholesky factorization (a sixth of the time of
a decomposition). Where one is better, the walk goes on in its direction, and the last gamma is
decomposed in turn.

The sample determines which alpha to try at another gamma: its best alpha there, shifted by as many
powers of two as the best alpha has shifted here between the sample and all rows. If the result is
so close to the best that another alpha could make the difference, neighboring alphas are tried as
well.

If kernels are compared, those that are clearly worse than the best on the sample are dropped; with
few rows, those that are clearly worse at the first gammas of their lattice are not tried at finer
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .lattice import GammaLattice
from .search import TIE, Branch, Evaluate, Parameters, Search, Trial, coarse_gammas, finer_gammas

CLOSE = 1e-2  # relative; kernels whose loss on the sample is within this of the best go on
PROMISING = 0.1  # the same after the first gammas on all rows: finer ones gain less
NEAR = 1e-2  # relative; beyond this no other alpha is expected to make up for a difference


@dataclass(frozen=True)
class Stages:
    """How candidates are tried beside every alpha on all rows: every alpha on the sample, and one
    alpha on all rows.
    """

    sample: Evaluate
    probe: Callable[[Parameters, float], Trial]


def search(evaluate: Evaluate, branches: Sequence[Branch], stages: Stages | None = None) -> Search:
    """Try every branch with its gammas: the lattice on all rows, finely with those kernels that do
    well on its first gammas; or, in stages, the lattice on a sample and a walk on all rows, with
    those kernels that do well on the sample.
    """
    trials: list[Trial] = []
    if stages is None:
        coarse = [_coarsely(evaluate, branch) for branch in branches]
        promising = _promising(branches, coarse, PROMISING)
        for branch, first in zip(branches, coarse, strict=True):
            finer = branch.lattice is not None and branch.kernel in promising
            trials += _finely(evaluate, branch, first) if finer else first
        return Search(trials)
    sampled = [_on_sample(stages, branch, len(branches) > 1) for branch in branches]
    promising = _promising(branches, sampled, CLOSE)
    for branch, before in zip(branches, sampled, strict=True):
        trials += before or []
        if branch.kernel in promising:
            trials += _walk(evaluate, stages, branch, before)
    return Search(trials)


def _on_all_rows(evaluate: Evaluate, branch: Branch) -> list[Trial]:
    first = _coarsely(evaluate, branch)
    return first if branch.lattice is None else _finely(evaluate, branch, first)


def _coarsely(evaluate: Evaluate, branch: Branch) -> list[Trial]:
    if branch.lattice is None:
        return evaluate([branch.other])
    return coarse_gammas(evaluate, branch.other, branch.lattice)


def _finely(evaluate: Evaluate, branch: Branch, first: list[Trial]) -> list[Trial]:
    assert branch.lattice is not None
    return finer_gammas(evaluate, branch.other, branch.lattice, first)


def _on_sample(stages: Stages, branch: Branch, compared: bool) -> list[Trial] | None:
    """Trials on the sample; None if it cannot be judged (a user's scorer may refuse it), or
    where there is nothing to choose there.
    """
    if branch.lattice is None and not compared:
        return None
    try:
        return _on_all_rows(stages.sample, branch)
    except ValueError:
        return None


def _promising(
    branches: Sequence[Branch], tried: Sequence[list[Trial] | None], share: float
) -> set[Any]:
    """Of several kernels those that go on: the best so far, any whose loss is larger by no more
    than a share, and those that a sample cannot judge.
    """
    best: dict[Any, float] = {}
    for branch, trials in zip(branches, tried, strict=True):
        loss = -np.inf if trials is None else Search(trials).winner.loss
        best[branch.kernel] = min(loss, best.get(branch.kernel, np.inf))
    least = min(loss for loss in [*best.values(), np.inf] if loss > -np.inf)
    close = least + share * abs(least)
    return {kernel for kernel, loss in best.items() if loss <= close}


def _walk(
    evaluate: Evaluate, stages: Stages, branch: Branch, sampled: list[Trial] | None
) -> list[Trial]:
    """Trials on all rows after those on the sample.

    Cost: one decomposition of all rows, or two where the walk leads somewhere, and a Cholesky
    factorization for each step. Without a sample, the lattice on all rows.
    """
    if sampled is None or branch.lattice is None:
        return _on_all_rows(evaluate, branch)
    (here,) = evaluate([Search(sampled).winner.parameters])
    steps = _Walk(stages.probe, sampled, here)
    best = steps.best(branch.lattice)
    whole = best is here or len(best.alphas) > 1 or len(here.alphas) == 1
    if whole:
        return [here, *steps.tried]
    # a decomposition has every alpha, those that were probed there included
    probed = [trial for trial in steps.tried if trial.parameters != best.parameters]
    return [here, *probed, *evaluate([best.parameters])]


class _Walk:
    """Steps from one gamma to its neighbors, on all rows."""

    def __init__(
        self,
        probe: Callable[[Parameters, float], Trial],
        sampled: Sequence[Trial],
        here: Trial,
    ) -> None:
        self.probe, self.here = probe, here
        self.tried: list[Trial] = []
        by_gamma = sorted((trial.parameters["gamma"], trial.alpha) for trial in sampled)
        self.log_gammas, self.log_alphas = np.log2(np.array(by_gamma)).T

    def best(self, lattice: GammaLattice) -> Trial:
        """The best trial of the walk: up from here, or else down."""
        for factor in (2.0, 0.5):
            best, gamma = self.here, self.here.parameters["gamma"]
            while lattice.allows(gamma := gamma * factor):
                trial = self._at(gamma, best.loss)
                if best.loss - trial.loss <= TIE * abs(best.loss):
                    break
                best = trial
            if best is not self.here:
                return best
        return self.here

    def _at(self, gamma: float, to_beat: float) -> Trial:
        """The best of the alphas tried at a gamma."""
        alphas = self.here.alphas
        number = int(np.argmin(np.abs(np.log2(alphas) - self._guess(gamma))))
        best = self._tried(gamma, number)
        if len(best.alphas) > 1 or not 0 <= best.loss - to_beat <= self._cost_of_a_step():
            return best
        for step in (-1, 1):
            first, beside = best, number + step
            while 0 <= beside < len(alphas):
                trial = self._tried(gamma, beside)
                if trial.loss >= best.loss:
                    break
                best, beside = trial, beside + step
            if best is not first:
                return best
        return best

    def _cost_of_a_step(self) -> float:
        """What the loss here gains one alpha beside the best."""
        losses, best = self.here.losses, self.here.best
        beside = losses[max(0, best - 1) : best + 2]
        return float(min(np.max(beside) - losses[best], NEAR * abs(losses[best])))

    def _guess(self, gamma: float) -> float:
        """log₂ of the alpha that is expected to be the best at a gamma."""
        moved = float(np.log2(self.here.alpha)) - self._of_sample(self.here.parameters["gamma"])
        return self._of_sample(gamma) + moved

    def _of_sample(self, gamma: float) -> float:
        return float(np.interp(np.log2(gamma), self.log_gammas, self.log_alphas))

    def _tried(self, gamma: float, number: int) -> Trial:
        parameters = {**self.here.parameters, "gamma": gamma}
        trial = self.probe(parameters, float(self.here.alphas[number]))
        self.tried.append(trial)
        return trial
