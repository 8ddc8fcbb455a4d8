"""How many n×n matrices does a fit need at its peak?

Peak resident memory of a child process that fits at n = 4000, less the same process's memory before
the fit, in units of one n×n float64 matrix; the largest is printed last (the promise is 4).
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import common

CHILD = """
import resource, sys
import numpy as np
import fitonce
n, penalty, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
rng = np.random.default_rng(0)
y = rng.integers(0, 2, n)
X = rng.normal(size=(n, 10)) + 0.5 * y[:, None]
make = lambda: getattr(fitonce, kind)(gamma=0.1, alpha=2.0 ** np.arange(-10, 11), penalty=penalty)
make().fit(X[:200], y[:200])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
make().fit(X, y)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / (8 * n * n))
"""


def matrices(n: int, penalty: str, kind: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", CHILD, str(n), penalty, kind],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4000)
    arguments = parser.parse_args()
    results = {}
    for kind in ("LeastSquaresSVC", "KernelFisherDiscriminant"):
        for penalty in ("function", "dual"):
            results[f"{kind}, {penalty}"] = matrices(arguments.n, penalty, kind)
            print(f"{kind}, {penalty}: {results[f'{kind}, {penalty}']:.2f} n×n matrices")
    common.write(__file__, {"n": arguments.n, "matrices": results})
    print(f"largest {max(results.values()):.2f}")


if __name__ == "__main__":
    main()
