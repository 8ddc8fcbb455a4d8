r"""The smoother of explicit features, read block by block: nothing of size n×n is formed, and n×p
only where asked for.

Features Z (n, p) of rows with scale s = √w (1 without weights) have the scores and the one
decomposition

    S = s∘(Z - z̄) W,   SᵀS = diag(λ)          of p×p, from the `Moments` of the rows (first pass)
    H = Q₀Q₀ᵀ + S diag(1/(λ+μ)) Sᵀ             Q₀ = s/‖s‖ where the bias is free

so that, in a second pass, all μ at once,

    r = Y - Q₀Q₀ᵀY - S (Ω z),  z = SᵀY,  Ω = diag(1/(λ+μ)),      1 - h = 1 - q - S² Ω1

with held-out values as for any smoother. k-fold takes one pass for the moments of each fold and one
for its predictions. Ridge on the features of landmarks is both penalties: Z = K_nm K_mm^(-1/2) for
μ‖f‖² (Nyström), Z = K_nm for μ‖α‖² (sparse expansion).

**Dropped landmarks.** Landmarks that are themselves training rows can be made to leave with their
row: the model without row i then has α_i = 0, as a refit without that landmark would. With α = N w
the coefficients of the landmarks, D = N_TΩN_Tᵀ and B = SΩN_Tᵀ for the landmarks T among the deleted
rows, the hat matrix of the model without them is S(Ω - ΩN_TᵀD⁻¹N_TΩ)Sᵀ, and for a single row

    ρ = (d r + b α) / ((1 - h) d + b²),    ν = (α - b ρ) / d.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
    zeros_like_shape,
)
from .holdout import row_numbers
from .moments import MomentFit, Moments, merge_folds
from .smoother import Fitted, HeldOut, Removal
from .spectrum import Spectrum, machine_epsilon, orthonormal

KEPT_ELEMENTS = 1 << 26  # of a path over mu that is kept for the fit at one of its values
REPLACEABLE = (
    1e-8  # a landmark with at least this share of itself in the others is replaced by them
)
FOLD_ELEMENTS = 1 << 25  # of moments of folds that are accumulated in one pass

Deletions = list[
    tuple[np.ndarray, np.ndarray]
]  # rows deleted together, and the positions among them of those tested


class FeatureMap(Protocol):
    """Features (k, p) of a block of rows.

    And (features - mean) W, for which there may be a shorter way.
    """

    def __call__(self, X: Array, /) -> Array: ...
    def rotated(self, W: Array, mean: Array) -> Callable[[Array], Array]: ...


class Rows(Protocol):
    """Rows in blocks, wherever they are: in memory, in a file, on a cluster."""

    @property
    def n_samples(self) -> int: ...
    @property
    def like(self) -> Array: ...
    def map(self, function: Callable[..., Any], *per_row: Array | None) -> Iterator[Any]:
        """function(block, *parts of per_row) for every block, in the order of the rows.

        Arrays of n rows are cut to the block's.
        """

    def reduce(
        self, function: Callable[..., Any], merge: Callable[[Any, Any], Any], *per_row: Array | None
    ) -> Any: ...
    def take(self, rows: np.ndarray) -> Array: ...


@dataclass(frozen=True)
class FeatureFitted(Fitted):
    """A fit that knows its coefficients along the eigenvectors (r, t) and the mean of its targets
    (t,).
    """

    coef: Array | None = None
    mean_Y: Array | None = None

    def rows(self, rows: Array) -> Fitted:
        dual = None if self.dual is None else take(self.dual, rows)
        return Fitted(take(self.Y, rows), take(self.residual, rows), dual)


@dataclass(frozen=True)
class FeatureRemoval(Removal):
    """A removal that remembers the scores of its rows (m, r) and its landmarks' coordinates (q, r),
    for refits.
    """

    scores: Array | None = None
    N: Array | None = None
    landmarks: np.ndarray | None = None


@dataclass(frozen=True)
class Dropping:
    """Landmarks that leave with their rows: their row numbers (q,), -1 where they are none, and α =
    N w in feature coordinates (q, p).

    Where K_mm is singular, α is not unique, and leaving out a landmark that the others can replace
    (a repeated row, a very smooth kernel) takes nothing from the model. With K_mm = U diag(λ) Uᵀ,
    the directions that leave with a set T of landmarks are the combinations E of them with
    E'U_TU_T'E = 1; `directions` gives these, all of T where U is None (dual norm) or K_mm regular.
    """

    rows: np.ndarray
    N: Array
    U: Array | None = None

    def directions(self, landmarks: np.ndarray) -> Array:
        """E (k, q), the orthonormal combinations of k landmarks that leave with them."""
        if self.U is None:
            return eye_like(len(landmarks), self.N)
        own = take(self.U, landmarks)
        share, E = eigh_overwriting(own @ own.T)
        kept = [
            number for number in range(len(landmarks)) if float(share[number]) > 1.0 - REPLACEABLE
        ]
        return take(E.T, np.asarray(kept, dtype=int)).T

    def within(self, rows: np.ndarray) -> np.ndarray:
        """The landmarks among some rows."""
        return np.flatnonzero((self.rows >= 0) & np.isin(self.rows, rows))

    def irreplaceable(self) -> np.ndarray:
        """The landmarks that are rows and, left out alone, take something from the model."""
        xp = namespace(self.N)
        own = self.rows >= 0
        if self.U is not None:
            own = own & np.asarray(
                [float(share) > 1.0 - REPLACEABLE for share in xp.sum(self.U**2, axis=1)]
            )
        return np.flatnonzero(own)


@dataclass
class _Path:
    """Residuals (m, n, t) and 1 - leverage (m, n) at some mus, for one Y."""

    Y: Array
    mus: np.ndarray
    residual: Array
    one_minus_h: Array


@dataclass(frozen=True)
class FeatureNorm:
    """Ridge regression on features that are computed block by block; see the module's docstring."""

    data: Rows
    features: FeatureMap
    row_scale: Array | None
    free_bias: bool
    solved: MomentFit
    targets: Array
    dropping: Dropping | None = None
    _kept: dict[str, _Path] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls, data: Rows, features: FeatureMap, row_scale: Array | None, free_bias: bool, Y: Array
    ) -> FeatureNorm:
        """The first pass: moments of all rows, with scaled targets Y (n, t)."""
        moments = data.reduce(partial(_moments_job, features), Moments.merge, Y, row_scale)
        return cls(data, features, row_scale, free_bias, MomentFit(moments, free_bias), Y)

    # ---- what every smoother says of itself ------------------------------------------------------

    @property
    def n_samples(self) -> int:
        return self.data.n_samples

    @cached_property
    def Q0(self) -> Array:
        like = self.targets
        if not self.free_bias:
            return zeros_like_shape((self.n_samples, 0), like)
        return orthonormal(
            namespace(like).ones_like(like[:, :1]) if self.row_scale is None else self.row_scale
        )

    @property
    def KQ0(self) -> Array:
        raise NotImplementedError("the intercept of a feature model comes from its means.")

    @property
    def conditioning(self) -> float:
        """eps·λ_max: over mu, the relative error that float64 leaves in a held-out value."""
        return self.solved.conditioning

    @property
    def largest(self) -> float:
        return self.solved.largest

    @property
    def trace(self) -> float:
        return float(namespace(self.solved.eigenvalues).sum(self.solved.eigenvalues))

    @property
    def lower_bound(self) -> float:
        return 0.0

    def check(self, mus: np.ndarray) -> None:
        """Nothing to refuse: A has no negative eigenvalues."""

    def can_leave_out(self, n_rows: int) -> bool:
        return True

    @cached_property
    def spectrum(self) -> Spectrum:
        """The same smoother with its V (n, r) in memory, for those who need it whole."""
        xp = namespace(self.targets)
        noise = self.solved.eigenvalues.shape[0] * machine_epsilon(self.targets) * self.largest
        kept = np.flatnonzero(
            np.asarray([float(value) > noise for value in self.solved.eigenvalues])
        )
        eigenvalues = take(self.solved.eigenvalues, kept)
        S = xp.concat(list(self.data.map(self._scores_job, self.row_scale)), axis=0)
        return Spectrum(take(S.T, kept).T / xp.sqrt(eigenvalues), eigenvalues, self.Q0)

    # ---- passes over the rows --------------------------------------------------------------------

    @cached_property
    def _scores_job(self) -> Callable[..., Array]:
        return partial(_scores, self.features.rotated(self.solved.W, self.solved.mean_Z))

    def scores(self, rows: np.ndarray) -> Array:
        """S at some rows (k, r)."""
        if len(rows) == 0:
            return zeros_like_shape((0, self.solved.W.shape[1]), self.targets)
        scale = None if self.row_scale is None else take(self.row_scale, rows)
        return self._scores_job(self.data.take(rows), scale)

    def project(self, Y: Array) -> Array:
        """z = SᵀY (r, t); known without a pass for the targets that the moments were made with."""
        if Y is self.targets:
            return self.solved.z
        return self.data.reduce(
            partial(_project_job, self._scores_job), operator.add, Y, self.row_scale
        )

    def mean_Y(self, Y: Array) -> Array:
        """The weighted mean (t,) that a free bias follows, in the units of unscaled targets.

        Zero without one.
        """
        if Y is self.targets:
            return self.solved.mean_Y
        xp = namespace(Y)
        if not self.free_bias:
            return xp.zeros_like(Y[0, :])
        return (
            xp.sum(Y if self.row_scale is None else self.row_scale * Y, axis=0)
            / self.solved.moments.weight
        )

    def _path(self, Y: Array, mus: np.ndarray) -> _Path:
        """Residuals and 1 - leverage at all mus in one pass, or as kept from an earlier one."""
        kept = self._kept.get("path")
        if kept is not None and kept.Y is Y and np.isin(mus, kept.mus).all():
            where = [int(np.flatnonzero(kept.mus == mu)[0]) for mu in mus]
            if len(where) == len(kept.mus) and where == list(range(len(where))):
                return kept
            return _Path(Y, mus, take(kept.residual, where), take(kept.one_minus_h, where))
        xp = namespace(Y)
        m, t, n = len(mus), Y.shape[1], self.n_samples
        inverse = self.solved.inverse(mus)
        r = inverse.shape[0]
        coef = xp.reshape(inverse[:, :, None] * self.project(Y)[:, None, :], (r, m * t))
        job = partial(
            _path_job, self._scores_job, inverse, coef, self.mean_Y(Y), self._bias_leverage
        )
        residual, one_minus_h = zeros_like_shape((m, n, t), Y), zeros_like_shape((m, n), Y)
        start = 0
        for block_residual, block_leverage in self.data.map(job, Y, self.row_scale):
            rows = slice(start, start + block_residual.shape[0])
            residual[:, rows, :] = xp.permute_dims(
                xp.reshape(block_residual, (-1, m, t)), (1, 0, 2)
            )
            one_minus_h[:, rows] = block_leverage.T
            start = rows.stop
        path = _Path(Y, np.asarray(mus, dtype=float), residual, one_minus_h)
        if m * n * (t + 1) <= KEPT_ELEMENTS or m == 1:
            self._kept["path"] = path
        return path

    @property
    def _bias_leverage(self) -> float:
        return 1.0 / self.solved.moments.weight if self.free_bias else 0.0

    # ---- fit -------------------------------------------------------------------------------------

    def fit(self, Y: Array, mu: float) -> FeatureFitted:
        residual = self._path(Y, np.asarray([mu])).residual[0, ...]
        coef = self.solved.inverse(np.asarray([mu])) * self.project(Y)
        return FeatureFitted(Y, residual, self._row_dual(coef), coef, self.mean_Y(Y))

    def _row_dual(self, coef: Array) -> Array | None:
        """Where landmarks are dropped with their rows.

        Their α in the place of those rows (n, t), zero elsewhere.
        """
        if self.dropping is None:
            return None
        own = np.flatnonzero(self.dropping.rows >= 0)
        alpha = take(self.dropping.N @ (self.solved.W @ coef), own)
        return replace_rows(
            zeros_like_shape((self.n_samples, coef.shape[1]), coef), self.dropping.rows[own], alpha
        )

    def feature_coef(self, fitted: FeatureFitted) -> Array:
        """Coefficients of the features (p, t)."""
        return self.solved.W @ fitted.coef

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        raise NotImplementedError("the coefficients of a feature model belong to its features.")

    def leverage(self, mu: float) -> Array:
        kept = self._kept.get("path")
        Y = self.targets if kept is None else kept.Y
        return 1.0 - self._path(Y, np.asarray([mu])).one_minus_h[0, :]

    def residual_scatter(self, Y: Array, mus: np.ndarray) -> Array:
        """Yᵀ(I - H)Y (m, t, t) from the moments: no pass where Y are the targets."""
        xp = namespace(Y)
        z = self.project(Y)
        scatter = (
            self.solved.target_scatter
            if Y is self.targets
            else Y.T @ (Y - self.Q0 @ (self.Q0.T @ Y))
        )
        inverse = self.solved.inverse(mus)
        return scatter - xp.matrix_transpose(z[None, :, :] * inverse.T[:, :, None]) @ z[None, :, :]

    # ---- held-out values -------------------------------------------------------------------------

    def leave_one_out(self, Y: Array, mus: np.ndarray) -> HeldOut:
        """Held-out residuals (m, n, t): r/(1 - h), for all mu in one pass.

        Dropped landmarks leave with their rows.
        """
        path = self._path(Y, np.asarray(mus, dtype=float))
        rho = path.residual / path.one_minus_h[:, :, None]
        if self.dropping is None:
            return HeldOut(rho)
        return self._leave_one_out_dropping(Y, np.asarray(mus, dtype=float), path, rho)

    def _leave_one_out_dropping(
        self, Y: Array, mus: np.ndarray, path: _Path, rho: Array
    ) -> HeldOut:
        xp = namespace(Y)
        assert self.dropping is not None
        own = self.dropping.irreplaceable()
        rows = self.dropping.rows[own]
        force = xp.zeros_like(rho)
        if len(own) == 0:
            return HeldOut(rho, force)
        N, S = take(self.dropping.N, own) @ self.solved.W, self.scores(rows)
        inverse = self.solved.inverse(mus)
        alpha = N @ (inverse.T[:, :, None] * self.project(Y))
        d, b = (N**2 @ inverse).T[:, :, None], ((S * N) @ inverse).T[:, :, None]
        new_rho, new_force = [], []
        for j in range(len(mus)):
            r, o = take(path.residual[j, ...], rows), take(path.one_minus_h[j, :][:, None], rows)
            row_rho = (d[j, ...] * r + b[j, ...] * alpha[j, ...]) / (o * d[j, ...] + b[j, ...] ** 2)
            new_rho.append(replace_rows(rho[j, ...], rows, row_rho))
            new_force.append(
                replace_rows(force[j, ...], rows, (alpha[j, ...] - b[j, ...] * row_rho) / d[j, ...])
            )
        return HeldOut(xp.stack(new_rho), xp.stack(new_force))

    def leave_out(self, rows: Array, mu: float) -> FeatureRemoval:
        """ρ solves (I - H)ρ = r at the deleted rows, through the p×p side where they are more than
        the features.
        """
        rows = row_numbers(rows, self.n_samples)
        S = self.scores(rows)
        omega = self.solved.inverse(np.asarray([mu]))[:, 0]
        bias = take(self.Q0, rows)
        if self.dropping is None:
            factor = S * namespace(S).sqrt(omega)
            solve = _complement_solver(namespace(S).concat([bias, factor], axis=1))
            return FeatureRemoval(rows, lambda fitted: HeldOut(solve(fitted.residual)), S)
        return self._leave_out_dropping(rows, S, omega, bias)

    def _leave_out_dropping(
        self, rows: np.ndarray, S: Array, omega: Array, bias: Array
    ) -> FeatureRemoval:
        assert self.dropping is not None
        xp = namespace(S)
        position = np.full(self.n_samples, -1)
        position[rows] = np.arange(len(rows))
        landmarks = self.dropping.within(rows)
        where = position[self.dropping.rows[landmarks]]
        E = self.dropping.directions(landmarks)
        N = E.T @ take(self.dropping.N, landmarks) @ self.solved.W
        solve_D = spd_solver((N * omega) @ N.T) if N.shape[0] else (lambda B: B)
        B = (S * omega) @ N.T
        reduced = eye_like(S.shape[1], S) * omega - (omega[:, None] * N.T) @ solve_D(N * omega)
        values, vectors = eigh_overwriting(0.5 * (reduced + reduced.T))
        root = vectors * xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values)))
        solve = _complement_solver(xp.concat([bias, S @ root], axis=1))

        def held_out(fitted: Fitted) -> HeldOut:
            alpha = E.T @ take(fitted.dual, where)
            rho = solve(fitted.residual + B @ solve_D(alpha))
            force = E @ solve_D(alpha - B.T @ rho)
            return HeldOut(rho, replace_rows(xp.zeros_like(rho), where, force))

        return FeatureRemoval(
            rows, held_out, S, take(self.dropping.N, landmarks) @ self.solved.W, where
        )

    def refit_without(self, fitted: Fitted, removal: Removal, mu: float) -> FeatureFitted:
        """The fit without the removed rows.

        Coefficients Ω(z - S_Teᵀρ - N_Tᵀν), bias from the mean of Y less s∘ρ.
        """
        assert isinstance(removal, FeatureRemoval) and isinstance(fitted, FeatureFitted)
        held_out = removal.held_out(fitted)
        xp = namespace(fitted.Y)
        rows, rho = removal.rows, held_out.residual
        pull = removal.scores.T @ rho  # type: ignore[union-attr]
        if removal.N is not None:
            pull = pull + removal.N.T @ take(held_out.force, removal.landmarks)
        coef = fitted.coef - self.solved.inverse(np.asarray([mu])) * pull
        scale = 1.0 if self.row_scale is None else take(self.row_scale, rows)
        mean_Y = fitted.mean_Y
        if self.free_bias:
            mean_Y = mean_Y - xp.sum(scale * rho, axis=0) / self.solved.moments.weight
        Y = replace_rows(fitted.Y, rows, take(fitted.Y, rows) - rho)
        job = partial(_values_job, self._scores_job, coef, mean_Y)
        values = xp.concat(list(self.data.map(job, self.row_scale)), axis=0)
        return FeatureFitted(Y, Y - values, self._row_dual(coef), coef, mean_Y)

    def held_out_path(self, Y: Array, mus: np.ndarray, deletions: Deletions) -> Array:
        """Held-out values (m, k, t) of the tested rows of every deletion, in their order, for all
        mu: two passes over the rows.

        Disjoint deletions share a pass; overlapping ones, as of repeated cross-validation, take one
        each.
        """
        xp = namespace(Y)
        m, t = len(mus), Y.shape[1]
        values: list[Array | None] = [None] * len(deletions)
        features = self.solved.moments.ZZ.shape[0]
        most = max(1, FOLD_ELEMENTS // features**2)
        for layer in _disjoint(deletions, self.n_samples, most):
            fold = np.full(self.n_samples, -1)
            for number in layer:
                fold[deletions[number][0]] = number
            models = self._fold_models(Y, mus, layer, fold, deletions)
            tested = np.full(self.n_samples, -1)
            for number in layer:
                deleted, test = deletions[number]
                tested[deleted[test]] = number
            job = partial(_fold_values_job, self.features, models)
            collected = xp.concat(list(self.data.map(job, tested[:, None], self.row_scale)), axis=0)
            place = np.full(self.n_samples, -1)
            place[np.flatnonzero(tested >= 0)] = np.arange(int((tested >= 0).sum()))
            for number in layer:
                deleted, test = deletions[number]
                rows = take(collected, place[deleted[test]])
                values[number] = xp.permute_dims(xp.reshape(rows, (-1, m, t)), (1, 0, 2))
        return xp.concat(values, axis=1)

    def _fold_models(
        self, Y: Array, mus: np.ndarray, layer: list[int], fold: np.ndarray, deletions: Deletions
    ) -> dict[int, tuple[Array, Array]]:
        """Coefficients (p, m·t) and intercepts (m·t) of every deletion of a layer, from the total
        less the fold's moments.
        """
        xp = namespace(Y)
        own = self.data.reduce(
            partial(_fold_moments_job, self.features), merge_folds, fold[:, None], Y, self.row_scale
        )
        total = self.solved.moments
        if Y is not self.targets:
            total = self.data.reduce(
                partial(_moments_job, self.features), Moments.merge, Y, self.row_scale
            )
        models = {}
        for number in layer:
            rest = (
                total.without(own[number]) if number in own else total
            )  # a deletion may be empty: all its rows have weight zero
            trained = MomentFit(rest, self.free_bias)
            coef = trained.coef(mus, self._constraint(deletions[number][0]))
            intercept = trained.intercept(coef)
            flat = xp.reshape(xp.permute_dims(coef, (1, 0, 2)), (coef.shape[1], -1))
            models[number] = (flat, xp.reshape(intercept, (-1,)))
        return models

    def _constraint(self, deleted: np.ndarray) -> Array | None:
        if self.dropping is None:
            return None
        landmarks = self.dropping.within(deleted)
        return self.dropping.directions(landmarks).T @ take(self.dropping.N, landmarks)


def _complement_solver(L: Array) -> Callable[[Array], Array]:
    """R → (I - LLᵀ)⁻¹R for L (k, p): as it is, or I + L(I - LᵀL)⁻¹Lᵀ where k > p."""
    k, p = L.shape
    if k <= p:
        return spd_solver(eye_like(k, L) - L @ L.T)
    solve = spd_solver(eye_like(p, L) - L.T @ L)
    return lambda R: R + L @ solve(L.T @ R)


def _disjoint(deletions: Deletions, n: int, most: int) -> list[list[int]]:
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


# ---- what happens to a block of rows; plain functions, so that they travel to other processes ----


def _moments_job(features: FeatureMap, X: Array, Y: Array, scale: Array | None) -> Moments:
    """Targets come scaled; the moments want them as they are."""
    return Moments.of(
        features(X), Y if scale is None else Y / scale, None if scale is None else scale**2
    )


def _scores(rotated: Callable[[Array], Array], X: Array, scale: Array | None) -> Array:
    S = rotated(X)
    return S if scale is None else scale * S


def _project_job(scores: Callable[..., Array], X: Array, Y: Array, scale: Array | None) -> Array:
    return scores(X, scale).T @ Y


def _path_job(
    scores: Callable[..., Array],
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
    S = scores(X, scale)
    centred = Y - (mean_Y if scale is None else scale * mean_Y)
    residual = (
        xp.reshape(centred[:, None, :] + xp.zeros_like(inverse[:1, :, None]), (-1, coef.shape[1]))
        - S @ coef
    )
    own = bias * (xp.ones_like(Y[:, :1]) if scale is None else scale**2)
    return residual, 1.0 - own - (S**2) @ inverse


def _values_job(
    scores: Callable[..., Array], coef: Array, mean_Y: Array, X: Array, scale: Array | None
) -> Array:
    """Fitted values (k, t), scaled as the rows are."""
    return scores(X, scale) @ coef + (mean_Y if scale is None else scale * mean_Y)


def _fold_moments_job(
    features: FeatureMap, X: Array, fold: np.ndarray, Y: Array, scale: Array | None
) -> dict[int, Moments]:
    """The moments of each fold's part of a block."""
    fold = fold[:, 0]
    numbers = np.unique(fold[fold >= 0])
    if len(numbers) == 0:
        return {}
    Z = features(X)
    parts = {}
    for number in numbers:
        rows = np.flatnonzero(fold == number)
        own_scale = None if scale is None else take(scale, rows)
        own_Y = take(Y, rows) if own_scale is None else take(Y, rows) / own_scale
        parts[int(number)] = Moments.of(
            take(Z, rows), own_Y, None if own_scale is None else own_scale**2
        )
    return parts


def _fold_values_job(
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
    xp = namespace(first)
    if len(tested) == 0:
        return zeros_like_shape((0, first.shape[0]), first)
    Z = take(features(X), tested)
    order = np.argsort(fold[tested], kind="stable")
    parts = []
    for number in np.unique(fold[tested]):
        coef, intercept = models[int(number)]
        parts.append(take(Z, np.flatnonzero(fold[tested] == number)) @ coef + intercept)
    values = take(xp.concat(parts, axis=0), np.argsort(order))
    return values if scale is None else take(scale, tested) * values
