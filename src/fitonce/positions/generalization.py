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
import sklearn
from sklearn.base import is_classifier

from ..core.arrays import Array, namespace, to_numpy
from ..crossval.routes import RefitWarning, Route, choose_route, fit_weights
from ..crossval.stand_in import Shared, subset
from ..estimators.base import KernelModel
from ..estimators.problem import Solution, Without
from ..estimators.validation import is_foreign_array
from ..inference.engine import Outputs
from ..inference.evaluation import final_step
from ..inference.literal import Fitter
from ..inference.metrics import Scored
from ..inference.scoring import NeedsFitError, Scoring, measures
from ..inference.trained import predicted_targets
from ..inference.validity import Split
from .scores import shared_splits
from .slices import Slices
from .sweep import at_every_position

BLOCK_ELEMENTS = 1 << 25  # entries of X stacked at a time: 256 MiB


def generalize(
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
        Epochs by channels by times. Or (n_samples, n_features) with `neighbours` of equal size.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        For the splitter.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn. The folds are the same at all positions.
    scoring : str, callable or None, default=None
        One score; None is the estimator's own.
    neighbours : list of index arrays or boolean matrix, default=None
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

    Notes ----- Cost for T positions, n rows, p features: T decompositions; then T² products of n
    rows with the folds' weights (linear kernel), or T² kernel matrices of n×n. Tuned parameters and
    pipelines are fitted on every training set, T times the number of folds.

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
    slices = Slices.of(X, neighbours)
    if isinstance(scoring, (list, tuple, set, Mapping)):
        raise ValueError(
            f"scoring must be one score, got {scoring!r} instead. Call again for another."
        )
    if sklearn.get_config()["enable_metadata_routing"] and params:
        raise ValueError(
            "params with metadata routing enabled are not supported here. Switch routing off."
        )
    if getattr(final_step(estimator), "kernel", None) == "precomputed":
        raise ValueError(
            'kernel="precomputed" cannot generalise: kernels between rows of different positions '
            "are needed. Pass features and a kernel."
        )
    labels = to_numpy(y) if is_foreign_array(y) else y
    splits = shared_splits(estimator, slices, X, labels, groups, cv)
    _check_equal_sizes(slices)
    host = np.asarray(labels)
    classes = np.unique(host) if is_classifier(estimator) else None
    chosen = measures(
        final_step(estimator), scoring, classifier=classes is not None, classes=classes
    )
    work = Work(
        estimator,
        slices,
        labels,
        splits,
        Scoring(estimator, chosen, classes, host.ndim == 1, pooled=False),
        params,
    )
    found = at_every_position(work, slices, name="generalize", n_jobs=n_jobs, verbose=verbose)
    return np.concatenate(list(found)).reshape(*slices.shape, *slices.shape, len(splits))


def _check_equal_sizes(slices: Slices) -> None:
    sizes = {len(place) for place in slices.places if isinstance(place, np.ndarray)}
    if len(sizes) > 1:
        raise ValueError(
            f"neighbours must have equal sizes here, got sizes from {min(sizes)} to {max(sizes)}: "
            "a model trained at one position must fit "
            "the features of all others."
        )


@dataclass
class Work:
    """Scores (positions, folds) of the models trained at one position."""

    estimator: Any
    slices: Slices
    y: Any
    splits: list[Split]
    scoring: Scoring
    params: Mapping[str, Any] | None
    _stacked: Array | None = None

    @property
    def method(self) -> str:
        return "predict" if self.scoring.classes is None else "decision_function"

    def __call__(self, X: Any, position: int) -> np.ndarray:
        route = choose_route(self.estimator, X, self.params)
        if route.name == "refit":
            warnings.warn(
                f"fitonce has no closed form for {type(self.estimator).__name__}: it is refitted "
                "on every training set and position. Pass "
                "one of fitonce's estimators, or a pipeline that ends in one, to avoid that.",
                RefitWarning,
                stacklevel=2,
            )
        shared = self._shared(X, route)
        fitter = Fitter(self.estimator, X, self.y, self.params, None, False)
        closed = {}
        if self.scoring.measures[0].plain:
            closed = {
                fold: w
                for fold, (train, _) in enumerate(self.splits)
                if (w := shared.without(train)) is not None
            }
        scores = np.full((len(self.slices), len(self.splits)), np.nan)
        try:
            for start, outputs in self._closed_outputs(shared, closed):
                for fold, values in outputs.items():
                    scores[start : start + len(values), fold] = self._scored(values, fold)
        except NeedsFitError:  # of the first fold and block, or never
            closed = {}
        for fold in range(len(self.splits)):
            if fold not in closed:
                scores[:, fold] = self._by_fit(fitter, fold)
        return scores

    def _shared(self, X: Any, route: Route) -> Shared:
        shared = Shared(self.estimator, X, np.asarray(self.y))
        if route.name == "one":
            try:
                shared.decompose(fit_weights(self.estimator, self.params))
            except (
                ValueError,
                TypeError,
            ):  # all rows together are refused; each training set meets the same, or is spared it
                shared.model = None
        return shared

    # ---- closed form -----------------------------------------------------------------------------

    def _closed_outputs(self, shared: Shared, closed: Mapping[int, Without]) -> Any:
        """For blocks of test positions.

        The first, and for every fold what its model says about its test rows, (B, m) or (B, c, m).
        """
        if not closed:
            return
        problem = shared.problem
        solutions = [problem.solution(without.refitted, shared.mu) for without in closed.values()]
        stacked = _side_by_side(solutions)
        t = solutions[0].dual_coef.shape[1]
        n = self.slices.n_samples
        for start, rows in self._rows(int(problem.X.shape[1])):
            values = predicted_targets(problem, rows, stacked)
            values = namespace(values).reshape(values, (-1, n, len(closed), t))
            yield (
                start,
                {
                    fold: self._read(shared, without, values[:, :, place, :], fold)
                    for place, (fold, without) in enumerate(closed.items())
                },
            )

    def _rows(self, n_features: int) -> Iterator[tuple[int, Array]]:
        """The rows of all positions one below the other, in blocks with the position that each
        begins with; kept if that is one block.
        """
        if self._stacked is not None:
            yield 0, self._stacked
            return
        step = max(1, BLOCK_ELEMENTS // (self.slices.n_samples * n_features))
        for start in range(0, len(self.slices), step):
            parts = [
                self.slices.at(number)
                for number in range(start, min(start + step, len(self.slices)))
            ]
            xp = namespace(parts[0])
            rows = xp.concat([xp.astype(part, xp.float64) for part in parts], axis=0)
            if len(parts) == len(self.slices):
                self._stacked = rows
            yield start, rows

    def _read(self, shared: Shared, without: Without, values: Array, fold: int) -> np.ndarray:
        """The estimator's output for predicted targets (B, n, t), at the test rows of a fold."""
        test = self.splits[fold][1]
        host = to_numpy(values)[:, test, :]
        B, m, t = host.shape
        like = without.fitted.Y
        flat = namespace(like).asarray(
            np.ascontiguousarray(host.reshape(B * m, t)), device=getattr(like, "device", None)
        )
        output = to_numpy(shared.model._read_without(without, flat, self.method))
        return np.moveaxis(output.reshape(B, m, *output.shape[1:]), 1, -1)

    # ---- fitted ----------------------------------------------------------------------------------

    def _by_fit(self, fitter: Fitter, fold: int) -> np.ndarray:
        """Scores (positions,) of one training set's model, fitted literally."""
        train, test = self.splits[fold]
        model, _, y = fitter.fitted(self.y, train, test)
        measure = self.scoring.measures[0]
        ours = isinstance(final_step(self.estimator), KernelModel) and measure.metric is not None
        if not ours or not self._same_classes(model):
            X = self.slices
            return np.array(
                [measure.scorer(model, subset(X.at(number), test), y) for number in range(len(X))]
            )
        return np.concatenate(
            [self._scored(values, fold) for values in self._fitted_outputs(model, test)]
        )

    def _same_classes(self, model: Any) -> bool:
        return self.scoring.classes is None or np.array_equal(model.classes_, self.scoring.classes)

    def _fitted_outputs(self, model: Any, test: np.ndarray) -> Any:
        """Outputs (B, m) or (B, c, m) of a fitted model for blocks of test positions."""
        first = subset(self.slices.at(0), test)
        step = max(1, BLOCK_ELEMENTS // max(1, int(first.shape[0] * first.shape[1])))
        for start in range(0, len(self.slices), step):
            parts = [
                subset(self.slices.at(number), test)
                for number in range(start, min(start + step, len(self.slices)))
            ]
            output = to_numpy(
                getattr(model, self.method)(namespace(parts[0]).concat(parts, axis=0))
            )
            yield np.moveaxis(output.reshape(len(parts), len(test), *output.shape[1:]), 1, -1)

    # ---- scores ----------------------------------------------------------------------------------

    def _scored(self, values: np.ndarray, fold: int) -> np.ndarray:
        """Scores (B,) of outputs (B, m) or (B, c, m) at the test rows of a fold."""
        test = self.splits[fold][1]
        truth = self._truth(test)
        truth = np.broadcast_to(truth, (len(values), 1, *truth.shape))
        if self.scoring.classes is None and self.scoring.single:
            values = values.reshape(len(values), -1)
        scored = Scored(Outputs(values[:, None], truth), self.scoring.n_classes)
        return np.asarray(self.scoring.of_run(self.scoring.measures[0], scored)[:, 0])

    def _truth(self, test: np.ndarray) -> np.ndarray:
        """Class numbers (m,), or targets (t, m)."""
        y = np.asarray(self.y)
        if self.scoring.classes is not None:
            return np.asarray(np.searchsorted(self.scoring.classes, y[test]))
        return np.asarray(y[test].astype(np.float64).reshape(len(test), -1).T)


def _side_by_side(solutions: Sequence[Solution]) -> Solution:
    """Several models as one with their outputs in a row."""
    xp = namespace(solutions[0].dual_coef)
    coefs = [solution.coef for solution in solutions]
    return Solution(
        xp.concat([solution.dual_coef for solution in solutions], axis=1),
        xp.concat([solution.intercept for solution in solutions], axis=0),
        None if coefs[0] is None else xp.concat(coefs, axis=1),
    )
