"""What a fit will cost, said before it starts; and an error that proposes landmarks where a kernel
matrix would not fit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.arrays import on_gpu
from ..core.memory import (
    NotEnoughMemoryError,
    explanation,
    memory_of,
    out_of_memory_explained,
    size_text,
)
from ..core.progress import has_callback, report_progress
from ..core.rows import dense_like, on_host
from ..kernels import Kernel
from .decompose import few_features
from .gamma_search import Branch
from .specification import Data
from .trials import Trial, described

# float64 n×n matrices at the peak of a fit: for any alpha, for a single one, and through the band
# form of a GPU
MATRICES = {"all": 3.2, "one": 2.2, "band": 1.4}
SECONDS = {"all": 2e-10, "one": 4e-11}  # over n³, of one core: 1,600 s at n = 20,000
LONG = 256 * 2**20  # bytes: below, a kernel matrix fits everywhere
# held-out values computed together: exactly, and where each time is a pass over the rows
PATH_ELEMENTS = 1 << 24, 1 << 27


@contextmanager
def check_fits(
    X: Any, kernel: Kernel, penalty: str, mu: float | None, copied: bool = False
) -> Iterator[None]:
    """Refuse a kernel matrix that memory cannot hold, before it is filled.

    Explain one that runs out of it after all. A precomputed one is there already, unless it is
    `copied`.
    """
    n = int(X.shape[0])
    if few_features(X, kernel, penalty) or 8 * n**2 < LONG:
        yield
        return
    like = dense_like(X)
    band = mu is None and penalty == "function" and not on_host(X) and on_gpu(X)
    matrices = MATRICES["band" if band else "all" if mu is None else "one"] - (
        1.0 if kernel.precomputed and not copied else 0.0
    )
    memory = memory_of(like)
    if memory is not None and matrices * 8 * n**2 > memory.free:
        raise NotEnoughMemoryError(explanation(n, matrices, memory))
    with out_of_memory_explained(n, like, matrices):
        yield


def alphas_at_once(n: int, n_targets: int, n_alphas: int, landmarks: bool) -> int:
    """For how many alphas held-out values are computed together."""
    return min(n_alphas, max(1, PATH_ELEMENTS[landmarks] // (n * max(n_targets, 2))))


class SearchProgress:
    """What a search will take, then each trial: to whoever listens, or as lines on the standard
    error stream where `verbose` asks for them.
    """

    def __init__(
        self, verbose: int, data: Data, branches: Sequence[Branch], n_sampled: int, one_alpha: bool
    ) -> None:
        first = sum(1 if b.lattice is None else len(b.lattice.first()) for b in branches)
        kernels = len({branch.kernel for branch in branches})  # most go no further than these
        trials = first + 2 * sum(b.lattice is not None for b in branches) // kernels
        walks = len(branches) // kernels if n_sampled else 0
        self.verbose, self.done, self.start = verbose, 0, time.perf_counter()
        self.expected = trials + 3 * walks  # after a sample, decompositions and factorizations
        n, p = data.X.shape
        line = f"{n:,} rows, {p:,} features, "
        line += f"{self.expected} kernels" if self.expected > 1 else "one kernel"
        line += f", most of them on {n_sampled:,} rows" if n_sampled else ""
        if data.landmarks is not None:
            line += f", {data.landmarks.points.shape[0]:,} landmarks"
        elif on_host(data.X):
            whole = trials * (n_sampled / n) ** 3 + 2.0 * walks if n_sampled else trials
            line += _exact_cost(n, whole, one_alpha)
        self._print(line)

    def _print(self, line: str) -> None:
        if self.verbose and not has_callback():
            print(f"fitonce: {line}", file=sys.stderr, flush=True)

    def tried(self, trial: Trial) -> None:
        """A trial is done: report it."""
        self.done += 1
        values = described(trial.parameters)
        total = max(self.expected, self.done)
        what = f"{values or 'kernel'}, best alpha {trial.alpha:.4g}, loss {trial.loss:.5g}"
        if self.expected > 1:
            report_progress(self.done, total, "kernels tried")
        elapsed = _duration(time.perf_counter() - self.start)
        self._print(f"{self.done} of about {total}: {what} ({elapsed})")


def _exact_cost(n: int, kernels: float, one_alpha: bool) -> str:
    """Time and memory of the decompositions of n rows, or of factorizations for one alpha."""
    step = "one" if one_alpha else "all"
    seconds = SECONDS[step] * n**3 * kernels
    line = f", exact: about {_duration(seconds)} on one core and "
    line += size_text(8 * MATRICES[step] * n**2)
    return line if seconds < 60 else f"{line}; landmarks=500 would take seconds"


def _duration(seconds: float) -> str:
    """Seconds in words, in the unit that suits them."""
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
