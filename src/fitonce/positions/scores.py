"""Cross-validated scores at every position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from .. import crossval
from ..core.arrays import to_numpy
from ..estimators.validation import is_foreign_array
from ..inference.folds import split_rows
from ..inference.validity import Split
from .slices import Slices
from .sweep import at_every_position


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    neighbours: Any = None,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    error_score: Any = np.nan,
    verbose: int = 0,
) -> np.ndarray:
    """Cross-validated scores at every position, all with the same folds.

    Every position gets what ``fitonce.cross_val_score(estimator, X[:, :, position], y, ...)``
    gives.

    Parameters
    ----------
    estimator : estimator
        One of fitonce's, or a pipeline that ends in one. Any other is refitted, with a warning.
    X : array of shape (n_samples, n_features, n_positions)
        Epochs by channels by times; more axes after the second make a grid of positions. Or
        (n_samples, n_features) with `neighbours`.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        For the splitter.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn. It is asked once.
    scoring : str, callable or None, default=None
        As in scikit-learn.
    neighbours : list of index arrays or boolean matrix, default=None
        For every position the features (X of two dimensions) or positions (three) that are joined
        there; see `permutation_test`.
    n_jobs : int, default=None
        Positions worked on at the same time, through joblib's current backend.
    params : dict, default=None
        Parameters for `fit`, such as ``sample_weight``.
    error_score : "raise" or number, default=nan
        The score of a fold whose fit fails.
    verbose : int, default=0
        Above 0, progress on the terminal.

    Returns
    -------
    array of shape (n_positions, n_folds)
        ``scores.mean(axis=-1)`` is the time course. (MNE's ``cross_val_multiscore`` has the folds
        first: ``scores.T``.)

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.positions import cross_val_score
    >>> y = np.arange(40) % 2
    >>> X = np.random.default_rng(0).normal(size=(40, 5, 6))
    >>> X[:, :, 3] += 1.5 * y[:, None]
    >>> scores = cross_val_score(KernelFisherDiscriminant("linear", alpha=1.0), X, y, cv=5)
    >>> scores.shape, int(scores.mean(axis=-1).argmax())
    ((6, 5), 3)
    """
    slices = Slices.of(X, neighbours)
    labels = to_numpy(y) if is_foreign_array(y) else y
    splits = shared_splits(estimator, slices, X, labels, groups, cv)
    work = Work(estimator, labels, splits, scoring, params, error_score)
    found = at_every_position(work, slices, name="cross_val_score", n_jobs=n_jobs, verbose=verbose)
    return np.concatenate(list(found)).reshape(*slices.shape, len(splits))


def shared_splits(
    estimator: Any, slices: Slices, X: Any, y: Any, groups: Any, cv: Any
) -> list[Split]:
    """The folds of all positions, made once.

    A splitter that shuffles without a seed gives other ones every time it is asked.
    """
    for name, values in (("y", y), ("groups", groups)):
        if values is not None and len(values) != slices.n_samples:
            raise ValueError(
                f"{name} must have one entry per row of X ({slices.n_samples}), got {len(values)} "
                "instead."
            )
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    splits = split_rows(splitter.split(X, y, groups), slices.n_samples)
    if not splits:
        raise ValueError("cv must give at least one split into training and test rows, got none.")
    return splits


@dataclass(frozen=True)
class Work:
    """The folds' scores at one position."""

    estimator: Any
    y: Any
    splits: list[Split]
    scoring: Any
    params: Mapping[str, Any] | None
    error_score: Any

    def __call__(self, X: Any, position: int) -> np.ndarray:
        return crossval.cross_val_score(
            self.estimator,
            X,
            self.y,
            cv=self.splits,
            scoring=self.scoring,
            params=self.params,
            error_score=self.error_score,
        )
