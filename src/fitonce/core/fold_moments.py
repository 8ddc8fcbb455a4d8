"""Folds of feature models from moments: the total minus the fold's own trains each fold's model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from .arrays import Array, namespace, take, zeros_like_shape
from .holdout import Deletion
from .moments import MomentFit, Moments, merge_folds
from .rows import Rows

FOLD_ELEMENTS = 1 << 25  # of moments (or scores) of folds that are computed in one pass


class FeatureMap(Protocol):
    """Features (k, p) of a block of rows; and (features - mean) W, perhaps by a shorter way."""

    def __call__(self, X: Array, /) -> Array: ...
    def rotated(self, W: Array, mean: Array) -> Callable[[Array], Array]: ...


@dataclass(frozen=True)
class FoldModels:
    """Models of the training parts of folds, and what they predict for their test rows.

    `constraint` gives the directions N w = 0 that leave with some deleted rows, where any do.
    """

    data: Rows
    features: FeatureMap
    row_scale: Array | None
    free_bias: bool
    total: Moments
    constraint: Callable[[np.ndarray], Array] | None

    def held_out(
        self, Y: Array, mus: np.ndarray, folds: Mapping[int, Deletion]
    ) -> dict[int, Array]:
        """Held-out values (m, k, t) of the tested rows of every fold, by its number."""
        xp, n = namespace(Y), self.data.n_samples
        found = {}
        for layer in _disjoint(folds, n, max(1, FOLD_ELEMENTS // self.total.ZZ.shape[0] ** 2)):
            fold, tested = np.full((n, 1), -1), np.full((n, 1), -1)
            for number, (deleted, test) in layer.items():
                fold[deleted], tested[deleted[test]] = number, number
            job = partial(_values_job, self.features, self._models(Y, mus, layer, fold))
            collected = xp.concat(list(self.data.map(job, tested, self.row_scale)), axis=0)
            place = np.cumsum(tested >= 0) - 1
            for number, (deleted, test) in layer.items():
                rows = xp.reshape(take(collected, place[deleted[test]]), (-1, len(mus), Y.shape[1]))
                found[number] = xp.permute_dims(rows, (1, 0, 2))
        return found

    def _models(
        self, Y: Array, mus: np.ndarray, layer: Mapping[int, Deletion], fold: np.ndarray
    ) -> dict[int, tuple[Array, Array]]:
        """Coefficients (p, m·t) and intercepts (m·t) of every fold of a layer."""
        xp = namespace(Y)
        job = partial(_fold_moments_job, self.features)
        own = self.data.reduce(job, merge_folds, fold, Y, self.row_scale)
        models = {}
        for number, (deleted, _) in layer.items():
            # a fold may be empty: all its rows have weight zero
            rest = self.total.without(own[number]) if number in own else self.total
            trained = MomentFit.of(rest, self.free_bias)
            coef = trained.coef(mus, None if self.constraint is None else self.constraint(deleted))
            flat = xp.reshape(xp.permute_dims(coef, (1, 0, 2)), (coef.shape[1], -1))
            models[number] = flat, xp.reshape(trained.intercept(coef), (-1,))
        return models


def _disjoint(folds: Mapping[int, Deletion], n: int, most: int) -> list[dict[int, Deletion]]:
    """The folds in layers of disjoint ones that follow each other, at most so many in each."""
    layers: list[dict[int, Deletion]] = []
    taken = np.ones(n, dtype=bool)
    for number, (deleted, test) in folds.items():
        if not layers or taken[deleted].any() or len(layers[-1]) == most:
            layers.append({})
            taken[:] = False
        layers[-1][number] = deleted, test
        taken[deleted] = True
    return layers


# ---- what happens to a block of rows; plain functions, so that they travel to other processes ----


def moments_job(features: FeatureMap, X: Array, Y: Array, scale: Array | None) -> Moments:
    """The moments of a block."""
    return Moments.of(features(X), Y, scale)


def _fold_moments_job(
    features: FeatureMap, X: Array, fold: np.ndarray, Y: Array, scale: Array | None
) -> dict[int, Moments]:
    """The moments of each fold's part of a block."""
    numbers, parts = np.unique(fold[fold >= 0]), {}
    Z = features(X) if len(numbers) else None
    for number in numbers:
        rows = np.flatnonzero(fold[:, 0] == number)
        own_scale = None if scale is None else take(scale, rows)
        parts[int(number)] = Moments.of(take(Z, rows), take(Y, rows), own_scale)
    return parts


def _values_job(
    features: FeatureMap,
    models: dict[int, tuple[Array, Array]],
    X: Array,
    fold: np.ndarray,
    scale: Array | None,
) -> Array:
    """Predictions (k', m·t), scaled as the rows are, of the rows of a block that are tested, each
    by its fold's model.
    """
    fold = fold[:, 0]
    tested = np.flatnonzero(fold >= 0)
    first = next(iter(models.values()))[1]
    if len(tested) == 0:
        return zeros_like_shape((0, first.shape[0]), first)
    Z = take(features(X), tested)
    order = np.argsort(fold[tested], kind="stable")
    parts = []
    for number in np.unique(fold[tested]):
        coef, intercept = models[int(number)]
        parts.append(take(Z, np.flatnonzero(fold[tested] == number)) @ coef + intercept)
    values = take(namespace(first).concat(parts, axis=0), np.argsort(order))
    return values if scale is None else take(scale, tested) * values
