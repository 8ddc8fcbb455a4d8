"""What does a cluster of GPUs cost in overhead, and how far would it carry?

1,000,000 rows of 20 features, 4,096 landmarks, 21 values of alpha by leave-one-out, float64, on one
GPU: the rows as one CuPy array, and as a Dask array whose chunks are CuPy arrays, worked on by
Dask's threads on the same GPU. How far the two models differ, seconds of each, and what travels:
bytes of rows that a GPU reads in each pass, bytes of sums that a worker sends.

From these rates: 100,000,000 rows on 1, 8 and 64 GPUs, if every worker's GPU does its share at the
measured rate and the sums are merged in a tree of 8 branches at 10 GB/s.

    python benchmarks/dask_gpu.py             # needs CuPy and Dask
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import common
import numpy as np

from fitonce import KernelRidge

ALPHAS = 2.0 ** np.arange(-10, 11)
FEATURES = 20
PLANNED = 100_000_000
BRANCHES, LINK = 8, 10e9  # of the tree of merges; bytes a second between workers


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)


def model(n_landmarks: int) -> KernelRidge:
    return KernelRidge(gamma=0.05, alpha=ALPHAS, landmarks=n_landmarks, random_state=0)


def timed(X: Any, y: Any, n_landmarks: int, wait: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    fitted = model(n_landmarks).fit(X, y)
    wait()
    return time.perf_counter() - start, fitted


def planned(fixed: float, each: float, n_landmarks: int) -> dict[str, float]:
    """Seconds for 1e8 rows by the number of GPUs: what does not depend on the number of rows (the
    m×m decompositions on the client), two passes at the measured rate, and merging.
    """
    moments = 8 * n_landmarks**2
    return {
        str(cards): fixed
        + each * PLANNED / cards
        + math.ceil(math.log(cards, BRANCHES) if cards > 1 else 0) * BRANCHES * moments / LINK
        for cards in (1, 8, 64)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--landmarks", type=int, default=4096)
    parser.add_argument("--chunks", type=int, default=8)
    arguments = parser.parse_args()
    import cupy
    import dask
    import dask.array as da

    n, m = arguments.n, arguments.landmarks
    X, y = problem(n)
    on_gpu, targets = cupy.asarray(X), cupy.asarray(y)
    chunked = da.from_array(on_gpu, chunks=(-(-n // arguments.chunks), FEATURES), asarray=False)
    wait = cupy.cuda.Device().synchronize
    timed(on_gpu[:50_000], targets[:50_000], min(m, 512), wait)  # libraries load
    seconds, whole = timed(on_gpu, targets, m, wait)
    with dask.config.set(scheduler="threads", num_workers=1):
        over_dask, parts = timed(chunked, y, m, wait)
        fewer = n // 4
        of_fewer, _ = timed(chunked[:fewer], y[:fewer], m, wait)
    each = (over_dask - of_fewer) / (n - fewer)
    fixed = over_dask - n * each
    expected, found = cupy.asnumpy(whole.predict(on_gpu[:2000])), parts.predict(X[:2000])
    result = {
        "device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "n": n,
        "features": FEATURES,
        "landmarks": m,
        "chunks": arguments.chunks,
        "one array": seconds,
        "Dask": over_dask,
        "Dask, a quarter of the rows": of_fewer,
        "seconds a row": each,
        "seconds whatever the rows": fixed,
        "alphas": [float(whole.alpha_), float(parts.alpha_)],
        "difference": float(np.abs(found - expected).max() / np.abs(expected).max()),
        "bytes a row and pass": 8 * FEATURES,
        "bytes of sums a worker": 8 * m * m,
        "planned": planned(fixed, each, m),
    }
    common.write(__file__, result)
    print(result)
    print(f"a row over Dask / a row of one CuPy array: {each / (seconds / n):.2f}")


if __name__ == "__main__":
    main()
