"""How much sooner does 10-fold cross-validation arrive than scikit-learn's, on the same estimator?

n = 2000, fixed parameters: `fitonce.cross_val_predict` (one decomposition) against
`sklearn.model_selection.cross_val_predict` (ten fits), in turn in one process, for 10 folds and, at
a smaller n, leave-one-out. Ratios last.
"""

from __future__ import annotations

import argparse

import common
import numpy as np
import sklearn.model_selection
from sklearn.model_selection import LeaveOneOut

import fitonce


def compare(n: int, cv: object, repeats: int, classes: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, 10)) + 0.5 * y[:, None]
    model = fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    outputs = {}

    def run(name: str, function: object) -> None:
        outputs[name] = function(model, X, y, cv=cv, method="decision_function")

    seconds = common.interleaved(
        repeats,
        fitonce=lambda: run("fitonce", fitonce.cross_val_predict),
        sklearn=lambda: run("sklearn", sklearn.model_selection.cross_val_predict),
    )
    deviation = np.max(np.abs(outputs["fitonce"] - outputs["sklearn"])) / np.max(
        np.abs(outputs["sklearn"])
    )
    return {
        **seconds,
        "ratio": seconds["sklearn"] / seconds["fitonce"],
        "largest_relative_deviation": float(deviation),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--n-leave-one-out", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    results = {
        f"10 folds, n = {arguments.n}, 2 classes": compare(arguments.n, 10, arguments.repeats, 2),
        f"10 folds, n = {arguments.n}, 5 classes": compare(arguments.n, 10, arguments.repeats, 5),
        f"leave-one-out, n = {arguments.n_leave_one_out}, 2 classes": compare(
            arguments.n_leave_one_out, LeaveOneOut(), 1, 2
        ),
    }
    for name, row in results.items():
        print(
            f"{name:38s} sklearn {row['sklearn']:8.2f} s   fitonce {row['fitonce']:6.2f} s   "
            f"largest deviation {row['largest_relative_deviation']:.0e}   ratio {row['ratio']:.1f}"
        )
    common.write(__file__, {"rows": results})


if __name__ == "__main__":
    main()
