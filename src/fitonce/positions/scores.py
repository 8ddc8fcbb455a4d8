"""Cross-validated scores of models trained and tested at every position, and of models trained at
one position and tested at every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from .. import crossval
from ..core.arrays import Array, namespace, to_numpy
from ..core.numerical_warnings import warn_numerical
from ..core.splits import Split, split_rows
from ..crossval.confounds import taken
from ..crossval.metrics import Metric
from ..crossval.plan import is_error_score, quick_name
from ..estimators.fitted import final_step
from ..estimators.validation import is_foreign_array
from ..inference.linear_maps import LinearModel, is_linear
from ..inference.placements import Placement
from ..inference.scoring import Scoring, measures
from .slices import Slices
from .sweep import swept
from .trained import StackedScores, TrainedHere

# many small folds are cheaper one position at a time: k systems of p×p may cost at most this many
# times as much as the moments of n rows
WORTH = 16

LOOKED_AT = 16  # positions whose size is compared with alpha


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

    Every position gets the result of ``fitonce.cross_val_score(estimator, X[:, :, position], y,
    ...)``.

    Parameters
    ----------
    estimator : estimator
        An estimator of fitonce, or a pipeline that ends in one. Any other is refitted, with a
        warning.
    X : array of shape (n_samples, n_features, n_positions)
        Epochs by channels by time points; further axes form a grid. Or (n_samples, n_features) with
        `neighbors`.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups, cv, scoring : object
        As in scikit-learn. All positions share the same folds.
    neighbors : list of index arrays or bool matrix, default=None
        For X with two dimensions, the features of each position (a searchlight); with three, the
        positions whose features are joined (a window). See `spheres`.
    n_jobs : int, default=None
        Number of positions processed in parallel with joblib.
    params, error_score, verbose : object
        As in scikit-learn.

    Returns
    -------
    array of shape (n_positions, n_folds)
        ``scores.mean(axis=-1)`` is the time course.

    Notes
    -----
    With the linear kernel, fixed parameters and fewer features than rows, the models of many
    positions are computed as one array, also after a StandardScaler: O(n p² + k p³) per position
    with k folds. Otherwise positions are processed one by one.

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
    metric = _quick(estimator, slices, y, splits, scoring, error_score)
    scores_at = partial(
        crossval.cross_val_score,
        estimator,
        y=y,
        cv=splits,
        scoring=scoring,
        params=params,
        error_score=error_score,
    )
    scores = swept(
        scores_at,
        slices,
        name="cross_val_score",
        n_jobs=n_jobs,
        verbose=verbose,
        together=stacked_scores(estimator, slices, y, splits, params, metric),
    )
    return scores.reshape(*slices.shape, len(splits))


def generalize(
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
    verbose: int = 0,
) -> np.ndarray:
    """Train at each position and test at every position, on held-out rows only (King & Dehaene
    2014).

    The result equals fitting the estimator on ``X[train, :, s]`` and scoring it on ``X[test, :,
    t]`` for all folds and pairs of positions, up to rounding. The diagonal is `cross_val_score`.

    Parameters
    ----------
    estimator : estimator
        An estimator of fitonce, or a pipeline that ends in one. Any other is refitted, with a
        warning.
    X : array of shape (n_samples, n_features, n_positions)
        Epochs by channels by time points. Or (n_samples, n_features) with `neighbors`.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups, cv, scoring : object
        As in scikit-learn, with one score. All positions share the same folds.
    neighbors : list of index arrays or bool matrix, default=None
        As in `permutation_test`, of equal sizes.
    n_jobs : int, default=None
        Number of positions processed in parallel with joblib.
    params, verbose : object
        As in scikit-learn.

    Returns
    -------
    array of shape (n_positions, n_positions, n_folds)
        Training position, test position, fold.

    Notes
    -----
    Cost for T positions, n rows and p features: T decompositions; then T² products of n rows with
    the weights of the folds (linear kernel), or T² kernel matrices of n×n. Tuned parameters and
    pipelines are fitted on every training set.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.positions import generalize
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 5, 4))
    >>> X[:, 0, 1:3] += 3.0 * y[:, None]  # the same pattern at positions 1 and 2
    >>> generalize(KernelFisherDiscriminant("linear", alpha=1.0), X, y, cv=5).mean(axis=-1).round(1)
    array([[0.4, 0.5, 0.4, 0.4],
           [0.5, 1. , 0.9, 0.4],
           [0.5, 0.9, 1. , 0.5],
           [0.6, 0.3, 0.3, 0.5]])
    """
    check_routing(params)
    if taken(estimator, params)[0] is not None:
        raise ValueError(
            "generalize does not support confounds: a model of one position would need those of "
            "every other. Use cross_val_score and permutation_test of fitonce.positions instead."
        )
    if getattr(final_step(estimator), "kernel", None) == "precomputed":
        raise ValueError(
            'kernel="precomputed" cannot be used with generalize, which needs kernels between rows '
            "of different positions. Pass features and the name of a kernel."
        )
    slices, y, splits = prepared(estimator, X, y, groups, cv, neighbors)
    if np.ptp(slices.sizes):
        raise ValueError(
            "neighbors must have equal sizes for generalize, got sizes from "
            f"{slices.sizes.min()} to {slices.sizes.max()}: a model trained at one position is "
            "applied to the features of all others."
        )
    measured = one_score(estimator, y, scoring)
    work = TrainedHere(estimator, slices, y, splits, measured, params)
    xp, metric = namespace(slices.X), measured.measures[0].metric
    if not bool(xp.all(xp.isfinite(slices.X))):  # the error names the position
        metric = None
    together = stacked_scores(estimator, slices, y, splits, params, metric, work.tested)
    scores = swept(
        work, slices, name="generalize", n_jobs=n_jobs, verbose=verbose, together=together
    )
    return scores.reshape(*slices.shape, *slices.shape, len(splits))


def prepared(
    estimator: Any, X: Any, y: Any, groups: Any, cv: Any, neighbors: Any
) -> tuple[Slices, Any, list[Split]]:
    """X at every position, y as a NumPy array, and the folds of all positions.

    The folds are made once: a splitter that shuffles without a seed would give new ones every time.
    """
    slices = Slices.of(X, neighbors)
    warn_of_scale(estimator, slices)
    y = to_numpy(y) if is_foreign_array(y) else y
    check_lengths(slices, y, groups)
    splits = split_rows(
        check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups=groups),
        slices.n_samples,
        none_tested=True,
    )
    return slices, y, splits


def one_score(estimator: Any, y: Any, scoring: Any, pooled: bool = False) -> Scoring:
    """Check that scoring is a single score."""
    if isinstance(scoring, (list, tuple, set, Mapping)):
        raise ValueError(
            f"scoring must be one score, got {scoring!r} instead: every position gets one number. "
            "Call the function again for another score."
        )
    classes = np.unique(y) if is_classifier(estimator) else None
    chosen = measures(
        final_step(estimator), scoring, classifier=classes is not None, classes=classes
    )
    return Scoring(estimator, chosen, classes, np.ndim(y) == 1, pooled)


def check_lengths(slices: Slices, y: Any, groups: Any) -> None:
    """Check that the first axis of X has the samples."""
    for name, values in (("y", y), ("groups", groups)):
        if values is not None and len(values) != slices.n_samples:
            raise ValueError(
                f"{name} must have one entry per sample ({slices.n_samples}), got {len(values)} "
                "instead. The axes of X are (n_samples, n_features, n_positions), as in MNE's "
                "epochs.get_data(); np.moveaxis puts them in this order."
            )


def warn_of_scale(estimator: Any, slices: Slices) -> None:
    """Warn if alpha is larger than the sum of all eigenvalues at most of the positions looked at:
    1.0 is, for epochs in volts.
    """
    if not is_linear(estimator) or not isinstance(estimator.alpha, Real):
        return
    alpha = float(estimator.alpha)
    places = range(0, len(slices), -(-len(slices) // LOOKED_AT))
    rows = [to_numpy(slices.at(number)).astype(np.float64) for number in places]
    size = float(np.median([len(X) * np.var(X, axis=0).sum() for X in rows]))
    if 0.0 < size < alpha:
        warn_numerical(
            f"alpha={alpha:.3g} is larger than the sum of the eigenvalues of the kernel "
            f"matrix, {size:.2g} at a typical position: the covariances of features hardly "
            "count. Data in volts need another scale: use make_pipeline(StandardScaler(), model), "
            "which is as fast, or a smaller alpha."
        )


def check_routing(params: Mapping[str, Any] | None) -> None:
    if sklearn.get_config()["enable_metadata_routing"] and params:
        raise ValueError(
            "params are not supported here with metadata routing enabled: their meaning depends on "
            "who requests them. Disable routing."
        )


def stacked_scores(
    estimator: Any,
    slices: Slices,
    y: Any,
    splits: list[Split],
    params: Mapping[str, Any] | None,
    metric: Metric | None,
    tested: Callable[[int], Iterable[Array]] | None = None,
) -> StackedScores | None:
    """Scores of many positions at once; None if their models are not linear, or the score needs
    more than outputs.
    """
    several = is_classifier(estimator) and np.ndim(y) != 1
    if metric is None or several or not all(len(test) for _, test in splits):
        return None
    folds = Placement(0, splits, slices.n_samples)
    model = LinearModel.of(estimator, slices.at(0), y, folds, params)
    return None if model is None else StackedScores(model, metric, tested)


def _quick(
    estimator: Any, slices: Slices, y: Any, splits: list[Split], scoring: Any, error_score: Any
) -> Metric | None:
    """A score that many positions can have at once; None if scikit-learn's function has to be
    called at every position.
    """
    classifier = is_classifier(estimator)
    ranked = classifier and isinstance(scoring, str) and scoring == "roc_auc"
    known = ranked or quick_name(scoring, classifier=classifier) is not None
    routed = sklearn.get_config()["enable_metadata_routing"]
    n, p = slices.at(0).shape
    small = len(splits) >= n or len(splits) * p > WORTH * n
    if not known or routed or small or not is_error_score(error_score):
        return None
    if scoring in ("roc_auc", "balanced_accuracy") and not _all_tested(y, splits):
        return None  # there is something to warn about
    return one_score(estimator, y, scoring).measures[0].metric


def _all_tested(y: Any, splits: list[Split]) -> bool:
    """Whether every test set has rows of every class."""
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    counts = [np.bincount(codes[test], minlength=codes.max() + 1) for _, test in splits]
    return bool(np.all(np.stack(counts) > 0))
