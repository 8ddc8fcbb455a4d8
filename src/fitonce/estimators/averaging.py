"""Training on fewer rows: averages of rows in kernel space."""

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
    """Blocks of at least `size` rows, or fewer if a stratum has fewer: the block (n,) of each row.

    A stratum of k rows becomes max(1, k // size) random blocks, whose sizes differ by at most one.
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
    """Indices (n,) of the distinct rows of columns (n, k)."""
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class BlockDraw:
    """How blocks are drawn: their size, and whether within classes or also within groups."""

    n_average: int
    by: str
    random_state: Any

    def blocks(self, training: Training, folds: Folds | None) -> np.ndarray:
        """The block of each active row; blocks do not cross the splits of `cv`."""
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
                "no two rows can be averaged: blocks do not cross splits, and these splits "
                "separate all rows of a class. Use cv=None, which leaves out one block at a time, "
                "or fewer splits."
            )
        if n_blocks <= n_classes and n_classes > 1:
            raise ValueError(
                f"n_average={self.n_average} gives {n_blocks} averages of {n_classes} classes: "
                "there must be more averages than classes. Use a smaller n_average."
            )


class _Averaged:
    """The changes to an estimator that is fitted on averages of its rows."""

    draw: BlockDraw  # set before fit

    def _prepare(self, setup: Setup, folds: Folds | None) -> Setup:
        self.block_ = self.draw.blocks(setup.training, folds)
        return replace(setup, data=replace(setup.data, block=self.block_))

    def verify(
        self, n_refits: int = 5, *, X: Any = None, random_state: int | None = 0
    ) -> Verification:
        """Not available for averages: a refit on fewer rows would draw other blocks."""
        raise ValueError(
            "verify() is not available for averages: a refit on fewer rows would average other "
            "blocks."
        )


class AveragedFisher(_Averaged, KernelFisherDiscriminant):
    """The kernel Fisher discriminant of averages, with its threshold placed for single rows."""


class AveragedSVC(_Averaged, LeastSquaresSVC):
    """The least-squares support vector machine of averages."""


_AVERAGED: dict[type, Any] = {
    KernelFisherDiscriminant: AveragedFisher,
    LeastSquaresSVC: AveragedSVC,
}


class KernelAveraging(ReducedTraining):
    """Train a classifier on averages of rows in kernel space (Treder 2018).

    Random blocks of `n_average` rows of one class are replaced by their mean in the feature space
    of the kernel; for the linear kernel, this is the mean of the rows. The estimator is fitted to
    these averages, weighted by their number of rows (or sum of weights). Its decomposition has size
    n/`n_average` instead of n. Averaging also increases the signal-to-noise ratio of the training
    data.
    Predictions are for single rows, which are never averaged.

    Tuning, calibration and `held_out_decision_` also test single rows, each with the model without
    its block, in closed form.

    Parameters
    ----------
    estimator : KernelFisherDiscriminant or LeastSquaresSVC
        Any kernel and penalty can be used, but not `landmarks` or ``refine=True``.
    n_average : int, default=5
        Smallest number of rows in a block. A class of k rows becomes max(1, k // n_average) blocks
        whose sizes differ by at most one, so that no row is discarded.
    by : {"class", "group"}, default="class"
        Whether to draw blocks within each class, or within each class of each group. Blocks do not
        cross the splits that `fit` uses for testing: with groups and ``cv=None``, which leaves out
        whole groups, or with a splitter as `cv` of the estimator, blocks lie within its parts.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the blocks.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier. Its `dual_coef_` refers to the training rows; its `leverage_` and
        `effective_dof_` to the averages.
    blocks_ : array of shape (n_samples,)
        The block of each row; -1 for rows with zero weight, which are in none.
    n_averages_ : int
        Number of averages.
    held_out_decision_ : array of shape (n_samples,) or (n_samples, n_classes)
        Decision values of every row from the model without its block (or from `cv`, if the
        estimator has one).
    classes_ : array of shape (n_classes,)

    Notes
    -----
    In cross-validation, every training set draws and averages its own rows. The kernel of all rows
    is computed once for every gamma, in parts, and prediction needs all training rows. Averaging
    reduces the time of the decomposition from n³ to (n/g)³, and the memory from n² to n²/g. For
    regression, use `landmarks` or `Subsampling`.

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
        """Draw blocks, average them and fit the estimator, tuning by held-out predictions of single
        rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Averages are weighted, and the weight of an average is the sum of its weights; rows with
            zero weight are not used for training.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``by="group"`` and for `cv` of the estimator; with ``cv=None``, whole groups
            are left out together.

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
        """Decision values of every row from the model without its block."""
        return self.estimator_.held_out_decision_

    def _check_parameters(self) -> None:
        inner = self.estimator
        if type(inner) not in _AVERAGED:
            raise TypeError(
                "estimator must be a KernelFisherDiscriminant or a LeastSquaresSVC, got "
                f"{type(inner).__name__} instead: averages are formed within classes. For "
                "regression, use landmarks= or Subsampling."
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
                "landmarks and averages cannot be combined, since both replace the training rows: "
                "use landmarks=None, or no averaging."
            )
        if getattr(inner, "fit_intercept", True) == "coefficient":
            raise ValueError(
                "averages have no bias among the coefficients: use fit_intercept=True, False or "
                '"penalized".'
            )
        if inner.refine:
            raise ValueError("averaging tunes on the lattice only: use refine=False.")
