"""Do members with a learned metric pay in a committee, and what do they cost?

Test error in %, log-loss and processor time of a fit, on the sets of accuracy_sets.py that decide
about defaults, at most 400 training rows, means over splits: the committee of kernels alone, and
the same with a member that learns a metric, `metric="learn"` for rbf. Sets that are not on the disk
are left out and named. What was done is kept, and the script goes on from there.

    python benchmarks/committee_metric.py                     # everything, or what is missing
    python benchmarks/committee_metric.py --sets wine sonar   # these alone
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import common
import numpy as np
from accuracy import measures
from accuracy_sets import DECIDING, split_of

from fitonce import KernelCommitteeClassifier, KernelFisherDiscriminant

N_SPLITS = 2
PLAIN: list[dict[str, Any]] = [
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "exponential"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
]
WAYS = {"kernels": PLAIN, "and a metric": [*PLAIN, {"kernel": "rbf", "metric": "learn"}]}


def of_split(name: str, number: int) -> dict[str, dict[str, float]]:
    split, found = split_of(name, number), {}
    for way, members in WAYS.items():
        committee = KernelCommitteeClassifier([KernelFisherDiscriminant(**m) for m in members])
        start = time.process_time()
        committee.fit(split.X, split.y)
        seconds = time.process_time() - start
        p = committee.predict_proba(split.X_test)
        scores = measures(committee.classes_[p.argmax(axis=1)], p, split)
        pairs = zip(committee.members_, committee.weights_, strict=True)
        weight = sum(w for member, w in pairs if getattr(member, "metric_", None) is not None)
        measured = {key: scores[key] for key in ("error", "log_loss")}
        found[way] = {**measured, "weight": float(weight), "seconds": seconds}
    return found


def means(several: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        way: {key: float(np.mean([one[way][key] for one in several])) for key in several[0][way]}
        for way in several[0]
    }


def main() -> None:
    warnings.simplefilter("ignore")
    path = common.RESULTS / "committee_metric.json"
    sets: dict[str, Any] = json.loads(path.read_text())["sets"] if path.exists() else {}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=DECIDING, choices=DECIDING)
    asked, missing = parser.parse_args().sets, []
    for number, name in enumerate(asked, start=1):
        try:
            if name not in sets:
                sets[name] = means([of_split(name, k) for k in range(N_SPLITS)])
        except FileNotFoundError:
            missing.append(name)
            continue
        record = {"splits": N_SPLITS, "sets": sets, "missing": missing}
        common.write(__file__, record | {"mean": means(list(sets.values()))})
        common.progress(number, len(asked), "committee_metric")
        shown = {w: [round(v, 3) for v in one.values()] for w, one in sets[name].items()}
        print(name, shown, flush=True)


if __name__ == "__main__":
    main()
