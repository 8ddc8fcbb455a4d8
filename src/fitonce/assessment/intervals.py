r"""Intervals of held-out scores, and their assumptions.

A score is a mean of values of rows: hits, losses, or to first order what a row adds to log(1 - R²)
or to an AUC. The naive variance s² of the mean takes rows (or groups) as independent. They are
not: models share training rows, and the model that the interval is about is the one of all rows.

**Nested cross-validation** (Bates, Hastie and Tibshirani 2024) estimates the mean squared error of
the cross-validation estimate itself, from folds k of one or more partitions into K:

    MSE = mean_k[(ē_in - ē_out)²] - mean_k[var(e_out)/n_k],    SE² = (K-1)/K MSE + s_b²

e_out are the values of fold k by the model without k, e_in those of the other folds j by the models
without k and j. Stratified folds hold the same share of every class, so that the differences do not
see the variance between classes: all values are taken less the mean of their class, and s_b², the
naive variance of the mean of these means, is added. SE² is kept between s² and K s².

Fixed settings take everything from one decomposition, with ten partitions. Tuned models keep what
was chosen without fold k when another fold leaves too. Where a fold is one group, the variance
of its mean is that of a mean of so few groups out of all of them.

**Corrected resampled t** (Nadeau and Bengio 2003), where models without two folds would need
refits: the variance of J split means is s²(1/J + n_test/n_train), with K - 1 degrees of freedom,
those of one partition, and never below the naive one.

**Shapes.** An interval is symmetric for the score itself, or for its logarithm (`log`: log-loss,
Brier score and errors, which are positive), or for log(1 - R²) (`r2`). A `share` has Wilson's
interval, every p that a score test does not reject, for the number of rows n whose binomial
variance p(1-p)/n is SE²:

    (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t


@dataclass(frozen=True)
class HeldOutValues:
    """Values of rows, split by split: partitions of K splits each, one after the other.

    `inner` has for every split the values (n,) of the rows of the other splits of its partition by
    models that have seen neither; it is empty if these are not known. `units` (n,) are the
    numbers of rows or groups, `test_share` is n_test/n_train.
    """

    tests: Sequence[np.ndarray]
    values: Sequence[np.ndarray]
    inner: Sequence[np.ndarray]
    units: np.ndarray
    weights: np.ndarray
    test_share: float
    n_partitions: int = 1
    most_dof: float = np.inf  # of the error of nested cross-validation
    strata: np.ndarray | None = None  # the class (n,) of each row, if every fold has its share

    def minus(self, other: HeldOutValues) -> HeldOutValues:
        """The differences of the values of two models on the same splits. Two models that learn
        nothing differ less regularly than one errs: the degrees of freedom are those of one
        partition.
        """
        both = zip(self.values, other.values, strict=True)
        pairs = zip(self.inner, other.inner, strict=False)
        inner = [a - b for a, b in pairs] if len(self.inner) == len(other.inner) else []
        apart, most = [a - b for a, b in both], max(self.n_folds - 1, 1)
        return replace(self, values=apart, inner=inner, most_dof=most)

    @property
    def mean(self) -> float:
        return self._mean(np.concatenate(self.tests), np.concatenate(self.values))

    @property
    def split_means(self) -> np.ndarray:
        return np.array([self._mean(*self._joined([k])) for k in range(len(self.tests))])

    @property
    def n_folds(self) -> int:
        return len(self.tests) // self.n_partitions

    @property
    def n_units(self) -> int:
        return len(np.unique(self.units[np.concatenate(self.tests)]))

    def _mean(self, rows: np.ndarray, values: np.ndarray) -> float:
        w = self.weights[rows]
        return float(w @ values / w.sum())

    def _variance(self, rows: np.ndarray, values: np.ndarray) -> float:
        """The variance of the mean of independent units; infinite for one unit."""
        w, units = self.weights[rows], self.units[rows]
        excess = np.bincount(units, weights=w * (values - w @ values / w.sum()))
        m = int(np.count_nonzero(np.bincount(units)))
        return m / (m - 1) * float(excess @ excess / w.sum() ** 2) if m > 1 else np.inf

    @property
    def naive(self) -> float:
        """The variance s² of the mean if units were independent."""
        return float(np.mean([self._variance(*self._joined(part)) for part in self._partitions()]))

    def _partitions(self) -> list[range]:
        K = self.n_folds
        return [range(first, first + K) for first in range(0, K * self.n_partitions, K)]

    def _joined(self, splits: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        tests, values = ([part[k] for k in splits] for part in (self.tests, self.values))
        return np.concatenate(tests), np.concatenate(values)

    def error(self) -> tuple[float, float, str]:
        """The standard error of the mean, its degrees of freedom, and how it was computed."""
        naive, K = self.naive, self.n_folds
        dof = min(self.n_units - 1, self.most_dof)
        if self.inner:
            variance = self._nested()
            if np.isfinite(variance):
                variance = np.clip(variance, naive, K * naive)
                times = f", {self.n_partitions} times" if self.n_partitions > 1 else ""
                method = f"nested cross-validation, {K} folds{times}"
                return float(np.sqrt(variance)), dof, method
        means = self.split_means
        corrected = corrected_variance(means, self.test_share)
        if corrected > naive:
            method = f"corrected resampled t over {len(means)} splits"
            return float(np.sqrt(corrected)), K - 1, method
        return float(np.sqrt(naive)), max(self.n_units - 1, 1), "held-out rows as if independent"

    def _nested(self) -> float:
        """The variance of the cross-validation estimate: SE² above."""
        K, terms, between = self.n_folds, [], []
        for part in self._partitions():
            every, values = self._joined(part)
            centre, w = self._centre(every, values), self.weights
            between.append(self._variance(every, centre[every]))
            alone = self._variance(every, values - centre[every]) * self.n_units
            for k in part:
                test, out = self.tests[k], self.values[k] - centre[self.tests[k]]
                rest = self.inner[k] - centre
                inside = w[every] @ rest[every] - w[test] @ rest[test]
                apart = inside / (w[every].sum() - w[test].sum()) - self._mean(test, out)
                m = int(np.count_nonzero(np.bincount(self.units[test])))
                terms.append(apart**2 - (self._variance(test, out) if m > 1 else alone))
        return float((K - 1) / K * np.mean(terms) + np.mean(between))

    def _centre(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The mean value (n,) of the class of each row; zero without classes."""
        if self.strata is None:
            return np.zeros(len(self.weights))
        w, of = self.weights[rows], self.strata[rows]
        total = np.bincount(of, weights=w)
        means = np.bincount(of, weights=w * values) / np.where(total > 0, total, 1.0)
        return np.asarray(means[self.strata])

    def pvalue(self) -> float:
        """The two-sided p-value of a mean of zero. If all units have the same value, their
        variance says nothing, and p is that of their signs.
        """
        mean, (error, dof, _) = self.mean, self.error()
        if error > 0:
            return float(2 * t.sf(abs(mean) / error, dof))
        return 1.0 if mean == 0.0 else float(2.0 ** (1 - self.n_units))


