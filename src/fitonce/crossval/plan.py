"""An estimator and data to pass to scikit-learn's functions, for the chosen route."""

from __future__ import annotations

import logging
import numbers
import time
import warnings
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, cast

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from ..core.arrays import to_numpy
from ..core.readout import labels_of
from ..core.refused import RefusedError
from ..core.rows import is_rows
from ..core.splits import Split, checked_splits, row_numbers
from ..estimators.fitted import keeping_coefficients
from ..estimators.validation import is_foreign_array
from ..rows.dask import DaskRows, gathered, is_dask
from .confounds import taken
from .decomposed import Decomposed
from .depends import RefitWarning, Route, depends, fit_weights, share_landmarks
from .lookup import FoldContext, lookup_estimator, n_rows
from .metrics import LABEL_METRICS, NUMBER_METRICS, Outputs, Scored

logger = logging.getLogger("fitonce")

METRICS = LABEL_METRICS | NUMBER_METRICS
QUICK = {  # scores of labels, or of numbers, that need no loop; the first is the default
    True: ("accuracy", "balanced_accuracy"),
    False: (
        "r2",
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        "neg_mean_absolute_error",
    ),
}


class Plan:
    """An estimator and data to pass to scikit-learn's function, for the chosen route."""

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
        if hasattr(X, "__array__") and not hasattr(X, "shape"):
            X = np.asarray(X)
        y = X.y if y is None and is_rows(X) else y
        self.y = _on_host(y)
        given = None if params is None else {name: _on_host(v) for name, v in params.items()}
        self.confounds, self.params = taken(estimator, given)
        self._classifier = is_classifier(estimator)
        try:
            self.cv: Any = CheckedSplitter(check_cv(cv, self.y, classifier=self._classifier), X)
        except ValueError:
            self.cv = cv  # scikit-learn refuses it in its own words
        estimator = keeping_coefficients(estimator, self.y)
        estimator, self._landmark_rows = share_landmarks(estimator, X, self.y, self.params)
        self.estimator, self.X, self._seconds = estimator, X, 0.0
        self._route = depends(estimator, X, given, scoring, method).route
        if self._landmark_rows is not None:
            self._route = Route(
                "per-fold", "landmarks among the test rows are left out of the model"
            )
        self.shared: FoldContext | None = None
        if self._route.name == "refit":
            warnings.warn(
                f"fitonce has no closed form for {type(estimator).__name__}: it is refitted on "
                "every training set, as scikit-learn does. To avoid this, pass an estimator of "
                "fitonce, or a pipeline that ends in one.",
                RefitWarning,
                stacklevel=3,
            )
        elif isinstance(self.cv, CheckedSplitter) and (
            (self._route.name == "one" and not _is_listed_kernel(estimator, X))
            or not sliceable(X)
            or self._landmark_rows is not None
            or self.confounds is not None
        ):
            self._look_up(self.params)

    def _look_up(self, params: Mapping[str, Any] | None) -> None:
        shared = FoldContext(self.estimator, self.X, self.y, self.confounds, self._landmark_rows)
        start = time.perf_counter()
        if self._route.name == "one":
            try:
                shared.decompose(fit_weights(self.estimator, params))
            except RefusedError as error:
                # each fold raises the same error, or avoids it, and scikit-learn decides how to
                # handle that
                self._route = Route("per-fold", f"all rows together are refused: {error}")
                if sliceable(self.X) and self.confounds is None:
                    return
        self._seconds = time.perf_counter() - start
        self.shared, self.estimator = shared, lookup_estimator(shared)
        self.X = np.arange(n_rows(self.X))[:, None]

    @property
    def route(self) -> Route:
        """The route, with the number of folds that were fitted literally."""
        fitted = 0 if self.shared is None or self._route.name != "one" else self.shared.fitted_folds
        return Route(self._route.name, self._route.reason, fitted)

    def arguments(
        self, groups: Any, n_jobs: int | None, verbose: int, pre_dispatch: Any
    ) -> dict[str, Any]:
        """The arguments for scikit-learn's functions. A shared decomposition stays in this
        process, where BLAS uses the cores.
        """
        return {
            "estimator": self.estimator,
            "X": self.X,
            "y": self.y,
            "groups": groups,
            "cv": self.cv,
            "n_jobs": n_jobs if self.shared is None else None,
            "verbose": verbose,
            "params": self.params,
            "pre_dispatch": pre_dispatch,
        }

    def batch(self, groups: Any, method: str) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """The test rows of every split and their outputs, without scikit-learn's loop, which takes
        a millisecond per split; None if a split has no closed form, or no test rows, which
        scikit-learn tells.
        """
        routed = sklearn.get_config()["enable_metadata_routing"]
        if routed or self.shared is None or self.shared.decomposed is None:
            return None
        if np.ndim(self.y) != 1 and self._classifier:
            return None  # scikit-learn raises its own error for that
        n, classes = n_rows(self.X), self.shared.decomposed.setup.data.classes
        splits = self.cv.split(None, self.y, groups=groups)
        self.cv.drawn = [(row_numbers(train, n), row_numbers(test, n)) for train, test in splits]
        pairs = []
        for train, test in self.cv.drawn:
            model = self.shared.model_of(train) if len(test) else None
            if model is None:
                return None
            output = model(test, "predict" if classes is None else "decision_function")
            as_is = method == "decision_function"
            pairs.append((test, output if as_is or classes is None else labels_of(output, classes)))
        return pairs

    def quick_scores(self, groups: Any, scoring: Any, error_score: Any) -> np.ndarray | None:
        """Scores (k,) without scikit-learn's loop; None if it has to run."""
        name = quick_name(scoring, classifier=self._classifier)
        quick = name is not None and is_error_score(error_score)
        pairs = self.batch(groups, "decision_function") if quick else None
        if name is None or pairs is None or self.shared is None or self.shared.decomposed is None:
            return None
        by_size = groupby(pairs, key=lambda pair: len(pair[0]))
        runs = [_scored(self.shared.decomposed, list(run)) for _, run in by_size]
        if name == "balanced_accuracy" and not all(map(_undisputed, runs)):
            return None
        return np.concatenate([METRICS[name](run)[0] for run in runs])

    def share_time(self, results: dict[str, Any]) -> None:
        """Divide the time of the single decomposition among the folds."""
        results["fit_time"] = results["fit_time"] + self._seconds / len(results["fit_time"])

    def log(self) -> None:
        logger.info("route %s", self.route)


