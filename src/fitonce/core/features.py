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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

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
from .fold_moments import FeatureMap, FoldModels, FoldSystems, in_order, moments_job
from .holdout import (
    Deletion,
    Fitted,
    HeldOut,
    PairSystem,
    Path,
    Removal,
    ResidualMap,
    Smoother,
    Targets,
)
from .moments import MomentFit, Moments
from .rows import Rows
from .smoothing import Smoothing
from .spectral import Spectral, complement_solver, log_determinant
from .spectrum import Spectrum, machine_epsilon, orthonormal

# rows of a fold, as a share of the features, up to which its own system is solved
SMALL_FOLD = 0.25


class Dropping(Protocol):
    """Landmarks that leave with their rows; see `landmarks.dropping`."""

    @property
    def rows(self) -> np.ndarray:
        """Of the landmarks (q,), -1 where they are none."""

    @property
    def N(self) -> Array:
        """α = N w (q, p)."""

    def directions(self, landmarks: np.ndarray) -> Array: ...
    def within(self, rows: np.ndarray) -> np.ndarray: ...
    def irreplaceable(self) -> np.ndarray: ...
    def constraint(self, deleted: np.ndarray) -> Array: ...


@dataclass(frozen=True)
class FeatureNorm(Smoother):
    """Ridge regression on features that are computed block by block."""

    data: Rows
    features: FeatureMap
    row_scale: Array | None
    free_bias: bool
    solved: MomentFit
    Q0: Array
    conditioning: float
    largest: float
    trace: float
    dropping: Dropping | None = None
    has_duals: bool = False

    @classmethod
    def of(
        cls,
        data: Rows,
        features: FeatureMap,
        row_scale: Array | None,
        free_bias: bool,
        Y: Array,
        dropping: Dropping | None = None,
    ) -> tuple[FeatureNorm, Targets]:
        """The first pass: moments of all rows with scaled targets Y (n, t), which come back
        projected.
        """
        moments = data.reduce(partial(moments_job, features), Moments.merge, Y, row_scale)
        solved = MomentFit(moments, free_bias)
        ones = namespace(Y).ones_like(Y[:, :1]) if row_scale is None else row_scale
        Q0 = orthonormal(ones) if free_bias else zeros_like_shape((data.n_samples, 0), Y)
        sizes = solved.conditioning, solved.largest, solved.trace
        dropped = dropping, dropping is not None
        smoother = cls(data, features, row_scale, free_bias, solved, Q0, *sizes, *dropped)
        return smoother, Targets(Y, solved.z)

    def can_leave_out(self, n_rows: int) -> bool:
        return True

    @cached_property
    def spectrum(self) -> Spectrum:
        """The same smoother with its V (n, r) in memory."""
        xp = namespace(self.Q0)
        noise = self.solved.eigenvalues.shape[0] * machine_epsilon(self.Q0) * self.largest
        large = [float(value) > noise for value in self.solved.eigenvalues]
        kept = np.flatnonzero(np.asarray(large))
        eigenvalues = take(self.solved.eigenvalues, kept)
        S = xp.concat(list(self.data.map(self._score, self.row_scale)), axis=0)
        return Spectrum(take(S.T, kept).T / xp.sqrt(eigenvalues), eigenvalues, self.Q0)

    def residual_map(self, mu: float) -> ResidualMap:
        return Spectral(self.spectrum).residual_map(mu)

    # ---- passes over the rows ------------------------------------------------------------------

    @cached_property
    def _score(self) -> Callable[..., Array]:
        return partial(_scores, self.features.rotated(self.solved.W, self.solved.mean_Z))

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
        xp = namespace(Y)
        if not self.free_bias:
            return xp.zeros_like(Y[0, :])
        total = xp.sum(Y if self.row_scale is None else self.row_scale * Y, axis=0)
        return total / self.solved.moments.weight

    def _path_parts(self, targets: Targets, mus: np.ndarray) -> tuple[Any, Array, Array]:
        """What makes residuals and diagonals of a block; coefficients (r, m, t) and 1/(λ + μ)."""
        Y, xp = targets.Y, namespace(targets.Y)
        inverse = self.solved.inverse(mus)
        coef = inverse[:, :, None] * targets.z[:, None, :]
        flat = xp.reshape(coef, (inverse.shape[0], len(mus) * Y.shape[1]))
        bias = 1.0 / self.solved.moments.weight if self.free_bias else 0.0
        return partial(_path_job, self._score, inverse, flat, self.mean_Y(Y), bias), coef, inverse

    def squared_errors(self, targets: Targets, mus: np.ndarray) -> np.ndarray:
        """Sums (m,) of the squares of all leave-one-out residuals, in one pass that returns
        nothing else.
        Landmarks stay.
        """
        job = partial(_squares_job, self._path_parts(targets, mus)[0], len(mus))
        return to_numpy(self.data.reduce(job, operator.add, targets.Y, self.row_scale))

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        """Residuals and diagonals at all mus in one pass."""
        Y, xp = targets.Y, namespace(targets.Y)
        m, t, n = len(mus), Y.shape[1], self.n_samples
        job, coef, inverse = self._path_parts(targets, mus)
        residual, one_minus_h = zeros_like_shape((m, n, t), Y), zeros_like_shape((m, n), Y)
        start = 0
        for block_residual, block_diagonal in self.data.map(job, Y, self.row_scale):
            rows = slice(start, start + block_residual.shape[0])
            by_mu = xp.reshape(block_residual, (-1, m, t))
            residual[:, rows, :] = xp.permute_dims(by_mu, (1, 0, 2))
            one_minus_h[:, rows] = block_diagonal.T
            start = rows.stop
        path = Path(np.asarray(mus, dtype=float), residual, one_minus_h)
        return path if self.dropping is None else self._with_pairs(path, coef, inverse)

    def _with_pairs(self, path: Path, coef: Array, inverse: Array) -> Path:
        """α, b and d of the landmarks that leave with their row; 0, 0 and 1 for all other rows."""
        assert self.dropping is not None
        xp = namespace(coef)
        own = self.dropping.irreplaceable()
        rows = self.dropping.rows[own]
        N, S = take(self.dropping.N, own) @ self.solved.W, self.scores(rows)
        m, n, t = path.residual.shape
        alpha = xp.permute_dims(
            xp.reshape(N @ xp.reshape(coef, (-1, m * t)), (-1, m, t)), (1, 0, 2)
        )

        def placed(start: Array, values: Array) -> Array:
            return xp.stack([replace_rows(start, rows, values[j, ...]) for j in range(m)])

        zero = zeros_like_shape((n, 1), coef)
        dual = placed(zeros_like_shape((n, t), coef), alpha)
        b = placed(zero, ((S * N) @ inverse).T[:, :, None])[..., 0]
        d = placed(zero + 1.0, (N**2 @ inverse).T[:, :, None])[..., 0]
        return Path(path.mus, path.residual, path.one_minus_h, dual, b, d)

    # ---- fit -----------------------------------------------------------------------------------

    def coef(self, targets: Targets, mu: float, force: Array | None = None) -> Array:
        """Coefficients along the eigenvectors (r, t): Ω(z - Nᵀν)."""
        z = targets.z
        if force is not None and self.dropping is not None:
            own, N = self._own()
            z = z - N.T @ take(force, self.dropping.rows[own])
        return self.solved.inverse(np.asarray([mu])) * z

    def _own(self) -> tuple[np.ndarray, Array]:
        """The landmarks that are rows, and α = N w of theirs in eigenvector coordinates."""
        assert self.dropping is not None
        own = np.flatnonzero(self.dropping.rows >= 0)
        return own, take(self.dropping.N, own) @ self.solved.W

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        """One pass for the fitted values."""
        coef, Y = self.coef(targets, mu, force), targets.Y
        job = partial(_values_job, self._score, coef, self.mean_Y(Y))
        values = namespace(Y).concat(list(self.data.map(job, self.row_scale)), axis=0)
        return Fitted(Y, Y - values, self._row_dual(coef), coef)

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
        new, omega = self._score(X, None), self.solved.inverse(np.asarray([mu]))[:, 0]
        xp, weight = namespace(new), self.solved.moments.weight
        S = xp.concat(list(self.data.map(self._score, self.row_scale)), axis=0)
        h, excess = (new * omega) @ S.T, xp.sum(new**2 * omega, axis=1)
        if self.free_bias:
            h, excess = h + self.Q0.T / float(np.sqrt(weight)), excess + 1.0 / weight
        if self.dropping is None:
            return Smoothing(h, excess=excess)
        own, N = self._own()
        zero = zeros_like_shape((self.n_samples, int(new.shape[0])), new)
        b = replace_rows(zero, self.dropping.rows[own], N @ (new * omega).T)
        return Smoothing(h, b.T, excess)

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

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        """Through the p×p side if more rows are deleted than there are features."""
        S, bias = self.scores(rows), take(self.Q0, rows)
        xp = namespace(S)
        omega = self.solved.inverse(np.asarray([mu]))[:, 0]
        if self.dropping is None:
            L = xp.concat([bias, S * xp.sqrt(omega)], axis=1)
            return PairSystem(complement_solver(L), scores=S)
        landmarks = self.dropping.within(rows)
        E = self.dropping.directions(landmarks)
        N = E.T @ take(self.dropping.N, landmarks) @ self.solved.W
        solve_D = spd_solver((N * omega) @ N.T) if N.shape[0] else _unchanged
        reduced = eye_like(S.shape[1], S) * omega - (omega[:, None] * N.T) @ solve_D(N * omega)
        values, vectors = eigh_overwriting(0.5 * (reduced + reduced.T))
        root = vectors * xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values)))
        solve = complement_solver(xp.concat([bias, S @ root], axis=1))
        position = np.full(self.n_samples, -1)
        position[rows] = np.arange(len(rows))
        zero = zeros_like_shape((len(rows), N.shape[0]), S)
        lift = replace_rows(zero, position[self.dropping.rows[landmarks]], E)
        return PairSystem(solve, (S * omega) @ N.T, solve_D, lift, S)

    def leave_one_out_within(self, targets: Targets, removal: Removal, mu: float) -> HeldOut:
        """Row by row where landmarks leave: one that others can replace may lose these others."""
        if self.dropping is None:
            return super().leave_one_out_within(targets, removal, mu)
        fitted, xp = self.fit(targets, mu), namespace(targets.Y)
        parts = []
        for row in range(self.n_samples):
            gone = np.append(removal.rows[removal.rows != row], row)
            parts.append(self.leave_out(gone, mu).held_out(fitted).residual[-1:, :])
        return HeldOut(xp.concat(parts, axis=0))

    def held_out_folds(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        """From the total minus the moments of each fold: two passes over the rows for all folds
        and mus, and an eigendecomposition for each fold; folds with few rows use a small system at
        each mu.

        Disjoint deletions share a pass; overlapping ones, as in repeated cross-validation, take
        one each.
        """
        small = {} if self.dropping is not None else self._small_folds(targets, mus, deletions)
        others = [deletion for number, deletion in enumerate(deletions) if number not in small]
        if not others:
            return namespace(targets.Y).concat(list(small.values()), axis=1)
        values = self._by_moments(targets, mus, others)
        return values if not small else in_order(small, values, deletions)

    def _small_folds(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> dict[int, Array]:
        """The folds with few rows relative to the features, by index."""
        few = SMALL_FOLD * self.solved.W.shape[1]
        chosen = [i for i, (deleted, _) in enumerate(deletions) if 0 < len(deleted) <= few]
        if not chosen:
            return {}
        systems = FoldSystems(self.scores, self.Q0, self.solved.inverse(mus))
        return systems.held_out(targets.Y, self.path(targets, mus), chosen, deletions)

    def _by_moments(
        self, targets: Targets, mus: np.ndarray, deletions: Sequence[Deletion]
    ) -> Array:
        constraint = None if self.dropping is None else self.dropping.constraint
        Y, xp = targets.Y, namespace(targets.Y)
        sum_Y = xp.sum(Y if self.row_scale is None else self.row_scale * Y, axis=0)
        total = self.solved.with_targets(targets.z, sum_Y, Y.T @ Y)
        models = FoldModels(self.data, self.features, self.row_scale, total, constraint)
        return models.held_out(Y, mus, deletions)


# ---- what happens to a block of rows; plain functions, so that they travel to other processes ----


def _unchanged(B: Array) -> Array:
    return B


def _scores(rotated: Callable[[Array], Array], X: Array, scale: Array | None) -> Array:
    S = rotated(X)
    return S if scale is None else scale * S


def _project_job(score: Callable[..., Array], X: Array, Y: Array, scale: Array | None) -> Array:
    return score(X, scale).T @ Y


def _path_job(
    score: Callable[..., Array],
    inverse: Array,
    coef: Array,
    mean_Y: Array,
    bias: float,
    X: Array,
    Y: Array,
    scale: Array | None,
) -> tuple[Array, Array]:
    """Residuals (k, m·t) and 1 - leverage (k, m) of a block."""
    xp = namespace(Y)
    S = score(X, scale)
    centred = Y - (mean_Y if scale is None else scale * mean_Y)
    spread = centred[:, None, :] + xp.zeros_like(inverse[:1, :, None])
    residual = xp.reshape(spread, (Y.shape[0], coef.shape[1])) - S @ coef
    own = bias * (xp.ones_like(Y[:, :1]) if scale is None else scale**2)
    return residual, 1.0 - own - (S**2) @ inverse


def _squares_job(
    path: Callable[..., tuple[Array, Array]], m: int, X: Array, Y: Array, scale: Array | None
) -> Array:
    """Sums (m,) of squared leave-one-out residuals of a block."""
    residual, one_minus_h = path(X, Y, scale)
    xp = namespace(residual)
    squares = xp.sum(xp.reshape(residual**2, (residual.shape[0], m, -1)), axis=2)
    return xp.sum(squares / one_minus_h**2, axis=0)


def _values_job(
    score: Callable[..., Array], coef: Array, mean_Y: Array, X: Array, scale: Array | None
) -> Array:
    """Fitted values (k, t), scaled as the rows are."""
    return score(X, scale) @ coef + (mean_Y if scale is None else scale * mean_Y)
