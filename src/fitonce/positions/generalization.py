r"""Train at one position, test at every other, on rows that the model has not seen.

With the decomposition of position s, the model of a training set is, for a refit without the
deleted rows (MATHS: α of the remaining residuals),

    decision(x) = k(x, X_s) α + b          or, for the linear kernel, x·w + b.

All folds' coefficients stand side by side, so that the rows of all positions t go through one
product with them; a row's value counts only in the fold that holds it out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..core.arrays import Array, asarray_like, index_like, namespace, to_numpy
from ..crossval.routes import RefitWarning, choose_route, fit_weights
from ..crossval.stand_in import Shared, subset
from ..estimators.fitted import final_step, is_model
from ..estimators.problem import Solution, Without
from ..inference.engine import Outputs
from ..inference.literal import Fitter
from ..inference.scoring import NeedsFitError, Scoring
from ..inference.trained import predicted_targets
from ..inference.validity import Split
from .scores import check_routing, one_score, prepared
from .slices import Slices
from .sweep import swept

BLOCK_ELEMENTS = 1 << 25  # entries of X stacked at a time: 256 MiB


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
    sizes = {len(place) for place in slices.places if isinstance(place, np.ndarray)}
    if len(sizes) > 1:
        raise ValueError(
            f"neighbors must have equal sizes here, got sizes from {min(sizes)} to {max(sizes)}: "
            "a model trained at one position must fit the features of all others."
        )
    host, classes = np.asarray(y), None
    if is_classifier(estimator):
        classes, truth = np.unique(host, return_inverse=True)
    else:
        truth = host.astype(np.float64).reshape(len(host), -1).T
    measured = one_score(estimator, host, classes, scoring)
    work = TrainedHere(estimator, slices, y, truth, splits, measured, params)
    scores = swept(work, slices, name="generalize", n_jobs=n_jobs, verbose=verbose)
    return scores.reshape(*slices.shape, *slices.shape, len(splits))


@dataclass
class TrainedHere:
    """Scores (positions, folds) of the models trained at one position."""

    estimator: Any
    slices: Slices
    y: Any
    truth: np.ndarray  # class numbers (n,), or targets (t, n)
    splits: list[Split]
    scoring: Scoring
    params: Mapping[str, Any] | None
    _stacked: Array | None = None

    @property
    def method(self) -> str:
        return "predict" if self.scoring.classes is None else "decision_function"

    def __call__(self, X: Any) -> np.ndarray:
        shared = self._shared(X)
        closed = {
            fold: without
            for fold, (train, _) in enumerate(self.splits)
            if self.scoring.measures[0].plain and (without := shared.without(train)) is not None
        }
        scores = np.full((len(self.slices), len(self.splits)), np.nan)
        try:
            for places, fold, values in self._closed_outputs(shared, closed):
                scores[places, fold] = self._scored(values, fold)
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
            try:
                shared.decompose(fit_weights(self.estimator, self.params))
            except (ValueError, TypeError):  # all rows are refused; training sets may be spared it
                shared.model = None
        return shared

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """X (B, n, p) at blocks of test positions, and which they are; kept if it is one block."""
        total, (n, p) = len(self.slices), self.slices.at(0).shape
        step = max(1, BLOCK_ELEMENTS // (n * p))
        for start in range(0, total, step):
            X = self._stacked
            if X is None:
                numbers = range(start, min(start + step, total))
                X = namespace(self.slices.X).stack([self.slices.at(number) for number in numbers])
            if step >= total:
                self._stacked = X
            yield slice(start, start + step), X

    def _closed_outputs(
        self, shared: Shared, closed: Mapping[int, Without]
    ) -> Iterator[tuple[slice, int, np.ndarray]]:
        """What the models in closed form say about their test rows, (B, m) or (B, c, m), for blocks
        of test positions and every fold.
        """
        if not closed:
            return
        problem = shared.problem
        solutions = [problem.solution(without.refitted, shared.mu) for without in closed.values()]
        for places, X in self._blocks():
            xp, (B, n, p) = namespace(X), X.shape
            rows = xp.reshape(xp.astype(X, xp.float64), (B * n, p))
            values = predicted_targets(problem, rows, _side_by_side(solutions))
            host = to_numpy(values).reshape(B, n, len(closed), -1)
            for place, (fold, without) in enumerate(closed.items()):
                tested = np.ascontiguousarray(host[:, self.splits[fold][1], place, :])
                flat = asarray_like(tested.reshape(-1, tested.shape[-1]), values)
                yield places, fold, _by_position(shared.read(without, flat, self.method), B)

    def _by_fit(self, fitter: Fitter, fold: int) -> np.ndarray:
        """Scores (positions,) of one training set's model, fitted literally."""
        train, test = self.splits[fold]
        model, _, y = fitter.fitted(self.y, train, test)
        measure, classes = self.scoring.measures[0], self.scoring.classes
        same_classes = classes is None or np.array_equal(model.classes_, classes)
        if measure.metric is None or not is_model(final_step(model)) or not same_classes:
            places = (subset(self.slices.at(number), test) for number in range(len(self.slices)))
            return np.array([measure.scorer(model, X, y) for X in places])
        scores = np.empty(len(self.slices))
        for places_, X in self._blocks():
            xp = namespace(X)
            tested = xp.take(X, index_like(test, X), axis=1)
            rows = xp.reshape(tested, (-1, X.shape[2]))
            output = to_numpy(getattr(model, self.method)(rows))
            scores[places_] = self._scored(_by_position(output, X.shape[0]), fold)
        return scores

    def _scored(self, values: np.ndarray, fold: int) -> np.ndarray:
        """Scores (B,) of outputs (B, m) or (B, c, m) at the test rows of a fold."""
        truth = self.truth[..., self.splits[fold][1]]
        truth = np.broadcast_to(truth, (len(values), 1, *truth.shape))
        if self.scoring.classes is None and self.scoring.single:
            values = values.reshape(len(values), -1)
        scores = self.scoring.of_outputs([Outputs(values[:, None], truth)])
        return scores[self.scoring.measures[0].name]


def _by_position(output: np.ndarray, n_positions: int) -> np.ndarray:
    """Outputs of the rows of several positions, one below the other, as (B, m) or (B, c, m)."""
    return np.moveaxis(output.reshape(n_positions, -1, *output.shape[1:]), 1, -1)


def _side_by_side(solutions: Sequence[Solution]) -> Solution:
    """Several models as one with their outputs in a row."""
    xp = namespace(solutions[0].dual_coef)
    coefs = [solution.coef for solution in solutions]
    return Solution(
        xp.concat([solution.dual_coef for solution in solutions], axis=1),
        xp.concat([solution.intercept for solution in solutions], axis=0),
        None if coefs[0] is None else xp.concat(coefs, axis=1),
    )
