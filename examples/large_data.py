"""A quarter of a million rows from blocks that are never in memory together: tuned, held out and
verified.

Run it: python examples/large_data.py [number of rows]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from fitonce import KernelFisherDiscriminant
from fitonce.rows import open_rows

N_FEATURES, BLOCK = 5, 10_000


def blocks(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Stand-in for files, a database or an instrument.

    The same rows at every pass, a block at a time.
    """
    for number, start in enumerate(range(0, n, BLOCK)):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(min(BLOCK, n - start), N_FEATURES))
        signal = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
        y = np.digitize(signal + 0.3 * rng.normal(size=len(X)), [-0.7, 0.7])  # three classes
        yield X, np.array(["low", "middle", "high"])[y]


def main(n: int) -> None:
    rows = open_rows(lambda: blocks(n))
    print(f"{rows.n_samples:,} rows of {rows.n_features} features, read {BLOCK:,} at a time")
    model = KernelFisherDiscriminant(gamma=0.1, landmarks=300, random_state=0, verbose=1)
    start = time.perf_counter()
    model.fit(rows)
    print(
        f"fitted in {time.perf_counter() - start:.1f} s: alpha = {model.alpha_:g} of "
        f"{len(model.cv_results_['params'])} tried"
    )
    held_out = model.classes_[model.held_out_decision_.argmax(axis=1)]
    print(
        f"leave-one-out accuracy {np.mean(held_out == rows.y):.4f}, majority "
        f"{np.max(np.unique(rows.y, return_counts=True)[1]) / n:.4f}"
    )
    first = next(blocks(1))[0]
    probabilities = dict(
        zip(model.classes_.tolist(), model.predict_proba(first)[0].round(3).tolist(), strict=True)
    )
    print(f"probabilities of the first row: {probabilities}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 250_000)
