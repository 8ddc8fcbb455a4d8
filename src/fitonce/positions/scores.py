r"""Cross-validated scores of models trained and tested at every position, and trained at one
position and tested at every other.

With the decomposition of position s, the model of a training set is, for a refit without the
deleted rows (MATHS: α of the remaining residuals),

    decision(x) = k(x, X_s) α + b          or, for the linear kernel, x·w + b.

Each fold's test rows of all positions t stand one below the other and go through one product.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from .. import crossval
from ..core.arrays import Array, index_like, namespace, to_numpy
from ..crossval.decomposed import Decomposed
from ..crossval.metrics import Outputs
from ..crossval.routes import RefitWarning, choose_route, fit_weights
from ..crossval.stand_in import Shared, subset
from ..estimators.fitted import final_step, is_model
from ..estimators.validation import is_foreign_array
from ..inference.folds import split_rows
from ..inference.literal import Fitter
from ..inference.scoring import NeedsFitError, Scoring, measures
from ..inference.validity import Split
from .slices import Slices
from .sweep import swept

BLOCK_ELEMENTS = 1 << 25  # entries of X stacked at a time: 256 MiB

Output = Callable[[Array], Any]  # what a model says about rows


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
    """Scores of models trained at each position and tested at every position, on held-out rows only
    (King & Dehaene 2014).

    Equal to fitting the estimator on ``X[train, :, s]`` and scoring it on ``X[test, :, t]`` for all
    folds and pairs of positions, to rounding. The diagonal is `cross_val_score`.

    Parameters
    ----------
    estimator : estimator
        One of fitonce's, or a pipeline that ends in one. Any other is refitted on every training
        set and position, with a warning.
    X : array of shape (n_samples, n_features, n_positions)
        Epochs by channels by times. Or (n_samples, n_features) with `neighbors` of equal size.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        For the splitter.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn. The folds are the same at all positions.
    scoring : str, callable or None, default=None
        One score; None is the estimator's own.
    neighbors : list of index arrays or boolean matrix, default=None
        As in `permutation_test`.
    n_jobs : int, default=None
        Training positions worked on at the same time, through joblib's current backend.
    params : dict, default=None
        Parameters for `fit`, such as ``sample_weight``.
    verbose : int, default=0
        Above 0, progress on the terminal.

    Returns
    -------
    array of shape (n_positions, n_positions, n_folds)
        Training position, test position, fold. (MNE's ``cross_val_multiscore`` with a
        ``GeneralizingEstimator`` has the folds first.)

    Notes
    -----
    Cost for T positions, n rows, p features: T decompositions; then T² products of n rows with the
    folds' weights (linear kernel), or T² kernel matrices of n×n. Tuned parameters and pipelines are
    fitted on every training set, T times the number of folds.

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
    if getattr(final_step(estimator), "kernel", None) == "precomputed":
        raise ValueError(
            'kernel="precomputed" cannot generalize: kernels between rows of different positions '
            "are needed. Pass features and a kernel."
        )
    slices, y, splits = prepared(estimator, X, y, groups, cv, neighbors)
    sizes = [np.size(place) for place in slices.places]
    if min(sizes) < max(sizes):
        raise ValueError(
            f"neighbors must have equal sizes here, got sizes from {min(sizes)} to {max(sizes)}: "
            "a model trained at one position must fit the features of all others."
        )
    classes = np.unique(y) if is_classifier(estimator) else None
    measured = one_score(estimator, np.asarray(y), classes, scoring)
    work = TrainedHere(estimator, slices, y, splits, measured, params)
    scores = swept(work, slices, name="generalize", n_jobs=n_jobs, verbose=verbose)
    return scores.reshape(*slices.shape, *slices.shape, len(splits))


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


