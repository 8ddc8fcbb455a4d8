r"""Permutations that keep the association between labels and confounds.

Labels that are permuted freely lose their association with the confounds, and the test would detect
the confounds. What may be permuted depends on the confounds.

- Discrete (categories): labels are permuted within their levels. Exact.
- Numeric, regression: with ŷ the least-squares fit of y on the confounds, y* = ŷ + π(y - ŷ)
  (Freedman & Lane 1983). Approximate: residuals are only approximately exchangeable.
- Numeric, classes: labels are drawn given a model q(y | c) of the classes, a logistic regression on
  the confounds (Berrett, Wang, Barber & Samworth 2020). A permutation π has the probability
  ∝ Π_i q(y_π(i) | c_i). Steps of a Markov chain swap the labels of random pairs of rows,

      P(swap i, j) = w/(1 + w),      w = q(y_j|c_i) q(y_i|c_j) / (q(y_i|c_i) q(y_j|c_j)).

    One chain leads from the observed labels to a hub, and one from there to each drawn labeling, so
    the observed labeling is exchangeable with the drawn ones. Exact if q is right, approximate if
    it is estimated.

Approximate tests keep the folds fixed: either the folds ignore y, or labels are permuted within
folds. Where what a linear model leaves of y still follows the confounds in a curve or an
interaction, and the features do too, such a test rejects without any effect. So kernel ridge
regression predicts what is left from the confounds, and its leave-one-out error, of the best of its
candidates, is compared with those of permuted rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ..core.confounds import ConfoundBasis
from ..core.numerical_warnings import depth_inside_package
from ..estimators.confounding import Coding, coding_of, discrete_levels
from ..estimators.ridge import KernelRidge
from ..estimators.setup import setup_of
from .exchange import Exchange, Rearrangement, ValidityWarning, blocks_of, parted

STEPS = 50  # of the Markov chain between the hub and a labeling, as its authors use
MANY = 10**12  # labelings; too many to enumerate
LEVELS = "within levels of the confounds"
RESIDUALS = "residuals given the confounds (Freedman-Lane, approximate)"
CONDITIONAL = "given a model of the classes by the confounds (approximate)"
ALLOWED = (None, "within", "rows")
DRAWS = 199  # permutations of the rows
LEVEL = 0.01  # of the test of what is left of y
WEAK = 0.03  # the same where the features follow the confounds nonlinearly
MOST_ROWS = 1000  # drawn at random where there are more
COMPONENTS = 5  # of the kernel of the features, the largest
MOST_CODES = 12  # whole numbers of a confound, up to which it may be a category


@dataclass(frozen=True)
class Confounded:
    """How confounds change a permutation test.

    `levels` (n,) if they are discrete; else `base` (n, t), to which permuted residuals are added,
    or the logarithms `log_q` (n, c) of the class probabilities.
    """

    name: str
    levels: np.ndarray | None = None
    base: np.ndarray | None = None
    log_q: np.ndarray | None = None
    curved: bool = False  # y depends nonlinearly on confounds, which a linear model misses

    @classmethod
    def of(
        cls, confounds: Any, X: Any, y: np.ndarray, labels: np.ndarray, classifier: bool
    ) -> Confounded:
        levels = discrete_levels(confounds, len(y))
        if levels is not None:
            return cls(LEVELS, levels=levels)
        coding, C = coding_of(confounds, len(y))
        warn_of_codes(coding, C)
        Q0 = ConfoundBasis.of(C, None).Q0
        if classifier:
            log_q = _log_probabilities(C, labels)
            left = np.eye(log_q.shape[1])[labels] - np.exp(log_q)
            return cls(CONDITIONAL, log_q=log_q, curved=is_curved(C, Q0, left, X))
        numbers = y.astype(np.float64).reshape(len(y), -1)
        base = Q0 @ (Q0.T @ numbers)
        return cls(RESIDUALS, base=base, curved=is_curved(C, Q0, numbers - base, X))

    @property
    def approximate(self) -> bool:
        return self.levels is None

    def check(self, exchange: str | None, permute: str | None) -> None:
        """Refuse permutations that break the link between labels and confounds; warn if
        approximate.
        """
        if exchange not in ALLOWED:
            raise ValueError(
                f"exchange={exchange!r} does not keep the association between labels and "
                "confounds: "
                'with confounds, use exchange="rows" or, within groups, exchange="within".'
            )
        if not self.approximate:
            return
        if permute == "cosets":
            raise ValueError(
                'permute="cosets" exchanges labels and folds of any two rows, which is not '
                'possible with numeric confounds: use permute=None, "within-folds" or "free", or '
                "bin the confounds into categories."
            )
        warnings.warn(
            "with numeric confounds this permutation test is approximate: it permutes "
            f"{'labels' if self.base is None else ''} {self.name}. Its level depends on how well a "
            "linear model describes the effect of the confounds; see the guide on confounds. "
            "Categories (such as age groups) make it exact.".replace("  ", " "),
            ValidityWarning,
            stacklevel=depth_inside_package(),
        )
        if self.curved:
            warnings.warn(
                "y depends on the confounds nonlinearly (in a curve, or one by way of another): "
                "kernel ridge regression predicts from them what a linear model leaves. Such tests "
                "reject far more often than their level (40 to 100 % at 5 % in simulations). Add "
                "squares and products of the confounds as columns, or bin them into categories.",
                ValidityWarning,
                stacklevel=depth_inside_package(),
            )

    def exchange(
        self, labels: np.ndarray, groups: np.ndarray | None, atoms: np.ndarray | None
    ) -> Exchange | None:
        """How class labels are exchanged; None if the usual exchange applies."""
        if self.log_q is None:
            return None
        return ConditionalExchange(labels, blocks_of(len(labels), groups, atoms), self.log_q)


def _log_probabilities(C: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """log q (n, c) from a logistic regression with slight shrinkage, on standardized columns."""
    Z = StandardScaler().fit_transform(C)
    model = LogisticRegression(C=10.0, max_iter=1000).fit(Z, labels)
    return np.asarray(model.predict_log_proba(Z))


def warn_of_codes(coding: Coding, C: np.ndarray) -> None:
    """Ask about numeric confounds of a few whole numbers, each of them on several rows."""
    widths = [1 if levels is None else len(levels) for levels in coding.levels]
    for name, levels, at in zip(coding.names, coding.levels, np.cumsum([0, *widths]), strict=False):
        if levels is not None:
            continue
        found, counts = np.unique(C[:, at], return_counts=True)
        if 2 < len(found) <= MOST_CODES and counts.min() > 1 and np.all(found % 1 == 0):
            warnings.warn(
                f"the confound {name!r} looks like codes: it has {len(found)} whole numbers, which "
                "are taken as a straight line. If they stand for sites, devices or other "
                "categories, give them as text (or as a category of a data frame), so that each "
                "has a mean of its own.",
                ValidityWarning,
                stacklevel=depth_inside_package(),
            )


@dataclass(frozen=True)
class ConditionalExchange(Exchange):
    """Labels drawn given their probabilities at each row, log q (n, c), within blocks."""

    labels: np.ndarray
    blocks: Sequence[np.ndarray]
    log_q: np.ndarray

    @cached_property
    def _hub(self) -> np.ndarray:
        return self._walked(np.arange(len(self.labels)), np.random.RandomState(0))

    def draw(self, rng: np.random.RandomState) -> Rearrangement:
        return Rearrangement(self._walked(self._hub, rng))

    def _walked(self, start: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """The indices after `STEPS` steps, each of which may swap every row with one other."""
        indices, block_of_row, first = start.copy(), self._block_of_row, self._first
        n, log_q = len(indices), self.log_q
        for keys, coins in rng.uniform(size=(STEPS, 2, n)):
            order = np.argsort(block_of_row + keys)  # the rows of a block together, in random order
            one, other = order[first], order[first + 1]
            mine, theirs = self.labels[indices[one]], self.labels[indices[other]]
            gain = log_q[one, theirs] + log_q[other, mine]
            gain = gain - log_q[one, mine] - log_q[other, theirs]
            swap = coins[: len(first)] * (1.0 + np.exp(-gain)) < 1.0
            i, j = one[swap], other[swap]
            indices[i], indices[j] = indices[j], indices[i]
        return indices

    @cached_property
    def _block_of_row(self) -> np.ndarray:
        number = np.zeros(len(self.labels))
        for at, block in enumerate(self.blocks):
            number[block] = at
        return number

    @cached_property
    def _first(self) -> np.ndarray:
        """Where pairs begin among rows that are sorted by block."""
        starts = np.cumsum([0, *map(len, self.blocks)])[:-1]
        pairs = [
            start + 2 * np.arange(len(block) // 2)
            for start, block in zip(starts, self.blocks, strict=True)
        ]
        return np.concatenate(pairs)

    @property
    def count(self) -> int:
        return MANY if any(len(np.unique(self.labels[b])) > 1 for b in self.blocks) else 1

    def others(self) -> Iterator[Rearrangement]:
        raise ValueError(
            "labelings given a model of the confounds have unequal probabilities: they are drawn, "
            "not enumerated. Use exact=False."
        )

    def keeping(self, atoms: np.ndarray) -> ConditionalExchange:
        return ConditionalExchange(self.labels, parted(self.blocks, atoms), self.log_q)

    def stays(self, kept: Exchange, targets: np.ndarray) -> float:
        return 0.0 if kept is self else 1.0


# ---- whether a linear model of the confounds is enough -------------------------------------------


def is_curved(C: np.ndarray, Q0: np.ndarray, left: np.ndarray, X: Any) -> bool:
    """Whether what is left of y (n, t) follows numeric confounds C (n, q) nonlinearly; Q0 is the
    orthonormal basis of a constant and the confounds.

    Less evidence is asked of y where what is left of the features X does so too.
    """
    n = len(C)
    rows = np.arange(n)
    if n > MOST_ROWS:
        rows = np.random.RandomState(0).permutation(n)[:MOST_ROWS]
    p = chance_of(C[rows], Q0[rows], left[rows])
    if LEVEL < p <= WEAK:
        features = _components(X, rows)
        if features is not None and chance_of(C[rows], Q0[rows], features) <= LEVEL:
            return True
    return p <= LEVEL


def chance_of(C: np.ndarray, Q0: np.ndarray, values: np.ndarray) -> float:
    """The p-value of the held-out prediction of values (n, t), less what is linear in the
    confounds, by kernel ridge regression on the confounds.
    """
    Q = np.linalg.qr(Q0)[0]
    values = values - Q @ (Q.T @ values)
    random, (n, t) = np.random.RandomState(0), values.shape
    if t > COMPONENTS:
        U, s, _ = np.linalg.svd(values, full_matrices=False)
        values, t = U[:, :COMPONENTS] * s[:COMPONENTS], COMPONENTS
    total = np.sum(values**2, axis=0)
    if not np.any(total > 0) or n < 2 * Q.shape[1] + 3:
        return 1.0
    orders = [np.arange(n), *(random.permutation(n) for _ in range(DRAWS))]
    columns = np.hstack([values[order] for order in orders])
    columns -= Q @ (Q.T @ columns)
    Z = StandardScaler().fit_transform(C)
    tuner = setup_of(KernelRidge(criterion="r2", search="coarse"), Z, columns).tuner()
    lattice = tuner.specification.branches(tuner.data)[0].lattice
    assert lattice is not None
    losses = []
    for gamma in lattice.first():
        problem = tuner.problem({"gamma": gamma})
        own = tuner.losses(problem, tuner.alphas(problem)).reshape(-1, len(orders), t)
        losses.append(np.min(own @ (total / total.sum()), axis=0))
    best = np.min(losses, axis=0)
    return float(np.mean(best <= best[0] * (1.0 + 1e-9)))


def _components(X: Any, rows: np.ndarray) -> np.ndarray | None:
    """The largest components of the rbf kernel of standardized features; None of what is no table
    of numbers.
    """
    if sp.issparse(X) or getattr(np.asarray(X), "dtype", np.dtype(object)).kind not in "iuf":
        return None
    Z = StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)[rows])
    if Z.ndim != 2 or not np.isfinite(Z).all():
        return None
    of_kernel = KernelPCA(COMPONENTS, kernel="rbf", gamma=0.5 / Z.shape[1], eigen_solver="dense")
    return np.asarray(of_kernel.fit_transform(Z))
