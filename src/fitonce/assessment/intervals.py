r"""Intervals of held-out scores, and their assumptions.

A score is a mean of values of rows: hits, losses, or what a row adds to log(1 - R²). The naive
variance s² of the mean takes rows (or groups) as independent. They are not: models share training
rows, and the model that the interval is about is the one of all rows.

**Nested cross-validation** (Bates, Hastie and Tibshirani 2024) estimates the mean squared error of
the cross-validation estimate itself, from folds k of one or more partitions into K:

    MSE = mean_k[(ē_in - ē_out)²] - mean_k[var(e_out)/n_k],    SE² = (K-1)/K MSE

e_out are the values of fold k by the model without k, e_in those of the other folds j by the models
without k and j. SE² is kept between s² and K s².

For fixed settings everything comes from one decomposition. For tuned models SE²/s² is that of
models with settings that were chosen in some of the splits, others in every partition. These do not
vary as tuning does, so SE² is never below the variance of the corrected resampled t, and the
degrees of freedom are K - 1.

**Corrected resampled t** (Nadeau and Bengio 2003), where models without two folds would need
refits: the variance of J split means is s²(1/J + n_test/n_train), with K - 1 degrees of freedom,
those of one partition, and never below the naive one.

**Accuracy** has Wilson's interval, every p that a score test does not reject, for the number of
rows n whose binomial variance p(1-p)/n is SE²:

    (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)

**R² of all held-out rows together.** The unexplained share 1 - R² = Σe²/Σd², with residuals e and
deviations d from the mean, is a ratio. To first order, row i changes its logarithm by
(e_i²/mean(e²) - d_i²/mean(d²)) / n. The interval is that of log(1 - R²), transformed back.
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
    numbers of rows or groups, `test_share` is n_test/n_train. `frozen` are those of the same model
    with settings chosen in some of the splits, which have `inner`.
    """

    tests: Sequence[np.ndarray]
    values: Sequence[np.ndarray]
    inner: Sequence[np.ndarray]
    units: np.ndarray
    weights: np.ndarray
    test_share: float
    n_partitions: int = 1
    frozen: HeldOutValues | None = None
    most_dof: float = np.inf  # of the error of nested cross-validation

    def minus(self, other: HeldOutValues) -> HeldOutValues:
        """The differences of the values of two models on the same splits. Two models that learn
        nothing differ less regularly than one errs: the degrees of freedom are those of one
        partition.
        """
        both = zip(self.values, other.values, strict=True)
        pairs = zip(self.inner, other.inner, strict=False)
        inner = [a - b for a, b in pairs] if len(self.inner) == len(other.inner) else []
        frozen = None
        if not inner:
            one, two = (v if v.inner else v.frozen for v in (self, other))
            alike = one is not None and two is not None and len(one.tests) == len(two.tests)
            frozen = one.minus(two) if alike and one is not None and two is not None else None
        apart, most = [a - b for a, b in both], max(self.n_folds - 1, 1)
        return replace(self, values=apart, inner=inner, frozen=frozen, most_dof=most)

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
        return float(np.average(values, weights=self.weights[rows]))

    def _variance(self, rows: np.ndarray, values: np.ndarray) -> float:
        """The variance of the mean of independent units; infinite for one unit."""
        w = self.weights[rows]
        excess = np.bincount(self.units[rows], weights=w * (values - self._mean(rows, values)))
        m = len(np.unique(self.units[rows]))
        return m / (m - 1) * float(np.sum(excess**2) / np.sum(w) ** 2) if m > 1 else np.inf

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
            least = self._nested()
            if np.isfinite(least):
                variance = np.clip((K - 1) / K * least, naive, K * naive)
                times = f", {self.n_partitions} times" if self.n_partitions > 1 else ""
                method = f"nested cross-validation, {K} folds{times}"
                return float(np.sqrt(variance)), dof, method
        means = self.split_means
        corrected = corrected_variance(means, self.test_share)
        if self.frozen is not None and self.frozen.inner:
            error, _, method = self.frozen.error()
            ratio = error**2 / self.frozen.naive if self.frozen.naive > 0 else 1.0
            variance = max(naive * ratio, corrected)
            return float(np.sqrt(variance)), min(dof, max(K - 1, 1)), f"{method}, chosen settings"
        if corrected > naive:
            method = f"corrected resampled t over {len(means)} splits"
            return float(np.sqrt(corrected)), K - 1, method
        return float(np.sqrt(naive)), max(self.n_units - 1, 1), "held-out rows as if independent"

    def _nested(self) -> float:
        """The mean squared error of the cross-validation estimate."""
        terms = []
        for part in self._partitions():
            for k in part:
                rest = np.concatenate([self.tests[j] for j in part if j != k])
                test, out = self.tests[k], self.values[k]
                apart = self._mean(rest, self.inner[k][rest]) - self._mean(test, out)
                terms.append(apart**2 - self._variance(test, out))
        return float(np.mean(terms))

    def interval(self, level: float) -> tuple[float, float, str]:
        """The interval of the mean, symmetric, and how it was computed."""
        error, dof, method = self.error()
        reach = float(t.ppf(0.5 + level / 2, dof)) * error
        return self.mean - reach, self.mean + reach, method

    def pvalue(self) -> float:
        """The two-sided p-value of a mean of zero. If all units have the same value, their
        variance says nothing, and p is that of their signs.
        """
        mean, (error, dof, _) = self.mean, self.error()
        if error > 0:
            return float(2 * t.sf(abs(mean) / error, dof))
        return 1.0 if mean == 0.0 else float(2.0 ** (1 - self.n_units))


def of_share(
    values: HeldOutValues, level: float, share: float | None = None
) -> tuple[float, float, str]:
    """The interval of a share of hits. Where all rows are right, or all wrong, the error is zero,
    and one fold's number of units is taken.
    """
    error, dof, method = values.error()
    share = values.mean if share is None else share
    certain = error == 0.0 or share in (0.0, 1.0)
    size = values.n_units / values.n_folds if certain else share * (1 - share) / error**2
    return *wilson(share, size, level, dof), method


def of_r2(values: HeldOutValues, r2: float, level: float) -> tuple[float, float, str]:
    """The interval of R² from values that a row adds to log(1 - R²)."""
    low, high, method = values.interval(level)
    reach = np.exp((high - low) / 2)
    return 1.0 - (1.0 - r2) * reach, 1.0 - (1.0 - r2) / reach, f"{method}, on log(1 - R²)"


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
