"""Does the search over regularisation values grow like n²?

Time of the leave-one-out search over 21 values and of the decomposition it stands on, n = 256 …
4096, function and dual norm; slopes on log-log axes over the upper half of the sizes. The search's
slope is printed last (2 is the theory).
"""

from __future__ import annotations

import argparse

import common
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from fitonce.core.holdout import Smoother
from fitonce.kernels import Kernel
from fitonce.tuning.decompose import decompose

SIZES = (256, 512, 1024, 2048, 4096)
ALPHAS = 2.0 ** np.arange(-10, 11)


def measure(n: int, penalty: str, repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    Y = np.sign(rng.normal(size=(n, 1)) + X[:, :1])
    K = rbf_kernel(X, gamma=0.1)
    precomputed = Kernel("precomputed")
    made = {}

    def build() -> None:
        made["smoother"] = decompose(K.copy(), precomputed, penalty, True, None)

    build_seconds = common.interleaved(1 if n > 2048 else repeats, build=build)["build"]
    search = common.interleaved(repeats, search=lambda: best_alpha(made["smoother"], Y))
    return {"decomposition": build_seconds, "search": search["search"]}


def best_alpha(smoother: Smoother, Y: np.ndarray) -> float:
    """The alpha with the least leave-one-out squared error."""
    residual = smoother.leave_one_out(smoother.project(Y), ALPHAS).residual
    errors = np.mean(residual**2, axis=(1, 2))
    return float(ALPHAS[np.argmin(errors)])


def slope(rows: dict[int, dict[str, float]], part: str) -> float:
    upper = [n for n in rows if n >= 1024]
    return float(np.polyfit(np.log(upper), np.log([rows[n][part] for n in upper]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results = {}
    for penalty in ("function", "dual"):
        rows = {}
        for done, n in enumerate(SIZES, 1):
            rows[n] = measure(n, penalty, arguments.repeats)
            common.progress(done, len(SIZES), penalty)
        slopes = {part: slope(rows, part) for part in ("search", "decomposition")}
        results[penalty] = {"seconds": rows, "slopes": slopes}
        for n, row in rows.items():
            share = row["search"] / (row["search"] + row["decomposition"])
            print(
                f"{penalty:9s} n = {n:5d}   decomposition {row['decomposition']:8.3f} s   search "
                f"{row['search']:7.4f} s   share {share:.1%}"
            )
    common.write(__file__, {"candidates": len(ALPHAS), "penalties": results})
    for penalty, result in results.items():
        print(
            f"{penalty}: slope of the search {result['slopes']['search']:.2f}, of the "
            f"decomposition {result['slopes']['decomposition']:.2f}"
        )


if __name__ == "__main__":
    main()
