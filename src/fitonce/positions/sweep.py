"""The same work at every position.

In blocks, in parallel, with progress, and with every warning given once.
"""

from __future__ import annotations

import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from ..core.doubt import _depth_inside_package
from ..inference.run import LONG, duration
from .slices import Slices

# looks at the clock, and at most so many times that what all positions share travels to every
# worker
ROUNDS = 32

Work = Callable[[Any, int], np.ndarray]  # X at a place, or all slices, and the number of the place


@dataclass(frozen=True)
class Complaint:
    """A warning in a form that travels between processes."""

    text: str
    category: type[Warning]

    @property
    def kind(self) -> tuple[type[Warning], str]:
        """What makes two of them alike: all but the numbers in the text."""
        return self.category, re.sub(r"[-+]?\d[\d.e+-]*", "#", self.text)


def at_every_position(
    work: Work, slices: Slices, *, name: str, n_jobs: int | None, verbose: int, start: int = 0
) -> Iterator[np.ndarray]:
    """Yield the results of `work` for the places from `start` on, stacked block by block, in order.

    The first place is done here, before anything is sent to workers: what `work` finds out on the
    way and keeps is sent along.
    """
    complaints: list[Complaint] = []
    total, workers = len(slices), effective_n_jobs(n_jobs)
    done, began, announced = start, time.perf_counter(), False
    try:
        for results, warned in _rounds(work, slices, start, n_jobs, workers):
            complaints += warned
            seconds, first, done = time.perf_counter() - began, done == start, done + len(results)
            if not announced and (
                not first or seconds > LONG
            ):  # the first place also does what all share
                announced = _announce(
                    name,
                    seconds / len(results) / (workers if first else 1) * (total - done),
                    total - done,
                )
            yield results
            _show(done, total, verbose)
            began = time.perf_counter()
    finally:
        _complain(complaints)


def _rounds(
    work: Work, slices: Slices, start: int, n_jobs: int | None, workers: int
) -> Iterator[tuple[np.ndarray, list[Complaint]]]:
    """Results of one place; then of as many blocks at a time as there are workers."""
    total = len(slices)
    if start < total:
        yield _round([_block(work, slices.part(start, start + 1), start)])
    size = max(1, math.ceil((total - start - 1) / (ROUNDS * workers)))
    starts = range(start + 1, total, size)
    if workers == 1:
        for first in starts:
            yield _round([_block(work, slices.part(first, min(first + size, total)), first)])
        return
    with Parallel(n_jobs=n_jobs) as parallel:
        for chosen in (
            starts[number : number + workers] for number in range(0, len(starts), workers)
        ):
            blocks = (
                delayed(_block)(
                    work, slices.part(first, min(first + size, total)), first, os.getpid()
                )
                for first in chosen
            )
            with warnings.catch_warnings(
                record=True
            ) as caught:  # of threads, where each catching its own would not be safe
                warnings.simplefilter("always")
                found = parallel(blocks)
            yield _round(found, _complaints(caught))


def _round(
    found: list[Any], caught: Sequence[Complaint] = ()
) -> tuple[np.ndarray, list[Complaint]]:
    complaints = [*caught, *(complaint for _, others in found for complaint in others)]
    return np.concatenate([np.stack(results) for results, _ in found]), complaints


def _block(
    work: Work, slices: Slices, first: int, elsewhere: int | None = None
) -> tuple[list[np.ndarray], list[Complaint]]:
    """Results of one block and its warnings.

    Those of a thread of the process `elsewhere` are caught there.
    """
    if os.getpid() == elsewhere:
        return [_at(work, slices, number, first + number) for number in range(len(slices))], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [_at(work, slices, number, first + number) for number in range(len(slices))]
    return results, _complaints(caught)


def _complaints(caught: list[warnings.WarningMessage]) -> list[Complaint]:
    return [Complaint(str(item.message), item.category) for item in caught]


def _at(work: Work, slices: Slices, number: int, position: int) -> np.ndarray:
    try:
        return work(slices.at(number), position)
    except Exception as error:
        error.add_note(f"This happened at position {position}.")
        raise


def _complain(complaints: list[Complaint]) -> None:
    """Each kind of warning once, from the user's own line, saying how many more there were."""
    kinds: dict[Any, list[Complaint]] = {}
    for complaint in complaints:
        kinds.setdefault(complaint.kind, []).append(complaint)
    for alike in kinds.values():
        differ = len({complaint.text for complaint in alike}) > 1
        more = f" ({len(alike) - 1} more like this one, at other positions too.)" if differ else ""
        warnings.warn(alike[0].category(alike[0].text + more), stacklevel=_depth_inside_package())


def _announce(name: str, estimate: float, remaining: int) -> bool:
    """About how long it will take, where that is long."""
    if estimate > LONG:
        print(
            f"{name}: about {duration(estimate)} for {remaining} more positions",
            file=sys.stderr,
            flush=True,
        )
    return True


def _show(done: int, total: int, verbose: int) -> None:
    if verbose > 0 and sys.stderr.isatty():
        width = 30
        filled = width * done // total
        end = "\n" if done == total else ""
        print(
            f"\rpositions [{'#' * filled}{'.' * (width - filled)}] {done}/{total}",
            end=end,
            file=sys.stderr,
            flush=True,
        )
