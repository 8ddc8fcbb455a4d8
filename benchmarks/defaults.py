"""Which criterion and which calibration should be the defaults? Asked of splits that the published
table does not use.

Rätsch's benchmarks on splits 1000 and up (see ``fitonce.datasets.raetsch_splits``). In each of
several blocks the parameters are the medians of five selections, as in `raetsch.py`; they are then
used on the block's splits, with the threshold of the discriminant ("temperature" moves nothing) and
with the one that the sigmoid places. Error in %, log-loss, and each criterion's error relative to
the best one's, averaged over the sets, last.

    python benchmarks/defaults.py --sets thyroid heart --blocks 4 --splits 40
"""

from __future__ import annotations

import argparse
import warnings

import common
import numpy as np
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant
from fitonce.datasets import fetch_raetsch, raetsch_splits

CRITERIA = ("brier", "log_loss", "smoothed_error", "auc", "error", "squared_error")
CALIBRATIONS = ("temperature", "sigmoid")
SETS = ("thyroid", "heart", "breast_cancer", "titanic", "banana", "waveform")
FIRST, BLOCK, SELECTIONS = 1000, 100, 5


def parts(name: str, block: int, count: int) -> list[tuple[np.ndarray, ...]]:
    """Standardised training and test rows of the first splits of a block."""
    data = fetch_raetsch(name)
    start = FIRST + BLOCK * block
    result = []
    for train, test in raetsch_splits(name, len(data.target), start=start, stop=start + count):
        scaler = StandardScaler().fit(data.data[train])
        result.append(
            (
                scaler.transform(data.data[train]),
                data.target[train],
                scaler.transform(data.data[test]),
                data.target[test],
            )
        )
    return result


def evaluate(name: str, criterion: str, blocks: int, splits: int) -> dict[str, float]:
    """Mean error and log-loss of each calibration."""
    scores: dict[str, list[float]] = {
        f"{calibration} {what}": []
        for calibration in CALIBRATIONS
        for what in ("error", "log-loss")
    }
    for block in range(blocks):
        data = parts(name, block, max(splits, SELECTIONS))
        chosen = [
            KernelFisherDiscriminant(criterion=criterion).fit(X, y)
            for X, y, _, _ in data[:SELECTIONS]
        ]
        gamma, alpha = np.median([(model.gamma_, model.alpha_) for model in chosen], axis=0)
        for calibration in CALIBRATIONS:
            model = KernelFisherDiscriminant(gamma=gamma, alpha=alpha, calibration=calibration)
            for X, y, X_test, y_test in data[:splits]:
                model.fit(X, y)
                scores[f"{calibration} error"].append(
                    100.0 * float(np.mean(model.predict(X_test) != y_test))
                )
                scores[f"{calibration} log-loss"].append(
                    float(log_loss(y_test, model.predict_proba(X_test)))
                )
    return {key: float(np.mean(values)) for key, values in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, dict[str, dict[str, float]]] = {}
    for done, name in enumerate(arguments.sets, 1):
        results[name] = {
            criterion: evaluate(name, criterion, arguments.blocks, arguments.splits)
            for criterion in CRITERIA
        }
        common.progress(done, len(arguments.sets), "sets")
        for criterion, row in results[name].items():
            print(
                f"{name:14s} {criterion:15s} "
                + "   ".join(f"{key} {value:.4g}" for key, value in row.items())
            )
        settings = {"blocks": arguments.blocks, "splits": arguments.splits}
        common.write(__file__, {**settings, "sets": results})
    for calibration in CALIBRATIONS:
        errors = np.array(
            [
                [results[name][criterion][f"{calibration} error"] for criterion in CRITERIA]
                for name in results
            ]
        )
        relative = (errors / errors.min(axis=1, keepdims=True)).mean(axis=0)
        print(
            f"{calibration}: "
            + ", ".join(
                f"{criterion} {value:.3f}"
                for criterion, value in zip(CRITERIA, relative, strict=True)
            )
        )


if __name__ == "__main__":
    main()
