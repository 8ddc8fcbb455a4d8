"""The subject of a permutation test.

Rows, labels, folds, and what can be exchanged under the null hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.splits import Split, split_rows
from ..crossval.lookup import n_rows, subset
from ..estimators.validation import is_foreign_array
from .confounded import Confounded
from .exchange import Draw, Exchange, Rearrangement, numbered, stacked
from .placements import Placement
from .validity import (
    check_free,
    choose_mode,
    ignores_y,
    make_exchange,
    movable_atoms,
    permutable_atoms,
)

SEEN = 1000  # targets whose variance decides how many labelings share a placement of the folds
MOST_COLUMNS = 256  # targets whose spread over the folds is looked at


@dataclass(frozen=True)
class Question:
    """What is tested: rows, labels, observed folds, and what may be exchanged.

    `atoms`, if folds are permuted with the labels: the sets of rows within which labels may be
    permuted while the folds stay. `split_metadata` is what the splitter takes beside X and y.
    """

    estimator: Any
    X: Any
    given_y: Any
    y: np.ndarray
    classes: np.ndarray | None
    labels: np.ndarray
    groups: np.ndarray | None
    split_metadata: Mapping[str, Any]
    cv: Any
    splits: list[Split]
    mode: str
    exchange: Exchange
    exchange_name: str
    atoms: np.ndarray | None = None
    confounds: Any = None
    base: np.ndarray | None = None  # what stays in place where residuals are permuted (n, t)

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        groups: Any,
        cv: Any,
        permute: str | None,
        exchange: str | None,
        confounds: Any = None,
        split_metadata: Mapping[str, Any] | None = None,
    ) -> Question:
        """The splitter takes `groups`, or other metadata where these are given."""
        given_y = to_numpy(y) if is_foreign_array(y) else y
        host = np.asarray(given_y)
        classifier = bool(is_classifier(estimator))
        groups = None if groups is None else np.asarray(to_numpy(groups))
        for name, values in (("y", host), ("groups", groups)):
            if values is not None and len(values) != n_rows(X):
                raise ValueError(
                    f"{name} must have one entry per row of X ({n_rows(X)}), got {len(values)} "
                    "instead."
                )
        classes, labels = _numbered(host)
        cv = check_cv(cv, given_y, classifier=classifier)
        split_metadata = {"groups": groups} if split_metadata is None else split_metadata
        splits = split_rows(cv.split(X, given_y, **split_metadata), len(host), none_tested=True)
        split = partial(_split, X, given_y, split_metadata)
        given, held = None, groups  # what confounds make of it, and what labels move within
        if confounds is not None:
            given = Confounded.of(confounds, X, host, labels, classifier)
            given.check(exchange, permute)
            held = _within(groups if exchange != "rows" else None, given.levels)
            exchange = "rows" if held is None else "within"
            if given.approximate and permute is None:
                permute = "free" if ignores_y(cv) else "within-folds"
        mode = choose_mode(permute, cv, splits, split, exchange)
        if mode == "free":
            within = held if exchange in (None, "within") else None
            columns = np.eye(len(classes))[labels] if classifier else None
            if not classifier and confounds is None and exchange in (None, "rows", "within"):
                columns = _standardized(host, MOST_COLUMNS)
            check_free(cv, splits, columns, within)
        inside = permutable_atoms(splits, len(host)) if mode == "within-folds" else None
        exchanged = make_exchange(exchange, labels, held, inside, classifier, len(classes))
        name = exchange or ("rows" if groups is None else "within")
        if given is not None:
            exchanged = given.exchange(labels, held, inside) or exchanged
            name = given.name
        return cls(
            estimator,
            X,
            given_y,
            host,
            classes if classifier else None,
            labels,
            groups,
            split_metadata,
            cv,
            splits,
            mode,
            exchanged,
            name,
            movable_atoms(cv, splits, len(host)) if mode == "cosets" else None,
            confounds,
            None if given is None else given.base,
        )

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @cached_property
    def observed(self) -> Placement:
        """Where the observed folds lie."""
        return Placement(0, self.splits, self.n_samples)

    @property
    def targets(self) -> np.ndarray:
        """Indicators of the classes, or standardized numbers of at most `SEEN` targets, (n, t)."""
        if self.classes is not None:
            return np.asarray(np.eye(len(self.classes))[self.labels])
        return _standardized(self.y, SEEN)

    @cached_property
    def keeps_sizes(self) -> bool:
        """Whether every labeling has the observed class sizes in every training set: folds move
        with the labels, which otherwise stay among rows of the same folds.
        """
        if self.atoms is None:
            return False
        n_atoms = int(self.atoms.max(initial=0)) + 1
        for train, _ in self.splits:
            inside = np.bincount(self.atoms[train], minlength=n_atoms)
            if np.any((inside > 0) & (inside < np.bincount(self.atoms, minlength=n_atoms))):
                return False
        return True

    @property
    def n_labellings(self) -> int:
        """How many distinct labelings there are; where the folds move with them, how many
        distinct pairs of labels and folds. 1 where no labels can change.
        """
        count = self.exchange.count
        if count == 1 or self.atoms is None:
            return count
        return self.exchange.paired(self.atoms).count

    def values(self, orders: Rearrangement, like: Array) -> Array:
        """Labels (B, n), or numbers (B, t, n), under many rearrangements, on the device of `like`.

        Where there is a base, residuals are rearranged.
        """
        xp, (B, n), flat = namespace(like), orders.indices.shape, (-1,)
        if self.classes is not None:
            small = xp.int8 if self.labels.max() < 127 else xp.int32
            codes = asarray_like(self.labels, like, dtype=small)
            return xp.reshape(xp.take(codes, xp.reshape(orders.indices, flat), axis=0), (B, n))
        numbers = self.y.astype(np.float64).reshape(n, -1)
        numbers = asarray_like(numbers if self.base is None else numbers - self.base, like)
        moved = xp.take(numbers, xp.reshape(orders.indices, flat), axis=0)
        values = xp.permute_dims(xp.reshape(moved, (B, n, -1)), (0, 2, 1)) + 0.0
        if orders.signs is not None:
            values = values * asarray_like(orders.signs, like)[:, None, :]
        return values if self.base is None else values + asarray_like(self.base.T, like)

    def permuted(self, rearrangement: Rearrangement | Draw) -> Any:
        """y as an estimator takes it."""
        if self.base is None and rearrangement.signs is None:
            return subset(self.given_y, rearrangement.indices)
        host = np.empty(0)
        moved = self.values(stacked([rearrangement], host), host)[0].T
        return moved[:, 0] if self.y.ndim == 1 else moved


def _numbered(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, or rows of numbers, and the number of each row's."""
    if y.ndim > 1 and y.shape[1] and len(np.unique(y[:, 0])) == len(y):
        y = y[:, :1]  # this tells all rows apart
    found, labels = np.unique(y, return_inverse=True, axis=None if y.ndim == 1 else 0)
    return found, labels.reshape(-1)


def _standardized(y: np.ndarray, most: int) -> np.ndarray:
    """The first columns (n, t) of targets, centered, in units of their deviation."""
    columns = y.reshape(len(y), -1)[:, :most].astype(np.float64)
    spread = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def _within(groups: np.ndarray | None, levels: np.ndarray | None) -> np.ndarray | None:
    """Groups and levels of confounds as one number for each row."""
    if groups is None or levels is None:
        return groups if levels is None else levels
    both = np.stack([numbered(groups), levels])
    return np.unique(both, axis=1, return_inverse=True)[1].reshape(-1)


def _split(X: Any, y: Any, metadata: Mapping[str, Any], cv: Any, reverse: bool) -> list[Split]:
    rows = subset(X, np.arange(n_rows(X))[::-1]) if reverse else X
    return split_rows(cv.split(rows, y, **metadata), n_rows(X), none_tested=True)
