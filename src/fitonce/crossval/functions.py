"""scikit-learn's cross-validation functions and learning curve, by the fastest route."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import sklearn.model_selection

from ..core.arrays import asarray_like, namespace
from ..estimators.validation import is_foreign_array
from ..rows.dask import is_dask
from .depends import Route
from .lookup import FoldContext, RowLookupEstimator, lookup_estimator, n_rows
from .plan import Plan

TRAIN_SIZES = np.linspace(0.1, 1.0, 5)


class CrossValidation(dict[str, Any]):
    """The dictionary returned by scikit-learn's `cross_validate`, with the attribute `route`: how
    it was computed.
    """

    route: Route


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
) -> CrossValidation:
    """`sklearn.model_selection.cross_validate`, by the fastest route to the same numbers.

    Parameters are those of scikit-learn's function. `n_jobs` and `pre_dispatch` matter only if
    folds are fitted one by one. Splits whose test rows are inside their own training set are
    refused.

    Returns
    -------
    CrossValidation
        scikit-learn's dictionary, with an attribute ``route``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant, cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
    >>> results = cross_validate(model, X, y, cv=10, scoring=["accuracy", "balanced_accuracy"])
    >>> print(results["test_accuracy"].mean().round(3), results.route)
    0.98 one (fixed parameters)
    """
    plan = Plan(estimator, X, y, cv, params, scoring)
    plain = not (verbose or return_train_score or return_estimator or return_indices)
    start = time.perf_counter()
    scores = plan.quick_scores(groups, scoring, error_score) if plain else None
    if scores is not None:
        seconds = np.full(len(scores), (time.perf_counter() - start) / len(scores))
        results = CrossValidation(fit_time=0.0 * seconds, score_time=seconds, test_score=scores)
    else:
        results = CrossValidation(
            sklearn.model_selection.cross_validate(
                **plan.arguments(groups, n_jobs, verbose, pre_dispatch),
                scoring=scoring,
                return_train_score=return_train_score,
                return_estimator=return_estimator,
                return_indices=return_indices,
                error_score=error_score,
            )
        )
    plan.share_time(results)
    if return_estimator:
        results["estimator"] = [
            fold.returned() if isinstance(fold, RowLookupEstimator) else fold
            for fold in results["estimator"]
        ]
    results.route = plan.route
    plan.log()
    return results


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    error_score: Any = np.nan,
) -> np.ndarray:
    """`sklearn.model_selection.cross_val_score`, by the fastest route to the same numbers.

    Parameters are those of scikit-learn's function.

    Returns
    -------
    array of shape (n_splits,)
        The score of each split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import LeastSquaresSVC, cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(LeastSquaresSVC(gamma=0.2, alpha=0.1), X, y, cv=5).round(3).tolist()
    [0.967, 1.0, 1.0, 0.933, 1.0]
    """
    plan = Plan(estimator, X, y, cv, params, scoring)
    scores = None if verbose else plan.quick_scores(groups, scoring, error_score)
    if scores is None:
        scores = sklearn.model_selection.cross_val_score(
            **plan.arguments(groups, n_jobs, verbose, pre_dispatch),
            scoring=scoring,
            error_score=error_score,
        )
    plan.log()
    return np.asarray(scores)


def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    method: str = "predict",
    by_fold: bool = False,
) -> Any:
    """`sklearn.model_selection.cross_val_predict`, by the fastest route to the same numbers.

    Parameters are those of scikit-learn's function. There are two additions:
    ``method="transform"``, the projections of a discriminant, and ``by_fold=True``, for splitters
    whose test sets overlap or leave out rows (repeated splits, shuffle splits, time series).

    Returns
    -------
    array, or list of (test rows, outputs)
        Held-out outputs of all rows; with `by_fold` those of each split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import LeaveOneOut
    >>> from fitonce import KernelFisherDiscriminant, cross_val_predict
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
    >>> predicted = cross_val_predict(model, X, y, cv=LeaveOneOut())
    >>> int((predicted != y).sum())
    6
    """
    plan = Plan(estimator, X, y, cv, params, method=method)
    batch = plan.batch(groups, method) if method in ("predict", "decision_function") else None
    pairs = batch
    if pairs is None and (by_fold or method == "transform"):
        pairs = _outputs_by_fold(plan, groups, method)
    if by_fold and pairs is not None:
        outputs: Any = [(test, _returned(output, X)) for test, output in pairs]
    elif pairs is not None:
        advice = "" if batch else "; use by_fold=True for splits that overlap or leave out rows."
        outputs = _returned(_assembled(pairs, n_rows(plan.cv.X), advice), X)
    else:
        arguments = plan.arguments(groups, n_jobs, verbose, pre_dispatch)
        outputs = sklearn.model_selection.cross_val_predict(**arguments, method=method)
        outputs = _returned(outputs, X)
    plan.log()
    return outputs


def _outputs_by_fold(plan: Plan, groups: Any, method: str) -> list[tuple[np.ndarray, Any]]:
    """The test rows of each split and their outputs, collected in place of a score.

    scikit-learn's function does not offer this.
    """
    outputs = []

    def collected(fold: RowLookupEstimator, rows: np.ndarray, _: Any = None) -> float:
        outputs.append((rows[:, 0], getattr(fold, method)(rows)))
        return 0.0

    shared = plan.shared or FoldContext(plan.estimator, plan.X, plan.y)
    sklearn.model_selection.cross_validate(
        lookup_estimator(shared),
        np.arange(n_rows(shared.X))[:, None],
        plan.y,
        groups=groups,
        cv=plan.cv,
        params=plan.params,
        scoring=collected,
        error_score="raise",
    )
    return outputs


def _assembled(pairs: list[tuple[np.ndarray, Any]], n_samples: int, advice: str) -> np.ndarray:
    tested = np.concatenate([test for test, _ in pairs])
    if len(tested) != n_samples or len(np.unique(tested)) != n_samples:
        raise ValueError(f"cross_val_predict only works for partitions{advice}")
    outputs = np.concatenate([output for _, output in pairs])
    return outputs[np.argsort(tested)]


def _returned(outputs: Any, X: Any) -> Any:
    """Numbers in the namespace and on the device of X."""
    if (
        is_dask(X)
        or not is_foreign_array(X)
        or not isinstance(outputs, np.ndarray)
        or outputs.dtype.kind not in "iuf"
    ):
        return outputs
    return asarray_like(outputs, X, dtype=getattr(namespace(X), str(outputs.dtype)))


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    train_sizes: Any = TRAIN_SIZES,
    cv: Any = None,
    scoring: Any = None,
    exploit_incremental_learning: bool = False,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    shuffle: bool = False,
    random_state: Any = None,
    error_score: Any = np.nan,
    return_times: bool = False,
    params: Mapping[str, Any] | None = None,
) -> tuple[np.ndarray, ...]:
    """`sklearn.model_selection.learning_curve`, by the fastest route to the same numbers.

    Parameters are those of scikit-learn's function. The smaller training sets of a fold are the
    first rows of the largest. With fixed parameters, models of at least half of the rows follow
    from one decomposition; smaller training sets are fitted.

    Returns
    -------
    tuple of arrays
        Sizes, training scores and test scores, as from scikit-learn.

    Examples
    --------
    >>> from fitonce import LeastSquaresSVC, learning_curve
    >>> from fitonce.datasets import make_twonorm
    >>> X, y = make_twonorm(300, random_state=0)
    >>> model = LeastSquaresSVC(gamma=0.02, alpha=1.0)
    >>> sizes, train, test = learning_curve(model, X, y, cv=5, train_sizes=[20, 60, 240])
    >>> sizes.tolist(), test.mean(axis=1).round(2).tolist()
    ([20, 60, 240], [0.86, 0.97, 0.98])
    """
    plan = Plan(estimator, X, y, cv, params, scoring)
    curve: tuple[np.ndarray, ...] = sklearn.model_selection.learning_curve(
        **plan.arguments(groups, n_jobs, verbose, pre_dispatch),
        train_sizes=train_sizes,
        scoring=scoring,
        exploit_incremental_learning=exploit_incremental_learning,
        shuffle=shuffle,
        random_state=random_state,
        error_score=error_score,
        return_times=return_times,
    )
    plan.log()
    return curve


__all__ = [
    "CrossValidation",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
]
