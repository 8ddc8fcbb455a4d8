"""Leave-pair-out of 1,000 rows: how long, and how much sooner than a fit for every pair?

`LeastSquaresSVC` with fixed parameters, both penalties. Literal fits are timed on some pairs drawn
at random and scaled to all n(n-1)/2. CPU time, one thread. The time of the function norm is printed
last.
"""

from __future__ import annotations

import argparse
import time

import common
import numpy as np

from fitonce import LeastSquaresSVC, leave_pair_out


def cpu(task) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--literal", type=int, default=10, help="pairs that are fitted literally")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    n = arguments.n
    X = rng.normal(size=(n, 10))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    rows = []
    for penalty in ("dual", "function"):
        model = LeastSquaresSVC(gamma=0.05, alpha=1.0, penalty=penalty, calibration=None)
        here = min(
            cpu(lambda model=model: leave_pair_out(model, X, y)) for _ in range(arguments.repeats)
        )

        def literal(model: LeastSquaresSVC = model) -> None:
            for _ in range(arguments.literal):
                pair = rng.choice(n, 2, replace=False)
                left = np.setdiff1d(np.arange(n), pair)
                model.fit(X[left], y[left]).decision_function(X[pair])

        there = cpu(literal) / arguments.literal * n * (n - 1) / 2
        rows.append({"penalty": penalty, "seconds": here, "literal_seconds": there})
        print(f"{penalty}: {here:.3f} s; a fit for every pair {there:.3g} s")
    common.write(__file__, {"n": n, "rows": rows})
    print(f"{rows[-1]['seconds']:.3f} s")


if __name__ == "__main__":
    main()
