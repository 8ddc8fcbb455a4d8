r"""Ridge on explicit features, read block by block: nothing of size n×n is formed, and n×p only
where asked for.

Features Z (n, p) of rows with scale s = √w (1 without weights) have the scores and the one
decomposition

    S = s∘(Z - z̄) W,   SᵀS = diag(λ)          of p×p, from the `Moments` of the rows (first pass)
    H = Q₀Q₀ᵀ + S Ω Sᵀ,   Ω = diag(1/(λ+μ))     Q₀ = s/‖s‖ where the bias is free

so that, in a second pass, all μ at once,

    r = Y - Q₀Q₀ᵀY - S (Ω z),  z = SᵀY,      1 - h = 1 - q - S² Ω1.

Ridge on the features of landmarks is both penalties: Z = K_nm K_mm^(-1/2) for μ‖f‖² (Nyström),
Z = K_nm for μ‖α‖² (sparse expansion).

**Dropped landmarks.** Landmarks that are themselves training rows can leave with their row: the
model without row i then has α_i = 0, as a refit without that landmark would. With α = N w the
coefficients of the landmarks and T those among the deleted rows, D = N_TΩN_Tᵀ and B = SΩN_Tᵀ are
the pair system of `holdout`, whose first block is I - S(Ω - ΩN_TᵀD⁻¹N_TΩ)Sᵀ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .arrays import (
    Array,
    eigh_overwriting,
    eye_like,
    namespace,
    replace_rows,
    spd_solver,
    take,
    to_numpy,
    zeros_like_shape,
)
from .dropping import DroppedLandmarks
from .holdout import (
    Deletion,
    Fitted,
    PairSystem,
    Path,
    Removal,
    ResidualMap,
    Smoother,
    Solver,
    Targets,
)
from .moments import FOLD_ELEMENTS, FeatureMap, FoldMoments, MomentFit, Moments
from .rows import Rows
from .smoothing import Smoothing
from .spectrum import (
    complement_solver,
    is_thin,
    log_determinant,
    machine_epsilon,
    orthonormal,
    row_blocks,
)

# rows of a fold, as a share of the features, up to which its own system is solved
SMALL_FOLD = 0.25


@dataclass(frozen=True)
class FeatureNorm(Smoother):
    """Ridge regression on features that are computed block by block."""

    data: Rows
    features: FeatureMap
    row_scale: Array | None
    free_bias: bool
    moments: FoldMoments
    solved: MomentFit
    Q0: Array
    dropping: DroppedLandmarks | None = None

    @classmethod
    def of(
        cls,
        data: Rows,
        features: FeatureMap,
        row_scale: Array | None,
        free_bias: bool,
        Y: Array,
        dropping: DroppedLandmarks | None = None,
        deletions: Sequence[Deletion] = (),
    ) -> tuple[FeatureNorm, Targets]:
        """The first pass: moments of all rows with scaled targets Y (n, t), which come back
        projected. Those of `deletions` are kept for `held_out_folds`, which spares it a pass.
        """
        large = {} if dropping is not None else _large(deletions, features.size)
        moments = FoldMoments.of(data, features, row_scale, Y, large)
        solved = MomentFit.of(moments.total, free_bias)
        ones = namespace(Y).ones_like(Y[:, :1]) if row_scale is None else row_scale
        Q0 = orthonormal(ones) if free_bias else zeros_like_shape((data.n_samples, 0), Y)
        smoother = cls(data, features, row_scale, free_bias, moments, solved, Q0, dropping)
        return smoother, Targets(Y, solved.z)

    @property
    def has_duals(self) -> bool:
        return self.dropping is not None

    @cached_property
    def largest(self) -> float:
        return float(namespace(self.Q0).max(self.solved.eigenvalues))

    @cached_property
    def trace(self) -> float:
        return float(namespace(self.Q0).sum(self.solved.eigenvalues))

    @cached_property
    def conditioning(self) -> float:
        norm = float(namespace(self.Q0).linalg.vector_norm(self.solved.eigenvalues))
        return machine_epsilon(self.Q0) * max(norm, self.solved.entry)

    def can_leave_out(self, n_rows: int) -> bool:
        return True

    def _omega(self, mu: float) -> Array:
        """1/(λ + μ) (r,)."""
        return self.solved.inverse(np.asarray([mu]))[:, 0]

    def residual_map(self, mu: float) -> ResidualMap:
        S = self._all_scores()
        thin = ResidualMap(None, (S, self._omega(mu), self.Q0))
        n, r = S.shape
        return thin if is_thin(n, r) else ResidualMap(thin(eye_like(n, S)))

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

    def project(self, Y: Array) -> Targets:
        """z = SᵀY (r, t): one pass."""
        job = partial(_project_job, self._score)
        return Targets(Y, self.data.reduce(job, operator.add, Y, self.row_scale))

    def replaced(self, targets: Targets, removal: Removal, rho: Array) -> Targets:
        """z - S_Teᵀρ: no pass."""
        Y = replace_rows(targets.Y, removal.rows, take(targets.Y, removal.rows) - rho)
        return Targets(Y, targets.z - removal.pairs.scores.T @ rho)  # type: ignore[union-attr]

    def mean_Y(self, Y: Array) -> Array:
        """The weighted mean (t,) that a free bias follows, of unscaled targets; else zero."""
        return namespace(Y).sum(self.Q0.T @ Y, axis=0) / self.solved.weight**0.5

    def _pass(self, Y: Array, coef: Array, inverse: Array) -> tuple[Any, tuple[Any, ...]]:
        """What makes residuals and diagonals of a block, for coefficients (r, m, t) and 1/(λ + μ)
        (r, m); and what it takes of every row.
        """
        flat = namespace(Y).reshape(coef, (coef.shape[0], -1))
        centred = Y - self.Q0 @ (self.Q0.T @ Y)
        bias = namespace(Y).sum(self.Q0**2, axis=1, keepdims=True)
        return partial(_path_job, self._score, inverse, flat), (centred, bias, self.row_scale)

    def _residuals(self, Y: Array, coef: Array, inverse: Array) -> tuple[Array, Array]:
        """Residuals (m, n, t) and the diagonal of I - H (m, n): one pass."""
        xp, m, n = namespace(Y), int(inverse.shape[1]), self.n_samples
        residual, one_minus_h = zeros_like_shape((m, *Y.shape), Y), zeros_like_shape((m, n), Y)
        job, per_row = self._pass(Y, coef, inverse)
        start = 0
        for block_residual, block_diagonal in self.data.map(job, *per_row):
            rows = slice(start, start + block_residual.shape[0])
            by_mu = xp.reshape(block_residual, (-1, m, Y.shape[1]))
            residual[:, rows, :] = xp.permute_dims(by_mu, (1, 0, 2))
            one_minus_h[:, rows] = block_diagonal.T
            start = rows.stop
        return residual, one_minus_h

    def squared_errors(self, targets: Targets, mus: np.ndarray) -> np.ndarray:
        """Sums (m,) of the squares of all leave-one-out residuals, in one pass that returns
        nothing else.
        Landmarks stay.
        """
        inverse = self.solved.inverse(mus)
        path, per_row = self._pass(targets.Y, inverse[:, :, None] * targets.z[:, None, :], inverse)
        job = partial(_squares_job, path, len(mus))
        return to_numpy(self.data.reduce(job, operator.add, *per_row))

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        """Residuals and diagonals at all mus in one pass."""
        inverse = self.solved.inverse(mus)
        coef = inverse[:, :, None] * targets.z[:, None, :]
        path = Path(np.asarray(mus, dtype=float), *self._residuals(targets.Y, coef, inverse))
        return path if self.dropping is None else self._with_pairs(path, coef, inverse)

    def _with_pairs(self, path: Path, coef: Array, inverse: Array) -> Path:
        """α, b and d of the landmarks that leave with their row; 0, 0 and 1 for all other rows."""
        assert self.dropping is not None
        xp = namespace(coef)
        own = self.dropping.irreplaceable()
        rows = self.dropping.rows[own]
        N, S = take(self.dropping.N, own) @ self.solved.W, self.scores(rows)
        m, n, t = path.residual.shape
        alpha = N @ xp.reshape(coef, (-1, m * t))
        dual = replace_rows(zeros_like_shape((n, m * t), coef), rows, alpha)
        dual = xp.permute_dims(xp.reshape(dual, (n, m, t)), (1, 0, 2))
        zero = zeros_like_shape((n, m), coef)
        b = replace_rows(zero, rows, (S * N) @ inverse).T
        d = replace_rows(zero + 1.0, rows, N**2 @ inverse).T
        return Path(path.mus, path.residual, path.one_minus_h, dual, b, d)

    # ---- fit -----------------------------------------------------------------------------------

    def coef(self, targets: Targets, mu: float, force: Array | None = None) -> Array:
        """Coefficients along the eigenvectors (r, t): Ω(z - Nᵀν)."""
        z = targets.z
        if force is not None and self.dropping is not None:
            own, N = self._own()
            z = z - N.T @ take(force, self.dropping.rows[own])
        return self._omega(mu)[:, None] * z

    def _own(self) -> tuple[np.ndarray, Array]:
        """The landmarks that are rows, and α = N w of theirs in eigenvector coordinates."""
        assert self.dropping is not None
        own = np.flatnonzero(self.dropping.rows >= 0)
        return own, take(self.dropping.N, own) @ self.solved.W

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        """One pass for the residuals."""
        coef, Y = self.coef(targets, mu, force), targets.Y
        residual, _ = self._residuals(Y, coef[:, None, :], self._omega(mu)[:, None])
        return Fitted(Y, residual[0, ...], self._row_dual(coef), coef)

    def fitted(self, targets: Targets, path: Path) -> Fitted:
        coef = self.coef(targets, float(path.mus[0]))
        return Fitted(targets.Y, path.residual[0, ...], self._row_dual(coef), coef)

    def _row_dual(self, coef: Array) -> Array | None:
        """If landmarks leave with their rows: their α at the positions of those rows (n, t)."""
        if self.dropping is None:
            return None
        own, N = self._own()
        zero = zeros_like_shape((self.n_samples, coef.shape[1]), coef)
        return replace_rows(zero, self.dropping.rows[own], N @ coef)

    def smoothing(self, X: Array, mu: float) -> Smoothing:
        """h = S(x)ΩSᵀ + s/Σw, b = S(x)ΩNᵀ and τ = S(x)ΩS(x)ᵀ + 1/Σw of new rows X: one pass."""
        new, omega, weight = self._score(X, None), self._omega(mu), self.solved.weight
        xp, free = namespace(new), float(self.free_bias)
        h = (new * omega) @ self._all_scores().T + xp.sum(self.Q0, axis=1) / weight**0.5
        excess = xp.sum(new**2 * omega, axis=1) + free / weight
        dual = self._row_dual((new * omega).T)
        return Smoothing(h, None if dual is None else dual.T, excess)

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        n_free = self.n_samples - int(self.Q0.shape[1])
        return log_determinant(to_numpy(self.solved.eigenvalues), n_free, mus)

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        """From the projected targets: no pass."""
        Y, z, xp = targets.Y, targets.z, namespace(targets.Y)
        scatter = Y.T @ (Y - self.Q0 @ (self.Q0.T @ Y))
        inverse = self.solved.inverse(mus)
        weighted = z[None, :, :] * inverse.T[:, :, None]
        return scatter - xp.matrix_transpose(weighted) @ z[None, :, :]

    # ---- held-out values -----------------------------------------------------------------------

    def _solvers(self, rows: np.ndarray, S: Array, mus: np.ndarray) -> Iterator[Solver]:
        """R → (I - H_TT)⁻¹R for each mu: through the p×p side where that is smaller."""
        xp, bias, roots = namespace(S), take(self.Q0, rows), self.solved.inverse(mus) ** 0.5
        thin = (xp.concat([bias, S * roots[:, j]], axis=1) for j in range(len(mus)))
        return map(complement_solver, thin)

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        S, omega = self.scores(rows), self._omega(mu)
        if self.dropping is None:
            return PairSystem(next(self._solvers(rows, S, np.array([mu]))), scores=S)
        xp, landmarks = namespace(S), self.dropping.within(rows)
        E = self.dropping.directions(landmarks)
        N = E.T @ take(self.dropping.N, landmarks) @ self.solved.W
        solve_D = spd_solver((N * omega) @ N.T)
        reduced = eye_like(S.shape[1], S) * omega - (omega[:, None] * N.T) @ solve_D(N * omega)
        bias = take(self.Q0, rows)
        if len(rows) <= S.shape[1]:
            solve = spd_solver(eye_like(len(rows), S) - bias @ bias.T - S @ reduced @ S.T)
        else:
            values, vectors = eigh_overwriting(0.5 * (reduced + reduced.T))
            root = vectors * xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values)))
            solve = complement_solver(xp.concat([bias, S @ root], axis=1))
        position = np.full(self.n_samples, -1)
        position[rows] = np.arange(len(rows))
        zero = zeros_like_shape((len(rows), N.shape[0]), S)
        lift = replace_rows(zero, position[self.dropping.rows[landmarks]], E)
        return PairSystem(solve, (S * omega) @ N.T, solve_D, lift, S)

    def held_out_folds(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        """From the total minus the moments of each fold: a pass over the rows for all folds and
        mus, another one for moments that `of` has not kept, and an eigendecomposition for each
        fold; folds with few rows use a small system at each mu.

        Disjoint deletions share a pass; overlapping ones, as in repeated cross-validation, take
        one each. Folds with which landmarks leave are systems of their rows.
        """
        if self.dropping is not None:
            return super().held_out_folds(targets, mus, deletions)
        large = _large(deletions, self.features.size)
        small = {i: fold for i, fold in enumerate(deletions) if i not in large}
        total, Y = self._moments_of(targets), targets.Y
        values = self.moments.held_out(total, self.free_bias, Y, mus, large)
        if small:
            values |= self._by_systems(targets, mus, small)
        return namespace(targets.Y).concat([values[i] for i in range(len(deletions))], axis=1)

    def _moments_of(self, targets: Targets) -> Moments:
        """Those of all rows with these targets: no pass."""
        Y, mean = targets.Y, self.mean_Y(targets.Y)
        total = self.moments.total
        ZY = self.solved.W @ targets.z + total.sum_Z[:, None] * mean
        return replace(total, sum_Y=self.solved.weight * mean, ZY=ZY, YY=Y.T @ Y)

    def _by_systems(
        self, targets: Targets, mus: np.ndarray, folds: Mapping[int, Deletion]
    ) -> dict[int, Array]:
        """Held-out values (m, k, t) of folds of few rows: one pass, and scores of many of them in
        one go.
        """
        xp, Y, found = namespace(targets.Y), targets.Y, {}
        residual = self.path(targets, mus).residual
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
    spread = namespace(S).concat([centred] * (coef.shape[1] // centred.shape[1]), axis=1)
    return spread - S @ coef, 1.0 - bias - S**2 @ inverse


def _squares_job(
    path: Callable[..., tuple[Array, Array]], m: int, X: Array, *per_row: Array
) -> Array:
    """Sums (m,) of squared leave-one-out residuals of a block."""
    residual, one_minus_h = path(X, *per_row)
    xp = namespace(residual)
    squares = xp.sum(xp.reshape(residual**2, (residual.shape[0], m, -1)), axis=2)
    return xp.sum(squares / one_minus_h**2, axis=0)
