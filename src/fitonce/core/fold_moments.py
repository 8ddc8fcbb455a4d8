"""Folds of feature models from moments: the total minus the fold's own trains each fold's model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Protocol

import numpy as np

from .arrays import Array, namespace, take, zeros_like_shape
from .holdout import Deletion
from .moments import MomentFit, Moments, merge_folds
from .rows import Rows

FOLD_ELEMENTS = 1 << 25  # of moments (or scores) of folds that are computed in one pass


class FeatureMap(Protocol):
    """Features (k, p) of a block of rows; and (features - mean) W, perhaps by a shorter way."""

    @property
    def size(self) -> int:
        """p."""

    def __call__(self, X: Array, /) -> Array: ...
    def rotated(self, W: Array, mean: Array) -> Callable[[Array], Array]: ...


Folds = Mapping[int, Deletion]  # by number


@dataclass(frozen=True)
class FoldMoments:
    """Moments of all rows with targets Y, in parts: those of each of some disjoint folds, by its
    number, and of the rows in none.
    """

    Y: Array
    folds: Folds
    parts: Mapping[int, Moments]

    @classmethod
    def of(
        cls, data: Rows, features: FeatureMap, row_scale: Array | None, Y: Array, folds: Folds
    ) -> FoldMoments:
        """One pass. Of folds that overlap or are too many, only the first ones have parts."""
        folds = next(iter(_disjoint(folds, data.n_samples, features.size)), {})
        fold = np.full((data.n_samples, 1), max(folds, default=-1) + 1)
        for number, (deleted, _) in folds.items():
            fold[deleted] = number
        job = partial(_fold_moments_job, features)
        return cls(Y, folds, data.reduce(job, merge_folds, fold, Y, row_scale))

    @cached_property
    def total(self) -> Moments:
        return reduce(Moments.merge, self.parts.values())

    def of_layer(self, Y: Array, layer: Folds) -> Mapping[int, Moments] | None:
        """The parts of some folds and targets, if they are all there."""
        there = all(i in self.folds and layer[i][0] is self.folds[i][0] for i in layer)
        return self.parts if Y is self.Y and there else None


@dataclass(frozen=True)
class FoldModels:
    """Models of the training parts of folds, and what they predict for their test rows.

    `first` are moments that are there, of folds that may be others. `constraint` gives the
    directions N w = 0 that leave with some deleted rows, where any do.
    """

    data: Rows
    features: FeatureMap
    row_scale: Array | None
    free_bias: bool
    total: Moments
    first: FoldMoments
    constraint: Callable[[np.ndarray], Array] | None

    def held_out(self, Y: Array, mus: np.ndarray, folds: Folds) -> dict[int, Array]:
        """Held-out values (m, k, t) of the tested rows of every fold, by its number."""
        xp, n = namespace(Y), self.data.n_samples
        found = {}
        for layer in _disjoint(folds, n, self.features.size):
            fold, tested = np.full((n, 1), -1), np.full((n, 1), -1)
            for number, (deleted, test) in layer.items():
                fold[deleted], tested[deleted[test]] = number, number
            job = partial(_values_job, self.features, self._models(Y, mus, layer))
            collected = xp.concat(list(self.data.map(job, tested, self.row_scale)), axis=0)
            place = np.cumsum(tested >= 0) - 1
            for number, (deleted, test) in layer.items():
                rows = xp.reshape(take(collected, place[deleted[test]]), (-1, len(mus), Y.shape[1]))
                found[number] = xp.permute_dims(rows, (1, 0, 2))
        return found

    def _models(self, Y: Array, mus: np.ndarray, layer: Folds) -> dict[int, tuple[Array, Array]]:
        """Coefficients (p, m·t) and intercepts (m·t) of every fold of a layer."""
        xp, own, models = namespace(Y), self.first.of_layer(Y, layer), {}
        if own is None:
            own = FoldMoments.of(self.data, self.features, self.row_scale, Y, layer).parts
        for number, (deleted, _) in layer.items():
            # a fold may be empty: all its rows have weight zero
            rest = self.total.without(own[number]) if number in own else self.total
            trained = MomentFit.of(rest, self.free_bias)
            coef = trained.coef(mus, None if self.constraint is None else self.constraint(deleted))
            flat = xp.reshape(xp.permute_dims(coef, (1, 0, 2)), (coef.shape[1], -1))
            models[number] = flat, xp.reshape(trained.intercept(coef), (-1,))
        return models


def _disjoint(folds: Folds, n: int, p: int) -> list[dict[int, Deletion]]:
    """The folds in layers of disjoint ones that follow each other, as many in each as have room for
    their moments.
    """
    layers: list[dict[int, Deletion]] = []
    most = max(1, FOLD_ELEMENTS // p**2)
    taken = np.ones(n, dtype=bool)
    for number, (deleted, test) in folds.items():
        if not layers or taken[deleted].any() or len(layers[-1]) == most:
            layers.append({})
            taken[:] = False
        layers[-1][number] = deleted, test
        taken[deleted] = True
    return layers


# ---- what happens to a block of rows; plain functions, so that they travel to other processes ----


def _fold_moments_job(
    features: FeatureMap, X: Array, fold: np.ndarray, Y: Array, scale: Array | None
) -> dict[int, Moments]:
    """The moments of each fold's part of a block."""
    numbers, Z = np.unique(fold).tolist(), features(X)
    if len(numbers) == 1:
        return {numbers[0]: Moments.of(Z, Y, scale)}
    parts = {}
    for number in numbers:
        rows = np.flatnonzero(fold[:, 0] == number)
        own_scale = None if scale is None else take(scale, rows)
        parts[number] = Moments.of(take(Z, rows), take(Y, rows), own_scale)
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
