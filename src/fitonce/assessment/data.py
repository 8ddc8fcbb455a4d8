"""The assessed rows, validated, and the splitters that divide them."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import to_numpy
from ..core.rows import is_rows
from ..core.version import __version__
from ..crossval.confounds import fit_parameters
from ..crossval.lookup import n_rows, subset
from ..estimators.fitted import final_step, takes_groups
from ..estimators.validation import is_foreign_array
from ..rows.dask import is_dask

KINDS = {  # splitters, by whether there are classes and groups
    (False, False): KFold,
    (False, True): GroupKFold,
    (True, False): StratifiedKFold,
    (True, True): StratifiedGroupKFold,
}
FEW_ROWS = 500  # up to ten folds by default up to this number, five above
BY_CHANCE = 10  # times as many copies as by chance are no chance
ENOUGH = 50  # rows of every class from which the ratio of the classes in a fold does not matter


@dataclass(frozen=True)
class AssessedRows:
    """Features, target, groups and weights; `params` has what is passed to fit: weights, groups and
    confounds.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    weights: np.ndarray | None
    classes: np.ndarray | None
    params: Mapping[str, Any]
    lead: str | None = None  # the main score, if it is not the usual one

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        groups: Any = None,
        weights: Any = None,
        confounds: Any = None,
    ) -> AssessedRows:
        classifier = bool(is_classifier(estimator))
        if not classifier and not is_regressor(estimator):
            raise TypeError(
                f"estimator must be a classifier or a regressor, got {estimator!r} instead."
            )
        y = on_host(y)
        if y.ndim != 1 and y.shape[1:] != (1,):
            raise ValueError(
                f"y must have one value per row, got shape {y.shape} instead: assess one target at "
                "a time."
            )
        named = {"y": y, "groups": groups, "sample_weight": weights}
        given = {n: on_host(v).reshape(-1) for n, v in named.items() if v is not None}
        for name, values in given.items():
            if len(values) != n_rows(X):
                raise ValueError(
                    f"{name} must have one entry per row of X ({n_rows(X)}), got {len(values)} "
                    "instead."
                )
        y = given.pop("y")
        if classifier:
            _check_classes(y, given.get("sample_weight"))
        return cls(
            X,
            y if classifier else y.astype(np.float64),
            given.get("groups"),
            given.get("sample_weight"),
            np.unique(y) if classifier else None,
            _fit_params(estimator, given) | fit_parameters(estimator, confounds),
        )

    @property
    def score_name(self) -> str:
        if self.lead is not None:
            return self.lead
        return "r2" if self.classes is None else "accuracy"

    def weights_of(self, rows: np.ndarray) -> np.ndarray:
        return np.ones(len(rows)) if self.weights is None else self.weights[rows]

    def sample(self, most: int | None, seed: int) -> AssessedRows:
        """At most this many rows, drawn at random, in their original order."""
        if most is None or len(self.y) <= most:
            return self
        rows = np.sort(np.random.default_rng(seed).choice(len(self.y), most, replace=False))
        return replace(
            self,
            X=subset(self.X, rows),
            y=self.y[rows],
            groups=None if self.groups is None else self.groups[rows],
            weights=None if self.weights is None else self.weights[rows],
            params={name: subset(values, rows) for name, values in self.params.items()},
        )


def new_rows(model: Any, data: AssessedRows) -> AssessedRows:
    """Rows that a fitted model has not seen, with its classes beside theirs; a warning says how
    many equal a row that it was fitted on.
    """
    check_is_fitted(model)
    last = final_step(model)
    known = set(keys_of(getattr(last, "X_fit_", None)))
    rows = data.X if last is model or not known else model[:-1].transform(data.X)
    seen = sum(key in known for key in keys_of(rows))
    if seen:
        warnings.warn(
            f"{seen} of {len(data.y):,} rows equal a row that the model was fitted on: on these, "
            "its scores are too good. Leave them out.",
            UserWarning,
            stacklevel=2,
        )
    if data.classes is None:
        return data
    unknown = np.setdiff1d(data.classes, model.classes_).tolist()
    if len(unknown) == len(data.classes):
        raise ValueError(
            f"y must have labels that the model knows, {np.asarray(model.classes_).tolist()}, got "
            f"{unknown} instead: every prediction would count as wrong."
        )
    if unknown:
        warnings.warn(
            f"the model does not know the classes {unknown}: it predicts none of their "
            f"{int(np.sum(np.isin(data.y, unknown)))} rows right.",
            UserWarning,
            stacklevel=2,
        )
    return replace(data, classes=np.union1d(data.classes, model.classes_))


