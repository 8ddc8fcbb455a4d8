"""The promise on many random problems: closed forms against scikit-learn's refits.

Every problem has rows with ties, outliers or an offset, a kernel, a penalty, perhaps weights or
landmarks, and a splitter, all drawn from its seed (`tests/promise.py`). Decisions must agree to
max(1e-8, 1e3 eps lambda_max/alpha), and accuracy, balanced accuracy, AUC and average precision of
a split must be equal, unless its refit has decisions closer than that without being equal. Problems
of which a fit warns that too few digits are left are counted apart.

    python benchmarks/promise_fuzz.py --count 2000
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import common

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from promise import compare, problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem")
    arguments = parser.parse_args()
    outcomes = [
        compare(problem(seed)) for seed in range(arguments.seed, arguments.seed + arguments.count)
    ]
    clear = [outcome for outcome in outcomes if not outcome.doubtful]
    result = {
        "first_seed": arguments.seed,
        "problems": len(outcomes),
        "doubtful_by_warning": len(outcomes) - len(clear),
        "splits_with_scores_compared": sum(outcome.splits for outcome in clear),
        "decisions_beyond_tolerance": [o.seed for o in clear if o.deviation > 1.0],
        "scores_that_differ": {str(o.seed): list(o.scores) for o in clear if o.scores},
        "largest_deviation_over_tolerance": max(outcome.deviation for outcome in clear),
    }
    common.write(__file__, result)
    for outcome in clear:
        if not outcome.kept:
            print(outcome)
    print(result)


if __name__ == "__main__":
    main()
