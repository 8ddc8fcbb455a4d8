"""scikit-learn's cross-validation functions by the cheapest route."""

from __future__ import annotations

import logging
import numbers
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..core.arrays import asarray_like, namespace, to_numpy
from ..core.rows import is_rows
from ..core.splits import row_numbers
from ..estimators.validation import is_foreign_array
from ..rows.dask import DaskRows, gathered, is_dask
from .batch import HeldOutBatch, known_scores
from .routes import RefitWarning, Route, choose_route, fit_weights, share_landmarks
from .stand_in import CheckedSplitter, Shared, StandIn, n_rows, stand_in

logger = logging.getLogger("fitonce")


class CrossValidation(dict[str, Any]):
    """The dictionary of scikit-learn's `cross_validate`, with the `route` that was taken as an
    attribute.
    """

    route: Route


class _Plan:
    """An estimator and data to hand to scikit-learn's function, by the route chosen."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        cv: Any,
        params: Mapping[str, Any] | None,
        scoring: Any = None,
        method: str = "predict",
    ) -> None:
        if not hasattr(estimator, "fit"):
            raise TypeError(
                f"estimator must be an estimator with a method fit, got {estimator!r} instead."
            )
        if is_dask(X):
            X = DaskRows(X)
        y = X.y if y is None and is_rows(X) else gathered(y)
        self.y = to_numpy(y) if is_foreign_array(y) else y
        params = (
            None if params is None else {name: gathered(value) for name, value in params.items()}
        )
        self.params = (
            None
            if params is None
            else {name: to_numpy(v) if is_foreign_array(v) else v for name, v in params.items()}
        )
        self.cv = CheckedSplitter(check_cv(cv, self.y, classifier=is_classifier(estimator)), X)
        estimator, self._landmark_rows = share_landmarks(estimator, X, self.y, self.params)
        self.estimator, self.X, self._seconds = estimator, X, 0.0
        self._classifier = is_classifier(estimator)
        self._route = choose_route(estimator, X, params, scoring, method)
        if self._landmark_rows is not None:
            self._route = Route("per-fold", "a fold's own landmarks are left out of its model")
        self._shared: Shared | None = None
        if self._route.name == "refit":
            warnings.warn(
                f"fitonce has no closed form for {type(estimator).__name__}: it is refitted on "
                "every training set, as scikit-learn does. "
                "Pass one of fitonce's estimators, or a pipeline that ends in one, to avoid that.",
                RefitWarning,
                stacklevel=3,
            )
        elif self._route.name == "one" or not _sliceable(X) or self._landmark_rows is not None:
            self._stand_in(params)

    def _stand_in(self, params: Mapping[str, Any] | None) -> None:
        shared = Shared(self.estimator, self.X, self.y)
        shared.landmark_rows = self._landmark_rows
        start = time.perf_counter()
        if self._route.name == "one":
            try:
                shared.decompose(fit_weights(self.estimator, params))
            except (ValueError, TypeError) as error:
                # each fold meets the same complaint, or is spared it, and scikit-learn decides what
                # becomes of that
                self._route = Route("per-fold", f"all rows together are refused: {error}")
                if _sliceable(self.X):
                    return
        self._seconds = time.perf_counter() - start
        self._shared, self.estimator = shared, stand_in(shared)
        self.X = np.arange(n_rows(self.X))[:, None]

    @property
    def route(self) -> Route:
        """The route, with the folds that were fitted literally on the way."""
        fitted = (
            0 if self._shared is None or self._route.name != "one" else self._shared.fitted_folds
        )
        return Route(self._route.name, self._route.reason, fitted)

    def arguments(
        self, groups: Any, n_jobs: int | None, verbose: int, pre_dispatch: Any
    ) -> dict[str, Any]:
        """What scikit-learn's functions are given. A shared decomposition stays in this process,
        where BLAS has the cores.
        """
        return {
            "estimator": self.estimator,
            "X": self.X,
            "y": self.y,
            "groups": groups,
            "cv": self.cv,
            "n_jobs": n_jobs if self._shared is None else None,
            "verbose": verbose,
            "params": self.params,
            "pre_dispatch": pre_dispatch,
        }

    def batch(self, groups: Any) -> HeldOutBatch | None:
        """All splits in closed form, without scikit-learn's loop; None where that cannot be."""
        routed = sklearn.get_config()["enable_metadata_routing"]
        if routed or self._shared is None or self._shared.decomposed is None:
            return None
        if np.ndim(self.y) != 1 and self._classifier:
            return None  # scikit-learn has something to say about that
        n = n_rows(self.X)
        splits = [
            (row_numbers(train, n), row_numbers(test, n))
            for train, test in self.cv.split(None, self.y, groups)
        ]
        return HeldOutBatch.of(self._shared, splits)

    def quick_scores(
        self, groups: Any, scoring: Any
    ) -> tuple[HeldOutBatch, dict[str, np.ndarray]] | None:
        """Scores by name where the loop can be skipped."""
        if self._shared is None or known_scores(scoring, classifier=self._classifier) is None:
            return None
        batch = self.batch(groups)
        scores = None if batch is None else batch.scores(scoring)
        return None if batch is None or scores is None else (batch, scores)

    def share_time(self, results: dict[str, Any]) -> None:
        """The one decomposition's time, divided among the folds."""
        results["fit_time"] = results["fit_time"] + self._seconds / len(results["fit_time"])

    def log(self) -> None:
        logger.info("route %s", self.route)


