"""Losses of many targets, one by one: candidates → held-out values → one loss for each target.

The decomposition, and what a split makes of it, are computed once. Targets come after that, a
block of columns at a time, by one of two ways with the same numbers: through the matrices of
`core.held_out_maps` where there are many more targets than rows, or than columns of a thin
spectrum, else through the deletion formulas as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add

import numpy as np

from ..core.arrays import Array, eye_like, index_like, namespace, on_gpu, take, to_numpy
from ..core.columns import Columns, columns_at_once
from ..core.criteria import HeldOutScores, sums_of
from ..core.held_out_maps import HeldOutMap, held_out_map, thin_map
from ..core.holdout import Deletion
from ..core.memory import memory_of
from ..core.progress import ProgressCounter
from ..core.smoothers import FunctionNorm
from ..core.spectrum import row_blocks
from ..core.splits import complement
from .criterion import Criterion
from .problem import Problem

MAP_ELEMENTS = 1 << 25  # of the matrices held together: 256 MiB
UNIT_ELEMENTS = 1 << 22  # of unit targets sent through a smoother together

Deletions = Sequence[Deletion] | None
HeldOutTargets = tuple[Array, np.ndarray, np.ndarray]  # values (m, k, T), tested rows, their splits
HoldOut = Callable[[Array], Iterator[HeldOutTargets]]  # of targets (n, T), some splits at a time


def block_losses(
    problem: Problem,
    columns: Columns,
    deletions: Deletions,
    weights: np.ndarray | None,
    criterion: Criterion,
    alphas: np.ndarray,
    verbose: int = 0,
) -> np.ndarray:
    """Losses (m, t) of all targets at every alpha, for rows with these weights, or None.

    Cost: n² multiplications for each target and alpha, or less.
    """
    t, like = columns.n_targets, problem.smoother.Q0
    dtype = columns.precision(like)
    by_maps = problem.smoother.maps_pay(t, deletions is not None)
    chunks = _chunks(alphas, problem) if by_maps else [alphas]
    told = ProgressCounter(len(chunks) * t, verbose)
    found = []
    for chunk in chunks:
        hold_out: HoldOut = partial(held_out_by_formulas, problem, deletions, chunk)
        if by_maps:
            hold_out = held_out_by_maps(problem, deletions, chunk, dtype)
        copies = 4 if deletions is None and not by_maps else 2  # residuals, their quotients, values
        step = columns_at_once(copies * problem.n_samples * (1 + len(chunk)), like)
        parts = []
        for block in row_blocks(t, step):
            Y = columns.block(block, like, dtype)
            parts.append(losses_of_targets(problem, criterion, weights, hold_out, Y))
            told(block.stop - block.start)
        found.append(np.concatenate(parts, axis=1))
    return np.concatenate(found)


def _chunks(alphas: np.ndarray, problem: Problem) -> list[np.ndarray]:
    """Alphas whose matrices are held together."""
    like = problem.smoother.Q0
    memory = memory_of(like) if on_gpu(like) else None
    most = MAP_ELEMENTS if memory is None else max(MAP_ELEMENTS, memory.free // 8 // 4)
    count = -(-len(alphas) * problem.n_samples**2 // most)
    return [part for part in np.array_split(alphas, count) if len(part)]


def losses_of_targets(
    problem: Problem,
    criterion: Criterion,
    weights: np.ndarray | None,
    hold_out: HoldOut,
    Y: Array,
) -> np.ndarray:
    """Losses (m, T) of targets (n, T), each judged by itself."""
    xp = namespace(Y)
    if criterion.by_target and problem.fit_intercept is True:  # the same model of smaller numbers
        mean = xp.sum(Y, axis=0, keepdims=True, dtype=xp.float64) / Y.shape[0]
        Y = Y - xp.astype(mean, Y.dtype)

    def judged(
        predicted: Array, rows: np.ndarray, fold: np.ndarray, targets: Array
    ) -> HeldOutScores:
        tested = targets if np.array_equal(rows, np.arange(len(targets))) else take(targets, rows)
        own = np.ones(len(rows)) if weights is None else weights[rows]
        return HeldOutScores(predicted, tested, own, fold)

    if criterion.by_target and criterion.pooled:  # splits add up: none waits for the others
        sums = (sums_of(criterion.given, judged(*piece, Y)) for piece in hold_out(Y))
        return to_numpy(reduce(add, sums).loss(criterion.given))
    values, rows, fold = zip(
        *((to_numpy(piece[0]), *piece[1:]) for piece in hold_out(Y)), strict=True
    )
    whole = np.concatenate(values, axis=1), np.concatenate(rows), np.concatenate(fold)
    scores = judged(*whole, to_numpy(Y))
    if criterion.by_target:
        return criterion.losses(scores)
    return np.concatenate([criterion.losses(each) for each in scores.targets_alone()], axis=1)


def held_out_by_formulas(
    problem: Problem, deletions: Deletions, alphas: np.ndarray, Y: Array
) -> Iterator[HeldOutTargets]:
    yield problem.with_targets(Y).held_out_targets(alphas, deletions)


def held_out_by_maps(
    problem: Problem, deletions: Deletions, alphas: np.ndarray, dtype: object
) -> HoldOut:
    """A function from targets (n, T) to their held-out values at these alphas.

    Of every split there is a map from the targets to the values of its tested rows; leave-one-out
    is one map that tests all rows.
    """
    thin = problem.smoother.of_low_rank if isinstance(problem.smoother, FunctionNorm) else None
    if thin is None or deletions is None or problem.confounds is not None:
        found = _unit_maps(problem, deletions, alphas)
    else:
        found = (_scaled(thin_map(thin, each, alphas), problem) for each in deletions)
    maps = [each.astype(dtype) for each in found]
    all_rows = np.arange(problem.n_samples)

    def hold_out(Y: Array) -> Iterator[HeldOutTargets]:
        for number, each in enumerate(maps):
            split = all_rows if deletions is None else np.full(len(each.tested), number)
            yield each(Y), each.tested, split

    return hold_out


def _scaled(scaled: HeldOutMap, problem: Problem) -> HeldOutMap:
    """A map of scaled targets as one of targets."""
    s = problem.row_scale
    if s is None or scaled.coordinates is None:
        return scaled
    basis = scaled.basis / take(s, scaled.tested)
    return replace(scaled, basis=basis, coordinates=scaled.coordinates * take(s, scaled.train).T)


def _unit_maps(problem: Problem, deletions: Deletions, alphas: np.ndarray) -> Iterator[HeldOutMap]:
    """The maps of every split, from the held-out values of unit targets."""
    n, xp = problem.n_samples, namespace(problem.smoother.Q0)
    step = max(1, UNIT_ELEMENTS // n**2)
    unit, all_rows = problem.with_targets(np.eye(n)), np.arange(n)
    blocks = row_blocks(len(alphas), step)
    parts = [unit.held_out_targets(alphas[block], deletions)[0] for block in blocks]
    splits = [(complement(deleted, n), deleted[tested]) for deleted, tested in deletions or ()]
    if deletions is None:  # nothing but rounding of a row's own target
        parts, splits = [part * (1.0 - eye_like(n, part)) for part in parts], [(all_rows, all_rows)]
    start = 0
    for train, tested in splits:
        own = slice(start, start := start + len(tested))
        columns = index_like(train, parts[0])
        matrices = xp.concat([xp.take(part[:, own, :], columns, axis=2) for part in parts], axis=0)
        yield held_out_map(train, tested, matrices)
