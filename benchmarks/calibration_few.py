"""How far are the default probabilities of a small training set from the best that is offered?

The first ten sets, in alphabetical order, of those of the KEEL repository that report in
accuracy.py: 60 training rows, or 100 where there are more than two classes. The default is compared
with the best of all criteria and calibrations, picked on the test rows, in log-loss and in expected
calibration error (calibration.py has the variants and the measures). The best of twelve is small by
chance too; "elsewhere" compares with the variant that is best on the other splits.

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
)
from picked import picked_elsewhere

TEN = [name for name in OF_KEEL if name in REPORTING][:10]


def few_rows(
    found: dict[str, dict[str, list[list[float]]]], estimator: str
) -> dict[str, dict[str, object]]:
    """The default beside the best of what `criterion` and `calibration` offer, on the ten sets."""
    offered = [f"{estimator} | {a} | {b} | floor" for a in CRITERIA for b in CALIBRATIONS]
    result: dict[str, dict[str, object]] = {}
    for measure, place in (("log_loss", 0), ("calibration_error", 2)):
        best, elsewhere = {}, {}
        for name in TEN:
            criterion = "squared_error+log_loss" if two_classes(name) else "brier"
            table = np.array([found[name][variant] for variant in offered])[:, :, place]
            default = offered.index(f"{estimator} | {criterion} | temperature | floor")
            own = float(table[default].mean())
            best[name] = round(own / float(table.mean(axis=1).min()), 3)
            elsewhere[name] = round(own / picked_elsewhere(table), 3)
        result[measure] = {**spread(best), "sets": best, "elsewhere": spread(elsewhere)}
    return result


def spread(ratios: dict[str, float]) -> dict[str, float]:
    values = list(ratios.values())
    return {"median": round(float(np.median(values)), 3), "worst": max(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    splits = parser.parse_args().splits
    warnings.simplefilter("ignore")
    found = {}
    for done, name in enumerate(TEN, 1):
        found[name] = evaluate(name, splits)
        common.progress(done, len(TEN), "sets")
    ratios = {estimator: few_rows(found, estimator) for estimator in ESTIMATORS}
    sets = {name: summary(values) for name, values in found.items()}
    common.write(__file__, {"splits": splits, "ratios": ratios, "sets": sets})
    for estimator, by_measure in ratios.items():
        print(estimator, by_measure)


if __name__ == "__main__":
    main()
