"""What the benchmark scripts share.

Pinned threads, interleaved timing, results as JSON beside the script's name.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# before NumPy is imported: contended cores make threaded LAPACK erratic
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

RESULTS = Path(__file__).parent / "results"
PACKAGES = [
    "numpy",
    "scipy",
    "sklearn",
    "himalaya",
    "mne",
    "mapie",
    "lightgbm",
    "xrfm",
    "torch",
    "cupy",
]


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
    """Results as JSON, naming the script that made them, the day, the commit, the processor, the
    versions of everything that took part, the threads and the hashes of the code (provenance.py).
    The file has the script's name, or another one.

    Written atomically.
    """
    import provenance

    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name or Path(script).stem}.json"
    record = {
        "script": f"benchmarks/{Path(script).name}",
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "processor": processor(),
        "versions": {"python": platform.python_version(), **versions()},
        "threads": os.environ["OMP_NUM_THREADS"],
        **results,
        "inputs": provenance.inputs(f"benchmarks/{Path(script).name}"),
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record, indent=2) + "\n")
    temporary.replace(path)
    return path


def versions() -> dict[str, str]:
    """Of the packages that were imported."""
    imported = [name for name in PACKAGES if name in sys.modules or name in ("numpy", "scipy")]
    return {name: str(importlib.import_module(name).__version__) for name in imported}


def commit() -> str:
    """Of the checkout, or what FITONCE_COMMIT says where the code is a copy."""
    command = ["git", "-C", str(RESULTS), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return os.environ.get("FITONCE_COMMIT") or done.stdout.strip()


def processor() -> str:
    """Its name, as Linux tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def progress(done: int, total: int, label: str = "") -> None:
    """One line on a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{label} {done}/{total}", end=end, file=sys.stderr, flush=True)
