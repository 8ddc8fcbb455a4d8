"""What a permutation test is about.

Rows, labels, folds, and what the null hypothesis lets change places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from ..core.arrays import to_numpy
from ..crossval.stand_in import n_rows, subset
from ..estimators.validation import is_foreign_array
from .exchange import Exchange, Rearrangement, make_exchange
from .folds import split_rows
from .validity import Split, atoms_of, choose_mode


@dataclass(frozen=True)
class Question:
    """What is tested: rows, labels, observed folds, and what may be exchanged."""

    estimator: Any
    X: Any
    given_y: Any
    y: np.ndarray
    classifier: bool
    classes: np.ndarray | None
    labels: np.ndarray
    groups: np.ndarray | None
    cv: Any
    splits: list[Split]
    mode: str
    exchange: Exchange
    exchange_name: str

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
    ) -> Question:
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
        classes, labels = np.unique(host, return_inverse=True, axis=None if host.ndim == 1 else 0)
        labels = labels.reshape(-1)
        cv = check_cv(cv, given_y, classifier=classifier)
        splits = split_rows(cv.split(X, given_y, groups), len(host))
        mode = choose_mode(
            permute,
            cv,
            splits,
            labels if classifier else None,
            groups if exchange in (None, "within") else None,
        )
        atoms = atoms_of(splits, len(host)) if mode == "within-folds" else None
        exchanged = make_exchange(exchange, labels, groups, atoms, classifier, len(classes))
        name = exchange or ("rows" if groups is None else "within")
        return cls(
            estimator,
            X,
            given_y,
            host,
            classifier,
            classes if classifier else None,
            labels,
            groups,
            cv,
            splits,
            mode,
            exchanged,
            name,
        )

    @property
    def n_samples(self) -> int:
        return len(self.y)

    def permuted(self, rearrangement: Rearrangement) -> Any:
        """y as an estimator takes it."""
        y = subset(self.given_y, rearrangement.indices)
        if rearrangement.signs is None:
            return y
        return (np.asarray(y).T * rearrangement.signs).T