def interval_of(
    values: HeldOutValues, level: float, shape: str = "", score: float | None = None
) -> tuple[float, float, str]:
    """The interval of a score, by default the mean of the values, and how it was computed.

    Where all rows are right, or all wrong, the error of a share is zero, and one fold's number of
    units is taken. For "log" the values are relative to their mean, for "r2" they add to
    log(1 - R²).
    """
    error, dof, method = values.error()
    score = values.mean if score is None else score
    if shape == "share":
        certain = error == 0.0 or not 0.0 < score < 1.0
        size = values.n_units / values.n_folds if certain else score * (1 - score) / error**2
        return *wilson(score, size, level, dof), method
    reach = float(t.ppf(0.5 + level / 2, dof)) * error
    if shape == "r2":
        low, high = 1.0 - (1.0 - score) * np.exp([reach, -reach])
        method += ", on log(1 - R²)"
    elif shape == "log":
        low, high = score * np.exp([-reach, reach])
    else:
        low, high = score - reach, score + reach
    return float(low), float(high), method


def wilson(share: float, n: float, level: float = 0.95, dof: float = np.inf) -> tuple[float, float]:
    """Wilson's interval for a proportion `share` of `n` trials; n need not be an integer, and with
    `dof` the quantile is Student's.

    Examples
    --------
    >>> low, high = wilson(0.9, 50)
    >>> print(f"{low:.4f} {high:.4f}")
    0.7864 0.9565
    """
    z = float(t.ppf(0.5 + level / 2, dof))
    centre = share + z**2 / (2 * n)
    reach = z * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    scale = 1 + z**2 / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def corrected_variance(means: np.ndarray, test_share: float) -> float:
    """The variance (1/J + n_test/n_train) s² of a mean of J split means; 0 for one split."""
    if len(means) < 2:
        return 0.0
    return float((1 / len(means) + test_share) * np.var(means, ddof=1))


def holm(pvalues: Sequence[float]) -> np.ndarray:
    """p-values corrected for their number (Holm 1979)."""
    order = np.argsort(pvalues)
    steps = np.asarray(pvalues)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
