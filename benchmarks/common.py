"""What the benchmark scripts share.

Pinned threads, interleaved timing, results as JSON beside the script's name.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# before NumPy is imported: contended cores make threaded LAPACK erratic
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

RESULTS = Path(__file__).parent / "results"


def interleaved(
    repeats: int, clock: Callable[[], float] = time.perf_counter, **tasks: Callable[[], Any]
) -> dict[str, float]:
    """The shortest time of each task over rounds in which all of them run in turn, so that load
    hits them alike; `clock` may be that of the processor, which load disturbs less.
    """
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            start = clock()
            task()
            best[name] = min(best[name], clock() - start)
    return best


def write(script: str, results: dict[str, Any], name: str | None = None) -> Path:
    """Results as JSON, naming the script that made them, the versions, the threads and the hashes
    of the code (provenance.py). The file has the script's name, or another one.

    Written atomically.
    """
    import numpy
    import provenance
    import scipy
    import sklearn

    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name or Path(script).stem}.json"
    record = {
        "script": f"benchmarks/{Path(script).name}",
        "versions": {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "sklearn": sklearn.__version__,
        },
        "threads": os.environ["OMP_NUM_THREADS"],
        **results,
        "inputs": provenance.inputs(f"benchmarks/{Path(script).name}"),
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record, indent=2) + "\n")
    temporary.replace(path)
    return path


def progress(done: int, total: int, label: str = "") -> None:
    """One line on a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{label} {done}/{total}", end=end, file=sys.stderr, flush=True)
