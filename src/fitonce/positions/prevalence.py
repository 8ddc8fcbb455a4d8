r"""The share of subjects with an effect: prevalence inference with the minimum statistic
(Allefeld, Görgen & Haynes 2016).

Subject k of N has scores a_ki(v) at position v, i = 1 … P_k: the observed score first, then those
of its permutations. The statistic is the smallest score of all subjects,

    m_i(v) = min_k a_{k, i_k}(v),

for every second-level permutation i = (i_1, …, i_N), which selects one first-level permutation of
each subject. The observed statistic is m_1.

**Global null hypothesis**: no subject has an effect at v. All Π P_k second-level permutations are
equally likely, and m_i reaches m_1 if the score of every subject does. So their share is a product,
and no draws are needed:

    p_GN(v) = Π_k #{i: a_ki(v) ≥ m_1(v)} / P_k

**Over positions**: no subject has an effect anywhere. The share of second-level permutations whose
largest minimum reaches m_1(v), max_u m_i(u) ≥ m_1(v), is estimated from draws: p*_GN(v).

**Prevalence null hypothesis**: at most a share γ₀ of the population has an effect at v. If subjects
with an effect always reach m_1, and others with probability p_GN^(1/N),

    p_γ₀(v) = ((1 - γ₀) p_GN(v)^(1/N) + γ₀)^N

**Over q positions**, it may be other subjects at each of them, so that all of N have an effect at
one of the positions with a probability of about q γ₀^N. Nothing in the permutations knows of that,
and the correction is Bonferroni's,

    p*_γ₀(v) = min(1, max(q p_γ₀(v), p*_GN(v)))

(The combination in the paper, p*_GN + (1 - p*_GN) p_γ₀, bounds a false claim at one position.)

**Largest prevalence that can be rejected** at level α: p*_γ₀ ≤ α solved for γ₀, where p*_GN ≤ α,

    γ₀ = ((α/q)^(1/N) - p_GN^(1/N)) / (1 - p_GN^(1/N)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from ..inference.permutation import check_counts, is_enumerated
from .corrections import lowered, rank_pvalue
from .result import PositionTest

BLOCK_ELEMENTS = 4_000_000


@dataclass(frozen=True, eq=False, repr=False)
class PrevalenceTest:
    """The result of `prevalence_test`. Arrays have one entry per position.

    Attributes
    ----------
    minimum : array of shape (positions,)
        The smallest score of all subjects.
    median : array of shape (positions,)
        The median score.
    pvalue_global, pvalue_global_max : array of shape (positions,)
        Of the null hypothesis that no subject has an effect: here, and corrected for all positions.
    pvalue, pvalue_max : array of shape (positions,)
        Of the null hypothesis that at most a share `gamma0` of the population has an effect: here,
        and corrected.
    prevalence : array of shape (positions,)
        The largest share that `pvalue_max` rejects at `level`; NaN if not even the global null
        hypothesis is.
    gamma0, level : float
    n_subjects, n_permutations_done : int
    exact : bool
        Whether the correction uses all second-level permutations.
    """

    minimum: np.ndarray
    median: np.ndarray
    pvalue_global: np.ndarray
    pvalue_global_max: np.ndarray
    n_subjects: int
    n_permutations_done: int
    exact: bool
    gamma0: float = 0.5
    level: float = 0.05

    @property
    def pvalue(self) -> np.ndarray:
        root = self.pvalue_global ** (1 / self.n_subjects)
        return np.asarray(((1 - self.gamma0) * root + self.gamma0) ** self.n_subjects)

    @property
    def pvalue_max(self) -> np.ndarray:
        corrected = np.maximum(self.pvalue.size * self.pvalue, self.pvalue_global_max)
        return np.asarray(np.minimum(corrected, 1.0))

    @property
    def prevalence(self) -> np.ndarray:
        root = self.pvalue_global ** (1 / self.n_subjects)
        reach = (self.level / root.size) ** (1 / self.n_subjects)
        known = (self.pvalue_global_max <= self.level) & (root <= reach)
        return np.where(known, (reach - root) / np.where(known, 1 - root, 1.0), np.nan)

    def at(self, *, gamma0: float | None = None, level: float | None = None) -> Self:
        """The same permutations evaluated for another share or at another level."""
        gamma0 = self.gamma0 if gamma0 is None else gamma0
        level = self.level if level is None else level
        _check_shares({"gamma0": gamma0, "level": level})
        return replace(self, gamma0=gamma0, level=level)

    def __repr__(self) -> str:
        found = int(np.sum(self.pvalue_max <= self.level))
        return (
            f"PrevalenceTest({self.n_subjects} subjects, {self.minimum.shape} positions: more than "
            f"{100 * self.gamma0:g} % have an effect at {found} of them, corrected)"
        )


def prevalence_test(
    tests: Sequence[PositionTest] | Any,
    *,
    null: Any = None,
    gamma0: float = 0.5,
    level: float = 0.05,
    n_permutations: int = 10_000,
    exact: bool | str = "auto",
    random_state: Any = 0,
) -> PrevalenceTest:
    """Test whether most subjects carry information, and at which positions, with the minimum
    statistic.

    `group_test` rejects if *some* subjects have an effect. This test rejects only if more than a
    share `gamma0` of the population has one: by default, the majority.

    Parameters
    ----------
    tests : list of PositionTest, or array-like of shape (n_subjects, n_positions)
        The permutation tests of the subjects, or their scores; further axes form a grid.
    null : list of arrays of shape (permutations, n_positions), default=None
        Needed with scores: the scores of each subject's permutations, with all positions permuted
        together, without the observed scores.
    gamma0 : float, default=0.5
        The share of the population.
    level : float, default=0.05
        Level of `prevalence`.
    n_permutations : int, default=10,000
        Number of second-level permutations to draw for the correction over positions.
    exact : bool or "auto", default="auto"
        Whether to use all second-level permutations; "auto" does so if there are at most
        `n_permutations`.
    random_state : int, RandomState or None, default=0
        Seed for the draws.

    Returns
    -------
    PrevalenceTest
        The largest prevalence, and p-values.

    Notes
    -----
    Higher scores must be better. The subjects must be a random sample of the population. Each
    needs its own permutations; a hundred are enough. With N subjects and q positions, no share
    above (level/q)^(1/N) can be rejected: test few positions where subjects are few.

    References
    ----------
    Allefeld, Görgen & Haynes (2016), Valid population inference for information-based imaging: from
    the second-level t-test to prevalence inference. NeuroImage 141.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce.positions import prevalence_test
    >>> rng = np.random.default_rng(0)
    >>> null = 0.5 + 0.05 * rng.normal(size=(12, 100, 30))  # subjects, permutations, positions
    >>> scores = 0.5 + 0.05 * rng.normal(size=(12, 30))
    >>> scores[:, 10:15] += 0.2  # in all subjects
    >>> scores[:4, 20:25] += 0.2  # in a third of them
    >>> test = prevalence_test(scores, null=null)
    >>> np.flatnonzero(test.pvalue_max <= 0.05)
    array([10, 11, 12, 13, 14])
    """
    check_counts(n_permutations, None, 1, exact)
    _check_shares({"gamma0": gamma0, "level": level})
    subjects = _subjects(tests, null)
    shape = subjects[0].shape[1:]
    flat = [_comparable(scores.reshape(len(scores), -1)) for scores in subjects]
    observed = np.min([scores[0] for scores in flat], axis=0)
    reached = [np.mean(scores >= lowered(observed), axis=0) for scores in flat]
    count = math.prod(map(len, flat)) - 1
    enumerated = is_enumerated(count, n_permutations, exact)
    sizes, rng = [len(scores) for scores in flat], check_random_state(random_state)
    largest = np.empty(count if enumerated else n_permutations)
    step = max(1, BLOCK_ELEMENTS // (len(flat) * len(observed)))
    for start in range(0, len(largest), step):
        numbers = np.arange(start, min(start + step, len(largest)))
        if enumerated:  # index 0 is the observed one
            chosen = np.unravel_index(numbers + 1, sizes)
        else:
            chosen = tuple(rng.randint(size, size=len(numbers)) for size in sizes)
        rows = [scores[own] for scores, own in zip(flat, chosen, strict=True)]
        largest[numbers] = np.min(rows, axis=0).max(axis=1)
    return PrevalenceTest(
        minimum=np.min([scores[0] for scores in subjects], axis=0),
        median=np.median([scores[0] for scores in subjects], axis=0),
        pvalue_global=np.prod(reached, axis=0).reshape(shape),
        pvalue_global_max=rank_pvalue(observed, largest[:, None]).reshape(shape),
        n_subjects=len(flat),
        n_permutations_done=len(largest),
        exact=enumerated,
        gamma0=float(gamma0),
        level=float(level),
    )


def _comparable(scores: np.ndarray) -> np.ndarray:
    """Undefined scores are no evidence: null scores count as extreme, observed scores do not."""
    scores = np.where(np.isnan(scores), np.inf, scores)
    scores[0, np.isinf(scores[0])] = -np.inf
    return scores


def _subjects(tests: Any, null: Any) -> list[np.ndarray]:
    """Scores (1 + permutations, …) of every subject, the observed ones first."""
    if isinstance(tests, Sequence) and all(isinstance(test, PositionTest) for test in tests):
        tests, null = [test.score for test in tests], [test.null for test in tests]
    if null is None:
        raise ValueError(
            "null must be given with scores, got None instead: the scores of a subject are "
            "compared with those of its own permutations. Pass the PositionTest results of the "
            "subjects, or null."
        )
    pairs = list(zip(tests, null, strict=False)) if len(tests) == len(null) else []
    values = [(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)) for a, b in pairs]
    if len(values) < 2:
        raise ValueError(
            "at least two subjects are needed, with scores and null scores each, got "
            f"{len(tests)} subjects instead."
        )
    shape = values[0][0].shape
    for number, (own, permuted) in enumerate(values):
        if own.shape != shape or own.size == 0 or permuted.shape[1:] != shape or not len(permuted):
            raise ValueError(
                f"all subjects must have the same positions {shape}, and permutations of all of "
                f"them, but subject {number} has scores {own.shape} and null scores "
                f"{permuted.shape}."
            )
    return [np.concatenate([own[None], permuted]) for own, permuted in values]


def _check_shares(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must be a number from 0 to below 1, got {value!r} instead.")
