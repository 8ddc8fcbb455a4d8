"""Folds of feature models: from moments, where the total minus the fold's own trains each fold's
model; or, for folds of few rows, by a system of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Protocol

import numpy as np

from .arrays import Array, eye_like, namespace, take, zeros_like_shape
from .holdout import Deletion, Path
from .moments import MomentFit, Moments, merge_folds
from .rows import Rows

FOLD_ELEMENTS = 1 << 25  # of moments (or scores) of folds that are computed in one pass
SINGULAR = 1e-6  # least eigenvalue of the system of a fold


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
    total: MomentFit
    constraint: Callable[[np.ndarray], Array] | None

    def held_out(self, Y: Array, mus: np.ndarray, deletions: Sequence[Deletion]) -> Array:
        """Held-out values (m, k, t) of the tested rows of every deletion, in their order."""
        xp, n = namespace(Y), self.data.n_samples
        values: list[Array | None] = [None] * len(deletions)
        most = max(1, FOLD_ELEMENTS // self.total.moments.ZZ.shape[0] ** 2)
        for layer in _disjoint(deletions, n, most):
            fold, tested = np.full(n, -1), np.full(n, -1)
            for number in layer:
                deleted, test = deletions[number]
                fold[deleted], tested[deleted[test]] = number, number
            job = partial(_values_job, self.features, self._models(Y, mus, layer, fold, deletions))
            parts = list(self.data.map(job, tested[:, None], self.row_scale))
            collected = xp.concat(parts, axis=0)
            place = np.cumsum(tested >= 0) - 1
            for number in layer:
                deleted, test = deletions[number]
                rows = xp.reshape(take(collected, place[deleted[test]]), (-1, len(mus), Y.shape[1]))
                values[number] = xp.permute_dims(rows, (1, 0, 2))
        return xp.concat(values, axis=1)

    def _models(
        self,
        Y: Array,
        mus: np.ndarray,
        layer: list[int],
        fold: np.ndarray,
        deletions: Sequence[Deletion],
    ) -> dict[int, tuple[Array, Array]]:
        """Coefficients (p, m·t) and intercepts (m·t) of every deletion of a layer."""
        xp = namespace(Y)
        job = partial(_fold_moments_job, self.features)
        own = self.data.reduce(job, merge_folds, fold[:, None], Y, self.row_scale)
        total = self.total.moments
        models = {}
        for number in layer:
            # a deletion may be empty: all its rows have weight zero
            rest = total.without(own[number]) if number in own else total
            trained = MomentFit(rest, self.total.free_bias)
            N = None if self.constraint is None else self.constraint(deletions[number][0])
            coef = trained.coef(mus, N)
            flat = xp.reshape(xp.permute_dims(coef, (1, 0, 2)), (coef.shape[1], -1))
            models[number] = (flat, xp.reshape(trained.intercept(coef), (-1,)))
        return models


def _disjoint(deletions: Sequence[Deletion], n: int, most: int) -> list[list[int]]:
    """The deletions in layers of disjoint ones, at most so many in each."""
    layers: list[tuple[list[int], np.ndarray]] = []
    for number, (deleted, _) in enumerate(deletions):
        for members, taken in layers:
            if len(members) < most and not taken[deleted].any():
                members.append(number)
                taken[deleted] = True
                break
        else:
            taken = np.zeros(n, dtype=bool)
            taken[deleted] = True
            layers.append(([number], taken))
    return [members for members, _ in layers]


@dataclass(frozen=True)
class FoldSystems:
    """Held-out values of folds of few rows, by a system of their size at every mu.

    `scores` gives S at some rows (k, p), `inverse` is Ω (p, m) for the m values of mu.
    """

    scores: Callable[[np.ndarray], Array]
    Q0: Array
    inverse: Array

    def held_out(
        self, Y: Array, path: Path, chosen: Sequence[int], deletions: Sequence[Deletion]
    ) -> dict[int, Array]:
        """Y_T - ρ with ρ = (I - H_TT)⁻¹ r_T, for the chosen deletions T, by number.

        Where I - H_TT is nearly singular, the rows of a fold carry a feature of their own: such
        folds are left out. It is most singular at the least mu, with which H falls.
        """
        xp, omega = namespace(Y), self.inverse.T[:, None, :]
        least, found = int(np.argmin(path.mus)), {}
        for number, S in self._scores_of_each(chosen, deletions):
            deleted, tested = deletions[number]
            bias = take(self.Q0, deleted)
            system = eye_like(len(deleted), S) - bias @ bias.T - (S[None, :, :] * omega) @ S.T
            if float(xp.min(xp.linalg.eigvalsh(system[least, ...]))) >= SINGULAR:
                rho = xp.linalg.solve(system, _take_each(path.residual, deleted))
                found[number] = _take_each(take(Y, deleted)[None, :, :] - rho, tested)
        return found

    def _scores_of_each(
        self, chosen: Sequence[int], deletions: Sequence[Deletion]
    ) -> Iterator[tuple[int, Array]]:
        """S of the rows of some deletions, those of many in one go."""
        most = max(1, FOLD_ELEMENTS // self.inverse.shape[0])
        ends = np.cumsum([len(deletions[number][0]) for number in chosen])
        for _, members in groupby(range(len(chosen)), key=lambda place: ends[place] // most):
            places = list(members)
            rows = [deletions[chosen[place]][0] for place in places]
            S, start = self.scores(np.concatenate(rows)), 0
            for place, own in zip(places, rows, strict=True):
                yield chosen[place], S[start : start + len(own), :]
                start += len(own)


def in_order(small: dict[int, Array], others: Array, deletions: Sequence[Deletion]) -> Array:
    """Values of all folds in their order, from those of some and those of the others together."""
    parts, start = [], 0
    for number, (_, tested) in enumerate(deletions):
        if number in small:
            parts.append(small[number])
        else:
            parts.append(others[:, start : start + len(tested), :])
            start += len(tested)
    return namespace(others).concat(parts, axis=1)


def _take_each(values: Array, rows: np.ndarray) -> Array:
    """Some rows of each of several matrices (m, n, t)."""
    return namespace(values).stack([take(values[j, ...], rows) for j in range(values.shape[0])])


# ---- what happens to a block of rows; plain functions, so that they travel to other processes ----


def moments_job(features: FeatureMap, X: Array, Y: Array, scale: Array | None) -> Moments:
    return moments_of(features(X), Y, scale)


def moments_of(Z: Array, Y: Array, scale: Array | None) -> Moments:
    """Targets come scaled; the moments want them as they are."""
    if scale is None:
        return Moments.of(Z, Y)
    return Moments.of(Z, Y / scale, scale**2)


def _fold_moments_job(
    features: FeatureMap, X: Array, fold: np.ndarray, Y: Array, scale: Array | None
) -> dict[int, Moments]:
    """The moments of each fold's part of a block."""
    numbers = np.unique(fold[fold >= 0])
    if len(numbers) == 0:
        return {}
    Z = features(X)
    parts = {}
    for number in numbers:
        rows = np.flatnonzero(fold[:, 0] == number)
        own_scale = None if scale is None else take(scale, rows)
        parts[int(number)] = moments_of(take(Z, rows), take(Y, rows), own_scale)
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
