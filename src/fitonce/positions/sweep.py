"""The same work at every position: in blocks, in parallel, with progress, a file to resume from,
and every warning issued once.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from ..core.numerical_warnings import caught_warnings, depth_inside_package, kinds_of
from ..core.progress import ProgressCounter
from ..inference.checkpoint import Checkpoint
from ..inference.run import LONG, announce
from .slices import Slices

# checks of the clock, limited so that the data shared by all positions are not sent to workers too
# often
ROUNDS = 32

TOGETHER = 32  # smallest number of places that are processed as one array

Work = Callable[[Any], np.ndarray]  # from X at a place to the result there
# from some places to the result at each; None for those that must be processed one by one
Together = Callable[[Slices], Sequence[np.ndarray | None]]
Complaint = tuple[type[Warning], str]  # a warning in a form that can be sent between processes
Found = tuple[np.ndarray, list[Complaint]]  # results of some places, and their warnings


def swept(
    work: Work,
    slices: Slices,
    *,
    name: str,
    n_jobs: int | None,
    verbose: int,
    together: Together | None = None,
    checkpoint: Checkpoint | None = None,
    width: int = 0,
) -> np.ndarray:
    """The results of `work` at all places, (places, …), or of `together` at many places at once.

    With a `checkpoint`, they are saved after every round, `width` numbers for each place. Before a
    long run, the expected duration is printed. Each kind of warning is issued once, from the line
    of the user, with the number of repetitions; warnings are of the same kind if only numbers
    differ.
    """
    known = {} if checkpoint is None else checkpoint.load(len(slices), {"positions": (width,)})
    parts = list(known.values())
    complaints: list[Complaint] = []
    start, total, workers = sum(map(len, parts)), len(slices), effective_n_jobs(n_jobs)
    told = ProgressCounter(total, verbose, "positions")
    told.done, announced, began = start, False, time.perf_counter()
    try:
        for results, warned in _rounds(work, together, slices, start, n_jobs, workers):
            complaints += warned
            seconds, first = time.perf_counter() - began, told.done == start
            # the first includes the shared work
            if not announced and (not first or seconds > LONG):
                announced = True
                left = total - told.done - len(results)
                each = seconds / len(results) / (workers if first else 1)
                announce(name, each * left, f"{left} more positions")
            parts.append(results)
            if checkpoint is not None:
                parts = [np.concatenate(parts)]
                checkpoint.save({"positions": parts[0]})
            told(len(results))
            began = time.perf_counter()
    finally:
        for category, texts in kinds_of(complaints):
            more = f" ({len(texts) - 1} more like this one, also at other positions.)"
            text = texts[0] + (more if len(set(texts)) > 1 else "")
            warnings.warn(category(text), stacklevel=depth_inside_package())
    return np.concatenate(parts)


def _rounds(
    work: Work,
    together: Together | None,
    slices: Slices,
    start: int,
    n_jobs: int | None,
    workers: int,
) -> Iterator[Found]:
    """The result at one place; then as many blocks at a time as there are workers.

    The first place is computed here, before anything is sent to workers: whatever `work` caches is
    sent along.
    """
    total = len(slices)
    if start < total:
        yield _block(work, together, slices.part(start, start + 1), start)
    least = 1 if together is None else TOGETHER
    size = max(least, math.ceil((total - start - 1) / (ROUNDS * workers)))
    starts = range(start + 1, total, size)
    with Parallel(n_jobs=n_jobs) as parallel:
        for number in range(0, len(starts), workers):
            with caught_warnings() as caught:
                found = parallel(
                    delayed(_block)(
                        work, together, slices.part(first, first + size), first, os.getpid()
                    )
                    for first in starts[number : number + workers]
                )
            complaints = sum((others for _, others in found), _sendable(caught))
            yield np.concatenate([results for results, _ in found]), complaints


def _block(
    work: Work, together: Together | None, slices: Slices, first: int, caller: int | None = None
) -> Found:
    """Results of one block and its warnings.

    Warnings of a thread are caught in the process of the `caller`, since threads share the filters.
    """
    here: AbstractContextManager[list[warnings.WarningMessage]] = (
        nullcontext([]) if os.getpid() == caller else caught_warnings()
    )
    with here as caught:
        found = [None] * len(slices) if together is None else together(slices)
        results = [
            _at(work, slices, number, first + number) if result is None else result
            for number, result in enumerate(found)
        ]
    return np.stack(results), _sendable(caught)


def _at(work: Work, slices: Slices, number: int, position: int) -> np.ndarray:
    try:
        return work(slices.at(number))
    except Exception as error:
        error.add_note(f"This happened at position {position}.")
        raise


def _sendable(caught: list[warnings.WarningMessage]) -> list[Complaint]:
    return [(item.category, str(item.message)) for item in caught]
