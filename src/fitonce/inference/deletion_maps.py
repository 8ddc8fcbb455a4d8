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

from ..core.arrays import (
    Array,
    NotPositiveDefiniteError,
    asarray_like,
    cholesky_overwriting,
    empty_like_shape,
    eye_like,
    index_like,
    is_numpy,
    namespace,
    to_numpy,
)
from ..core.blocked import spd_solve_stack
from ..core.holdout import ResidualMap, Smoother
from ..core.readout import Evidence, Readout
from ..crossval.decomposed import Decomposed
from ..crossval.metrics import Outputs, size_of_targets
from ..kernels import Kernel
from .exchange import spans
from .placements import FoldRun, Placement

# working memory of a block of labelings, beside the n×n matrices of the problem itself
MAX_BYTES = 256 << 20
# on the host blocks need not be larger than this to keep the matrix products at full speed
BLOCK_BYTES = 48 << 20
CACHE_BYTES = 6 << 20  # and what a processor's cache holds is processed a third faster,
PRODUCT_ROWS = 256  # as long as products have this many rows


class DeletionMaps:
    """One decomposition of all rows, from which every fold follows by deleting its rows.

    Targets and what the maps make of them travel as a list of arrays (B, t, n): Y and r, and α
    where they leave with their rows. So do the held-out ρ, and ν.
    """

    route = "one"

    def __init__(self, decomposed: Decomposed, max_bytes: int) -> None:
        self.problem, self.mu, self.max_bytes = decomposed.problem, decomposed.mu, max_bytes
        self.readout, self.smoother = decomposed.readout, decomposed.problem.smoother
        self.maps = label_maps(self.smoother, self.mu)
        self.like, self.accuracy = self.smoother.Q0, self.smoother.accuracy(self.mu)
        self.n_samples = self.problem.n_samples
        self.definite = self.readout.n_classes < 3 or is_definite(
            self.problem.kernel, len(self.maps) > 1, self.maps[0]
        )
        self.weights = None if self.problem.row_scale is None else decomposed.row_weights

    def block_size(self, placement: Placement) -> int:
        """Labelings that travel together.

        Each has targets, residuals, held-out residuals and values, outputs: about six arrays of as
        many rows and columns.
        """
        rows = max(len(placement.order), self.n_samples)
        each = 8 * rows * (6 * self.readout.n_targets + 4) * len(self.maps)
        if not is_numpy(self.like):  # a device is fast in large steps: as much as two matrices take
            return max(1, max(self.max_bytes, 16 * self.n_samples**2) // each)
        in_cache = max(CACHE_BYTES // each, PRODUCT_ROWS // self.readout.n_kept)
        return max(1, min(in_cache, min(BLOCK_BYTES, self.max_bytes) // each))

    def outputs(
        self, placements: Sequence[Placement], values: Array, sizes: np.ndarray | None
    ) -> list[Outputs]:
        """Outputs by run for labels (B, n) or numbers (B, t, n), given the class sizes (B, k, c) of
        their training sets. Their folds have the same shapes; those that follow each other with the
        same placement share its factors.
        """
        everywhere, total = self._fits(values)
        xp = namespace(everywhere[0])
        runs = list(spans(placements))

        def in_order(A: Array) -> Array:
            parts = [_in_order(A[part, ...], placement.order) for placement, part in runs]
            return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)

        fits = [in_order(A) for A in everywhere]
        held_out = [empty_like_shape(tuple(A.shape), A) for A in fits[1:]]
        dense = len(self.maps) == 1 and self.maps[0].dense is not None
        solve = self._solve_runs if dense else self._solve_folds
        for placement, part in runs:
            flat = (-1, fits[0].shape[2])
            given, found = (
                [xp.reshape(A[part, ...], flat) for A in arrays] for arrays in (fits[1:], held_out)
            )
            solve(placement, given, found)
        return self._read(placements, sizes, in_order(values), fits, held_out, total)

    def _solve_runs(self, placement: Placement, fits: list[Array], held_out: list[Array]) -> None:
        """ρ (t, width) of the labelings with one placement from r, in place.

        Folds of equal size are one batch of solves with blocks of I - H.
        """
        dense: Array = self.maps[0].dense
        r, rho = fits[0], held_out[0]
        for run in placement.runs:
            rows = run.rows(placement)
            if run.n_deleted == 1:
                own = index_like(rows[:, 0], dense)
                rho[:, run.places] = r[:, run.places] / dense[own, own]
            elif is_numpy(r):
                _solve_on_host(dense, rows, r[:, run.places], rho[:, run.places])
            else:
                index, xp = index_like(rows, dense), namespace(r)
                blocks = dense[index[:, :, None], index[:, None, :]]
                right = xp.permute_dims(xp.reshape(r[:, run.places], (-1, *rows.shape)), (1, 2, 0))
                solution = xp.permute_dims(spd_solve_stack(blocks, right), (2, 0, 1))
                rho[:, run.places] = xp.reshape(solution, (r.shape[0], -1))

    def _solve_folds(self, placement: Placement, fits: list[Array], held_out: list[Array]) -> None:
        """ρ (and ν) of the labelings with one placement from r (and α), in place, fold by fold."""
        stops = np.cumsum([len(rows) for rows in placement.deleted]).tolist()
        for rows, stop in zip(placement.deleted, stops, strict=True):
            places = slice(stop - len(rows), stop)
            removal = self.smoother.leave_out(rows, self.mu)
            solved = removal.held_out_of(fits[0][:, places].T, fits[-1][:, places].T)
            held_out[0][:, places] = solved.residual.T
            if solved.force is not None:
                held_out[1][:, places] = solved.force.T

    # ---- from held-out targets to outputs ----

    def _fits(self, values: Array) -> tuple[list[Array], Array | None]:
        """Targets times the roots of the row weights, with what the maps make of them, (B, t, n)
        each; and Yᵀr (B, t, t), where the readout needs it.
        """
        Y = kept_targets(self.readout, values, self.like)
        xp = namespace(Y)
        if self.problem.row_scale is not None:
            Y = Y * self.problem.row_scale[:, 0]
        flat = xp.reshape(Y, (-1, Y.shape[2]))
        fits = [Y, *(xp.reshape(part(flat), Y.shape) for part in self.maps)]
        return fits, Y @ xp.matrix_transpose(fits[1]) if self.readout.needs_scatter else None

    def _read(
        self,
        placements: Sequence[Placement],
        sizes: np.ndarray | None,
        truth: Array,
        fits: list[Array],
        held_out: list[Array],
        total: Array | None,
    ) -> list[Outputs]:
        """The readout's outputs, run by run."""
        predicted = fits[0] - held_out[0]
        if self.problem.row_scale is not None:
            orders = np.stack([placement.order for placement in placements])
            scale = to_numpy(self.problem.row_scale)[:, 0][orders]
            predicted = predicted / asarray_like(scale[:, None, :], predicted)
        outputs = []
        for run in placements[0].runs:
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
            outputs.append(Outputs(read, seen, self.accuracy * size))
        return outputs


def _in_order(A: Array, order: np.ndarray) -> Array:
    if is_numpy(A):
        return np.take(A, order, axis=-1)
    return namespace(A).take(A, index_like(order, A), axis=A.ndim - 1)


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


# ---- what other maps share -----------------------------------------------------------------------


def is_definite(kernel: Kernel, dual: bool, residual: ResidualMap) -> bool:
    """Whether no eigenvalue of the kernel is negative, or the dual norm makes that irrelevant.

    Known from its name, or H + 1e-10·I has a Cholesky factor.
    """
    if dual or residual.dense is None or kernel.definite:
        return True
    H = eye_like(int(residual.dense.shape[0]), residual.dense) * (1.0 + 1e-10) - residual.dense
    try:
        cholesky_overwriting(H)
    except NotPositiveDefiniteError:
        return False
    return True


def label_maps(smoother: Smoother, mu: float) -> list[ResidualMap]:
    """Targets to residuals and, where α leave with their rows, to α."""
    if not smoother.has_duals:
        return [smoother.residual_map(mu)]
    unit = eye_like(smoother.n_samples, smoother.Q0)
    fitted = smoother.fit(smoother.project(unit), mu)
    return [ResidualMap(fitted.residual), ResidualMap(fitted.dual.T)]  # type: ignore[union-attr]


def kept_targets(readout: Readout, values: Array, like: Array) -> Array:
    """Targets (B, t, n) of labels (B, n) or numbers (B, t, n), on the device of the data."""
    if is_numpy(values) and not is_numpy(like):
        xp = namespace(like)
        values = asarray_like(values, like, xp.float64 if values.dtype.kind == "f" else xp.int64)
    return readout.kept_targets(values)


def regular_labelings(
    readout: Readout, placements: Sequence[Placement], sizes: np.ndarray | None
) -> np.ndarray:
    """Which labelings (B,) a closed form covers, given the class sizes (B, k, c) of their training
    sets: they have models like those of the observed one. One for all of them where there are no
    classes.
    """
    if sizes is None:
        most = max(map(len, placements[0].deleted))
        return np.array([most < placements[0].n_samples - 1])
    return np.asarray(np.all(readout.is_regular(sizes), axis=1))


def training_sizes(
    placements: Sequence[Placement], codes: Array, n_classes: int, weights: np.ndarray | None
) -> np.ndarray:
    """(Weighted) class sizes of the training sets (B, k, c), for labels (B, n), which are counted
    where they live.

    There is one placement of the folds for all labelings, or one each, of the same shapes.
    """
    xp, trains = namespace(codes), np.stack([placement.trains for placement in placements])
    trains = asarray_like(trains if weights is None else weights[:, None] * trains, codes)
    of_class = [xp.astype(codes == number, trains.dtype) for number in range(n_classes)]
    if len(placements) == 1:
        sizes = [members @ trains[0, ...] for members in of_class]
    else:
        sizes = [(members[:, None, :] @ trains)[:, 0, :] for members in of_class]
    return np.array(to_numpy(xp.stack(sizes, axis=2)))
