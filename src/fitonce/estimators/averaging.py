"""Fewer rows for training: means of rows in kernel space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from ..core.arrays import Array
from .fisher import KernelFisherDiscriminant
from .fitted import record_of
from .parameters import check_options
from .reduced import ReducedTraining
from .setup import Folds, Setup, Training
from .svc import LeastSquaresSVC
from .verification import Verification


def draw_blocks(strata: np.ndarray, size: int, random: np.random.RandomState) -> np.ndarray:
    """Blocks of at least `size` rows, less where a stratum has fewer: the number (n,) of each row's
    block.

    A stratum of k rows becomes max(1, k // size) blocks drawn at random, whose sizes differ by at
    most one.
    """
    block = np.empty(len(strata), dtype=int)
    start = 0
    for stratum in np.unique(strata):
        rows = random.permutation(np.flatnonzero(strata == stratum))
        for part in np.array_split(rows, max(1, len(rows) // size)):
            block[part] = start
            start += 1
    return block


def _strata(columns: np.ndarray) -> np.ndarray:
    """Numbers (n,) of the distinct rows of columns (n, k)."""
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class BlockDraw:
    """How blocks are drawn: so many rows each, within classes, or within groups as well."""

    n_average: int
    by: str
    random_state: Any

    def blocks(self, training: Training, folds: Folds | None) -> np.ndarray:
        """The block of each active row; never across a split of `cv`."""
        active = training.active
        strata = [np.unique(training.y, return_inverse=True)[1].ravel()]
        if self.by == "group":
            if training.groups is None:
                raise ValueError('by="group" needs groups: pass them to fit, or use by="class".')
            strata.append(np.unique(training.groups, return_inverse=True)[1].ravel())
        together = _strata(np.column_stack(strata))[active]
        if folds is not None:
            member = np.zeros((training.n_samples, len(folds)), dtype=np.int8)
            for number, (train, test) in enumerate(folds):
                member[train, number], member[test, number] = 1, 2
            strata = [_strata(np.column_stack(strata)), _strata(member)]
        parts = _strata(np.column_stack(strata))[active]
        block = draw_blocks(parts, self.n_average, check_random_state(self.random_state))
        self._check(block, together, len(np.unique(training.y[active])))
        return block

    def _check(self, block: np.ndarray, together: np.ndarray, n_classes: int) -> None:
        n, n_blocks = len(block), int(block.max()) + 1
        if n_blocks == n and len(np.unique(together)) < n and self.n_average > 1:
            raise ValueError(
                "no two rows can be averaged: blocks never straddle a split, and these splits "
                "part all rows of a class. Use cv=None, which leaves out one block at a time, or "
                "fewer splits."
            )
        if n_blocks <= n_classes and n_classes > 1:
            raise ValueError(
                f"n_average={self.n_average} leaves {n_blocks} averages of {n_classes} classes: "
                "there must be more averages than classes. Use a smaller n_average."
            )


class _Averaged:
    """What an estimator does otherwise when blocks of its rows are averaged."""

    draw: BlockDraw  # set before fit

    def _prepare(self, setup: Setup, folds: Folds | None) -> Setup:
        self.block_ = self.draw.blocks(setup.training, folds)
        return replace(setup, data=replace(setup.data, block=self.block_))

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Not for averages: a refit on fewer rows would draw other blocks."""
        raise ValueError(
            "verify() compares with refits on fewer rows, which would draw other blocks to "
            "average: it has nothing to compare."
        )


class AveragedFisher(_Averaged, KernelFisherDiscriminant):
    """The kernel Fisher discriminant of averages, placed for single rows."""


class AveragedSVC(_Averaged, LeastSquaresSVC):
    """The least-squares support vector machine of averages."""


_AVERAGED: dict[type, Any] = {
    KernelFisherDiscriminant: AveragedFisher,
    LeastSquaresSVC: AveragedSVC,
}


class KernelAveraging(ReducedTraining):
    """Train a classifier on means of rows in kernel space instead of the rows (Treder 2018).

    Blocks of `n_average` rows of one class are drawn at random and replaced by their mean in the
    feature space of the kernel, which is their mean itself for the linear kernel. The estimator is
    fitted to these averages, weighted by the number of their rows (the sum of their weights); its
    decomposition is of n/`n_average` instead of n. Averaging also raises the ratio of signal to
    noise of what it trains on. Rows that are predicted are single rows, never averaged.

    Tuning, calibration and `held_out_decision_` test single rows too: each by the model without the
    block it belongs to, in closed form.

    Parameters
    ----------
    estimator : KernelFisherDiscriminant or LeastSquaresSVC
        With any kernel and penalty; not with `landmarks` or ``refine=True``.
    n_average : int, default=5
        Rows in a block, at least. A class of k rows becomes max(1, k // n_average) blocks whose
        sizes differ by at most one, so that no row is thrown away.
    by : {"class", "group"}, default="class"
        Whether blocks are drawn within each class, or within each class of each group. Blocks never
        straddle a split by which `fit` tests: with groups and ``cv=None``, which leaves out whole
        groups, or with a splitter as the estimator's `cv`, they lie within its parts.
    random_state : int, RandomState instance or None, default=None
        Draws the blocks.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier. Its `dual_coef_` belongs to the training rows; its `leverage_` and
        `effective_dof_` are the averages'.
    blocks_ : array of shape (n_samples,)
        The block of each row, -1 for rows of weight zero, which are in none.
    n_averages_ : int
        How many there are.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        Decision values of every row by the model without its block (by `cv`, if the estimator has
        one).
    classes_ : array of shape (n_classes,)

    Notes
    -----
    In cross-validation every training set draws and averages its own rows. The kernel of all rows
    is computed once for every gamma tried, a part at a time, and prediction needs all training
    rows: what averaging saves is the decomposition, from n³ to (n/g)³, and the memory, from n² to
    n²/g. For regression use `landmarks`, or `Subsampling`.

    References
    ----------
    M. S. Treder (2018). Improving SNR and Reducing Training Time of Classifiers in Large Datasets
    via Kernel Averaging. Lecture Notes in Computer Science 11309, 239-248.

    Examples
    --------
    >>> from fitonce import KernelAveraging, KernelFisherDiscriminant
    >>> from fitonce.datasets import make_twonorm
    >>> X, y = make_twonorm(600, random_state=0)
    >>> model = KernelAveraging(KernelFisherDiscriminant("linear"), n_average=6, random_state=0)
    >>> model = model.fit(X[:300], y[:300])
    >>> model.n_averages_
    49
    >>> print(f"{model.score(X[300:], y[300:]):.2f}")
    0.96
    """

    def __init__(
        self, estimator: Any, *, n_average: int = 5, by: str = "class", random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.n_average = n_average
        self.by = by
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Draw blocks, average them and fit the estimator, choosing what is to be tuned by held-out
        predictions of single rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Means are weighted, and the weight of a mean is the sum; rows of weight 0 do not train.
        groups : array-like of shape (n_samples,), default=None
            For ``by="group"`` and for the estimator's `cv`; with ``cv=None``, whole groups are left
            out together.

        Returns
        -------
        self
        """
        self._check_parameters()
        model = _AVERAGED[type(self.estimator)](**self.estimator.get_params(deep=False))
        model.draw = BlockDraw(int(self.n_average), self.by, self.random_state)
        model.fit(X, y, sample_weight=sample_weight, groups=groups)
        training = record_of(model, "averaging").training
        blocks = np.full(training.n_samples, -1)
        blocks[training.active] = model.block_
        n_averages = int(model.block_.max()) + 1
        self.__dict__.update(estimator_=model, blocks_=blocks, n_averages_=n_averages)
        return self

    @property
    def held_out_decision_(self) -> Array:
        """Decision values of every row by the model without its block."""
        return self.estimator_.held_out_decision_

    def _check_parameters(self) -> None:
        inner = self.estimator
        if type(inner) not in _AVERAGED:
            raise TypeError(
                "estimator must be a KernelFisherDiscriminant or a LeastSquaresSVC, got "
                f"{type(inner).__name__} instead: averages are taken within classes. Regression "
                "has landmarks= and Subsampling."
            )
        check_options(self, by=("class", "group"))
        if (
            not isinstance(self.n_average, (int, np.integer))
            or isinstance(self.n_average, bool)
            or self.n_average < 1
        ):
            raise ValueError(
                f"n_average must be a positive integer, got {self.n_average!r} instead."
            )
        if inner.landmarks is not None:
            raise ValueError(
                "landmarks and averages both stand for the training rows: use one of them "
                "(landmarks=None, or no averaging)."
            )
        if getattr(inner, "fit_intercept", True) == "coefficient":
            raise ValueError(
                "averages have no bias among the coefficients: use fit_intercept=True, False or "
                '"penalized".'
            )
        if isinstance(inner.metric, str):
            raise ValueError("a metric is learned from rows, not from averages: use metric=None.")
        if inner.refine:
            raise ValueError("averaging tunes on the lattice only: use refine=False.")
