r"""The function norm through the block band form: the same numbers, sooner on a GPU.

With A = G + cQ₀Q₀ᵀ = Q T Qᵀ (see `band`), T + μI = LLᵀ for a batch of μ, and X = L⁻¹Qᵀ,

    I - H = μ XᵀX - μ/(c + μ) Q₀Q₀ᵀ
    1 - h_i = μ Σ_k X_ki² - μ/(c + μ) ‖Q₀[i]‖²,      Y - Ŷ = μ Q (T + μI)⁻¹ Qᵀ (Y - Q₀Q₀ᵀY).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    eigh_overwriting,
    namespace,
    spd_solver,
    take,
    zeros_like_shape,
)
from .band import WIDTH, Band, BandFactor, band_of, largest_eigenvalue, transposed
from .holdout import Fitted, PairSystem, Path, ResidualMap, Targets, delete_each
from .jets import HeldOutJets, Jet
from .smoothers import FunctionNorm, KernelSmoother, Response, dense_map
from .spectrum import (
    Spectrum,
    machine_epsilon,
    project_off,
    row_blocks,
    spectrum_of_kernel,
    without_noise,
)

WORKSPACE = 2**31  # bytes that a batch of mu may use, or one n×n matrix where that is more


class LastFactor:
    """The factors at the mus that were asked for last: folds, labels and single mu ask again.

    They are large and cheap to use, so one batch of them is kept, and all of X = L⁻¹Qᵀ at one mu.
    """

    def __init__(self, band: Band) -> None:
        self.band = band
        self._last: tuple[np.ndarray, BandFactor] | None = None
        self._roots: tuple[float, Array] | None = None

    def __call__(self, mus: np.ndarray) -> BandFactor:
        last, self._last = self._last, None
        if last is None or not np.all(np.isin(mus, last[0])):
            del last  # before the next one is made
            last = np.array(mus), self.band.factor(asarray_like(mus, self.band.Q))
        self._last = last
        return last[1].at([int(np.flatnonzero(last[0] == mu)[0]) for mu in mus])

    def batch_size(self, columns: int) -> int:
        """How many mu at a time the workspace holds: factors, and two blocks of so many columns."""
        n, b = int(self.band.Q.shape[0]), int(self.band.diagonal[0].shape[0])
        return max(1, max(WORKSPACE, 8 * n * n) // (16 * b * (n + columns)))

    def batches(self, mus: np.ndarray, columns: int) -> Iterator[tuple[Array, BandFactor]]:
        for rows in row_blocks(len(mus), self.batch_size(columns)):
            yield asarray_like(mus[rows], self.band.Q), self(mus[rows])

    def exist(self, mus: np.ndarray) -> bool:
        """Whether T + μI is positive definite at every mu."""
        try:
            self(mus)
        except NotPositiveDefiniteError:
            return False
        return True

    def roots(self, rows: np.ndarray, mu: float) -> Array:
        """The columns of X at the given rows."""
        factor = self(np.asarray([mu]))
        if 8 * int(self.band.Q.shape[0]) ** 2 > WORKSPACE:
            return factor.forward(take(self.band.Q, rows).T)[0, ...]
        if self._roots is None or self._roots[0] != mu:
            self._roots = (mu, transposed(factor.forward(self.band.Q.T)[0, ...]))
        return transposed(take(self._roots[1], rows))


@dataclass(frozen=True)
class BandNorm(KernelSmoother):
    """Penalty μ‖f‖² from the band form: the answers of `FunctionNorm`, to rounding, for any μ.

    `shift` is the c of A = G + cQ₀Q₀ᵀ, `noise` what rounding leaves of a zero eigenvalue, `largest`
    λ_max of G, `diagonal_sum` its trace. A mu at which rounding decides whether T + μI is definite
    goes through the eigenvalues after all.
    """

    band: Band
    Q0: Array
    KQ0: Array
    shift: float
    noise: float
    largest: float
    diagonal_sum: float
    conditioning: float  # eps·λ_max, or eps times the largest entry
    centres = True

    @classmethod
    def of_kernel(
        cls,
        K: Array,
        Q0: Array,
        width: int | None = None,
        KQ0: Array | None = None,
        entry: float = 0.0,
    ) -> BandNorm:
        """From a symmetric kernel matrix (n, n), which is overwritten.

        Where K came centered, KQ₀ and the largest entry are those before.
        Memory: that matrix and panels of `width` columns.
        """
        xp = namespace(K)
        n, u = Q0.shape
        KQ0 = K @ Q0 if KQ0 is None else KQ0
        entries = max(float(xp.max(K)), -float(xp.min(K)))
        size = min(float(xp.linalg.vector_norm(K)), n * entries)
        noise = n * machine_epsilon(K) * max(size, float(n) ** 0.5 * entry)
        shift, _ = project_off(K, Q0)
        diagonal_sum = float(xp.sum(xp.linalg.diagonal(K))) - u * shift
        largest = largest_eigenvalue(K, Q0)
        if entries == 0 or largest <= noise:  # a constant kernel is not a very small one
            noise = diagonal_sum = largest = shift = 0.0
            K *= 0.0
        conditioning = machine_epsilon(K) * max(largest, entry)
        sizes = shift, noise, largest, diagonal_sum, conditioning
        return cls(band_of(K, width or WIDTH), Q0, KQ0, *sizes)

    @cached_property
    def factor(self) -> LastFactor:
        return LastFactor(self.band)

    @cached_property
    def definite(self) -> bool:
        """Whether no eigenvalue of G is below what rounding leaves of zero."""
        return self.factor.exist(np.array([self.noise or self.largest or 1.0]))

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigendecomposition after all, from T: for what only it can tell from rounding."""
        n, u = self.Q0.shape
        if self.largest == 0:  # nothing in T tells Q₀ from the rest
            empty = spectrum_of_kernel(zeros_like_shape((n, n), self.Q0), self.Q0)
            return Spectrum(empty.V, 0.0 * empty.eigenvalues, self.Q0)
        eigenvalues, U = eigh_overwriting(self.band.dense())
        kept = without_noise(eigenvalues[: n - u], self.noise)
        return Spectrum(self.band.Q @ U[:, : n - u], kept, self.Q0)

    @cached_property
    def diagonal_form(self) -> FunctionNorm:
        return FunctionNorm(self.spectrum, self.KQ0)

    @cached_property
    def trace(self) -> float:
        """Σ|λ|: the trace of G, of its absolute value where the kernel is indefinite."""
        return self.diagonal_sum if self.definite else self.diagonal_form.trace

    @cached_property
    def lower_bound(self) -> float:
        """-λ_min of an indefinite kernel, else 0."""
        return 0.0 if self.definite else self.diagonal_form.lower_bound

    def admits(self, mus: np.ndarray) -> bool:
        """The factors at the given mus come with the answer where they fit into one batch."""
        together = len(mus) <= self.factor.batch_size(self.n_samples) and np.min(mus) > self.noise
        noise = self.noise or self.largest or 1.0
        if together and self.factor.exist(np.append(mus, noise)):
            return True
        return super().admits(mus)

    def project(self, Y: Array) -> Targets:
        """z = Qᵀ(Y - Q₀Q₀ᵀY)."""
        return Targets(Y, self.band.Q.T @ (Y - self.Q0 @ (self.Q0.T @ Y)))

    def path(self, targets: Targets, mus: np.ndarray) -> Path:
        mus = np.asarray(mus, dtype=float)
        tiny = mus <= self.noise
        paths = []
        if np.any(tiny):
            form = self.diagonal_form
            paths.append(form.path(form.project(targets.Y), mus[tiny]))
        if not np.all(tiny):
            paths += [
                Path(mus, self._residual(targets, mu, factor), self._one_minus_h(mu, factor))
                for mu, factor in self.factor.batches(mus[~tiny], self.n_samples)
            ]
        order = np.argsort(np.argsort(~tiny, kind="stable"))
        return Path(
            mus,
            _in_order([path.residual for path in paths], order),
            _in_order([path.one_minus_h for path in paths], order),
        )

    def _residual(self, targets: Targets, mus: Array, factor: BandFactor) -> Array:
        """(I - H) Y = μ Q (T + μI)⁻¹ z, (m, n, t)."""
        return mus[:, None, None] * _apply(self.band.Q, factor.solve(targets.z))

    def _one_minus_h(self, mus: Array, factor: BandFactor) -> Array:
        """(m, n): μ diag(XᵀX) less the bias's part."""
        xp = namespace(mus)
        blocks = factor.forward_blocks(self.band.Q.T)
        squares = sum(xp.linalg.vector_norm(X, axis=1) ** 2 for X in blocks)
        bias = (mus / (self.shift + mus))[:, None] * xp.sum(self.Q0**2, axis=1)
        return mus[:, None] * squares - bias

    def fit(self, targets: Targets, mu: float, force: Array | None = None) -> Fitted:
        """A block of columns at a time."""
        if mu <= self.noise:
            return self.diagonal_form.fit(self.diagonal_form.project(targets.Y), mu)
        mus, factor = asarray_like([mu], self.Q0), self.factor(np.asarray([mu]))
        blocks = [
            self._residual(Targets(None, z), mus, factor)[0, ...] for z in _column_blocks(targets.z)
        ]
        return Fitted(targets.Y, namespace(targets.Y).concat(blocks, axis=1))

    def dual_coef(self, fitted: Fitted, mu: float) -> Array:
        """α = (Y - Ŷ)/μ."""
        tiny = mu <= self.noise
        return self.diagonal_form.dual_coef(fitted, mu) if tiny else fitted.residual / mu

    def residual_scatter(self, targets: Targets, mus: np.ndarray) -> Array:
        """(m, t, t), as the Gram matrices μ XᵀX of X = L⁻¹z."""
        mus = np.asarray(mus, dtype=float)
        if np.any(mus <= self.noise):
            form = self.diagonal_form
            return form.residual_scatter(form.project(targets.Y), mus)
        parts = []
        for part, factor in self.factor.batches(mus, int(targets.Y.shape[1])):
            X = factor.forward(targets.z)
            parts.append(part[:, None, None] * (transposed(X) @ X))
        return namespace(targets.Y).concat(parts, axis=0)

    def residual_map(self, mu: float) -> ResidualMap:
        return dense_map(self, mu)

    def pairs(self, rows: np.ndarray, mu: float) -> PairSystem:
        if mu <= self.noise:
            return self.diagonal_form.pairs(rows, mu)
        X = self.factor.roots(rows, mu)
        Q0 = take(self.Q0, rows)
        return PairSystem(spd_solver(mu * (X.T @ X) - (mu / (self.shift + mu)) * (Q0 @ Q0.T)))

    def response(self, P: Array, own: np.ndarray, targets: Targets, mus: np.ndarray) -> Response:
        form = self.diagonal_form
        return form.response(P, own, form.project(targets.Y), mus)

    def jets(self, targets: Targets, mu: float) -> HeldOutJets:
        """With M = I - H, whose eigenvalues are g = μ/(λ + μ), the derivatives in log μ are

            M' = M - M²,  M'' = M - 3M² + 2M³.

        The diagonals of the powers are sums of squares: of X = L⁻¹Qᵀ, of W = L⁻ᵀX, and of L⁻¹W.
        """
        xp = namespace(targets.Y)
        powers = [self.fit(targets, mu).residual]
        for _ in range(2):
            powers.append(self.fit(self.project(powers[-1]), mu).residual)
        factor, diagonals = self.factor(np.asarray([mu])), []
        for part in _column_blocks(self.band.Q.T):
            X = factor.forward(part)
            W = factor.backward(X)
            stages = (X[0, ...], W[0, ...], factor.forward(W)[0, ...])
            sums = [mu**p * xp.sum(stage**2, axis=0) for p, stage in enumerate(stages, start=1)]
            diagonals.append(xp.stack(sums))
        share = mu / (self.shift + mu)
        bias = xp.stack([share**p * xp.sum(self.Q0**2, axis=1) for p in (1, 2, 3)])
        residual = _in_log_mu(xp.stack(powers))
        one_minus_h = _in_log_mu((xp.concat(diagonals, axis=1) - bias)[:, :, None])
        return HeldOutJets(delete_each(residual, one_minus_h).residual, residual, one_minus_h)

    def log_determinant(self, mus: np.ndarray) -> np.ndarray:
        return self.diagonal_form.log_determinant(mus)


def _apply(Q: Array, W: Array) -> Array:
    """QW for W (m, n, t), as one product."""
    xp = namespace(W)
    m, n, t = W.shape
    flat = xp.reshape(xp.permute_dims(W, (1, 0, 2)), (n, m * t))
    return xp.permute_dims(xp.reshape(Q @ flat, (n, m, t)), (1, 0, 2))


def _in_order(parts: list[Array], order: np.ndarray) -> Array:
    """The parts one after the other, then in the order asked for."""
    result = parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0)
    return result if np.all(np.diff(order) == 1) else take(result, order)


def _in_log_mu(powers: Array) -> Jet:
    """M, M - M² and M - 3M² + 2M³ from M, M² and M³ along the first axis."""
    M, M2, M3 = powers[0, ...], powers[1, ...], powers[2, ...]
    return Jet(M, M - M2, M - 3.0 * M2 + 2.0 * M3)


def _column_blocks(Y: Array) -> Iterator[Array]:
    """Y (n, t) in blocks of at most 4096 columns: with many more, every step would hold several
    n×t arrays.
    """
    for start in range(0, max(Y.shape[1], 1), 4096):
        yield Y[:, start : min(start + 4096, Y.shape[1])]
