r"""Held-out outputs of many labelings: everything that does not depend on labels is factored once,
and labels are right-hand sides.

Labelings are rows here: targets (B, t, n) of B labelings are multiplied by I - H in one product
(B·t, n) @ (n, n). For a set Te of deleted rows with M = (I - H)_TeTe, the held-out residuals and
the residual scatter of the remaining rows are

    ρ = M⁻¹ r_Te                          held-out targets Y_Te - ρ
    E = Yᵀr - r_Teᵀρ                        = Y_Trᵀ(I - H_Tr)Y_Tr, a Schur complement

and for the dual norm, with the coefficients α and the forces ν that keep them at zero, E = Yᵀr -
r_Teᵀρ + α_Teᵀν.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from array_api_compat import device

from ..core.arrays import (
    Array,
    asarray_like,
    empty_like_shape,
    eye_like,
    index_like,
    is_numpy,
    namespace,
    take,
    to_numpy,
)
from ..core.blocked import spd_solve_stack
from ..core.holdout import ResidualMap
from ..core.readout import Evidence
from ..crossval.decomposed import Decomposed
from ..crossval.metrics import Outputs, size_of_targets
from .factors import fold_factors, is_definite, kept_targets, label_maps
from .folds import FoldRun, Layout

# working memory of a block of labelings, beside the n×n matrices of the problem itself
MAX_BYTES = 256 << 20
# on the host blocks need not be larger than this to keep the matrix products at full speed
BLOCK_BYTES = 48 << 20
CACHE_BYTES = 6 << 20  # and what a processor's cache holds is processed a third faster,
PRODUCT_ROWS = 256  # as long as products have this many rows


class SharedEngine:
    """One decomposition of all rows; folds fixed, or at a place of their own for some labelings.

    Targets and what the maps make of them travel as a list of arrays (B, t, n): Y and r, and α
    where they leave with their rows. So do the held-out ρ, and ν.
    """

    route = "one"

    def __init__(self, decomposed: Decomposed, max_bytes: int) -> None:
        self.problem, self.mu, self.max_bytes = decomposed.problem, decomposed.mu, max_bytes
        self.readout, self.smoother = decomposed.readout, decomposed.problem.smoother
        self.maps = label_maps(self.smoother, self.mu)
        self.like = self.smoother.Q0
        self.n_samples = self.problem.n_samples
        self.definite = self.readout.n_classes < 3 or is_definite(
            self.problem.kernel, len(self.maps) > 1, self.maps[0]
        )
        self.weights = None if self.problem.row_scale is None else decomposed.row_weights
        self._layout: Layout | None = None
        self._laid_out: list[ResidualMap] = []
        self._factors: dict[int, Array] = {}

    def block_size(self, layout: Layout) -> int:
        """Labelings that travel together.

        Each has targets, residuals, held-out residuals and values, outputs: about six arrays of as
        many rows and columns.
        """
        rows = max(len(layout.order), self.n_samples)
        each = 8 * rows * (6 * self.readout.n_targets + 4) * len(self.maps)
        if not is_numpy(self.like):  # a device is fast in large steps: as much as two matrices take
            return max(1, max(self.max_bytes, 16 * self.n_samples**2) // each)
        in_cache = max(CACHE_BYTES // each, PRODUCT_ROWS // self.readout.n_kept)
        return max(1, min(in_cache, min(BLOCK_BYTES, self.max_bytes) // each))

    # ---- fixed folds -----------------------------------------------------------------------------

    def fixed(self, layout: Layout, values: Array, sizes: np.ndarray | None) -> list[Outputs]:
        """Outputs by run for labels (B, n) or numbers (B, t, n), all with the same folds, given the
        class sizes (B, k, c) of their training sets.
        """
        order, truth = layout.order, _in_order(values, layout.order)
        in_order = self._prepare(layout)
        if in_order:
            fits, total = self._fits(truth, self._laid_out, order)
        else:
            fits, total = self._fits(values, self._laid_out)
            fits = [_in_order(A, order) for A in fits]
        held_out = [empty_like_shape(tuple(A.shape), A) for A in fits[1:]]
        for run in layout.runs:
            self._hold_out(layout, run, fits[1:], held_out)
        return self._read([layout], sizes, truth, fits, held_out, total)

    def _prepare(self, layout: Layout) -> bool:
        """The maps in the order of the layout, where that is a reordering of the rows and memory
        allows; whether it is.
        """
        in_order = layout.partition and (
            self.maps[0].dense is None or 8 * self.n_samples**2 <= self.max_bytes
        )
        if layout is not self._layout:
            self._layout, self._factors = layout, {}
            self._laid_out = (
                [part.reordered(layout.order) for part in self.maps] if in_order else self.maps
            )
        return in_order

    def _factor(self, layout: Layout, fold: int) -> Array:
        """A fold's map from r (and α) to ρ (and ν), kept where all of them fit into the budget."""
        if fold in self._factors:
            return self._factors[fold]
        factor = fold_factors(self.smoother, self.mu, layout.deleted[fold], self.like)
        sizes = (len(self.maps) * len(rows) for rows in layout.deleted)
        if 8 * sum(size**2 for size in sizes) <= self.max_bytes:
            self._factors[fold] = factor
        return factor

    def _hold_out(
        self, layout: Layout, run: FoldRun, fits: list[Array], held_out: list[Array]
    ) -> None:
        """ρ (and ν) of a run's folds, written in place."""
        xp = namespace(fits[0])
        shape = (-1, fits[0].shape[2])
        given, found = ([xp.reshape(A, shape) for A in part] for part in (fits, held_out))
        if run.n_deleted == 1 and len(given) == 1:
            scale = xp.stack([self._factor(layout, fold)[0, 0] for fold, _ in run.each()])
            found[0][:, run.places] = given[0][:, run.places] * scale
            return
        for fold, places in run.each():
            together = xp.concat([A[:, places] for A in given], axis=1)
            product = together @ self._factor(layout, fold)
            for number, A in enumerate(found):
                A[:, places] = product[:, number * run.n_deleted : (number + 1) * run.n_deleted]

    # ---- folds that differ -----------------------------------------------------------------------

    def each(
        self, layouts: Sequence[Layout], values: Array, sizes: np.ndarray | None
    ) -> list[Outputs]:
        """Outputs by run for labelings whose folds lie at different places but have the same
        shapes.

        The fold blocks are factored for every layout; labelings that follow each other with the
        same one share them.
        """
        everywhere, total = self._fits(values, self.maps)
        xp = namespace(everywhere[0])
        shared = _consecutive(layouts)

        def in_order(A: Array) -> Array:
            parts = [_in_order(A[part, ...], layout.order) for layout, part in shared]
            return xp.concat(parts, axis=0)

        fits = [in_order(A) for A in everywhere]
        held_out = [empty_like_shape(tuple(A.shape), A) for A in fits[1:]]
        in_runs = len(self.maps) == 1 and self.maps[0].dense is not None
        solve = self._solve_runs if in_runs else self._solve_folds
        for layout, part in shared:
            flat = (-1, fits[0].shape[2])
            given, found = (
                [xp.reshape(A[part, ...], flat) for A in arrays] for arrays in (fits[1:], held_out)
            )
            solve(layout, given, found)
        return self._read(layouts, sizes, in_order(values), fits, held_out, total)

    def _solve_runs(self, layout: Layout, fits: list[Array], held_out: list[Array]) -> None:
        """ρ (t, width) of the labelings with one layout from r, in place.

        The blocks of I - H as one batch of solves for each run; on a device all runs together,
        smaller folds filled up with rows of the identity.
        """
        dense: Array = self.maps[0].dense
        r, rho = fits[0], held_out[0]
        if is_numpy(r):
            for run in layout.runs:
                rows = layout.order[run.places].reshape(run.count, run.n_deleted)
                _solve_on_host(dense, rows, r[:, run.places], rho[:, run.places])
            return
        xp, sizes = namespace(r), [len(rows) for rows in layout.deleted]
        index = np.full((len(sizes), max(sizes)), -1)
        there = np.arange(max(sizes)) < np.array(sizes)[:, None]
        index[there] = layout.order
        rows, inside = index_like(np.maximum(index, 0), dense), xp.asarray(there, device=device(r))
        blocks = dense[rows[:, :, None], rows[:, None, :]]
        if not there.all():
            both = inside[:, :, None] & inside[:, None, :]
            blocks = xp.where(both, blocks, eye_like(max(sizes), dense))
        places = np.zeros_like(index)
        places[there] = np.arange(len(layout.order))
        right = xp.take(r, xp.reshape(index_like(places, r), (-1,)), axis=1)
        right = xp.permute_dims(xp.reshape(right, (r.shape[0], *index.shape)), (1, 2, 0))
        right = right if there.all() else right * xp.astype(inside, r.dtype)[:, :, None]
        solution = xp.permute_dims(spd_solve_stack(blocks, right), (2, 0, 1))
        flat = xp.reshape(solution, (r.shape[0], -1))
        rho[...] = xp.take(flat, index_like(np.flatnonzero(there.ravel()), r), axis=1)

    def _solve_folds(self, layout: Layout, fits: list[Array], held_out: list[Array]) -> None:
        """ρ (and ν) of the labelings with one layout from r (and α), in place, fold by fold."""
        for run in layout.runs:
            for fold, places in run.each():
                r, alpha = fits[0][:, places].T, fits[-1][:, places].T
                found = self.smoother.pairs(layout.deleted[fold], self.mu).held_out(r, alpha)
                for A, part in zip(held_out, (found.residual, found.force), strict=False):
                    A[:, places] = part.T

    # ---- what both share -------------------------------------------------------------------------

    def _fits(
        self, values: Array, maps: list[ResidualMap], order: np.ndarray | None = None
    ) -> tuple[list[Array], Array | None]:
        """Targets times the roots of the row weights, with what the maps make of them, (B, t, n)
        each; and Yᵀr (B, t, t), where the readout needs it.
        """
        Y = kept_targets(self.readout, values, self.like)
        xp = namespace(Y)
        if self.problem.row_scale is not None:
            scale = self.problem.row_scale
            Y = Y * (scale if order is None else take(scale, order))[:, 0]
        flat = xp.reshape(Y, (-1, Y.shape[2]))
        fits = [Y, *(xp.reshape(part(flat), Y.shape) for part in maps)]
        return fits, Y @ xp.matrix_transpose(fits[1]) if self.readout.needs_scatter else None

    def _read(
        self,
        layouts: Sequence[Layout],
        sizes: np.ndarray | None,
        truth: Array,
        fits: list[Array],
        held_out: list[Array],
        total: Array | None,
    ) -> list[Outputs]:
        """The readout's outputs, run by run."""
        predicted = fits[0] - held_out[0]
        if self.problem.row_scale is not None:
            orders = np.stack([layout.order for layout in layouts])
            scale = to_numpy(self.problem.row_scale)[:, 0][orders]
            predicted = predicted / asarray_like(scale[:, None, :], predicted)
        outputs = []
        for run in layouts[0].runs:
            evidence = None
            if total is not None and sizes is not None:
                scatter = total[:, None, :, :] - _cross(fits[1], held_out[0], run)
                if len(held_out) > 1:
                    scatter = scatter + _cross(fits[2], held_out[1], run)
                run_sizes = asarray_like(sizes[:, run.first : run.first + run.count, :], predicted)
                evidence = Evidence(scatter, run_sizes)
            P = _by_fold(predicted, run)[..., : run.n_test]
            seen = _by_fold(truth if truth.ndim == 3 else truth[:, None, :], run)
            seen = (seen if truth.ndim == 3 else seen[:, :, 0, :])[..., : run.n_test]
            unit = size_of_targets(P, None if self.readout.n_classes else seen)
            read, size = self.readout.read_kept(P, unit, evidence, self.definite)
            outputs.append(Outputs(read, seen, self.smoother.accuracy(self.mu) * size))
        return outputs

    def regular(self, layouts: Sequence[Layout], sizes: np.ndarray | None) -> np.ndarray:
        """Which labelings (B,) the closed form covers, of all those with the same layout, or one
        each, and class sizes (B, k, c); one for all of them where there are no classes.
        """
        if sizes is None:
            deleted = (len(rows) for layout in layouts for rows in layout.deleted)
            return np.array([max(deleted) < self.n_samples - 1])
        return np.asarray(np.all(self.readout.is_regular(sizes), axis=1))


def _in_order(A: Array, order: np.ndarray) -> Array:
    """The last axis in another order."""
    if is_numpy(A):
        return A[..., order]
    return namespace(A).take(A, index_like(order, A), axis=A.ndim - 1)


def _consecutive(layouts: Sequence[Layout]) -> list[tuple[Layout, slice]]:
    """Labelings that follow each other with the same layout."""
    parts: list[tuple[Layout, slice]] = []
    for number, layout in enumerate(layouts):
        if parts and parts[-1][0] is layout:
            parts[-1] = layout, slice(parts[-1][1].start, number + 1)
        else:
            parts.append((layout, slice(number, number + 1)))
    return parts


def _cross(A: Array, B: Array, run: FoldRun) -> Array:
    """A_TeᵀB_Te for every labeling and fold of a run: (B, k, t, t)."""
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


def _solve_on_host(
    A: np.ndarray, rows: np.ndarray, right: np.ndarray, solution: np.ndarray
) -> None:
    """Rows of `right` (t, k·m) times the inverse blocks of A, by Cholesky.

    NumPy's batched solve is an LU, three times more expensive.
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
