r"""The function norm through a block band form instead of eigenvectors: the same numbers, several
times sooner on a GPU.

A GPU's eigendecomposition runs far below the rate of its matrix products, and held-out values need
no eigenvectors: any orthogonal reduction that is cheap to shift and to solve will do. With A = G +
cQ₀Q₀ᵀ (see `spectrum.project_off`),

    A = Q T Qᵀ,   T block tridiagonal with diagonal blocks D_k and blocks B_k below them

by a Householder QR of one panel of b columns at a time and a two-sided update of what remains, all
in matrix products. `Q` takes the place of A, so that one n×n matrix and narrow panels are all the
memory it needs. Then, for a whole batch of μ at once, T + μI = LLᵀ block by block, X = L⁻¹Qᵀ, and

    (A + μI)⁻¹ = XᵀX
    I - H = μ (A + μI)⁻¹ - μ/(c + μ) Q₀Q₀ᵀ
    1 - h_i = μ Σ_k X_ki² - μ/(c + μ) ‖Q₀[i]‖²,      Y - Ŷ = μ Q (T + μI)⁻¹ Qᵀ (Y - Q₀Q₀ᵀY)

Costs: 10/3 n³ operations for the reduction with Q, 4 n² b for each μ. On CPUs eigh is the faster
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    cholesky_stack,
    eigh_overwriting,
    eye_like,
    householder,
    namespace,
    reflection_factor,
    replace_rows,
    spd_solver,
    subtract_product,
    take,
    to_numpy,
    triangular_inverse,
    zeros_like_shape,
)
from .smoother import Fitted, FunctionNorm, HeldOut, Removal
from .spectrum import (
    Spectrum,
    machine_epsilon,
    orthonormal,
    project_off,
    spectrum_of_kernel,
    without_noise,
)

WIDTH = 128  # of a block, b
PANELS_TOGETHER = 4  # where their reflections are multiplied to Q
WORKSPACE = (
    2**31
)  # bytes that a batch of mu may use, or as much as one n×n matrix where that is more
DIRECT = 512  # rows up to which the largest eigenvalue comes from all of them
KRYLOV_COLUMNS, KRYLOV_STEPS = 8, 24


@dataclass(frozen=True)
class Band:
    """A = Q T Qᵀ with Q (n, n) orthogonal and T block tridiagonal.

    `diagonal` blocks D_k, and B_k `below` them (one fewer).
    """

    Q: Array
    diagonal: list[Array]
    below: list[Array]

    @cached_property
    def rows(self) -> list[slice]:
        """Where each block lies; the last may be narrower."""
        stops = np.cumsum([block.shape[0] for block in self.diagonal]).tolist()
        return [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]

    def factor(self, mus: Array) -> BandFactor:
        """Cholesky's factors of T + μI for a batch of μ; NotPositiveDefiniteError where one has
        none.

        Downwards, with C_k = B_k L_{k-1}⁻ᵀ:  L_k L_kᵀ = D_k + μI - C_k C_kᵀ.
        """
        inverse: list[Array] = []
        link: list[Array] = []
        failures = []
        for k, D in enumerate(self.diagonal):
            S = D + mus[:, None, None] * eye_like(D.shape[0], D)
            if k:
                C = self.below[k - 1] @ _transpose(inverse[-1])
                subtract_product(S, C, _transpose(C))
            L, failed = cholesky_stack(S)
            inverse.append(triangular_inverse(L))
            failures.append(failed)
            if k:
                link.append(inverse[-1] @ C)
        if bool(namespace(mus).any(namespace(mus).stack(failures))):
            raise NotPositiveDefiniteError
        return BandFactor(self.rows, inverse, link)

    def dense(self) -> Array:
        """T as an n×n matrix."""
        T = zeros_like_shape(tuple(self.Q.shape), self.Q)
        for k, rows in enumerate(self.rows):
            T[rows, rows] = self.diagonal[k]
            if k:
                T[rows, self.rows[k - 1]] = self.below[k - 1]
                T[self.rows[k - 1], rows] = self.below[k - 1].T
        return T


@dataclass(frozen=True)
class BandFactor:
    """T + μI = LLᵀ for m values of μ, kept as L_k⁻¹ (`inverse`) and L_k⁻¹C_k (`link`), so that
    solving is multiplying.
    """

    rows: list[slice]
    inverse: list[Array]
    link: list[Array]

    def at(self, indices: list[int]) -> BandFactor:
        """The factors of some of the μ."""
        if indices == list(range(indices[0], indices[-1] + 1)):
            chosen = slice(indices[0], indices[-1] + 1)
            return BandFactor(
                self.rows,
                [block[chosen, ...] for block in self.inverse],
                [block[chosen, ...] for block in self.link],
            )
        return BandFactor(
            self.rows,
            [take(block, indices) for block in self.inverse],
            [take(block, indices) for block in self.link],
        )

    def forward_blocks(self, Z: Array) -> Iterator[Array]:
        """The blocks (m, b, t) of X = L⁻¹Z for Z (n, t) or (m, n, t), downwards.

        X_k = L_k⁻¹(Z_k - C_k X_{k-1}).
        """
        previous: Array = None
        for k, rows in enumerate(self.rows):
            X = self.inverse[k] @ Z[..., rows, :]
            if k:
                subtract_product(X, self.link[k - 1], previous)
            yield X
            previous = X

    def forward(self, Z: Array) -> Array:
        """L⁻¹Z, (m, n, t)."""
        return namespace(Z).concat(list(self.forward_blocks(Z)), axis=1)

    def backward(self, X: Array) -> Array:
        """L⁻ᵀX for X (m, n, t), upwards.

        W_k = L_k⁻ᵀ V_k with V_k = X_k - (L_{k+1}⁻¹C_{k+1})ᵀ V_{k+1}.
        """
        blocks: list[Array] = []
        previous: Array = None
        for k in reversed(range(len(self.rows))):
            V = X[:, self.rows[k], :]
            if blocks:
                V = V - _transpose(self.link[k]) @ previous
            blocks.append(_transpose(self.inverse[k]) @ V)
            previous = V
        return namespace(X).concat(blocks[::-1], axis=1)

    def solve(self, Z: Array) -> Array:
        """(T + μI)⁻¹ Z, (m, n, t)."""
        return self.backward(self.forward(Z))


def band_of(A: Array, width: int = WIDTH) -> Band:
    """The band form of a symmetric matrix (n, n), which is overwritten by Q.

    A panel's reflections I - V S Vᵀ change the trailing matrix by

        A ← A - X Vᵀ - V Xᵀ,   X = AVS - ½V(SᵀVᵀAVS)

    and V waits where the panel was. The last two blocks need no reflections. Cost: 2n³, and 4/3 n³
    for Q.
    """
    n = A.shape[0]
    diagonal, below, scales = [], [], []
    for start in range(0, n, width):
        stop = min(start + width, n)
        diagonal.append(_symmetric(A[start:stop, start:stop]))
        if n - stop > width:
            V, scale, R = householder(A[stop:, start:stop])
            _reflect_both_sides(A[stop:, stop:], V, reflection_factor(V, scale))
            A[stop:, start:stop] = V
            below.append(R)
            scales.append(scale)
        elif n > stop:
            below.append(A[stop:, start:stop] + 0.0)
    _accumulate(A, width, scales)
    return Band(A, diagonal, below)


def _reflect_both_sides(A: Array, V: Array, S: Array) -> None:
    """A ← (I - VSVᵀ)ᵀ A (I - VSVᵀ), in place."""
    xp = namespace(A)
    X = A @ (V @ S)
    X = X - 0.5 * (V @ (S.T @ (V.T @ X)))
    subtract_product(A, xp.concat([X, V], axis=1), xp.concat([V, X], axis=1).T)


def _accumulate(A: Array, width: int, scales: list[Array]) -> None:
    """Overwrite A, which holds the V of each panel, by the product Q of all reflections: the last
    ones first, on their own rows only.

    Several panels go together: side by side their V are one lower trapezoid, and
    `reflection_factor` does not mind.
    """
    xp = namespace(A)
    inner = A.shape[0]
    for last in range(len(scales), 0, -PANELS_TOGETHER):
        first = max(0, last - PANELS_TOGETHER)
        outer = (first + 1) * width
        V = xp.tril(A[outer:, first * width : last * width])
        S = reflection_factor(V, xp.concat(scales[first:last]))
        Q = A[outer:, outer:]
        _start_as_identity(Q, inner - outer)
        subtract_product(Q, V @ S, V.T @ Q)
        inner = outer
    _start_as_identity(A, inner)


def _start_as_identity(Q: Array, size: int) -> None:
    """The first rows and columns of Q as those of the identity."""
    Q[:size, :] = 0.0
    Q[:, :size] = 0.0
    Q[:size, :size] = eye_like(size, Q)


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)


def _transpose(A: Array) -> Array:
    return namespace(A).matrix_transpose(A)


def largest_eigenvalue(A: Array, Q0: Array) -> float:
    """max |λ| of A off its invariant columns Q0: by block Lanczos with full re-orthogonalisation,
    from a fixed start.

    What the residual of the best Ritz pair leaves open is added, so that the value errs upwards. A
    large eigenvalue of a kernel matrix stands apart from the rest, and a few steps find it to
    rounding. Cost: one product of A with a few columns each.
    """
    xp = namespace(A)
    n, u = Q0.shape
    if n == u:
        return 0.0
    if n <= DIRECT:
        return float(xp.max(xp.abs(xp.linalg.eigvalsh(A)[: n - u])))
    X = asarray_like(np.random.default_rng(0).normal(size=(n, min(KRYLOV_COLUMNS, n - u))), A)
    X = orthonormal(X - Q0 @ (Q0.T @ X))
    basis, images = X, A @ X
    for _ in range(KRYLOV_STEPS):
        values, vectors = np.linalg.eigh(
            to_numpy(_symmetric(basis.T @ images))
        )  # small: sooner on the host
        best = int(np.argmax(np.abs(values)))
        value, vector = float(values[best]), asarray_like(vectors[:, best], A)
        residual = float(xp.linalg.vector_norm(images @ vector - value * (basis @ vector)))
        if residual <= 1e-8 * abs(value):  # its square counts
            break
        X = images[:, -X.shape[1] :]
        for _ in range(2):  # once is not enough where the space is nearly exhausted
            X = orthonormal(X - Q0 @ (Q0.T @ X) - basis @ (basis.T @ X))
        basis, images = xp.concat([basis, X], axis=1), xp.concat([images, A @ X], axis=1)
    return abs(value) + residual


@dataclass(frozen=True)
class BandNorm:
    """Penalty μ‖f‖² from the band form: the answers of `FunctionNorm`, to rounding, for any μ and
    many at once.

    `shift` is the c of A = G + cQ₀Q₀ᵀ, `noise` what rounding leaves of a zero eigenvalue, `largest`
    λ_max of G.
    """

    band: Band
    Q0: Array
    KQ0: Array
    shift: float
    noise: float
    largest: float
    diagonal_sum: float
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of_kernel(cls, K: Array, Q0: Array, width: int | None = None) -> BandNorm:
        """From a symmetric kernel matrix (n, n), which is overwritten. Memory.

        That matrix and panels of `width` columns.
        """
        xp = namespace(K)
        n, u = Q0.shape
        KQ0 = K @ Q0
        entries = max(float(xp.max(K)), -float(xp.min(K)))
        noise = n * machine_epsilon(K) * min(float(xp.linalg.vector_norm(K)), n * entries)
        shift, _ = project_off(K, Q0)
        diagonal_sum = float(xp.sum(xp.linalg.diagonal(K))) - u * shift
        largest = largest_eigenvalue(K, Q0)
        if entries == 0 or largest <= noise:  # a constant kernel is not a very small one
            noise = diagonal_sum = largest = shift = 0.0
            K *= 0.0
        return cls(band_of(K, width or WIDTH), Q0, KQ0, shift, noise, largest, diagonal_sum)

    @property
    def n_samples(self) -> int:
        return int(self.Q0.shape[0])

    @property
    def conditioning(self) -> float:
        """eps·λ_max: over mu, the relative error that float64 leaves in a held-out value."""
        return machine_epsilon(self.Q0) * self.largest

    @property
    def definite(self) -> bool:
        """Whether no eigenvalue of G is below what rounding leaves of zero."""
        if "definite" not in self._kept:
            self._test_definiteness(np.zeros(0))
        return bool(self._kept["definite"])

    def _test_definiteness(self, mus: np.ndarray) -> None:
        """One factorisation at the level of noise.

        That of the mu which are asked for next comes with it at hardly any cost.
        """
        batch = mus[mus > self.noise][: self._batch_size(self.n_samples)]
        try:
            self._factor(np.append(self.noise or self.largest or 1.0, batch))
            self._kept["definite"] = True
        except NotPositiveDefiniteError:
            self._kept["definite"] = False

    @cached_property
    def eigenvalues(self) -> Array:
        """All of G's; needed for indefinite kernels only. Cost: eigvalsh of T."""
        xp = namespace(self.Q0)
        n, u = self.Q0.shape
        return without_noise(xp.linalg.eigvalsh(self.band.dense())[: n - u], self.noise)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigendecomposition after all, from T: for a mu that only it can tell from rounding.

        Cost: one eigh.
        """
        n, u = self.Q0.shape
        if self.largest == 0:  # nothing in T tells Q₀ from the rest
            empty = spectrum_of_kernel(zeros_like_shape((n, n), self.Q0), self.Q0)
            return Spectrum(empty.V, 0.0 * empty.eigenvalues, self.Q0)
        eigenvalues, U = eigh_overwriting(self.band.dense())
        return Spectrum(
            self.band.Q @ U[:, : n - u], without_noise(eigenvalues[: n - u], self.noise), self.Q0
        )

    @property
    def diagonal_form(self) -> FunctionNorm:
        return FunctionNorm(self.spectrum, self.KQ0)

    @property
    def trace(self) -> float:
        """Σ|λ|: the trace of G, of its absolute value where the kernel is indefinite."""
        xp = namespace(self.Q0)
        return self.diagonal_sum if self.definite else float(xp.sum(xp.abs(self.eigenvalues)))

    @cached_property
    def lower_bound(self) -> float:
        """mu must exceed this: -λ_min of an indefinite kernel, else 0."""
        return 0.0 if self.definite else max(0.0, -float(namespace(self.Q0).min(self.eigenvalues)))

    def check(self, mus: np.ndarray) -> None:
        """Refuse a mu at which H does not exist."""
        if "definite" not in self._kept:
            self._test_definiteness(mus)
        if np.any(mus <= self.lower_bound):
            raise ValueError(
                f"alpha must be greater than {self.lower_bound:.6g} for this kernel, got "
                f"{float(np.min(mus)):.6g} "
                "instead: the centred kernel matrix is indefinite (its smallest eigenvalue is "
                f"{-self.lower_bound:.6g}), "
                "and below that value the penalised problem has no minimum. "
                'Use a larger alpha, or penalty="dual", which needs no definiteness.'
            )

    def _batch_size(self, columns: int) -> int:
        """How many mu at a time the workspace holds.

        Their factors, and two blocks with so many columns.
        """
        n, b = self.n_samples, int(self.band.diagonal[0].shape[0])
        return max(1, max(WORKSPACE, 8 * n * n) // (16 * b * (n + columns)))

    def _batches(self, mus: np.ndarray, columns: int) -> Iterator[tuple[Array, BandFactor]]:
        size = self._batch_size(columns)
        for start in range(0, len(mus), size):
            part = mus[start : start + size]
            yield asarray_like(part, self.Q0), self._factor(part)

    def _factor(self, mus: np.ndarray) -> BandFactor:
        """The factors at the given mu.

        Those of the last batch are kept, for folds, labels and single mu ask for them again.
        """
        kept: tuple[np.ndarray, BandFactor] | None = self._kept.pop("factors", None)
        if kept is not None and np.all(np.isin(mus, kept[0])):
            self._kept["factors"] = kept
            return kept[1].at([int(np.flatnonzero(kept[0] == mu)[0]) for mu in mus])
        del kept  # before the next one is made
        factor = self.band.factor(asarray_like(mus, self.Q0))
        self._kept["factors"] = (np.array(mus), factor)
        return factor

    def _for_all(
        self,
        mus: np.ndarray,
        band: Callable[[np.ndarray], list[Array]],
        diagonal: Callable[[np.ndarray], Array],
    ) -> Array:
        """Results for every mu in order.

        Those at which rounding decides whether T + μI is definite go through the eigenvalues.
        """
        tiny = mus <= self.noise
        parts = [diagonal(mus[tiny])] if np.any(tiny) else []
        parts += band(mus[~tiny]) if not np.all(tiny) else []
        result = namespace(self.Q0).concat(parts, axis=0)
        return (
            take(result, np.argsort(np.argsort(~tiny, kind="stable"))) if np.any(tiny) else result
        )

    def _bias_part(self, mus: Array) -> Array:
        """μ/(c + μ) ‖Q₀[i]‖², (m, n)."""
        xp = namespace(mus)
        return (mus / (self.shift + mus))[:, None] * xp.sum(self.Q0**2, axis=1)

    def _centred(self, Y: Array) -> Array:
        return Y - self.Q0 @ (self.Q0.T @ Y)

    def _apply_Q(self, W: Array) -> Array:
        """QW for W (m, n, t), as one product."""
        xp = namespace(W)
        m, n, t = W.shape
        flat = xp.reshape(xp.permute_dims(W, (1, 0, 2)), (n, m * t))
        return xp.permute_dims(xp.reshape(self.band.Q @ flat, (n, m, t)), (1, 0, 2))

    def residual(self, Y: Array, mu: float) -> Array:
        """(I - H) Y = μ Q (T + μI)⁻¹ Qᵀ (Y - Q₀Q₀ᵀY), a block of columns at a time."""
        if mu <= self.noise:
            return self.diagonal_form.residual(Y, mu)
        factor = self._factor(np.asarray([mu]))
        blocks = [
            mu * self._apply_Q(factor.solve(self.band.Q.T @ self._centred(part)))[0, ...]
            for part in _column_blocks(Y)
        ]
        return namespace(Y).concat(blocks, axis=1)

    def fit(self, Y: Array, mu: float) -> Fitted:
        return Fitted(Y, self.residual(Y, mu))

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        """α = (Y - Ŷ)/μ."""
        return (
            self.diagonal_form.dual_coef(fitted, mu) if mu <= self.noise else fitted.residual / mu
        )

    def leverage(self, mu: float) -> Array:
        """h_ii, the share of its own fitted value that a row supplies; the bias's part included."""
        if mu <= self.noise:
            return self.diagonal_form.leverage(mu)
        return (
            1.0
            - self._one_minus_h(asarray_like([mu], self.Q0), self._factor(np.asarray([mu])))[0, :]
        )

    def _one_minus_h(self, mus: Array, factor: BandFactor) -> Array:
        """(m, n): μ diag(XᵀX) less the bias's part."""
        xp = namespace(mus)
        squares = sum(
            xp.linalg.vector_norm(X, axis=1) ** 2 for X in factor.forward_blocks(self.band.Q.T)
        )
        return mus[:, None] * squares - self._bias_part(mus)

    def leave_one_out(self, Y: Array, mus: np.ndarray) -> HeldOut:
        """Held-out residuals (m, n, t): r_i / (1 - h_i), equal to n refits."""
        z = self.band.Q.T @ self._centred(Y)

        def held_out(mus: np.ndarray) -> list[Array]:
            return [
                part[:, None, None]
                * self._apply_Q(factor.solve(z))
                / self._one_minus_h(part, factor)[:, :, None]
                for part, factor in self._batches(mus, self.n_samples)
            ]

        return HeldOut(
            self._for_all(
                mus, held_out, lambda mus: self.diagonal_form.leave_one_out(Y, mus).residual
            )
        )

    def residual_scatter(self, Y: Array, mus: np.ndarray) -> Array:
        """Yᵀ(I - H)Y for every mu: (m, t, t), as the Gram matrices μ XᵀX of X = L⁻¹QᵀY."""
        z = self.band.Q.T @ self._centred(Y)

        def scatter(mus: np.ndarray) -> list[Array]:
            parts = []
            for part, factor in self._batches(mus, int(Y.shape[1])):
                X = factor.forward(z)
                parts.append(part[:, None, None] * (_transpose(X) @ X))
            return parts

        return self._for_all(mus, scatter, lambda mus: self.diagonal_form.residual_scatter(Y, mus))

    def leave_out(self, rows: Array, mu: float) -> Removal:
        """ρ solves (I - H)_TeTe ρ = r_Te."""
        if mu <= self.noise:
            return self.diagonal_form.leave_out(rows, mu)
        X = self._roots(rows, mu)
        Q0 = take(self.Q0, rows)
        solve = spd_solver(mu * (X.T @ X) - (mu / (self.shift + mu)) * (Q0 @ Q0.T))
        return Removal(rows, lambda fitted: HeldOut(solve(fitted.residual)))

    def _roots(self, rows: Array, mu: float) -> Array:
        """The columns of X = L⁻¹Qᵀ at the given rows.

        All of X is kept for the folds that follow where that takes little memory.
        """
        factor = self._factor(np.asarray([mu]))
        if 8 * self.n_samples**2 > WORKSPACE:
            return factor.forward(take(self.band.Q, rows).T)[0, ...]
        kept: tuple[float, Array] | None = self._kept.pop("roots", None)
        if kept is None or kept[0] != mu:
            kept = (mu, _transpose(factor.forward(self.band.Q.T)[0, ...]))
        self._kept["roots"] = kept
        return _transpose(take(kept[1], rows))

    def can_leave_out(self, n_rows: int) -> bool:
        """Whether deleting so many rows is cheaper than decomposing the rest."""
        return n_rows <= self.n_samples // 2

    def refit_without(self, fitted: Fitted, removal: Removal, mu: float) -> Fitted:
        """Deleting rows equals replacing their targets by their held-out values, and fitting all of
        them again.
        """
        held_out = take(fitted.Y, removal.rows) - removal.held_out(fitted).residual
        return self.fit(replace_rows(fitted.Y, removal.rows, held_out), mu)

    def log_mu_derivatives(self, Y: Array, mu: float) -> tuple[Array, Array]:
        """(I - H) Y (3, n, t) and diag(I - H) (3, n): values, first and second derivatives in log
        μ.

        With M = I - H, whose eigenvalues are g = μ/(λ + μ):  M' = M - M²,  M'' = M - 3M² + 2M³. The diagonals of the powers are sums
        of squares: of X = L⁻¹Qᵀ, of W = L⁻ᵀX, and of L⁻¹W.
        """
        xp = namespace(Y)
        powers = [self.residual(Y, mu)]
        for _ in range(2):
            powers.append(self.residual(powers[-1], mu))
        factor, diagonals = self._factor(np.asarray([mu])), []
        for part in _column_blocks(self.band.Q.T):
            X = factor.forward(part)
            W = factor.backward(X)
            stages = (X[0, ...], W[0, ...], factor.forward(W)[0, ...])
            diagonals.append(
                xp.stack(
                    [mu**p * xp.sum(stage**2, axis=0) for p, stage in enumerate(stages, start=1)]
                )
            )
        bias = xp.stack(
            [(mu / (self.shift + mu)) ** p * xp.sum(self.Q0**2, axis=1) for p in (1, 2, 3)]
        )
        return _in_log_mu(xp.stack(powers)), _in_log_mu(xp.concat(diagonals, axis=1) - bias)


def _in_log_mu(powers: Array) -> Array:
    """M, M - M² and M - 3M² + 2M³ from M, M² and M³ along the first axis."""
    M, M2, M3 = powers[0, ...], powers[1, ...], powers[2, ...]
    return namespace(powers).stack([M, M - M2, M - 3.0 * M2 + 2.0 * M3])


def _column_blocks(Y: Array) -> Iterator[Array]:
    """Y (n, t) in blocks of at most 4096 columns.

    With many more, every step would hold several n×t arrays.
    """
    for start in range(0, max(Y.shape[1], 1), 4096):
        yield Y[:, start : min(start + 4096, Y.shape[1])]
