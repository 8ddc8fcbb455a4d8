"""Intervals of held-out scores, and their assumptions.

**Wilson.** k of n held-out labels are correct. The interval contains every p that a score test at
the given level does not reject:

    (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)

It treats the rows as independent. If they are not, n is replaced by an effective size: Kish's
(Σw)²/Σw² for weights, and for groups the n for which a binomial proportion would vary as much as
the observed one varies between groups.

**Corrected resampled t** (Nadeau & Bengio 2003). Scores of J overlapping splits share training
rows, so the variance s²/J of their mean is too small. It is replaced by (1/J + n_test/n_train) s²,
with J - 1 degrees of freedom.

**R² of all held-out rows together.** The unexplained share 1 - R² = Σe²/Σd², with residuals e and
deviations d from the mean, is a ratio. To first order, row i changes its logarithm by

    (e_i²/mean(e²) - d_i²/mean(d²)) / n

so the means of the bracket over the rows of each split take the role of split scores. The corrected
resampled t interval is computed for log(1 - R²) and transformed back. The mean of the R² of small
splits is no substitute: each R² divides by the variance of its few rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm, t


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a proportion `share` of `n` trials; n need not be an integer.

    Examples
    --------
    >>> low, high = wilson(0.9, 50)
    >>> print(f"{low:.4f} {high:.4f}")
    0.7864 0.9565
    """
    z = float(norm.ppf(0.5 + level / 2))
    centre = share + z**2 / (2 * n)
    reach = z * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    scale = 1 + z**2 / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def effective_size(
    correct: np.ndarray, weights: np.ndarray | None, groups: np.ndarray | None
) -> float:
    """The number of independent rows that would be as informative about the share of `correct` as
    these rows.

    Without weights and groups: n. Weights: Kish's (Σw)²/Σw². Groups: p(1-p)/v with v = G/(G-1) Σ_g
    (Σ_{i∈g} w_i(c_i - p))² / (Σw)², the variance of the share between groups; at most n, and the
    number of groups if all rows are correct or all are wrong.
    """
    w = np.ones(len(correct)) if weights is None else np.asarray(weights, dtype=np.float64)
    kish = float(w.sum() ** 2 / np.sum(w**2))
    if groups is None:
        return kish
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    n_groups = int(number.max()) + 1
    p = float(np.average(correct, weights=w))
    if n_groups < 2 or p in (0.0, 1.0):
        return float(min(n_groups, kish))
    excess = np.bincount(number, weights=w * (correct - p))
    v = n_groups / (n_groups - 1) * float(np.sum(excess**2)) / float(w.sum()) ** 2
    return kish if v == 0.0 else min(kish, p * (1 - p) / v)


def corrected_t(
    scores: np.ndarray, test_share: float, level: float = 0.95, centre: float | None = None
) -> tuple[float, float]:
    """Nadeau and Bengio's interval for a mean of J split scores; `test_share` is n_test/n_train.
    NaN for one split.
    """
    centre = float(np.mean(scores)) if centre is None else centre
    error = corrected_error(scores, test_share)
    reach = float(t.ppf(0.5 + level / 2, len(scores) - 1)) * error
    return centre - reach, centre + reach


def paired_t(
    centre: float,
    difference: np.ndarray,
    excess: np.ndarray,
    test_share: float,
    level: float = 0.95,
) -> tuple[float, float, float, float]:
    """The mean difference between two models on the same J splits, its interval by `corrected_t`,
    and the two-sided p-value of the same t.

    `excess` (m,) is how far each of m independent units moves the mean; the standard error is at
    least that of their sum. If it is zero, p is that of m equal signs.
    """
    m = len(excess)
    error, dof = float(np.sqrt(m / max(m - 1, 1) * np.sum(excess**2))), max(m - 1, 1)
    of_splits = corrected_error(difference, test_share)
    if of_splits > error:
        error, dof = of_splits, len(difference) - 1
    reach = float(t.ppf(0.5 + level / 2, dof)) * error
    certain = 1.0 if centre == 0.0 else 2.0 ** (1 - m)
    pvalue = float(2 * t.sf(abs(centre) / error, dof)) if error > 0 else certain
    return centre, centre - reach, centre + reach, pvalue


def pooled_r2(
    squares: Sequence[np.ndarray],
    around: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    test_share: float,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """R² of all rows of all splits together, with its interval.

    `squares`, `around` and `weights` are the squared residuals, the squared deviations from the
    mean and the weights of the rows of every split.
    """
    e, d, w = (np.concatenate(parts) for parts in (squares, around, weights))
    mean_e, mean_d = (float(np.average(values, weights=w)) for values in (e, d))
    if mean_d == 0.0 or mean_e == 0.0 or len(squares) < 2:
        value = 1.0 - mean_e / mean_d if mean_d > 0.0 else float("nan")
        return value, float("nan"), float("nan")
    moved = [
        float(np.average(own / mean_e - total / mean_d, weights=each))
        for own, total, each in zip(squares, around, weights, strict=True)
    ]
    middle = float(np.log(mean_e / mean_d))
    low, high = (middle + end for end in corrected_t(np.array(moved), test_share, level))
    return 1.0 - mean_e / mean_d, 1.0 - float(np.exp(high)), 1.0 - float(np.exp(low))


def corrected_error(scores: np.ndarray, test_share: float) -> float:
    """The standard error √((1/J + n_test/n_train) s²) of a mean of J split scores."""
    variance = float(np.var(scores, ddof=1)) if len(scores) > 1 else np.nan
    return float(np.sqrt((1 / len(scores) + test_share) * variance))
