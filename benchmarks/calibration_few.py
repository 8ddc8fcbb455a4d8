"""How far are the default probabilities of a small training set from the best that is offered?

The first ten sets, in alphabetical order, of those of the KEEL repository that report in
accuracy.py: 60 training rows, or 100 where there are more than two classes. The default is compared
with the best of all criteria and calibrations, picked on the test rows, in log-loss and in expected
calibration error (calibration.py has the variants and the measures).

    python benchmarks/calibration_few.py --splits 5
"""

from __future__ import annotations

import argparse
import warnings

import common
import numpy as np
from accuracy_sets import REPORTING
from calibration import (
    CALIBRATIONS,
    CRITERIA,
    ESTIMATORS,
    OF_KEEL,
    evaluate,
    summary,
    two_classes,
    with_auto,
)

TEN = [name for name in OF_KEEL if name in REPORTING][:10]


def few_rows(found: dict[str, dict[str, dict[str, float]]], estimator: str) -> dict[str, object]:
    """The default beside the best of what `criterion` and `calibration` offer, on the ten sets."""
    offered = [f"{estimator} | {a} | {b} | floor" for a in CRITERIA for b in CALIBRATIONS]
    default = f"{estimator} | auto | temperature | floor"
    result: dict[str, object] = {}
    for measure in ("log_loss", "calibration_error"):
        ratios = {}
        for name in TEN:
            row = with_auto(found[name], two_classes(name))
            best = min(row[variant][measure] for variant in offered)
            ratios[name] = round(row[default][measure] / max(best, 1e-12), 3)
        values = list(ratios.values())
        result[measure] = {
            "median": round(float(np.median(values)), 3),
            "worst": max(values),
            "sets": ratios,
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    splits = parser.parse_args().splits
    warnings.simplefilter("ignore")
    found = {}
    for done, name in enumerate(TEN, 1):
        found[name] = summary(evaluate(name, splits))
        common.progress(done, len(TEN), "sets")
    ratios = {estimator: few_rows(found, estimator) for estimator in ESTIMATORS}
    common.write(__file__, {"splits": splits, "ratios": ratios, "sets": found})
    for estimator, by_measure in ratios.items():
        print(estimator, by_measure)


if __name__ == "__main__":
    main()