@dataclass
class TrainedHere:
    """Scores (positions, folds) of the models trained at one position."""

    estimator: Any
    slices: Slices
    y: Any
    splits: list[Split]
    scoring: Scoring
    params: Mapping[str, Any] | None
    _stacked: Array | None = None

    def __call__(self, X: Any) -> np.ndarray:
        shared, plain = self._shared(X), self.scoring.measures[0].plain
        closed = {
            fold: self._in_closed_form(shared.decomposed, deleted)
            for fold, (train, _) in enumerate(self.splits)
            if plain and shared.decomposed and (deleted := shared.deleted(train)) is not None
        }
        scores = np.empty((len(self.slices), len(self.splits)))
        try:
            for places, rows in self._blocks() if closed else ():
                for fold, output in closed.items():
                    scores[places, fold] = self._scored(output, rows, fold)
        except NeedsFitError:  # of the first fold and block, or never
            closed = {}
        fitter = Fitter(self.estimator, X, self.y, self.params, None, False)
        for fold in set(range(len(self.splits))) - set(closed):
            scores[:, fold] = self._by_fit(fitter, fold)
        return scores

    def _shared(self, X: Any) -> Shared:
        """The decomposition of all rows, where the models of all folds follow from one."""
        shared = Shared(self.estimator, X, np.asarray(self.y))
        route = choose_route(self.estimator, X, self.params)
        if route.name == "refit":
            warnings.warn(
                f"fitonce has no closed form for {type(self.estimator).__name__}: it is refitted "
                "on every training set and position. Pass one of fitonce's estimators, or a "
                "pipeline that ends in one, to avoid that.",
                RefitWarning,
                stacklevel=2,
            )
        if route.name == "one":
            with suppress(ValueError, TypeError):  # all rows are refused; some may be spared it
                shared.decompose(fit_weights(self.estimator, self.params))
        return shared

    @property
    def _method(self) -> str:
        return "predict" if self.scoring.classes is None else "decision_function"

    def _in_closed_form(self, decomposed: Decomposed, deleted: np.ndarray) -> Output:
        """What the model without the deleted rows says about rows, in closed form."""
        without = decomposed.without(deleted)

        def output(rows: Array) -> np.ndarray:
            rows = namespace(rows).astype(rows, namespace(rows).float64, copy=False)
            return decomposed.predict(without, rows)

        return output

    def _by_fit(self, fitter: Fitter, fold: int) -> np.ndarray:
        """Scores (positions,) of one training set's model, fitted literally."""
        train, test = self.splits[fold]
        model, _, y = fitter.fitted(self.y, train, test)
        measure, classes = self.scoring.measures[0], self.scoring.classes
        same_classes = classes is None or np.array_equal(model.classes_, classes)
        if measure.metric is None or not is_model(final_step(model)) or not same_classes:
            places = (subset(self.slices.at(number), test) for number in range(len(self.slices)))
            return np.array([measure.scorer(model, X, y) for X in places])
        output = getattr(model, self._method)
        return np.concatenate([self._scored(output, rows, fold) for _, rows in self._blocks()])

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """X (B, n, p) at blocks of test positions, and which they are; kept if it is one block."""
        total, (n, p) = len(self.slices), self.slices.at(0).shape
        step = max(1, BLOCK_ELEMENTS // (n * p))
        for start in range(0, total, step):
            X = self._stacked
            if X is None:
                stop = min(start + step, total)
                X = namespace(self.slices.X).stack([self.slices.at(i) for i in range(start, stop)])
            if step >= total:
                self._stacked = X
            yield slice(start, start + step), X

    def _scored(self, output: Output, X: Array, fold: int) -> np.ndarray:
        """Scores (B,) of a fold's model at its test rows of X (B, n, p)."""
        test, classes = self.splits[fold][1], self.scoring.classes
        xp, y = namespace(X), np.asarray(self.y)[test]
        tested = xp.take(X, index_like(test, X), axis=1)
        values = to_numpy(output(xp.reshape(tested, (-1, X.shape[2]))))
        if classes is None and self.scoring.single:
            values = values.ravel()
        truth: np.ndarray = (
            y.astype(np.float64).reshape(len(y), -1).T
            if classes is None
            else np.searchsorted(classes, y)
        )
        values = np.moveaxis(values.reshape(-1, 1, len(test), *values.shape[1:]), 2, -1)
        outputs = Outputs(values, np.broadcast_to(truth, (len(values), 1, *truth.shape)))
        return self.scoring.of_outputs([outputs])[self.scoring.measures[0].name]
