"""What a fit will cost, said before it starts; and an error that proposes landmarks where a kernel
matrix would not fit.

Costs are scaled from a small decomposition or product timed on the spot, so they are rough: right
to a factor of two or three on a quiet machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.arrays import eigh_overwriting, on_gpu
from ..core.memory import (
    NotEnoughMemoryError,
    explanation,
    memory_of,
    out_of_memory_explained,
    size_text,
)
from ..core.progress import heard, say
from ..kernels import Kernel
from ..landmarks.choice import Landmarks
from ..rows.blocks import on_host
from ..tuning import Trial

# float64 n×n matrices at the peak of a fit: for any alpha, for a single one, and through the band
# form of a GPU
MATRICES = {"all": 3.2, "one": 2.2, "band": 1.4}
LONG = 256 * 2**20  # bytes: below, a kernel matrix fits everywhere


@contextmanager
def check_fits(X: Any, kernel: Kernel, penalty: str, mu: float | None) -> Iterator[None]:
    """Refuse a kernel matrix that memory cannot hold, before it is filled.

    Explain one that runs out of it after all.
    """
    n = int(X.shape[0])
    few_features = kernel.linear and penalty == "function" and X.shape[1] < n
    if few_features or 8 * n**2 < LONG:
        yield
        return
    like = np.empty(0) if on_host(X) else X
    band = mu is None and penalty == "function" and not on_host(X) and on_gpu(X)
    matrices = MATRICES["band" if band else "all" if mu is None else "one"] - (
        1.0 if kernel.precomputed else 0.0
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


def exact_cost(n: int) -> tuple[float, float]:
    """Seconds and bytes of one decomposition of n rows."""
    small = min(n, 800)
    K = np.eye(small) + 1.0 / (1.0 + np.abs(np.subtract.outer(np.arange(small), np.arange(small))))
    return _quickest(lambda: eigh_overwriting(K.copy())) * (n / small) ** 3, MATRICES[
        "all"
    ] * 8 * n**2


def landmark_cost(n: int, m: int, n_values: int) -> tuple[float, float]:
    """Seconds and bytes of the passes over n rows with m landmarks, and of a criterion that looks
    at n_values outputs a row.

    Three products (n, m) by (m, m); about sixty exponentials of every output, which is what
    calibrated criteria take.
    """
    rows = 512
    A, B = np.ones((rows, m)), np.ones((m, m))
    passes = 3.0 * _quickest(lambda: np.exp(-(A @ B))) * n / rows
    criterion = 60.0 * _quickest(lambda: np.exp(A)) * n * n_values / A.size
    return passes + criterion, 8.0 * (4 * n * n_values + 6 * m**2 + 8 * 2**21)


class Progress:
    """Lines on the standard error stream, where `verbose` asks for them."""

    def __init__(self, verbose: int, expected: int) -> None:
        self.verbose, self.expected, self.done, self.start = (
            verbose,
            expected,
            0,
            time.perf_counter(),
        )

    def _say(self, line: str) -> None:
        if self.verbose and not heard():
            print(f"fitonce: {line}", file=sys.stderr, flush=True)

    def plan(self, X: Any, landmarks: Landmarks | None, n_targets: int) -> None:
        """What the search will take."""
        if not self.verbose:
            return
        n, p = X.shape
        kernels = f"{self.expected} kernels" if self.expected > 1 else "one kernel"
        head = f"{n:,} rows, {p:,} features, {kernels}"
        if not on_host(X):
            self._say(head)
            return
        if landmarks is not None:
            m = landmarks.points.shape[0]
            seconds, size = landmark_cost(n, m, 43 * n_targets)
            self._say(
                f"{head}, {m:,} landmarks: about {_duration(self.expected * seconds)} and "
                f"{size_text(size)}"
            )
            return
        seconds, size = exact_cost(n)
        line = f"{head}, exact: about {_duration(self.expected * seconds)} and {size_text(size)}"
        if self.expected * seconds > 60:
            quick, less = landmark_cost(n, 500, 43 * n_targets)
            line += (
                f"; landmarks=500 would take about {_duration(self.expected * quick)} and "
                f"{size_text(less)}"
            )
        self._say(line)

    def tried(self, trial: Trial) -> None:
        self.done += 1
        if self.expected > 1:
            say(self.done, max(self.expected, self.done), "kernels tried")
        values = ", ".join(
            f"{name}={value if isinstance(value, str) else format(value, '.4g')}"
            for name, value in trial.parameters.items()
        )
        elapsed = _duration(time.perf_counter() - self.start)
        what = f"{values or 'kernel'}, best alpha {trial.alpha:.4g}, loss {trial.loss:.5g}"
        self._say(f"{self.done} of about {max(self.expected, self.done)}: {what} ({elapsed})")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
