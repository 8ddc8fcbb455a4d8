"""How much of the distance to the SVC on Rätsch's sets lies in the choice of gamma and alpha?

The table of raetsch.py uses the medians of parameters that five training sets choose. Here every
gamma and alpha of a lattice is used on the same test sets, and the best one is picked by its mean
test error: no method of choosing within the lattice can do better. Beside it, the SVC of the table,
which chooses honestly. Where even the best is behind, least squares with this kernel is behind;
where it is level, only a choice without any cost would be level.

    FITONCE_RAETSCH=folder python benchmarks/raetsch_hindsight.py
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import common
import numpy as np
from raetsch_protocol import Protocol

from fitonce import KernelFisherDiscriminant

SETS = ("breast_cancer", "flare_solar", "heart", "thyroid", "twonorm")
GAMMAS, ALPHAS = 2.0 ** np.arange(-9, 3), 2.0 ** np.arange(-6, 10)
TABLE = common.RESULTS / "raetsch"


def errors_of(name: str, splits: int) -> np.ndarray:
    """Test errors in % (splits, gammas, alphas)."""
    protocol = Protocol(Path(), 0, None, False)
    found = np.empty((splits, len(GAMMAS), len(ALPHAS)))
    for number in range(splits):
        X, y, X_test, y_test = protocol.split(name, number)
        for row, gamma in enumerate(GAMMAS):
            model = KernelFisherDiscriminant(gamma=gamma, alpha=1.0).fit(X, y)
            for column, alpha in enumerate(ALPHAS):
                wrong = model.at(alpha=alpha).predict(X_test) != y_test
                found[number, row, column] = 100.0 * np.mean(wrong)
        common.progress(number + 1, splits, name)
    return found


def compared(name: str, splits: int) -> dict[str, float]:
    errors = errors_of(name, splits)
    row, column = np.unravel_index(np.argmin(errors.mean(axis=0)), errors.shape[1:])
    best = errors[:, row, column]
    svc = 100.0 * np.array(json.loads((TABLE / f"{name}.svc.json").read_text())["error"][:splits])
    ours = json.loads((TABLE / f"{name}.default.json").read_text())["error"][:splits]
    difference = best - svc
    return {
        "gamma": float(GAMMAS[row]),
        "alpha": float(ALPHAS[column]),
        "best by hindsight": float(best.mean()),
        "default": 100.0 * float(np.mean(ours)),
        "svc": float(svc.mean()),
        "best - svc": float(difference.mean()),
        "standard error": float(difference.std(ddof=1) / np.sqrt(splits)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--splits", type=int, default=50)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {name: compared(name, arguments.splits) for name in arguments.sets}
    for name, found in results.items():
        print(name, {key: round(value, 3) for key, value in found.items()})
    common.write(__file__, {"splits": arguments.splits, "sets": results})


if __name__ == "__main__":
    main()