def _sliceable(X: Any) -> bool:
    """Whether scikit-learn can cut rows out of X.

    Not of other namespaces' arrays, nor of rows in blocks.
    """
    return not (is_foreign_array(X) or is_rows(X))


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
    """`sklearn.model_selection.cross_validate`, by the cheapest route that gives the same numbers.

    Parameters and result are scikit-learn's; the dictionary also has an attribute ``route``.
    `n_jobs` and `pre_dispatch` matter only where folds are fitted one by one. Splits whose test
    rows are inside their own training set are refused.

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
    plan = _Plan(estimator, X, y, cv, params, scoring)
    plain = not (verbose or return_train_score or return_estimator or return_indices)
    start = time.perf_counter()
    quick = None
    if plain and _is_error_score(error_score):
        quick = plan.quick_scores(groups, scoring)
    if quick is not None:
        results = CrossValidation(_timed(quick[1], time.perf_counter() - start))
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
            fold.returned() if isinstance(fold, StandIn) else fold for fold in results["estimator"]
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
    """`sklearn.model_selection.cross_val_score`, by the cheapest route that gives the same numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import LeastSquaresSVC, cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(LeastSquaresSVC(gamma=0.2, alpha=0.1), X, y, cv=5).round(3).tolist()
    [0.967, 1.0, 1.0, 0.933, 1.0]
    """
    plan = _Plan(estimator, X, y, cv, params, scoring)
    single = (scoring is None or isinstance(scoring, str)) and _is_error_score(error_score)
    quick = plan.quick_scores(groups, scoring) if single and not verbose else None
    scores: np.ndarray
    if quick is not None:
        scores = quick[1]["score"]
    else:
        scores = sklearn.model_selection.cross_val_score(
            **plan.arguments(groups, n_jobs, verbose, pre_dispatch),
            scoring=scoring,
            error_score=error_score,
        )
    plan.log()
    return scores


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
    """`sklearn.model_selection.cross_val_predict`, by the cheapest route that gives the same
    numbers.

    Two things are added: ``method="transform"`` gives the projections of a discriminant, and
    ``by_fold=True`` returns a list of (test rows, outputs) pairs, one per split, for splitters
    whose test sets overlap or leave rows out (repeated splits, shuffle splits, time series).

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
    plan = _Plan(estimator, X, y, cv, params, method=method)
    batch = plan.batch(groups) if method in ("predict", "decision_function") else None
    if batch is not None:
        pairs = list(zip(batch.tests, batch.of_method(method), strict=True))
    elif by_fold or method == "transform":
        pairs = _outputs_by_fold(plan, groups, method)
    else:
        pairs = None
    if by_fold and pairs is not None:
        outputs: Any = [(test, _returned(output, X)) for test, output in pairs]
    elif pairs is not None:
        advice = "" if batch else "; use by_fold=True for splits that overlap or leave rows out."
        outputs = _returned(_assembled(pairs, n_rows(plan.cv.X), advice), X)
    else:
        arguments = plan.arguments(groups, n_jobs, verbose, pre_dispatch)
        outputs = sklearn.model_selection.cross_val_predict(**arguments, method=method)
        outputs = _returned(outputs, X)
    plan.log()
    return outputs


def _outputs_by_fold(plan: _Plan, groups: Any, method: str) -> list[tuple[np.ndarray, Any]]:
    """Each split's test rows and their outputs.

    The loop that scikit-learn's function does not offer.
    """
    shared = plan._shared or Shared(plan.estimator, plan.X, plan.y)
    model = stand_in(shared)
    fit_params, split_params = _routed(model, plan.cv, groups, dict(plan.params or {}))
    n = n_rows(shared.X)
    rows = np.arange(n)[:, None]
    y = None if plan.y is None else np.asarray(plan.y)
    per_row = {
        name: np.asarray(to_numpy(value))
        for name, value in fit_params.items()
        if _n_values(value) == n
    }
    pairs = []
    for train, test in plan.cv.split(None, plan.y, **split_params):
        train, test = rows[train, 0], rows[test, 0]
        part = {**fit_params, **{name: value[train] for name, value in per_row.items()}}
        fold = clone(model).fit(rows[train], None if y is None else y[train], **part)
        pairs.append((test, getattr(fold, method)(rows[test])))
    return pairs


def _routed(
    model: StandIn, cv: CheckedSplitter, groups: Any, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What goes to fit and what to the splitter, as in scikit-learn's function."""
    if not sklearn.get_config()["enable_metadata_routing"]:
        return params, {"groups": groups}
    router = MetadataRouter(owner="cross_val_predict")
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    router.add(estimator=model, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    routed = process_routing(router, "fit", **params)
    return routed.estimator.fit, routed.splitter.split


def _n_values(value: Any) -> int:
    return n_rows(value) if hasattr(value, "__len__") and not isinstance(value, str) else -1


def _is_error_score(given: Any) -> bool:
    """What scikit-learn allows; it complains of everything else."""
    return isinstance(given, numbers.Real) or (isinstance(given, str) and given == "raise")


def _timed(scores: dict[str, np.ndarray], seconds: float) -> dict[str, Any]:
    """Scores as `cross_validate` names them, with the time that each split took on average."""
    n_splits = len(next(iter(scores.values())))
    times = {"fit_time": np.zeros(n_splits), "score_time": np.full(n_splits, seconds / n_splits)}
    return {**times, **{f"test_{name}": values for name, values in scores.items()}}


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


__all__ = ["CrossValidation", "cross_val_predict", "cross_val_score", "cross_validate"]
