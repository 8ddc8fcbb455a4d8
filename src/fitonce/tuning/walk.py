"""The search over gamma on many rows: the lattice on a sample of them, then a walk on all.

On the sample every gamma of the lattice is tried. On all rows the best of them is decomposed, and
its neighbours are tried at single alphas, each by a Cholesky factorisation (a sixth of the time of
a decomposition). Where one is better, the walk goes on in its direction, and the last gamma is
decomposed in turn.

Which alpha to try at another gamma, the sample tells: its best alpha there, moved by as many powers
of two as the best alpha has moved here between the sample and all rows. Where the value is so close
to the one to beat that a better alpha could make the difference, those beside it are tried as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .lattice import GammaLattice
from .search import TIE, Evaluate, Parameters, Search, Trial, search_gamma

NEAR = 1e-2  # relative; beyond this no other alpha is expected to make up for a difference


@dataclass(frozen=True)
class Stages:
    """How candidates are tried beside every alpha on all rows: every alpha on the sample, and one
    alpha on all rows.
    """

    sample: Evaluate
    probe: Callable[[Parameters, float], Trial]


def search(
    evaluate: Evaluate,
    others: Sequence[Parameters],
    lattice: GammaLattice | None,
    stages: Stages | None = None,
) -> Search:
    """Try every combination of the other parameters, and for each the gammas: the lattice on all
    rows or, in stages, the lattice on a sample and a walk on all rows.
    """
    if lattice is None:
        return Search(evaluate(others))
    if stages is None:
        tried = [search_gamma(evaluate, other, lattice) for other in others]
    else:
        tried = [walk(evaluate, stages, other, lattice) for other in others]
    return Search([trial for trials in tried for trial in trials])


def walk(
    evaluate: Evaluate, stages: Stages, other: Parameters, lattice: GammaLattice
) -> list[Trial]:
    """All trials, those on the sample first.

    Cost: the lattice on the sample, one decomposition of all rows, or two where the walk leads
    somewhere, and a Cholesky factorisation for each step. Where a sample cannot be judged (a user's
    scorer may refuse it), the lattice on all rows.
    """
    try:
        sampled = search_gamma(stages.sample, other, lattice)
    except ValueError:
        return search_gamma(evaluate, other, lattice)
    (here,) = evaluate([Search(sampled).winner.parameters])
    steps = _Walk(stages.probe, sampled, here)
    best = steps.best(lattice)
    whole = best is here or len(best.alphas) > 1 or len(here.alphas) == 1
    if whole:
        return [*sampled, here, *steps.tried]
    # a decomposition has every alpha, those that were probed there included
    probed = [trial for trial in steps.tried if trial.parameters != best.parameters]
    return [*sampled, here, *probed, *evaluate([best.parameters])]


class _Walk:
    """Steps from one gamma to its neighbours, on all rows."""

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
