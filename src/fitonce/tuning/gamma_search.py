"""The search over gamma and other parameters of the kernel: a lattice, coarsely and then finely.

Candidates are powers of two, in windows that depend on the scale of the training rows. So training
sets that differ by a few rows try the same values: the folds of a nested cross-validation make the
same choices as literal refits.

On many rows the lattice is tried on a sample of them. On all rows the best of it is decomposed, and
its neighbors are tried at single alphas, each by a Cholesky factorization (a sixth of the time of a
decomposition). Where one is better, the walk goes on in its direction, and the last gamma is
decomposed in turn. The alpha tried there is the sample's best, shifted by as many powers of two as
it has shifted between the sample and all rows here; its neighbors too where that could decide.

Of several kernels, those that are clearly worse on the sample, or at the first gammas of their
lattice, are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..core.holdout import Smoother
from .trials import TIE, WORTH_EXTENDING, Parameters, Trial, Trials

ALPHA_BELOW, ALPHA_ABOVE = 30, 12  # powers of two around trace(G)/Σw
FARTHEST = 16  # powers of two from the center up to which gamma goes on beyond an edge
PRECISION = 4e-9  # the smallest alpha tried, as a share of λ_max: less is below double precision
COARSE = 4  # powers of two from one alpha to the next of a coarse search
DIGITS = 2.3e-9  # and of ‖G‖, from above: below 1e7 eps of it, a fit warns that digits are few
# relative; kernels whose loss on the sample is within this of the best go on, or within what so
# many of its rows weigh: see benchmarks/models.py search_1200
CLOSE, CLOSE_ROWS = 1e-2, 10.0
PROMISING = 0.1  # the same after the first gammas on all rows: finer ones gain less
NEAR = 1e-2  # relative; beyond this no other alpha is expected to make up for a difference


def alpha_lattice(smoother: Smoother, total_weight: float, coarse: bool = False) -> np.ndarray:
    """Powers of two from 2^-30 to 2^12 times the mean eigenvalue trace(G)/Σw.

    The window ends earlier at the limit of float64 precision, and reaches at least 64 λ_max, beyond
    which every model is constant. For an indefinite kernel, it starts above twice the smallest
    alpha that is allowed. A coarse lattice has the powers of 16 among them.
    """
    scale, largest = smoother.trace / total_weight, smoother.largest
    if not (scale > 0 and np.isfinite(scale) and largest > 0):
        return 2.0 ** np.arange(-ALPHA_BELOW, ALPHA_ABOVE + 1)
    if not np.isfinite(64.0 * largest):
        raise ValueError(
            f"the kernel matrix has an eigenvalue of {largest:.1e}, which is too large to "
            "choose an alpha in float64 (up to 1.8e308). Scale the features (StandardScaler), "
            "lower degree or gamma, or divide a precomputed kernel by a constant."
        )
    centre = round(np.log2(scale))
    norm = np.sqrt(largest) * np.sqrt(smoother.trace)  # Frobenius's is not larger
    least = max(PRECISION * largest, DIGITS * norm)
    lowest = max(centre - ALPHA_BELOW, int(np.ceil(np.log2(least))))
    if smoother.lower_bound > 0:
        lowest = max(lowest, int(np.ceil(np.log2(2.0 * smoother.lower_bound))))
    highest = max(centre + ALPHA_ABOVE, int(np.ceil(np.log2(64.0 * largest))), lowest)
    exponents = np.arange(lowest, highest + 1)
    coarsely = exponents[exponents % COARSE == 0] if coarse else exponents
    return 2.0 ** (coarsely if len(coarsely) else exponents)


@dataclass(frozen=True)
class GammaLattice:
    """Powers of two around a center exponent.

    Every second one from `below` to `above` first, on beyond an edge, then the neighbors of the
    best. A `coarse` one
    has every fourth one as far below as above, and nothing else.
    """

    centre: int
    below: int = 2
    above: int = 6
    coarse: bool = False

    @classmethod
    def around(
        cls, gamma: float, below: int = 2, above: int = 6, coarse: bool = False
    ) -> GammaLattice:
        """The lattice whose center is the power of two nearest to a gamma."""
        if not (gamma > 0 and np.isfinite(gamma)):
            raise ValueError(
                f"gamma cannot be tuned: the size of the features would need a gamma of {gamma:g}. "
                "Change their unit, so that they are neither above 1e100 nor below 1e-100, or give "
                "gamma as a number."
            )
        return cls(round(np.log2(gamma)), below, above, coarse)

    def first(self) -> list[float]:
        """What is tried at once."""
        fine, coarse = (
            range(-self.below, self.above + 1, 2),
            range(2 - self.above, self.above + 1, 4),
        )
        return [2.0 ** (self.centre + step) for step in (coarse if self.coarse else fine)]

    def beyond(self, best: float, tried: list[float]) -> float | None:
        """The next value outwards where the best one tried is at an edge, or None."""
        step = round(np.log2(best)) - self.centre
        if self.coarse:
            return None
        if best == min(tried) and step > -FARTHEST:
            return best / 4.0
        if best == max(tried) and step < FARTHEST:
            return best * 4.0
        return None

    def allows(self, gamma: float) -> bool:
        """Whether a value is within what may be tried."""
        return bool(abs(np.log2(gamma) - self.centre) <= FARTHEST + 1)

    def neighbours(self, best: float) -> list[float]:
        return [] if self.coarse else [best / 2.0, best * 2.0]


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


class Attempt(Protocol):
    """Tries parameters, several at once so that they can be tried side by side: with every alpha,
    or with the one given, on all rows or on a sample of them.
    """

    def __call__(
        self, several: Sequence[Parameters], *, sample: bool = False, alpha: float | None = None
    ) -> list[Trial]: ...


def search(attempt: Attempt, branches: Sequence[Branch], sampled: bool = False) -> Trials:
    """Try every branch with its gammas: the lattice on all rows, finely with those kernels that do
    well on its first gammas; or, `sampled`, the lattice on a sample and a walk on all rows, with
    those kernels that do well on the sample.
    """
    trials: list[Trial] = []
    if not sampled:
        coarse = [_coarsely(attempt, branch) for branch in branches]
        promising = _promising(branches, coarse, PROMISING)
        for branch, first in zip(branches, coarse, strict=True):
            trials += _finely(attempt, branch, first) if branch.kernel in promising else first
        return Trials(trials)
    before = [_on_sample(attempt, branch, len(branches) > 1) for branch in branches]
    sizes = [found[0].sampled for found in before if found]
    share = max([CLOSE, *(CLOSE_ROWS / size for size in sizes if size)])
    promising = _promising(branches, before, share)
    for branch, found in zip(branches, before, strict=True):
        trials += found or []
        if branch.kernel in promising:
            trials += _on_all_rows(attempt, branch, found)
    return Trials(trials)


def _promising(
    branches: Sequence[Branch], tried: Sequence[list[Trial] | None], share: float
) -> set[Any]:
    """Of several kernels those that go on: the best so far, any whose loss is larger by no more
    than a share, and those that a sample cannot judge.
    """
    best: dict[Any, float] = {}
    for branch, trials in zip(branches, tried, strict=True):
        loss = -np.inf if trials is None else Trials(trials).winner.loss
        best[branch.kernel] = min(loss, best.get(branch.kernel, np.inf))
    lowest = min(loss for loss in [*best.values(), np.inf] if loss > -np.inf)
    close = lowest + share * abs(lowest)
    return {kernel for kernel, loss in best.items() if loss <= close}


# ---- the lattice ---------------------------------------------------------------------------------


def _coarsely(attempt: Attempt, branch: Branch, sample: bool = False) -> list[Trial]:
    """The first gammas of the lattice, one decomposition each; or the only trial there is."""
    if branch.lattice is None:
        return attempt([branch.other], sample=sample)
    return attempt(_at(branch, branch.lattice.first()), sample=sample)


def _finely(
    attempt: Attempt, branch: Branch, coarse: list[Trial], sample: bool = False
) -> list[Trial]:
    """The first gammas, those beyond an edge while that pays, and the two neighbors of the best."""
    if branch.lattice is None:
        return coarse
    trials = list(coarse)
    while (gamma := branch.lattice.beyond(_best(trials), _gammas(trials))) is not None:
        before = Trials(trials).winner.loss
        trials += attempt(_at(branch, [gamma]), sample=sample)
        if before - Trials(trials).winner.loss <= WORTH_EXTENDING * abs(before):
            break
    tried = _gammas(trials)
    new = [gamma for gamma in branch.lattice.neighbours(_best(trials)) if gamma not in tried]
    return [*trials, *attempt(_at(branch, new), sample=sample)]


def _at(branch: Branch, gammas: Sequence[float]) -> list[Parameters]:
    return [{**branch.other, "gamma": gamma} for gamma in gammas]


def _gammas(trials: Sequence[Trial]) -> list[float]:
    return [trial.parameters["gamma"] for trial in trials]


def _best(trials: list[Trial]) -> float:
    return float(Trials(trials).winner.parameters["gamma"])


# ---- the sample, then all rows -------------------------------------------------------------------


def _on_sample(attempt: Attempt, branch: Branch, compared: bool) -> list[Trial] | None:
    """Trials on the sample; None if it cannot be judged (a user's scorer may refuse it), or
    where there is nothing to choose there.
    """
    if branch.lattice is None and not compared:
        return None
    try:
        return _finely(attempt, branch, _coarsely(attempt, branch, sample=True), sample=True)
    except ValueError:
        return None


def _on_all_rows(attempt: Attempt, branch: Branch, sampled: list[Trial] | None) -> list[Trial]:
    """Trials on all rows after those on the sample: up from its best gamma, or else down.

    Cost: one decomposition of all rows, or two where the walk leads somewhere, and a Cholesky
    factorization for each step. Without a sample, the lattice on all rows.
    """
    if sampled is None or branch.lattice is None:
        return _finely(attempt, branch, _coarsely(attempt, branch))
    (here,) = attempt([Trials(sampled).winner.parameters])
    best, tried = here, list[Trial]()
    for factor in (2.0, 0.5):
        gamma = here.parameters["gamma"]
        while branch.lattice.allows(gamma := gamma * factor):
            trial = _best_near(attempt, here, sampled, gamma, best.loss, tried)
            if best.loss - trial.loss <= TIE * abs(best.loss):
                break
            best = trial
        if best is not here:
            break
    if best is here or len(best.alphas) > 1 or len(here.alphas) == 1:
        return [here, *tried]
    # a decomposition has every alpha, those that were probed there included
    probed = [trial for trial in tried if trial.parameters != best.parameters]
    return [here, *probed, *attempt([best.parameters])]


def _best_near(
    attempt: Attempt,
    here: Trial,
    sampled: Sequence[Trial],
    gamma: float,
    to_beat: float,
    tried: list[Trial],
) -> Trial:
    """The best of the alphas tried at a gamma; all of them are added to `tried`."""
    alphas = here.alphas

    def probe(number: int) -> Trial:
        (trial,) = attempt([{**here.parameters, "gamma": gamma}], alpha=float(alphas[number]))
        tried.append(trial)
        return trial

    number = int(np.argmin(np.abs(np.log2(alphas) - _expected(here, sampled, gamma))))
    best = probe(number)
    if len(best.alphas) > 1 or not 0 <= best.loss - to_beat <= _cost_of_a_step(here):
        return best
    for step in (-1, 1):
        first, beside = best, number + step
        while 0 <= beside < len(alphas):
            trial = probe(beside)
            if trial.loss >= best.loss:
                break
            best, beside = trial, beside + step
        if best is not first:
            return best
    return best


def _cost_of_a_step(here: Trial) -> float:
    """What the loss loses one alpha beside the best."""
    losses, best = here.losses, here.best
    beside = losses[max(0, best - 1) : best + 2]
    return float(min(np.max(beside) - losses[best], NEAR * abs(losses[best])))


def _expected(here: Trial, sampled: Sequence[Trial], gamma: float) -> float:
    """log₂ of the alpha that is expected to be the best at a gamma."""
    known = sorted((trial.parameters["gamma"], trial.alpha) for trial in sampled)
    log_gammas, log_alphas = np.log2(np.array(known)).T
    at = np.log2([gamma, here.parameters["gamma"]])
    there, before = np.interp(at, log_gammas, log_alphas)
    return float(there + np.log2(here.alpha) - before)
