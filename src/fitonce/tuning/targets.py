"""Losses of many targets, one by one: candidates → held-out values → one loss for each target.

The decomposition, and what a split makes of it, are computed once. Targets come after that, a
block of columns at a time, by one of two ways with the same numbers: through the matrices of
`core.held_out_maps` where there are many more targets than rows, else through the deletion formulas
as they are.

Memory beside the decomposition: the matrices of the alphas that are processed together, at most
256 MiB (on a GPU a quarter of what is free), and a block with what is made of it, 64 MiB (an
eighth); and one number for each candidate and target.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like, eye_like, namespace, on_gpu, take, to_numpy
from ..core.columns import Columns, column_blocks, columns_at_once, elements_at_once
from ..core.criteria import HeldOutScores
from ..core.held_out_maps import HeldOutMap, held_out_map
from ..core.holdout import Deletion
from ..core.memory import memory_of
from ..core.progress import heard, say
from ..core.splits import complement
from ..core.target_losses import BY_TARGET, Sums, sums_of
from .criterion import Criterion
from .problem import Problem

MAP_ELEMENTS = 1 << 25  # of the matrices held together: 256 MiB
UNIT_ELEMENTS = 1 << 22  # of unit targets sent through a smoother together

Piece = tuple[np.ndarray, np.ndarray, Array]  # tested rows, their splits, values (m, k, T)


@dataclass(frozen=True)
class TargetLosses:
    """What every target loses at every alpha, on a decomposition that is there.

    `weights` are those of the rows, or None; `verbose` shows how far the work is.
    """

    problem: Problem
    columns: Columns
    deletions: Sequence[Deletion] | None
    weights: np.ndarray | None
    criterion: Criterion
    verbose: int = 0
    kept: dict[str, Any] = field(default_factory=dict, compare=False)

    def __call__(self, alphas: np.ndarray) -> np.ndarray:
        """Losses (m, t). Cost: n² multiplications for each target and alpha, or less."""
        t = self.columns.n_targets
        chunks = list(self._chunks(alphas))
        losses = np.empty((len(alphas), t))
        told = Told(len(chunks) * t, self.verbose)
        start = 0
        for chunk in chunks:
            hold_out = self._held_out_by(chunk)
            stop = start + len(chunk)
            for columns in column_blocks(t, self._step(len(chunk))):
                losses[start:stop, columns] = to_numpy(self._of_block(columns, hold_out))
                told(columns.stop - columns.start)
            start = stop
        return _finite(losses)

    def of_targets(self, Y: Array, alphas: np.ndarray) -> np.ndarray:
        """Losses (m, T) of targets (n, T) that are there; the matrices are kept for the next."""
        if "hold_out" not in self.kept:
            self.kept["hold_out"] = self._held_out_by(alphas, by_maps=True)
        return to_numpy(self._of_targets(Y, self.kept["hold_out"]))

    @property
    def _like(self) -> Array:
        return self.problem.smoother.Q0

    @property
    def _by_maps(self) -> bool:
        return self.problem.smoother.maps_pay(self.columns.n_targets)

    def _chunks(self, alphas: np.ndarray) -> list[np.ndarray]:
        """Alphas whose matrices are held together."""
        if not self._by_maps:
            return [alphas]
        n, like = self.problem.n_samples, self._like
        memory = memory_of(like) if on_gpu(like) else None
        most = MAP_ELEMENTS if memory is None else max(MAP_ELEMENTS, memory.free // 8 // 4)
        count = -(-len(alphas) * n**2 // most)
        return [part for part in np.array_split(alphas, count) if len(part)]

    def _step(self, n_alphas: int) -> int:
        """Columns of a block: targets twice, and the values of one split or of all."""
        n = self.problem.n_samples
        whole = not (self._by_maps and self._adds_up and self.deletions is not None)
        tested = n if whole else max(len(test) for _, test in self.deletions or ())
        return columns_at_once(2 * (n + n_alphas * tested), self._like)

    @property
    def _adds_up(self) -> bool:
        return isinstance(self.criterion.given, str) and self.criterion.given in BY_TARGET

    # ---- held-out values -------------------------------------------------------------------------

    def _held_out_by(
        self, alphas: np.ndarray, by_maps: bool | None = None
    ) -> Callable[[Array], Iterator[Piece]]:
        """Targets (n, T) → the tested rows of each split with their values for these alphas."""
        if not (self._by_maps if by_maps is None else by_maps):
            return lambda Y: self._by_formulas(Y, alphas)
        dtype = self.columns.precision(self._like)
        maps = [each.astype(dtype) for each in self.maps(alphas)]

        def hold_out(Y: Array) -> Iterator[Piece]:
            for number, each in enumerate(maps):
                rows = each.tested
                split = rows if self.deletions is None else np.full(len(rows), number)
                yield rows, split, each(Y)

        return hold_out

    def _by_formulas(self, Y: Array, alphas: np.ndarray) -> Iterator[Piece]:
        problem = self.problem.with_targets(Y)
        step = max(1, elements_at_once(Y) // (4 * max(1, int(Y.shape[0]) * int(Y.shape[1]))))
        parts = [alphas[start : start + step] for start in range(0, len(alphas), step)]
        held_out = [problem.held_out_targets(part, self.deletions) for part in parts]
        values = namespace(Y).concat([part[0] for part in held_out], axis=0)
        yield held_out[0][1], held_out[0][2], values

    def maps(self, alphas: np.ndarray) -> Iterator[HeldOutMap]:
        """Of every split the map from targets to its tested rows' values; leave-one-out is one map
        that tests all rows.
        """
        n = self.problem.n_samples
        step = max(1, UNIT_ELEMENTS // n**2)
        parts = [alphas[start : start + step] for start in range(0, len(alphas), step)]
        pieces = [self._of_unit_targets(part) for part in parts]
        rows = np.arange(n)
        splits = (
            [(rows, rows)]
            if self.deletions is None
            else [(complement(deleted, n), deleted[tested]) for deleted, tested in self.deletions]
        )
        for number, (train, tested) in enumerate(splits):
            own = [piece[number] for piece in pieces]
            for piece in pieces:
                piece[number] = None
            matrices = own[0] if len(own) == 1 else namespace(own[0]).concat(own, axis=0)
            del own
            yield held_out_map(train, tested, matrices)

    def _of_unit_targets(self, alphas: np.ndarray) -> list[Array]:
        """The matrices (m, k, n_Tr) of every split, at some alphas."""
        n, xp = self.problem.n_samples, namespace(self._like)
        problem = self.problem.with_targets(np.eye(n))
        values, _, _ = problem.held_out_targets(alphas, self.deletions)
        if self.deletions is None:  # nothing but rounding of a row's own target
            return [values * (1.0 - eye_like(n, values))]
        sizes = [len(tested) for _, tested in self.deletions]
        ends = np.cumsum(sizes)
        matrices = []
        for (deleted, _), end, size in zip(self.deletions, ends, sizes, strict=True):
            own = xp.permute_dims(values[:, end - size : end, :], (2, 0, 1))
            trained = take(own, complement(deleted, n))
            matrices.append(xp.asarray(xp.permute_dims(trained, (1, 2, 0)), copy=True))
        return matrices

    # ---- losses ----------------------------------------------------------------------------------

    def _of_block(self, columns: slice, hold_out: Callable[[Array], Iterator[Piece]]) -> Array:
        """Losses (m, T) of some targets."""
        Y = self.columns.block(columns, self._like, self.columns.precision(self._like))
        return self._of_targets(Y, hold_out)

    def _of_targets(self, Y: Array, hold_out: Callable[[Array], Iterator[Piece]]) -> Array:
        centre = self._centre(Y)
        if self.problem.fit_intercept is True:  # a free bias: the same model of smaller numbers
            Y, shift = Y - centre, 0.0 * centre
        else:
            shift = centre
        pieces = hold_out(Y)
        if not self._adds_up:
            return self._called(list(pieces), Y + (centre - shift), centre - shift)
        parts = (part for piece in pieces for part in self._sums(piece, Y, shift))
        name = str(self.criterion.given)
        if self.criterion.pooled:
            return reduce(add, parts).loss(name)
        losses = [part.loss(name) for part in parts]
        return reduce(add, losses) / len(losses)

    def _centre(self, Y: Array) -> Array:
        """The mean of every target (1, T), in its precision."""
        xp = namespace(Y)
        total = xp.sum(Y, axis=0, keepdims=True, dtype=xp.float64) / Y.shape[0]
        return xp.astype(total, Y.dtype)

    def _sums(self, piece: Piece, Y: Array, shift: Array) -> Iterator[Sums]:
        """One for all rows, or one for each split where these are judged by themselves."""
        rows, split, values = piece
        correlation = self.criterion.given == "correlation"
        within = (
            [slice(None)]
            if self.criterion.pooled
            else [np.flatnonzero(split == number) for number in np.unique(split)]
        )
        for chosen in within:
            part = rows[chosen]
            own = values if len(part) == len(rows) else _rows_of(values, np.asarray(chosen))
            weights = None
            if self.weights is not None:
                weights = asarray_like(self.weights[part], Y, Y.dtype)
            ordered = len(part) == Y.shape[0] and np.array_equal(part, np.arange(len(part)))
            y = Y if ordered else take(Y, part)
            if self.problem.fit_intercept is not True:
                y, own = y - shift, own - shift
            yield sums_of(own, y, weights, correlation)

    def _called(self, pieces: list[Piece], Y: Array, shift: Array) -> np.ndarray:
        """A scorer or a function of the user's own, called for every target and alpha."""
        rows, split = (np.concatenate([piece[part] for piece in pieces]) for part in (0, 1))
        predicted = np.concatenate([to_numpy(piece[2] + shift) for piece in pieces], axis=1)
        y = to_numpy(take(Y, rows))
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        losses = [
            self.criterion.losses(
                HeldOutScores(
                    predicted[:, :, j : j + 1], y[:, j : j + 1], weights, split, y=y[:, j]
                )
            )
            for j in range(y.shape[1])
        ]
        return np.stack(losses, axis=1)


