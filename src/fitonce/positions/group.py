r"""A test over subjects: under the null hypothesis, the deviation of a subject from chance is
equally likely to be positive or negative.

The scores minus chance, X (subjects, q), are multiplied by random signs s, one per subject and the
same at all positions. Sums of squares do not change, so the t values of all sign flips follow from
one product S X:

    m = SX/n,     t = m / sqrt((Σx²/n - m²)/(n - 1)).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..inference.exchange import TurnExchange, ValidityWarning
from ..inference.permutation import check_counts, is_enumerated
from .corrections import Rules
from .result import GroupTest, PositionTest, significance
from .slices import edges_of

LEVEL = 0.05  # warn if no p-value of a small group can reach this level


def group_test(
    scores: Any,
    *,
    chance: Any = None,
    n_permutations: int = 10_000,
    alternative: str = "greater",
    cluster_pvalue: float = 0.05,
    cluster_t: float | None = None,
    adjacency: Any = None,
    exact: bool | str = "auto",
    random_state: Any = 0,
) -> GroupTest:
    """Test whether subjects score better than chance at any position, with sign flips over subjects
    and corrections for all positions.

    Parameters
    ----------
    scores : array-like of shape (n_subjects, n_positions), or list of PositionTest
        One score per subject and position; further axes form a grid (generalization matrices).
    chance : float or array of shape (n_positions,), default=None
        The score without any effect: 0.5 for AUC and balanced classes. For a list of tests, None
        uses the mean null score of each subject.
    n_permutations : int, default=10,000
        Number of sign flips to draw.
    alternative : {"greater", "less", "two-sided"}, default="greater"
        Which effects to test for.
    cluster_pvalue : float, default=0.05
        Adjacent positions whose own p-value is at most this form clusters.
    cluster_t : float, default=None
        Alternative to `cluster_pvalue`: adjacent positions with at least this t value.
    adjacency : sparse matrix, array or list of index arrays, default=None
        Which positions are neighbors; None: those next to each other along the axes of `scores`.
    exact : bool or "auto", default="auto"
        Whether to use all 2^n_subjects sign flips; "auto" does so if there are at most
        `n_permutations`.
    random_state : int, RandomState or None, default=0
        Seed for the sign flips.

    Returns
    -------
    GroupTest
        `score` (the mean), `t`, and p-values as in `permutation_test`.

    Notes
    -----
    The test assumes that scores are symmetric about chance if there is no effect. A true score is
    never below chance. So a significant result means that some subjects carry information, not that
    most do (Allefeld, Görgen & Haynes 2016); see `prevalence_test`.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce.positions import group_test
    >>> scores = 0.5 + 0.05 * np.random.default_rng(0).normal(size=(12, 40))
    >>> scores[:, 10:15] += 0.1
    >>> test = group_test(scores, chance=0.5)
    >>> np.flatnonzero(test.pvalue_cluster <= 0.05), test.exact
    (array([10, 11, 12, 13, 14]), True)
    """
    check_counts(n_permutations, None, 1, exact)
    values, level = _deviations(scores, chance)
    X = values - level
    n, edges = len(X), edges_of(adjacency, X.shape[1:])
    rules = Rules(alternative, cluster_pvalue, cluster_t, edges, "cluster_t")
    exchange = TurnExchange(n, list(np.arange(n)[:, None]), [2] * n, signs=True)
    enumerated = is_enumerated(exchange.count, n_permutations, exact)
    smallest = (2.0 if alternative == "two-sided" else 1.0) / 2.0**n
    if smallest > LEVEL:
        warnings.warn(
            f"{n} subjects have {2**n} sign patterns, so no p-value can be smaller than "
            f"{smallest:.3g}: nothing can become significant at 5 %. Test each subject separately, "
            "or add subjects.",
            ValidityWarning,
            stacklevel=2,
        )
    rng = check_random_state(random_state)
    drawn = (exchange.draw(rng) for _ in range(n_permutations))
    flips = exchange.others() if enumerated else drawn
    null = t_values(np.stack([np.asarray(flip.signs) for flip in flips]), X)
    t = t_values(np.ones((1, n)), X)[0]
    return GroupTest(
        score=values.mean(axis=0),
        null=null,
        exact=enumerated,
        rules=rules,
        t=t,
        scores=values,
        chance=level.mean(axis=0),
        **significance(t, null, rules, standardized=True),
    )


def t_values(signs: np.ndarray, X: np.ndarray) -> np.ndarray:
    """One-sample t values (P, …) of sign-flipped rows (n, …).

    Infinite if all flipped values are equal, 0 if they are zero.
    """
    n = len(X)
    mean = np.tensordot(signs, X, axes=1) / n
    mean_square = np.mean(X**2, axis=0)
    variance = mean_square - mean**2
    variance[variance < 1e-13 * mean_square] = 0.0  # equal values up to rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / np.sqrt(variance / (n - 1))
    return np.where(mean_square > 0, t, 0.0)


def _deviations(scores: Any, chance: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores (subjects, …) and the chance level of each."""
    if isinstance(scores, Sequence) and all(isinstance(entry, PositionTest) for entry in scores):
        shapes = {entry.score.shape for entry in scores}
        if len(shapes) > 1:
            raise ValueError(
                f"all subjects must have the same positions, got shapes {sorted(shapes)} instead."
            )
        chance = [entry.chance for entry in scores] if chance is None else chance
        scores = [entry.score for entry in scores]
    if chance is None:
        raise ValueError(
            "chance must be given with scores, got None instead: it is the score without an "
            "effect, 0.5 for AUC and for the accuracy of two balanced classes. To use mean null "
            "scores, pass the PositionTest results of the subjects."
        )
    values, level = np.asarray(scores, dtype=np.float64), np.asarray(chance, dtype=np.float64)
    if values.ndim < 2 or len(values) < 2 or not values.size or not np.all(np.isfinite(values)):
        raise ValueError(
            "scores must have shape (n_subjects, n_positions) with at least two subjects, and be "
            f"finite, got shape {values.shape} with {np.sum(~np.isfinite(values))} undefined "
            "scores instead: leave out those positions or subjects."
        )
    try:
        return values, np.broadcast_to(level, values.shape)
    except ValueError:
        raise ValueError(
            f"chance must be a number or have one value per position {values.shape[1:]}, got shape "
            f"{level.shape} instead."
        ) from None
