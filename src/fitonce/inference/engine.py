r"""Held-out outputs of many labellings: everything that does not see labels is factored once,
labels are right-hand sides.

Labellings are rows here: targets (B, t, n) of B labellings go through I - H as one matrix product
(B·t, n) @ (n, n). For a set Te of deleted rows with M = (I - H)_TeTe, held-out residuals and the
residual scatter of the remaining rows are

    ρ = M⁻¹ r_Te                          held-out targets Y_Te - ρ
    E = Yᵀr - r_Teᵀρ                        = Y_Trᵀ(I - H_Tr)Y_Tr, a Schur complement

and for the dual norm, with the coefficients α and the forces ν that hold them at zero, E = Yᵀr -
r_Teᵀρ + α_Teᵀν.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from ..core.arrays import (
    Array,
    asarray_like,
    empty_like_shape,
    index_like,
    is_numpy,
    namespace,
    to_numpy,
)
from ..core.holdout import ResidualMap
from ..crossval.decomposed import Decomposed
from ..crossval.metrics import Outputs
from .factors import Factors, fold_factors, is_definite, label_maps, training_sizes
from .folds import FoldRun, Layout

# working memory of a block of labellings, beside the n×n matrices of the problem itself
MAX_BYTES = 256 << 20
# on the host blocks need not be larger than this to keep the matrix products at full speed
BLOCK_BYTES = 48 << 20
CACHE_BYTES = 6 << 20  # and what a processor's cache holds is worked on a third faster,
PRODUCT_ROWS = 256  # as long as products have this many rows


class SharedEngine:
    """One decomposition of all rows; folds fixed or new for every labelling."""

    route = "one"

    def __init__(self, decomposed: Decomposed, max_bytes: int) -> None:
        self.problem, self.mu, self.max_bytes = decomposed.problem, decomposed.mu, max_bytes
        self.readout, self.smoother = decomposed.readout, decomposed.problem.smoother
        self.residual, self.dual = label_maps(self.smoother, self.mu)
        self.like = self.smoother.Q0
        self.n_samples = self.problem.n_samples
        self.definite = self.readout.n_classes < 3 or is_definite(
            self.problem.kernel, self.dual is not None, self.residual
        )
        self.weights = decomposed.row_weights
        self._prepared: (
            tuple[Layout, ResidualMap, Array | None, list[list[Factors] | None]] | None
        ) = None

    def bytes_per_labelling(self, layout: Layout) -> int:
        """Targets, residuals, held-out residuals and values, outputs.

        About six arrays of this many rows and columns.
        """
        columns = self.readout.n_targets
        rows = max(len(layout.order), self.n_samples)
        return 8 * rows * (6 * columns + 4) * (2 if self.dual is not None else 1)

    def block_size(self, layout: Layout) -> int:
        each = self.bytes_per_labelling(layout)
        if not is_numpy(self.like):
            return max(1, self.max_bytes // each)
        in_cache = max(CACHE_BYTES // each, PRODUCT_ROWS // self.readout.n_kept)
        return max(1, min(in_cache, min(BLOCK_BYTES, self.max_bytes) // each))

    # ---- fixed folds -----------------------------------------------------------------------------

    def fixed(self, layout: Layout, values: np.ndarray) -> list[Outputs]:
        """Outputs by run for labels (B, n) or numbers (B, t, n), all with the same folds."""
        residual, dual, factors, in_order = self._prepare(layout)
        order = layout.order
        host = values[..., order] if in_order else values
        Y = self._scaled(host, order if in_order else None)
        r = self._apply(residual, Y)
        alpha = None if dual is None else self._apply(ResidualMap(dual), Y)
        total = self._total(Y, r)
        truth = host
        if not in_order:
            truth, Y, r = values[..., order], _columns(Y, order), _columns(r, order)
            alpha = None if alpha is None else _columns(alpha, order)
        rho, force = (
            empty_like_shape(tuple(r.shape), r),
            None if alpha is None else empty_like_shape(tuple(r.shape), r),
        )
        for number, run in enumerate(layout.runs):
            self._hold_out(factors(number), run, r, alpha, rho, force)
        return self._read(layout, values, truth, Y, r, rho, alpha, force, total, order)

    def _prepare(
        self, layout: Layout
    ) -> tuple[ResidualMap, Array | None, Callable[[int], Sequence[Factors]], bool]:
        """Maps in the order of the layout, where that is a reordering of the rows and memory
        allows; and the folds' factors.
        """
        in_order = layout.partition and (
            self.residual.dense is None or 8 * self.n_samples**2 <= self.max_bytes
        )
        if self._prepared is None or self._prepared[0] is not layout:
            residual = self.residual.reordered(layout.order) if in_order else self.residual
            dual = (
                None
                if self.dual is None
                else (
                    ResidualMap(self.dual).reordered(layout.order).dense if in_order else self.dual
                )
            )
            self._prepared = layout, residual, dual, [None] * len(layout.runs)
        _, residual, dual, kept = self._prepared
        matrices = 4 if self.dual is not None else 1
        affordable = (
            8 * matrices * sum(run.count * run.n_deleted**2 for run in layout.runs)
            <= self.max_bytes
        )

        def factors(number: int) -> Sequence[Factors]:
            known = kept[number]
            if known is not None:
                return known
            first = sum(run.count for run in layout.runs[:number])
            folds = range(first, first + layout.runs[number].count)
            made = [
                fold_factors(self.smoother, self.mu, layout.deleted[fold], self.like)
                for fold in folds
            ]
            if affordable:
                kept[number] = made
            return made

        return residual, dual, factors, in_order

    def _hold_out(
        self,
        factors: Sequence[Factors],
        run: FoldRun,
        r: Array,
        alpha: Array | None,
        rho: Array,
        force: Array | None,
    ) -> None:
        """ρ (and ν) of a run's folds, written in place."""
        B, t, width = r.shape
        xp = namespace(r)
        r2, rho2 = xp.reshape(r, (B * t, width)), xp.reshape(rho, (B * t, width))
        if run.n_deleted == 1 and alpha is None:
            scale = xp.stack([factor.r_to_rho[0, 0] for factor in factors])
            rho2[:, run.places] = r2[:, run.places] * scale
            return
        for number, factor in enumerate(factors):
            places = slice(
                run.start + number * run.n_deleted, run.start + (number + 1) * run.n_deleted
            )
            rho2[:, places] = r2[:, places] @ factor.r_to_rho
            if alpha is not None and force is not None:
                alpha2, force2 = (
                    xp.reshape(alpha, (B * t, width)),
                    xp.reshape(force, (B * t, width)),
                )
                rho2[:, places] += alpha2[:, places] @ factor.dual_to_rho
                force2[:, places] = (
                    r2[:, places] @ factor.r_to_force + alpha2[:, places] @ factor.dual_to_force
                )

    # ---- folds of their own for every labelling --------------------------------------------------

    def each(self, layouts: Sequence[Layout], values: np.ndarray) -> list[Outputs]:
        """Outputs by run for labellings with folds of their own, all of the same shapes.

        The fold blocks are factored per labelling.
        """
        Y = self._scaled(values, None)
        r = self._apply(self.residual, Y)
        alpha = None if self.dual is None else self._apply(ResidualMap(self.dual), Y)
        total = self._total(Y, r)
        orders = np.stack([layout.order for layout in layouts])
        shape = (*Y.shape[:2], orders.shape[1])
        Yc, rc, rho = (empty_like_shape(shape, Y) for _ in range(3))
        alpha_c, force = (
            (None, None)
            if alpha is None
            else (empty_like_shape(shape, Y), empty_like_shape(shape, Y))
        )
        for number, layout in enumerate(layouts):
            index = index_like(layout.order, Y)
            xp = namespace(Y)
            Yc[number, ...] = xp.take(Y[number, ...], index, axis=1)
            rc[number, ...] = xp.take(r[number, ...], index, axis=1)
            if alpha_c is not None and force is not None:
                alpha_c[number, ...] = xp.take(alpha[number, ...], index, axis=1)  # type: ignore[index]
                self._solve_each_fold(layout, number, rc, alpha_c, rho, force)
            elif self.residual.dense is None:
                self._solve_each_fold(layout, number, rc, None, rho, None)
            else:
                self._solve_runs(layout, rc[number, ...], rho[number, ...])
        truth = np.stack([row[..., order] for row, order in zip(values, orders, strict=True)])
        return self._read(layouts[0], values, truth, Yc, rc, rho, alpha_c, force, total, orders)

    def _solve_runs(self, layout: Layout, r: Array, rho: Array) -> None:
        """ρ (t, width) of one labelling from r, in place.

        The run's blocks of I - H as one batch of solves.
        """
        dense: Array = self.residual.dense
        xp = namespace(r)
        for run in layout.runs:
            rows = layout.order[run.places].reshape(run.count, run.n_deleted)
            if is_numpy(r):
                _solve_on_host(dense, rows, r[:, run.places], rho[:, run.places])
                continue
            right = xp.permute_dims(
                xp.reshape(r[:, run.places], (r.shape[0], run.count, run.n_deleted)), (1, 2, 0)
            )
            solution = xp.linalg.solve(_blocks(dense, rows), right)
            rho[:, run.places] = xp.reshape(
                xp.permute_dims(solution, (2, 0, 1)), (r.shape[0], run.count * run.n_deleted)
            )

    def _solve_each_fold(
        self,
        layout: Layout,
        number: int,
        r: Array,
        alpha: Array | None,
        rho: Array,
        force: Array | None,
    ) -> None:
        start = 0
        for rows in layout.deleted:
            places = slice(start, start + len(rows))
            start += len(rows)
            residual = r[number, :, places].T
            dual = None if alpha is None else alpha[number, :, places].T
            held_out = self.smoother.pairs(rows, self.mu).held_out(residual, dual)
            rho[number, :, places] = held_out.residual.T
            if force is not None and held_out.force is not None:
                force[number, :, places] = held_out.force.T

    # ---- what both share -------------------------------------------------------------------------

    def _scaled(self, values: np.ndarray, order: np.ndarray | None) -> Array:
        """Targets (B, t, n) where the data live, times the roots of the row weights."""
        xp = namespace(self.like)
        dtype = xp.float64 if values.dtype.kind == "f" else xp.int64
        given = values if is_numpy(self.like) else asarray_like(values, self.like, dtype=dtype)
        Y = self.readout.kept_targets(given)
        if self.problem.row_scale is None:
            return Y
        scale = self.problem.row_scale[:, 0]
        return Y * (scale if order is None else xp.take(scale, index_like(order, scale), axis=0))

    @staticmethod
    def _apply(residual: ResidualMap, Y: Array) -> Array:
        xp = namespace(Y)
        B, t, n = Y.shape
        return xp.reshape(residual(xp.reshape(Y, (B * t, n))), (B, t, n))

    def _total(self, Y: Array, r: Array) -> Array | None:
        """Yᵀr (B, t, t), where the readout needs it."""
        if not self.readout.needs_scatter:
            return None
        return Y @ namespace(Y).matrix_transpose(r)

    def _read(
        self,
        layout: Layout,
        values: np.ndarray,
        truth: np.ndarray,
        Y: Array,
        r: Array,
        rho: Array,
        alpha: Array | None,
        force: Array | None,
        total: Array | None,
        orders: np.ndarray,
    ) -> list[Outputs]:
        """The readout's outputs, run by run."""
        held_out = Y - rho
        if self.problem.row_scale is not None:
            scale = to_numpy(self.problem.row_scale)[:, 0][orders]
            held_out = held_out / asarray_like(scale if scale.ndim == 1 else scale[:, None, :], Y)
        sizes = None if total is None else self._sizes(layout, values, truth, orders)
        outputs, fold = [], 0
        for run in layout.runs:
            scatter = None
            if total is not None:
                scatter = total[:, None, :, :] - _cross(r, rho, run)
                if alpha is not None:
                    scatter = scatter + _cross(alpha, force, run)
            run_sizes = (
                None if sizes is None else asarray_like(sizes[:, fold : fold + run.count, :], Y)
            )
            P = _by_fold(held_out, run)[..., : run.n_test]
            seen = truth[..., run.places].reshape(*truth.shape[:-1], run.count, run.n_deleted)[
                ..., : run.n_test
            ]
            outputs.append(
                Outputs(
                    self.readout.read_kept(P, scatter, run_sizes, self.definite),
                    seen if seen.ndim == 3 else np.moveaxis(seen, 1, 2),
                )
            )
            fold += run.count
        return outputs

    def regular(self, layouts: Sequence[Layout], values: np.ndarray) -> np.ndarray:
        """Which labellings (B,) the closed form covers; one layout for all of them, or one each."""
        if not self.readout.n_classes:
            return np.full(
                len(values),
                all(
                    len(rows) < self.n_samples - 1 for layout in layouts for rows in layout.deleted
                ),
            )
        orders = (
            layouts[0].order
            if len(layouts) == 1
            else np.stack([layout.order for layout in layouts])
        )
        laid_out = (
            values[:, orders] if len(layouts) == 1 else np.take_along_axis(values, orders, axis=1)
        )
        sizes = self._sizes(layouts[0], values, laid_out, orders)
        return np.asarray(np.all(self.readout.is_regular(sizes), axis=1))

    def _sizes(
        self, layout: Layout, values: np.ndarray, laid_out: np.ndarray, orders: np.ndarray
    ) -> np.ndarray:
        weights = None if self.problem.row_scale is None else self.weights
        n_classes = self.readout.n_classes
        return training_sizes(
            layout,
            values,
            laid_out,
            n_classes,
            weights,
            None if weights is None else weights[orders],
        )


