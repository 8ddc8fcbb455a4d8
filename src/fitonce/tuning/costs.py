"""What a fit will cost, said before it starts; and an error that proposes landmarks where a kernel
matrix would not fit.

Costs are scaled from a small decomposition or product timed on the spot, so they are rough: right
to a factor of two or three on a quiet machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.arrays import eigh_overwriting, on_gpu
from ..core.blocked import spd_inverse_overwriting
from ..core.memory import (
    NotEnoughMemoryError,
    explanation,
    memory_of,
    out_of_memory_explained,
    size_text,
)
from ..core.progress import has_callback, report_progress
from ..core.rows import HOST_ELEMENTS, dense_like, on_host
from ..kernels import Kernel
from ..landmarks.choice import Landmarks
from .criterion import SELECTION_ELEMENTS, Criterion
from .data import Data
from .decompose import few_features
from .gamma_search import Branch
from .trials import described

# float64 n×n matrices at the peak of a fit: for any alpha, for a single one, and through the band
# form of a GPU
MATRICES = {"all": 3.2, "one": 2.2, "band": 1.4}
LONG = 256 * 2**20  # bytes: below, a kernel matrix fits everywhere
# held-out values computed together: exactly, and where each time is a pass over the rows
PATH_ELEMENTS = 1 << 24, 1 << 27
ALPHAS = 43  # candidates of a window

Outputs = tuple[int, int, Criterion]  # numbers of targets and of classes, and how they are judged


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


def _quickest(task: Callable[[], Any]) -> float:
    """Seconds of the quickest of three runs.

    The first one loads libraries, others may be disturbed.
    """
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def exact_cost(n: int, one_alpha: bool = False) -> tuple[float, float]:
    """Seconds and bytes of one decomposition of n rows, or of a factorization for one alpha."""
    small = min(n, 800)
    K = np.eye(small) + 1.0 / (1.0 + np.abs(np.subtract.outer(np.arange(small), np.arange(small))))
    step: Callable[[Any], Any] = spd_inverse_overwriting if one_alpha else eigh_overwriting
    seconds = _quickest(lambda: step(K.copy())) * (n / small) ** 3
    return seconds, MATRICES["one" if one_alpha else "all"] * 8 * n**2


def landmark_cost(
    n: int, m: int, n_targets: int, n_classes: int, criterion: Criterion
) -> tuple[float, float]:
    """Seconds and bytes of the passes over n rows with m landmarks, and of a criterion that looks
    at every output for every alpha; the rows themselves are not counted.

    Three products (n, m) by (m, m); about sixty exponentials of every output, which is what
    calibrated criteria take. Held for each row and alpha of a chunk: residuals, held-out residuals
    and predicted targets, 1 - leverage, and class scores; of these five copies where they are
    ranked, and probabilities a few alphas at a time where the criterion is made of them.
    """
    rows = 512
    A, B = np.ones((rows, m)), np.ones((m, m))
    passes = 3.0 * _quickest(lambda: np.exp(-(A @ B))) * n / rows
    outputs = n * ALPHAS * n_targets
    judging = (60.0 if criterion.calibrates else 2.0) * _quickest(lambda: np.exp(A)) / A.size
    together = n * alphas_at_once(n, n_targets, ALPHAS, landmarks=True)
    held = together * (3 * n_targets + 1 + (6 if criterion.ranks else 1) * n_classes)
    judged = 5 * min(together * n_classes, SELECTION_ELEMENTS) if criterion.calibrates else 0
    return passes + judging * outputs, 8.0 * (held + judged + 6 * m**2 + 2 * HOST_ELEMENTS)


def alphas_at_once(n: int, n_targets: int, n_alphas: int, landmarks: bool) -> int:
    """For how many alphas held-out values are computed together."""
    return min(n_alphas, max(1, PATH_ELEMENTS[landmarks] // (n * max(n_targets, 2))))


class SearchProgress:
    """What a search will take, then each trial: to whoever listens, or as lines on the standard
    error stream where `verbose` asks for them.
    """

    def __init__(
        self,
        verbose: int,
        data: Data,
        branches: Sequence[Branch],
        n_sampled: int,
        one_alpha: bool,
        outputs: Outputs,
    ) -> None:
        first = sum(1 if b.lattice is None else len(b.lattice.first()) for b in branches)
        kernels = len({branch.kernel for branch in branches})  # most go no further than these
        trials = first + 2 * sum(b.lattice is not None for b in branches) // kernels
        self.verbose, self.expected, self.whole = verbose, trials, 1.0 * trials
        self.sampled, self.one_alpha = n_sampled, one_alpha
        if n_sampled:  # then one or two decompositions of all rows, and some factorizations
            walks = len(branches) // kernels
            self.expected += walks * 3
            self.whole = trials * (n_sampled / data.X.shape[0]) ** 3 + walks * 2.0
        self.done, self.start = 0, time.perf_counter()
        if verbose and not has_callback():
            self._print(self._plan(data.X, data.landmarks, outputs))

    def _print(self, line: str) -> None:
        if self.verbose and not has_callback():
            print(f"fitonce: {line}", file=sys.stderr, flush=True)

    def _plan(self, X: Any, landmarks: Landmarks | None, outputs: Outputs) -> str:
        """What the search will take."""
        n, p = X.shape
        kernels = f"{self.expected} kernels" if self.expected > 1 else "one kernel"
        if self.sampled:
            kernels += f", most of them on {self.sampled:,} rows"
        head = f"{n:,} rows, {p:,} features, {kernels}"
        if not on_host(X):
            return head
        if landmarks is not None:
            m = landmarks.points.shape[0]
            cost = self._cost(*landmark_cost(n, m, *outputs))
            return f"{head}, {m:,} landmarks: about {cost}"
        seconds, size = exact_cost(n, self.one_alpha)
        line = f"{head}, exact: about {self._cost(seconds, size)}"
        if self.whole * seconds > 60:
            cost = self._cost(*landmark_cost(n, 500, *outputs))
            line += f"; landmarks=500 would take about {cost}"
        return line

    def _cost(self, seconds: float, size: float) -> str:
        return f"{_duration(self.whole * seconds)} and {size_text(size)}"

    def tried(self, tried: Any) -> None:
        trial = tried.trial
        self.done += 1
        values = described(trial.parameters)
        total = max(self.expected, self.done)
        what = f"{values or 'kernel'}, best alpha {trial.alpha:.4g}, loss {trial.loss:.5g}"
        if self.expected > 1:
            report_progress(self.done, total, "kernels tried")
        elapsed = _duration(time.perf_counter() - self.start)
        self._print(f"{self.done} of about {total}: {what} ({elapsed})")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
