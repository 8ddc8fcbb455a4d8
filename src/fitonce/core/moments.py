r"""Sums over rows from which a least-squares model follows: blocks of rows in, p×p matrices out.

For features Z (k, p), targets Y (k, t) and row weights w the sums

    Σw,   Σ w z,   Σ w y,   ZᵀWZ,   ZᵀWY,   YᵀWY

of two sets of rows add up to those of their union (`merge`), and subtract where one contains the
other (`without`). They are all that a model needs: with the weighted means taken off where the bias
is free,

    A = ZᵀWZ - (Σwz)(Σwz)ᵀ/Σw,   C = ZᵀWY - (Σwz)(Σwy)ᵀ/Σw,   A = W diag(λ) Wᵀ,
    coefficients (A + μI)⁻¹C = W diag(1/(λ+μ)) WᵀC          for every μ from one p×p decomposition.

So the training moments of a fold are the total minus the fold's own, whatever the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from .arrays import (
    Array,
    asarray_like,
    eigh_overwriting,
    namespace,
    replace_rows,
    take,
    zeros_like_shape,
)
from .blocked import symmetric_product
from .holdout import Deletion
from .rows import Rows

FOLD_ELEMENTS = 1 << 25  # of moments (or scores) of folds that are computed in one pass: 256 MiB


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of features and targets.

    Features may be a stack (…, k, p): sums of Z are then stacks too, the rest is shared.
    """

    weight: float
    sum_Z: Array
    sum_Y: Array
    ZZ: Array
    ZY: Array
    YY: Array

    @classmethod
    def of(cls, Z: Array, Y: Array, scale: Array | None = None) -> Moments:
        """The moments of a block of features Z (…, k, p) with targets Y (k, t). Cost: O(k p²).

        With weights, `scale` (k, 1) are their roots s, and Y comes scaled: the targets are Y/s.
        """
        xp = namespace(Z)
        s, sZ = (xp.ones_like(Y[:, :1]), Z) if scale is None else (scale, scale * Z)
        Zt = xp.matrix_transpose(sZ)
        return cls(
            weight=float(Y.shape[0] if scale is None else xp.sum(s**2)),  # no wait for a device
            sum_Z=(Zt @ s)[..., 0],
            sum_Y=(Y.T @ s)[:, 0],
            ZZ=symmetric_product(sZ),
            ZY=Zt @ Y,
            YY=Y.T @ Y,
        )

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets of rows together."""
        return self._combine(other, 1)

    def without(self, other: Moments) -> Moments:
        """The moments of these rows minus some of them."""
        return self._combine(other, -1)

    def _combine(self, other: Moments, sign: int) -> Moments:
        """These moments plus or minus others."""
        return Moments(
            self.weight + sign * other.weight,
            self.sum_Z + sign * other.sum_Z,
            self.sum_Y + sign * other.sum_Y,
            self.ZZ + sign * other.ZZ,
            self.ZY + sign * other.ZY,
            self.YY + sign * other.YY,
        )

    def normal(self, free_bias: bool) -> tuple[Array, Array, Array]:
        """ZᵀWZ, ZᵀWY and YᵀWY, about the weighted means where the bias is free."""
        if not free_bias:
            return self.ZZ, self.ZY, self.YY
        return (
            self.ZZ - self.sum_Z[..., :, None] * (self.sum_Z[..., None, :] / self.weight),
            self.ZY - self.sum_Z[..., :, None] * (self.sum_Y[None, :] / self.weight),
            self.YY - self.sum_Y[:, None] * (self.sum_Y[None, :] / self.weight),
        )


def merge_folds(some: Mapping[int, Moments], others: Mapping[int, Moments]) -> dict[int, Moments]:
    """The moments of both sets of rows, fold by fold."""
    both = dict(some)
    for number, moments in others.items():
        both[number] = both[number].merge(moments) if number in both else moments
    return both


@dataclass(frozen=True)
class MomentFit:
    """A = W diag(λ) Wᵀ of some rows' moments, and every model that follows from it.

    One decomposition, any μ: `z` = WᵀC (r, t) are the targets seen along the eigenvectors. The
    weighted means of features and targets are zero where the bias is not free. `entry` is the
    largest of the diagonal of ZᵀWZ, which the means are taken off: a single heavy row is in its own
    mean, and rounding is eps times that.
    """

    eigenvalues: Array
    W: Array
    z: Array
    mean_Z: Array
    mean_Y: Array
    weight: float
    entry: float

    @classmethod
    def of(cls, moments: Moments, free_bias: bool) -> MomentFit:
        xp, (A, C, _) = namespace(moments.ZZ), moments.normal(free_bias)
        eigenvalues, W = eigh_overwriting(A + 0.0)
        eigenvalues = xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues))
        share = float(free_bias) / moments.weight
        means = share * moments.sum_Z, share * moments.sum_Y
        entry = float(xp.max(xp.linalg.diagonal(moments.ZZ)))
        return cls(eigenvalues, W, W.T @ C, *means, moments.weight, entry)

    def inverse(self, mus: np.ndarray) -> Array:
        """1/(λ+μ) (r, m)."""
        return 1.0 / (self.eigenvalues[:, None] + asarray_like(mus, self.eigenvalues))

    def coef(self, mus: np.ndarray) -> Array:
        """Coefficients of the features (m, p, t)."""
        return self.W @ (self.inverse(mus).T[:, :, None] * self.z)

    def intercept(self, coef: Array) -> Array:
        """The bias (m, t) that goes with coefficients (m, p, t): ȳ - z̄·w."""
        return self.mean_Y - self.mean_Z @ coef


# ---- folds: the total minus the fold's own trains each fold's model ------------------------------


class FeatureMap(Protocol):
    """Features (k, p) of a block of rows; and (features - mean) W, perhaps by a shorter way."""

    @property
    def size(self) -> int:
        """p."""

    def __call__(self, X: Array, /) -> Array: ...
    def rotated(self, W: Array, mean: Array) -> Callable[[Array], Array]: ...


Folds = Mapping[int, Deletion]  # by number


def fold_moments(
    data: Rows, features: FeatureMap, row_scale: Array | None, Y: Array, folds: Folds
) -> dict[int, Moments]:
    """The moments of each of some disjoint folds, by its number, and of the rows in none: one
    pass.
    """
    fold = np.full((data.n_samples, 1), max(folds, default=-1) + 1)
    for number, (deleted, _) in folds.items():
        fold[deleted] = number
    job = partial(_fold_moments_job, features)
    return data.reduce(job, merge_folds, fold, Y, row_scale)  # type: ignore[no-any-return]


def held_out_layer(
    data: Rows,
    features: FeatureMap,
    row_scale: Array | None,
    trained: Mapping[int, MomentFit],
    layer: Folds,
    mus: np.ndarray,
) -> dict[int, Array]:
    """Held-out values (m, k, t) of the tested rows of disjoint folds, by their numbers, from what
    trains their models: one pass.
    """
    models = {number: _model(fit, mus) for number, fit in trained.items()}
    tested = np.full((data.n_samples, 1), -1)
    for number, (deleted, test) in layer.items():
        tested[deleted[test]] = number
    blocks = list(data.map(partial(_values_job, features, models), tested, row_scale))
    xp, place, found = namespace(blocks[0]), np.cumsum(tested >= 0) - 1, {}
    collected = xp.concat(blocks, axis=0)
    shape = -1, len(mus), int(collected.shape[1]) // len(mus)
    for number, (deleted, test) in layer.items():
        by_mu = xp.reshape(take(collected, place[deleted[test]]), shape)
        found[number] = xp.permute_dims(by_mu, (1, 0, 2))
    return found


def _model(trained: MomentFit, mus: np.ndarray) -> tuple[Array, Array]:
    """Coefficients (p, m·t) and intercepts (m·t)."""
    coef = trained.coef(mus)
    xp, p = namespace(coef), int(coef.shape[1])
    flat = xp.reshape(xp.permute_dims(coef, (1, 0, 2)), (p, -1))
    return flat, xp.reshape(trained.intercept(coef), (-1,))


def disjoint(folds: Folds, n: int, p: int) -> list[dict[int, Deletion]]:
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
    tested = np.flatnonzero(fold[:, 0] >= 0)
    numbers, Z = fold[tested, 0], take(features(X), tested)
    width = int(next(iter(models.values()))[1].shape[0])
    values = zeros_like_shape((len(tested), width), Z)
    for number in np.unique(numbers).tolist():
        (own,), (coef, intercept) = np.nonzero(numbers == number), models[number]
        values = replace_rows(values, own, take(Z, own) @ coef + intercept)
    return values if scale is None else take(scale, tested) * values
