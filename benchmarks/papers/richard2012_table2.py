"""Table 2 of Richard (2012).

RBF kernel, gamma = 1e-5 … 100 in powers of ten (the values that the table shows are among them).
"""

from __future__ import annotations

import richard2012

PUBLISHED = [
    ("ionosphere", 0.01, 88.095, 73.809),
    ("ionosphere", 0.1, 92.857, 91.666),
    ("ionosphere", 1.0, 72.619, 83.333),
    ("ionosphere", 10.0, 90.476, 58.333),
    ("iris", 0.01, 87.879, 87.879),
    ("iris", 0.1, 87.879, 96.970),
    ("iris", 1.0, 93.939, 93.939),
    ("iris", 10.0, 90.909, 84.848),
    ("iris", 100.0, 90.909, 60.606),
    ("wine", 0.0001, 80.851, 80.851),
    ("wine", 0.00001, 80.851, 80.851),
    ("wine", 0.001, 78.723, 78.723),
]


def main() -> None:
    run = richard2012.start(
        __file__,
        __doc__,
        {"draws": 30, "gammas": [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0]},
        {"draws": 1, "gammas": [0.1, 1.0]},
    )
    lattice = [(gamma,) for gamma in run.settings["gammas"]]
    richard2012.finish(run, richard2012.rows_of(run, "rbf", lattice), PUBLISHED)


if __name__ == "__main__":
    main()
