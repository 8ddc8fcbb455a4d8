"""Write the table "How fast" of README.md from the results of the other benchmarks.

python benchmarks/headline.py            # rewrites the table
python benchmarks/headline.py --check    # says whether it is up to date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import common

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
sys.path.insert(0, str(ROOT / "docs"))

from _marked import table, wrapped  # noqa: E402

BEGIN, END = "<!-- headline -->", "<!-- end of headline -->"


def result(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((common.RESULTS / f"{name}.json").read_text())
    return loaded


def rows() -> list[tuple[str, str, str]]:
    permutation, raetsch = map(result, ("permutation", "raetsch"))
    default = permutation["five classes"]["modes"]["cosets"]["seconds"]
    refits = permutation["refits"]
    targets = raetsch["targets"]
    speed = targets["selection faster than the SVC grid, median of CPU times (30)"]
    not_worse = targets["not worse than SVC by more than one standard error (11)"]["yes"]
    better = targets["better than SVC (6)"]["yes"]
    return [
        (
            f"1000 permutations of 10-fold kernel FDA, n = 1000, 5 classes: {default:.2f} s",
            "scikit-learn refitting the same estimator; SVC (both extrapolated)",
            f"{refits['sklearn with kernel FDA'] / default:.0f} × and "
            f"{refits['sklearn with SVC'] / default:.0f} × faster",
        ),
        (
            "kernel width and alpha chosen by default, Rätsch's 13 benchmarks",
            f"GridSearchCV(SVC): better on {better}, not worse by more than one standard error on "
            f"{not_worse} of 13",
            f"{speed:.0f} × faster (median)",
        ),
        *large_rows(),
    ]


def large_rows() -> list[tuple[str, str, str]]:
    """Positions, many rows, a GPU."""
    positions, large, gpu = map(result, ("positions", "large", "gpu"))
    shape = (
        f"{positions['epochs']} epochs × {positions['channels']} channels × {positions['times']} "
        "time points"
    )
    run, size = large["runs"]["fitonce n=1000000 m=500"], large["n=1000000 m=500"]
    path = gpu["path"]["32768"]
    return [
        (
            f"decoding over time, {shape}, {positions['folds']} folds, "
            f"{positions['permutations']} permutations: "
            f"{positions['processor']['seconds']['cosets']:.1f} s",
            "MNE's SlidingEstimator with LDA (extrapolated)",
            f"{positions['processor']['times_faster']['cosets']} × faster",
        ),
        (
            "1,000,000 rows × 20 features, 500 landmarks, 21 candidates of alpha by "
            f"leave-one-out: {run['seconds']:.0f} s",
            "Nystroem + RidgeClassifierCV, in a process of its own",
            f"{size['times_faster']:.1f} × faster, {100 * size['share_of_memory']:.0f} % of its "
            "extra memory",
        ),
        (
            "exact leave-one-out of 32,768 rows, 21 candidates of alpha, one H200: "
            f"{path['band']:.1f} s",
            "one eigendecomposition of the kernel matrix there",
            f"{path['eigh / band']:.1f} × faster",
        ),
    ]


def marked() -> str:
    """The table and a note, with their marks."""
    note = wrapped(
        "One thread, both sides in turn in one process unless said otherwise; made by the scripts "
        "in [`benchmarks/`](benchmarks)."
    )
    return f"{BEGIN}\n\n{table(['what', 'beside', 'result'], rows())}\n{note}\n{END}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = README.read_text()
    start = text.index(BEGIN)
    end = text.index(END) + len(END) if END in text else start + len(BEGIN)
    updated = text[:start] + marked() + text[end:]
    if arguments.check:
        raise SystemExit(
            0 if updated == text else "README.md is not up to date: run benchmarks/headline.py"
        )
    README.write_text(updated)


if __name__ == "__main__":
    main()
