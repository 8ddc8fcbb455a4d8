"""Cross-validated scores at every position, and what all functions over positions prepare alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from .. import crossval
from ..core.arrays import to_numpy
from ..estimators.fitted import final_step
from ..estimators.validation import is_foreign_array
from ..inference.folds import split_rows
from ..inference.scoring import Scoring, measures
from ..inference.validity import Split
from .slices import Slices
from .sweep import swept


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    neighbors: Any = None,
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
        (n_samples, n_features) with `neighbors`.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        For the splitter.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn. It is asked once.
    scoring : str, callable or None, default=None
        As in scikit-learn.
    neighbors : list of index arrays or boolean matrix, default=None
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
    slices, y, splits = prepared(estimator, X, y, groups, cv, neighbors)
    scores_at = partial(
        crossval.cross_val_score,
        estimator,
        y=y,
        cv=splits,
        scoring=scoring,
        params=params,
        error_score=error_score,
    )
    scores = swept(scores_at, slices, name="cross_val_score", n_jobs=n_jobs, verbose=verbose)
    return scores.reshape(*slices.shape, len(splits))


def prepared(
    estimator: Any, X: Any, y: Any, groups: Any, cv: Any, neighbors: Any
) -> tuple[Slices, Any, list[Split]]:
    """X at every position, y on the host, and the folds of all positions.

    They are made once: a splitter that shuffles without a seed gives other ones every time.
    """
    slices = Slices.of(X, neighbors)
    y = to_numpy(y) if is_foreign_array(y) else y
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
    return slices, y, splits


def one_score(
    estimator: Any, y: np.ndarray, classes: np.ndarray | None, scoring: Any, pooled: bool = False
) -> Scoring:
    """The scoring of a function over positions, which is about one number."""
    if isinstance(scoring, (list, tuple, set, Mapping)):
        raise ValueError(
            f"scoring must be one score, got {scoring!r} instead: every position gets one number. "
            "Call again for another."
        )
    chosen = measures(
        final_step(estimator), scoring, classifier=classes is not None, classes=classes
    )
    return Scoring(estimator, chosen, classes, y.ndim == 1, pooled)


def check_routing(params: Mapping[str, Any] | None) -> None:
    if sklearn.get_config()["enable_metadata_routing"] and params:
        raise ValueError(
            "params with metadata routing enabled are not supported here: what they mean depends "
            "on who requests them. Switch routing off."
        )