def _cross(A: Array, B: Array, run: FoldRun) -> Array:
    """A_TeᵀB_Te for every labelling and fold of a run: (B, k, t, t)."""
    A, B = _by_fold(A, run), _by_fold(B, run)
    xp = namespace(A)
    if A.shape[2] == 1:
        return xp.sum(A * B, axis=-1, keepdims=True)
    if run.n_deleted < 4:
        return xp.sum(A[:, :, :, None, :] * B[:, :, None, :, :], axis=-1)
    return A @ xp.matrix_transpose(B)


def _by_fold(A: Array, run: FoldRun) -> Array:
    """The part of A (B, t, width) that belongs to a run, as (B, k, t, m)."""
    xp = namespace(A)
    part = xp.reshape(A[:, :, run.places], (A.shape[0], A.shape[1], run.count, run.n_deleted))
    return xp.permute_dims(part, (0, 2, 1, 3))


def _columns(A: Array, order: np.ndarray) -> Array:
    return namespace(A).take(A, index_like(order, A), axis=2)


def _solve_on_host(
    A: np.ndarray, rows: np.ndarray, right: np.ndarray, solution: np.ndarray
) -> None:
    """Rows of `right` (t, k·m) times the inverse blocks of A, by Cholesky.

    NumPy's batched solve is an LU, three times dearer.
    """
    k, m = rows.shape
    blocks = A.ravel(order="K").take(  # A is symmetric, so its order in memory does not matter
        rows[:, :, None] * A.shape[1] + rows[:, None, :]
    )
    for number in range(k):
        places = slice(number * m, (number + 1) * m)
        _, found, failed = scipy.linalg.lapack.dposv(
            blocks[number].T, right[:, places].T, lower=1, overwrite_a=1
        )
        if failed:
            index = rows[number]
            found = np.linalg.solve(A[np.ix_(index, index)], right[:, places].T)
        solution[:, places] = found.T


def _blocks(A: Array, rows: np.ndarray) -> Array:
    """The square blocks of A at k sets of m rows: (k, m, m)."""
    index = index_like(rows, A)
    return A[index[:, :, None], index[:, None, :]]
