r"""The resolvent of explicit features that are read block by block: nothing of size n×n is formed,
and n×p only where asked for.

Features Z (n, p) of rows with scale s = √w (1 without weights) have the scores and the one
decomposition

    S = s∘(Z - z̄) W,   SᵀS = diag(λ)          of p×p, from the `Moments` of the rows (first pass)
    M = I - S Ω Sᵀ off Q₀,   Ω = diag(1/(λ+μ))     Q₀ = s/‖s‖ where the bias is free

so that, in a second pass, all μ at once,

    MY = Y - Q₀Q₀ᵀY - S (Ω z),  z = SᵀY,      diag M = 1 - q - S² Ω1.

Ridge on the features of landmarks is both penalties: Z = K_nm K_mm^(-1/2) for μ‖f‖² (Nyström),
Z = K_nm for μ‖α‖² (sparse expansion).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from .arrays import Array, namespace, take, to_numpy, zeros_like_shape
from .holdout import Deletion, ResidualMap, Smoothing, Solver
from .moments import (
    FOLD_ELEMENTS,
    FeatureMap,
    Folds,
    MomentFit,
    Moments,
    disjoint,
    fold_moments,
    held_out_layer,
)
from .rows import Rows
from .spectrum import Diagonalized, is_thin, orthonormal, row_blocks, thin_solvers

# rows of a fold, as a share of the features, up to which its own system is solved
SMALL_FOLD = 0.25


@dataclass(frozen=True)
class Thin(Diagonalized):
    """M(μ) of features that are computed block by block."""

    data: Rows
    features: FeatureMap
    row_scale: Array | None
    solved: MomentFit
    Q0: Array
    Y: Array
    folds: Folds
    parts: Mapping[int, Moments]

    @classmethod
    def of(
        cls,
        data: Rows,
        features: FeatureMap,
        row_scale: Array | None,
        free_bias: bool,
        Y: Array,
        deletions: Sequence[Deletion] = (),
    ) -> Thin:
        """The first pass: moments of all rows with scaled targets Y (n, t), whose z is `solved.z`.
        Those of `deletions` are kept for `held_out_folds`, which spares it a pass; of deletions
        that overlap or are too many, the first ones.
        """
        large = _large(deletions, features.size)
        folds = next(iter(disjoint(large, data.n_samples, features.size)), {})
        parts = fold_moments(data, features, row_scale, Y, folds)
        ones = namespace(Y).ones_like(Y[:, :1]) if row_scale is None else row_scale
        Q0 = orthonormal(ones) if free_bias else zeros_like_shape((data.n_samples, 0), Y)
        solved = MomentFit.of(reduce(Moments.merge, parts.values()), free_bias)
        return cls(data, features, row_scale, solved, Q0, Y, folds, parts)

    @property
    def eigenvalues(self) -> Array:
        return self.solved.eigenvalues

    @property
    def rank(self) -> int:
        return min(self.features.size, super().rank)

    @property
    def lower_bound(self) -> float:
        return 0.0

    def sizes(self, mus: np.ndarray) -> np.ndarray:
        """No eigenvalue of M is above one."""
        return np.ones(len(mus))

    # ---- passes over the rows ------------------------------------------------------------------

    @cached_property
    def _score(self) -> Callable[..., Array]:
        return partial(_scores, self.features.rotated(self.solved.W, self.solved.mean_Z))

    def _all_scores(self) -> Array:
        """S (n, r), in memory."""
        return namespace(self.Q0).concat(list(self.data.map(self._score, self.row_scale)), axis=0)

    def scores(self, rows: np.ndarray) -> Array:
        """S at some rows (k, r)."""
        if len(rows) == 0:
            return zeros_like_shape((0, self.solved.W.shape[1]), self.Q0)
        scale = None if self.row_scale is None else take(self.row_scale, rows)
        return self._score(self.data.take(rows), scale)

    def project(self, Y: Array) -> Array:
        """z = SᵀY (r, t): one pass."""
        job = partial(_project_job, self._score)
        return self.data.reduce(job, operator.add, Y, self.row_scale)

    def changed(self, Y: Array, z: Array, rows: np.ndarray, change: Array) -> Array:
        """z + S_Tᵀ(change): no pass."""
        return z + self.scores(rows).T @ change

    def _pass(self, Y: Array, z: Array, mus: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        """What makes residuals and diagonals of a block; and what it takes of every row."""
        inverse, xp = self.solved.inverse(mus), namespace(Y)
        coef = xp.reshape(inverse[:, :, None] * z[:, None, :], (int(z.shape[0]), -1))
        centred = Y - self.Q0 @ (self.Q0.T @ Y)
        bias = xp.sum(self.Q0**2, axis=1, keepdims=True)
        return partial(_path_job, self._score, inverse, coef), (centred, bias, self.row_scale)

    def path(self, Y: Array, z: Array, mus: np.ndarray) -> tuple[Array, Array]:
        """One pass for both."""
        xp, m, n = namespace(Y), len(mus), int(Y.shape[0])
        residual, diagonal = zeros_like_shape((m, *Y.shape), Y), zeros_like_shape((m, n), Y)
        job, per_row = self._pass(Y, z, mus)
        start = 0
        for block_residual, block_diagonal in self.data.map(job, *per_row):
            rows = slice(start, start + block_residual.shape[0])
            by_mu = xp.reshape(block_residual, (-1, m, Y.shape[1]))
            residual[:, rows, :] = xp.permute_dims(by_mu, (1, 0, 2))
            diagonal[:, rows] = block_diagonal.T
            start = rows.stop
        return residual, diagonal

    def residual(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        return self.path(Y, z, mus)[0]

    def diagonal(self, mus: np.ndarray) -> Array:
        none = self.Q0[:, :0]
        return self.path(none, self.solved.W[:, :0], mus)[1]

    def squared_errors(self, Y: Array, z: Array, mus: np.ndarray) -> np.ndarray:
        """Sums (m,) of the squares of all leave-one-out residuals, in one pass that returns
        nothing else.
        """
        path, per_row = self._pass(Y, z, mus)
        job = partial(_squares_job, path, len(mus))
        return to_numpy(self.data.reduce(job, operator.add, *per_row))

    # ---- without a pass ------------------------------------------------------------------------

    def scatter(self, Y: Array, z: Array, mus: np.ndarray) -> Array:
        xp, inverse = namespace(Y), self.solved.inverse(mus)
        weighted = z[None, :, :] * inverse.T[:, :, None]
        return Y.T @ (Y - self.Q0 @ (self.Q0.T @ Y)) - xp.matrix_transpose(weighted) @ z[None, :, :]

    def solvers(self, rows: np.ndarray, mus: np.ndarray) -> Iterator[Solver]:
        return self._solvers(rows, self.scores(rows), mus)

    def _solvers(self, rows: np.ndarray, S: Array, mus: np.ndarray) -> Iterator[Solver]:
        return thin_solvers(take(self.Q0, rows), S, self.solved.inverse(mus))

    def residual_map(self, mu: float) -> ResidualMap:
        n, r = int(self.Q0.shape[0]), int(self.solved.W.shape[1])
        if not is_thin(n, r):
            return super().residual_map(mu)
        return ResidualMap(None, (self._all_scores(), self._omega(mu), self.Q0))

    def _omega(self, mu: float) -> Array:
        """1/(λ + μ) (r,)."""
        return self.solved.inverse(np.asarray([mu]))[:, 0]

    # ---- models --------------------------------------------------------------------------------

    def mean_Y(self, Y: Array) -> Array:
        """The weighted mean (t,) that a free bias follows, of unscaled targets; else zero."""
        return namespace(Y).sum(self.Q0.T @ Y, axis=0) / self.solved.weight**0.5

    def coef(self, z: Array, mu: float) -> Array:
        """Coefficients of the features (p, t)."""
        return self.solved.W @ (self._omega(mu)[:, None] * z)

    def smoothing(self, X: Array, mu: float) -> Smoothing:
        """h = S(x)ΩSᵀ + s/Σw and τ = S(x)ΩS(x)ᵀ + 1/Σw of new rows X: one pass."""
        new, omega, weight = self._score(X, None), self._omega(mu), self.solved.weight
        xp, free = namespace(new), float(self.Q0.shape[1])
        h = (new * omega) @ self._all_scores().T + xp.sum(self.Q0, axis=1) / weight**0.5
        return Smoothing(h, excess=xp.sum(new**2 * omega, axis=1) + free / weight)

    # ---- held-out values -----------------------------------------------------------------------

    def held_out_folds(
        self, Y: Array, z: Array, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        """Held-out values (m, k, t), from the total minus the moments of each fold: a pass over the
        rows for all folds and mus, another one for moments that `of` has not kept, and an
        eigendecomposition for each fold; folds with few rows use a small system at each mu.

        Disjoint deletions share a pass; overlapping ones, as in repeated cross-validation, take
        one each.
        """
        large = _large(deletions, self.features.size)
        small = {i: fold for i, fold in enumerate(deletions) if i not in large}
        total = self._moments_of(Y, z)
        source = self.data, self.features, self.row_scale
        values: dict[int, Array] = {}
        for layer in disjoint(large, self.data.n_samples, self.features.size):
            own = self._parts_of(Y, layer)
            # a fold may be empty: all its rows have weight zero
            rest = {i: total.without(own[i]) if i in own else total for i in layer}
            trained = {i: MomentFit.of(rest[i], self.Q0.shape[1] > 0) for i in layer}
            values |= held_out_layer(*source, trained, layer, mus)
        values |= self._by_systems(Y, z, mus, small) if small else {}
        return namespace(Y).concat([values[i] for i in range(len(deletions))], axis=1)

    def _moments_of(self, Y: Array, z: Array) -> Moments:
        """Those of all rows with these targets: no pass."""
        total, mean = reduce(Moments.merge, self.parts.values()), self.mean_Y(Y)
        ZY = self.solved.W @ z + total.sum_Z[:, None] * mean
        return replace(total, sum_Y=self.solved.weight * mean, ZY=ZY, YY=Y.T @ Y)

    def _parts_of(self, Y: Array, layer: Folds) -> Mapping[int, Moments]:
        """The moments of some folds with these targets: a pass, where they are not all there."""
        kept = Y is self.Y and layer.keys() <= self.folds.keys()
        if kept and all(layer[i][0] is self.folds[i][0] for i in layer):
            return self.parts
        return fold_moments(self.data, self.features, self.row_scale, Y, layer)

    def _by_systems(
        self, Y: Array, z: Array, mus: np.ndarray, folds: Mapping[int, Deletion]
    ) -> dict[int, Array]:
        """Held-out values (m, k, t) of folds of few rows: one pass, and scores of many of them in
        one go.
        """
        xp, residual, found = namespace(Y), self.residual(Y, z, mus), {}
        numbers, size = list(folds), max(len(deleted) for deleted, _ in folds.values())
        for some in row_blocks(
            len(numbers), max(1, FOLD_ELEMENTS // self.solved.W.shape[1] // size)
        ):
            together = self.scores(np.concatenate([folds[i][0] for i in numbers[some]]))
            start = 0
            for i in numbers[some]:
                rows, tested = folds[i]
                S, start = together[start : start + len(rows), :], start + len(rows)
                solvers = enumerate(self._solvers(rows, S, mus))
                rho = [solve(take(residual[j, ...], rows)) for j, solve in solvers]
                found[i] = xp.stack([take(take(Y, rows) - each, tested) for each in rho])
        return found


# ---- what happens to a block of rows; plain functions, so that they travel to other processes ----


def _large(deletions: Sequence[Deletion], p: int) -> dict[int, Deletion]:
    """The folds that are better trained anew than taken out by a system of their rows."""
    folds = enumerate(deletions)
    return {i: fold for i, fold in folds if not 0 < len(fold[0]) <= SMALL_FOLD * p}


def _scores(rotated: Callable[[Array], Array], X: Array, scale: Array | None) -> Array:
    S = rotated(X)
    return S if scale is None else scale * S


def _project_job(score: Callable[..., Array], X: Array, Y: Array, scale: Array | None) -> Array:
    return score(X, scale).T @ Y


def _path_job(
    score: Callable[..., Array],
    inverse: Array,
    coef: Array,
    X: Array,
    centred: Array,
    bias: Array,
    scale: Array | None,
) -> tuple[Array, Array]:
    """Residuals (k, m·t) and 1 - leverage (k, m) of a block."""
    S = score(X, scale)
    spread = namespace(S).concat([centred] * int(inverse.shape[1]), axis=1)
    return spread - S @ coef, 1.0 - bias - S**2 @ inverse


def _squares_job(
    path: Callable[..., tuple[Array, Array]], m: int, X: Array, *per_row: Array
) -> Array:
    """Sums (m,) of squared leave-one-out residuals of a block."""
    residual, one_minus_h = path(X, *per_row)
    xp = namespace(residual)
    squares = xp.sum(xp.reshape(residual**2, (residual.shape[0], m, -1)), axis=2)
    return xp.sum(squares / one_minus_h**2, axis=0)