def _finite(losses: np.ndarray) -> np.ndarray:
    """Losses (m, t), infinite if they are undefined; every target must have one."""
    finite = np.isfinite(losses)
    if not finite.any(axis=0).all():
        target = int(np.flatnonzero(~finite.any(axis=0))[0])
        raise ValueError(
            f"the criterion is not finite for any alpha at target number {target}, so that none "
            "can be chosen: scale the targets, or use larger candidates; a user-defined "
            "criterion must return a number for every split."
        )
    return np.where(finite, losses, np.inf)


def _rows_of(values: Array, rows: np.ndarray) -> Array:
    """Some of the tested rows of values (m, k, T)."""
    xp = namespace(values)
    return xp.permute_dims(take(xp.permute_dims(values, (1, 0, 2)), rows), (1, 0, 2))


class Told:
    """How many targets are done, to whoever listens, or as a line on the standard error stream."""

    def __init__(self, total: int, verbose: int, what: str = "targets") -> None:
        self.done, self.total, self.what = 0, total, what
        self.shown = bool(verbose) and not heard() and sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        self.done += count
        say(self.done, self.total, self.what)
        if self.shown:
            share = 30 * self.done // max(self.total, 1)
            line = f"\r{self.what} [{'#' * share:.<30}] {self.done}/{self.total}"
            end = "\n" if self.done >= self.total else ""
            print(line, end=end, file=sys.stderr, flush=True)


__all__ = ["TargetLosses", "Told"]