def quick_name(scoring: Any, *, classifier: bool) -> str | None:
    """The name of a single score that needs only labels, or numbers; None for all others."""
    name = QUICK[classifier][0] if scoring is None else scoring
    return name if isinstance(name, str) and name in QUICK[classifier] else None


def is_error_score(given: Any) -> bool:
    """Whether scikit-learn allows this value; it raises its own error otherwise."""
    return isinstance(given, numbers.Real) or (isinstance(given, str) and given == "raise")


def _scored(decomposed: Decomposed, run: list[tuple[np.ndarray, np.ndarray]]) -> Scored:
    """Splits of the same size, stacked: values (1, k, m) or (1, k, c, m), with the truth."""
    codes = decomposed.codes
    truth = decomposed.setup.data.targets if codes is None else codes
    stacks = np.stack([output for _, output in run]), np.stack([truth[test] for test, _ in run])
    values, seen = (np.moveaxis(A, 1, 2) if A.ndim == 3 else A for A in stacks)
    return Scored(Outputs(values[None], seen[None]), decomposed.readout.n_classes or None)


def _undisputed(run: Scored) -> bool:
    """Whether scikit-learn's balanced accuracy would warn of nothing: every predicted class is
    among the rows of its fold.
    """
    _, true, predicted = run.per_class
    return bool(np.all((predicted == 0) | (true > 0)))


def _on_host(values: Any) -> Any:
    values = gathered(values)
    return to_numpy(values) if is_foreign_array(values) else values


def _is_listed_kernel(estimator: Any, X: Any) -> bool:
    """Whether X is a kernel matrix in nested lists, whose columns scikit-learn cannot select."""
    pairwise = estimator.__sklearn_tags__().input_tags.pairwise
    return bool(pairwise and not hasattr(X, "shape"))


def sliceable(X: Any) -> bool:
    """Whether scikit-learn can select rows of X.

    Not for arrays of other namespaces, nor for rows in blocks.
    """
    return not (is_foreign_array(X) or is_rows(X))


class CheckedSplitter:
    """A splitter that sees the real X and refuses test rows inside their own training set.

    It returns the splits that it has `drawn` again, since some splitters never draw the same twice.
    """

    def __init__(self, cv: Any, X: Any) -> None:
        self.cv, self.X = cv, X
        self.drawn: list[Split] | None = None

    def split(self, X: Any = None, y: Any = None, **metadata: Any) -> Iterable[Split]:
        """The splits; groups and other metadata are passed on by keyword."""
        if self.drawn is not None:
            return iter(self.drawn)
        X = np.empty((n_rows(self.X), 1)) if is_rows(self.X) else self.X
        splits = self.cv.split(X, y, **metadata)
        return checked_splits(splits, n_rows(self.X), none_tested=True)

    def get_n_splits(self, X: Any = None, y: Any = None, **metadata: Any) -> int:
        return cast(int, self.cv.get_n_splits(X, y, **metadata))

    def get_metadata_routing(self) -> Any:
        return get_routing_for_object(self.cv)

    def __repr__(self) -> str:
        return repr(self.cv)
