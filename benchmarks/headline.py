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


def timed(name: str, size: int) -> dict[str, float]:
    """Seconds of every side of a task of timings.py."""
    sides = result("timings")["tasks"][name]["sizes"][str(size)]
    return {side: measured["seconds"] for side, measured in sides.items()}


def rows() -> list[tuple[str, str, str]]:
    many = timed("1,000 permutations, 5 classes", 1000)
    refits = [many[name] / many["fitonce"] for name in many if name.startswith("scikit-learn")]
    targets = result("raetsch")["targets"]
    speed = targets["selection faster than the SVC grid, median of CPU times (30)"]
    not_worse = targets["not worse than SVC by more than one standard error (11)"]["yes"]
    better = targets["better than SVC (6)"]["yes"]
    decoding, large = timed("decoding, 1,000 permutations", 200), "500 landmarks, 21 alphas"
    sides = result("timings")["tasks"][large]["sizes"]["1000000"]
    ours, theirs = sides["fitonce"], sides["Nystroem + RidgeClassifierCV"]
    path = result("gpu")["tasks"]["path"]["rows"]["32768"]
    return [
        (
            "1000 permutations of 10-fold kernel FDA, n = 1000, 5 classes: "
            f"{many['fitonce']:.2f} s",
            "scikit-learn refitting SVC; the same estimator (both extrapolated)",
            " and ".join(f"{ratio:.0f} ×" for ratio in sorted(refits)) + " faster",
        ),
        (
            "kernel width and alpha chosen by default, Rätsch's 13 benchmarks",
            f"GridSearchCV(SVC): better on {better}, not worse by more than one standard error on "
            f"{not_worse} of 13",
            f"{speed:.0f} × faster (median)",
        ),
        (
            "decoding over time, 300 epochs × 64 channels × 200 time points, 5 folds, "
            f"1000 permutations: {decoding['fitonce']:.1f} s",
            "MNE's SlidingEstimator with LDA (extrapolated)",
            f"{decoding['MNE'] / decoding['fitonce']:.0f} × faster",
        ),
        (
            "1,000,000 rows × 20 features, 500 landmarks, 21 candidates of alpha by "
            f"leave-one-out: {ours['seconds']:.0f} s",
            "Nystroem + RidgeClassifierCV",
            f"{theirs['seconds'] / ours['seconds']:.1f} × faster, "
            f"{100 * ours['MiB'] / theirs['MiB']:.0f} % of its extra memory",
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