def copies_of(X: Any, y: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Groups that keep exact copies of rows and targets in one fold, and what to say of them; None
    without copies.

    Equal rows are copies if there are many more of them than pairs of equal rows are expected in
    columns that know nothing of each other.
    """
    found, groups = np.unique(keys_of(X, y), return_inverse=True)
    n, copies = len(groups), len(groups) - len(found)
    if not copies:
        return None, ""
    columns = [*(column_of(X, j) for j in range(n_columns(X))), y]
    counts = (np.unique(np.asarray(v, dtype=str), return_counts=True)[1] for v in columns)
    alike = (float(np.sum((count / n) ** 2)) for count in counts)
    if copies <= BY_CHANCE * n * (n - 1) / 2 * math.prod(alike):
        return None, ""
    return groups, (
        f"{copies:,} of {n:,} rows repeat another row exactly: copies stay in one fold, because a "
        "model that has seen a copy knows the answer. Remove them if they are there by mistake."
    )


def keys_of(X: Any, y: np.ndarray | None = None) -> list[bytes]:
    """The contents of every row, and of its target; none where rows are not in memory."""
    if X is None or is_rows(X) or is_dask(X) or sp.issparse(X) or not hasattr(X, "shape"):
        return []
    rows = on_host(X)
    rows = rows if y is None else np.column_stack([rows, np.unique(y, return_inverse=True)[1]])
    if rows.dtype.kind not in "biuf":
        return [repr(row).encode() for row in rows.tolist()]
    return [row.tobytes() for row in np.ascontiguousarray(rows, dtype=np.float64) + 0.0]


def column_of(X: Any, column: int) -> np.ndarray:
    """One column of an array or data frame."""
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, column])
    return X[:, column].to_numpy() if hasattr(X, "with_columns") else on_host(X)[:, column]


def versions() -> dict[str, str]:
    """What computes: this package, those that it needs, and Python."""
    found = {each.__name__: each.__version__ for each in (np, scipy, sklearn)}
    return {"fitonce": __version__, **found, "Python": platform.python_version()}


def record(data: AssessedRows, random_state: int, route: Any) -> dict[str, Any]:
    """What it takes to make a result again: versions, seed, route and a hash of the rows."""
    X = None if is_rows(data.X) or is_dask(data.X) else data.X
    given = X, data.y, data.groups, data.weights, sorted(data.params.items())
    return {
        "versions": versions(),
        "random_state": random_state,
        "route": str(route),
        "data": joblib.hash(given),
    }


def on_host(values: Any) -> np.ndarray:
    return np.asarray(to_numpy(values) if is_foreign_array(values) else values)


def n_columns(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])


def _check_classes(y: np.ndarray, weights: np.ndarray | None) -> None:
    found = np.unique(y if weights is None else y[weights > 0])
    if len(found) < 2:
        where = "" if weights is None else " in rows with positive weight"
        raise ValueError(
            f"the target must have at least two classes{where}, got only {found.tolist()}: there "
            "is nothing to classify."
        )


def _fit_params(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Weights, and for fitonce's estimators groups, under the names that fit expects."""
    model = final_step(estimator)
    prefix = "" if model is estimator else f"{estimator.steps[-1][0]}__"
    known = ("sample_weight", "groups") if takes_groups(model) else ("sample_weight",)
    return {prefix + name: values for name, values in given.items() if name in known}


def splitters(cv: Any, data: AssessedRows, repeats: int, random_state: int) -> list[Any]:
    """A splitter for every repeat."""
    if cv is not None and not isinstance(cv, (int, np.integer)):
        if repeats > 1:
            raise ValueError(
                f"repeats={repeats} needs cv to be a number of folds, got {cv!r} instead: pass the "
                "number of folds, or use one repeat."
            )
        return [cv]
    n_folds = _n_folds(data) if cv is None else int(cv)
    kind = KINDS[data.classes is not None, data.groups is not None]
    return [
        kind(n_folds, shuffle=True, random_state=random_state + number) for number in range(repeats)
    ]


def _n_folds(data: AssessedRows) -> int:
    """Five for many rows; for few, the number from five to ten whose training sets have the ratio
    of the classes most nearly, and fewer if the smallest class (or the number of groups) demands.
    """
    unit_of = np.arange(len(data.y)) if data.groups is None else data.groups
    units = len(np.unique(unit_of))
    if units < 2:
        what = "rows" if data.groups is None else "groups"
        raise ValueError(
            f"cross-validation needs at least two {what}, got {units}: one part is left out at a "
            "time."
        )
    most = min(10 if len(data.y) <= FEW_ROWS else 5, units)
    if data.classes is None:
        return most
    members = [len(np.unique(unit_of[data.y == label])) for label in data.classes]
    if len(data.classes) == len(data.y):
        raise ValueError(
            "cross-validation needs at least two rows of a class, got one row of each: a model is "
            "trained without the row that it predicts, so its class would be missing. Add rows."
        )
    most = min(most, min(members) if min(members) >= 3 else max(2, *members))
    if data.groups is not None or min(members) >= ENOUGH:
        return most
    return min(range(most, min(most, 5) - 1, -1), key=lambda k: _leaning(data.y, k))


def _leaning(y: np.ndarray, n_folds: int) -> float:
    """How far the share of a class in a training set of stratified folds is from that in all rows,
    at most.
    """
    codes = np.sort(np.unique(y, return_inverse=True)[1])
    counts = np.bincount(codes)
    tests = np.array(
        [np.bincount(codes[i::n_folds], minlength=len(counts)) for i in range(n_folds)]
    )
    trains = counts - tests  # as StratifiedKFold deals out the rows
    shares = trains / trains.sum(axis=1, keepdims=True)
    return float(np.round(np.max(np.abs(shares - counts / counts.sum())), 9))
