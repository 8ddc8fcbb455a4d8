"""What more accuracy costs: the models of accuracy.py at n = 400, p = 20, beside an SVC grid.

Processor time of a fit on one thread, the shortest of two rounds in which all take their turn;
the grid of raetsch.py (13 gammas, 16 values of C, ten folds) runs once on each set.

    python benchmarks/accuracy_timing.py
"""

from __future__ import annotations

import time
import warnings
from functools import partial

import common
import numpy as np
from accuracy_models import OURS
from raetsch_protocol import svc_grid

from fitonce.datasets import make_ringnorm, make_threenorm

N, REPEATS = 400, 2
MAKERS = {"ringnorm": make_ringnorm, "threenorm": make_threenorm}


def seconds_of(name: str) -> dict[str, float]:
    X, y = MAKERS[name](N, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    tasks = {key: partial(model.make(X.shape[1]).fit, X, y) for key, model in OURS.items()}
    found = common.interleaved(REPEATS, time.process_time, **tasks)
    grid = partial(svc_grid(X.shape[1], quick=False).fit, X, y)
    return found | common.interleaved(1, time.process_time, svc=grid)


def main() -> None:
    warnings.simplefilter("ignore")
    sets = {name: seconds_of(name) for name in MAKERS}
    default, svc = (np.array([sets[name][key] for name in sets]) for key in ("default", "svc"))
    ratios = {}
    for key in OURS:
        own = np.array([sets[name][key] for name in sets])
        ratios[key] = {
            "times the default": round(float(np.median(own / default)), 2),
            "SVC grid, times longer": round(float(np.median(svc / own)), 1),
        }
    result = {"n": N, "p": 20, "titles": {k: m.title for k, m in OURS.items()}}
    print(common.write(__file__, {**result, "seconds": sets, "ratios": ratios}))
    for key, one in ratios.items():
        print(f"{key:12s}", *(f"{what} {value}" for what, value in one.items()))


if __name__ == "__main__":
    main()
